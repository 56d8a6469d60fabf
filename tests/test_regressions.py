"""Programs that were once wrong, each with the right value worked out by hand."""

from __future__ import annotations

import collections
import copy
import functools
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import dualad as ad
from tests import numeric

X = np.array([1.0, 2.0, 3.0])
MODES = ("reverse", "forward")


def both(f: Any, x: Any, want: Any) -> None:
    """Check the gradient in both modes."""
    for mode in MODES:
        got = ad.gradient(f, np.array(x, copy=True), mode=mode)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=mode)


# --- operands that a formula reads but that have no derivative of their own ----------


def test_sign_operand_overwritten() -> None:
    def f(x):
        m = x * 1.0
        y = np.copysign(x * x, m)
        m[:] = -1.0
        return np.sum(y)

    both(f, X, 2 * X)


def test_active_condition_overwritten() -> None:
    def f(x):
        m = x * 0.0
        m[0] = 1
        y = np.where(m, x * x, 3 * x)
        m[:] = 0
        m[1] = 1
        return np.sum(y)

    both(f, X, [2.0, 3.0, 3.0])


def test_heaviside_operand_overwritten() -> None:
    def f(x):
        c = x * 0.0
        z = np.heaviside(c, x)
        c[:] = 1
        return np.sum(z * [1.0, 2.0, 3.0])

    both(f, X, [1.0, 2.0, 3.0])


# --- indices and parameters that change after their use ------------------------------


def test_counter_in_an_array() -> None:
    def f(x):
        i, s = np.array(0), 0.0
        for k in range(2):
            s = s + x[i] ** 2 * (k + 1)
            i += 1
        return s

    both(f, X, [2.0, 8.0, 0.0])


def test_slice_bound_in_an_array() -> None:
    def f(x):
        n = np.array(1)
        y = x * x
        x[:n] = 5.0
        n += 1
        return np.sum(y * x)

    both(f, X, [10.0, 12.0, 27.0])


def test_axes_list_changed() -> None:
    c = np.arange(4.0).reshape(2, 2)

    def f(x):
        axes = [1, 0]
        y = np.transpose(x, axes) * c
        axes.reverse()
        return np.sum(y)

    both(f, np.ones((2, 2)), c.T)


def test_tuple_as_index_entry_with_repeats() -> None:
    def f(x):
        y = np.zeros_like(x)
        y[(0, 0),] = x[:2]
        return np.sum(y * y)

    both(f, X, [0.0, 4.0, 0.0])


def test_index_of_a_subclass() -> None:
    class Odd(np.ndarray):
        pass

    def f(x):
        i = np.array([0, 1]).view(Odd)
        s = x[i]
        i[...] = 2
        return np.sum(s * s)

    both(f, X, [2.0, 4.0, 0.0])


# --- creation with like= -------------------------------------------------------------


def test_asarray_like_is_the_array_itself() -> None:
    def f(x):
        y = np.asarray(x, float, like=x)
        y[0] = 5.0
        return np.sum(x**2)

    both(f, X, [0.0, 4.0, 6.0])


def test_array_like_takes_its_arguments() -> None:
    def f(x):
        y = np.array([x[0], 2.0], ndmin=2, like=x)
        assert y.shape == (1, 2)
        z = np.asfortranarray(x.reshape(1, 3)[[0, 0]], like=x)
        assert z.flags.f_contiguous
        with pytest.raises(ValueError, match="avoid copy"):
            np.array(x, np.float32, copy=False, like=x)
        return np.sum(y) + np.sum(z)

    both(f, X, [3.0, 2.0, 2.0])


def test_open_mesh_is_a_view() -> None:
    def f(x):
        (m,) = np.ix_(x)
        m[0] = 5
        return np.sum(x * x)

    both(f, X, [0.0, 4.0, 6.0])
    both(lambda x: np.sum(np.ix_(x, [1.0, 2.0])[0] * [[1.0, 2.0]]), X, [3.0] * 3)


# --- several runs and several outputs ------------------------------------------------


