"""The shelf: what stands on disk in the files that a history read and in the rules files, looked at by one thread.

Content decides: a file is read again unless inode, size, mtime and ctime say that nobody can have written to it; ctime
cannot be put back. What the looks mean is left to `freshness` and `policy`; no call waits for one.
"""

from __future__ import annotations

import errno
import math
import os
import stat
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from otel_context_ledger import spelling
from otel_context_ledger.correctness.looking import Looker
from otel_context_ledger.correctness.looks import INSIDE, OTHER, OUTSIDE, Looks, Shelved
from otel_context_ledger.correctness.policy import RulesFile

RULES = ("AGENTS.md", "CLAUDE.md", "KIMI.md", "MEMORY.md")
"""Rules files that are looked for in the working directory and above it, up to the root of the repository."""

MAX_WANTED = 1024
MAX_ASKED = 256
# Of a larger file the digests would hold up the program's own threads for tens of milliseconds.
MAX_BYTES = 4 * 2**20
MAX_RULES_BYTES = 1 << 18
MAX_LEVELS = 16
# A file may be written twice within one tick of its clock: what was written a moment ago is read again.
RACY_SECONDS = 2.0
_REST = 10
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_GITFILE_BYTES = 1 << 12
_UNSEEN = Shelved()
Mark = tuple[int, ...]


@dataclass(slots=True)
class _Book:
    """A wanted file as the thread knows it: the path that it is looked at by, its looks, and the mark under which they
    still hold."""

    path: Path
    looks: Looks
    mark: Mark | None = None


class Shelf(Looker):
    """The looks at a bounded set of wanted files and at the rules files of one repository, by one daemon thread.

    All are looked at after a `poke`, at most every `min_interval` seconds, and every `idle` seconds without one, each
    time with a rest of ten times the last round's length, but for who asks; a file that is wanted anew is looked at
    first. `directory` is where the program works; `rules` are names of more rules files, relative to it. A round that
    is `patience` seconds late, as on a disk that does not answer, makes what is known too old to be told.
    """

    name = "context-ledger-files"

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float],
        rules: Sequence[str] = (),
        min_interval: float = 0.25,
        idle: float = 3.0,
        patience: float = 30.0,
    ) -> None:
        self._directory, self._clock, self._own = directory.absolute(), clock, tuple(rules)
        self._min_interval, self._idle, self._patience = min_interval, idle, patience
        self._latest, self._until = Shelved(), math.inf
        self._asked: dict[str, None] = {}
        self._books: OrderedDict[str, _Book] = OrderedDict()
        self._rules: dict[Path, tuple[RulesFile, Mark | None]] = {}
        self._root: Path | None = None
        super().__init__()

    @property
    def directory(self) -> Path:
        """Where the program works."""
        return self._directory

    def latest(self) -> Shelved:
        """What is known, at the cost of two attributes and a clock; the same object until something new is."""
        return self._latest if time.monotonic() < self._until else _UNSEEN

    def want(self, path: str) -> None:
        """Have an absolute path looked at from now on, and soon. Does not wait."""
        if len(self._asked) < MAX_ASKED:
            self._asked[path] = None
        self._nudge()

    def _fail(self) -> None:
        self._latest = Shelved()

    def _look_again_and_again(self) -> None:
        while self._goes_on():
            began = time.monotonic()
            with self._look():
                self._look_at_root()
                self._serve()
                self._publish([path for path, book in self._books.items() if self._renewed(book)])
                self._look_at_rules()
                length = max(self._min_interval, _REST * (time.monotonic() - began))
                self._until = began + length + self._idle + self._patience
            self._pause(began, length)

    def _look_at_root(self) -> None:
        """A repository may come and go while the program runs; what was seen in its files stays known."""
        here = _real(self._directory)
        root = _root_of(here) if _exists(here) else None
        shared = root is not None and _shared_git_dir(root)
        known = self._latest
        if root != self._root:
            self._root = root
            for book in self._books.values():
                book.mark = None
        if (known.rooted, known.shared_git_dir) != (root is not None, shared):
            self._latest = replace(known, rooted=root is not None, shared_git_dir=shared)

    def _pause(self, began: float, length: float) -> None:
        """Wait until the next round is due and somebody wants one; what is asked for meanwhile is looked at at once."""
        poked = False
        while self._goes_on() and not self._asking and (left := began + length - time.monotonic()) > 0:
            poked = self._wait_for_poke(left) or poked
            self._serve()
        if self._goes_on() and not poked and self._wait_for_poke(self._idle):
            self._serve()

    def _serve(self) -> None:
        """Looks at what was asked for since the last time."""
        asked = []
        while self._asked:
            path, _ = self._asked.popitem()
            book = self._books.get(path) or self._opened(path)
            self._books[path] = book
            self._books.move_to_end(path)
            self._renewed(book)
            asked.append(path)
        while len(self._books) > MAX_WANTED:
            self._books.popitem(last=False)
        self._publish(asked)

    def _publish(self, paths: Sequence[str]) -> None:
        if paths:
            kept = {path: looks for path, looks in self._latest.files.items() if path in self._books}
            found = {path: book.looks for path in paths if (book := self._books.get(path))}
            self._latest = replace(self._latest, files=kept | found)

    def _opened(self, path: str) -> _Book:
        """A file that is wanted anew. A path that is not there may be meant from the root on, when the program works
        below it."""
        own = Path(path)
        beside = _below(own, self._directory)
        if self._root is not None and beside is not None and not _exists(own) and _exists(self._root / beside):
            own = self._root / beside
        return _Book(own, Looks(INSIDE))

    def _renewed(self, book: _Book) -> bool:
        """Looks at a file, and says whether it is another one than at the last look."""
        now, mark, before = self._clock(), _mark(book.path), book.looks
        if before.spans and mark and mark == book.mark:
            book.looks = before.still(now)
            return False
        real = _real(book.path)
        place = self._place(real)
        content = _content(real, MAX_BYTES) if place == INSIDE else None
        book.looks = replace(before, place=place, real=str(real)).after(content, mark is not None, now)
        book.mark = mark if mark and _settled(mark, now) else None
        last = before.spans[-1].digest if before.spans else None
        same = before.spans and (last, before.place, before.real) == (book.looks.spans[-1].digest, place, str(real))
        return not same

    def _place(self, real: Path) -> str:
        if self._root is None:
            return OUTSIDE
        if _below(real, self._root) is not None:
            return INSIDE
        return OTHER if _root_of(real.parent) is not None else OUTSIDE

    def _look_at_rules(self) -> None:
        found = tuple(file for path in self._candidates() if (file := self._rule(path)) is not None)
        if found != self._latest.rules:
            self._latest = replace(self._latest, rules=found)

    def _candidates(self) -> Iterator[Path]:
        """Where rules files may be: from the directory up to the root, and where the user says."""
        here = _real(self._directory)
        above = [here, *(self._upwards(here) if self._root is not None else ())]
        paths = (folder / name for folder in above[:MAX_LEVELS] for name in RULES)
        yield from dict.fromkeys((*paths, *self._wanted_rules()))

    def _wanted_rules(self) -> tuple[Path, ...]:
        return tuple(_real(self._directory / name) for name in self._own)

    def _upwards(self, here: Path) -> Iterator[Path]:
        for folder in here.parents:
            if self._root is None or _below(folder, self._root) is None:
                return
            yield folder

    def _rule(self, path: Path) -> RulesFile | None:
        """A rules file with what it says now, `None` if it is not there; its earlier states stay known."""
        now, mark = self._clock(), _mark(path)
        if not mark:
            return None
        known, then = self._rules.get(path, (RulesFile(self._name(path), wanted=path in self._wanted_rules()), None))
        if mark != then:
            content = _content(path, MAX_RULES_BYTES)
            if content is None:
                return None
            since = min(now, mark[0] / 1e9) if mark and not known.versions else now
            known = known.changed(content.decode("utf-8", "replace"), since)
            self._rules[path] = known, mark if _settled(mark, now) else None
        return known

    def _name(self, path: Path) -> str:
        """A name that does not say where on the machine the project is."""
        inside = _below(path, self._root or _real(self._directory))
        return spelling.name(inside.as_posix() if inside is not None else path.name)


