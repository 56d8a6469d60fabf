"""Programs as people write them; expected numbers come from formulas beside them."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import warnings
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import dualad as ad
from tests import numeric

Function = Callable[[Any], Any]


def check(f: Function, x: Any, want: Any, limit: float = 1e-10) -> None:
    """Check the gradient in both modes, and the memory of ``x``."""
    plain = numeric.like(x, x)
    value = f(plain)
    for mode in ("reverse", "forward"):
        y = numeric.like(x, x)
        numeric.assert_close(ad.gradient(f, y, mode=mode), want, limit)
        np.testing.assert_array_equal(y, plain)
    assert ad.value_and_gradient(f, numeric.like(x, x))[0] == value


class TestInPlace:
    """Writing into arrays that the derivative knows."""

    def test_filling_a_buffer(self) -> None:
        """c = (a b, a + c0, c1^2): a Jacobian by hand."""

        def f(x: Any) -> Any:
            c = np.zeros_like(x)
            c[0] = x[0] * x[1]
            c[1] = x[0] + c[0]
            c[2] = c[1] ** 2 * x[2]
            return c

        a, b, d = 2.0, -0.5, 3.0
        s = a + a * b
        last = [2 * s * d * (1 + b), 2 * s * d * a, s * s]
        want = [[b, a, 0.0], [1.0 + b, a, 0.0], last]
        x = np.array([a, b, d])
        for mode in ("reverse", "forward"):
            numeric.assert_close(ad.jacobian(f, x, mode=mode), np.array(want))

    def test_operand_overwritten(self) -> None:
        """z = y^2 keeps the y that it saw: z . y' with y' = (3 y0, 0, y2)."""

        def f(x: Any) -> Any:
            y = 0.5 * x
            z = y * y
            y[1] = 0.0
            y[0] *= 3.0
            return np.sum(z * y)

        x = np.array([1.0, 2.0, -4.0])
        check(f, x, 3.0 * 0.125 * x**2 * [3.0, 0.0, 1.0])

    def test_through_the_transpose(self) -> None:
        """Writes through base.T show in base."""

        def f(x: Any) -> Any:
            base = x * 1.0
            v = base.T
            v *= np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            v[0] += 1.0
            base[1] *= v[:, 0]
            return np.sum(base * base)

        x = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
        c = np.array([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]])
        e = np.array([1.0, 0.0, 0.0])
        top, low = c[0] * x[0] + e, c[1] * x[1] + e
        # sum(top^2) + sum((low top)^2)
        want = np.stack([2 * c[0] * top * (1 + low**2), 2 * c[1] * low * top**2])
        check(f, x, want)

    def test_histogram(self) -> None:
        """np.add.at with repeats: bins (x0 + x3, x2, x1): gradient 2 bin."""

        def f(x: Any) -> Any:
            bins = np.zeros_like(x)
            np.add.at(bins, [0, 2, 1, 0], x)
            return np.sum(bins**2)

        x = np.array([1.0, 2.0, 3.0, 4.0])
        check(f, x, [10.0, 4.0, 6.0, 10.0])

    def test_scratch_cleared_in_a_loop(self) -> None:
        """Sum over i of |i x|^2 for i = 1 .. 4: 60 x."""

        def f(x: Any) -> Any:
            scratch = np.empty_like(x)
            total = 0.0
            for i in range(1, 5):
                scratch[...] = 0.0
                scratch += x * i
                total += np.sum(scratch * scratch)
            return total

        x = np.array([1.0, -2.0, 0.5])
        check(f, x, 60.0 * x)

    def test_relaxation(self) -> None:
        """Sweeps over a grid in place: linear, so the adjoint is the transpose."""

        def f(u: Any) -> Any:
            for _ in range(3):
                u[1:-1, 1:-1] = 0.25 * (
                    u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
                )
                u[0] = u[1]
            return np.sum(u * np.arange(20.0).reshape(4, 5))

        u = np.linspace(0.0, 1.0, 20).reshape(4, 5)
        check(f, u, numeric.complex_step_gradient(f, u))

    def test_gaussian_elimination(self) -> None:
        """Solve by elimination in place: the gradient of c . A^-1 b."""

        def solve(a: Any, b: Any) -> Any:
            a, b = a.copy(), b.copy()
            n = len(b)
            for k in range(n):
                for i in range(k + 1, n):
                    factor = a[i, k] / a[k, k]
                    a[i, k:] -= factor * a[k, k:]
                    b[i] -= factor * b[k]
            y = np.zeros_like(b)
            for k in reversed(range(n)):
                y[k] = (b[k] - np.sum(a[k, k + 1 :] * y[k + 1 :])) / a[k, k]
            return y

        a = np.array([[4.0, 1.0, -1.0], [0.5, 3.0, 0.2], [1.0, -0.3, 5.0]])
        b, c = np.array([1.0, -2.0, 0.5]), np.array([1.0, 2.0, 3.0])
        a_bar, b_bar = ad.gradient(lambda a, b: np.sum(c * solve(a, b)), a, b)
        inverse = np.linalg.inv(a)
        numeric.assert_close(b_bar, inverse.T @ c)
        numeric.assert_close(a_bar, -np.outer(inverse.T @ c, inverse @ b))

    def test_cholesky_in_place(self) -> None:
        """A textbook Cholesky: log det = 2 sum log diag, gradient A^-1 (lower part)."""

        def log_det(a: Any) -> Any:
            n = a.shape[0]
            for j in range(n):
                a[j, j] = np.sqrt(a[j, j] - np.sum(a[j, :j] ** 2))
                for i in range(j + 1, n):
                    a[i, j] = (a[i, j] - np.sum(a[i, :j] * a[j, :j])) / a[j, j]
            return 2.0 * np.sum(np.log(np.diagonal(a)))

        a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]])
        inverse = np.linalg.inv(a)
        want = np.tril(inverse) + np.tril(inverse, -1)  # only the lower part is read
        check(log_det, a, want)

    def test_bubble_sort(self) -> None:
        """Sorting by comparisons and swaps: weights by rank."""

        def f(x: Any) -> Any:
            for _ in range(len(x)):
                for i in range(len(x) - 1):
                    if x[i] > x[i + 1]:
                        x[i], x[i + 1] = x[i + 1], x[i]
            return np.sum(np.array([1.0, 10.0, 100.0, 1000.0]) * x)

        check(f, np.array([3.0, -1.0, 7.0, 0.5]), [100.0, 1.0, 1000.0, 10.0])

    def test_running_maximum(self) -> None:
        """Writes that depend on values: (3, 3, 7, 7)."""

        def f(x: Any) -> Any:
            m = x.copy()
            for i in range(1, len(m)):
                m[i] = max(m[i], m[i - 1])
            return np.sum(m**2)

        check(f, np.array([3.0, -1.0, 7.0, 0.5]), [12.0, 0.0, 28.0, 0.0])

    def test_fill_and_masks(self) -> None:
        """fill with an active number, then masks."""

        def f(x: Any) -> Any:
            y = np.empty_like(x)
            y.fill(x[0] * 2.0)
            y[x > 1.5] = x[x > 1.5] ** 2
            y[x < 0.0] *= x[1]
            return np.sum(y)

        # y = (2 x0, x1^2, 2 x0 x1, x3^2) with x1, x3 > 1.5 and x2 < 0
        check(f, np.array([1.0, 2.0, -1.0, 3.0]), [2.0 + 4.0, 4.0 + 2.0, 0.0, 6.0])

    def test_out_arguments(self) -> None:
        """A chain by hand with out=: sin(x)^2 + x."""

        def f(x: Any) -> Any:
            work = np.empty_like(x)
            np.sin(x, out=work)
            np.multiply(work, work, out=work)
            np.add(work, x, out=work)
            return np.sum(work)

        x = np.array([0.3, 1.2, -0.4])
        check(f, x, np.sin(2.0 * x) + 1.0)


class TestAliasing:
    """Several names for one memory."""

    def test_views_of_views(self) -> None:
        """A diagonal block of a reversed transposed matrix, written."""

        def f(x: Any) -> Any:
            m = x * 1.0
            block = m.T[::-1][1:, 1:]
            block *= 2.0
            np.fill_diagonal(m, 0.0)
            return np.sum(m * m)

        x = np.arange(1.0, 10.0).reshape(3, 3)
        factor = np.ones((3, 3))
        factor.T[::-1][1:, 1:] = 2.0
        np.fill_diagonal(factor, 0.0)
        check(f, x, 2.0 * x * factor**2)

    def test_same_array_twice(self) -> None:
        """sum(a b^2) at a = b: two partials."""
        x = np.array([1.0, -2.0, 3.0])
        got = ad.gradient(lambda a, b: np.sum(a * b * b), x, x)
        numeric.assert_close(got[0], x**2)
        numeric.assert_close(got[1], 2.0 * x**2)

    def test_list_of_views(self) -> None:
        """Blocks in a list are views of one matrix."""

        def f(x: Any) -> Any:
            y = x * 1.0
            blocks = [y[i : i + 2] for i in range(0, 6, 2)]
            for k, block in enumerate(blocks):
                block[...] *= k + 1.0
            blocks[0][:] = blocks[2]
            return np.sum(y**2)

        x = np.arange(1.0, 7.0)
        # y = (3 x4, 3 x5, 2 x2, 2 x3, 3 x4, 3 x5)
        check(f, x, [0.0, 0.0, 8 * x[2], 8 * x[3], 36 * x[4], 36 * x[5]])

    def test_attribute_views(self) -> None:
        """An object that keeps rows of its own buffer."""

        class State:
            def __init__(self, x: Any) -> None:
                self.buffer = x * 1.0
                self.position, self.speed = self.buffer

            def advance(self, dt: float) -> None:
                self.speed -= dt * self.position
                self.position += dt * self.speed

        def f(x: Any) -> Any:
            state = State(x)
            for _ in range(4):
                state.advance(0.1)
            return np.sum(state.buffer[0])

        step = np.array([[1.0 - 0.01, 0.1], [-0.1, 1.0]])
        row = np.linalg.matrix_power(step, 4)[0]
        check(f, np.array([[1.0, 2.0], [0.5, -0.5]]), np.outer(row, [1.0, 1.0]))

    def test_results_belong_to_the_caller(self) -> None:
        """Linear functions do not hand out constants or arguments."""
        c = np.array([2.0, -1.0, 4.0])
        x = np.array([1.0, 2.0, 3.0])
        first = ad.gradient(lambda x: np.sum(c * x), x)
        second = ad.gradient(lambda x: np.sum(c * x), x)
        for g in (first, second):
            assert not np.shares_memory(g, c)
            assert not np.shares_memory(g, x)
        assert not np.shares_memory(first, second)
        first[...] = 0.0
        np.testing.assert_array_equal(second, c)
        np.testing.assert_array_equal(c, [2.0, -1.0, 4.0])

    def test_value_belongs_to_the_caller(self) -> None:
        """So do values: jvp, vjp and has_aux."""
        x = np.array([1.0, 2.0])
        for value in (
            ad.jvp(lambda x: x, (x,), (x,))[0],
            ad.vjp(lambda x: x[:], x)[0],
        ):
            assert not np.shares_memory(value, x)
        (value, aux), gradient = ad.value_and_gradient(
            lambda x: (np.sum(x * x), x), x, has_aux=True
        )
        assert value == 5.0
        assert type(aux) is np.ndarray
        np.testing.assert_array_equal(aux, x)
        np.testing.assert_array_equal(gradient, 2.0 * x)


class TestClosures:
    """Functions that capture data, state and one another."""

    def test_tied_weights(self) -> None:
        """W used twice: || W^T W x - x ||^2 by differences."""
        x = np.array([1.0, -2.0, 0.5])
        w = np.array([[0.5, -0.25, 0.1], [0.3, 0.8, -0.6]])
        r = w.T @ w @ x - x
        # d/dW: 2 (W x r^T + W r x^T)
        want = 2.0 * (np.outer(w @ x, r) + np.outer(w @ r, x))
        check(lambda w: np.sum((w.T @ (w @ x) - x) ** 2), w, want)

    def test_captured_data_between_calls(self) -> None:
        """Least squares with data replaced between calls: 2 A^T (A x - b)."""
        data = SimpleNamespace(a=np.eye(2), b=np.zeros(2))
        f = lambda x: np.sum((data.a @ x - data.b) ** 2)  # noqa: E731
        gradient = ad.grad(f)
        x = np.array([1.0, -2.0])
        for k in range(1, 4):
            data.a = np.array([[1.0, k], [0.5, 2.0]])
            data.b = np.array([k, 1.0])
            want = 2.0 * data.a.T @ (data.a @ x - data.b)
            numeric.assert_close(gradient(x), want)

    def test_counter(self) -> None:
        """f runs once per gradient."""
        calls = []

        def f(x: Any) -> Any:
            calls.append(1)
            return np.sum(x)

        ad.gradient(f, np.ones(3))
        assert len(calls) == 1
        ad.value_and_gradient(f, np.ones(3))
        assert len(calls) == 2

    def test_nonlocal_state(self) -> None:
        """A running number kept outside, read through primal."""
        best = math.inf

        def f(x: Any) -> Any:
            nonlocal best
            loss = np.sum((x - 3.0) ** 2)
            best = min(best, float(ad.primal(loss)))
            return loss

        x = np.zeros(2)
        for _ in range(50):
            x -= 0.1 * ad.gradient(f, x)
        numeric.assert_close(x, np.full(2, 3.0), 1e-4)
        assert best < 1e-7

    def test_partial_lambda_and_method(self) -> None:
        """Callables of every kind."""

        class Model:
            power = 3

            def loss(self, x: Any) -> Any:
                return np.sum(x**self.power)

            __call__ = loss

        x = np.array([1.0, 2.0])
        want = 3.0 * x**2
        for f in (
            Model().loss,
            Model(),
            functools.partial(lambda p, x: np.sum(x**p), 3),
            lambda x: np.sum(x * x * x),
        ):
            numeric.assert_close(ad.gradient(f, x), want)

    def test_memo(self) -> None:
        """Recursion with a memo dictionary: Fibonacci numbers F7 x0 + F8 x1."""

        def f(x: Any) -> Any:
            memo: dict[int, Any] = {}

            def term(n: int) -> Any:
                if n < 2:
                    return x[n]
                if n not in memo:
                    memo[n] = term(n - 1) + term(n - 2)
                return memo[n]

            return term(8)

        check(f, np.array([0.7, 1.3]), [13.0, 21.0])

    def test_cached_function(self) -> None:
        """functools.cache inside f, keyed by integers."""

        def f(x: Any) -> Any:
            @functools.cache
            def power(n: int) -> Any:
                return x if n == 1 else x * power(n - 1)

            return np.sum(power(5) + power(3))

        x = np.array([0.5, 2.0])
        check(f, x, 5.0 * x**4 + 3.0 * x**2)


class TestControlFlow:
    """Python decides; the derivative follows."""

    def test_branch_changes_between_calls(self) -> None:
        """The same gradient function on either side and with other shapes."""

        def f(x: Any) -> Any:
            if x[0] < 0.0:
                return np.sum(x)
            return x[0] ** 2 * np.sum(x[1:])

        gradient = ad.grad(f)
        np.testing.assert_array_equal(gradient(np.array([-1.0, 2.0])), [1.0, 1.0])
        np.testing.assert_array_equal(gradient(np.array([2.0, 3.0])), [12.0, 4.0])
        got = gradient(np.array([2.0, 3.0, 1.0]))
        np.testing.assert_array_equal(got, [16.0, 4.0, 4.0])

    def test_while(self) -> None:
        """Halve until small: 3.0 is halved twice, so 1/4."""

        def f(x: Any) -> Any:
            n = 0
            while np.max(x) > 1.0:
                x = x / 2.0
                n += 1
            assert n == 2
            return np.sum(x)

        check(f, np.array([3.0, 1.0]), [0.25, 0.25])

    def test_break_continue_else(self) -> None:
        """Only positive entries before the first above two."""

        def f(x: Any) -> Any:
            s = 1.0
            for e in x:
                if e < 0.0:
                    continue
                if e > 2.0:
                    break
                s = s * e
            else:
                s = s * 100.0
            return s

        check(f, np.array([0.5, -1.0, 1.5, 3.0, 0.1]), [1.5, 0.0, 0.5, 0.0, 0.0])

    def test_conditional_expression_and_match(self) -> None:
        """An expression and a match statement on a plain string."""

        def f(x: Any, kind: str) -> Any:
            y = x if np.sum(x) > 0.0 else -x
            match kind:
                case "square":
                    return np.sum(y**2)
                case _:
                    return np.sum(y)

        x = np.array([-3.0, 1.0])
        numeric.assert_close(ad.gradient(f, x, ad.Const("square")), 2.0 * x)
        numeric.assert_close(ad.gradient(f, x, ad.Const("sum")), -np.ones(2))

    def test_exceptions_as_control_flow(self) -> None:
        """try and except around an index that does not exist."""

        def f(x: Any) -> Any:
            s, i = 0.0, 0
            while True:
                try:
                    s = s + x[i] ** 2
                except IndexError:
                    return s
                i += 1

        x = np.array([1.0, 2.0, 3.0])
        check(f, x, 2.0 * x)

    def test_builtins(self) -> None:
        """sum, max, min, sorted, zip, enumerate, reversed, any over elements."""

        def f(x: Any) -> Any:
            top, low = max(x), min(x)
            middle = sorted(x)[1]
            pairs = sum(a * b for a, b in zip(x, reversed(x), strict=True))
            weighted = sum(i * e for i, e in enumerate(x))
            assert any(e > 2.0 for e in x)
            return top * low + 3.0 * middle + pairs + weighted

        x = np.array([2.0, 5.0, -1.0])
        # x1 x2 + 3 x0 + (2 x0 x2 + x1^2) + x1 + 2 x2
        want = [3.0 + 2.0 * x[2], x[2] + 2 * x[1] + 1.0, x[1] + 2 * x[0] + 2.0]
        check(f, x, want)

    def test_generators_and_itertools(self) -> None:
        """A generator that yields running products."""

        def f(x: Any) -> Any:
            def products() -> Any:
                p = 1.0
                for e in x:
                    p = p * e
                    yield p

            return sum(itertools.islice(products(), 2))

        check(f, np.array([2.0, 3.0, 4.0]), [1.0 + 3.0, 2.0, 0.0])

    def test_data_dependent_size(self) -> None:
        """The number of elements depends on values."""

        def f(x: Any) -> Any:
            chosen = x[x > 1.0]
            return np.sum(chosen**2) / len(chosen)

        check(f, np.array([0.5, 2.0, 3.0]), [0.0, 2.0, 3.0])

    def test_argmax(self) -> None:
        """Indices are plain integers."""

        def f(x: Any) -> Any:
            i = np.argmax(x)
            order = np.argsort(x)
            return x[i] ** 2 + np.sum(x[order] * np.array([1.0, 2.0, 3.0]))

        check(f, np.array([2.0, 5.0, -1.0]), [2.0, 10.0 + 3.0, 1.0])


class TestLoops:
    """Time stepping, recurrences, scans."""

    def test_rosenbrock(self) -> None:
        """Element by element: the textbook gradient."""
        x = np.tile([1.5, 0.5], 100)

        def f(x: Any) -> Any:
            s = 0.0
            for i in range(len(x) - 1):
                s = s + (1.0 - x[i]) ** 2 + 100.0 * (x[i + 1] - x[i] ** 2) ** 2
            return s

        want = np.zeros_like(x)
        gap = x[1:] - x[:-1] ** 2
        want[:-1] += -2.0 * (1.0 - x[:-1]) - 400.0 * x[:-1] * gap
        want[1:] += 200.0 * gap
        check(f, x, want)

    def test_leapfrog(self) -> None:
        """A harmonic oscillator: the transpose of the step matrix, many times."""

        def f(x: Any) -> Any:
            q, p = x[0], x[1]
            for _ in range(20):
                p = p - 0.05 * q
                q = q + 0.1 * p
                p = p - 0.05 * q
            return q

        half = np.array([[1.0, 0.0], [-0.05, 1.0]])
        drift = np.array([[1.0, 0.1], [0.0, 1.0]])
        step = half @ drift @ half
        check(f, np.array([0.3, 0.8]), np.linalg.matrix_power(step, 20)[0])

    def test_trajectory_in_an_array(self) -> None:
        """Logistic growth stored in a matrix: forward equals reverse equals steps."""

        def f(p: Any) -> Any:
            path = np.zeros((30, 2), like=p)
            path[0] = 0.1 * p
            for k in range(29):
                path[k + 1] = path[k] + 0.2 * p[0] * path[k] * (1.0 - path[k])
            return np.sum((path - 0.5) ** 2)

        p = np.array([1.3, 0.7])
        want = numeric.gradient(f, p)
        numeric.assert_close(ad.gradient(f, p), want, 1e-8)
        numeric.assert_close(ad.gradient(f, p, mode="forward"), want, 1e-8)

    def test_running_list(self) -> None:
        """A list of states, a deque of the last three, and np.stack at the end."""

        def f(x: Any) -> Any:
            states = [x]
            window: deque[Any] = deque([x], maxlen=3)
            for _ in range(4):
                states.append(states[-1] * 0.5 + sum(window) * 0.1)
                window.append(states[-1])
            return np.sum(np.stack(states) ** 2)

        x = np.array([1.0, -2.0])
        factors = [1.0]
        window = [1.0]
        for _ in range(4):
            factors.append(factors[-1] * 0.5 + sum(window) * 0.1)
            window = [*window, factors[-1]][-3:]
        check(f, x, 2.0 * x * sum(c * c for c in factors))

    def test_horner(self) -> None:
        """A polynomial by Horner's rule in its coefficients and its argument."""

        def f(c: Any, t: Any) -> Any:
            y = 0.0
            for a in c[::-1]:
                y = y * t + a
            return y

        c, t = np.array([1.0, -2.0, 0.5, 3.0]), 1.5
        c_bar, t_bar = ad.gradient(f, c, t)
        numeric.assert_close(c_bar, t ** np.arange(4.0))
        numeric.assert_close(t_bar, -2.0 + 2 * 0.5 * t + 3 * 3.0 * t**2)

    def test_scalar_rebinding_is_not_a_write(self) -> None:
        """s = x[0]; s += 1 leaves x alone, as NumPy's scalars do."""

        def f(x: Any) -> Any:
            s = x[0]
            s += 1.0
            s *= x[1]
            total = np.sum(x)
            total += s
            return total

        check(f, np.array([2.0, 3.0]), [1.0 + 3.0, 1.0 + 3.0])

    def test_zero_dimensional_array_is_written_through(self) -> None:
        """But x[0, ...] is an array: += goes to x."""

        def f(x: Any) -> Any:
            s = x[0, ...]
            s += 1.0
            s *= x[1]
            return np.sum(x * x)

        # x0' = (x0 + 1) x1
        a, b = 2.0, 3.0
        want = [2 * (a + 1) * b * b, 2 * b + 2 * (a + 1) ** 2 * b]
        check(f, np.array([a, b]), want)


class TestContainers:
    """Arguments and gradients that are trees."""

    class Layer(NamedTuple):
        """Weights of a dense layer."""

        w: Any
        b: Any

    def test_nested(self) -> None:
        """A dict of lists of named tuples and floats."""
        p = {
            "layers": [
                self.Layer(np.array([[0.5, -1.0]]), np.array([0.1])),
                self.Layer(np.array([[2.0], [-0.5]]), np.array([0.2, -0.3])),
            ],
            "scale": 0.7,
            "name": "net",
            "pair": (np.array([1.0, 2.0]), 3),
        }
        x = np.array([0.3, 0.6])

        def f(p: Any) -> Any:
            h = x
            for layer in p["layers"]:
                h = np.tanh(layer.w @ h + layer.b)
            a, s = p["pair"]
            assert p["name"] == "net"
            return p["scale"] * np.sum(h * a) * s

        got = ad.gradient(f, p)
        h1 = np.tanh(p["layers"][0].w @ x + p["layers"][0].b)
        h2 = np.tanh(p["layers"][1].w @ h1 + p["layers"][1].b)
        a = p["pair"][0]
        d2 = 0.7 * 3.0 * a * (1.0 - h2**2)
        d1 = (p["layers"][1].w.T @ d2) * (1.0 - h1**2)
        assert isinstance(got["layers"][0], self.Layer)
        numeric.assert_close(got["scale"], 3.0 * np.sum(h2 * a))
        numeric.assert_close(got["pair"][0], 2.1 * h2)
        numeric.assert_close(got["layers"][1].w, np.outer(d2, h1))
        numeric.assert_close(got["layers"][1].b, d2)
        numeric.assert_close(got["layers"][0].w, np.outer(d1, x))
        numeric.assert_close(got["layers"][0].b, d1)

    def test_second_order(self) -> None:
        """hvp of trees: f = a^2 . b, in the direction (1, 1)."""
        p = [np.array([1.0, 2.0]), {"b": np.array([3.0, -1.0])}]
        f = lambda p: np.sum(p[0] ** 2 * p[1]["b"])  # noqa: E731
        v = [np.ones(2), {"b": np.ones(2)}]
        got = ad.hvp(f, p, v)
        a, b = p[0], p[1]["b"]
        numeric.assert_close(got[0], 2.0 * b + 2.0 * a)
        numeric.assert_close(got[1]["b"], 2.0 * a)

    def test_shadows(self) -> None:
        """make_shadow, accumulate twice, zero_shadow."""
        p = {"w": np.array([1.0, 2.0]), "b": [np.array(3.0)]}
        shadow = ad.make_shadow(p)
        f = lambda p: np.sum(p["w"] ** 2) * p["b"][0]  # noqa: E731
        for k in (1.0, 2.0):
            assert ad.autodiff(ad.Reverse, f, ad.Duplicated(p, shadow)) == 15.0
            numeric.assert_close(shadow["w"], k * 6.0 * p["w"])
            numeric.assert_close(shadow["b"][0], k * np.array(5.0))
        ad.zero_shadow(shadow)
        assert not np.any(shadow["w"])


