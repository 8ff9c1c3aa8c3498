"""A test kit: it makes a call as a host does, and raises AssertionError where a host would find fault.

    answer = run(plugin, hook="guard", input={"tool": "shell"})
    assert answer.json == {"contributions": [{"kind": "decision", "verdict": "deny", "reason": "no shell here"}]}

`run` and `fixtures` call a plugin in process, through the protocol. `Process` starts a program and speaks with it as a
host does; it also pings, cancels and drains. Inputs, contexts and answers have the JSON of the Go SDK's fixtures.
"""

from __future__ import annotations

import glob
import json
import os
import queue
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _codec, _types
from ._errors import HostError
from ._message import Message, fields_of
from ._protocol import Configuration, Session
from ._stdio import COOKIE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Self

    from ._message import JSON
    from ._plugin import Plugin

__all__ = ["Answer", "Host", "Process", "fixtures", "run"]

PATIENCE = 10.0
FEATURES = ["cancel", "host_calls", "invalidate", "reconfigure", "tools"]
KINDS = {cls.kind: cls for cls in _types.Contribution.__subclasses__()}


class Host:
    """Host answers a plugin's host calls from a script, by "service/method", and records them.

    A service is a value, or a function of the parameters, which may raise HostError. What is not in the script is refused,
    as without a grant.
    """

    def __init__(self, services: Mapping[str, Callable[[Any], JSON] | JSON] | None = None) -> None:
        self.services: dict[str, Any] = dict(services or {})
        self.calls: list[tuple[str, Any]] = []
        """The calls so far: name and parameters."""
        self.invalidated: list[dict[str, Any]] = []

    def names(self) -> list[str]:
        """Returns the services of which the script has a method."""
        return sorted({name.partition("/")[0] for name in self.services})

    def reply(self, frame: dict[str, Any]) -> dict[str, Any]:
        """Returns the HostReply to a frame of the plugin's."""
        if "invalidate" in frame:
            self.invalidated.append(frame["invalidate"])
            return {}
        call = frame["host_call"]
        name, params = f"{call.get('service')}/{call.get('method')}", call.get("params_json")
        self.calls.append((name, params))
        if name not in self.services:
            return {"error": {"code": "forbidden", "message": f"the service {name} is not in the test's script"}}
        service = self.services[name]
        try:
            return {"result_json": service(params) if callable(service) else service}
        except HostError as error:
            return {"error": {"code": error.code, "message": str(error)}}


class Answer:
    """Answer is what a plugin answered. `json` is its form in fixtures."""

    def __init__(self, wire: dict[str, Any]) -> None:
        failure = wire.get("error")
        self.contributions: list[_types.Contribution] = [] if failure else [contribution(c) for c in wire.get("contributions", ())]
        self.content: JSON = None if failure else wire.get("content_json")
        self.is_error: bool = bool(wire.get("is_error")) and not failure
        self.diagnostics: list[_types.Diagnostic] = [] if failure else [_types.Diagnostic._read(d) for d in wire.get("diagnostics", ())]
        self.error: dict[str, Any] | None = None
        if failure:
            self.error = {"code": failure.get("plugin_code") or failure["code"]}
            self.error.update((key, failure[key]) for key in ("message", "retryable") if key in failure)

    @property
    def json(self) -> dict[str, Any]:
        """The answer without what is empty."""
        whole = {"contributions": to_json(self.contributions), "content": self.content, "is_error": self.is_error}
        whole.update(diagnostics=to_json(self.diagnostics), error=self.error)
        return {key: value for key, value in whole.items() if value not in (None, [], False)}

    def __repr__(self) -> str:
        return f"Answer({self.json})"


