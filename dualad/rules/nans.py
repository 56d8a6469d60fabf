"""Reductions that leave out NaN: compositions over those that do not."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

from dualad.rules.kinds import Array, composition
from dualad.rules.reductions import degrees, given, in_dtype, in_real_dtype, root
from dualad.rules.views import array_of, without_box

_missing: Any = np._NoValue  # noqa: SLF001 -- NumPy has no public name for "not given"


def and_known(where: Any, a: Array) -> Array:
    """Return where an element is wanted and is not NaN."""
    known = ~np.isnan(a)
    return known if where is _missing else known & where


def without_nan(function: Any, filler: float) -> Any:
    """Return a composition: the function of an array that holds no NaN any more."""
    signature = inspect.signature(function)

    def composed(*args: Any, **params: Any) -> Array:
        arguments = given(**signature.bind(*args, **params).arguments)
        a = array_of(arguments.pop("a"))
        arguments.pop("out", None)
        return function(np.where(np.isnan(a), filler, a), **arguments)

    composed.__signature__ = signature  # type: ignore[attr-defined]
    return composed


composition(np.nansum)(without_nan(np.sum, 0.0))
composition(np.nanprod)(without_nan(np.prod, 1.0))
composition(np.nancumsum)(without_nan(np.cumsum, 0.0))
composition(np.nancumprod)(without_nan(np.cumprod, 1.0))


@composition(np.nanmean)
def nanmean(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _missing,
    *,
    where: Any = _missing,
) -> Array:
    """Average what is not NaN."""
    a = in_dtype(a, dtype)
    return np.mean(a, axis=axis, where=and_known(where, a), **given(keepdims=keepdims))


@composition(np.nanvar)
def nanvar(
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
    """Return the variance of what is not NaN."""
    a = in_real_dtype("np.nanvar", a, dtype)
    known, keep = and_known(where, a), given(keepdims=keepdims)
    params = given(mean=mean, correction=correction)
    result = np.var(a, axis=axis, ddof=ddof, where=known, **keep, **params)
    mask = np.broadcast_to(known, np.shape(a))
    count = np.count_nonzero(mask, axis=axis, **keep)
    unknown = np.less_equal(np.subtract(count, degrees(ddof, correction)), 0)
    if not np.any(unknown):
        return result
    return without_box(np.where(unknown, result.dtype.type(np.nan), result))


@composition(np.nanstd)
def nanstd(
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
    """Return the standard deviation of what is not NaN."""
    params = given(keepdims=keepdims, where=where, mean=mean, correction=correction)
    return root(np.nanvar(a, axis, dtype, None, ddof, **params))


def known_extreme(function: Any, filler: float, a: Array, params: Any) -> Array:
    """Return the extreme of what is not NaN, and NaN with a warning if all are."""
    a = array_of(a)
    result = function(np.where(np.isnan(a), filler, a), **params)
    if "initial" in params:  # then something is known
        return result
    params = {k: v for k, v in params.items() if k in ("axis", "keepdims")}
    unknown = np.all(np.isnan(a), **params)
    if not np.any(unknown):
        return result
    warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=2)
    return without_box(np.where(unknown, np.nan, result))


@composition(np.nanmax)
def nanmax(
    a: Array,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _missing,
    initial: Any = _missing,
    where: Any = _missing,
) -> Array:
    """Return the maximum of what is not NaN."""
    params = given(axis=axis, keepdims=keepdims, initial=initial, where=where)
    return known_extreme(np.max, -np.inf, a, params)


@composition(np.nanmin)
def nanmin(
    a: Array,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _missing,
    initial: Any = _missing,
    where: Any = _missing,
) -> Array:
    """Return the minimum of what is not NaN."""
    params = given(axis=axis, keepdims=keepdims, initial=initial, where=where)
    return known_extreme(np.min, np.inf, a, params)
