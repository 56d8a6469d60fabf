"""Dual-number arrays: a primal and its tangent, pushed forward together.

A level carries one direction (``width`` is None: the tangent has the shape of the
primal) or several at once (the tangent has the directions as its first axis, each
block laid out like the primal).  A new primal buffer always has a new tangent buffer;
a view of the primal has the same view of the tangent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from threading import get_ident
from types import FunctionType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualad import levels
from dualad.aliases import check_write
from dualad.arrays import ActiveArray, ActiveScalar
from dualad.blocks import LARGE, blocks, cut, flattened
from dualad.dispatch import NOTHING, object_result
from dualad.errors import InternalError, OverlappingWriteError
from dualad.levels import (
    Active,
    Level,
    bare,
    is_array,
    laid_out_like,
    nested,
    overlaps_itself,
)
from dualad.rules.indexing import gathered
from dualad.rules.kinds import (
    RULES,
    Rule,
    alias,
    is_complex,
    overridable,
    strong,
)
from dualad.rules.views import copied, indexed

Array = Any
GATHERED = RULES[gathered]
INDEXED = RULES[indexed]


class DualArray(ActiveArray):
    """An array and its tangent.

    One that a tape above has from a function whose rule says so (`kinds.slope`) also
    keeps the partial derivative that made its tangent: the sweep asks for it again.
    """

    __slots__ = ("level", "primal", "slope", "tangent")
    level: DualLevel

    def __init__(
        self, primal: Any, tangent: Any, level: Any, slope: Array | None = None
    ) -> None:
        """Tie a primal to its tangent."""
        self.primal = primal
        self.tangent = tangent
        self.level = level
        self.slope = slope


class DualScalar(ActiveScalar):
    """A scalar and its tangent; immutable."""

    __slots__ = ("level", "primal", "tangent")
    level: DualLevel

    def __init__(self, primal: Any, tangent: Any, level: Any) -> None:
        """Tie a primal to its tangent."""
        self.primal = primal
        self.tangent = tangent
        self.level = level


class DualLevel(Level):
    """The level of one forward-mode derivative."""

    carrier = "dual array"

    def __init__(self, width: int | None = None) -> None:
        """Carry one direction, or ``width`` at once."""
        super().__init__()
        self.width = width
        self.arguments: Any = None
        self.keeps_slopes = False  # for a tape above
        # Identities of owners of memory: of the arguments, and which f wrote into.
        self.inputs: set[int] = set()
        self.written: set[int] = set()

    # --- the kinds ----------------------------------------------------------------

    def unary(self, rule: Rule, x: Any, params: Mapping[str, Any] = NOTHING) -> Any:
        """Push a tangent through a function of one array."""
        return getattr(self, rule.kind)(rule, (x,), params)

    def binary(
        self, rule: Rule, x: Any, y: Any, params: Mapping[str, Any] = NOTHING
    ) -> Any:
        """Push tangents through a function of two arrays."""
        return getattr(self, rule.kind)(rule, (x, y), params)

    def elementwise(
        self,
        rule: Rule,
        args: tuple[Any, ...],
        params: Mapping[str, Any] = NOTHING,  # noqa: ARG002 -- these have none
    ) -> Any:
        """Push tangents through an elementwise function: partial times tangent."""
        if self.thread != get_ident():
            raise self.escaped()
        primals, tangents = self.parted(args)
        z = self.kept_slope(args[0]) if rule.is_slope else None
        if z is None:
            z = rule.evaluate(*primals)
        if z.__class__ is complex:  # 1j * np.float64(2.0) gives Python's
            z = np.complex128(z)
        if is_object(z):
            raise object_result(rule)
        keeps = self.keeps_slopes and rule.nested is not None and is_array(z)
        if z.__class__ is np.ndarray and z.size >= LARGE and not self.below:
            slope = np.empty_like(z) if keeps else None
            z_dot = self.pushed_in_blocks(rule, z, primals, tangents, slope)
            if z_dot is not None:
                return DualArray(z, z_dot, self, slope)
        if keeps:
            return self.with_slope(rule, z, primals[0], tangents[0])
        z_dot, is_new = self.pushed(rule, z, primals, tangents)
        if z_dot is None:
            return z
        return self.new(z, z_dot, is_new=is_new)

    def kept_slope(self, y: Any) -> Array | None:
        """Return the partial derivative that made the tangent of ``y``, if kept."""
        is_ours = y.__class__ is DualArray and y.level is self
        return y.slope if is_ours else None

    def with_slope(self, rule: Rule, z: Array, x: Array, x_dot: Array) -> DualArray:
        """Return the dual array of ``z``, which keeps its partial derivative."""
        partial: Any = rule.partials[0]
        times = strong if rule.singular else np.multiply
        with np.errstate(all="ignore"):
            slope = partial(z, x)
            z_dot = times(x_dot, slope)
        dual = self.new(z, z_dot, is_new=True)
        dual.slope = slope
        return dual

    def pushed(
        self, rule: Rule, z: Array, primals: list[Any], tangents: list[Any]
    ) -> tuple[Array | None, bool]:
        """Return the sum of partial times tangent, and whether it is in new memory."""
        z_dot: Any = None
        is_new = False
        times = strong if rule.singular else np.multiply
        for x, x_dot, partial in zip(primals, tangents, rule.partials, strict=True):
            if x_dot is None or partial is None:
                continue
            moved = x_dot
            if self.width is not None:
                moved = self.raised(x_dot, np.ndim(x), np.ndim(z))
            if partial.__class__ is not FunctionType:
                term, is_new_term = (
                    (moved, False) if partial == 1 else (moved * partial, True)
                )
            elif rule.is_quiet:
                term, is_new_term = times(moved, partial(z, *primals)), True
            else:
                with np.errstate(all="ignore"):
                    term, is_new_term = times(moved, partial(z, *primals)), True
            if z_dot is None:
                z_dot, is_new = term, is_new_term
            elif is_new and z_dot.__class__ is np.ndarray and fits(term, z_dot):
                np.add(z_dot, term, z_dot)
            else:
                z_dot, is_new = z_dot + term, True
        return z_dot, is_new

    def pushed_in_blocks(
        self,
        rule: Rule,
        z: Array,
        primals: list[Any],
        tangents: list[Any],
        slope: Array | None = None,
    ) -> Array | None:
        """Return the tangent of a large result, computed block by block, or None.

        Does what :meth:`pushed` does for one direction; partials stay in the cache,
        unless there is a ``slope`` to be filled.
        """
        active = [
            (x_dot, partial)
            for x_dot, partial in zip(tangents, rule.partials, strict=True)
            if x_dot is not None and partial is not None
        ]
        flat = flattened([z, *primals], z.shape)
        directions = flattened([x_dot for x_dot, _ in active], z.shape)
        if not active or flat is None or directions is None or self.width is not None:
            return None
        times = strong if rule.singular else np.multiply
        z_dot = np.empty(z.shape, z.dtype)
        whole = z_dot.reshape(-1)
        kept = None if slope is None else slope.reshape(-1)
        with np.errstate(all="ignore"):
            for block in blocks(z.size):
                parts = [cut(x, block) for x in flat]
                for i, (_, partial) in enumerate(active):
                    x_dot = cut(directions[i], block)
                    factor = partial(*parts) if callable(partial) else partial
                    if kept is not None:
                        kept[block] = factor
                    if i == 0:
                        whole[block] = times(x_dot, factor)
                    else:
                        whole[block] += times(x_dot, factor)
        return z_dot

    def linear(
        self, rule: Rule, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> Any:
        """Push tangents through a linear function: the function itself."""
        if self.thread != get_ident():
            raise self.escaped()
        primals, tangents = self.parted(args)
        z = rule.primal(*primals, **params)

        def pushed(tangents: list[Any]) -> Any:
            if rule.pushforward is not None:
                return rule.pushforward(tangents, z, *primals, **params)
            moved = [
                x_dot
                if x_dot is not None
                else x
                if not rule.variadic and rule.pullbacks[i] is None
                else np.zeros_like(x)
                for i, (x, x_dot) in enumerate(zip(primals, tangents, strict=True))
            ]
            return rule.primal(*moved, **params)

        return self.finished(rule, z, primals, tangents, pushed)

    def multilinear(
        self, rule: Rule, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> Any:
        """Push tangents through a multilinear function: one at a time, summed."""
        if self.thread != get_ident():
            raise self.escaped()
        primals, tangents = self.parted(args)
        z = rule.primal(*primals, **params)

        def pushed(tangents: list[Any]) -> Any:
            return total(
                rule.primal(*primals[:i], x_dot, *primals[i + 1 :], **params)
                for i, x_dot in enumerate(tangents)
                if x_dot is not None
            )

        return self.finished(rule, z, primals, tangents, pushed)

    def general(
        self, rule: Rule, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> Any:
        """Push tangents through a function with pushforwards of its own."""
        if self.thread != get_ident():
            raise self.escaped()
        primals, tangents = self.parted(args)
        z = rule.primal(*primals, **params)

        def pushed(tangents: list[Any]) -> Any:
            return total(
                pushforward(x_dot, z, *primals, **params)
                for x_dot, pushforward in zip(tangents, rule.pushforwards, strict=True)
                if x_dot is not None and pushforward is not None
            )

        return self.finished(rule, z, primals, tangents, pushed)

    def alias(
        self, rule: Rule, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> Any:
        """Take a view of both parts."""
        if self.thread != get_ident():
            raise self.escaped()
        x = args[0]
        view = rule.primal(x.primal, **params)
        plain, base = bare(view), bare(x.primal)
        if type(plain) is not np.ndarray:
            return x[()] if isinstance(x, ActiveArray) else x  # NumPy gave a scalar
        if type(base) is np.ndarray and (
            np.may_share_memory(plain, base) or plain.size == 0
        ):
            slope = None if x.slope is None else rule.primal(x.slope, **params)
            return DualArray(view, self.seen(x.tangent, rule, params), self, slope)
        # NumPy copied: copy first, then both parts can be views.
        order = params.get("order") or "C"
        return self.alias(rule, (copied(x, order=order),), params)

    # --- reading and writing --------------------------------------------------------

    def read(self, x: Any, index: Any) -> Any:
        """Read ``x[index]``: one element, a view, or a gathered copy."""
        if self.thread != get_ident():
            raise self.escaped()
        part = x.primal[index]
        if not isinstance(part, np.ndarray | ActiveArray):
            return DualScalar(part, self.element(x.tangent, index), self)
        if np.may_share_memory(bare(part), bare(x.primal)) or part.size == 0:
            tangent = self.seen(x.tangent, INDEXED, {"index": index})
            slope = None if x.slope is None else x.slope[index]
            return DualArray(part, tangent, self, slope)
        return self.linear(GATHERED, (x,), {"index": index})

    def write(self, x: Any, index: Any, value: Any) -> None:
        """Write both parts; a value without a tangent writes zero."""
        self.check_write(x)
        if isinstance(value, Active) and value.level is self:
            x.primal[index] = value.primal
            value_dot = value.tangent
            if self.width is not None:
                ndim = np.ndim(bare(x.primal)[index])
                value_dot = self.raised(value_dot, np.ndim(value.primal), ndim)
            self.each(x.tangent, index, value_dot, set_item)
        else:
            x.primal[index] = value
            self.each(x.tangent, index, None, set_item)

    def add_at(self, x: Any, index: Any, value: Any) -> None:
        """Do ``np.add.at`` on both parts."""
        self.check_write(x)
        if isinstance(value, Active) and value.level is self:
            levels.add_at(x.primal, index, value.primal)
            self.each(x.tangent, index, value.tangent, levels.add_at)
        else:
            levels.add_at(x.primal, index, value)

    def check_write(self, x: Any) -> None:
        """Raise if a write into ``x`` is not allowed."""
        if self.thread != get_ident():
            raise self.escaped()
        plain = bare(x.primal)
        if not plain.flags.forc and overlaps_itself(plain):
            raise OverlappingWriteError(plain.strides, plain.shape)
        if self.arguments is not None:
            check_write(self, plain)
        if self.inputs:
            self.written |= {id(owner_of(plain))} & self.inputs

    def has_written(self, x: Array) -> bool:
        """Say whether a write at this level went to the memory of an argument."""
        return id(owner_of(bare(x))) in self.written

    def each(self, tangent: Array, index: Any, value: Any, write: Any) -> None:
        """Write one direction, or every one of them (None writes zero)."""
        if self.width is None:
            write(tangent, index, 0.0 if value is None else value)
        else:
            for k in range(self.width):
                block = tangent[k, ...]  # the Ellipsis keeps 0-d blocks arrays
                write(block, index, 0.0 if value is None else value[k])

    def add_into(self, memory: Any, contribution: Array) -> None:
        """Add into both parts of memory of this level: a shadow above."""
        if isinstance(contribution, Active) and contribution.level is self:
            levels.add_into(memory.primal, contribution.primal)
            levels.add_into(memory.tangent, contribution.tangent)
        else:
            levels.add_into(memory.primal, contribution)

    def activated(self, x: Array) -> Any:
        """Return ``x`` with a zero tangent."""
        zeros = self.blank(x)
        if zeros.ndim == 0 and not isinstance(bare(x), np.ndarray):
            zeros = zeros[()]
        for level in self.below:
            zeros = level.activated(zeros)
        return self.carrier_of(x)(x, zeros, self)

    # --- parts ----------------------------------------------------------------------

    def parted(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        """Return primals and tangents (None: no tangent at this level)."""
        primals, tangents = [], []
        for x in args:
            if isinstance(x, Active) and x.level is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
            else:
                primals.append(x)
                tangents.append(None)
        return primals, tangents

    def finished(
        self, rule: Rule, z: Array, primals: list[Any], tangents: list[Any], pushed: Any
    ) -> Any:
        """Evaluate a pushforward for one direction or for each, and make the result."""
        differentiable = [
            x_dot
            if rule.variadic or rule.kind == "general" or rule.pullbacks[i] is not None
            else None
            for i, x_dot in enumerate(tangents)
        ]
        if is_object(z):
            raise object_result(rule)
        if all(x_dot is None for x_dot in differentiable) or z.dtype.kind not in "fc":
            return z
        with np.errstate(all="ignore"):
            if self.width is None:
                z_dot = pushed(differentiable)
            else:
                z_dot = np.stack(
                    [
                        pushed([None if t is None else t[k] for t in differentiable])
                        for k in range(self.width)
                    ]
                )
        if type(bare(z)) is np.ndarray and bare(z).base is not None:
            z = copied(z, order="K")
        plain = bare(z_dot)
        is_new = type(plain) is np.ndarray and plain.base is None
        if any(z_dot is x for x in (*tangents, *primals, z)):
            is_new = False
        return self.new(z, z_dot, is_new=is_new)

    def new(self, z: Array, z_dot: Array, *, is_new: bool) -> Any:
        """Return a result whose tangent fits its primal and is in new memory."""
        carrier = self.carrier_of(z)
        if carrier is DualScalar:
            return DualScalar(z, self.scalar_tangent(z, z_dot, is_new=is_new), self)
        if self.width is None:
            if (
                is_new
                and type(z_dot) is np.ndarray
                and not self.below
                and z_dot.strides == z.strides
                and z_dot.shape == z.shape
                and z_dot.dtype == z.dtype
            ):
                return DualArray(z, z_dot, self)
            plain = bare(z)
            fitting = np.empty_like(plain) if plain.flags.forc else self.blank(z)
        else:
            fitting = self.blank(z)
        for level in self.below:
            fitting = level.activated(fitting)
        if is_complex(z_dot) and not is_complex(z):
            z_dot = np.real(z_dot)
        fitting[...] = z_dot
        return DualArray(z, fitting, self)

    def scalar_tangent(self, z: Array, z_dot: Array, *, is_new: bool) -> Array:
        """Return the tangent of a scalar in its dtype; a scalar shares no memory."""
        if is_complex(z_dot) and not is_complex(z):
            z_dot = np.real(z_dot)
        if self.width is not None:
            if z_dot.dtype != z.dtype:
                return z_dot.astype(z.dtype)
            return z_dot if is_new else copied(z_dot)
        if type(bare(z_dot)) is np.ndarray:
            z_dot = z_dot[()]
        if isinstance(z_dot, complex | float | int):  # as Python's operators give
            return z.dtype.type(z_dot)
        if not isinstance(z_dot, Active) and z_dot.dtype != z.dtype:
            z_dot = z.dtype.type(z_dot)
        return z_dot

    def carrier_of(self, z: Array) -> type[DualArray | DualScalar]:
        """Return the class that carries ``z``."""
        return DualArray if isinstance(z, np.ndarray | ActiveArray) else DualScalar

    # --- several directions -----------------------------------------------------------

    def blank(self, x: Array) -> Array:
        """Return zeros for all directions, each block laid out like ``x``."""
        return laid_out_like(bare(x), width=self.width)

    def raised(self, x_dot: Array, ndim: int, wanted: int) -> Array:
        """Insert axes after the directions, as broadcasting does before the others."""
        if wanted <= ndim:
            return x_dot
        shape = np.shape(x_dot)
        return np.reshape(x_dot, (shape[0], *(1,) * (wanted - ndim), *shape[1:]))

    def element(self, tangent: Array, index: Any) -> Array:
        """Return the tangent of one element: a number, or a copy for all directions."""
        if self.width is None:
            return tangent[index]
        entries = index if isinstance(index, tuple) else (index,)
        return tangent[(slice(None), *entries)].copy()

    def seen(self, tangent: Array, rule: Rule, params: Mapping[str, Any]) -> Array:
        """Take the view of a tangent, in every direction."""
        if self.width is None:
            view = rule.primal(tangent, **params)
        else:
            see = seen_overlapping_in_each if rule.overlaps else seen_in_each
            view = see(tangent, rule=rule, params=params)
        plain = bare(view)
        if plain.size and not np.may_share_memory(plain, bare(tangent)):
            raise InternalError(
                "a view of the tangent is not one, but is of the primal"
            )
        return view


NestedDualLevel = nested(DualLevel)


def seen_block_by_block(stack: Array, rule: Rule, params: Mapping[str, Any]) -> Array:
    """Take the same view of each block of a stack: the view of the first, repeated."""
    first = rule.primal(stack[0, ...], **params)  # the Ellipsis keeps 0-d blocks arrays
    if not first.flags.writeable and not overlaps_itself(first):
        with contextlib.suppress(ValueError):  # a part of a broadcast stays read-only
            first.flags.writeable = True  # np.diagonal; its stack is not the user's
    step = (len(stack), *first.shape), (stack.strides[0], *first.strides)
    return as_strided(first, *step, writeable=first.flags.writeable)


seen_in_each = overridable(seen_block_by_block)


@overridable
def seen_overlapping_in_each(
    stack: Array, rule: Rule, params: Mapping[str, Any]
) -> Array:
    """Do the same for a view whose elements share memory."""
    return seen_block_by_block(stack, rule, params)


def unseen_in_each(
    view_bar: Array, shape: tuple[int, ...], rule: Rule, params: Mapping[str, Any]
) -> Array:
    """Add back through an overlapping view, block by block."""
    back: Any = rule.transpose
    return np.stack([back(view_bar[k], shape[1:], **params) for k in range(shape[0])])


alias(seen_in_each)
alias(seen_overlapping_in_each, overlaps=True, transpose=unseen_in_each)


def owner_of(x: Array) -> Array:
    """Return the array that owns the memory of a view."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def fits(x: Any, memory: Array) -> bool:
    """Say whether ``x`` can be added into a plain array as it is."""
    return (
        x.__class__ is np.ndarray
        and x.shape == memory.shape
        and x.dtype is memory.dtype
    )


def is_object(z: Any) -> bool:
    """Say whether a result is of Python objects, which carry no tangent."""
    dtype = getattr(z, "dtype", None)
    return dtype.kind == "O" if dtype is not None else not isinstance(z, complex)


def set_item(x: Array, index: Any, value: Any) -> None:
    """Write ``x[index] = value``."""
    x[index] = value


def total(terms: Any) -> Array:
    """Return the sum of at least one term."""
    result = None
    for term in terms:
        result = term if result is None else result + term
    return result
