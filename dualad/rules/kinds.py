"""The six kinds of rule: each turns formulas into what the interpreters read.

A formula gets the output first, then the arguments as in the call; a pullback has
the cotangent before them, a pushforward the tangent.  Arrays come first, parameters
(``axis``, ``keepdims`` ...) follow as keywords under NumPy's own names::

    partial(z, x, y)                    d z / d x, for elementwise functions
    pullback(z_bar, z, x, y, **params)  the contribution to one argument's shadow
    pushforward(x_dot, z, x, y, **params)   the part of z_dot that x_dot brings

A variadic function (``joined``, ``einsum``) has one pullback for all its arrays; it is
told the position of the argument: ``pullback(z_bar, position, z, arrays, **params)``.

Rules say ``np.``: NumPy's protocols carry the same line to every kind of array.
"""

from __future__ import annotations

import cmath
import dis
import functools
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = Any
Function = Callable[..., Any]
Formula = Callable[..., Array]
Partial = Formula | float | None
# The formulas of some arguments, and what they read: the output, each argument.
Plan = tuple[tuple[Any, ...] | None, bool, tuple[bool, ...]]

RULES: dict[Function, Rule] = {}

# Modules' attributes under names of our own, where microseconds count.
ndarray = np.ndarray
add_up = np.add.reduce


@dataclass(frozen=True, slots=True)
class Reduction:
    """How a reduction meets ``where=`` and ``initial=``."""

    identity: float
    combine: Function


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What is known of one function; ``kind`` names the interpreter's method."""

    primal: Function
    kind: str
    arity: int
    parameters: tuple[str, ...] = ()
    partials: tuple[Partial, ...] = ()
    pullbacks: tuple[Formula | None, ...] = ()
    pushforwards: tuple[Formula | None, ...] = ()
    pushforward: Formula | None = None
    singular: bool = False
    variadic: bool = False
    reduction: Reduction | None = None
    reason: str = ""
    overlaps: bool = False
    transpose: Formula | None = None
    formulas: tuple[Any, ...] = ()  # the partials or the pullbacks
    plans: tuple[Plan, ...] = ()  # by the active arguments, a bit mask
    is_quiet: bool = True  # the formulas warn only where the function does
    evaluate: Function = NotImplemented  # the quickest way, without parameters
    nested: Rule | None = None  # for where other levels run below, see `slope`
    is_slope: bool = False  # its first argument knows the result, perhaps

    @property
    def name(self) -> str:
        """The function as a user would write it: ``np.linalg.solve``."""
        return name_of(self.primal)


def name_of(function: Function) -> str:
    """Return ``np.exp``, ``np.linalg.solve`` ... for a function of NumPy."""
    name = getattr(function, "__name__", repr(function))
    if isinstance(function, np.ufunc):
        return f"np.{name}"
    module = getattr(function, "__module__", "") or ""
    if module.split(".")[0] == "numpy":
        home = module.replace("numpy", "np", 1)
        home = "np" if "._" in home or home.startswith("np.lib") else home
        return f"{home}.{name}"
    return name


# Python's operators give the same values as these ufuncs, in half the time where an
# operand is a number and in a tenth where all are.
OPERATORS: dict[Function, Function] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.negative: operator.neg,
}


def whole_sum(x: Array) -> Array:
    """Return ``np.sum`` of a whole array, without what NumPy does around it."""
    return add_up(x, None) if x.__class__ is ndarray else np.sum(x)


OPERATORS[np.sum] = whole_sum


# --- the kinds -------------------------------------------------------------------


def elementwise(
    function: Function,
    *partials: Partial,
    singular: bool = False,
    is_quiet: bool = False,
) -> None:
    """Define a function that acts on each element by its partial derivatives.

    A partial that is the same number everywhere is written as that number; ``None``
    marks an argument without a derivative.  ``singular`` says that a partial can be
    infinite: there an exactly zero cotangent (or tangent) stays zero.  ``is_quiet``
    promises that the partials never overflow or divide where the function does not.
    """
    RULES[function] = Rule(
        function,
        "elementwise",
        len(partials),
        partials=partials,
        singular=singular,
        formulas=partials,
        plans=plans_of(partials, 1 + len(partials), 0),
        is_quiet=is_quiet or not any(map(callable, partials)),
        evaluate=OPERATORS.get(function, function),
    )


