"""Frozen records that are read from JSON, checked by the types of their fields, and written back.

What a record does not name is kept in its ``more``, so that it is written as it was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints


@dataclass(frozen=True, kw_only=True)
class Record:
    """Facts with names and types, and everything else in the JSON.

    Parameters
    ----------
    more
        Entries of the JSON that no other field names.
    """

    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: object, where: str = "", *, strict: bool = True) -> Self:
        """Return the record that JSON holds.

        Parameters
        ----------
        content
            The parsed JSON.
        where
            Path of the record in the file, such as ``dataset.``, for messages.
        strict
            Whether a value of the wrong type, or out of range, is an error; if not, it is kept in
            ``more`` as if the field had another name.

        Raises
        ------
        ValueError
            If a field is missing, or (if ``strict``) its value is of the wrong type or out of
            range.
        """
        record: Self = _record(cls, content, where, strict)
        return record

    def to_json(self) -> dict[str, Any]:
        """Return the record for JSON; fields with their default value are left out."""
        return _plain(self)


def _record(cls: Any, content: object, where: str, strict: bool = True) -> Any:
    """Read a dataclass, see `Record.from_json`."""
    if not isinstance(content, Mapping):
        raise ValueError(f"{where.rstrip('.') or 'it'} is not an object")
    hints, known = get_type_hints(cls, include_extras=True), {}
    for part in fields(cls):
        if part.name in content and part.name != "more":
            try:
                known[part.name] = _value(hints[part.name], content[part.name], where + part.name)
            except ValueError:
                if strict:
                    raise
        elif part.default is part.default_factory is MISSING:
            raise ValueError(f"{where}{part.name} is missing")
    more = {name: value for name, value in content.items() if name not in known}
    if more and "more" not in hints:
        raise ValueError(f"{where}{next(iter(more))} is not known")
    return cls(**known, **({"more": more} if more else {}))


def _value(hint: Any, value: Any, where: str) -> Any:
    """Return a value of JSON if it is of the type that a field has."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        (hint,) = (argument for argument in arguments if argument is not NoneType)
        return None if value is None else _value(hint, value, where)
    if is_dataclass(hint):
        return _record(hint, value, f"{where}.")
    if origin is Annotated:
        is_right = type(value) is int and value in arguments[1]
    elif hint is float:
        is_right = type(value) in (int, float)
    else:
        is_right = type(value) is (origin or hint)
    if not is_right:
        raise ValueError(f"{where} is {value!r}")
    return value


def _plain(record: Any) -> dict[str, Any]:
    fields_of_record = {}
    for part in fields(record):
        value = getattr(record, part.name)
        if part.name != "more" and value != part.default and value != {}:
            fields_of_record[part.name] = _plain(value) if is_dataclass(value) else value
    return {**fields_of_record, **getattr(record, "more", {})}
