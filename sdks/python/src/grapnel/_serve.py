"""The process around the protocol: descriptors, threads, signals, the end.

One thread reads. It runs sync handlers by itself, which saves two thread switches a call, and holds their answers while
more lines are buffered. Before a handler it releases the reader's role, a lock, and takes it back afterwards. A watchdog
that finds the role free for a tick or two gives it to another thread, so that pings and cancels are answered while a
handler takes its time. After two slow calls in a row, the next calls of a handler run in the pool.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread
from time import perf_counter, sleep

from . import _codec, _stdio
from ._protocol import RunningCall, Session, log, trace

try:
    from _queue import SimpleQueue  # queue imports threading
except ImportError:
    from queue import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from ._aio import Loop
    from ._plugin import Plugin
    from ._protocol import Configuration

THREADS = 8
CHUNK = 1 << 16
TICK = 0.002
"""How long, in seconds, a handler may keep the reader: one to two ticks."""
DOZE = 50
"""Ticks without a call until the watchdog sleeps."""
SLOW = 0.00025
"""What a handler may take, in seconds, before its next calls run in the pool."""
OFFLOAD = 64
"""How many calls run in the pool before the next is tried in the reader."""
HELD = 16
"""Answers that wait at most for those to lines that are there already."""
GRACE = 0.2
"""How long, in seconds, running calls have at the end."""


def serve(plugin: Plugin) -> NoReturn:
    """Serves the plugin until the host ends the session. It does not return."""
    if _stdio.descriptors is None:
        sys.exit(f"{plugin.name} is a Grapnel plugin. A host starts it: declare it in grapnel.yaml, with `transport: stdio`.")
    leave(Process(plugin, *_stdio.descriptors).run())


def leave(code: int) -> NoReturn:
    """Ends the process with its exit handlers, but without waiting for threads that are still in a handler."""
    import atexit

    try:
        atexit._run_exitfuncs()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass
        os._exit(code)


class Process:
    """Process runs one session over two descriptors."""

    def __init__(self, plugin: Plugin, source: int, sink: int) -> None:
        self._plugin, self._source = plugin, source
        self._writer = Writer(sink)
        self._session = Session(plugin, self._writer.hold, self._before_wait)
        self._pool = Pool()
        self._slots = Slots(plugin.concurrency or THREADS)
        self._async: Loop | None = None
        self._lines: list[bytes] = []  # complete ones, the next last
        self._rest: list[bytes] = []  # pieces of the line after them
        self._role = allocate_lock()  # whoever has it reads
        self._turn = 0  # of the reader; changes with every call that it runs
        self._dozes = False  # the watchdog waits to be woken
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._over: SimpleQueue[int | None] = SimpleQueue()  # exit codes
        self._ended = False

    def run(self) -> int:
        """Serves until the end and returns the exit code. Signals interrupt only the main thread, so it does nothing else."""
        self._handle_signals()
        self._role.acquire()
        start_new_thread(self._read, ())
        start_new_thread(self._watch, ())
        while (code := self._over.get()) is None:  # configured
            import threading  # noqa: F401  # the thread that imports it first counts as the main one
        self._ended = True
        self._session.end()
        deadline = perf_counter() + GRACE
        while self._session.running() and perf_counter() < deadline:
            sleep(0.005)
        if self._plugin._close is not None:
            try:
                self._plugin._close()
            except BaseException as error:
                trace(error)
        self._writer.flush()
        return code

    def _handle_signals(self) -> None:
        import _signal as signal  # type: ignore  # signal without its enums

        def end(*_: object) -> None:
            if self._ended:
                os._exit(0)
            self._over.put(0)

        try:
            signal.signal(signal.SIGTERM, end)
            signal.signal(signal.SIGINT, lambda *_: None)  # a terminal's; the host drains
        except ValueError:
            pass  # not the main thread

    def _read(self) -> None:
        """Reads and handles lines while this thread has the reader's role."""
        try:
            while True:
                line = self._next_line()
                if line is None:
                    return self._over.put(0)
                work = self._session.receive(_codec.decode(line))
                if work is not None and not self._start(work):
                    return
        except (ValueError, RecursionError) as error:
            log(f"grapnel: the host sent what is not a frame: {error}\n")
        except BaseException as error:
            trace(error)
        self._over.put(1)

    def _next_line(self) -> bytes | None:
        """Returns the next line, or None at the end."""
        while not self._lines:
            self._writer.flush()
            try:
                chunk = os.read(self._source, CHUNK)
            except OSError:
                chunk = b""
            if not chunk:
                return None
            self._rest.append(chunk)
            if b"\n" in chunk:
                *lines, rest = b"".join(self._rest).split(b"\n")
                self._lines = [line for line in lines[::-1] if line]
                self._rest = [rest]
        if len(self._writer.held) >= HELD:
            self._writer.flush()
        return self._lines.pop()

    def _start(self, work: RunningCall | Configuration) -> bool:
        """Runs work here or elsewhere. Returns False if this thread is not the reader any more."""
        if not isinstance(work, RunningCall):
            self._pool.submit(lambda: self._configure(work))
        elif work.is_async:
            self._loop().submit(work)
        elif self._slots.take(work):
            handler = work._handler
            if handler.offload == 0:
                return self._run_here(work)
            handler.offload -= 1
            self._pool.submit(lambda: self._run_in_pool(work))
        return True

    def _configure(self, work: Configuration) -> None:
        work.run()
        self._writer.flush()
        self._over.put(None)
        snapshot = self._session.snapshot
        if snapshot and any(h.is_async for h in (*snapshot.hooks.values(), *snapshot.tools.values())):
            self._loop()

    def _loop(self) -> Loop:
        with self._slots.lock:
            if self._async is None:
                from ._aio import Loop

                self._async = Loop(self._plugin.concurrency, self._writer.flush)
            return self._async

    def _run_here(self, call: RunningCall) -> bool:
        """Runs a call in the reader."""
        self._turn += 1
        self._role.release()
        if self._dozes:
            self._dozes = False
            self._wake.put(None)
        handler, begin = call._handler, perf_counter()
        call.run()
        slow = perf_counter() - begin > SLOW
        reads = self._role.acquire(blocking=False)
        handler.slow = handler.slow + 1 if slow else 0
        if handler.slow > 1:
            handler.slow, handler.offload = 0, OFFLOAD
        waiting = self._slots.free()
        if not reads:
            self._run_in_pool(waiting)
        elif waiting is not None:
            self._pool.submit(lambda: self._run_in_pool(waiting))
        return reads

    def _run_in_pool(self, call: RunningCall | None) -> None:
        """Runs a call, and then those that waited for its slot."""
        while call is not None:
            call.run()
            self._writer.flush()
            call = self._slots.free()
        self._writer.flush()

    def _before_wait(self) -> None:
        """Gives the reader's role away if it is free: somebody must read the answer that the handler waits for."""
        self._hand_over()
        self._writer.flush()

    def _hand_over(self) -> None:
        if self._role.acquire(blocking=False):
            self._writer.flush()
            self._pool.submit(self._read)

    def _watch(self) -> None:
        """Hands the reader's role over when a call keeps it for a tick. Sleeps when nothing has happened for a while."""
        idle = 0
        while not self._ended:
            turn = self._turn
            sleep(TICK)
            if turn != self._turn:
                idle = 0
                continue
            self._hand_over()
            idle += 1
            if idle > DOZE:
                self._dozes = True
                if turn == self._turn:
                    self._wake.get()
                self._dozes, idle = False, 0


