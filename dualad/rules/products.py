"""Products of arrays: matmul, dot, inner, outer, tensordot, einsum and their kin.

All are linear in each factor.  Formulas may leave the axes along which a factor was
broadcast in place: ``accumulate`` sums them.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dualad.errors import UnsupportedArgumentError
from dualad.rules.kinds import (
    Scatter,
    alias,
    composition,
    conjugated,
    multilinear,
    overridable,
    transposed,
)

Array = Any
Axes = Sequence[int]


# --- matmul -----------------------------------------------------------------------


def matmul_left(z_bar: Array, z: Array, x: Array, y: Array) -> Array:
    """Pull back through ``x @ y`` to ``x``."""
    if x.ndim == 1 == y.ndim:
        return z_bar * conjugated(y)
    if y.ndim == 1:
        return z_bar[..., None] * conjugated(y)
    if x.ndim == 1:
        return applied(conjugated(y), z_bar)
    if x.ndim == 2 < y.ndim:  # one matrix met many: one product, not many and a sum
        summed = (*range(y.ndim - 2), y.ndim - 1)
        return np.tensordot(z_bar, conjugated(y), (summed, summed))
    return z_bar @ transposed(y)


def matmul_right(z_bar: Array, z: Array, x: Array, y: Array) -> Array:
    """Pull back through ``x @ y`` to ``y``."""
    if x.ndim == 1 == y.ndim:
        return z_bar * conjugated(x)
    if x.ndim == 1:
        return conjugated(x)[..., None] * z_bar[..., None, :]
    if y.ndim == 1:
        return applied(transposed(x), z_bar)
    if y.ndim == 2 < x.ndim:
        summed = tuple(range(x.ndim - 1))
        return np.tensordot(conjugated(x), z_bar, (summed, summed))
    return transposed(x) @ z_bar


def applied(matrix: Array, vector: Array) -> Array:
    """Return the product of matrices with vectors, both possibly stacked."""
    if matrix.ndim == 2:
        return matrix @ vector
    return np.matmul(matrix, vector[..., None])[..., 0]


multilinear(np.matmul, matmul_left, matmul_right)


# --- contractions: dot, inner, tensordot ------------------------------------------


def contraction_left(
    z_bar: Array, x: Array, y: Array, x_axes: Axes, y_axes: Axes
) -> Array:
    """Pull back to ``x`` through the sum over pairs of axes of ``x`` and ``y``."""
    x_axes, y_axes = modulo(x_axes, axes_of(x)), modulo(y_axes, axes_of(y))
    x_free, y_free = others(x_axes, axes_of(x)), others(y_axes, axes_of(y))
    last = range(len(x_free), len(x_free) + len(y_free))
    x_bar = np.tensordot(z_bar, conjugated(y), (tuple(last), tuple(y_free)))
    # The contracted axes of y come in ascending order, not in that of x_axes.
    order = x_free + [x_axes[y_axes.index(axis)] for axis in sorted(y_axes)]
    return np.transpose(x_bar, inverted(order))


def contraction_right(
    z_bar: Array, x: Array, y: Array, x_axes: Axes, y_axes: Axes
) -> Array:
    """Pull back to ``y`` through the sum over pairs of axes of ``x`` and ``y``."""
    x_axes, y_axes = modulo(x_axes, axes_of(x)), modulo(y_axes, axes_of(y))
    x_free, y_free = others(x_axes, axes_of(x)), others(y_axes, axes_of(y))
    first = range(len(x_free))
    y_bar = np.tensordot(conjugated(x), z_bar, (tuple(x_free), tuple(first)))
    order = [y_axes[x_axes.index(axis)] for axis in sorted(x_axes)] + y_free
    return np.transpose(y_bar, inverted(order))


def axes_of(x: Array) -> int:
    """Return the number of axes; Python numbers have none."""
    return getattr(x, "ndim", 0)  # np.ndim would dispatch


def modulo(axes: Axes, ndim: int) -> list[int]:
    """Count negative axes from the front."""
    return [int(axis) % ndim for axis in axes]


def others(axes: Axes, ndim: int) -> list[int]:
    """Return the axes that are not among ``axes``, in order."""
    return [axis for axis in range(ndim) if axis not in axes]


def inverted(order: Axes) -> tuple[int, ...]:
    """Return the inverse of a permutation."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def dot_axes(y: Array) -> tuple[Axes, Axes]:
    """Return the axes over which ``np.dot`` sums."""
    return (-1,), (max(axes_of(y) - 2, 0),)


