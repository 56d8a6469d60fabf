"""What accumulates along an axis, and differences of neighbours.

Running products are exact where factors are zero: nothing is divided.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from dualad.rules.indexing import along
from dualad.rules.kinds import (
    Array,
    composition,
    conjugated,
    general,
    linear,
    overridable,
)
from dualad.rules.reductions import in_dtype, products_before
from dualad.rules.views import array_of

_missing: Any = np._NoValue  # noqa: SLF001 -- NumPy has no public name for "not given"

# --- running products ------------------------------------------------------------


def recurrence(a: Array, b: Array) -> Array:
    """Return s with ``s[k] = a[k] * s[k - 1] + b[k]`` along the last axis, s[-1] = 0.

    Neighbouring steps are joined into one, then those, and so on: log2(n) passes.
    """
    # Hillis and Steele (1986), "Data parallel algorithms", Commun. ACM 29, 1170
    reach, length = 1, np.shape(a)[-1]
    while reach < length:
        joined_b = b[..., reach:] + a[..., reach:] * b[..., :-reach]
        joined_a = a[..., reach:] * a[..., :-reach]
        b = np.concatenate([b[..., :reach], joined_b], axis=-1)
        a = np.concatenate([a[..., :reach], joined_a], axis=-1)
        reach *= 2
    return b


@overridable
def running_product(x: Array) -> Array:
    """Return ``np.cumprod`` along the last axis."""
    return np.cumprod(x, axis=-1)


def push_running_product(x_dot: Array, y: Array, x: Array) -> Array:
    """Push forward: ``y_dot[k] = x[k] * y_dot[k - 1] + y[k - 1] * x_dot[k]``."""
    return recurrence(x, products_before(x) * x_dot)


def pull_running_product(y_bar: Array, y: Array, x: Array) -> Array:
    """Pull back: ``s[k] = y_bar[k] + x[k + 1] * s[k + 1]``, times what is before k."""
    x = conjugated(x)
    following = np.concatenate([x[..., 1:], np.ones_like(x[..., :1])], axis=-1)
    sums = np.flip(recurrence(np.flip(following, -1), np.flip(y_bar, -1)), -1)
    return products_before(x) * sums


general(
    running_product,
    pushforwards=(push_running_product,),
    pullbacks=(pull_running_product,),
)


@composition(np.cumprod)
def cumprod(a: Array, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Multiply along an axis, or along the flat array."""
    a = in_dtype(a, dtype)
    if axis is None or np.ndim(a) == 0:
        a = np.ravel(a)
    axis = 0 if axis is None else operator.index(axis)
    return np.moveaxis(running_product(np.moveaxis(a, axis, -1)), -1, axis)


# --- running sums and differences ------------------------------------------------


def uncumulated(
    y_bar: Array,
    y: Array,
    a: Array,
    axis: Any = None,
    dtype: Any = None,
) -> Array:
    """Sum the cotangents from each element to the end."""
    along = 0 if axis is None else axis
    sums = np.flip(np.cumsum(np.flip(y_bar, along), axis=along), along)
    return np.reshape(sums, np.shape(a)) if axis is None else sums


linear(np.cumsum, uncumulated)


def cumulative(
    function: Any, first: float, x: Array, axis: Any, dtype: Any, *, initial: bool
) -> Array:
    """Accumulate as the array API does: an axis is needed unless there is one only."""
    x = np.atleast_1d(x)
    if axis is None:
        if np.ndim(x) > 1:
            raise ValueError(
                "For arrays which have more than one dimension ``axis`` argument is "
                "required."
            )
        axis = 0
    result = function(x, axis=axis, dtype=dtype)
    if not initial:
        return result
    edge = np.shape(result)[: axis % np.ndim(x)]
    rest = np.shape(result)[axis % np.ndim(x) + 1 :]
    start = np.full((*edge, 1, *rest), first, dtype=result.dtype)
    return np.concatenate([start, result], axis=axis)


if hasattr(np, "cumulative_sum"):  # NumPy 2.1

    @composition(np.cumulative_sum)
    def cumulative_sum(
        x: Array,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Array:
        """Add along an axis."""
        return cumulative(np.cumsum, 0.0, x, axis, dtype, initial=include_initial)

    @composition(np.cumulative_prod)
    def cumulative_prod(
        x: Array,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Array:
        """Multiply along an axis."""
        return cumulative(np.cumprod, 1.0, x, axis, dtype, initial=include_initial)


@composition(np.diff)
def diff(
    a: Array,
    n: int = 1,
    axis: int = -1,
    prepend: Any = _missing,
    append: Any = _missing,
) -> Array:
    """Subtract neighbours, n times."""
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    a = array_of(a)
    if n == 0:
        return a
    if np.ndim(a) == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = operator.index(axis)
    parts = [border(prepend, a, axis), a, border(append, a, axis)]
    if prepend is not _missing or append is not _missing:
        a = np.concatenate([p for p in parts if p is not None], axis=axis)
    for _ in range(n):
        a = np.moveaxis(a, axis, -1)
        a = np.moveaxis(a[..., 1:] - a[..., :-1], -1, axis)
    return a


def border(value: Any, a: Array, axis: int) -> Array | None:
    """Return what ``np.diff`` puts before or after an array."""
    if value is _missing:
        return None
    value = array_of(value)
    if np.ndim(value):
        return value
    shape = list(np.shape(a))
    shape[axis] = 1
    return np.broadcast_to(value, tuple(shape))


@composition(np.ediff1d)
def ediff1d(ary: Array, to_end: Any = None, to_begin: Any = None) -> Array:
    """Subtract neighbours in the flat array, with something before and after."""
    flat = np.ravel(array_of(ary))
    parts = [flat[1:] - flat[:-1]]
    if to_begin is not None:
        parts.insert(0, end_of("to_begin", to_begin, flat))
    if to_end is not None:
        parts.append(end_of("to_end", to_end, flat))
    return np.concatenate(parts)


def end_of(name: str, values: Any, flat: Array) -> Array:
    """Return what ``np.ediff1d`` puts before or after the differences."""
    values = np.ravel(array_of(values))
    if not np.can_cast(values.dtype, flat.dtype, casting="same_kind"):
        raise TypeError(
            f"dtype of `{name}` must be compatible with input `ary` under the "
            "`same_kind` rule."
        )
    return values.astype(flat.dtype)


@composition(np.trapezoid)
def trapezoid(y: Array, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Integrate by the trapezoidal rule."""
    y = array_of(y)
    if x is not None:
        x = array_of(x)
        if np.ndim(x) == 1:
            shape = [1] * np.ndim(y)
            shape[axis] = -1
            dx = np.reshape(np.diff(x), shape)
        else:
            dx = np.diff(x, axis=axis)
    later = along(axis, slice(1, None), np.ndim(y))
    earlier = along(axis, slice(None, -1), np.ndim(y))
    return np.sum(dx * (y[later] + y[earlier]) / 2.0, axis=axis)
