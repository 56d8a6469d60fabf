"""The record of a run: what a function did with the arrays of a tape, step by step.

A step is a tuple that starts with the function that pulls it:

    (pull_any, z_shadow, z, arrays, shadows, formulas, rule, params)     elementwise
    (pull_real_one, ...)    the same: one array, float64
    (pull_real_two, ...)    the same: two arrays, float64
    (pull_large, ...)       the same, in blocks
    (pull_rule, ...)        the same fields, all other kinds
    (pull_rule_one, ...)    the same: one array, no parameters
    (pull_rule_two, ...)    the same: two arrays, no parameters
    (pull_number, z_shadow, z, arrays, rule, x_shadow, partial_x, y_shadow, partial_y)
    (pull_read, z_shadow, x_shadow, index)      one element, in O(1)
    (pull_write, write)                         see `writes`
    (pull_leaf, shadow)                         an array made by np.zeros_like

A shadowed array is its own shadow: ``x_shadow`` is the array whose primal is ``x``, and
holds what has come to it.  Steps belong to the `vjp.Recording`, not to the tape, which
forgets them when the function has run: arrays lead to their tape, and with it no
reference cycle stays.  Views leave no step: their shadows are views.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import get_ident
from typing import Any

import numpy as np

from dualad.aliases import check_write
from dualad.arrays import ActiveArray
from dualad.blocks import LARGE
from dualad.constants import SMALL, Constants
from dualad.dispatch import NOTHING, object_result
from dualad.errors import OverlappingWriteError
from dualad.levels import (
    DEBUG,
    Active,
    Level,
    bare,
    nested,
    overlaps_itself,
    user_line,
)
from dualad.reverse.indices import is_basic, settled, settled_parameter
from dualad.reverse.pulls import (
    are_numbers,
    at_position,
    pull_any,
    pull_large,
    pull_leaf,
    pull_number,
    pull_read,
    pull_real_one,
    pull_real_two,
    pull_rule,
    pull_rule_one,
    pull_rule_two,
)
from dualad.reverse.shadowed import (
    ShadowedArray,
    ShadowedScalar,
    ShadowedView,
    fresh_array,
    fresh_scalar,
)
from dualad.reverse.writes import (
    AddAt,
    Write,
    element_copy,
    is_same_region,
    losers_of,
    overlapping_value,
    pull_write,
    write_read_first,
)
from dualad.rules.indexing import gathered
from dualad.rules.kinds import (
    RULES,
    Rule,
)
from dualad.rules.views import copied, indexed

Array = Any
Step = tuple[Any, ...]
Leaf = tuple[Any, Any, Any, Any, Any, Any]
GATHERED = RULES[gathered]
INDEXED = RULES[indexed]


class Tape(Level):
    """The level of one reverse-mode derivative: it records."""

    carrier = "shadowed array"

    steps: list[Step]  # of the recording, while the function runs
    leaves: list[Leaf]  # of its arguments; `Recording` says what they are

    check_constants: bool  # whether to watch the arrays that f may change past us

    # What most tapes never need is made when first needed.
    captured: set[int] | None = None  # owners whose memory a step will read again
    marked = 0  # of how many steps `captured` knows
    written: set[int] | None = None  # owners of memory that f wrote into

    def begin(self, steps: list[Step], leaves: list[Leaf], arguments: Any) -> None:
        """Record into ``steps`` what happens to ``leaves``, from now on."""
        self.steps = steps
        self.leaves = leaves
        self.arguments = arguments
        self.record: Any = steps.append
        self.constants: Constants | None = None
        # How a small elementwise function of one or two arrays is pulled.
        self.pull_one, self.pull_two = pull_real_one, pull_real_two
        if self.below:
            self.pull_one = self.pull_two = pull_any
            self.below[-1].keeps_slopes = True
        self.debug = DEBUG.get()
        if self.debug is not None:
            self.lines: list[str] = []
            self.record = self.record_with_line

    def protected(self, x: Any) -> Any:
        """Return a constant in a form that will still be what it is now."""
        if x.__class__ is ndarray and x.nbytes <= SMALL:
            return x.copy("K")
        if x.__class__ in NUMBERS:
            return x
        return self.keeper().protected(x)

    def protected_items(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters in a form that will still be what they are now."""
        return {k: self.protected(v) for k, v in params.items()}

    def keeper(self) -> Constants:
        """Return what keeps watch on the constants of this tape."""
        if self.constants is None:
            self.constants = Constants(check=self.check_constants)
        return self.constants

    # --- recording ----------------------------------------------------------------

    def unary(self, rule: Rule, x: Any, params: Mapping[str, Any] = NOTHING) -> Any:
        """Run a function of one array of ours: the usual case, made short."""
        if self.thread != get_ident():
            raise self.escaped()
        a = x.primal
        if params:
            params = self.protected_items(params)
            z = rule.primal(a, **params)
        else:
            evaluate = rule.evaluate
            z = evaluate(a)
        formulas, keep_z, (keep_a,) = rule.plans[1]
        if formulas is None:
            return z
        shadows = (x,)
        kept_z = z if keep_z else None
        kept = (a if keep_a else None,)
        if z.__class__ is ndarray and z.dtype is F64:
            if rule.kind == "elementwise":
                pull = self.pull_one if z.size < LARGE else pull_large
            elif z.base is None:
                pull = pull_rule if params else pull_rule_one
            else:
                return self.recorded(rule, z, kept_z, kept, shadows, formulas, params)
            active: Any = ShadowedArray()  # as in `fresh_array`: a call less
            active.primal, active.level, active.memory = z, self, None
        elif z.__class__ is float64 and rule.kind != "elementwise":
            pull = pull_rule if params else pull_rule_one
            active = fresh_scalar(z, self)
        else:
            return self.recorded(rule, z, kept_z, kept, shadows, formulas, params)
        record = self.record
        record((pull, active, kept_z, kept, shadows, formulas, rule, params))
        return active

    def binary(
        self, rule: Rule, x: Any, y: Any, params: Mapping[str, Any] = NOTHING
    ) -> Any:
        """Run a function of two arrays, of which at least one is ours."""
        if self.thread != get_ident():
            raise self.escaped()
        if y.__class__ not in CARRIERS or y.level is not self:
            a, b = x.primal, y
            shadows: Any = (x,)
            formulas, keep_z, (keep_a, keep_b) = rule.plans[1]
            kept = (a if keep_a else None, self.protected(b) if keep_b else None)
        elif x.__class__ not in CARRIERS or x.level is not self:
            a, b = x, y.primal
            shadows = (y,)
            formulas, keep_z, (keep_a, keep_b) = rule.plans[2]
            kept = (self.protected(a) if keep_a else None, b if keep_b else None)
        else:
            a, b = x.primal, y.primal
            shadows = (x, y)
            formulas, keep_z, (keep_a, keep_b) = rule.plans[3]
            kept = (a if keep_a else None, b if keep_b else None)
        if formulas is None:
            return self.elementwise(rule, (x, y), params)
        if params:
            params = self.protected_items(params)
            z = rule.primal(a, b, **params)
        else:
            evaluate = rule.evaluate
            z = evaluate(a, b)
        kept_z = z if keep_z else None
        if z.__class__ is ndarray and z.dtype is F64:
            if rule.kind == "elementwise":
                pull = self.pull_two if z.size < LARGE else pull_large
            elif z.base is None:
                pull = pull_rule if params else pull_rule_two
            else:
                return self.recorded(rule, z, kept_z, kept, shadows, formulas, params)
            active = ShadowedArray()  # as in `fresh_array`: a call less
            active.primal, active.level, active.memory = z, self, None
        else:
            return self.recorded(rule, z, kept_z, kept, shadows, formulas, params)
        record = self.record
        record((pull, active, kept_z, kept, shadows, formulas, rule, params))
        return active

    def elementwise(
        self, rule: Rule, args: tuple[Any, ...], params: Mapping[str, Any] = NOTHING
    ) -> Any:
        """Run a function of any number of arrays and record its formulas."""
        if self.thread != get_ident():
            raise self.escaped()
        arrays: list[Any] = []
        kept: list[Any] = []
        shadows: list[Any] = []
        formulas: list[Any] = []
        for i, x in enumerate(args):
            if x.__class__ in CARRIERS and x.level is self:
                a = x.primal
                arrays.append(a)
                formula = rule.formulas[0 if rule.variadic else i]
                if formula is None:  # only memory of sources is saved before writes
                    kept.append(copied(a))
                    continue
                kept.append(a)
                if rule.variadic:
                    formula = at_position(formula, i)
                shadows.append(x)
                formulas.append(formula)
            else:
                arrays.append(x)
                kept.append(self.protected(x))
        params = self.protected_items(params)
        z = rule.primal(*arrays, **params)
        # Many arrays go to their pullback as one tuple: each pull is then O(1).
        kept_arrays: Any = (tuple(kept),) if rule.variadic else tuple(kept)
        if not shadows:
            return z
        ways = tuple(shadows), tuple(formulas)
        return self.recorded(rule, z, z, kept_arrays, *ways, params)

    linear = multilinear = general = elementwise

    def recorded(  # noqa: PLR0913, PLR0917 -- the fields of a step
        self,
        rule: Rule,
        z: Array,
        kept_z: Array,
        kept: tuple[Any, ...],
        shadows: tuple[Any, ...],
        formulas: tuple[Any, ...],
        params: Mapping[str, Any],
    ) -> Any:
        """Record one step and return its output as an active value."""
        pull = pull_any if rule.kind == "elementwise" else pull_rule
        if z.__class__ is float64:
            if pull is pull_any and not self.below and are_numbers(shadows):
                active: Any = fresh_scalar(z, self)
                x, y = (*shadows, None)[:2]
                formula_x, formula_y = (*formulas, None)[:2]
                self.record(
                    (
                        pull_number,
                        active,
                        kept_z,
                        kept,
                        rule,
                        x,
                        formula_x,
                        y,
                        formula_y,
                    )
                )
                return active
        else:
            if not hasattr(z, "dtype"):
                if z.__class__ is not complex:  # 1j * np.float64(2.0) gives Python's
                    raise object_result(rule)
                z = np.complex128(z)
                kept_z = None if kept_z is None else z
            if z.dtype.kind not in "fc":
                if z.dtype == object:
                    raise object_result(rule)
                return z
            if isinstance(bare(z), ndarray) and bare(z).base is not None:
                z = unaliased(z, shadows)
                kept_z = None if kept_z is None else z
            if pull is pull_any and z.size >= LARGE:
                pull = pull_large
        active = self.new(z)
        record = self.record
        record((pull, active, kept_z, kept, shadows, formulas, rule, params))
        return active

    def alias(
        self, rule: Rule, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> Any:
        """Take a view: its shadow is the same view of the shadow, without a record."""
        if self.thread != get_ident():
            raise self.escaped()
        x = args[0]
        params = {k: settled_parameter(v) for k, v in params.items()}
        view = rule.primal(x.primal, **params)
        plain, base = bare(view), bare(x.primal)
        if type(base) is np.ndarray and (
            np.may_share_memory(plain, base) or plain.size == 0
        ):
            return ShadowedView(x, rule, rule.primal, params, view)
        if type(plain) is not np.ndarray:
            return x[()] if isinstance(x, ActiveArray) else x  # NumPy gave a scalar
        # NumPy copied: record the copy first, of which it can be a view.
        order = params.get("order") or "C"
        return self.alias(rule, (copied(x, order=order),), params)

    def read(self, x: Any, index: Any) -> Any:
        """Read ``x[index]``: one element, a view, or a gathered copy."""
        if self.thread != get_ident():
            raise self.escaped()
        part = x.primal[index]
        if index.__class__ is not int:
            index = settled(index)
        if not isinstance(part, np.ndarray | ActiveArray):
            active = fresh_scalar(part, self)
            self.record((pull_read, active, x, index))
            return active
        if is_basic(index) or np.may_share_memory(bare(part), bare(x.primal)):
            return ShadowedView(x, INDEXED, indexed, {"index": index}, part)
        return self.unary(GATHERED, x, {"index": index})

    def write(self, x: Any, index: Any, value: Any) -> None:
        """Write ``x[index] = value``; what is overwritten is saved if it is needed."""
        is_ours = isinstance(value, Active) and value.level is self
        primal = value.primal if is_ours else value
        if index.__class__ is not int:
            index = settled(index)
        clean = None
        if is_ours and value.owner is x.owner:
            if is_basic(index) and is_same_region(x.primal[index], primal):
                return  # Python ends x[i] += v by writing x[i] onto itself
            clean = overlapping_value(x.primal, index, primal)
        index = self.prepared(x, index)
        write = Write(x, index, value if is_ours else None, self.saved(x, index))
        if is_ours and not is_basic(index):
            write.losers = losers_of(x.primal, index)

        def perform() -> None:
            if clean is None:
                x.primal[index] = primal
            else:
                write_read_first(x.primal, index, primal, clean)

        self.perform(write, perform)

    def add_at(self, x: Any, index: Any, value: Any) -> None:
        """Do ``np.add.at(x, index, value)``: repeated indices add each time."""
        is_ours = isinstance(value, Active) and value.level is self
        primal = value.primal if is_ours else value
        index = self.prepared(x, settled(index))
        write = AddAt(x, index, value if is_ours else None, self.saved(x, index))
        self.perform(write, lambda: np.add.at(x.primal, index, primal))

    def prepared(self, x: Any, index: Any) -> Any:
        """Check that a write is allowed; return the index as it will still be later."""
        if self.thread != get_ident():
            raise self.escaped()
        plain = bare(x.primal)
        if not plain.flags.forc and overlaps_itself(plain):
            raise OverlappingWriteError(plain.strides, plain.shape)
        if self.arguments is not None:
            check_write(self, plain)
        return index if is_basic(index) else self.protected(index)

    def saved(self, x: Any, index: Any) -> Array:
        """Return what a write will overwrite, if an earlier step may need it."""
        is_needed = id(x.owner) in self.marked_captured()
        return element_copy(x.primal, index) if is_needed else None

    def perform(self, write: Write, action: Any) -> None:
        """Record a write, then do it; one that fails leaves no record."""
        owner = id(write.shadow.owner)
        if self.written is None:
            self.written = set()
        is_first = owner not in self.written
        self.record((pull_write, write))
        self.written.add(owner)
        try:
            action()
        except BaseException:
            self.steps.pop()
            if is_first:
                self.written.discard(owner)
            self.marked = min(self.marked, len(self.steps))
            raise

    def marked_captured(self) -> set[int]:
        """Return the owners of all memory that is to be read again.

        By the steps so far, or by the caller, to whom the arguments belong.
        """
        if self.captured is None:
            self.captured = {id(leaf[0]) for leaf in self.leaves}
        captured = self.captured
        for step in self.steps[self.marked :]:
            if step[0] in CAPTURING:
                _, z_shadow, z, arrays, shadows, *_ = step
                if z is not None:
                    captured.add(id(z_shadow))
                if any(a is not None for a in arrays):
                    captured.update(id(shadow.owner) for shadow in shadows)
        self.marked = len(self.steps)
        return captured

    def new(self, z: Array) -> ShadowedArray | ShadowedScalar:
        """Return a new result as an active value with a fresh shadow."""
        if z.__class__ is not float64 and isinstance(z, ARRAYS):
            return fresh_array(z, self)
        return fresh_scalar(z, self)

    def activated(self, x: Array) -> ShadowedArray | ShadowedScalar:
        """Return ``x`` as an array of this level on which nothing depends yet."""
        active = self.new(x)
        self.record((pull_leaf, active))
        return active

    def add_into(self, memory: Array, contribution: Array) -> None:
        """Add into memory of this level: the shadow of a level above."""
        memory[...] = memory + contribution

    def record_with_line(self, step: Step) -> None:
        """Record a step and the line of the user's code that it came from."""
        del self.lines[len(self.steps) :]
        self.steps.append(step)
        self.lines.append(user_line())


NestedTape = nested(Tape)


CAPTURING = frozenset(
    {
        pull_real_one,
        pull_real_two,
        pull_any,
        pull_large,
        pull_rule,
        pull_rule_one,
        pull_rule_two,
    }
)
CARRIERS: frozenset[Any] = frozenset({ShadowedArray, ShadowedView, ShadowedScalar})
F64 = np.dtype(np.float64)
NUMBERS = frozenset({float, int, bool, complex, type(None), str, np.float64})
ndarray = np.ndarray
float64 = np.float64
ARRAYS = (np.ndarray, ActiveArray)


def unaliased(z: Array, shadows: tuple[Any, ...]) -> Array:
    """Return a result that shares no memory with an argument: a copy where it did."""
    for shadow in shadows:
        plain = bare(shadow.primal)
        if type(plain) is np.ndarray and np.may_share_memory(bare(z), plain):
            return copied(z, order="K")
    return z


def described(step: Step) -> str:
    """Return a step in words."""
    kind = step[0]
    if kind is pull_write:
        write = step[1]
        name = type(write).__name__.lower()
        return f"{name} {np.shape(write.primal)}[{write.index!r:.40}]"
    if kind is pull_read:
        return f"read {np.shape(step[2].primal)}[{step[3]!r:.40}]"
    if kind is pull_leaf:
        return f"leaf {np.shape(step[1].primal)}"
    if kind is pull_number:
        return f"{step[4].name} of numbers"
    _, z_shadow, _, _, shadows, _, rule, _ = step
    shapes = ", ".join(str(np.shape(shadow.primal)) for shadow in shadows)
    return f"{rule.name} {shapes} -> {np.shape(z_shadow.primal)}"
