"""The checks of derivatives: right rules pass, each kind of mistake is found."""

# ruff: noqa: ARG005 -- formulas take what their kind hands them

from __future__ import annotations

import numpy as np
import pytest

import dualad as ad
from dualad import testing
from dualad.rules.kinds import RULES, elementwise, general, overridable
from dualad.testing import DerivativeError, check_derivatives, check_rule

X = np.array([0.5, -1.2, 0.8])


@pytest.fixture
def cubed():
    """A function of our own whose rule a test writes; it is forgotten afterwards."""

    @overridable
    def cubed(x):
        return x**3

    yield cubed
    RULES.pop(cubed, None)


# --- check_rule -------------------------------------------------------------------


def test_a_right_rule_passes(cubed):
    elementwise(cubed, lambda y, x: 3 * x * x)
    check_rule(cubed, X)
    check_rule(cubed, X, thorough=True)


@pytest.mark.parametrize(
    ("partial", "check"),
    [
        (lambda y, x: 2 * x * x, "forward mode against differences"),
        (
            lambda y, x: 3 * np.abs(x) ** 2,
            "forward mode against differences",
        ),  # complex
        (
            lambda y, x: 3 * ad.stop_gradient(x) ** 2,
            "forward over reverse mode against differences",
        ),
        (lambda y, x: np.nan * x, "forward mode against differences"),
    ],
)
def test_a_wrong_partial_is_found(cubed, partial, check):
    elementwise(cubed, partial)
    mode = "forward" if check.startswith("forward mode") else "second order"
    with pytest.raises(DerivativeError) as error:
        check_rule(cubed, X, modes=[mode])
    assert error.value.check == check


def general_rule(function, *, pushforward=None, pullback=None):
    general(
        function,
        pushforwards=(pushforward or (lambda x_dot, y, x: x_dot * 3 * x * x),),
        pullbacks=(pullback or (lambda y_bar, y, x: y_bar * 3 * np.conjugate(x * x)),),
    )


def test_a_pair_of_formulas_passes(cubed):
    general_rule(cubed)
    check_rule(cubed, X)


@pytest.mark.parametrize(
    ("formulas", "check"),
    [
        (
            {"pullback": lambda y_bar, y, x: y_bar * 3 * x},
            "reverse mode against forward",
        ),
        (
            {"pullback": lambda y_bar, y, x: y_bar * 3 * x * x},  # conjugate forgotten
            "reverse mode against forward",
        ),
        (
            {
                "pushforward": lambda x_dot, y, x: (
                    x_dot * (3 * x * x + 0 * written_in(x))
                )
            },
            "leaving the arguments unchanged",
        ),
    ],
)
def test_a_wrong_pair_is_found(cubed, formulas, check):
    general_rule(cubed, **formulas)
    with pytest.raises(DerivativeError) as error:
        check_rule(cubed, X, modes=["forward", "reverse"])
    assert check in error.value.check


def written_in(x):
    """Write into an argument of a formula, which no rule may do."""
    if isinstance(x, np.ndarray) and x.flags.writeable and x.size:
        x[...] = 7.0
    return 0.0


def test_wrong_values_are_found(monkeypatch):
    right = ad.vjp

    def vjp(f, *args):
        value, pull = right(f, *args)
        return value * 1.01, pull

    monkeypatch.setattr(ad, "vjp", vjp)
    with pytest.raises(DerivativeError, match="the value in reverse mode fails"):
        check_rule(np.sin, X, modes=["value"])


def test_wrong_dtypes_are_found(monkeypatch):
    right = ad.jvp

    def jvp(f, primals, tangents):
        value, tangent = right(f, primals, tangents)
        return value, tangent.astype(np.float64)

    monkeypatch.setattr(ad, "jvp", jvp)
    with pytest.raises(DerivativeError, match="the tangent: shape and dtype") as error:
        check_rule(np.sin, X, modes=["value"], dtypes=["float32"], layouts=["C"])
    assert (error.value.got, error.value.expected) == (
        "array float64[3]",
        "array float32[3]",
    )