def test_hessian_keeps_constants() -> None:
    got = ad.hessian(lambda a, b: np.sum(a**2 * b), X, ad.Const(2.0))
    np.testing.assert_allclose(got, 4 * np.eye(3))
    assert ad.hessian(lambda a, _: np.sum(a**2), X, ad.Const("s")).shape == (3, 3)


@pytest.mark.parametrize("mode", MODES)
def test_jacobian_of_a_complex_output(mode: str) -> None:
    got = ad.jacobian(lambda x: x * (1 + 2j), X, mode=mode)
    np.testing.assert_allclose(got, (1 + 2j) * np.eye(3))


@pytest.mark.parametrize("mode", MODES)
def test_jacobian_of_one_output_twice(mode: str) -> None:
    def f(x):
        y = x * x
        return y, y

    for block in ad.jacobian(f, X, mode=mode):
        np.testing.assert_allclose(block, np.diag(2 * X))


def test_jacobian_of_a_function_that_writes() -> None:
    x = np.arange(1.0, 41.0)

    def f(x):
        x *= 2
        return x * x

    got = ad.jacobian(f, x)
    np.testing.assert_allclose(np.diagonal(got), 8 * np.arange(1.0, 41.0))
    np.testing.assert_array_equal(x, 2 * np.arange(1.0, 41.0))


def test_chunks_see_the_same_captured_arrays() -> None:
    count = np.zeros(3)

    def f(x):
        count[:] += 1
        return np.sum(x * x) * count[0]

    np.testing.assert_allclose(ad.hessian(f, np.ones(40)), 2 * np.eye(40))
    np.testing.assert_array_equal(count, 1.0)


def test_chunks_that_cannot_be_repeated_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ad.UnrepeatableFunctionError):
        ad.jacobian(lambda x: x * rng.normal(), np.ones(40), mode="forward")


def test_pullback_after_a_failed_one() -> None:
    _, pullback = ad.vjp(lambda x: (x * 2, x * 3), X)
    with pytest.raises(ad.ShadowMismatchError):
        pullback((np.ones(3), np.ones(2)))
    np.testing.assert_allclose(pullback((np.ones(3), np.ones(3))), 5.0)


def test_aux_of_an_inner_forward_derivative() -> None:
    def outer(x):
        (_, aux), _ = ad.value_and_gradient(
            lambda y: (np.sum(y * y), y * 2 * np.sum(x)),
            x,
            has_aux=True,
            mode="forward",
        )
        return np.sum(aux**2)

    s = np.sum(X)
    want = 8 * X * s**2 + 8 * s * np.sum(X**2)
    np.testing.assert_allclose(ad.gradient(outer, X), want)


def test_argnums_out_of_range() -> None:
    f = lambda x, y: np.sum(x * y)  # noqa: E731
    with pytest.raises(ValueError, match="argnums names argument 2"):
        ad.grad(f, 2)(X, X)
    with pytest.raises(TypeError, match="marked"):
        ad.grad(f, 0)(ad.Const(X), X)
    np.testing.assert_array_equal(ad.grad(f, np.int64(-1))(X, 2 * X), X)


# --- tied leaves ---------------------------------------------------------------------


def test_tied_leaves_need_one_tangent_and_one_shadow() -> None:
    f = lambda t: np.sum(t[0] * t[1])  # noqa: E731
    with pytest.raises(ad.ShadowMismatchError, match="twice"):
        ad.jvp(f, ((X, X),), ((np.ones(3), np.zeros(3)),))
    with pytest.raises(ad.ShadowMismatchError, match="twice"):
        ad.autodiff(ad.Reverse, f, ad.Duplicated((X, X), (np.zeros(3), np.zeros(3))))
    assert ad.jvp(f, ((X, X),), ((np.ones(3), np.ones(3)),))[1] == 12.0


def test_one_shadow_for_two_strided_primals() -> None:
    a, b, shadow = np.arange(6.0)[::2], np.ones(6)[::2], np.full(3, 10.0)
    ad.autodiff(
        ad.Reverse,
        lambda x, y: np.sum(x * y),
        ad.Duplicated(a, shadow),
        ad.Duplicated(b, shadow),
    )
    np.testing.assert_allclose(shadow, 10.0 + b + a)


