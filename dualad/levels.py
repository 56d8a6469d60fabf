"""Nesting of derivatives, and the cure of perturbation confusion.

Each running derivative is a :class:`Level`.  Operations on arrays of several levels
are handled by the highest; the lower ones are constants to it.  A level belongs to
the thread that made it and ends with the call that made it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar, Token
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from dualad.errors import EscapedArrayError

Array = Any
L = TypeVar("L", bound="Level")

RUNNING: ContextVar[tuple[Level, ...]] = ContextVar("running levels", default=())


DEBUG: ContextVar[debug | None] = ContextVar("debug", default=None)


class debug:  # noqa: N801 -- used as a function: `with debug() as log`
    """Look at what is recorded while the block runs.

    Each reverse sweep adds the text of its tape to ``tapes``: one line per step, with
    shapes and the line of the user's code.  A function whose output does not depend
    on its arguments is an error here, not a warning.  Slow: for looking only.

    Attributes
    ----------
    tapes : list of str
        In the order of the sweeps.

    Examples
    --------
    >>> import numpy as np, dualad as ad
    >>> with ad.debug() as log:
    ...     slope = ad.gradient(lambda x: np.sum(x * x), np.ones(2))
    >>> print(log.tapes[0].splitlines()[0])
    tape of level 1, 2 steps
    """

    def __init__(self) -> None:
        """Start with no tapes."""
        self.tapes: list[str] = []
        self._token: Token[debug | None] | None = None

    def __enter__(self) -> Self:
        """Start to look."""
        self._token = DEBUG.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop looking."""
        if self._token is not None:
            DEBUG.reset(self._token)


def user_line() -> str:
    """Return file and line of the innermost frame outside dualad and NumPy."""
    frame = sys._getframe(1)  # noqa: SLF001 -- there is no public way up the stack
    while frame.f_back is not None:
        home = frame.f_globals.get("__name__", "").split(".")[0]
        if home not in ("dualad", "numpy"):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Active:
    """A value that carries a derivative: it has a ``primal`` and a ``level``."""

    __slots__ = ()
    primal: Array
    level: Level

    if TYPE_CHECKING:  # it has all that an array or a NumPy scalar has

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...


class Level:
    """One running derivative; its ``order`` is how many run around it, plus one."""

    carrier = "active array"
    order = 1
    keeps_slopes = False  # results keep what a sweep above will ask for again

    # What leads to arrays of this level: only while it runs, so no cycle stays.
    arguments: Any = None
    record: Any = None
    steps: Any = None
    leaves: Any = None

    # What an interpreter provides; `forward` and `reverse` say how.
    unary: Any
    binary: Any
    read: Any
    write: Any

    def __init__(self) -> None:
        """Stand above the levels that run in this thread now."""
        self.thread: int | None = get_ident()
        self.below = below = RUNNING.get()
        if below:  # a context may have been copied from another thread
            self.below = those_of_this_thread(below)
            self.order = len(self.below) + 1

    def run(self, f: Callable[..., Any], args: Iterable[Any]) -> Any:
        """Return ``f(*args)``, and end: arrays of this level refuse to be used then."""
        token = RUNNING.set((*self.below, self))
        try:
            return f(*args)
        finally:
            RUNNING.reset(token)
            self.thread = None
            self.arguments = self.record = self.steps = self.leaves = None

    def escaped(self) -> EscapedArrayError:
        """Return the error for an array that is used where it may not be."""
        what = f"A {self.carrier} of level {self.order} was used"
        if self.thread is None:
            return EscapedArrayError(
                f"{what} after its derivative had ended.",
                "Return it from the differentiated function instead of storing it; "
                "dualad.primal(x) reads its value.",
            )
        return EscapedArrayError(
            f"{what} from another thread than the one that made it.",
            "Take the whole derivative inside one thread.",
        )

    def activated(self, x: Array) -> Array:
        """Return ``x`` as an array of this level whose derivative is zero."""
        raise NotImplementedError

    def add_into(self, memory: Array, contribution: Array) -> None:
        """Add into memory of this level, in place."""
        raise NotImplementedError

    def add_at(self, memory: Array, index: Any, values: Array) -> None:
        """Add at positions that may repeat, in place."""
        raise NotImplementedError


def those_of_this_thread(found: tuple[Level, ...]) -> tuple[Level, ...]:
    """Return the levels among ``found`` that were made by this thread."""
    thread = get_ident()
    return tuple(level for level in found if level.thread == thread)


RULED = ("unary", "binary", "elementwise", "linear", "multilinear", "general", "alias")
OTHERS = ("read", "write", "add_at", "add_into")


