"""The everyday derivatives: gradient, jvp, vjp, jacobian."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dualad.dispatch import running
from dualad.errors import (
    IndependentOutputWarning,
    NotDifferentiableError,
    ScalarOutputError,
)
from dualad.forward.jacobian import columns, copied_tree
from dualad.forward.jvp import push
from dualad.levels import Active, bare
from dualad.reverse.jacobian import rows
from dualad.reverse.vjp import Pullback, Recording
from dualad.structs import Const, Tree, as_primal, leaves, map_trees, skeleton, stripped

Array = Any
Function = Callable[..., Any]


def gradient(
    f: Function, *args: Any, mode: str = "auto", check_constants: bool = True
) -> Any:
    """Return the gradient of a scalar function.

    Parameters
    ----------
    f : callable
        Returns one real number.  It may write into its arguments and into arrays it
        makes; afterwards they hold what ``f(*args)`` alone would have left.
    *args : arrays, numbers, or tuples, lists and dicts of them
        Real or complex floating; on the host.  Those marked ``Const`` are not
        differentiated.
    mode : {"auto", "reverse", "forward"}
        ``auto`` is reverse mode.
    check_constants : bool
        Watch large plain arrays that the reverse sweep reads (see Raises).

    Returns
    -------
    like the argument, or a tuple of such for several
        df/dx, in new memory, with the dtype of x.  Units: [f] / [x].  For complex x
        it is df/dRe(x) + i df/dIm(x), the direction of steepest ascent.

    Raises
    ------
    ScalarOutputError
        If ``f`` does not return one real number.
    NotDifferentiableError
        If an argument is neither floating nor ``Const``.
    MissingRuleError
        If ``f`` calls a NumPy function that has no rule, with an active array.
    ChangedArrayError
        If a plain array above 16 KiB was changed between its use and the sweep.
        Or if ``f`` wrote into an argument's memory without the argument.

    Notes
    -----
    Time: 2 to 4 evaluations of ``f`` on large arrays.  Memory: every intermediate
    that a partial derivative reads is kept until the sweep has passed it.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> ad.gradient(lambda x: np.sum(x**3), np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    return value_and_gradient(f, *args, mode=mode, check_constants=check_constants)[1]


def value_and_gradient(
    f: Function,
    *args: Any,
    has_aux: bool = False,
    mode: str = "auto",
    check_constants: bool = True,
) -> tuple[Any, Any]:
    """Return the value of a scalar function and its gradient.

    Parameters
    ----------
    f, *args, mode, check_constants
        As for :func:`gradient`.
    has_aux : bool
        If true, ``f`` returns ``(value, aux)``, and so does this function in place
        of the value; ``aux`` is anything, stripped of derivatives.

    Returns
    -------
    value : number, or (number, aux)
        In memory of its own.
    gradient : like the argument, or a tuple of such for several

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> value, slope = ad.value_and_gradient(lambda x: np.sum(x * x), np.array([3.0]))
    >>> float(value), slope
    (9.0, array([6.]))
    """
    if mode not in ("auto", "reverse"):
        check_mode(mode)
        return forward_gradient(f, args, has_aux=has_aux)
    recording = Recording()
    recording.run(f, args, check_constants=check_constants)
    aux = None
    if has_aux:
        recording.output, aux = recording.output
    value = recording.value()
    recording.seed_scalar("gradient")
    recording.sweep()
    if has_aux:
        value = value, stripped(aux, recording.tape)
    return value, bare_or_tuple(recording.cotangents())


def forward_gradient(f: Function, args: tuple[Any, ...], *, has_aux: bool) -> Any:
    """Return value and gradient by forward mode: the one row of the Jacobian."""
    kept: list[Any] = []

    def scalar(*inner: Any) -> Any:
        result = f(*inner)
        if has_aux:
            result, aux = result
            kept[:] = [stripped(aux, running()[-1])]
        is_number = isinstance(result, int | float | complex | np.generic | Active)
        if not is_number and not (isinstance(result, np.ndarray) and result.ndim == 0):
            raise ScalarOutputError("gradient", result)
        result = as_primal(result)
        if np.ndim(result) or np.asarray(bare(result)).dtype.kind == "c":
            raise ScalarOutputError("gradient", result)
        if not isinstance(result, Active) or result.level is not running()[-1]:
            warnings.warn(INDEPENDENT, IndependentOutputWarning, stacklevel=6)
        return result

    args = tuple(map(skeleton, args))
    active = [arg for arg in args if not isinstance(arg, Const)]
    turned: list[Any] | None = None
    if any(as_primal(x).dtype.kind == "c" for arg in active for x in leaves(arg)):
        # Along i for the derivative by the imaginary part; nothing of it stays behind.
        copies = tuple(copied_tree(arg) for arg in args)
        turned = columns(scalar, copies, None, 1j)[1]
    value, blocks = columns(scalar, args, None)

    def delivered(_: Any, x: Any, by_real: Array, by_imag: Any = None) -> Array:
        slope = by_real if by_imag is None else by_real + 1j * by_imag
        dtype = as_primal(x).dtype
        slope = np.real(slope) if dtype.kind != "c" else slope
        return slope if slope.dtype == dtype else slope.astype(dtype)

    slopes = [
        map_trees(
            delivered,
            (arg, block) if turned is None else (arg, block, turned[i]),
        )
        for i, (arg, block) in enumerate(zip(active, blocks, strict=True))
    ]
    if has_aux:
        value = value, kept[0]
    return value, bare_or_tuple(slopes)


def grad(f: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """Return the function that computes the gradient of ``f``: for composing.

    Parameters
    ----------
    f : callable
        Returns one real number.
    argnums : int or tuple of int
        Which arguments are differentiated; the others are constant.

    Returns
    -------
    callable
        With the arguments of ``f``; keyword arguments are constant.

    Examples
    --------
    >>> import dualad as ad
    >>> float(ad.grad(ad.grad(lambda x: x**3))(2.0))
    12.0
    """
    both = value_and_grad(f, argnums)

    @functools.wraps(f)
    def gradient_of_f(*args: Any, **params: Any) -> Any:
        return both(*args, **params)[1]

    return gradient_of_f


def value_and_grad(f: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """Return the function that computes value and gradient: see :func:`grad`."""
    is_one = not isinstance(argnums, tuple | list)
    chosen = (argnums,) if is_one else tuple(argnums)  # type: ignore[arg-type]

    @functools.wraps(f)
    def value_and_gradient_of_f(*args: Any, **params: Any) -> Any:
        places = [checked_place(i, args) for i in chosen]
        wanted = set(places)
        marked = (a if i in wanted else as_const(a) for i, a in enumerate(args))
        value, slopes = value_and_gradient(functools.partial(f, **params), *marked)
        if is_one:
            return value, slopes
        given = sorted(wanted)
        slopes = (slopes,) if len(given) == 1 else slopes
        return value, tuple(slopes[given.index(i)] for i in places)

    return value_and_gradient_of_f


def derivative(f: Function, t: Any) -> Any:
    """Return the derivative of ``f`` at the number ``t``, by forward mode.

    Parameters
    ----------
    f : callable
        Of one number; returns a number, an array or a tree of them.
    t : float or complex
        Where; of a complex ``t`` the derivative is the complex one.

    Returns
    -------
    like the output of ``f``
        df/dt.  Units: [f] / [t].

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> float(ad.derivative(np.sin, 0.0))
    1.0
    """
    if np.ndim(t):
        raise NotDifferentiableError(
            "argument 0", t, "derivative takes one number; use dualad.jacobian(f, x)."
        )
    t_dot = 1.0 if not hasattr(t, "dtype") else t.dtype.type(1)
    return push(f, (t,), (t_dot,))[1]


def jvp(f: Function, primals: Any, tangents: Any) -> tuple[Tree, Tree]:
    """Return the value of ``f`` and its derivative along a direction.

    Parameters
    ----------
    f : callable
        Returns arrays, numbers or trees of them.
    primals : tuple of arguments
        Where; those marked ``Const`` have no tangent.
    tangents : tuple
        The direction: each like its primal, or None for zero.  Not changed, even if
        ``f`` writes into its arguments.

    Returns
    -------
    value, tangent : like the output of ``f``
        In memory of their own.  Units of the tangent: [f] / [x] times [x_dot].

    Raises
    ------
    ShadowMismatchError
        If a tangent does not have the shape of its primal.
    ChangedArrayError
        If ``f`` wrote into an argument's memory without the argument.

    Notes
    -----
    Time: 1.5 to 3 evaluations of ``f``.  Memory: twice that of ``f``.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    >>> ad.jvp(lambda x: x * x, (x,), (v,))
    (array([1., 4.]), array([2., 0.]))
    """
    primals = primals if isinstance(primals, tuple) else (primals,)
    tangents = tangents if isinstance(tangents, tuple) else (tangents,)
    if len(tangents) != len(primals):
        free = [i for i, p in enumerate(primals) if not isinstance(p, Const)]
        if len(tangents) != len(free):
            raise TypeError(
                f"jvp got {len(primals)} primals and {len(tangents)} tangents.\n"
                "Give one tangent for each primal that is not Const."
            )
        placed = dict(zip(free, tangents, strict=True))
        tangents = tuple(placed.get(i) for i in range(len(primals)))
    return push(f, primals, tangents)


def vjp(
    f: Function, *args: Any, check_constants: bool = True
) -> tuple[Tree, Callable[[Tree], Any]]:
    """Return the value of ``f`` and its pullback.

    Parameters
    ----------
    f : callable
        Returns arrays, numbers or trees of them.
    *args : as for :func:`gradient`
        Copied at the call: changing them later does not change the pullback.

    Returns
    -------
    value : like the output of ``f``
        A copy: it may be changed.
    pullback : callable
        Takes a cotangent like the output and returns the contributions to the
        arguments, bare or as a tuple as :func:`gradient` does.  It may be called any
        number of times; each call is independent of the others.

    Raises
    ------
    ChangedArrayError
        By the pullback, if a constant array above 16 KiB was changed since.
        At the call, if ``f`` wrote into an argument's memory without the argument.

    Notes
    -----
    Each pullback costs 1 to 3 evaluations of ``f``.  What ``f`` recorded lives as
    long as the pullback does.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> y, pullback = ad.vjp(np.exp, np.array([0.0, 1.0]))
    >>> pullback(np.array([1.0, 0.0]))
    array([1., 0.])
    """
    recording = Pullback()
    recording.run(f, args, check_constants=check_constants)
    value = recording.value()

    def pullback(cotangent: Tree) -> Any:
        """Return the contributions of a cotangent of the output to the arguments."""
        return bare_or_tuple(recording.pull(cotangent))

    return value, pullback


def jacobian(
    f: Function, *args: Any, mode: str = "auto", chunk: int | None = None
) -> Any:
    """Return the Jacobian of ``f``.

    Parameters
    ----------
    f : callable
        Returns an array, a number or a tree of them.  It runs once for each chunk of
        directions in forward mode, once in reverse mode.
    *args : as for :func:`gradient`
        Real.
    mode : {"auto", "forward", "reverse"}
        Forward works by columns (inputs), reverse by rows (outputs).  ``auto`` takes
        forward for up to 32 inputs, and otherwise what needs fewer directions.
    chunk : int, optional
        How many columns are computed at once in forward mode (at most 32 by default).

    Returns
    -------
    array of shape (*output, *argument), or a tuple of such for several arguments
        For trees, a tree of outputs whose leaves are trees of arguments.
        Units: [f] / [x].

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> ad.jacobian(lambda x: x * x, np.array([1.0, 3.0]))
    array([[2., 0.],
           [0., 6.]])
    """
    check_mode(mode)
    if chunk is not None and operator.index(chunk) < 1:
        raise ValueError(f"chunk is {chunk}.\nGive a positive number of directions.")
    for i, arg in enumerate(args):
        for leaf in [] if isinstance(arg, Const) else leaves(arg):
            if as_primal(leaf).dtype.kind == "c":
                raise NotDifferentiableError(
                    f"argument {i}",
                    leaf,
                    "Use dualad.jvp or dualad.vjp for complex "
                    "arguments: a complex function has no single Jacobian matrix.",
                )
    if mode == "auto":
        size = sum(
            np.size(leaf)
            for arg in args
            if not isinstance(arg, Const)
            for leaf in leaves(arg)
        )
        if size > FEW:
            found = rows(f, args, fewer_than=size)
            if found is not None:
                return bare_or_tuple(found)
        mode = "forward"
    if mode == "reverse":
        return bare_or_tuple(rows(f, args) or [])
    return bare_or_tuple(columns(f, args, chunk)[1])


FEW = 32  # directions that forward mode carries at once


def checked_place(i: Any, args: tuple[Any, ...]) -> int:
    """Return the place of an argument that ``argnums`` names, or raise."""
    place = operator.index(i)
    if not -len(args) <= place < len(args):
        raise ValueError(
            f"argnums names argument {place}, but f was called with {len(args)}.\n"
            f"Give numbers from 0 to {len(args) - 1}; keyword arguments are constant."
        )
    if isinstance(args[place], Const):
        raise TypeError(
            f"argnums names argument {place}, which is marked dualad.Const.\n"
            "Pass it bare, or leave it out of argnums."
        )
    return place % len(args)


def check_mode(mode: str) -> None:
    """Raise unless ``mode`` is one of the three."""
    if mode not in ("auto", "forward", "reverse"):
        raise ValueError(f"mode is {mode!r}.\nGive 'auto', 'forward' or 'reverse'.")


INDEPENDENT = (
    "gradient: the output of f does not depend on its differentiated arguments; the "
    "gradient is zero."
)


def as_const(x: Any) -> Const:
    """Mark an argument constant, once."""
    return x if isinstance(x, Const) else Const(x)


def bare_or_tuple(results: list[Any]) -> Any:
    """Return one result bare, several as a tuple."""
    return results[0] if len(results) == 1 else tuple(results)
