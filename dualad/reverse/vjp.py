"""Record a function, seed its output, sweep, deliver: the pullback."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from dualad.constants import SMALL, Constants, state_of, verify_inputs
from dualad.errors import (
    EscapedArrayError,
    IndependentOutputWarning,
    ScalarOutputError,
)
from dualad.levels import RUNNING, Active, bare
from dualad.reverse.pulls import Sweep
from dualad.reverse.shadowed import (
    ShadowedArray,
    ShadowedScalar,
    fresh_array,
    fresh_scalar,
)
from dualad.reverse.tape import Leaf, NestedTape, Step, Tape, described
from dualad.reverse.writes import pull_write
from dualad.structs import (
    SEQUENCES,
    Const,
    Tree,
    as_primal,
    check_empty,
    fitting,
    is_leaf,
    map_output,
    map_trees,
    shared,
    skeleton,
    stripped,
    twin,
    with_items,
    with_sequence,
)

Array = Any
ndarray = np.ndarray
float64 = np.float64
F64 = np.dtype(np.float64)
ONE = np.float64(1.0)


class Recording(Sweep):
    """One run of a function on a tape, and the sweep back: what went in, what came out.

    Inputs are the caller's arrays; :class:`Pullback` takes copies.
    """

    steps: list[Step]
    leaves: list[Leaf]  # see `lift`
    trees: list[Tree]  # the arguments, with our arrays as their leaves
    tape: Tape
    output: Tree
    constants: Constants | None  # what the sweep will read; arrays do not lead to it
    is_plain: bool  # all is dense float64 arrays: nothing to convert at the end
    known: dict[int, Any]  # by identity, what stands for an array of this argument

    def run(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        check_constants: bool = True,
    ) -> None:
        """Run ``f`` on arrays of ours that stand for those of ``args``."""
        self.steps = []
        leaves: list[Leaf] = []
        self.leaves = leaves
        self.trees = trees = []
        self.is_plain = True
        self.hushed = self.undone = None
        self.tape = tape = NestedTape() if RUNNING.get() else Tape()
        tape.check_constants = check_constants
        self.below = tape.below
        constants = []
        lifted = []
        for i, arg in enumerate(args):
            if arg.__class__ is Const:
                constants.append((f"argument {i}", arg.value))
                lifted.append(arg.value)
                continue
            before = len(leaves)
            self.known = {}
            theirs, ours = self.lifted(i, arg)
            if len(leaves) == before:
                check_empty(i, arg)
            lifted.append(theirs)
            trees.append(ours)
        tape.begin(self.steps, leaves, (f, leaves, constants, args))
        self.output = tape.run(f, lifted)
        self.constants, tape.constants = tape.constants, None

    def lifted(self, place: Any, tree: Tree) -> tuple[Tree, Tree]:
        """Return a tree twice, with arrays of ours as its leaves: for ``f``, for us.

        What ``f`` does to its containers does not change ours.
        """
        kind = tree.__class__
        if kind is dict or isinstance(tree, dict):
            theirs: Any = {}
            ours: Any = {}
            for key, x in tree.items():
                if x.__class__ is ndarray:  # the usual leaf, seen at once
                    theirs[key] = ours[key] = self.lift((place, key), x)
                else:
                    theirs[key], ours[key] = self.lifted((place, key), x)
            if kind is dict:
                return theirs, ours
            return with_items(tree, theirs), with_items(tree, ours)
        if isinstance(tree, SEQUENCES):
            theirs, ours = [], []
            for i, x in enumerate(tree):
                one, other = self.lifted((place, i), x)
                theirs.append(one)
                ours.append(other)
            return with_sequence(tree, theirs), with_sequence(tree, ours)
        x = self.lift(place, tree)
        return x, x

    def lift(self, place: Any, x: Any) -> Any:
        """Return a leaf as a shadowed array; one that is tied is the same again.

        For each, ``leaves`` holds what stands for it, the caller's shadow or None, our
        array, the caller's array, its place, and its state (or None), to see later
        whether it was changed past us.
        """
        if x.__class__ is not ndarray or x.dtype is not F64 or not x.flags.forc:
            return self.lift_other(place, x)
        state = None
        active: Any = self.known.get(id(x))
        if active is None:
            tape = self.tape
            active = self.known[id(x)] = ShadowedArray()
            active.primal, active.level, active.memory = x, tape, None
            if tape.check_constants:
                state = x.tobytes() if x.nbytes <= SMALL else state_of(x)
        self.leaves.append((active, None, x, x, place, state))
        return active

    def lift_other(self, place: Any, x: Any) -> Any:
        """Lift what is no dense float64 array, or return what is not differentiated."""
        self.is_plain = False
        if is_leaf(x):
            return self.lift_any(place, x)
        return shared(x, place, lambda number: self.lift_any(place, number))

    def lift_any(self, place: Any, x: Any) -> Any:
        """Lift a number, or an array of any dtype, layout or level."""
        self.is_plain = False
        primal = as_primal(x)
        if not isinstance(bare(primal), ndarray):
            scalar = fresh_scalar(primal, self.tape)
            self.leaves.append((scalar, None, None, None, place, None))
            return scalar
        active: Any = self.known.get(id(x))
        if active is None:
            active = self.known[id(x)] = fresh_array(self.own(primal), self.tape)
        original = np.asarray(x) if isinstance(x, ndarray) else primal
        state = None
        if self.tape.check_constants and isinstance(x, ndarray):
            state = state_of(original)
        self.leaves.append((active, None, active.primal, original, place, state))
        return active

    def own(self, primal: Array) -> Array:
        """Return the array on which ``f`` works."""
        return primal

    def value(self) -> Tree:
        """Return the output's value, in memory of its own."""
        z = self.output
        if z.__class__ is ShadowedScalar and z.level is self.tape:
            return z.primal
        return stripped(self.output, self.tape)

    def seed_scalar(self, operator: str) -> None:
        """Seed the output with one; it must be one real number."""
        z = self.output
        is_usual = z.__class__ is ShadowedScalar and z.primal.__class__ is float64
        if is_usual and z.level is self.tape:
            z.memory = ONE
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
        z.accumulate(z.dtype.type(1), self.below)

    def sweep(self, *, keep: bool = False) -> None:
        """Run all steps backward; then redo the writes that this undid.

        Unless ``keep``, each step is dropped as soon as it has run: memory falls.
        """
        tape = self.tape
        if self.constants is not None:
            self.constants.verify()
        if tape.debug is not None:
            tape.debug.tapes.append(str(self))
        self.pending = steps = self.steps.copy() if keep else self.steps
        following = steps.pop
        try:
            while steps:
                step = following()
                step[0](self, step)
            verify_inputs(self.leaves)
        finally:
            if self.hushed is not None:
                self.hushed.__exit__()
                self.hushed = None
            while self.undone:
                self.undone.pop().swap()

    def cotangents(self) -> list[Tree]:
        """Return what has accumulated for each differentiated argument, delivered."""
        return list(map(self.delivered, self.trees))

    def delivered(self, tree: Tree) -> Tree:
        """Return an argument's tree with what has come to each leaf."""
        if tree.__class__ is not dict or not self.is_plain:
            return map_output(self.cotangent, tree)
        found = {}
        for key, x in tree.items():
            memory = x.memory if x.__class__ is ShadowedArray else None
            found[key] = self.delivered(x) if memory is None else memory
        return found

    def cotangent(self, x: Any) -> Any:
        """Return the cotangent of one input, in its dtype; zeros if nothing came.

        What is not an input of ours, an integer in a tree, is returned as it is.
        """
        kind = x.__class__
        if kind is not ShadowedArray and kind is not ShadowedScalar:
            return x
        if x.level is not self.tape:
            return x
        memory, primal = x.memory, x.primal
        if memory is not None and self.is_plain:
            return memory
        if memory is None:
            zeros = np.zeros_like(bare(primal))
            memory = zeros if isinstance(bare(primal), np.ndarray) else zeros[()]
        elif memory.dtype != primal.dtype:
            memory = memory.astype(primal.dtype)
        elif not isinstance(memory, Active) and not memory.flags.forc:
            memory = memory.copy("K")  # without the gaps of its primal
        x.memory = memory  # tied leaves get one and the same array
        return memory

    def __str__(self) -> str:
        """Return one line per step: what ran, on what shapes."""
        tape = self.tape
        lines = [f"tape of level {tape.order}, {len(self.steps)} steps"]
        places = getattr(tape, "lines", None) or [""] * len(self.steps)
        lines += [
            f"{i:6}  {described(step):40} {place}".rstrip()
            for i, (step, place) in enumerate(zip(self.steps, places, strict=False))
        ]
        return "\n".join(lines)


