"""Seeded bugs: each patch beside this file breaks one rule of the product and names the tests that must see it.

A patch is what `git apply` takes, behind two lines of its own:

    Bug: what is broken, in one sentence
    Tests: the narrowest tests that must fail, as pytest names them, with a space between
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Mutant:
    """tests: ids as pytest takes them. patch: where it lies."""

    name: str
    bug: str
    tests: tuple[str, ...]
    patch: Path


def mutants() -> list[Mutant]:
    """All seeded bugs, by name. Raises: ValueError for a patch without its two lines."""
    return [_read(path) for path in sorted(Path(__file__).parent.glob("*.patch"))]


def apply(mutant: Mutant, tree: Path, *, only_check: bool = False) -> str:
    """Put the bug into a tree; what `git apply` complains about, empty when it fits."""
    done = subprocess.run(
        ["git", "apply", *(["--check"] if only_check else []), str(mutant.patch)],
        cwd=tree,
        # Inside of another repository git would skip every file without a word.
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() or (f"git apply ended with {done.returncode}" if done.returncode else "")


def _read(path: Path) -> Mutant:
    bug, tests, *_ = path.read_text("utf-8").splitlines()
    if not (bug.startswith("Bug: ") and tests.startswith("Tests: ")):
        raise ValueError(f"{path.name}: the first two lines must be `Bug: …` and `Tests: …`")
    return Mutant(path.stem, bug.removeprefix("Bug: "), tuple(tests.removeprefix("Tests: ").split()), path)