def dot_left(z_bar: Array, z: Array, x: Array, y: Array) -> Array:
    """Pull back through ``np.dot`` to ``x``."""
    if axes_of(x) == 0 or axes_of(y) == 0:
        return z_bar * conjugated(y)
    if axes_of(x) <= 2 and axes_of(y) <= 2:
        return matmul_left(z_bar, z, x, y)
    return contraction_left(z_bar, x, y, *dot_axes(y))


def dot_right(z_bar: Array, z: Array, x: Array, y: Array) -> Array:
    """Pull back through ``np.dot`` to ``y``."""
    if axes_of(x) == 0 or axes_of(y) == 0:
        return z_bar * conjugated(x)
    if axes_of(x) <= 2 and axes_of(y) <= 2:
        return matmul_right(z_bar, z, x, y)
    return contraction_right(z_bar, x, y, *dot_axes(y))


def inner_left(z_bar: Array, z: Array, x: Array, y: Array) -> Array:
    """Pull back through ``np.inner`` to ``x``."""
    if axes_of(x) == 0 or axes_of(y) == 0:
        return z_bar * conjugated(y)
    return contraction_left(z_bar, x, y, (-1,), (-1,))


def inner_right(z_bar: Array, z: Array, x: Array, y: Array) -> Array:
    """Pull back through ``np.inner`` to ``y``."""
    if axes_of(x) == 0 or axes_of(y) == 0:
        return z_bar * conjugated(x)
    return contraction_right(z_bar, x, y, (-1,), (-1,))


def tensordot_axes(x: Array, axes: Any) -> tuple[Axes, Axes]:
    """Return the pairs of axes that ``axes`` of ``np.tensordot`` means."""
    if np.ndim(axes) == 0:
        return range(axes_of(x) - axes, axes_of(x)), range(axes)
    x_axes, y_axes = axes
    return np.atleast_1d(x_axes).tolist(), np.atleast_1d(y_axes).tolist()


def tensordot_left(
    z_bar: Array,
    z: Array,
    x: Array,
    y: Array,
    axes: Any = 2,
) -> Array:
    """Pull back through ``np.tensordot`` to ``x``."""
    return contraction_left(z_bar, x, y, *tensordot_axes(x, axes))


def tensordot_right(
    z_bar: Array,
    z: Array,
    x: Array,
    y: Array,
    axes: Any = 2,
) -> Array:
    """Pull back through ``np.tensordot`` to ``y``."""
    return contraction_right(z_bar, x, y, *tensordot_axes(x, axes))


def flat(x: Array) -> Array:
    """Return the elements in C order as a vector."""
    return np.reshape(x, -1)


# fmt: off
multilinear(np.dot,       dot_left,       dot_right)
multilinear(np.inner,     inner_left,     inner_right)
multilinear(np.tensordot, tensordot_left, tensordot_right)
multilinear(np.outer,
            lambda z_bar, z, x, y: np.reshape(z_bar @ conjugated(flat(y)), np.shape(x)),
            lambda z_bar, z, x, y: np.reshape(conjugated(flat(x)) @ z_bar, np.shape(y)))
# vdot and vecdot conjugate their first factor, vecmat its vector.
multilinear(np.vdot,
            lambda z_bar, z, x, y: np.reshape(conjugated(z_bar) * flat(y), np.shape(x)),
            lambda z_bar, z, x, y: np.reshape(z_bar * flat(x), np.shape(y)))
multilinear(np.vecdot,
            lambda z_bar, z, x, y: np.expand_dims(conjugated(z_bar), -1) * y,
            lambda z_bar, z, x, y: np.expand_dims(z_bar, -1) * x)
