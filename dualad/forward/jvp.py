"""Seed, run, read: the pushforward of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dualad.constants import state_of, verify_inputs
from dualad.forward.dual import DualArray, DualLevel, NestedDualLevel, owner_of
from dualad.levels import RUNNING, Active, bare, is_array
from dualad.structs import (
    Const,
    Tree,
    as_memory,
    as_primal,
    check_empty,
    check_given,
    fitting,
    is_leaf,
    map_output,
    map_trees,
    tied_mismatch,
    without_active,
)
from dualad.structs import leaves as tree_leaves

Array = Any


def push(
    f: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    width: int | None = None,
    in_place: bool = False,
) -> tuple[Tree, Tree]:
    """Run ``f`` on dual arrays and return its value and tangent, as trees.

    Tangents are copied unless ``in_place``; with a ``width`` each has the directions
    as its first axis.  A tangent that is None is zero.
    """
    level = (NestedDualLevel if RUNNING.get() else DualLevel)(width)
    leaves: list[Any] = []
    constants: list[tuple[str, Any]] = []
    lifted, lifters = [], []
    for i, (primal, tangent) in enumerate(zip(primals, tangents, strict=True)):
        if isinstance(primal, Const):
            constants.append((f"argument {i}", primal.value))
            lifted.append(primal.value)
            continue
        lifter = Lifter(level, leaves, in_place=in_place)
        lifters.append(lifter)
        if not is_leaf(primal) and not tree_leaves(primal):
            check_empty(i, primal)
        lifted.append(map_trees(lifter.lift, (primal, tangent), i, "tangent"))
    level.arguments = f, leaves, constants, primals
    level.inputs = {id(owner_of(bare(leaf[3]))) for leaf in leaves}
    output = level.run(f, lifted)
    verify_inputs([leaf for leaf in leaves if not level.has_written(leaf[3])])
    for lifter in lifters:
        lifter.finish()
    return value_of(output, level), tangent_of(output, level)


class Lifter:
    """Turns the leaves of one argument into dual arrays; a tied leaf is one array."""

    def __init__(self, level: DualLevel, leaves: list[Any], *, in_place: bool) -> None:
        """Lift to ``level``, noting each array in ``leaves``."""
        self.level = level
        self.leaves = leaves
        self.in_place = in_place
        self.known: dict[int, Any] = {}
        self.tangents: dict[int, Any] = {}
        self.elsewhere: list[tuple[Array, DualArray]] = []

    def finish(self) -> None:
        """Copy tangents that could not live in the caller's arrays back to them."""
        for x_dot, dual in self.elsewhere:
            x_dot[...] = dual.tangent

    def lift(self, place: Any, x: Any, x_dot: Any) -> Any:
        """Return one leaf as a dual array."""
        tied = self.known.get(id(x)) if isinstance(x, np.ndarray) else None
        if tied is not None:
            if not same_tangent(self.tangents[id(x)], x_dot):
                raise tied_mismatch("tangent", place, x, x_dot)
            return tied
        primal = as_primal(x)
        dual = self.dual(place, primal, x_dot)
        if self.in_place and isinstance(dual, DualArray) and dual.tangent is not x_dot:
            self.elsewhere.append((x_dot, dual))
        if isinstance(bare(primal), np.ndarray):
            given = x_dot if self.in_place else None
            is_plain = isinstance(x, np.ndarray)
            original = np.asarray(x) if is_plain else primal
            state = state_of(original) if is_plain else None
            self.leaves.append((dual, given, primal, original, place, state))
            self.known[id(x)] = dual
            self.tangents[id(x)] = x_dot
        return dual

    def dual(self, place: Any, primal: Array, x_dot: Any) -> Any:
        """Return a primal with its tangent in memory of its own, or the caller's."""
        level = self.level
        if x_dot is None:
            return level.activated(primal)
        x_dot = as_memory(x_dot)
        if self.in_place and isinstance(primal, np.ndarray):
            check_given("tangent", place, primal, x_dot)
            if x_dot.strides == primal.strides:
                return DualArray(primal, x_dot, level)
        elif level.width is None:
            x_dot = fitting("tangent", place, primal, x_dot)
        return level.new(primal, x_dot, is_new=False)


def same_tangent(x_dot: Any, other: Any) -> bool:
    """Say whether two leaves that are one array were given one tangent."""
    if x_dot is other:
        return True
    return (
        x_dot is not None
        and other is not None
        and np.array_equal(bare(x_dot), bare(other), equal_nan=True)
    )


def value_of(output: Tree, level: DualLevel) -> Tree:
    """Return the output's value, in memory of its own."""

    def value(z: Any) -> Any:
        if not isinstance(z, Active):
            z = without_active(z)
        primal = z.primal if isinstance(z, Active) and z.level is level else z
        return primal.copy() if isinstance(bare(primal), np.ndarray) else primal

    return map_output(value, output)


def tangent_of(output: Tree, level: DualLevel) -> Tree:
    """Return the output's tangent: zero for what does not depend on the arguments."""

    def tangent(z: Any) -> Any:
        if isinstance(z, Active) and z.level is level:
            z_dot = z.tangent
            return z_dot.copy() if isinstance(bare(z_dot), np.ndarray) else z_dot
        if not isinstance(
            z, bool | int | float | complex | np.ndarray | np.generic | Active
        ):
            return None
        z = as_primal(float(z) if isinstance(z, bool | int) else z)
        dtype = z.dtype if z.dtype.kind in "fc" else np.dtype(float)
        if level.width is not None:
            return np.zeros((level.width, *np.shape(z)), dtype)
        return np.zeros(np.shape(z), dtype) if is_array(z) else dtype.type(0)

    return map_output(tangent, output)
