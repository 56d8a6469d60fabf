"""What NumPy and Python do without asking us: each way raises or gives the value.

Mirrors the table "what does not dispatch" of the design.  Every test runs in both
modes, because each has its own carriers.
"""

from __future__ import annotations

import copy
import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.errors import LostDerivativeError

X = np.array([0.5, 1.5, 2.5])
MODES = pytest.mark.parametrize("mode", ["reverse", "forward"])


def seen(action: Callable[[Any], Any], mode: str, x: Any = X) -> Any:
    """Return what ``action`` gives for an active array inside a derivative."""
    results = []

    def f(x: Any) -> Any:
        results.append(action(x))
        return np.sum(x)

    ad.gradient(f, x.copy(), mode=mode)
    return results[0]


# --- what raises -----------------------------------------------------------------


def write(plain: Any, index: Any, value: Any) -> None:
    plain[index] = value


def add_in_place(plain: Any, value: Any) -> Any:
    plain += value
    return plain


REFUSED: dict[str, Callable[[Any], Any]] = {
    "np.array": np.array,
    "np.asarray": lambda x: np.asarray(x, float),
    "np.asanyarray": np.asanyarray,
    "np.ascontiguousarray": np.ascontiguousarray,
    "np.array of a list": lambda x: np.array([x[0], 1.0]),
    "np.array of a nested list": lambda x: np.array([[x[0], -x[1]], [x[1], x[0]]]),
    "np.r_": lambda x: np.r_[x, 1.0],
    "np.c_": lambda x: np.c_[x, x],
    "np.full": lambda x: np.full(2, x[0]),
    "np.full_like": lambda x: np.full_like(np.zeros(2), x[0]),
    "np.arange": lambda x: np.arange(x[2]),
    "np.float64": lambda x: np.float64(x[0]),
    "np.fromiter": lambda x: np.fromiter(iter(x), float),
    "np.vectorize": lambda x: np.vectorize(lambda v: 2.0 * v)(x),
    "np.ma.array": np.ma.array,
    "np.random": lambda x: np.random.default_rng(0).normal(x),
    "plain[0] = scalar": lambda x: write(np.zeros(3), 0, x[0]),
    "plain[:] = array": lambda x: write(np.zeros(3), slice(None), x),
    "plain[mask] = array": lambda x: write(np.zeros(3), X > 1.0, x[1:]),
    "plain[:] = list": lambda x: write(np.zeros(3), slice(None), [x[0], 1.0, 2.0]),
    "plain += array": lambda x: add_in_place(np.zeros(3), x),
    "plain += scalar": lambda x: add_in_place(np.zeros(3), x[0]),
    "np.add(out=plain)": lambda x: np.add(1.0, x, out=np.zeros(3)),
    "np.exp(x, plain)": lambda x: np.exp(x, np.zeros(3)),
    "np.sum(out=plain)": lambda x: np.sum(x, axis=0, out=np.zeros(())),
    "np.cumsum(out=plain)": lambda x: np.cumsum(x, out=np.zeros(3)),
    "np.matmul(out=plain)": lambda x: np.matmul(np.eye(3), x, out=np.zeros(3)),
    "np.concatenate(out=plain)": lambda x: np.concatenate([x], out=np.zeros(3)),
    "np.clip(out=plain)": lambda x: np.clip(x, 0.0, 1.0, out=np.zeros(3)),
    "np.clip(x, 0, 1, plain)": lambda x: np.clip(x, 0.0, 1.0, np.zeros(3)),
    "np.cumprod(x, 0, None, plain)": lambda x: np.cumprod(x, 0, None, np.zeros(3)),
    "np.add.at": lambda x: np.add.at(np.zeros(3), [0, 0], x[:2]),
    "np.multiply.at": lambda x: np.multiply.at(np.zeros(3), [0, 0], x[:2]),
    "np.add.reduce(out=plain)": lambda x: np.add.reduce(x, out=np.zeros(())),
    "np.copyto": lambda x: np.copyto(np.zeros(3), x),
    "np.put": lambda x: np.put(np.zeros(3), 0, x[0]),
    "np.putmask": lambda x: np.putmask(np.zeros(3), X > 1.0, x),
    "np.place": lambda x: np.place(np.zeros(3), X > 1.0, x),
    "np.fill_diagonal": lambda x: np.fill_diagonal(np.eye(3), x[0]),
    "np.put_along_axis": lambda x: np.put_along_axis(
        np.zeros(3), np.array([0]), x[:1], 0
    ),
    "plain.fill": lambda x: np.zeros(3).fill(x[0]),
    "plain.sum(initial=)": lambda x: np.zeros(3).sum(initial=x[0]),
    "plain.dot": lambda x: np.eye(3).dot(x),
    "plain.T.dot": lambda x: np.eye(3).T.dot(x),
    "plain[active]": lambda x: np.zeros(3)[x],
    "float": lambda x: float(x[0]),
    "float of a 0-d array": lambda x: float(x[0, ...]),
    "complex": lambda x: complex(x[0]),
    "item": lambda x: x[0].item(),
    "item of an array": lambda x: x.item(0),
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "math.sin": lambda x: math.sin(x[0]),
    "math.isfinite": lambda x: math.isfinite(x[0]),
    "pickle of an array": pickle.dumps,
    "pickle of a scalar": lambda x: pickle.dumps(x[0]),
    "view of integers": lambda x: x.view(np.int64),
    "view of another width": lambda x: x.view(np.float32),
    "resize in place": lambda x: x.resize(2),
}


