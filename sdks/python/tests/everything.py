"""A plugin whose hooks do what handlers should not, for the tests of the process."""

import asyncio
import os
import subprocess
import sys
import threading
import time

from grapnel import Call, ConfigError, Plugin, PluginError, PromptSection, Setup, ToolResult, allow, deny, serve

print("at import")

plugin = Plugin(name="everything", version="1.0.0", config_schema={"type": "object"})


def tool(function):
    return plugin.tool(function.__name__)(function)


@plugin.configure
def configure(config, setup: Setup):
    if "bad" in config:
        raise ConfigError("/bad", "is bad")
    if "broken" in config:
        raise RuntimeError("broken")
    for name in config.get("hooks", []):
        setup.hook(name, kinds=["decision"], phase="tool.pre_call")(lambda input, call: allow(name))


@plugin.close
def close():
    sys.stderr.write("closed\n")


@plugin.hook("facts", kinds=["decision"], phase="tool.pre_call", needs=["facts"])
def facts(input, call):
    rm = any(c.program == "rm" and "-r" in c.options for c in input.facts.commands)
    return deny("secrets", code="secrets") if input.facts.secrets or rm or input.facts.unparsed else None


@plugin.hook("guard", kinds=["decision"], role="validate", needs=["arguments"])
def tool_pre_call(input, call):
    return deny("no shell here", code="shell") if input.tool == "shell" else None


@plugin.hook("wrong_kind", phase="turn.pre_prompt_compile")
def wrong_kind(input, call):
    return PromptSection(section_id="s", content="x")


@plugin.hook("not_one", phase="tool.pre_call")
def not_one(input, call):
    return "deny"


@plugin.hook("many", kinds=["decision"], phase="tool.pre_call")
def many(input, call):
    yield allow("a")
    yield deny("b")


@plugin.hook("wrong_type", kinds=["decision"], phase="tool.pre_call")
def wrong_type(input, call):
    return deny(5)  # type: ignore[arg-type]


@tool
def echo(arguments, call):
    return arguments


@tool
def surrogate(arguments, call):
    return "\ud800"


@tool
def reordering(arguments, call):
    return "a\u202eb"


@tool
def nul(arguments, call):
    return ["a\0b"]


@tool
def not_a_number(arguments, call):
    return float("nan")


@tool
def huge(arguments, call):
    return 10**5000


@tool
def a_set(arguments, call):
    return {1}


@tool
def loop(arguments, call):
    value = []
    value.append(value)
    return value


@tool
def oversize(arguments, call):
    return "x" * (4 << 20)


@tool
def fits(arguments, call):
    return "ä" * arguments


@tool
def raises(arguments, call):
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt, "base": BaseException, "value": ValueError, "stop": StopIteration}[arguments]("x\ud800")


class Rude(PluginError):
    def __init__(self):
        pass


class Worse(Exception):
    def __str__(self):
        raise SystemExit


class Items(dict):
    def items(self):
        raise KeyError("no items")


@tool
def rude(arguments, call):
    raise Rude if arguments == "rude" else Worse if arguments == "worse" else PluginError(5, None, retryable=7)  # type: ignore[arg-type]


@tool
def items(arguments, call):
    return Items(a=1)


@plugin.hook("endless", kinds=["decision"], phase="tool.pre_call")
def endless(input, call):
    while True:
        yield allow()


@tool
def huge_message(arguments, call):
    raise ValueError("x" * (5 << 20))


@tool
def own_error(arguments, call):
    raise PluginError("upstream_down", "no answer", retryable=True)


@tool
def prints(arguments, call):
    print("printed")
    os.write(1, b"written\n")
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    return subprocess.run(["cat"], stdout=subprocess.PIPE).stdout.decode()


@tool
def asks_person(arguments, call):
    return input("name? ")


@tool
def sleeps(arguments, call):
    time.sleep(arguments)
    return "slept"


@tool
def waits(arguments, call):
    return ["cancelled" if call.cancelled.wait(10) else "not", call.cancelled.reason]


@tool
async def async_waits(arguments, call):
    await asyncio.sleep(10)


@tool
async def async_stubborn(arguments, call):
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        return "finished anyway"


@tool
async def async_raises(arguments, call):
    raise SystemExit(1)


@tool
async def async_quick(arguments, call):
    return threading.current_thread().name


@tool
def state(arguments, call: Call):
    call.host.put_state(arguments)
    call.host.invalidate(tags=["t"])
    return [call.host.get_state(), call.host.complete("hello", max_output_tokens=5).text]


@tool
async def async_state(arguments, call: Call):
    return await call.async_host.get_state(session_id="s")


@tool
def forbidden(arguments, call):
    return call.host.call("secrets", "get")


@tool
def deaf(arguments, call):
    return call.host.call("never", "answers")


@tool
def reports(arguments, call):
    return ToolResult(content={"ok": False}, is_error=True)


@tool
def sees(arguments, call):
    return {"dir": call.context.dir, "policy": call.policy("d", "k"), "outside": call.outside_turn, "config": call.config}


if __name__ == "__main__":
    serve(plugin)
