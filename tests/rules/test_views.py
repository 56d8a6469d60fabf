"""Views share memory with what they are views of; so must their shadows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import dualad as ad
from dualad.errors import OverlappingWriteError
from dualad.testing import check_rule
from tests import numeric
from tests.samples_arrays import VIEWS, cases
from tests.versions import since

MODES = pytest.mark.parametrize("mode", ["reverse", "forward"])
X = np.array([0.5, -1.5, 2.5, 1.0, -0.25, 0.75])
M = X.reshape(2, 3)
Z = np.array([0.5 + 2.0j, -1.5 + 0.25j])


@pytest.mark.parametrize(("function", "args", "params"), cases(VIEWS))
def test_rule(function: Any, args: Any, params: Any) -> None:
    check_rule(function, *args, **params)


@MODES
@pytest.mark.parametrize(
    "look",
    [
        lambda y: y.T,
        lambda y: np.transpose(y, (1, 0)),
        lambda y: np.swapaxes(y, 0, 1),
        lambda y: np.moveaxis(y, 0, -1),
        lambda y: np.rollaxis(y, 1),
        lambda y: np.matrix_transpose(y),
        lambda y: y.mT,
        lambda y: np.reshape(y, (3, 2)),
        lambda y: y.reshape(-1),
        lambda y: y.T.reshape(-1, order="F"),
        lambda y: np.ravel(y),
        lambda y: np.expand_dims(y, 1),
        lambda y: np.squeeze(y[:1]),
        lambda y: np.flip(y),
        lambda y: np.fliplr(y),
        lambda y: np.flipud(y),
        lambda y: np.rot90(y),
        lambda y: np.rot90(y, -1),
        lambda y: np.rot90(y, 2),
        lambda y: np.rot90(y, 0),
        lambda y: np.atleast_3d(y),
        lambda y: np.atleast_1d(y),
        lambda y: np.array_split(y, 2, axis=1)[1],
        lambda y: np.split(y, 2)[0],
        lambda y: np.hsplit(y, [1])[1],
        lambda y: np.vsplit(y, 2)[1],
        lambda y: np.real(y),
        lambda y: y[::-1, ::2],
        lambda y: y[0],
        lambda y: y[..., None],
    ],
)
def test_writes_go_through_a_view_both_ways(
    look: Callable[[Any], Any], mode: str
) -> None:
    def f(m: Any) -> Any:
        y = 1.0 * m
        view = look(y)
        before = view * view
        view *= 2.0  # y sees it
        y[0, 1] = y[1, 2] * 3.0  # view sees it
        view[..., :1] = 0.5
        return np.sum(before) + np.sum(y * y * M) + np.sum(view * view * view)

    numeric.assert_close(ad.gradient(f, M, mode=mode), numeric.gradient(f, M), 1e-8)


@MODES
@pytest.mark.parametrize(
    "copying",
    [
        lambda y: y.T.reshape(-1),
        lambda y: np.ravel(y.T),
        lambda y: np.ravel(y, order="F"),
        lambda y: np.copy(y).reshape(-1),
        lambda y: y.flatten(),
        lambda y: y.copy().ravel(),
        pytest.param(lambda y: y.reshape(-1, copy=True), marks=since("2.1.0")),
    ],
)
def test_where_numpy_copies_nothing_is_shared(
    copying: Callable[[Any], Any], mode: str
) -> None:
    def f(m: Any) -> Any:
        y = 1.0 * m
        other = copying(y)
        y[0, 1] = 0.0
        other[2] *= 3.0
        return np.sum(other * X) + np.sum(y * y)

    numeric.assert_close(ad.gradient(f, M, mode=mode), numeric.gradient(f, M), 1e-8)


def test_diagonals_are_views_that_cannot_be_written() -> None:
    def f(m: Any) -> Any:
        y = 1.0 * m
        d = np.diagonal(y, 1)
        y[0, 1] = y[0, 0] * y[1, 2]  # d sees it
        return np.sum(d * d)

    numeric.assert_close(ad.gradient(f, M), numeric.gradient(f, M), 1e-8)

    def write(m: Any) -> Any:
        d = np.diagonal(1.0 * m)
        d[0] = 0.0
        return np.sum(d)

    with pytest.raises(ValueError, match="read-only"):
        ad.gradient(write, M)


# --- views whose elements share memory -------------------------------------------


@MODES
def test_every_repetition_of_a_broadcast_counts(mode: str) -> None:
    weights = np.arange(24.0).reshape(4, 2, 3)

    def f(m: Any) -> Any:
        b = np.broadcast_to(m, (4, 2, 3))
        return np.sum(b * b * weights)

    want = 2.0 * M * weights.sum(axis=0)
    numeric.assert_close(ad.gradient(f, M, mode=mode), want)


@MODES
def test_a_broadcast_sees_later_writes(mode: str) -> None:
    def f(x: Any) -> Any:
        y = 1.0 * x
        b = np.broadcast_to(y, (3, 6))
        y[0] = 0.5
        y[1] = y[2] * y[2]
        return np.sum(b * b)

    g = ad.gradient(f, X, mode=mode)
    assert g[0] == 0.0
    numeric.assert_close(g, numeric.gradient(f, X), 1e-8)


@MODES
@pytest.mark.parametrize(
    ("shape", "window", "axis"),
    [
        ((6,), 3, None),
        ((6,), 1, 0),
        ((6,), 6, -1),
        ((2, 3), (2, 2), None),
        ((2, 3), (2, 2), (1, 0)),
        ((2, 3), 3, 1),
        ((6,), (2, 3), (0, 0)),
    ],
)
def test_windows_overlap_and_add_up(
    shape: Any, window: Any, axis: Any, mode: str
) -> None:
    x = X.reshape(shape)

    def f(x: Any) -> Any:
        y = 1.0 * x
        w = sliding_window_view(y, window, axis)
        y[..., 0] *= 2.0  # seen in every window
        return np.sum(w[..., ::-1] ** 3)

    numeric.assert_close(ad.gradient(f, x, mode=mode), numeric.gradient(f, x), 1e-7)


def test_how_often_each_element_is_in_a_window() -> None:
    g = ad.gradient(lambda x: np.sum(sliding_window_view(x, 3)), X)
    np.testing.assert_array_equal(g, [1.0, 2.0, 3.0, 3.0, 2.0, 1.0])


@MODES
def test_views_of_overlapping_views(mode: str) -> None:
    def f(x: Any) -> Any:
        w = sliding_window_view(x, 4)[1:, ::-1].T
        b = np.broadcast_to(w[:, None], (4, 5, 2))[::2]
        return np.sum(b * b * b) + np.sum(np.diagonal(w))

    numeric.assert_close(ad.gradient(f, X, mode=mode), numeric.gradient(f, X), 1e-7)


@MODES
def test_writing_through_shared_memory_raises(mode: str) -> None:
    def f(x: Any) -> Any:
        w = sliding_window_view(1.0 * x, 2, writeable=True)
        w[0] = 0.0
        return np.sum(w)

    with pytest.raises(OverlappingWriteError, match="windows overlap"):
        ad.gradient(f, X, mode=mode)


@MODES
def test_what_has_the_shape_already_is_returned_itself(mode: str) -> None:
    def f(x: Any) -> Any:
        y = 1.0 * x
        a, b = np.broadcast_arrays(y, 2.0)
        assert np.atleast_1d(y) is y
        a[0] = 3.0  # y itself
        return np.sum(y * b)

    want = np.array([0.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    np.testing.assert_array_equal(ad.gradient(f, X, mode=mode), want)


# --- real and imaginary parts ----------------------------------------------------


@MODES
def test_parts_of_complex_memory_are_views(mode: str) -> None:
    def f(z: Any) -> Any:
        y = 1.0 * z
        y.real[0] = y.imag[1] * 3.0
        np.imag(y)[1] *= 2.0
        return np.sum(np.real(y) ** 2) + np.sum(y.imag**3)

    numeric.assert_close(ad.gradient(f, Z, mode=mode), numeric.gradient(f, Z), 1e-8)


@MODES
def test_parts_of_complex_scalars(mode: str) -> None:
    def f(z: Any) -> Any:
        return np.real(z[0]) ** 2 + z[1].imag ** 3 + np.sum(z).real * np.imag(z[0])

    numeric.assert_close(ad.gradient(f, Z, mode=mode), numeric.gradient(f, Z), 1e-8)


@MODES
def test_the_imaginary_part_of_a_real_array_is_zero(mode: str) -> None:
    def f(x: Any) -> Any:
        imaginary = np.imag(x)
        assert isinstance(imaginary, np.ndarray)
        np.testing.assert_array_equal(imaginary, 0.0)
        assert np.real(x) is x
        return np.sum(x * imaginary + np.real(x))

    np.testing.assert_array_equal(ad.gradient(f, X, mode=mode), 1.0)


# --- copies and casts ------------------------------------------------------------


@MODES
def test_a_cast_keeps_the_derivative_and_the_gradient_its_dtype(mode: str) -> None:
    x = X.astype(np.float32)

    def f(x: Any) -> Any:
        y = x.astype(np.float64)
        assert y.dtype == np.float64
        return np.sum(y.astype("f4") * y)

    g = ad.gradient(f, x, mode=mode)
    assert g.dtype == np.float32
    np.testing.assert_allclose(g, 2.0 * x, rtol=1e-6)


@MODES
def test_a_cast_to_complex_projects_back(mode: str) -> None:
    def f(x: Any) -> Any:
        z = x.astype(complex) * (1.0 + 2.0j)
        return np.sum(z.real * z.imag)

    numeric.assert_close(ad.gradient(f, X, mode=mode), 4.0 * X)


@MODES
def test_a_cast_without_need_is_the_array_itself(mode: str) -> None:
    def f(x: Any) -> Any:
        assert x.astype(float, copy=False) is x
        y = x.astype(float)
        y[0] = 0.0
        return np.sum(x) + np.sum(y)

    want = [1.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    np.testing.assert_array_equal(ad.gradient(f, X, mode=mode), want)


@MODES
def test_split_as_numpy_refuses(mode: str) -> None:
    with pytest.raises(ValueError, match="equal division"):
        ad.gradient(lambda x: np.sum(np.split(x, 4)[0]), X, mode=mode)
    pieces = []

    def f(x: Any) -> Any:
        pieces.extend(np.shape(p) for p in np.array_split(x, 4))
        return np.sum(x)

    ad.gradient(f, X, mode="reverse")
    assert pieces == [(2,), (2,), (1,), (1,)]
