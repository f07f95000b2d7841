"""The one canonical form of a JSON value and its digest; what is digested is decided elsewhere.

Canonical form: orjson, keys sorted, UTF-8, no spaces, a float that is a whole number written as an integer, strings
untouched. Digest: xxh3 of 128 bits, written `xxh3:<32 hex>`; with a key every exported digest is the keyed BLAKE2b of
it, written `b2k:<32 hex>`. A value that JSON has no form for never raises: it is replaced by a tag of its type.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence

import orjson
import xxhash

SORTED = orjson.OPT_SORT_KEYS
MAX_DEPTH = 200
digest: Callable[[bytes], bytes] = xxhash.xxh3_128_digest


def canonical(value: object) -> bytes:
    """The canonical bytes of a JSON value."""
    return encode(normal(value, set()))


def encode(value: object) -> bytes:
    """Sorted JSON bytes of a value whose numbers are already normal; unencodable parts become tags."""
    raw = exact(value)
    return orjson.dumps(tagged(value, set()), option=SORTED) if raw is None else raw


def exact(value: object) -> bytes | None:
    """Sorted JSON bytes of a value, or `None` when JSON has no form for a part of it."""
    try:
        return orjson.dumps(value, option=SORTED)
    except (TypeError, ValueError, RecursionError):
        return None


def wire(value: object) -> bytes:
    """The bytes of a value in the order in which it was given."""
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return orjson.dumps(tagged(value, set()))


def normal(value: object, seen: set[int]) -> object:
    """The value with whole floats as integers; containers that contain themselves are left for `tagged` to cut."""
    if type(value) is float:
        return int(value) if math.isfinite(value) and value.is_integer() else value
    if not isinstance(value, (dict, list, tuple)) or id(value) in seen or len(seen) > MAX_DEPTH:
        return value
    inside = seen | {id(value)}
    if isinstance(value, dict):
        return {key: normal(item, inside) for key, item in value.items()}
    return [normal(item, inside) for item in value]


def tagged(value: object, seen: set[int]) -> object:
    """The value with everything that JSON cannot say replaced by a tag that no text of a model call equals."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else f"\0int:{value:x}"
    if isinstance(value, float):
        return value if math.isfinite(value) else f"\0float:{value}"
    if id(value) in seen or len(seen) > MAX_DEPTH:
        return "\0cut"
    inside = seen | {id(value)}
    if isinstance(value, Mapping):
        return {str(tagged(key, inside)): tagged(item, inside) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [tagged(item, inside) for item in value]
    return f"\0type:{type(value).__name__}"


def flaw(value: object, seen: frozenset[int] = frozenset()) -> str | None:
    """Why a value has no exact JSON form (`bytes`, `nan`, `surrogate`, `cycle`, …), or `None` when it has one."""
    if isinstance(value, str):
        return None if value.isascii() or _encodes(value) else "surrogate"
    if value is None or isinstance(value, (bool, int)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else "nan"
    if id(value) in seen:
        return "cycle"
    if len(seen) > MAX_DEPTH:
        return "depth"
    if isinstance(value, (dict, list, tuple)):
        items = value.values() if isinstance(value, dict) else value
        return next((found for item in items if (found := flaw(item, seen | {id(value)}))), None)
    return type(value).__name__


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def schema_form(tool: object) -> object:
    """A tool definition with its set-like arrays sorted: `required` names a set in JSON Schema, `enum` an order that
    the model reads (spec: canonical form)."""
    if isinstance(tool, dict):
        return {key: _schema_item(key, item) for key, item in tool.items()}
    if isinstance(tool, list):
        return [schema_form(item) for item in tool]
    return tool


def _schema_item(key: object, item: object) -> object:
    if key == "required" and isinstance(item, list) and all(isinstance(name, str) for name in item):
        return sorted(item)
    return schema_form(item)


def written(raw: bytes, key: bytes | None = None) -> str:
    """A digest as it is exported; with `key` nobody without it can test a guess of the text."""
    if key is None:
        return f"xxh3:{raw.hex()}"
    return f"b2k:{hashlib.blake2b(raw, digest_size=16, key=key).hexdigest()}"


def digest_of(*parts: object) -> bytes:
    """The digest of a list of JSON values."""
    return digest(canonical(list(parts)))
