"""The base class of everything that crosses the wire: plain objects whose annotations say how they are read and written.

Plain classes instead of dataclasses keep the import short: users wait while a plugin starts.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, TypeAlias

    from typing_extensions import Self, dataclass_transform

    JSON: TypeAlias = Any
    """Any JSON value: None, bool, int, float, str, list or dict."""
    Seconds: TypeAlias = float
    """A length of time. The wire carries whole nanoseconds."""
    Convert: TypeAlias = Callable[[Any], Any]
else:

    def dataclass_transform(**_):
        return lambda cls: cls


class Field:
    """Field is how one attribute is read from the wire and written to it."""

    __slots__ = ("name", "wire", "json", "read", "write", "default")

    def __init__(self, name: str, wire: str, json: bool, read: Convert | None, write: Convert, default: Any) -> None:
        self.name, self.wire, self.json, self.read, self.write, self.default = name, wire, json, read, write, default


REQUIRED = object()
"""The default of a field that has none."""


@dataclass_transform(kw_only_default=True)
class Message:
    """Message is a value with named fields. Its constructor takes them as keyword arguments."""

    _by_name: ClassVar[dict[str, Field]]
    _by_wire: ClassVar[dict[str, Field]]

    def __init__(self, **fields: Any) -> None:
        known = fields_of(type(self))
        for name in fields:
            if name not in known:
                raise TypeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(known)}")
        for field in known.values():
            if field.default is REQUIRED and field.name not in fields:
                raise TypeError(f"{type(self).__name__} needs the field {field.name!r}")
        self.__dict__ = fields

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in fields_of(type(self)))

    __hash__: ClassVar[None]  # type: ignore[assignment]  # mutable; Python sets it beside __eq__

    @classmethod
    def _read(cls, wire: dict[str, Any]) -> Self:
        """Makes a message of a host's JSON object. Unknown fields and nulls are absent."""
        known, message = wire_fields_of(cls), cls.__new__(cls)
        own = message.__dict__
        for key, value in wire.items():
            field = known.get(key)
            if field is not None and value is not None:
                own[field.name] = value if field.read is None else field.read(value)
        return message

    def _write(self) -> dict[str, Any]:
        """Returns the JSON object for the wire, without defaults. Raises TypeError if a field holds the wrong type."""
        own, wire = self.__dict__, {}
        for name, field in fields_of(type(self)).items():
            value = own.get(name, field.default)
            if value is field.default or not field.json and value == field.default:
                continue
            try:
                wire[field.wire] = field.write(value)
            except TypeError as error:
                raise TypeError(f"{type(self).__name__}.{name}: {error}") from None
        return wire


def fields_of(cls: type[Message]) -> dict[str, Field]:
    """Returns the fields of a class by attribute. They are worked out at the first use."""
    if "_by_name" not in cls.__dict__:
        # The order matters to a concurrent caller: who sees _by_name also sees _by_wire.
        found = {name: field(cls, name, note) for name, note in notes_of(cls).items()}
        cls._by_wire = {f.wire: f for f in found.values()}
        cls._by_name = found
    return cls._by_name


def wire_fields_of(cls: type[Message]) -> dict[str, Field]:
    """Returns the fields of a class by their names on the wire."""
    fields_of(cls)
    return cls._by_wire


def notes_of(cls: type[Message]) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in cls.__mro__[::-1]:
        notes: dict[str, str] = getattr(base, "__annotations__", {})
        found.update((k, v) for k, v in notes.items() if not v.startswith("ClassVar"))
    return found


def field(cls: type[Message], name: str, note: str) -> Field:
    wire = name.rstrip("_")  # from_ avoids a keyword
    json = note.endswith(("JSON", "JSON]"))
    if json:
        wire += "_json"
    elif note == "Seconds":
        wire += "_ns"
    read, write = converters(note, vars(sys.modules[cls.__module__]))
    return Field(name, wire, json, read, write, getattr(cls, name, REQUIRED))


def converters(note: str, names: dict[str, Any]) -> tuple[Convert | None, Convert]:
    """Returns how values of an annotation are read (None: as they are) and written."""
    if note.startswith("Sequence["):
        read, write = converters(note[9:-1], names)
        return (None if read is None else lambda v: [read(x) for x in v]), lambda v: [write(x) for x in listed(v)]
    if note.startswith("Mapping[str, "):
        _, write = converters(note[13:-1], names)
        return None, lambda v: {text(k): write(x) for k, x in checked(v, dict).items()}
    note = "str" if note.startswith("Literal[") else note.removesuffix(" | None")
    if note in SCALARS:
        return SCALARS[note]
    cls: type[Message] = names[note]
    return cls._read, lambda v: checked(v, cls)._write()


def checked(value: Any, *types: type) -> Any:
    if not isinstance(value, types) or isinstance(value, bool) and bool not in types:
        raise TypeError(f"want {types[0].__name__}, got {type(value).__name__}")
    return value


def text(value: Any) -> str:
    return value if type(value) is str else str.__str__(checked(value, str))


def listed(value: Any) -> Any:
    return value if type(value) is list else checked(value, list, tuple)


def whole(value: Any) -> int:
    """Checks an integer of the wire, which has 64 bits."""
    if not -1 << 63 <= checked(value, int) < 1 << 63:
        raise TypeError("the number does not fit 64 bits")
    return int(value)


def nanoseconds(value: Any) -> int:
    return whole(round(checked(value, float, int) * 1e9))


SCALARS: dict[str, tuple[Convert | None, Convert]] = {
    "str": (None, text),
    "int": (int, whole),
    "bool": (None, lambda v: checked(v, bool)),
    "float": (float, lambda v: float(checked(v, float, int))),
    "Seconds": (lambda v: int(v) / 1e9, nanoseconds),
    "JSON": (None, lambda v: v),
}
