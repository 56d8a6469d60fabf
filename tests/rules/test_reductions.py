"""Sums, means, products and extremes where they are not smooth, and in float16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.testing import check_rule
from tests import numeric
from tests.samples_arrays import NANS, REDUCTIONS, cases

MODES = pytest.mark.parametrize("mode", ["reverse", "forward"])
M = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
MASK = np.array([[True, False, True], [False, False, True]])


def both(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient, which must be the same in both modes."""
    reverse = ad.gradient(f, x, mode="reverse")
    np.testing.assert_allclose(ad.gradient(f, x, mode="forward"), reverse, atol=1e-12)
    return reverse


@pytest.mark.parametrize(("function", "args", "params"), cases(REDUCTIONS | NANS))
def test_rule(function: Any, args: Any, params: Any) -> None:
    has_nan = any(np.any(np.isnan(a)) for a in args if isinstance(a, np.ndarray))
    if has_nan:
        f = lambda m: np.sum(function(m, *args[1:], **params) ** 2)  # noqa: E731
        x = args[0]
        gradient = both(f, x)
        assert not np.any(gradient[np.isnan(x)])
        known = ~np.isnan(x)

        def of_known(values: Any) -> Any:
            y = x.copy()
            y[known] = values
            return f(y)

        numeric.assert_close(
            gradient[known], numeric.gradient(of_known, x[known]), 1e-8
        )
    else:
        check_rule(function, *args, **params)


