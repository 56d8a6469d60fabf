"""Containers and memory that change behind the back of a derivative."""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.levels import bare

Operator = Callable[..., Any]


def pair() -> dict[str, np.ndarray]:
    """Return two arrays; the gradient of the sum of their product swaps them."""
    return {"a": np.array([1.0, 1.0]), "b": np.array([3.0, 3.0])}


def product(p: dict[str, Any]) -> Any:
    """Return the sum of the product of two arrays."""
    return np.sum(p["a"] * p["b"])


def assert_swapped(found: dict[str, Any]) -> None:
    """Check the gradient of :func:`product`."""
    np.testing.assert_array_equal(found["a"], [3.0, 3.0])
    np.testing.assert_array_equal(found["b"], [1.0, 1.0])


class TestStructure:
    """The structure of arguments and outputs is that of the call."""

    def test_counter(self) -> None:
        """The update of a Counter adds; its items are replaced all the same."""
        c = collections.Counter(a=1.5, b=2.5)
        value, slopes = ad.value_and_gradient(lambda c: c["a"] * c["b"], c)
        assert value == 3.75
        assert slopes == {"a": 2.5, "b": 1.5}
        assert type(slopes) is collections.Counter
        assert ad.primal(c) == c

    def test_keys_change_places_after_vjp(self) -> None:
        """A pullback gives what the call was about."""
        d = pair()
        _, pullback = ad.vjp(product, d)
        d["a"] = d.pop("a")
        assert_swapped(pullback(1.0))

    def test_list_shrinks_and_grows_after_vjp(self) -> None:
        """The same for lists."""
        items = [np.array([1.0, 1.0]), np.array([3.0, 3.0])]
        _, pullback = ad.vjp(lambda p: np.sum(p[0] * p[1]), items)
        items.pop(0)
        for _ in range(3):
            items.append(np.zeros(2))
            assert_swapped(dict(zip("ab", pullback(1.0), strict=True)))

    def test_output_changes_after_vjp(self) -> None:
        """A cotangent belongs to the output as it was returned."""
        out: list[Any] = []

        def f(x: Any) -> list[Any]:
            out[:] = [x * 2.0, x * 3.0]
            return out

        _, pullback = ad.vjp(f, np.ones(2))
        out.reverse()
        found = pullback([np.ones(2), np.zeros(2)])
        np.testing.assert_array_equal(found, [2.0, 2.0])

    @pytest.mark.parametrize("change", ["reorder", "append"])
    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_container_changes_inside_f(self, change: str, mode: str) -> None:
        """The caller's dict is captured and changed while f runs."""
        d = pair()

        def f(p: Any) -> Any:
            if change == "reorder":
                d["a"] = d.pop("a")
            else:
                d["c"] = np.zeros(2)
            return product(p)

        assert_swapped(ad.gradient(f, d, mode=mode))

    def test_jacobian_of_changing_containers(self) -> None:
        """Rows and columns are those of the call, too."""
        for mode in ("forward", "reverse"):
            d = pair()

            def f(p: Any, d: Any = d) -> Any:
                d["a"] = d.pop("a")
                return p["a"] * p["b"]

            found = ad.jacobian(f, d, mode=mode)
            np.testing.assert_array_equal(found["a"], 3.0 * np.eye(2))
            np.testing.assert_array_equal(found["b"], np.eye(2))


class TestTiedLeaves:
    """An array that occurs twice in an argument is one variable, in every mode."""

    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_gradient(self, mode: str) -> None:
        """The gradient of sum(w * w) is 2 w, at both places."""
        w = np.array([1.0, 2.0])
        found = ad.gradient(lambda p: np.sum(p[0] * p[1]), [w, w], mode=mode)
        np.testing.assert_array_equal(found, [2 * w, 2 * w])

    @pytest.mark.parametrize("mode", ["reverse", "forward", "auto"])
    def test_jacobian(self, mode: str) -> None:
        """The Jacobian of w * w is diag(2 w), also in several chunks."""
        w = np.arange(1.0, 4.0)
        for chunk in (None, 1, 2):
            found = ad.jacobian(lambda p: p[0] * p[1], [w, w], mode=mode, chunk=chunk)
            np.testing.assert_array_equal(found, [np.diag(2 * w)] * 2)

    def test_hessian(self) -> None:
        """The Hessian of sum(w^3) is diag(6 w), in every block."""
        w = np.array([1.0, 2.0])
        found = ad.hessian(lambda p: np.sum(p[0] * p[1] * p[0]), [w, w])
        for row in found:
            np.testing.assert_array_equal(row, [np.diag(6 * w)] * 2)

    def test_equal_numbers_are_not_tied(self) -> None:
        """Two numbers that happen to be one object are two variables."""
        t = 2.0
        found = ad.gradient(lambda p: p[0] * p[0] * p[1], [t, t], mode="forward")
        assert found == [8.0, 4.0]


