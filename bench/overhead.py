"""Record + reverse per operation: a gradient of 100 small operations.

The arrays are so small that what counts is the work around each operation.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import harness
import numpy
import peers

SIZES = (1, 10, 1000)
OPERATIONS = 100


def chain(np: Any, x: Any) -> Any:
    """Mix sin, multiply and add: 99 operations and a sum."""
    y = x
    for _ in range((OPERATIONS - 1) // 3):
        y = np.sin(y)
        y = y * x
        y = y + x
    return np.sum(y)


def measure(rounds: int) -> harness.Report:
    """Time the gradient of the chain, per operation."""
    report = harness.Report("overhead: record + reverse per operation")
    contestants: dict[tuple[str, str], peers.Call] = {}
    for n in SIZES:
        x = numpy.random.default_rng(0).uniform(0.5, 1.0, n)
        gradients = {p.name: p.gradient(chain, x) for p in peers.available()}
        peers.check_agreement({name: call() for name, call in gradients.items()})
        contestants |= {(f"n = {n}", name): call for name, call in gradients.items()}
        contestants[f"n = {n}", "plain numpy"] = partial(chain, numpy, x)
    harness.time_rounds(report, contestants, rounds, per=OPERATIONS)
    for n in SIZES:
        for name in peers.MAKERS:
            if name != "dualad":
                report.compare(f"n = {n}", "dualad", name)
    for name, allowed in (("autograd", 0.25), ("torch", 0.6)):
        measured = report.median_ratio("n = 10", "dualad", name)
        report.require(f"per operation, n = 10, over {name}", measured, allowed)
    return report


if __name__ == "__main__":
    harness.script(measure, str(__doc__), rounds=15)