class TestCopying:
    """copy, deepcopy and friends keep derivatives."""

    def test_copies(self) -> None:
        """y x + 2 z + a^3 with y, z, a copies of x."""

        def f(x: Any) -> Any:
            y = copy.deepcopy(x)
            z = copy.copy(x)
            state = copy.deepcopy({"a": x, "k": 3})
            return np.sum(y * x) + 2.0 * np.sum(z) + np.sum(state["a"] ** state["k"])

        x = np.array([1.0, -2.0, 0.5])
        check(f, x, 2.0 * x + 2.0 + 3.0 * x**2)

    def test_copies_are_independent(self) -> None:
        """Writing to one does not reach the other."""

        def f(x: Any) -> Any:
            copies = [x.copy(), copy.copy(x), copy.deepcopy(x), np.copy(x), x + 0.0]
            for y in copies:
                y[0] = 9.0
            copies[0][1] = x[2]
            return np.sum(x) + sum(np.sum(y) for y in copies)

        check(f, np.ones(3), [1.0, 1.0 + 4.0, 1.0 + 5.0 + 1.0])

    def test_deepcopy_of_scalars_and_memo(self) -> None:
        """A list that holds one scalar twice."""

        def f(x: Any) -> Any:
            pair = copy.deepcopy([x[0], x[0], np.sum(x)])
            return pair[0] * pair[1] + pair[2]

        check(f, np.array([3.0, 1.0]), [7.0, 1.0])


