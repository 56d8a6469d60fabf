"""The carriers of reverse mode: a primal, its shadow, and the tape that records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualad.arrays import ActiveArray, ActiveScalar

if TYPE_CHECKING:
    from dualad.reverse.shadow import ScalarShadow, Shadow, ViewShadow
    from dualad.reverse.tape import Tape


class ShadowedArray(ActiveArray):
    """An array with a shadow into which cotangents accumulate."""

    __slots__ = ("level", "primal", "shadow")
    level: Tape
    shadow: Shadow | ViewShadow

    def __init__(self, primal: Any, shadow: Any, level: Any) -> None:
        """Tie a primal to its shadow on a tape."""
        self.primal = primal
        self.shadow = shadow
        self.level = level


class ShadowedScalar(ActiveScalar):
    """A scalar with a shadow; immutable."""

    __slots__ = ("level", "primal", "shadow")
    level: Tape
    shadow: ScalarShadow

    def __init__(self, primal: Any, shadow: Any, level: Any) -> None:
        """Tie a primal to its shadow on a tape."""
        self.primal = primal
        self.shadow = shadow
        self.level = level
