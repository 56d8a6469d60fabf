"""Columns of a Jacobian, several directions at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from dualad.aliases import arrays_in, captured_arrays
from dualad.errors import UnrepeatableFunctionError
from dualad.forward.jvp import push
from dualad.levels import bare
from dualad.structs import (
    Const,
    Tree,
    as_primal,
    is_leaf,
    leaves,
    map_output,
    map_tree,
    map_trees,
    skeleton,
    twin,
)

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
    # What f does to the caller's containers is not to move the columns.
    args = tuple(map(skeleton, args))
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
        before = None if is_last else captured_state(f)
        seeds = tuple(
            basis(arg, args, i, start, width, unit) for i, arg in enumerate(args)
        )
        earlier = value
        try:
            value, tangent = push(f, run_args, seeds, width=width)
        except BaseException:
            if not is_last:
                leave(run_args, args)
            raise
        if before is not None:
            restore(before)
        if start > 0:
            check_repeated(earlier, value)
        runs.append(tangent)
    return value, [
        block(i, arg, args, runs)
        for i, arg in enumerate(args)
        if not isinstance(arg, Const)
    ]


def leave(run_args: tuple[Any, ...], args: tuple[Any, ...]) -> None:
    """Leave in the caller's arrays what a run on copies wrote before it failed."""

    def copy_back(_: Any, x: Any, run_x: Any) -> None:
        if isinstance(bare(x), np.ndarray) and bare(x).flags.writeable:
            x[...] = run_x

    for arg, run_arg in zip(args, run_args, strict=True):
        if not isinstance(arg, Const):
            map_trees(copy_back, (arg, run_arg), "an argument")


def captured_state(f: Callable[..., Any]) -> list[tuple[Array, Array]]:
    """Return the writable arrays that ``f`` captures, each with a copy."""
    found = {id(x): x for _, x in captured_arrays(f)}
    return [(x, x.copy("K")) for x in found.values() if x.flags.writeable]


def restore(state: list[tuple[Array, Array]]) -> None:
    """Bring captured arrays back to what they were."""
    for x, before in state:
        x[...] = before


def check_repeated(value: Tree, again: Tree) -> None:
    """Raise if a second run of ``f`` gave another value: it has a hidden state."""

    def check(_: Any, x: Any, y: Any) -> None:
        if not np.array_equal(bare(x), bare(y), equal_nan=True):
            raise UnrepeatableFunctionError

    map_trees(check, (stripped_output(value), stripped_output(again)), "output")


def stripped_output(output: Tree) -> Tree:
    """Return the numbers and arrays of an output as a list."""
    found: list[Any] = []
    map_output(found.append, output)
    return [x for x in found if is_leaf(x)]


def copied_tree(arg: Any) -> Any:
    """Return an argument on copies of its arrays: what ``f`` writes stays there."""
    if isinstance(arg, Const):
        return Const(copy.deepcopy(arg.value)) if any(arrays_in(arg.value)) else arg

    known: dict[int, Any] = {}

    def copied_leaf(_: Any, x: Any) -> Any:
        if not isinstance(bare(x), np.ndarray):
            return x
        if id(x) not in known:  # tied leaves stay tied
            known[id(x)] = twin(as_primal(x))
        return known[id(x)]

    return map_tree(copied_leaf, arg)


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
    known: dict[int, Array] = {}

    def directions(_: Any, x: Any) -> Array:
        nonlocal position
        primal = bare(as_primal(x))
        if id(x) in known:
            position += np.size(primal)  # directions of nothing: see `block`
            return known[id(x)]
        size = np.size(primal)
        stack = np.zeros((width, size), primal.dtype)
        length = unit if primal.dtype.kind == "c" else unit.real
        for k in range(max(start, position), min(start + width, position + size)):
            stack[k - start, k - position] = length
        position += size
        seeds = stack.reshape((width, *np.shape(primal)))
        if isinstance(primal, np.ndarray):
            known[id(x)] = seeds
        return seeds

    return map_tree(directions, arg)


def block(which: int, arg: Any, args: tuple[Any, ...], runs: list[Tree]) -> Tree:
    """Return the columns that belong to one argument, for each output leaf.

    An array that occurs twice is one variable: both places get its columns.
    """

    def for_output(_: str, *stacks: Array) -> Tree:
        stack = np.concatenate(stacks) if len(stacks) > 1 else stacks[0]
        position = offsets(args, which)
        known: dict[int, int] = {}

        def for_leaf(_: str, x: Any) -> Array:
            nonlocal position
            first = position
            if isinstance(bare(x), np.ndarray):
                first = known.setdefault(id(x), position)
            part = stack[first : first + np.size(x)]
            position += np.size(x)
            moved = np.moveaxis(part, 0, -1)
            return np.reshape(moved, np.shape(moved)[:-1] + np.shape(x))

        return map_tree(for_leaf, arg)

    return map_trees(for_output, tuple(runs), "output")
