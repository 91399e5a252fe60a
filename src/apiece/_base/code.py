"""Identity of code: a digest of what a function, an object or an estimator does.

Two callables have the same digest if their code, constants, defaults, closures and the state of the
objects they hold are the same; a name, a comment or a docstring does not matter. Code of installed
packages counts by its name alone, and parameters of estimators only where they differ from their
defaults, so that an upgrade of a package does not change a digest.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np

_PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis))
_PACKAGE: Final = __name__.partition(".")[0]
# What Python itself writes into a class.
_GIVEN: Final = frozenset(
    (
        *("__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__qualname__"),
        *("__firstlineno__", "__static_attributes__", "__abstractmethods__", "_abc_impl"),
        *("__annotate_func__", "__annotations_cache__", "__annotate__", "__slotnames__"),
    )
)


def code_digest(value: Any) -> str:
    """Return the digest of what ``value`` does.

    It ends with the version of Python if code outside installed packages is part of it: the same
    source is compiled differently by another version.

    >>> code_digest(lambda x: x + 1) == code_digest(lambda y: y + 1)
    True
    >>> code_digest(lambda x: x + 1) == code_digest(lambda x: x + 2)
    False
    """
    form = _Form()
    text = repr(form.of(value)).encode()
    digest = hashlib.blake2b(text, digest_size=16).hexdigest()
    return f"{digest}-{_PYTHON}" if form.has_code else digest


def may_be_same_code(one: str, two: str) -> bool:
    """Whether two digests are equal, or come from versions of Python that cannot be compared."""
    return one == two or one.partition("-")[2] != two.partition("-")[2]


def changed_params(estimator: Any) -> dict[str, Any]:
    """Return the parameters of a scikit-learn estimator that differ from their defaults."""
    params = estimator.get_params(deep=False)
    try:
        known = inspect.signature(type(estimator).__init__).parameters
    except (TypeError, ValueError):
        return dict(sorted(params.items()))
    return {
        name: params[name]
        for name in sorted(params)
        if name not in known or _Form().of(params[name]) != _Form().of(known[name].default)
    }


class _Form:
    """Turns objects into nested tuples of text that are equal if the objects do the same."""

    def __init__(self) -> None:
        self.has_code = False
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that an id is not given to another object

    def of(self, value: Any) -> Any:
        """Return the form of any object."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, _PLAIN):
            return (type(value).__name__, repr(value))
        if id(value) in self._seen:
            return ("again", self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        for kind, form in _KINDS:
            if isinstance(value, kind):
                return form(self, value)
        return self._object(value)

    def _array(self, value: Any) -> Any:
        if value.dtype.hasobject:
            return ("array", self.of(value.tolist()))
        data = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
        return ("array", value.dtype.str, value.shape, data)

    def _many(self, value: Any) -> Any:
        return (type(value).__name__, [self.of(item) for item in value])

    def _set(self, value: Any) -> Any:
        return ("set", sorted(repr(_Form().of(item)) for item in value))

    def _mapping(self, value: Any) -> Any:
        return ("dict", sorted((repr(self.of(key)), self.of(item)) for key, item in value.items()))

    def _partial(self, value: Any) -> Any:
        return ("partial", self.of(value.func), self.of(value.args), self.of(value.keywords))

    def _method(self, value: Any) -> Any:
        return ("method", self.of(value.__func__), self.of(value.__self__))

    def _property(self, value: Any) -> Any:
        return ("property", [self.of(part) for part in (value.fget, value.fset, value.fdel)])

    def _wrapper(self, value: Any) -> Any:
        return (type(value).__name__, self.of(value.__func__))

    def _module(self, value: Any) -> Any:
        return ("module", value.__name__)

    def _named(self, value: Any) -> Any:
        name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
        return ("name", getattr(value, "__module__", None), name)

    def _function(self, value: Any) -> Any:
        if _is_installed(value) and "<" not in value.__qualname__:
            return self._named(value)
        cells = []
        for cell in value.__closure__ or ():
            try:
                cells.append(self.of(cell.cell_contents))
            except ValueError:  # not filled yet
                cells.append(("empty",))
        used = {
            name: self.of(value.__globals__[name])
            for name in sorted(set(_names(value.__code__)))
            if name in value.__globals__
        }
        defaults = self.of(value.__defaults__), self.of(value.__kwdefaults__)
        return ("function", self._code(value.__code__, value.__doc__), defaults, cells, used)

    def _code(self, code: types.CodeType, doc: str | None = None) -> Any:
        self.has_code = True
        constants = [
            self._code(item, _doc_of(item))
            if isinstance(item, types.CodeType)
            else self.of(None if doc is not None and item == doc else item)
            for item in code.co_consts
        ]
        return (code.co_code.hex(), code.co_names, len(code.co_varnames), constants)

    def _class(self, value: Any) -> Any:
        if _is_installed(value) and "<" not in value.__qualname__:
            return self._named(value)
        parts = {
            name: self.of(part)
            for name, part in sorted(vars(value).items())
            if name not in _GIVEN
            and (callable(part) or not isinstance(part, types.MemberDescriptorType))
        }
        return ("class", value.__qualname__, [self.of(base) for base in value.__bases__], parts)

    def _object(self, value: Any) -> Any:
        kind = self.of(type(value))
        if hasattr(value, "get_params") and hasattr(value, "fit"):
            return ("estimator", kind, self.of(changed_params(value)))
        try:
            state = value.__getstate__()
        except Exception:  # an object that cannot be copied, such as a lock
            return ("object", kind)
        return ("object", kind, self.of(state))


def _names(code: types.CodeType) -> Iterable[str]:
    """Yield the global names that code and the functions inside it may use."""
    yield from code.co_names
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            yield from _names(item)


def _doc_of(code: types.CodeType) -> str | None:
    """Return what may be the docstring of a function inside a function."""
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) and code.co_name != "<lambda>" else None


_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})  # folders


@functools.cache
def _homes() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({Path(sysconfig.get_paths()[name]).resolve() for name in names})


def _is_installed(value: Any) -> bool:
    """Whether code belongs to Python or an installed package, which have versions."""
    name = getattr(value, "__module__", None) or ""
    if name.partition(".")[0] in (_PACKAGE, "builtins"):
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return name in sys.builtin_module_names
    where = Path(file).resolve()
    is_package = not _PACKAGES.isdisjoint(where.parts)  # of the user, or of another environment
    return is_package or any(home in where.parents for home in _homes())


_KINDS: Final[tuple[tuple[Any, Callable[[_Form, Any], Any]], ...]] = (
    (np.ndarray, _Form._array),
    ((list, tuple), _Form._many),
    ((set, frozenset), _Form._set),
    ((dict, types.MappingProxyType), _Form._mapping),
    (functools.partial, _Form._partial),
    (types.MethodType, _Form._method),
    (property, _Form._property),
    ((staticmethod, classmethod), _Form._wrapper),
    (types.ModuleType, _Form._module),
    (types.FunctionType, _Form._function),
    ((types.BuiltinFunctionType, types.MethodDescriptorType, np.ufunc), _Form._named),
    (type, _Form._class),
)