# --- values, memory and copies -------------------------------------------------------


def test_real_part_written_over_the_whole() -> None:
    def f(x):
        z = x * (1 + 2j)
        z[:] = z.real
        return np.sum(np.abs(z) ** 2)

    both(f, X, 2 * X)


def test_unsigned_value_subtracted_at() -> None:
    def f(x):
        y = x * 1.0
        np.subtract.at(y, [0], np.uint8(3))
        return np.sum(y * y)

    both(f, X, [-4.0, 4.0, 6.0])


def test_complex_cotangent_of_a_real_view_of_windows() -> None:
    z, c = np.array([1 + 1j, 2.0, 3j]), 1 + 2j
    want = np.array([1.0, 2.0, 1.0])
    got = ad.gradient(lambda z: np.sum(np.real(sliding_window_view(z, 2).real * c)), z)
    np.testing.assert_allclose(got, want)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.__setitem__(3, -a[3]),
        lambda a: a.__setitem__([0, 1], a[[1, 0]]),
        lambda a: a.__imul__(-1.0),
    ],
)
def test_a_changed_constant_is_seen(change: Any) -> None:
    """Whatever the change: sign flips, swapped rows of a permutation, everything."""
    data = np.eye(1021)[:100]

    def f(w):
        y = np.sum(data @ w)
        change(data)
        return y

    with pytest.raises(ad.ChangedArrayError):
        ad.gradient(f, np.ones(1021))


def test_a_constant_changed_and_changed_back_is_seen() -> None:
    data = np.full(4096, 3.0)

    def f(x):
        a = np.sum(x * data)
        data[:] *= -1
        b = np.sum(x * x * data)
        data[:] *= -1
        return a + b

    with pytest.raises(ad.ChangedArrayError):
        ad.gradient(f, np.ones(4096))


def test_a_read_only_array_with_a_writable_view_is_watched() -> None:
    data = np.ones(4096)
    view = data[:]
    data.flags.writeable = False

    def f(x):
        y = np.sum(x * data)
        view[:] = 5.0
        return y

    with pytest.raises(ad.ChangedArrayError):
        ad.gradient(f, np.ones(4096))


def test_an_input_written_past_us_is_seen() -> None:
    for n in (3, 5000):
        x = np.ones(n)

        def f(y, x=x):
            s = np.sum(y * y)
            x[0] = 100.0
            return s

        with pytest.raises(ad.ChangedArrayError):
            ad.gradient(f, x)


MODEL = SimpleNamespace(weight=X.copy())


def test_writes_to_what_a_global_object_holds() -> None:
    def f(x):
        x[0] = x[1] * 3
        return np.sum(x * MODEL.weight)

    def inner(x):
        def read():
            return MODEL.weight

        x[0] = 1.0
        return np.sum(x * read())

    for function in (f, inner):
        with pytest.raises(ad.AliasedArgumentsError):
            ad.gradient(function, MODEL.weight)


def test_an_array_made_read_only_after_a_write() -> None:
    def f(x):
        y = x * x
        x[0] = 3.0
        x.flags.writeable = False
        return np.sum(y * x)

    x = X.copy()
    np.testing.assert_allclose(ad.gradient(f, x), [6.0, 12.0, 27.0])
    assert not x.flags.writeable
    np.testing.assert_array_equal(x, [3.0, 2.0, 3.0])


def test_a_write_that_failed_leaves_nothing() -> None:
    def f(x):
        try:
            x[0] = 1
        except ValueError:
            x = x.copy()
            x[0] = 1
        return np.sum(x * x)

    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_allclose(ad.vjp(f, x)[1](1.0), [0.0, 4.0, 6.0])


# --- scalars, objects, containers ----------------------------------------------------


def test_active_scalars_are_no_keys() -> None:
    @functools.cache
    def square(t):
        return t * t

    for mode in MODES:
        with pytest.raises(ad.LostDerivativeError, match="cache"):
            ad.gradient(lambda x: square(x[0]), X, mode=mode)


