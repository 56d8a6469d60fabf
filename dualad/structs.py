"""Trees of arrays: tuples, lists and dicts whose leaves are differentiated.

Leaves are real and complex floating arrays and numbers; integers, booleans, strings
and None inside a tree are shared, not differentiated.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dualad.errors import (
    EscapedArrayError,
    NotDifferentiableError,
    ShadowMismatchError,
    StructureMismatchError,
)
from dualad.levels import Active, Level, bare, laid_out_like, overlaps_itself
from dualad.rules.views import copied

Array = Any
Tree = Any
SEQUENCES = (tuple, list)
SHARED = (bool, int, str, bytes, type(None), np.bool_, np.integer, np.dtype, type)


class Const:
    """Mark an argument as constant: it is not differentiated.

    Parameters
    ----------
    value : any
        Passed to the function as it is.  An array may share memory with a
        differentiated argument and is constant all the same.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> w = np.array([1.0, 2.0])
    >>> ad.gradient(lambda w, old: np.sum(np.exp(w - old)), w, ad.Const(w))
    array([1., 1.])
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        """Hold the value."""
        self.value = value

    def __repr__(self) -> str:
        """Show the value."""
        return f"Const({self.value!r})"


def is_leaf(x: Any) -> bool:
    """Say whether ``x`` is an array or number that can be differentiated."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return isinstance(x, float | complex)
    if isinstance(x, np.ma.MaskedArray | np.matrix):
        return False
    return isinstance(x, np.ndarray | np.generic | Active) and dtype.kind in "fc"


def map_tree(function: Callable[[Any, Any], Any], tree: Tree, place: Any = 0) -> Tree:
    """Return the tree with ``function(place, leaf)`` for each leaf.

    Places are spelled out only when somebody asks, see :func:`spelled`.
    """
    return map_trees(function, (tree,), place)


def map_trees(
    function: Callable[..., Any],
    trees: tuple[Tree, ...],
    place: Any = 0,
    what: str = "shadow",
) -> Tree:
    """Return the first tree with ``function(place, leaf, *others)`` for each leaf.

    The other trees have the same structure; where one is None, so are its leaves.
    """
    tree, *others = trees
    if isinstance(tree, dict):
        check_structure(tree, others, place, what)
        items = {
            key: map_trees(
                function,
                (item, *(None if o is None else o[key] for o in others)),
                (place, key),
                what,
            )
            for key, item in tree.items()
        }
        return with_items(tree, items)
    if isinstance(tree, SEQUENCES):
        check_structure(tree, others, place, what)
        mapped = [
            map_trees(
                function,
                (item, *(None if o is None else o[i] for o in others)),
                (place, i),
                what,
            )
            for i, item in enumerate(tree)
        ]
        return with_sequence(tree, mapped)
    if is_leaf(tree):
        return function(place, *trees)
    return shared(tree, place, lambda number: function(place, number, *others))


def shared(tree: Any, place: Any, function: Callable[[float], Any]) -> Any:
    """Return what is not differentiated inside a tree; an argument's int is a leaf."""
    if place.__class__ is not tuple:  # the argument itself
        if tree.__class__ is int:
            return function(float(tree))
    elif tree.__class__ is Const:
        return tree.value
    elif isinstance(tree, SHARED) or (
        isinstance(tree, np.ndarray) and tree.dtype.kind in "biuSUmM"
    ):
        return tree
    raise NotDifferentiableError(spelled(place), tree)


def with_sequence(tree: Any, items: list[Any]) -> Any:
    """Return a sequence of the class of ``tree`` (a named tuple, say)."""
    kind = type(tree)
    return kind(*items) if hasattr(tree, "_fields") else kind(items)


def with_items(tree: dict[Any, Any], items: dict[Any, Any]) -> dict[Any, Any]:
    """Return a dict of the class of ``tree`` (a defaultdict, say) with other items."""
    if type(tree) is dict:
        return items
    new = copy.copy(tree)
    for key, item in items.items():  # the update of a Counter adds
        new[key] = item
    return new


