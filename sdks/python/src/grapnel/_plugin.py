"""Plugin is data: what a module declares with decorators. Running it is _protocol's and _serve's business."""

from __future__ import annotations

from ._errors import ConfigError, DeclarationError
from ._types import ALWAYS_TAKEN, KINDS, NEVER_DECLARED, PHASES, ROLES, SEEN_SETS
from ._types import Contribution, Custom, Decision, OnFailure, Tool, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

    from ._call import Call, Host
    from ._message import JSON
    from ._types import Cache, Kind, Phase, Retry, Role, TextBudget

    Answer: TypeAlias = Contribution | Iterable[Contribution] | None
    """What a hook may return. None has nothing to add."""
    HookFunction = TypeVar("HookFunction", bound=Callable[[Any, Call], Answer | Awaitable[Answer]])
    ToolFunction = TypeVar("ToolFunction", bound=Callable[[Any, Call], Any])
    Function = TypeVar("Function", bound=Callable[..., Any])

MOST = 256
"""The most contributions of one answer."""
COROUTINE, ASYNC_GENERATOR = 0x80, 0x200  # flags of code objects, as in inspect


class Handler:
    """Handler is a function with its part of the description."""

    __slots__ = ("name", "function", "is_async", "wire", "slow", "offload")
    answer_name: ClassVar[str]
    name: str
    function: Callable[..., Any]
    is_async: bool
    wire: dict[str, Any]
    slow: int
    """Slow calls in a row in the thread that reads; see _serve."""
    offload: int
    """How many of the next calls go to other threads."""

    def __init__(self, name: str, function: Callable[..., Any], wire: dict[str, Any]) -> None:
        self.name, self.function = name, function
        code = getattr(function, "__code__", None) or getattr(getattr(function, "__call__"), "__code__", None)
        self.is_async = bool(code and code.co_flags & (COROUTINE | ASYNC_GENERATOR))
        self.wire = {key: value for key, value in wire.items() if value}
        self.slow = self.offload = 0

    def invoke(self, call: Call) -> Any:
        """Calls the function."""
        raise NotImplementedError

    def answer(self, value: Any) -> dict[str, Any]:
        """Makes the body of the answer of what the function returned."""
        raise NotImplementedError


class HookHandler(Handler):
    """HookHandler answers dispatches of one hook."""

    answer_name = "result"
    __slots__ = ("kinds", "field", "input")

    def __init__(self, name: str, function: Callable[..., Any], wire: dict[str, Any]) -> None:
        super().__init__(name, function, wire)
        self.kinds = frozenset((*wire["kinds"], *NEVER_DECLARED))
        self.field, self.input = PHASES[wire["phase"]][:2] if wire["phase"] in PHASES else ("custom", Custom)

    def invoke(self, call: Call) -> Any:
        return self.function(self.input._read(call._wire.get(self.field) or {}), call)

    def answer(self, value: Any) -> dict[str, Any]:
        if value is None:
            return {}
        if isinstance(value, Contribution):
            return {"contributions": [self.contribution(value)]}
        if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
            raise TypeError(f"the hook {self.name} answered with a {type(value).__name__}; return contributions, such as grapnel.deny(…)")
        contributions: list[dict[str, Any]] = []
        for c in value:
            contributions.append(self.contribution(c))
            if len(contributions) > MOST:
                raise ValueError(f"the hook {self.name} answered with more than {MOST} contributions")
        return {"contributions": contributions}

    def contribution(self, c: Any) -> dict[str, Any]:
        if not isinstance(c, Contribution):
            raise TypeError(f"the hook {self.name} answered with a {type(c).__name__} among its contributions")
        if c.kind not in self.kinds:
            raise ValueError(f"the hook {self.name} answered with a {c.kind}; add it to its kinds")
        return write_contribution(c)


class ToolHandler(Handler):
    """ToolHandler answers calls of one tool."""

    answer_name = "tool_result"
    __slots__ = ()

    def invoke(self, call: Call) -> Any:
        return self.function(call._wire.get("arguments_json"), call)

    def answer(self, value: Any) -> dict[str, Any]:
        return (value if isinstance(value, ToolResult) else ToolResult(content=value))._write()


def write_contribution(c: Contribution) -> dict[str, Any]:
    """Returns a contribution for the wire, where its kind's own fields are apart."""
    body = c._write()
    head = {key: body.pop(key) for key in Contribution.__annotations__ if key in body}
    return {**head, c.kind: body}