def slope(function: Function, second: Partial, **facts: bool) -> None:
    """Say what the partial of a function of one array has for a derivative by ``x``.

    ``second(z, y, x)`` may use the output ``y`` of the function and its partial ``z``.
    Where other levels run below, they differentiate the partial, too; it is then a
    function with this rule, and a level that has computed it once may keep it.
    """
    rule = RULES[function]
    (partial,) = rule.partials

    @overridable
    def slope_of(y: Array, x: Array) -> Array:
        return partial(y, x)  # type: ignore[operator,misc]  # not a number

    slope_of.__name__ = f"slope of {name_of(function)}"
    elementwise(slope_of, None, second, **facts)
    RULES[slope_of] = replace(RULES[slope_of], is_slope=True)
    plans = plans_of((slope_of,), 1 + rule.arity, 0)
    nested = replace(rule, partials=(slope_of,), formulas=(slope_of,), plans=plans)
    RULES[function] = replace(rule, nested=nested)


def linear(
    function: Function,
    *pullbacks: Formula | None,
    variadic: bool = False,
    singular: bool = False,
    reduction: Reduction | None = None,
    pushforward: Formula | None = None,
) -> None:
    """Define a function that is linear in its differentiable arguments together.

    Its pushforward is the function itself on the tangents, with zeros for arguments
    that have none; give ``pushforward(tangents, z, *arrays, **params)`` where that
    is not so (``tangents`` holds None for arguments without one).
    """
    _register(
        function,
        "linear",
        pullbacks,
        variadic=variadic,
        singular=singular,
        reduction=reduction,
        pushforward=pushforward,
    )


def multilinear(
    function: Function, *pullbacks: Formula | None, variadic: bool = False
) -> None:
    """Define a function that is linear in each differentiable argument by itself.

    Its pushforward is the function on one tangent at a time, summed.
    """
    _register(function, "multilinear", pullbacks, variadic=variadic)


def general(
    function: Function,
    *,
    pushforwards: tuple[Formula | None, ...],
    pullbacks: tuple[Formula | None, ...],
    singular: bool = False,
    reduction: Reduction | None = None,
) -> None:
    """Define a function by a pushforward and a pullback per argument."""
    _register(
        function,
        "general",
        pullbacks,
        pushforwards=pushforwards,
        singular=singular,
        reduction=reduction,
    )


def alias(
    *functions: Function, overlaps: bool = False, transpose: Formula | None = None
) -> None:
    """Say that a function of one array returns a view of it.

    The tangent of a view is the same view of the tangent, its shadow the same view
    of the shadow.  Where NumPy had to copy, the interpreters record a copy first.
    ``overlaps`` marks views whose elements share memory; they say how to add a
    contribution back: ``transpose(view_bar, base_shape, /, **params)``.
    """
    for function in functions:
        RULES[function] = Rule(
            function,
            "alias",
            1,
            _parameters(function, 1),
            overlaps=overlaps,
            transpose=transpose,
        )


def constant(reason: str, *functions: Function) -> None:
    """Say that the result carries no derivative: it is computed on plain arrays."""
    for function in functions:
        RULES[function] = Rule(
            function, "constant", 0, _parameters(function, 0), reason=reason
        )


def composition(function: Function) -> Callable[[Function], Function]:
    """Say how a function is written in terms of others: it needs no rule then.

    The decorated function has NumPy's signature and is called with active arrays.
    """

    def register(implementation: Function) -> Function:
        names = _parameters(implementation, 0)
        RULES[function] = Rule(implementation, "composition", 0, names)
        return implementation

    return register


def _register(
    function: Function, kind: str, pullbacks: tuple[Formula | None, ...], **facts: Any
) -> None:
    arity = len(pullbacks)
    RULES[function] = Rule(
        function,
        kind,
        arity,
        () if facts.get("variadic") else _parameters(function, arity),
        pullbacks=pullbacks,
        formulas=pullbacks,
        plans=() if facts.get("variadic") else plans_of(pullbacks, 1 + arity, 1),
        is_quiet=kind != "general",
        evaluate=OPERATORS.get(function, function),
        **facts,
    )


def _parameters(function: Function, arity: int) -> tuple[str, ...]:
    """Return the names of all arguments in order; the first ``arity`` are arrays."""
    if isinstance(function, np.ufunc):
        return tuple("xyz"[:arity])
    try:
        signature = inspect.signature(function)
    except ValueError:  # C functions: no signature before NumPy 2.4
        return C_FUNCTIONS.get(function, ())
    return tuple(signature.parameters)


C_FUNCTIONS: dict[Function, tuple[str, ...]] = {
    np.dot: ("a", "b", "out"),
    np.where: ("condition", "x", "y"),
    np.inner: ("a", "b"),
    np.vdot: ("a", "b"),
}