def tied_mismatch(what: str, place: Any, x: Any, given: Any) -> ShadowMismatchError:
    """Return the error for two leaves that are one array but got two shadows."""
    return ShadowMismatchError(
        what,
        spelled(place),
        x,
        given,
        f"The same array is in the argument twice: give both places one {what}, or "
        "copy the array.",
    )


def spelled(place: Any) -> str:
    """Return a place in words: ``((0, "w"), 1)`` is ``argument 0['w'][1]``."""
    keys: list[str] = []
    while isinstance(place, tuple):
        place, key = place
        keys.append(f"[{key!r}]")
    root = f"argument {place}" if isinstance(place, int) else place
    return root + "".join(reversed(keys))


def check_empty(place: Any, tree: Tree) -> None:
    """Raise for an argument without any leaf, unless it is an empty container."""
    if not isinstance(tree, tuple | list | dict) or len(tree):
        raise NotDifferentiableError(spelled(place), tree)


def check_structure(tree: Tree, others: Iterable[Tree], place: Any, what: str) -> None:
    """Raise unless the other trees have the same keys or length here."""
    for other in others:
        if other is None:
            continue
        if isinstance(tree, dict):
            fits = isinstance(other, dict) and other.keys() == tree.keys()
        else:
            fits = isinstance(other, tuple | list) and len(other) == len(tree)
        if not fits:
            raise StructureMismatchError(
                what, spelled(place), outline(tree), outline(other)
            )


def outline(tree: Tree) -> str:
    """Return the kind and size of a tree's root in words."""
    if isinstance(tree, dict):
        return f"dict with keys {list(tree)!r:.60}"
    if isinstance(tree, tuple | list):
        return f"{type(tree).__name__} of {len(tree)}"
    return type(tree).__name__


def skeleton(tree: Tree) -> Tree:
    """Return a tree of the same items in containers of its own.

    What happens to the caller's containers from then on does not move its leaves.
    """
    return map_output(lambda x: x, tree)


def leaves(tree: Tree) -> list[Array]:
    """Return the differentiable leaves of a tree in order."""
    found: list[Array] = []
    map_tree(lambda _, x: found.append(x), tree)
    return found


def twin(x: Array) -> Array:
    """Return a copy of an array of which NumPy takes views, or refuses, as of it.

    An active array keeps its layout only if it is dense.
    """
    if isinstance(x, Active):
        copy = copied(x, order="K")
    elif x.flags.forc:
        copy = x.copy("K")
    else:
        copy = laid_out_like(x)
        copy[...] = x
    bare(copy).flags.writeable = bare(x).flags.writeable
    return copy


def without_overlap(x: Array) -> Array:
    """Return ``x``, or a read-only copy if elements of ``x`` share memory."""
    if overlaps_itself(x):
        x = x.copy("K")
        x.flags.writeable = False
    return x


def fitting(what: str, place: Any, primal: Array, given: Array) -> Array:
    """Return a tangent or cotangent as an array that fits its primal, or raise."""
    if not isinstance(given, Active):
        if not isinstance(given, np.ndarray | np.generic):
            given = np.asarray(given)
        if given.dtype.kind not in "biufc" or isinstance(given, np.ma.MaskedArray):
            raise ShadowMismatchError(what, spelled(place), primal, given)
    if np.shape(given) != np.shape(primal) or (
        given.dtype.kind == "c" and primal.dtype.kind != "c"
    ):
        raise ShadowMismatchError(
            what,
            spelled(place),
            primal,
            given,
            f"Give the {what} the shape {np.shape(primal)} and a dtype that casts to "
            f"{primal.dtype}.",
        )
    return given


