"""Record a function, seed its output, sweep, deliver: the pullback."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dualad import levels
from dualad.constants import SMALL, state_of, verify_inputs
from dualad.errors import (
    EscapedArrayError,
    IndependentOutputWarning,
    NotDifferentiableError,
    ScalarOutputError,
)
from dualad.levels import RUNNING, Active, bare
from dualad.reverse.shadow import Shadow, shadow_dtype
from dualad.reverse.shadowed import ShadowedScalar, fresh_array, fresh_scalar
from dualad.reverse.tape import Leaf, NestedTape, Tape
from dualad.rules.views import copied
from dualad.structs import (
    Const,
    Tree,
    as_primal,
    check_empty,
    check_given,
    fitting,
    map_tree,
    map_trees,
    skeleton,
    spelled,
    stripped,
    tied_mismatch,
    twin,
)

Array = Any
ndarray = np.ndarray
F64 = np.dtype(np.float64)
ONE = np.float64(1.0)


class Recording:
    """One run of a function on a tape: what went in, what came out.

    Inputs are the caller's arrays, or with ``copies`` arrays of our own, so that the
    sweep may come later; what ``f`` wrote is then written back to the caller's (or
    when ``write_back`` is called, if not ``writes_back``).
    """

    elsewhere: tuple[tuple[Array, Array, bool], ...] = ()  # see `use_given`
    leaves: list[Leaf]  # see `lift`
    shadows: tuple[Any, ...] | None = None  # the caller's, one tree per argument
    copies = False
    is_plain = True  # all leaves are dense float64 arrays: no conversion at the end
    watched: tuple[Array, ...] = ()  # inputs that are used in place, not copied

    def __init__(  # noqa: PLR0913 -- all that a run can be asked for
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        shadows: tuple[Any, ...] | None = None,
        copies: bool = False,
        writes_back: bool = True,
        check_constants: bool = True,
    ) -> None:
        """Run ``f``; ``shadows`` are the caller's, one tree per argument."""
        self.tape = tape = NestedTape() if RUNNING.get() else Tape()
        self.leaves = tape.leaves = []
        self.args: list[Any] = []
        self.constants: list[tuple[str, Any]] = []
        if not check_constants:
            tape.check_constants = False
        if copies:
            self.copies = True
            self.originals: list[Leaf] = []
        if shadows is not None:
            self.shadows = shadows
        with tape:
            lifted = []
            for i, arg in enumerate(args):
                lifted.append(self.lift_argument(i, arg))
            tape.arguments = f, self.leaves, self.constants, args
            if not copies:
                self.output = f(*lifted)
                return
            try:
                self.output = skeleton(f(*lifted))
                verify_inputs(self.originals)
            finally:
                if writes_back:
                    self.write_back()
            for x in self.watched:
                tape.keeper().watch(x)

    def lift_argument(self, i: int, arg: Any) -> Any:
        """Return an argument with all its leaves lifted, or the value of a Const."""
        if arg.__class__ is Const:
            self.constants.append((f"argument {i}", arg.value))
            return arg.value
        self.args.append(arg if arg.__class__ is ndarray else skeleton(arg))
        self.known: dict[int, Any] = {}
        before = len(self.leaves)
        if self.shadows is not None:
            self.given: dict[int, Any] = {}
            lifted = map_trees(self.lift_any, (arg, self.shadows[i]), i)
        else:
            lifted = map_tree(self.lift_any if self.copies else self.lift, arg, i)
        if len(self.leaves) == before:
            check_empty(i, arg)
        return lifted

    def lift(self, place: Any, x: Any) -> Any:
        """Return a leaf as a shadowed array; one that is tied is the same again.

        For each, ``leaves`` holds its shadow, the caller's shadow or None, our array,
        the caller's array, its place, and its state (or None), to see later whether
        it was changed past us.
        """
        if x.__class__ is not ndarray or x.dtype is not F64 or not x.flags.forc:
            return self.lift_any(place, x)
        state = None
        active: Any = self.known.get(id(x))
        if active is None:
            tape = self.tape
            active = self.known[id(x)] = fresh_array(x, tape)
            active.shadow.captured = True  # its memory existed before the call
            if tape.check_constants:
                state = x.tobytes() if x.nbytes <= SMALL else state_of(x)
        self.leaves.append((active.shadow, None, x, x, place, state))
        return active

    def lift_any(self, place: Any, x: Any, x_bar: Any = None) -> Any:
        """Lift a number, or an array that is copied or has a shadow of the caller's."""
        self.is_plain = False
        primal = as_primal(x)
        if not isinstance(bare(primal), np.ndarray):
            if x_bar is not None:
                raise NotDifferentiableError(
                    spelled(place),
                    x,
                    "Make it an array, np.array(x): a Python number has no memory "
                    "that a shadow could share.",
                )
            scalar = fresh_scalar(primal, self.tape)
            self.leaves.append((scalar.shadow, None, None, None, place, None))
            return scalar
        active: Any = self.known.get(id(x))
        state = None
        original = np.asarray(x) if isinstance(x, ndarray) else primal
        if active is not None:
            if self.shadows is not None and x_bar is not self.given[id(x)]:
                raise tied_mismatch("shadow", place, x, x_bar)
        else:
            if self.copies:
                primal = self.own(primal)
            active = self.known[id(x)] = fresh_array(primal, self.tape)
            active.shadow.captured = True
            if self.shadows is not None:
                self.given[id(x)] = x_bar
            if x_bar is not None:
                self.use_given(active.shadow, x_bar, place)
            if self.tape.check_constants and isinstance(x, ndarray):
                state = state_of(original)
        leaf = active.shadow, x_bar, active.primal, original, place, state
        if self.copies:  # the caller may change it when f has run
            self.originals.append(leaf)
            leaf = (*leaf[:5], None)
        self.leaves.append(leaf)
        return active

    def own(self, primal: Array) -> Array:
        """Return an input in memory of our own, laid out as the caller's."""
        if not isinstance(primal, Active):
            copy = twin(primal)
            copy.flags.writeable = primal.flags.writeable
            return copy
        # An array of a lower level keeps its layout only if it is dense; the others
        # we use as they are, and watch.
        if bare(primal).flags.forc:
            return copied(primal, order="K")
        self.watched += (bare(primal),)
        return primal

    def write_back(self) -> None:
        """Leave in the caller's arrays what ``f`` wrote into our copies."""
        written = self.tape.written or ()
        for shadow, _, ours, theirs, *_ in self.leaves:
            if shadow in written and ours is not theirs:
                theirs[...] = ours

    def value(self) -> Tree:
        """Return the output's value, in memory of its own."""
        z = self.output
        if z.__class__ is ShadowedScalar and z.level is self.tape:
            return z.primal
        return stripped(self.output, self.tape)

    def seed_scalar(self, operator: str) -> None:
        """Seed the output with one; it must be one real number."""
        z = self.output
        is_usual = z.__class__ is ShadowedScalar and z.primal.__class__ is np.float64
        if is_usual and z.level is self.tape:
            z.shadow.memory = ONE
            return
        if not isinstance(z, Active):
            if isinstance(z, tuple | list | dict):
                raise ScalarOutputError(operator, z)
            if not isinstance(z, int | float | np.number) and np.ndim(z) != 0:
                raise ScalarOutputError(operator, z)
            if isinstance(z, complex) or not isinstance(
                z, int | float | np.number | np.ndarray
            ):
                raise ScalarOutputError(operator, z)
        elif z.ndim or z.dtype.kind == "c":
            raise ScalarOutputError(operator, z)
        if not isinstance(z, Active) or z.level is not self.tape:
            text = (
                f"{operator}: the output of f does not depend on its differentiated "
                "arguments; the gradient is zero."
            )
            if self.tape.debug is not None:
                raise IndependentOutputWarning(text)
            warnings.warn(text, IndependentOutputWarning, stacklevel=4)
            return
        self.seed(z, z.dtype.type(1))

    def seed(self, z: Any, z_bar: Array) -> None:
        """Add a cotangent into the shadow of one output."""
        z.shadow.accumulate(z_bar, self.tape.below)

    def cotangents(self) -> list[Tree]:
        """Return what has accumulated for each differentiated argument, delivered."""
        leaves = iter(self.leaves)

        def deliver(_: Any, __: Any) -> Array:
            shadow = next(leaves)[0]
            memory = shadow.memory
            return memory if memory is not None and plain else self.delivered(shadow)

        plain = self.is_plain
        return [map_tree(deliver, arg) for arg in self.args]

    def delivered(self, shadow: Any) -> Array:
        """Return the cotangent of one input, in its dtype; zeros if nothing came."""
        like, memory = shadow.like, shadow.memory
        if memory is None:
            zeros = np.zeros_like(bare(like))
            memory = zeros if isinstance(bare(like), np.ndarray) else zeros[()]
        elif memory.dtype != like.dtype:
            memory = memory.astype(like.dtype)
        elif not isinstance(memory, Active) and not memory.flags.forc:
            memory = memory.copy("K")  # without the gaps of its primal
        shadow.memory = memory  # tied leaves get one and the same array
        return memory

    def reset(self) -> None:
        """Make the shadows of the inputs fresh again."""
        for shadow, *_ in self.leaves:
            shadow.memory = None

    def use_given(self, shadow: Shadow, x_bar: Any, place: Any) -> None:
        """Let cotangents accumulate in the caller's shadow, or in a copy that fits.

        Views are taken alike of primal and shadow, so both must be laid out alike.  Of
        a shadow that another primal has too, what it holds goes to the first.
        """
        like = shadow.like
        check_given("shadow", place, like, x_bar)
        plain = bare(x_bar)
        is_first = not any(
            np.may_share_memory(bare(given), plain) for given, *_ in self.elsewhere
        )
        if is_first and x_bar.strides == like.strides and like.dtype != np.float16:
            shadow.memory = x_bar
            return
        below = self.tape.below
        shadow.memory = levels.zeros_like(like, below, shadow_dtype(like))
        if is_first:
            shadow.memory[...] = x_bar
        self.elsewhere += ((x_bar, shadow.memory, is_first),)

    def finish_given(self) -> None:
        """Bring to the caller's shadows what could not accumulate there directly."""
        for x_bar, memory, is_first in self.elsewhere:
            if is_first:
                x_bar[...] = memory
            else:
                levels.add_into(x_bar, memory)


def pull(recording: Recording, cotangent: Tree) -> list[Tree]:
    """Sweep once with a cotangent for the output; the tape stays for another."""
    tape = recording.tape
    seeds: list[tuple[Any, Any]] = []

    def fit(place: Any, z: Any, z_bar: Any) -> None:
        if z_bar is not None and isinstance(z, Active) and z.level is tape:
            z_bar = fitting("cotangent", place, z, z_bar)
            if isinstance(z_bar, Active) and z_bar.level not in tape.below:
                raise EscapedArrayError(
                    "A pullback was called inside a derivative that began after it.",
                    "Call dualad.vjp inside that derivative, or use dualad.jvp for a "
                    "directional derivative.",
                )
            seeds.append((z, z_bar))

    map_trees(fit, (recording.output, cotangent), "the output", "cotangent")
    recording.reset()
    try:
        for z, z_bar in seeds:
            recording.seed(z, z_bar)
        tape.sweep(keep=True)
    except BaseException:
        tape.forget()
        raise
    return recording.cotangents()
