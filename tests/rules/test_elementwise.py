"""Every ufunc: the battery where it is smooth, and the values at its kinks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dualad as ad
from dualad import arrays, dispatch, testing
from dualad.rules import RULES
from dualad.testing import check_derivatives, check_rule
from tests.domains import ELEMENTWISE, SAMPLES, THOROUGH, battery

# A slope that is constant has no slope: nested derivatives say so.
pytestmark = pytest.mark.filterwarnings("ignore::dualad.IndependentOutputWarning")

INF, NAN = np.inf, np.nan
UFUNCS = {
    name: function
    for name, function in vars(np).items()
    if isinstance(function, np.ufunc)
}


def both_modes(f, *args):
    """Return the gradient, the same in both modes."""
    reverse = ad.gradient(f, *args, mode="reverse")
    forward = ad.gradient(f, *args, mode="forward")
    for a, b in zip(np.atleast_1d(reverse), np.atleast_1d(forward), strict=True):
        np.testing.assert_array_equal(a, b)
    return reverse


def slope(f, t):
    """Return the derivative of a function of one number, the same in both modes."""
    t = np.float64(t)
    forward = ad.derivative(f, t)
    np.testing.assert_array_equal(forward, ad.gradient(f, t))
    return forward


def curvature(f, t):
    """Return the second derivative at a number, the same in all nestings."""
    t = np.float64(t)
    found = [
        ad.derivative(lambda t: ad.derivative(f, t), t),
        ad.derivative(lambda t: ad.gradient(f, t), t),
        ad.gradient(lambda t: ad.gradient(f, t), t),
        ad.gradient(lambda t: ad.derivative(f, t), t),
    ]
    np.testing.assert_array_equal(found, found[:1] * 4)
    return found[0]


@battery(ELEMENTWISE)
def test_battery(function, args, params):
    check_rule(function, *args, thorough=THOROUGH, **params)


def test_every_ufunc_has_a_rule():
    assert [name for name, function in UFUNCS.items() if function not in RULES] == []


class Consulted(dict):
    """A table of rules that remembers which were looked up."""

    def __init__(self, rules):
        super().__init__(rules)
        self.seen = set()

    def get(self, function, default=None):
        self.seen.add(function)
        return super().get(function, default)

    def __getitem__(self, function):
        self.seen.add(function)
        return super().__getitem__(function)


# Reached by operators, methods of arrays and of ufuncs, past the table: see
# test_indexing, test_views, test_methods, test_conversions.
BY_OPERATORS = {
    "cast",
    "gathered",
    "imaginary_number",
    "indexed",
    "real_number",
    "reinterpreted",
    "seen_block_by_block",
    "seen_overlapping_in_each",
    "strong_on_plain",
    "sums_between",
}


def test_every_rule_is_exercised(monkeypatch):
    """The samples of the battery reach every rule.

    Writers have tests of their own, and slopes, whose arguments belong together, have
    theirs in ``test_nesting``.
    """
    table = Consulted(RULES)
    monkeypatch.setattr(dispatch, "RULES", table)
    monkeypatch.setattr(arrays, "RULES", table)
    for function, calls in SAMPLES.items():
        for args, params in calls:
            run_active(function, args, params)
    missing = {
        rule.name
        for function, rule in RULES.items()
        if rule.kind != "constant"
        and not rule.is_slope
        and function not in table.seen.union(SAMPLES, dispatch.WRITERS)
    }
    assert missing - BY_OPERATORS == set()


def run_active(function, args, params):
    """Call a function of a sample with active arrays."""
    for subject in testing.subjects(
        function, args, params, testing.is_array, name="", floor=1.0
    ):
        ad.jvp(subject.function, subject.point, subject.directions())
        break


@pytest.mark.parametrize(
    "function",
    [f for f in UFUNCS.values() if RULES[f].kind == "constant"],
    ids=lambda f: f.__name__,
)
def test_constants_are_plain(function):
    x = np.array([0.5, -1.5, 2.0])
    try:
        expected = function(*[x] * function.nin)
    except TypeError:
        expected = None  # a function of integers or dates

    def f(y):
        if expected is None:
            with pytest.raises(TypeError):
                function(*[y] * function.nin)
        else:
            result = function(*[y] * function.nin)
            assert type(result) is np.ndarray
            np.testing.assert_array_equal(result, expected)
        return np.sum(y)

    np.testing.assert_array_equal(both_modes(f, x), np.ones(3))


# --- ties and kinks ---------------------------------------------------------------


@pytest.mark.parametrize("function", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_ties_give_one_half_to_each(function):
    x, y = np.array([1.0, INF, 0.0]), np.array([1.0, INF, -0.0])
    x_bar, y_bar = ad.gradient(lambda x, y: np.sum(function(x, y)), x, y)
    np.testing.assert_array_equal(x_bar, [0.5, 0.5, 0.5])
    np.testing.assert_array_equal(y_bar, [0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("function", "x_bar", "y_bar"),
    [
        (np.maximum, [1, 0, 1], [0, 1, 0]),
        (np.minimum, [1, 0, 1], [0, 1, 0]),
        (np.fmax, [0, 1, 1], [1, 0, 0]),
        (np.fmin, [0, 1, 1], [1, 0, 0]),
    ],
)
def test_nan_goes_to_the_operand_that_numpy_selects(function, x_bar, y_bar):
    x, y = np.array([NAN, 1.0, NAN]), np.array([1.0, NAN, NAN])
    got = ad.gradient(lambda x, y: np.sum(function(x, y)), x, y)
    np.testing.assert_array_equal(got, [x_bar, y_bar])


@pytest.mark.parametrize(
    "function", [np.abs, np.fabs, np.sign, lambda x: np.hypot(x, 0)]
)
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_derivative_zero_at_the_kink(function, zero):
    assert slope(function, zero) == 0
    assert curvature(function, zero) == 0


def test_hypot_at_the_origin():
    origin = np.zeros(2)

    def f(x):
        return np.hypot(x[0], x[1])

    np.testing.assert_array_equal(ad.gradient(f, origin), [0, 0])
    np.testing.assert_array_equal(ad.hessian(f, origin), np.zeros((2, 2)))


@pytest.mark.parametrize("function", [np.abs, np.sign])
def test_complex_zero(function):
    def f(z):
        w = function(z)
        return np.sum(w.real + w.imag) if w.dtype.kind == "c" else np.sum(w)

    z = np.array([0j, 3 + 4j])
    gradient = both_modes_of_complex(f, z)
    assert gradient[0] == 0
    assert np.all(np.isfinite(gradient))


def both_modes_of_complex(f, z):
    """Return the gradient; forward mode agrees in both directions of the plane."""
    gradient = ad.gradient(f, z)
    for k in range(z.size):
        for direction in (1, 1j):
            v = direction * np.eye(z.size)[k]
            _, tangent = ad.jvp(f, (z,), (v,))
            assert abs(tangent - np.sum(np.real(np.conj(gradient) * v))) < 1e-14
    return gradient


def test_copysign_takes_its_sign_from_the_second():
    x, y = np.array([2.0, -2.0, 2.0, 0.0]), np.array([-1.0, -0.0, 0.0, -1.0])
    got = ad.gradient(lambda x: np.sum(np.copysign(x, y)), x)
    np.testing.assert_array_equal(got, [-1, 1, 1, 0])


def test_heaviside_gives_its_value_at_zero_to_the_second():
    x = np.array([-1.0, 0.0, 1.0])
    got = ad.gradient(lambda y: np.sum(np.heaviside(x, y)), np.full(3, 0.5))
    np.testing.assert_array_equal(got, [0, 1, 0])


# --- powers -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [int, float, np.float64, np.int64, np.array])
@pytest.mark.parametrize("raised", [np.power, np.float_power, lambda x, n: x**n])
def test_powers_at_zero(raised, kind):
    expected = {0: (0, 0), 1: (1, 0), 2: (0, 2), 3: (0, 0)}
    for n, (first, second) in expected.items():
        exponent = kind(n)
        assert slope(lambda x, n=exponent: raised(x, n), 0.0) == first
        assert curvature(lambda x, n=exponent: raised(x, n), 0.0) == second


@pytest.mark.parametrize("dtype", [int, float, np.uint8])
def test_powers_of_an_array_at_zero(dtype):
    x, n = np.zeros(4), np.arange(4).astype(dtype)

    def f(x):
        return np.sum(x**n)

    np.testing.assert_array_equal(both_modes(f, x), [0, 1, 0, 0])
    np.testing.assert_array_equal(np.diag(ad.hessian(f, x)), [0, 0, 2, 0])


def test_third_derivative_of_a_cube_at_zero():
    first = ad.grad(lambda t: np.power(t, 3))
    assert slope(ad.grad(first), 0.0) == 6


def test_power_with_both_active():
    x_bar, y_bar = ad.gradient(
        lambda x, y: np.sum(x**y),
        np.array([0.0, 0.0, 0.0, 2.0]),
        np.array([0.0, 1.0, 2.0, 0.0]),
    )
    np.testing.assert_array_equal(x_bar, [0, 1, 0, 0])
    np.testing.assert_array_equal(y_bar, [0, 0, 0, np.log(2.0)])


def test_mixed_second_derivative_of_a_power_with_exponent_zero():
    # d2(x**y) / dx dy = x**(y-1) * (1 + y log x), which is 1 / x for y = 0.
    hessian = ad.hessian(lambda p: p[0] ** p[1], np.array([4.0, 0.0]))
    np.testing.assert_allclose(
        hessian, [[0, 0.25], [0.25, np.log(4.0) ** 2]], rtol=1e-15
    )


@pytest.mark.parametrize("n", [-3, -2, 2, 3, 2.0, 3.0, np.array(3), np.array([2.0])])
def test_negative_bases_with_whole_exponents(n):
    got = ad.gradient(lambda x: np.sum(x**n), np.array([-1.5]))
    np.testing.assert_allclose(got, n * (-1.5) ** (n - 1.0), rtol=1e-15)


@pytest.mark.parametrize("base", [2, 2.0, np.float32(2), np.array([2, 2]), 0, 0.0])
def test_constant_bases(base):
    y = np.array([0.5, 3.0])
    got = ad.gradient(lambda y: np.sum(base**y), y)
    expected = 0.0 if np.all(np.equal(base, 0)) else base**y * math.log(2.0)
    np.testing.assert_allclose(got, np.broadcast_to(expected, 2), rtol=1e-15)


def test_float_power_computes_in_double_precision():
    x = np.array([1e20], np.float32)
    got = ad.gradient(lambda x: np.sum(np.log(np.float_power(x, 3))), x)
    np.testing.assert_allclose(got, 3 / x, rtol=1e-6)


# --- singular points --------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "edge"),
    [
        (np.sqrt, 0.0),
        (np.cbrt, 0.0),
        (np.log, 0.0),
        (np.log2, 0.0),
        (np.log10, 0.0),
        (np.log1p, -1.0),
        (np.reciprocal, 0.0),
        (lambda x: 1 / x, 0.0),
        (lambda x: x / x, 0.0),
        (lambda x: x**0.5, 0.0),
        (lambda x: np.power(x, 0.5), 0.0),
        (lambda x: x**-1.5, 0.0),
        (np.arcsin, 1.0),
        (np.arccos, 1.0),
        (np.arccosh, 1.0),
        (np.arctanh, 1.0),
        (lambda x: np.arctan2(x, 0 * x), 0.0),
    ],
)
def test_a_masked_branch_leaves_no_nan(function, edge):
    x = np.array([edge, edge])

    def f(x):
        return np.sum(np.where([True, False], x * x, function(x))[:1])

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ad.gradient(f, x), [2 * edge, 0])
        _, tangent = ad.jvp(f, (x,), (np.array([1.0, 0.0]),))
        np.testing.assert_array_equal(tangent, 2 * edge)
        np.testing.assert_array_equal(
            ad.jvp(lambda x: ad.gradient(f, x), (x,), (np.array([1.0, 0.0]),))[1],
            [2, 0],
        )


@pytest.mark.parametrize(
    ("function", "edge"),
    [(np.sqrt, 0.0), (np.log, 0.0), (np.arcsin, 1.0), (lambda x: x**0.5, 0.0)],
)
def test_an_infinite_slope_is_infinite(function, edge):
    with np.errstate(all="ignore"):
        assert slope(function, edge) == INF


def test_division_by_a_python_zero():
    with np.errstate(all="ignore"):
        got = ad.gradient(lambda x: np.sum(x / 0), np.array([1.0, -1.0]))
        np.testing.assert_array_equal(got, [INF, INF])
        assert ad.gradient(lambda x: np.sum(x / -0.0), np.array([1.0])) == -INF


@pytest.mark.parametrize(
    ("function", "x", "y", "expected"),
    [
        (np.logaddexp, -INF, -INF, (0.5, 0.5)),
        (np.logaddexp, INF, INF, (0.5, 0.5)),
        (np.logaddexp, INF, 1.0, (1, 0)),
        (np.logaddexp, -INF, 1.0, (0, 1)),
        (np.logaddexp, 1000.0, 0.0, (1, 0)),
        (np.logaddexp, 2.0, 2.0, (0.5, 0.5)),
        (np.logaddexp2, -INF, -INF, (0.5, 0.5)),
        (np.logaddexp2, 2.0, INF, (0, 1)),
        (np.logaddexp2, 2.0, 2.0, (0.5, 0.5)),
    ],
)
def test_logaddexp_stays_finite(function, x, y, expected):
    got = ad.gradient(lambda x, y: function(x, y), np.float64(x), np.float64(y))
    np.testing.assert_allclose(got, expected, atol=1e-300, rtol=1e-15)


def test_second_derivative_of_logaddexp_at_a_tie():
    hessian = ad.hessian(lambda p: np.logaddexp(p[0], p[1]), np.array([2.0, 2.0]))
    np.testing.assert_allclose(hessian, [[0.25, -0.25], [-0.25, 0.25]], rtol=1e-14)


# --- accuracy ---------------------------------------------------------------------


def test_small_numbers_are_not_lost():
    assert slope(np.expm1, -40.0) == np.exp(-40.0)
    near_one = 1 - 2.0**-50
    np.testing.assert_allclose(slope(np.arcsin, near_one), 2.0**24.5, rtol=1e-14)
    np.testing.assert_allclose(slope(np.arccos, near_one), -(2.0**24.5), rtol=1e-14)
    np.testing.assert_allclose(slope(np.arccosh, 1 + 2.0**-50), 2.0**24.5, rtol=1e-14)


def test_half_precision_does_not_overflow():
    x = np.array([300.0], np.float16)
    got = ad.gradient(lambda x: np.sum(np.arctan2(x, x)), x)
    assert got == 0
    got = ad.gradient(lambda x: np.sum(np.arctan2(x, np.float16(300))), x)
    np.testing.assert_allclose(got, 1 / 600, rtol=1e-3)
    got = ad.gradient(lambda x: np.sum(np.arcsinh(x)), x)
    np.testing.assert_allclose(got, 1 / 300, rtol=2e-3)


@pytest.mark.parametrize("function", [np.remainder, np.fmod])
def test_the_quotient_of_a_remainder_is_exact(function):
    # 1.0 / 0.1 rounds to 10, but the remainder is just below 0.1: the quotient is 9.
    assert slope(lambda y: function(1.0, y), 0.1) == -9
    assert slope(lambda x: function(x, 0.1), 1.0) == 1
    assert curvature(lambda y: function(1.0, y), 0.1) == 0


def test_signs_of_quotients():
    x, y = np.array([5.0, -5.0, 5.0, -5.0]), np.array([3.0, 3.0, -3.0, -3.0])
    floors = ad.gradient(lambda y: np.sum(np.remainder(x, y)), y)
    np.testing.assert_array_equal(floors, -np.floor(x / y))
    truncated = ad.gradient(lambda y: np.sum(np.fmod(x, y)), y)
    np.testing.assert_array_equal(truncated, -np.trunc(x / y))


@pytest.mark.parametrize("function", [np.arcsin, np.arccos, np.arctanh, np.arccosh])
@pytest.mark.parametrize("side", [0.0, -0.0])
def test_branch_cuts_of_complex_functions(function, side):
    z = complex(2.5 if function is not np.arccosh else -2.5, side)
    h = complex(1e-6, side)  # stays on the side of the cut
    expected = (function(z + h) - function(z - h.conjugate())) / 2e-6
    got = ad.jvp(lambda z: function(z), (np.complex128(z),), (np.complex128(1),))[1]
    np.testing.assert_allclose(got, expected, rtol=1e-8)


# --- dtypes -----------------------------------------------------------------------

SINGLE = [
    (function, args)
    for function, calls in ELEMENTWISE.items()
    if isinstance(function, np.ufunc) and RULES[function].kind == "elementwise"
    for args, _ in calls
    if all(np.asarray(x).dtype.kind == "f" for x in args)
]


@pytest.mark.parametrize(
    ("function", "args"),
    SINGLE,
    ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(SINGLE)],
)
def test_partials_of_single_precision_are_single(function, args):
    args = [x.astype(np.float32) if isinstance(x, np.ndarray) else x for x in args]
    z = function(*args)
    for x, partial in zip(args, RULES[function].partials, strict=True):
        if isinstance(x, np.ndarray) and callable(partial):
            got = partial(z, *args)
            assert np.result_type(got, np.float32(1)) == z.dtype


def test_python_numbers_do_not_widen():
    x = np.array([0.5, 1.5], np.float32)

    def f(x):
        y = 2.0 * x + 1.0
        y = y**2 / 3.0 - np.maximum(y, 0.5) + np.hypot(x, 1.0) + 2.0**x
        assert y.dtype == np.float32
        return np.sum(y)

    assert ad.gradient(f, x).dtype == np.float32
    assert ad.jvp(f, (x,), (x,))[1].dtype == np.float32


# --- two results ------------------------------------------------------------------


@pytest.mark.parametrize("x", [2.75, -2.75, 2.0, -2.0, INF, -INF, 0.0, -0.0])
@pytest.mark.parametrize("function", [np.modf, np.frexp, lambda x: np.divmod(x, 1.5)])
def test_values_of_two_results(function, x):
    x = np.array([x])
    with np.errstate(all="ignore"):
        expected = function(x)
        got, _ = ad.jvp(lambda x: tuple(ad.primal(y) for y in function(x)), (x,), (x,))
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def test_parts_add_up():
    check_derivatives(lambda x: np.sum(np.square(np.modf(x)[0])), np.array([1.3, -2.6]))
    check_derivatives(
        lambda x: np.sum(np.square(np.frexp(x)[0]) + np.ldexp(*np.frexp(x))),
        np.array([1.3, -2.6]),
    )
    x = np.array([1.3, -2.6])
    assert type(ad.jvp(lambda x: np.frexp(x)[1], (x,), (x,))[0]) is np.ndarray


def test_sign_and_angle_of_real_numbers_are_constant():
    x = np.array([1.5, -2.0, 0.0])
    got = ad.gradient(lambda x: np.sum(x * np.sign(x) + x * np.angle(x)), x)
    np.testing.assert_allclose(got, np.sign(x) + np.angle(x))


def test_angle_in_degrees():
    z = np.array([1 + 1j, -1 + 2j])
    value, gradient = ad.value_and_gradient(lambda z: np.sum(np.angle(z, deg=True)), z)
    np.testing.assert_allclose(value, np.sum(np.angle(z, deg=True)))
    np.testing.assert_allclose(gradient, 180 / np.pi * 1j * z / np.abs(z) ** 2)
