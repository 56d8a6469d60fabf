"""Plain arrays that a pullback will read, though user code may change them before.

A small one is copied where it is used.  A large one is kept by reference together
with a fingerprint, taken at its first use and verified before the sweep.  Arrays that
are read-only at their owner need neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualad.errors import ChangedArrayError
from dualad.levels import Active
from dualad.rules.views import copied

Array = Any
SMALL = 16384  # bytes: up to here a copy is cheaper than keeping watch
WIDTH = 1021  # words per row of a fingerprint; prime, so that few arrays fit it
GOLDEN = 0x9E3779B97F4A7C15


class Constants:
    """The plain arrays that one tape keeps."""

    __slots__ = ("check", "watched")

    def __init__(self, *, check: bool) -> None:
        """Keep watch if ``check``; else trust the user."""
        self.check = check
        self.watched: dict[int, tuple[Array, Any]] = {}

    def protected(self, x: Any) -> Any:  # noqa: PLR0911 -- one for each kind
        """Return ``x`` in a form that will still be what it is now."""
        if type(x) is np.ndarray:
            if not self.check:
                return x
            if x.nbytes <= SMALL:
                return x.copy("K")
            self.watch(x)
            return x
        if isinstance(x, Active) and self.check:
            return copied(x, order="K")
        if isinstance(x, tuple):
            return tuple(self.protected(item) for item in x)
        if isinstance(x, list):
            return np.array(x) if x else np.empty(0, np.intp)  # an index, if empty
        return x

    def watch(self, x: Array) -> None:
        """Keep an array by reference and remember its fingerprint."""
        if id(x) not in self.watched and not is_frozen(x):
            self.watched[id(x)] = (x, fingerprint(x))

    def verify(self) -> None:
        """Raise if an array was changed since its first use."""
        for x, before in self.watched.values():
            if fingerprint(x) != before:
                raise ChangedArrayError(x)


def is_frozen(x: Array) -> bool:
    """Say whether the owner of the memory of ``x`` is read-only."""
    while isinstance(x, np.ndarray):
        if x.flags.writeable:
            return False
        if x.base is None:
            return True
        x = x.base
    return isinstance(x, bytes)


def fingerprint(x: Array) -> tuple[int, int, bytes]:
    """Return a number that changes with any element or any order of them.

    Sums of columns and of rows of the memory seen as 64-bit words, each weighted by
    its place: a permutation moves words between columns or between rows.
    """
    if not (x.flags.c_contiguous or x.flags.f_contiguous):
        x = np.ascontiguousarray(x)
    octets = x.reshape(-1, order="A").view(np.uint8)
    words = octets[: octets.size // 8 * 8].view(np.uint64)
    count = words.size // WIDTH
    rows = words[: count * WIDTH].reshape(count, WIDTH)
    rest = octets[count * WIDTH * 8 :].tobytes()
    return weighted(rows.sum(axis=0)), weighted(rows.sum(axis=1)), rest


def weighted(sums: Array) -> int:
    """Return the sum of 64-bit words, each times an odd weight of its own."""
    weights = np.arange(1, 2 * sums.size + 1, 2, dtype=np.uint64) * np.uint64(GOLDEN)
    return int((sums * weights).sum())
