"""Programs that a naive design differentiates silently wrong, each with its numbers.

Unless said otherwise the expected values were worked out by hand: the formula stands
beside them.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import operator
import threading
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import dualad as ad
from tests import numeric

Function = Callable[[Any], Any]

X = np.array([0.3, 0.7, 1.1, -0.4])
W = np.array([1.2, -0.5, 2.2, 0.9])
LARGE = 4096  # float64 elements: 32 KiB, above the 16 KiB that are copied


def check(f: Function, x: Any, want: Any, *, limit: float = 1e-10) -> None:
    """Check the gradient of ``f`` by every way to it, and the memory of ``x``."""
    plain = numeric.like(x, x)
    value = f(plain)
    ways = {
        "reverse": lambda y: ad.gradient(f, y),
        "forward": lambda y: ad.gradient(f, y, mode="forward"),
        "pullback": lambda y: ad.vjp(f, y)[1](1.0),
        "shadow": lambda y: shadow_of(f, y),
        "jvp": lambda y: columns(f, y),
    }
    for name, way in ways.items():
        y = numeric.like(x, x)
        got = way(y)
        try:
            numeric.assert_close(got, want, limit)
            np.testing.assert_array_equal(y, plain)
        except AssertionError as e:
            e.add_note(f"way: {name}")
            raise
    assert ad.value_and_gradient(f, numeric.like(x, x))[0] == value


def shadow_of(f: Function, x: Any) -> Any:
    """Return the gradient by way of a caller's shadow, less what that held before.

    Where ``f`` writes into x, that counts as the cotangent of the final x.
    """

    def final(y: Any) -> Any:
        f(y)
        return y

    start = np.full(np.shape(x), 2.0, np.asarray(x).dtype)
    carried = ad.vjp(final, numeric.like(x, x))[1](start)
    shadow = start.copy()
    ad.autodiff(ad.Reverse, f, ad.Duplicated(x, shadow))
    return shadow - carried


def columns(f: Function, x: Any) -> Any:
    """Return the gradient by one tangent at a time."""
    start = numeric.like(x, x)
    slopes = []
    for e in numeric.basis(x):
        x[...] = start
        slopes.append(ad.jvp(f, (x,), (e,))[1])
    return np.reshape(slopes, np.shape(x))


def check_hvp(f: Function, x: Any, v: Any, want: Any) -> None:
    """Check a Hessian-vector product by four ways."""

    def slope(y: Any) -> Any:
        return np.sum(v * ad.gradient(f, y))

    def tangent(y: Any) -> Any:
        return ad.jvp(f, (y,), (v,))[1]

    numeric.assert_close(ad.hvp(f, numeric.like(x, x), v), want)
    numeric.assert_close(ad.gradient(slope, numeric.like(x, x)), want)
    numeric.assert_close(ad.gradient(tangent, numeric.like(x, x)), want)
    got = [ad.jvp(tangent, (numeric.like(x, x),), (e,))[1] for e in numeric.basis(x)]
    numeric.assert_close(np.reshape(got, np.shape(x)), want)


class TestOrderOfAWrite:
    """Copy the cotangent, clear its place, then add (finding 1)."""

    def test_augmented_through_a_slice(self) -> None:
        """Differentiate sum((2x + 1 at two places)^2): 4 (2x + 1), else 8x."""

        def f(x: Any) -> Any:
            y = 2.0 * x
            y[:2] += 1.0
            return np.sum(y * y)

        check(f, X, 8.0 * X + [4.0, 4.0, 0.0, 0.0])
        check_hvp(f, X, W, 8.0 * W)

    def test_shift(self) -> None:
        """Differentiate w . (x0, x0, x1, x2)."""

        def f(x: Any) -> Any:
            y = x * 1.0
            y[1:] = y[:-1]
            return np.sum(W * y)

        check(f, X, [W[0] + W[1], W[2], W[3], 0.0])

    def test_shift_of_the_argument(self) -> None:
        """The same in the caller's own array."""

        def f(x: Any) -> Any:
            x[1:] = x[:-1]
            return np.sum(W * x * x)

        check(f, X, 2.0 * X * [W[0] + W[1], W[2], W[3], 0.0])
        check_hvp(f, X, X, 2.0 * X * [W[0] + W[1], W[2], W[3], 0.0])

    def test_onto_itself(self) -> None:
        """Writing an array onto itself changes nothing."""

        def f(x: Any) -> Any:
            y = x * 1.0
            y[...] = y
            y[1:3] = y[1:3]
            return np.sum(W * y)

        check(f, X, W)

    def test_product_with_itself(self) -> None:
        """Differentiate w . x^2."""

        def f(x: Any) -> Any:
            y = x * 1.0
            y *= y
            return np.sum(W * y)

        check(f, X, 2.0 * W * X)
        check_hvp(f, X, X, 2.0 * W * X)

    def test_reversed_onto_itself(self) -> None:
        """Differentiate w . reversed(x)."""

        def f(x: Any) -> Any:
            y = x * 1.0
            y[:] = y[::-1]
            return np.sum(W * y)

        check(f, X, W[::-1])

    def test_transposed_onto_itself(self) -> None:
        """Differentiate a . x^T."""
        a = np.arange(9.0).reshape(3, 3)

        def f(x: Any) -> Any:
            y = 1.0 * x
            y[...] = y.T
            y += y.T
            return np.sum(a * y)

        check(f, a / 7.0, a + a.T)

    @pytest.mark.parametrize(
        "write",
        [
            lambda y: y.__setitem__(slice(None, None, 2), y[:4]),
            lambda y: y.__setitem__(np.arange(7) % 2 == 0, y[:4]),
            lambda y: np.copyto(y[::2], y[:4]),
            lambda y: np.put(y, [0, 2, 4], y[:3]),
            lambda y: y.__setitem__([0, 2, 4], y[:3]),
            lambda y: np.multiply(y[:4], 2.0, out=y[::2]),
        ],
    )
    def test_numpy_reads_what_it_has_written(self, write: Function) -> None:
        """NumPy's ``y[::2] = y[:4]`` reads elements that it has just overwritten.

        Either the derivative is that of what NumPy did, or there is an error.
        """
        x = np.arange(1.0, 8.0)

        def f(x: Any) -> Any:
            y = x * 1.0
            write(y)
            return np.sum(y * y)

        with contextlib.suppress(ad.DualadError):
            check(f, x, numeric.complex_step_gradient(f, x))

    def test_swap_of_rows_is_numpys(self) -> None:
        """``m[0], m[1] = m[1], m[0]`` swaps nothing in NumPy: both rows are m[1]."""
        a = np.array([[1.0, 2.0], [3.0, 5.0]])

        def f(x: Any) -> Any:
            m = x * 1.0
            m[0], m[1] = m[1], m[0]
            return np.sum(a * m)

        check(f, a, [[0.0, 0.0], [4.0, 7.0]])

    def test_swap_of_elements(self) -> None:
        """Elements are copies, so their swap is one."""

        def f(x: Any) -> Any:
            x[0], x[1] = x[1], x[0]
            x[[2, 3]] = x[[3, 2]]
            return np.sum(W * x)

        check(f, X, W[[1, 0, 3, 2]])

    def test_overlapping_loop(self) -> None:
        """A window that moves through its own array, by complex steps."""

        def f(x: Any) -> Any:
            y = x * 1.0
            for _ in range(3):
                y[1:3] = y[0:2] * y[1:3]
                y[::-1][0:2] = np.exp(y[0:2])
            return np.sum(y * y)

        check(f, X, numeric.complex_step_gradient(f, X))


class TestNobodyElsesMemory:
    """A shadow never becomes the memory of somebody else (finding 2)."""

    def test_sum_of_two(self) -> None:
        """With a = 2x, b = 3x: (a + b)^2 + a^2 has the gradient 58 x."""

        def f(x: Any) -> Any:
            a = 2.0 * x
            b = 3.0 * x
            e = a * a
            c = a + b
            return np.sum(c * c) + np.sum(e)

        check(f, X, 58.0 * X)

    def test_sum_of_two_used_before_and_after(self) -> None:
        """The same with uses on both sides: b^2 adds 18 x."""

        def f(x: Any) -> Any:
            a = 2.0 * x
            b = 3.0 * x
            e = a * a
            c = a + b
            d = b * b
            return np.sum(d) + np.sum(c * c) + np.sum(e)

        check(f, X, 76.0 * X)

    def test_total(self) -> None:
        """The cotangent of a sum is one number seen everywhere."""

        def f(x: Any) -> Any:
            a = 2.0 * x
            s = a * a
            t = np.sum(a)
            return t * t + np.sum(s)

        check(f, X, 4.0 * 2.0 * np.sum(X) + 8.0 * X)

    def test_other_layout(self) -> None:
        """A Fortran copy beside a flat view: 2x each."""
        x = np.arange(1.0, 7.0).reshape(2, 3) / 5.0

        def f(x: Any) -> Any:
            a = x * 1.0
            r = a.reshape(-1)
            s = np.sum(r * r)
            b = np.copy(a, order="F")
            return np.sum(b * b) + s

        check(f, x, 4.0 * x)

    def test_transposed_copy_beside_a_view(self) -> None:
        """The contribution to a.T has another layout than a."""
        x = np.arange(1.0, 7.0).reshape(2, 3) / 5.0

        def f(x: Any) -> Any:
            a = x * 2.0
            r = a.reshape(-1)
            q = a.T.copy()
            return np.sum(q * q) + np.sum(r * r)

        check(f, x, 16.0 * x)

    def test_seed_is_not_touched(self) -> None:
        """The caller's cotangent stays what it was, though y[0] is overwritten."""

        def f(x: Any) -> Any:
            y = x * 1.0
            y[0] = 0.0
            return y

        w = np.array([10.0, 20.0, 30.0, 40.0])
        _, pullback = ad.vjp(f, X.copy())
        np.testing.assert_array_equal(pullback(w), [0.0, 20.0, 30.0, 40.0])
        np.testing.assert_array_equal(w, [10.0, 20.0, 30.0, 40.0])
        np.testing.assert_array_equal(pullback(w), [0.0, 20.0, 30.0, 40.0])

    def test_result_is_not_the_seed(self) -> None:
        """The gradient of the identity is a copy of the cotangent."""
        w = np.array([10.0, 20.0, 30.0, 40.0])
        for f in (lambda x: x, lambda x: +x, lambda x: x[:], lambda x: x.reshape(4)):
            _, pullback = ad.vjp(f, X.copy())
            got = pullback(w)
            np.testing.assert_array_equal(got, w)
            assert not np.shares_memory(got, w)

    BORROWING = (
        ("identity", lambda a: a),
        ("positive", lambda a: +a),
        ("add a constant", lambda a: a + 1.0),
        ("add an array", lambda a: a + np.ones(a.shape)),
        ("subtract", lambda a: a - 0.5),
        ("transpose", lambda a: a.T),
        ("reshape", lambda a: a.reshape(-1)),
        ("sum", lambda a: np.sum(a, axis=0)),
        ("total", np.sum),
        ("mean", lambda a: np.mean(a, axis=1)),
        ("concatenate", lambda a: np.concatenate([a, a, 2.0 * a])),
        ("stack", lambda a: np.stack([a, a])),
        ("split", lambda a: np.split(a, 2)[1]),
        ("row", lambda a: a[1]),
        ("gather", lambda a: a[[0, 0]]),
        ("copy", lambda a: a.copy()),
        ("fortran copy", lambda a: a.copy(order="F")),
        ("astype", lambda a: a.astype(a.dtype, copy=False)),
        ("astype copy", lambda a: a.astype(a.dtype)),
        ("broadcast", lambda a: np.broadcast_to(a, (3, *a.shape))),
        ("where", lambda a: np.where(np.ones(a.shape) > 0.0, a, 0.0)),
        ("squeeze", lambda a: np.squeeze(a[None])),
        ("flip", lambda a: np.flip(a)),
        ("repeat", lambda a: np.repeat(a, 2)),
        ("roll", lambda a: np.roll(a, 1)),
        ("product with one", lambda a: a * 1.0),
        ("real", np.real),
    )

    @pytest.mark.parametrize(("name", "borrow"), BORROWING, ids=lambda b: str(b)[:20])
    def test_borrowed_contribution(self, name: str, borrow: Function) -> None:
        """Functions that may hand on the cotangent itself, with uses around them."""
        del name
        x = np.arange(1.0, 7.0).reshape(2, 3) / 5.0

        def f(x: Any) -> Any:
            a = 2.0 * x
            early = a * a
            b = borrow(a)
            late = np.sin(a)
            c = b * b
            return np.sum(c) + np.sum(early) + np.sum(late) + np.sum(b)

        check(f, x, numeric.gradient(f, x), limit=1e-8)

    @pytest.mark.parametrize(("name", "borrow"), BORROWING, ids=lambda b: str(b)[:20])
    def test_write_after_borrowing(self, name: str, borrow: Function) -> None:
        """The same with a write into the source after each: views see it."""
        del name
        x = np.arange(1.0, 7.0).reshape(2, 3) / 5.0

        def f(x: Any) -> Any:
            a = 2.0 * x
            b = borrow(a)
            s = np.sum(b * b)
            a[0, 1] = 0.5
            a[1] *= 3.0
            return s + np.sum(b * b) + np.sum(a * a)

        check(f, x, numeric.gradient(f, x), limit=1e-8)

    def test_write_into_the_sum(self) -> None:
        """c = a + b is written to; a and b keep theirs: a^2 + b^2 + 5 x beyond c[0]."""

        def f(x: Any) -> Any:
            a = 2.0 * x
            b = 3.0 * x
            c = a + b
            c[0] = 0.0
            return np.sum(c) + np.sum(a * a) + np.sum(b * b)

        check(f, X, np.array([0.0, 5.0, 5.0, 5.0]) + 26.0 * X)


