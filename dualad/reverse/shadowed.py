"""The carriers of reverse mode: each is a primal with its shadow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dualad.arrays import ActiveArray, ActiveScalar
from dualad.levels import Level
from dualad.reverse.shadow import ScalarShadow, Shadow, ViewShadow
from dualad.rules.kinds import Rule

Array = Any


class ShadowedArray(Shadow, ActiveArray):
    """An array that owns its memory, and a shadow in which cotangents accumulate."""

    __slots__ = ("level", "memory", "primal")
    level: Level


class ShadowedView(ViewShadow, ActiveArray):
    """A view of another shadowed array, whose shadow is the same view of its shadow."""

    __slots__ = (
        "function",
        "level",
        "overlaps",
        "owner",
        "params",
        "parent",
        "primal",
        "rule",
        "seen",
    )
    level: Level

    def __init__(
        self,
        parent: ShadowedArray | ShadowedView,
        rule: Rule,
        function: Callable[..., Array],
        params: Mapping[str, Any],
        primal: Array,
    ) -> None:
        """Remember how the view was taken; ``primal`` is the view of the primal."""
        self.parent = parent
        self.owner = parent.owner
        self.level = parent.level
        self.rule = rule
        self.function = function
        self.params = params
        self.primal = primal
        self.overlaps = parent.overlaps or rule.overlaps
        self.seen = None


class ShadowedScalar(ScalarShadow, ActiveScalar):
    """A scalar with a shadow; immutable."""

    __slots__ = ("level", "memory", "primal")
    level: Level


# Made without ``__init__``, which would take twice as long.


def fresh_array(primal: Any, level: Level) -> ShadowedArray:
    """Return an array that owns its memory with a fresh shadow."""
    active = ShadowedArray()
    active.primal = primal
    active.level = level
    active.memory = None
    return active


def fresh_scalar(primal: Any, level: Level) -> ShadowedScalar:
    """Return a scalar with a fresh shadow."""
    active = ShadowedScalar()
    active.primal = primal
    active.level = level
    active.memory = None
    return active
