"""Methods of ufuncs on active arrays: reduce, accumulate, reduceat, outer, at.

Those with a function of their own (``np.add.reduce`` is ``np.sum``) are lowered to
it; any other binary ufunc runs step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualad.rules.indexing import along, at_labels, labels
from dualad.rules.kinds import Array, Scatter, constant, linear, overridable
from dualad.rules.reductions import given, in_dtype, normalized
from dualad.rules.views import array_of, without_box

_missing: Any = np._NoValue  # noqa: SLF001 -- NumPy has no public name for "not given"

REDUCTIONS: dict[Any, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
}
ACCUMULATIONS: dict[Any, Any] = {np.add: np.cumsum, np.multiply: np.cumprod}
LOGARITHMIC: dict[Any, Any] = {
    np.logaddexp: (np.exp, np.log),
    np.logaddexp2: (np.exp2, np.log2),
}


# --- reduce ----------------------------------------------------------------------


def reduced(
    ufunc: Any,
    array: Array,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,  # noqa: FBT001
    initial: Any = _missing,
    where: Any = True,
) -> Array:
    """Do ``ufunc.reduce``."""
    array = array_of(array)
    function = REDUCTIONS.get(ufunc)
    if function is not None and initial is not None:
        params = given(initial=initial, where=_missing if where is True else where)
        array = in_dtype(array, dtype)
        return function(array, axis=axis, keepdims=keepdims, **params)
    check_reduction(ufunc, array, axis, dtype, initial, where)
    array = in_dtype(array, dtype)
    axes = normalized(axis, np.ndim(array))
    if ufunc in LOGARITHMIC and initial is not None:
        visible = array if where is True else np.where(where, array, -np.inf)
        result = log_of_sum(ufunc, visible, axes)
        if initial is not _missing:
            result = ufunc(result, initial)
    else:
        result = folded(ufunc, array, axes, initial, where)
    if keepdims:
        shape = [1 if i in axes else n for i, n in enumerate(np.shape(array))]
        return np.reshape(result, shape)
    return result


def check_reduction(
    ufunc: Any, x: Array, axis: Any, dtype: Any, initial: Any, where: Any
) -> None:
    """Let NumPy judge the arguments on an array of ones: its errors are ours."""
    starts = {} if initial is _missing else {"initial": None if initial is None else 1}
    ufunc.reduce(standing_in(x), axis=axis, dtype=dtype, where=where, **starts)


def standing_in(x: Array) -> Array:
    """Return an array of ones on which every ufunc is harmless."""
    return np.ones(np.shape(x), x.dtype)


def folded(
    ufunc: Any, x: Array, axes: tuple[int, ...], initial: Any, where: Any
) -> Array:
    """Apply a binary ufunc from element to element along the axes."""
    rows = in_rows(x, axes)
    masks = None if where is True else in_rows(np.broadcast_to(where, x.shape), axes)
    start = ufunc.identity if initial is _missing else initial
    if start is None:
        result, rest = rows[0, ...], range(1, len(rows))
    else:
        result = np.full(np.shape(rows)[1:], 1.0, x.dtype) * start
        rest = range(len(rows))
    for i in rest:
        if masks is None:
            result = ufunc(result, rows[i, ...])
        else:  # ones where nothing is asked for: there a partial could be infinite
            mask = masks[i, ...]
            operands = np.where(mask, result, 1.0), np.where(mask, rows[i, ...], 1.0)
            result = np.where(mask, ufunc(*operands), result)
    return without_box(np.copy(result))


def in_rows(x: Array, axes: tuple[int, ...]) -> Array:
    """Return an array with all axes to be reduced made one, in front."""
    order = list(axes) + [i for i in range(np.ndim(x)) if i not in axes]
    shape = [np.shape(x)[i] for i in order]
    count = int(np.prod(shape[: len(axes)], dtype=int))
    return np.reshape(np.transpose(x, order), (count, *shape[len(axes) :]))


@overridable
def reference(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the largest exponents where they are finite, else zero."""
    largest = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(largest), largest, np.zeros_like(largest))


constant("it is subtracted and added again: its derivative cancels", reference)


