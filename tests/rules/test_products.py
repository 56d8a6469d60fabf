"""Products: the battery, einsum in all its forms, and what the forms refuse."""

from __future__ import annotations

import numpy as np
import pytest

import dualad as ad
from dualad.rules.products import explicit_terms
from dualad.testing import check_rule
from tests.domains import PRODUCTS, REAL, RIGHT, ROW, SQUARE, STACK, THOROUGH, battery

FIRST_ORDER = ("value", "forward", "reverse", "accumulation")


@battery(PRODUCTS)
def test_battery(function, args, params):
    check_rule(function, *args, thorough=THOROUGH, **params)


# --- matmul -----------------------------------------------------------------------


def test_one_matrix_that_meets_many_needs_no_stack_of_gradients():
    x, w = np.ones((50, 40, 3)), np.ones((3, 2))
    tall = np.ones((50, 40, 2))
    value, pull = ad.vjp(lambda w: x @ w, w)
    assert value.shape == tall.shape
    np.testing.assert_array_equal(pull(tall), np.full((3, 2), 2000.0))


def test_matmul_of_lists_and_operators():
    x_bar = ad.gradient(
        lambda x: np.sum([[1.0, 2.0]] @ x + np.matmul([1.0, 3.0], x)), SQUARE[:2]
    )
    np.testing.assert_array_equal(x_bar, [[2.0] * 3, [5.0] * 3])


def test_vdot_conjugates_its_first_factor():
    x, y = np.array([1 + 2j, 3 - 1j]), np.array([2 - 1j, 1 + 1j])
    x_bar, y_bar = ad.gradient(lambda x, y: np.real(np.vdot(x, y)), x, y)
    np.testing.assert_array_equal(x_bar, y)
    np.testing.assert_array_equal(y_bar, x)


def test_axes_of_generalized_ufuncs_are_refused():
    with pytest.raises(ad.UnsupportedArgumentError, match="axes"):
        ad.gradient(
            lambda x: np.sum(np.matmul(x, x, axes=[(1, 0), (0, 1), (0, 1)])), SQUARE
        )


def test_multi_dot_takes_the_cheapest_order():
    a, b, c = np.ones((10, 2)), np.ones((2, 10)), np.ones((10, 1))
    seen = []

    def f(a):
        y = np.linalg.multi_dot([a, b, c])
        seen.append(y.shape)
        return np.sum(y)

    np.testing.assert_array_equal(ad.gradient(f, a), np.full((10, 2), 10.0))
    assert seen == [(10, 1)]


@pytest.mark.parametrize(
    ("chain", "error"),
    [([REAL], ValueError), ([REAL, STACK, RIGHT], np.linalg.LinAlgError)],
)
def test_multi_dot_refuses_what_numpy_refuses(chain, error):
    with pytest.raises(error) as expected:
        np.linalg.multi_dot(chain)
    with pytest.raises(error) as got:
        ad.gradient(lambda x: np.linalg.multi_dot([x, *chain[1:]]), chain[0])
    assert str(got.value) == str(expected.value)


def test_linalg_outer_wants_vectors():
    with pytest.raises(ValueError, match="one-dimensional"):
        ad.gradient(lambda x: np.sum(np.linalg.outer(x, ROW)), REAL)


# --- einsum -----------------------------------------------------------------------


def random_call(seed):
    """Return random subscripts and operands that fit them."""
    random = np.random.default_rng(seed)
    sizes = dict(zip("abcde", (2, 3, 1, 2, 4), strict=True))
    terms, arrays = [], []
    for _ in range(random.integers(1, 4)):
        term = "".join(random.choice(list("abcde"), random.integers(0, 4)))
        shape = [sizes[c] for c in term]
        for i, c in enumerate(term):  # length 1 broadcasts, unless in a diagonal
            if term.count(c) == 1 and random.random() < 0.2:
                shape[i] = 1
        if random.random() < 0.3:
            place = random.integers(0, len(term) + 1)
            hidden = random.integers(0, 3)
            shape[place:place] = [3, 2][2 - hidden :]
            term = f"{term[:place]}...{term[place:]}"
        terms.append(term)
        arrays.append(random.uniform(0.5, 1.5, shape))
    subscripts = ",".join(terms)
    named = sorted(set("".join(terms)) - {"."})
    kept = [c for c in named if random.random() < 0.5]
    ellipsis = "..." if "..." in subscripts else ""
    if random.random() < 0.7:
        subscripts += "->" + ellipsis + "".join(random.permutation(kept))
    return subscripts, arrays