def test_object_arrays_are_refused() -> None:
    objects = np.array([1, 2, 3], object)
    for mode in MODES:
        for f in (
            lambda x: np.sum(objects * x) + x[0],
            lambda x: np.sum(objects @ x),
            lambda x: np.sum(np.where(x > 1, x, objects)),
        ):
            with pytest.raises(ad.UnsupportedArgumentError):
                ad.gradient(f, X, mode=mode)


def test_comparison_with_anything() -> None:
    def f(x):
        assert not np.any(x == None)  # noqa: E711 -- what is tested
        assert x[0] != "a"
        assert x[0] in [None, 1.0]
        return np.sum(x)

    both(f, X, np.ones(3))


def test_defaultdict_and_constants_in_trees() -> None:
    p = collections.defaultdict(list, {"w": X, "c": ad.Const(X)})
    got = ad.gradient(lambda p: np.sum(p["w"] * p["c"]), p)
    assert isinstance(got, collections.defaultdict)
    np.testing.assert_array_equal(got["w"], X)


def test_integers_have_zero_tangents() -> None:
    value, tangent = ad.jvp(lambda x: (np.argsort(x), x[0] > 0, 3), (X,), (X,))
    assert value[0].dtype.kind == "i"
    assert value[2] == 3
    np.testing.assert_array_equal(tangent[0], np.zeros(3))
    assert tangent[1] == tangent[2] == 0.0


def test_reshape_with_a_copy() -> None:
    def f(x):
        y = x.reshape(1, 3, copy=True)
        y[0, 0] = 9.0
        return np.sum(x * x) + np.sum(y)

    both(f, X, [2.0, 5.0, 7.0])


def test_clip_where_is_refused() -> None:
    mask = np.array([True, False, True])
    with pytest.raises(ad.UnsupportedArgumentError, match="where"):
        ad.gradient(lambda x: np.sum(np.clip(x, 0, 1.5, out=x * 10, where=mask)), X)


def test_active_condition_selects() -> None:
    both(lambda x: np.sum(np.compress(x - 1, np.ones(3)) * 2) + x[0], X, [1.0, 0, 0])


def test_a_tuple_without_has_aux() -> None:
    for mode in MODES:
        with pytest.raises(ad.ScalarOutputError, match="has_aux"):
            ad.gradient(lambda x: (np.sum(x), x), X, mode=mode)


# --- masked overflow -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda x: np.sum(np.where(x < 0, np.exp(x), 1.0)), 0.0),
        (
            lambda x: np.sum(
                np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))
            ),
            0.0,
        ),
        (lambda x: np.sum(np.where(x > 30, x, np.log1p(np.exp(x)))), 1.0),
        (lambda x: np.sum(np.where(x > 30, x, np.sinh(x))), 1.0),
    ],
)
def test_overflow_in_the_branch_not_taken(f: Any, want: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        both(f, [1000.0], [want])


# --- second order through several directions -----------------------------------------


def test_hessian_through_a_diagonal() -> None:
    got = ad.hessian(lambda a: np.trace(a) ** 2, np.eye(2)).reshape(4, 4)
    d = np.eye(2).ravel()
    np.testing.assert_allclose(got, 2 * np.outer(d, d))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.broadcast_to(x, (2, 3)) ** 3),
        lambda x: np.sum(sliding_window_view(x, 2) ** 3),
    ],
)
def test_reverse_over_several_directions(f: Any) -> None:
    want = numeric.jacobian if hasattr(numeric, "jacobian") else None
    got = ad.jacobian(
        lambda y: ad.gradient(f, y, mode="forward"), X.copy(), mode="reverse"
    )
    assert want is None or got.shape == (3, 3)
    np.testing.assert_allclose(got, ad.hessian(f, X.copy()))


# --- memory --------------------------------------------------------------------------


def test_forward_mode_leaves_no_cycle() -> None:
    gc.collect()
    gc.disable()
    try:
        x, v = np.ones(5), np.ones(5)
        watch = weakref.ref(x)
        ad.jvp(np.sin, (x,), (v,))
        ad.hvp(lambda x: np.sum(x**3), x, v)
        with ad.debug():
            ad.gradient(np.sum, x)
        del x
        assert watch() is None
    finally:
        gc.enable()


