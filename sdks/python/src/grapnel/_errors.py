"""What handlers raise, and what the host's services raise in them."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


class PluginError(Exception):
    """PluginError is a failure with a code of the plugin's own, such as "upstream_down".

    The operator's failure policy decides what follows. A code is a word: lower-case letters, digits, "_" and ".".
    """

    code: str
    message: str
    retryable: bool
    """The same call may succeed later."""
    safe_for_user: bool
    """The message may be shown outside the operator's log."""

    def __init__(self, code: str, message: str = "", *, retryable: bool = False, safe_for_user: bool = False) -> None:
        super().__init__(message or code)
        self.code, self.message, self.retryable, self.safe_for_user = code, message, retryable, safe_for_user


class ConfigError(Exception):
    """ConfigError refuses the operator's configuration. The pointer (RFC 6901) leads to the mistake; "" is the whole."""

    pointer: str
    message: str

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer or 'the configuration'}: {message}")
        self.pointer, self.message = pointer, message


class HostError(Exception):
    """HostError is the answer of a host service that refuses or fails: "forbidden", "unavailable", "timeout", …

    A plugin should do without the answer then.
    """

    code: str
    message: str
    plugin_code: str
    retryable: bool

    def __init__(self, code: str, message: str, *, plugin_code: str = "", retryable: bool = False) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.plugin_code, self.retryable = code, message, plugin_code, retryable


class DeclarationError(ValueError):
    """DeclarationError is a mistake in a declaration. At import it ends the program with the place and the message alone."""


def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None, otherwise: Any = sys.excepthook) -> None:
    """Replaces sys.excepthook: shows a DeclarationError without its traceback."""
    if not isinstance(error, DeclarationError):
        otherwise(kind, error, trace)
        return
    place, kit = "", __file__.rpartition("_errors")[0]
    while trace:
        if not (name := trace.tb_frame.f_code.co_filename).startswith(kit):
            place = f"{name}:{trace.tb_lineno}: "
        trace = trace.tb_next
    sys.stderr.write(f"{place}{error}\n")


sys.excepthook = show
