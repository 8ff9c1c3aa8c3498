"""What a handler gets besides its input: the call, its cancellation, and the host."""

from __future__ import annotations

from _thread import allocate_lock
from time import monotonic

from ._errors import HostError
from ._types import AnswerBudget, Context, ContextEntry, PolicyEntry, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Generic

    from typing_extensions import TypeVar

    from ._message import JSON
    from ._plugin import Handler
    from ._protocol import Session

    T = TypeVar("T")
    Config = TypeVar("Config", default=Any)
else:
    Config = None

    class Generic:
        """Generic stands in for that of typing, whose import takes long."""

        __slots__ = ()

        def __class_getitem__(cls, _):
            return cls


class Cancellation:
    """Cancellation says whether the host still waits for the answer. It is true after a cancel and after the deadline."""

    __slots__ = ("_deadline", "_reason", "_waiters")

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline
        self._reason = ""
        self._waiters: list[Callable[[], object]] = []

    def is_set(self) -> bool:
        """Reports whether the call was cancelled, or its time is up."""
        return self.reason != ""

    __bool__ = is_set

    @property
    def reason(self) -> str:
        """"cancelled", "timeout", or "" while the host waits."""
        if self._reason == "" and self._deadline is not None and monotonic() >= self._deadline:
            return "timeout"
        return self._reason

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the cancellation, the deadline or the timeout, whichever is first, and returns is_set()."""
        lock = allocate_lock()
        lock.acquire()
        self._notify(lock.release)
        lock.acquire(timeout=self._patience(timeout))
        return self.is_set()

    def _patience(self, timeout: float | None = None) -> float:
        """Returns how long to wait at most, as a lock takes it: -1 is for ever."""
        bounds = [] if timeout is None else [timeout]
        if self._deadline is not None:
            bounds.append(self._deadline - monotonic())
        return max(min(bounds), 0.0) if bounds else -1

    def _notify(self, wake: Callable[[], object]) -> None:
        """Has wake called once, when the call is cancelled: at once if it was."""
        self._waiters.append(wake)
        if self._reason:
            self._wake()

    def _set(self, reason: str) -> None:
        self._reason = reason
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            try:
                self._waiters.pop()()
            except IndexError:  # another thread was faster
                return


class Call(Generic[Config]):
    """Call is one call of a hook or a tool. It belongs to its handler. Call[Settings] types its `config`."""

    __slots__ = ("_session", "_handler", "_id", "_incarnation", "_wire", "_cache", "config", "cancelled")

    def __init__(self, session: Session, handler: Handler, frame: dict[str, Any], wire: dict[str, Any], config: Any) -> None:
        self._session, self._handler, self._wire, self.config = session, handler, wire, config
        self._id, self._incarnation = int(frame["id"]), frame.get("incarnation") or 0
        self._cache: dict[str, Any] = {}
        remaining = int(wire.get("remaining_ns") or 0)
        self.cancelled = Cancellation(monotonic() + remaining / 1e9 if remaining > 0 else None)

    config: Config
    """What the configure handler returned, else the configuration itself. It stays the same during the call."""
    cancelled: Cancellation
    """Whether the host still waits. Look at it in long loops."""

    @property
    def hook(self) -> str:
        """The hook's or the tool's name."""
        return self._wire.get("hook") or self._wire.get("tool") or ""

    @property
    def phase(self) -> str:
        """The phase; "" in a tool."""
        return self._wire.get("phase") or ""

    @property
    def subscription(self) -> str:
        """The hook's full id at this host."""
        return self._wire.get("subscription") or ""

    @property
    def context(self) -> Context:
        """Where and when: ids, mode, directory, clock."""
        return self._once("context", lambda wire: Context._read(wire or {}))

    @property
    def policies(self) -> Sequence[PolicyEntry]:
        """The turn's policies so far, if granted."""
        return self._once("policies", lambda wire: [PolicyEntry._read(w) for w in wire or ()])

    @property
    def contexts(self) -> Sequence[ContextEntry]:
        """The turn's context texts so far, if granted."""
        return self._once("contexts", lambda wire: [ContextEntry._read(w) for w in wire or ()])

    @property
    def trace(self) -> Trace:
        """The W3C trace context."""
        return self._once("trace", lambda wire: Trace._read(wire or {}))

    @property
    def budget(self) -> AnswerBudget:
        """How much of the answer's text is kept."""
        return self._once("budget", lambda wire: AnswerBudget._read(wire or {}))

    @property
    def withheld(self) -> Sequence[str]:
        """Input fields that are there and are not granted to the plugin. "" and absent are not the same."""
        return self._wire.get("withheld") or ()

    @property
    def attempt(self) -> int:
        """Counts from 1."""
        return int(self._wire.get("attempt") or 1)

    @property
    def idempotency_key(self) -> str:
        """The same key is the same call."""
        return self._wire.get("idempotency_key") or ""

    @property
    def outside_turn(self) -> bool:
        """No turn made this call of a tool, and there are no policies: do not take their absence for a yes."""
        return bool(self._wire.get("outside_turn"))

    @property
    def generation(self) -> int:
        """The configuration generation of the turn."""
        return int(self._wire.get("generation") or 0)

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, at least 0; None without one."""
        deadline = self.cancelled._deadline
        return None if deadline is None else max(deadline - monotonic(), 0.0)

    @property
    def host(self) -> Host:
        """The host's services, for sync handlers."""
        if self._handler.is_async:
            raise RuntimeError("call.host would block the event loop; use `await call.async_host.…` in an async handler")
        return Host(self._session, self)

    @property
    def async_host(self) -> AsyncHost:
        """The host's services, for async handlers."""
        return AsyncHost(self._session, self)

    def policy(self, domain: str, key: str, default: Any = None) -> Any:
        """Returns the value of a policy of the turn that is set and may be seen."""
        return next((p.value for p in self.policies if p.domain == domain and p.key == key), default)

    def _once(self, key: str, read: Callable[[Any], T]) -> T:
        if key not in self._cache:
            self._cache[key] = read(self._wire.get(key))
        return self._cache[key]


