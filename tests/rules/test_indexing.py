"""Reading by any index, choosing, moving, and writing into the first argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad.errors import UnsupportedArgumentError
from dualad.testing import check_rule
from tests import numeric
from tests.samples_arrays import INDEXING, cases
from tests.versions import since, until

MODES = pytest.mark.parametrize("mode", ["reverse", "forward"])
X = np.array([0.5, -1.5, 2.5, 1.0, -0.25, 0.75])
M = np.array([[0.5, -1.0, 2.0, 0.25], [1.5, 0.75, -0.75, 1.0], [2.5, -2.0, 1.75, 3.0]])
MASK = M > 0.6


@pytest.mark.parametrize(("function", "args", "params"), cases(INDEXING))
def test_rule(function: Any, args: Any, params: Any) -> None:
    check_rule(function, *args, **params)


def agrees(f: Callable[[Any], Any], x: Any, mode: str) -> None:
    """Check value and gradient."""
    value, _ = ad.value_and_gradient(f, x.copy())
    assert value == pytest.approx(f(x.copy()))
    g = ad.gradient(f, x.copy(), mode=mode)
    numeric.assert_close(g, numeric.gradient(f, x), 1e-8)


# --- reading ---------------------------------------------------------------------

INDICES: list[Any] = [
    0,
    -1,
    (1, 2),
    (np.int64(1), -1),
    slice(None, None, -2),
    (slice(1, None), slice(0, 3, 2)),
    Ellipsis,
    (Ellipsis, 1),
    (None, slice(None), None, 2),
    (),
    [0, 2, 0],
    np.array([[0, 2], [2, 1]]),
    ([0, 1, 1], [3, 0, 0]),
    (np.array([[0], [2]]), np.array([1, 1, 3])),
    (slice(None), [1, 1, -1]),
    ([0, 2], slice(1, 3)),
    ([1, 1], Ellipsis, None),
    (0, [1, 1]),
    (slice(None), None, [2, 0]),
    MASK,
    [True, False, True],
    (np.array([True, False, True]), 1),
    (slice(None), np.array([True, False, True, True])),
    (np.array([True, False, True]), [1, 3]),
    np.array(1),
    (np.array(1), slice(None)),
    (np.zeros(0, int),),
    np.zeros((3, 4), bool),
    np.uint8([2, 0]),
    True,
    (None, False),
]


@MODES
@pytest.mark.parametrize("number", range(len(INDICES)))
def test_reading_by_any_index(number: int, mode: str) -> None:
    index = INDICES[number]

    def f(m: Any) -> Any:
        y = m * m
        part = y[index]
        assert np.shape(part) == np.shape(M[index])
        assert np.isscalar(part) == np.isscalar(M[index])
        return np.sum(np.sin(part)) + np.sum(y)

    agrees(f, M, mode)


@MODES
@pytest.mark.parametrize("number", range(len(INDICES)))
def test_writing_and_augmented_writing_by_any_index(number: int, mode: str) -> None:
    index = INDICES[number]

    def f(m: Any) -> Any:
        y = 1.0 * m
        y[index] = np.cos(m[index])
        y[index] *= 3.0
        y[index] += m[0, 0]
        return np.sum(y * y * M)

    agrees(f, M, mode)


@MODES
def test_an_advanced_read_is_a_copy_and_a_basic_one_a_view(mode: str) -> None:
    def f(m: Any) -> Any:
        y = 1.0 * m
        copied, view = y[[0, 1]], y[0:2]
        y[0] = 0.0
        copied[1] = 5.0
        view[1, 1] = y[2, 2]
        return np.sum(copied * copied) + np.sum(view * y[1:] * y[1:])

    agrees(f, M, mode)


def test_the_index_may_be_refilled_afterwards() -> None:
    index = np.array([0, 1])

    def f(x: Any) -> Any:
        first = np.sum(x[index])
        index[:] = [2, 3]
        second = np.sum(np.take(x, index) * 10.0)
        index[:] = 5
        return first + second

    np.testing.assert_array_equal(ad.gradient(f, X), [1, 1, 10, 10, 0, 0])
    index[:] = [0, 1]


@MODES
def test_taking_is_copying(mode: str) -> None:
    def f(m: Any) -> Any:
        y = 1.0 * m
        row, column = np.take(y, 0, axis=0), np.take(y, 1, 1)
        row[0] = 7.0
        y[0, 1] = 0.0
        return np.sum(row * row) + np.sum(column * column) + np.sum(y) + np.take(y, 3)

    agrees(f, M, mode)


def test_taking_out_of_bounds_raises_as_numpy() -> None:
    for call in (
        lambda x: np.take(x, [6]),
        lambda x: np.take(x, -7),
        lambda x: x[[6]],
        lambda x: np.take_along_axis(x, np.array([6]), 0),
    ):
        with pytest.raises(IndexError):
            ad.gradient(lambda x, call=call: np.sum(call(x)), X)
    with pytest.raises(TypeError):
        ad.gradient(lambda x: np.sum(np.take(X, x)), X)


# --- choosing --------------------------------------------------------------------


@MODES
def test_one_half_at_a_bound(mode: str) -> None:
    x = np.array([0.0, 0.5, 1.0, 2.0, -1.0])
    g = ad.gradient(lambda x: np.sum(np.clip(x, 0.0, 1.0)), x, mode=mode)
    np.testing.assert_array_equal(g, [0.5, 1.0, 0.5, 0.0, 0.0])


@MODES
def test_bounds_are_differentiated_too(mode: str) -> None:
    def f(x: Any) -> Any:
        a = np.clip(x, x[1] * 0.5, x[2] * 0.31)
        b = np.clip(X, 0.5 * x[4], None)
        c = np.clip(X[:3], None, 0.9 * x[3:] * x[0])
        return np.sum(a * a) + np.sum(b * b) + np.sum(c * c * X[:3])

    agrees(f, X, mode)


@pytest.mark.parametrize(
    "bounds",
    [
        {"a_min": 0.0, "a_max": 1.0},
        {"a_min": 1.0, "a_max": 0.0},
        {"a_min": None, "a_max": 0.6},
        {"a_min": X[::-1].copy(), "a_max": None},
        {"a_min": [0.0] * 6, "a_max": np.float64(0.8)},
        {"a_min": -np.inf, "a_max": np.inf},
        {"a_min": np.nan, "a_max": 1.0},
    ],
)
def test_clipping_gives_exactly_numpys_values(bounds: Any) -> None:
    x = X if np.ndim(bounds["a_min"]) else np.append(X, [np.nan, np.inf, -np.inf, 0.0])
    value, _ = ad.jvp(lambda x: np.clip(x, **bounds), (x,), (np.ones_like(x),))
    np.testing.assert_array_equal(value, np.clip(x, **bounds))
    value, _ = ad.vjp(lambda x: np.clip(x, **bounds), x)
    np.testing.assert_array_equal(value, np.clip(x, **bounds))


def test_clip_refuses_as_numpy() -> None:
    with pytest.raises(TypeError, match="a_max"):
        ad.gradient(lambda x: np.sum(np.clip(x, 0.0)), X)
    with pytest.raises(ValueError, match="forbidden"):
        ad.gradient(lambda x: np.sum(np.clip(x, 0.0, 1.0, max=2.0)), X)


@MODES
def test_where_with_one_argument_gives_places(mode: str) -> None:
    seen = []

    def f(m: Any) -> Any:
        places = np.where(m > 1.0)
        seen.append([p.tolist() for p in places])
        return np.sum(m[places]) + np.sum(m[np.where(m * 0.0)])

    np.testing.assert_array_equal(ad.gradient(f, M, mode=mode), M > 1.0)
    assert seen[0] == [p.tolist() for p in np.where(M > 1.0)]
    with pytest.raises(ValueError, match="either both or neither"):
        ad.gradient(lambda m: np.sum(np.where(m > 1.0, m)), M, mode=mode)


@MODES
def test_where_selects_and_nothing_leaks(mode: str) -> None:
    x = np.array([4.0, 0.0, 1.0])

    def f(x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.sum(np.where(x > 0.0, np.sqrt(x), x * 2.0))

    np.testing.assert_array_equal(ad.gradient(f, x, mode=mode), [0.25, 2.0, 0.5])


@MODES
def test_where_broadcasts_all_three(mode: str) -> None:
    def f(m: Any) -> Any:
        y = np.where([[[True]], [[False]]], m[:, :1], m[0])
        return np.sum(y * y * M)

    agrees(f, M, mode)


@MODES
def test_selecting(mode: str) -> None:
    def f(x: Any) -> Any:
        a = np.select([x > 1.1, x > 0.0], [x * x, 3.0 * x], default=x[0] * x)
        b = np.choose([0, 1, 2, 0, 1, 2], [x, x * x, 5.0])
        c = np.choose([0, -1, 5, 0, 1, 2], [x, x * x], mode="clip")
        d = np.choose([0, -1, 5, 0, 1, 2], [x, x * x], mode="wrap")
        return np.sum(a + b * c + d)

    agrees(f, X, mode)
    with pytest.raises(ValueError, match="invalid entry"):
        ad.gradient(lambda x: np.sum(np.choose([2] * 6, [x, x])), X)
    with pytest.raises(TypeError, match="boolean"):
        ad.gradient(lambda x: np.sum(np.select([[1] * 6], [x])), X)
    with pytest.raises(ValueError, match="same length"):
        ad.gradient(lambda x: np.sum(np.select([X > 0], [x, x])), X)


# --- moving ----------------------------------------------------------------------


@MODES
@pytest.mark.parametrize(
    "call",
    [
        lambda m: np.insert(m, 1, m[0, 0]),
        lambda m: np.insert(m, 1, m[:, 0], axis=1),
        lambda m: np.insert(m, [1], m[:, :1] * 2.0, axis=1),
        lambda m: np.insert(m, [0, 2, 2], m[:, :3] * 2.0, axis=1),
        lambda m: np.insert(m, slice(0, 2), 7.0, axis=0),
        pytest.param(
            lambda m: np.insert(m[0], MASK[1], m[1, :3]), marks=since("2.2.0")
        ),
        pytest.param(  # booleans were the places 0 and 1
            lambda m: np.insert(m[0], MASK[1], m[1]),
            marks=[
                until("2.2.0"),
                pytest.mark.filterwarnings("ignore:in the future:FutureWarning"),
            ],
        ),
        lambda m: np.insert(M, 1, m[0], axis=0),
        lambda m: np.insert(m, -1, [1, 2, 3, 4], axis=0),
        lambda m: np.delete(m, 1),
        lambda m: np.delete(m, [0, -1], axis=1),
        lambda m: np.delete(m, slice(None, None, 2), axis=0),
        lambda m: np.delete(m[0], [True, False, True, False]),
        lambda m: np.resize(m, (5, 3)),
        lambda m: np.resize(m[0], 3),
        lambda m: np.compress([True, False, True], m, axis=0),
        lambda m: np.compress([False, True], m),
        lambda m: np.extract(MASK, m),
        lambda m: np.repeat(m, [1, 0, 2], axis=0),
        lambda m: np.repeat(m, 2),
        lambda m: np.repeat(m[0, 0], 3),
        lambda m: np.tile(m, (2, 1, 2)),
        lambda m: np.tile(m[0, 0], 3),
        lambda m: np.roll(m, 5),
        lambda m: np.roll(m, (1, -1), (0, 1)),
        lambda m: np.pad(m, ((1, 2), (0, 3))),
        lambda m: np.pad(m, 2, mode="wrap"),
        lambda m: np.pad(m, 5, "reflect"),
        lambda m: np.pad(m, (1, 6), "symmetric"),
        lambda m: np.pad(m, 1, mode="edge"),
        lambda m: np.pad(m, 1, constant_values=((1.0, 2.0), (3.0, 4.0))),
        lambda m: np.diag(m[0], 1),
        lambda m: np.diag(m, -1),
        lambda m: np.diagflat(m[:2, :2], -2),
        lambda m: np.tril(m, -1),
        lambda m: np.triu(m[0]),
    ],
)
def test_moving_elements(call: Callable[[Any], Any], mode: str) -> None:
    value, _ = ad.jvp(call, (M,), (M,))
    np.testing.assert_array_equal(value, call(M))
    assert value.dtype == call(M).dtype
    agrees(lambda m: np.sum(np.sin(call(m) * 1.5)), M, mode)


def test_padding_that_is_no_copy_of_elements_raises() -> None:
    for mode in ("linear_ramp", "mean", "maximum", "empty"):
        with pytest.raises(UnsupportedArgumentError, match="mode"):
            ad.gradient(lambda x, mode=mode: np.sum(np.pad(x, 1, mode=mode)), X)
    with pytest.raises(UnsupportedArgumentError, match="reflect_type"):
        ad.gradient(
            lambda x: np.sum(np.pad(x, 1, mode="reflect", reflect_type="odd")), X
        )


# --- writing into the first argument ---------------------------------------------

WRITERS: list[Callable[[Any, Any], None]] = [
    lambda y, m: np.put(y, [0, 5, -1], m[0, :3]),
    lambda y, m: np.put(y, [[0, 5], [5, 2]], m[0, :3]),
    lambda y, m: np.put(y, [0, 15, -30], [m[0, 0], 2.0], mode="wrap"),
    lambda y, m: np.put(y, [0, 15, -30], m[0] * 2.0, mode="clip"),
    lambda y, m: np.put(y.T, [0, 1, 2, 3], m[1]),
    lambda y, m: y.put([3, 3], m[0, 0]),
    lambda y, m: np.put(y, [1], m[0, :0]),
    lambda y, m: np.place(y, MASK, m[0, :3] * 2.0),
    lambda y, m: np.place(y, ~MASK, [m[0, 0], 1.0]),
    lambda y, m: np.place(y, MASK & ~MASK, m[0, :0]),
    lambda y, m: np.putmask(y, MASK, m * m),
    lambda y, m: np.putmask(y, MASK, m[0, :3]),
    lambda y, m: np.putmask(y, m > 1.1, 2.0),
    lambda y, m: np.copyto(y, m * m),
    lambda y, m: np.copyto(y, m[0] * 2.0, where=MASK),
    lambda y, m: np.copyto(y[1:], m[0, 1]),
    lambda y, m: np.copyto(y, 3.0, where=m > 1.1),
    lambda y, m: np.fill_diagonal(y, m[0, 1] * m[0, 2]),
    lambda y, m: np.fill_diagonal(y, m[2, :2]),
    lambda y, m: np.fill_diagonal(y.T, m[2], wrap=True),
    lambda y, m: np.put_along_axis(y, np.array([[0], [3], [3]]), m[:, :1] * 2.0, 1),
    lambda y, m: np.put_along_axis(y, np.array([[0, 1, 2, 0]]), m[:1] * m[:1], 0),
    lambda y, m: np.put_along_axis(y, np.array([0, -1, 5]), m[0, :3] * 2.0, None),
    lambda y, m: y.fill(m[1, 1]),
    lambda y, _: y.sort(axis=0),
    lambda y, _: y.sort(),
    lambda y, _: y.partition(2),
]


@MODES
@pytest.mark.parametrize("number", range(len(WRITERS)))
def test_functions_that_write(number: int, mode: str) -> None:
    write = WRITERS[number]

    def f(m: Any) -> Any:
        y = 1.0 * m
        assert write(y, m) is None
        return np.sum(y * y * np.arange(1.0, 13.0).reshape(3, 4))

    agrees(f, M, mode)


@MODES
def test_where_writing_twice_the_last_value_stays(mode: str) -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        np.put(y, [1, 1, 1], x[:3])
        return np.sum(y)

    np.testing.assert_array_equal(ad.gradient(f, X, mode=mode), [0, 0, 1, 0, 0, 0])


@MODES
def test_writing_refuses_as_numpy(mode: str) -> None:
    calls: list[tuple[Callable[[Any], Any], type[Exception]]] = [
        (lambda y: np.put(y, [6], 1.0), IndexError),
        (lambda y: np.place(y, [True, False], 1.0), ValueError),
        (lambda y: np.place(y, X > 0.0, []), ValueError),
        (lambda y: np.putmask(y, [True, False], 1.0), ValueError),
        (lambda y: np.copyto(y, np.ones(6, complex)), TypeError),
        (lambda y: np.copyto(y, np.ones(5)), ValueError),
        (lambda y: np.copyto(y, y.astype("f4"), casting="no"), TypeError),
        (lambda y: np.fill_diagonal(y, 1.0), ValueError),
    ]
    for call, error in calls:

        def f(x: Any, call: Callable[[Any], Any] = call) -> Any:
            y = 1.0 * x
            call(y)
            return np.sum(y)

        with pytest.raises(error):
            f(X)
        with pytest.raises(error):
            ad.gradient(f, X, mode=mode)
