"""The documents for people say what the code says."""

import io
import re
from pathlib import Path

import pytest
from django.core.management import call_command

from exports.messages import CAUSES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
OPERATIONS = (ROOT / "docs/operations.md").read_text("utf-8")


def slug(heading: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def headings(path: Path) -> set[str]:
    return {slug(title) for title in re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)}


@pytest.mark.parametrize("name", ["settings", "columns", "codes"])
def test_a_page_that_a_command_prints_is_up_to_date(name: str) -> None:
    out = io.StringIO()
    call_command(f"export_{name}", stdout=out)
    assert (ROOT / f"docs/{name}.md").read_text("utf-8") == out.getvalue()


def test_every_error_code_of_a_failed_task_is_explained_and_no_other() -> None:
    section = OPERATIONS.split("## Error codes")[1].split("## Commands")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(CAUSES)


def test_every_command_is_in_the_table_and_no_other() -> None:
    section = OPERATIONS.split("\n## Commands")[1].split("### Cancel")[0]
    documented = re.findall(r"^\| `(export_\w+)", section, re.MULTILINE)
    assert sorted(documented) == sorted(path.stem for path in ROOT.glob("*/management/commands/export_*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_inside_the_documents_leads_somewhere(page: Path) -> None:
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in headings(path)):
            lost.append(target)
    assert lost == []


def test_each_decision_has_a_number_and_its_four_parts() -> None:
    pages = sorted((ROOT / "docs/adr").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for page in pages:
        parts = re.findall(r"^## (.+)$", page.read_text("utf-8"), re.MULTILINE)
        assert parts == ["Context", "Choice", "Price", "Ruled out"], page.name


@pytest.mark.parametrize(("page", "least"), [("requirements", 40), ("reliability", 20)])
def test_every_test_named_as_a_proof_exists(page: str, least: int) -> None:
    named = re.findall(
        r"`((?:unit|integration|acceptance|architecture|reliability|browser)/\w+\.py)(?:::(\w+))?`",
        (ROOT / f"docs/{page}.md").read_text("utf-8"),
    )
    assert len(named) > least
    for file, name in named:
        text = (ROOT / "tests" / file).read_text("utf-8")
        assert not name or f"def {name}(" in text, f"{file}::{name}"