class Completion:
    """Completion is a model's answer."""

    def __init__(self, wire: dict[str, Any]) -> None:
        self.text: str = wire.get("text") or ""
        """The answer; JSON if the request has a schema. Check that it matches."""
        self.model: str = wire.get("model") or ""
        self.stopped: str = wire.get("stopped") or "end"
        """"end", "length", "refusal" or "other"."""
        self.usage: dict[str, int] = wire.get("usage") or {}


class Question:
    """Question is one call of the host, and how its answer is read."""

    __slots__ = ("body", "read")

    def __init__(self, read: Callable[[Any], Any], **body: Any) -> None:
        self.body, self.read = body, read

    @classmethod
    def ask(cls, read: Callable[[Any], Any], service: str, method: str, /, **params: Any) -> Question:
        """Makes a question to a service, without the parameters that are None."""
        given = {k: v for k, v in params.items() if v is not None}
        return cls(read, host_call={"service": service, "method": method, "params_json": given})


def same(answer: Any) -> Any:
    return answer


def get_state(session_id: str | None, workspace_id: str | None) -> Question:
    return Question.ask(lambda a: a.get("value"), "state", "get", session_id=session_id, workspace_id=workspace_id)


def put_state(value: JSON, session_id: str | None, workspace_id: str | None) -> Question:
    q = Question.ask(lambda _: None, "state", "put", session_id=session_id, workspace_id=workspace_id)
    q.body["host_call"]["params_json"]["value"] = value  # null removes
    return q


def complete(prompt: str, options: dict[str, Any]) -> Question:
    return Question.ask(Completion, "model", "complete", input=prompt, **options)


def resolve(thread_id: str | None) -> Question:
    return Question.ask(same, "documents", "resolve_for_thread", thread_id=thread_id)


def invalidate(subscriptions: Sequence[str], tags: Sequence[str]) -> Question:
    return Question(lambda _: None, invalidate={"subscriptions": list(subscriptions), "tags": list(tags)})


def call(service: str, method: str, params: JSON) -> Question:
    return Question(same, host_call={"service": service, "method": method, "params_json": params})


