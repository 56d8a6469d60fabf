"""Sorting and order statistics, with and without ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.rules import RULES
from dualad.testing import check_rule
from tests import numeric
from tests.samples_arrays import ORDERING, cases
from tests.versions import since, until

MODES = pytest.mark.parametrize("mode", ["reverse", "forward"])
X = np.array([0.5, -1.5, 2.5, 1.0, -0.25, 0.75])


@pytest.mark.parametrize(("function", "args", "params"), cases(ORDERING))
def test_rule(function: Any, args: Any, params: Any) -> None:
    check_rule(function, *args, **params)


@MODES
def test_ties_are_sorted_in_numpys_stable_order(mode: str) -> None:
    x = np.array([2.0, 1.0, 2.0, 1.0, 1.0])
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    for kind in (None, "quicksort", "stable"):
        g = ad.gradient(lambda x: np.sum(weights * np.sort(x, kind=kind)), x, mode=mode)  # noqa: B023
        np.testing.assert_array_equal(g, [4.0, 1.0, 5.0, 2.0, 3.0])


@since("2.5.0")
@MODES
def test_ties_stay_in_order_where_the_sort_descends(mode: str) -> None:
    x = np.array([2.0, 1.0, 2.0, 1.0, 1.0])
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0])

    def in_place(x: Any, **params: Any) -> Any:
        y = 1.0 * x
        y.sort(**params)
        return y

    g = ad.gradient(lambda x: weights @ in_place(x, descending=True), x, mode=mode)
    np.testing.assert_array_equal(g, [1.0, 3.0, 2.0, 4.0, 5.0])
    for stable in (None, False, True):
        g = ad.gradient(
            lambda x: np.sum(weights * np.sort(x, descending=True, stable=stable)),  # noqa: B023
            x,
            mode=mode,
        )
        np.testing.assert_array_equal(g, [1.0, 3.0, 2.0, 4.0, 5.0])


@since("2.5.0")
@MODES
def test_nan_is_sorted_to_the_end_where_the_sort_descends(mode: str) -> None:
    x = np.array([np.nan, 2.0, np.nan, 1.0])
    value, _ = ad.jvp(lambda x: np.sort(x, descending=True), (x,), (x,))
    np.testing.assert_array_equal(value, np.sort(x, descending=True))
    g = ad.gradient(
        lambda x: np.dot(np.sort(x, descending=True)[:2], [3.0, 1.0]), x, mode=mode
    )
    np.testing.assert_array_equal(g, [0.0, 3.0, 0.0, 1.0])


@since("2.5.0")
def test_a_descending_sort_has_no_kind() -> None:
    for descending in (True, False):
        with pytest.raises(ValueError, match="same time"):
            ad.gradient(
                lambda x: np.sort(x, kind="stable", descending=descending)[0],  # noqa: B023
                X,
            )


@until("2.5.0")
def test_a_descending_sort_is_refused_where_numpy_has_none() -> None:
    with pytest.raises(TypeError, match="descending"):
        ad.gradient(lambda x: np.sort(x, descending=True)[0], X)
    with pytest.raises(TypeError, match="descending"):
        ad.gradient(lambda x: RULES[np.sort].primal(x, descending=True)[0], X)


@MODES
def test_a_sorted_array_is_a_copy(mode: str) -> None:
    def f(x: Any) -> Any:
        y = 1.0 * x
        z = np.sort(y)
        y[0] = 0.0
        z[1] = 3.0
        return np.sum(z * z * z) + np.sum(y)

    numeric.assert_close(ad.gradient(f, X, mode=mode), numeric.gradient(f, X), 1e-8)


@MODES
def test_nan_is_sorted_to_the_end(mode: str) -> None:
    x = np.array([np.nan, 2.0, np.nan, 1.0])
    value, _ = ad.jvp(np.sort, (x,), (x,))
    np.testing.assert_array_equal(value, np.sort(x))
    g = ad.gradient(lambda x: np.sort(x)[0] * 3.0 + np.sort(x)[1], x, mode=mode)
    np.testing.assert_array_equal(g, [0.0, 1.0, 0.0, 3.0])


def test_orders_are_plain() -> None:
    def f(x: Any) -> Any:
        for places in (
            np.argsort(x),
            x.argsort(),
            np.argmax(x),
            np.searchsorted(np.sort(x), x),
            np.argpartition(x, 2),
            np.lexsort((x,)),
            np.digitize(x, [0.0, 1.0]),
            np.flatnonzero(x > 0.0),
        ):
            assert isinstance(places, np.ndarray | np.integer)
        return np.sum(x[np.argsort(x)] * np.arange(6.0))

    order = np.argsort(np.argsort(X))
    np.testing.assert_array_equal(ad.gradient(f, X), order)


@pytest.mark.parametrize("length", [1, 2, 5, 40, 400])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex128])
def test_a_partition_is_numpys_to_the_last_place(length: int, dtype: Any) -> None:
    rng = np.random.default_rng(length)
    x = rng.integers(-20, 20, (2, length)).astype(dtype)
    for kth in {0, length // 2, length - 1}:
        value, _ = ad.vjp(lambda x: np.partition(x, kth, axis=-1), x)  # noqa: B023
        np.testing.assert_array_equal(value, np.partition(x, kth, axis=-1))


@MODES
@pytest.mark.parametrize(
    ("x", "want"),
    [
        ([3.0, 1.0, 2.0], [0.0, 0.0, 1.0]),
        ([3.0, 1.0, 2.0, 4.0], [0.5, 0.0, 0.5, 0.0]),
        ([2.0, 1.0, 2.0, 4.0], [0.5, 0.0, 0.5, 0.0]),
        ([2.0, 2.0, 2.0, 4.0, 1.0], [1 / 3, 1 / 3, 1 / 3, 0.0, 0.0]),
        ([2.0, 2.0, 3.0, 3.0], [0.25, 0.25, 0.25, 0.25]),
        ([7.0], [1.0]),
    ],
)
def test_a_median_shares_equally_among_ties(x: Any, want: Any, mode: str) -> None:
    np.testing.assert_allclose(ad.gradient(np.median, np.array(x), mode=mode), want)


def test_a_median_has_numpys_values() -> None:
    rng = np.random.default_rng(3)
    for shape in ((5,), (6,), (3, 4), (2, 3, 5)):
        x = rng.normal(size=shape)
        for axis in (None, 0, -1, tuple(range(len(shape)))):
            for keepdims in (False, True):
                params: Any = {"axis": axis, "keepdims": keepdims}
                value, _ = ad.vjp(lambda x: np.median(x, **params), x)  # noqa: B023
                np.testing.assert_array_equal(value, np.median(x, **params))
    x[0, 1, 2] = np.nan
    value, _ = ad.vjp(lambda x: np.median(x, axis=1), x)
    np.testing.assert_array_equal(value, np.median(x, axis=1))


def test_what_numpy_refuses() -> None:
    with pytest.raises(ValueError, match="fields"):
        ad.gradient(lambda x: np.sum(np.sort(x, order="a")), X)
    with pytest.raises(ValueError, match="fields"):
        ad.gradient(lambda x: np.sum(np.partition(x, 1, order="a")), X)
    with pytest.raises(ValueError, match="same time"):
        ad.gradient(lambda x: np.sum(np.sort(x, kind="stable", stable=True)), X)
    with pytest.raises(ValueError, match="kth"):
        ad.gradient(lambda x: np.sum(np.partition(x, 9)), X)
    with pytest.raises(np.exceptions.AxisError):
        ad.gradient(lambda x: np.sum(np.sort(x, axis=1)), X)