def nested(base: type[L]) -> type[L]:
    """Return a level class for use above others: it works with only those running.

    A rule that says ``np.zeros_like(x)`` then makes an array of the levels below, not
    of the level that is interpreting the rule.  A rule with formulas for this case is
    taken with those.  A lone level needs no such care, and does not pay for it.
    """

    def lowered(name: str, *, takes_rule: bool) -> Any:
        method = getattr(base, name)

        def entry(self: L, first: Any, *args: Any, **params: Any) -> Any:
            if takes_rule:
                first = first.nested or first
            token = RUNNING.set(self.below)
            try:
                return method(self, first, *args, **params)
            finally:
                RUNNING.reset(token)

        return entry

    entries = {name: lowered(name, takes_rule=True) for name in RULED}
    entries |= {name: lowered(name, takes_rule=False) for name in OTHERS}
    return type(f"Nested{base.__name__}", (base,), entries)


def bare(x: Any) -> Any:
    """Return the plain value inside an active one, without any level: no copy."""
    while isinstance(x, Active):
        x = x.primal
    return x


def is_array(x: Any) -> bool:
    """Say whether a value is, or stands for, an array with or without axes."""
    return isinstance(bare(x), np.ndarray)


def plain_parts(x: Any) -> Iterator[Array]:
    """Find the plain arrays inside an active one: primals and tangents."""
    if isinstance(x, Active):
        yield from plain_parts(x.primal)
        if hasattr(x, "tangent"):
            yield from plain_parts(x.tangent)
    elif isinstance(x, np.ndarray):
        yield x


def zeros_like(x: Array, levels: Iterable[Level], dtype: Any = None) -> Array:
    """Return zeros laid out like ``x``, active at each of ``levels``."""
    zeros = laid_out_like(bare(x), dtype)
    for level in levels:
        zeros = level.activated(zeros)
    return zeros


def laid_out_like(x: Array, dtype: Any = None, width: int | None = None) -> Array:
    """Return zeros of which NumPy takes a view wherever it takes one of ``x``.

    The same axes are contiguous, mergeable and reversed: a reshape that is a view of
    one is a view of the other.  (``np.zeros_like`` straightens ``x[::-1]``, and then
    the reshape of a slice copies.)  Gaps shrink to one element.  With a ``width``,
    that many such blocks, one after the other.
    """
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    if width is None and (not isinstance(x, np.ndarray) or x.flags.forc):
        return np.zeros_like(x, dtype=dtype)
    if not isinstance(x, np.ndarray) or x.size == 0:
        return np.zeros((width, *x.shape) if width is not None else x.shape, dtype)
    item = dtype.itemsize
    strides = [0] * x.ndim
    end, merged = item, x.itemsize
    for axis in sorted(range(x.ndim), key=lambda i: (abs(x.strides[i]), -i)):
        length, stride = x.shape[axis], x.strides[axis]
        if length <= 1:
            strides[axis] = end
            continue
        step = end if abs(stride) == merged else end + item
        strides[axis] = step if stride > 0 else -step
        merged = abs(stride) * length
        end = step * length
    start = sum(-s * (n - 1) for s, n in zip(strides, x.shape, strict=True) if s < 0)
    size = end // item + 1
    if width is None:
        return np.ndarray(x.shape, dtype, np.zeros(size, dtype), start, strides)
    memory = np.zeros(size * width, dtype)
    return np.ndarray((width, *x.shape), dtype, memory, start, (size * item, *strides))


def is_full(x: Array, levels: tuple[Level, ...]) -> bool:
    """Say whether ``x`` is active at each of ``levels``: any contribution fits."""
    for level in reversed(levels):
        if not isinstance(x, Active) or x.level is not level:
            return False
        x = x.primal
    return True


def add_into(memory: Array, contribution: Array) -> None:
    """Add a contribution into memory of the same shape, in place, at any level."""
    if isinstance(memory, Active):
        memory.level.add_into(memory, contribution)
    else:
        np.add(memory, contribution, out=memory, casting="same_kind")


def add_at(memory: Array, index: Any, values: Array) -> None:
    """Add ``values`` at ``index`` in place; what is named twice receives both."""
    if isinstance(memory, Active):
        memory.level.add_at(memory, index, values)
    else:
        np.add.at(memory, index, values)


def overlaps_itself(x: Array) -> bool:
    """Say whether two elements of ``x`` share memory (broadcast or window views)."""
    x = bare(x)
    if x.size == 0:
        return False
    reach = x.itemsize
    for stride, length in sorted(
        (abs(s), n) for s, n in zip(x.strides, x.shape, strict=True) if n > 1
    ):
        if stride < reach:
            return True
        reach += stride * (length - 1)
    return False
