"""Indices and parameters that mean later what they mean when they are used."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

ndarray = np.ndarray


def settled(index: Any) -> Any:
    """Return an index that means later what it means now.

    Numbers held in arrays are copied, and lists become arrays: both may be changed
    before the reverse sweep.
    """
    if type(index) is tuple:
        return tuple(settled_entry(entry) for entry in index)
    return settled_entry(index)


def settled_entry(entry: Any) -> Any:
    """Return one entry of an index as it will stay."""
    kind = type(entry)
    if kind is slice:
        bounds = (entry.start, entry.stop, entry.step)
        return slice(*(b if b is None else operator.index(b) for b in bounds))
    if kind in BASIC or isinstance(entry, bool | np.bool_):
        return entry
    if isinstance(entry, ndarray):  # whole arrays are protected where they are kept
        return entry.copy() if entry.ndim == 0 else np.asarray(entry)
    if kind is tuple or kind is list or not hasattr(entry, "__index__"):
        return np.array(entry) if len(entry) else np.empty(0, np.intp)
    return operator.index(entry)


def settled_parameter(value: Any) -> Any:
    """Return a parameter of a view as it will stay: lists become tuples."""
    if type(value) is list:
        return tuple(map(settled_parameter, value))
    return value.copy() if type(value) is ndarray else value


def is_basic(index: Any) -> bool:
    """Say whether an index is made of integers, slices, None and Ellipsis only."""
    if type(index) in BASIC:
        return True
    if type(index) is tuple:
        return all(type(entry) in BASIC for entry in index)
    return False


BASIC = frozenset({int, slice, type(None), type(Ellipsis), np.int64, np.int32, np.intp})
