"""Every floating-point ufunc of NumPy: one line per function, its partial derivatives.

Conventions at kinks and singular points (docs/conventions.md): ``abs`` and
``hypot`` have derivative 0 at 0; ``maximum`` and its kin give one half to each operand
of a tie; ``0 ** 0`` has derivative 0 with respect to both operands.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualad.rules.kinds import (
    composition,
    conjugated,
    constant,
    elementwise,
    general,
    is_complex,
    linear,
    overridable,
    slope,
)

Array = Any

LOG_2 = math.log(2.0)
LOG_10 = math.log(10.0)
DEGREE = math.pi / 180.0
RIGHT_ANGLE = math.pi / 2.0


# --- words for the formulas below -------------------------------------------------


def inverse(y: Array) -> Array:
    """Return ``1 / y``; a Python zero divides as NumPy's zeros do."""
    if isinstance(y, int | float | complex) and y == 0:
        return np.divide(1, y)
    return 1 / y


def power_by_base(power: Any, x: Array, y: Array) -> Array:
    """Return the partial of ``x ** y`` by ``x``: ``y * x ** (y - 1)``.

    Where both are 0, the exponent -1 of the vanishing term would make it 0 * inf.
    """
    if type(y) in (int, float):
        return y * power(x, y - 1) if y else 0.0
    return y * power(x, np.where((x == 0) & (y == 0), 0.0, y - 1.0))


def power_by_exponent(z: Array, x: Array) -> Array:
    """Return the partial of ``x ** y`` by ``y``: ``z * log(x)``, and 0 where x is 0."""
    if type(x) in (int, float):
        return z * float(np.log(x)) if x else 0.0
    zero = x == 0
    return np.where(zero, 0.0, z) * np.log(np.where(zero, one(z), x))


def one(x: Array) -> Array:
    """Return 1 in the precision of ``x``."""
    return x.dtype.type(1)


def won(z: Array, x: Array, y: Array, is_first: Array) -> Array:
    """Return 1 where an operand is the result ``z``, one half where both are."""
    return np.where(x == y, 0.5 * one(z), is_first)


def log_share(z: Array, x: Array, y: Array, half: float) -> Array:
    """Return ``x - z`` for ``z = logaddexp(x, y)``, also where both are infinite."""
    infinite = np.isinf(z) & (x == z)
    lost = np.where(infinite & (x == y), half, np.where(infinite, 0.0, z))
    return np.where(infinite, 0.0, x) - lost


def over_square(a: Array, x: Array, y: Array) -> Array:
    """Return ``a / (x**2 + y**2)`` without overflow."""
    r = np.hypot(x, y)
    return a / r / r


def cosine(y: Array, x: Array) -> Array:
    """Return the cosine of ``y = arcsin(x)``.

    Next to 1 the square root is the accurate form; for complex numbers only the
    cosine itself is on the right branch everywhere.
    """
    return np.cos(y) if is_complex(x) else np.sqrt((1 - x) * (1 + x))


def unit(y: Array, x: Array) -> Array:
    """Return ``x / y`` with ``y = abs(x)``, and 0 where x is 0."""
    return x / np.where(y == 0, math.inf, y) if is_complex(x) else np.sign(x)


def real(x: Array) -> Array:
    """Return the real part; ``x`` itself if it is real."""
    return np.real(x) if is_complex(x) else x


# Read the tables down, like a table of derivatives: columns are kept by hand.
# fmt: off

# --- arithmetic -------------------------------------------------------------------

elementwise(np.positive,    1)
elementwise(np.negative,   -1)
elementwise(np.add,         1,
                            1)
elementwise(np.subtract,    1,
                           -1)
elementwise(np.multiply,    lambda z, x, y: y,
                            lambda z, x, y: x)
elementwise(np.divide,      lambda z, x, y: inverse(y),
                            lambda z, x, y: -z / y,                 singular=True)
elementwise(np.reciprocal,  lambda y, x: -y * y,                    singular=True)
elementwise(np.square,      lambda y, x: 2 * x,                     singular=True)
elementwise(np.power,       lambda z, x, y: power_by_base(pow, x, y),
                            lambda z, x, y: power_by_exponent(z, x), singular=True)
elementwise(np.float_power, lambda z, x, y: power_by_base(np.float_power, x, y),
                            lambda z, x, y: power_by_exponent(z, x), singular=True)
