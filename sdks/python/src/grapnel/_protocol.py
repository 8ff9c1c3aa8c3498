"""The protocol without a process: frames of the host go in, answers come out. It starts no thread, and reads the clock
only for deadlines; which thread runs a call is the caller's business.

The course of a session: `receive` each frame; `run` each Call or Configuration that it returns, anywhere; `end` it.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock

from . import _codec
from ._call import Call, Host
from ._errors import ConfigError, HostError, PluginError
from ._plugin import Handler, Plugin, Setup, Snapshot, configured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

VERSION = 1
FRAME = 4 << 20


class Session:
    """Session is the plugin's side of one session. `emit` takes each line, without its newline, in order."""

    plugin: Plugin
    emit: Callable[[bytes], None]
    before_wait: Callable[[], None]
    """Called before a handler waits for the host."""
    snapshot: Snapshot | None
    """The configuration in force, after the first hello."""
    incarnation: int
    frame: int
    """The longest line."""

    def __init__(self, plugin: Plugin, emit: Callable[[bytes], None], before_wait: Callable[[], None] = lambda: None) -> None:
        self.plugin, self.emit, self.before_wait = plugin, emit, before_wait
        self.snapshot, self.incarnation, self.frame = None, 0, FRAME
        self._lock = allocate_lock()
        self._running: dict[int, Call] = {}
        self._drains: list[tuple[int, Any]] = []
        self._asked = 0
        self._pending: dict[int, Pending] = {}
        self._bodies: dict[str, Callable[[dict[str, Any], Any], Work | None]] = {
            "dispatch": self._dispatch, "call_tool": self._call_tool, "ping": self._ping, "cancel": self._cancel,
            "host_reply": self._host_reply, "hello": self._hello, "configure": self._configure, "drain": self._drain,
            "unsupported": self._refused,
        }  # fmt: skip

    def receive(self, frame: dict[str, Any]) -> Work | None:
        """Takes one frame, and answers it or returns the work that will. Raises ValueError if it is not a frame."""
        try:
            return self._receive(frame)
        except (AttributeError, OverflowError, TypeError) as error:
            raise ValueError(f"a field of the wrong type: {error}") from error

    def _receive(self, frame: dict[str, Any]) -> Work | None:
        frame["id"], frame["incarnation"] = int(frame.get("id") or 0), int(frame.get("incarnation") or 0)
        for name, body in frame.items():
            take = self._bodies.get(name)
            if take is not None and isinstance(body, dict):
                return take(frame, body)
        names = [n for n, body in frame.items() if n not in ("id", "incarnation") and body is not None]
        return self._send(frame, "unsupported", {"name": names[0]} if names else {})

    def running(self) -> int:
        """Returns how many calls are not answered."""
        return len(self._running)

    def end(self) -> None:
        """Cancels what runs: the host is gone."""
        for call in list(self._running.values()):
            call.cancelled._set("cancelled")
        for pending in list(self._pending.values()):
            pending.fail("session_reset", "the session with the host has ended")

    def ask(self, body: dict[str, Any], call: Call | None, wake: Callable[[], object]) -> Pending:
        """Asks the host. `wake` is called once, when the answer can be read."""
        pending = Pending(wake)
        inner = next(iter(body.values()))
        if call is not None:
            inner["parent"] = call._id
        with self._lock:
            self._asked += 1
            number = self._asked
        line = _codec.encode({"id": number, "incarnation": self.incarnation, **body})
        if len(line) > self.frame:
            raise HostError("oversize_request", f"the call has {len(line)} bytes; at most {self.frame}")
        self._pending[number] = pending
        self.emit(line)
        return pending

    def answer(self, call: Call, body: dict[str, Any]) -> None:
        """Answers a call. Each call has one answer."""
        name = call._handler.answer_name
        frame = {"id": call._id, "incarnation": call._incarnation}
        try:
            line = _codec.encode({**frame, name: body})
        except BaseException as error:  # what a handler returned may run code of its own
            line = _codec.encode({**frame, name: failed(error, "the answer is not valid: ", "invalid_answer")})
        if len(line) > self.frame:
            error = f"the answer has {len(line)} bytes; at most {self.frame}"
            line = _codec.encode({**frame, name: failure(error, code="oversize_reply")})
        with self._lock:
            self.emit(line)
            self._running.pop(call._id, None)
            drained, self._drains = ([], self._drains) if self._running else (self._drains, [])
        for number, incarnation in drained:
            self._send({"id": number, "incarnation": incarnation}, "pong", {})

    def _send(self, frame: dict[str, Any], name: str, body: dict[str, Any]) -> None:
        self.emit(_codec.encode({"id": frame["id"], "incarnation": frame["incarnation"], name: body}))

    def _hello(self, frame: dict[str, Any], hello: Any) -> None:
        self.incarnation, self.frame = frame["incarnation"], int(hello.get("max_frame_bytes") or FRAME)
        version = int(hello.get("protocol_version") or 0)
        if version != VERSION:
            error = {"code": "version_mismatch", "message": f"this plugin speaks version {VERSION}, and the host {version}"}
            return self._send(frame, "describe", {"error": error})
        self._described(frame, "describe", lambda: Snapshot(self.plugin))

    def _described(self, frame: dict[str, Any], name: str, make: Callable[[], Snapshot]) -> None:
        try:
            snapshot = make()
            line = _codec.encode({"id": frame["id"], "incarnation": frame["incarnation"], name: {"description": snapshot.description}})
            if len(line) > self.frame:
                error = f"the description has {len(line)} bytes; at most {self.frame}"
                return self._send(frame, name, failure(error, code="oversize_reply"))
            self.emit(line)
            if name == "configured" or self.snapshot is None:
                self.snapshot = snapshot
        except ConfigError as refusal:
            rejected = {"pointer": _codec.clean(refusal.pointer), "message": _codec.clean(refusal.message)}
            self._send(frame, name, {"rejected": rejected})
        except BaseException as error:
            self._send(frame, name, failed(error))

    def _configure(self, frame: dict[str, Any], body: Any) -> Work:
        return Configuration(self, frame, body)

    def _dispatch(self, frame: dict[str, Any], wire: Any) -> Work | None:
        return self._call(frame, wire, "hook", "result", self._snapshot().hooks)

    def _call_tool(self, frame: dict[str, Any], wire: Any) -> Work | None:
        return self._call(frame, wire, "tool", "tool_result", self._snapshot().tools)

    def _snapshot(self) -> Snapshot:
        return self.snapshot or Snapshot(self.plugin)

    def _call(self, frame: dict[str, Any], wire: Any, what: str, answer: str, handlers: Any) -> Work | None:
        handler = handlers.get(wire.get(what))
        if handler is None:
            error = failure(f"the plugin {self.plugin.name} has no {what} {wire.get(what)!r}", f"unknown_{what}")
            return self._send(frame, answer, error)
        call = RunningCall(self, handler, frame, wire, self._snapshot().config)
        with self._lock:
            self._running[call._id] = call
        return call

    def _ping(self, frame: dict[str, Any], _: Any) -> None:
        self._send(frame, "pong", {})

    def _cancel(self, frame: dict[str, Any], _: Any) -> None:
        call = self._running.get(frame["id"])
        if call is not None:
            call.cancelled._set("cancelled")

    def _drain(self, frame: dict[str, Any], _: Any) -> None:
        with self._lock:
            if self._running:
                self._drains.append((frame["id"], frame["incarnation"]))
                return
        self._send(frame, "pong", {})

    def _host_reply(self, frame: dict[str, Any], reply: Any) -> None:
        pending = self._pending.pop(frame["id"], None)
        if pending is not None:
            pending.deliver(reply)

    def _refused(self, frame: dict[str, Any], _: Any) -> None:
        self._host_reply(frame, {"error": {"code": "unavailable", "message": "the host does not know this call"}})