class TestConversions:
    """What cannot be differentiated says so."""

    @pytest.mark.parametrize(
        "f",
        [
            lambda x: math.pow(x[0], 1.8) * x[1],
            lambda x: 3.0 * float(x[1]) * x[0],
            lambda x: np.sum(np.array([[x[0], 1.0], [2.0, x[1]]])),
            lambda x: np.sum(np.asarray(x, dtype=float) ** 2),
            lambda x: np.sum(np.eye(2).dot(x)),
            lambda x: x[0].item() * x[1],
            lambda x: sum(x.tolist()),
            lambda x: np.sum(np.full(2, x[0])),
            lambda x: x[0] * complex(x[1]).real,
        ],
    )
    @pytest.mark.parametrize("mode", ["reverse", "forward"])
    def test_lost_derivative(self, f: Function, mode: Any) -> None:
        """A TypeError of ours that mentions the derivative."""
        with pytest.raises(ad.LostDerivativeError, match="derivative"):
            ad.gradient(f, np.array([0.3, 2.0]), mode=mode)

    def test_plain_buffer(self) -> None:
        """The commonest mistake names the remedy."""

        def f(x: Any) -> Any:
            buffer = np.zeros(2)
            buffer[0] = x[0] ** 2
            return np.sum(buffer)

        with pytest.raises(ad.LostDerivativeError):
            ad.gradient(f, np.ones(2))

        def remedied(x: Any) -> Any:
            buffer = np.zeros(2, like=x)
            buffer[0] = x[0] ** 2
            return np.sum(buffer)

        np.testing.assert_array_equal(ad.gradient(remedied, np.ones(2)), [2.0, 0.0])

    def test_integer_argument(self) -> None:
        """An integer array names the dtype; an integer number is promoted."""
        with pytest.raises(ad.NotDifferentiableError, match="int64"):
            ad.gradient(lambda x: np.sum(x**2 * 0.5), np.array([3, 5, 8]))
        assert ad.gradient(lambda t: t**3, 2) == 12.0

    def test_list_with_active_numbers(self) -> None:
        """Python lists inside concatenate hold active numbers."""

        def f(x: Any) -> Any:
            y = np.concatenate([[x[0] * x[1]], x[1:], [2.0 * x[2], 5.0]])
            return np.sum(np.array([1.0, 2.0, 3.0, 4.0, 5.0]) * y)

        x = np.array([1.5, -2.0, 0.5])
        check(f, x, np.array([x[1], x[0] + 2.0, 3.0 + 8.0]))

    def test_stop_gradient(self) -> None:
        """The explicit way: only one of two factors counts."""
        x = np.array([1.0, -2.0])
        check(lambda x: np.sum(x * ad.stop_gradient(x)), x, x)


