"""The exact text of every error: argument, facts, remedy."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import dualad as ad
from dualad import errors

X = np.array([1.0, 2.0, 3.0])


def text_of(error: type[BaseException], action: object) -> str:
    """Return the message of the error that an action raises."""
    with pytest.raises(error) as caught:
        action()  # type: ignore[operator]
    assert isinstance(caught.value, ad.DualadError)
    return str(caught.value)


def test_every_error_is_also_a_builtin_one() -> None:
    """A NumPy user catches them as what they are."""
    builtin = {
        "MissingRuleError": NotImplementedError,
        "UnsupportedArgumentError": TypeError,
        "LostDerivativeError": TypeError,
        "ScalarOutputError": TypeError,
        "NotDifferentiableError": TypeError,
        "ShadowMismatchError": ValueError,
        "StructureMismatchError": ValueError,
        "EscapedArrayError": RuntimeError,
        "OverlappingWriteError": ValueError,
        "ReadAfterWriteError": ValueError,
        "ChangedArrayError": RuntimeError,
        "AliasedArgumentsError": ValueError,
        "InternalError": RuntimeError,
        "UnrepeatableFunctionError": RuntimeError,
    }
    found = {
        name
        for name, thing in vars(errors).items()
        if isinstance(thing, type)
        and issubclass(thing, errors.DualadError)
        and thing is not errors.DualadError
    }
    assert found == set(builtin)
    for name, base in builtin.items():
        assert issubclass(getattr(ad, name), base)


def test_missing_rule() -> None:
    """A function without a rule is named, with what it was called with."""
    matrix = np.eye(3)
    assert text_of(
        ad.MissingRuleError,
        lambda: ad.gradient(lambda a: np.linalg.eig(a)[0][0], matrix),
    ) == (
        "np.linalg.eig has no derivative rule.\n"
        "  called with   float64[3, 3] on host, differentiated\n"
        "Write it with functions that have one, or pass dualad.stop_gradient(x) to "
        "treat x as constant."
    )


def test_scalar_output() -> None:
    """A gradient needs one real number."""
    assert text_of(ad.ScalarOutputError, lambda: ad.gradient(lambda x: x * 2, X)) == (
        "gradient needs a real scalar output, but f returned float64[3].\n"
        "Perhaps you meant dualad.jacobian(f, x), or dualad.vjp(f, x) with a cotangent "
        "of shape (3,)."
    )
    assert text_of(
        ad.ScalarOutputError, lambda: ad.gradient(lambda x: x[0] * 1j, X)
    ) == (
        "gradient needs a real scalar output, but f returned a complex128 scalar.\n"
        "Return a real number: np.real(z), np.imag(z) or np.abs(z)."
    )
    assert text_of(ad.ScalarOutputError, lambda: ad.gradient(lambda _: None, X)) == (
        "gradient needs a real scalar output, but f returned NoneType.\n"
        "Return one number, for instance np.sum(y)."
    )


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_scalar_output_in_both_modes(mode: str) -> None:
    """Both modes refuse the same outputs."""
    with pytest.raises(ad.ScalarOutputError):
        ad.gradient(lambda x: x * 2, X, mode=mode)


def test_not_differentiable() -> None:
    """Integers and strangers are refused by place and type."""
    assert text_of(
        ad.NotDifferentiableError, lambda: ad.gradient(np.sum, np.array([1, 2, 3]))
    ) == (
        "Argument 0 is int64[3]; only real and complex floating arrays can be "
        "differentiated.\n"
        "Convert it with x.astype(float), or mark it dualad.Const(x)."
    )
    assert text_of(
        ad.NotDifferentiableError,
        lambda: ad.gradient(lambda x, _: np.sum(x), X, {"a": [object()]}),
    ) == (
        "Argument 1['a'][0] is object; only real and complex floating arrays can be "
        "differentiated.\n"
        "Pass arrays, numbers, or tuples, lists and dicts of them; mark others "
        "dualad.Const(x)."
    )


def test_shadow_mismatch() -> None:
    """Both dtypes and shapes are shown."""
    shadow = np.zeros(3, np.float32)
    assert text_of(
        ad.ShadowMismatchError,
        lambda: ad.autodiff(ad.Reverse, np.sum, ad.Duplicated(X, shadow)),
    ) == (
        "The shadow of argument 0 is not congruent with its primal.\n"
        "  primal   float64[3] on host\n"
        "  shadow   float32[3] on host\n"
        "Allocate it with np.zeros_like(primal)."
    )
    assert text_of(
        ad.ShadowMismatchError,
        lambda: ad.autodiff(ad.Reverse, np.sum, ad.Duplicated(X, X)),
    ).endswith("A primal is its memory: use np.zeros_like for the shadow.")
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    assert text_of(
        ad.ShadowMismatchError,
        lambda: ad.autodiff(ad.Reverse, np.sum, ad.Duplicated(X, read_only)),
    ).endswith("Give it a writable shadow without overlap: np.zeros_like(primal).")
    assert text_of(
        ad.ShadowMismatchError, lambda: ad.jvp(np.sin, (X,), (np.ones(2),))
    ) == (
        "The tangent of argument 0 is not congruent with its primal.\n"
        "  primal    float64[3] on host\n"
        "  tangent   float64[2] on host\n"
        "Give the tangent the shape (3,) and a dtype that casts to float64."
    )
    _, pullback = ad.vjp(np.sin, X)
    assert text_of(ad.ShadowMismatchError, lambda: pullback(np.ones(2))) == (
        "The cotangent of the output is not congruent with its primal.\n"
        "  primal      float64[3] on host\n"
        "  cotangent   float64[2] on host\n"
        "Give the cotangent the shape (3,) and a dtype that casts to float64."
    )


def test_structure_mismatch() -> None:
    """Trees must have the same keys."""
    assert text_of(
        ad.StructureMismatchError,
        lambda: ad.jvp(lambda p: p["w"], ({"w": X},), ({"b": X},)),
    ) == (
        "The tangent of argument 0 has another structure than its primal.\n"
        "  expected   dict with keys ['w']\n"
        "  got        dict with keys ['b']\n"
        "Give it the same tuples, lists and dicts as the primal."
    )


def test_escaped_after_the_end() -> None:
    """An array that outlives its derivative refuses to be used."""
    kept = []

    def keep(x):
        kept.append(x)
        return np.sum(x)

    ad.gradient(keep, X)
    assert text_of(ad.EscapedArrayError, lambda: kept[0] + 1.0) == (
        "A shadowed array of level 1 was used after its derivative had ended.\n"
        "Return it from the differentiated function instead of storing it; "
        "dualad.primal(x) reads its value."
    )
    assert "ShadowedArray" in repr(kept[0])
    np.testing.assert_array_equal(ad.primal(kept[0]), X)


def test_escaped_to_another_thread() -> None:
    """A level belongs to its thread."""
    seen: list[str] = []

    def f(x):
        def work():
            try:
                x * 2.0
            except ad.EscapedArrayError as error:
                seen.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return np.sum(x)

    ad.gradient(f, X)
    ad.jvp(f, (X,), (X,))
    assert seen == [
        f"A {carrier} of level 1 was used from another thread than the one that made "
        "it.\nTake the whole derivative inside one thread."
        for carrier in ("shadowed array", "dual array")
    ]


def test_write_into_a_lower_level() -> None:
    """A value must not outlive its derivative in a buffer outside."""

    def outer(x):
        buffer = np.zeros_like(x)

        def inner(t):
            buffer[0] = t
            return t * t

        return ad.gradient(inner, 2.0) * np.sum(x)

    # The buffer is active at the outer level only: made before the inner one ran.
    assert text_of(ad.EscapedArrayError, lambda: ad.gradient(outer, X)) == (
        "An array of level 2 was written into a buffer of level 1, which outlives its "
        "derivative.\n"
        "Allocate the buffer inside the inner function with np.zeros_like(x)."
    )


def test_overlapping_write() -> None:
    """A write through a broadcast view is refused, as NumPy refuses it."""

    def f(x):
        y = np.broadcast_to(x, (2, 3))
        y[0] = 1.0
        return np.sum(y)

    assert text_of(ad.OverlappingWriteError, lambda: ad.gradient(f, X)) == (
        "Cannot write into this view: its elements share memory (stride 0 along axis "
        "0).\n"
        "  view   shape (2, 3), strides (0, 8)\n"
        "Write into a copy, y = y.copy(), or into the array that was broadcast."
    )


def test_read_after_write() -> None:
    """NumPy's own assignment is not what it seems when strides differ."""

    def f(x):
        y = x * 1.0
        y[::2] = y[:4]
        return np.sum(y)

    assert text_of(ad.ReadAfterWriteError, lambda: ad.gradient(f, np.arange(7.0))) == (
        "NumPy overwrote elements of the value before it had read them.\n"
        "  target   an array of shape (7,), strides (8,)\n"
        "  value    a view of it, shape (4,), strides (8,)\n"
        "Write a copy of the value: y[::2] = y[:4].copy()."
    )