def test_overwritten_shadows_are_found(monkeypatch):
    right = ad.autodiff

    def autodiff(mode, f, pair):
        pair.shadow[...] = 0
        return right(mode, f, pair)

    monkeypatch.setattr(ad, "autodiff", autodiff)
    with pytest.raises(DerivativeError, match="adding to a shadow fails"):
        check_rule(np.sin, X, modes=["accumulation"])


def test_wrong_jacobians_are_found(monkeypatch):
    right = ad.jacobian
    monkeypatch.setattr(ad, "jacobian", lambda f, x, mode: 2 * right(f, x, mode=mode))
    with pytest.raises(DerivativeError, match="the forward Jacobian fails"):
        check_rule(np.sin, X, modes=["width"])
    monkeypatch.setattr(ad, "jacobian", lambda f, x, mode: right(f, x, mode=mode)[:1])
    with pytest.raises(DerivativeError, match=r"got +shape \(1, 3\)"):
        check_rule(np.sin, X, modes=["width"], layouts=["C"])


def test_wrong_nesting_is_found(monkeypatch):
    right = ad.gradient
    depth = []

    def gradient(f, *args):
        depth.append(f)
        try:
            return right(f, *args) * (2 if len(depth) > 1 else 1)
        finally:
            depth.pop()

    monkeypatch.setattr(ad, "gradient", gradient)
    with pytest.raises(DerivativeError, match="reverse over reverse mode"):
        check_rule(np.sin, X, modes=["nesting"])


def test_wrong_forward_nesting_is_found(monkeypatch):
    right = ad.jvp

    def jvp(f, primals, tangents):
        value, tangent = right(f, primals, tangents)
        is_inner = not isinstance(primals[0], np.ndarray)
        return value, tangent * (2 if is_inner else 1)

    monkeypatch.setattr(ad, "jvp", jvp)
    with pytest.raises(DerivativeError, match="forward over forward mode fails"):
        check_rule(np.sin, X, modes=["nesting"])


def test_a_function_that_is_not_smooth_is_told_apart():
    with pytest.raises(DerivativeError, match="taking differences fails for rounded"):
        check_rule(rounded, np.array([1.5001, 2.0]), modes=["forward"])


def rounded(x):
    """Jump right beside the point."""
    return x + np.where(x > 1.5, 1.0, 0.0)


def test_the_text_of_an_error(cubed):
    elementwise(cubed, lambda y, x: 2 * x * x)
    with pytest.raises(DerivativeError) as error:
        check_rule(cubed, np.array([1.0, 2.0]), dtypes=["float64"], modes=["forward"])
    assert str(error.value) == (
        "forward mode against differences fails for cubed (dtype float64, layout C).\n"
        f"  got        {testing.shown(error.value.got)}\n"
        f"  expected   {testing.shown(error.value.expected)}\n"
        "Correct the rule, or give arguments near which it is smooth."
    )
    assert isinstance(error.value, AssertionError)
    assert isinstance(error.value, ad.DualadError)


def test_long_values_are_shortened():
    assert len(testing.shown(np.arange(10.0))) < 100
    assert testing.shown(np.zeros(1000)) == "[0. 0. 0. ... 0. 0. 0.]"
    assert testing.shown("a  b\nc") == "a b c"
    assert len(testing.shown("a" * 1000)) == 300


def test_other_errors_say_where_they_arose():
    with pytest.raises(ad.MissingRuleError) as error:
        check_rule(np.linalg.eigvals, np.eye(2), dtypes=["float32"], layouts=["F"])
    (note,) = error.value.__notes__
    assert note == "while checking value of eigvals (dtype float32, layout F)"


def test_arguments_that_numpy_refuses_raise_its_error():
    with pytest.raises(ValueError, match="matmul"):
        check_rule(np.matmul, np.ones(2), np.ones(3))


def test_a_function_without_floating_results_is_refused():
    with pytest.raises(ValueError, match="argmax returns no floating array"):
        check_rule(np.argmax, X)


