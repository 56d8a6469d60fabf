"""Functions whose result carries no derivative, and why."""

from __future__ import annotations

import numpy as np

from dualad.rules.kinds import constant

constant(
    "a shape, a dtype or a place in memory does not depend on the values",
    np.shape,
    np.size,
    np.ndim,
    np.result_type,
    np.can_cast,
    np.min_scalar_type,
    np.common_type,
    np.iscomplexobj,
    np.isrealobj,
    np.shares_memory,
    np.may_share_memory,
    np.diag_indices_from,
    np.tril_indices_from,
    np.triu_indices_from,
    np.einsum_path,
)
constant(
    "a truth value is piecewise constant",
    np.all,
    np.any,
    np.allclose,
    np.isclose,
    np.array_equal,
    np.array_equiv,
    np.iscomplex,
    np.isreal,
    np.isposinf,
    np.isneginf,
    np.isin,
)
constant(
    "an index or a count is an integer",
    np.argmax,
    np.argmin,
    np.nanargmax,
    np.nanargmin,
    np.argsort,
    np.argpartition,
    np.argwhere,
    np.lexsort,
    np.nonzero,
    np.flatnonzero,
    np.count_nonzero,
    np.searchsorted,
    np.digitize,
    np.unravel_index,
    np.ravel_multi_index,
    np.packbits,
    np.unpackbits,
    np.linalg.matrix_rank,
)
constant(
    "rounding is piecewise constant",
    np.round,
    np.around,
    np.fix,
)
constant(
    "a text is for people to read",
    np.array2string,
    np.array_repr,
    np.array_str,
)
