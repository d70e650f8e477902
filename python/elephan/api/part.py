"""What the parts of a summary have in common; the parts themselves are generated, in `summary`."""

from typing import Any, Self

import msgspec


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a summary. `None` stands for what is undefined."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read what an engine or `to_dict` wrote. Raises `ValueError` with the place of what is wrong."""
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"summary: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain
