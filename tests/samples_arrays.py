"""Sample arguments for the rules that shape, move, reduce, join and order arrays.

``SAMPLES[function]`` lists pairs ``(args, params)``, and so do the parts of it that
are named like the tables of rules.  Floating arrays among the arguments are
differentiated, everything else is constant.  No two entries of an array are equal, so
that extremes and orders are smooth; ties and kinks have tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.versions import NUMPY

Sample = tuple[tuple[Any, ...], dict[str, Any]]

rng = np.random.default_rng(20)


def real(*shape: int) -> np.ndarray:
    """Return distinct numbers between -2 and 2, away from zero, in random order."""
    count = int(np.prod(shape))
    values = np.linspace(0.3, 2.0, count) * np.where(np.arange(count) % 3, 1.0, -1.0)
    return rng.permutation(values).reshape(shape)


def complexes(*shape: int) -> np.ndarray:
    """Return complex numbers without ties."""
    return real(*shape) + 1j * real(*shape)


def sample(*args: Any, **params: Any) -> Sample:
    """Write a call as it looks."""
    return args, params


x3, x4, x6 = real(3), real(4), real(6)
x23, x34, x43 = real(2, 3), real(3, 4), real(4, 3)
x234 = real(2, 3, 4)
z3, z23 = complexes(3), complexes(2, 3)
mask3 = np.array([True, False, True])
mask23 = np.array([[True, False, True], [False, True, True]])
with_zero = np.array([[1.5, 0.0, -0.5, 2.0], [0.0, 0.5, 0.0, 1.0]])
with_nan = np.array([[1.5, np.nan, -0.5], [0.25, 0.5, np.nan]])

Samples = dict[Callable[..., Any], list[Sample]]

VIEWS: Samples = {
    np.swapaxes: [sample(x234, 0, 2), sample(x23, axis1=-1, axis2=0)],
    np.transpose: [sample(x234), sample(x234, (1, 2, 0)), sample(z23)],
    np.moveaxis: [sample(x234, 0, -1), sample(x234, (0, 1), (2, 0))],
    np.rollaxis: [sample(x234, -1), sample(x234, 0, 3)],
    np.matrix_transpose: [sample(x234)],
    np.linalg.matrix_transpose: [sample(x234)],
    np.squeeze: [sample(real(1, 3, 1)), sample(real(1, 3, 1), axis=2)],
    np.expand_dims: [sample(x23, 1), sample(x23, (0, -1))],
    np.reshape: [
        sample(x234, (6, 4)),
        sample(x234, (4, -1), order="F"),
        sample(x234.T, -1),
        sample(x234.T, (3, 8), order="A"),
    ],
    np.ravel: [
        sample(x234),
        sample(x234.T),
        sample(x234, order="F"),
        sample(x23.T, "K"),
    ],
    np.diagonal: [sample(x34), sample(x34, 1), sample(x234, -1, 1, 2)],
    np.linalg.diagonal: [sample(x234, offset=1)],
    np.flip: [sample(x234), sample(x234, 1), sample(x234, axis=(0, -1))],
    np.fliplr: [sample(x23)],
    np.flipud: [sample(x23)],
    np.rot90: [sample(x234, k, axes) for k in range(4) for axes in ((0, 1), (2, 1))],
    np.real: [sample(x23), sample(z23)],
    np.imag: [sample(z23)],
    np.broadcast_to: [
        sample(x3, (2, 3)),
        sample(real(2, 1, 3), (4, 2, 5, 3)),
        sample(real(), (2, 3)),
        sample(x3, shape=(3,)),
    ],
    sliding_window_view: [
        sample(x6, 3),
        sample(x34, (2, 3)),
        sample(x234, 2, axis=-1),
        sample(x34, (2, 2), axis=(1, 1)),
        sample(x234, (2, 3), axis=(2, 1)),
    ],
    np.broadcast_arrays: [sample(x3, real(2, 1)), sample(x3, x3 + 1.0)],
    np.atleast_1d: [sample(real()), sample(x3), sample(real(), x23)],
    np.atleast_2d: [sample(real()), sample(x3), sample(x23), sample(x3, real())],
    np.atleast_3d: [
        sample(real()),
        sample(x3),
        sample(x23),
        sample(x234),
        sample(x3, x23),
    ],
    np.array_split: [sample(real(7), 3), sample(x234, [1, 2], axis=2)],
    np.split: [sample(x6, 3), sample(x234, 2, axis=-1)],
    np.hsplit: [sample(x34, 2), sample(x6, [2])],
    np.vsplit: [sample(x43, 2)],
    np.dsplit: [sample(x234, 2)],
    np.trace: [sample(x34), sample(x34, -1), sample(x234, offset=1, axis1=1, axis2=2)],
    np.linalg.trace: [sample(x234, offset=-1)],
    np.copy: [sample(x23), sample(x23.T, "F"), sample(z3)],
}

REDUCTIONS: Samples = {
    np.sum: [
        sample(x234),
        sample(x234, 1),
        sample(x234, axis=(0, -1), keepdims=True),
        sample(x234, axis=()),
        sample(x23, axis=1, initial=2.5),
        sample(x23, axis=0, where=mask23),
        sample(x23, where=mask3, initial=1.0),
        sample(z23, axis=0),
    ],
    np.mean: [
        sample(x234),
        sample(x234, -1),
        sample(x234, axis=(0, 2), keepdims=True),
        sample(x23, axis=1, where=mask23),
        sample(z23, 1),
    ],
    np.average: [
        sample(x23),
        sample(x23, 0),
        sample(x23, 1, np.array([1.0, 2.0, 4.5])),
        sample(x23, weights=np.arange(1.0, 7.0).reshape(2, 3)),
        sample(x234, (2, 1), np.arange(1.0, 13.0).reshape(4, 3), keepdims=True),
    ],
    np.var: [
        sample(x234),
        sample(x234, 1),
        sample(x234, axis=(0, 2), ddof=1, keepdims=True),
        sample(x23, axis=1, where=mask23),
        sample(x23, 1, mean=np.array([[0.5], [0.25]])),
        sample(x23, axis=0, correction=1),
        sample(z23, 1),
    ],
    np.std: [
        sample(x234),
        sample(x234, axis=(0, 2), ddof=1, keepdims=True),
        sample(x23, axis=1, where=mask23),
        sample(z23, 1),
    ],
    np.prod: [
        sample(x234, 1),
        sample(x34),
        sample(with_zero, 1),
        sample(with_zero.T, axis=0, keepdims=True),
        sample(x234, axis=(0, -1)),
        sample(x23, axis=1, where=mask23, initial=1.5),
        sample(z23, 1),
    ],
    np.ptp: [sample(x23), sample(x23, 1), sample(x23, axis=0, keepdims=True)],
    np.max: [
        sample(x234),
        sample(x234, 1),
        sample(x234, axis=(0, -1), keepdims=True),
        sample(x23, axis=1, initial=0.45),
        sample(x23, axis=1, where=mask23, initial=-9.0),
        sample(x3, axis=()),
    ],
    np.min: [
        sample(x234),
        sample(x234, axis=(0, -1), keepdims=True),
        sample(x23, axis=1, where=mask23, initial=0.0),
    ],
}

ACCUMULATIONS: Samples = {
    np.cumsum: [sample(x234), sample(x234, 1), sample(x23, axis=-1), sample(z3)],
    np.cumprod: [
        sample(x6),
        sample(x234, 1),
        sample(x23),
        sample(with_zero, axis=1),
        sample(z3),
    ],
    np.diff: [
        sample(x6),
        sample(x234, 2, 1),
        sample(x23, axis=0),
        sample(x23, prepend=0.5, append=x23),
    ],
    np.ediff1d: [sample(x23), sample(x3, to_end=1.0, to_begin=[2.0, 3.0])],
    np.trapezoid: [
        sample(x23),
        sample(x23, x3),
        sample(x23, dx=0.5, axis=0),
        sample(x43, dx=x34[:, :1], axis=0),
        sample(x43, x43 * x43, axis=0),
    ],
}

NANS: Samples = {
    np.nansum: [
        sample(x23, 1),
        sample(with_nan),
        sample(with_nan, axis=0, keepdims=True),
    ],
    np.nanprod: [sample(x23, 1), sample(with_nan, axis=0)],
    np.nancumsum: [sample(x23, 1), sample(with_nan)],
    np.nancumprod: [sample(x23, 1), sample(with_nan, axis=1)],
    np.nanmean: [sample(x23, 1), sample(with_nan), sample(with_nan, axis=1)],
    np.nanvar: [sample(x23, 1), sample(with_nan), sample(with_nan, axis=1, ddof=1)],
    np.nanstd: [sample(x23, 1), sample(with_nan), sample(with_nan, axis=1)],
    np.nanmax: [sample(x23, 1), sample(with_nan), sample(with_nan, axis=1)],
    np.nanmin: [sample(x23, 1), sample(with_nan), sample(with_nan, axis=0)],
}

JOINING: Samples = {
    np.concatenate: [
        sample([x3, x4]),
        sample([x23, real(1, 3), np.ones((2, 3))]),
        sample((x234, real(2, 1, 4)), axis=-2),
        sample([x23, x4], axis=None),
        sample([z3, x4]),
    ],
    np.stack: [sample([x3, x3 + 1.0]), sample([x23, -x23, np.ones((2, 3))], axis=-1)],
    np.vstack: [sample([x3, x23]), sample((x3, x3 + 1.0))],
    np.hstack: [sample([x3, x4]), sample([x23, real(2, 1)])],
    np.dstack: [sample([x3, x3 + 1.0]), sample([x23, real(2, 3, 2)])],
    np.column_stack: [sample([x3, x34, x3 + 1.0])],
    np.append: [sample(x23, x4), sample(x23, real(1, 3), axis=0)],
    np.block: [sample([[x23, real(2, 1)], [real(1, 3), real(1, 1)]]), sample([x3, x4])],
    np.meshgrid: [
        sample(x3, x4),
        sample(x3, x4, real(2), indexing="ij"),
        sample(x3, x4, sparse=True),
        sample(x3, x4, copy=False),
    ],
}

INDEXING: Samples = {
    np.take: [
        sample(x6, [0, 2, 2, -1]),
        sample(x34, np.array([[1, 1], [0, -1]]), axis=1),
        sample(x34, 2, axis=0),
        sample(x34, np.array([5, 11])),
        sample(x6, [-7, 8, 2], mode="wrap"),
        sample(x6, [-7, 8, 2], mode="clip"),
    ],
    np.take_along_axis: [
        sample(x34, np.array([[0, 0, 1], [3, 2, 2], [1, 1, 1]]), axis=1),
        sample(x34, np.array([[2, 0, 1, 1]]), 0),
        sample(x34, np.array([5, 5, 11]), None),
    ],
    np.repeat: [
        sample(x3, 2),
        sample(x34, 3, axis=1),
        sample(x34, [2, 0, 1], axis=0),
        sample(x23, [1, 2, 0, 3, 1, 1]),
        sample(x34, np.array([2, 0, 1, 1]), axis=-1),
    ],
    np.compress: [sample([False, True], x34, axis=0), sample([True, False, True], x34)],
    np.extract: [sample(mask23, x23)],
    np.delete: [
        sample(x6, [0, -1]),
        sample(x34, 1, axis=0),
        sample(x34, slice(0, 3, 2), 1),
    ],
    np.insert: [
        sample(x6, 2, 5.0),
        sample(x34, [0, 2], real(3, 2), axis=1),
        sample(x34, 1, x4, axis=0),
        sample(x23, [1, 1], x3[:2]),
    ],
    np.resize: [sample(x23, (3, 5)), sample(x6, 4)],
    np.where: [
        sample(mask23, x23, x3),
        sample(mask3, x23, 0.5),
        sample(mask23, 2.0, x23),
        sample(mask23, z23, x23),
    ],
    np.clip: [
        sample(x23, -0.8, 1.3),
        sample(x23, real(3) - 1.5, None),
        sample(x23, None, 0.7 * real(2, 1)),
        sample(x23, 1.0, -1.0),
    ],
    np.select: [sample([x6 > 1.0, x6 > 0.5], [x6 * 2.0, x6 + 1.0], 0.25)],
    np.choose: [sample(np.array([0, 1, 1]), [x3, x23]), sample(1, [x3, x3 + 1.0])],
    np.ix_: [sample(x3), sample(x3, x6)],
    np.tril: [sample(x34), sample(x234, -1), sample(x3)],
    np.triu: [sample(x34, 1), sample(x234), sample(x3, k=-1)],
    np.diag: [sample(x3), sample(x3, -1), sample(x34, 1)],
    np.diagflat: [sample(x23), sample(x3, 1)],
    np.roll: [
        sample(x6, 2),
        sample(x23, -1),
        sample(x234, (1, -2), axis=(0, 2)),
        sample(x234, 1, axis=(0, 1)),
        sample(x23, (1, 2)),
    ],
    np.tile: [
        sample(x3, 2),
        sample(x23, (2, 1, 3)),
        sample(x234, 2),
        sample(real(), (2,)),
    ],
    np.pad: [
        sample(x3, 2),
        sample(x23, ((1, 0), (0, 2))),
        sample(x23, ((1, 2),), constant_values=3.0),
        sample(x23, [(1,), (2,)], mode="edge"),
        sample(x23, 1, mode="reflect"),
        sample(x23, (3, 1), mode="symmetric"),
        sample(x23, 4, mode="wrap"),
    ],
}

ORDERING: Samples = {
    np.sort: [
        sample(x6),
        sample(x234, 1),
        sample(x23, axis=None),
        sample(x23, stable=True),
        sample(x23, kind="heapsort"),
        sample(z3),
    ],
    np.partition: [sample(x6, 2), sample(x34, (0, 2), axis=0)],
    np.median: [
        sample(x6),
        sample(x23, 1),
        sample(x234, axis=(0, 2), keepdims=True),
        sample(x34, 0),
    ],
}
if hasattr(np, "unstack"):  # NumPy 2.1
    VIEWS[np.reshape].append(sample(x234.T, shape=(3, 8), order="A"))
    VIEWS |= {
        np.unstack: [sample(x3), sample(x234, axis=1)],
        np.astype: [sample(x23, np.float64)],
    }
    ACCUMULATIONS |= {
        np.cumulative_sum: [sample(x3), sample(x23, axis=1, include_initial=True)],
        np.cumulative_prod: [sample(x3), sample(x23, axis=-2, include_initial=True)],
    }

if NUMPY >= "2.5.0":
    ORDERING[np.sort] += [
        sample(x6, descending=True),
        sample(x234, 1, descending=True, stable=True),
        sample(x23, axis=None, descending=False),
        sample(x23, kind="heapsort", descending=None),
        sample(z3, descending=True),
    ]

SAMPLES: Samples = {
    **VIEWS,
    **REDUCTIONS,
    **ACCUMULATIONS,
    **NANS,
    **JOINING,
    **INDEXING,
    **ORDERING,
}


def cases(samples: Samples) -> list[Any]:
    """Return samples as parameters of a test: function, args, params."""
    return [
        pytest.param(function, *call, id=f"{function.__name__}-{i}")
        for function, calls in samples.items()
        for i, call in enumerate(calls)
    ]