class TestIndexing:
    """Reading and writing by every kind of index."""

    x = np.arange(1.0, 13.0).reshape(3, 4) / 6.0

    @pytest.mark.parametrize(
        "index",
        [
            1,
            -1,
            (2, 3),
            (-1, -2),
            slice(1, None),
            (slice(None), slice(None, None, -2)),
            (Ellipsis, 0),
            (None, 1),
            (slice(None), None, 2),
            [0, 2, 0],
            ([0, 1, 0], [3, 3, 3]),
            (slice(1, 3), [0, 0, 1]),
            ([2, 0], slice(None, None, 2)),
            np.array([[0, 1], [2, 2]]),
            (np.array([0, 2])[:, None], np.array([1, 1, 3])),
            np.array([True, False, True]),
            (slice(None), np.array([True, False, False, True])),
            np.arange(12).reshape(3, 4) % 3 == 0,
            (0, [1, 1]),
            (np.int64(1), slice(2)),
            True,
            False,
            (),
            [],
            slice(0, 0),
        ],
        ids=str,
    )
    def test_read(self, index: Any) -> None:
        """Each element counts as often as it is read, weighted by its square."""

        def f(x: Any) -> Any:
            return np.sum(x[index] ** 2) + np.sum(x)

        counts = np.zeros((3, 4))
        np.add.at(counts, index, 1.0)
        check(f, self.x, 2.0 * self.x * counts + 1.0)

    @pytest.mark.parametrize(
        "index",
        [
            1,
            (2, 3),
            (slice(None), slice(None, None, -2)),
            (Ellipsis, 0),
            (slice(None), None, 2),
            [0, 2],
            ([0, 1, 0], [3, 3, 2]),
            (slice(1, 3), [0, 3]),
            np.arange(12).reshape(3, 4) % 3 == 0,
            np.array([True, False, True]),
            (),
            [],
        ],
        ids=str,
    )
    def test_write(self, index: Any) -> None:
        """Written elements get theirs from the value t^2: 2 t per element."""

        def f(x: Any) -> Any:
            y = x * 1.0
            y[index] = x[0, 1] ** 2
            return np.sum(y)

        written = np.zeros((3, 4), dtype=bool)
        written[index] = True
        want = np.where(written, 0.0, 1.0)
        want[0, 1] += 2.0 * self.x[0, 1] * written.sum()
        check(f, self.x, want)

    def test_out_of_bounds(self) -> None:
        """NumPy's own IndexError."""
        for index in (5, (0, 9), [7], (0, 0, 0)):
            with pytest.raises(IndexError):
                ad.gradient(lambda x: np.sum(x[index]), self.x)  # noqa: B023

    def test_repeats_and_masks(self) -> None:
        """Element 0 is read three times; the mask comes from values."""

        def f(x: Any) -> Any:
            w = np.array([1.0, 10.0, 100.0, 1000.0])
            return np.sum(w * x[[0, 0, 2, 0]]) + np.sum(x[x > 1.0] ** 2)

        check(f, np.array([0.5, 2.0, 3.0]), [1011.0, 4.0, 106.0])

    def test_take_variants(self) -> None:
        """take, take_along_axis, compress, choose-free selections."""

        def f(x: Any) -> Any:
            a = np.take(x, [0, 0, 3], axis=1)
            b = np.take_along_axis(x, np.array([[0], [1], [1]]), axis=1)
            return np.sum(a) + np.sum(b**2) + np.sum(x.take([1, 1, 5]))

        want = np.zeros((3, 4))
        want[:, 0] += 2.0
        want[:, 3] += 1.0
        for row, column in ((0, 0), (1, 1), (2, 1)):
            want[row, column] += 2.0 * self.x[row, column]
        want[0, 1] += 2.0
        want[1, 1] += 1.0
        check(f, self.x, want)


