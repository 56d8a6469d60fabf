"""Derivatives by differences and by complex steps: the judges of the tests.

Every evaluation gets its own copy of the arguments, because functions under test
write into them.  A copy keeps the layout (strides), since views depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[[Any], Any]

TOLERANCE = {"e": 2e-3, "f": 2e-5, "d": 1e-9, "g": 1e-12, "F": 2e-5, "D": 1e-9}


def tolerance(x: Any) -> float:
    """Return how well derivatives of the precision of ``x`` should agree."""
    return TOLERANCE[np.asarray(x).dtype.char]


def like(x: Any, values: Any) -> Any:
    """Return ``values`` in the layout of ``x``; a Python number for a Python number."""
    if not isinstance(x, np.ndarray):
        return values[()] if isinstance(values, np.ndarray) else values
    y = with_layout(x, np.result_type(x, values))
    y[...] = values
    return y


def with_layout(x: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Return a new array with the shape and the strides (in elements) of ``x``."""
    dtype = np.dtype(dtype or x.dtype)
    if x.size == 0 or x.flags.c_contiguous:
        return np.zeros(x.shape, dtype)
    steps = [s // x.itemsize for s in x.strides]
    first = sum(-s * (n - 1) for s, n in zip(steps, x.shape, strict=True) if s < 0)
    last = sum(s * (n - 1) for s, n in zip(steps, x.shape, strict=True) if s > 0)
    memory = np.zeros(first + last + 1, dtype)
    return np.ndarray(
        x.shape,
        dtype,
        memory,
        first * dtype.itemsize,
        tuple(s * dtype.itemsize for s in steps),
    )


def directional(
    f: Function, x: Any, v: Any, step: float = 1e-4, points: int = 5
) -> Any:
    """Return the derivative of ``f`` at ``x`` along ``v`` by central differences."""

    def at(h: float) -> Any:
        return np.array(f(like(x, x + h * v)))

    near = at(step) - at(-step)
    if points == 3:
        return near / (2 * step)
    return (8 * near - (at(2 * step) - at(-2 * step))) / (12 * step)


def basis(x: Any) -> list[Any]:
    """Return the unit directions of ``x``, in C order."""
    n = np.size(x)
    return [np.eye(1, max(1, n), i)[0].reshape(np.shape(x)) for i in range(n)]


def gradient(f: Function, x: Any, step: float = 1e-4, points: int = 5) -> Any:
    """Return the gradient of a real function: df/dRe + i df/dIm for complex ``x``."""
    g = np.array([directional(f, x, e, step, points) for e in basis(x)], dtype=float)
    if np.iscomplexobj(x):
        g = g + 1j * np.array(
            [directional(f, x, 1j * e, step, points) for e in basis(x)], dtype=float
        )
    return g.reshape(np.shape(x))


def jacobian(f: Function, x: Any, step: float = 1e-4, points: int = 5) -> Any:
    """Return the Jacobian of a function of a real array, output axes first."""
    columns = [directional(f, x, e, step, points) for e in basis(x)]
    return np.stack(columns, -1).reshape(np.shape(columns[0]) + np.shape(x))


def complex_step(f: Function, x: Any, v: Any) -> Any:
    """Return the derivative along ``v`` to rounding, without differences.

    ``f`` must be real-analytic and run on complex arrays.
    """
    h = 1e-30
    return np.imag(f(like(x, x + 1j * h * v))) / h


def complex_step_gradient(f: Function, x: Any) -> Any:
    """Return the gradient of a real function to rounding (see :func:`complex_step`)."""
    return np.array([complex_step(f, x, e) for e in basis(x)]).reshape(np.shape(x))


def error(got: Any, want: Any) -> float:
    """Return the largest difference, relative where the wanted values exceed one."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if want.size == 0:
        return 0.0
    scale = max(1.0, float(np.max(np.abs(want))))
    return float(np.max(np.abs(got - want))) / scale


def assert_close(got: Any, want: Any, limit: float = 1e-9) -> None:
    """Fail unless both agree within ``limit``, scaled by the largest value."""
    e = error(got, want)
    assert e <= limit, f"error {e:.3g} > {limit:g}\ngot  {got!r}\nwant {want!r}"