@MODES
@pytest.mark.parametrize("name", REFUSED)
def test_what_would_lose_a_derivative_raises(name: str, mode: str) -> None:
    with pytest.raises(LostDerivativeError):
        seen(REFUSED[name], mode)


@MODES
@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("np.array", "np.stack"),
        ("np.array of a list", "np.stack"),
        ("np.r_", "np.concatenate"),
        ("np.full", "like=x"),
        ("plain[:] = array", "np.zeros_like(x)"),
        ("plain += array", "np.zeros_like(x)"),
        ("np.add.at", "np.zeros_like(x)"),
        ("np.copyto", "np.zeros_like(x)"),
        ("plain.T.dot", "W.T @ x"),
        ("float", "dualad.primal(x)"),
        ("item", "dualad.primal(x)"),
        ("pickle of an array", "dualad.primal(x)"),
    ],
)
def test_the_error_says_what_to_do(name: str, remedy: str, mode: str) -> None:
    with pytest.raises(LostDerivativeError) as caught:
        seen(REFUSED[name], mode)
    assert remedy in str(caught.value)


@MODES
def test_numpy_hides_our_error_behind_its_own_for_an_array_without_axes(
    mode: str,
) -> None:
    with pytest.raises(ValueError, match="with a sequence") as caught:
        seen(lambda x: write(np.zeros(3), 0, x[0, ...]), mode)
    assert isinstance(caught.value.__cause__, LostDerivativeError)


@MODES
def test_a_refused_write_leaves_the_plain_array_alone(mode: str) -> None:
    plain = np.arange(3.0)

    def attempt(x: Any) -> None:
        for action in (
            lambda: write(plain, 0, x[0]),
            lambda: add_in_place(plain, x),
            lambda: np.add(x, 1.0, out=plain),
            lambda: np.copyto(plain, x),
            lambda: np.add.at(plain, [0], x[0]),
            lambda: np.clip(x, 0.0, 1.0, plain),
        ):
            with pytest.raises(LostDerivativeError):
                action()

    seen(attempt, mode)
    np.testing.assert_array_equal(plain, [0.0, 1.0, 2.0])


@MODES
@pytest.mark.parametrize(
    "attribute",
    [
        "data",
        "ctypes",
        "__array_interface__",
        "__array_struct__",
        "__index__",
        "__dlpack__",
    ],
)
def test_there_is_no_way_around_to_the_memory(attribute: str, mode: str) -> None:
    assert not seen(lambda x: hasattr(x, attribute), mode)
    assert not seen(lambda x: hasattr(x[0], attribute), mode)