def test_nested_autodiff_with_active_shadows() -> None:
    def inner(y):
        shadow = np.zeros_like(y)
        ad.autodiff(ad.Reverse, lambda z: np.sum(z**3), ad.Duplicated(y, shadow))
        return np.sum(shadow)

    both(inner, X, 6 * X)


def test_hessian_of_a_function_that_writes() -> None:
    def f(x):
        x *= 2.0
        return np.sum(x * x)

    np.testing.assert_allclose(ad.hessian(f, X.copy()), 8 * np.eye(3))
    np.testing.assert_allclose(ad.hessian_diagonal(f, X.copy()), [8.0] * 3)
    with pytest.raises(ad.NotDifferentiableError, match=r"dualad\.hessian"):
        ad.hessian_diagonal(lambda p: np.sum(p["a"] ** 2), {"a": X})


def test_active_arrays_do_not_leave_inside_objects() -> None:
    def f(x):
        return SimpleNamespace(y=np.sum(x))

    for action in (
        lambda: ad.vjp(f, X),
        lambda: ad.jvp(f, (X,), (X,)),
        lambda: ad.value_and_gradient(lambda x: (np.sum(x), f(x)), X, has_aux=True),
    ):
        with pytest.raises(ad.EscapedArrayError, match="SimpleNamespace"):
            action()


# --- second round ---------------------------------------------------------------------


def test_large_complex_steps_over_a_real_array() -> None:
    n = 1 << 17
    for dtype in (float, np.float32):
        got = ad.gradient(
            lambda x: np.sum(np.real(x * (1 + 2j) * 1j)), np.ones(n, dtype)
        )
        assert got.dtype == dtype
        np.testing.assert_allclose(got, -2.0)
    z = np.full(n, 3 + 4j)
    got = ad.gradient(lambda w: np.sum(np.real(np.abs(w) * (1 + 2j) * (3 - 1j))), z)
    np.testing.assert_allclose(got, 3 + 4j)


def test_active_shadow_of_another_layout() -> None:
    for k in (5, 400):
        x = np.ones((k, k))

        def inner(y, k=k):
            shadow = np.zeros((k, k), like=y).T
            ad.autodiff(ad.Reverse, lambda z: np.sum(z * z), ad.Duplicated(y, shadow))
            return np.sum(shadow)

        value, tangent = ad.jvp(inner, (x,), (np.ones_like(x),))
        assert value == tangent == 2.0 * k * k


def test_one_shadow_for_two_primals_of_two_layouts() -> None:
    a, b, shadow = np.arange(6.0)[::2], np.full(3, 10.0), np.zeros(3)
    ad.autodiff(
        ad.Reverse,
        lambda x, y: np.sum(x * y),
        ad.Duplicated(a, shadow),
        ad.Duplicated(b, shadow),
    )
    np.testing.assert_allclose(shadow, [10.0, 12.0, 14.0])


def test_one_shadow_for_two_primals_and_a_write() -> None:
    def f(x, y):
        x[0] = 5 * y[1]
        return np.sum(x * y)

    shadow = np.zeros(3)
    for mode in (ad.Reverse, ad.Forward):
        with pytest.raises(ad.AliasedArgumentsError, match="shadow"):
            ad.autodiff(
                mode,
                f,
                ad.Duplicated(X.copy(), shadow),
                ad.Duplicated(X.copy(), shadow),
            )


def test_real_array_is_its_own_conjugate() -> None:
    def f(x):
        y = x.conj()
        y *= 2
        return np.sum(x * x)

    both(f, X, 8 * X)


def test_copies_of_scalars_are_immutable() -> None:
    def f(x):
        for a in (x[0].copy(), x[0].astype(float), copy.deepcopy(x[0])):
            b = a
            b += 1
            assert a == x[0]
        root = np.sqrt(x[1], where=np.True_)
        rebound = root
        rebound += 1
        return root * root + x[0].copy()

    both(f, X, [1.0, 1.0, 0.0])


