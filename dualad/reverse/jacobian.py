"""Rows of a Jacobian: one sweep for each element of the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dualad.levels import bare
from dualad.reverse.vjp import Recording, pull
from dualad.structs import Tree, as_primal, leaves, map_tree, stripped

Array = Any


def rows(
    f: Callable[..., Any], args: tuple[Any, ...], fewer_than: int | None = None
) -> list[Tree] | None:
    """Return the Jacobian of ``f``, one tree per argument; ``f`` runs once.

    None if the output has as many elements as ``fewer_than``: then
    columns are the better way (and ``f`` has run on copies, leaving nothing behind).
    """
    recording = Recording(f, args, copies=True, writes_back=False)
    outputs = leaves(recording.output)
    if fewer_than is not None and sum(np.size(z) for z in outputs) >= fewer_than:
        return None
    recording.write_back()
    count = 0

    def table(_: Any, z: Any) -> list[list[Tree]]:
        nonlocal count
        place, count = count, count + 1
        return [row(recording, place, z, k) for k in range(np.size(z))]

    tables = map_tree(table, recording.output)
    return [
        map_tree(
            lambda _, z, found: stacked(z, [row[i] for row in found], arg),  # noqa: B023 -- used at once
            stripped(recording.output, recording.tape),
            tables,
        )
        for i, arg in enumerate(recording.args)
    ]


def row(recording: Recording, place: int, z: Any, k: int) -> list[Tree]:
    """Return the derivative of one element of one output by each argument.

    Of a complex output, the imaginary part comes from a cotangent of i.
    """
    by_real = pull(recording, unit(recording, place, k, 1.0))
    if as_primal(z).dtype.kind != "c":
        return by_real
    by_imag = pull(recording, unit(recording, place, k, 1j))
    return [
        map_tree(lambda _, x, y: x + 1j * y, real, imag)
        for real, imag in zip(by_real, by_imag, strict=True)
    ]


def unit(recording: Recording, place: int, k: int, length: complex) -> Tree:
    """Return a cotangent that is zero but for one element of one output."""
    count = 0

    def seed(_: Any, z: Any) -> Array | None:
        nonlocal count
        count += 1
        if count - 1 != place:
            return None
        flat = np.zeros(np.size(z), np.result_type(length))
        flat[k] = length
        return flat.reshape(np.shape(z))

    return map_tree(seed, recording.output)


def stacked(z: Any, found: list[Tree], arg: Tree) -> Tree:
    """Stack one argument's rows into blocks of shape (*output, *leaf)."""

    def stack(_: str, x: Array, *rows: Array) -> Array:
        joined = np.stack(rows) if rows else np.zeros(0, bare(as_primal(x)).dtype)
        return np.reshape(joined, np.shape(z) + np.shape(x))

    return map_tree(stack, arg, *found)