@MODES
def test_there_is_no_buffer(mode: str) -> None:
    with pytest.raises(TypeError):
        seen(memoryview, mode)
    with pytest.raises(TypeError):
        seen(lambda x: [10, 20][x[0]], mode)


@MODES
def test_functions_without_a_rule_name_themselves(mode: str) -> None:
    for action, name in (
        (lambda x: np.interp(x, [0.0, 1.0], [1.0, 2.0]), "np.interp"),
        (lambda x: np.linspace(0.0, x[0], 3), "np.linspace"),
        (lambda x: np.save(io.BytesIO(), x), "np.save"),
    ):
        with pytest.raises(ad.MissingRuleError, match=name):
            seen(action, mode)


# --- what gives the value --------------------------------------------------------

VALUES: list[tuple[Callable[[Any], Any], Any]] = [
    (lambda x: bool(x[0]), True),
    (lambda x: bool(0.0 * x[0]), False),
    (lambda x: int(x[1]), 1),
    (lambda x: int(x[2, ...]), 2),
    (lambda x: x[0] > 0.0, True),
    (lambda x: x[0] == x[1], False),
    (lambda x: (x > 1.0).tolist(), [False, True, True]),
    (lambda x: f"{x[0]:.3f}", "0.500"),
    (lambda x: "{:.1e}".format(x[1]), "1.5e+00"),  # noqa: UP032 -- str.format is the test
    (lambda x: f"{x}", "[0.5 1.5 2.5]"),
    (lambda x: str(x[0]), "0.5"),
    (lambda x: "%s" % x[0], "0.5"),  # noqa: UP031 -- the operator is the test
    (lambda x: "%.2f" % x[0], "0.50"),  # noqa: UP031
    (lambda x: round(x[1]), 2),
    (lambda x: round(x[0], 1), 0.5),
    (lambda x: math.floor(x[1]), 1),
    (lambda x: math.ceil(x[1]), 2),
    (lambda x: math.trunc(x[2]), 2),
    (lambda x: 1.5 in x, True),
    (lambda x: len(x), 3),
    (lambda x: np.isscalar(x[0]), True),
    (lambda x: x.astype(int).tolist(), [0, 1, 2]),
    (lambda x: np.argmax(x), 2),
    (lambda x: np.floor(x).tolist(), [0.0, 1.0, 2.0]),
    (lambda x: np.array_repr(x), "array([0.5, 1.5, 2.5])"),
    (lambda x: isinstance(x, np.ndarray), False),
]


@MODES
@pytest.mark.parametrize("number", range(len(VALUES)))
def test_what_carries_no_derivative_gives_the_value(number: int, mode: str) -> None:
    action, expected = VALUES[number]
    result = seen(action, mode)
    assert result == expected
    assert isinstance(result, (type(expected), np.generic))


@MODES
def test_print_shows_the_value(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    seen(lambda x: print(x[0], x), mode)  # noqa: T201 -- every training loop prints
    assert capsys.readouterr().out == "0.5 [0.5 1.5 2.5]\n"


@MODES
def test_repr_says_that_it_is_active(mode: str) -> None:
    assert "array([0.5, 1.5, 2.5])" in seen(repr, mode)
    assert "level=1" in seen(lambda x: repr(x[0]), mode)


@MODES
def test_integer_and_object_arrays_take_values(mode: str) -> None:
    whole, anything = np.zeros(2, int), np.zeros(2, object)

    def store(x: Any) -> Any:
        whole[0] = x[1]
        anything[0] = x[1]
        return ad.primal(anything[0])

    assert seen(store, mode) == 1.5
    assert whole.tolist() == [1, 0]


@MODES
def test_primal_and_stop_gradient_are_the_explicit_ways(mode: str) -> None:
    value = seen(lambda x: float(ad.primal(x[0])), mode)
    assert value == 0.5
    g = ad.gradient(lambda x: np.sum(x * ad.stop_gradient(x)), X, mode=mode)
    np.testing.assert_array_equal(g, X)
    g = ad.gradient(lambda x: np.sum(x * ad.primal(x)), X, mode=mode)
    np.testing.assert_array_equal(g, X)


# --- what keeps the derivative ---------------------------------------------------


@MODES
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda x: copy.deepcopy([x])[0], lambda x: x.copy()],
)
def test_copies_keep_the_derivative(copied: Callable[[Any], Any], mode: str) -> None:
    def f(x: Any) -> Any:
        y = copied(x)
        y[0] = 0.0  # x keeps its own
        return np.sum(y * x)

    np.testing.assert_allclose(ad.gradient(f, X, mode=mode), [0.0, 3.0, 5.0])


