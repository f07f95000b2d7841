"""The one canonical form of a JSON value and its digest; what is digested is decided elsewhere.

Canonical form: orjson, keys sorted by code point, UTF-8, no spaces, strings untouched; numbers: an integer in digits, a
float that is a whole number below 2**53 as that integer, any other float in the fewest digits that read back as it, an
exponent without a plus sign.
Digest: xxh3 of 128 bits, written `xxh3:<32 hex>`; with a key every exported digest is the keyed BLAKE2b of it, written
`b2k:<32 hex>`. A value that JSON has no form for never raises: a tag stands in its place.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

import orjson
import xxhash

SORTED = orjson.OPT_SORT_KEYS
MAX_DEPTH = 200
WHOLE = 2.0**53
_SIZED = range(-(2**63), 2**64)
# CPython refuses to write longer integers in digits (sys.get_int_max_str_digits).
_MAX_BITS = 4096
# From here on floats are written with an exponent.
_EXPONENT = 1e16
digest: Callable[[bytes], bytes] = xxhash.xxh3_128_digest


def canonical(value: object) -> bytes:
    """The canonical bytes of a JSON value."""
    return encode(normal(value))


def encode(value: object) -> bytes:
    """Sorted JSON bytes of a value whose numbers are already normal; unencodable parts become tags."""
    raw = exact(value)
    return orjson.dumps(tagged(value), option=SORTED) if raw is None else raw


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
        return orjson.dumps(tagged(value))


def normal(value: object) -> object:
    """The value with its floats in their one form. What nests without end, as a cycle does, is left for `tagged`."""
    try:
        return _normal(value)
    except RecursionError:
        return value


def _normal(value: object) -> object:
    if type(value) is float:
        return _float(value)
    if isinstance(value, dict):
        return {key: _normal(item) for key, item in value.items()}
    return [_normal(item) for item in value] if isinstance(value, (list, tuple)) else value


def _float(value: float) -> object:
    if not math.isfinite(value):
        return f"\0float:{value}"
    if value.is_integer() and -WHOLE <= value <= WHOLE:
        return int(value)
    # Releases of orjson differ in whether they write 1e16 or 1e+16 (3.10 the first, 3.13 the second).
    return orjson.Fragment(repr(value).replace("+", "")) if abs(value) >= _EXPONENT else value


def tagged(value: object, inside: tuple[int, ...] = ()) -> object:
    """The value with everything that JSON cannot say replaced by a tag that no text of a model call equals; `inside`
    are the containers around it."""
    if value is None or isinstance(value, (bool, orjson.Fragment)):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"\0bytes:{digest(bytes(value)).hex()}"
    if not isinstance(value, (Mapping, Sequence)):
        return f"\0type:{type(value).__name__}"
    if id(value) in inside or len(inside) >= MAX_DEPTH:
        return "\0cut"
    here = (*inside, id(value))
    if isinstance(value, Mapping):
        return {_key(key): tagged(item, here) for key, item in value.items()}
    return [tagged(item, here) for item in value]


def _text(value: str) -> str:
    return value.encode("utf-8", "backslashreplace").decode()


def _integer(value: int) -> object:
    """An integer beyond 64 bits is JSON all the same, only not to orjson."""
    if value in _SIZED:
        return value
    return orjson.Fragment(str(int(value))) if value.bit_length() <= _MAX_BITS else f"\0int:{value:x}"


def _key(key: object) -> str:
    """The name of a member; JSON knows texts alone."""
    if isinstance(key, str):
        return _text(key)
    if isinstance(key, int):
        return f"\0key:{key:x}"
    return f"\0key:{key}" if isinstance(key, float) else f"\0key:{type(key).__name__}"


def flaw(value: object, depth: int = 0) -> str | None:
    """Why a value has no exact JSON form (`bytes`, `nan`, `surrogate`, `key`, `depth`, …), else `None`."""
    if isinstance(value, str):
        return None if value.isascii() or _encodes(value) else "surrogate"
    if value is None or isinstance(value, int):
        return "integer" if value is not None and value.bit_length() > _MAX_BITS else None
    if isinstance(value, float):
        return None if math.isfinite(value) else "nan"
    if depth > MAX_DEPTH:
        return "depth"
    if isinstance(value, dict):
        named = next((found for key in value if (found := _key_flaw(key))), None)
        return named or next((found for item in value.values() if (found := flaw(item, depth + 1))), None)
    if isinstance(value, (list, tuple)):
        return next((found for item in value if (found := flaw(item, depth + 1))), None)
    return type(value).__name__


def _key_flaw(key: object) -> str | None:
    return flaw(key) if isinstance(key, str) else "key"


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def schema_form(tool: object) -> object:
    """A tool definition with its set-like arrays sorted: `required` names a set in JSON Schema, `enum` an order that
    the model reads (spec: canonical form)."""
    try:
        return _sorted_sets(tool) if _unsorted(tool) else tool
    except RecursionError:
        return tool


def _unsorted(value: object) -> bool:
    if isinstance(value, dict):
        names = value.get("required")
        return (_is_set(names) and names != sorted(names)) or any(map(_unsorted, value.values()))
    return isinstance(value, list) and any(map(_unsorted, value))


def _is_set(names: object) -> TypeGuard[list[str]]:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _sorted_sets(value: object) -> object:
    if isinstance(value, dict):
        return {k: sorted(v) if k == "required" and _is_set(v) else _sorted_sets(v) for k, v in value.items()}
    return [_sorted_sets(item) for item in value] if isinstance(value, list) else value


def key_of(text: str) -> bytes:
    """The key that a text stands for. BLAKE2b takes 64 bytes, so that a longer text is digested first: no part of it is
    left out."""
    raw = text.encode("utf-8", "surrogateescape")
    return raw if len(raw) <= hashlib.blake2b.MAX_KEY_SIZE else hashlib.blake2b(raw).digest()


def written(raw: bytes, key: bytes | None = None) -> str:
    """A digest as it is exported; with `key` nobody without it can test a guess of the text."""
    if key is None:
        return f"xxh3:{raw.hex()}"
    return f"b2k:{hashlib.blake2b(raw, digest_size=16, key=key).hexdigest()}"


def scheme(key: bytes | None = None) -> str:
    """How digests are exported: `xxh3`, or `b2k:` and a mark of the key, which tells two keys apart and neither of
    them."""
    return "xxh3" if key is None else written(digest(b"scheme"), key)[:12]


def digest_of(*parts: object) -> bytes:
    """The digest of a list of JSON values."""
    return digest(canonical(list(parts)))