class Registry:
    """Registry is where hooks and tools are declared: a Plugin, or a Setup for those of one configuration."""

    name: str
    """The plugin's own name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._hooks: dict[str, HookHandler] = {}
        self._tools: dict[str, ToolHandler] = {}

    def hook(
        self,
        name: str,
        *,
        kinds: Sequence[Kind] = (),
        phase: Phase | str = "",
        role: Role | Literal[""] = "",
        doc: str = "",
        needs: Sequence[str] = (),
        priority: int = 0,
        after: Sequence[str] = (),
        before: Sequence[str] = (),
        when: str = "",
        timeout: float = 0,
        on_failure: OnFailure | Literal["", "fail_closed", "best_effort", "fallback"] = "",
        fallback: Sequence[Contribution] = (),
        retry: Retry | None = None,
        idempotent: bool = False,
        budget: TextBudget | None = None,
        cache: Cache | None = None,
        shadow: bool = False,
        visibility: Literal["", "internal", "debug", "user_audit", "user_visible"] = "",
    ) -> Callable[[HookFunction], HookFunction]:
        """Declares the decorated function, of (input, call), as a hook.

        The phase is the function's name (tool_pre_call is tool.pre_call) unless it is given. All else is a proposal,
        which the operator may change. Raises ValueError for what no host would take.
        """

        def declare(function: HookFunction) -> HookFunction:
            where = f"plugin {self.name!r}, hook {name!r}"
            at = phase or phase_of(where, function)
            check_hook(where, name, at, kinds, role, needs, function)
            if name in self._hooks:
                raise DeclarationError(f"{where}: the name is taken; give each hook its own")
            failure = OnFailure(default=on_failure) if isinstance(on_failure, str) else on_failure
            self._hooks[name] = HookHandler(name, function, {
                "name": name, "doc": doc or first_line(function), "phase": at, "kinds": list(kinds), "role": role,
                "priority": priority, "after": list(after), "before": list(before), "when": when,
                "timeout_ns": round(timeout * 1e9), "on_failure": failure._write(),
                "fallback": [write_contribution(c) for c in fallback], "retry": retry and retry._write(),
                "idempotent": idempotent, "budget": budget and budget._write(), "cache": cache and cache._write(),
                "shadow": shadow, "visibility": visibility, "needs": list(needs),
            })  # fmt: skip
            return function

        return declare

    def tool(
        self, name: str, *, description: str = "", input: Mapping[str, JSON] | None = None, hidden_domain: str = ""
    ) -> Callable[[ToolFunction], ToolFunction]:
        """Declares the decorated function, of (arguments, call), as a tool that returns a str, any JSON or a ToolResult.

        `input` is the JSON Schema of the arguments, which a model makes up: check them. A ToolBundle offers the tool.
        """

        def declare(function: ToolFunction) -> ToolFunction:
            where = f"plugin {self.name!r}, tool {name!r}"
            check_name(where, name, "_.:/-")
            if name in self._tools:
                raise DeclarationError(f"{where}: the name is taken; give each tool its own")
            wire = {"name": name, "description": description or first_line(function), "hidden_domain": hidden_domain}
            self._tools[name] = ToolHandler(name, function, {**wire, "input_schema_json": input and dict(input)})
            return function

        return declare

    @property
    def tools(self) -> list[Tool]:
        """The tools as a ToolBundle offers them."""
        return [Tool._read(handler.wire) for handler in self._tools.values()]


class Plugin(Registry):
    """Plugin is a program's one plugin: a name, a version, and what its decorators add. `serve` runs it."""

    def __init__(
        self,
        name: str,
        version: str,
        *,
        doc: str = "",
        requires: Sequence[str] = (),
        config_schema: Mapping[str, JSON] | None = None,
        concurrency: int = 0,
    ) -> None:
        """`config_schema` is a JSON Schema; without one no configuration is accepted. `concurrency` bounds the calls at
        once; by default 8 sync handlers run at a time, and as many async ones as the host starts."""
        check_name(f"plugin {name!r}", name, "_-")
        check_name(f"plugin {name!r}: version", version, "_.+~-")
        super().__init__(name)
        self.concurrency = concurrency
        self._head = {
            "name": name, "version": version, "doc": doc, "requires": list(requires),
            "config_schema_json": config_schema and dict(config_schema), "limits": concurrency and {"concurrency": concurrency},
        }  # fmt: skip
        self._configure: Callable[..., Any] | None = None
        self._close: Callable[[], Any] | None = None

    def configure(self, function: Function) -> Function:
        """Declares the function that takes the operator's configuration, a dict, and optionally a Setup.

        What it returns is `call.config` from then on. It may come again while calls run, and may raise ConfigError:
        then the configuration before stays in force. It must not be async.
        """
        self._configure = function
        return function

    def close(self, function: Function) -> Function:
        """Declares the function, without parameters, that is called at the end, unless the process is killed."""
        self._close = function
        return function

    def describe(self) -> dict[str, Any]:
        """Returns the description before any configuration, as the host gets it."""
        return Snapshot(self).description


class Setup(Registry):
    """Setup is what a configure handler may add: hooks and tools of this configuration only."""

    instance: str
    """The operator's name for this plugin."""
    services: Sequence[str]
    """Host services that may be called."""
    host: Host
    """The host's services, outside of any call. It stays valid."""

    def __init__(self, plugin: Plugin, instance: str, services: Sequence[str], host: Host) -> None:
        super().__init__(plugin.name)
        self.instance, self.services, self.host = instance, services, host


