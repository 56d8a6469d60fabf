"""Large elementwise work in pieces that stay in the processor's cache.

A partial derivative of a million elements is a temporary array of eight megabytes:
fresh memory from the system, written, read once, given back.  In blocks, the same
temporary is a small array that is still in the cache when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dualad.levels import Active, bare

Array = Any
LARGE = 1 << 17  # elements: from here on blocks pay
BLOCK = 1 << 14  # elements: a dozen such arrays of float64 fit a second-level cache


def flattened(arrays: list[Any], shape: tuple[int, ...]) -> list[Any] | None:
    """Return flat views of arrays of one shape; numbers and None stay as they are.

    None if one of them is laid out otherwise, or broadcast.
    """
    flat: list[Any] = []
    for x in arrays:
        plain = bare(x)
        if not isinstance(plain, np.ndarray) or plain.ndim == 0:
            if isinstance(x, Active):
                return None
            flat.append(x)
        elif plain.shape == shape and plain.flags.c_contiguous:
            flat.append(x if plain.ndim == 1 else x.reshape(-1))
        else:
            return None
    return flat


def blocks(size: int) -> Iterator[slice]:
    """Cut ``size`` elements into blocks."""
    for start in range(0, size, BLOCK):
        yield slice(start, min(start + BLOCK, size))


def cut(x: Any, block: slice) -> Any:
    """Return a block of a flat array; numbers and None as they are."""
    return x if x is None or not np.ndim(bare(x)) else x[block]
