#!/usr/bin/env python3
"""House rules: a section of the prompt, a guard and a tool, as a stranger would write them."""

from __future__ import annotations

import shlex

from grapnel import Call, ConfigError, Plugin, PrePromptCompile, PreTools, PromptSection, ToolBundle, ToolPreCall, ToolResult, deny, serve

plugin = Plugin(
    name="house",
    version="1.0.0",
    doc="Keeps the rules of the house.",
    config_schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "rules": {"type": "array", "items": {"type": "string"}, "description": "what the model is told"},
            "forbidden": {"type": "array", "items": {"type": "string"}, "description": "programs that no shell may start"},
        },
    },
)


class Rules:
    """A configuration. It never changes: several calls read it at the same time."""

    def __init__(self, config: dict[str, list[str]]) -> None:
        self.text = "\n".join(f"- {rule}" for rule in config.get("rules", []))
        self.forbidden = frozenset(config.get("forbidden", ["rm"]))


@plugin.configure
def configure(config: dict[str, list[str]]) -> Rules:
    for i, rule in enumerate(config.get("rules", [])):
        if "\n" in rule:
            raise ConfigError(f"/rules/{i}", "is more than one line")
    return Rules(config)


@plugin.hook("rules", kinds=["prompt_section"], needs=["nothing"])
def pre_prompt_compile(input: PrePromptCompile, call: Call[Rules]) -> PromptSection | None:
    """Tells the model the rules."""
    if call.config.text:
        return PromptSection(section_id="house", title="House rules", content=call.config.text)


# It says what it looks at: a host that does not show it the arguments does not run it, and says so.
@plugin.hook("guard", kinds=["decision"], role="validate", needs=["arguments"])
def tool_pre_call(input: ToolPreCall, call: Call[Rules]):
    """Denies shell commands that start a forbidden program."""
    if input.tool != "shell":
        return None  # no opinion
    command = input.arguments.get("command") if isinstance(input.arguments, dict) else None
    if "arguments" in call.withheld or not isinstance(command, str):
        return deny("the guard cannot see the command", code="unseen")
    try:
        words = set(shlex.split(command))
    except ValueError:
        return deny("the command cannot be read", code="unreadable")
    if found := words & call.config.forbidden:
        return deny(f"the house forbids {min(found)}", code="forbidden")


@plugin.hook("offer", kinds=["tool_bundle"], needs=["tool_calling"])
def pre_tools(input: PreTools, call: Call[Rules]) -> ToolBundle | None:
    """Offers the tool where the model can call any."""
    if input.tool_calling:
        return ToolBundle(bundle_id="house", tools=plugin.tools)


@plugin.tool(
    "word_count",
    description="Counts the words of a text.",
    input={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
def word_count(arguments: object, call: Call[Rules]) -> str | ToolResult:
    text = arguments.get("text") if isinstance(arguments, dict) else None
    if not isinstance(text, str):
        return ToolResult(content="give a text", is_error=True)  # for the model to read
    return f"{len(text.split())} words"


if __name__ == "__main__":
    serve(plugin)
