"""What each kind of step does on the way back.

A step is a tuple; `tape` says how it is laid out.  Each pull takes the cotangent that
has come to the output, and gives every argument its contribution.
"""

from __future__ import annotations

import operator
from types import FunctionType
from typing import Any

import numpy as np

from dualad.blocks import cut, flattened
from dualad.levels import Level
from dualad.reverse.shadow import accumulate_in_blocks
from dualad.reverse.shadowed import ShadowedScalar
from dualad.rules.kinds import (
    Scatter,
    conjugated,
    is_complex,
    strong,
    strong_on_plain,
)

Array = Any
Step = tuple[Any, ...]
multiply = np.multiply


class Sweep:
    """What the pulls share: the levels below, and what to set right at the end."""

    below: tuple[Level, ...]
    pending: list[Step]  # the steps that are left
    hushed: Any  # NumPy's warnings, once a formula could cause some
    undone: list[Any] | None  # the writes that were undone

    def hush(self) -> None:
        """Silence NumPy's warnings until the sweep ends: the function did not warn."""
        self.hushed = np.errstate(all="ignore")
        self.hushed.__enter__()


def pull_real_one(sweep: Sweep, step: Step) -> None:
    """Pull a function of one array whose cotangent is a plain float64 array.

    The twin of :func:`pull_any` for the usual case, as :func:`pull_real_two` is.  The
    cotangent is needed no more afterwards and nobody else holds it, so the (last)
    contribution takes its memory.
    """
    _, z_shadow, z, (a,), (shadow,), (partial,), rule, _ = step
    z_bar = z_shadow.memory
    if z_bar is None:
        return
    z_shadow.memory = None
    if not rule.is_quiet and sweep.hushed is None:
        sweep.hush()
    if partial.__class__ is not FunctionType:
        shadow.receive(z_bar if partial == 1 else z_bar * partial)
    elif rule.singular:
        shadow.receive(strong_on_plain(z_bar, partial(z, a)))
    else:
        shadow.receive(multiply(z_bar, partial(z, a), z_bar))


def pull_real_two(sweep: Sweep, step: Step) -> None:
    """Pull a function of two arrays whose cotangent is a plain float64 array."""
    _, z_shadow, z, (a, b), shadows, formulas, rule, _ = step
    z_bar = z_shadow.memory
    if z_bar is None:
        return
    z_shadow.memory = None
    if not rule.is_quiet and sweep.hushed is None:
        sweep.hush()
    left = len(shadows)
    for shadow, partial in zip(shadows, formulas):  # noqa: B905 -- strict takes time
        left -= 1
        if partial.__class__ is FunctionType:
            factor = partial(z, a, b)
            if rule.singular:
                shadow.receive(strong_on_plain(z_bar, factor))
            elif factor.__class__ is float:
                shadow.receive(z_bar * factor)
            elif left:
                shadow.receive(multiply(z_bar, factor))
            else:
                shadow.receive(multiply(z_bar, factor, z_bar))
        elif partial != 1:
            shadow.receive(z_bar * partial)
        else:
            shadow.receive(z_bar.copy("K") if left else z_bar)


def pull_large(sweep: Sweep, step: Step) -> None:
    """Pull a large elementwise step, and with it those before it that can join."""
    run, steps = [step], sweep.pending
    shape = np.shape(step[1].primal)
    if can_join(step, shape):
        while steps and steps[-1][0] is pull_large and can_join(steps[-1], shape):
            run.append(steps.pop())
    pull_together(sweep, run)


def pull_together(sweep: Sweep, run: list[Step]) -> None:
    """Pull large elementwise steps of one shape, the last first, block by block."""
    shape = np.shape(run[0][1].primal)
    touched = {id(step[1]) for step in run if step[1].memory is not None}
    plan = []
    for step in run:
        if id(step[1]) in touched:
            touched.update(map(id, step[4]))
            plan.append(planned(sweep, step, shape))
    if len(run) == 1 and not can_join(run[0], shape):
        pull_any(sweep, run[0])
    elif plan:
        accumulate_in_blocks(plan, int(np.prod(shape)), sweep.below)


def planned(sweep: Sweep, step: Step, shape: tuple[int, ...]) -> Any:
    """Return a step as `accumulate_in_blocks` wants it."""
    _, z_shadow, z, arrays, shadows, formulas, rule, _ = step
    if not rule.is_quiet and sweep.hushed is None:
        sweep.hush()
    flat = flattened([z, *arrays], shape) or ()
    if sweep.below:
        times = strong if rule.singular else operator.mul
    else:
        times = strong_on_plain if rule.singular else multiply
    parts: list[Any] = []
    place: slice | None = None

    def contribution(part: Array, i: int, block: slice) -> Array:
        nonlocal parts, place
        partial = formulas[i]
        if callable(partial):
            if block is not place:
                place, parts = block, [cut(x, block) for x in flat]
            added = times(part, conjugated(partial(*parts)))
        else:
            added = part * partial
        if is_complex(added) and not is_complex(shadows[i].primal):
            added = np.real(added)
        return added

    return z_shadow, shadows, contribution


def can_join(step: Step, shape: tuple[int, ...]) -> bool:
    """Say whether a step can be pulled block by block with others of this shape."""
    _, z_shadow, z, arrays, shadows, *_ = step
    return (
        z_shadow.is_congruent(shape)
        and all(shadow.is_congruent(shape) for shadow in shadows)
        and flattened([z, *arrays], shape) is not None
    )


def pull_any(sweep: Sweep, step: Step) -> None:
    """Add cotangent times partial into each argument's shadow."""
    _, z_shadow, z, arrays, shadows, formulas, rule, _ = step
    z_bar = z_shadow.memory
    if z_bar is None:
        return
    z_shadow.memory = None
    if not rule.is_quiet and sweep.hushed is None:
        sweep.hush()
    below = sweep.below
    times = strong if rule.singular else multiply
    for shadow, partial in zip(shadows, formulas, strict=True):
        if partial.__class__ is FunctionType:
            factor = conjugated(partial(z, *arrays))
            shadow.accumulate(times(z_bar, factor), below, is_new=True)
        elif partial == 1:
            shadow.accumulate(z_bar, below)
        else:
            shadow.accumulate(z_bar * partial, below, is_new=True)


def pull_number(sweep: Sweep, step: Step) -> None:
    """Do what :func:`pull_any` does for plain numbers.

    Loops over numbers make millions of steps; flat ones are easier on the garbage
    collector.
    """
    _, z_shadow, z, arrays, rule, x_shadow, partial_x, y_shadow, partial_y = step
    z_bar = z_shadow.memory
    if z_bar is None:
        return
    z_shadow.memory = None
    if not rule.is_quiet and sweep.hushed is None:
        sweep.hush()
    below = sweep.below
    stays_zero = rule.singular and z_bar == 0.0
    if partial_x.__class__ is FunctionType:
        factor = 0.0 if stays_zero else partial_x(z, *arrays)
        x_shadow.accumulate(z_bar * factor, below)
    else:
        x_shadow.accumulate(z_bar * partial_x, below)
    if y_shadow is not None:
        if partial_y.__class__ is FunctionType:
            factor = 0.0 if stays_zero else partial_y(z, *arrays)
            y_shadow.accumulate(z_bar * factor, below)
        else:
            y_shadow.accumulate(z_bar * partial_y, below)


def are_numbers(shadows: tuple[Any, ...]) -> bool:
    """Say whether these are the shadows of one or two numbers."""
    return all(shadow.__class__ is ShadowedScalar for shadow in shadows[:3]) and (
        len(shadows) <= 2  # noqa: PLR2004 -- x and y
    )


def pull_rule(sweep: Sweep, step: Step) -> None:
    """Add what each pullback gives into its argument's shadow."""
    _, z_shadow, z, arrays, shadows, formulas, rule, params = step
    z_bar = z_shadow.memory
    if z_bar is None:
        return
    z_shadow.memory = None
    if not rule.is_quiet and sweep.hushed is None:
        sweep.hush()
    below = sweep.below
    for shadow, pullback in zip(shadows, formulas):  # noqa: B905 -- strict takes time
        shadow.accumulate(pullback(z_bar, z, *arrays, **params), below)


def pull_rule_one(sweep: Sweep, step: Step) -> None:
    """Do the same for a function of one array without parameters: a shorter call."""
    _, z_shadow, z, (a,), (shadow,), (pullback,), rule, _ = step
    z_bar = z_shadow.memory
    if z_bar is None:
        return
    z_shadow.memory = None
    if not rule.is_quiet and sweep.hushed is None:
        sweep.hush()
    shadow.accumulate(pullback(z_bar, z, a), sweep.below)


def pull_rule_two(sweep: Sweep, step: Step) -> None:
    """Do the same for a function of two arrays without parameters."""
    _, z_shadow, z, (a, b), shadows, formulas, rule, _ = step
    z_bar = z_shadow.memory
    if z_bar is None:
        return
    z_shadow.memory = None
    if not rule.is_quiet and sweep.hushed is None:
        sweep.hush()
    below = sweep.below
    shadows[0].accumulate(formulas[0](z_bar, z, a, b), below)
    if len(shadows) > 1:
        shadows[1].accumulate(formulas[1](z_bar, z, a, b), below)


def pull_read(sweep: Sweep, step: Step) -> None:
    """Add one element's cotangent where the element was read."""
    _, z_shadow, x_shadow, index = step
    z_bar = z_shadow.memory
    if z_bar is not None:
        z_shadow.memory = None
        x_shadow.accumulate(Scatter(index, z_bar, unique=True), sweep.below)


def pull_leaf(sweep: Sweep, step: Step) -> None:  # noqa: ARG001 -- as all pulls
    """Forget what flowed into an array that f allocated."""
    step[1].memory = None


def at_position(pullback: Any, i: int) -> Any:
    """Return the pullback of one argument of a variadic function."""
    return lambda z_bar, z, arrays, **params: pullback(z_bar, i, z, arrays, **params)
