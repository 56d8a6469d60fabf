"""Shadows: the memory in which cotangents accumulate, and its one door.

Only this module adds into derivative memory: by the ``accumulate`` methods (and
``receive``, their short cut), and for large arrays by ``accumulate_in_blocks``.  The
carriers of `shadowed` are shadows of their primals: these classes say what a shadow
does, those where it is kept.

A shadow starts *fresh*: known to be zero, with no memory yet.  What is an alias in the
primal is an alias here: a view's shadow is the same view of its owner's shadow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import getrefcount
from typing import Any

import numpy as np

from dualad import levels
from dualad.blocks import blocks
from dualad.errors import InternalError
from dualad.levels import Active, Level, bare
from dualad.rules.kinds import Rule, Scatter, is_complex, unbroadcast
from dualad.rules.views import copied, reinterpreted

Array = Any
ndarray = np.ndarray
float64 = np.float64
F64 = np.dtype(np.float64)
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)


class Shadow:
    """The shadow of an array that owns its memory."""

    __slots__ = ()
    parent = None
    overlaps = False

    primal: Array  # gives shape, dtype and layout
    memory: Array  # None while fresh

    @property
    def owner(self) -> Shadow:
        """The shadow that owns the memory: itself."""
        return self

    def materialised(self, below: tuple[Level, ...]) -> Array:
        """Return the memory, made of zeros if it was fresh."""
        if self.memory is None:
            self.memory = levels.zeros_like(
                self.primal, below, shadow_dtype(self.primal)
            )
        return self.memory

    def known(self, below: tuple[Level, ...]) -> Array | None:  # noqa: ARG002 -- see ViewShadow
        """Return the memory, or None if nothing has been accumulated yet."""
        return self.memory

    def is_congruent(self, shape: tuple[int, ...]) -> bool:
        """Say whether the memory is that of an array of this shape, in C order."""
        plain = bare(self.primal)
        return (
            plain.shape == shape
            and plain.flags.c_contiguous
            and shadow_dtype(plain) is plain.dtype
        )

    def fits(self, other: Shadow) -> bool:
        """Say whether the memory of another shadow could be that of this one."""
        return bare(self.primal).dtype == bare(other.primal).dtype

    def receive(self, contribution: Array) -> None:
        """Add a dense plain array that nobody else holds: adopt it, or add in place.

        The fast path of :meth:`accumulate`, to which everything unusual goes.
        """
        memory = self.memory
        if memory is not None:
            try:
                np.add(memory, contribution, memory)
            except ValueError:  # it is larger: what was broadcast must be summed
                self.accumulate(contribution, (), is_new=True)
            return
        like = self.primal
        shape = contribution.shape
        if (
            shape == like.shape
            and contribution.dtype is like.dtype
            # A vector in memory of its own is dense, as the contribution is.
            and (
                (len(shape) == 1 and like.base is None)
                or contribution.strides == like.strides
            )
        ):
            self.memory = contribution
        else:
            self.accumulate(contribution, (), is_new=True)

    def accumulate(
        self, contribution: Array, below: tuple[Level, ...], *, is_new: bool = False
    ) -> None:
        """Add a contribution; a fresh shadow adopts one that nobody else holds.

        ``is_new`` says that the pullback just made it.  Otherwise it is adopted only
        if the reference count shows that it was made for this call alone.
        """
        kind = contribution.__class__
        if self.memory is not None:
            if kind is Scatter:
                scatter_into(self.memory, contribution)
            else:
                add(self.memory, contribution)
            return
        like = self.primal
        if below or kind is Scatter:
            self.accumulate_first(contribution, below, is_new=is_new)
        elif kind is ndarray:
            if (
                contribution.base is None
                and contribution.shape == like.shape
                and contribution.dtype is like.dtype
                and contribution.strides == like.strides
                and (is_new or getrefcount(contribution) == UNSHARED)
            ):
                self.memory = contribution
            else:
                self.copy_first(contribution)
        elif (
            kind is float64
            and like.dtype is F64
            and (like.base is None or like.flags.forc)
        ):
            # The cotangent of a sum over everything: one number for each element.
            self.memory = memory = like.copy("K")
            memory.fill(contribution)
        else:
            add(self.materialised(below), contribution)

    def copy_first(self, contribution: Array) -> None:
        """Copy a first contribution into the primal's layout: no zeros, no sum."""
        like = self.primal
        dtype = shadow_dtype(like)
        if contribution.shape != like.shape:
            contribution = fitted(contribution, like.shape)
        if contribution.dtype.kind == "c" and dtype.kind != "c":
            contribution = contribution.real
        if like.flags.forc:
            self.memory = np.empty_like(like, dtype=dtype)
        else:
            self.memory = levels.laid_out_like(like, dtype)
        self.memory[...] = contribution

    def accumulate_first(
        self, contribution: Array, below: tuple[Level, ...], *, is_new: bool
    ) -> None:
        """Accumulate the first contribution where other levels run below."""
        like = self.primal
        if contribution.__class__ is Scatter:
            scatter_into(self.materialised(below), contribution)
        elif (
            is_new
            and isinstance(bare(contribution), np.ndarray)
            and np.shape(contribution) == like.shape
            and contribution.dtype == shadow_dtype(like)
            and levels.is_full(contribution, below)
            and bare(contribution).strides == bare(like).strides
        ):
            self.memory = contribution
        else:
            add(self.materialised(below), contribution)


