"""Derivatives of derivatives: order three in all combinations of modes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.forward.dual import DualLevel
from tests import numeric

Function = Callable[[Any], Any]
Operator = Callable[[Function, Any], Function]

A = np.array([[0.4, -0.3, 0.8], [0.2, 0.9, -0.5], [-0.6, 0.1, 0.3]])
X = np.array([[0.3, -0.7, 0.5], [0.9, 0.2, -0.4], [-0.8, 0.6, 0.1]])
DIRECTIONS = np.random.default_rng(3).uniform(-1.0, 1.0, (3, 3, 3))


def forward(f: Function, v: Any) -> Function:
    """Return the slope of ``f`` along ``v`` by forward mode."""
    return lambda x: ad.jvp(f, (x,), (v,))[1]


def reverse(f: Function, v: Any) -> Function:
    """Return the same by reverse mode."""
    return lambda x: np.sum(v * ad.gradient(f, x))


def pulled(f: Function, v: Any) -> Function:
    """Return the same by a pullback."""
    return lambda x: np.sum(v * ad.vjp(f, x)[1](1.0))


MODES = {"forward": forward, "reverse": reverse}
TRIPLES = list(itertools.product(MODES, repeat=3))


def mixed(x: Any) -> Any:
    """Use exp, sin, matmul, where, gathers, transposed views and writes."""
    y = np.exp(0.5 * x) @ A
    t = y.T
    t[0] = np.sin(x[1]) * t[1]
    y[1:, ::2] *= x[:2, 1:]
    z = np.where(x > 0.15, y * x.T, np.sin(y))
    z[[0, 2, 0]] += x[[1, 1, 2]]
    flat = z.reshape(-1)
    flat[1:] = flat[:-1] * flat[1:]
    rows = z[[2, 0, 2]]
    np.add.at(flat, [0, 4, 4], rows[0])
    np.multiply(rows, y, out=rows)
    return np.sum(rows * np.tanh(z)) + flat[3] * np.sum(y @ z.T)


def writing(x: Any) -> Any:
    """Do the like inside the argument itself."""
    x[0] *= x[1]
    s = np.sum(np.exp(x.T[1:]))
    x.T[...] = np.sin(x @ A)
    x[1:] = x[:-1] * x[1:]
    x[[0, 0], [1, 1]] = x[[2, 1], [0, 2]] ** 2
    x.reshape(-1)[::3] += np.where(x[0] > -9.0, x[1], 0.0)
    return s + np.sum(np.sin(x) * np.broadcast_to(x[1], (3, 3)))


def copied(f: Function) -> Function:
    """Let ``f`` work on a copy, so that differences can evaluate it again."""
    return lambda x: f(x.copy())


def nested(f: Function, modes: tuple[str, ...]) -> Function:
    """Return the slope of the slope ... of ``f``, the innermost mode first."""
    for mode, v in zip(modes, DIRECTIONS, strict=False):
        f = MODES[mode](f, v)
    return f


@pytest.mark.parametrize("f", [mixed, writing])
@pytest.mark.parametrize("modes", TRIPLES, ids="-".join)
def test_third_order(f: Function, modes: tuple[str, ...]) -> None:
    """Each order is the difference of the one below it."""
    for order in range(1, 4):
        lower = nested(copied(f), modes[: order - 1])
        want = numeric.directional(lower, X, DIRECTIONS[order - 1], step=1e-3)
        got = nested(f, modes[:order])(X.copy())
        numeric.assert_close(got / abs(want), want / abs(want), 1e-6)


@pytest.mark.parametrize("f", [mixed, writing])
def test_all_combinations_agree(f: Function) -> None:
    """Eight ways to one number, to rounding."""
    got = [float(nested(f, modes)(X.copy())) for modes in TRIPLES]
    numeric.assert_close(got, np.full(8, got[0]), 1e-11)


@pytest.mark.parametrize("modes", TRIPLES, ids="-".join)
def test_argument_is_left_as_f_leaves_it(modes: tuple[str, ...]) -> None:
    """However deep, x holds what ``writing`` alone puts there."""
    plain, x = X.copy(), X.copy()
    writing(plain)
    nested(writing, modes)(x)
    np.testing.assert_array_equal(x, plain)


def test_pullbacks_nest() -> None:
    """Pullbacks of pullbacks equal gradients of gradients."""
    u, v, w = DIRECTIONS
    got = pulled(pulled(pulled(mixed, u), v), w)(X)
    numeric.assert_close(got, reverse(reverse(reverse(mixed, u), v), w)(X), 1e-11)


def test_public_second_order() -> None:
    """hvp, hessian, value_gradient_and_hvp and nested jacobians agree."""
    v = DIRECTIONS[0]
    hessian = ad.hessian(mixed, X)
    product = np.tensordot(hessian, v, axes=2)
    numeric.assert_close(hessian, np.transpose(hessian, (2, 3, 0, 1)), 1e-11)
    numeric.assert_close(ad.hvp(mixed, X, v), product, 1e-11)
    value, gradient, third = ad.value_gradient_and_hvp(mixed, X, v)
    assert value == mixed(X.copy())
    numeric.assert_close(gradient, ad.gradient(mixed, X), 1e-11)
    numeric.assert_close(third, product, 1e-11)
    for mode in ("forward", "reverse"):
        jacobian = ad.jacobian(lambda x: ad.gradient(mixed, x), X, mode=mode)
        numeric.assert_close(jacobian, hessian, 1e-11)
    numeric.assert_close(ad.grad(lambda x: np.sum(v * ad.grad(mixed)(x)))(X), product)


def test_scalar_towers() -> None:
    """Five derivatives of a power and of exp: 6! / 1! t and exp."""
    for wrap in itertools.product([derivative, slope], repeat=5):
        f: Function = lambda t: t**6  # noqa: E731
        g: Function = np.exp
        for d in wrap:
            f, g = d(f), d(g)
        assert f(1.5) == pytest.approx(720.0 * 1.5, rel=1e-12)
        assert g(0.3) == pytest.approx(np.exp(0.3), rel=1e-12)


def derivative(f: Function) -> Function:
    """Return the derivative of a function of a number by forward mode."""
    return lambda t: ad.derivative(f, t)


def slope(f: Function) -> Function:
    """Return the same by reverse mode."""
    return lambda t: ad.gradient(f, t)


PAIRS = list(itertools.product([derivative, slope], repeat=2))


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
class TestPerturbationConfusion:
    """The inner derivative's variable is not the outer's."""

    def test_classic(self, outer: Any, inner: Any) -> None:
        """d/dx [x d/dy (x + y)] = 1."""
        f = lambda x: x * inner(lambda y: x + y)(1.0)  # noqa: E731
        assert outer(f)(1.0) == 1.0

    def test_product(self, outer: Any, inner: Any) -> None:
        """d/dx [x d/dy (x^2 y^3)] at y = 2 is 36 x^2."""
        f = lambda x: x * inner(lambda y: x**2 * y**3)(2.0)  # noqa: E731
        assert outer(f)(1.5) == pytest.approx(81.0, rel=1e-14)

    def test_inner_at_the_outer_variable(self, outer: Any, inner: Any) -> None:
        """d/dx [d/dy (x y^2) at y = x] = d/dx 2 x^2 = 4 x."""
        f = lambda x: inner(lambda y: x * y**2)(x)  # noqa: E731
        assert outer(f)(3.0) == pytest.approx(12.0, rel=1e-14)

    def test_inner_ignores_its_variable(self, outer: Any, inner: Any) -> None:
        """d/dy x^2 = 0, so that x^3 alone counts: 3 x^2."""

        def f(x: Any) -> Any:
            return x**3 + inner(lambda y: x**2 + 0.0 * y)(1.0)

        assert outer(f)(2.0) == pytest.approx(12.0, rel=1e-14)

    def test_arrays(self, outer: Any, inner: Any) -> None:
        """The same with arrays captured by the inner function."""

        def f(t: Any) -> Any:
            x = np.stack([t, t * t, 2.0 * t])
            return np.sum(x * inner(lambda s: np.sum(s * s * x))(1.0))

        # 2 (sum x)^2 with sum x = 3 t + t^2: derivative 4 (3 t + t^2) (3 + 2 t)
        t = 0.5
        want = 4.0 * (3.0 * t + t**2) * (3.0 + 2.0 * t)
        assert outer(f)(t) == pytest.approx(want, rel=1e-14)

    def test_inner_closure_escapes_nothing(self, outer: Any, inner: Any) -> None:
        """A function built from an outer value: d/dx (x^2 + x) = 2 x + 1 twice."""

        def f(x: Any) -> Any:
            scale = inner(lambda y: y * y * x * 0.5)(x)  # x^2
            return scale + inner(lambda y: y * x)(7.0)  # x

        assert outer(f)(2.0) == pytest.approx(5.0, rel=1e-14)


def test_inner_function_of_plain_arguments() -> None:
    """A derivative inside f of what does not depend on x is a constant."""
    c = np.array([1.0, 2.0])

    def f(x: Any) -> Any:
        return np.sum(x * ad.gradient(lambda z: np.sum(z**3), c))

    np.testing.assert_array_equal(ad.gradient(f, np.ones(2)), 3.0 * c**2)


def test_jacobian_inside_a_gradient() -> None:
    """The squared Frobenius norm of the Jacobian of x^3: 36 x^3."""
    x = np.array([0.5, -1.0, 2.0])
    for mode in ("forward", "reverse"):

        def f(x: Any, mode: str = mode) -> Any:
            j = ad.jacobian(lambda y: y**3, x, mode=mode)
            return np.sum(j * j)

        numeric.assert_close(ad.gradient(f, x), 36.0 * x**3)


def test_newton_inside() -> None:
    """Differentiate a Newton iteration for y^2 = x: 1 / (2 sqrt(x))."""

    def root(x: Any) -> Any:
        y = x * 0.0 + 1.0
        for _ in range(8):
            f = lambda y: y * y - x  # noqa: E731
            y = y - f(y) / ad.derivative(f, y)
        return y

    for d in (derivative, slope):
        assert d(root)(2.0) == pytest.approx(0.5 / np.sqrt(2.0), rel=1e-12)


def test_gradient_descent_inside() -> None:
    """Differentiate through in-place descent on a (y - x)^2 / 2: 1 - (1 - r a)^n."""

    def last(x: Any) -> Any:
        y = np.zeros_like(x)
        for _ in range(5):
            y -= 0.1 * ad.gradient(lambda y: np.sum(1.5 * (y - x) ** 2), y)
        return np.sum(y)

    want = np.full(3, 1.0 - (1.0 - 0.1 * 3.0) ** 5)
    numeric.assert_close(ad.gradient(last, np.array([1.0, 2.0, 3.0])), want)
    got = ad.gradient(last, np.array([1.0, 2.0, 3.0]), mode="forward")
    numeric.assert_close(got, want)


# --- partials that are kept for the second derivative ------------------------------

# A function and its next three derivatives.
FAMILIES = {
    "sin": (np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)),
    "cos": (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin),
    "sinh": (np.sinh, np.cosh, np.sinh, np.cosh),
    "cosh": (np.cosh, np.sinh, np.cosh, np.sinh),
}
SHAPES = [(), (5,), (3, 4), (1 << 17,), (2, 1 << 16)]


def point(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return where, and a direction."""
    x = np.linspace(-1.2, 1.4, int(np.prod(shape))).reshape(shape)
    return x, np.cos(3.0 * x)