if hasattr(np, "matvec"):  # NumPy 2.2
    multilinear(np.matvec,
                lambda z_bar, z, x, y: z_bar[..., None] * conjugated(y[..., None, :]),
                lambda z_bar, z, x, y: np.matvec(transposed(x), z_bar))
    multilinear(np.vecmat,
                lambda z_bar, z, x, y: np.matvec(y, conjugated(z_bar)),
                lambda z_bar, z, x, y: x[..., None] * z_bar[..., None, :])
# fmt: on


# --- einsum -----------------------------------------------------------------------


@overridable
def indexed_product(
    *operands: Array, terms: tuple[str, ...], result: str, **options: Any
) -> Array:
    """Return ``np.einsum`` with one explicit term of letters per operand."""
    return np.einsum(f"{','.join(terms)}->{result}", *operands, **options)


def pull_indexed_product(
    z_bar: Array,
    position: int,
    z: Array,
    operands: tuple[Array, ...],
    *,
    terms: tuple[str, ...],
    result: str,
    **options: Any,
) -> Array | Scatter:
    """Pull back to one operand: the product of the cotangent with all the others."""
    term, x = terms[position], operands[position]
    letters = "".join(dict.fromkeys(term))
    sizes = dict(zip(term, np.shape(x), strict=True))
    rest = [i for i in range(len(terms)) if i != position]
    known = set(result).union(*(terms[i] for i in rest))
    # A letter of length 1 was broadcast against longer ones: leaving it out sums.
    kept = "".join(c for c in letters if c in known and sizes[c] != 1)
    x_bar = np.einsum(
        f"{','.join([result, *(terms[i] for i in rest)])}->{kept}",
        z_bar,
        *(conjugated(operands[i]) for i in rest),
        optimize=options.get("optimize", False) is not False,
    )
    missing = tuple(i for i, c in enumerate(letters) if c not in kept)
    x_bar = np.expand_dims(x_bar, missing)
    x_bar = np.broadcast_to(x_bar, tuple(sizes[c] for c in letters))
    return x_bar if letters == term else on_diagonal(x_bar, letters, term)


def on_diagonal(x_bar: Array, letters: str, term: str) -> Scatter:
    """Return what lands where all axes with the same letter have the same index."""
    index = np.ix_(*(np.arange(n) for n in np.shape(x_bar)))
    place = dict(zip(letters, index, strict=True))
    return Scatter(tuple(place[c] for c in term), x_bar, unique=True)


@overridable
def indexed_view(x: Array, *, term: str, result: str) -> Array:
    """Return ``np.einsum`` of one operand where nothing is summed: a view."""
    return np.einsum(f"{term}->{result}", x)


multilinear(indexed_product, pull_indexed_product, variadic=True)
alias(indexed_view)

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@composition(np.einsum)
def einsum(*operands: Any, optimize: Any = False, **options: Any) -> Array:
    """Bring both forms of the call into the one with explicit terms."""
    for keyword in ("dtype", "casting"):
        if keyword in options:
            raise UnsupportedArgumentError(
                "np.einsum",
                keyword,
                options[keyword],
                "Cast the operands instead: x.astype(dtype).",
            )
    subscripts, arrays = canonical_form(operands)
    arrays = [x if hasattr(x, "dtype") else np.asarray(x) for x in arrays]
    terms, result = explicit_terms(subscripts, tuple(x.ndim for x in arrays))
    if len(arrays) == 1 and result and set(terms[0]) == set(result):
        return indexed_view(arrays[0], term=terms[0], result=result)
    return indexed_product(
        *arrays, terms=terms, result=result, optimize=optimize, **options
    )


