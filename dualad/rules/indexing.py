"""Reading and writing by index, and functions that move elements to other places.

What is read by an index lands, on the way back, on the same index: a
:class:`Scatter`.  Functions that write into their first argument are written as
``a[index] = value``, the one primitive write.

Some functions move elements in an intricate way.  Their trick is *labels*: NumPy's
own function on ``arange`` tells where each element of the result comes from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualad.errors import UnsupportedArgumentError
from dualad.rules.kinds import Array, Scatter, composition, linear, overridable
from dualad.rules.views import array_of, without_box

# --- words -----------------------------------------------------------------------


def labels(x: Array) -> Array:
    """Return the number of each element of ``x``, in its shape."""
    return np.arange(np.size(x)).reshape(np.shape(x))


def at_labels(numbers: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return the index of the elements with these numbers in an array of ``shape``."""
    index: tuple[Array, ...] = np.unravel_index(numbers, shape)
    return index


def along(axis: Any, index: Any, ndim: int) -> tuple[Any, ...]:
    """Return the index that says ``index`` along one axis and all of the others."""
    return (*(slice(None),) * (axis % ndim), index)


def within(indices: Any, length: int, mode: str) -> Array:
    """Return valid indices as numbers from zero, as ``np.take`` reads them."""
    indices = np.asarray(indices)
    if mode == "wrap":
        return indices % length
    if mode == "clip":
        return np.clip(indices, 0, length - 1)
    return np.where(indices < 0, indices + length, indices)


def scattered(y_bar: Array, indices: Array, axis: Any, x: Array) -> Any:
    """Say that ``y_bar`` belongs at ``indices`` along an axis, or of the flat array."""
    if np.ndim(x) == 0:
        return np.sum(y_bar)
    if np.size(x) == 0:  # NumPy takes anything from it as long as the result is empty
        return np.zeros(np.shape(x))
    if axis is None:
        return Scatter(at_labels(indices, np.shape(x)), y_bar)
    return Scatter(along(axis, indices, np.ndim(x)), y_bar)


# --- reading ---------------------------------------------------------------------


@overridable
def gathered(x: Array, index: Any) -> Array:
    """Return ``x[index]`` for an advanced index: a copy."""
    return x[index]


def names_no_element_twice(index: Any) -> bool:
    """Say whether an index holds masks, slices and numbers only."""
    entries = index if isinstance(index, tuple) else (index,)
    return not any(
        isinstance(e, list) or (np.ndim(e) > 0 and np.asarray(e).dtype.kind != "b")
        for e in entries
        if not isinstance(e, slice) and e is not None and e is not Ellipsis
    )


def ungathered(y_bar: Array, y: Array, x: Array, index: Any) -> Scatter:
    """Put what was read back at its index."""
    return Scatter(index, y_bar, unique=names_no_element_twice(index))


def untaken(
    y_bar: Array,
    y: Array,
    a: Array,
    indices: Any,
    axis: Any = None,
    mode: str = "raise",
) -> Any:
    """Put what was taken back at its indices."""
    length = np.size(a) if axis is None else np.shape(a)[axis]
    return scattered(y_bar, within(indices, length, mode), axis, a)


