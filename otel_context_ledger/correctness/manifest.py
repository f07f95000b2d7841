"""What a snapshot was made of, by path in the work tree, and what differs between two of them.

Who looks is `repository`. A manifest stays in memory: of what differs counts leave, and paths only where somebody
asked for them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import xxhash

from otel_context_ledger import spelling
from otel_context_ledger.records import quick

MAX_ITEMS = 4096
# Longer paths are not remembered.
MAX_PATH_BYTES = 1024
MAX_PATHS = 16
# How many snapshots are remembered with what they were made of, and with how many paths together.
MAX_MANIFESTS = 64
MAX_KEPT_ITEMS = 16_384
_SNAPSHOT = re.compile("git:[0-9a-f]{32}")
MISSING = b"missing"
CHANGED, ADDED, UNTRACKED, SUBMODULE, LOCKFILE = "changed", "added", "untracked", "submodule", "lockfile"
DELETED, STAGED, RESTORED, COMMIT, LEFT_OUT = "deleted", "staged", "restored", "commit", "left_out"
# In which order kinds are told: what is rare comes before what may be many.
KINDS = (COMMIT, SUBMODULE, LOCKFILE, DELETED, CHANGED, ADDED, STAGED, RESTORED, UNTRACKED, LEFT_OUT)
LOCKFILES = (
    "Cargo.lock",
    "Gemfile.lock",
    "Package.resolved",
    "Pipfile.lock",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "pylock.toml",
    "uv.lock",
    "yarn.lock",
)
"""Files at the root of the work tree that count even where git ignores them."""

_ROOTED = frozenset(name.encode() for name in LOCKFILES)
_NONE = b"000000"
# Kind of record → the places of its modes at HEAD and in the work tree (git-status(1), "Porcelain Format Version 2").
_MODES = {b"1": (3, 5), b"u": (3, 6)}


@quick
@dataclass(frozen=True, slots=True)
class Item:
    """What stands at a path: changed, added, untracked or submodule; a digest of its content; its mode and a digest of
    all that git says of it, empty where it says nothing."""

    kind: str
    content: bytes
    mode: bytes = b""
    record: bytes = b""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a snapshot of the commit `head` holds beside that commit, by path, and the lockfiles at the root, whatever
    git says of these; `left_out` paths were too many or too long."""

    head: str
    items: Mapping[bytes, Item]
    left_out: int = 0


@quick
@dataclass(frozen=True, slots=True)
class Moved:
    """What differs from another snapshot: `name=number` by kind, and the first paths as `kind:path`."""

    counts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


SAME = Moved()
_ABSENT = Item(UNTRACKED, MISSING)


@dataclass(slots=True)
class Making:
    """A manifest while a look goes on."""

    items: dict[bytes, Item] = field(default_factory=dict)
    left_out: int = 0

    def note(self, path: bytes, record: bytes, content: bytes) -> None:
        """One record of git, with what stands at its path."""
        known = self.items.get(path)
        if known is not None:
            # Taken out of the index and still there, a file has two records.
            told = Item(known.kind, content, known.mode, _digest(known.record + record))
        elif len(self.items) < MAX_ITEMS and len(path) <= MAX_PATH_BYTES and _inside(path):
            kind, mode = _kind(record)
            told = Item(kind, content, mode, _digest(record))
        else:
            self.left_out += 1
            return
        self.items[path] = told

    def note_lockfile(self, path: bytes, content: bytes) -> None:
        """A lockfile at the root, or that there is none."""
        if content != MISSING:
            self.items.setdefault(path, Item(UNTRACKED, content))

    def made(self, head: str) -> Manifest:
        """The manifest of a look that is over."""
        return Manifest(head, self.items, self.left_out)