def check_given(what: str, place: Any, primal: Array, given: Any) -> None:
    """Raise unless an array of the caller's can be the shadow or tangent of another."""
    place = spelled(place)
    if isinstance(given, Active) and isinstance(primal, Active):
        if given.shape != primal.shape or given.dtype != primal.dtype:
            raise ShadowMismatchError(what, place, primal, given)
        return
    if isinstance(primal, Active):
        remedy = (
            f"The primal is active: allocate the {what} with np.zeros_like(primal)."
        )
        raise ShadowMismatchError(what, place, primal, given, remedy)
    if (
        not isinstance(given, np.ndarray)
        or isinstance(given, np.ma.MaskedArray)
        or given.shape != primal.shape
        or given.dtype != primal.dtype
    ):
        raise ShadowMismatchError(what, place, primal, given)
    if not given.flags.writeable or overlaps_itself(given):
        remedy = f"Give it a writable {what} without overlap: np.zeros_like(primal)."
        raise ShadowMismatchError(what, place, primal, given, remedy)


def as_primal(x: Any) -> Any:
    """Return a leaf as an array or NumPy scalar: Python numbers become NumPy's."""
    if type(x) is float:
        return np.float64(x)
    if type(x) is complex:
        return np.complex128(x)
    if isinstance(x, np.ndarray):
        # np.memmap: the same memory in the class of all others.
        x = np.asarray(x)
        return x if x.flags.forc else without_overlap(x)
    return x


def as_memory(given: Any) -> Any:
    """Return an array of a subclass (np.memmap) as plain: the same memory."""
    if isinstance(given, np.ndarray) and not isinstance(given, np.ma.MaskedArray):
        return np.asarray(given)
    return given


def map_output(function: Any, output: Tree) -> Tree:
    """Map over everything in an output that is not a tuple, list or dict."""
    kind = output.__class__
    if kind is dict or isinstance(output, dict):
        items = {}
        for key, item in output.items():
            items[key] = (
                function(item)  # the usual leaf, seen at once
                if isinstance(item, Active)
                else map_output(function, item)
            )
        return items if kind is dict else with_items(output, items)
    if isinstance(output, tuple | list):
        return with_sequence(output, [map_output(function, item) for item in output])
    return function(output)


def stripped(tree: Any, level: Level) -> Any:
    """Return a tree in which arrays of ``level`` are copies of their values."""
    if isinstance(tree, Active):
        if tree.level is not level:
            return tree
        primal = tree.primal
        return primal.copy() if isinstance(bare(primal), np.ndarray) else primal
    if isinstance(tree, dict):
        return with_items(tree, {k: stripped(v, level) for k, v in tree.items()})
    if isinstance(tree, tuple | list):
        return with_sequence(tree, [stripped(v, level) for v in tree])
    return without_active(tree)


def without_active(x: Any) -> Any:
    """Return an object, or raise if active arrays would leave a derivative in it."""
    if hasattr(x, "__dict__") and any(isinstance(v, Active) for v in vars(x).values()):
        raise EscapedArrayError(
            f"Active arrays would leave their derivative inside a {type(x).__name__}.",
            "Return tuples, lists or dicts of arrays, or dualad.primal of each value.",
        )
    return x


def primal(x: Tree) -> Tree:
    """Return the value of an active array, or of all in a tree, stripped of all levels.

    A copy; plain arrays are copied too.  The derivative ends here: use it to print or
    store values.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> ad.primal(np.ones(2))
    array([1., 1.])
    """
    if isinstance(x, Active):
        x = bare(x)
    if isinstance(x, np.ndarray):
        return x.copy("K")
    if isinstance(x, dict):
        return with_items(x, {key: primal(item) for key, item in x.items()})
    if isinstance(x, tuple | list):
        return with_sequence(x, [primal(item) for item in x])
    return x


def stop_gradient(x: Tree) -> Tree:
    """Return ``x`` as a constant: a copy that carries no derivative.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> ad.gradient(lambda x: np.sum(x * ad.stop_gradient(x)), np.array([3.0]))
    array([3.])
    """
    return primal(x)
