"""A daemon thread that looks at the outside again and again, so that no call waits for it: started, poked, stopped, and
forgotten in a forked child until the next poke. What is looked at is left to those who derive from it.
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


class Looker(ABC):
    """One thread, named `name`. Every method may be called from any thread; none waits but `stop`."""

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

    def _nudge(self) -> None:
        if self._pokes.empty():
            self._pokes.put(None)

    def _forget_thread(self) -> None:
        # A finaliser may poke inside a poke: an Event would deadlock, SimpleQueue and RLock may be entered again.
        self._pokes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._lock = threading.RLock()
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

    def _goes_on(self) -> bool:
        """Whether the calling thread is still the one that looks; `stop` and a later `start` replace it."""
        return self._thread is threading.current_thread()

    def _take_pokes(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._pokes.get_nowait()

    def _rest(self, seconds: float) -> None:
        """Wait the whole time, unless stopped; a poke meanwhile stays for afterwards."""
        until, poked = time.monotonic() + seconds, False
        while self._goes_on() and time.monotonic() < until:
            poked = self._wait_for_poke(until - time.monotonic()) or poked
        if poked:
            self._pokes.put(None)

    def _wait_for_poke(self, seconds: float) -> bool:
        try:
            self._pokes.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return False
        return True


_lookers: weakref.WeakSet[Looker] = weakref.WeakSet()


def _forget_all_threads() -> None:
    for looker in list(_lookers):
        looker._forget_thread()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_all_threads)