class TestOverlappingViews:
    """Views whose elements share memory are aliases too (finding 3)."""

    def test_broadcast(self) -> None:
        """Three rows of y: 3 * 2x, but nothing for the overwritten element."""

        def f(x: Any) -> Any:
            y = x * 1.0
            b = np.broadcast_to(y, (3, 4))
            y[0] = 0.5
            return np.sum(b * b)

        check(f, X, 6.0 * X * [0.0, 1.0, 1.0, 1.0])
        check_hvp(f, X, W, 6.0 * W * [0.0, 1.0, 1.0, 1.0])

    def test_broadcast_of_the_argument(self) -> None:
        """Read before and after the write."""

        def f(x: Any) -> Any:
            b = np.broadcast_to(x, (3, 4))
            s = np.sum(b * b)
            x[0] = 0.5
            return s + np.sum(W * b * b)

        want = 6.0 * X + 6.0 * X * W * [0.0, 1.0, 1.0, 1.0]
        check(f, X, want)

    def test_column_broadcast(self) -> None:
        """A column repeated along a new axis, and its transposed."""

        def f(x: Any) -> Any:
            y = x * 1.0
            b = np.broadcast_to(y[:, None], (4, 3)).T
            y[1] *= 2.0
            return np.sum(b * b * b)

        check(f, X, 9.0 * X**2 * [1.0, 8.0, 1.0, 1.0])

    def test_windows(self) -> None:
        """Windows of three over five: elements count 1, 2, 3, 2, 1 times."""
        x = np.array([0.3, 0.7, 1.1, -0.4, 0.2])

        def f(x: Any) -> Any:
            y = x * 1.0
            q = sliding_window_view(y, 3)
            return np.sum(q * q)

        check(f, x, 2.0 * x * [1.0, 2.0, 3.0, 2.0, 1.0])
        check_hvp(f, x, x, 2.0 * x * [1.0, 2.0, 3.0, 2.0, 1.0])

    def test_windows_see_later_writes(self) -> None:
        """A write to the base shows in windows taken before."""
        x = np.array([0.3, 0.7, 1.1, -0.4, 0.2])

        def f(x: Any) -> Any:
            y = x * 1.0
            q = sliding_window_view(y, 3)
            s = np.sum(q)
            y[1:3] = 0.5 * y[3:5]
            return s + np.sum(q * q)

        counts = np.array([1.0, 2.0, 3.0, 2.0, 1.0])
        own = 2.0 * x * counts * [1.0, 0.0, 0.0, 1.0, 1.0]
        moved = np.array([0.0, 0.0, 0.0, 0.5 * 2.0 * x[3], 0.5 * 3.0 * x[4]])
        check(f, x, counts + own + moved)

    def test_two_dimensional_windows(self) -> None:
        """Windows of a matrix, reversed and written under, by complex steps."""
        x = np.linspace(-1.0, 1.2, 20).reshape(4, 5)

        def f(x: Any) -> Any:
            y = x * 1.0
            q = sliding_window_view(y, (2, 3))[::-1, :, :, ::-1]
            y[1:3, 1] = np.sin(y[0, 2:4])
            return np.sum(np.sin(q) * np.cos(np.arange(54.0)).reshape(q.shape))

        check(f, x, numeric.complex_step_gradient(f, x))

    def test_broadcast_arrays(self) -> None:
        """np.broadcast_arrays gives the same views."""

        def f(x: Any) -> Any:
            y = x * 1.0
            b, c = np.broadcast_arrays(y[:, None], y)
            y[0] = 0.5
            return np.sum(b * c)

        rest = np.sum(X) - X[0]
        check(f, X, 2.0 * (rest + 0.5) * np.array([0.0, 1.0, 1.0, 1.0]))

    def test_diagonal_of_a_broadcast(self) -> None:
        """The diagonal of a broadcast is the array itself."""

        def f(x: Any) -> Any:
            y = x * 1.0
            d = np.diagonal(np.broadcast_to(y, (4, 4)))
            y[3] = 2.0
            return np.sum(d * d)

        check(f, X, 2.0 * X * [1.0, 1.0, 1.0, 0.0])

    def test_added_in_many_steps(self) -> None:
        """Each of several contributions must reach every element."""

        def f(x: Any) -> Any:
            b = np.broadcast_to(x, (5, 4))
            q = sliding_window_view(x, 2)
            s = np.sum(b)
            for k in range(3):
                s = s + np.sum(b * (k + 1.0)) + np.sum(q * q)
            return s

        counts = np.array([1.0, 2.0, 2.0, 1.0])
        check(f, X, np.full(4, 5.0 + 30.0) + 6.0 * X * counts)

    def test_as_strided_raises(self) -> None:
        """as_strided does not dispatch, so it cannot keep a derivative."""
        with pytest.raises(TypeError):
            ad.gradient(lambda x: np.sum(as_strided(x, (2, 2), (8, 8))), X.copy())

    @pytest.mark.parametrize(
        "view",
        [
            lambda y: np.broadcast_to(y, (3, 4)),
            lambda y: sliding_window_view(y, 2, writeable=True),
            lambda y: np.broadcast_arrays(y, np.ones((3, 4)))[0],
        ],
    )
    def test_writing_through_raises(self, view: Function) -> None:
        """What a write through such a view means is nobody's guess: ValueError."""

        def f(x: Any) -> Any:
            y = x * 1.0
            view(y)[0] = 1.0
            return np.sum(y)

        with pytest.raises(ValueError, match=r"Cannot write|read-only"):
            ad.gradient(f, X.copy())


