"""In-place writes: save, overwrite, and on the way back move the shadow and restore.

``x[i] = v`` is the one primitive write; ``x += y``, ``out=``, ``np.copyto`` and the
like come down to it.  ``np.add.at`` has a step of its own, for there every repeat of
an index adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dualad.errors import ReadAfterWriteError
from dualad.levels import Active, bare
from dualad.reverse.pulls import Sweep
from dualad.rules.views import copied

Array = Any


class Write:
    """The record of one write; ``pull`` undoes it and moves the cotangent."""

    __slots__ = ("index", "losers", "primal", "saved", "shadow", "value")

    def __init__(self, x: Any, index: Any, value: Any, saved: Array) -> None:
        """Remember where, what was there, and what came, if it has a shadow."""
        self.primal = x.primal
        self.shadow = x
        self.index = index
        self.value = value
        self.saved = saved
        self.losers: Array = None

    def pull(self, sweep: Sweep) -> None:
        """Move the cotangent from the written region to the value, then undo.

        The order matters: the value may overlap the region, or be it.
        """
        memory = self.shadow.known(sweep.below)
        if memory is not None:
            if self.value is not None:
                moved = element_copy(memory, self.index)
                if self.losers is not None:
                    moved[self.losers] = 0.0
                memory[self.index] = 0.0
                self.give(moved, sweep)
            else:
                memory[self.index] = 0.0
        self.undo(sweep)

    def give(self, moved: Array, sweep: Sweep) -> None:
        """Accumulate into the value's shadow, which may have leading axes of one."""
        extra = np.ndim(self.value.primal) - np.ndim(moved)
        if extra > 0:
            moved = np.reshape(moved, (1,) * extra + np.shape(moved))
        self.value.accumulate(moved, sweep.below, is_new=True)

    def undo(self, sweep: Sweep) -> None:
        """Bring the overwritten values back, if a step needs them."""
        if self.saved is not None:
            self.swap()
            sweep.undone = sweep.undone or []
            sweep.undone.append(self)

    def swap(self) -> None:
        """Exchange what is in memory with what is saved."""
        current = element_copy(self.primal, self.index)
        with writable(self.primal):
            self.primal[self.index] = self.saved
        self.saved = current


class AddAt(Write):
    """The record of ``np.add.at(x, index, value)``: the region keeps its cotangent."""

    __slots__ = ()

    def pull(self, sweep: Sweep) -> None:
        """Give every added element the cotangent of where it went, then undo."""
        memory = self.shadow.known(sweep.below)
        if memory is not None and self.value is not None:
            moved = element_copy(memory, self.index)
            self.value.accumulate(moved, sweep.below, is_new=True)
        self.undo(sweep)


@contextmanager
def writable(x: Array) -> Iterator[None]:
    """Let us write into an array that f made read-only after writing into it."""
    locked: list[Array] = []
    plain = bare(x)
    while isinstance(plain, np.ndarray) and not plain.flags.writeable:
        locked.append(plain)
        plain = plain.base
    for array in reversed(locked):
        array.flags.writeable = True
    try:
        yield
    finally:
        for array in locked:
            array.flags.writeable = False


def pull_write(sweep: Sweep, step: tuple[Any, ...]) -> None:
    """Run a write backward."""
    step[1].pull(sweep)


def element_copy(x: Array, index: Any) -> Array:
    """Return a copy of ``x[index]``: a scalar for one element, else a new array."""
    part = x[index]
    plain = bare(part)
    if type(plain) is np.ndarray and np.may_share_memory(plain, bare(x)):
        return copied(part, order="K") if isinstance(part, Active) else part.copy("K")
    return part


def losers_of(primal: Array, index: Any) -> Array:
    """Return which elements of an advanced write are overwritten by a later one.

    None if none are.  NumPy itself decides the winner: the places are numbered by the
    same write into scratch memory, of which only the touched pages exist.
    """
    entries = index if isinstance(index, tuple) else (index,)
    if not any(
        isinstance(e, list | np.ndarray) and np.asarray(e).dtype.kind in "iu"
        for e in entries
    ):
        return None
    places = np.empty_like(bare(primal), dtype=np.intp)
    shape = np.shape(places[index])
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    places[index] = numbers
    losers = places[index] != numbers
    return losers if losers.any() else None


def is_same_region(x: Array, value: Array) -> bool:
    """Say whether two arrays are exactly the same memory in the same order."""
    a, b = bare(x), bare(value)
    return (
        type(a) is np.ndarray
        and type(b) is np.ndarray
        and a.shape == b.shape
        and a.dtype == b.dtype
        and a.strides == b.strides
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


def overlapping_value(x: Array, index: Any, value: Array) -> Array | None:
    """Return a copy of a value that shares memory with what it will overwrite."""
    a, b = bare(x), bare(value)
    if type(b) is np.ndarray and b.size > 1 and np.may_share_memory(a, b):
        return clean_result(a, index, b)
    return None


def clean_result(a: Array, index: Any, b: Array) -> Array:
    """Return what ``a[index]`` will hold if ``b`` is read before it is overwritten."""
    region = a[index]
    if np.may_share_memory(region, a):
        return np.broadcast_to(b, region.shape).copy()
    whole = a.copy()
    whole[index] = b.copy()
    return whole[index]


def write_read_first(x: Array, index: Any, value: Array, clean: Array) -> None:
    """Write, or raise if NumPy's own assignment read what it had just overwritten.

    It copies an overlapping value first, but not for vectors whose strides have one
    sign, and not for masks.  Then nothing stays written.
    """
    before = element_copy(x, index)
    x[index] = value
    if not np.array_equal(bare(x)[index], clean, equal_nan=True):
        error = ReadAfterWriteError(bare(x), bare(value))
        x[index] = before
        raise error
