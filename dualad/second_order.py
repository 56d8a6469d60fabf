"""Second derivatives: forward mode over reverse mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualad.derivatives import Function, gradient, jacobian, value_and_gradient
from dualad.errors import NotDifferentiableError
from dualad.forward.jvp import push
from dualad.structs import Const, Tree, is_leaf


def hvp(f: Function, x: Any, v: Any) -> Tree:
    r"""Return the product of the Hessian of ``f`` at ``x`` with a direction.

    Computes :math:`\nabla^2 f(x)\,v` by pushing ``v`` through the reverse sweep
    (forward over reverse), without forming the Hessian.

    Parameters
    ----------
    f : callable
        Returns one real number.
    x : array, number or tree of them
        Where; floating.
    v : like ``x``
        The direction; copied, so ``hvp(f, x, x)`` is fine.

    Returns
    -------
    like ``x``
        The product, in new memory.  Units: [f] / [x]^2 times [v].

    Notes
    -----
    Time: 6 to 10 evaluations of ``f``.  Memory: twice that of :func:`gradient`.

    References
    ----------
    Pearlmutter (1994), Neural Computation 6, 147.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    >>> ad.hvp(lambda x: np.sum(x**3), x, v)
    array([6., 0.])
    """
    return push(lambda y: gradient(f, y), (x,), (v,))[1]


def value_gradient_and_hvp(f: Function, x: Any, v: Any) -> tuple[Any, Tree, Tree]:
    """Return value, gradient and Hessian-vector product from one run.

    Parameters
    ----------
    f, x, v
        As for :func:`hvp`.

    Returns
    -------
    value, gradient, product

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> x = np.array([1.0, 2.0])
    >>> value, slope, product = ad.value_gradient_and_hvp(lambda x: x @ x, x, x)
    >>> float(value), slope, product
    (5.0, array([2., 4.]), array([2., 4.]))
    """
    (value, slope), (_, product) = push(lambda y: value_and_gradient(f, y), (x,), (v,))
    return value, slope, product


def hessian(f: Function, *args: Any) -> Any:
    """Return the matrix of second derivatives of a scalar function.

    Parameters
    ----------
    f : callable
        Returns one real number.
    *args : as for :func:`dualad.gradient`
        Real.

    Returns
    -------
    array of shape (*x, *x); for several arguments a tuple of rows of blocks
        For trees, a tree whose leaves are trees.  Units: [f] / [x]^2.

    Notes
    -----
    Forward columns of the gradient, in chunks of directions.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> ad.hessian(lambda x: np.prod(x), np.array([2.0, 3.0]))
    array([[0., 1.],
           [1., 0.]])
    """
    is_const = [isinstance(arg, Const) for arg in args]

    def slope(*inner: Any) -> Any:
        # It captures no argument: f may write into them.
        marked = (Const(x) if c else x for c, x in zip(is_const, inner, strict=True))
        return gradient(f, *marked)

    found = jacobian(slope, *args, mode="forward")
    if is_const.count(False) == 1:
        return found
    # jacobian gives, for each argument, a tuple over the gradient's parts.
    return tuple(zip(*found, strict=True))


def hessian_diagonal(f: Function, x: np.ndarray[Any, Any]) -> Any:
    """Return the diagonal of the Hessian of ``f`` at an array ``x``.

    Parameters
    ----------
    f : callable
        Returns one real number.
    x : array
        Where.

    Returns
    -------
    array like ``x``

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> ad.hessian_diagonal(lambda x: np.sum(x**3), np.array([1.0, 2.0]))
    array([ 6., 12.])
    """
    if not is_leaf(x):
        raise NotDifferentiableError(
            "argument 0", x, "hessian_diagonal takes one array; use dualad.hessian."
        )
    n = np.size(x)
    matrix = np.reshape(hessian(f, x), (n, n))
    return np.reshape(np.diagonal(matrix), np.shape(x)).copy()
