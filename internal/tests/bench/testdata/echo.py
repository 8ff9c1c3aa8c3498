import sys

sys.path.insert(0, sys.argv[1])

from grapnel import Call, Plugin, PrePromptContext, PromptContext, serve  # noqa: E402

plugin = Plugin(name="echo", version="1.0.0", concurrency=128)


@plugin.hook("echo", kinds=["prompt_context"])
def pre_prompt_context(input: PrePromptContext, call: Call) -> PromptContext:
    return PromptContext(content=input.user_text.value)


serve(plugin)
