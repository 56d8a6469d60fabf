"""Calls that differ from NumPy's own only in carrying a derivative.

Each gives the value, dtype and kind of result (scalar or array) that NumPy gives, or
the same error: cases where a composition of ours once did not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad

X = np.array([[0.6, -1.3, 1.7], [-0.45, 2.4, -2.2]])
V = X[0]
Z = X + 1j * X[::-1]
F = X.astype(np.float32)
NUMBER = np.array(1.5)
SQUARE = np.array([[2.1, 0.3, -0.4], [0.5, -1.8, 0.6], [0.2, 0.7, 2.6]])
HOLES = np.where(X > 1.0, np.nan, X)

Call = Callable[[Any], Any]
VALUES: dict[str, tuple[np.ndarray, Call]] = {
    "astype of a scalar": (V, lambda x: x[0].astype(np.float32)),
    "astype of a scalar to complex": (V, lambda x: np.sum(x).astype(complex)),
    "trapezoid with a column of spacings": (
        X,
        lambda x: np.trapezoid(x.T, dx=np.array([[0.5], [2.0]]), axis=0),
    ),
    "average of a number": (
        NUMBER,
        lambda x: np.average(x, keepdims=True, returned=True),
    ),
    "average of complex numbers": (
        Z,
        lambda x: np.average(x, weights=X + 3.0, returned=True),
    ),
    "average of integers by single weights": (
        F + 3.0,
        lambda x: np.average(np.arange(6).reshape(2, 3), weights=x, returned=True),
    ),
    "var with a mean, in another dtype": (
        X,
        lambda x: np.var(x, mean=X[:, :1], dtype=np.float32),
    ),
    "median of no rows": (X[:, :0], lambda x: np.median(x, axis=0)),
    "nanvar without freedom": (HOLES, lambda x: np.nanvar(x, axis=0, ddof=1)),
    "nanstd without freedom": (HOLES, lambda x: np.nanstd(x, axis=0, ddof=2)),
    "nanmax of nothing": (X[:0], lambda x: np.nanmax(x, axis=0, initial=-5.0)),
    "nanmin of what is unknown": (
        HOLES[:1, 2:],
        lambda x: np.nanmin(x, axis=0, initial=3.0),
    ),
    "cumprod of a number": (NUMBER, lambda x: np.cumprod(x, axis=0)),
    "logaddexp.reduce of a number": (NUMBER, lambda x: np.logaddexp.reduce(x, axis=-1)),
    "parts of one element": (X, lambda x: np.hypot.reduceat(x, [0, 1])),
}
WRITES: dict[str, tuple[np.ndarray, Call]] = {
    "put at a Python float": (V, lambda x: np.put(x, 1.5, 2.0)),
    "place a Python number": (F, lambda x: np.place(x, F > 0, 2)),
    "a matrix of the same shape": (SQUARE, lambda x: operator.imatmul(x, SQUARE.T)),
    "an empty diagonal": (X, lambda x: np.fill_diagonal(x, np.zeros(0))),
}
ERRORS: dict[str, tuple[np.ndarray, Call]] = {
    "median": (V, lambda x: np.median(x, axis=-2)),
    "median of a number": (NUMBER, lambda x: np.median(x, axis=0)),
    "vector_norm": (V, lambda x: np.linalg.vector_norm(x, axis=-2, ord=3)),
    "norm of a number": (NUMBER, lambda x: np.linalg.norm(x, ord=1, axis=-1)),
    "average": (NUMBER, lambda x: np.average(x, axis=0, weights=1.5)),
    "diag of three axes": (X, lambda x: np.diag(x[None])),
    "diff": (V, lambda x: np.diff(x, axis=(0,))),
    "cumprod": (V, lambda x: np.cumprod(x, axis=(0,))),
    "cumprod of a number": (NUMBER, lambda x: np.cumprod(x, axis=1)),
    "vecdot": (X, lambda x: np.linalg.vecdot(x, x, axis=(0,))),
    "put": (V, lambda x: np.put(x, np.array([0.0]), 1.0)),
    "put_along_axis": (
        X,
        lambda x: np.put_along_axis(x, np.array([[0, 1]]), 0.0, None),
    ),
    "place": (F, lambda x: np.place(x, F > 0, X)),
    "putmask": (F, lambda x: np.putmask(x, F > 0, X)),
    "x @= vector": (SQUARE, lambda x: operator.imatmul(x, V)),
    "x @= column": (SQUARE, lambda x: operator.imatmul(x, V[:, None])),
    "sort of the flat array": (V, lambda x: x.sort(axis=None)),
    "partition of the flat array": (V, lambda x: x.partition(1, axis=None)),
    "a complex result where asked": (
        X,
        lambda x: np.sqrt(x, dtype=complex, where=X > 0, out=np.zeros_like(x)),
    ),
}


@pytest.mark.parametrize("call", [np.ravel, lambda x, order: x.flatten(order)])
def test_memory_order_of_a_broadcast_array(call: Any) -> None:
    """NumPy's memory order of a broadcast array and of its copy are not the same."""

    def f(x: Any, order: str = "K") -> Any:
        return call(np.broadcast_to(x, (3, 7)), order)[:9]

    x = np.arange(7.0)[::-1]
    for run in (ad.vjp, lambda f, x: ad.jvp(f, (x,), (x,))):
        for order in ("K", "k"):  # NumPy takes both
            with pytest.raises(ad.UnsupportedArgumentError, match="order"):
                run(lambda x, order=order: f(x, order), x)
        for order in ("C", "F", "A"):
            value = run(lambda x, order=order: f(x, order), x)[0]
            np.testing.assert_array_equal(value, f(x, order))


