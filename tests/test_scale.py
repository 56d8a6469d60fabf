"""Long programs: no recursion, no growth, no quadratic cost."""

from __future__ import annotations

import contextlib
import gc
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import dualad as ad
from tests import numeric

DEEP = settings().max_examples > 1000
FREE_LISTS = 20_000  # blocks that CPython keeps for tuples and the like
deep = pytest.mark.skipif(not DEEP, reason="only in the deep profile")


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    """Switch the cycle collector off: memory must go by itself."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def logistic(n: int) -> Any:
    """Return n steps of a scalar recurrence, two operations each."""

    def f(x: Any) -> Any:
        s = x
        for _ in range(n):
            s = s - s * 1e-5
        return s

    return f


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_many_scalar_steps(mode: Any) -> None:
    """200,000 steps: the slope is (1 - 1e-5)^100000, and no block is left."""
    x = np.array(0.8)
    ad.gradient(logistic(10), x, mode=mode)
    before = sys.getallocatedblocks()
    got = ad.gradient(logistic(100_000), x, mode=mode)
    after = sys.getallocatedblocks()
    assert got == pytest.approx((1.0 - 1e-5) ** 100_000, rel=1e-9)
    assert after - before < FREE_LISTS


@deep
def test_a_million_steps() -> None:
    """A million steps of reverse mode."""
    got = ad.gradient(logistic(500_000), np.array(0.8))
    assert got == pytest.approx((1.0 - 1e-5) ** 500_000, rel=1e-9)


def test_elements_in_a_loop() -> None:
    """x[i] * x[i - 1] over 16,000 elements: the sum of both neighbours."""
    x = np.linspace(0.0, 1.0, 16_000)

    def f(x: Any) -> Any:
        s = 0.0
        for i in range(1, x.size):
            s = s + x[i] * x[i - 1]
        return s

    want = np.zeros_like(x)
    want[1:] += x[:-1]
    want[:-1] += x[1:]
    tracemalloc.start()
    got = ad.gradient(f, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    numeric.assert_close(got, want)
    assert peak < 16_000 * 8000  # one full array per element would be 2 GB


def test_element_writes_in_a_loop() -> None:
    """y[i + 1] = y[i] * (1 + 1e-4 x[i]) over 10,000 elements."""
    n = 10_000
    x = np.linspace(-1.0, 1.0, n)

    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        y[0] = 1.0
        for i in range(n - 1):
            y[i + 1] = y[i] * (1.0 + 1e-4 * x[i])
        return y[-1]

    want = f(x) * 1e-4 / (1.0 + 1e-4 * x)
    want[-1] = 0.0
    numeric.assert_close(ad.gradient(f, x), want)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_deep_chain_of_views(mode: Any) -> None:
    """A view of a view of ... 100,000 times, then reads and a write through it."""

    def f(x: Any) -> Any:
        y = x * 1.0
        z = y
        for _ in range(100_000):
            z = z[::-1]
        z[0] = z[1] * z[2]
        return np.sum(y * y)

    x = np.array([2.0, 3.0, 5.0])
    want = [0.0, 2.0 * 3.0 * 25.0 + 6.0, 2.0 * 5.0 * 9.0 + 10.0]
    np.testing.assert_array_equal(ad.gradient(f, x, mode=mode), want)


def test_many_writes_to_one_array() -> None:
    """50,000 augmented writes: each undone and redone once."""

    def f(x: Any) -> Any:
        for i in range(50_000):
            x[i % 4] += 1e-5 * x[(i + 1) % 4]
        return np.sum(x)

    x = np.ones(4)
    plain = x.copy()
    f(plain)
    before = sys.getallocatedblocks()
    got = ad.gradient(f, x)
    assert sys.getallocatedblocks() - before < FREE_LISTS
    np.testing.assert_array_equal(x, plain)
    # f is linear with equal row sums of its matrix up to the order of writes
    assert np.sum(got) == pytest.approx(np.sum(plain), rel=1e-12)


class TestMemoryReturns:
    """Memory is as before after each call, with the collector off."""

    @staticmethod
    def f(x: Any) -> Any:
        """Return a chain with views, writes and a matrix product."""
        y = np.sin(x) * x
        for _ in range(5):
            y = np.tanh(y * x) + y
            y[1:] *= y[:-1]
            y.T[0] = np.exp(y.T[1])
        return np.sum(y @ x.T)

    @pytest.mark.parametrize(
        "call",
        [
            lambda f, x: ad.gradient(f, x),
            lambda f, x: ad.value_and_gradient(f, x),
            lambda f, x: ad.jvp(f, (x,), (x,)),
            lambda f, x: ad.vjp(f, x),
            lambda f, x: ad.vjp(f, x)[1](1.0),
            lambda f, x: ad.hvp(f, x, x),
            lambda f, x: ad.gradient(lambda x: np.sum(ad.gradient(f, x) ** 2), x),
            lambda f, x: ad.jvp(lambda x: ad.jvp(f, (x,), (x,))[1], (x,), (x,)),
            lambda f, x: ad.jacobian(lambda x: f(x) * x[:2, 0], x),
            lambda f, x: failing(f, x),
        ],
        ids=[
            "gradient",
            "value_and_gradient",
            "jvp",
            "vjp dropped",
            "pullback",
            "hvp",
            "reverse over reverse",
            "forward over forward",
            "jacobian",
            "exception",
        ],
    )
    def test_traced_memory(self, call: Any) -> None:
        """No array of the run is left."""
        x = np.full((200, 200), 0.01)
        call(self.f, x)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(3):
            call(self.f, x)
        left = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert left < x.nbytes / 2


def failing(f: Any, x: Any) -> None:
    """Fail after all of ``f`` has run."""

    def g(x: Any) -> Any:
        f(x)
        raise KeyError

    with contextlib.suppress(KeyError):
        ad.gradient(g, x)
