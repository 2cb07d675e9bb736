"""The seeded bugs stay true while the code changes: each patch applies, and the tests that it names are there."""

import re
import shutil

import pytest

from tests import mutants, services
from tests.mutants import __main__ as runner

ALL = mutants.mutants()


def test_there_are_enough_of_them() -> None:
    assert len(ALL) >= 30
    assert len({mutant.bug for mutant in ALL}) == len(ALL)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_every_patch_applies(mutant: mutants.Mutant) -> None:
    if shutil.which("git") is None:
        services.missing("git")
    assert mutants.apply(mutant, mutants.ROOT, only_check=True) == ""


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_every_patch_names_tests_that_exist(mutant: mutants.Mutant) -> None:
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert re.search(rf"^def {name.partition('[')[0]}\(", (mutants.ROOT / file).read_text("utf-8"), re.MULTILINE)


def test_only_a_failed_test_catches_a_bug() -> None:
    assert runner.judge(1, "FAILED tests/unit/test_a.py::test_b[1/2 x] - assert 1 == 2\n") == (
        "",
        "caught by test_a.py::test_b[1/2 x]",
    )
    assert runner.judge(0, "1 passed")[0] == "survived"
    assert runner.judge(4, "ERROR: not found: tests/unit/test_a.py::test_b")[0] == "broken"
    assert runner.judge(None, "")[0] == ""