def plans_of(formulas: tuple[Any, ...], count: int, skip: int) -> tuple[Plan, ...]:
    """Say, for each set of active arguments (a bit mask), what the way back needs.

    Which formulas (None if an active argument has none), and what they read: only
    that is kept until the reverse sweep.  ``count`` is the number of output
    and arguments, ``skip`` of what comes before them.
    """
    places = range(len(formulas))
    uses = [used_arguments(f, skip + count) for f in formulas]
    plans: list[Plan] = []
    for mask in range(2 ** len(formulas)):
        active = [i for i in places if mask >> i & 1]
        read = frozenset().union(*(uses[i] for i in active))
        chosen = tuple(formulas[i] for i in active)
        keeps = tuple(skip + i + 1 in read for i in places)
        plans.append((None if None in chosen else chosen, skip in read, keeps))
    return tuple(plans)


def used_arguments(partial: Partial, count: int) -> frozenset[int]:
    """Return which of its arguments a formula reads, by position."""
    if not callable(partial):
        return frozenset()
    code = getattr(partial, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return frozenset(range(count))
    names = code.co_varnames[: code.co_argcount]
    read: set[Any] = set(code.co_cellvars)
    for instruction in dis.get_instructions(code):
        if "LOAD_FAST" in instruction.opname:
            value = instruction.argval
            read.update(value if isinstance(value, tuple) else (value,))
    return frozenset(i for i, name in enumerate(names) if name in read)


# --- words for formulas ------------------------------------------------------------


def overridable(function: Function) -> Function:
    """Let a function of our own dispatch on its arguments, as NumPy's do (NEP 18)."""

    @functools.wraps(function)
    def dispatched(*args: Any, **params: Any) -> Any:
        for argument in args:
            kind = type(argument)
            if kind is not np.ndarray and hasattr(kind, "__array_function__"):
                return argument.__array_function__(dispatched, (kind,), args, params)
        return function(*args, **params)

    return dispatched


@dataclass(frozen=True, slots=True)
class Scatter:
    """A contribution that lands only on ``index``, where indices may repeat."""

    index: Any
    values: Array
    unique: bool = False  # no element is named twice


def transposed(x: Array) -> Array:
    """Return the conjugate transpose of the last two axes (a view if ``x`` is real)."""
    y = np.swapaxes(x, -1, -2)
    return np.conjugate(y) if is_complex(y) else y


def conjugated(x: Array) -> Array:
    """Return the conjugate; ``x`` itself if it is real."""
    if x.__class__ is ndarray:
        return x.conj() if x.dtype.kind == "c" else x
    return np.conjugate(x) if is_complex(x) else x


def is_complex(x: Array) -> bool:
    """Say whether the dtype of ``x`` is complex."""
    dtype = getattr(x, "dtype", None)
    return isinstance(x, complex) if dtype is None else dtype.kind == "c"


def expanded(y: Array, axis: Any, ndim: int, *, keepdims: Any = False) -> Array:
    """Put the axes that a reduction removed back, with length one."""
    if keepdims or axis is None or ndim == 0:
        return y
    axes = axis if isinstance(axis, tuple) else (axis,)
    return np.expand_dims(y, tuple(a % ndim for a in axes))


def spread(
    y_bar: Array, y: Array, x: Array, axis: Any = None, keepdims: Any = False
) -> Array:
    """Give every summed element the cotangent of its sum: a view, no memory."""
    if axis is None and not keepdims:
        return y_bar  # one number; ``accumulate`` spreads it
    return np.broadcast_to(
        expanded(y_bar, axis, np.ndim(x), keepdims=keepdims), np.shape(x)
    )


def unbroadcast(z: Array, shape: tuple[int, ...]) -> Array:
    """Sum ``z`` over the axes along which something of ``shape`` was broadcast."""
    if np.shape(z) == shape:
        return z
    extra = np.ndim(z) - len(shape)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, n in enumerate(shape) if n == 1 and np.shape(z)[extra + i] != 1
    )
    return np.reshape(np.sum(z, axis=axes), shape)


def strong_on_plain(c: Array, p: Array) -> Array:
    """Return ``c * p``, but zero wherever ``c`` is exactly zero (0 * inf, 0 * nan)."""
    product = c * p
    if not isinstance(product, np.ndarray):
        return product if c != 0 else product.dtype.type(0)
    # One cheap pass sees inf and nan; an overflow of the sum does no harm.
    if cmath.isfinite(np.add.reduce(product, axis=None)):
        return product
    return np.where(np.equal(c, 0), np.zeros_like(product), product)


strong = overridable(strong_on_plain)


def strong_reversed(z_bar: Array, z: Array, c: Array, p: Array) -> Array:
    """Pull back through :func:`strong` to its second factor."""
    return strong(z_bar, conjugated(c))


multilinear(
    strong,
    lambda z_bar, z, c, p: strong(z_bar, conjugated(p)),
    strong_reversed,
)