class TestLayouts:
    """Caller's shadows and tangents of another layout (finding 4)."""

    x = np.asfortranarray(np.arange(1.0, 7.0).reshape(2, 3) / 5.0)
    w = np.array([1.0, 10.0, 100.0, 1000.0, 2.0, 3.0])

    def test_shadow_of_another_layout(self) -> None:
        """x.T.reshape(-1) is a view of x, not of the shadow: w in columns."""
        shadow = np.zeros((2, 3))
        f = lambda x: x.T.reshape(-1) @ self.w  # noqa: E731
        ad.autodiff(ad.Reverse, f, ad.Duplicated(self.x.copy("F"), shadow))
        np.testing.assert_array_equal(shadow, self.w.reshape(3, 2).T)

    def test_ravel_in_memory_order(self) -> None:
        """order="K" follows the argument's memory, not the shadow's."""
        f = lambda x: x.ravel(order="K") @ self.w  # noqa: E731
        shadow = np.zeros((2, 3))
        ad.autodiff(ad.Reverse, f, ad.Duplicated(self.x.copy("F"), shadow))
        np.testing.assert_array_equal(shadow, self.w.reshape(3, 2).T)
        gradient = ad.gradient(f, self.x.copy("F"))
        np.testing.assert_array_equal(gradient, self.w.reshape(3, 2).T)

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("other", ["C", "F"])
    def test_tangent_of_another_layout(self, order: Any, other: Any) -> None:
        """A reshape is a copy or a view of both parts alike: 0 or 6."""
        x = self.x.copy(order)
        v = np.ones((2, 3), order=other)

        def f(x: Any) -> Any:
            y = x.reshape(-1)
            y[:] = 0.0
            return np.sum(x)

        value, tangent = ad.jvp(f, (x,), (v,))
        wanted = 0.0 if order == "C" else 6.0
        assert tangent == wanted
        assert value == f(self.x.copy(order))
        np.testing.assert_array_equal(v, np.ones((2, 3)))
        shadow = np.zeros((2, 3), order=other)
        ad.autodiff(ad.Reverse, f, ad.Duplicated(self.x.copy(order), shadow))
        np.testing.assert_array_equal(shadow, np.full((2, 3), wanted / 6.0))

    def test_many_directions_at_once(self) -> None:
        """Each direction has the strides of the argument."""

        def f(x: Any) -> Any:
            y = x.T.reshape(-1)
            y[:2] *= 3.0
            return x.ravel(order="K") * x.T.ravel()

        plain = np.array([18.0, 18.0, 2.0, 2.0, 2.0, 2.0]) * self.x.ravel("K")
        want = np.zeros((6, 2, 3))
        for k in range(6):
            want[k, k % 2, k // 2] = plain[k]
        for mode in ("forward", "reverse"):
            got = ad.jacobian(f, self.x.copy("F"), mode=mode)
            numeric.assert_close(got, want)

    STRIDED = (
        lambda m: m[:12].reshape(3, 4),
        lambda m: m[:12].reshape(4, 3).T,
        lambda m: m[:12].reshape(3, 4)[::-1],
        lambda m: m[:12].reshape(3, 4)[:, ::-1],
        lambda m: m[:12].reshape(4, 3).T[::-1, ::-1],
        lambda m: m.reshape(4, 6)[1:, 1:5],
        lambda m: m.reshape(3, 8)[:, ::2],
        lambda m: m.reshape(6, 4)[::2],
        lambda m: m.reshape(3, 8)[::-1, ::-2],
    )
    SEEN = (
        lambda x: x.ravel(),
        lambda x: np.ravel(x, order="F"),
        lambda x: x.reshape(-1),
        lambda x: x[::-1].ravel(),
        lambda x: x[::-1].reshape(-1),
        lambda x: x[:, ::-1].reshape(-1),
        lambda x: x[::-1, ::-1].reshape(-1),
        lambda x: x.T.reshape(-1),
        lambda x: x.T[::-1].ravel(),
        lambda x: x.ravel(order="K"),
        lambda x: x[1].ravel(),
        lambda x: x[1, ::-1].ravel(),
        lambda x: x[:, 1].reshape(-1),
    )

    @pytest.mark.parametrize("layout", STRIDED)
    @pytest.mark.parametrize("seen", SEEN)
    def test_view_or_copy_as_in_numpy(self, layout: Function, seen: Function) -> None:
        """What NumPy copies is a copy, what it views a view, in every layout."""

        def f(x: Any) -> Any:
            y = seen(x)
            y[1:4] *= 0.5
            x[0, 1] = x[2, 2] * x[1, 1]
            return np.sum(y * y) + np.sum(np.sin(x))

        def g(x: Any) -> Any:
            y = x + 0.0
            return f(y) + f(y.T[:3, :3])

        def memory() -> np.ndarray:
            return np.linspace(-1.0, 1.3, 24)

        for h in (f, g):
            x = layout(memory())
            want = numeric.complex_step_gradient(h, x)
            plain = memory()
            value = h(layout(plain))
            for way in (
                lambda x: ad.gradient(h, x),  # noqa: B023 -- used at once
                lambda x: ad.gradient(h, x, mode="forward"),  # noqa: B023
                lambda x: ad.vjp(h, x)[1](1.0),  # noqa: B023
            ):
                left = memory()
                numeric.assert_close(way(layout(left)), want)
                np.testing.assert_array_equal(left, plain)
            assert ad.vjp(h, layout(memory()))[0] == value

    @pytest.mark.parametrize("layout", STRIDED)
    def test_shadow_counts_alike_in_every_layout(self, layout: Function) -> None:
        """What a shadow holds before means the same whatever its strides."""

        def f(x: Any) -> Any:
            x[0] = 2.0 * x[1]
            x[2, 1:] *= x[1, :-1]
            return np.sum(x * x)

        found = []
        for other in ("C", "F"):
            x = layout(np.linspace(-1.0, 1.3, 24))
            shadow = np.full(x.shape, 0.5, order=other)
            ad.autodiff(ad.Reverse, f, ad.Duplicated(x, shadow))
            found.append(shadow)
        x = layout(np.linspace(-1.0, 1.3, 24))
        shadow = numeric.like(x, np.full(x.shape, 0.5))
        ad.autodiff(ad.Reverse, f, ad.Duplicated(x, shadow))
        for other in found:
            numeric.assert_close(other, shadow)

    @pytest.mark.parametrize("flat", [np.ravel, lambda y: y.reshape(-1)])
    def test_flat_view_of_a_column_of_windows(self, flat: Function) -> None:
        """In the base a view, so it must be one in the shadow: 2x of the first four."""
        x = np.arange(1.0, 8.0)

        def f(x: Any) -> Any:
            y = x * 1.0
            r = flat(sliding_window_view(y, 4)[:, 0])
            y[0] = 0.5
            return np.sum(r * r)

        check(f, x, 2.0 * x * [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0])

    RESULTS = (
        lambda x: np.sort(x),
        lambda x: np.sort(x, axis=0),
        lambda x: np.cumsum(x, axis=0),
        lambda x: np.flip(x),
        lambda x: np.roll(x, 1, axis=0),
        lambda x: np.where(x > 0.0, x, 1.0),
        lambda x: np.clip(x, -0.5, 0.5),
        lambda x: np.take(x, [0, 1, 1], axis=0),
        lambda x: np.concatenate([x, x]),
        lambda x: np.stack([x, x]),
        lambda x: np.repeat(x, 2, axis=1),
        lambda x: np.tile(x, (2, 1)),
        lambda x: x[[0, 2]],
        lambda x: x[:, [0, 2]],
        lambda x: x.copy(),
        lambda x: x.copy(order="K"),
        lambda x: np.copy(x),
        lambda x: x.astype(np.float32),
        lambda x: np.zeros_like(x),
        lambda x: np.exp(x),
        lambda x: x + np.ones(x.shape),
        lambda x: np.mean(x, axis=0, keepdims=True) * x,
        lambda x: np.maximum(x, 0.1),
        lambda x: np.linalg.norm(x, axis=1, keepdims=True) + x,
        lambda x: np.outer(x, x),
        lambda x: np.pad(x, 1),
        lambda x: np.transpose(x).copy(),
        lambda x: np.einsum("ij->ji", x) * 2.0,
        lambda x: np.tensordot(x, np.ones((x.shape[1], 2)), axes=1),
        lambda x: np.squeeze(x[:, :1]) * 1.0,
        lambda x: np.diff(x, axis=0),
        lambda x: np.triu(x),
        lambda x: np.var(x, axis=0, keepdims=True) + x,
        lambda x: np.add.accumulate(x),
        lambda x: np.add.outer(x, x),
    )

    @pytest.mark.parametrize("result", RESULTS)
    @pytest.mark.parametrize("layout", STRIDED)
    def test_result_has_numpys_layout(self, layout: Function, result: Function) -> None:
        """Strides decide what later reshapes and ravels mean."""
        seen = []

        def f(x: Any) -> Any:
            y = result(x)
            seen.append((y.shape, y.dtype, strides_that_matter(y)))
            return np.sum(y)

        x = layout(np.random.default_rng(1).uniform(-1.0, 1.0, 24))
        f(x)
        ad.gradient(f, x)
        ad.jvp(f, (x,), (np.ones(x.shape),))
        assert seen[1:] == [seen[0]] * 2

    def test_negative_strides(self) -> None:
        """A reversed argument and a plain shadow."""
        x = X[::-1]
        f = lambda x: np.sum(W * x[::-1] * x)  # noqa: E731
        want = (W + W[::-1]) * x[::-1]
        check(f, x, want)


def strides_that_matter(x: Any) -> list[int]:
    """Return the strides of axes longer than one."""
    return [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1]


class TestForwardOwnsItsMemory:
    """Tangents are never somebody else's memory (finding 5)."""

    def test_direction_is_not_written(self) -> None:
        """f writes its argument, not the caller's direction."""

        def f(x: Any) -> Any:
            x *= 3.0
            return np.sum(x)

        x, v = X.copy(), W.copy()
        _, tangent = ad.jvp(f, (x,), (v,))
        numeric.assert_close(tangent, 3.0 * np.sum(W))
        np.testing.assert_array_equal(v, W)
        np.testing.assert_array_equal(x, X * 3.0)

    def test_partial_of_one(self) -> None:
        """y = x + 1 has a tangent of its own."""

        def f(x: Any) -> Any:
            y = x + 1.0
            y[0] = 5.0
            return np.sum(x) + 0.0 * np.sum(y)

        check(f, X, np.ones(4))

    @pytest.mark.parametrize(
        "same",
        [
            lambda x: x + 1.0,
            lambda x: +x,
            lambda x: x.copy(),
            lambda x: np.concatenate([x]),
            lambda x: x.astype(x.dtype),
            lambda x: np.where(np.ones(4) > 0.0, x, 0.0),
            lambda x: x.repeat(1),
            lambda x: x.flatten(),
            lambda x: np.sum(x[None], axis=0),
        ],
    )
    def test_new_memory_has_a_new_tangent(self, same: Function) -> None:
        """Whatever copies the primal copies the tangent: 1 + w beyond y[0]."""

        def f(x: Any) -> Any:
            y = same(x)
            y[0] = 5.0
            return np.sum(x) + np.sum(W * y)

        check(f, X, 1.0 + W * [0.0, 1.0, 1.0, 1.0])

    def test_direction_is_the_argument(self) -> None:
        """hvp(f, x, x) of the sum of cubes: 6 x^2."""
        x = X.copy()
        numeric.assert_close(ad.hvp(lambda x: np.sum(x**3), x, x), 6.0 * X**2)
        np.testing.assert_array_equal(x, X)

    def test_direction_is_the_argument_that_f_writes(self) -> None:
        """The Hessian of sum((2 x)^3) is 48 x; x is left doubled."""

        def f(x: Any) -> Any:
            x *= 2.0
            return np.sum(x**3)

        x = X.copy()
        numeric.assert_close(ad.hvp(f, x, x), 48.0 * X * X)
        np.testing.assert_array_equal(x, 2.0 * X)

    def test_caller_owned_tangent(self) -> None:
        """Only autodiff(Forward) works in the caller's tangent."""

        def f(x: Any) -> Any:
            x *= 3.0
            return np.sum(x * x)

        x, x_dot = X.copy(), W.copy()
        _, tangent = ad.autodiff(ad.Forward, f, ad.Duplicated(x, x_dot))
        numeric.assert_close(tangent, 18.0 * np.sum(X * W))
        np.testing.assert_array_equal(x, 3.0 * X)
        numeric.assert_close(x_dot, 3.0 * W)


class TestPullbackIsOnItsOwn:
    """What leaves vjp is the caller's; what the pullback reads is not (finding 6)."""

    def test_residual(self) -> None:
        """``y -= target`` before the pullback: exp(x) * (exp(x) - target)."""
        target = np.array([1.0, 1.0, 1.0, 1.0])
        y, pullback = ad.vjp(np.exp, X.copy())
        y -= target
        numeric.assert_close(pullback(y), np.exp(X) * (np.exp(X) - 1.0))

    def test_argument_changed_afterwards(self) -> None:
        """The pullback is that of the original x."""
        x = X.copy()
        _, pullback = ad.vjp(lambda x: np.sum(x**3), x)
        x[...] = 9.0
        numeric.assert_close(pullback(1.0), 3.0 * X**2)
        np.testing.assert_array_equal(x, np.full(4, 9.0))

    def test_written_argument(self) -> None:
        """f writes x; afterwards the memory is the caller's again."""

        def f(x: Any) -> Any:
            s = np.sum(x**3)
            x[:2] = 5.0
            return s + np.sum(x * x)

        x = X.copy()
        _, pullback = ad.vjp(f, x)
        np.testing.assert_array_equal(x, [5.0, 5.0, X[2], X[3]])
        x[...] = -1.0
        want = 3.0 * X**2 + 2.0 * X * [0.0, 0.0, 1.0, 1.0]
        numeric.assert_close(pullback(1.0), want)
        np.testing.assert_array_equal(x, np.full(4, -1.0))
        numeric.assert_close(pullback(2.0), 2.0 * want)

    def test_every_call_starts_from_zero(self) -> None:
        """Intermediate shadows too: three calls, three equal results."""

        def f(x: Any) -> Any:
            y = np.sin(x) * x
            z = y * y
            z[0] += y[1]
            return z

        _, pullback = ad.vjp(f, X.copy())
        first = pullback(W)
        for _ in range(3):
            np.testing.assert_array_equal(pullback(W), first)

    def test_captured_large_constant_changed_before_the_pullback(self) -> None:
        """A large constant is watched, not copied."""
        c = np.ones(LARGE)
        _, pullback = ad.vjp(lambda x: np.sum(x * c), np.ones(LARGE))
        c[5] = 2.0
        with pytest.raises(ad.ChangedArrayError):
            pullback(1.0)

    def test_captured_small_constant_changed_before_the_pullback(self) -> None:
        """A small constant is copied."""
        c = W.copy()
        _, pullback = ad.vjp(lambda x: np.sum(x * c), X.copy())
        c[...] = 0.0
        np.testing.assert_array_equal(pullback(1.0), W)

    def test_output_is_the_argument(self) -> None:
        """The value is a copy even when f returns its argument."""
        x = X.copy()
        y, pullback = ad.vjp(lambda x: x, x)
        y[...] = 0.0
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(pullback(W), W)


def change(c: np.ndarray) -> None:
    """Change one element."""
    c[3] += 1.0


def shuffle(c: np.ndarray) -> None:
    """Permute: sums do not see it."""
    c[[0, 1]] = c[[1, 0]]


def swap_halves(c: np.ndarray) -> None:
    """Permute by a power of two."""
    n = c.size // 2
    c[...] = np.concatenate([c[n:], c[:n]])


class TestChangedConstants:
    """A constant changed after its use: right if small, an error if large (7)."""

    @pytest.mark.parametrize("how", [change, shuffle, swap_halves])
    @pytest.mark.parametrize("n", [4, 2048])
    def test_small(self, n: int, how: Callable[[Any], None]) -> None:
        """Up to 16 KiB a constant is copied."""
        c = np.arange(1.0, n + 1.0)
        want = c.copy()

        def f(x: Any) -> Any:
            s = np.sum(x * c)
            how(c)
            return s

        np.testing.assert_array_equal(ad.gradient(f, np.ones(n)), want)

    @pytest.mark.parametrize("how", [change, shuffle, swap_halves])
    @pytest.mark.parametrize("n", [2049, LARGE, 100_000])
    def test_large(self, n: int, how: Callable[[Any], None]) -> None:
        """Beyond that a change raises; c itself holds what f did."""
        c = np.arange(1.0, n + 1.0)
        want = c.copy()
        how(want)

        def f(x: Any) -> Any:
            s = np.sum(x * c)
            how(c)
            return s

        with pytest.raises(ad.ChangedArrayError, match="copy"):
            ad.gradient(f, np.ones(n))
        np.testing.assert_array_equal(c, want)

    def test_large_unchanged(self) -> None:
        """Nothing is locked, neither during nor after."""
        c = np.arange(float(LARGE))
        views = []

        def f(x: Any) -> Any:
            views.append(c[:3])
            return np.sum(x * c)

        np.testing.assert_array_equal(ad.gradient(f, np.ones(LARGE)), c)
        assert c.flags.writeable
        assert views[0].flags.writeable

    def test_change_through_a_sibling(self) -> None:
        """A view made earlier changes the memory as well."""
        base = np.ones(2 * LARGE)
        c, sibling = base[:LARGE], base[:LARGE]

        def f(x: Any) -> Any:
            s = np.sum(x * c)
            sibling[0] = 5.0
            return s

        with pytest.raises(ad.ChangedArrayError):
            ad.gradient(f, np.ones(LARGE))

    def test_matrix_and_transposed(self) -> None:
        """Large matrices in products, used in both orientations."""
        c = np.random.default_rng(0).normal(size=(64, 80))

        def f(x: Any, *, hurt: bool) -> Any:
            s = np.sum(np.sin(c @ x)) + np.sum(x @ c.T)
            if hurt:
                c[0, 0] += 1e-9
            return s

        x = np.linspace(-1.0, 1.0, 80)
        want = np.cos(c @ x) @ c + c.sum(axis=0)
        numeric.assert_close(ad.gradient(lambda x: f(x, hurt=False), x), want)
        with pytest.raises(ad.ChangedArrayError):
            ad.gradient(lambda x: f(x, hurt=True), x)

    def test_refilled_batch(self) -> None:
        """A reused buffer is right below 16 KiB and an error above."""

        def f(w: Any) -> Any:
            total = 0.0
            for k in range(3):
                buffer[...] = k + 1.0
                total = total + np.sum(w * buffer) * (k + 1.0)
            return total

        buffer = np.zeros(4)
        np.testing.assert_array_equal(ad.gradient(f, np.ones(4)), np.full(4, 14.0))
        buffer = np.zeros(LARGE)
        with pytest.raises(ad.ChangedArrayError):
            ad.gradient(f, np.ones(LARGE))

    def test_changed_and_changed_back_before_use(self) -> None:
        """Filling a buffer before its only use is fine at any size."""
        buffer = np.zeros(LARGE)

        def f(w: Any) -> Any:
            buffer[...] = 2.0
            return np.sum(w * buffer)

        got = ad.gradient(f, np.ones(LARGE))
        np.testing.assert_array_equal(got, np.full(LARGE, 2.0))

    def test_check_off(self) -> None:
        """check_constants=False leaves it to the caller."""
        c = np.ones(LARGE)

        def f(x: Any) -> Any:
            s = np.sum(x * c)
            c[0] = 7.0
            return s

        ad.gradient(f, np.ones(LARGE), check_constants=False)

    def test_refilled_indices(self) -> None:
        """Index buffers: [1, 1, 0, 0] by the indices at the time of reading."""
        i = np.array([0, 1])

        def f(x: Any) -> Any:
            s = np.sum(x[i])
            i[...] = [2, 3]
            return s

        np.testing.assert_array_equal(ad.gradient(f, X.copy()), [1.0, 1.0, 0.0, 0.0])

    def test_refilled_large_indices(self) -> None:
        """Large index buffers raise."""
        i = np.arange(LARGE) % 4

        def f(x: Any) -> Any:
            s = np.sum(x[i])
            i[:] = 0
            return s

        with pytest.raises(ad.ChangedArrayError):
            ad.gradient(f, X.copy())

    def test_index_list(self) -> None:
        """A list of indices is read once."""
        i = [0, 1]

        def f(x: Any) -> Any:
            s = np.sum(x[i])
            i[0] = i[1] = 3
            return s

        np.testing.assert_array_equal(ad.gradient(f, X.copy()), [1.0, 1.0, 0.0, 0.0])

    def test_index_list_of_a_write(self) -> None:
        """Also where it is written to: elements 0 and 1 lose theirs."""
        i = [0, 1]

        def f(x: Any) -> Any:
            y = x * 1.0
            y[i] = 0.0
            i[0] = i[1] = 3
            return np.sum(y)

        np.testing.assert_array_equal(ad.gradient(f, X.copy()), [0.0, 0.0, 1.0, 1.0])

    def test_mask(self) -> None:
        """Masks are constants, too."""
        m = np.array([True, False, True, False])

        def f(x: Any) -> Any:
            s = np.sum(x[m]) + np.sum(np.where(m, 3.0 * x, x))
            y = x * 1.0
            y[m] = 0.0
            np.copyto(y, 0.0, where=m)
            m[...] = True
            return s + np.sum(y)

        np.testing.assert_array_equal(ad.gradient(f, X.copy()), [4.0, 2.0, 4.0, 2.0])

    @pytest.mark.parametrize(
        "use",
        [
            lambda x, m: np.sum(np.where(m, x, 2.0 * x)),
            lambda x, m: np.sum(x[m]),
            lambda x, m: np.sum(np.multiply(x, 2.0, where=m, out=np.zeros_like(x))),
            lambda x, m: np.sum(x, where=m),
        ],
    )
    def test_large_mask(self, use: Any) -> None:
        """Large masks raise when changed (one byte an element)."""
        m = np.arange(5 * LARGE) % 3 == 0
        x = np.ones(m.size)
        use(x, m)

        def f(x: Any) -> Any:
            s = use(x, m)
            m[...] = False
            return s

        with pytest.raises(ad.ChangedArrayError):
            ad.gradient(f, x)


class TestSharedArguments:
    """Const is constant even where it shares memory (finding 8)."""

    def test_const_shares_memory(self) -> None:
        """exp(w - w_old) at w_old = w has the gradient 1."""
        w = np.array([0.2, -1.0])
        f = lambda w, old: np.sum(np.exp(w - old))  # noqa: E731
        np.testing.assert_array_equal(ad.gradient(f, w, ad.Const(w)), [1.0, 1.0])
        np.testing.assert_array_equal(ad.gradient(f, w, ad.Const(w[:])), [1.0, 1.0])

    def test_const_shares_a_part(self) -> None:
        """A slice of the argument as a constant: sum(w) * w1."""
        w = np.array([0.2, -1.0, 3.0])
        f = lambda w, part: np.sum(w) * part[0]  # noqa: E731
        np.testing.assert_array_equal(ad.gradient(f, w, ad.Const(w[1:])), [-1.0] * 3)

    def test_two_partials(self) -> None:
        """The same array twice: each argument has its own partial."""
        a, b = ad.gradient(lambda a, b: np.sum(a * b * b), X, X)
        numeric.assert_close(a, X**2)
        numeric.assert_close(b, 2.0 * X**2)

    @pytest.mark.parametrize("second", [ad.Const, lambda w: w])
    def test_write_raises(self, second: Function) -> None:
        """A write to memory of two meanings raises, and names the argument."""

        def f(w: Any, old: Any) -> Any:
            w[0] = 2.0 * w[1]
            return np.sum(w * old)

        w = X.copy()
        with pytest.raises(ad.AliasedArgumentsError):
            ad.gradient(f, w, second(w))
        with pytest.raises(ad.AliasedArgumentsError):
            ad.gradient(f, w, second(w[:2]))
        with pytest.raises(ad.AliasedArgumentsError):
            ad.jvp(lambda x: f(x, w), (w,), (W,))

    def test_write_to_the_other(self) -> None:
        """The second of two differentiated arguments may be the written one."""

        def f(a: Any, b: Any) -> Any:
            b[1:3] *= 2.0
            return np.sum(a * b)

        w = X.copy()
        with pytest.raises(ad.AliasedArgumentsError):
            ad.gradient(f, w, w)
        base = np.arange(8.0)
        ad.gradient(f, base[:4], base[4:])  # side by side is not shared

    def test_write_to_a_copy_is_fine(self) -> None:
        """Only the shared memory itself is protected: w . (2 w1, w1, ...)."""

        def f(w: Any, old: Any) -> Any:
            w = w.copy()
            w[0] = 2.0 * w[1]
            return np.sum(w * old)

        want = np.array([0.0, X[1] + 2.0 * X[0], X[2], X[3]])
        numeric.assert_close(ad.gradient(f, X, ad.Const(X)), want)

    def test_view_written(self) -> None:
        """Through a view as well, also by out= and np.add.at."""

        def by_view(w: Any, old: Any) -> Any:
            w[1:][::-1][:2] += 1.0
            return np.sum(w * old)

        def by_out(w: Any, old: Any) -> Any:
            np.sin(w, out=w)
            return np.sum(w * old)

        def by_at(w: Any, old: Any) -> Any:
            np.add.at(w, [0, 0], 1.0)
            return np.sum(w * old)

        for f in (by_view, by_out, by_at):
            w = X.copy()
            with pytest.raises(ad.AliasedArgumentsError):
                ad.gradient(f, w, ad.Const(w))


GLOBAL = X.copy()


class TestCapturedArgument:
    """The argument is also reachable from f's surroundings (finding 10)."""

    def test_reads_are_partial_derivatives(self) -> None:
        """A captured array is a constant: sum(x * w) gives w."""
        w = X.copy()
        numeric.assert_close(ad.gradient(lambda x: np.sum(x * w), w), X)
        numeric.assert_close(ad.gradient(lambda x: np.sum(x * GLOBAL), GLOBAL), X)

    @staticmethod
    def writers(w: Any) -> dict[str, Function]:
        """Return functions that write x and read ``w`` by another way."""

        def by_closure(x: Any) -> Any:
            x[0] = x[1] ** 2
            return np.sum(w) + np.sum(x)

        def by_default(x: Any, w: Any = w) -> Any:
            x[0] = x[1] ** 2
            return np.sum(w) + np.sum(x)

        return {"closure": by_closure, "default": by_default}

    @pytest.mark.parametrize("name", ["closure", "default"])
    @pytest.mark.parametrize(
        "part", [lambda w: w, lambda w: w[:2], lambda w: w[::-1], lambda w: w.view()]
    )
    def test_write_raises(self, name: str, part: Function) -> None:
        """The value sees the write and the derivative could not: raise."""
        w = X.copy()
        f = self.writers(w)[name]
        with pytest.raises(ad.AliasedArgumentsError):
            ad.gradient(f, part(w))
        with pytest.raises(ad.AliasedArgumentsError):
            ad.jvp(f, (part(w),), (np.ones(part(w).shape),))
        with pytest.raises(ad.AliasedArgumentsError):
            ad.vjp(f, part(w))

    def test_write_of_a_global_raises(self) -> None:
        """Globals that the code names count."""

        def f(x: Any) -> Any:
            x[0] = x[1] ** 2
            return np.sum(GLOBAL) + np.sum(x)

        with pytest.raises(ad.AliasedArgumentsError):
            ad.gradient(f, GLOBAL)
        np.testing.assert_array_equal(GLOBAL, X)

    def test_other_memory_is_fine(self) -> None:
        """Writing x while another array is captured: 2 x1 w0 + w1, w2, w3."""
        f = self.writers(W)["closure"]
        want = np.array([0.0, 2.0 * X[1] + 1.0, 1.0, 1.0])
        numeric.assert_close(ad.gradient(f, X.copy()), want)


class TestPrimalAndStopGradient:
    """Both are copies; every capture protects what is overwritten later (11)."""

    @pytest.mark.parametrize("strip", [ad.primal, ad.stop_gradient])
    def test_captured_before_a_write(self, strip: Function) -> None:
        """The gradient of w . p is p = w, although s is cleared afterwards."""

        def f(w: Any) -> Any:
            s = w * 1.0
            p = strip(s)
            z = w * p
            s[...] = 0.0
            return np.sum(z)

        for way in (ad.gradient, lambda f, x: ad.gradient(f, x, mode="forward")):
            np.testing.assert_array_equal(way(f, X.copy()), X)

    def test_copies(self) -> None:
        """Writing to the copy does not reach the array."""

        def f(x: Any) -> Any:
            p = ad.primal(x)
            assert type(p) is np.ndarray
            p[...] = 0.0
            return np.sum(x * x)

        check(f, X, 2.0 * X)

    def test_all_levels(self) -> None:
        """Nothing is left: d/dx of 2 (2x) c with c = 2x held fixed is 8x."""
        seen = []

        def inner(y: Any) -> Any:
            seen.append(ad.primal(y))
            return np.sum(y * y * ad.stop_gradient(y))

        def outer(x: Any) -> Any:
            return np.sum(ad.gradient(inner, x * 2.0))

        got = ad.gradient(outer, X.copy())
        assert type(seen[0]) is np.ndarray
        numeric.assert_close(got, 8.0 * X)

    def test_scratch_without_derivative(self) -> None:
        """An active buffer that holds constants is captured like any other."""

        def f(x: Any) -> Any:
            buffer = np.full_like(x, 2.0)
            z = x * buffer
            buffer[...] = 7.0
            u = x * buffer
            buffer[0] = 0.0
            return np.sum(z) + np.sum(u)

        check(f, X, np.full(4, 9.0))

    def test_captured_between_writes(self) -> None:
        """An unsaved first write, captures after it: 4x + 9x + 1 ..."""

        def f(x: Any) -> Any:
            b = x.copy()
            b[:] = x * 2.0
            z = b * b
            b[:] = x * 3.0
            w = b * b
            b[0] = 1.0
            return np.sum(z) + np.sum(w) + np.sum(b)

        check(f, X, 8.0 * X + 18.0 * X + [0.0, 3.0, 3.0, 3.0])

    def test_captured_through_a_view(self) -> None:
        """The flag belongs to the memory, whichever view captured or writes it."""

        def f(x: Any) -> Any:
            m = (x * 2.0).reshape(2, 2)
            z = m.T * m.T
            flat = m.ravel()
            flat[1:] = flat[:-1] * 0.0
            return np.sum(z)

        check(f, X, 8.0 * X)


class TestMemoryAfterwards:
    """User memory ends as f alone would have left it (finding 12)."""

    def test_unread_write(self) -> None:
        """x[0] = 9 is kept though no step needs the old value."""

        def f(x: Any) -> Any:
            x[0] = 9.0
            return np.sum(x * x)

        check(f, X, 2.0 * X * [0.0, 1.0, 1.0, 1.0])
        x = X.copy()
        ad.hvp(f, x, W)
        np.testing.assert_array_equal(x, [9.0, *X[1:]])

    def test_exception(self) -> None:
        """After an exception x holds what f alone would have left."""

        def f(x: Any) -> Any:
            x[0] = 9.0
            x *= 2.0
            y = x * x
            y[0] = 1.0
            if len(y) > 2:
                raise KeyError("mine")
            return np.sum(y)

        plain = X.copy()
        with pytest.raises(KeyError):
            f(plain)
        for way in (
            lambda x: ad.gradient(f, x),
            lambda x: ad.jvp(f, (x,), (W,)),
            lambda x: ad.hvp(f, x, W),
            lambda x: ad.vjp(f, x),
        ):
            x = X.copy()
            with pytest.raises(KeyError, match="mine"):
                way(x)
            np.testing.assert_array_equal(x, plain)
            assert type(x) is np.ndarray

    def test_many_overlapping_writes(self) -> None:
        """Undone and redone through overlapping regions."""

        def f(x: Any) -> Any:
            s = np.sum(np.sin(x))
            for k in range(1, 3):
                x[k:] = x[:-k] * x[k:]
                s = s + np.sum(x * x)
            x[::2] = x[1::2]
            return s

        check(f, X, numeric.complex_step_gradient(f, X))

    def test_argument_inside_larger_memory(self) -> None:
        """The surroundings of a strided argument stay."""
        memory = np.arange(12.0)
        x = memory[1:9:2]

        def f(x: Any) -> Any:
            x[1:] *= x[:-1]
            return np.sum(x)

        plain = memory.copy()
        f(plain[1:9:2])
        ad.gradient(f, x)
        np.testing.assert_array_equal(memory, plain)


class TestPlainArraysRefuse:
    """A plain array cannot take an active value, however it is offered (13)."""

    @staticmethod
    def offers() -> dict[str, Callable[[Any, Any], Any]]:
        """Return ways to put an active array ``t`` into a plain array ``p``."""

        def augmented(p: Any, t: Any) -> Any:
            p += t
            return p

        def augmented_slice(p: Any, t: Any) -> Any:
            p[:2] += t[:2]
            return p

        def augmented_item(p: Any, t: Any) -> Any:
            d = {"g": p}
            d["g"] += t
            return d["g"]

        def augmented_attribute(p: Any, t: Any) -> Any:
            n = SimpleNamespace(g=p)
            n.g *= t
            return n.g

        def product(p: Any, t: Any) -> Any:
            p @= np.stack([t, t, t, t])
            return p

        def divided(p: Any, t: Any) -> Any:
            p /= t
            return p

        def slice_assigned(p: Any, t: Any) -> Any:
            p[1:3] = t[1:3]
            return p

        def all_assigned(p: Any, t: Any) -> Any:
            p[...] = t
            return p

        def element(p: Any, t: Any) -> Any:
            p[0] = t[0]
            return p

        def by_index(p: Any, t: Any) -> Any:
            p[[0, 2]] = t[:2]
            return p

        def by_mask(p: Any, t: Any) -> Any:
            p[t > 0.5] = t[t > 0.5]
            return p

        def flat(p: Any, t: Any) -> Any:
            p.flat[0] = t[0]
            return p

        return {
            "p += t": augmented,
            "p[:2] += t": augmented_slice,
            "d['g'] += t": augmented_item,
            "n.g *= t": augmented_attribute,
            "p @= t": product,
            "p /= t": divided,
            "iadd": lambda p, t: operator.iadd(p, t),
            "iadd of an item": lambda p, t: operator.iadd({"g": p}["g"], t),
            "np.add(p, t, out=p)": lambda p, t: np.add(p, t, out=p),
            "np.add(c, t, p)": lambda p, t: np.add(np.ones(4), t, p),
            "np.sin(t, out=p)": lambda p, t: np.sin(t, out=p),
            "np.sum(out=)": lambda p, t: np.sum(t[None], axis=0, out=p),
            "np.cumsum(out=)": lambda p, t: np.cumsum(t, out=p),
            "np.matmul(out=)": lambda p, t: np.matmul(np.eye(4), t, out=p),
            "np.dot(out=)": lambda p, t: np.dot(np.eye(4), t, out=p),
            "np.take(out=)": lambda p, t: np.take(t, [0, 1, 2, 3], out=p),
            "np.clip(out=)": lambda p, t: np.clip(t, 0.0, 1.0, out=p),
            "np.concatenate(out=)": lambda p, t: np.concatenate([t], out=p),
            "np.stack(out=)": lambda p, t: np.stack([t], axis=1, out=p[:, None]),
            "np.add.reduce(out=)": lambda p, t: np.add.reduce(t[None], out=p),
            "np.add.at": lambda p, t: np.add.at(p, [0, 0, 1], t[:3]),
            "np.multiply.at": lambda p, t: np.multiply.at(p, [0, 1], t[:2]),
            "np.copyto": lambda p, t: np.copyto(p, t),
            "np.put": lambda p, t: np.put(p, [0, 1], t[:2]),
            "np.putmask": lambda p, t: np.putmask(p, [True] * 4, t),
            "np.place": lambda p, t: np.place(p, p > 0.0, t),
            "np.put_along_axis": lambda p, t: np.put_along_axis(
                p, np.array([0, 1]), t[:2], 0
            ),
            "np.fill_diagonal": lambda p, t: np.fill_diagonal(p.reshape(2, 2), t[0]),
            "np.full_like": lambda p, t: np.full_like(p, t),
            "np.full": lambda p, t: np.full(4, t[0]),  # noqa: ARG005
            "p.fill": lambda p, t: p.fill(t[0]),
            "p[0] = t[0]": element,
            "p[1:3] = t": slice_assigned,
            "p[...] = t": all_assigned,
            "p[[0, 2]] = t": by_index,
            "p[mask] = t": by_mask,
            "p.flat[0] = t[0]": flat,
            "p.put": lambda p, t: p.put([0], t[0]),
            "p.sum(initial=)": lambda p, t: p.sum(initial=t[0]),
            "p.dot(t)": lambda p, t: np.eye(4).dot(t),  # noqa: ARG005
            "np.asarray": lambda p, t: np.asarray(t),  # noqa: ARG005
            "np.array": lambda p, t: np.array(t),  # noqa: ARG005
            "np.array of elements": lambda p, t: np.array([t[0], 1.0]),  # noqa: ARG005
            "np.array, dtype": lambda p, t: np.array([t[0]], dtype=float),  # noqa: ARG005
            "np.r_": lambda p, t: np.r_[t[0], 1.0],  # noqa: ARG005
            "float": lambda p, t: p * float(t[0]),
            "math": lambda p, t: p * math.sin(t[0]),
            "item": lambda p, t: p * t[0].item(),
            "complex": lambda p, t: p * complex(t[0]),
        }

    @pytest.mark.parametrize("name", list(offers()))
    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_refused(self, name: str, mode: Any) -> None:
        """Each raises, and the plain array is as before."""
        offer = self.offers()[name]
        p = np.ones(4) if "@" not in name else np.ones((4, 4))
        before = p.copy()

        def f(x: Any) -> Any:
            offer(p, x * 2.0)
            return np.sum(x)

        with pytest.raises((TypeError, ValueError)) as caught:
            ad.gradient(f, X.copy(), mode=mode)
        np.testing.assert_array_equal(p, before)
        if name not in ("p.flat[0] = t[0]", "np.fill_diagonal"):
            assert isinstance(caught.value, ad.DualadError), repr(caught.value)


class TestComplex:
    """The gradient is df/dRe + i df/dIm; the interpreters conjugate (14)."""

    z = 0.3 + 0.7j

    def test_exp(self) -> None:
        """Re(exp z): conj(exp z)."""
        e = math.exp(0.3)
        want = complex(e * math.cos(0.7), -e * math.sin(0.7))
        got = ad.gradient(lambda z: np.real(np.exp(z)), np.array(self.z))
        numeric.assert_close(got, np.array(want))

    @pytest.mark.parametrize(
        ("f", "want"),
        [
            (lambda z: np.abs(z), lambda z: z / abs(z)),
            (lambda z: np.abs(z) ** 2, lambda z: 2.0 * z),
            (lambda z: np.real(z) ** 2, lambda z: 2.0 * z.real),
            (lambda z: np.imag(z) ** 3, lambda z: 3j * z.imag**2),
            (lambda z: z.real * z.imag, lambda z: z.imag + 1j * z.real),
            (lambda z: np.angle(z), lambda z: 1j * z / abs(z) ** 2),
            (lambda z: np.real(np.conj(z) * 1j), lambda z: 1j + 0 * z),
            (lambda z: np.real(z * (2 - 3j)), lambda z: 2 + 3j + 0 * z),
            (lambda z: np.imag(z * z), lambda z: np.conj(-2j * z)),
            (lambda z: np.real(z * np.conj(z)), lambda z: 2.0 * z),
            (lambda z: np.real(1 / z), lambda z: np.conj(-1 / z**2)),
            (lambda z: np.real(np.vdot(z, z)), lambda z: 2.0 * z),
        ],
    )
    def test_functions(self, f: Function, want: Function) -> None:
        """One function each, at one point and over an array."""
        numeric.assert_close(ad.gradient(f, np.array(self.z)), np.array(want(self.z)))
        z = np.array([0.3 + 0.7j, -1.0 + 0.2j])
        if "vdot" not in f.__code__.co_names:
            got = ad.gradient(lambda z: np.sum(f(z)), z)
            numeric.assert_close(got, want(z) * np.ones(2))
            v = np.array([0.5 - 1j, 2.0 + 0.1j])
            slope = ad.jvp(lambda z: np.sum(f(z)), (z,), (v,))[1]
            numeric.assert_close(slope, np.real(np.vdot(want(z) * np.ones(2), v)))

    def test_product_with_the_conjugate_of_another(self) -> None:
        """Re(z conj w): w for z, z for w."""
        z, w = np.array([1 + 2j, 3 - 1j]), np.array([0.5 - 1j, 2j])
        f = lambda z, w: np.real(np.sum(z * np.conj(w)))  # noqa: E731
        z_bar, w_bar = ad.gradient(f, z, w)
        numeric.assert_close(z_bar, w)
        numeric.assert_close(w_bar, z)

    def test_imaginary_part_of_a_real_array(self) -> None:
        """It is zero, constant and not a view."""

        def f(x: Any) -> Any:
            return np.sum(x * x) + np.sum(x.imag) + np.sum(np.imag(x) * x)

        check(f, X, 2.0 * X)

    def test_parts_are_views(self) -> None:
        """Writing to z.real changes z: only the imaginary part counts, and x**2."""
        x = np.array([1 + 2j, 3 - 1j])

        def f(x: Any) -> Any:
            z = x * 1.0
            z.real[...] = 0.5
            z.imag[1] *= 3.0
            return np.sum(np.abs(z) ** 2)

        numeric.assert_close(ad.gradient(f, x), 2j * x.imag * [1.0, 9.0])

    def test_real_argument_complex_inside(self) -> None:
        """A real argument has a real gradient: d/dx |exp(ix) x|^2 = 2x."""

        def f(x: Any) -> Any:
            z = np.exp(1j * x) * x
            return np.sum(np.abs(z) ** 2)

        check(f, X, 2.0 * X)


class TestHalfPrecision:
    """Counting in half precision stops at 2048 (finding 15)."""

    def test_many_contributions(self) -> None:
        """Five thousand contributions of one."""
        x = np.array([0.25], dtype=np.float16)

        def f(x: Any) -> Any:
            total = x[0] * np.float16(0.0)
            for _ in range(5000):
                total = total + x[0]
            return total

        got = ad.gradient(f, x)
        assert got.dtype == np.float16
        assert got[0] == 5000.0

    def test_caller_owned(self) -> None:
        """A caller's half shadow is added to once."""
        x = np.array([0.25], dtype=np.float16)
        shadow = np.array([1.0], dtype=np.float16)

        def f(x: Any) -> Any:
            total = x[0] * np.float16(0.0)
            for _ in range(4000):
                total = total + x[0]
            return total

        ad.autodiff(ad.Reverse, f, ad.Duplicated(x, shadow))
        assert shadow[0] == np.float16(4001.0)

    def test_broadcast_bias(self) -> None:
        """A sum over many rows is exact."""
        b = np.array([0.5], dtype=np.float16)
        x = np.zeros((4000, 1), dtype=np.float16)
        got = ad.gradient(lambda b: np.sum((x + b)[:4000:1] * np.float16(0.5)), b)
        assert got.dtype == np.float16
        assert got[0] == 2000.0


class TestRepeatedIndices:
    """ufunc.at is a step of its own (finding 17)."""

    g = np.array([1.0, 10.0, 100.0, 1000.0])

    def test_add_at(self) -> None:
        """Each repeat adds: values get the cotangent of their place."""

        def f(v: Any) -> Any:
            y = np.ones_like(v)
            np.add.at(y, [0, 0, 1, 3], v)
            return np.sum(self.g * y)

        check(f, X, [1.0, 1.0, 10.0, 1000.0])

    def test_add_at_into_the_argument(self) -> None:
        """The array itself keeps its cotangent."""

        def f(x: Any) -> Any:
            np.add.at(x, [2, 2, 0], x[:3] * 2.0)
            np.subtract.at(x, [1, 1], x[:2])
            return np.sum(self.g * x)

        check(f, X, numeric.complex_step_gradient(f, X))

    def test_multiply_at(self) -> None:
        """Sequential: y0 = v0 v1."""

        def f(v: Any) -> Any:
            y = np.ones_like(v)
            np.multiply.at(y, [0, 0, 1], v[:3])
            return np.sum(self.g * y)

        check(f, X, [X[1], X[0], 10.0, 0.0])

    def test_augmented_repeats(self) -> None:
        """``x[i] += v`` with repeats: the last one wins, as in NumPy."""

        def f(v: Any) -> Any:
            y = np.zeros_like(v)
            y[[0, 0, 1]] += v[:3]
            return np.sum(self.g * y)

        check(f, X, [0.0, 1.0, 10.0, 0.0])

    def test_written_repeats(self) -> None:
        """``x[i] = v`` with repeats: the last one wins and alone has a derivative."""

        def f(v: Any) -> Any:
            y = v * 0.5
            y[[1, 1, 1]] = v[:3]
            return np.sum(self.g * y)

        check(f, X, [0.5, 0.0, 60.0, 500.0])

    def test_read_repeats(self) -> None:
        """Reads add: element 0 is read twice."""
        check(lambda x: np.sum(self.g * x[[0, 0, 2, 1]]), X, [11.0, 1000.0, 100.0, 0.0])


class TestShadowsThatAlias:
    """A shadow must be memory of its own (finding 18)."""

    @staticmethod
    def f(x: Any) -> Any:
        """Return the sum of squares."""
        return np.sum(x * x)

    @pytest.mark.parametrize(
        "shadow",
        [
            lambda x: x,
            lambda x: x[:],
            lambda x: x[::-1],
            lambda x: np.broadcast_to(np.zeros(1), (4,)),  # noqa: ARG005
            lambda x: np.zeros(4, dtype=int),  # noqa: ARG005
            lambda x: np.zeros(5),  # noqa: ARG005
            lambda x: np.zeros((1, 4)),  # noqa: ARG005
            lambda x: np.zeros(()),  # noqa: ARG005
            lambda x: frozen(),  # noqa: ARG005
            lambda x: as_strided(np.zeros(1), (4,), (0,)),  # noqa: ARG005
        ],
    )
    @pytest.mark.parametrize("mode", ["Reverse", "Forward"])
    def test_refused(self, shadow: Function, mode: str) -> None:
        """x itself, read-only, repeated, integer, of another shape."""
        x = X.copy()
        with pytest.raises(ad.ShadowMismatchError):
            ad.autodiff(getattr(ad, mode), self.f, ad.Duplicated(x, shadow(x)))
        np.testing.assert_array_equal(x, X)

    def test_overlaps_another_primal(self) -> None:
        """Neither another argument nor a constant may be the shadow."""
        f = lambda a, b: np.sum(a * b)  # noqa: E731
        a, b = X.copy(), W.copy()
        with pytest.raises(ad.ShadowMismatchError):
            ad.autodiff(
                ad.Reverse, f, ad.Duplicated(a, b), ad.Duplicated(b, np.zeros(4))
            )
        with pytest.raises(ad.ShadowMismatchError):
            ad.autodiff(ad.Reverse, f, ad.Duplicated(a, b), ad.Const(b))
        np.testing.assert_array_equal(b, W)

    def test_partly_overlapping(self) -> None:
        """Half over the argument is too much."""
        memory = np.concatenate([X, np.zeros(4)])
        with pytest.raises(ad.ShadowMismatchError):
            ad.autodiff(ad.Reverse, self.f, ad.Duplicated(memory[:4], memory[2:6]))
        ad.autodiff(ad.Reverse, self.f, ad.Duplicated(memory[:4], memory[4:]))
        numeric.assert_close(memory[4:], 2.0 * X)

    def test_one_shadow_for_two(self) -> None:
        """Two separate arguments may add into one shadow: w + x."""
        shadow = np.zeros(4)
        ad.autodiff(
            ad.Reverse,
            lambda a, b: np.sum(a * b),
            ad.Duplicated(X.copy(), shadow),
            ad.Duplicated(W.copy(), shadow),
        )
        numeric.assert_close(shadow, W + X)


def frozen() -> np.ndarray:
    """Return a read-only array."""
    x = np.zeros(4)
    x.flags.writeable = False
    return x


class TestNestedScratch:
    """Scratch memory is active at every running level (finding 19)."""

    @pytest.mark.parametrize("outer", ["reverse", "forward"])
    @pytest.mark.parametrize("inner", ["reverse", "forward"])
    def test_created_inside(self, outer: Any, inner: Any) -> None:
        """The inner slope of (t x)^2 is 2 t x^2, of which the outer is 4 t x = 12 x."""

        def of_t(x: Any, t: Any) -> Any:
            buffer = np.zeros_like(x)
            for i in range(4):
                buffer[i] = t * x[i]
            return np.sum(buffer * buffer)

        def f(x: Any) -> Any:
            t = np.array(3.0)
            return np.sum(ad.gradient(lambda t: of_t(x, t), t, mode=inner))

        got = ad.gradient(f, X.copy(), mode=outer)
        numeric.assert_close(got, 12.0 * X)

    @pytest.mark.parametrize("inner", ["reverse", "forward"])
    def test_result_stored_by_the_outer(self, inner: Any) -> None:
        """Inner slopes stored in the outer's buffer: sum((3 x^2)^2) gives 36 x^3."""

        def f(x: Any) -> Any:
            buffer = np.zeros_like(x)
            for i in range(4):
                buffer[i] = ad.gradient(lambda t: t**3, x[i], mode=inner)
            return np.sum(buffer * buffer)

        check(f, X, 36.0 * X**3)

    @pytest.mark.parametrize("outer", ["reverse", "forward"])
    @pytest.mark.parametrize("inner", ["reverse", "forward"])
    @pytest.mark.parametrize("how", ["slice", "element", "out", "copyto", "add.at"])
    def test_escape_raises(self, outer: Any, inner: Any, how: str) -> None:
        """An inner value must not be written to memory of the outer."""

        def write(buffer: Any, t: Any) -> None:
            if how == "slice":
                buffer[1:] = t
            elif how == "element":
                buffer[0] = t
            elif how == "out":
                np.multiply(t, 2.0, out=buffer[:1])
            elif how == "copyto":
                np.copyto(buffer, t)
            else:
                np.add.at(buffer, [0, 0], t)

        def f(x: Any) -> Any:
            buffer = np.zeros_like(x)

            def inside(t: Any) -> Any:
                write(buffer, t)
                return np.sum(buffer * t)

            return np.sum(x) * ad.gradient(inside, 2.0, mode=inner)

        with pytest.raises(ad.EscapedArrayError):
            ad.gradient(f, X.copy(), mode=outer)

    def test_inner_writes_outer_values(self) -> None:
        """An inner function may write outer values to outer memory: final x0 = x1^2."""

        def f(x: Any) -> Any:
            y = x * 1.0

            def inside(t: Any) -> Any:
                y[0] = y[1] * y[1]
                return t * t * np.sum(y)

            return ad.gradient(inside, 0.5) + np.sum(y)

        check(f, X, 2.0 * np.array([0.0, 1.0 + 2.0 * X[1], 1.0, 1.0]))

    def test_inner_writes_its_argument(self) -> None:
        """The inner sweep's undoing is no business of the outer: 6x, doubled."""

        def inside(y: Any) -> Any:
            s = np.sum(y**3)
            y *= 2.0
            return s + np.sum(y)

        def f(x: Any) -> Any:
            y = x * 1.0
            g = ad.gradient(inside, y)
            return np.sum(g) + np.sum(y * y)

        check(f, X, 6.0 * X + 8.0 * X)


class TestStrongZero:
    """Zero is decided part by part (finding 20)."""

    @staticmethod
    def f(x: Any) -> Any:
        """Return x1 sqrt(x2)."""
        return x[0] * np.sqrt(x[1])

    def test_first_order(self) -> None:
        """A zero cotangent or tangent times an infinite partial is zero."""
        x = np.zeros(2)
        np.testing.assert_array_equal(ad.gradient(self.f, x), [0.0, 0.0])
        _, slope = ad.jvp(np.sqrt, (np.zeros(2),), (np.array([0.0, 1.0]),))
        np.testing.assert_array_equal(slope, [0.0, np.inf])
        with np.errstate(divide="ignore"):
            _, slope = ad.jvp(np.log, (np.zeros(2),), (np.zeros(2),))
        np.testing.assert_array_equal(slope, [0.0, 0.0])

    def test_second_order(self) -> None:
        """H12 = 1 / (2 sqrt(x2)) is infinite at 0; H11 = 0."""
        with np.errstate(all="ignore"):
            got = ad.hvp(self.f, np.zeros(2), np.array([0.0, 1.0]))
            assert got[0] == np.inf
            got = ad.hvp(self.f, np.zeros(2), np.array([1.0, 0.0]))
            np.testing.assert_array_equal(got, [0.0, np.inf])
            x = np.array([0.0, 4.0])
            got = ad.hvp(self.f, x, np.array([1.0, 1.0]))
            np.testing.assert_array_equal(got, [0.25, 0.25])

    def test_dead_branch(self) -> None:
        """where(c, good, bad): NaN in the branch not taken stays there."""

        def f(x: Any) -> Any:
            return np.sum(np.where(x > 1.0, (x - 1.0) ** 2, np.sqrt(1.0 - x)))

        x = np.array([1.5, -3.0, 2.0])
        want = np.array([1.0, -0.25, 2.0])
        with np.errstate(all="ignore"):
            for mode in ("reverse", "forward"):
                numeric.assert_close(ad.gradient(f, x, mode=mode), want)
            want = np.array([2.0, -1.0 / 32.0, 2.0])
            numeric.assert_close(ad.hvp(f, x, np.ones(3)), want)


class TestNoCycles:
    """Memory goes when the last name goes (finding 26)."""

    @pytest.fixture(autouse=True)
    def without_collector(self) -> Any:
        """Switch the cycle collector off."""
        gc.collect()
        gc.disable()
        yield
        gc.enable()

    def test_dropped_pullback(self) -> None:
        """Nothing of the tape outlives its pullback."""
        seen: list[Any] = []

        def f(x: Any) -> Any:
            c = np.ones(LARGE)
            seen.append(weakref.ref(c))
            y = np.sin(x) * c
            z = y * y
            z[1:] *= y[:-1]
            return np.sum(z)

        _, pullback = ad.vjp(f, np.ones(LARGE))
        pullback(1.0)
        assert seen[0]() is not None
        del pullback
        assert seen[0]() is None

    def test_dropped_values(self) -> None:
        """Nor do plain values that steps held."""
        seen: list[Any] = []

        def f(x: Any) -> Any:
            c = np.ones(LARGE)
            seen.append(weakref.ref(c))
            return np.sum(np.sin(x * c) * c)

        ad.gradient(f, np.ones(LARGE))
        ad.hvp(f, np.ones(LARGE), np.ones(LARGE))
        ad.jvp(f, (np.ones(LARGE),), (np.ones(LARGE),))
        assert all(r() is None for r in seen)

    def test_after_an_exception(self) -> None:
        """A failed run frees everything, too."""
        seen: list[Any] = []

        def f(x: Any) -> Any:
            c = np.ones(LARGE)
            seen.append(weakref.ref(c))
            y = x * c
            y[0] = 1.0
            raise KeyError

        for _ in range(2):
            with contextlib.suppress(KeyError):
                ad.gradient(f, np.ones(LARGE))
        assert all(r() is None for r in seen)

    @pytest.mark.parametrize(
        "derivative",
        [
            ad.gradient,
            lambda f, x: ad.vjp(f, x)[1](1.0),
            lambda f, x: ad.hvp(f, x, x),
            lambda f, x: ad.autodiff(ad.Reverse, f, ad.Duplicated(x, np.zeros_like(x))),
            lambda f, x: ad.jacobian(f, x, mode="reverse"),
        ],
    )
    def test_an_array_that_escapes_keeps_no_other(self, derivative: Any) -> None:
        """It leads to its level, and that to nothing."""
        seen: list[Any] = []
        escaped: list[Any] = []

        def f(x: Any) -> Any:
            y = np.sin(x)
            seen.append(weakref.ref(ad.levels.bare(y)))
            z = y * y
            z[1:] *= y[:-1]
            escaped.append(y[1:2] * 1.0)
            return np.sum(z)

        derivative(f, np.ones(5))
        assert len(escaped) >= 1
        assert all(r() is None for r in seen)

    def test_after_a_failed_sweep(self) -> None:
        """A constant that was changed is found late; all is freed all the same."""
        seen: list[Any] = []
        c = np.ones(LARGE)

        def f(x: Any) -> Any:
            y = np.sin(x * c)
            seen.append(weakref.ref(ad.levels.bare(y)))
            c[0] += 1.0
            return np.sum(y * y)

        for _ in range(2):
            with contextlib.suppress(ad.ChangedArrayError):
                ad.gradient(f, np.ones(LARGE))
        assert len(seen) == 2
        assert all(r() is None for r in seen)


class TestReinterpretation:
    """x.view(dtype) is an alias between float and complex, else it raises (27)."""

    def test_pairs_as_complex(self) -> None:
        """|z|^2 of pairs is the sum of squares; writes reach the base."""

        def f(x: Any) -> Any:
            y = x * 1.0
            z = y.view(np.complex128)
            s = np.sum(np.abs(z) ** 2)
            z[1] = 0.0
            return s + np.sum(W * y)

        check(f, X, 2.0 * X + W * [1.0, 1.0, 0.0, 0.0])

    def test_complex_as_pairs(self) -> None:
        """The parts of z, weighted."""
        z = np.array([1 + 2j, 3 - 1j])

        def f(z: Any) -> Any:
            return np.sum(W * (z * 1.0).view(np.float64) ** 2)

        want = 2.0 * (W[::2] * z.real + 1j * W[1::2] * z.imag)
        numeric.assert_close(ad.gradient(f, z), want)

    @pytest.mark.parametrize("dtype", [np.int64, np.float32, np.uint8, "f4,f4"])
    def test_others_raise(self, dtype: Any) -> None:
        """Bits have no derivative."""
        with pytest.raises(ad.DualadError):
            ad.gradient(lambda x: np.sum(x.view(dtype)), X.copy())

    def test_same_dtype(self) -> None:
        """A view of the same dtype is an alias."""

        def f(x: Any) -> Any:
            y = x * 1.0
            v = y.view(np.float64)
            v[0] = y[1]
            return np.sum(W * y) + np.sum(y.view())

        check(f, X, (1.0 + W) * [0.0, 1.0, 1.0, 1.0] + [0.0, 1.0 + W[0], 0.0, 0.0])


class TestWhereDerivativesMayBeUsed:
    """Active arrays belong to one derivative and one thread (finding 24)."""

    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_another_thread(self, mode: Any) -> None:
        """Use from a thread started inside f raises there."""
        caught: list[BaseException] = []

        def f(x: Any) -> Any:
            def work() -> None:
                try:
                    np.sin(x)
                except BaseException as e:  # noqa: BLE001 -- looked at below
                    caught.append(e)

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            return np.sum(x)

        np.testing.assert_array_equal(ad.gradient(f, X.copy(), mode=mode), np.ones(4))
        assert [type(e) for e in caught] == [ad.EscapedArrayError]

    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_afterwards(self, mode: Any) -> None:
        """A kept active array raises on use; repr and primal still work."""
        kept: list[Any] = []

        def f(x: Any) -> Any:
            kept.extend([x, x * 2.0, x[0], x[1:]])
            return np.sum(x * x)

        ad.gradient(f, X.copy(), mode=mode)
        for y in kept:
            repr(y)
            with pytest.raises(ad.EscapedArrayError):
                np.sin(y)
            with pytest.raises(ad.EscapedArrayError):
                y + 1.0
            with pytest.raises(ad.EscapedArrayError):
                ad.gradient(lambda x: np.sum(x * y), X[: np.size(y)].copy())  # noqa: B023
        numeric.assert_close(ad.primal(kept[1]), 2.0 * X)
        with pytest.raises(ad.EscapedArrayError):
            kept[1][0] = 1.0
        with pytest.raises(ad.EscapedArrayError):
            kept[0][:2]

    def test_in_a_later_derivative(self) -> None:
        """State left by one call is refused by the next."""
        state = SimpleNamespace(last=0.0)

        def f(x: Any) -> Any:
            y = np.sum(x * x) + state.last
            state.last = y
            return y

        numeric.assert_close(ad.gradient(f, X.copy()), 2.0 * X)
        with pytest.raises(ad.EscapedArrayError):
            ad.gradient(f, X.copy())

    def test_half_consumed_generator(self) -> None:
        """A generator that takes derivatives leaves no level open."""

        def slopes() -> Any:
            for t in (1.0, 2.0, 3.0):
                yield ad.derivative(lambda t: t**3, t)

        generator = slopes()
        assert next(generator) == 3.0
        numeric.assert_close(ad.gradient(lambda x: np.sum(x * x), X.copy()), 2.0 * X)
        assert next(generator) == 12.0
        assert type(np.zeros_like(X)) is np.ndarray

    def test_event_loop(self) -> None:
        """Tasks take derivatives in turn without disturbing one another."""

        async def slope(k: int) -> float:
            total = 0.0
            for i in range(5):
                total += float(ad.derivative(lambda t: k * t**2, float(i)))
                await asyncio.sleep(0)
            return total

        async def main() -> list[float]:
            return await asyncio.gather(*(slope(k) for k in range(5)))

        assert asyncio.run(main()) == [20.0 * k for k in range(5)]


class TestConversionTable:
    """What happens where NumPy does not ask us (finding 21)."""

    @staticmethod
    def inside(use: Function) -> Any:
        """Run ``use`` on an active array in both modes and return what it gave."""
        results = []

        def f(x: Any) -> Any:
            results.append(use(x))
            return np.sum(x * x)

        for mode in ("reverse", "forward"):
            numeric.assert_close(ad.gradient(f, X.copy(), mode=mode), 2.0 * X)
        return results

    def test_formatting(self) -> None:
        """Every training loop prints its loss."""
        assert self.inside(lambda x: f"{x[1]:.3f}") == ["0.700"] * 2
        assert all("0.7" in s for s in self.inside(lambda x: str(x)))
        assert all("0.7" in s for s in self.inside(lambda x: repr(x)))

    def test_rounding(self) -> None:
        """Integers carry no derivative."""
        assert self.inside(lambda x: round(x[1])) == [1, 1]
        assert self.inside(lambda x: round(x[1] * 1.0, 1)) == [0.7, 0.7]
        assert self.inside(lambda x: math.floor(x[2])) == [1, 1]
        assert self.inside(lambda x: math.ceil(x[2])) == [2, 2]
        assert self.inside(lambda x: math.trunc(x[2])) == [1, 1]
        assert self.inside(lambda x: int(x[2])) == [1, 1]

    def test_truth(self) -> None:
        """Comparisons are plain."""
        assert self.inside(lambda x: bool(x[0] > 0.0)) == [True, True]
        assert self.inside(lambda x: type(x > 0.0)) == [np.ndarray] * 2
        assert self.inside(lambda x: bool(x[0])) == [True, True]

    def test_integer_arrays(self) -> None:
        """An integer array takes the value, as int(t) does."""

        def use(x: Any) -> Any:
            i = np.zeros(2, dtype=int)
            i[0] = x[2] * 10.0
            return list(i)

        assert self.inside(use) == [[11, 0]] * 2

    def test_not_an_index(self) -> None:
        """A float is no index, active or not."""
        with pytest.raises((TypeError, IndexError)):
            self.inside(lambda x: X[x[2]])
        with pytest.raises(TypeError):
            self.inside(lambda x: operator.index(x[2]))

    @pytest.mark.parametrize(
        "name",
        ["__array_interface__", "__array_struct__", "data", "ctypes", "__index__"],
    )
    def test_missing(self, name: str) -> None:
        """No door by which the value could leave."""
        assert self.inside(lambda x: hasattr(x, name)) == [False, False]
        assert self.inside(lambda x: hasattr(x[0], name)) == [False, False]

    def test_no_buffer(self) -> None:
        """No buffer protocol."""
        with pytest.raises((TypeError, ValueError)):
            self.inside(memoryview)
        with pytest.raises((TypeError, ValueError)):
            self.inside(lambda x: np.frombuffer(x))

    def test_isfinite(self) -> None:
        """math.isfinite asks for a float: it raises and says what to use."""
        with pytest.raises(ad.LostDerivativeError):
            self.inside(lambda x: math.isfinite(x[0]))
        assert self.inside(lambda x: bool(np.isfinite(x[0]))) == [True, True]

    def test_scalar_has_no_sequence_protocol(self) -> None:
        """So our text arrives in ``plain[0] = t``."""
        p = np.zeros(2)

        def use(x: Any) -> None:
            p[0] = x[0]

        with pytest.raises(ad.LostDerivativeError):
            self.inside(use)
        with pytest.raises(TypeError):
            self.inside(lambda x: len(x[0]))

    def test_asarray(self) -> None:
        """The headline limit raises and names a remedy."""
        with pytest.raises(ad.LostDerivativeError):
            self.inside(lambda x: np.asarray(x, float))