class Caller:
    """Caller makes calls of a plugin: one in process, or a program."""

    incarnation = 1

    def __init__(self, host: Host | None) -> None:
        self.host: Host = host or Host()
        self.description: dict[str, Any] = {}
        self._last = 0

    def start(self, config: JSON = None) -> None:
        """Opens the session and configures the plugin."""
        limits = {"max_frame_bytes": 4 << 20, "max_host_calls": 64, "transport": "stdio"}
        described = self.ask({"hello": {"protocol_version": 1, "features": FEATURES, **limits}})["describe"]
        assert "error" not in described, f"the plugin does not describe itself: {described['error']}"
        self.description = described["description"]
        answer = self.configure(config)
        assert "description" in answer, f"the plugin does not take its configuration: {answer}"

    def configure(self, config: JSON = None) -> dict[str, Any]:
        """Sends a configuration and returns the Configured."""
        body = {"instance": self.description["name"], "services": self.host.names()}
        answer = self.ask({"configure": body if config is None else {**body, "config_json": config}})["configured"]
        self.description = answer.get("description", self.description)
        return answer

    def call(self, **case: Any) -> Answer:
        """Makes one call, with the parameters of `run`."""
        frame = self.ask(self.body(**case))
        return Answer(frame.get("result") or frame.get("tool_result") or {})

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """Sends a frame and returns the one that answers it."""
        raise NotImplementedError

    def frame(self, body: dict[str, Any], number: int = 0) -> dict[str, Any]:
        self._last += number == 0
        return {"id": number or self._last, "incarnation": self.incarnation, **body}

    def body(
        self,
        *,
        hook: str = "",
        tool: str = "",
        input: Message | JSON = None,
        context: _types.Context | Mapping[str, JSON] | None = None,
        policies: Sequence[_types.PolicyEntry] = (),
        contexts: Sequence[_types.ContextEntry] = (),
        withhold: Sequence[str] = (),
        max_chars: int = 20_000,
        timeout: float = PATIENCE,
        outside_turn: bool = False,
    ) -> dict[str, Any]:
        """Makes the frame of a call. `input` is the hook's input or the tool's arguments; a lone hook need not be named."""
        where = context if isinstance(context, _types.Context) else from_json(_types.Context, context or {})
        call: dict[str, Any] = {
            "budget": {"max_chars": max_chars, "max_bytes": 4 << 20}, "remaining_ns": int(timeout * 1e9), "generation": 1,
            "context": where._write(), "policies": [p._write() for p in policies],
        }  # fmt: skip
        if tool:
            assert any(t["name"] == tool for t in self.description.get("tools", ())), f"the plugin has no tool {tool!r}"
            call.update(tool=tool, outside_turn=outside_turn, arguments_json=input)
            return {"call_tool": call}
        hooks = self.description.get("hooks", [])
        found = [h for h in hooks if h["name"] == hook or not hook and len(hooks) == 1]
        assert found, f"the plugin has no hook {hook!r}; it has {[h['name'] for h in hooks]}"
        name, phase = found[0]["name"], found[0]["phase"]
        field, cls = _types.PHASES[phase][:2] if phase in _types.PHASES else ("custom", _types.Custom)
        if cls is _types.Custom and not isinstance(input, Message):
            input = {"fields": input or {}}
        value = input if isinstance(input, Message) else from_json(cls, input or {})
        call.update({field: value._write(), "contexts": [c._write() for c in contexts]})
        call.update(hook=name, phase=phase, subscription=f"{self.description['name']}.{name}", attempt=1)
        if withhold:
            known = (*fields_of(cls), *_types.SEEN_SETS)
            assert cls is _types.Custom or set(withhold) <= set(known), f"{phase} has nothing of {withhold}; it has {known}"
            hide(call, call[field], cls, withhold, found[0].get("needs", ()))
        return {"dispatch": call}


class InProcess(Caller):
    """InProcess calls a plugin in this process, through the protocol."""

    def __init__(self, plugin: Plugin, host: Host | None = None) -> None:
        super().__init__(host)
        self._session = Session(plugin, self._emit)
        self._answers: list[dict[str, Any]] = []

    def _emit(self, line: bytes) -> None:
        frame = _codec.decode(line)
        if "host_call" in frame or "invalidate" in frame:
            self._session.receive(_codec.decode(_codec.encode(self.frame({"host_reply": self.host.reply(frame)}, frame["id"]))))
        else:
            self._answers.append(frame)

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        frame = self.frame(body)
        work = self._session.receive(_codec.decode(_codec.encode(frame)))
        if isinstance(work, Configuration) or work is not None and not work.is_async:
            work.run()
        elif work is not None:
            import asyncio

            asyncio.run(work.run_async())
        (answer,) = self._answers
        self._answers.clear()
        assert (answer["id"], answer["incarnation"]) == (frame["id"], frame["incarnation"]), f"the answer {answer} to {frame}"
        return answer


