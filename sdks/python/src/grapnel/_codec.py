"""JSON lines: what the host may send, and what a plugin may answer.

The C parts of the json module are used directly where they are there: json itself imports re and enum, which takes a
plugin longer than everything else in its start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that reorder text for the eye. The host refuses answers with them."""


def refuse(value: Any) -> Any:
    raise TypeError(f"a {type(value).__name__} is not JSON")


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class Reading:
    """Reading holds the options of the C scanner, by the names that it looks for."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float: Callable[[str], Any] = float
    parse_int: Callable[[str], Any] = int
    parse_constant = staticmethod(refuse_constant)
    memo: dict[str, str] = {}


class LenientReading(Reading):
    """LenientReading takes integers of more digits than int() as floats, as most languages do."""

    parse_int = staticmethod(lambda digits: int(digits) if len(digits) < 4000 else float(digits))


def private() -> tuple[Callable[[str], Any], Callable[[str], Any], Callable[[Any], str]]:
    """Returns scanners and writer from the C module behind json. Fails where a Python has another one."""
    import _json

    def loads(scan: Callable[[str, int], tuple[Any, int]]) -> Callable[[str], Any]:
        def load(text: str) -> Any:
            value, end = scan(text, 0)
            if end != len(text):
                raise ValueError("the line holds more than one value")
            return value

        return load

    encoder = _json.make_encoder(None, refuse, _json.encode_basestring, None, ":", ",", False, False, False)
    join = "".join

    def dumps(value: Any) -> str:
        return join(encoder(value, 0))

    scanner: Any = _json.make_scanner
    strict, lenient = loads(scanner(Reading)), loads(scanner(LenientReading))
    if dumps(strict('{"a": [1, 2.5, "\\u00e4"]}')) != '{"a":[1,2.5,"ä"]}':
        raise ImportError("the private parts of json have changed")
    return strict, lenient, dumps


def public() -> tuple[Callable[[str], Any], Callable[[str], Any], Callable[[Any], str]]:
    """Returns the same from the json module."""
    import json

    strict = json.JSONDecoder(parse_constant=refuse_constant).decode
    lenient = json.JSONDecoder(parse_constant=refuse_constant, parse_int=LenientReading.parse_int).decode
    form: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":"), "check_circular": False}
    return strict, lenient, json.JSONEncoder(**form, default=refuse).encode


try:
    _strict, _lenient, _dumps = private()
except (ImportError, AttributeError, TypeError, ValueError):
    _strict, _lenient, _dumps = public()


def decode(line: bytes) -> Any:
    """Reads a line. Raises ValueError, or RecursionError for a value that is too deep."""
    text = line.decode().strip()
    try:
        return _strict(text)
    except (StopIteration, SystemError):  # the C scanner raises the latter where json.decoder was never imported
        raise ValueError("the line is not JSON") from None
    except ValueError:
        return _lenient(text)


def encode(value: Any) -> bytes:
    """Writes a value as one line, without the newline. Raises ValueError or TypeError for what the contract forbids."""
    try:
        text = _dumps(value)
    except RecursionError:
        raise ValueError("the value is nested too deep, or holds itself") from None
    if not text.isascii() and (found := [c for c in REORDERING if c in text]):
        raise ValueError(f"text with a character that reorders text (U+{ord(found[0]):04X})")
    if "\\u0000" in text and "\\u0000" in text.replace("\\\\", ""):
        raise ValueError("text with a NUL")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text with half a surrogate pair (U+{ord(text[error.start]):04X})") from None


def clean(text: object, limit: int = 4096) -> str:
    """Returns a text for a message: bounded, and without what encode refuses."""
    text = str(text)[:limit].encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    return text if text.isascii() else "".join("\ufffd" if c in REORDERING else c for c in text)