@MODES
def test_arrays_made_like_an_active_one_take_derivatives(mode: str) -> None:
    makers: list[Callable[[Any], Any]] = [
        np.zeros_like,
        np.empty_like,
        lambda x: np.zeros(3, like=x),
        lambda x: np.array([0.0, 0.0, 0.0], like=x),
        lambda x: np.full_like(x, 7.0),
    ]
    for make in makers:

        def f(x: Any, make: Callable[[Any], Any] = make) -> Any:
            y = make(x)
            for i in range(3):
                y[i] = x[i] ** 2
            return np.sum(y)

        np.testing.assert_allclose(ad.gradient(f, X, mode=mode), 2.0 * X)


@MODES
def test_a_float_view_of_complex_memory_is_the_same_memory(mode: str) -> None:
    def f(x: Any) -> Any:
        y = 1.0 * x
        z = y.view(complex)
        z *= 1j  # (a, b) becomes (-b, a)
        return y[0] + 10.0 * y[1]

    np.testing.assert_allclose(ad.gradient(f, X[:2], mode=mode), [10.0, -1.0])


# --- scalars are immutable, arrays without axes are not --------------------------


@MODES
def test_augmented_assignment_rebinds_a_scalar(mode: str) -> None:
    def f(x: Any) -> Any:
        s = x[0]
        before = s
        s += 1.0
        s *= 2.0
        return before * s  # x0 * 2 (x0 + 1)

    np.testing.assert_allclose(ad.gradient(f, X, mode=mode), [4.0, 0.0, 0.0])


@MODES
def test_a_reduction_gives_a_scalar(mode: str) -> None:
    def f(x: Any) -> Any:
        total = np.sum(x)
        alias = total
        total += x[0]
        return alias * total

    want = 2.0 * 4.5 + 0.5 + np.array([4.5, 0.0, 0.0])
    np.testing.assert_allclose(ad.gradient(f, X, mode=mode), want)


@MODES
def test_an_array_without_axes_is_written_through(mode: str) -> None:
    def f(x: Any) -> Any:
        y = 1.0 * x
        s = y[0, ...]
        s += 1.0
        s *= x[1]
        return np.sum(y)  # (x0 + 1) x1 + x1 + x2

    np.testing.assert_allclose(ad.gradient(f, X, mode=mode), [1.5, 2.5, 1.0])


@MODES
def test_scalars_have_no_sequence_protocol(mode: str) -> None:
    with pytest.raises(TypeError, match="subscriptable"):
        seen(lambda x: x[0][0], mode)
    with pytest.raises(TypeError, match="no len"):
        seen(lambda x: len(x[0]), mode)
    with pytest.raises(TypeError, match="item assignment"):
        seen(lambda x: write(x[0], (), 1.0), mode)
    with pytest.raises(TypeError, match="0-d"):
        seen(lambda x: list(x[0, ...]), mode)


@MODES
def test_python_built_ins_work_on_scalars(mode: str) -> None:
    def f(x: Any) -> Any:
        return sum(x) * max(x[0], x[1]) + pow(x[2], 2) + abs(-x[0]) + sorted(x)[1]

    want = 1.5 + np.array([1.0, 4.5 + 1.0, 5.0])
    np.testing.assert_allclose(ad.gradient(f, X, mode=mode), want)