class Manifests:
    """What the latest snapshots were made of, by their identities. One thread keeps, any may ask."""

    def __init__(self, most: int = MAX_MANIFESTS, items: int = MAX_KEPT_ITEMS) -> None:
        self._most, self._items = most, items
        self._kept: dict[str, Manifest] = {}

    def keep(self, identity: str, manifest: Manifest) -> None:
        """Remembers a snapshot; what is too much of earlier ones is forgotten."""
        kept, room = {identity: manifest}, self._items - len(manifest.items)
        for name, one in reversed(self._kept.items()):
            room -= len(one.items) if name != identity else 0
            if room < 0 or len(kept) == self._most:
                break
            kept.setdefault(name, one)
        # Put in its place as a whole: other threads read it meanwhile.
        self._kept = dict(reversed(kept.items()))

    def moved(self, before: str, now: str, paths: bool) -> Moved | None:
        """What differs between two snapshots; `None` if it is not known, or not any more."""
        kept = self._kept
        if before == now:
            return SAME if _SNAPSHOT.fullmatch(now) else None
        return moved(kept[before], kept[now], paths) if before in kept and now in kept else None


def moved(before: Manifest, now: Manifest, paths: bool) -> Moved | None:
    """What differs, with paths if they may be told; `None` where something does and nothing kept says what.

    Of a path that only one of the two holds, nothing is known across commits, or where paths were left out: the other
    may have had it as it was committed.
    """
    same = before.head == now.head
    left_out = max(before.left_out, now.left_out)
    found = sorted(_differences(before, now, same and not left_out), key=lambda one: (KINDS.index(one[0]), one[1]))
    numbers = Counter(kind for kind, _ in found)
    numbers.update({COMMIT: int(not same), LEFT_OUT: left_out})
    counts = tuple(f"{kind}={numbers[kind]}" for kind in KINDS if numbers[kind])
    told = (f"{kind}:{_spelled(path)}" for kind, path in found[:MAX_PATHS]) if paths else ()
    return Moved(counts, tuple(told)) if counts else None


def _differences(before: Manifest, now: Manifest, whole: bool) -> Iterator[tuple[str, bytes]]:
    same = before.head == now.head
    for path in before.items.keys() | now.items.keys():
        # A lockfile at the root that has no item is not there; any other path may be there as it was committed.
        other = _ABSENT if path in _ROOTED else None
        old, new = before.items.get(path, other), now.items.get(path, other)
        sure = whole or (old is not None and new is not None)
        kind = _difference(old, new, same) if sure else None
        if kind is not None:
            yield _by_name(path, kind), path


def _difference(old: Item | None, new: Item | None, same_commit: bool) -> str | None:
    if new is None:
        return _gone(old) if old is not None else None
    if old is None:
        # Added to the index and not there: it came and went between the two looks.
        return STAGED if new.kind == ADDED and new.content == MISSING else _now(new)
    if old.content != new.content or (old.mode != new.mode and old.mode and new.mode):
        return _now(new)
    if not same_commit or old.record == new.record:
        return None
    return STAGED if (old.record and new.record) or new.content == MISSING else _now(new)


def _now(new: Item) -> str:
    return DELETED if new.content == MISSING else new.kind


def _gone(old: Item) -> str:
    """What became of a path of which git says nothing any more. An untracked file that is ignored from now on cannot be
    told from one that is gone."""
    if old.kind not in (UNTRACKED, ADDED):
        return RESTORED
    return STAGED if old.content == MISSING else DELETED


def _by_name(path: bytes, kind: str) -> str:
    named = path.rpartition(b"/")[2] in _ROOTED and kind in (CHANGED, ADDED, UNTRACKED, RESTORED)
    return LOCKFILE if named else kind


def _kind(record: bytes) -> tuple[str, bytes]:
    """What a record of git is about, and the mode in the work tree."""
    fields = record.split(b" ", 7)
    if fields[0] not in _MODES:
        return UNTRACKED, b""
    head, tree = [fields[at] for at in _MODES[fields[0]]]
    if fields[2].startswith(b"S"):
        return SUBMODULE, tree
    return ADDED if head == _NONE and fields[0] == b"1" else CHANGED, tree


def _inside(path: bytes) -> bool:
    """Whether a path is one below the root; git gives no others."""
    return bool(path) and not path.startswith(b"/") and b".." not in path.split(b"/")


def _spelled(path: bytes) -> str:
    return spelling.name(path.decode("utf-8", "replace"))


def _digest(raw: bytes) -> bytes:
    return xxhash.xxh3_64_digest(raw)