def forward(f: Call, x: np.ndarray) -> None:
    """Run ``f`` with dual numbers."""
    ad.jvp(f, (x,), (np.ones_like(x),))


def reverse(f: Call, x: np.ndarray) -> None:
    """Run ``f`` on a tape."""
    ad.vjp(f, x)


def result_of(run: Any, call: Call, x: np.ndarray) -> Any:
    """Return what a call gives on active arrays, stripped, or the error."""
    found: list[Any] = []

    def f(x: Any) -> Any:
        try:
            result = call(x)
            found.append(ad.primal(x if result is None else result))
        except (TypeError, ValueError) as e:  # AxisError is a ValueError
            found.append(e)
        return x

    run(f, x.copy())
    return found[0]


@pytest.mark.parametrize("run", [forward, reverse])
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.filterwarnings("ignore")
def test_values(name: str, run: Any) -> None:
    """Value, dtype and kind of the result are NumPy's."""
    x, call = VALUES[name]
    found, expected = result_of(run, call, x), call(x.copy())
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else None
    for got, wanted in pairs or [(found, expected)]:
        assert type(got) is type(wanted)
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-6, strict=True)


@pytest.mark.parametrize("run", [forward, reverse])
@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, run: Any) -> None:
    """What is written is what NumPy writes."""
    x, call = WRITES[name]
    expected = x.copy()
    call(expected)
    np.testing.assert_array_equal(result_of(run, call, x), expected)


@pytest.mark.parametrize("run", [forward, reverse])
@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, run: Any) -> None:
    """What NumPy refuses is refused with the same kind of error."""
    x, call = ERRORS[name]
    with pytest.raises((TypeError, ValueError)) as raised:
        call(x.copy())
    kind = TypeError if issubclass(raised.type, TypeError) else raised.type
    assert isinstance(result_of(run, call, x), kind)  # NumPy's UFuncTypeError is one


@pytest.mark.parametrize("dtype", [np.float32, complex])
def test_scalars_are_cast(dtype: Any) -> None:
    """The derivative goes through: d (2 t) = 2."""

    def doubled(t: Any) -> Any:
        return (2.0 * t).astype(dtype)

    assert ad.derivative(doubled, 1.5) == 2.0
    assert ad.gradient(lambda t: np.real(doubled(t)), 1.5) == 2.0


def test_spacings_along_the_axis() -> None:
    """The derivative of the rule is half of the sum of neighbouring spacings."""
    dx = np.array([[0.5], [2.0]])
    found = ad.gradient(lambda y: np.sum(np.trapezoid(y, dx=dx, axis=0)), X.T)
    np.testing.assert_allclose(found, np.repeat([[0.25], [1.25], [1.0]], 2, axis=1))
