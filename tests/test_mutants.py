"""Faults put into the core on purpose: the random programs must see each of them.

A mutant is the core with one rule left out.  The programs are the first ones of the
seeded generator, so that the property tests are known to be sharp, and a few written
for what those rarely do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualad import constants
from dualad.forward import dual
from dualad.levels import bare
from dualad.reverse import shadow, shadowed, tape, writes
from tests.properties.comparison import check_first_order
from tests.strategies import Program, seeded_program, shown

Mutant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, Mutant] = {}


def mutant(f: Mutant) -> Mutant:
    """Register a mutant under its name."""
    MUTANTS[f.__name__] = f
    return f


def written(*lines: str, dtype: str = "float64") -> Program:
    """Return a program of our own."""
    return Program((*lines, "return t"), "vector", 5, "closure", dtype)


SUM_OF_TWO = [  # one cotangent reaches two fresh shadows, one of which gets more
    "a = x * 0.5",
    "b = x * 2.0",
    "c = a * {}",
    "d = a + b",
    "t = np.sum(np.abs(c) ** 2) + np.sum(np.abs(d) ** 2)",
]
WRITTEN = [
    written(*(line.format(w) for line in SUM_OF_TWO), dtype="complex128")
    for w in ("a", "np.sin(a)", "C[:7]")
]
WRITTEN += [
    written(f"v = {use}", change, "t = np.sum(v * v)")
    for use in ("x[:4] * BUF[:4]", "BUF[:7] / (x * x + 1.0)", "x[I] * 0.5")
    for change in ("BUF[:] = 0.25; I[:] = 1", "BUF[:] = BUF[::-1]; I[:2] = 2")
]


@functools.cache
def programs() -> list[Program]:
    """Return the programs that must tell a mutant from the core."""
    real = [seeded_program(seed) for seed in range(80)]
    complex_ = [seeded_program(seed, "complex128") for seed in range(40)]
    return [*WRITTEN, *real, *complex_]


def failures(limit: int) -> int:
    """Return how many programs fail, up to a limit."""
    found = 0
    for program in programs():
        try:
            with np.errstate(all="ignore"):
                check_first_order(program)
        except Exception:  # noqa: BLE001 -- an exception is seen as well
            found += 1
            if found == limit:
                break
    return found


def test_core_passes() -> None:
    """Without a fault every program passes."""
    for program in programs():
        with shown(program), np.errstate(all="ignore"):
            check_first_order(program)


@mutant
def write_clears_too_late(patch: pytest.MonkeyPatch) -> None:
    """Add to the value first, then clear: loses overlapping writes."""

    def pull(self: Any, t: Any) -> None:
        memory = self.shadow.known(t.below)
        if memory is not None:
            if self.value is not None:
                moved = memory[self.index]
                if self.losers is not None:
                    moved = np.where(self.losers, 0.0, moved)
                self.give(moved, t)
            memory[self.index] = 0.0
        self.undo(t)

    patch.setattr(writes.Write, "pull", pull)


@mutant
def write_does_not_clear(patch: pytest.MonkeyPatch) -> None:
    """Leave the cotangent of what was overwritten."""

    def pull(self: Any, t: Any) -> None:
        memory = self.shadow.known(t.below)
        if memory is not None and self.value is not None:
            self.give(writes.element_copy(memory, self.index), t)
        self.undo(t)

    patch.setattr(writes.Write, "pull", pull)


@mutant
def adopts_always(patch: pytest.MonkeyPatch) -> None:
    """Adopt contributions that others hold, too."""
    patch.setattr(shadow, "getrefcount", lambda _: shadow.UNSHARED)


@mutant
def adopts_other_layouts(patch: pytest.MonkeyPatch) -> None:
    """Adopt contributions whatever their layout or owner."""
    original = shadow.Shadow.accumulate

    def accumulate(self: Any, c: Any, below: Any, *, is_new: bool = False) -> None:
        if self.memory is None and getattr(c, "shape", None) == self.primal.shape:
            self.memory = c
        else:
            original(self, c, below, is_new=is_new)

    patch.setattr(shadow.Shadow, "accumulate", accumulate)


@mutant
def overlap_ignored(patch: pytest.MonkeyPatch) -> None:
    """Add into overlapping views by a plain sum."""
    original = shadowed.ShadowedView.__init__

    def init(self: Any, *args: Any) -> None:
        original(self, *args)
        self.overlaps = False

    patch.setattr(shadowed.ShadowedView, "__init__", init)


@mutant
def captured_never_set(patch: pytest.MonkeyPatch) -> None:
    """Save no overwritten values of arrays made inside f."""
    patch.setattr(
        tape.Tape, "marked_captured", lambda t: {id(leaf[0]) for leaf in t.leaves}
    )


@mutant
def undone_not_redone(patch: pytest.MonkeyPatch) -> None:
    """Leave user memory as it was before f."""
    original = writes.Write.undo

    def undo(self: Any, t: Any) -> None:
        original(self, t)
        t.undone.clear()

    patch.setattr(writes.Write, "undo", undo)


@mutant
def nothing_undone(patch: pytest.MonkeyPatch) -> None:
    """Let earlier steps see the values of later ones."""
    patch.setattr(writes.Write, "undo", lambda *_: None)


@mutant
def repeats_all_win(patch: pytest.MonkeyPatch) -> None:
    """Give every value written to a repeated index a cotangent."""
    patch.setattr(tape, "losers_of", lambda *_: None)


@mutant
def overlapping_writes_skipped(patch: pytest.MonkeyPatch) -> None:
    """Take a value that shares the region's memory for the region itself."""

    def shares(x: Any, value: Any) -> bool:
        return bool(np.may_share_memory(bare(x), bare(value)))

    patch.setattr(tape, "is_same_region", shares)


@mutant
def constants_not_protected(patch: pytest.MonkeyPatch) -> None:
    """Keep small constants by reference."""
    patch.setattr(tape, "SMALL", -1)
    patch.setattr(constants, "SMALL", -1)
    patch.setattr(constants.Constants, "verify", lambda _: None)


@mutant
def tangents_shared(patch: pytest.MonkeyPatch) -> None:
    """Let a dual array take any tangent for its own."""
    original = dual.DualLevel.new

    def new(self: Any, z: Any, z_dot: Any, *, is_new: bool) -> Any:
        if np.shape(z_dot) == np.shape(z) and np.ndim(z) and not self.below:
            return dual.DualArray(z, z_dot, self)
        return original(self, z, z_dot, is_new=is_new)

    patch.setattr(dual.DualLevel, "new", new)


@mutant
def zero_not_written(patch: pytest.MonkeyPatch) -> None:
    """Keep the tangent of what a constant overwrites."""
    original = dual.DualLevel.each

    def each(self: Any, tangent: Any, index: Any, value: Any, write: Any) -> None:
        if value is not None:
            original(self, tangent, index, value, write)

    patch.setattr(dual.DualLevel, "each", each)


@pytest.mark.parametrize("name", list(MUTANTS))
def test_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least three programs fail under each mutant."""
    MUTANTS[name](monkeypatch)
    assert failures(3) == 3
