"""What every differentiable array shares: shape, operators, methods, refusals.

``ActiveArray`` stands for an ``ndarray``, ``ActiveScalar`` for a NumPy scalar: it is
immutable (``s += 1`` rebinds the name) and has no sequence protocol, so that NumPy
shows our error instead of its own when one is written into a plain array.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import opcode
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Self

import numpy as np

from dualad import dispatch
from dualad.dispatch import (
    PLAIN,
    apply,
    array_function,
    array_ufunc,
    operate,
)
from dualad.errors import LostDerivativeError
from dualad.levels import Active, bare, is_array
from dualad.rules import RULES
from dualad.rules.kinds import Rule
from dualad.rules.views import cast, copied, reinterpreted

Array = Any
Method = Callable[..., Any]


# --- operators, one line each ---------------------------------------------------


def _binary(function: Any) -> tuple[Method, Method]:
    rule = function if isinstance(function, Rule) else RULES[function]

    def forward(self: Any, other: Any) -> Any:
        if other.__class__ in PLAIN:
            return self.level.binary(rule, self, other)
        if isinstance(other, Active) and other.level is self.level:
            return self.level.binary(rule, self, other)
        return operate(rule, self, other)

    def reflected(self: Any, other: Any) -> Any:
        if other.__class__ in PLAIN:
            return self.level.binary(rule, other, self)
        return operate(rule, other, self)

    return forward, reflected


def _unary(function: Any) -> Method:
    rule = RULES[function]

    def method(self: Active) -> Any:
        return self.level.unary(rule, self)

    return method


def _by_ufunc(function: Any) -> tuple[Method, Method]:
    """Return operators of a ufunc that is not recorded: divmod, ``>``."""

    def forward(self: Active, other: Any) -> Any:
        if NotImplemented is dispatch.operand(other):
            return NotImplemented
        return apply(function, (self, other), {})

    def reflected(self: Active, other: Any) -> Any:
        return apply(function, (other, self), {})

    return forward, reflected


def _compares(operation: Any) -> Method:
    """Return a comparison: it carries no derivative, so it is that of the values."""

    def method(self: ActiveValue, other: Any) -> Any:
        dispatch.check_running([self])
        return operation(bare(self), bare(other))

    return method


def _augmented(function: Any) -> Method:
    def method(self: ActiveArray, other: Any) -> Any:
        result = apply(function, (self, other), {})
        if result is NotImplemented:
            return result
        return dispatch.written(self, result, function)

    return method


def _augmented_power(self: ActiveArray, exponent: Any) -> Any:
    return dispatch.written(self, _power(self, exponent), np.power)


def _augmented_matmul(self: ActiveArray, other: Any) -> Any:
    result = apply(np.matmul, (self, other), {})
    if result is NotImplemented:
        return result
    if np.ndim(bare(other)) < 2 or result.shape != self.shape:  # noqa: PLR2004 -- y is a matrix
        raise ValueError(
            f"x @= y needs square matrices y that leave the shape {self.shape} as it "
            "is: use x = x @ y."
        )
    return dispatch.written(self, result, np.matmul)


def _calls(function: Any) -> Method:
    """Return the method that calls NumPy's function of the same name."""

    def method(self: Active, *args: Any, **params: Any) -> Any:
        return apply(function, (self, *args), params)

    method.__name__ = function.__name__
    method.__doc__ = f"See :func:`numpy.{function.__name__}`."
    return method


def _power(self: Active, exponent: Any) -> Any:
    # NumPy's own operator takes the same short cuts, so that values agree to the bit.
    if type(exponent) in (int, float) and isinstance(self, ActiveArray):
        short = _POWERS.get(exponent)
        if short is not None:
            return self.level.unary(short, self)
    return operate(POWER, self, exponent)


# The operator's values; on scalars np.power can differ from it in the last bit.
POWER = dataclasses.replace(RULES[np.power], evaluate=operator.pow)
_POWERS = {
    2: RULES[np.square],
    1: RULES[np.positive],
    0.5: RULES[np.sqrt],
    -1: RULES[np.reciprocal],
}


