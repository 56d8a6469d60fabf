"""Record a function, seed its output, sweep, deliver: the pullback."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dualad import levels
from dualad.errors import (
    IndependentOutputWarning,
    NotDifferentiableError,
    ScalarOutputError,
    ShadowMismatchError,
)
from dualad.levels import Active, bare
from dualad.reverse.shadow import ScalarShadow, Shadow, accumulate
from dualad.reverse.shadowed import ShadowedArray, ShadowedScalar
from dualad.reverse.tape import Tape
from dualad.structs import (
    Arguments,
    Const,
    Tree,
    as_primal,
    fitting,
    map_tree,
    spelled,
    stripped,
)

Array = Any
PLACES = tuple(f"argument {i}" for i in range(10))


class Recording:
    """One run of a function on a tape: what went in, what came out.

    Inputs are the caller's arrays, or with ``copies`` arrays of our own, so that the
    sweep may come later; what ``f`` wrote is then written back to the caller's.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        shadows: tuple[Any, ...] | None = None,
        copies: bool = False,
        check_constants: bool = True,
    ) -> None:
        """Run ``f``; ``shadows`` are the caller's, one tree per argument."""
        self.tape = tape = Tape(check_constants=check_constants)
        self.copies = copies
        self.inputs: list[tuple[Any, Any, Any, Any]] = []  # shadow, given, ours, theirs
        self.known: dict[int, Any] = {}
        self.arguments = tape.arguments = Arguments(f)
        with tape:
            lifted: list[Any] = []
            self.args: list[Any] = []
            for i, arg in enumerate(args):
                place = PLACES[i] if i < len(PLACES) else f"argument {i}"
                if arg.__class__ is Const:
                    self.arguments.add_constant(place, arg.value)
                    lifted.append(arg.value)
                    continue
                self.known = {}
                given = None if shadows is None else (shadows[i],)
                tree = map_tree(self.lift, arg, *(given or ()), place=place)
                lifted.append(tree)
                self.args.append(tree)
            try:
                self.output = f(*lifted)
            finally:
                if copies:
                    self.write_back()

    def lift(self, place: Any, x: Any, x_bar: Any = None) -> Any:
        """Return a leaf as a shadowed array; one that is tied is the same again."""
        primal = x if x.__class__ is np.ndarray else as_primal(x)
        if not isinstance(bare(primal), np.ndarray):
            if x_bar is not None:
                raise NotDifferentiableError(
                    spelled(place),
                    x,
                    "Make it an array, np.array(x): a Python number has no memory "
                    "that a shadow could share.",
                )
            scalar = ScalarShadow(primal)
            self.inputs.append((scalar, None, None, None))
            return ShadowedScalar(primal, scalar, self.tape)
        tied = self.known.get(id(x))
        if tied is not None:
            return tied
        original = primal
        if self.copies:
            primal = primal.copy("K")
            bare(primal).flags.writeable = bare(original).flags.writeable
        shadow = Shadow(primal)
        shadow.captured = True  # its memory existed before the call
        if x_bar is not None:
            use_given(shadow, x_bar, place)
        self.inputs.append((shadow, x_bar, primal, original))
        self.arguments.leaves.append((place, primal, original))
        self.known[id(x)] = active = ShadowedArray(primal, shadow, self.tape)
        return active

    def write_back(self) -> None:
        """Leave in the caller's arrays what ``f`` wrote into our copies."""
        for shadow, _, ours, theirs in self.inputs:
            if shadow in self.tape.written:
                theirs[...] = ours

    def value(self) -> Tree:
        """Return the output's value, in memory of its own."""
        return stripped(self.output, self.tape)

    def seed_scalar(self, operator: str) -> None:
        """Seed the output with one; it must be one real number."""
        z = self.output
        if not isinstance(z, Active):
            if not isinstance(z, int | float | np.number) and np.ndim(z) != 0:
                raise ScalarOutputError(operator, z)
            if isinstance(z, complex) or not isinstance(z, int | float | np.number | np.ndarray):
                raise ScalarOutputError(operator, z)
        elif z.ndim or z.dtype.kind == "c":
            raise ScalarOutputError(operator, z)
        if not isinstance(z, Active) or z.level is not self.tape:
            warnings.warn(
                f"{operator}: the output of f does not depend on its differentiated "
                "arguments; the gradient is zero.",
                IndependentOutputWarning,
                stacklevel=4,
            )
            return
        self.seed(z, z.dtype.type(1))

    def seed(self, z: Any, z_bar: Array) -> None:
        """Add a cotangent into the shadow of one output."""
        accumulate(z.shadow, z_bar, self.tape.below)

    def cotangents(self) -> list[Tree]:
        """Return what has accumulated for each differentiated argument, delivered."""
        self.known = {}
        return [map_tree(self.deliver, arg) for arg in self.args]

    def deliver(self, _: Any, x: Any) -> Array:
        """Return the cotangent of one leaf; tied leaves have one and the same."""
        shadow = x.shadow
        found = self.known.get(id(shadow))
        if found is None:
            found = self.known[id(shadow)] = self.delivered(shadow)
        return found

    def delivered(self, shadow: Any) -> Array:
        """Return the cotangent of one input, in its dtype; zeros if nothing came."""
        like, memory = shadow.like, shadow.memory
        if memory is None:
            zeros = np.zeros_like(bare(like))
            return zeros if isinstance(bare(like), np.ndarray) else zeros[()]
        if memory.dtype != like.dtype:
            memory = memory.astype(like.dtype)
        return memory

    def reset(self) -> None:
        """Make the shadows of the inputs fresh again."""
        for shadow, *_ in self.inputs:
            shadow.memory = None

    def add_to_given(self) -> None:
        """Add to the caller's shadows what could not accumulate there directly."""
        for shadow, x_bar, _, _ in self.inputs:
            if x_bar is None or shadow.memory is None or shadow.memory is x_bar:
                continue
            np.add(x_bar, shadow.memory, out=x_bar, casting="same_kind")


def use_given(shadow: Shadow, x_bar: Any, path: Any) -> None:
    """Let cotangents accumulate in the caller's shadow, if its layout allows it."""
    like, place = shadow.like, spelled(path)
    if (
        not isinstance(x_bar, np.ndarray)
        or x_bar.shape != like.shape
        or x_bar.dtype != like.dtype
    ):
        raise ShadowMismatchError("shadow", place, like, x_bar)
    if not x_bar.flags.writeable or levels.overlaps_itself(x_bar):
        remedy = "Give it a writable shadow without overlap: np.zeros_like(primal)."
        raise ShadowMismatchError("shadow", place, like, x_bar, remedy)
    if np.may_share_memory(x_bar, bare(like)):
        remedy = "Primal and shadow share memory: use np.zeros_like(primal)."
        raise ShadowMismatchError("shadow", place, like, x_bar, remedy)
    if x_bar.strides == like.strides and like.dtype != np.float16:
        shadow.memory = x_bar


def pull(recording: Recording, cotangent: Tree) -> list[Tree]:
    """Sweep once with a cotangent for the output; the tape stays for another."""
    recording.reset()
    tape = recording.tape

    def seed(place: str, z: Any, z_bar: Any) -> None:
        if z_bar is not None and isinstance(z, Active) and z.level is tape:
            recording.seed(z, fitting("cotangent", place, z, z_bar))

    map_tree(seed, recording.output, cotangent, place="the output", what="cotangent")
    tape.sweep(keep=True)
    return recording.cotangents()