# z = x - q * y with a whole number q; rounding (z - x) / y finds it exactly.
elementwise(np.remainder,   1,
                            lambda z, x, y: np.rint((z - x) / y))
elementwise(np.fmod,        1,
                            lambda z, x, y: np.rint((z - x) / y))

# --- roots, exponentials, logarithms ----------------------------------------------

elementwise(np.sqrt,        lambda y, x: 0.5 / y,                   singular=True)
elementwise(np.cbrt,        lambda y, x: 1 / (3 * y * y),           singular=True)
elementwise(np.exp,         lambda y, x: y,                         singular=True)
elementwise(np.exp2,        lambda y, x: y * LOG_2,                 singular=True)
# y + 1 would lose small values of expm1.
elementwise(np.expm1,       lambda y, x: np.exp(x),                 singular=True)
elementwise(np.log,         lambda y, x: 1 / x,                     singular=True)
elementwise(np.log2,        lambda y, x: 1 / (x * LOG_2),           singular=True)
elementwise(np.log10,       lambda y, x: 1 / (x * LOG_10),          singular=True)
elementwise(np.log1p,       lambda y, x: 1 / (1 + x),               singular=True)
elementwise(np.logaddexp,   lambda z, x, y: np.exp(log_share(z, x, y, LOG_2)),
                            lambda z, x, y: np.exp(log_share(z, y, x, LOG_2)))
elementwise(np.logaddexp2,  lambda z, x, y: np.exp2(log_share(z, x, y, 1.0)),
                            lambda z, x, y: np.exp2(log_share(z, y, x, 1.0)))

# --- trigonometric ----------------------------------------------------------------

elementwise(np.sin,         lambda y, x: np.cos(x),                 is_quiet=True)
elementwise(np.cos,         lambda y, x: -np.sin(x),                is_quiet=True)
elementwise(np.tan,         lambda y, x: 1 + y * y,                 singular=True)
elementwise(np.arcsin,      lambda y, x: 1 / cosine(y, x),          singular=True)
elementwise(np.arccos,      lambda y, x: -1 / cosine(RIGHT_ANGLE - y, x), singular=True)
elementwise(np.arctan,      lambda y, x: 1 / (1 + x * x))
elementwise(np.arctan2,     lambda z, x, y: over_square(y, x, y),
                            lambda z, x, y: -over_square(x, x, y),  singular=True)
elementwise(np.hypot,       lambda z, x, y: x / np.where(z == 0, math.inf, z),
                            lambda z, x, y: y / np.where(z == 0, math.inf, z))
elementwise(np.degrees,     1 / DEGREE)
elementwise(np.rad2deg,     1 / DEGREE)
elementwise(np.radians,     DEGREE)
elementwise(np.deg2rad,     DEGREE)

# --- hyperbolic -------------------------------------------------------------------

elementwise(np.sinh,        lambda y, x: np.cosh(x),                singular=True)
elementwise(np.cosh,        lambda y, x: np.sinh(x),                singular=True)
elementwise(np.tanh,        lambda y, x: 1 - y * y,                 is_quiet=True)
elementwise(np.arcsinh,     lambda y, x: 1 / np.cosh(y))            # no overflow
elementwise(np.arccosh,     lambda y, x: 1 / np.sinh(y),            singular=True)
elementwise(np.arctanh,     lambda y, x: 1 / ((1 - x) * (1 + x)),   singular=True)

# --- choices, signs, pieces -------------------------------------------------------
# x != x finds NaN: maximum and minimum choose it, fmax and fmin choose the other.

elementwise(np.maximum,     lambda z, x, y: won(z, x, y, (x > y) | (x != x)),
                            lambda z, x, y: won(z, x, y, (y > x) | (y != y) & (x == x)))
elementwise(np.minimum,     lambda z, x, y: won(z, x, y, (x < y) | (x != x)),
                            lambda z, x, y: won(z, x, y, (y < x) | (y != y) & (x == x)))
elementwise(np.fmax,        lambda z, x, y: won(z, x, y, (x > y) | (y != y)),
                            lambda z, x, y: won(z, x, y, (y > x) | (x != x) & (y == y)))
elementwise(np.fmin,        lambda z, x, y: won(z, x, y, (x < y) | (y != y)),
                            lambda z, x, y: won(z, x, y, (y < x) | (x != x) & (y == y)))
elementwise(np.fabs,        lambda y, x: np.sign(x))
elementwise(np.copysign,    lambda z, x, y: np.sign(x) * np.copysign(one(x), y),
                            None)