class Pending:
    """Pending is a question that the host has not answered. The first answer counts."""

    __slots__ = ("_wake", "_reply", "_lock")

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._reply: dict[str, Any] | None = None
        self._lock = allocate_lock()

    def deliver(self, reply: dict[str, Any]) -> None:
        if self._lock.acquire(blocking=False):  # and never released
            self._reply = reply
            self._wake()

    def fail(self, code: str, message: str) -> None:
        self.deliver({"error": {"code": code, "message": message}})

    def result(self) -> Any:
        reply = self._reply or {}
        if error := reply.get("error"):
            code, message = error.get("code") or "internal", error.get("message") or ""
            raise HostError(code, message, plugin_code=error.get("plugin_code") or "", retryable=bool(error.get("retryable")))
        return reply.get("result_json")


class Configuration:
    """Configuration is a Configure that is not answered."""

    def __init__(self, session: Session, frame: dict[str, Any], body: Any) -> None:
        self._session, self._frame, self._body = session, frame, body

    def run(self) -> None:
        """Runs the configure handler and answers."""
        session, body = self._session, self._body
        setup = Setup(session.plugin, body.get("instance") or "", body.get("services") or (), Host(session, None))
        session._described(self._frame, "configured", lambda: configured(session.plugin, body.get("config_json"), setup))


