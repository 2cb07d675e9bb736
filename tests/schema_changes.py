"""What in a new OpenAPI document breaks callers of the old one. Additions do not."""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
_METHODS = {"get", "post", "put", "patch", "delete"}


def breaking(old: Schema, new: Schema) -> list[str]:
    """One line for each change that an old caller would notice."""
    return sorted(_paths(old, new))


def _paths(old: Schema, new: Schema) -> Iterator[str]:
    for path, methods in old["paths"].items():
        for method, operation in methods.items():
            if method not in _METHODS:
                continue
            where = f"{method.upper()} {path}"
            other = new["paths"].get(path, {}).get(method)
            if other is None:
                yield f"{where}: is gone"
                continue
            yield from _parameters(where, operation, other)
            yield from _bodies(f"{where} request", operation.get("requestBody"), other.get("requestBody"), old, new)
            yield from _responses(where, operation, other, old, new)


def _parameters(where: str, old: Schema, new: Schema) -> Iterator[str]:
    before = {(item["in"], item["name"]) for item in old.get("parameters", ())}
    after = {(item["in"], item["name"]): item for item in new.get("parameters", ())}
    yield from (f"{where}: parameter {name} is gone" for place, name in before - set(after))
    for (place, name), item in after.items():
        if (place, name) not in before and item.get("required"):
            yield f"{where}: parameter {name} is required now"


def _responses(where: str, old: Schema, new: Schema, old_root: Schema, new_root: Schema) -> Iterator[str]:
    for status, answer in old["responses"].items():
        other = new["responses"].get(status)
        if other is None:
            # A refusal that can no longer happen hurts nobody.
            if status < "400":
                yield f"{where}: {status} is gone"
            continue
        yield from _bodies(f"{where} {status}", answer, other, old_root, new_root, answered=True)


def _bodies(
    where: str, old: Schema | None, new: Schema | None, old_root: Schema, new_root: Schema, *, answered: bool = False
) -> Iterator[str]:
    before, after = (old or {}).get("content", {}), (new or {}).get("content", {})
    for media_type, body in before.items():
        if media_type not in after:
            yield f"{where}: {media_type} is gone"
            continue
        yield from _schemas(
            where, body.get("schema", {}), after[media_type].get("schema", {}), old_root, new_root, answered
        )


def _schemas(where: str, old: Schema, new: Schema, old_root: Schema, new_root: Schema, answered: bool) -> Iterator[str]:
    old, new = _resolved(old, old_root), _resolved(new, new_root)
    if _types(old, old_root) != _types(new, new_root) and not _types(new, new_root) >= _types(old, old_root) > set():
        yield f"{where}: type was {sorted(_types(old, old_root))}, is {sorted(_types(new, new_root))}"
    if answered and _types(new, new_root) > _types(old, old_root):
        yield f"{where}: may be {sorted(_types(new, new_root) - _types(old, old_root))} now"
    if not answered and set(old.get("enum", ())) - set(new.get("enum", old.get("enum", ()))):
        yield f"{where}: takes fewer values"
    fields, others = old.get("properties", {}), new.get("properties", {})
    for name in fields:
        if name not in others:
            yield f"{where}.{name}: is gone"
        else:
            yield from _schemas(f"{where}.{name}", fields[name], others[name], old_root, new_root, answered)
    before, after = set(old.get("required", ())), set(new.get("required", ()))
    if answered:
        yield from (f"{where}.{name}: may be missing now" for name in (before - after) & set(others))
    else:
        yield from (f"{where}.{name}: is required now" for name in after - before)
    if "items" in old and "items" in new:
        yield from _schemas(f"{where}[]", old["items"], new["items"], old_root, new_root, answered)


def _resolved(schema: Schema, root: Schema) -> Schema:
    while "$ref" in schema:
        schema = root["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def _types(schema: Schema, root: Schema) -> set[str]:
    schema = _resolved(schema, root)
    parts = [part for name in ("oneOf", "anyOf", "allOf") for part in schema.get(name, ())]
    if parts:
        return set().union(*(_types(part, root) for part in parts))
    found = schema.get("type", ())
    if not found and schema.get("enum") == [None]:
        return {"null"}
    return {found} if isinstance(found, str) else set(found)
