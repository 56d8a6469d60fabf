"""Sums, products, means, extremes, and what accumulates along an axis.

Products are exact where factors are zero: nothing is divided.  Extremes share their
derivative equally among ties.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from dualad.errors import UnsupportedArgumentError
from dualad.rules.kinds import (
    Array,
    Reduction,
    composition,
    conjugated,
    expanded,
    general,
    is_complex,
    linear,
    overridable,
    spread,
    strong,
)
from dualad.rules.views import array_of

_missing: Any = np._NoValue  # noqa: SLF001 -- NumPy has no public name for "not given"


def given(**params: Any) -> dict[str, Any]:
    """Keep the keywords that the caller gave."""
    return {name: value for name, value in params.items() if value is not _missing}


def normalized(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes of a reduction as a tuple of numbers from zero."""
    if axis is None or ndim == 0:  # NumPy reduces a scalar along any axis
        return tuple(range(ndim))
    axes: tuple[int, ...] = normalize_axis_tuple(axis, ndim)
    return axes


def ratio(x: Array, y: Array) -> int:
    """Return how many elements of ``x`` make one of ``y``."""
    return int(np.size(x) // max(np.size(y), 1))


# --- sums and means --------------------------------------------------------------

linear(np.sum, spread, reduction=Reduction(0.0, np.add))


def averaged_over(
    y_bar: Array,
    y: Array,
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = False,
    where: Any = True,
) -> Array:
    """Give every element its part of the cotangent of the mean."""
    if where is True:
        return spread(y_bar / max(ratio(a, y), 1), y, a, axis, keepdims)
    mask = np.broadcast_to(where, np.shape(a))
    count = np.maximum(np.count_nonzero(mask, axis=axis, keepdims=keepdims), 1)
    part = y_bar / np.asarray(count).astype(y.dtype)
    return np.where(mask, spread(part, y, a, axis, keepdims), 0.0)


linear(np.mean, averaged_over)


@composition(np.average)
def average(
    a: Array,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,  # noqa: FBT001 -- NumPy's own signature
    *,
    keepdims: Any = _missing,
) -> Any:
    """Average with weights."""
    a = array_of(a)
    if axis is not None:
        axis = normalize_axis_tuple(axis, np.ndim(a))
    keep = given(keepdims=keepdims)
    if weights is None:
        mean = np.mean(a, axis=axis, **keep)
        total: Any = mean.dtype.type(np.size(a) / np.size(mean))
    else:
        weights = matched(array_of(weights), a, axis)
        dtype = np.result_type(a.dtype, weights.dtype)
        if a.dtype.kind in "biu":  # NumPy averages whole numbers in double precision
            dtype = np.result_type(dtype, np.float64)
        total = np.sum(weights, axis=axis, dtype=dtype, **keep)
        if np.any(np.equal(total, 0.0)):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        mean = np.sum(a * weights, axis=axis, **keep) / total
    if not returned:
        return mean
    if np.shape(total) != np.shape(mean):
        total = np.copy(np.broadcast_to(total, np.shape(mean)))
    return mean, total


def matched(weights: Array, a: Array, axis: Any) -> Array:
    """Return weights in a shape that lies along their axes of ``a``."""
    shape = np.shape(a)
    if np.shape(weights) == shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = normalized(axis, len(shape))
    if np.shape(weights) != tuple(shape[i] for i in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    weights = np.transpose(weights, np.argsort(axes).tolist())
    return np.reshape(weights, [n if i in axes else 1 for i, n in enumerate(shape)])


# --- variance and standard deviation ---------------------------------------------


@overridable
def variance(a: Array, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Array:
    """Return ``np.var`` of an array."""
    return np.var(a, axis=axis, ddof=ddof, keepdims=keepdims)


@overridable
def deviation(
    a: Array, axis: Any = None, ddof: Any = 0, keepdims: Any = False
) -> Array:
    """Return ``np.std`` of an array."""
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims)


def centered(a: Array, axis: Any) -> Array:
    """Subtract the mean; half precision is too coarse for what follows."""
    if a.dtype == np.float16:
        a = a.astype(np.float32)
    return a - np.mean(a, axis=axis, keepdims=True)


def freedom(a: Array, y: Array, ddof: Any) -> Any:
    """Return the number of degrees of freedom; without any there is no variance."""
    return max(ratio(a, y) - ddof, 0) or math.nan


def covariance(
    a_dot: Array, y: Array, a: Array, axis: Any, ddof: Any, keepdims: Any
) -> Array:
    """Return the sum of products of deviations over the degrees of freedom."""
    product = np.real(conjugated(centered(a, axis)) * a_dot)
    return np.sum(product, axis=axis, keepdims=keepdims) / freedom(a, y, ddof)


def inverted(y: Array) -> Array:
    """Return 1 / y, and zero where y is zero: there a standard deviation has a kink."""
    kink = np.equal(y, 0)
    return np.where(kink, 0.0, 1.0 / np.where(kink, 1.0, y))


def push_variance(
    a_dot: Array,
    y: Array,
    a: Array,
    axis: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Array:
    """Push forward through the variance."""
    return 2.0 * covariance(a_dot, y, a, axis, ddof, keepdims)


def pull_variance(
    y_bar: Array,
    y: Array,
    a: Array,
    axis: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Array:
    """Pull back through the variance."""
    scale = expanded(y_bar, axis, np.ndim(a), keepdims=keepdims)
    return centered(a, axis) * (scale * (2.0 / freedom(a, y, ddof)))


def push_deviation(
    a_dot: Array,
    y: Array,
    a: Array,
    axis: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Array:
    """Push forward through the standard deviation."""
    return covariance(a_dot, y, a, axis, ddof, keepdims) * inverted(y)


def pull_deviation(
    y_bar: Array,
    y: Array,
    a: Array,
    axis: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Array:
    """Pull back through the standard deviation."""
    scale = expanded(y_bar * inverted(y), axis, np.ndim(a), keepdims=keepdims)
    return centered(a, axis) * (scale * (1.0 / freedom(a, y, ddof)))


general(variance, pushforwards=(push_variance,), pullbacks=(pull_variance,))
general(deviation, pushforwards=(push_deviation,), pullbacks=(pull_deviation,))


@composition(np.var)
def var(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _missing,
    *,
    where: Any = _missing,
    mean: Any = _missing,
    correction: Any = _missing,
) -> Array:
    """Return the variance; a mean that is given is an argument like another."""
    a = in_real_dtype("np.var", a, dtype)
    ddof = degrees(ddof, correction)
    keep = given(keepdims=keepdims)
    if where is _missing and mean is _missing:
        return variance(a, axis=axis, ddof=ddof, **keep)
    mask = np.broadcast_to(True if where is _missing else where, np.shape(a))
    if mean is _missing:
        mean = np.mean(a, axis=axis, keepdims=True, where=mask)
    difference = np.where(mask, a, mean) - mean  # what is masked may be NaN
    squares = np.real(difference * np.conjugate(difference))
    count = np.count_nonzero(mask, axis=axis, **keep)
    total = np.sum(squares, axis=axis, dtype=dtype, **keep)
    return total / np.maximum(np.asarray(count) - ddof, 0).astype(total.dtype)


@composition(np.std)
def std(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _missing,
    *,
    where: Any = _missing,
    mean: Any = _missing,
    correction: Any = _missing,
) -> Array:
    """Return the standard deviation."""
    if where is _missing and mean is _missing:
        ddof, keep = degrees(ddof, correction), given(keepdims=keepdims)
        a = in_real_dtype("np.std", a, dtype)
        return deviation(a, axis=axis, ddof=ddof, **keep)
    params = given(keepdims=keepdims, where=where, mean=mean, correction=correction)
    return root(np.var(a, axis, dtype, None, ddof, **params))


def in_dtype(a: Any, dtype: Any) -> Array:
    """Return an array in the dtype that the caller wants to compute in."""
    a = array_of(a)
    return a if dtype is None or a.dtype == dtype else a.astype(dtype)


def in_real_dtype(function: str, a: Any, dtype: Any) -> Array:
    """Do the same for a function whose result is real."""
    if dtype is not None and (is_complex(a) or np.dtype(dtype).kind == "c"):
        raise UnsupportedArgumentError(
            function, "dtype", dtype, "Compute it, then use .astype."
        )
    return in_dtype(a, dtype)


def degrees(ddof: Any, correction: Any) -> Any:
    """Return what is subtracted from the number of elements, under either name."""
    if correction is _missing:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


@overridable
def root(x: Array) -> Array:
    """Return the square root, with derivative zero at zero."""
    return np.sqrt(x)


general(
    root,
    pushforwards=(lambda x_dot, y, x: x_dot * (0.5 * inverted(y)),),
    pullbacks=(lambda y_bar, y, x: y_bar * (0.5 * inverted(y)),),
)


# --- products --------------------------------------------------------------------


def products_of_others(x: Array, axis: Any) -> Array:
    """Return for each element the product of all others along the axes."""
    ndim = np.ndim(x)
    axes = normalized(axis, ndim)
    order = [i for i in range(ndim) if i not in axes] + list(axes)
    moved = np.transpose(x, order)
    kept = np.shape(moved)[: ndim - len(axes)]
    rows = np.reshape(moved, (*kept, -1) if np.size(x) else (*kept, 0))
    before = products_before(rows)
    after = np.flip(products_before(np.flip(rows, -1)), -1)
    others = np.reshape(before * after, np.shape(moved))
    return np.transpose(others, np.argsort(order).tolist())


def products_before(x: Array) -> Array:
    """Return for each element the product of those before it along the last axis."""
    products = np.cumprod(x[..., :-1], axis=-1)
    return np.concatenate([np.ones_like(x[..., :1]), products], axis=-1)


def push_product(
    x_dot: Array, y: Array, x: Array, axis: Any = None, keepdims: Any = False
) -> Array:
    """Push forward through a product."""
    terms = strong(x_dot, products_of_others(x, axis))
    return np.sum(terms, axis=axis, keepdims=keepdims)


def pull_product(
    y_bar: Array, y: Array, x: Array, axis: Any = None, keepdims: Any = False
) -> Array:
    """Pull back through a product."""
    others = conjugated(products_of_others(x, axis))
    return strong(spread(y_bar, y, x, axis, keepdims), others)


general(
    np.prod,
    pushforwards=(push_product,),
    pullbacks=(pull_product,),
    reduction=Reduction(1.0, np.multiply),
)


# --- extremes --------------------------------------------------------------------


def ties(y: Array, x: Array, axis: Any, keepdims: Any) -> tuple[Array, Array]:
    """Return where ``x`` is the extreme, and how often (in the dtype of ``y``)."""
    extreme = expanded(y, axis, np.ndim(x), keepdims=keepdims)
    mask = np.equal(x, extreme)
    count = np.count_nonzero(mask, axis=axis, keepdims=True)
    if not np.all(count):  # a NaN is the extreme wherever there is one
        mask = mask | (np.isnan(x) & np.isnan(extreme))
        count = np.count_nonzero(mask, axis=axis, keepdims=True)
    return mask, np.asarray(count).astype(x.dtype)


def push_extreme(
    x_dot: Array, y: Array, x: Array, axis: Any = None, keepdims: Any = False
) -> Array:
    """Average the tangents of all elements that are the extreme."""
    mask, count = ties(y, x, axis, keepdims)
    total = np.sum(np.where(mask, x_dot, 0.0), axis=axis, keepdims=True)
    return np.reshape(total / count, np.shape(y))


def pull_extreme(
    y_bar: Array, y: Array, x: Array, axis: Any = None, keepdims: Any = False
) -> Array:
    """Share the cotangent equally among all elements that are the extreme."""
    mask, count = ties(y, x, axis, keepdims)
    share = expanded(y_bar, axis, np.ndim(x), keepdims=keepdims) / count
    return np.where(mask, share, 0.0)


for _functions, _combine, _identity in (
    ({np.max, np.amax}, np.maximum, -np.inf),  # one function or two, by the version
    ({np.min, np.amin}, np.minimum, np.inf),
):
    for _function in _functions:
        general(
            _function,
            pushforwards=(push_extreme,),
            pullbacks=(pull_extreme,),
            reduction=Reduction(_identity, _combine),
        )


@composition(np.ptp)
def ptp(a: Array, axis: Any = None, out: Any = None, keepdims: Any = _missing) -> Array:
    """Return the distance between the extremes."""
    keep = given(keepdims=keepdims)
    return np.max(a, axis=axis, **keep) - np.min(a, axis=axis, **keep)