def test_numbers_alone_are_refused():
    with pytest.raises(ValueError, match="sin got no floating array"):
        check_rule(np.sin, 0.5)


def test_constants_and_lists():
    check_rule(np.concatenate, [X, X[::-1]], modes=["value", "reverse"])
    check_rule(np.multiply, X, ad.Const(X), modes=["value", "reverse"])
    check_rule(np.where, X > 0, X, 1.0, modes=["value", "reverse"])


def test_every_pair_occurs():
    factors = (("a", "b", "c"), ("0", "1"), ("x", "y", "z", "w"))
    rows = testing.pairwise(*factors)
    assert len(rows) < 24
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert {(row[i], row[j]) for row in rows} == {
            (a, b) for a in factors[i] for b in factors[j]
        }


@pytest.mark.parametrize("layout", testing.LAYOUTS[:-1])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_arrays_without_axes_stay_arrays(layout, dtype):
    x = testing.arranged(np.array(0.5), np.dtype(dtype), layout)
    assert type(x) is np.ndarray
    assert (x.shape, x.dtype) == ((), dtype)


@pytest.mark.parametrize("layout", testing.LAYOUTS)
def test_layouts_keep_the_values(layout):
    x = np.arange(6.0).reshape(2, 3)
    y = testing.in_layout(x, layout)
    if layout == "0-d":
        assert y.shape == ()
        assert y == 0.0
    elif layout == "empty":
        assert y.shape == (0, 0)
    else:
        np.testing.assert_array_equal(y, x)
    assert y.flags.writeable == (layout != "read-only")
    assert not np.shares_memory(x, y)
    assert testing.duplicate(y).strides == y.strides


# --- check_derivatives ------------------------------------------------------------


def test_right_derivatives_pass():
    check_derivatives(lambda x: np.sum(np.sin(x) * x[::-1]), X)
    check_derivatives(lambda x: np.sin(x) * x[::-1], X)
    check_derivatives(lambda t: t**3, 2.0)
    check_derivatives(lambda z: np.abs(z) ** 2 * np.conj(z), X + 1j * X[::-1])


def test_nested_arguments_and_results():
    def f(model, scale, shift):
        y = np.tanh(model["w"] @ model["x"][0]) * scale + shift
        return {"y": y, "sum": (np.sum(y), 3)}

    model = {"w": np.eye(3) + 0.1, "x": [X, 7]}
    check_derivatives(f, model, 1.5, ad.Const(X))


def test_scales_of_arguments_do_not_matter():
    for scale in (1e-9, 1e9):
        check_derivatives(lambda x, s=scale: np.sum((x / s) ** 3) * s, scale * X)


def test_writes_into_the_argument():
    def f(x):
        x[1:] *= x[:-1]
        return np.sum(x * x)

    x = X.copy()
    check_derivatives(f, x)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("order", [1, 2])
def test_lost_derivatives_are_found(order):
    def lost(x):
        return np.sum(x * ad.stop_gradient(x))

    with pytest.raises(DerivativeError, match="forward mode against differences"):
        check_derivatives(lost, X, order=order)


def test_wrong_second_derivatives_are_found(cubed):
    elementwise(cubed, lambda y, x: 3 * ad.stop_gradient(x * x))
    check_derivatives(lambda x: np.sum(cubed(x)), X, order=1)
    with pytest.raises(DerivativeError, match="forward over reverse mode"):
        check_derivatives(lambda x: np.sum(cubed(x)), X)


def test_the_tolerance_can_be_given():
    def nearly(x):
        return np.sum(x * (1 + 1e-5) - ad.stop_gradient(x) * 1e-5)

    with pytest.raises(DerivativeError):
        check_derivatives(nearly, X, order=1)
    check_derivatives(nearly, X, order=1, rtol=1e-4)


def test_orders_are_one_or_two():
    with pytest.raises(ValueError, match="order is 1 or 2, but was 3"):
        check_derivatives(np.sum, X, order=3)
