"""Families by name and as JSON, for settings and files.

Every subclass of `Family` is registered when it is defined. Files identify the families of this
package by name, and others by module and class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from apiece._base.check import unknown_name
from apiece.errors import StoreError

if TYPE_CHECKING:
    from apiece.laws._family import Family, FamilyLike

KNOWN: Final[dict[str, type[Family]]] = {}  # every family defined in this session


def key(cls: type[Family]) -> str:
    """Return the key of a family in files: its name, or module and class for other packages."""
    is_ours = cls.__module__.startswith("apiece.")
    return cls.name if is_ours else f"{cls.__module__}:{cls.__qualname__}"


def family_from_json(plain: Mapping[str, Any]) -> Family:
    """Return the family that `Family.to_json` described.

    Nothing is imported: a family of another package must be defined in this session.

    Raises
    ------
    StoreError
        If the family is not defined.
    """
    settings = dict(plain)
    called = settings.pop("family")
    if called not in KNOWN:
        module, colon, name = called.partition(":")
        if not colon:
            raise ValueError(f"unknown family {called!r}")
        raise StoreError(
            f"laws of the family {name} from {module} cannot be read: expected this family to be "
            f"defined, and nothing is imported for a file. Import {module} first."
        )
    return KNOWN[called](**{name: _setting(value) for name, value in settings.items()})


def _setting(value: Any) -> Any:
    """Return a setting of a family as it was before JSON."""
    if isinstance(value, Mapping):
        return family_from_json(value)
    return tuple(value) if isinstance(value, list) else value


def resolve_family(
    family: FamilyLike | Mapping[str, Any], k_range: tuple[int, int] | None = None
) -> Family:
    """Return the family that a setting names: a family, its name or its JSON.

    Parameters
    ----------
    family
        ``"power"``; ``"series"``, or with some of its terms such as ``"series24"``; ``"ridge"``
        and ``"blend"``, whose terms depend on the sampled sizes; the ``name`` of any other family
        that has been defined and needs no settings; a family, or its JSON.
    k_range
        The sampled sizes.

    Examples
    --------
    >>> resolve_family("series24")
    Series(terms=(2, 4))
    >>> resolve_family("ridge", (100, 1000))
    Ridge(shifts=(0, 30, 95, 300, 949, 3000, 9487))
    """
    from apiece.laws._family import Family  # which registers its subclasses here

    if isinstance(family, Family):
        return family
    if isinstance(family, Mapping):
        return family_from_json(family)
    if isinstance(family, str):
        for known in list(KNOWN.values()):
            resolved = known.from_word(family, k_range)
            if resolved is not None:
                return resolved
    raise unknown_name("family", family, dict.fromkeys(known.name for known in KNOWN.values()))