class Snapshot:
    """Snapshot is a configuration in force. It never changes."""

    config: Any
    hooks: dict[str, HookHandler]
    tools: dict[str, ToolHandler]
    description: dict[str, Any]

    def __init__(self, plugin: Plugin, setup: Setup | None = None, config: Any = None) -> None:
        self.config = config
        added = setup or Registry(plugin.name)
        if twice := [n for n in added._hooks if n in plugin._hooks] + [n for n in added._tools if n in plugin._tools]:
            raise ValueError(f"plugin {plugin.name!r}: the configuration adds {twice[0]!r}, which is there already")
        self.hooks, self.tools = {**plugin._hooks, **added._hooks}, {**plugin._tools, **added._tools}
        parts = {"hooks": [h.wire for h in self.hooks.values()], "tools": [t.wire for t in self.tools.values()]}
        self.description = {key: value for key, value in {**plugin._head, **parts}.items() if value}


def configured(plugin: Plugin, config: JSON, setup: Setup) -> Snapshot:
    """Runs the configure handler, if there is one."""
    result = None
    if plugin._configure is not None:
        code, bound = getattr(plugin._configure, "__code__", None), hasattr(plugin._configure, "__self__")
        takes_setup = code is not None and code.co_argcount - bound > 1
        result = plugin._configure(config or {}, setup) if takes_setup else plugin._configure(config or {})
        if hasattr(result, "__await__"):
            raise TypeError("the configure handler is async; it must not be")
    return Snapshot(plugin, setup, (config or {}) if result is None else result)


def check_hook(
    where: str, name: str, phase: str, kinds: Sequence[str], role: str, needs: Sequence[str], function: Callable[..., Any]
) -> None:
    check_name(where, name, "_.:/-")
    if isinstance(kinds, str) or isinstance(needs, str):
        raise DeclarationError(f"{where}: kinds and needs are lists of words")
    if phase.startswith("x.") and all(phase.split(".")) and phase.count(".") >= 2:
        takes, roles, cls, fields = KINDS, ROLES, Custom, None
    elif phase in PHASES:
        _, cls, own, roles = PHASES[phase]
        takes, fields = own + ALWAYS_TAKEN, (*cls.__annotations__, *SEEN_SETS, "nothing")
    else:
        raise DeclarationError(f"{where}: unknown phase {phase!r}{did_you_mean(phase, PHASES)}; a host's own phase is named x.HOST.NAME")
    for kind in kinds:
        if kind not in KINDS:
            raise DeclarationError(f"{where}: unknown kind {kind!r}{did_you_mean(kind, KINDS)}")
        if kind not in takes:
            raise DeclarationError(f"{where}: {phase} does not take {kind}; it takes {', '.join(takes)}")
    if role and role not in roles:
        raise DeclarationError(f"{where}: {phase} does not take the role {role!r}; it takes {', '.join(roles)}")
    for need in needs:
        if fields is not None and need not in fields:
            raise DeclarationError(f"{where}: needs {need!r}, which {phase} does not have; it has {', '.join(fields)}")
    notes = [str(getattr(v, "__name__", v)) for k, v in getattr(function, "__annotations__", {}).items() if k != "return"]
    wanted = notes[0].strip("'\"").rpartition(".")[2] if notes else cls.__name__
    if wanted != cls.__name__ and (wanted == "Custom" or any(wanted == p[1].__name__ for p in PHASES.values())):
        raise DeclarationError(f"{where}: the function takes {wanted}, but the input of {phase} is {cls.__name__}")


def phase_of(where: str, function: Callable[..., Any]) -> str:
    """Returns the phase that a function is named after: in full, without "turn." or "runtime.", or as in the Go SDK."""
    name = getattr(function, "__name__", "")
    for phase, row in PHASES.items():
        if name in (phase.replace(".", "_"), phase.removeprefix("turn.").removeprefix("runtime."), row[0]):
            return phase
    raise DeclarationError(f"{where}: no phase is called {name!r}; name the function after one (tool_pre_call), or give phase=")


def check_name(where: str, name: str, signs: str) -> None:
    letters = name.translate(str.maketrans("", "", signs))
    if not (letters.isascii() and letters.isalnum() and name[0].isalnum() and len(name) <= 128):
        raise DeclarationError(f"{where}: {name!r} is not a name; use letters, digits and {' '.join(signs)}, at most 128")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, list(known), 1)
    return f", did you mean {close[0]!r}?" if close else ""


def first_line(function: Callable[..., Any]) -> str:
    return (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]


def allow(reason: str = "", *, code: str = "") -> Decision:
    """Returns a decision to allow. To have no opinion, return None."""
    return Decision(verdict="allow", reason=reason, reason_code=code)


def ask(reason: str = "", *, code: str = "") -> Decision:
    """Returns a decision to ask a person first."""
    return Decision(verdict="ask", reason=reason, reason_code=code)


def deny(reason: str = "", *, code: str = "") -> Decision:
    """Returns a decision to deny. People and models read the reason."""
    return Decision(verdict="deny", reason=reason, reason_code=code)