def canonical_form(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Return the subscripts as text and the arrays, from either form of the call."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    pairs = len(operands) // 2
    subscripts = ",".join(lettered(operands[2 * i + 1]) for i in range(pairs))
    if len(operands) % 2:
        subscripts += f"->{lettered(operands[-1])}"
    return subscripts, list(operands[: 2 * pairs : 2])


def lettered(labels: Iterable[Any]) -> str:
    """Return a list of whole numbers and ``Ellipsis`` as letters in the same order."""
    return "".join("..." if i is Ellipsis else LETTERS[i] for i in labels)


@functools.lru_cache(maxsize=1024)
def explicit_terms(
    subscripts: str, ndims: tuple[int, ...]
) -> tuple[tuple[str, ...], str]:
    """Return a term of plain letters per operand, and the term of the result."""
    inputs, arrow, result = subscripts.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ndims):
        raise ValueError(
            f"np.einsum got {len(terms)} subscripts for {len(ndims)} operands"
        )
    if not arrow:
        result = implicit_result(terms)
    # Axes under an ellipsis are counted from its right end, as in broadcasting.
    unused = [c for c in LETTERS if c not in subscripts]
    lengths = [n - len(t.replace("...", "")) for t, n in zip(terms, ndims, strict=True)]
    spares = [n if "..." in t else 0 for t, n in zip(terms, lengths, strict=True)]
    if lengths != spares or min(spares) < 0:
        raise ValueError(
            f"np.einsum: the subscripts {subscripts!r} do not fit operands with "
            f"{', '.join(map(str, ndims))} axes"
        )
    hidden = "".join(unused[: max(spares)])
    if hidden and "..." not in result:
        raise ValueError(
            f"np.einsum: the result of {subscripts!r} has no place for the axes under "
            "the ellipsis"
        )
    named = [
        t.replace("...", hidden[len(hidden) - n :])
        for t, n in zip(terms, spares, strict=True)
    ]
    return tuple(named), result.replace("...", hidden)


def implicit_result(terms: list[str]) -> str:
    """Return the letters that occur once, in alphabetical order."""
    counts = Counter("".join(terms).replace(".", ""))
    once = "".join(sorted(c for c, n in counts.items() if n == 1))
    return ("..." if any("..." in t for t in terms) else "") + once


# --- the same under the names of np.linalg ----------------------------------------


@composition(np.linalg.matmul)
def linalg_matmul(x1: Array, x2: Array, /) -> Array:
    """Return ``x1 @ x2``."""
    return np.matmul(x1, x2)


@composition(np.linalg.outer)
def linalg_outer(x1: Array, x2: Array, /) -> Array:
    """Return the outer product of two vectors."""
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError(
            "Input arrays must be one-dimensional, but they are "
            f"x1.ndim={np.ndim(x1)} and x2.ndim={np.ndim(x2)}."
        )
    return np.outer(x1, x2)


@composition(np.linalg.tensordot)
def linalg_tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """Return the sum over pairs of axes."""
    return np.tensordot(x1, x2, axes=axes)


@composition(np.linalg.vecdot)
def linalg_vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the dot products of vectors along an axis."""
    if operator.index(axis) != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    return np.vecdot(x1, x2)


@composition(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Array]) -> Array:
    """Return the product of matrices, multiplied in the cheapest order."""
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(arrays) == 2:
        return np.dot(*arrays)
    first, *middle, last = arrays
    if len(np.shape(first)) == 1:
        first = np.reshape(first, (1, -1))
    if len(np.shape(last)) == 1:
        last = np.reshape(last, (-1, 1))
    chain = [first, *middle, last]
    for x in chain:
        if len(np.shape(x)) != 2:
            raise np.linalg.LinAlgError(
                f"{len(np.shape(x))}-dimensional array given. "
                "Array must be two-dimensional"
            )
    product = chain_product(chain)
    shape = np.shape(arrays[0])[:-1] + np.shape(arrays[-1])[1:]
    return np.reshape(product, shape) if shape else product[0, 0]


def chain_product(chain: list[Array]) -> Array:
    """Multiply matrices in the cheapest order."""
    if len(chain) == 1:
        return chain[0]
    sizes = (np.shape(chain[0])[0], *(np.shape(x)[1] for x in chain))
    _, split = cheapest(sizes)
    return np.dot(chain_product(chain[:split]), chain_product(chain[split:]))


@functools.lru_cache(maxsize=1024)
def cheapest(sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the cost of a chain of matrices and where to split it.

    Cormen et al., "Introduction to Algorithms", matrix-chain multiplication.
    """
    if len(sizes) == 2:
        return 0, 0
    return min(
        (
            cheapest(sizes[: split + 1])[0]
            + cheapest(sizes[split:])[0]
            + sizes[0] * sizes[split] * sizes[-1],
            split,
        )
        for split in range(1, len(sizes) - 1)
    )
