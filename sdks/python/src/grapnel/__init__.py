"""Grapnel plugins in Python: a `Plugin` is data, decorators add hooks and tools to it, and `serve` runs it.

    from grapnel import Plugin, deny, serve

    plugin = Plugin(name="house", version="1.0.0")

    @plugin.hook("guard", kinds=["decision"], role="validate", needs=["arguments"])
    def tool_pre_call(input, call):
        if input.tool == "shell":
            return deny("no shell here")

    if __name__ == "__main__":
        serve(plugin)
"""

from . import _stdio, _types
from ._call import AsyncHost, Call, Cancellation, Completion, Host
from ._errors import ConfigError, HostError, PluginError
from ._plugin import Plugin, Setup, allow, ask, deny
from ._types import *  # noqa: F403

__all__ = [
    "AsyncHost", "Call", "Cancellation", "Completion", "ConfigError", "Host", "HostError", "Plugin", "PluginError", "Setup",
    "allow", "ask", "deny", "serve",
]  # fmt: skip
__all__ += _types.__all__
__version__ = "0.1.0"


def serve(plugin: Plugin) -> None:
    """Serves the plugin on stdin and stdout until the host ends the session. It does not return.

    In a program that a host has started, print() and the output of child processes go to stderr from the import of
    grapnel on, and stdin is empty.
    """
    from ._serve import serve

    serve(plugin)


_stdio.take_over()
