"""`make mutants`: put one seeded bug after another into a copy of the tree, and see which test catches it.

    python -m tests.mutants [NAME …]

Exit code 1 when a bug survives, a patch does not apply, or the tests fail without any bug.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants import ROOT, Mutant, apply, mutants

LIMIT_S = 300
"""A bug that makes its tests hang is caught too."""
_KEPT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "var", "node_modules")
_FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?(\w+\.py::.+?)(?: - .*)?$", re.MULTILINE)
_TESTS_FAILED = 1


def main(names: Sequence[str]) -> int:
    chosen = [mutant for mutant in mutants() if not names or mutant.name in names]
    if not chosen or len(chosen) < len(set(names)):
        print(f"no such mutant; there are: {', '.join(mutant.name for mutant in mutants())}")
        return 2
    complaint = sound(chosen)
    if complaint:
        print(complaint)
        return 1
    bad = [mutant.name for mutant in chosen if not caught(mutant)]
    print(f"{len(chosen) - len(bad)} of {len(chosen)} caught" + (f"; not caught: {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


def sound(chosen: Sequence[Mutant]) -> str:
    """What is wrong with the tests themselves: one that fails without a bug, or is not there, catches nothing."""
    with copy() as tree:
        code, output = run(tree, sorted({test for mutant in chosen for test in mutant.tests}))
    return "" if code == 0 else f"the tests do not pass without a bug:\n{output[-4000:]}"


def caught(mutant: Mutant) -> bool:
    """Whether a test fails with the bug in; tells so in one line."""
    began = time.monotonic()
    with copy() as tree:
        verdict = apply(mutant, tree)
        if verdict:
            word = f"DOES NOT APPLY: {verdict}"
        else:
            code, output = run(tree, mutant.tests)
            verdict, word = judge(code, output)
    print(f"{mutant.name:<40} {word}  ({time.monotonic() - began:.0f} s)\n    {mutant.bug}", flush=True)
    return not verdict


def judge(code: int | None, output: str) -> tuple[str, str]:
    """Why the bug counts as not caught (empty when it is), and the words for people. code: None when it took too long."""
    if code is None:
        return "", f"caught: its tests hang for {LIMIT_S} s"
    failed = _FAILED.findall(output)
    if code == _TESTS_FAILED and failed:
        return "", f"caught by {failed[0]}"
    if code == 0:
        return "survived", "SURVIVED"
    return "broken", f"BROKEN: pytest ended with {code}\n{output[-2000:]}"


class copy:  # noqa: N801  reads as a statement
    """The tree in a temporary folder."""

    def __enter__(self) -> Path:
        self._folder = tempfile.TemporaryDirectory(prefix="exports-mutant-", ignore_cleanup_errors=True)
        return Path(shutil.copytree(ROOT, Path(self._folder.name) / "tree", ignore=_KEPT_OUT))

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def run(tree: Path, tests: Sequence[str]) -> tuple[int | None, str]:
    """Exit code and output of these tests; the first failure ends them."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=line", "-p", "no:cacheprovider", *tests]
    with tempfile.TemporaryFile("w+") as output:
        # A session of its own: servers that a hanging test started end with it.
        process = subprocess.Popen(command, cwd=tree, stdout=output, stderr=output, start_new_session=True)
        try:
            code: int | None = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            process.terminate()  # nothing, when it has ended
            process.wait()
        output.seek(0)
        return code, output.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