class TestBroadcast:
    """Contributions shrink to the shapes they came from."""

    SHAPES = (
        ((3,), (2, 3)),
        ((2, 1), (2, 3)),
        ((1, 1), (2, 3)),
        ((), (2, 3)),
        ((1,), (2, 3)),
        ((2, 1, 1), (3, 4)),
        ((1, 3, 1), (2, 1, 4)),
        ((0, 3), (1, 3)),
    )

    @pytest.mark.parametrize(("left", "right"), SHAPES)
    @pytest.mark.parametrize("order", [1, -1])
    def test_elementwise(self, left: Any, right: Any, order: int) -> None:
        """a b^2 of two shapes: sums over the axes that were broadcast."""
        shapes = (left, right)[::order]
        rng = np.random.default_rng(0)
        a, b = (rng.uniform(0.5, 1.5, shape) for shape in shapes)

        def reduced(full: Any, shape: tuple[int, ...]) -> Any:
            extra = full.ndim - len(shape)
            full = full.sum(axis=tuple(range(extra)))
            axes = tuple(i for i, n in enumerate(shape) if n == 1)
            return full.sum(axis=axes, keepdims=True).reshape(shape)

        ones = np.ones(np.broadcast_shapes(left, right))
        for mode in ("reverse", "forward"):
            got = ad.gradient(lambda a, b: np.sum(a * b * b), a, b, mode=mode)
            numeric.assert_close(got[0], reduced(ones * b * b, a.shape))
            numeric.assert_close(got[1], reduced(ones * 2.0 * a * b, b.shape))

    def test_writes_broadcast(self) -> None:
        """A row and a number written into a matrix: their sums of cotangents."""

        def f(row: Any, t: Any) -> Any:
            y = np.zeros((3, 4), like=row)
            y[...] = row
            y[1:, 2:] += t
            y[0, :2] = t
            return np.sum(y**2)

        row, t = np.array([1.0, 2.0, 3.0, 4.0]), np.array(0.5)
        row_bar, t_bar = ad.gradient(f, row, t)
        want = [4.0 * row[0], 4.0 * row[1], 2 * row[2], 2 * row[3]]
        want[2] += 4.0 * (row[2] + t)
        want[3] += 4.0 * (row[3] + t)
        numeric.assert_close(row_bar, np.array(want))
        want_t = 4.0 * (row[2] + t) + 4.0 * (row[3] + t) + 4.0 * t
        numeric.assert_close(t_bar, np.array(want_t))

    def test_einsum(self) -> None:
        """A size-1 axis under a name, and a repeated subscript."""
        x, y = np.array([2.0, -1.0, 0.5]), np.array([3.0])
        got = ad.gradient(lambda x, y: np.einsum("i,i->", x, y) ** 2, x, y)
        numeric.assert_close(got[0], np.full(3, 2.0 * 4.5 * 3.0))
        numeric.assert_close(got[1], np.array([2.0 * 4.5 * 1.5]))
        w = np.arange(1.0, 10.0).reshape(3, 3)
        got = ad.gradient(lambda w: np.sum(np.einsum("kk->k", w) ** 2), w)
        numeric.assert_close(got, 2.0 * w * np.eye(3))

    def test_matmul_of_vectors_and_stacks(self) -> None:
        """One axis is added and dropped again."""
        rng = np.random.default_rng(1)
        a, b, c = rng.normal(size=2), rng.normal(size=(2, 2, 3)), rng.normal(size=3)

        def f(a: Any, b: Any, c: Any) -> Any:
            return np.sum((a @ b) ** 2) + np.sum(np.sin(b @ c))

        got = ad.gradient(f, a, b, c)
        s, t = a @ b, np.cos(b @ c)
        numeric.assert_close(got[0], 2.0 * np.einsum("sj,sij->i", s, b))
        want = 2.0 * np.einsum("i,sj->sij", a, s) + np.einsum("si,j->sij", t, c)
        numeric.assert_close(got[1], want)
        numeric.assert_close(got[2], np.einsum("si,sij->j", t, b))


