"""Sample arguments of every function that has a rule, where it is smooth.

``SAMPLES`` maps a function to calls ``(args, params)``; the battery
:func:`dualad.testing.check_rule` runs on each.  Functions of arrays (views,
reductions, joining, indexing, sorting) are in ``samples_arrays``.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from dualad.rules import elementwise, linalg, products
from dualad.rules.kinds import name_of
from tests.samples_arrays import SAMPLES as ARRAYS

Call = tuple[tuple[Any, ...], dict[str, Any]]
Samples = dict[Any, list[Call]]

# Each sign, no ties, a distance from the kinks at 0 and at whole numbers.
REAL = np.array([[0.6, -1.3, 1.7], [-0.45, 2.4, -2.2]])
POSITIVE = np.array([[0.6, 1.3, 1.7], [0.45, 2.4, 2.2]])
INSIDE = np.array([[0.6, -0.35, 0.72], [-0.45, 0.25, -0.55]])  # between -1 and 1
ABOVE_ONE = 1.0 + POSITIVE
ROW = np.array([1.4, 0.55, -1.9])
POSITIVE_ROW = np.array([1.4, 0.55, 1.9])
COLUMN = np.array([[0.8], [-1.5]])
COMPLEX = REAL + 1j * np.array([[0.5, 0.9, -1.2], [1.4, -0.7, 0.3]])
QUOTIENT = np.array([[0.5, -1.5, 1.45], [-0.5, 0.55, -1.4]])
DIVISOR = np.array([[2.4, 2.5, 3.0], [2.8, 2.6, -2.5]])
WHOLE = np.array([[2, 3, 1], [1, 2, 4]])

SQUARE = np.array([[2.1, 0.3, -0.4], [0.5, -1.8, 0.6], [0.2, 0.7, 2.6]])
STACK = np.stack([SQUARE, SQUARE.T + 0.1, 1.3 * SQUARE])
RIGHT = np.array([[0.4, -1.1], [1.2, 0.3], [-0.6, 0.9]])


def unary(*names: str, x: Any) -> Samples:
    """Return the samples of functions of one array."""
    return {getattr(np, name): [((x,), {})] for name in names}


def binary(*names: str, x: Any, y: Any, z: Any = ROW) -> Samples:
    """Return samples with equal shapes, with broadcasting, and with a number."""
    calls: list[Call] = [
        ((x, y), {}),
        ((x, z), {}),
        ((z[:, None] + 0.12, z), {}),
        ((x, 2.0), {}),
        ((1.5, x), {}),
    ]
    return {getattr(np, name): calls for name in names}


ELEMENTWISE: Samples = {
    **unary(
        "positive",
        "negative",
        "square",
        "exp",
        "exp2",
        "expm1",
        "sin",
        "cos",
        "tan",
        "arctan",
        "radians",
        "deg2rad",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "fabs",
        "absolute",
        "conjugate",
        "sign",
        "angle",
        "modf",
        "frexp",
        "reciprocal",
        "cbrt",
        x=REAL,
    ),
    **unary("degrees", "rad2deg", x=0.4 * REAL),  # half precision overflows soon
    **unary("sqrt", "log", "log2", "log10", "log1p", x=POSITIVE),
    **unary("arcsin", "arccos", "arctanh", x=INSIDE),
    **unary("arccosh", x=ABOVE_ONE),
    **binary("add", "subtract", "multiply", "divide", x=REAL, y=REAL[::-1] + 0.25),
    **binary("maximum", "minimum", "fmax", "fmin", x=REAL, y=REAL[::-1]),
    **binary("arctan2", "hypot", "logaddexp", "logaddexp2", x=REAL, y=REAL[::-1]),
    **{
        function: [
            ((QUOTIENT * DIVISOR, DIVISOR), {}),
            ((QUOTIENT * DIVISOR[0], DIVISOR[0]), {}),
            ((QUOTIENT * DIVISOR[:, 1:2], DIVISOR[:, 1:2]), {}),
            ((2.0 * QUOTIENT, 2.0), {}),
            ((4.0, DIVISOR), {}),
        ]
        for function in (np.remainder, np.fmod, np.divmod)
    },
    **binary("copysign", "nextafter", "heaviside", x=REAL, y=REAL[::-1]),
    **binary("power", "float_power", x=POSITIVE, y=REAL, z=POSITIVE_ROW),
    np.ldexp: [((REAL, WHOLE), {}), ((REAL, 3), {})],
    elementwise.phase_factor: [((COMPLEX,), {})],
    elementwise.fraction: [((REAL,), {})],
    elementwise.mantissa: [((REAL,), {})],
}
for name in ("absolute", "conjugate", "sign", "angle", "square", "exp", "reciprocal"):
    ELEMENTWISE[getattr(np, name)].append(((COMPLEX,), {}))
ELEMENTWISE[np.power] += [
    ((REAL, n), {}) for n in (0, 1, 2, 3, -1, -2, WHOLE, WHOLE - 2)
]
ELEMENTWISE[np.float_power] += [((REAL, WHOLE), {})]

PRODUCTS: Samples = {
    np.matmul: [
        ((REAL, RIGHT), {}),
        ((REAL, ROW), {}),
        ((ROW, RIGHT), {}),
        ((ROW, RIGHT[:, 0]), {}),
        ((STACK, RIGHT), {}),
        ((REAL, STACK), {}),
        ((STACK, ROW), {}),
        ((ROW, STACK), {}),
        ((STACK[:, None], STACK), {}),
        ((STACK[:1], STACK), {}),
    ],
    np.dot: [
        ((REAL, RIGHT), {}),
        ((REAL, ROW), {}),
        ((ROW, RIGHT), {}),
        ((ROW, ROW[::-1]), {}),
        ((STACK, STACK[:2, :, :2]), {}),
        ((STACK, ROW), {}),
        ((ROW, STACK), {}),
        ((REAL, np.array(0.7)), {}),
        ((2.0, REAL), {}),
    ],
    np.inner: [
        ((REAL, SQUARE), {}),
        ((REAL, ROW), {}),
        ((ROW, ROW[::-1]), {}),
        ((STACK, STACK[:2]), {}),
        ((REAL, 3.0), {}),
    ],
    np.outer: [((ROW, RIGHT[:, 0]), {}), ((REAL, RIGHT), {})],
    np.vdot: [((REAL, RIGHT), {}), ((ROW, ROW[::-1]), {})],
    np.vecdot: [((REAL, ROW), {}), ((ROW, ROW[::-1]), {}), ((STACK, REAL[:1]), {})],
    np.tensordot: [
        ((REAL, RIGHT), {"axes": 1}),
        ((STACK, STACK), {}),
        ((REAL, RIGHT), {"axes": 0}),
        ((STACK, RIGHT), {"axes": (1, 0)}),
        ((STACK, STACK[:, :2]), {"axes": ([2, 0], [0, -1])}),
        ((ROW, ROW[::-1]), {"axes": 1}),
        ((SQUARE, SQUARE.T), {"axes": ([0, 1], [1, 0])}),
    ],
    np.einsum: [
        (("ij,jk->ik", REAL, RIGHT), {}),
        (("ij,jk", REAL, RIGHT), {}),
        (("ij,jk,kl->il", REAL, SQUARE, RIGHT), {"optimize": True}),
        (("i,j,k->ijk", ROW, ROW[::-1], COLUMN[:, 0]), {}),
        (("ii", SQUARE), {}),
        (("ii->i", SQUARE), {}),
        (("iij->ji", STACK), {}),
        (("iii->", STACK), {}),
        (("ij->", REAL), {}),
        (("ij->j", REAL), {}),
        (("ij->ji", REAL), {}),
        (("ij,kl->i", REAL, RIGHT), {}),
        (("ii,ij->j", SQUARE, RIGHT), {}),
        (("ij,ij->ij", COLUMN, REAL), {}),
        (("ij,ij->j", COLUMN, REAL), {}),
        (("ij,ij->i", COLUMN[:1], REAL), {}),
        (("...ij,...jk->...ik", STACK, RIGHT), {}),
        (("...ij,jk", STACK, RIGHT), {}),
        (("...,...", REAL, ROW), {}),
        (("b...,b...->...", STACK, STACK[:, :1]), {}),
        (("i, i -> i", ROW, ROW[::-1]), {"order": "F"}),
        ((REAL, [0, 1], RIGHT, [1, 2], [0, 2]), {}),
        ((REAL, [1, 0]), {}),
        ((STACK, [Ellipsis, 0, 1], RIGHT, [1, 2]), {}),
    ],
    products.indexed_product: [
        ((REAL, RIGHT), {"terms": ("ij", "jk"), "result": "ik"}),
    ],
    products.indexed_view: [((SQUARE,), {"term": "ii", "result": "i"})],
    np.linalg.matmul: [((REAL, RIGHT), {})],
    np.linalg.outer: [((ROW, RIGHT[:, 0]), {})],
    np.linalg.tensordot: [((REAL, RIGHT), {"axes": 1})],
    np.linalg.vecdot: [((REAL, ROW), {}), ((REAL, COLUMN), {"axis": 0})],
    np.linalg.multi_dot: [
        (([REAL, RIGHT],), {}),
        (([REAL, SQUARE, RIGHT],), {}),
        (([ROW, SQUARE, RIGHT, REAL, ROW[::-1]],), {}),
        (([REAL, SQUARE, ROW],), {}),
    ],
}
if hasattr(np, "matvec"):
    PRODUCTS[np.matvec] = [((REAL, ROW), {}), ((STACK, REAL[:1]), {})]
    PRODUCTS[np.vecmat] = [((ROW, RIGHT), {}), ((REAL[:1], STACK), {})]

LINALG: Samples = {
    np.linalg.solve: [
        ((SQUARE, ROW), {}),
        ((SQUARE, RIGHT), {}),
        ((STACK, ROW), {}),
        ((STACK, RIGHT), {}),
        ((SQUARE, STACK), {}),
        ((STACK[:, None], STACK[:2, :, :2]), {}),
    ],
    np.linalg.inv: [((SQUARE,), {}), ((STACK,), {})],
    np.linalg.norm: [
        ((REAL,), {}),
        ((STACK,), {"keepdims": True}),
        ((ROW,), {}),
        ((ROW, 2), {}),
        ((REAL, "fro"), {}),
        ((REAL,), {"axis": 1}),
        ((REAL,), {"axis": -1, "keepdims": True}),
        ((STACK,), {"axis": (0, 2)}),
        ((STACK, "fro"), {"axis": (-1, 0), "keepdims": True}),
        *(((ROW, order), {}) for order in (1, 3, 2.5, -2, 0, np.inf, -np.inf)),
        ((REAL, 3), {"axis": 0}),
        ((REAL, 1), {"axis": 1}),
        ((REAL, np.inf), {"axis": 1, "keepdims": True}),
        *(((REAL, order), {}) for order in (1, -1, np.inf, -np.inf)),
        ((STACK, 1), {"axis": (2, 0)}),
        ((STACK, np.inf), {"axis": (2, 0), "keepdims": True}),
    ],
    np.linalg.vector_norm: [
        ((REAL,), {}),
        ((REAL,), {"axis": 0, "ord": 3}),
        ((STACK,), {"axis": (2, 0), "keepdims": True}),
        ((STACK,), {"axis": (1, 2), "ord": 1}),
        ((REAL,), {"keepdims": True}),
    ],
    np.linalg.matrix_norm: [
        ((REAL,), {}),
        ((STACK,), {"keepdims": True}),
        ((STACK,), {"ord": 1}),
    ],
    linalg.length: [((REAL,), {"ord": None, "axis": 0, "keepdims": False})],
}

SAMPLES: Samples = {**ELEMENTWISE, **PRODUCTS, **LINALG, **ARRAYS}
SAMPLES |= {np.amax: ARRAYS[np.max], np.amin: ARRAYS[np.min]}  # other names

# The deep profile (see conftest) tries every combination of dtype, layout and mode.
THOROUGH = os.environ.get("DUALAD_PROFILE") == "deep"


def battery(samples: Samples) -> Any:
    """Parametrize a test with function, arguments and parameters of each sample."""
    return pytest.mark.parametrize(
        ("function", "args", "params"),
        [
            pytest.param(function, args, params, id=f"{name_of(function)}-{i}")
            for function, calls in samples.items()
            for i, (args, params) in enumerate(calls)
        ],
    )