class TestConstInsideATree:
    """A constant inside a tree is seen as one in an argument of its own."""

    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_write_into_shared_memory(self, mode: str) -> None:
        """A write has two meanings there."""
        w = np.array([1.0, 2.0])

        def f(p: Any) -> Any:
            p["w"][0] = p["w"][1] * 3.0
            return np.sum(p["w"] * p["c"])

        with pytest.raises(ad.AliasedArgumentsError, match=r"argument 0\['c'\]"):
            ad.gradient(f, {"w": w, "c": ad.Const(w)}, mode=mode)

    def test_no_write(self) -> None:
        """Without one it is a constant: sum(w * c) gives c."""
        w = np.array([1.0, 2.0])
        found = ad.gradient(
            lambda p: np.sum(p["w"] * p["c"]), {"w": w, "c": ad.Const(w)}
        )
        np.testing.assert_array_equal(found["w"], w)

    @pytest.mark.parametrize("mode", [ad.Forward, ad.Reverse])
    def test_shadow_of_a_tree_with_integers(self, mode: Any) -> None:
        """Integers are shared by a tree and its shadow."""
        p = {"w": np.array([1.0, 2.0]), "i": np.array([1, 1])}
        shadow = ad.make_shadow(p)
        shadow["w"] += 1.0
        ad.autodiff(mode, lambda p: np.sum(p["w"][p["i"]]), ad.Duplicated(p, shadow))
        expected = [1.0, 1.0] if mode is ad.Forward else [1.0, 3.0]
        np.testing.assert_array_equal(shadow["w"], expected)


class TestChangedPastUs:
    """An argument that f also reaches as a plain array must not be written there."""

    @pytest.mark.parametrize("size", [2, 5000])
    @pytest.mark.parametrize(
        "operator",
        [
            lambda f, w: ad.gradient(f, w),
            lambda f, w: ad.gradient(f, w, mode="forward"),
            lambda f, w: ad.vjp(f, w),
            lambda f, w: ad.jvp(f, (w,), (np.ones_like(w),)),
            lambda f, w: ad.hvp(f, w, np.ones_like(w)),
            lambda f, w: ad.jacobian(lambda x: f(x) * np.ones(2), w, mode="reverse"),
            lambda f, w: ad.autodiff(ad.Reverse, f, ad.Duplicated(w, np.zeros_like(w))),
            lambda f, w: ad.autodiff(ad.Forward, f, ad.Duplicated(w, np.ones_like(w))),
        ],
        ids=["gradient", "forward", "vjp", "jvp", "hvp", "rows", "reverse", "dual"],
    )
    def test_write_is_noticed(self, operator: Operator, size: int) -> None:
        """The value would be that of other arguments than the derivative."""
        w = np.linspace(1.0, 2.0, size)

        def f(x: Any) -> Any:
            y = x * x
            w[0] = 5.0
            return np.sum(y * x)

        with pytest.raises(ad.ChangedArrayError):
            operator(f, w)

    def test_base_of_a_broadcast_argument(self) -> None:
        """The memory of a broadcast argument is that of a smaller array."""
        b = np.array([2.0])

        def f(x: Any) -> Any:
            y = x * x
            b[0] = 5.0
            return np.sum(y)

        with pytest.raises(ad.ChangedArrayError):
            ad.gradient(f, np.broadcast_to(b, (3,)))

    def test_writes_of_our_own_are_no_change(self) -> None:
        """What f writes through its argument is left there."""
        for mode in ("forward", "reverse"):
            w = np.array([1.0, 2.0, 3.0])

            def f(x: Any) -> Any:
                x[1:] *= 2.0
                return np.sum(x * x)

            found = ad.gradient(f, w, mode=mode)
            np.testing.assert_array_equal(found, [2.0, 16.0, 24.0])
            np.testing.assert_array_equal(w, [1.0, 4.0, 6.0])

    def test_buffers_are_not_held(self) -> None:
        """A buffer that f has written into and dropped gives its memory back."""
        buffers: list[Any] = []

        def f(x: Any) -> Any:
            t = 0.0
            for _ in range(3):
                buffer = np.zeros_like(x)
                buffer[0] = x[0]
                buffers.append(weakref.ref(bare(buffer)))
                t = t + np.sum(buffer)
                del buffer
                assert buffers[-1]() is None
            return t

        _, slope = ad.jvp(f, (np.ones(2),), (np.ones(2),))
        assert slope == 3.0
        assert len(buffers) == 3

    def test_caller_may_change_arguments_after_vjp(self) -> None:
        """The pullback works on copies."""
        w = np.array([1.0, 2.0])
        _, pullback = ad.vjp(lambda x: x * x, w)
        w[:] = 7.0
        np.testing.assert_array_equal(pullback(np.ones(2)), [2.0, 4.0])


def test_numbers_of_mixed_precision() -> None:
    """The Hessian of a^2 b is ((2 b, 2 a), (2 a, 0))."""
    found = ad.hessian(lambda p: p[0] * p[0] * p[1], [np.float32(1.5), 2.0])
    np.testing.assert_array_equal(found, [[4.0, 3.0], [3.0, 0.0]])