@pytest.mark.parametrize("name", FAMILIES)
class TestKeptSlopes:
    """What a dual level computed for the tangent serves the sweep above it."""

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_second_order(
        self, name: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The Hessian of sum(f(x)) is the diagonal of f2(x); f1 is computed once."""
        f, _, f2, _ = FAMILIES[name]
        kept: list[Any] = []
        look = DualLevel.kept_slope

        def noting(self: DualLevel, y: Any) -> Any:
            kept.append(look(self, y))
            return kept[-1]

        monkeypatch.setattr(DualLevel, "kept_slope", noting)
        x, v = point(shape)
        found = ad.hvp(lambda x: np.sum(f(x)), x, v)
        np.testing.assert_allclose(found, f2(x) * v, rtol=1e-13)
        assert kept
        assert shape == () or all(slope is not None for slope in kept)

    @pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
    def test_output_is_overwritten(self, name: str, shape: tuple[int, ...]) -> None:
        """Afterwards y is x f(x): in all f(x)^2 + x f(x)."""
        f, f1, f2, _ = FAMILIES[name]

        def overwriting(x: Any) -> Any:
            y = f(x)
            t = np.sum(y * y)
            y *= x
            return t + np.sum(y)

        x, v = point(shape)
        second = 2 * f1(x) ** 2 + 2 * f(x) * f2(x) + 2 * f1(x) + x * f2(x)
        found = ad.hvp(overwriting, x, v)
        np.testing.assert_allclose(found, second * v, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
    def test_argument_is_overwritten(self, name: str, shape: tuple[int, ...]) -> None:
        """The argument is written between two uses: in all f(x) + f(x^2 / 2)."""
        f, f1, f2, _ = FAMILIES[name]

        def overwriting(x: Any) -> Any:
            t = np.sum(f(x))
            x *= x
            x *= 0.5
            return t + np.sum(f(x))

        x, v = point(shape)
        second = f2(x) + f1(x**2 / 2) + x**2 * f2(x**2 / 2)
        found = ad.hvp(overwriting, x.copy(), v)
        np.testing.assert_allclose(found, second * v, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
    @pytest.mark.parametrize(
        "modes", list(itertools.product("fr", repeat=3)), ids="".join
    )
    def test_third_order(
        self, name: str, shape: tuple[int, ...], modes: tuple[str, ...]
    ) -> None:
        """A view of the output, in every combination of modes."""
        f, _, _, f3 = FAMILIES[name]

        def value(t: Any) -> Any:
            y = f(t + np.zeros(shape))
            return np.sum(y.reshape(-1)[::-1] if shape else y)

        slope: Any = value
        for mode in modes:
            operator = ad.derivative if mode == "f" else ad.gradient
            slope = functools.partial(operator, slope)
        expected = np.prod(shape) * f3(0.7)
        np.testing.assert_allclose(slope(0.7), expected, rtol=1e-12)
