"""Check derivatives: of any function, and of every mode of a rule.

:func:`check_derivatives` compares the derivatives of a function with each other and
with differences.  :func:`check_rule` does so for one NumPy function (or one of your
own with a rule) in every mode, for many dtypes and memory layouts.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import dualad as ad
from dualad.errors import (
    ChangedArrayError,
    DualadError,
    IndependentOutputWarning,
    facts,
)

Array = Any
Tree = Any
Function = Callable[..., Any]

DTYPES = ("float16", "float32", "float64", "longdouble", "complex64", "complex128")
LAYOUTS = ("C", "F", "reversed", "strided", "read-only", "0-d", "empty")

# How far rounding alone may separate two ways to the same number.
ROUNDING = {"e": 2e-2, "f": 3e-5, "d": 1e-11, "g": 1e-14}
DIFFERENCES = 1e-8  # what differences in double precision can tell
LONG = 300  # characters of a value in an error
STEPS = (4e-3, 1.5e-3, 5e-4)
WEIGHTS = ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60))  # error of order h**6


class DerivativeError(DualadError, AssertionError):
    """A derivative is not what it should be.

    Attributes
    ----------
    check : str
        What was checked, for instance ``"reverse mode"``.
    where : str
        The function, the dtype, the memory layout and the argument.
    got, expected : object
        The two values that should agree.
    """

    def __init__(
        self, check: str, where: str, got: Any, expected: Any, remedy: str
    ) -> None:
        """Build the text from the check, the place and both values."""
        self.check, self.where = check, where
        self.got, self.expected = got, expected
        rows = [("got", shown(got)), ("expected", shown(expected))]
        super().__init__(f"{check} fails for {where}.\n{facts(rows)}\n{remedy}")


def shown(x: Any) -> str:
    """Return a short text of a value on one line."""
    text = x if isinstance(x, str) else np.array2string(np.asarray(x), threshold=20)
    text = " ".join(text.split())
    return text if len(text) <= LONG else f"{text[: LONG - 3]}..."


# --- what is checked --------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A function of arrays alone with one array as its result, at a point."""

    function: Function
    arrays: tuple[Array, ...]
    name: str
    floor: float  # errors are measured against derivatives of at least this size
    writes: bool = False  # the function may write into its arguments
    rtol: float | None = None
    place: str = ""

    @property
    def point(self) -> tuple[Array, ...]:
        """The arguments of the next call."""
        return tuple(map(duplicate, self.arrays)) if self.writes else self.arrays

    @property
    def where(self) -> str:
        """The function and the circumstances, in words."""
        return f"{self.name} ({self.place})" if self.place else self.name

    def value(self) -> Array:
        """Return the plain result; the point is left as it is."""
        with np.errstate(all="ignore"):
            return self.function(*map(duplicate, self.arrays))

    def rounding(self) -> float:
        """Return the relative error that rounding may cause."""
        kinds = [np.asarray(x).dtype for x in (*self.arrays, self.value())]
        return max(ROUNDING[np.zeros((), kind).real.dtype.char] for kind in kinds)

    def limit(self) -> float:
        """Return the relative error allowed against differences."""
        return max(self.rounding(), DIFFERENCES) if self.rtol is None else self.rtol

    def directions(self, seed: int = 0) -> tuple[Array, ...]:
        """Return random tangents of the size of the point."""
        generator = np.random.default_rng(seed)
        return tuple(random_like(x, generator, extent(x)) for x in self.arrays)

    def cotangent(self) -> Array:
        """Return a random cotangent of the result."""
        return random_like(self.value(), np.random.default_rng(1), 1.0)

    def fail(self, check: str, got: Any, expected: Any) -> DerivativeError:
        """Return the error for two values that do not agree."""
        remedy = "Correct the rule, or give arguments near which it is smooth."
        return DerivativeError(check, self.where, got, expected, remedy)


