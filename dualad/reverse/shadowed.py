"""The carriers of reverse mode: a primal, its shadow, and the tape that records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualad.arrays import ActiveArray, ActiveScalar
from dualad.reverse.shadow import ScalarShadow, Shadow, ViewShadow

if TYPE_CHECKING:
    from dualad.reverse.tape import Tape


class ShadowedArray(ActiveArray):
    """An array with a shadow into which cotangents accumulate."""

    __slots__ = ("level", "primal", "shadow")
    level: Tape
    shadow: Shadow | ViewShadow


class ShadowedScalar(ActiveScalar):
    """A scalar with a shadow; immutable."""

    __slots__ = ("level", "primal", "shadow")
    level: Tape
    shadow: ScalarShadow


# Made without ``__init__``, which would take twice as long.


def shadowed(primal: Any, shadow: Shadow | ViewShadow, level: Tape) -> ShadowedArray:
    """Tie an array to a shadow that exists."""
    active = ShadowedArray()
    active.primal = primal
    active.shadow = shadow
    active.level = level
    return active


def fresh_array(primal: Any, level: Tape) -> ShadowedArray:
    """Return an array that owns its memory with a fresh shadow."""
    active = ShadowedArray()
    active.shadow = shadow = Shadow()
    active.primal = shadow.like = primal
    active.level = level
    shadow.memory = None
    shadow.captured = False
    return active


def fresh_scalar(primal: Any, level: Tape) -> ShadowedScalar:
    """Return a scalar with a fresh shadow."""
    active = ShadowedScalar()
    active.shadow = shadow = ScalarShadow()
    active.primal = shadow.like = primal
    active.level = level
    shadow.memory = None
    shadow.captured = False
    return active