class Process(Caller):
    """Process starts a plugin's program and speaks with it. Use it in a `with` statement."""

    def __init__(self, command: Sequence[str], *, host: Host | None = None, config: JSON = None, env: Mapping[str, str] | None = None) -> None:
        super().__init__(host)
        self._log, self._written = tempfile.TemporaryFile(), ""
        variables = {**os.environ, **(env or {}), "GRAPNEL_PLUGIN": COOKIE, "GRAPNEL_TRANSPORT": "stdio"}
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=variables)
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._noise = ""
        self._lock, self._ended = threading.Lock(), False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._config = config

    def __enter__(self) -> Self:
        try:
            self.start(self._config)
        except BaseException:
            self.__exit__(None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._written = self.stderr
        self._log.close()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def stderr(self) -> str:
        """What the program wrote to its log so far."""
        if not self._log.closed:
            self._log.seek(0)
            self._written = self._log.read().decode("utf-8", "replace")
        return self._written

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            try:
                frame = json.loads(line)
            except ValueError:
                self._noise = f"a line that is not a frame: {line[:200]!r}; "
                break
            if "host_call" in frame or "invalidate" in frame:
                threading.Thread(target=self._reply, args=(frame,), daemon=True).start()
            else:
                self._queue(frame["id"]).put(frame)
        with self._lock:
            self._ended = True
            for waiting in self._answers.values():
                waiting.put(None)

    def _reply(self, frame: dict[str, Any]) -> None:
        try:
            self.send(self.frame({"host_reply": self.host.reply(frame)}, frame["id"]))
        except (OSError, ValueError):
            pass  # the session has ended

    def _queue(self, number: int) -> queue.SimpleQueue[dict[str, Any] | None]:
        with self._lock:
            found = self._answers.setdefault(number, queue.SimpleQueue())
            if self._ended:
                found.put(None)
            return found

    def send(self, frame: dict[str, Any] | bytes) -> None:
        """Sends a frame, or any line as it is."""
        line = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        assert self._child.stdin is not None
        with self._lock:
            self._child.stdin.write(line + b"\n")
            self._child.stdin.flush()

    def begin(self, body: dict[str, Any]) -> int:
        """Sends a frame and returns its id, for `wait` and `cancel`. `body(…)` makes that of a call."""
        frame = self.frame(body)
        self.send(frame)
        return frame["id"]

    def wait(self, number: int, timeout: float = PATIENCE) -> dict[str, Any]:
        """Returns the next frame that answers an id."""
        try:
            answer = self._queue(number).get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no answer within {timeout} s; the log:\n{self.stderr}") from None
        assert answer is not None, f"the program has ended; {self._noise}the log:\n{self.stderr}"
        return answer

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.wait(self.begin(body))

    def cancel(self, number: int) -> None:
        """Ends the interest in a call, which is still answered."""
        self.send(self.frame({"cancel": {}}, number))

    def ping(self) -> None:
        """Asserts that the plugin answers a ping."""
        assert "pong" in self.ask({"ping": {}})

    def drain(self) -> None:
        """Announces the end and waits until everything is answered."""
        assert "pong" in self.ask({"drain": {}})

    def close(self) -> int:
        """Ends the session and returns the program's exit code."""
        assert self._child.stdin is not None and self._child.stdout is not None
        with self._lock:
            try:
                self._child.stdin.close()
            except BrokenPipeError:
                pass
        try:
            return self._child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._child.kill()
            raise AssertionError(f"the program does not end when its stdin does; the log:\n{self.stderr}") from None
        finally:
            self._reader.join()
            self._child.stdout.close()
            self._child.wait()


def run(plugin: Plugin, *, config: JSON = None, host: Host | None = None, want_code: str = "", volatile: str = "", **case: Any) -> Answer:
    """Calls a hook or a tool of the plugin twice and returns the answer, the same both times unless `volatile` says why not.

    `case` names hook= or tool=, and may have input=, context=, policies=, contexts=, withhold=, max_chars=, timeout= and
    outside_turn=. `withhold` lists what the operator does not grant: run your guards once without what they look at.
    An error must have the code `want_code`; "*" takes any.
    """
    caller = InProcess(plugin, host)
    caller.start(config)
    first, second = caller.call(**case), caller.call(**case)
    assert volatile or first.json == second.json, f"the same call gives two answers\nfirst:  {first}\nsecond: {second}"
    code = first.error["code"] if first.error else ""
    assert want_code in ("*", code), f"the call ends with the code {code!r} ({first}), want {want_code!r}"
    assert depth(first.json) <= 32, "the answer is nested deeper than a host takes"
    return first


def fixtures(plugin: Plugin, directory: str | Path) -> None:
    """Runs each file *.txtar of a directory and compares the answer with its want.json, as the Go SDK's plugintest does.

    A file begins with a comment; then come, each optional but the last, `-- hook --`, `-- tool --`, `-- config.json --`,
    `-- context.json --`, `-- input.json --`, `-- max_chars --`, `-- withhold --` and `-- want.json --`. All others are
    written into a new directory, for which $WORK stands everywhere. With UPDATE_FIXTURES=1 in the environment, want.json
    is rewritten instead.
    """
    paths = sorted(glob.glob(os.path.join(glob.escape(str(directory)), "*.txtar")))
    assert paths, f"no fixtures *.txtar in {directory}"
    for path in paths:
        with tempfile.TemporaryDirectory() as work:
            try:
                fixture(plugin, Path(path), work, os.environ.get("UPDATE_FIXTURES") == "1")
            except (AssertionError, ValueError, TypeError) as error:
                raise AssertionError(f"{path}: {error}") from error


def fixture(plugin: Plugin, path: Path, work: str, update: bool) -> None:
    comment, files = read_archive(path.read_text("utf-8"))
    rest = dict(files)

    def take(name: str) -> str:
        return rest.pop(name, "").removesuffix("\n").replace("$WORK", work)

    want = rest.pop("want.json", "")
    case: dict[str, Any] = {"hook": take("hook"), "tool": take("tool"), "withhold": take("withhold").split()}
    case.update(input=json.loads(take("input.json") or "null"), context=json.loads(take("context.json") or "{}"))
    case.update(config=json.loads(take("config.json") or "null"), max_chars=int(take("max_chars") or 20_000))
    for name, content in rest.items():
        target = Path(work, name)
        assert Path(work).resolve() in target.resolve().parents, f"the file {name!r} lies outside"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, "utf-8")
    text = json.dumps(run(plugin, want_code="*", **case).json, indent=2, ensure_ascii=False).replace(work, "$WORK")
    if update:
        files["want.json"] = text + "\n"
        path.write_text(comment + "".join(f"-- {name} --\n{content}" for name, content in files.items()), "utf-8")
        return
    assert want and json.loads(want) == json.loads(text), f"the answer is not the one wanted\ngot:\n{text}\nwant:\n{want}"


