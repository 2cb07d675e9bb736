"""Loads the Lua scripts and binds their keys and arguments by the names in their headers.

A header is the only declaration: the loader makes `K.<name>` and `A.<name>` of it, so header and use
cannot drift apart. A name that ends in `*` takes all arguments that are left.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "lua"
_SECTION = re.compile(r"^-- (KEYS|ARGV|USES|REPLY)$")
_ITEM = re.compile(r"^--   (\S+)")


@dataclass(frozen=True, slots=True)
class Script:
    """A script as Redis gets it. keys, arguments: names in the order of KEYS and ARGV."""

    name: str
    source: str
    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    replies: frozenset[str]

    def bind(self, keys: Mapping[str, str], values: Mapping[str, object]) -> tuple[list[str], list[str]]:
        """KEYS and ARGV of one call. Raises: KeyError for a missing name, TypeError for one too many."""
        unknown = set(values) - {name.rstrip("*") for name in self.arguments}
        if unknown:
            raise TypeError(f"{self.name} takes no {', '.join(sorted(unknown))}")
        arguments: list[str] = []
        for name in self.arguments:
            if name.endswith("*"):
                rest = values[name[:-1]]
                assert isinstance(rest, Sequence)
                arguments.extend(str(value) for value in rest)
            else:
                arguments.append(str(values[name]))
        return [keys[name] for name in self.keys], arguments


def _sections(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"KEYS": [], "ARGV": [], "USES": [], "REPLY": []}
    current: list[str] | None = None
    for line in text.splitlines():
        if not line.startswith("--"):
            if current is not None and not line.startswith("#!"):
                break
            continue
        if section := _SECTION.match(line):
            current = found[section[1]]
        elif current is not None and (item := _ITEM.match(line)):
            current.append(item[1])
    return found


def _merged(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """All names once, in order, one that takes the rest last."""
    names = dict.fromkeys(name for names in lists for name in names)
    return tuple(sorted(names, key=lambda name: name.endswith("*")))


def _prelude(keys: Sequence[str], arguments: Sequence[str]) -> str:
    lines = [f"local K = {{{', '.join(f'{name} = KEYS[{i}]' for i, name in enumerate(keys, 1))}}}"]
    plain = [f"{name} = ARGV[{i}]" for i, name in enumerate(arguments, 1) if not name.endswith("*")]
    lines.append(f"local A = {{{', '.join(plain)}}}")
    if arguments and arguments[-1].endswith("*"):
        name = arguments[-1][:-1]
        lines.append(f"A.{name} = {{}} for i = {len(arguments)}, #ARGV do A.{name}[#A.{name} + 1] = ARGV[i] end")
    return "\n".join(lines)


def _with_fragments(names: Sequence[str], seen: dict[str, str]) -> dict[str, str]:
    """Fragment name → text, each after the ones that it uses."""
    for name in names:
        if name not in seen:
            text = (FOLDER / "shared" / f"{name}.lua").read_text(encoding="utf-8")
            _with_fragments(_sections(text)["USES"], seen)
            seen[name] = text
    return seen


@functools.cache
def load(name: str) -> Script:
    """The script `lua/<name>.lua` with its fragments."""
    text = (FOLDER / f"{name}.lua").read_text(encoding="utf-8")
    first_line, _, body = text.partition("\n")
    own = _sections(text)
    fragments = _with_fragments(own["USES"], {})
    parts = [own, *map(_sections, fragments.values())]
    keys = _merged([part["KEYS"] for part in parts])
    arguments = _merged([part["ARGV"] for part in parts])
    source = "\n".join([first_line, _prelude(keys, arguments), *fragments.values(), body])
    return Script(name, source, keys, arguments, frozenset(own["REPLY"]))


def all_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.lua"))
