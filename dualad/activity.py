"""How a caller marks each argument, and calls that accumulate in its memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualad.aliases import arrays_in, check_apart
from dualad.derivatives import Function
from dualad.forward.jvp import push
from dualad.reverse.given import GivenShadows
from dualad.structs import Const, Tree, map_tree


class Duplicated:
    """A primal with its shadow, both the caller's.

    In reverse mode the shadow is *added to*; in forward mode it holds the tangent.

    Where the function writes into the primal, the shadow follows it, as in Enzyme: in
    reverse mode what it holds at the call counts as the cotangent of what the primal
    will hold at the end, and in forward mode it ends as the tangent of that.

    Parameters
    ----------
    primal : array, or tuple, list or dict of arrays
        Real or complex floating.
    shadow : like ``primal``
        Writable, without overlap, in other memory than any primal.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> x, dx = np.array([1.0, 2.0]), np.zeros(2)
    >>> value = ad.autodiff(ad.Reverse, lambda x: np.sum(x * x), ad.Duplicated(x, dx))
    >>> dx
    array([2., 4.])
    """

    __slots__ = ("primal", "shadow")

    def __init__(self, primal: Tree, shadow: Tree) -> None:
        """Hold both."""
        self.primal = primal
        self.shadow = shadow

    def __repr__(self) -> str:
        """Show both."""
        return f"Duplicated({self.primal!r}, {self.shadow!r})"


class Mode:
    """A direction of differentiation: ``Forward`` or ``Reverse``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Name it."""
        self.name = name

    def __repr__(self) -> str:
        """Show the name."""
        return self.name


Forward = Mode("Forward")
Reverse = Mode("Reverse")


def autodiff(mode: Mode, f: Function, *args: Any, check_constants: bool = True) -> Any:
    """Differentiate in the caller's memory.

    Parameters
    ----------
    mode : Reverse or Forward
    f : callable
        In reverse mode it returns one real number.
    *args : Duplicated or Const
        Each argument of ``f``.

    Returns
    -------
    value, for Reverse
        The gradient has been added into the shadows.
    (value, tangent), for Forward
        The shadows held the direction.  Where ``f`` writes into an argument, its
        shadow holds the tangent of what was written.

    Raises
    ------
    ShadowMismatchError
        If a shadow does not fit its primal, is read-only, overlaps itself or shares
        memory with a primal.
    ChangedArrayError
        Before the sweep for a constant, after it for an argument: the shadows have
        then been added to already, and are not to be used.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> x, x_dot = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    >>> ad.autodiff(ad.Forward, lambda x: x * x, ad.Duplicated(x, x_dot))
    (array([1., 4.]), array([2., 0.]))
    """
    for i, arg in enumerate(args):
        if not isinstance(arg, Duplicated | Const):
            raise TypeError(
                f"Argument {i} of autodiff has no activity: {type(arg).__name__}.\n"
                "Mark it dualad.Duplicated(x, dx) or dualad.Const(x)."
            )
    if mode not in (Forward, Reverse):
        raise ValueError(f"mode is {mode!r}.\nGive dualad.Forward or dualad.Reverse.")
    primals = tuple(a if isinstance(a, Const) else a.primal for a in args)
    shadows = tuple(None if isinstance(a, Const) else a.shadow for a in args)
    what = "tangent" if mode is Forward else "shadow"
    check_apart(
        what,
        [x for s in shadows for _, x in arrays_in(s) if x.dtype.kind in "fc"],
        [
            x
            for p in primals
            for _, x in arrays_in(p.value if isinstance(p, Const) else p)
        ],
    )
    if mode is Forward:
        return push(f, primals, shadows, in_place=True)
    recording = GivenShadows(shadows)
    recording.run(f, primals, check_constants=check_constants)
    value = recording.value()
    recording.seed_scalar("autodiff(Reverse)")
    recording.sweep()
    recording.finish()
    return value


def make_shadow(x: Tree) -> Tree:
    """Return zeros of the structure, shapes and dtypes of ``x``: a shadow for it.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> ad.make_shadow({"w": np.ones(2)})
    {'w': array([0., 0.])}
    """
    known: dict[int, Any] = {}

    def zeros(_: str, leaf: Any) -> Any:
        if id(leaf) not in known:
            known[id(leaf)] = np.zeros_like(leaf)
        return known[id(leaf)]

    return map_tree(zeros, x, "x")


def zero_shadow(shadow: Tree) -> None:
    """Set all arrays of a shadow to zero, in place.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> dx = np.ones(2)
    >>> ad.zero_shadow(dx)
    >>> dx
    array([0., 0.])
    """

    def clear(_: str, leaf: Any) -> None:
        leaf[...] = 0.0

    map_tree(clear, shadow, "shadow")