class Host:
    """Host asks the host's services, by the grant `host`. Every method blocks, and may raise HostError."""

    __slots__ = ("_session", "_call")

    def __init__(self, session: Session, call: Call | None) -> None:
        self._session, self._call = session, call

    def call(self, service: str, method: str, params: Mapping[str, JSON] | None = None) -> JSON:
        """Asks any service."""
        return self._ask(call(service, method, params or {}))

    def get_state(self, *, session_id: str | None = None, workspace_id: str | None = None) -> JSON:
        """Returns what the plugin put last for the session, or None."""
        return self._ask(get_state(session_id, workspace_id))

    def put_state(self, value: JSON, *, session_id: str | None = None, workspace_id: str | None = None) -> None:
        """Keeps one value for the session, of at most 64 KiB. None removes it."""
        self._ask(put_state(value, session_id, workspace_id))

    def complete(
        self,
        input: str,
        *,
        system: str | None = None,
        schema: JSON = None,
        schema_name: str | None = None,
        max_output_tokens: int | None = None,
        purpose: str | None = None,
    ) -> Completion:
        """Asks the host's model. There may be none, and no grant, no budget or no time: do without then."""
        options = {"system": system, "schema": schema, "schema_name": schema_name, "purpose": purpose}
        return self._ask(complete(input, {**options, "max_output_tokens": max_output_tokens}))

    def resolve_document(self, *, thread_id: str | None = None) -> JSON:
        """Returns `effective` and `diagnostics` of the AGENTS.md document in effect for a thread."""
        return self._ask(resolve(thread_id))

    def invalidate(self, *, subscriptions: Sequence[str] = (), tags: Sequence[str] = ()) -> None:
        """Drops remembered answers of this plugin: with no names, all of them."""
        self._ask(invalidate(subscriptions, tags))

    def _ask(self, question: Question) -> Any:
        lock = allocate_lock()
        lock.acquire()
        pending = self._session.ask(question.body, self._call, lock.release)
        cancelled = self._call.cancelled if self._call else Cancellation(None)
        cancelled._notify(lambda: pending.fail("cancelled", "the call was cancelled"))
        self._session.before_wait()
        if not lock.acquire(timeout=cancelled._patience()):
            pending.fail("timeout", "the call's time is up")
        return question.read(pending.result())


class AsyncHost:
    """AsyncHost is Host for async handlers: every method is a coroutine."""

    __slots__ = ("_session", "_call")

    def __init__(self, session: Session, call: Call | None) -> None:
        self._session, self._call = session, call

    async def call(self, service: str, method: str, params: Mapping[str, JSON] | None = None) -> JSON:
        """Asks any service."""
        return await self._ask(call(service, method, params or {}))

    async def get_state(self, *, session_id: str | None = None, workspace_id: str | None = None) -> JSON:
        """Returns what the plugin put last for the session, or None."""
        return await self._ask(get_state(session_id, workspace_id))

    async def put_state(self, value: JSON, *, session_id: str | None = None, workspace_id: str | None = None) -> None:
        """Keeps one value for the session, of at most 64 KiB. None removes it."""
        await self._ask(put_state(value, session_id, workspace_id))

    async def complete(
        self,
        input: str,
        *,
        system: str | None = None,
        schema: JSON = None,
        schema_name: str | None = None,
        max_output_tokens: int | None = None,
        purpose: str | None = None,
    ) -> Completion:
        """Asks the host's model. There may be none, and no grant, no budget or no time: do without then."""
        options = {"system": system, "schema": schema, "schema_name": schema_name, "purpose": purpose}
        return await self._ask(complete(input, {**options, "max_output_tokens": max_output_tokens}))

    async def resolve_document(self, *, thread_id: str | None = None) -> JSON:
        """Returns `effective` and `diagnostics` of the AGENTS.md document in effect for a thread."""
        return await self._ask(resolve(thread_id))

    async def invalidate(self, *, subscriptions: Sequence[str] = (), tags: Sequence[str] = ()) -> None:
        """Drops remembered answers of this plugin: with no names, all of them."""
        await self._ask(invalidate(subscriptions, tags))

    async def _ask(self, question: Question) -> Any:
        import asyncio

        loop = asyncio.get_running_loop()
        done = loop.create_future()
        wake = lambda: loop.call_soon_threadsafe(lambda: done.done() or done.set_result(None))  # noqa: E731
        pending = self._session.ask(question.body, self._call, wake)
        self._session.before_wait()
        await done
        return question.read(pending.result())