class TestMethods:
    """Methods of arrays, as code that never imports a function uses them."""

    def test_chain_of_methods(self) -> None:
        """mean of squares minus square of mean, by methods: the variance."""

        def f(x: Any) -> Any:
            y = x.reshape(2, 3).T.ravel().copy()
            return (y**2).mean() - y.mean() ** 2 + x.var() + x.dot(x)

        x = np.arange(1.0, 7.0)
        check(f, x, 2.0 * 2.0 * (x - x.mean()) / 6.0 + 2.0 * x)

    @pytest.mark.parametrize(
        ("use", "want"),
        [
            (lambda x: x.sum(), lambda x: np.ones_like(x)),
            (lambda x: x.sum(axis=0).max(), lambda x: np.eye(3)[[2, 2]]),  # noqa: ARG005
            (lambda x: x.clip(1.5, 4.5).sum(), lambda x: (x > 1.5) & (x < 4.5)),
            (lambda x: x.prod(), lambda x: np.prod(x) / x),
            (lambda x: x.trace(), lambda x: np.eye(2, 3)),  # noqa: ARG005
            (lambda x: x.cumsum()[2], lambda x: x < 3.5),
            (lambda x: x.take([0, 0]).sum(), lambda x: 2.0 * (x == 1.0)),
            (lambda x: x.swapaxes(0, 1)[2].sum(), lambda x: x % 3 == 0),
            (lambda x: x.repeat(2).sum(), lambda x: 2.0 * np.ones_like(x)),
            (lambda x: x.squeeze()[1, 1], lambda x: x == 5.0),
            (lambda x: x.diagonal().sum(), lambda x: np.eye(2, 3)),  # noqa: ARG005
            (lambda x: x.flatten()[::2].sum(), lambda x: x % 2 == 1),
            (lambda x: x.astype(float).sum(), lambda x: np.ones_like(x)),
            (lambda x: x.real.sum() + x.conj().sum(), lambda x: 2.0 * np.ones_like(x)),
            (lambda x: x.min() * x.std(), None),
            (lambda x: x.mean(axis=1, keepdims=True)[0, 0], lambda x: (x < 3.5) / 3.0),
        ],
    )
    def test_method(self, use: Function, want: Any) -> None:
        """One method each, on (1 .. 6) in two rows."""
        x = np.arange(1.0, 7.0).reshape(2, 3)
        expected = numeric.gradient(use, x) if want is None else want(x) * 1.0
        check(use, x, expected, 1e-8)

    def test_attributes(self) -> None:
        """Shape, size, ndim, dtype, len, iteration, strides, flags."""

        def f(x: Any) -> Any:
            assert x.shape == (2, 3)
            assert (x.size, x.ndim, len(x)) == (6, 2, 2)
            assert x.dtype == np.float64
            assert x.itemsize == 8
            assert x.nbytes == 48
            assert x.strides == (24, 8)
            assert x.flags.c_contiguous
            assert 3.0 in x
            first, second = x
            return np.sum(first * second)

        x = np.arange(1.0, 7.0).reshape(2, 3)
        check(f, x, x[::-1])

    def test_operators(self) -> None:
        """Operators from both sides."""

        def f(x: Any) -> Any:
            y = 2.0 - x + 1.0
            y = 3.0 * y / 2.0
            y = -((+y) ** 2) + x**2.0 + 2.0**x
            y = 1.0 / (y * y + 1.0) + abs(x) + x // 10.0 + (x + 7.0) % 5.0
            return np.sum(y) + x @ x

        x = np.array([0.5, 1.5, 2.5])
        check(f, x, numeric.gradient(f, x), 1e-8)


class TestEmpty:
    """No data is ordinary data."""

    def test_empty_arrays(self) -> None:
        """Gradients of empty arrays are empty arrays."""

        def f(x: Any, y: Any) -> Any:
            joined = np.concatenate([x, y], axis=0)
            return np.sum(np.exp(x)) + np.prod(x) * np.sum(y * y) + np.sum(joined)

        x, y = np.zeros((0, 3)), np.array([[1.0, 2.0, -1.0]])
        for mode in ("reverse", "forward"):
            got = ad.gradient(f, x, y, mode=mode)
            assert got[0].shape == (0, 3)
            numeric.assert_close(got[1], 2.0 * y + 1.0)

    def test_empty_selections(self) -> None:
        """Masks without a hit, slices of nothing, writes of nothing."""

        def f(x: Any) -> Any:
            y = x * 1.0
            y[x > 9.0] = 5.0
            y[2:2] *= 3.0
            y[[]] = 1.0
            np.add.at(y, np.zeros(0, dtype=int), 1.0)
            s = np.sum(x[x > 9.0]) + np.sum(y[4:]) + np.sum(np.zeros((0,), like=x))
            for e in x[:0]:
                s = s + e
            return s + np.sum(y * y)

        x = np.array([1.0, 2.0, 3.0])
        check(f, x, 2.0 * x)

    def test_zero_size_second_order(self) -> None:
        """hvp, hessian and jacobian of nothing."""
        x = np.zeros(0)
        f = lambda x: np.sum(x**2)  # noqa: E731
        assert ad.hvp(f, x, x).shape == (0,)
        assert ad.hessian(f, x).shape == (0, 0)
        assert ad.jacobian(lambda x: x * 2.0, x).shape == (0, 0)
        assert ad.jacobian(lambda x: x[:0], np.ones(2)).shape == (0, 2)

    def test_zero_dimensional(self) -> None:
        """Arrays of no axes and numbers."""
        assert ad.gradient(lambda x: x * x, 3.0) == 6.0
        got = ad.gradient(lambda x: x * x, np.array(3.0))
        assert got.shape == ()
        assert got == 6.0
        assert ad.gradient(lambda x: x * x, np.float64(3.0)) == 6.0


