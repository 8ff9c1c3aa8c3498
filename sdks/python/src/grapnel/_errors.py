"""What handlers raise, and what the host's services raise in them."""

from __future__ import annotations


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