# --- extremes --------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.max, np.min, np.amax, np.amin])
def test_ties_share_equally(function: Any) -> None:
    x = np.array([[1.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    for axis in (None, 0, 1, (0, 1), -1):
        for keepdims in (False, True):
            g = both(lambda x: np.sum(function(x, axis, keepdims=keepdims)), x)  # noqa: B023
            best = function(x, axis=axis, keepdims=True)
            tied = x == best
            np.testing.assert_allclose(g, tied / tied.sum(axis=axis, keepdims=True))


def test_a_nan_is_the_extreme() -> None:
    x = np.array([1.0, np.nan, 3.0, np.nan])
    np.testing.assert_array_equal(both(np.max, x), [0.0, 0.5, 0.0, 0.5])


def test_an_initial_value_takes_part() -> None:
    x = np.array([1.0, 3.0, 2.0])
    np.testing.assert_array_equal(both(lambda x: np.max(x, initial=2.0), x), [0, 1, 0])
    g = both(lambda x: np.max(x, initial=5.0) + np.sum(x), x)
    np.testing.assert_array_equal(g, 1.0)
    g = both(lambda x: np.max(x, initial=3.0) + np.sum(x), x)  # a tie with a constant
    np.testing.assert_array_equal(g, [1.0, 1.5, 1.0])
    g = both(lambda x: np.max(x[1:], initial=x[0] * 4.0), x)
    np.testing.assert_array_equal(g, [4.0, 0.0, 0.0])


def test_where_needs_an_initial_value_as_in_numpy() -> None:
    with pytest.raises(ValueError, match="initial"):
        ad.gradient(lambda m: np.sum(np.max(m, axis=1, where=MASK)), M)
    g = both(lambda m: np.sum(np.max(m, axis=1, where=MASK, initial=-9.0)), M)
    np.testing.assert_array_equal(g, [[0, 0, 1], [0, 0, 1]])


def test_an_empty_reduction_gives_its_initial_value() -> None:
    def f(x: Any) -> Any:
        return np.max(x[:0], initial=2.0) + np.sum(x) + np.sum(x[:0]) + np.prod(x[:0])

    assert ad.value_and_gradient(f, np.ones(3))[0] == 6.0
    with pytest.raises(ValueError, match="zero-size"):
        ad.gradient(lambda x: np.max(x[:0]), np.ones(3))


def test_second_derivatives_of_an_extreme_vanish() -> None:
    x = np.array([1.0, 3.0, 2.0])
    h = ad.hessian(lambda x: np.max(x) ** 2, x)
    np.testing.assert_array_equal(h, [[0, 0, 0], [0, 2, 0], [0, 0, 0]])


# --- spread ----------------------------------------------------------------------


def test_a_deviation_of_zero_has_derivative_zero() -> None:
    x = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    for params in ({}, {"ddof": 1}, {"keepdims": True}):
        g = both(lambda x: np.sum(np.std(x, axis=1, **params)), x)  # noqa: B023
        np.testing.assert_array_equal(g[0], 0.0)
        assert np.all(np.isfinite(g))
    g = both(lambda x: np.std(x, where=[[True], [False]]) + np.sum(x), x)
    np.testing.assert_array_equal(g, 1.0)
    h = ad.hvp(lambda x: np.sum(np.std(x, axis=1)), x, np.ones_like(x))
    assert np.all(np.isfinite(h))


def test_correction_is_another_name_for_ddof() -> None:
    g = both(lambda m: np.sum(np.var(m, axis=1, correction=1) ** 2), M)
    np.testing.assert_array_equal(
        g, both(lambda m: np.sum(np.var(m, axis=1, ddof=1) ** 2), M)
    )
    with pytest.raises(ValueError, match="simultaneously"):
        ad.gradient(lambda m: np.var(m, ddof=1, correction=1), M)


def test_a_mean_that_is_given_is_an_argument_like_another() -> None:
    def f(m: Any) -> Any:
        return np.sum(np.var(m, axis=1, mean=m[:, :1] * 2.0) ** 2)

    numeric.assert_close(both(f, M), numeric.gradient(f, M), 1e-8)
    same = both(lambda m: np.var(m, mean=np.mean(m, keepdims=True)), M)
    np.testing.assert_allclose(same, both(np.var, M), atol=1e-15)


@pytest.mark.parametrize("function", [np.mean, np.var, np.std])
def test_where_in_means(function: Any) -> None:
    mask = np.array([[True, False, True], [True, True, False]])

    def f(m: Any) -> Any:
        y = function(m, axis=1, where=mask, keepdims=True)
        return np.sum(y * y * m)

    np.testing.assert_allclose(ad.value_and_gradient(f, M)[0], f(M), rtol=1e-15)
    numeric.assert_close(both(f, M), numeric.gradient(f, M), 1e-8)


def test_what_is_masked_may_be_infinite() -> None:
    x = np.array([1.0, np.nan, 3.0, np.inf])
    mask = np.isfinite(x)
    for function in (np.sum, np.mean, np.prod, np.var, np.std):
        g = both(lambda x: function(x, where=mask), x)  # noqa: B023
        want = both(function, x[mask])
        np.testing.assert_allclose(g[mask], want)
        np.testing.assert_array_equal(g[~mask], 0.0)


# --- products --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "want"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([0.0, 3.0, 4.0], [12.0, 0.0, 0.0]),
        ([2.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([1e-200, 1e200, 1e200], [np.inf, 1.0, 1.0]),
        ([5.0], [1.0]),
        ([], []),
    ],
)
def test_products_are_exact(x: Any, want: Any) -> None:
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(both(np.prod, np.array(x)), want)


def test_second_derivatives_of_products_with_zeros() -> None:
    x = np.array([0.0, 3.0, 0.0, 4.0])
    h = ad.hessian(np.prod, x)
    want = np.zeros((4, 4))
    want[0, 2] = want[2, 0] = 12.0
    np.testing.assert_array_equal(h, want)


def test_products_along_axes() -> None:
    x = np.arange(24.0).reshape(2, 3, 4) / 8.0

    def f(x: Any) -> Any:
        return np.sum(np.prod(x, axis=(2, 0)) ** 2) + np.sum(np.prod(x, axis=-2))

    numeric.assert_close(both(f, x), numeric.gradient(f, x), 1e-8)


# --- half precision --------------------------------------------------------------


@MODES
def test_half_precision_adds_in_single(mode: str) -> None:
    x = np.full(5000, 1.0, np.float16)

    def repeated(s: Any) -> Any:
        return np.sum(np.broadcast_to(s, (5000,)) * 1.0) / 5000

    g = ad.gradient(repeated, np.ones(1, np.float16), mode=mode)
    np.testing.assert_allclose(g, 1.0, rtol=1e-3)
    g = ad.gradient(lambda x: np.mean(x), x, mode=mode)
    assert g.dtype == np.float16
    np.testing.assert_allclose(g, 1.0 / 5000, rtol=1e-2)


def test_a_spread_in_half_precision_does_not_overflow() -> None:
    x = np.linspace(-15.0, 15.0, 64).astype(np.float16)
    for function in (np.var, np.std, np.mean):
        wide = both(lambda x: function(x) * 100.0, x.astype(float))  # noqa: B023
        narrow = ad.gradient(lambda x: function(x) * 100.0, x)  # noqa: B023
        assert narrow.dtype == np.float16
        np.testing.assert_allclose(narrow, wide, rtol=2e-2, atol=1e-6)


# --- averages and NaN ------------------------------------------------------------


def test_weights_are_differentiated_too() -> None:
    values, weights = M, np.array([1.0, 2.0, 4.0])

    def f(w: Any) -> Any:
        return np.sum(np.average(values, axis=1, weights=w) ** 2)

    numeric.assert_close(both(f, weights), numeric.gradient(f, weights), 1e-8)
    with pytest.raises(ZeroDivisionError):
        ad.gradient(lambda w: np.average(weights, weights=w - w), weights)
    with pytest.raises(TypeError, match="Axis must be specified"):
        ad.gradient(lambda w: np.average(values, weights=w), weights)


def test_an_average_returns_its_weights() -> None:
    seen = []

    def f(m: Any) -> Any:
        mean, total = np.average(m, axis=0, weights=[1.0, 3.0], returned=True)
        seen.append(total)
        return np.sum(mean)

    np.testing.assert_allclose(both(f, M), [[0.25] * 3, [0.75] * 3])
    np.testing.assert_array_equal(seen[0], [4.0, 4.0, 4.0])


def test_all_nan_warns_as_numpy() -> None:
    x = np.full(3, np.nan)
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        np.nanmax(x)
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        g = ad.gradient(lambda x: np.nanmax(x) + np.sum(x), x)
    np.testing.assert_array_equal(g, 1.0)