class Collector(Shadow):
    """A shadow alone, in which contributions are collected on their way."""

    __slots__ = ("memory", "primal")

    def __init__(self, primal: Array) -> None:
        """Start fresh."""
        self.primal = primal
        self.memory = None


class ScalarShadow:
    """The shadow of a scalar: immutable like its primal, so adding rebinds it."""

    __slots__ = ()
    parent = None
    overlaps = False

    primal: Array
    memory: Array

    @property
    def owner(self) -> ScalarShadow:
        """The shadow that owns the memory: itself."""
        return self

    def known(self, below: tuple[Level, ...]) -> Array | None:  # noqa: ARG002 -- see ViewShadow
        """Return the cotangent so far, or None."""
        return self.memory

    def accumulate(
        self,
        contribution: Array,
        below: tuple[Level, ...],  # noqa: ARG002 -- scalars fit any level
        *,
        is_new: bool = False,  # noqa: ARG002 -- immutable: sharing is harmless
    ) -> None:
        """Add a contribution of any shape that broadcasting gave the scalar."""
        if contribution.__class__ is not np.float64:
            contribution = as_scalar(contribution, self.primal)
        memory = self.memory
        self.memory = contribution if memory is None else memory + contribution

    def is_congruent(self, shape: tuple[int, ...]) -> bool:  # noqa: ARG002 -- see Shadow
        """Say that this is no array."""
        return False

    def receive(self, contribution: Array) -> None:
        """Add a contribution of any shape."""
        self.accumulate(contribution, ())


