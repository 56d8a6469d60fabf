"""Every exception class: its data, its text, its remedy.

Line 1 says what is wrong, then come the facts, the last line is what to do.  Each
class derives from :class:`DualadError` and from the builtin that a NumPy user would
catch, takes data and keeps it as attributes.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class DualadError(Exception):
    """The base of every error that dualad raises on purpose."""


def describe(x: Any) -> str:
    """Return dtype, shape and place of an array, never its values."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return type(x).__name__
    shape = ", ".join(str(n) for n in np.shape(x))
    return f"{dtype}[{shape}] on host" if shape else f"{dtype} scalar on host"


def facts(rows: list[tuple[str, str]]) -> str:
    """Align the facts of a message."""
    width = max((len(label) for label, _ in rows), default=0)
    return "\n".join(f"  {label:<{width}}   {text}" for label, text in rows)


class MissingRuleError(DualadError, NotImplementedError):
    """A function was called with active arrays, and nobody knows its derivative."""

    def __init__(self, name: str, arguments: list[Any], reason: str = "") -> None:
        """Build the text from the function's name and its differentiated arguments."""
        self.name, self.arguments, self.reason = name, arguments, reason
        rows = [("called with", f"{describe(x)}, differentiated") for x in arguments]
        if reason:
            rows.append(("because", reason))
        given = f"{facts(rows)}\n" if rows else ""
        super().__init__(
            f"{name} has no derivative rule.\n{given}"
            "Write it with functions that have one, or pass "
            "dualad.stop_gradient(x) to treat x as constant."
        )


class UnsupportedArgumentError(DualadError, TypeError):
    """A function has a rule, but not for this keyword argument."""

    def __init__(self, name: str, keyword: str, value: Any, remedy: str) -> None:
        """Build the text from the function, the keyword and what to do instead."""
        self.name, self.keyword, self.value, self.remedy = name, keyword, value, remedy
        rows = [("got", f"{keyword}={value!r:.60}")]
        super().__init__(
            f"{name} cannot be differentiated with the argument {keyword}.\n"
            f"{facts(rows)}\n{remedy}"
        )


class LostDerivativeError(DualadError, TypeError):
    """An active array was to become a plain value: its derivative would be lost."""

    def __init__(self, action: str, x: Any, remedy: str) -> None:
        """Build the text from what was tried, on what, and what to do instead."""
        self.action, self.array, self.remedy = action, x, remedy
        super().__init__(
            f"{action} would lose the derivative of an active array.\n"
            f"{facts([('got', f'{describe(x)}, differentiated')])}\n{remedy}"
        )


class ScalarOutputError(DualadError, TypeError):
    """A gradient was asked of a function whose output is not one real number."""

    def __init__(self, operator: str, output: Any) -> None:
        """Build the text from the public operator and the function's output."""
        self.operator = operator
        is_tree = isinstance(output, tuple | list | dict)
        self.shape = () if is_tree else tuple(np.shape(output))
        shape = f"({self.shape[0]},)" if len(self.shape) == 1 else str(self.shape)
        what = getattr(output, "dtype", None)
        wanted = "a real scalar output"
        if what is None:
            got = type(output).__name__
            remedy = "Return one number, for instance np.sum(y)."
            if is_tree:
                remedy = "Return one number; has_aux=True allows (number, anything)."
        elif what.kind == "c" and not self.shape:
            got = f"a {what} scalar"
            remedy = "Return a real number: np.real(z), np.imag(z) or np.abs(z)."
        else:
            got = f"{what}[{', '.join(str(n) for n in self.shape)}]"
            remedy = (
                "Perhaps you meant dualad.jacobian(f, x), or dualad.vjp(f, x) "
                f"with a cotangent of shape {shape}."
            )
        super().__init__(f"{operator} needs {wanted}, but f returned {got}.\n{remedy}")


class NotDifferentiableError(DualadError, TypeError):
    """An argument is of a type that cannot be differentiated."""

    def __init__(self, place: str, x: Any, remedy: str = "") -> None:
        """Build the text from the argument's place ("argument 0") and value."""
        self.place = place
        given, place = remedy, place[0].upper() + place[1:]
        if getattr(x, "dtype", None) is not None:
            got = describe(x).removesuffix(" on host")
            remedy = "Convert it with x.astype(float), or mark it dualad.Const(x)."
            if x.dtype.names is not None:
                remedy = "Pass its fields as arrays of their own: x['name']."
            if isinstance(x, np.ma.MaskedArray | np.matrix):
                got = f"a {type(x).__name__}"
                remedy = (
                    "Convert it: np.asarray(x), or x.filled(0.0) for a masked array."
                )
        else:
            got = type(x).__name__
            remedy = (
                "Pass arrays, numbers, or tuples, lists and dicts of them; "
                "mark others dualad.Const(x)."
            )
        super().__init__(
            f"{place} is {got}; only real and complex floating arrays can be "
            f"differentiated.\n{given or remedy}"
        )


