"""The record of a run, and the sweep that runs it backward.

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

Steps hold primals and shadows, never active arrays: no reference cycles, so memory
goes when the call returns.  Views leave no step: their shadows are views.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import get_ident
from typing import Any

import numpy as np

from dualad.aliases import check_write
from dualad.arrays import ActiveArray
from dualad.blocks import LARGE
from dualad.constants import SMALL, Constants, verify_inputs
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
from dualad.reverse.shadow import ViewShadow
from dualad.reverse.shadowed import (
    ShadowedArray,
    ShadowedScalar,
    fresh_array,
    fresh_scalar,
    shadowed,
)
from dualad.reverse.writes import (
    AddAt,
    Write,
    check_read_first,
    element_copy,
    is_same_region,
    losers_of,
    overlapping_value,
    pull_write,
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
    """The level of one reverse-mode derivative: it records, then sweeps."""

    carrier = "shadowed array"

    # How a small elementwise function of one or two arrays is pulled.
    pull_one = staticmethod(pull_real_one)
    pull_two = staticmethod(pull_real_two)

    # What most tapes never need is made when first needed.
    check_constants = True
    constants: Constants | None = None
    arguments: Any = None
    leaves: list[Leaf]  # of the arguments; `Recording` says what they are
    marked = 0
    hushed: Any = None
    undone: list[Write] | None = None
    written: set[Any] | None = None  # the owners of memory that f wrote into

    def __init__(self) -> None:
        """Start an empty record."""
        Level.__init__(self)
        self.steps: list[Step] = []
        self.record: Any = self.steps.append
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
            params = {k: self.protected(v) for k, v in params.items()}
            z = rule.evaluate(a, **params)
        else:
            z = rule.evaluate(a)
        formulas, keep_z, (keep_a,) = rule.plans[1]
        if formulas is None:
            return z
        shadows = (x.shadow,)
        kept_z = z if keep_z else None
        kept = (a if keep_a else None,)
        if z.__class__ is ndarray and z.dtype is F64:
            if rule.kind == "elementwise":
                pull = self.pull_one if z.size < LARGE else pull_large
            elif z.base is None:
                pull = pull_rule if params else pull_rule_one
            else:
                return self.recorded(rule, z, kept_z, kept, shadows, formulas, params)
            active: Any = fresh_array(z, self)
        elif z.__class__ is float64 and rule.kind != "elementwise":
            pull = pull_rule if params else pull_rule_one
            active = fresh_scalar(z, self)
        else:
            return self.recorded(rule, z, kept_z, kept, shadows, formulas, params)
        self.record(
            (pull, active.shadow, kept_z, kept, shadows, formulas, rule, params)
        )
        return active

    def binary(
        self, rule: Rule, x: Any, y: Any, params: Mapping[str, Any] = NOTHING
    ) -> Any:
        """Run a function of two arrays, of which at least one is ours."""
        if self.thread != get_ident():
            raise self.escaped()
        if y.__class__ not in CARRIERS or y.level is not self:
            a, b = x.primal, y
            shadows: Any = (x.shadow,)
            formulas, keep_z, (keep_a, keep_b) = rule.plans[1]
            kept = (a if keep_a else None, self.protected(b) if keep_b else None)
        elif x.__class__ not in CARRIERS or x.level is not self:
            a, b = x, y.primal
            shadows = (y.shadow,)
            formulas, keep_z, (keep_a, keep_b) = rule.plans[2]
            kept = (self.protected(a) if keep_a else None, b if keep_b else None)
        else:
            a, b = x.primal, y.primal
            shadows = (x.shadow, y.shadow)
            formulas, keep_z, (keep_a, keep_b) = rule.plans[3]
            kept = (a if keep_a else None, b if keep_b else None)
        if formulas is None:
            return self.elementwise(rule, (x, y), params)
        if params:
            params = {k: self.protected(v) for k, v in params.items()}
            z = rule.evaluate(a, b, **params)
        else:
            z = rule.evaluate(a, b)
        kept_z = z if keep_z else None
        if z.__class__ is ndarray and z.dtype is F64:
            if rule.kind == "elementwise":
                pull = self.pull_two if z.size < LARGE else pull_large
            elif z.base is None:
                pull = pull_rule if params else pull_rule_two
            else:
                return self.recorded(rule, z, kept_z, kept, shadows, formulas, params)
            active = fresh_array(z, self)
        else:
            return self.recorded(rule, z, kept_z, kept, shadows, formulas, params)
        self.record(
            (pull, active.shadow, kept_z, kept, shadows, formulas, rule, params)
        )
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
                shadows.append(x.shadow)
                formulas.append(formula)
            else:
                arrays.append(x)
                kept.append(self.protected(x))
        params = {k: self.protected(v) for k, v in params.items()}
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
                        active.shadow,
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
        self.record(
            (pull, active.shadow, kept_z, kept, shadows, formulas, rule, params)
        )
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
            shadow = ViewShadow(x.shadow, rule, rule.primal, params, view)
            return shadowed(view, shadow, self)
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
            self.record((pull_read, active.shadow, x.shadow, index))
            return active
        if is_basic(index) or np.may_share_memory(bare(part), bare(x.primal)):
            shadow = ViewShadow(x.shadow, INDEXED, indexed, {"index": index}, part)
            return shadowed(part, shadow, self)
        return self.unary(GATHERED, x, {"index": index})

    def write(self, x: Any, index: Any, value: Any) -> None:
        """Write ``x[index] = value``; what is overwritten is saved if it is needed."""
        is_ours = isinstance(value, Active) and value.level is self
        primal = value.primal if is_ours else value
        if index.__class__ is not int:
            index = settled(index)
        clean = None
        if is_ours and value.shadow.owner is x.shadow.owner:
            if is_basic(index) and is_same_region(x.primal[index], primal):
                return  # Python ends x[i] += v by writing x[i] onto itself
            clean = overlapping_value(x.primal, index, primal)
        index = self.prepared(x, index)
        write = Write(x, index, value.shadow if is_ours else None, self.saved(x, index))
        if is_ours and not is_basic(index):
            write.losers = losers_of(x.primal, index)

        def perform() -> None:
            x.primal[index] = primal
            if clean is not None:
                check_read_first(x.primal, index, primal, clean)

        self.perform(write, perform)

    def add_at(self, x: Any, index: Any, value: Any) -> None:
        """Do ``np.add.at(x, index, value)``: repeated indices add each time."""
        is_ours = isinstance(value, Active) and value.level is self
        primal = value.primal if is_ours else value
        index = self.prepared(x, settled(index))
        write = AddAt(x, index, value.shadow if is_ours else None, self.saved(x, index))
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
        self.mark_captured()
        return element_copy(x.primal, index) if x.shadow.owner.captured else None

    def perform(self, write: Write, action: Any) -> None:
        """Record a write, then do it; one that fails leaves no record."""
        owner = write.shadow.owner
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

    def mark_captured(self) -> None:
        """Flag the owners of all memory that the steps so far will read again."""
        for step in self.steps[self.marked :]:
            if step[0] in CAPTURING:
                _, z_shadow, z, arrays, shadows, *_ = step
                if z is not None:
                    z_shadow.captured = True
                if any(a is not None for a in arrays):
                    for shadow in shadows:
                        shadow.owner.captured = True
        self.marked = len(self.steps)

    def new(self, z: Array) -> ShadowedArray | ShadowedScalar:
        """Return a new result as an active value with a fresh shadow."""
        if z.__class__ is not float64 and isinstance(z, ARRAYS):
            return fresh_array(z, self)
        return fresh_scalar(z, self)

    def activated(self, x: Array) -> ShadowedArray | ShadowedScalar:
        """Return ``x`` as an array of this level on which nothing depends yet."""
        active = self.new(x)
        self.record((pull_leaf, active.shadow))
        return active

    def add_into(self, memory: Array, contribution: Array) -> None:
        """Add into memory of this level: the shadow of a level above."""
        memory[...] = memory + contribution

    # --- sweeping -----------------------------------------------------------------

    def sweep(self, *, keep: bool = False) -> None:
        """Run all steps backward; then redo the writes that this undid.

        Unless ``keep``, each step is dropped as soon as it has run: memory falls.
        """
        if self.constants is not None:
            self.constants.verify()
        if self.debug is not None:
            self.debug.tapes.append(str(self))
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

    def forget(self) -> None:
        """Clear the shadows of all steps after a sweep that did not reach its end."""
        for step in self.steps:
            if step[0] is not pull_write:
                step[1].memory = None

    def hush(self) -> None:
        """Silence NumPy's warnings until the sweep ends: the function did not warn."""
        self.hushed = np.errstate(all="ignore")
        self.hushed.__enter__()

    def __str__(self) -> str:
        """Return one line per step: what ran, on what shapes."""
        lines = [f"tape of level {self.order}, {len(self.steps)} steps"]
        places = getattr(self, "lines", None) or [""] * len(self.steps)
        lines += [
            f"{i:6}  {described(step):40} {place}".rstrip()
            for i, (step, place) in enumerate(zip(self.steps, places, strict=False))
        ]
        return "\n".join(lines)

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
CARRIERS = frozenset({ShadowedArray, ShadowedScalar})
F64 = np.dtype(np.float64)
NUMBERS = frozenset({float, int, bool, complex, type(None), str, np.float64})
ndarray = np.ndarray
float64 = np.float64
ARRAYS = (np.ndarray, ActiveArray)


def unaliased(z: Array, shadows: tuple[Any, ...]) -> Array:
    """Return a result that shares no memory with an argument: a copy where it did."""
    for shadow in shadows:
        plain = bare(shadow.like)
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
        return f"read {np.shape(step[2].like)}[{step[3]!r:.40}]"
    if kind is pull_leaf:
        return f"leaf {np.shape(step[1].like)}"
    if kind is pull_number:
        return f"{step[4].name} of numbers"
    _, z_shadow, _, _, shadows, _, rule, _ = step
    shapes = ", ".join(str(np.shape(shadow.like)) for shadow in shadows)
    return f"{rule.name} {shapes} -> {np.shape(z_shadow.like)}"