elementwise(np.heaviside,   None,
                            lambda z, x, y: np.equal(x, 0))
elementwise(np.nextafter,   1,
                            None)
elementwise(np.ldexp,       lambda z, x, i: np.ldexp(one(x), i),
                            None)

# --- linear over the reals only ---------------------------------------------------

linear(np.conjugate,        lambda y_bar, y, x: np.conjugate(y_bar))
general(np.absolute,
        pushforwards=(      lambda x_dot, y, x: real(conjugated(unit(y, x)) * x_dot),),
        pullbacks=(         lambda y_bar, y, x: y_bar * unit(y, x),))


# --- second derivatives that need nothing new -------------------------------------

slope(np.sin,               lambda z, y, x: -y,                     is_quiet=True)
slope(np.cos,               lambda z, y, x: -y,                     is_quiet=True)
slope(np.sinh,              lambda z, y, x: y,                      singular=True)
slope(np.cosh,              lambda z, y, x: y,                      singular=True)
# fmt: on


# --- signs and phases -------------------------------------------------------------


@overridable
def real_sign(x: Array) -> Array:
    """Return the sign of real numbers."""
    return np.sign(x)


@overridable
def phase_factor(x: Array) -> Array:
    """Return ``x / abs(x)``, and 0 where x is 0."""
    return np.sign(x)


def across(v: Array, u: Array, x: Array) -> Array:
    """Return the part of ``v`` at a right angle to ``u``, by the distance of ``x``."""
    r = np.absolute(x)
    return (v - u * real(conjugated(u) * v)) / np.where(r == 0, math.inf, r)


@overridable
def real_angle(x: Array) -> Array:
    """Return 0 for positive numbers, pi for negative ones."""
    return np.angle(x)


constant("it is constant between its jumps", real_sign, real_angle)
general(
    phase_factor,
    pushforwards=(across,),
    pullbacks=(across,),
)


@composition(np.sign)
def sign(x: Array, /) -> Array:
    """Return the sign of real numbers, the phase factor of complex ones."""
    return phase_factor(x) if is_complex(x) else real_sign(x)


@composition(np.angle)
def angle(z: Array, deg: bool = False) -> Array:  # noqa: FBT001 -- NumPy's own signature
    """Return the argument of complex numbers."""
    phase = np.arctan2(z.imag, z.real) if is_complex(z) else real_angle(z)
    return phase * (180 / math.pi) if deg else phase


# --- two results ------------------------------------------------------------------


@overridable
def fraction(x: Array) -> Array:
    """Return the fractional part, with the sign of ``x``."""
    return np.modf(x)[0]


@overridable
def mantissa(x: Array) -> Array:
    """Return ``x`` divided by the power of two that brings it into [0.5, 1)."""
    return np.frexp(x)[0]


@overridable
def binary_exponent(x: Array) -> Array:
    """Return the exponent of that power of two."""
    return np.frexp(x)[1]


elementwise(fraction, 1)
elementwise(mantissa, lambda y, x: np.ldexp(one(x), -binary_exponent(x)))
constant("it is an integer", binary_exponent)


@composition(np.modf)
def modf(x: Array, /) -> tuple[Array, Array]:
    """Return the fractional and the whole part."""
    return fraction(x), np.trunc(x)


@composition(np.frexp)
def frexp(x: Array, /) -> tuple[Array, Array]:
    """Return mantissa and exponent."""
    return mantissa(x), binary_exponent(x)


@composition(np.divmod)
def divmod_(x1: Array, x2: Array, /) -> tuple[Array, Array]:
    """Return quotient and remainder."""
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


# --- results without a derivative -------------------------------------------------

constant(
    "it is constant between its jumps",
    np.ceil,
    np.floor,
    np.floor_divide,
    np.rint,
    np.spacing,
    np.trunc,
)
constant(
    "it is a truth value",
    np.equal,
    np.greater,
    np.greater_equal,
    np.isfinite,
    np.isinf,
    np.isnan,
    np.isnat,
    np.less,
    np.less_equal,
    np.logical_and,
    np.logical_not,
    np.logical_or,
    np.logical_xor,
    np.not_equal,
    np.signbit,
)
constant(
    "it works on integers",
    np.bitwise_and,
    np.bitwise_count,
    np.bitwise_or,
    np.bitwise_xor,
    np.gcd,
    np.invert,
    np.lcm,
    np.left_shift,
    np.right_shift,
)