class ShadowMismatchError(DualadError, ValueError):
    """A shadow, tangent or cotangent does not fit its primal."""

    def __init__(
        self, what: str, place: str, primal: Any, given: Any, remedy: str = ""
    ) -> None:
        """Build the text from ``what`` ("shadow", "tangent"), place and both arrays."""
        self.what, self.place, self.primal, self.given = what, place, primal, given
        rows = [("primal", describe(primal)), (what, describe(given))]
        super().__init__(
            f"The {what} of {place} is not congruent with its primal.\n{facts(rows)}\n"
            + (remedy or "Allocate it with np.zeros_like(primal).")
        )


class StructureMismatchError(DualadError, ValueError):
    """A tree of shadows, tangents or cotangents is built unlike its primal."""

    def __init__(self, what: str, place: str, expected: str, got: str) -> None:
        """Build the text from both structures."""
        self.what, self.place, self.expected, self.got = what, place, expected, got
        rows = [("expected", expected), ("got", got)]
        super().__init__(
            f"The {what} of {place} has another structure than its primal.\n"
            f"{facts(rows)}\nGive it the same tuples, lists and dicts as the primal."
        )


class EscapedArrayError(DualadError, RuntimeError):
    """An active array was used where its derivative is not being taken."""

    def __init__(self, what: str, remedy: str) -> None:
        """Build the text from what happened and what to do instead."""
        self.what, self.remedy = what, remedy
        super().__init__(f"{what}\n{remedy}")


class OverlappingWriteError(DualadError, ValueError):
    """A write went through a view whose elements share memory."""

    def __init__(self, strides: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Build the text from the view's strides (bytes) and shape."""
        self.strides, self.shape = strides, shape
        axis = next((i for i, s in enumerate(strides) if s == 0 and shape[i] > 1), None)
        why = "windows overlap" if axis is None else f"stride 0 along axis {axis}"
        super().__init__(
            f"Cannot write into this view: its elements share memory ({why}).\n"
            f"{facts([('view', f'shape {shape}, strides {strides}')])}\n"
            "Write into a copy, y = y.copy(), or into the array that was broadcast."
        )


class ReadAfterWriteError(DualadError, ValueError):
    """NumPy itself would read elements that it has just overwritten."""

    def __init__(self, target: Any, value: Any) -> None:
        """Build the text from both views of the one memory."""
        self.target, self.value = target, value
        rows = [
            ("target", f"an array of shape {target.shape}, strides {target.strides}"),
            ("value", f"a view of it, shape {value.shape}, strides {value.strides}"),
        ]
        super().__init__(
            "NumPy overwrote elements of the value before it had read them.\n"
            f"{facts(rows)}\n"
            "Write a copy of the value: y[::2] = y[:4].copy()."
        )


class ChangedArrayError(DualadError, RuntimeError):
    """A plain array that the reverse sweep needs was changed after its use."""

    def __init__(self, x: Any) -> None:
        """Build the text from the changed array."""
        self.array = x
        rows = [("array", describe(x))]
        super().__init__(
            "A constant array was changed between its use and the reverse sweep.\n"
            f"{facts(rows)}\n"
            "Use a copy where it enters: X.copy() @ w. (check_constants=False turns "
            "this check off.)"
        )


class AliasedArgumentsError(DualadError, ValueError):
    """A function wrote to memory that has two meanings."""

    def __init__(self, place: str, other: str) -> None:
        """Build the text from the written argument and what shares its memory."""
        self.place, self.other = place, other
        rows = [("written", place), ("shared with", other)]
        super().__init__(
            "f wrote into an array that is also reachable in another way.\n"
            f"{facts(rows)}\n"
            "Pass a copy, f(x.copy()), or write into a copy inside f: y = x.copy()."
        )


class UnrepeatableFunctionError(DualadError, RuntimeError):
    """A function that must run several times gave another value in a later run."""

    def __init__(self) -> None:
        """Build the text."""
        super().__init__(
            "f gave another value when it was run again for more directions.\n"
            "Random numbers, time, or state outside its arguments change it.\n"
            "Make it repeatable, or give jacobian mode='reverse', which runs it once."
        )


class InternalError(DualadError, RuntimeError):
    """An invariant of dualad does not hold: please report it."""

    def __init__(self, what: str) -> None:
        """Build the text from the invariant."""
        super().__init__(
            f"Internal error: {what}\nPlease report it with the program that led here."
        )


class IndependentOutputWarning(UserWarning):
    """The output of a function does not depend on its differentiated arguments."""
