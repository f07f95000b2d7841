"""A daemon thread that looks at the outside again and again, so that no call waits for it: started, poked, asked for a
look that somebody waits for, stopped, and forgotten in a forked child until the next poke. What is looked at is left to
those who derive from it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

_Answer = queue.SimpleQueue[bool]


class Looker(ABC):
    """One thread, named `name`. Every method may be called from any thread; none waits but `stop`, and what `ask`
    gives."""

    name: str
    _thread: threading.Thread | None

    def __init__(self) -> None:
        self._wanted = False
        self._forget_thread()
        _lookers.add(self)

    @abstractmethod
    def _look_again_and_again(self) -> None:
        """Looks while `_goes_on`."""

    @abstractmethod
    def _fail(self) -> None:
        """Says that nothing is known: looking came to an unforeseen end."""

    def poke(self) -> None:
        """Ask for a new look soon. Does not wait; restarts the thread in a forked child."""
        self._nudge()
        if self._thread is None and self._wanted:
            self._launch()

    def ask(self) -> Callable[[float], bool]:
        """Ask for a look that begins from now on, without the rest that is due before it. What this gives waits for at
        most so many seconds, and says whether the look was taken; to be called once."""
        answer: _Answer = queue.SimpleQueue()
        self._asking.append(answer)
        self.poke()
        if self._thread is None:
            self._deny()
        return partial(_taken, answer)

    def start(self) -> None:
        """Start looking; a second call changes nothing."""
        self._wanted = True
        self._launch()

    def stop(self, timeout: float = 1.0) -> None:
        """Stop looking and wait at most `timeout` seconds for the thread. What was seen last stays."""
        self._wanted = False
        thread, self._thread = self._thread, None
        self._pokes.put(None)
        if thread is not None:
            thread.join(timeout)
        self._deny()

    def _nudge(self) -> None:
        if self._pokes.empty():
            self._pokes.put(None)

    def _forget_thread(self) -> None:
        # A finaliser may poke inside a poke: an Event would deadlock, SimpleQueue and RLock may be entered again.
        self._pokes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._asking: deque[_Answer] = deque()
        self._thread = None

    def _launch(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError:
                # No more threads, or the interpreter is going down: what was seen grows older, which its age shows.
                self._thread = None

    def _run(self) -> None:
        try:
            self._look_again_and_again()
        except Exception:  # noqa: BLE001 - the last resort of a thread: no traceback in the user's terminal
            self._fail()
            if self._goes_on():
                self._thread = None
                self._deny()

    def _goes_on(self) -> bool:
        """Whether the calling thread is still the one that looks; `stop` and a later `start` replace it."""
        return self._thread is threading.current_thread()

    def _take_pokes(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._pokes.get_nowait()

    @contextlib.contextmanager
    def _look(self) -> Iterator[None]:
        """Around one whole look: those who asked for one before it are told whether it came to its end."""
        self._take_pokes()
        asking, taken = self._no_longer_asking(), False
        try:
            yield
            taken = True
        finally:
            for answer in asking:
                answer.put(taken)

    def _no_longer_asking(self) -> list[_Answer]:
        found: list[_Answer] = []
        with contextlib.suppress(IndexError):
            while True:
                found.append(self._asking.popleft())
        return found

    def _deny(self) -> None:
        """Nobody looks: whoever asked need not wait."""
        for answer in self._no_longer_asking():
            answer.put(False)

    def _rest(self, seconds: float) -> None:
        """Wait the whole time, unless stopped or asked; a poke meanwhile stays for afterwards."""
        until, poked = time.monotonic() + seconds, False
        while self._goes_on() and not self._asking and time.monotonic() < until:
            poked = self._wait_for_poke(until - time.monotonic()) or poked
        if poked:
            self._pokes.put(None)

    def _wait_for_poke(self, seconds: float) -> bool:
        try:
            self._pokes.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return False
        return True


def _taken(answer: _Answer, seconds: float) -> bool:
    try:
        return answer.get(timeout=max(0.0, seconds))
    except queue.Empty:
        return False


_lookers: weakref.WeakSet[Looker] = weakref.WeakSet()


def _forget_all_threads() -> None:
    for looker in list(_lookers):
        looker._forget_thread()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_all_threads)