@pytest.mark.parametrize("mode", MODES)
def test_jacobian_of_integers_is_zero(mode: str) -> None:
    x = np.arange(40.0)
    got = ad.jacobian(lambda x: (np.sum(x), int(np.argmax(x)), "s"), x, mode=mode)
    np.testing.assert_array_equal(got[1], np.zeros(40))
    assert got[2] is None
    got = ad.jacobian(lambda x: (x * x, np.array([1, 2])), X, mode=mode)
    np.testing.assert_array_equal(got[1], np.zeros((2, 3)))


def test_reduction_is_computed_in_the_dtype_of_its_output() -> None:
    x = np.full(10**5, 0.1, np.float32)
    plain = np.cumsum(x, out=np.zeros(10**5))[-1]

    def f(x):
        return np.cumsum(x, out=np.zeros(10**5, like=x))[-1]

    value, slope = ad.value_and_gradient(f, x)
    assert value == plain
    assert slope.dtype == np.float32
    total = np.sum(x, out=np.zeros(()))
    value = ad.value_and_gradient(lambda x: np.sum(x, out=np.zeros((), like=x))[()], x)[
        0
    ]
    assert value == total


def test_small_constants_are_copied_without_the_check_too() -> None:
    def f(x):
        c, s = np.ones(3), 0.0
        for _ in range(3):
            s = s + np.sum(x * c)
            c += 1
        return s

    np.testing.assert_allclose(ad.gradient(f, X, check_constants=False), 6.0)


def test_extended_precision_written_in_place() -> None:
    x = np.linspace(np.longdouble(1), np.longdouble(2), 4) / 3

    def f(x):
        for i in range(1, len(x)):
            x[i] = x[i] * x[i - 1]
        return np.sum(x)

    assert ad.gradient(f, x.copy()).dtype == np.longdouble


def test_truth_value_as_an_index() -> None:
    def f(x):
        y = x * 1.0
        y[y[0] > 5] = 0.0
        return np.sum(x[x[0] > 0] ** 2) + np.sum(y)

    both(f, X, 2 * X + 1)


def test_complex_base_of_an_active_exponent() -> None:
    base = 0.5 + 1j
    got = ad.derivative(lambda t: base**t, 1.0)
    np.testing.assert_allclose(got, base * np.log(base))


def test_a_long_chain_of_views_is_linear() -> None:
    def f(x):
        s = 0.0
        while len(x) > 1:
            s = s + x[0]
            x = x[1:]
        return s

    n = 20_000
    got = ad.gradient(f, np.ones(n))
    np.testing.assert_array_equal(got, [*np.ones(n - 1), 0.0])


def test_many_leaves_and_one_write() -> None:
    leaves = [np.ones(2) for _ in range(3000)]

    def f(p):
        p[0][0] = 2.0
        return np.sum(p[0]) + p[-1][0]

    got = ad.gradient(f, leaves)
    np.testing.assert_array_equal(got[0], [0.0, 1.0])


@pytest.mark.parametrize("mode", MODES)
def test_a_tree_without_any_leaf_is_refused(mode: str) -> None:
    with pytest.raises(ad.NotDifferentiableError):
        ad.gradient(lambda p: np.sum(p[0]) * 1.0, [np.array([1, 2])], mode=mode)
    assert ad.gradient(lambda _, x: np.sum(x), {}, X, mode=mode)[0] == {}


# --- memory that looks alike but is not ----------------------------------------------


