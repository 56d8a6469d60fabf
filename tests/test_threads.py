"""Threads, tasks and exceptions: every derivative is on its own."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dualad as ad
from tests import numeric

X = np.array([0.3, -0.7, 0.5, 0.9])


def f(x: Any) -> Any:
    """Return a sum with views and writes; it writes its argument, too."""
    x[1:] *= x[:-1]
    y = np.sin(x)
    y[::2] = y[1::2] * x[::2]
    for i in range(1, 4):
        y[i] += y[i - 1] * x[i]
    return np.sum(y * np.exp(x))


def third(x: Any) -> Any:
    """Return a slope of a slope of a gradient of ``f``."""

    def slope(x: Any) -> Any:
        return ad.jvp(lambda x: np.sum(X * ad.gradient(f, x)), (x,), (X,))[1]

    return ad.gradient(slope, x)


def test_eight_threads() -> None:
    """Nested derivatives in eight threads at once equal those of one thread."""
    arguments = [X * (k + 1) / 8.0 for k in range(8)]
    want = [third(x.copy()) for x in arguments]
    barrier = threading.Barrier(8)

    def work(x: np.ndarray) -> list[np.ndarray]:
        barrier.wait()
        return [third(x.copy()) for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        for got, wanted in zip(pool.map(work, arguments), want, strict=True):
            for g in got:
                np.testing.assert_array_equal(g, wanted)


def test_one_model_in_many_threads() -> None:
    """Threads may share arguments that are only read."""
    w = np.linspace(-1.0, 1.0, 40).reshape(5, 8)

    def loss(w: Any, k: int) -> Any:
        return np.sum(np.tanh(w @ w.T) * (k + 1.0))

    want = ad.gradient(lambda w: loss(w, 0), w)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda k: ad.gradient(lambda w: loss(w, k), w), range(16)))
    for k, g in enumerate(got):
        numeric.assert_close(g, want * (k + 1.0))


def test_derivatives_in_a_worker_of_f() -> None:
    """A worker inside f starts at level zero and may take its own derivatives."""

    def outer(x: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            c = pool.submit(ad.gradient, lambda z: np.sum(z**3), np.ones(4)).result()
        assert type(c) is np.ndarray
        return np.sum(c * x)

    np.testing.assert_array_equal(ad.gradient(outer, X.copy()), np.full(4, 3.0))


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_copied_context_in_another_thread(mode: Any) -> None:
    """Even with a copied context (asyncio.to_thread) x stays this thread's."""
    caught: list[str] = []

    def outer(x: Any) -> Any:
        context = contextvars.copy_context()

        def work() -> None:
            try:
                context.run(lambda: np.sum(x * 2.0))
            except ad.EscapedArrayError as e:
                caught.append(type(e).__name__)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return np.sum(x)

    ad.gradient(outer, X.copy(), mode=mode)
    assert caught == ["EscapedArrayError"]


class TestExceptions:
    """An exception inside f leaves everything as f alone would have."""

    class Mine(Exception):  # noqa: N818 -- stands for any exception of a user
        """What the user's function raises."""

    def failing(self, x: Any, depth: int) -> Any:
        """Write, take derivatives inside, and fail at the bottom."""
        x[0] = 5.0
        x[1:] *= x[:-1]
        if depth == 0:
            raise self.Mine
        return np.sum(ad.gradient(lambda y: self.failing(y, depth - 1), x))

    @pytest.mark.parametrize("depth", [0, 1, 2])
    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_levels_and_arrays(self, mode: Any, depth: int) -> None:
        """The next derivative is right, and x holds what f wrote."""
        plain = X.copy()
        with pytest.raises(self.Mine):
            self.failing(plain, depth)
        x = X.copy()
        with pytest.raises(self.Mine):
            ad.gradient(lambda x: self.failing(x, depth), x, mode=mode)
        np.testing.assert_array_equal(x, plain)
        assert type(np.zeros_like(x)) is np.ndarray
        numeric.assert_close(third(X.copy()), third(X.copy()))
        kept = []
        ad.gradient(lambda x: kept.append(x) or np.sum(x), X.copy())
        with pytest.raises(ad.EscapedArrayError):
            kept[0] + 1.0

    def test_caught_inside(self) -> None:
        """f may catch what an inner derivative raised, and go on."""

        def outer(x: Any) -> Any:
            y = x * 1.0
            try:
                ad.gradient(lambda z: self.failing(z, 0), y)
            except self.Mine:
                y[3] = 2.0 * y[2]
            return np.sum(y * y)

        # y = (5, 5 x1, 5 x1 ... ) after failing: y1 = x1 * 5, y2 = x2 * x1, y3 = 2 y2
        x1, x2 = X[1], X[2]
        want = [0.0, 50.0 * x1 + 10.0 * x1 * x2**2, 10.0 * x1**2 * x2, 0.0]
        for mode in ("reverse", "forward"):
            got = ad.gradient(outer, X.copy(), mode=mode)
            numeric.assert_close(got, np.array(want))

    def test_wrong_output(self) -> None:
        """Errors about f's output come after f has done its work."""
        x = X.copy()

        def vector(x: Any) -> Any:
            x[0] = 2.0
            return x * 2.0

        with pytest.raises(ad.ScalarOutputError):
            ad.gradient(vector, x)
        np.testing.assert_array_equal(x, [2.0, *X[1:]])

    def test_interrupt(self) -> None:
        """KeyboardInterrupt is no Exception, but restores as well."""
        x = X.copy()

        def stopped(x: Any) -> Any:
            x *= 2.0
            y = x * x
            y[0] = 0.0
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ad.gradient(stopped, x)
        np.testing.assert_array_equal(x, 2.0 * X)
        numeric.assert_close(ad.gradient(lambda x: np.sum(x * x), X.copy()), 2.0 * X)


class TestTasks:
    """asyncio: tasks take turns in one thread."""

    def test_tasks_side_by_side(self) -> None:
        """Each task's derivatives are its own."""

        async def work(k: int) -> list[np.ndarray]:
            got = []
            for _ in range(3):
                got.append(third(X * k))
                await asyncio.sleep(0)
            return got

        async def main() -> list[list[np.ndarray]]:
            return await asyncio.gather(*(work(k) for k in range(1, 5)))

        for k, got in enumerate(asyncio.run(main()), 1):
            for g in got:
                np.testing.assert_array_equal(g, third(X * k))

    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_event_loop_inside(self, mode: Any) -> None:
        """f runs an event loop whose tasks use x and differentiate inside.

        Task k gives k * (x_k^3 + 3 x_k^2): derivative k (3 x_k^2 + 6 x_k).
        """

        async def work(x: Any, k: int) -> Any:
            total = x[k] ** 3 * k
            await asyncio.sleep(0)
            slope = ad.derivative(lambda t: t**3, x[k])
            await asyncio.sleep(0)
            return total + slope * k

        async def main(x: Any) -> Any:
            parts = await asyncio.gather(*(work(x, k) for k in range(4)))
            return sum(parts)

        got = ad.gradient(lambda x: asyncio.run(main(x)), X.copy(), mode=mode)
        k = np.arange(4.0)
        numeric.assert_close(got, k * (3.0 * X**2 + 6.0 * X))

    def test_to_thread(self) -> None:
        """Whole derivatives run in worker threads with copied contexts."""

        async def main() -> list[np.ndarray]:
            jobs = (asyncio.to_thread(third, X * k) for k in range(1, 5))
            return await asyncio.gather(*jobs)

        for k, got in enumerate(asyncio.run(main()), 1):
            np.testing.assert_array_equal(got, third(X * k))
