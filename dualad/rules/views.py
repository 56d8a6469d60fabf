"""Views: another way to look at the same memory, and copies and casts of it.

A view of the primal has the same view of the tangent or the shadow, so most of these
need no formula.  Where NumPy had to copy, the interpreters see it and record a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dualad.errors import UnsupportedArgumentError
from dualad.rules.kinds import (
    Array,
    alias,
    composition,
    constant,
    is_complex,
    linear,
    overridable,
    unbroadcast,
)

# --- the same elements in another shape or order ---------------------------------

alias(np.swapaxes, np.transpose, np.moveaxis, np.rollaxis)
alias(np.matrix_transpose, np.linalg.matrix_transpose)
alias(np.squeeze, np.expand_dims, np.reshape)
alias(np.diagonal, np.linalg.diagonal)
alias(np.flip, np.fliplr, np.flipud, np.rot90)


@overridable
def raveled(x: Array, order: Any) -> Array:
    """Return ``np.ravel`` of an array."""
    return np.ravel(x, order)


alias(raveled)


@composition(np.ravel)
def ravel(a: Array, order: Any = "C") -> Array:
    """Look at the elements as one axis, where NumPy does.

    Where it copies, a copy is looked at instead.  In memory order that is the same
    only if each element has memory of its own.
    """
    a = array_of(a)
    if order in ("K", "k") and any(
        stride == 0 and length > 1
        for stride, length in zip(a.strides, np.shape(a), strict=True)
    ):
        raise UnsupportedArgumentError(
            "np.ravel",
            "order",
            order,
            'A broadcast array has no memory order: use order "C" or "F".',
        )
    return raveled(a, order=order)


# --- real and imaginary parts ----------------------------------------------------


@overridable
def real_part(x: Array) -> Array:
    """Return the real part of a complex array."""
    return x.real


@overridable
def imaginary_part(x: Array) -> Array:
    """Return the imaginary part of a complex array."""
    return x.imag


@overridable
def real_number(x: Array) -> Array:
    """Return the real part of a complex scalar."""
    return x.real


@overridable
def imaginary_number(x: Array) -> Array:
    """Return the imaginary part of a complex scalar."""
    return x.imag


@overridable
def imaginary_zeros(x: Array) -> Array:
    """Return the imaginary part of a real array: zeros in memory of their own."""
    return np.imag(x)


alias(real_part, imaginary_part)
linear(real_number, lambda y_bar, y, x: y_bar)
linear(imaginary_number, lambda y_bar, y, x: y_bar * 1j)
constant("the imaginary part of a real array is zero", imaginary_zeros)


def is_array(x: Array) -> bool:
    """Tell an array from a scalar, which has no memory to look at."""
    return hasattr(type(x), "__setitem__")


@composition(np.real)
def real(val: Array) -> Array:
    """Look at the real part; of a real array that is the array itself."""
    if not is_complex(val):
        return val
    return real_part(val) if is_array(val) else real_number(val)


@composition(np.imag)
def imag(val: Array) -> Array:
    """Look at the imaginary part; of a real array it is no view."""
    if not is_complex(val):
        return imaginary_zeros(val)
    return imaginary_part(val) if is_array(val) else imaginary_number(val)


# --- views whose elements share memory -------------------------------------------


def unwindowed(
    view_bar: Array,
    base_shape: tuple[int, ...],
    /,
    window_shape: Any,
    axis: Any = None,
    **_: Any,
) -> Array:
    """Add each window back to where it came from, one window axis after the other."""
    ndim = len(base_shape)
    axes = tuple(range(ndim)) if axis is None else np.atleast_1d(axis).tolist()
    for i in reversed(range(len(axes))):
        view_bar = folded(view_bar, axes[i] % ndim, ndim + i)
    return view_bar


def folded(view_bar: Array, axis: int, window_axis: int) -> Array:
    """Add the slices along the window axis, each shifted by its place in the window."""
    width, ndim = np.shape(view_bar)[window_axis], np.ndim(view_bar)
    total: Any = 0.0
    for i in range(width):
        place: list[Any] = [slice(None)] * ndim
        place[window_axis] = i
        room = [(0, 0)] * (ndim - 1)
        room[axis] = (i, width - 1 - i)
        total = total + np.pad(view_bar[tuple(place)], room)
    return total


alias(
    np.broadcast_to,
    overlaps=True,
    transpose=lambda view_bar, base_shape, /, **_: unbroadcast(view_bar, base_shape),
)
alias(sliding_window_view, overlaps=True, transpose=unwindowed)


@composition(np.broadcast_arrays)
def broadcast_arrays(*args: Array, subok: bool = False) -> tuple[Array, ...]:
    """Broadcast each array to the common shape; one that has it is itself returned."""
    arrays = [array_of(x) for x in args]
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    return tuple(
        x if np.shape(x) == shape else np.broadcast_to(x, shape, subok=subok)
        for x in arrays
    )


def without_box(x: Array) -> Array:
    """Return an array without axes as a scalar, as NumPy's reductions do."""
    return x[()] if np.ndim(x) == 0 and is_array(x) else x


