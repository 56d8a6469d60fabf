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
F64 = np.dtype(np.float64)
SMALL = 16384  # bytes: up to here a copy is cheaper than keeping watch


class Constants:
    """The plain arrays that one tape keeps."""

    __slots__ = ("check", "watched")

    def __init__(self, *, check: bool) -> None:
        """Keep watch if ``check``; else trust the user."""
        self.check = check
        self.watched: dict[int, tuple[Array, Any]] = {}

    def protected(self, x: Any) -> Any:  # noqa: PLR0911 -- one for each kind
        """Return ``x`` in a form that will still be what it is now."""
        if isinstance(x, np.ndarray):
            x = np.asarray(x)
            if x.nbytes <= SMALL:
                return x.copy("K")
            if not self.check:
                return x
            self.watch(x)
            return x
        if isinstance(x, Active):
            return copied(x, order="K")
        if isinstance(x, tuple):
            return tuple(self.protected(item) for item in x)
        if isinstance(x, list):
            return np.array(x) if x else np.empty(0, np.intp)  # an index, if empty
        return x

    def watch(self, x: Array) -> None:
        """Keep an array by reference and remember its fingerprint.

        At a later use it must still be the same: earlier steps keep it too.
        """
        if is_frozen(x):
            return
        found = self.watched.get(id(x))
        if found is None:
            self.watched[id(x)] = (x, fingerprint(x))
        elif fingerprint(x) != found[1]:
            raise ChangedArrayError(x)

    def verify(self) -> None:
        """Raise if an array was changed since its first use."""
        for x, before in self.watched.values():
            if fingerprint(x) != before:
                raise ChangedArrayError(x)


def state_of(x: Array) -> Any:
    """Return what tells later whether ``x`` is still what it is now."""
    if x.nbytes > SMALL or x.dtype.char in "gG":
        return fingerprint(x)
    return x.tobytes()


def without_padding(x: Array) -> Array:
    """Return the bits of extended precision alone: two doubles for each number."""
    high = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        return np.stack([high, (x - high).astype(high.dtype)])


def verify_inputs(leaves: list[tuple[Any, ...]]) -> None:
    """Raise if an input differs from what it was, all recorded writes being undone.

    Then user code wrote into it past us, through another array of the same memory.
    """
    for _, _, _, x, _, before in leaves:
        if before.__class__ is bytes:
            if x.tobytes() != before:
                raise ChangedArrayError(x)
        elif before is not None and fingerprint(x) != before:
            raise ChangedArrayError(x)


def is_frozen(x: Array) -> bool:
    """Say whether nobody can write into the memory of ``x``: it is that of bytes.

    An array marked read-only does not count: a view made before may still write.
    """
    while isinstance(x, np.ndarray):
        if x.flags.writeable:
            return False
        x = x.base
    return isinstance(x, bytes)


def fingerprint(x: Array) -> int:
    """Return a number that changes with any element and with any order of them.

    Each 64-bit word of memory is mixed (floats end in zeros) and multiplied with a
    weight of its own; blocks of words are chained.
    """
    if x.dtype.char in "gG":
        x = without_padding(x)
    if not (x.flags.c_contiguous or x.flags.f_contiguous):
        x = np.ascontiguousarray(x)
    octets = x.reshape(-1, order="A").view(np.uint8)
    words = octets[: octets.size // 8 * 8].view(np.uint64)
    total = hash(octets[words.size * 8 :].tobytes())
    for start in range(0, words.size, WEIGHTS.size):
        block = words[start : start + WEIGHTS.size]
        mixed = block >> SHIFT
        mixed ^= block
        mixed *= WEIGHTS[: block.size]
        total = (total * GOLDEN + int(mixed.sum())) % 2**64
    return total


def mixing_weights(count: int) -> Array:
    """Return odd 64-bit numbers without a pattern (the splitmix64 sequence)."""
    words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (words ^ (words >> np.uint64(31))) | np.uint64(1)


GOLDEN = 0x9E3779B97F4A7C15
SHIFT = np.uint64(29)
WEIGHTS = mixing_weights(1 << 14)