def index_along(indices: Array, shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """Return the index that ``np.take_along_axis`` stands for."""
    ndim = len(shape)
    index: list[Any] = [
        np.arange(n).reshape((-1,) + (1,) * (ndim - 1 - i)) for i, n in enumerate(shape)
    ]
    index[axis] = indices
    return tuple(index)


def untaken_along(
    y_bar: Array,
    y: Array,
    arr: Array,
    indices: Array,
    axis: Any = -1,
) -> Any:
    """Put what was taken along an axis back at its indices."""
    if axis is None:
        return scattered(y_bar, within(indices, np.size(arr), "raise"), None, arr)
    return Scatter(index_along(indices, np.shape(arr), axis), y_bar)


def unrepeated(y_bar: Array, y: Array, a: Array, repeats: Any, axis: Any = None) -> Any:
    """Add the repetitions of each entry."""
    shape = np.shape(a)
    length = np.size(a) if axis is None else shape[axis]
    if np.size(repeats) != 1:
        return scattered(y_bar, np.repeat(np.arange(length), repeats), axis, a)
    times = int(np.reshape(repeats, ()))
    if axis is None:
        return np.sum(np.reshape(y_bar, (*shape, times)), axis=-1)
    axis %= len(shape)
    split = (*shape[: axis + 1], times, *shape[axis + 1 :])
    return np.sum(np.reshape(y_bar, split), axis=axis + 1)


linear(gathered, ungathered)
linear(np.take, untaken)
linear(np.take_along_axis, untaken_along)
linear(np.repeat, unrepeated)


def labelled(a: Array, numbers: Array) -> Array:
    """Return the elements of ``a`` that have these labels: always an array."""
    return np.reshape(np.take(a, np.ravel(numbers)), np.shape(numbers))


def truth(condition: Any) -> Array:
    """Return a condition as plain truth values, whatever array it is."""
    return np.not_equal(condition, 0)


@composition(np.compress)
def compress(condition: Any, a: Array, axis: Any = None, out: Any = None) -> Array:
    """Take what the condition names along an axis."""
    return labelled(a, np.compress(truth(condition), labels(a), axis=axis))


@composition(np.extract)
def extract(condition: Any, arr: Array) -> Array:
    """Take the elements that the condition names."""
    return labelled(arr, np.extract(truth(condition), labels(arr)))


@composition(np.delete)
def delete(arr: Array, obj: Any, axis: Any = None) -> Array:
    """Take what is left."""
    return labelled(arr, np.delete(labels(arr), obj, axis=axis))


@composition(np.insert)
def insert(arr: Array, obj: Any, values: Any, axis: Any = None) -> Array:
    """Take each element from the array or from the values, by their labels."""
    arr, values = array_of(arr), array_of(values)
    merged = np.insert(labels(arr), obj, np.size(arr) + labels(values), axis=axis)
    values = np.ravel(values).astype(arr.dtype)
    return labelled(np.concatenate([np.ravel(arr), values]), merged)


@composition(np.resize)
def resize(a: Array, new_shape: Any) -> Array:
    """Repeat the array until it fills the new shape."""
    if np.size(a) == 0:
        return np.zeros(new_shape, a.dtype)
    return labelled(a, np.resize(labels(a), new_shape))


# --- choosing --------------------------------------------------------------------


@overridable
def chosen(condition: Any, x: Array, y: Array) -> Array:
    """Return ``np.where(condition, x, y)``."""
    return np.where(condition, x, y)


# fmt: off
linear(chosen, None, lambda z_bar, z, c, x, y: np.where(c, z_bar, 0.0),
                     lambda z_bar, z, c, x, y: np.where(c, 0.0, z_bar))
# fmt: on


@composition(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Choose between two arrays, or say where the condition holds."""
    if x is None and y is None:
        return np.nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    return chosen(condition, x, y)


@composition(np.clip)
def clip(
    a: Array,
    a_min: Any = np._NoValue,  # noqa: SLF001 -- NumPy has no public name for it
    a_max: Any = np._NoValue,  # noqa: SLF001
    out: Any = None,
    *,
    min: Any = np._NoValue,  # noqa: A002, SLF001
    max: Any = np._NoValue,  # noqa: A002, SLF001
    **kwargs: Any,
) -> Array:
    """Bound an array; a bound that is None does not bind."""
    if kwargs.get("where", True) is not True:
        raise UnsupportedArgumentError(
            "np.clip", "where", kwargs["where"], "Use np.where on its result."
        )
    low, high = bounds(a_min, a_max, min, max)
    if low is not None:
        a = np.maximum(a, low, **kwargs)
    if high is not None:
        a = np.minimum(a, high, **kwargs)
    return np.positive(a, **kwargs) if low is None and high is None else a


def bounds(a_min: Any, a_max: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return both bounds of ``np.clip``, given under their old or new names."""
    missing = np._NoValue  # noqa: SLF001
    if a_min is missing and a_max is missing:
        return (None if low is missing else low), (None if high is missing else high)
    if a_min is missing or a_max is missing:
        name = "a_min" if a_min is missing else "a_max"
        raise TypeError(f"clip() missing 1 required positional argument: {name!r}")
    if low is not missing or high is not missing:
        raise ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are "
            "provided is forbidden."
        )
    return a_min, a_max


@composition(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    """Choose the first of several arrays whose condition holds."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        if np.asarray(condition).dtype != np.bool:
            raise TypeError("invalid entry in condlist: should be boolean ndarray")
        result = np.where(condition, choice, result)
    return result


@composition(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Array:
    """Choose among arrays by their position."""
    a, choices = np.asarray(a), [array_of(c) for c in choices]
    if mode == "raise" and (np.any(np.less(a, 0)) or np.any(a >= len(choices))):
        raise ValueError("invalid entry in choice array")
    a = within(a, len(choices), mode)
    result = choices[0]
    for i, choice in enumerate(choices[1:], start=1):
        result = np.where(np.equal(a, i), choice, result)
    shape = np.broadcast_shapes(a.shape, np.shape(result))
    return without_box(np.copy(np.broadcast_to(result, shape)))


linear(np.tril, lambda y_bar, y, m, k=0: np.tril(y_bar, k))
linear(np.triu, lambda y_bar, y, m, k=0: np.triu(y_bar, k))


# --- diagonals -------------------------------------------------------------------


@overridable
def with_diagonal(v: Array, k: int = 0) -> Array:
    """Return the matrix that has ``v`` on its k-th diagonal and zeros elsewhere."""
    return np.diag(v, k)


linear(with_diagonal, lambda y_bar, y, v, k=0: np.diagonal(y_bar, k))


@composition(np.diag)
def diag(v: Array, k: int = 0) -> Array:
    """Build a matrix from its diagonal, or look at the diagonal of a matrix."""
    if np.ndim(v) not in (1, 2):
        raise ValueError("Input must be 1- or 2-d.")
    return with_diagonal(v, k=k) if np.ndim(v) == 1 else np.diagonal(v, k)


@composition(np.diagflat)
def diagflat(v: Array, k: int = 0) -> Array:
    """Build a matrix from its diagonal, given in any shape."""
    return with_diagonal(np.ravel(v), k=k)


# --- moving and repeating --------------------------------------------------------


def untiled(y_bar: Array, y: Array, A: Array, reps: Any) -> Array:  # noqa: N803 -- NumPy's own signature
    """Add all copies of the array."""
    ndim, shape = np.ndim(y), np.shape(A)
    repeats = np.atleast_1d(reps).tolist()
    repeats = [1] * (ndim - len(repeats)) + repeats
    lengths = [1] * (ndim - len(shape)) + list(shape)
    split = [n for pair in zip(repeats, lengths, strict=True) for n in pair]
    total = np.sum(np.reshape(y_bar, split), axis=tuple(range(0, 2 * ndim, 2)))
    return np.reshape(total, shape)


linear(
    np.roll,
    lambda y_bar, y, a, shift, axis=None: np.roll(y_bar, np.negative(shift), axis),
)
linear(np.tile, untiled)


def pairs(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """Return the widths before and after each axis."""
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            widths[axis] = tuple(np.broadcast_to(width, 2).tolist())
        return widths
    widths = np.broadcast_to(np.asarray(pad_width), (ndim, 2)).tolist()
    return [(before, after) for before, after in widths]


@overridable
def padded(array: Array, pad_width: Any, constant_values: Any = 0) -> Array:
    """Return an array with constants around it."""
    return np.pad(array, pad_width, constant_values=constant_values)


def unpadded(
    y_bar: Array,
    y: Array,
    array: Array,
    pad_width: Any,
    constant_values: Any = 0,
) -> Array:
    """Look at what is inside the padding."""
    inside = tuple(
        slice(before, before + n)
        for (before, _), n in zip(
            pairs(pad_width, np.ndim(y)), np.shape(array), strict=True
        )
    )
    return y_bar[inside]


linear(
    padded,
    unpadded,
    pushforward=lambda tangents, y, array, pad_width, constant_values=0: np.pad(
        tangents[0], pad_width
    ),
)

# Modes that only repeat elements: their labels say which.
REPEATING_MODES = frozenset({"edge", "reflect", "symmetric", "wrap"})


@composition(np.pad)
def pad(array: Array, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """Surround an array by constants or by elements of its own."""
    array = array_of(array)
    if mode == "constant":
        return padded(array, pad_width=pad_width, **kwargs)
    if mode in REPEATING_MODES and kwargs.get("reflect_type", "even") == "even":
        return labelled(array, np.pad(labels(array), pad_width, mode=mode, **kwargs))
    raise UnsupportedArgumentError(
        "np.pad",
        "reflect_type" if mode in REPEATING_MODES else "mode",
        kwargs.get("reflect_type") if mode in REPEATING_MODES else mode,
        'Use "constant", "edge", "reflect", "symmetric" or "wrap", or np.concatenate.',
    )


# --- writing into the first argument ---------------------------------------------


def write_flat(a: Array, positions: Array, values: Array) -> None:
    """Write values at positions of the flat array, repeating them as needed."""
    values = np.ravel(values)
    count = np.size(positions)
    if count == 0 or np.size(values) == 0:
        return
    values = values[np.arange(count) % np.size(values)]
    if np.ndim(a) == 0:
        a[()] = values[-1]
    else:
        a[at_labels(positions, np.shape(a))] = values


def check_cast(values: Any, a: Array, casting: Any) -> None:
    """Raise unless an array may be written into ``a``; a Python number may be."""
    if hasattr(values, "dtype") and not np.can_cast(values.dtype, a.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {values.dtype!r} to {a.dtype!r} according "
            f"to the rule {casting!r}"
        )


@composition(np.put)
def put(a: Array, ind: Any, v: Any, mode: Any = "raise") -> None:
    """Write at positions of the flat array."""
    v = array_of(v)
    if np.size(v):  # NumPy judges nothing else
        places = np.asarray(ind)
        casting: Any = "safe" if places.ndim else "unsafe"  # as NumPy, a number only
        places = places.astype(np.intp, casting=casting).ravel()
        write_flat(a, np.take(np.arange(np.size(a)), places, mode=mode), v)


@composition(np.place)
def place(arr: Array, mask: Any, vals: Any) -> None:
    """Write the values one after the other where the mask holds."""
    check_cast(vals, arr, "safe")
    positions, vals = np.flatnonzero(mask), array_of(vals)
    if np.size(mask) != np.size(arr):
        raise ValueError("place: mask and data must be the same size")
    if np.size(positions) and not np.size(vals):
        raise ValueError("Cannot insert from an empty array!")
    write_flat(arr, positions, vals)


@composition(np.putmask)
def putmask(a: Array, /, mask: Any, values: Any) -> None:
    """Write where the mask holds the value that has the same position, repeated."""
    if np.size(mask) != np.size(a):
        raise ValueError("putmask: mask and data must be the same size")
    check_cast(values, a, "safe")
    values = np.ravel(array_of(values))
    positions = np.flatnonzero(mask)
    if np.size(values) and np.size(positions):
        write_flat(a, positions, values[positions % np.size(values)])


@composition(np.copyto)
def copyto(dst: Array, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write one array over another, everywhere or where a mask holds."""
    source = array_of(src)
    check_cast(src, dst, casting)
    if where is True:
        dst[...] = source
        return
    mask = np.broadcast_to(where, np.shape(dst))
    dst[mask] = np.broadcast_to(source, np.shape(dst))[mask]


@composition(np.fill_diagonal)
def fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:  # noqa: FBT001 -- NumPy's own signature
    """Write on the main diagonal."""
    marked = np.zeros(np.shape(a), dtype=bool)
    np.fill_diagonal(marked, val=True, wrap=wrap)
    write_flat(a, np.flatnonzero(marked), array_of(val))


@composition(np.put_along_axis)
def put_along_axis(arr: Array, indices: Any, values: Any, axis: Any) -> None:
    """Write where ``np.take_along_axis`` would read."""
    if axis is None:
        np.put_along_axis(labels(arr), indices, 0, None)  # NumPy judges the arguments
        numbers = np.take(np.arange(np.size(arr)), indices)
        arr[at_labels(numbers, np.shape(arr))] = values
    else:
        arr[index_along(np.asarray(indices), np.shape(arr), axis)] = values