# --- at least so many axes -------------------------------------------------------


def array_of(item: Any) -> Array:
    """Return an array, an active array as it is, or a nested list stacked into one."""
    if hasattr(item, "shape"):
        return item
    if isinstance(item, list | tuple) and item:
        return np.stack([array_of(x) for x in item])
    return np.asarray(item)


def with_axis(x: Array) -> Array:
    """Give a scalar one axis."""
    return np.reshape(x, (1,)) if np.ndim(x) == 0 else x


def with_two_axes(x: Array) -> Array:
    """Give a scalar two axes, and a vector one before its own."""
    x = with_axis(x)
    return x[np.newaxis, :] if np.ndim(x) == 1 else x


def with_three_axes(x: Array) -> Array:
    """Give an array as many axes as :func:`np.atleast_3d` does, where it does."""
    x = with_two_axes(x)
    return x[:, :, np.newaxis] if np.ndim(x) == 2 else x


def one_or_all(results: list[Array]) -> Any:
    """Return one result bare and several as a tuple, as NumPy does."""
    return results[0] if len(results) == 1 else tuple(results)


@composition(np.atleast_1d)
def atleast_1d(*arys: Array) -> Any:
    """Give scalars an axis."""
    return one_or_all([with_axis(array_of(x)) for x in arys])


@composition(np.atleast_2d)
def atleast_2d(*arys: Array) -> Any:
    """Give scalars and vectors axes in front."""
    return one_or_all([with_two_axes(array_of(x)) for x in arys])


@composition(np.atleast_3d)
def atleast_3d(*arys: Array) -> Any:
    """Give scalars, vectors and matrices axes on both sides."""
    return one_or_all([with_three_axes(array_of(x)) for x in arys])


# --- pieces ----------------------------------------------------------------------

# NumPy's own implementations only slice and swap axes: they run on active arrays.
for _function in (np.array_split, np.split, np.hsplit, np.vsplit, np.dsplit):
    composition(_function)(_function.__wrapped__)  # type: ignore[attr-defined]

if hasattr(np, "unstack"):  # NumPy 2.1

    @composition(np.unstack)
    def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
        """Take an array apart along an axis; the pieces of a vector are views too."""
        if np.ndim(x) == 0:
            raise ValueError("Input array must be at least 1-d.")
        return tuple(np.moveaxis(x, axis, 0))


@composition(np.trace)
def trace(
    a: Array,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: Any = None,
) -> Array:
    """Sum the diagonal."""
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@composition(np.linalg.trace)
def linalg_trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sum the diagonal of the last two axes."""
    return np.sum(np.linalg.diagonal(x, offset=offset), axis=-1, dtype=dtype)


@composition(np.ix_)
def ix_(*args: Array) -> tuple[Array, ...]:
    """Give each vector an axis of its own: an open mesh."""
    vectors = [array_of(x) for x in args]
    if any(np.ndim(x) != 1 for x in vectors):
        raise ValueError("Cross index must be 1 dimensional")
    return tuple(
        np.reshape(
            np.nonzero(x)[0] if x.dtype == bool else x,
            (1,) * i + (-1,) + (1,) * (len(vectors) - i - 1),
        )
        for i, x in enumerate(vectors)
    )


# --- copies and casts ------------------------------------------------------------


@overridable
def copied(x: Array, order: Any = "K") -> Array:
    """Return a copy in memory of its own."""
    return np.array(x, order=order, copy=True)


@overridable
def cast(x: Array, dtype: Any) -> Array:
    """Return a copy in another dtype; on the way back ``accumulate`` casts."""
    return x.astype(dtype) if hasattr(x, "astype") else np.asarray(x, dtype)


linear(copied, lambda y_bar, y, x, order="K": y_bar)
linear(np.copy, lambda y_bar, y, a, order="K", subok=False: y_bar)
linear(cast, lambda y_bar, y, x, dtype: y_bar)

if hasattr(np, "unstack"):  # before NumPy 2.1, np.astype takes plain arrays only

    @composition(np.astype)
    def astype(
        x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None
    ) -> Array:
        """Return a copy in another dtype, as the method does."""
        return x.astype(dtype, copy=copy)


# --- what the interpreters call --------------------------------------------------


@overridable
def indexed(x: Array, index: Any) -> Array:
    """Return the view ``x[index]`` of a basic index."""
    return x[index]


@overridable
def reinterpreted(x: Array, dtype: Any) -> Array:
    """Return the same memory as real or as complex numbers of the same width."""
    return x.view(dtype)


alias(indexed, reinterpreted)
