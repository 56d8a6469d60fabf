"""Joining arrays, active or not, in lists that are nested or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.testing import check_rule
from tests import numeric
from tests.samples_arrays import JOINING, cases

X = np.array([1.5, -2.0, 0.5])
W = np.array([1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.mark.parametrize(("function", "args", "params"), cases(JOINING))
def test_rule(function: Any, args: Any, params: Any) -> None:
    check_rule(function, *args, **params)


def agrees(f: Callable[[Any], Any], x: Any = X) -> None:
    """Check value and gradient in both modes."""
    value, g = ad.value_and_gradient(f, x)
    assert value == pytest.approx(f(x))
    want = numeric.gradient(f, x)
    numeric.assert_close(g, want, 1e-8)
    numeric.assert_close(ad.gradient(f, x, mode="forward"), want, 1e-8)


def test_active_scalars_inside_an_inner_list() -> None:
    def f(x: Any) -> Any:
        return np.sum(W * np.concatenate([[x[0] * x[1]], x[1:], [2.0 * x[2], 5.0]]))

    np.testing.assert_allclose(ad.gradient(f, X), [-2.0, 3.5, 11.0])
    np.testing.assert_allclose(ad.gradient(f, X, mode="forward"), [-2.0, 3.5, 11.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.concatenate([x, [[x[0]], [2.0]][1], ()]),
        lambda x: np.concatenate([np.outer(x, x), [[x[0], 1.0, x[2]]]]),
        lambda x: np.concatenate((x, np.array([2]), [True])),
        lambda x: np.concatenate(np.outer(x, x)),
        lambda x: np.concatenate([x, x, x * x]),
        lambda x: np.concatenate([x.reshape(3, 1), X.reshape(3, 1)], axis=-1),
        lambda x: np.concatenate([np.outer(x, x), 3.0, x[0]], axis=None),
        lambda x: np.stack([x[0], x[1] * 2.0, 3]),
        lambda x: np.stack([[x[0], 1.0], x[1:], (2.0, x[2])], axis=1),
        lambda x: np.stack(list(x)),
        lambda x: np.stack(np.outer(x, X), axis=1),
        lambda x: np.vstack([x, [x[0], 2.0, x[1]], np.outer(x, x)]),
        lambda x: np.hstack([x, x[0], [1.0, x[2]]]),
        lambda x: np.dstack([x, X, [x[0], x[1], 1.0]]),
        lambda x: np.column_stack([x, X, np.outer(x, x)]),
        lambda x: np.append(x, [x[0], 1.0]),
        lambda x: np.append(X, x[0]),
        lambda x: np.block([x, X]),
        lambda x: np.block([[np.outer(x, x), x[:, None]], [X, x[0]]]),
        lambda x: np.block(x),
        lambda x: np.meshgrid(x, X * 2.0)[0],
        lambda x: np.meshgrid(X, x, indexing="ij")[1],
    ],
)
def test_whatever_is_joined(f: Callable[[Any], Any]) -> None:
    np.testing.assert_array_equal(ad.vjp(f, X)[0], f(X))
    agrees(
        lambda x: np.sum(
            np.sin(f(x)) * np.arange(1.0, np.size(f(X)) + 1).reshape(np.shape(f(X)))
        )
    )


def test_the_same_array_many_times() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.concatenate([x] * 100)) + np.sum(np.stack([x] * 50, axis=-1))

    np.testing.assert_array_equal(ad.gradient(f, X), 150.0)


def test_thousands_of_scalars() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.stack([x[0] * float(i) for i in range(5000)]))

    assert ad.gradient(f, X)[0] == 5000 * 4999 / 2


def test_a_piece_can_be_written_afterwards() -> None:
    def f(x: Any) -> Any:
        y = 1.0 * x
        z = np.concatenate([y, y])
        y[0] = 0.0
        z[1] = y[2]
        return np.sum(z * z * np.arange(6.0)) + np.sum(y)

    agrees(f)


def test_dtype_and_casting() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = np.concatenate([x, [1, 2]], dtype=np.float32)
        z = np.stack([x, X], dtype=np.complex128)
        seen.extend([y.dtype, z.dtype])
        return np.sum(y * y) + np.sum(z.real)

    np.testing.assert_allclose(ad.gradient(f, X), 2.0 * X + 1.0, rtol=1e-6)
    assert seen == [np.float32, np.complex128]
    with pytest.raises(TypeError, match="safe"):
        ad.gradient(
            lambda x: np.sum(np.concatenate([x], dtype="f4", casting="safe")), X
        )


def test_what_numpy_refuses() -> None:
    for call, text in (
        (lambda x: np.concatenate([x[0, ...], x]), "zero-dim"),
        (lambda x: np.concatenate([x, np.outer(x, x)]), "dim"),
        (lambda x: np.stack([x, x[:2]]), "same shape"),
        (lambda x: np.block([[x], x]), "depths"),
        (lambda x: np.meshgrid(x, x, indexing="no"), "indexing"),
    ):
        with pytest.raises(ValueError, match=text):
            ad.gradient(lambda x, call=call: np.sum(call(x)), X)
    with pytest.raises(TypeError):
        ad.gradient(lambda x: np.sum(np.block([x, (x, x)])), X)
