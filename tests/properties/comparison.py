"""Everything that must agree when a program is differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np

import dualad as ad
from tests import numeric
from tests.strategies import Program, shown
from tests.versions import NUMPY

EXACT = 1e-10
DIFFERENCES = 1e-6
ROUNDING = 1e-13

# Up to NumPy 2.2, np.matmul rounds in another way if ``out=`` is flipped or strided.
MATMUL_ROUNDS = NUMPY < "2.3.0"


def check_program(program: Program, *, order: int = 1) -> None:
    """Compare value, memory and derivatives of all modes with plain runs."""
    with shown(program), np.errstate(all="ignore"):
        gradient = check_first_order(program)
        if order > 1:
            check_second_order(program, gradient)


def direction(program: Program, seed: int) -> np.ndarray:
    """Return a direction for the argument, in its layout."""
    x = program.start().x
    rng = np.random.default_rng(seed)
    v = rng.uniform(-1.0, 1.0, x.shape)
    if np.iscomplexobj(x):
        v = v + 1j * rng.uniform(-1.0, 1.0, x.shape)
    return v


def expected_gradient(program: Program) -> tuple[np.ndarray, float]:
    """Return the gradient and how far it can be trusted.

    From complex steps, to rounding.  For a complex argument from differences, which
    two step widths judge: near a pole they do not agree to many digits.
    """

    def f(x: Any) -> Any:
        return program.start().f(x)

    x = program.start().x
    if np.iscomplexobj(x):
        wide = numeric.gradient(f, x, step=2e-4)
        narrow = numeric.gradient(f, x, step=1e-4)
        return narrow, max(1e-8, numeric.error(wide, narrow))
    return numeric.complex_step_gradient(f, x), EXACT


def check_first_order(program: Program) -> np.ndarray:
    """Check value, memory, reverse and forward mode; return the gradient."""
    plain = program.start()
    value = plain.f(plain.x)
    want, limit = expected_gradient(program)

    run = program.start()
    got_value, gradient = ad.value_and_gradient(run.f, run.x)
    assert run.layouts == plain.layouts, f"{run.layouts}, plain {plain.layouts}"
    same_value(program, got_value, value)
    same_memory(run, plain, "value_and_gradient")
    numeric.assert_close(gradient, want, limit)
    assert gradient.dtype == run.x.dtype
    assert not np.shares_memory(gradient, run.memory)

    v = direction(program, 1)
    before = v.copy()
    run = program.start()
    got_value, tangent = ad.jvp(run.f, (run.x,), (v,))
    assert run.layouts == plain.layouts, f"{run.layouts}, plain {plain.layouts}"
    same_value(program, got_value, value)
    same_memory(run, plain, "jvp")
    assert np.array_equal(v, before), "jvp changed its direction"
    numeric.assert_close(tangent, np.vdot(gradient, v).real, EXACT)

    check_pullback(program, gradient, plain)
    check_shadow(program, gradient, plain)
    return gradient


def check_pullback(program: Program, gradient: np.ndarray, plain: Any) -> None:
    """Check that a pullback gives the same again and again, whatever x becomes."""
    run = program.start()
    _, pullback = ad.vjp(run.f, run.x)
    same_memory(run, plain, "vjp")
    numeric.assert_close(pullback(1.0), gradient, EXACT)
    same_memory(run, plain, "the pullback")
    run.memory[...] = 7.0
    numeric.assert_close(pullback(-2.0), -2.0 * gradient, EXACT)
    assert np.all(run.memory == 7.0), "the pullback wrote to the caller's memory"


def check_shadow(program: Program, gradient: np.ndarray, plain: Any) -> None:
    """Check that a caller's shadow is added to, whatever its layout.

    Where the program writes into x, what the shadow held counts as the cotangent of
    the final x.
    """
    run = program.start()
    carried = ad.vjp(final_of(run.f), run.x)[1](np.full(run.x.shape, 0.5, run.x.dtype))
    run = program.start()
    shadow = np.full(run.x.shape, 0.5, run.x.dtype)
    ad.autodiff(ad.Reverse, run.f, ad.Duplicated(run.x, shadow))
    same_memory(run, plain, "autodiff")
    numeric.assert_close(shadow, gradient + carried, EXACT)


def final_of(f: Any) -> Any:
    """Return the function that gives what ``f`` leaves in its argument."""

    def final(x: Any) -> Any:
        f(x)
        return x

    return final


def check_second_order(program: Program, gradient: np.ndarray) -> None:
    """Check the four ways to a Hessian-vector product against differences."""
    v = direction(program, 2)

    def gradient_at(x: Any) -> Any:
        return ad.gradient(program.start().f, x)

    plain = program.start()
    plain.f(plain.x)
    x = program.start().x
    want = numeric.directional(gradient_at, x, v, step=1e-5, points=3)
    scale = 1.0 + float(np.max(np.abs(gradient), initial=0.0))

    run = program.start()
    product = ad.hvp(run.f, run.x, v)
    same_memory(run, plain, "hvp")
    numeric.assert_close(product / scale, want / scale, DIFFERENCES)

    def slope(x: Any) -> Any:
        return np.real(np.sum(np.conj(v) * ad.gradient(program.start().f, x)))

    def tangent(x: Any) -> Any:
        return ad.jvp(program.start().f, (x,), (v,))[1]

    limit = 10 * EXACT
    numeric.assert_close(ad.gradient(slope, program.start().x), product, limit)
    numeric.assert_close(ad.gradient(tangent, program.start().x), product, limit)
    w = direction(program, 3)
    both = ad.jvp(tangent, (program.start().x,), (w,))[1]
    numeric.assert_close(both, np.vdot(product, w).real, limit)


def same_memory(run: Any, plain: Any, after: str) -> None:
    """Fail unless all memory holds what a plain run left in it."""
    for name, left in plain.left().items():
        got = run.left()[name]
        inexact = np.iscomplexobj(left) or (MATMUL_ROUNDS and "np.matmul" in run.source)
        same = np.array_equal(got, left) or (
            inexact and np.allclose(got, left, ROUNDING, ROUNDING)
        )
        assert same, f"{name} differs after {after}"


def same_value(program: Program, got: Any, plain: Any) -> None:
    """Fail unless the value is the one of a plain run, to the last bit if real.

    NumPy's own complex products and matrix products with ``out=`` differ in the last
    bit with the layout of the result.
    """
    inexact = program.dtype != "float64" or "np.matmul" in program.source
    same = got == plain or (inexact and np.allclose(got, plain, ROUNDING, ROUNDING))
    assert same, f"value {got!r}, plain {plain!r}"
