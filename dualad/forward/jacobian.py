"""Columns of a Jacobian, several directions at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dualad.forward.jvp import push
from dualad.levels import Active, bare
from dualad.rules.views import copied
from dualad.structs import Const, Tree, as_primal, leaves, map_tree, twin

Array = Any
CHUNK = 32


def columns(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    chunk: int | None,
    unit: complex = 1.0,
) -> tuple[Tree, list[Tree]]:
    """Return the value of ``f`` and its Jacobian, one tree per argument.

    The directions are ``unit`` times one element of a leaf.

    ``f`` runs once per chunk, each time on the caller's arrays as they were.
    """
    sizes = [
        [np.size(leaf) for leaf in leaves(arg)] if not isinstance(arg, Const) else []
        for arg in args
    ]
    total = sum(map(sum, sizes))
    chunk = min(chunk or CHUNK, max(total, 1))
    runs = []
    value: Tree = None
    starts = range(0, max(total, 1), chunk)
    for start in starts:
        width = min(chunk, max(total, 1) - start)
        is_last = start == starts[-1]
        run_args = args if is_last else tuple(copied_tree(arg) for arg in args)
        seeds = tuple(
            basis(arg, args, i, start, width, unit) for i, arg in enumerate(args)
        )
        value, tangent = push(f, run_args, seeds, width=width)
        runs.append(tangent)
    return value, [
        block(i, arg, args, runs)
        for i, arg in enumerate(args)
        if not isinstance(arg, Const)
    ]


def copied_tree(arg: Any) -> Any:
    """Return an argument on copies of its arrays: what ``f`` writes stays there."""
    if isinstance(arg, Const):
        return arg

    def copy(_: Any, x: Any) -> Any:
        if isinstance(x, Active):
            return copied(x, order="K") if isinstance(bare(x), np.ndarray) else x
        return twin(x) if isinstance(x, np.ndarray) else x

    return map_tree(copy, arg)


def offsets(args: tuple[Any, ...], which: int) -> int:
    """Return the number of the first direction of an argument."""
    return sum(
        np.size(leaf)
        for arg in args[:which]
        if not isinstance(arg, Const)
        for leaf in leaves(arg)
    )


def basis(  # noqa: PLR0913, PLR0917 -- all that says which directions
    arg: Any, args: tuple[Any, ...], which: int, start: int, width: int, unit: complex
) -> Tree:
    """Return unit tangents for the directions ``start`` to ``start + width``."""
    if isinstance(arg, Const):
        return None
    position = offsets(args, which)

    def directions(_: Any, x: Any) -> Array:
        nonlocal position
        primal = bare(as_primal(x))
        size = np.size(primal)
        stack = np.zeros((width, size), primal.dtype)
        length = unit if primal.dtype.kind == "c" else unit.real
        for k in range(max(start, position), min(start + width, position + size)):
            stack[k - start, k - position] = length
        position += size
        return stack.reshape((width, *np.shape(primal)))

    return map_tree(directions, arg)


def block(which: int, arg: Any, args: tuple[Any, ...], runs: list[Tree]) -> Tree:
    """Return the columns that belong to one argument, for each output leaf."""

    def for_output(_: str, *stacks: Array) -> Tree:
        stack = np.concatenate(stacks) if len(stacks) > 1 else stacks[0]
        position = offsets(args, which)

        def for_leaf(_: str, x: Any) -> Array:
            nonlocal position
            part = stack[position : position + np.size(x)]
            position += np.size(x)
            moved = np.moveaxis(part, 0, -1)
            return np.reshape(moved, np.shape(moved)[:-1] + np.shape(x))

        return map_tree(for_leaf, arg)

    return map_tree(for_output, runs[0], *runs[1:], place="output")