class RunningCall(Call):
    """RunningCall is a call with the means to run it."""

    __slots__ = ()

    @property
    def is_async(self) -> bool:
        """Says that run_async runs the call."""
        return self._handler.is_async

    def run(self) -> None:
        """Calls a sync handler and answers."""
        try:
            if (body := self._expired()) is None:
                value = self._handler.invoke(self)
                if hasattr(value, "__await__"):
                    raise TypeError(f"{self.hook} returned a coroutine; decorate the async function itself")
                body = self._handler.answer(value)
        except HostError as error:
            body = self._expired() or failed(error)
        except BaseException as error:
            body = failed(error)
        self._session.answer(self, body)

    async def run_async(self) -> None:
        """Calls an async handler, in its event loop, and answers. Cancel its task to cancel it."""
        try:
            if (body := self._expired()) is None:
                value = self._handler.invoke(self)
                value = [c async for c in value] if hasattr(value, "__aiter__") else await value
                body = self._handler.answer(value)
        except BaseException as error:
            expired = self._expired() if type(error).__name__ == "CancelledError" else None
            body = expired or failed(error)
        self._session.answer(self, body)

    def _expired(self) -> dict[str, Any] | None:
        reason = self.cancelled.reason
        if reason == "timeout":
            return failure("the call's time is up", code="timeout")
        return failure("the call was cancelled", "cancelled") if reason else None


if TYPE_CHECKING:
    Work = Configuration | RunningCall


def failure(message: object, plugin_code: object = "", code: str = "plugin_error", **more: object) -> dict[str, Any]:
    """Makes the body of an answer that is an error."""
    error: dict[str, Any] = {"code": code, "message": _codec.clean(message), "plugin_code": _codec.clean(plugin_code, 64)}
    error.update((key, True) for key, value in more.items() if value)
    return {"error": {key: value for key, value in error.items() if value}}


def failed(error: BaseException, prefix: str = "", plugin_code: str = "error") -> dict[str, Any]:
    """Makes the body of an answer of what a handler raised. What it did not mean to raise is traced on stderr."""
    try:
        if isinstance(error, PluginError):
            return failure(error.message or error.code, error.code, retryable=error.retryable, safe_for_user=error.safe_for_user)
        if isinstance(error, HostError):
            return failure(error, error.code, retryable=error.retryable)
        trace(error)
        return failure(f"{prefix}{type(error).__name__}: {error}", plugin_code)
    except BaseException:  # an exception may run code of its own, too
        return failure(prefix + type(error).__name__, plugin_code)


def trace(error: BaseException) -> None:
    """Writes a traceback to the log."""
    import traceback

    try:
        log("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    except BaseException:
        log(f"{type(error).__name__}, which cannot be shown\n")


def log(text: str) -> None:
    """Writes to stderr, as far as there is one."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BaseException:
        pass
