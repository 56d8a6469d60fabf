"""Who else reaches the same memory: other arguments, and what a function captures."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from dualad.errors import AliasedArgumentsError, ShadowMismatchError
from dualad.levels import Active, bare
from dualad.structs import Const, spelled

Array = Any


def check_write(level: Any, plain: Array) -> None:
    """Raise if a level writes memory that is also reachable in another way.

    ``level.arguments`` holds what :class:`Arguments` is made of, until the first
    write; then what shares memory, and None if nothing does.
    """
    arguments = level.arguments
    if arguments.__class__ is tuple:
        arguments = level.arguments = list(Arguments(*arguments).shared()) or None
    for place, memory, other in arguments or ():
        if np.may_share_memory(plain, memory):
            raise AliasedArgumentsError(place, other)


class Arguments:
    """The memory that reaches a function, to see writes with two meanings."""

    __slots__ = ("args", "constants", "function", "leaves")

    def __init__(
        self,
        function: Any,
        leaves: list[tuple[Any, ...]],
        constants: list[tuple[str, Any]],
        args: Iterable[Any],
    ) -> None:
        """Remember the function, whose captured arrays count too, and all arguments.

        A leaf is (what carries it, _, the array f works on, the caller's, its place,
        ...).
        """
        self.function = function
        self.leaves = leaves
        self.constants = constants
        self.args = args

    def shared(self) -> Iterator[tuple[str, Array, str]]:
        """Find what shares memory with a differentiated argument."""
        others = [
            (f"{place}{path}, Const", x)
            for place, tree in self.constants
            for path, x in arrays_in(tree)
        ]
        others += [
            (f"argument {i}{path}, constant", x)
            for i, arg in enumerate(self.args)
            for path, x in constants_in(arg)
        ]
        others += [
            (f"{name}, captured by f", x) for name, x in captured_arrays(self.function)
        ]
        leaves = [leaf for leaf in self.leaves if leaf[2] is not None]
        found = [(bare(leaf[3]), leaf) for leaf in leaves]
        for leaf, other in overlapping(found, others):
            yield spelled(leaf[4]), bare(leaf[2]), other
        given = [(bare(leaf[1]), leaf) for leaf in leaves if leaf[1] is not None]
        for leaf, other in overlapping(given, []):
            yield spelled(leaf[4]), bare(leaf[2]), f"{other}, by its shadow"


def overlapping(
    arrays: list[tuple[Array, Any]], others: list[tuple[str, Array]]
) -> Iterator[tuple[Any, str]]:
    """Find leaves whose arrays overlap those of other leaves, or other arrays.

    Sorted by address: many arrays that are apart cost little.
    """
    extents: list[tuple[int, int, Array, Any, Any]] = [
        (*extent(x), x, leaf, None) for x, leaf in arrays if x.size
    ]
    extents += [(*extent(x), x, None, name) for name, x in others if x.size]
    extents.sort(key=lambda e: e[:2])
    open_: list[Any] = []
    for entry in extents:
        low, _, x, leaf, name = entry
        open_ = [earlier for earlier in open_ if earlier[1] > low]
        for _, _, y, other, other_name in open_:
            if not np.may_share_memory(x, y):
                continue
            if leaf is not None and other is not None and leaf[0] is other[0]:
                continue  # a tied leaf
            if leaf is not None:
                yield leaf, other_name or spelled(other[4])
            if other is not None:
                yield other, name or spelled(leaf[4])
        open_.append(entry)


def arrays_in(tree: Any, path: str = "", depth: int = 4) -> Iterator[tuple[str, Array]]:
    """Find the plain arrays in containers and objects, a few levels deep."""
    if isinstance(tree, Active):
        tree = bare(tree)
    if isinstance(tree, np.ndarray):
        yield path, tree
    elif depth == 0:
        return
    elif isinstance(tree, tuple | list):
        for i, item in enumerate(tree):
            yield from arrays_in(item, f"{path}[{i}]", depth - 1)
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from arrays_in(item, f"{path}[{key!r}]", depth - 1)
    elif hasattr(tree, "__dict__") and not isinstance(tree, type | FunctionType):
        for key, item in vars(tree).items():
            yield from arrays_in(item, f"{path}.{key}", depth - 1)


def constants_in(tree: Any, path: str = "") -> Iterator[tuple[str, Array]]:
    """Find the plain arrays inside a tree that are not differentiated."""
    if isinstance(tree, Const):
        if path:  # a whole argument is no part of a tree
            yield from arrays_in(tree.value, path)
    elif isinstance(tree, np.ndarray):
        if tree.dtype.kind not in "fc":
            yield path, tree
    elif isinstance(tree, tuple | list):
        for i, item in enumerate(tree):
            yield from constants_in(item, f"{path}[{i}]")
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from constants_in(item, f"{path}[{key!r}]")


def captured_arrays(function: Any) -> Iterator[tuple[str, Array]]:
    """Find the arrays that a function reaches without being given them.

    Looks into closures, defaults, the globals that its code names, ``__self__``, and
    functions found there.
    """
    seen: set[int] = set()
    waiting = [("f", function)]
    while waiting:
        name, found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, functools.partial):
            waiting += [(name, x) for x in (found.func, found.args, found.keywords)]
        elif isinstance(found, MethodType):
            waiting += [(name, found.__func__), ("self", found.__self__)]
        elif isinstance(found, FunctionType):
            waiting += captured_by(found)
        elif not isinstance(found, type):
            yield from ((f"{name}{path}", x) for path, x in arrays_in(found))


def captured_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Return the names and values that one function's code can reach."""
    for name, cell in zip(
        function.__code__.co_freevars, function.__closure__ or (), strict=True
    ):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for value in (
        *(function.__defaults__ or ()),
        *(function.__kwdefaults__ or {}).values(),
    ):
        yield "a default", value
    names = names_in(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            if value.__name__.split(".")[0] not in ("numpy", "dualad"):
                found = ((f"{name}.{n}", getattr(value, n, None)) for n in names)
                yield from ((n, x) for n, x in found if isinstance(x, np.ndarray))
        elif value is not None:
            yield name, value


def names_in(code: CodeType) -> set[str]:
    """Return the global names of a function's code and of the functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
    return names


def check_apart(what: str, shadows: list[Array], primals: list[Array]) -> None:
    """Raise if one of the caller's shadows overlaps any of the primals.

    Sorted by address, so that many arrays cost little.
    """
    extents = [(*extent(x), True, x) for x in shadows if x.size]
    extents += [(*extent(x), False, x) for x in primals if x.size]
    extents.sort(key=lambda e: e[0])
    ends: dict[bool, tuple[int, Array]] = {}
    for low, high, is_shadow, x in extents:
        end, other = ends.get(not is_shadow, (low, x))
        if low < end and shares_memory(x, other):
            shadow, primal = (x, other) if is_shadow else (other, x)
            remedy = f"A primal is its memory: use np.zeros_like for the {what}."
            raise ShadowMismatchError(what, "an argument", primal, shadow, remedy)
        if high > ends.get(is_shadow, (0, x))[0]:
            ends[is_shadow] = high, x


def shares_memory(x: Array, other: Array) -> bool:
    """Say whether an element is in both; yes if that is too hard to tell."""
    enough: Any = 1 << 16
    try:
        return np.shares_memory(x, other, max_work=enough)
    except np.exceptions.TooHardError:
        return True


def extent(x: Array) -> tuple[int, int]:
    """Return the first address of an array's memory and the one after its last."""
    return np.lib.array_utils.byte_bounds(x)