class ViewShadow:
    """The shadow of a view: the same view of the parent's shadow, looked up late."""

    __slots__ = ()

    primal: Array
    parent: Shadow | ViewShadow
    owner: Shadow
    rule: Rule
    function: Callable[..., Array]  # the view is function(parent, **params)
    params: Mapping[str, Any]
    overlaps: bool
    seen: tuple[Array, Array] | None  # memory of the owner, our view of it

    def materialised(self, below: tuple[Level, ...]) -> Array:
        """Return this view of the owner's memory.

        Each view remembers what it saw, so that a long chain is walked once.
        """
        memory = self.owner.materialised(below)
        views: list[ViewShadow] = []
        shadow: Any = self
        while shadow.parent is not None and (
            shadow.seen is None or shadow.seen[0] is not memory
        ):
            views.append(shadow)
            shadow = shadow.parent
        view = memory if shadow.parent is None else shadow.seen[1]
        for shadow in reversed(views):
            view = shadow.look(view)
            shadow.seen = memory, view
        return view

    def look(self, memory: Array) -> Array:
        """Take this view of the parent's memory, keeping it writable."""
        view = self.function(memory, **self.params)
        plain = bare(view)
        if plain.size and not np.may_share_memory(plain, bare(memory)):
            raise InternalError("a view of the shadow is not one, but is of the primal")
        if not self.overlaps:
            for part in levels.plain_parts(view):
                if not part.flags.writeable:
                    part.flags.writeable = True  # np.diagonal gives read-only views
        return view

    def known(self, below: tuple[Level, ...]) -> Array | None:
        """Return this view of the owner's memory, or None if that is fresh."""
        return None if self.owner.memory is None else self.materialised(below)

    def accumulate(
        self,
        contribution: Array,
        below: tuple[Level, ...],
        *,
        is_new: bool = False,  # noqa: ARG002 -- a view is never adopted into
    ) -> None:
        """Add a contribution to the part of the owner's shadow that is seen."""
        if self.overlaps:
            self.accumulate_overlapping(contribution, below)
        elif contribution.__class__ is Scatter:
            scatter_into(self.materialised(below), contribution)
        else:
            add(self.materialised(below), contribution)

    def is_congruent(self, shape: tuple[int, ...]) -> bool:  # noqa: ARG002 -- see Shadow
        """Say that the memory is another's."""
        return False

    def receive(self, contribution: Array) -> None:
        """Add a plain array to the part of the owner's shadow that is seen."""
        self.accumulate(contribution, ())

    def accumulate_overlapping(
        self, contribution: Array, below: tuple[Level, ...]
    ) -> None:
        """Add where elements share memory: a plain ``+=`` would lose updates.

        Go back from view to parent until no elements overlap, each time in new memory.
        """
        view: Any = self
        if contribution.__class__ is Scatter:
            collected = Collector(np.empty(np.shape(view.primal), view.primal.dtype))
            collected.accumulate(contribution, below)
            contribution = collected.memory
        elif np.shape(contribution) != np.shape(view.primal):
            contribution = fitted(contribution, np.shape(view.primal))
        while view.overlaps:
            contribution = view.transposed(contribution, below)
            view = view.parent
        view.accumulate(contribution, below)

    def transposed(self, view_bar: Array, below: tuple[Level, ...]) -> Array:
        """Return the contribution to the parent that a contribution here amounts to."""
        parent = self.parent.primal
        if is_complex(view_bar) and not is_complex(self.primal):
            view_bar = np.real(view_bar)
        if self.rule.overlaps:
            return self.rule.transpose(view_bar, np.shape(parent), **self.params)  # type: ignore[misc]  # overlaps has one
        if self.primal.dtype != parent.dtype:
            if np.shape(self.primal) != np.shape(parent):
                return reinterpreted(copied(view_bar, order="C"), dtype=parent.dtype)
            part = self.function(np.full(np.shape(parent), 1j), **self.params)
            return view_bar * 1j if np.all(part) else view_bar
        numbers = np.arange(parent.size).reshape(np.shape(parent))
        index = np.unravel_index(
            self.function(numbers, **self.params), np.shape(parent) or (1,)
        )
        collected = Collector(np.empty(np.shape(parent) or (1,), view_bar.dtype))
        collected.accumulate(Scatter(index, view_bar), below)
        return np.reshape(collected.memory, np.shape(parent))


Plan = list[tuple[Shadow, tuple[Shadow, ...], Callable[[Array, int, slice], Array]]]
Memories = dict[int, Array]  # by the identity of the shadow


def accumulate_in_blocks(plan: Plan, size: int, below: tuple[Level, ...]) -> None:
    """Run several elementwise steps on one block after the other.

    The plan has, for each step, the shadow of its output, those of its arguments, and
    ``contribution(part of the cotangent, which argument, block)``.  A cotangent that a
    step gives and a later one takes exists for one block only: it stays in the cache,
    and no memory is made for it.
    """
    whole, first = whole_memory(plan, below)
    for block in blocks(size):
        local: Memories = {}
        for i, (z_shadow, shadows, contribution) in enumerate(plan):
            memory = whole.get(id(z_shadow))
            part = local.pop(id(z_shadow)) if memory is None else memory[block]
            for j, shadow in enumerate(shadows):
                added = contribution(part, j, block)
                target = whole.get(id(shadow))
                if target is None:
                    before = local.get(id(shadow))
                    local[id(shadow)] = added if before is None else before + added
                elif (i, j) in first:
                    target[block] = added
                else:
                    levels.add_into(target[block], added)
    for z_shadow, *_ in plan:
        z_shadow.memory = None