def read_archive(text: str) -> tuple[str, dict[str, str]]:
    """Returns the comment and the files of a txtar archive."""
    comment, files, name = "", {}, ""
    for line in text.splitlines(keepends=True):
        if line.startswith("-- ") and line.rstrip().endswith(" --"):
            name = line.strip()[3:-3].strip()
            files[name] = ""
        elif name:
            files[name] += line
        else:
            comment += line
    return comment, files


def contribution(wire: dict[str, Any]) -> _types.Contribution:
    """Reads a contribution of an answer."""
    (kind,) = KINDS.keys() & wire.keys()
    return KINDS[kind]._read({**wire, **wire[kind]})


def to_json(value: Any) -> Any:
    """Returns the JSON of a message, without defaults."""
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    if not isinstance(value, Message):
        return value
    known = fields_of(type(value))
    own = {known[k].name.rstrip("_"): to_json(v) for k, v in vars(value).items() if k in known and v != known[k].default}
    return {"kind": value.kind, **own} if isinstance(value, _types.Contribution) else own


def from_json(cls: type[Message], value: Mapping[str, Any]) -> Message:
    """Makes a message of its JSON. An unknown field is an error."""
    fields = {}
    for key, item in value.items():
        name = "from_" if key == "from" else key
        notes = next((c.__annotations__ for c in cls.__mro__ if name in getattr(c, "__annotations__", {})), {})
        fields[name] = convert(notes.get(name, ""), item)
    return cls(**fields)


def convert(note: str, value: Any) -> Any:
    if note == "Text":
        return _types.Text(value=value) if isinstance(value, str) else _types.Text(withheld_chars=value.get("chars", 0))
    if note == "Preview" and isinstance(value, str):
        return _types.Preview(text=value, original_length=len(value))
    if note == "Preview" and value.get("withheld"):
        return _types.Preview(withheld=True, original_length=value.get("chars", 0))
    if note.startswith("Sequence["):
        return [convert(note[9:-1], item) for item in value]
    cls = getattr(_types, note.removesuffix(" | None"), None)
    return from_json(cls, value) if cls is not None and isinstance(value, dict) else value


def hide(call: dict[str, Any], wire: dict[str, Any], cls: type[Message], names: Sequence[str], needs: Sequence[str]) -> None:
    """Removes what is not granted from a dispatch, as a host does, and names it."""
    hidden = []
    known = {f.name: f for f in fields_of(cls).values()}
    if cls is _types.Custom:
        members = wire.setdefault("fields_json", {})
        for name in sorted(set(names) & set(members)):
            members[name] = {"withheld": True, "chars": len(json.dumps(members[name], ensure_ascii=False))}
            hidden.append(name)
    for name, field in known.items():
        if name not in names or name == "tool" or field.wire not in wire:
            continue
        value = wire.pop(field.wire)
        hidden.append(name)
        if isinstance(field.default, _types.Text):
            wire[field.wire] = {"withheld_chars": len(value.get("value", ""))}
        elif isinstance(field.default, _types.Preview):
            wire[field.wire] = {"withheld": True, "original_length": value.get("original_length", 0)}
        elif field.json:
            wire[field.wire] = {"withheld": True, "chars": len(json.dumps(value, ensure_ascii=False))}
    if "metadata" in names and call["context"].pop("metadata_json", None):
        hidden.append("metadata")
    for name, entries in (("policy", "policies"), ("context", "contexts")):
        if name in names:
            call[entries] = []
            hidden += [name] if name in needs else []
    call["withheld"] = hidden


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max((depth(v) for v in inner), default=0) if isinstance(value, (dict, list)) else 0
