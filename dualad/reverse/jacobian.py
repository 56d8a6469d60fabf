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

    None if the output has as many elements as ``fewer_than``, or is complex: then
    columns are the better way (and ``f`` has run on copies, leaving nothing behind).
    """
    recording = Recording(f, args, copies=True)
    outputs = leaves(recording.output)
    if fewer_than is not None and (
        sum(np.size(z) for z in outputs) >= fewer_than
        or any(z.dtype.kind == "c" for z in outputs if hasattr(z, "dtype"))
    ):
        return None

    def for_output(_: str, z: Any) -> list[Tree]:
        found = []
        for k in range(np.size(z)):
            unit = np.zeros(np.size(z))
            unit[k] = 1.0
            seeds = map_tree(
                lambda _, other: unit.reshape(np.shape(z)) if other is z else None,  # noqa: B023 -- used at once
                recording.output,
            )
            found.append(pull(recording, seeds))
        return found

    tables = map_tree(for_output, recording.output)
    return [
        map_tree(
            lambda _, z, table: stacked(z, [row[i] for row in table], arg),  # noqa: B023
            stripped(recording.output, recording.tape),
            tables,
        )
        for i, arg in enumerate(recording.args)
    ]


def stacked(z: Any, found: list[Tree], arg: Tree) -> Tree:
    """Stack one argument's rows into blocks of shape (*output, *leaf)."""

    def stack(_: str, x: Array, *rows: Array) -> Array:
        joined = np.stack(rows) if rows else np.zeros(0, bare(as_primal(x)).dtype)
        return np.reshape(joined, np.shape(z) + np.shape(x))

    return map_tree(stack, arg, *found)
