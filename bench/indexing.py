"""Scalar reads and writes in a Python loop: the gradient should be linear in n.

A library whose pullback of ``x[i]`` fills an array of the size of ``x`` is quadratic.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import harness
import numpy
import peers

SIZES = (1000, 4000, 16000)
WRITERS = ("dualad", "torch")  # the others cannot differentiate y[i] = ...


def reads(np: Any, x: Any) -> Any:  # noqa: ARG001 -- every program gets the library
    """Sum products of neighbours, element by element."""
    s = 0.0
    for i in range(len(x)):
        s = s + x[i] * x[i - 1]
    return s


def writes(np: Any, x: Any) -> Any:
    """Write the products into an array first."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] * x[i - 1]
    return np.sum(y)


def contestants_for(n: int) -> dict[tuple[str, str], peers.Call]:
    """Return the gradients of both loops at size ``n``."""
    x = numpy.random.default_rng(0).normal(size=n)
    contestants: dict[tuple[str, str], peers.Call] = {
        (f"reads, n = {n}", "plain numpy"): partial(reads, numpy, x),
        (f"writes, n = {n}", "plain numpy"): partial(writes, numpy, x),
    }
    for peer in peers.available():
        contestants[f"reads, n = {n}", peer.name] = peer.gradient(reads, x)
        if peer.name in WRITERS:
            contestants[f"writes, n = {n}", peer.name] = peer.gradient(writes, x)
    return contestants


def measure(rounds: int) -> harness.Report:
    """Time the gradients of both loops at all sizes."""
    report = harness.Report("indexing: scalar reads and writes in a loop")
    contestants: dict[tuple[str, str], peers.Call] = {}
    for n in SIZES:
        contestants |= contestants_for(n)
    check_agreement(contestants)
    harness.time_rounds(report, contestants, rounds)
    smallest, largest = SIZES[0], SIZES[-1]
    for loop in ("reads", "writes"):
        few, many = f"{loop}, n = {smallest}", f"{loop}, n = {largest}"
        for name in (*peers.MAKERS, "plain numpy"):
            report.compare(many, name, name, few)
            if name != "dualad":
                report.compare(many, "dualad", name)
    few, many = f"reads, n = {smallest}", f"reads, n = {largest}"
    growth = report.median_ratio(many, "dualad", "dualad", few)
    report.require(f"loop: time({largest}) over time({smallest})", growth, 18)
    against = report.median_ratio(many, "dualad", "torch")
    report.require(f"loop: n = {largest}, over torch", against, 1.0)
    return report


def check_agreement(contestants: dict[tuple[str, str], peers.Call]) -> None:
    """Check that reads and writes of one size have one gradient."""
    n = SIZES[0]
    peers.check_agreement(
        {
            f"{case}, {name}": call()
            for (case, name), call in contestants.items()
            if case.endswith(f"n = {n}") and name != "plain numpy"
        }
    )


if __name__ == "__main__":
    harness.script(measure, str(__doc__), rounds=5)
