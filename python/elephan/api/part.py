"""What the parts of a summary have in common; the parts themselves are generated, in `summary`."""

from functools import cache
from threading import Lock
from typing import Any, Self, get_args, get_type_hints

import msgspec

# Values that the one line of a part shows.
FIRST = 8
# msgspec prepares a class when it is first converted to, and gives what is half prepared to a thread that comes meanwhile.
_CONVERTING = Lock()


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a summary. `None` stands for what is undefined."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read what an engine or `to_dict` wrote. Raises `ValueError` with the place of what is wrong."""
        try:
            with _CONVERTING:
                return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"summary: {error}") from error

    def __repr__(self) -> str:
        """Its first values, in SI units to four digits, and how many parts it has of each kind."""
        known = [(name, value) for name, value in self.scalars().items() if value is not None]
        values = [f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in known]
        lists = [
            f"{len(each)} {name}"
            for name in self.__struct_fields__
            if (each := getattr(self, name)) and isinstance(each, tuple)
        ]
        return (
            f"<{type(self).__name__} {', '.join([*values[:FIRST], *(['...'] if len(values) > FIRST else []), *lists])}>"
        )

    def scalars(self) -> dict[str, Any]:
        """Every single value, in the order of declaration; names of nested parts are joined by `_`. Lists are left out."""
        flat: dict[str, Any] = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, Part):
                flat |= {f"{name}_{inner}": one for inner, one in value.scalars().items()}
            elif not isinstance(value, tuple) and not (value is None and name in _nested(type(self))):
                flat[name] = value
        return flat

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


@cache
def _nested(kind: type[Part]) -> set[str]:
    """The fields of a part that are parts themselves, which need not be there."""
    return {
        name
        for name, of in get_type_hints(kind).items()
        if any(isinstance(one, type) and issubclass(one, Part) for one in get_args(of)) and type(None) in get_args(of)
    }