def duplicate(x: Array) -> Array:
    """Return a copy of an array in the same layout; numbers are immutable."""
    return relaid(x, x) if isinstance(x, np.ndarray) else x


def extent(x: Array) -> float:
    """Return the size of the largest element, 1 if there is none."""
    return float(np.fmax.reduce(np.abs(x), axis=None, initial=0.0)) or 1.0


def random_like(x: Array, generator: np.random.Generator, scale: float) -> Array:
    """Return random numbers of the shape, dtype and memory layout of ``x``."""
    shape, dtype = np.shape(x), np.asarray(x).dtype
    values = scale * generator.uniform(0.3, 1.0, shape)
    values = values * generator.choice([-1.0, 1.0], shape)
    if dtype.kind == "c":
        values = values + 1j * scale * generator.uniform(-1.0, 1.0, shape)
    if isinstance(x, np.ndarray):
        return relaid(x, values)
    return np.asarray(values, dtype)[()]


def relaid(x: Array, values: Array) -> Array:
    """Return ``values`` in new memory with the dtype and the strides of ``x``."""
    if x.size == 0 or x.flags.c_contiguous:
        return np.array(np.broadcast_to(values, x.shape), x.dtype)
    steps = [s // x.itemsize for s in x.strides]
    reach = [s * (n - 1) for s, n in zip(steps, x.shape, strict=True)]
    first = -sum(r for r in reach if r < 0)
    memory = np.zeros(first + sum(r for r in reach if r > 0) + 1, x.dtype)
    y = np.ndarray(x.shape, x.dtype, memory, first * x.itemsize, x.strides)
    y[...] = values
    return y


def subjects(
    function: Function,
    args: tuple[Tree, ...],
    params: Mapping[str, Any],
    is_active: Callable[[Any], bool],
    **facts_: Any,
) -> Iterator[Subject]:
    """Split a call into functions of its active arrays, one per array it returns."""
    arrays = tuple(x for tree in args for x in leaves(tree, is_active))
    # Functions must not capture what they are differentiated by.
    holes = itertools.repeat(HOLE)
    forms = tuple(with_leaves(tree, is_active, holes) for tree in args)

    def outputs(*xs: Array) -> list[Array]:
        rest = iter(xs)
        filled = (with_leaves(form, is_hole, rest) for form in forms)
        return leaves(function(*filled, **params), is_result)

    with np.errstate(all="ignore"):
        count = len(outputs(*map(duplicate, arrays)))
    for k in range(count):

        def output(*xs: Array, k: int = k) -> Array:
            return outputs(*xs)[k]

        yield Subject(output, arrays, **facts_)


HOLE = object()


def is_hole(x: Any) -> bool:
    """Say whether an active array belongs here."""
    return x is HOLE


def leaves(tree: Tree, is_leaf: Callable[[Any], bool]) -> list[Array]:
    """Return the leaves of nested tuples, lists and dicts in order."""
    if is_leaf(tree):
        return [tree]
    items = tree.values() if isinstance(tree, dict) else tree
    if isinstance(tree, tuple | list | dict):
        return [x for item in items for x in leaves(item, is_leaf)]
    return []


def with_leaves(
    tree: Tree, is_leaf: Callable[[Any], bool], values: Iterator[Array]
) -> Tree:
    """Return the tree with other leaves, and the values of constants."""
    if is_leaf(tree):
        return next(values)
    if isinstance(tree, ad.Const):
        return tree.value
    if isinstance(tree, dict):
        return {key: with_leaves(item, is_leaf, values) for key, item in tree.items()}
    if isinstance(tree, tuple | list):
        items = [with_leaves(item, is_leaf, values) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return tree


def is_array(x: Any) -> bool:
    """Say whether ``x`` is a real or complex floating array: active in check_rule."""
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def is_number_or_array(x: Any) -> bool:
    """Say whether ``x`` is what can be differentiated: active in check_derivatives."""
    return is_array(x) or isinstance(x, float | complex | np.inexact)


def is_result(x: Any) -> bool:
    """Say whether ``x`` is a floating result, active or plain."""
    return getattr(getattr(x, "dtype", None), "kind", "") in ("f", "c") or isinstance(
        x, float | complex
    )


# --- differences ------------------------------------------------------------------


def joined(arrays: Sequence[Array]) -> Array:
    """Return the elements of arrays as one vector."""
    return np.concatenate([np.ravel(x) for x in arrays])


def widened(x: Array) -> Array:
    """Return an array in at least double precision."""
    kind = np.asarray(x).dtype
    wide = np.result_type(kind, np.float64)
    return x.astype(wide) if isinstance(x, np.ndarray) else wide.type(x)


def differences(
    function: Function, point: Sequence[Array], directions: Sequence[Array]
) -> tuple[Array, float]:
    """Return a directional derivative and how far two step sizes disagree.

    ``function`` returns a vector.  Central differences with six points.
    """

    def at(h: float) -> Array:
        moved = (x + h * v for x, v in zip(point, directions, strict=True))
        return function(*moved)

    best, doubt = None, np.inf
    last = None
    for step in STEPS:
        slope = sum(w * (at(k * step) - at(-k * step)) for k, w in WEIGHTS) / step
        if last is not None:
            change = float(np.max(np.abs(slope - last), initial=0.0))
            if best is None or change < doubt:
                best, doubt = slope, change
        last = slope
    return best, doubt


def reference(subject: Subject, check: str, function: Function) -> tuple[Array, float]:
    """Return the derivative of a vector by differences, and the error allowed."""
    point = [widened(x) for x in subject.arrays]
    directions = [widened(v) for v in subject.directions()]
    slope, doubt = differences(function, point, directions)
    size = max(float(np.max(np.abs(slope), initial=0.0)), subject.floor)
    if not doubt <= 1e-4 * size:
        raise subject.fail(
            f"{check}: taking differences",
            "differences with two step sizes, which do not agree",
            f"a smooth function (they differ by {doubt:.2g})",
        )
    return slope, subject.limit() * size + 20 * doubt


# --- the checks -------------------------------------------------------------------


def same_kind(subject: Subject, check: str, got: Array, expected: Array) -> None:
    """Raise unless both have one shape and dtype, and are arrays or scalars alike."""
    seen = [
        f"{'array' if isinstance(x, np.ndarray) else 'scalar'} {np.asarray(x).dtype}"
        f"{list(np.shape(x))}"
        for x in (got, expected)
    ]
    if seen[0] != seen[1]:
        raise subject.fail(f"{check}: shape and dtype", *seen)


def check_value(subject: Subject) -> None:
    """Check that both modes return the value that NumPy returns."""
    expected = subject.value()
    pushed, tangent = ad.jvp(subject.function, subject.point, subject.directions())
    pulled, _ = ad.vjp(subject.function, *subject.point)
    # The layout of a copy may change the order of additions.
    size = max(float(np.max(np.abs(expected), initial=0.0)), subject.floor)
    allowed = 16 * float(np.finfo(np.asarray(expected).dtype).eps) * size
    for check, got in (("forward mode", pushed), ("reverse mode", pulled)):
        same_kind(subject, f"the value in {check}", got, expected)
        if not np.all(np.abs(got - expected) <= allowed):
            raise subject.fail(f"the value in {check}", got, expected)
    same_kind(subject, "the tangent", tangent, expected)


def check_forward(subject: Subject) -> None:
    """Check that the pushforward agrees with differences."""
    function = subject.function
    _, tangent = ad.jvp(function, subject.point, subject.directions())
    expected, allowed = reference(
        subject, "forward mode", lambda *xs: np.ravel(function(*xs))
    )
    expected = expected.reshape(np.shape(tangent))
    if not np.all(np.abs(tangent - expected) <= allowed):
        raise subject.fail("forward mode against differences", tangent, expected)


def check_reverse(subject: Subject) -> None:
    """Check that the pullback is the transpose: <w, J v> = <J' w, v>."""
    directions, cotangent = subject.directions(), subject.cotangent()
    _, tangent = ad.jvp(subject.function, subject.point, directions)
    gradient = pulled_back(subject)
    for x, x_bar in zip(subject.arrays, gradient, strict=True):
        same_kind(subject, "reverse mode", x_bar, x)
    forward = real_products([cotangent], [tangent])
    reverse = real_products(gradient, directions)
    size = max(np.sum(np.abs(forward)), np.sum(np.abs(reverse)), subject.floor)
    if not abs(np.sum(forward) - np.sum(reverse)) <= subject.rounding() * size:
        raise subject.fail(
            "reverse mode against forward mode, <w, J v> = <J' w, v>,",
            np.sum(reverse),
            np.sum(forward),
        )


def check_accumulation(subject: Subject) -> None:
    """Check that a shadow is added to, and that a result used twice counts twice."""
    function, cotangent = subject.function, subject.cotangent()
    gradient = pulled_back(subject)
    start = [random_like(x, np.random.default_rng(2), 1.0) for x in subject.arrays]
    shadows = list(map(duplicate, start))
    if all(isinstance(x, np.ndarray) for x in subject.arrays):
        pairs = map(ad.Duplicated, subject.point, shadows)
        ad.autodiff(ad.Reverse, lambda *xs: weighted(cotangent, function(*xs)), *pairs)
        expected = list(map(np.add, start, gradient))
        close(subject, "adding to a shadow", shadows, expected)
    _, pull = ad.vjp(lambda *xs: function(*xs) + function(*xs), *subject.point)
    twice = as_tuple(pull(cotangent))
    close(subject, "the gradient of f(x) + f(x)", twice, [2 * g for g in gradient])


def check_second_order(subject: Subject) -> None:
    """Check that forward over reverse agrees with differences of gradients."""
    objective = curved(subject)
    directions = subject.directions()

    def gradient(*xs: Array) -> tuple[Array, ...]:
        return as_tuple(ad.gradient(objective, *xs))

    _, got = ad.jvp(gradient, subject.point, directions)
    for x, product in zip(subject.arrays, got, strict=True):
        same_kind(subject, "forward over reverse mode", product, x)
    compare_second_order(subject, "forward over reverse mode", got)


def check_nesting(subject: Subject) -> None:
    """Check that reverse over reverse and forward over forward agree with that."""
    objective = curved(subject)
    directions = subject.directions()

    def slope(*xs: Array) -> Array:
        gradient = as_tuple(ad.gradient(objective, *xs))
        return sum(itertools.starmap(weighted, zip(directions, gradient, strict=True)))

    def pushed(*xs: Array) -> Array:
        return ad.jvp(objective, xs, directions)[1]

    got = as_tuple(ad.gradient(slope, *subject.point))
    compare_second_order(subject, "reverse over reverse mode", got)
    _, curvature = ad.jvp(pushed, subject.point, directions)
    products = real_products(got, directions)
    size = max(np.sum(np.abs(products)), subject.floor)
    if not abs(curvature - np.sum(products)) <= 10 * subject.rounding() * size:
        raise subject.fail("forward over forward mode", curvature, np.sum(products))


def compare_second_order(subject: Subject, check: str, got: Sequence[Array]) -> None:
    """Compare products with the Hessian with differences of gradients."""
    wide = replace(subject, arrays=tuple(map(widened, subject.arrays)))
    objective = curved(wide, widened(subject.cotangent()))
    expected, allowed = reference(
        subject, check, lambda *xs: joined(as_tuple(ad.gradient(objective, *xs)))
    )
    if not np.all(np.abs(joined(got) - expected) <= 5 * allowed):
        raise subject.fail(f"{check} against differences", joined(got), expected)


def check_width(subject: Subject) -> None:
    """Check that several directions at once give what single ones give."""
    if np.asarray(subject.value()).dtype.kind == "c":
        return
    for i, x in enumerate(subject.arrays):
        if np.asarray(x).dtype.kind == "c":
            return
        function = alone(subject, i)

        got = [ad.jacobian(function, x, mode=mode) for mode in ("forward", "reverse")]
        basis = np.eye(np.size(x), dtype=np.asarray(x).dtype)
        columns = [
            ad.jvp(function, (x,), (column.reshape(np.shape(x)),))[1]
            for column in basis
        ]
        shape = np.shape(subject.value()) + np.shape(x)
        expected = np.stack(columns, -1).reshape(shape) if columns else np.zeros(shape)
        for mode, jacobian in zip(("forward", "reverse"), got, strict=True):
            close(subject, f"the {mode} Jacobian", [jacobian], [expected])


def alone(subject: Subject, i: int) -> Function:
    """Return the function of one argument, with the others constant."""
    function, point = subject.function, subject.point
    before, after = point[:i], point[i + 1 :]
    return lambda x: function(*before, x, *after)


CHECKS: dict[str, Callable[[Subject], None]] = {
    "value": check_value,
    "forward": check_forward,
    "reverse": check_reverse,
    "accumulation": check_accumulation,
    "second order": check_second_order,
    "nesting": check_nesting,
    "width": check_width,
}


def close(
    subject: Subject, check: str, got: Sequence[Array], expected: Sequence[Array]
) -> None:
    """Raise unless arrays agree to rounding."""
    for a, b in zip(got, expected, strict=True):
        if np.shape(a) != np.shape(b):
            raise subject.fail(check, f"shape {np.shape(a)}", f"shape {np.shape(b)}")
        size = max(float(np.max(np.abs(b), initial=0.0)), subject.floor)
        if not np.all(np.abs(a - b) <= subject.rounding() * size):
            raise subject.fail(check, a, b)


def pulled_back(subject: Subject) -> tuple[Array, ...]:
    """Return the gradient with respect to each argument for a random cotangent."""
    _, pull = ad.vjp(subject.function, *subject.point)
    return as_tuple(pull(subject.cotangent()))


def as_tuple(x: Any) -> tuple[Array, ...]:
    """Return the gradient of one argument as that of several."""
    return x if isinstance(x, tuple) else (x,)


def real_products(ws: Sequence[Array], ys: Sequence[Array]) -> Array:
    """Return the terms of the real inner product of arrays."""
    return joined(
        [np.real(np.conj(w) * y) for w, y in zip(ws, ys, strict=True)] or [np.zeros(0)]
    )


def weighted(w: Array, y: Array) -> Array:
    """Return the real inner product of ``y`` with a constant."""
    if np.asarray(w).dtype.kind != "c":
        return np.sum(w * y)
    return np.sum(w.real * y.real + w.imag * y.imag)


def curved(subject: Subject, cotangent: Array = None) -> Function:
    """Return a real function with second derivatives, even if the subject has none."""
    function = subject.function
    w = subject.cotangent() if cotangent is None else cotangent

    def objective(*xs: Array) -> Array:
        y = function(*xs)
        if np.asarray(w).dtype.kind == "c":
            squares = y.real * y.real + y.imag * y.imag
        else:
            squares = y * y
        return weighted(w, y) + 0.5 * np.sum(squares)

    return objective


def run(check: str, subject: Subject) -> None:
    """Run one check: the point must keep its values, errors say where they arose."""
    before = [np.array(x) for x in subject.arrays]
    failure: Exception | None = None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", IndependentOutputWarning)
            CHECKS[check](subject)
    except (DerivativeError, ChangedArrayError) as error:
        failure = error
    except Exception as error:
        error.add_note(f"while checking {check} of {subject.where}")
        raise
    for x, old in zip(subject.arrays, before, strict=True):
        if not np.array_equal(x, old, equal_nan=True):
            raise subject.fail(f"{check}: leaving the arguments unchanged", x, old)
    if failure is not None:
        raise failure


# --- public -----------------------------------------------------------------------


def check_derivatives(
    f: Function, *args: Tree, order: int = 2, rtol: float | None = None
) -> None:
    """Compare the derivatives of a function with each other and with differences.

    Parameters
    ----------
    f : callable
        A function that dualad can differentiate.  Its output is an array, a number, or
        a tuple, list or dict of them.
    *args : arrays, numbers, or tuples, lists and dicts of them
        Where to check.  ``f`` should be smooth within 2 percent of the largest
        element of each array.  Wrap constants in :class:`dualad.Const`.  Copied, never
        changed.
    order : {1, 2}
        The highest derivative to check.
    rtol : float, optional
        The error allowed against differences, relative to the largest derivative.  By
        default 1e-8 in double precision, 3e-5 in single, 2e-2 in half.

    Raises
    ------
    DerivativeError
        If forward mode disagrees with differences, reverse mode with forward mode, or
        forward over reverse mode with differences of gradients.

    Notes
    -----
    One random direction and cotangent are tried, always the same ones.  Costs about
    20 evaluations of ``f``, and as many gradients for ``order=2``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualad.testing import check_derivatives
    >>> check_derivatives(lambda x: np.sum(np.exp(x) * x[::-1]), np.array([0.5, 1.0]))
    """
    if order not in (1, 2):
        raise ValueError(f"order is 1 or 2, but was {order!r}")
    name = getattr(f, "__name__", repr(f))
    checks = ["value", "forward", "reverse", "second order"][: 3 if order == 1 else 4]
    for subject in subjects(
        f, args, {}, is_number_or_array, name=name, floor=0.0, writes=True, rtol=rtol
    ):
        for check in checks:
            run(check, subject)


def check_rule(
    function: Function,
    *args: Any,
    dtypes: Sequence[str] = DTYPES,
    layouts: Sequence[str] = LAYOUTS,
    modes: Sequence[str] = tuple(CHECKS),
    thorough: bool = False,
    **params: Any,
) -> None:
    """Put one function through every mode of differentiation.

    The function is called as ``function(*args, **params)``.  The following must hold:

    ==============  ==================================================================
    value           the value, its dtype and shape are NumPy's
    forward         J v agrees with differences
    reverse         <w, J v> = <J' w, v> to rounding
    accumulation    a shadow that is not zero is added to; f(x) + f(x) counts twice
    second order    forward over reverse agrees with differences of gradients
    nesting         reverse over reverse, forward over forward agree with it
    width           several directions at once give what single ones give
    ==============  ==================================================================

    In each, results have the dtype and shape of what they belong to, and the
    arguments keep their values.

    Parameters
    ----------
    function : callable
        A function of NumPy, or one of your own that has a rule.
    *args : any
        Its arguments.  The floating arrays among them (also inside lists and tuples)
        are differentiated; everything else is constant.  Wrap constant arrays in
        :class:`dualad.Const`.  The function should be smooth within 2 percent of the
        largest element.
    dtypes : sequence of str
        The dtypes to try.  Those that the function does not accept are passed over;
        complex ones are tried on real arguments too, moved off the real axis.
    layouts : sequence of str
        The memory layouts to try: ``"C"``, ``"F"``, ``"reversed"`` (negative strides),
        ``"strided"``, ``"read-only"``, ``"0-d"`` (the first element alone) and
        ``"empty"``.  Arguments that the function does not accept are passed over.
    modes : sequence of str
        Which of the checks above to run.
    thorough : bool
        Run every combination of dtype, layout and mode, not only so many that each
        pair of them occurs.
    **params : any
        Keyword arguments of the function.

    Raises
    ------
    DerivativeError
        Naming the check, the dtype and the layout, with both values.

    Notes
    -----
    Costs a few thousand evaluations of the function: with small arrays about a
    twentieth of a second, five times that if ``thorough``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualad.testing import check_rule
    >>> check_rule(np.multiply, np.array([0.5, 1.5]), np.array([2.0, 3.0]))
    >>> check_rule(np.sum, np.ones((2, 3)), axis=0)
    """
    name = getattr(function, "__name__", repr(function))
    split = functools.partial(subjects, function, params=params, is_active=is_array)
    # Raises what NumPy has to say about the arguments as they are.
    if not all(subject.arrays for subject in split(args, name=name, floor=1.0)):
        raise ValueError(f"{name} got no floating array to differentiate")
    variants: dict[tuple[str, str], list[Subject]] = {}
    for dtype, layout in itertools.product(dtypes, layouts):
        place = f"dtype {dtype}, layout {layout}"
        try:
            varied = tuple(arranged(x, np.dtype(dtype), layout) for x in args)
            found = list(split(varied, name=name, floor=1.0, place=place))
            if all(np.all(np.isfinite(subject.value())) for subject in found):
                variants[dtype, layout] = found
        except Exception:  # noqa: BLE001, S112 -- NumPy refuses such arguments itself
            continue
    if not any(variants.values()):
        raise ValueError(f"{name} returns no floating array for these arguments")
    accepted = [tuple(dict.fromkeys(names)) for names in zip(*variants, strict=True)]
    choose = itertools.product if thorough else pairwise
    for dtype, layout, mode in choose(*accepted, tuple(modes)):
        for subject in variants.get((dtype, layout), ()):
            run(mode, subject)


def arranged(tree: Tree, dtype: np.dtype[Any], layout: str) -> Tree:
    """Return an argument with its arrays in another dtype and memory layout."""
    if isinstance(tree, list | tuple):
        items = [arranged(item, dtype, layout) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return in_layout(in_dtype(tree, dtype), layout) if is_array(tree) else tree


def in_dtype(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return an array in another dtype; a real one moves off the real axis."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError("complex arguments have no real counterpart")
    if x.dtype.kind != "c" and dtype.kind == "c":
        x = x * np.exp(0.25j * np.cos(np.arange(x.size))).reshape(x.shape)
    return np.asarray(x, dtype)


def in_layout(x: Array, layout: str) -> Array:
    """Return an array in another memory layout."""
    return ARRANGE[layout](x)


def every_second(x: Array) -> Array:
    """Return an array whose elements are every second of its memory in each axis."""
    between: Array = np.full([2 * n for n in x.shape], np.nan, x.dtype)
    view = between[..., *(slice(None, None, 2) for _ in x.shape)]
    view[...] = x
    return view


def read_only(x: Array) -> Array:
    """Return an array that cannot be written to."""
    y = x.copy()
    y.flags.writeable = False
    return y


def backwards(x: Array) -> Array:
    """Return an array with negative strides."""
    flip = (..., *(slice(None, None, -1) for _ in x.shape))
    return x[flip].copy()[flip]


def emptied(x: Array) -> Array:
    """Return an array without elements; what broadcasts still broadcasts."""
    if x.ndim == 0:
        raise ValueError("a 0-d array has one element")
    return x[tuple(slice(n if n == 1 else 0) for n in x.shape)].copy()


ARRANGE: dict[str, Callable[[Array], Array]] = {
    "C": lambda x: np.array(x, order="C"),
    "F": lambda x: np.array(x, order="F"),
    "reversed": backwards,
    "strided": every_second,
    "read-only": read_only,
    "0-d": lambda x: np.array(x.flat[0]),
    "empty": emptied,
}


@functools.lru_cache(maxsize=64)
def pairwise(*factors: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return combinations of the factors in which each pair of values occurs."""

    def pairs(row: tuple[str, ...]) -> set[Any]:
        return set(itertools.combinations(enumerate(row), 2))

    rows = list(itertools.product(*factors))
    missing = set().union(*map(pairs, rows))
    chosen = []
    while missing:
        best = max(rows, key=lambda row: len(pairs(row) & missing))
        chosen.append(best)
        missing -= pairs(best)
    return chosen
