"""Rows of a Jacobian: one sweep for each element of the output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dualad.levels import bare
from dualad.reverse.vjp import Pullback
from dualad.structs import Tree, as_primal, is_leaf, map_output, map_trees

Array = Any


def rows(
    f: Callable[..., Any], args: tuple[Any, ...], fewer_than: int | None = None
) -> list[Tree] | None:
    """Return the Jacobian of ``f``, one tree per argument; ``f`` runs once.

    None if the output has as many elements as ``fewer_than``: then
    columns are the better way (and ``f`` has run on copies, leaving nothing behind).
    """
    recording = Pullback()
    recording.run(f, args, writes_back=False)
    outputs: list[Any] = []
    map_output(outputs.append, recording.output)
    if fewer_than is not None and sum(np.size(z) for z in outputs) >= fewer_than:
        return None
    recording.write_back()
    count = 0

    def table(z: Any) -> Any:
        nonlocal count
        if not is_leaf(z):
            return Table(z, None)
        place, count = count, count + 1
        return Table(z, [row(recording, place, z, k) for k in range(np.size(z))])

    tables = map_output(table, recording.output)
    return [
        map_output(functools.partial(stacked, i, arg), tables)
        for i, arg in enumerate(recording.trees)
    ]


class Table:
    """One output and its rows: for each element, a tree for each argument."""

    __slots__ = ("output", "rows")

    def __init__(self, output: Any, rows: list[list[Tree]] | None) -> None:
        """Hold both; an output without derivative has no rows."""
        self.output = output
        self.rows = rows


def row(recording: Pullback, place: int, z: Any, k: int) -> list[Tree]:
    """Return the derivative of one element of one output by each argument.

    Of a complex output, the imaginary part comes from a cotangent of i.
    """
    by_real = recording.pull(unit(recording, place, k, 1.0))
    if as_primal(z).dtype.kind != "c":
        return by_real
    by_imag = recording.pull(unit(recording, place, k, 1j))
    return [
        map_trees(lambda _, x, y: x + 1j * y, (real, imag))
        for real, imag in zip(by_real, by_imag, strict=True)
    ]


def unit(recording: Pullback, place: int, k: int, length: complex) -> Tree:
    """Return a cotangent that is zero but for one element of one output."""
    count = 0

    def seed(z: Any) -> Array | None:
        nonlocal count
        count += 1
        if count - 1 != place:
            return None
        flat = np.zeros(np.size(z), np.result_type(length))
        flat[k] = length
        return flat.reshape(np.shape(z))

    return map_output(lambda z: seed(z) if is_leaf(z) else None, recording.output)


def stacked(i: int, arg: Tree, table: Table) -> Tree:
    """Stack one argument's rows into blocks of shape (*output, *leaf)."""
    shape = np.shape(table.output)
    if np.asarray(bare(table.output)).dtype.kind not in "biufc":
        return None  # None, a string ...
    found = [row[i] for row in table.rows or []]

    def stack(_: Any, x: Array, *rows: Array) -> Array:
        if not rows:
            return np.zeros(shape + np.shape(x), bare(as_primal(x)).dtype)
        return np.reshape(np.stack(rows), shape + np.shape(x))

    return map_trees(stack, (arg, *found))
