"""Functions of ``np.linalg``: solve, inv and the norms.

Derivations: Giles (2008), "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation"; conjugates for complex numbers throughout.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualad.errors import UnsupportedArgumentError
from dualad.rules.kinds import (
    composition,
    conjugated,
    expanded,
    general,
    is_complex,
    overridable,
    transposed,
)

Array = Any


# --- linear systems ------------------------------------------------------------------
# b is a vector only if it has one axis; then x has one axis per matrix (NumPy 2).


def solve_a_dot(a_dot: Array, x: Array, a: Array, b: Array) -> Array:
    """Push a change of the matrix forward."""  # Giles (2008), section 2.3.1
    if b.ndim == 1:
        return -np.linalg.solve(a, a_dot @ x[..., None])[..., 0]
    return -np.linalg.solve(a, a_dot @ x)


def solve_b_bar(x_bar: Array, x: Array, a: Array, b: Array) -> Array:  # noqa: ARG001 -- a pullback's signature
    """Pull back to the right-hand side."""
    if b.ndim == 1:
        return np.linalg.solve(transposed(a), x_bar[..., None])[..., 0]
    return np.linalg.solve(transposed(a), x_bar)


def solve_a_bar(x_bar: Array, x: Array, a: Array, b: Array) -> Array:
    """Pull back to the matrix."""
    b_bar = solve_b_bar(x_bar, x, a, b)
    if b.ndim == 1:
        return -b_bar[..., :, None] * conjugated(x)[..., None, :]
    return -b_bar @ transposed(x)


general(
    np.linalg.solve,
    pushforwards=(solve_a_dot, lambda b_dot, x, a, b: np.linalg.solve(a, b_dot)),
    pullbacks=(solve_a_bar, solve_b_bar),
)

general(
    np.linalg.inv,  # Giles (2008), section 2.2.3
    pushforwards=(lambda y_dot, y, x: -y @ y_dot @ y,),
    pullbacks=(lambda y_bar, y, x: -transposed(y) @ y_bar @ transposed(y),),
)


# --- norms -----------------------------------------------------------------------------


@overridable
def length(x: Array, ord: Any, axis: Any, keepdims: bool) -> Array:  # noqa: A002, FBT001 -- NumPy's own names
    """Return the p-norm of vectors, the Frobenius norm of matrices."""
    return np.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)


def length_slope(z: Array, x: Array, ord: Any, axis: Any, keepdims: bool) -> Array:  # noqa: A002, FBT001 -- NumPy's own names
    """Return the derivative of :func:`length`, and 0 where it is 0."""
    z = expanded(z, axis, x.ndim, keepdims=keepdims)
    z = np.where(z == 0, math.inf, z)
    if ord in (None, 2, "fro", "f"):
        return x / z
    return np.sign(x) * (np.absolute(x) / z) ** (ord - 1)


def length_dot(x_dot: Array, z: Array, x: Array, **params: Any) -> Array:
    """Push a change of the vectors forward."""
    z_dot = conjugated(length_slope(z, x, **params)) * x_dot
    return np.sum(
        np.real(z_dot) if is_complex(z_dot) else z_dot,
        axis=params["axis"],
        keepdims=params["keepdims"],
    )


def length_bar(z_bar: Array, z: Array, x: Array, **params: Any) -> Array:
    """Pull back to the vectors."""
    z_bar = expanded(z_bar, params["axis"], x.ndim, keepdims=params["keepdims"])
    return z_bar * length_slope(z, x, **params)


general(length, pushforwards=(length_dot,), pullbacks=(length_bar,))


@composition(np.linalg.norm)
def norm(
    x: Array,
    ord: Any = None,  # noqa: A002 -- NumPy's own name
    axis: Any = None,
    keepdims: bool = False,  # noqa: FBT001, FBT002 -- NumPy's own signature
) -> Array:
    """Return the norm of vectors or matrices."""
    if ord is not None and type(ord) is not str:
        ord = plain_order(ord)  # noqa: A001 -- NumPy's own name
    if ord is None and axis is None:
        return length(x, ord=None, axis=None, keepdims=keepdims)
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = axes if isinstance(axes, tuple) else (axes,)
    if len(axes) == 1:
        if is_power(ord, vectors=True):
            return length(x, ord=ord, axis=axis, keepdims=keepdims)
        return vector_norm(x, ord, axes[0], keepdims=keepdims)
    if len(axes) == 2:
        if is_power(ord, vectors=False):
            return length(x, ord=ord, axis=axis, keepdims=keepdims)
        return matrix_norm(x, ord, axes, keepdims=keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def plain_order(ord: Any) -> float:  # noqa: A002 -- NumPy's own name
    """Return the order as a Python number; an active one has no rule."""
    if isinstance(ord, int | float | np.integer | np.floating):
        return int(ord) if ord in (0, 1, 2) else float(ord)
    raise UnsupportedArgumentError(
        "np.linalg.norm",
        "ord",
        ord,
        "Write the norm out: np.sum(np.abs(x) ** p) ** (1 / p).",
    )


def is_power(ord: Any, *, vectors: bool) -> bool:  # noqa: A002 -- NumPy's own name
    """Say whether the norm is a smooth root of a sum of powers: :func:`length`."""
    if vectors:
        return ord is None or (type(ord) is not str and ord not in (0, 1) and math.isfinite(ord))
    return ord in (None, "fro", "f")


def vector_norm(x: Array, ord: Any, axis: int, *, keepdims: bool) -> Array:  # noqa: A002 -- NumPy's own name
    """Return the other norms of vectors along one axis."""
    if ord == math.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return np.min(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum(nonzero(x), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    raise ValueError(f"Invalid norm order {ord!r} for vectors")


def nonzero(x: Array) -> Array:
    """Return 1 where ``x`` is not 0, in the precision of its real part."""
    return np.not_equal(x, 0).astype(np.zeros((), x.dtype).real.dtype)


def matrix_norm(x: Array, ord: Any, axes: tuple[int, ...], *, keepdims: bool) -> Array:  # noqa: A002 -- NumPy's own name
    """Return the other norms of matrices in two axes."""
    if ord in (2, -2, "nuc"):
        raise UnsupportedArgumentError(
            "np.linalg.norm",
            "ord",
            ord,
            "Norms by singular values have no rule yet; 'fro', 1 and np.inf have one.",
        )
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError("Invalid norm order for matrices.")
    rows, columns = axes
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = np.sum(np.abs(x), axis=summed, keepdims=True)
    extreme = np.max if ord > 0 else np.min
    z = extreme(sums, axis=compared, keepdims=True)
    return z if keepdims else np.squeeze(z, axis=axes)


@composition(np.linalg.vector_norm)
def linalg_vector_norm(
    x: Array,
    /,
    *,
    axis: Any = None,
    keepdims: bool = False,
    ord: Any = 2,  # noqa: A002 -- NumPy's own name
) -> Array:
    """Return the norm of the vectors that lie in the given axes."""
    every = tuple(range(x.ndim))
    axes = every if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(a % x.ndim for a in axes)
    rest = tuple(a for a in every if a not in axes)
    count = math.prod(x.shape[a] for a in axes)
    shape = (count, *(x.shape[a] for a in rest))
    vectors = np.reshape(np.transpose(x, axes + rest), shape)
    z = np.linalg.norm(vectors, axis=0, ord=ord)
    if keepdims:
        shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
        return np.reshape(z, shape)
    return z


@composition(np.linalg.matrix_norm)
def linalg_matrix_norm(
    x: Array,
    /,
    *,
    keepdims: bool = False,
    ord: Any = "fro",  # noqa: A002 -- NumPy's own name
) -> Array:
    """Return the norm of the matrices in the last two axes."""
    return np.linalg.norm(x, axis=(-2, -1), keepdims=keepdims, ord=ord)