def test_changed_array() -> None:
    """A large constant that changes before the sweep is seen."""
    data = np.ones((100, 30))

    def f(w):
        y = data @ w
        data[0] = 7.0
        return np.sum(y)

    assert text_of(ad.ChangedArrayError, lambda: ad.gradient(f, np.ones(30))) == (
        "A constant array was changed between its use and the reverse sweep.\n"
        "  array   float64[100, 30] on host\n"
        "Use a copy where it enters: X.copy() @ w. (check_constants=False turns this "
        "check off.)"
    )


def test_aliased_arguments() -> None:
    """A write to memory with two meanings is refused where it happens."""

    def f(x, y):
        x[0] = 0.0
        return np.sum(x * y)

    x = X.copy()
    assert text_of(
        ad.AliasedArgumentsError, lambda: ad.gradient(f, x, ad.Const(x))
    ) == (
        "f wrote into an array that is also reachable in another way.\n"
        "  written       argument 0\n"
        "  shared with   argument 1, Const\n"
        "Pass a copy, f(x.copy()), or write into a copy inside f: y = x.copy()."
    )
    np.testing.assert_array_equal(x, X)


def test_lost_derivative() -> None:
    """Conversions are refused with the function to use instead."""
    assert text_of(
        ad.LostDerivativeError, lambda: ad.gradient(lambda x: np.array(x)[0], X)
    ) == (
        "Converting to a plain array (np.array, np.asarray) would lose the derivative "
        "of an active array.\n"
        "  got   float64[3] on host, differentiated\n"
        "Join active values with np.stack or np.concatenate, allocate with "
        "np.zeros_like(x) or like=x; W.T.dot(x) of a plain W is W.T @ x."
    )


def test_unsupported_argument() -> None:
    """An argument that no rule knows is named."""
    found = text_of(
        ad.UnsupportedArgumentError,
        lambda: ad.gradient(lambda x: np.sum(np.matmul(x, X, axes=[0, 0, ()])), X),
    )
    assert found.splitlines()[0] == (
        "np.matmul cannot be differentiated with the argument axes."
    )


def test_independent_output_warns() -> None:
    """A gradient of nothing is zero, and says so."""
    with pytest.warns(ad.IndependentOutputWarning, match="does not depend"):
        slope = ad.gradient(lambda _: 3.0, X)
    np.testing.assert_array_equal(slope, np.zeros(3))
    with (
        warnings.catch_warnings(),
        ad.debug(),
        pytest.raises(ad.IndependentOutputWarning),
    ):
        ad.gradient(lambda _: 3.0, X)


def test_activity_is_required() -> None:
    """``autodiff`` says which argument is not marked."""
    with pytest.raises(TypeError) as caught:
        ad.autodiff(ad.Reverse, np.sum, X)
    assert str(caught.value) == (
        "Argument 0 of autodiff has no activity: ndarray.\n"
        "Mark it dualad.Duplicated(x, dx) or dualad.Const(x)."
    )