class Slots:
    """Slots bounds the sync calls that run at once. Others wait in their order."""

    def __init__(self, limit: int) -> None:
        self._free, self.lock = limit, allocate_lock()
        self._waiting: list[RunningCall] = []

    def take(self, call: RunningCall) -> bool:
        """Returns whether the call may run now; if not, `free` returns it later."""
        with self.lock:
            if self._free == 0:
                self._waiting.append(call)
                return False
            self._free -= 1
            return True

    def free(self) -> RunningCall | None:
        """Frees a slot, or returns the call that takes it over."""
        with self.lock:
            if self._waiting:
                return self._waiting.pop(0)
            self._free += 1
            return None


class Pool:
    """Pool runs jobs in threads, which it keeps. Its users bound how many there are."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._idle, self._lock = 0, allocate_lock()

    def submit(self, job: Callable[[], object]) -> None:
        """Runs the job in another thread, at once."""
        with self._lock:
            start = self._idle == 0
            if not start:
                self._idle -= 1
        self._jobs.put(job)
        if start:
            start_new_thread(self._work, ())

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            with self._lock:
                self._idle += 1


class Writer:
    """Writer writes lines, many at a time. A thread that finds another one writing leaves its lines to it."""

    def __init__(self, sink: int) -> None:
        self._sink, self._lock = sink, allocate_lock()
        self.held: list[bytes] = []

    def hold(self, line: bytes) -> None:
        """Keeps a line for the next flush."""
        self.held.append(line)

    def flush(self) -> None:
        """Writes what is held. When the host is gone, it is lost."""
        while self.held and self._lock.acquire(blocking=False):
            try:
                count = len(self.held)
                data = memoryview(b"\n".join([*self.held[:count], b""]))
                del self.held[:count]
                while data:
                    data = data[os.write(self._sink, data) :]
            except OSError:
                self.held.clear()
            finally:
                self._lock.release()