def log_of_sum(ufunc: Any, x: Array, axes: tuple[int, ...]) -> Array:
    """Return the logarithm of a sum of exponentials, without overflow."""
    exp, log = LOGARITHMIC[ufunc]
    shift = reference(x, axes)
    total = np.sum(exp(x - shift), axis=axes, keepdims=True)
    nothing = np.equal(total, 0.0)  # all are -inf, or there are none
    result = log(np.where(nothing, 1.0, total)) + np.where(nothing, -np.inf, shift)
    return without_box(np.squeeze(result, axes))


# --- accumulate and reduceat -----------------------------------------------------


def accumulated(ufunc: Any, array: Array, axis: Any = 0, dtype: Any = None) -> Array:
    """Do ``ufunc.accumulate``."""
    array = array_of(array)
    ufunc.accumulate(standing_in(array), axis=axis, dtype=dtype)  # NumPy's errors
    array, axis = in_dtype(array, dtype), 0 if axis is None else axis
    function = ACCUMULATIONS.get(ufunc)
    if function is not None:
        return function(array, axis=axis)
    rows = np.moveaxis(array, axis, 0)
    results = [rows[i, ...] for i in range(min(1, len(rows)))]
    for i in range(1, len(rows)):
        results.append(ufunc(results[-1], rows[i, ...]))
    return np.stack(results, axis=axis) if results else np.copy(array)


def segments(indices: Array, length: int) -> list[tuple[int, int]]:
    """Return the start and stop of each part that ``reduceat`` reduces."""
    stops = [*indices.tolist()[1:], length]
    return [
        (start, stop if start < stop else start + 1)
        for start, stop in zip(indices.tolist(), stops, strict=True)
    ]


@overridable
def sums_between(x: Array, indices: Array, axis: int) -> Array:
    """Return ``np.add.reduceat``."""
    return np.add.reduceat(x, indices, axis=axis)


def unsummed_between(
    y_bar: Array,
    y: Array,
    x: Array,
    indices: Array,
    axis: int,
) -> Scatter:
    """Give each element of a part the cotangent of its sum; parts may overlap."""
    parts = segments(indices, np.shape(x)[axis])
    places = np.concatenate([np.arange(start, stop) for start, stop in parts])
    part = np.repeat(np.arange(len(parts)), [stop - start for start, stop in parts])
    index = along(axis, places, np.ndim(x))
    return Scatter(index, np.take(y_bar, part, axis=axis))


linear(sums_between, unsummed_between)


def reduced_at(
    ufunc: Any, array: Array, indices: Any, axis: int = 0, dtype: Any = None
) -> Array:
    """Do ``ufunc.reduceat``."""
    array, indices = array_of(array), np.asarray(indices)
    ones = ufunc.reduceat(standing_in(array), indices, axis=axis, dtype=dtype)
    if indices.size == 0:  # NumPy has judged the arguments
        return ones
    array = in_dtype(array, dtype)
    if ufunc is np.add:
        return sums_between(array, indices=indices, axis=axis)
    rows = np.moveaxis(array, axis, 0)
    parts = [
        ufunc.reduce(rows[start:stop], axis=0, initial=None)
        for start, stop in segments(indices, len(rows))
    ]
    return np.stack(parts, axis=axis)


# --- outer and at ----------------------------------------------------------------


def outered(ufunc: Any, x: Any, y: Any, **params: Any) -> Array:
    """Do ``ufunc.outer``: each element of one with each of the other."""
    x, y = array_of(x), array_of(y)
    return ufunc(np.reshape(x, np.shape(x) + (1,) * np.ndim(y)), y, **params)


def applied_at(ufunc: Any, x: Array, indices: Any, y: Any = None) -> None:
    """Do ``ufunc.at``: one element after the other, so that repeats see each other."""
    places = np.asarray(labels(x)[indices])
    operands: Any = () if y is None else (np.broadcast_to(array_of(y), places.shape),)
    flat = places.ravel()
    if np.unique(flat).size == flat.size:
        index = at_labels(places, np.shape(x))
        x[index] = ufunc(x[index], *operands)
        return
    operands = tuple(np.reshape(v, -1) for v in operands)
    for i, place in enumerate(flat):
        index = tuple(int(n) for n in np.unravel_index(place, np.shape(x)))
        x[index] = ufunc(x[index], *(v[i] for v in operands))


METHODS = {
    "reduce": reduced,
    "accumulate": accumulated,
    "reduceat": reduced_at,
    "outer": outered,
    "at": applied_at,
}