def _refuses(action: str, remedy: str) -> Method:
    def method(self: Active, *_: Any, **__: Any) -> NoReturn:
        raise LostDerivativeError(action, self, remedy)

    return method


READ_VALUE = (
    "dualad.primal(x) reads the value; dualad.stop_gradient(x) treats it as constant."
)
USE_NUMPY = (
    "Use np.sin and the like, not math; allocate buffers with np.zeros_like(x) or "
    "np.zeros(n, like=x), not np.zeros(n); dualad.primal(x) reads the value."
)
USE_STACK = (
    "Join active values with np.stack or np.concatenate, allocate with "
    "np.zeros_like(x) or like=x; W.T.dot(x) of a plain W is W.T @ x."
)


def is_formatting(frame: Any) -> bool:
    """Say whether a frame is at a ``%``: ``"%.3f" % t`` shows the value to a person."""
    place, code = frame.f_lasti, frame.f_code.co_code
    return opcode.opname[code[place]] == "BINARY_OP" and code[place + 1] in REMAINDERS


REMAINDERS = tuple(
    number
    for number, (_, symbol) in enumerate(getattr(opcode, "_nb_ops", ()))
    if symbol in ("%", "%=")
)


class ActiveValue(Active):  # noqa: PLW1641 -- scalars hash, arrays do not
    """What active arrays and active scalars share."""

    __slots__ = ()
    __array_priority__ = 1000

    def __array_ufunc__(
        self, function: Any, method: str, *args: Any, **params: Any
    ) -> Any:
        if len(args) == 1 and method == "__call__" and not params:
            rule = RULES.get(function)
            if rule is not None and rule.kind == "elementwise":
                return args[0].level.unary(rule, args[0])
        return array_ufunc(function, method, args, params)

    def __array_function__(
        self, function: Any, types: Any, args: Any, params: Any
    ) -> Any:
        if len(args) == 1 and not params and args[0] is self:
            rule = RULES.get(function)
            if rule is not None and rule.plans:
                return self.level.unary(rule, self)
        return array_function(function, args, params)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return np

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the primal."""
        return self.primal.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the primal."""
        return self.primal.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.primal.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.primal.size

    @property
    def itemsize(self) -> int:
        """Bytes per element of the primal."""
        return bare(self).itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the primal."""
        return bare(self).nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return bare(self).strides

    @property
    def flags(self) -> Any:
        """The memory layout of the primal."""
        return bare(self).flags

    @property
    def real(self) -> Any:
        """The real part: a view."""
        return apply(np.real, (self,), {})

    @real.setter
    def real(self, value: Any) -> None:
        apply(np.real, (self,), {})[...] = value

    @property
    def imag(self) -> Any:
        """The imaginary part: a view of a complex array."""
        return apply(np.imag, (self,), {})

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        apply(np.imag, (self,), {})[...] = value

    @property
    def T(self) -> Any:  # noqa: N802 -- NumPy's name
        """The transpose: a view."""
        return apply(np.transpose, (self,), {})

    __add__, __radd__ = _binary(np.add)
    __sub__, __rsub__ = _binary(np.subtract)
    __mul__, __rmul__ = _binary(np.multiply)
    __truediv__, __rtruediv__ = _binary(np.divide)
    __mod__, __rmod__ = _by_ufunc(np.remainder)
    __floordiv__, __rfloordiv__ = _by_ufunc(np.floor_divide)
    __divmod__, __rdivmod__ = _by_ufunc(np.divmod)
    __pow__ = _power
    __rpow__ = _binary(POWER)[1]
    __matmul__, __rmatmul__ = _binary(np.matmul)
    __neg__ = _unary(np.negative)
    __pos__ = _unary(np.positive)
    __abs__ = _calls(np.absolute)
    __lt__ = _compares(operator.lt)
    __le__ = _compares(operator.le)
    __gt__ = _compares(operator.gt)
    __ge__ = _compares(operator.ge)
    __eq__ = _compares(operator.eq)
    __ne__ = _compares(operator.ne)

    # Values of which the derivative is zero almost everywhere, or which are for people.
    def __bool__(self) -> bool:
        return bool(bare(self))

    def __int__(self) -> int:
        return int(bare(self))

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(bare(self)), digits)

    def __floor__(self) -> int:
        return math.floor(bare(self))

    def __ceil__(self) -> int:
        return math.ceil(bare(self))

    def __trunc__(self) -> int:
        return math.trunc(bare(self))

    def __format__(self, spec: str) -> str:
        return format(bare(self), spec)

    def __str__(self) -> str:
        return str(bare(self))

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({bare(self)!r}, level={self.level.order})"

    # Conversions that would lose the derivative.
    __array__ = _refuses(
        "Converting to a plain array (np.array, np.asarray)", USE_STACK
    )

    def __float__(self) -> float:
        if is_formatting(sys._getframe(1)):  # noqa: SLF001 -- there is no public way
            return float(bare(self))
        raise LostDerivativeError(
            "Converting to a Python float (float(t), math.sin(t), plain[i] = t)",
            self,
            USE_NUMPY,
        )

    __complex__ = _refuses("Converting to a Python complex", USE_NUMPY)
    item = _refuses("item()", READ_VALUE)
    tolist = _refuses("tolist()", READ_VALUE)
    tobytes = _refuses("tobytes()", READ_VALUE)
    tofile = _refuses("tofile()", READ_VALUE)
    dump = _refuses("dump()", READ_VALUE)
    dumps = _refuses("dumps()", READ_VALUE)
    __reduce_ex__ = _refuses("Pickling", READ_VALUE)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        memo[id(self)] = result = self.copy()
        return result

    def copy(self, order: str = "C") -> Any:
        """Return a copy that carries the derivative; a scalar is immutable: itself."""
        return copied(self, order=order) if is_array(self) else self

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,  # noqa: ARG002, FBT001, FBT002 -- NumPy's own signature
        copy: bool = True,  # noqa: FBT001, FBT002 -- NumPy's own signature
    ) -> Any:
        """Return the array in another dtype; integers and booleans are plain."""
        dtype = np.dtype(dtype)
        rule: Any = casting
        if not np.can_cast(self.dtype, dtype, rule):
            raise TypeError(
                f"Cannot cast array data from {self.dtype} to {dtype} according to "
                f"the rule {casting!r}"
            )
        if dtype.kind not in "fc":
            return bare(self).astype(dtype, order=order)
        if dtype == self.dtype:
            return copied(self, order=order) if copy and is_array(self) else self
        result = cast(self, dtype)
        return result[()] if is_array(result) and not is_array(self) else result

    def conj(self, *args: Any, **params: Any) -> Any:
        """Return the conjugate; a real array is its own, the very same."""
        if self.dtype.kind != "c" and not args and not params:
            return self
        return apply(np.conjugate, (self, *args), params)

    conjugate = conj
    all = _calls(np.all)
    any = _calls(np.any)
    argmax = _calls(np.argmax)
    argmin = _calls(np.argmin)
    argsort = _calls(np.argsort)
    argpartition = _calls(np.argpartition)
    choose = _calls(np.choose)
    cumprod = _calls(np.cumprod)
    cumsum = _calls(np.cumsum)
    diagonal = _calls(np.diagonal)
    dot = _calls(np.dot)
    max = _calls(np.max)
    mean = _calls(np.mean)
    min = _calls(np.min)
    nonzero = _calls(np.nonzero)
    prod = _calls(np.prod)
    ravel = _calls(np.ravel)
    repeat = _calls(np.repeat)
    round = _calls(np.round)
    searchsorted = _calls(np.searchsorted)
    squeeze = _calls(np.squeeze)
    std = _calls(np.std)
    sum = _calls(np.sum)
    swapaxes = _calls(np.swapaxes)
    take = _calls(np.take)
    trace = _calls(np.trace)
    var = _calls(np.var)

    def clip(
        self,
        min: Any = None,  # noqa: A002 -- NumPy's own name
        max: Any = None,  # noqa: A002
        out: Any = None,
        **params: Any,
    ) -> Any:
        """See :func:`numpy.clip`; unlike there, one bound is enough."""
        return apply(np.clip, (self, min, max), {"out": out, **params})

    def compress(self, condition: Any, axis: int | None = None) -> Any:
        """See :func:`numpy.compress`."""
        return apply(np.compress, (condition, self), {"axis": axis})

    def transpose(self, *axes: Any) -> Any:
        """Return a view with permuted axes."""
        order = axes[0] if len(axes) == 1 else axes or None
        return apply(np.transpose, (self,), {"axes": order})

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        """Return the elements in another shape: a view wherever NumPy gives one."""
        shape = shape[0] if len(shape) == 1 else shape
        if copy is False:
            return apply(np.reshape, (self, shape), {"order": order, "copy": copy})
        if copy:
            return apply(
                np.reshape, (copied(self, order=order), shape), {"order": order}
            )
        return apply(np.reshape, (self, shape), {"order": order})

    def flatten(self, order: str = "C") -> Any:
        """Return a copy as one axis."""
        return copied(apply(np.ravel, (self,), {"order": order}))


class ActiveScalar(ActiveValue):
    """An active value that stands for a NumPy scalar: immutable."""

    __slots__ = ()

    def __hash__(self) -> NoReturn:
        raise LostDerivativeError(
            "hash() (a dict key, a set, functools.cache)",
            self,
            "Use another key: equal values may have different derivatives.",
        )

    def is_integer(self) -> bool:
        """Say whether the value is a whole number."""
        return bool(bare(self).is_integer())


numbers.Number.register(ActiveScalar)


class ActiveArray(ActiveValue):
    """An active value that stands for an array: writes go through to its memory."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # arrays are not hashable

    __iadd__ = _augmented(np.add)
    __isub__ = _augmented(np.subtract)
    __imul__ = _augmented(np.multiply)
    __itruediv__ = _augmented(np.divide)
    __ifloordiv__ = _augmented(np.floor_divide)
    __imod__ = _augmented(np.remainder)
    __ipow__ = _augmented_power
    __imatmul__ = _augmented_matmul

    def __len__(self) -> int:
        return len(bare(self))

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool(np.any(bare(self) == bare(value)))

    def __getitem__(self, index: Any) -> Any:
        return self.level.read(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, Active):
            if value.level.order > self.level.order:
                raise dispatch.lower_buffer(self, value)
        elif type(value) not in dispatch.PLAIN:
            value = dispatch.stacked(value)
        self.level.write(self, index, value)

    @property
    def mT(self) -> Any:  # noqa: N802 -- NumPy's name
        """The transpose of the last two axes: a view."""
        return apply(np.swapaxes, (self, -1, -2), {})

    @property
    def flat(self) -> NoReturn:
        """Not offered: NumPy's flat iterator cannot carry a derivative."""
        raise LostDerivativeError("x.flat, NumPy's iterator,", self, "Use x.ravel().")

    def view(self, dtype: Any = None) -> Self:
        """Return a view of the same memory; only float <-> complex of one width."""
        if dtype is None or np.dtype(dtype) == self.dtype:
            return self[...]
        dtype = np.dtype(dtype)
        if {dtype.kind, self.dtype.kind} != {"f", "c"} or (
            dtype.itemsize / self.dtype.itemsize
        ) != {"c": 2.0, "f": 0.5}[dtype.kind]:
            raise LostDerivativeError(
                f"view({dtype}) of {self.dtype}", self, "Use x.astype(dtype)."
            )
        return reinterpreted(self, dtype=dtype)

    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
        self[...] = value

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """See :func:`numpy.put`."""
        apply(np.put, (self, indices, values), {"mode": mode})

    def sort(self, axis: int = -1, kind: Any = None, **params: Any) -> None:
        """Sort in place; the parameters are those of :func:`numpy.sort`."""
        params = {"axis": operator.index(axis), "kind": kind, **params}
        self[...] = apply(np.sort, (self,), params)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
        """Partition in place."""
        params = {"axis": operator.index(axis), "kind": kind}
        self[...] = apply(np.partition, (self, kth), params)

    resize = _refuses("resize()", "Use np.resize, which returns a new array.")
    setfield = _refuses("setfield()", "Write with x[index] = value.")
    getfield = _refuses("getfield()", READ_VALUE)
    byteswap = _refuses("byteswap()", READ_VALUE)
