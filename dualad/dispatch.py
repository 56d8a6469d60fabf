"""From a NumPy call to its rule: what NEP 13 and NEP 18 hand over ends here.

This is the only place that knows ``out=``, ``where=``, ``dtype=`` and positional
parameters; rules and interpreters never see them.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import get_ident
from typing import Any

import numpy as np

from dualad.errors import (
    EscapedArrayError,
    LostDerivativeError,
    MissingRuleError,
    UnsupportedArgumentError,
)
from dualad.levels import (
    RUNNING,
    Active,
    Level,
    bare,
    is_array,
    those_of_this_thread,
)
from dualad.rules import METHODS, RULES
from dualad.rules.kinds import Reduction, Rule, name_of
from dualad.rules.views import cast, copied

Array = Any
NOTHING: dict[
    str, Any
] = {}  # no parameters; a plain dict, for ``**`` of a proxy is slow

# Operands that need no conversion; everything else is looked at once more.
PLAIN = frozenset({bool, int, float, complex, np.ndarray}) | {
    np.dtype(code).type for code in "?bhilqBHILQefdgFDG"
}

REMEDY_BUFFER = (
    "Make the buffer active with np.zeros_like(x) or np.zeros(n, like=x), "
    "or compute a new array: y = y + t."
)


# --- calls ----------------------------------------------------------------------


def operate(rule: Rule, x: Any, y: Any) -> Any:
    """Hand a call of two operands to the highest level among them."""
    if y.__class__ in PLAIN:
        if isinstance(x, Active):
            return x.level.binary(rule, x, y)
    elif isinstance(y, Active):
        if x.__class__ in PLAIN:
            return y.level.binary(rule, x, y)
        if isinstance(x, Active):
            level = x.level if x.level.order >= y.level.order else y.level
            return level.binary(rule, x, y)
    x, y = operand(x), operand(y)
    if x is NotImplemented or y is NotImplemented:
        return NotImplemented
    if not isinstance(x, Active) and not isinstance(y, Active):
        return rule.primal(x, y)
    return operate(rule, x, y)


def call(rule: Rule, args: tuple[Any, ...], params: Mapping[str, Any] = NOTHING) -> Any:
    """Hand a call to the highest level among its arguments."""
    if len(args) == 1 == rule.arity and rule.plans and isinstance(args[0], Active):
        return args[0].level.unary(rule, args[0], params)
    top: Any = None
    order = 0
    for x in args:
        if isinstance(x, Active) and x.level.order > order:
            top, order = x.level, x.level.order
    if top is None:
        return rule.primal(*args, **params)
    if len(args) == 2 == rule.arity and rule.plans:  # noqa: PLR2004 -- x and y
        return top.binary(rule, *args, params)
    return getattr(top, rule.kind)(rule, args, params)


def apply(function: Any, args: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """Call ``function`` of NumPy on arguments of which some are active."""
    rule = RULES.get(function)
    if rule is None:
        raise MissingRuleError(name_of(function), actives(args, params))
    kind = rule.kind
    if kind == "elementwise" and len(args) == 2:  # noqa: PLR2004 -- the usual case
        return operate(rule, *args)
    if kind == "constant":
        args, params = with_named_output(rule, args, params)
        return constant(rule.primal, args, params)
    if function in WRITERS:
        refuse_plain_destination(function, args, params)
    if kind == "composition":
        return apply_composition(function, rule, args, params)
    return apply_rule(rule, args, params)


def constant(function: Any, args: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """Compute on plain arrays what carries no derivative."""
    if function not in STRUCTURE:
        check_running(actives(args, params))
    params = dict(params)
    out = params.pop("out", None)
    result = function(*bare_tree(args), **bare_tree(params))
    return result if out is None else written(out, result, function)


STRUCTURE = frozenset({np.shape, np.ndim, np.size})  # may be asked at any time


def apply_composition(
    function: Any, rule: Rule, args: tuple[Any, ...], params: Mapping[str, Any]
) -> Any:
    """Run a function that is written in terms of others."""
    args, given = with_named_output(rule, args, params)
    out = given.pop("out", None)
    if "dtype" in rule.parameters and output_dtype(out) is not None:
        place = rule.parameters.index("dtype")
        if len(args) <= place and given.get("dtype") is None:
            given["dtype"] = output_dtype(out)
    result = rule.primal(*args, **given)
    return result if out is None else written(out, result, function)


def object_result(rule: Rule) -> UnsupportedArgumentError:
    """Return the error for an array of Python objects among the operands."""
    return UnsupportedArgumentError(
        rule.name, "operand", "an object array", "Convert it: np.asarray(x, float)."
    )


def output_dtype(out: Any) -> Any:
    """Return the dtype in which a reduction into ``out`` is computed, or None."""
    dtype = getattr(single(out), "dtype", None)
    return dtype if dtype is not None and dtype.kind in "fc" else None


def with_named_output(
    rule: Rule, args: tuple[Any, ...], params: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with a positional ``out`` as a keyword."""
    given = dict(params)
    if "out" in rule.parameters:
        place = rule.parameters.index("out")
        if len(args) > place:
            given["out"] = args[place]
            args = (*args[:place], None, *args[place + 1 :])
    return args, given


