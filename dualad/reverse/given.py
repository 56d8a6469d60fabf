"""Recording with the caller's shadows: what `Duplicated` asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualad import levels
from dualad.errors import NotDifferentiableError
from dualad.levels import bare
from dualad.reverse.shadow import Shadow, add, shadow_dtype
from dualad.reverse.shadowed import ShadowedScalar
from dualad.reverse.vjp import Recording
from dualad.structs import (
    Tree,
    as_memory,
    check_given,
    map_trees,
    skeleton,
    spelled,
    tied_mismatch,
)

Array = Any


class GivenShadows(Recording):
    """A recording whose cotangents accumulate in arrays of the caller's."""

    def __init__(self, shadows: tuple[Tree, ...]) -> None:
        """Take one tree of shadows for each argument."""
        self.shadows = shadows
        self.elsewhere: list[tuple[Array, Array, bool]] = []  # see `use`

    def lifted(self, place: Any, tree: Tree) -> tuple[Tree, Tree]:
        """Return an argument twice, with arrays of ours as its leaves."""
        self.given: dict[int, Any] = {}  # by identity, the shadow of each array
        theirs = map_trees(self.lift_with, (tree, self.shadows[place]), place)
        return theirs, skeleton(theirs)

    def lift_with(self, place: Any, x: Any, x_bar: Any) -> Any:
        """Lift a leaf and let its shadow be ``x_bar``."""
        is_tied = id(x) in self.known
        active = self.lift_any(place, x)
        if active.__class__ is ShadowedScalar:
            if x_bar is not None:
                raise NotDifferentiableError(
                    spelled(place),
                    x,
                    "Make it an array, np.array(x): a Python number has no memory "
                    "that a shadow could share.",
                )
            return active
        if is_tied and x_bar is not self.given[id(x)]:
            raise tied_mismatch("shadow", place, x, x_bar)
        self.given[id(x)] = x_bar
        x_bar = as_memory(x_bar)
        if x_bar is not None and not is_tied:
            self.use(active, x_bar, place)
        self.leaves[-1] = (active, x_bar, *self.leaves[-1][2:])
        return active

    def use(self, shadow: Shadow, x_bar: Any, place: Any) -> None:
        """Let cotangents accumulate in the caller's shadow, or in a copy that fits.

        Views are taken alike of primal and shadow, so both must be laid out alike.  Of
        a shadow that another primal has too, what it holds goes to the first.
        """
        like = shadow.primal
        check_given("shadow", place, like, x_bar)
        plain = bare(x_bar)
        is_first = not any(
            np.may_share_memory(bare(given), plain) for given, *_ in self.elsewhere
        )
        if is_first and x_bar.strides == like.strides and like.dtype != np.float16:
            shadow.memory = x_bar
            return
        below = self.below
        shadow.memory = levels.zeros_like(like, below, shadow_dtype(like))
        if is_first:
            shadow.memory[...] = x_bar
        self.elsewhere.append((x_bar, shadow.memory, is_first))

    def finish(self) -> None:
        """Bring to the caller's shadows what could not accumulate there directly."""
        for x_bar, memory, is_first in self.elsewhere:
            if is_first:
                x_bar[...] = memory
            else:
                add(x_bar, memory)
