"""Joining arrays: each gets back the piece of the cotangent at its place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from dualad.rules.kinds import Array, composition, linear, overridable
from dualad.rules.views import array_of, cast

# --- the two ways of joining -----------------------------------------------------


@overridable
def joined(*arrays: Array, axis: int, starts: tuple[int, ...]) -> Array:
    """Return arrays one after the other along an axis that they have."""
    return np.concatenate(arrays, axis=axis)


def piece(
    z_bar: Array,
    position: int,
    z: Array,
    arrays: tuple[Array, ...],
    *,
    axis: int,
    starts: tuple[int, ...],
) -> Array:
    """Look at the part of the cotangent that belongs to one array."""
    start = starts[position]
    part = slice(start, start + np.shape(arrays[position])[axis])
    return z_bar[(slice(None),) * (axis % np.ndim(z)) + (part,)]


@overridable
def stacked(*arrays: Array, axis: int = 0) -> Array:
    """Return arrays side by side along a new axis."""
    return np.stack(arrays, axis=axis)


def layer(
    z_bar: Array,
    position: int,
    z: Array,
    arrays: tuple[Array, ...],
    *,
    axis: int = 0,
) -> Array:
    """Look at the layer of the cotangent that belongs to one array."""
    return z_bar[(slice(None),) * (axis % np.ndim(z)) + (position,)]


linear(joined, piece, variadic=True)
linear(stacked, layer, variadic=True)


def arrays_of(items: Any, dtype: Any, casting: Any) -> list[Array]:
    """Return the items of a sequence as arrays, in a dtype if one is asked for."""
    arrays = [array_of(x) for x in items]
    if dtype is None and casting == "same_kind":  # then nothing can go wrong
        return arrays
    if dtype is None:
        dtype = np.result_type(*(x.dtype for x in arrays))
    for x in arrays:
        if not np.can_cast(x.dtype, dtype, casting):
            raise TypeError(
                f"Cannot cast array data from {x.dtype!r} to {np.dtype(dtype)!r} "
                f"according to the rule {casting!r}"
            )
    return [x if x.dtype == dtype else cast(x, dtype) for x in arrays]


# --- NumPy's functions -----------------------------------------------------------


@composition(np.concatenate)
def concatenate(
    arrays: Any,
    /,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Array:
    """Join along an axis that the arrays have, or all flat."""
    parts = arrays_of(arrays, dtype, casting)
    if axis is None:
        axis, parts = 0, [np.ravel(x) for x in parts]
    if any(np.ndim(x) == 0 for x in parts):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    starts = tuple(accumulate((np.shape(x)[axis] for x in parts[:-1]), initial=0))
    return joined(*parts, axis=axis, starts=starts)


@composition(np.stack)
def stack(
    arrays: Any,
    axis: int = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Array:
    """Join along a new axis."""
    return stacked(*arrays_of(arrays, dtype, casting), axis=axis)


# NumPy's own implementations add axes and concatenate: they run on active arrays.
for _function in (np.vstack, np.hstack, np.dstack):
    composition(_function)(_function.__wrapped__)  # type: ignore[attr-defined]


@composition(np.column_stack)
def column_stack(tup: Any) -> Array:
    """Join vectors as columns, and matrices side by side."""
    arrays = [np.atleast_1d(array_of(x)) for x in tup]
    columns = [x[:, np.newaxis] if np.ndim(x) == 1 else x for x in arrays]
    return np.concatenate(columns, axis=1)


@composition(np.append)
def append(arr: Array, values: Any, axis: Any = None) -> Array:
    """Join two arrays."""
    return np.concatenate([array_of(arr), array_of(values)], axis=axis)


@composition(np.block)
def block(arrays: Any) -> Array:
    """Join nested lists: the innermost along the last axis, and so on outwards."""
    depth = depth_of(arrays)
    leaves = list(leaves_of(arrays))
    ndim = max([depth, *(np.ndim(x) for x in leaves)])
    result = nested(arrays, ndim - depth, ndim)
    return result if depth else np.copy(result)


def nested(item: Any, axis: int, ndim: int) -> Array:
    """Join one level of the nested lists of ``np.block`` along ``axis``."""
    if isinstance(item, list):
        return np.concatenate([nested(x, axis + 1, ndim) for x in item], axis=axis)
    x = array_of(item)
    return np.reshape(x, (1,) * (ndim - np.ndim(x)) + np.shape(x))


def depth_of(item: Any) -> int:
    """Return how deep lists are nested; they must all be equally deep."""
    if isinstance(item, tuple):
        raise TypeError("np.block takes lists, not tuples")
    if not isinstance(item, list):
        return 0
    if not item:
        raise ValueError("List at arrays cannot be empty")
    depths = {depth_of(x) for x in item}
    if len(depths) > 1:
        raise ValueError("List depths are mismatched")
    return 1 + depths.pop()


def leaves_of(item: Any) -> list[Any]:
    """Return the arrays in nested lists."""
    if isinstance(item, list):
        return [leaf for x in item for leaf in leaves_of(x)]
    return [item]


@composition(np.meshgrid)
def meshgrid(
    *xi: Array, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Sequence[Array]:
    """Give each vector an axis of its own, and broadcast them all."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    axes = list(range(len(xi)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    grids: Sequence[Array] = [
        np.reshape(array_of(x), [-1 if i == axis else 1 for i in range(len(xi))])
        for x, axis in zip(xi, axes, strict=True)
    ]
    if not sparse:
        grids = np.broadcast_arrays(*grids)
    return tuple(np.copy(x) for x in grids) if copy else grids