def whole_memory(
    plan: Plan, below: tuple[Level, ...]
) -> tuple[Memories, set[tuple[int, int]]]:
    """Return the memory that exists for all blocks, flat; fresh shadows get some.

    Also which contributions come first into memory that must be written, not added
    to.  A cotangent that is needed no more gives its memory to the last argument.
    """
    inner = {id(z_shadow): z_shadow.memory for z_shadow, *_ in plan}
    whole = {s: memory.reshape(-1) for s, memory in inner.items() if memory is not None}
    first: set[tuple[int, int]] = set()
    for i, (z_shadow, shadows, _) in enumerate(plan):
        for j, shadow in enumerate(shadows):
            if id(shadow) in whole or id(shadow) in inner:
                continue
            if shadow.memory is None:
                is_last = j == len(shadows) - 1
                if is_last and id(z_shadow) in whole and shadow.fits(z_shadow):
                    shadow.memory = z_shadow.memory
                    first.add((i, j))
                elif not below:
                    shadow.memory = np.empty_like(shadow.primal)
                    first.add((i, j))
            whole[id(shadow)] = shadow.materialised(below).reshape(-1)
    return whole, first


def shadow_dtype(like: Array) -> np.dtype[Any]:
    """Return the dtype of a shadow: half precision is summed in single precision."""
    dtype = like.dtype
    return FLOAT32 if dtype == FLOAT16 else dtype


def add(memory: Array, contribution: Array) -> None:
    """Un-broadcast, project and add into memory."""
    shape = memory.shape
    if np.shape(contribution) != shape:
        contribution = fitted(contribution, shape)
    if is_complex(contribution) and not is_complex(memory):
        contribution = np.real(contribution)
    levels.add_into(memory, contribution)


def fitted(contribution: Array, shape: tuple[int, ...]) -> Array:
    """Sum a contribution over what was broadcast, or spread what is too small."""
    if np.ndim(contribution) >= len(shape):
        contribution = unbroadcast(contribution, shape)
    return np.broadcast_to(contribution, shape)


def scatter_into(memory: Array, scatter: Scatter) -> None:
    """Add where an index points, in whole slices if no element is named twice."""
    index, values = scatter.index, scatter.values
    if is_complex(values) and not is_complex(memory):
        values = np.real(values)
    if not scatter.unique:
        levels.add_at(memory, index, values)
    elif isinstance(memory, Active):
        memory[index] = memory[index] + values
    else:
        memory[index] += values


def as_scalar(contribution: Array, like: Array) -> Array:
    """Return a contribution as one number of the kind of ``like``."""
    if contribution.__class__ is Scatter:
        contribution = np.sum(contribution.values)
    elif np.ndim(contribution):
        contribution = np.sum(contribution)
    elif type(contribution) is np.ndarray or (
        isinstance(contribution, Active) and type(bare(contribution)) is np.ndarray
    ):
        contribution = contribution[()]
    if is_complex(contribution) and not is_complex(like):
        contribution = np.real(contribution)
    if not isinstance(contribution, Active):
        contribution = shadow_dtype(like).type(contribution)
    return contribution


def _count_of_an_unshared_array() -> int:
    """Measure the count that ``accumulate`` sees for an array held by its caller only.

    It differs between interpreters; an array with one more holder always has more.
    """

    class Probe:
        __slots__ = ("seen",)

        def accumulate(
            self,
            contribution: Array,
            below: Any,  # noqa: ARG002 -- the real method's signature
            *,
            is_new: bool = False,  # noqa: ARG002 -- as above
        ) -> None:
            self.seen = getrefcount(contribution)

    def made() -> Array:
        return np.multiply(np.ones(1), 2.0)

    probe = Probe()
    probe.accumulate(made(), ())
    # More than the method and its call hold it: somebody looks into our frames, so the
    # count means nothing.  Then nothing is ever adopted unless it is known to be new.
    return probe.seen if probe.seen <= 2 else 0  # noqa: PLR2004


UNSHARED = _count_of_an_unshared_array()