class Pullback(Recording):
    """A recording that outlives its call, and is swept as often as asked.

    Inputs are copied; what ``f`` wrote is written back to the caller's arrays.
    """

    originals: list[Leaf]  # with the state of the caller's arrays
    watched: list[Array]  # inputs that are used in place, not copied
    lock: Lock  # one sweep at a time: all use the same shadows

    def run(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        check_constants: bool = True,
        writes_back: bool = True,
    ) -> None:
        """Run ``f``; if not ``writes_back``, call ``write_back`` when wanted."""
        self.lock = Lock()
        self.originals = []
        self.watched = []
        try:
            super().run(f, args, check_constants=check_constants)
            self.output = skeleton(self.output)
            verify_inputs(self.originals)
        except BaseException:
            self.write_back()
            raise
        if writes_back:
            self.write_back()
        if self.watched:
            self.constants = self.constants or Constants(check=check_constants)
            for x in self.watched:
                self.constants.watch(x)

    def lift(self, place: Any, x: Any) -> Any:
        """Lift a leaf in memory of our own."""
        before = len(self.leaves)
        lifted = self.lift_other(place, x)
        # The caller may change it when f has run.
        self.originals += self.leaves[before:]
        self.leaves[before:] = [(*leaf[:5], None) for leaf in self.leaves[before:]]
        return lifted

    def own(self, primal: Array) -> Array:
        """Return an input in memory of our own, laid out as the caller's."""
        if not isinstance(primal, Active) or bare(primal).flags.forc:
            return twin(primal)
        # A copy would not keep the layout: we use it as it is, and watch.
        self.watched.append(bare(primal))
        return primal

    def write_back(self) -> None:
        """Leave in the caller's arrays what ``f`` wrote into our copies."""
        written = self.tape.written or ()
        for x, _, ours, theirs, *_ in self.leaves:
            if id(x) in written and ours is not theirs:
                theirs[...] = ours

    def pull(self, cotangent: Tree) -> list[Tree]:
        """Sweep once with a cotangent for the output; the tape stays for another."""
        tape = self.tape
        seeds: list[tuple[Any, Any]] = []

        def fit(place: Any, z: Any, z_bar: Any) -> None:
            if z_bar is not None and isinstance(z, Active) and z.level is tape:
                z_bar = fitting("cotangent", place, z, z_bar)
                if isinstance(z_bar, Active) and z_bar.level not in self.below:
                    raise EscapedArrayError(
                        "A pullback was called inside a derivative that began after "
                        "it.",
                        "Call dualad.vjp inside that derivative, or use dualad.jvp for "
                        "a directional derivative.",
                    )
                seeds.append((z, z_bar))

        if any(level.thread is None for level in self.below):
            raise EscapedArrayError(
                "A pullback was called after the derivative in which it was made had "
                "ended.",
                "Call it inside that derivative.",
            )
        map_trees(fit, (self.output, cotangent), "the output", "cotangent")
        with self.lock:
            for x, *_ in self.leaves:
                x.memory = None
            try:
                for z, z_bar in seeds:
                    z.accumulate(z_bar, self.below)
                self.sweep(keep=True)
            except BaseException:
                self.forget()
                raise
            return self.cotangents()

    def forget(self) -> None:
        """Clear the shadows of all steps after a sweep that did not reach its end."""
        for step in self.steps:
            if step[0] is not pull_write:
                step[1].memory = None
