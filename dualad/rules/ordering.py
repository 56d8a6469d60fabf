"""Sorting and order statistics: a permutation moves derivatives like values.

Ties are resolved by NumPy's stable order when sorting; an order statistic (the
median) shares its derivative equally among them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from dualad.rules.indexing import index_along
from dualad.rules.kinds import (
    Array,
    Scatter,
    composition,
    constant,
    general,
    linear,
    overridable,
)
from dualad.rules.reductions import normalized, pull_extreme, push_extreme
from dualad.rules.views import array_of, without_box

# --- permutations ----------------------------------------------------------------


@overridable
def permuted(x: Array, order: Array, axis: int) -> Array:
    """Return ``x`` with its elements along an axis in another order.

    Laid out like ``x``, as NumPy's sorted copies are: sums over it round alike.
    """
    y = np.empty_like(x)
    y[...] = np.take_along_axis(x, order, axis=axis)
    return y


def unpermuted(y_bar: Array, y: Array, x: Array, order: Array, axis: int) -> Scatter:
    """Put each element back where it came from."""
    index = index_along(order, np.shape(x), axis)
    return Scatter(index, y_bar, unique=True)


linear(permuted, unpermuted)


@composition(np.sort)
def sort(
    a: Array,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: Any = np._NoValue,  # noqa: SLF001 -- NumPy has no public name for it
) -> Array:
    """Sort along an axis, or the flat array."""
    # Passed on only if given: before NumPy 2.5, NumPy refuses it.
    direction = {} if descending is np._NoValue else {"descending": descending}  # noqa: SLF001
    if kind is not None and (stable, direction.get("descending")) != (None, None):
        raise ValueError(
            "`kind` can't be provided at the same time as `stable` or `descending`. "
            "Use only one of them."
        )
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if axis is None:
        a, axis = np.ravel(a), -1
    places = np.argsort(a, axis=axis, stable=True, **direction)
    return permuted(a, order=places, axis=axis)


@overridable
def partitioning(a: Array, kth: Any, axis: int, kind: Any) -> Array:
    """Return the order that turns ``a`` into ``np.partition`` of it, exactly."""
    result = np.partition(a, kth, axis=axis, kind=kind)
    places = np.argsort(result, axis=axis, kind="stable")
    order = np.empty_like(places)
    np.put_along_axis(order, places, np.argsort(a, axis=axis, kind="stable"), axis)
    return order


constant("an order is a list of integers", partitioning)


@composition(np.partition)
def partition(
    a: Array, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Array:
    """Move smaller elements before the kth and larger ones after it."""
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if axis is None:
        a, axis = np.ravel(a), -1
    return permuted(a, order=partitioning(a, kth, axis, kind), axis=axis)


# --- order statistics ------------------------------------------------------------


@overridable
def order_statistic(x: Array, k: int, axis: Any = None) -> Array:
    """Return the k-th smallest along the axes, which stay with length one."""
    axes = normalized(axis, np.ndim(x))
    order = [i for i in range(np.ndim(x)) if i not in axes] + list(axes)
    kept = [np.shape(x)[i] for i in order[: np.ndim(x) - len(axes)]]
    count = math.prod(np.shape(x)[i] for i in axes)
    rows = np.transpose(x, order).reshape(*kept, count)
    shape = [1 if i in axes else n for i, n in enumerate(np.shape(x))]
    return np.partition(rows, k, axis=-1)[..., k].reshape(shape)


general(
    order_statistic,
    pushforwards=(
        lambda x_dot, y, x, k, axis=None: push_extreme(
            x_dot, y, x, axis, keepdims=True
        ),
    ),
    pullbacks=(
        lambda y_bar, y, x, k, axis=None: pull_extreme(
            y_bar, y, x, axis, keepdims=True
        ),
    ),
)


@composition(np.median)
def median(
    a: Array,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,  # noqa: FBT001 -- NumPy's own signature
    keepdims: bool = False,  # noqa: FBT001
) -> Array:
    """Return the middle value, or the mean of the two in the middle."""
    a = array_of(a)
    if axis is not None:
        axis = normalize_axis_tuple(axis, np.ndim(a))
    axes = normalized(axis, np.ndim(a))
    count = int(np.prod([np.shape(a)[i] for i in axes]))
    if count == 0:
        return np.mean(a, axis=axis, keepdims=keepdims)
    result = order_statistic(a, k=count // 2, axis=axes)
    if count % 2 == 0:
        result = (order_statistic(a, k=count // 2 - 1, axis=axes) + result) / 2.0
    unknown = np.any(np.isnan(a), axis=axes, keepdims=True)
    if np.any(unknown):
        result = np.where(unknown, np.nan, result)
    return result if keepdims else without_box(np.squeeze(result, axes))
