"""The sentences that callers read."""

import re
from itertools import product

import pytest

from exports import errors, messages
from exports.contracts import Phase
from exports.messages import Language, choose_language, failure_sentence, reason_text
from exports.views import Failure

ZH, EN = Language.ZH, Language.EN


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", ZH), ("en", EN), ("en-US,en;q=0.9,zh;q=0.8", EN), ("zh-TW", ZH), ("ZH-hans-CN", ZH), ("fr", ZH), ("fr,en;q=0.5", EN),
        ("en;q=0", ZH), ("en;q=0.2,zh;q=0.9", ZH), ("*", ZH), ("en;q=x", ZH), ("\x00", ZH), ("en" * 400, ZH),
    ],
)  # fmt: skip
def test_the_language_follows_the_header(header: str, language: Language) -> None:
    assert choose_language(header) is language


@pytest.mark.parametrize(
    ("failure", "en", "zh"),
    [
        (
            Failure("database_timeout", Phase.FETCH, "2026-09-14", page=7, cursor="18342", attempts=4),
            "fetch failed on 2026-09-14, page 7 (after id 18342): database timeout, 4 attempts.",
            "读取 2026-09-14 第 7 页（id 18342 之后）失败：数据库超时，共尝试 4 次。",
        ),
        (
            Failure("unclassified", Phase.FETCH, "2026-09-14", page=1, attempts=1),
            "fetch failed on 2026-09-14, page 1: internal error, 1 attempt.",
            "读取 2026-09-14 第 1 页失败：内部错误，共尝试 1 次。",
        ),
        (
            Failure("spool_lost", Phase.RENDER, "2026-09-14"),
            "render failed on 2026-09-14: spooled data lost or damaged.",
            "合成 2026-09-14 失败：暂存数据丢失或损坏。",
        ),
        (Failure("disk_full", Phase.RENDER), "render failed: disk full.", "合成失败：磁盘已满。"),
        (
            Failure("store_unavailable", Phase.UPLOAD, page=3, attempts=4),
            "upload failed at part 3: file store not available, 4 attempts.",
            "上传第 3 个分段失败：文件存储不可用，共尝试 4 次。",
        ),
        (Failure("row_limit", None), "planning failed: more rows than allowed.", "计划阶段失败：行数超过上限。"),
        (
            Failure("database_timeout", None, "2026-09-14", attempts=4),
            "planning failed on 2026-09-14: database timeout, 4 attempts.",
            "计划阶段 2026-09-14 失败：数据库超时，共尝试 4 次。",
        ),
        (Failure("brand_new", Phase.FETCH), "fetch failed: brand new.", "读取失败：brand new。"),
    ],
)
def test_a_failure_says_phase_place_cause_and_attempts(failure: Failure, en: str, zh: str) -> None:
    assert (failure_sentence(failure, EN), failure_sentence(failure, ZH)) == (en, zh)


def test_a_cursor_with_braces_stays_as_it_is() -> None:
    failure = Failure("unclassified", Phase.FETCH, "{cause}", page=1, cursor="{0}{attempts}")
    assert failure_sentence(failure, EN) == "fetch failed on {cause}, page 1 (after id {0}{attempts}): internal error."


def test_every_cause_of_the_error_tree_has_words() -> None:
    def codes(kind: type[errors.ExportError]) -> set[str]:
        return {kind.code}.union(*map(codes, kind.__subclasses__()))

    failing = {code for code in codes(errors.StepFailed) if not code.startswith("invalid")}
    assert failing | {"database_timeout", "database_connection", "replica_conflict"} <= set(messages.CAUSES)


def test_every_refusal_of_the_error_tree_has_words() -> None:
    refusals = {kind.code for kind in errors.RequestRefused.__subclasses__()}
    conflicts = {"cannot_cancel", "cannot_rerun", "cannot_delete", "specification_changed", "file_not_ready"}
    limits = {"queue_full", "too_many_submits"}
    assert refusals | conflicts | limits | {errors.StateUnavailable.code, errors.StoreUnavailable.code} <= set(
        messages.PROBLEMS
    )


def test_both_languages_name_the_same_facts() -> None:
    texts = [text for problem in messages.PROBLEMS.values() for text in (problem.title, problem.detail)]
    for text in [*texts, *messages.CAUSES.values()]:
        assert set(re.findall(r"{\w+}", text.zh)) == set(re.findall(r"{\w+}", text.en)), text


def test_every_text_is_there_in_both_languages() -> None:
    for problem, language in product(messages.PROBLEMS.values(), Language):
        assert problem.title.say(language).strip()
        assert (language is ZH) == bool(re.search(r"[一-鿿]", problem.title.say(language)))


def test_a_reason_without_a_translation_stays_english() -> None:
    assert reason_text(messages.REQUIRED, ZH) == "必填"
    assert reason_text("is odd", ZH) == "is odd"
    assert reason_text(messages.REQUIRED, EN) == "is required"
