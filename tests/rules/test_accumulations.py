"""What accumulates along an axis, exact where factors are zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.testing import check_rule
from tests import numeric
from tests.samples_arrays import ACCUMULATIONS, cases

W = np.array([1.0, -2.0, 0.5, 3.0, 1.5])


@pytest.mark.parametrize(("function", "args", "params"), cases(ACCUMULATIONS))
def test_rule(function: Any, args: Any, params: Any) -> None:
    check_rule(function, *args, **params)


def both(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient, which must be the same in both modes."""
    reverse = ad.gradient(f, x, mode="reverse")
    np.testing.assert_allclose(ad.gradient(f, x, mode="forward"), reverse, atol=1e-12)
    return reverse


def slow_gradient(x: Any, weights: Any) -> Any:
    """Return the gradient of ``sum(weights * cumprod(x))`` by definition."""
    g = np.zeros_like(x)
    for k in range(len(x)):
        for i in range(k + 1):
            g[i] += weights[k] * np.prod(np.delete(x[: k + 1], i))
    return g


@pytest.mark.parametrize(
    "x",
    [
        [2.0, -3.0, 0.5, 4.0, 1.5],
        [0.0, -3.0, 0.5, 4.0, 1.5],
        [2.0, 0.0, 0.5, 0.0, 1.5],
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [2.0, -3.0, 0.5, 4.0, 0.0],
    ],
)
def test_running_products_are_exact(x: Any) -> None:
    x = np.array(x)
    want = slow_gradient(x, W)
    np.testing.assert_allclose(both(lambda x: np.sum(W * np.cumprod(x)), x), want)
    h = ad.hessian(lambda x: np.sum(W * np.cumprod(x)), x)
    for i in range(5):
        step = np.zeros(5)
        step[i] = 0.5  # multilinear: a difference is the derivative
        d = slow_gradient(x + step, W) - slow_gradient(x - step, W)
        np.testing.assert_allclose(h[i], d, atol=1e-12)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7, 8, 9, 33])
def test_any_length(length: int) -> None:
    x = np.linspace(0.5, 1.5, length)
    weights = np.cos(np.arange(length))
    g = both(lambda x: np.sum(weights * np.cumprod(x)) + np.sum(x), x)
    np.testing.assert_allclose(g, 1.0 + slow_gradient(x, weights))


def test_along_each_axis_and_flat() -> None:
    x = np.linspace(-1.0, 1.5, 12).reshape(2, 3, 2)
    for function in (np.cumsum, np.cumprod):
        for axis in (None, 0, 1, 2, -1, -3):

            def f(x: Any, function: Any = function, axis: Any = axis) -> Any:
                y = function(x, axis=axis)
                return np.sum(y * y)

            numeric.assert_close(both(f, x), numeric.gradient(f, x), 1e-7)


def test_running_sums_in_half_precision() -> None:
    x = np.full(3000, 2.0**-8, np.float16)
    g = ad.gradient(lambda x: np.cumsum(x)[-1], x)
    assert g.dtype == np.float16
    np.testing.assert_array_equal(g, 1.0)


def test_differences_refuse_as_numpy() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        ad.gradient(lambda x: np.sum(np.diff(x, -1)), W)
    with pytest.raises(ValueError, match="one dimensional"):
        ad.gradient(lambda x: np.diff(x[0]), W)
    np.testing.assert_array_equal(both(lambda x: np.sum(np.diff(x, 0)), W), 1.0)


def test_ends_are_differentiated_too() -> None:
    def f(x: Any) -> Any:
        a = np.diff(x, prepend=x[0] * 3.0, append=x[:2] * x[1:3])
        b = np.ediff1d(x, to_end=x[0] * x[1], to_begin=[x[2], 1.0])
        return np.sum(a**2) + np.sum(b**3)

    numeric.assert_close(both(f, W), numeric.gradient(f, W), 1e-7)


def test_abscissae_are_differentiated_too() -> None:
    def f(x: Any) -> Any:
        return np.trapezoid(np.sin(x) * x, x * x)

    x = np.array([0.5, 0.75, 1.5, 2.0])
    numeric.assert_close(both(f, x), numeric.gradient(f, x), 1e-8)