class TestDtype:
    """Precision in, precision out."""

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
    def test_kept(self, dtype: Any) -> None:
        """Literals, counts and tie rules do not promote."""

        def f(x: Any) -> Any:
            y = np.mean(np.max(x, axis=1) * 0.2) + np.var(x) + np.sum(np.exp(-x)) / 3
            y = y + np.linalg.norm(x) + np.sum(np.where(x > 0, x, 0.1 * x))
            return y + np.sum(np.maximum(x, 0.0) ** 2) + np.std(x)

        x = np.array([[1.0, 2.5, -0.5], [0.25, -1.0, 3.0]], dtype=dtype)
        wide = x.astype(float)
        want = numeric.gradient(f, wide)
        for mode in ("reverse", "forward"):
            got = ad.gradient(f, x, mode=mode)
            assert got.dtype == dtype
            numeric.assert_close(got, want, 4e-3 if dtype is np.float16 else 3e-6)
        value, gradient = ad.value_and_gradient(f, x)
        assert value.dtype == dtype
        v = np.ones_like(x)
        assert ad.hvp(f, x, v).dtype == dtype
        assert gradient.dtype == dtype

    def test_mixed(self) -> None:
        """float32 and float64 arguments keep theirs."""
        a, b = np.float32([1.0, 2.0]), np.array([3.0, 4.0])
        got = ad.gradient(lambda a, b: np.sum(a * b), a, b)
        assert got[0].dtype == np.float32
        assert got[1].dtype == np.float64
        numeric.assert_close(got[0], b)
        numeric.assert_close(got[1], a)

    def test_mean_of_many_halves(self) -> None:
        """A sum that would overflow a half is never formed: 1 / n each."""
        x = np.full(20_000, 1.5, dtype=np.float16)
        got = ad.gradient(lambda x: np.mean(np.abs(x + np.float16(2.5))), x)
        assert got.dtype == np.float16
        np.testing.assert_allclose(got.astype(float), 5e-5, rtol=2e-3)

    def test_casts_inside(self) -> None:
        """astype there and back: to the precision of the narrow one."""

        def f(x: Any) -> Any:
            y = x.astype(np.float32)
            return np.sum((y * y).astype(np.float64) * 2.0)

        x = np.array([1.0, 2.0])
        got = ad.gradient(f, x)
        assert got.dtype == np.float64
        numeric.assert_close(got, 4.0 * x, 1e-6)

    def test_integers_and_booleans_inside(self) -> None:
        """Masks and counts as operands; floor is constant."""

        def f(x: Any) -> Any:
            counts = np.array([1, 2, 3])
            return np.sum(x * counts * (x > 1.0)) + np.sum(np.floor(x) * x)

        check(f, np.array([0.5, 1.5, 2.5]), [0.0, 2.0 + 1.0, 3.0 + 2.0])

    def test_parts_are_set(self) -> None:
        """z.real = and z.imag *= go through properties: sum(2 a b) with a = |x|^2."""

        def f(x: Any) -> Any:
            z = x * 1j
            z.real = x * x
            z.imag *= 2.0
            return np.sum(z.real * z.imag)

        x = np.array([0.5, -2.0])
        check(f, x, 6.0 * x**2)

    def test_complex_inside(self) -> None:
        """Complex numbers inside: |1 - e^{it}|^2 = 2 - 2 cos t."""

        def f(t: Any) -> Any:
            z = 1.0 - np.exp(1j * t)
            return np.sum(np.real(z) ** 2 + np.imag(z) ** 2)

        t = np.array([0.7, -2.0])
        check(f, t, 2.0 * np.sin(t))


class TestTraining:
    """Small fits from start to end."""

    def test_linear_regression(self) -> None:
        """Gradient descent finds the least-squares solution."""
        rng = np.random.default_rng(2)
        a, b = rng.normal(size=(30, 3)), rng.normal(size=30)
        w = np.zeros(3)
        loss = lambda w: np.mean((a @ w - b) ** 2)  # noqa: E731
        for _ in range(400):
            w -= 0.2 * ad.gradient(loss, w)
        numeric.assert_close(w, np.linalg.lstsq(a, b, rcond=None)[0], 1e-6)

    def test_newton(self) -> None:
        """Newton's method with Hessians reaches the minimum of a convex function."""
        c = np.array([1.0, 2.0, 0.5])
        f = lambda x: np.sum(np.exp(x) - c * x) + 0.5 * np.sum(x) ** 2 * 0.0  # noqa: E731
        x = np.zeros(3)
        for _ in range(8):
            x = x - np.linalg.solve(ad.hessian(f, x), ad.gradient(f, x))
        numeric.assert_close(x, np.log(c))

    def test_classifier_with_shadows(self) -> None:
        """Shadows allocated once, cleared and refilled; the loss goes down."""
        rng = np.random.default_rng(3)
        x = rng.normal(size=(60, 2))
        label = (x[:, 0] * x[:, 1] > 0.0).astype(int)
        p = {
            "w": rng.normal(size=(2, 16)),
            "b": np.zeros(16),
            "v": rng.normal(size=(16, 2)) * 0.3,
        }
        shadow = ad.make_shadow(p)

        def loss(p: Any) -> Any:
            h = np.tanh(x @ p["w"] + p["b"])
            z = h @ p["v"]
            z = z - np.max(z, axis=1, keepdims=True)
            log_p = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
            return -np.mean(log_p[np.arange(60), label])

        first = loss(p)
        for _ in range(300):
            ad.zero_shadow(shadow)
            ad.autodiff(ad.Reverse, loss, ad.Duplicated(p, shadow))
            for name in p:
                p[name] -= 0.5 * shadow[name]
        assert loss(p) < 0.3 * first

    def test_state_is_left_plain_or_raises(self) -> None:
        """Running statistics kept outside through primal stay plain."""
        stats = SimpleNamespace(mean=np.zeros(2))
        x = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 4.0]])

        def f(x: Any) -> Any:
            mean = np.mean(x, axis=0)
            stats.mean = 0.9 * stats.mean + 0.1 * ad.primal(mean)
            return np.sum((x - mean) ** 2 * np.array([1.0, 2.0]))

        want = 2.0 * (x - x.mean(axis=0)) * [1.0, 2.0]
        for _ in range(2):
            numeric.assert_close(ad.gradient(f, x), want)
        assert type(stats.mean) is np.ndarray
        numeric.assert_close(stats.mean, 0.19 * x.mean(axis=0))


@dataclass
class Settings:
    """Plain objects that f reads and that hold no parameters."""

    rate: float = 0.5
    names: list[str] = field(default_factory=lambda: ["a", "b"])


Point = namedtuple("Point", "x y")  # noqa: PYI024 -- the older way, as users have it


def test_plain_objects_are_passed_through() -> None:
    """Const arguments of any type reach f unchanged."""
    settings, table = Settings(), defaultdict(list, k=[1, 2])

    def f(x: Any, s: Any, t: Any, g: Any) -> Any:
        assert s is settings
        assert t is table
        return np.sum(x) * s.rate * t["k"][1] + np.sum(g(x))

    args = (ad.Const(settings), ad.Const(table), ad.Const(np.cos))
    x = np.array([0.3, 1.0])
    numeric.assert_close(ad.gradient(f, x, *args), 1.0 - np.sin(x))


def test_named_tuples_from_collections() -> None:
    """The gradient is of the same class."""
    got = ad.gradient(lambda p: p.x * p.y, Point(2.0, 3.0))
    assert isinstance(got, Point)
    assert got == Point(3.0, 2.0)


def test_independent_output_warns() -> None:
    """Zero, and a warning."""
    with pytest.warns(ad.IndependentOutputWarning):
        got = ad.gradient(lambda x: 3.0, np.ones(2))  # noqa: ARG005
    np.testing.assert_array_equal(got, np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ad.gradient(lambda x: 0.0 * np.sum(x), np.ones(2))
