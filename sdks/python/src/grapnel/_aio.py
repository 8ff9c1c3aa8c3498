"""The event loop for async handlers, in a thread of its own. Only a plugin that has some imports this, and asyncio."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ._protocol import RunningCall


class Loop:
    """Loop runs async calls: at most `limit` at once (0: all), each until its deadline or its cancellation."""

    def __init__(self, limit: int, flush: Callable[[], None]) -> None:
        self._limit, self._flush = limit, flush
        self._lock = allocate_lock()
        self._early: list[RunningCall] = []  # came before the loop ran
        self._waiting: list[RunningCall] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        start_new_thread(self._run, ())

    def submit(self, call: RunningCall) -> None:
        """Runs a call. Any thread may ask."""
        with self._lock:
            if self._loop is None:
                self._early.append(call)
                return
        self._loop.call_soon_threadsafe(self._begin, call)

    def _run(self) -> None:
        import asyncio

        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        with self._lock:
            self._loop = loop
            for call in self._early:
                loop.call_soon(self._begin, call)
        loop.run_forever()

    def _begin(self, call: RunningCall) -> None:
        if self._limit and len(self._tasks) >= self._limit:
            self._waiting.append(call)
            return
        loop = self._loop
        assert loop is not None
        task = loop.create_task(call.run_async())
        self._tasks.add(task)
        remaining = call.remaining
        timer = None if remaining is None else loop.call_later(remaining, task.cancel)

        def done(_: object) -> None:
            if timer is not None:
                timer.cancel()
            self._tasks.discard(task)
            self._flush()
            if self._waiting:
                self._begin(self._waiting.pop(0))

        task.add_done_callback(done)
        call.cancelled._notify(lambda: loop.call_soon_threadsafe(task.cancel))
