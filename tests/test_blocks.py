"""Work in blocks gives what the same work on whole arrays gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualad as ad
from dualad import blocks
from dualad.forward import dual
from dualad.reverse import tape
from tests.properties.comparison import check_program
from tests.strategies import seeded_program


def use_blocks(patch: pytest.MonkeyPatch, large: int, block: int) -> None:
    """Work in blocks from ``large`` elements on."""
    patch.setattr(tape, "LARGE", large)
    patch.setattr(dual, "LARGE", large)
    patch.setattr(blocks, "BLOCK", block)


@pytest.mark.parametrize("seed", range(900, 960))
def test_random_programs(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The random programs, with blocks of three elements."""
    use_blocks(monkeypatch, 4, 3)
    check_program(seeded_program(seed), order=2)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "square": lambda x: np.sum(x * x * x),
    "numbers": lambda x: np.sum((2.0 * x - 1.0) / (x + 3.0)),
    "added twice": lambda x: np.sum(x + x) + np.sum(np.sin(x) * x),
    "broadcast": lambda x: np.sum(np.sin(x) * np.arange(3.0)[:, None]),
    "views": lambda x: np.sum(np.exp(x.T[::-1]) * x.T),
    "masked": lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), np.exp(x))),
    "power": lambda x: np.sum(np.abs(x) ** 2.5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [float, np.float32])
def test_twins_agree(monkeypatch: pytest.MonkeyPatch, name: str, dtype: Any) -> None:
    """Gradient, jvp and hvp agree with those on whole arrays."""
    f = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 50)).astype(dtype)
    x[0, 7] = 0.0
    v = rng.normal(size=(3, 50)).astype(dtype)

    def all_of_it() -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            return (
                ad.gradient(f, x),
                *ad.jvp(f, (x,), (v,)),
                ad.hvp(f, x + dtype(0.01), v),
            )

    whole = all_of_it()
    use_blocks(monkeypatch, 8, 16)
    limit = 1e-12 if dtype is float else 2e-4
    for got, want in zip(all_of_it(), whole, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=limit, atol=limit)


def test_a_million_elements() -> None:
    """Above the real limit, against the derivative on paper."""
    x = np.linspace(-1.0, 1.0, 300_001)
    np.testing.assert_allclose(
        ad.gradient(lambda x: np.sum(np.sin(x) * x), x), np.cos(x) * x + np.sin(x)
    )
    np.testing.assert_allclose(ad.hvp(lambda x: np.sum(x**3), x, x), 6 * x * x)