def test_a_view_of_a_reversed_vector_after_a_plain_use() -> None:
    """Its shadow must be reversed too: ravel copies a reversed vector."""
    x = np.arange(1.0, 5.0)[::-1]

    def f(x):
        pairs = np.abs(x[::-1].view(complex)) ** 2
        return np.sum(x[::-1].ravel() ** 2) + np.sum(pairs) + np.sum(np.sin(x))

    np.testing.assert_allclose(ad.gradient(f, x), 4 * x + np.cos(x), rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_an_array_whose_own_elements_are_one(mode: str) -> None:
    """It owns its memory, and is read-only all the same."""
    x = np.ndarray((2, 3), strides=(0, 0))
    x[...] = 2.0

    def f(x):
        return np.sum(x.T.reshape(-1) * np.arange(6.0)) + np.sum(x * x)

    want = np.arange(6.0).reshape(3, 2).T + 4.0
    np.testing.assert_allclose(ad.gradient(f, x, mode=mode), want)

    def writes(x):
        x[0] *= 0.5
        return np.sum(x)

    with pytest.raises(ValueError, match="read-only"):
        ad.gradient(writes, x, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_values_of_a_broadcast_input_in_memory_order(mode: str) -> None:
    x = np.broadcast_to([1.0, 2.0], (2, 2))
    weights = np.array([1.0, 2.0, 3.0, 4.0])

    def f(x):
        return np.sum(x.copy("K").ravel("K") * weights)

    value, slope = ad.value_and_gradient(f, x, mode=mode)
    assert value == f(x) == 17.0
    np.testing.assert_array_equal(slope, [[1.0, 3.0], [2.0, 4.0]])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "first",
    [
        lambda x: np.squeeze(x[:1]) + 1.0,
        lambda x: x[0, ...] + 1.0,
        lambda x: x[0, ...] - 1.0,
        lambda x: +x[0, ...],
        lambda x: np.real(x[0, ...] * (1.0 + 1.0j)),
    ],
)
def test_a_number_keeps_its_tangent_when_memory_is_written(
    mode: str, first: Any
) -> None:
    def f(x):
        t = first(x)
        x[0] *= 0.5
        return t * x[1]

    got = ad.gradient(f, np.array([3.0, 2.0, 1.0]), mode=mode)
    np.testing.assert_allclose(got, [2.0, first(np.array([3.0])), 0.0])


def test_a_zero_dimensional_buffer() -> None:
    def f(x):
        y = np.zeros((), like=x)
        y += x[0]
        t = y + 1.0
        y += x[1]
        return t * y

    both(f, [3.0, 4.0], [11.0, 4.0])
    np.testing.assert_allclose(ad.jacobian(f, np.array([3.0, 4.0])), [11.0, 4.0])
    x = np.array([3.0, 4.0])
    np.testing.assert_allclose(ad.hessian(f, x), [[2.0, 1.0], [1.0, 0.0]])
    both(lambda x: (x + 1.0) * 1.0, 3.0, 1.0)


def test_the_imaginary_part_of_an_overlapping_element() -> None:
    def f(z):
        return np.imag(np.broadcast_to(z, (2,))[0, ...])

    np.testing.assert_array_equal(ad.gradient(f, np.array([1 + 2j])), [1j])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("overlaps", [0, 1])
def test_read_only_stays_read_only_in_every_run(mode: str, overlaps: int) -> None:
    """Also where forward mode runs f again, for the imaginary parts."""
    z = np.array([1 + 2j, 2 + 1j])
    z.flags.writeable = False
    if overlaps:  # read-only to us, as two elements of it are one
        z = np.ndarray((2,), complex, strides=(0,))
        z[...] = 1 + 2j

    def f(z):
        if z.flags.writeable:
            z[0] *= 0.5
        return np.sum(np.real(z) + np.imag(z) * 3.0)

    np.testing.assert_allclose(ad.gradient(f, z, mode=mode), [1 + 3j, 1 + 3j])


def test_read_only_arrays_of_an_outer_derivative() -> None:
    """Copies of active arrays refuse writes as the arrays do."""
    z = np.array([1 + 2j, 2 + 1j])
    z.flags.writeable = False
    seen = []

    def inner(z):
        seen.append(z.flags.writeable)
        if z.flags.writeable:
            z[0] *= 0.5
        return np.sum(np.real(z) + np.imag(z) * 3.0)

    def outer(z):
        forward = ad.gradient(inner, z, mode="forward")
        _, pullback = ad.vjp(inner, z)
        return np.sum(np.real(forward * z)) + np.sum(np.real(pullback(1.0)))

    # Re((1 + 3i)(x + iy)) is x - 3y
    np.testing.assert_allclose(ad.gradient(outer, z), [1 - 3j, 1 - 3j])
    assert not any(seen)


@pytest.mark.parametrize("mode", [ad.Reverse, ad.Forward])
def test_shadows_of_other_classes_and_sizes(mode: Any) -> None:
    class Named(np.ndarray):
        pass

    x, dx = X.copy(), np.ones(3).view(Named)
    got = ad.autodiff(
        mode,
        lambda x: np.sum(np.concatenate([x, x[::-1].ravel()])),
        ad.Duplicated(x, dx),
    )
    if mode is ad.Reverse:
        assert (got, dx.tolist()) == (12.0, [3.0, 3.0, 3.0])
    else:
        assert got == (12.0, 6.0)
    with pytest.raises(ad.ShadowMismatchError):
        ad.autodiff(mode, np.sum, ad.Duplicated(x, np.ma.zeros(3)))
    empty = ad.Duplicated(np.zeros((0, 3)), np.zeros((0, 3)))
    ad.autodiff(mode, np.sum, empty)


# --- errors that f catches, and calls that end early ---------------------------------


@pytest.mark.parametrize("factor", [1.0, None])
def test_a_refused_write_leaves_nothing_written(factor: float | None) -> None:
    weights = np.arange(1.0, 8.0)

    def f(x):
        y = x * factor if factor else x
        with pytest.raises(ad.ReadAfterWriteError):
            y[::2] = y[:4]
        return np.sum(y * weights)

    x = np.arange(7.0)
    value, slope = ad.value_and_gradient(f, x)
    assert value == np.arange(7.0) @ weights
    np.testing.assert_array_equal(slope, weights)
    np.testing.assert_array_equal(ad.vjp(f, x)[1](1.0), weights)
    np.testing.assert_array_equal(x, np.arange(7.0))


def test_a_pullback_in_two_threads() -> None:
    _, pullback = ad.vjp(lambda a: np.sum(np.sin(a) * a[::-1]), np.linspace(0, 1, 5000))
    want = pullback(1.0)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(pullback, [1.0] * 100):
            np.testing.assert_array_equal(got, want)


def test_a_pullback_after_the_derivative_around_it() -> None:
    kept = []

    def outer(x):
        kept.append(ad.vjp(lambda a: a * a * x, x)[1])
        return np.sum(x * x)

    ad.gradient(outer, X)
    with pytest.raises(ad.EscapedArrayError, match="in which it was made had ended"):
        kept[0](np.ones(3))


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
@pytest.mark.parametrize("n", [3, 50])
def test_what_f_wrote_before_it_failed(mode: str, n: int) -> None:
    def f(x):
        x[0] = 9.0
        raise KeyError

    y = np.ones(n)
    with pytest.raises(KeyError):
        ad.jacobian(f, y, mode=mode)
    assert y[0] == 9.0


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ad.gradient(lambda x, _: np.sum(x), x, object()),
        lambda x: ad.gradient(lambda p: np.sum(p[0]), [x, object()]),
        lambda x: ad.vjp(lambda x, _: np.sum(x), x, object()),
        lambda x: ad.autodiff(ad.Reverse, np.sum, ad.Duplicated(x, np.zeros(3))),
    ],
)
def test_a_refused_argument_leaves_no_cycle(call: Any) -> None:
    gc.collect()
    gc.disable()
    try:
        x = np.ones(100)
        watch = weakref.ref(x)
        with pytest.raises((TypeError, ValueError)) as caught:
            call(x)
        del x, caught
        assert watch() is None
    finally:
        gc.enable()


def test_an_escaped_number_keeps_no_constant() -> None:
    escaped = []
    c = np.ones(5000)
    watch = weakref.ref(c)

    def f(x, c):
        escaped.append(np.sum(x * c))
        return escaped[0] * 1.0

    ad.gradient(f, np.ones(5000), ad.Const(c))
    del c
    assert watch() is None


@pytest.mark.parametrize("function", [np.modf, np.divmod, np.frexp])
def test_masks_of_functions_with_two_results(function: Any) -> None:
    def f(x):
        out = np.zeros_like(x), np.zeros_like(x)
        mask = np.array([True, False, True])
        operands = (x, 2.0)[: function.nin]
        return np.sum(function(*operands, out=out, where=mask)[0])

    with pytest.raises(ad.UnsupportedArgumentError, match="where"):
        ad.gradient(f, X)
