"""reduce, accumulate, reduceat, outer and at of every binary ufunc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.rules import RULES
from tests import numeric

X = np.random.default_rng(0).uniform(0.5, 2.0, (2, 3, 2))
MASK = np.random.default_rng(1).uniform(size=X.shape) > 0.4
V = np.random.default_rng(2).normal(size=X.shape)

UFUNCS = list(
    dict.fromkeys(
        ufunc
        for name in dir(np)
        if isinstance(ufunc := getattr(np, name), np.ufunc)
        and (ufunc.nin, ufunc.nout, ufunc.signature) == (2, 1, None)
        and RULES[ufunc].kind != "constant"
    )
)
# NumPy's own kernels of these read what they have just written where input and output
# share memory, and give another number than the definition (AVX-512, NumPy 2.4).
WRONG_IN_NUMPY = {np.power, np.arctan2, np.float_power}

Call = Callable[[Any, Any], Any]
CALLS: dict[str, Call] = {
    "reduce": lambda u, x: u.reduce(x),
    "reduce, axis": lambda u, x: u.reduce(x, axis=1),
    "reduce, keepdims": lambda u, x: u.reduce(x, -1, keepdims=True),
    "reduce, axis=None": lambda u, x: u.reduce(x, axis=None),
    "reduce, axes": lambda u, x: u.reduce(x, axis=(0, 2)),
    "reduce, no axes": lambda u, x: u.reduce(x, axis=()),
    "reduce, initial": lambda u, x: u.reduce(x, axis=1, initial=1.25),
    "reduce, initial=None": lambda u, x: u.reduce(x, axis=1, initial=None),
    "reduce, where": lambda u, x: u.reduce(x, axis=1, where=MASK),
    "reduce, both": lambda u, x: u.reduce(x, axis=1, initial=1.25, where=MASK),
    "reduce, empty": lambda u, x: u.reduce(x[:, :0], axis=1),
    "reduce, vector": lambda u, x: u.reduce(x[1, 1:, 0]),
    "accumulate": lambda u, x: u.accumulate(x),
    "accumulate, axis": lambda u, x: u.accumulate(x, axis=-2),
    "accumulate, axis=None": lambda u, x: u.accumulate(x, axis=None),
    "accumulate, empty": lambda u, x: u.accumulate(x[:, :0], 1),
    "reduceat": lambda u, x: u.reduceat(x, [0, 1]),
    "reduceat, axis": lambda u, x: u.reduceat(x, [0, 2, 1, 1], axis=1),
    "reduceat, outside": lambda u, x: u.reduceat(x, [0, 5], axis=1),
    "reduceat, none": lambda u, x: u.reduceat(x, np.zeros(0, int), axis=1),
    "outer": lambda u, x: u.outer(x[0], x[1, :, 0]),
    "outer, list": lambda u, x: u.outer([1.5, 2.0], x),
    "outer, scalar": lambda u, x: u.outer(x[0, 0, 0], x[1]),
    "outer, keywords": lambda u, x: u.outer(
        x[0], x[1], out=np.zeros_like(x, shape=(3, 2, 3, 2))
    ),
    "at, repeated": lambda u, x: at(u, x, [0, 0, 1], 1.5),
    "at, mixed": lambda u, x: at(u, x, (slice(None), [0, 0, 2]), x[:1] * 0.5),
    "at, mask": lambda u, x: at(u, x, MASK, 1.25),
    "at, one": lambda u, x: at(u, x, (0, 1, 1), x[1, 1, 1]),
    "at, unique": lambda u, x: at(u, x, [1, 0], 2.0),
}


def at(ufunc: Any, x: Any, index: Any, *values: Any) -> Any:
    """Return what is in a copy of ``x`` after ``ufunc.at``."""
    y = 1.0 * x
    assert ufunc.at(y, index, *values) is None
    return y


def outcome(call: Call, ufunc: Any, x: Any) -> Any:
    """Return the result of a call, or the kind of error that it raises."""
    try:
        return call(ufunc, x)
    except (TypeError, ValueError, IndexError) as error:
        return type(error)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
@pytest.mark.filterwarnings("ignore::dualad.IndependentOutputWarning")
def test_method(ufunc: Any, name: str) -> None:
    call = CALLS[name]
    want = outcome(call, ufunc, X)
    if isinstance(want, type):
        with pytest.raises(want):
            ad.vjp(lambda x: call(ufunc, x), X)
        return
    seen = []

    def f(x: Any) -> Any:
        y = call(ufunc, x)
        seen.append(ad.primal(y))
        weights = np.arange(1.0, np.size(want) + 1).reshape(np.shape(want))
        return np.sum(np.where(np.isfinite(want), y, 0.0) * weights)

    _, g = ad.value_and_gradient(f, X)
    _, tangent = ad.jvp(f, (X,), (V,))
    for got in seen:
        assert np.shape(got) == np.shape(want)
        assert np.asarray(got).dtype == want.dtype
        assert isinstance(got, np.ndarray) == isinstance(want, np.ndarray)
        if ufunc not in WRONG_IN_NUMPY or "reduce" not in name:
            np.testing.assert_allclose(got, want, rtol=1e-14)
    expected = numeric.directional(
        lambda x: f(x) if ufunc not in WRONG_IN_NUMPY else ad.vjp(f, x)[0], X, V
    )
    scale = max(1.0, abs(expected))
    assert abs(tangent - expected) < 1e-8 * scale
    assert abs(np.sum(g * V) - expected) < 1e-8 * scale


@pytest.mark.parametrize("ufunc", [np.greater, np.logical_and, np.floor_divide])
def test_constant_ufuncs_give_plain_arrays(ufunc: Any) -> None:
    def f(x: Any) -> Any:
        for result in (
            ufunc.outer(x, x),
            ufunc.reduce(x, axis=0) if ufunc is not np.greater else np.zeros(2),
            ufunc.accumulate(x, axis=1) if ufunc is np.floor_divide else np.zeros(2),
        ):
            assert type(result) is np.ndarray
        return np.sum(x)

    np.testing.assert_array_equal(ad.gradient(f, X), 1.0)


def test_unary_ufuncs_at() -> None:
    def f(x: Any) -> Any:
        y = 1.0 * x
        np.exp.at(y, ([0, 0, 1], [1, 1, 2]))  # twice at (0, 1)
        np.negative.at(y, 0)
        return np.sum(y * y * X)

    x = X / 2.0
    want = numeric.gradient(f, x)
    numeric.assert_close(ad.gradient(f, x), want, 1e-7)
    numeric.assert_close(ad.gradient(f, x, mode="forward"), want, 1e-7)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_adding_at_repeated_places_adds_each_time(mode: str) -> None:
    places = np.array([0, 1, 0, 0])

    def f(x: Any) -> Any:
        y = np.zeros_like(x[:3])
        np.add.at(y, places, x)
        np.subtract.at(y, [2, 2], x[1])
        np.add.at(y, [1, 1], 2.0)
        return np.sum(y * y)

    x = np.array([1.0, 2.0, 3.0, 4.0])
    numeric.assert_close(ad.gradient(f, x, mode=mode), numeric.gradient(f, x), 1e-8)


def test_logarithms_of_sums_do_not_overflow() -> None:
    x = np.array([1000.0, 1001.0, -np.inf])
    value, g = ad.value_and_gradient(np.logaddexp.reduce, x)
    assert value == np.logaddexp.reduce(x)
    p = 1.0 / (1.0 + np.exp(-1.0))
    np.testing.assert_allclose(g, [1.0 - p, p, 0.0])
    nothing = np.full(3, -np.inf)
    value, g = ad.value_and_gradient(np.logaddexp.reduce, nothing)
    assert value == -np.inf
    np.testing.assert_array_equal(g, 0.0)
    h = ad.hessian(np.logaddexp2.reduce, np.array([0.5, 1.5, -1.0]))
    want = numeric.jacobian(
        lambda x: ad.gradient(np.logaddexp2.reduce, x), np.array([0.5, 1.5, -1.0])
    )
    numeric.assert_close(h, want, 1e-8)


def test_an_initial_value_is_differentiated_too() -> None:
    def f(x: Any) -> Any:
        a = np.add.reduce(x[:2], initial=x[2] * 3.0)
        b = np.multiply.reduce(x, initial=x[0])
        c = np.hypot.reduce(x, initial=x[1])
        d = np.subtract.reduce(x, initial=x[1] * x[2])
        e = np.logaddexp.reduce(x, initial=x[1] * x[2])
        return a * b + c * d + e

    x = np.array([0.5, 1.5, 2.0])
    numeric.assert_close(ad.gradient(f, x), numeric.gradient(f, x), 1e-8)
    numeric.assert_close(
        ad.gradient(f, x, mode="forward"), numeric.gradient(f, x), 1e-8
    )