def _content(path: Path, limit: int) -> bytes | None:
    """What a regular file holds, `None` if there is none, it cannot be read, or is larger than the limit."""
    try:
        # Whoever opens a pipe lets its writer go on, and a device may do anything.
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        # Without blocking, should one have taken the file's place meanwhile.
        descriptor = os.open(path, _FLAGS)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                return None
            return stream.read(limit + 1)
    except (OSError, ValueError):
        return None


def _mark(path: Path) -> Mark | None:
    """What changes whenever a file is written to, or a link is set to another one; `None` if there is no file, and
    nothing if nobody can tell."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        return None if error.errno in (errno.ENAMETOOLONG, errno.ELOOP) else ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


def _settled(mark: Mark, now: float) -> bool:
    """Whether a mark that is the same later means the same content. On Windows ctime is when the file was made."""
    return sys.platform != "win32" and now - max(mark[:2]) / 1e9 > RACY_SECONDS


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # RuntimeError: links in a circle
        return path


def _below(path: Path, root: Path) -> Path | None:
    return path.relative_to(root) if path.is_relative_to(root) else None


def _root_of(directory: Path) -> Path | None:
    """The nearest directory upwards that is a work tree."""
    found = (folder for folder in (directory, *directory.parents) if _exists(folder / ".git"))
    return next(found, None)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _shared_git_dir(root: Path) -> bool:
    """Whether the root's git directory belongs to another work tree, as in a copied one: git notes in `gitdir` which
    work tree it made it for (gitrepository-layout(5))."""
    named = _line(root / ".git").removeprefix("gitdir:").strip()
    back = _line(root / named / "gitdir").strip() if named else ""
    # Without one it is a directory of its own, or one that notes nothing.
    return bool(back) and _real(root / named / back) != _real(root / ".git")


def _line(path: Path) -> str:
    return os.fsdecode(_content(path, _GITFILE_BYTES) or b"")
