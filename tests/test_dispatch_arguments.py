"""Arguments that rules never see: out, where, dtype, casting, names, lists, order."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.errors import LostDerivativeError, UnsupportedArgumentError
from dualad.rules import RULES
from tests import numeric
from tests.versions import since, until

MODES = pytest.mark.parametrize("mode", ["reverse", "forward"])
X = np.array([0.5, 1.5, 2.5])
M = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
KEEP = True
W = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def agrees(f: Callable[[Any], Any], x: Any, mode: str, limit: float = 1e-8) -> None:
    """Check the value of ``f`` at ``x`` and its gradient against differences."""
    value, g = ad.value_and_gradient(f, x.copy())
    assert value == pytest.approx(f(x.copy()))
    g = ad.gradient(f, x.copy(), mode=mode)
    numeric.assert_close(g, numeric.gradient(f, x), limit)


# --- out= ------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: np.exp(x, out=y),
        lambda x, y: np.exp(x, y),
        lambda x, y: np.exp(x, out=(y,)),
        lambda x, y: np.multiply(x, 3.0, out=y),
        lambda x, y: np.multiply(x, y, y),
        lambda x, y: np.add(x[1:], y[:-1], out=y[1:]),
        lambda x, y: np.matmul(np.eye(3), x, out=y),
        lambda x, y: np.cumsum(x, out=y),
        lambda x, y: np.cumsum(x, 0, None, y),
        lambda x, y: np.cumprod(x, 0, None, y),
        lambda x, y: np.clip(x, 1.0, None, out=y),
        lambda x, y: np.clip(x, 1.0, None, y),
        lambda x, y: np.take(x, [2, 0, 0], out=y),
        lambda x, y: np.take(x, [2, 0, 0], 0, y),
        lambda x, y: np.sum(x, out=y[1, ...]),
        lambda x, y: np.sum(x, None, None, y[1, ...]),
        lambda x, y: np.mean(x, 0, None, y[1, ...]),
        lambda x, y: np.median(x, out=y[1, ...]),
        lambda x, y: np.std(x, out=y[1, ...]),
        lambda x, y: np.max(x, 0, y[1, ...]),
        lambda x, y: np.concatenate([x[:1], x[:2]], out=y),
        lambda x, y: np.concatenate([x[:1], x[:2]], 0, y),
        lambda x, y: np.stack([x[0], x[2], x[0]], out=y),
        lambda x, y: np.add.reduce(np.outer(x, x), out=y),
        lambda x, y: np.multiply.accumulate(x, out=y),
        lambda x, y: np.einsum("i,i->i", x, x, out=y),
        lambda x, y: np.dot(np.eye(3), x, y),
    ],
)
def test_an_active_output_is_written(call: Callable[..., Any], mode: str) -> None:
    def f(x: Any) -> Any:
        y = 2.0 * x
        result = call(x, y)
        return np.sum(y * y * X) + np.sum(result * result)

    agrees(f, X, mode)


@MODES
def test_the_output_itself_is_returned(mode: str) -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        assert np.exp(x, out=y) is y
        assert np.exp(x, y) is y
        assert np.sum(np.outer(x, x), axis=0, out=y) is y
        assert np.clip(x, 0.0, 1.0, y) is y
        return np.sum(y)

    ad.gradient(f, X, mode=mode)


@MODES
def test_two_outputs(mode: str) -> None:
    def f(x: Any) -> Any:
        fraction, whole = np.zeros_like(x), np.zeros_like(x)
        np.modf(x, out=(fraction, whole))
        return np.sum(fraction * fraction) + np.sum(whole)

    agrees(f, X + 0.1, mode)


@MODES
def test_an_output_of_another_dtype(mode: str) -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x, dtype=np.float32)
        np.multiply(x, x, out=y, casting="same_kind")
        assert y.dtype == np.float32
        return np.sum(y)

    np.testing.assert_allclose(ad.gradient(f, X, mode=mode), 2.0 * X, rtol=1e-6)


@MODES
def test_an_output_that_cannot_hold_the_result_raises_as_numpy(mode: str) -> None:
    def wrong_shape(x: Any) -> Any:
        return np.exp(x, out=np.zeros_like(x[:2]))

    def wrong_dtype(x: Any) -> Any:
        return np.multiply(x, 1j, out=np.zeros_like(x))

    with pytest.raises(ValueError, match="broadcast"):
        ad.gradient(wrong_shape, X, mode=mode)
    with pytest.raises(TypeError, match="same_kind"):
        ad.gradient(wrong_dtype, X, mode=mode)


@MODES
def test_a_plain_output_raises_and_stays_as_it_was(mode: str) -> None:
    plain = np.full(3, 7.0)
    for call in (
        lambda x: np.exp(x, out=plain),
        lambda x: np.exp(x, plain),
        lambda x: np.exp(x, out=plain, where=X > 1.0),
        lambda x: np.clip(x, 0.0, 1.0, plain),
        lambda x: np.sort(x) + np.cumsum(x, 0, None, plain),
        lambda x: np.einsum("i->i", x, out=plain),
    ):
        with pytest.raises(LostDerivativeError):
            ad.gradient(lambda x, call=call: np.sum(call(x)), X, mode=mode)
    np.testing.assert_array_equal(plain, 7.0)


# --- where= ----------------------------------------------------------------------


@MODES
def test_where_leaves_the_rest_of_the_output(mode: str) -> None:
    mask = np.array([True, False, True])

    def f(x: Any) -> Any:
        y = 3.0 * x
        np.multiply(x, x, out=y, where=mask)
        return np.sum(y)

    np.testing.assert_allclose(ad.gradient(f, X, mode=mode), [1.0, 3.0, 5.0])


@MODES
def test_where_computes_nothing_elsewhere(mode: str) -> None:
    x = np.array([4.0, 0.0, -1.0])

    def f(x: Any) -> Any:
        return np.sum(np.sqrt(x, where=x > 0.0, out=np.zeros_like(x)))

    np.testing.assert_array_equal(ad.gradient(f, x, mode=mode), [0.25, 0.0, 0.0])


@MODES
def test_where_without_an_output_gives_the_chosen_elements(mode: str) -> None:
    mask = np.array([True, False, True])

    def f(x: Any) -> Any:
        return np.sum(np.square(x, where=mask)[mask])

    np.testing.assert_allclose(ad.gradient(f, X, mode=mode), [1.0, 0.0, 5.0])


@MODES
def test_where_broadcasts(mode: str) -> None:
    def f(m: Any) -> Any:
        y = 1.0 * m
        np.add(m, X, out=y, where=[[True], [False]])
        np.divide(y, X[:, np.newaxis][:2], out=y, where=np.array([True, False, True]))
        return np.sum(y * W)

    agrees(f, M, mode)


# --- dtype=, casting=, order= ----------------------------------------------------


@MODES
def test_dtype_says_in_which_precision_to_compute(mode: str) -> None:
    x = X.astype(np.float32)

    def f(x: Any) -> Any:
        y = np.multiply(x, np.float32(0.1), dtype=np.float64)
        assert y.dtype == np.float64
        return np.sum(y)

    g = ad.gradient(f, x, mode=mode)
    assert g.dtype == np.float32
    np.testing.assert_allclose(g, np.float32(0.1))


@MODES
@pytest.mark.parametrize(
    "function",
    [np.sum, np.prod, np.mean, np.var, np.std, np.cumsum, np.cumprod, np.trace],
)
def test_dtype_of_reductions(function: Callable[..., Any], mode: str) -> None:
    x = np.array([[0.5, 1.5], [2.5, 3.0]], np.float32)
    seen = []

    def f(x: Any) -> Any:
        y = function(x, dtype=np.float64)
        seen.append(y.dtype)
        return np.sum(y)

    g = ad.gradient(f, x, mode=mode)
    assert g.dtype == np.float32
    assert set(seen) == {np.dtype(np.float64)}
    wide = x.astype(np.float64)
    numeric.assert_close(g, numeric.gradient(lambda x: np.sum(function(x)), wide), 1e-5)


@MODES
def test_an_integer_dtype_raises(mode: str) -> None:
    with pytest.raises(UnsupportedArgumentError, match="dtype"):
        ad.gradient(lambda x: np.sum(x, dtype=int), X, mode=mode)


@MODES
def test_casting_is_obeyed(mode: str) -> None:
    def f(x: Any, casting: str) -> Any:
        return np.sum(np.add(x, 1.0, dtype=np.float32, casting=casting))

    g = ad.gradient(lambda x: f(x, "same_kind"), X, mode=mode)
    np.testing.assert_array_equal(g, 1.0)
    with pytest.raises(TypeError, match="safe"):
        ad.gradient(lambda x: f(x, "safe"), X, mode=mode)


@MODES
@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: np.multiply(x, np.array([1j, 2.0, 3.0]), dtype=float), TypeError),
        (lambda x: np.multiply(x, 2.0 + 1j, dtype=float), TypeError),
        (lambda x: np.multiply(x, np.float32(2.0), casting="no"), TypeError),
        (lambda x: np.multiply(x, x, casting="nonsense"), ValueError),
        (lambda x: np.concatenate([x, np.ones(1, "f4")], casting="no"), TypeError),
        (lambda x: np.stack([x, np.ones(3, "f4")], casting="equiv"), TypeError),
    ],
)
def test_casts_that_numpy_refuses(f: Any, error: Any, mode: str) -> None:
    with pytest.raises(error):
        f(X)
    with pytest.raises(error):
        ad.gradient(lambda x: np.sum(np.real(f(x))), X, mode=mode)


@MODES
def test_order_is_obeyed(mode: str) -> None:
    def f(m: Any) -> Any:
        y = np.add(m, 1.0, order="F")
        assert y.flags.f_contiguous
        return np.sum(np.ravel(y, order="K") * np.arange(6.0))

    want = np.arange(6.0).reshape(3, 2).T
    np.testing.assert_array_equal(ad.gradient(f, M, mode=mode), want)


@MODES
def test_a_keyword_that_nobody_knows_raises(mode: str) -> None:
    with pytest.raises(UnsupportedArgumentError, match="signature"):
        ad.gradient(lambda x: np.sum(np.add(x, 1.0, signature="dd->d")), X, mode=mode)
    with pytest.raises(TypeError):
        ad.gradient(lambda x: np.sum(np.add(x, 1.0, axes=2)), X, mode=mode)
    with pytest.raises(TypeError):
        ad.gradient(lambda x: np.sum(x, bogus=2), X, mode=mode)


# --- names and positions ---------------------------------------------------------


@MODES
@pytest.mark.parametrize(
    ("by_name", "by_position"),
    [
        (lambda m: np.sum(a=m), lambda m: np.sum(m)),
        (lambda m: np.sum(axis=1, a=m), lambda m: np.sum(m, 1)),
        (
            lambda m: np.sum(m, 0, None, None, KEEP),
            lambda m: np.sum(m, 0, keepdims=True),
        ),
        (lambda m: np.sum(m, None, np.float64), lambda m: np.sum(m)),
        (lambda m: np.max(m, 1, None, KEEP), lambda m: np.max(m, 1, keepdims=True)),
        (
            lambda m: np.mean(m, 0, None, None, KEEP),
            lambda m: np.mean(m, 0, keepdims=True),
        ),
        (lambda m: np.var(m, 1, None, None, 1), lambda m: np.var(m, axis=1, ddof=1)),
        (lambda m: np.dot(a=m, b=X), lambda m: np.dot(m, X)),
        (lambda m: np.dot(b=m.T, a=W), lambda m: np.dot(W, m.T)),
        (lambda m: np.tensordot(m, b=W, axes=2), lambda m: np.tensordot(m, W, 2)),
        pytest.param(
            lambda m: np.clip(m, min=0.0),
            lambda m: np.clip(m, 0.0, None),
            marks=since("2.1.0"),
        ),
        pytest.param(
            lambda m: np.clip(m, max=1.0, min=-0.5),
            lambda m: np.clip(m, -0.5, 1.0),
            marks=since("2.1.0"),
        ),
        (lambda m: m.clip(max=1.0, min=-0.5), lambda m: np.clip(m, -0.5, 1.0)),
        (lambda m: np.clip(a=m, a_min=0.0, a_max=1.0), lambda m: np.clip(m, 0.0, 1.0)),
        pytest.param(
            lambda m: np.reshape(m, shape=(3, 2)),
            lambda m: np.reshape(m, (3, 2)),
            marks=since("2.1.0"),
        ),
        pytest.param(
            lambda m: np.reshape(m, newshape=(3, 2)),
            lambda m: np.reshape(m, (3, 2)),
            marks=until("2.1.0"),
        ),
        (
            lambda m: np.reshape(m, (3, 2), "F"),
            lambda m: np.reshape(m, (3, 2), order="F"),
        ),
        (lambda m: np.take(a=m, indices=[0], axis=1), lambda m: np.take(m, [0], 1)),
        (lambda m: np.repeat(repeats=2, a=m), lambda m: np.repeat(m, 2)),
        (lambda m: np.transpose(a=m, axes=(1, 0)), lambda m: np.transpose(m, (1, 0))),
        (lambda m: np.stack(arrays=[m, m]), lambda m: np.stack([m, m], 0)),
        (
            lambda m: np.broadcast_to(array=m, shape=(2, 2, 3)),
            lambda m: np.stack([m, m]),
        ),
        (lambda m: np.trace(m, axis1=1, axis2=0), lambda m: np.trace(m, 0, 1, 0)),
        (lambda m: np.linalg.norm(x=m, axis=1), lambda m: np.linalg.norm(m, None, 1)),
        (lambda m: np.roll(m, axis=1, shift=1), lambda m: np.roll(m, 1, 1)),
        (lambda m: np.sort(a=m, axis=0), lambda m: np.sort(m, 0)),
        (lambda m: m.sum(0, None, None, KEEP), lambda m: np.sum(m, 0, keepdims=True)),
        (lambda m: m.mean(axis=1), lambda m: np.mean(m, 1)),
        (lambda m: m.reshape(3, 2), lambda m: np.reshape(m, (3, 2))),
        (
            lambda m: m.reshape((3, -1), order="F"),
            lambda m: np.reshape(m, (3, 2), order="F"),
        ),
        (lambda m: m.transpose(1, 0), lambda m: np.transpose(m)),
        (lambda m: m.clip(0.0, 1.0), lambda m: np.clip(m, 0.0, 1.0)),
        (lambda m: m.clip(0.75), lambda m: np.clip(m, 0.75, None)),
        (lambda m: m.clip(max=0.75), lambda m: np.clip(m, None, 0.75)),
        (lambda m: m.take([0], 1), lambda m: np.take(m, [0], axis=1)),
        (lambda m: m.std(1, ddof=1), lambda m: np.std(m, axis=1, ddof=1)),
    ],
)
def test_arguments_by_name_and_by_position_mean_the_same(
    by_name: Callable[[Any], Any], by_position: Callable[[Any], Any], mode: str
) -> None:
    def loss(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda m: np.sum(call(m) ** 3)

    np.testing.assert_array_equal(by_name(M), by_position(M))
    g = ad.gradient(loss(by_name), M, mode=mode)
    np.testing.assert_allclose(g, ad.gradient(loss(by_position), M, mode=mode))
    numeric.assert_close(g, numeric.gradient(loss(by_name), M), 1e-8)


COMPOSITIONS = [
    function
    for function, rule in RULES.items()
    if rule.kind == "composition" and not isinstance(function, np.ufunc)
]


@pytest.mark.parametrize("function", COMPOSITIONS, ids=lambda f: f.__name__)
def test_a_composition_has_the_signature_of_the_function_it_stands_for(
    function: Callable[..., Any],
) -> None:
    try:
        theirs = inspect.signature(function).parameters.values()
    except ValueError:
        pytest.skip("NumPy does not tell")
    ours = inspect.signature(RULES[function].primal).parameters
    order = [p.name for p in ours.values() if p.kind < p.KEYWORD_ONLY]
    expected = [p.name for p in theirs if p.kind < p.KEYWORD_ONLY]
    assert order == expected
    for p in theirs:
        if p.kind is p.VAR_KEYWORD or (p.kind is p.KEYWORD_ONLY and p.name == "out"):
            continue  # the dispatcher takes an output that is given by name
        assert ours[p.name].kind is p.kind
        if function is np.clip and p.default is p.empty:
            continue  # NumPy 2.0 asks for both bounds, its method does not
        assert ours[p.name].default is p.default or ours[p.name].default == p.default


@pytest.mark.parametrize("exponent", [2, 2.0, 0.5, -1, 1, 3, np.float64(2.0)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_power_in_place_is_numpys_to_the_last_bit(exponent: Any, dtype: Any) -> None:
    def f(x: Any) -> Any:
        y = +x
        y **= exponent
        return y

    x = np.linspace(0.3, 2.0, 37).astype(dtype)
    for part in (x, x[::-1], x[::2]):
        np.testing.assert_array_equal(ad.vjp(f, part)[0], f(part))
        np.testing.assert_array_equal(ad.jvp(f, (part,), (part,))[0], f(part))


# --- operands of other kinds -----------------------------------------------------


@MODES
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.float64(2.0) * x + x * np.float64(3.0),
        lambda x: np.float64(2.0) * x[0] + x[1] / np.float64(3.0),
        lambda x: [1.0, 2.0, 3.0] * x + x * (3.0, 2.0, 1.0),
        lambda x: [1, 2, 3] + x,  # noqa: RUF005 -- not a list
        lambda x: np.arange(3) * x - x / np.arange(1, 4),
        lambda x: 2 * x + True * x - x * np.int64(3),
        lambda x: 2.0**x + x**2 + x**2.0 + x ** np.arange(3),
        lambda x: np.array([True, False, True]) * x,
        lambda x: X @ x * x,
        lambda x: x @ np.eye(3)[::-1] @ x * x[1],
        lambda x: np.eye(3, dtype=int) @ x,
        lambda x: np.array(2.0) * x + x[0] * np.array(3.0),
        lambda x: x - np.stack([x[0], [1.0, 2.0, 3.0], x[2]][::2]).sum(),
        lambda x: np.stack([x, [1.0, 2.0, 3.0], np.arange(3), x * x]),
        lambda x: np.stack([x[0], 1.0, x[1], 2]),
        lambda x: np.concatenate([x, [x[0], 1.0], (x[1] * x[2], 2.0)]),
        lambda x: np.hstack([x, 1.0, x[0]]),
        lambda x: np.add(x, [1.0, 2.0, 3.0]),
        lambda x: np.where([True, False, True], x, [1.0, 2.0, 3.0]),
        lambda x: np.dot([1.0, 2.0, 3.0], x) * x,
        lambda x: np.maximum([1.0, 1.0, 1.0], x),
        lambda x: x + np.arange(6).reshape(2, 3)[::-1, ::-1],
        lambda x: x + memoryview(X),
    ],
)
def test_mixed_operands(f: Callable[[Any], Any], mode: str) -> None:
    agrees(lambda x: np.sum(np.sin(f(x))), X, mode)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 2.0 * x,
        lambda x: x * np.float32(2.0),
        lambda x: x * np.float64(2.0),
        lambda x: np.float64(2.0) + x[0],
        lambda x: x[0] * 2,
        lambda x: x * np.arange(3),
        lambda x: x * np.arange(3, dtype=np.int8),
        lambda x: x**2,
        lambda x: x ** np.int64(2),
        lambda x: x / np.array(2.0),
        lambda x: x + 1j,
        lambda x: x * True,
        lambda x: np.sum(x) / 3,
        lambda x: np.mean(x),
        lambda x: np.sqrt(x) + 1,
        lambda x: np.where(x > 1.0, x, 0.0),
        lambda x: np.stack([x[0], 1.0]),
        lambda x: np.concatenate([x, [1.0]]),
        lambda x: np.clip(x, 0, 1),
        lambda x: np.pad(x, 1),
        lambda x: np.linalg.norm(x),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_dtypes_are_numpys(f: Callable[[Any], Any], dtype: Any) -> None:
    x = X.astype(dtype)
    want = f(x)
    found = []

    def g(x: Any) -> Any:
        y = f(x)
        found.append(y.dtype)
        return np.real(np.sum(y))

    bar = ad.gradient(g, x, mode="reverse")
    assert found == [want.dtype]
    assert bar.dtype == x.dtype
    value, tangent = ad.jvp(f, (x,), (np.ones_like(x),))
    assert value.dtype == want.dtype
    assert tangent.dtype == want.dtype


@MODES
def test_operands_without_arithmetic_raise_type_errors(mode: str) -> None:
    for operand in (None, "text", object(), {1: 2}):
        with pytest.raises(TypeError):
            ad.gradient(lambda x, o=operand: np.sum(x + o), X, mode=mode)
        with pytest.raises(TypeError):
            ad.gradient(lambda x, o=operand: np.sum(o * x), X, mode=mode)


@MODES
def test_masked_arrays_and_matrices_raise(mode: str) -> None:
    masked = np.ma.masked_greater(X, 1.0)
    with pytest.raises(UnsupportedArgumentError, match="filled"):
        ad.gradient(lambda x: np.sum(x * masked), X, mode=mode)
    with pytest.raises((UnsupportedArgumentError, LostDerivativeError)):
        ad.gradient(lambda x: np.sum(masked * x), X, mode=mode)


@MODES
def test_other_classes_that_know_better_come_to_word(mode: str) -> None:
    class Wrapped:
        __array_ufunc__ = None

        def __radd__(self, other: Any) -> str:
            return "wrapped"

        def __add__(self, other: Any) -> str:
            return "wrapped"

    seen = []

    def f(x: Any) -> Any:
        seen.extend([x + Wrapped(), Wrapped() + x, x[0] + Wrapped()])
        return np.sum(x)

    ad.gradient(f, X, mode=mode)
    assert set(seen) == {"wrapped"}