@pytest.mark.parametrize("seed", range(400 if THOROUGH else 60))
def test_random_einsum(seed):
    subscripts, arrays = random_call(seed)
    try:
        np.einsum(subscripts, *arrays)
    except ValueError:  # a letter that never has its full length, but a diagonal has
        return
    check_rule(
        np.einsum, subscripts, *arrays, dtypes=["float64", "complex128"],
        layouts=["C", "reversed"], modes=FIRST_ORDER,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("subscripts", "ndims", "expected"),
    [
        ("ij,jk", (2, 2), (("ij", "jk"), "ik")),
        ("ba", (2,), (("ba",), "ab")),
        ("ii", (2,), (("ii",), "")),
        ("ii->i", (2,), (("ii",), "i")),
        ("...i,i", (3, 1), (("ABi", "i"), "AB")),
        ("i...,...j->j...", (2, 3), (("iB", "ABj"), "jAB")),
        ("A...,...->...", (2, 0), (("AB", ""), "B")),
        ("...", (2,), (("AB",), "AB")),
        (",i", (0, 1), (("", "i"), "i")),
    ],
)
def test_explicit_terms(subscripts, ndims, expected):
    assert explicit_terms(subscripts, ndims) == expected


@pytest.mark.parametrize(
    ("subscripts", "operands"),
    [
        ("ij,jk", (REAL,)),
        ("ij", (REAL, REAL)),
        ("ijk", (REAL,)),
        ("i", (REAL,)),
        ("i...->i", (REAL,)),
        ("ijk...", (REAL,)),
        ("ij->k", (REAL,)),
        ("ij,jk->ik", (REAL, REAL)),
        ("i.j", (REAL,)),
        ("ij->ii", (REAL,)),
        ("i1", (REAL,)),
    ],
)
def test_malformed_subscripts_raise_what_numpy_raises(subscripts, operands):
    with pytest.raises(ValueError):  # noqa: PT011 -- NumPy's own texts vary
        np.einsum(subscripts, *operands)
    with pytest.raises(ValueError):  # noqa: PT011 -- as above
        ad.gradient(
            lambda x: np.sum(np.einsum(subscripts, x, *operands[1:])), operands[0]
        )


@pytest.mark.parametrize("keyword", ["dtype", "casting"])
def test_einsum_casts_nothing(keyword):
    options = {"dtype": np.float32, "casting": "unsafe"}
    with pytest.raises(ad.UnsupportedArgumentError, match=keyword):
        ad.gradient(
            lambda x: np.sum(np.einsum("ij->i", x, **{keyword: options[keyword]})), REAL
        )


@pytest.mark.parametrize(
    "subscripts", ["ii->i", "ij->ji", "ij", "ij->ij", "i...->...i"]
)
def test_einsum_without_a_sum_is_a_view(subscripts):
    def f(x):
        y = x * 1.0
        np.einsum(subscripts, y)[...] *= 3.0  # writes into y
        return np.sum(y * y)

    scale = np.ones_like(SQUARE)
    np.einsum(subscripts, scale)[...] *= 3.0
    expected = 2 * SQUARE * scale**2
    np.testing.assert_allclose(ad.gradient(f, SQUARE), expected)
    _, tangent = ad.jvp(f, (SQUARE,), (np.ones_like(SQUARE),))
    np.testing.assert_allclose(tangent, np.sum(expected))


def test_einsum_with_an_output_array():
    def f(x):
        out = np.zeros_like(x)
        result = np.einsum("ij,jk->ik", x, x, out=out)
        assert result is out
        return np.sum(out)

    expected = ad.gradient(lambda x: np.sum(x @ x), SQUARE)
    np.testing.assert_allclose(ad.gradient(f, SQUARE), expected)


def test_einsum_of_complex_factors_against_matmul():
    x, y = SQUARE + 1j * SQUARE.T, SQUARE.T - 0.5j * SQUARE

    def weigh(z):
        return np.sum(z.real * SQUARE + z.imag * SQUARE.T)

    got = ad.gradient(lambda x, y: weigh(np.einsum("ij,jk", x, y)), x, y)
    expected = ad.gradient(lambda x, y: weigh(x @ y), x, y)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
