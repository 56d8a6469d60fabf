"""Linear systems, inverses and norms: the battery, and the values at the kinks."""

from __future__ import annotations

import numpy as np
import pytest

import dualad as ad
from dualad.testing import check_rule
from tests.domains import LINALG, REAL, ROW, SQUARE, STACK, THOROUGH, battery

pytestmark = pytest.mark.filterwarnings("ignore::dualad.IndependentOutputWarning")


@battery(LINALG)
def test_battery(function, args, params):
    check_rule(function, *args, thorough=THOROUGH, **params)


def test_only_one_axis_makes_a_vector():
    # NumPy 2: a right-hand side with two axes is a matrix, also for a stack.
    value, _ = ad.vjp(np.linalg.solve, STACK, SQUARE)
    assert value.shape == (3, 3, 3)
    value, pull = ad.vjp(np.linalg.solve, STACK, ROW)
    assert value.shape == (3, 3)
    a_bar, b_bar = pull(np.ones((3, 3)))
    assert a_bar.shape == STACK.shape
    assert b_bar.shape == ROW.shape


def test_solve_agrees_with_inv():
    def by_solve(a, b):
        return np.sum(np.linalg.solve(a, b) ** 2)

    def by_inv(a, b):
        return np.sum((np.linalg.inv(a) @ b) ** 2)

    for b in (ROW, SQUARE.T):
        got = ad.gradient(by_solve, SQUARE, b)
        expected = ad.gradient(by_inv, SQUARE, b)
        for x, y in zip(got, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)


@pytest.mark.parametrize("function", [np.linalg.inv, lambda a: np.linalg.solve(a, ROW)])
def test_singular_matrices_raise_what_numpy_raises(function):
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        ad.gradient(lambda a: np.sum(function(a)), np.zeros((3, 3)))


@pytest.mark.parametrize(
    "norm",
    [
        np.linalg.norm,
        lambda x: np.linalg.norm(x, 1),
        lambda x: np.linalg.norm(x, 3),
        lambda x: np.linalg.norm(x, np.inf),
        lambda x: np.linalg.norm(x[None], "fro"),
        lambda x: np.sum(np.linalg.norm(x, axis=0, keepdims=True)),
        np.linalg.vector_norm,
        lambda x: np.linalg.matrix_norm(x[None]),
    ],
)
def test_derivatives_of_norms_at_zero_are_zero(norm):
    zero = np.zeros(3)
    np.testing.assert_array_equal(ad.gradient(norm, zero), zero)
    np.testing.assert_array_equal(ad.gradient(norm, zero, mode="forward"), zero)
    np.testing.assert_array_equal(ad.hessian(norm, zero), np.zeros((3, 3)))


def test_one_zero_row_among_others():
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    got = ad.gradient(lambda x: np.sum(np.linalg.norm(x, axis=1)), x)
    np.testing.assert_allclose(got, [[0.6, 0.8], [0.0, 0.0]])


def test_ties_of_the_maximum_norm_share():
    got = ad.gradient(lambda x: np.linalg.norm(x, np.inf), np.array([2.0, -2.0, 1.0]))
    np.testing.assert_array_equal(got, [0.5, -0.5, 0.0])


def test_the_number_of_nonzeros_is_constant():
    def f(x):
        count = np.linalg.norm(x, 0)
        assert count == 2
        return count * np.sum(x)

    np.testing.assert_array_equal(ad.gradient(f, np.array([2.0, 0.0, 1.0])), [2, 2, 2])


@pytest.mark.parametrize("order", [2, -2, "nuc"])
def test_norms_by_singular_values_are_refused(order):
    with pytest.raises(ad.UnsupportedArgumentError, match=r"np\.linalg\.norm"):
        ad.gradient(lambda x: np.linalg.norm(x, order), REAL)


def test_an_active_order_is_refused():
    with pytest.raises(ad.UnsupportedArgumentError, match="ord"):
        ad.gradient(lambda x, p: np.linalg.norm(x, p), ROW, 2.5)


@pytest.mark.parametrize(
    ("x", "args", "params"),
    [
        (ROW, ("fro",), {}),
        (ROW, ("nuc",), {}),
        (REAL, (3,), {}),
        (REAL, ("wrong",), {}),
        (STACK, (2,), {}),
        (STACK, (), {"axis": (0, 1, 2)}),
        (REAL, (1,), {"axis": (0, 0)}),
        (REAL, (), {"axis": 2}),
    ],
)
def test_wrong_orders_raise_what_numpy_raises(x, args, params):
    with pytest.raises(ValueError) as expected:  # noqa: PT011 -- any text
        np.linalg.norm(x, *args, **params)
    with pytest.raises(type(expected.value)):
        ad.gradient(lambda x: np.sum(np.linalg.norm(x, *args, **params)), x)