def apply_rule(rule: Rule, args: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
    """Sort the arguments of a call into arrays and parameters, and make it."""
    if not given and len(args) <= rule.arity:
        return call(rule, tuple(map(array_operand, args)))
    arrays, params = canonical(rule, args, given)
    out = params.pop("out", None)
    if rule.kind == "alias" and params.get("copy"):
        params.pop("copy")
        arrays = (copied(arrays[0], order=params.get("order", "C")),)
    if "dtype" in rule.parameters and output_dtype(out) is not None:
        params.setdefault("dtype", output_dtype(out))
    if rule.reduction is None:
        result = call(rule, arrays, params)
    else:
        result = reduced(rule, rule.reduction, arrays, params)
    return result if out is None else written(out, result, rule.primal)


def reduced(
    rule: Rule, reduction: Reduction, arrays: tuple[Any, ...], params: dict[str, Any]
) -> Any:
    """Call a reduction: ``dtype=`` first, then ``where=``, and ``initial=`` last."""
    dtype = params.pop("dtype", None)
    where = params.pop("where", True)
    initial = params.pop("initial", None)
    if dtype is not None:
        dtype = floating(rule.name, dtype)
        arrays = (cast_operand(arrays[0], dtype), *arrays[1:])
    if where is not True:
        if rule.primal in NEEDS_INITIAL and initial is None:
            raise ValueError(
                f"reduction operation {rule.name} does not have an identity, so to use "
                "a where mask one has to specify 'initial'"
            )
        arrays = (np.where(where, arrays[0], reduction.identity), *arrays[1:])
    if initial is not None and np.size(arrays[0]) == 0:
        return of_nothing(rule, arrays[0], initial, params)
    result = call(rule, arrays, params)
    return result if initial is None else reduction.combine(result, initial)


def of_nothing(rule: Rule, x: Any, initial: Any, params: dict[str, Any]) -> Any:
    """Reduce an empty array: the result is the initial value."""
    plain = rule.primal(bare(x), initial=bare(initial), **params)
    if not isinstance(initial, Active):
        return plain
    return copied(np.broadcast_to(initial, np.shape(plain)))


NEEDS_INITIAL = frozenset({np.max, np.min, np.amax, np.amin})


def canonical(
    rule: Rule, args: tuple[Any, ...], given: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arrays by position and parameters by name, as rules expect them."""
    if rule.variadic:
        return args, dict(given)
    names, arity = rule.parameters, rule.arity
    if len(args) > arity and len(names) < len(args):
        raise TypeError(f"{rule.name} got {len(args)} positional arguments")
    params = dict(zip(names[arity:], args[arity:], strict=False))
    params.update((k, v) for k, v in given.items() if v is not np._NoValue)  # noqa: SLF001 -- NumPy has no public name for "not given"
    arrays = list(args[:arity])
    for name in names[len(arrays) : arity]:
        if name not in params:
            break
        arrays.append(params.pop(name))
    params = {k: v for k, v in params.items() if v is not np._NoValue}  # noqa: SLF001
    return tuple(map(array_operand, arrays)), params


def array_operand(x: Any) -> Any:
    """Return an array argument as an array: lists are converted here, once."""
    if isinstance(x, Active) or type(x) in PLAIN or x is None:
        return x
    return operand(x)


def operand(x: Any) -> Any:
    """Return what NumPy would make of an operand, or NotImplemented if not ours."""
    if isinstance(x, Active) or type(x) in PLAIN:
        return x
    if isinstance(x, np.ma.MaskedArray | np.matrix):
        raise UnsupportedArgumentError(
            "An operation on active arrays",
            "operand",
            type(x),
            "Convert it: np.asarray(x), or x.filled(0.0) for a masked array.",
        )
    if isinstance(x, np.ndarray):
        return np.asarray(x)  # np.memmap: its results would be of its own class
    if hasattr(type(x), "__array_ufunc__"):
        return NotImplemented
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"unsupported operand type for differentiation: {type(x).__name__!r}"
        )
    return array[()] if np.isscalar(x) else array


def actives(args: Any, params: Mapping[str, Any] = NOTHING) -> list[Any]:
    """Return the active arrays among the arguments of a call."""
    found: list[Any] = []
    for x in (*args, *params.values()):
        if isinstance(x, Active):
            found.append(x)
        elif isinstance(x, list | tuple):
            found += actives(x)
    return found


def bare_tree(x: Any) -> Any:
    """Strip all levels from active arrays in the arguments of a call."""
    if isinstance(x, Active):
        return bare(x)
    if type(x) in (list, tuple):
        return type(x)(map(bare_tree, x))
    if type(x) is dict:
        return {k: bare_tree(v) for k, v in x.items()}
    return x


# --- ufuncs ---------------------------------------------------------------------


def array_ufunc(
    function: Any, method: str, args: tuple[Any, ...], params: dict[str, Any]
) -> Any:
    """Do what NEP 13 hands over: any method of any ufunc, with any keyword."""
    if method == "__call__":
        if not params and len(args) == function.nin:
            return apply(function, args, NOTHING)
        return call_ufunc(function, args, params)
    if method == "at":
        return at(function, *args)
    rule = RULES.get(function)
    if rule is not None and rule.kind == "constant":
        return constant(getattr(function, method), args, params)
    out = single(params.pop("out", None))
    if method != "outer" and output_dtype(out) is not None:
        params.setdefault("dtype", output_dtype(out))
    act: Any = METHODS[method]
    result = act(function, *args, **params)
    return result if out is None else written(out, result, function)


def call_ufunc(function: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Call a ufunc with keywords: ``dtype=`` first, then ``where=``, then ``out=``."""
    params = dict(params)
    given = params.pop("out", None) or args[function.nin :] or None
    args = args[: function.nin]
    where = params.pop("where", True)
    dtype = params.pop("dtype", None)
    casting = params.pop("casting", None)
    order = params.pop("order", "K")
    params.pop("subok", None)
    if dtype is not None:
        dtype = floating(name_of(function), dtype)
    if dtype is not None or casting is not None:
        check_casting(function, args, dtype, casting or "same_kind")
    if dtype is not None:
        args = tuple(cast_operand(a, dtype) for a in args)
    for keyword, value in params.items():
        remedy = "Call it without, and transpose or cast the operands instead."
        raise UnsupportedArgumentError(name_of(function), keyword, value, remedy)
    if where is not True:
        return masked(function, args, where, single(given))
    result = apply(function, args, NOTHING)
    if order != "K":
        result = copied(result, order=order)
    if given is None:
        return result
    if isinstance(result, tuple):
        return tuple(
            r if o is None else written(o, r, function)
            for o, r in zip(given, result, strict=True)
        )
    return written(single(given), result, function)


def masked(function: Any, args: tuple[Any, ...], where: Any, out: Any) -> Any:
    """Compute only where asked, as NumPy does, so that nothing leaks from elsewhere."""
    if function.nout > 1:
        raise UnsupportedArgumentError(
            name_of(function), "where", where, "Use np.where on the results."
        )
    mask = np.asarray(bare(where), dtype=bool)
    shape = np.broadcast_shapes(mask.shape, *(np.shape(a) for a in args))
    if out is not None:
        shape = np.broadcast_shapes(shape, np.shape(out))
    mask = np.broadcast_to(mask, shape)
    chosen = [np.broadcast_to(a, shape)[mask] if np.ndim(a) else a for a in args]
    result = apply(function, tuple(chosen), NOTHING)
    if out is not None and not isinstance(out, Active) and isinstance(result, Active):
        raise lost_in_output(function, out, result)
    is_scalar = out is None and not shape
    if out is None:
        out = created(np.zeros(shape, dtype=bare(result).dtype))
    check_output(function, out, result)
    out[mask] = result
    return out[()] if is_scalar else out


def at(function: Any, x: Any, index: Any, *values: Any) -> None:
    """Do ``ufunc.at``: add and subtract have a step of their own, others a loop."""
    if not isinstance(x, Active):
        raise LostDerivativeError(
            f"{name_of(function)}.at into a plain array",
            next(v for v in (*values, index) if isinstance(v, Active)),
            REMEDY_BUFFER,
        )
    if function in (np.add, np.subtract):
        (y,) = (array_operand(v) for v in values)
        if isinstance(y, Active) and y.level.order > x.level.order:
            raise lower_buffer(x, y)
        if np.asarray(bare(y)).dtype.kind in "biu":
            y = np.asarray(y, x.dtype)  # the negative of an unsigned number wraps
        x.level.add_at(x, index, y if function is np.add else np.negative(y))
    else:
        act: Any = METHODS["at"]
        act(function, x, index, *values)


def single(out: Any) -> Any:
    """Return the one output array of ``out=``."""
    if isinstance(out, tuple):
        return out[0] if len(out) == 1 else out
    return out


def floating(name: str, dtype: Any) -> np.dtype[Any]:
    """Return the dtype that a call asks for, if derivatives can be carried in it."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "fc":
        raise UnsupportedArgumentError(
            name, "dtype", dtype, "Compute in floating point, then use .astype."
        )
    return dtype


def check_casting(
    function: Any, args: tuple[Any, ...], dtype: Any, casting: Any
) -> None:
    """Raise what NumPy raises for operands that ``dtype=`` and ``casting=`` forbid."""
    kinds = [
        type(x) if type(x) in (int, float, complex) else np.result_type(bare(x))
        for x in map(array_operand, args)
    ]
    function.resolve_dtypes(
        (*kinds, *[None] * function.nout),
        signature=(*[None] * function.nin, *[dtype] * function.nout),
        casting=casting,
    )


def cast_operand(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return an operand in the dtype that the call asks for."""
    if not isinstance(x, Active):
        return x if isinstance(x, int | float | complex) else np.asarray(x, dtype)
    return x if x.dtype == dtype else cast(x, dtype)


# --- writing --------------------------------------------------------------------

WRITERS = {
    np.copyto: "dst",
    np.put: "a",
    np.place: "arr",
    np.putmask: "a",
    np.fill_diagonal: "a",
    np.put_along_axis: "arr",
}


def refuse_plain_destination(
    function: Any, args: tuple[Any, ...], params: Mapping[str, Any]
) -> None:
    """Raise if a function that writes would write active values into a plain array."""
    destination = args[0] if args else params[WRITERS[function]]
    if not isinstance(destination, Active):
        raise LostDerivativeError(
            f"{name_of(function)} into a plain array",
            actives(args, params)[0],
            REMEDY_BUFFER,
        )


def lost_in_output(function: Any, out: Any, result: Any) -> LostDerivativeError:
    """Return the error for ``out=plain`` and ``plain += active``."""
    return LostDerivativeError(
        f"{name_of(function)} with a plain array as its output ({out.dtype}, shape "
        f"{out.shape}; also: plain += active)",
        result,
        REMEDY_BUFFER,
    )


def lower_buffer(x: Any, value: Any) -> EscapedArrayError:
    """Return the error for a write that would outlive its derivative."""
    return EscapedArrayError(
        f"An array of level {value.level.order} was written into a buffer of level "
        f"{x.level.order}, which outlives its derivative.",
        "Allocate the buffer inside the inner function with np.zeros_like(x).",
    )


def written(out: Any, result: Any, function: Any) -> Any:
    """Write the result of a call into ``out`` as NumPy does, and return ``out``."""
    out = single(out)
    if not isinstance(out, Active):
        if isinstance(result, Active):
            raise lost_in_output(function, out, result)
        np.copyto(out, result, casting="same_kind")
        return out
    shape = np.shape(out)
    given = np.shape(result)
    if given != shape and np.broadcast_shapes(shape, given) != shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {np.shape(out)} doesn't "
            f"match the broadcast shape {np.shape(result)}"
        )
    check_output(function, out, result)
    out[...] = result
    return out


def check_output(function: Any, out: Any, result: Any) -> None:
    """Raise what NumPy raises if a result cannot be cast to the dtype of ``out``."""
    kind = getattr(result, "dtype", None)
    if kind is not None and not np.can_cast(kind, out.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast {name_of(function)} output from {kind} to {out.dtype} with "
            "casting rule 'same_kind'"
        )


# --- NEP 18 and creation ------------------------------------------------------------


def array_function(
    function: Any, args: tuple[Any, ...], params: Mapping[str, Any]
) -> Any:
    """Do what NEP 18 hands over."""
    if function in CREATORS:
        return CREATORS[function](function, args, dict(params))
    return apply(function, args, params)


def running() -> tuple[Level, ...]:
    """Return the levels that run in this thread, outermost first."""
    return those_of_this_thread(RUNNING.get())


def created(x: Any) -> Any:
    """Return a new plain array as one that is active at every running level."""
    if x.dtype.kind in "fc":
        for level in running():
            x = level.activated(x)
    return x


def create_like(function: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Do ``zeros_like``, ``ones_like``, ``empty_like``; nothing stays unwritten."""
    check_running(actives(args, params))
    maker = np.zeros_like if function is np.empty_like else function
    return created(maker(*bare_tree(args), **bare_tree(params)))


def create_full_like(
    function: Any,  # noqa: ARG001 -- creators share one signature
    args: tuple[Any, ...],
    params: dict[str, Any],
) -> Any:
    """Do ``full_like``: the value may be active too."""
    given = dict(
        zip(("a", "fill_value", "dtype", "order", "subok"), args, strict=False)
    )
    given.update(params)
    value = given.pop("fill_value")
    check_running(actives(args, params))
    out = created(np.zeros_like(bare(given.pop("a")), **given))
    if isinstance(value, Active) and not isinstance(out, Active):
        raise LostDerivativeError("np.full_like", value, "Give it a float dtype.")
    out[...] = value
    return out


def create(function: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Do ``np.zeros(n, like=x)`` and the other creators with ``like=``."""
    params.pop("like", None)
    if actives(args, params):
        raise LostDerivativeError(
            f"{name_of(function)} of active values",
            actives(args, params)[0],
            "Use np.full_like, np.stack, or arithmetic on a plain array: "
            "a + t * np.arange(n).",
        )
    if function is np.empty:
        function = np.zeros
    return created(function(*args, **params))


def create_array(function: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Do ``np.array(x, like=x)`` and its kin: a copy where NumPy copies, else ``x``.

    Active entries of nested lists keep their derivative.
    """
    given = dict(zip(("object", "dtype"), args, strict=False)) | params
    x, dtype = given.pop("object", given.pop("a", None)), given.pop("dtype", None)
    found = actives((x,))
    check_running(found)
    if not found:
        plain = function(x, dtype, **given)
        is_new = plain is not x and not np.may_share_memory(plain, np.asarray(x))
        return created(plain) if is_new else plain
    always = given.pop("copy", True if function is np.array else None)
    order = given.pop("order", None) or ORDERS.get(function, "K")
    ndmin = given.pop("ndmin", 0)
    given.pop("subok", None)
    result = x if isinstance(x, Active) else stacked(x)
    fits = dtype is None or result.dtype == dtype
    if function in ORDERS and result.ndim == 0:
        ndmin = 1
    if isinstance(result, Active) and fits and laid_out(result, order):
        result = (
            copied(result, order=order) if always or not is_array(result) else result
        )
    elif always is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    else:
        result = copied(result, order=order) if fits else cast(result, dtype)
    if result.ndim < ndmin:
        result = np.reshape(result, (1,) * (ndmin - result.ndim) + result.shape)
    return result


ORDERS = {np.ascontiguousarray: "C", np.asfortranarray: "F"}


def laid_out(x: Active, order: str) -> bool:
    """Say whether an array has the memory order that a call asks for."""
    flags = bare(x).flags
    wanted = {"C": flags.c_contiguous, "F": flags.f_contiguous}
    return bool(wanted.get(order, True))


def stacked(x: Any) -> Any:
    """Return nested lists of active and plain values as one array (a new one)."""
    if isinstance(x, list | tuple) and actives(x):
        return np.stack([stacked(item) for item in x])
    return copied(x) if isinstance(x, Active) else np.array(x)


def check_running(found: list[Any]) -> None:
    """Raise if an array is used whose derivative has ended."""
    for x in found:
        if x.level.thread != get_ident():
            raise x.level.escaped()


CREATORS: dict[Any, Any] = {
    np.zeros_like: create_like,
    np.ones_like: create_like,
    np.empty_like: create_like,
    np.full_like: create_full_like,
    np.array: create_array,
    np.asarray: create_array,
    np.asanyarray: create_array,
    np.ascontiguousarray: create_array,
    np.asfortranarray: create_array,
    **dict.fromkeys(
        (np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.arange, np.tri),
        create,
    ),
}
