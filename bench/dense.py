"""A Dense(2 => 2) layer, warm: the gradient of ``sum(m(x))`` with respect to ``m``.

The loss is a closure over ``x``, and ``m`` a dict of two small arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import harness
import numpy
import peers

CASE = "Dense(2 => 2)"
Model = dict[str, Any]


def model_and_input() -> tuple[Model, Any]:
    """Return the layer's weight and bias, and an input."""
    rng = numpy.random.default_rng(0)
    m = {"W": rng.normal(size=(2, 2)), "b": rng.normal(size=2)}
    return m, rng.normal(size=2)


def loss_over(x: Any) -> Callable[[Any, Model], Any]:
    """Return ``m -> sum(m(x))``."""

    def loss(np: Any, m: Model) -> Any:
        return np.sum(m["W"] @ x + m["b"])

    return loss


def measure(rounds: int) -> harness.Report:
    """Time ``value_and_gradient`` of the closure."""
    report = harness.Report("dense: value_and_gradient of sum(m(x))")
    m, x = model_and_input()
    gradients = {
        p.name: p.gradient(loss_over(p.array(x)), m) for p in peers.available()
    }
    peers.check_agreement({name: call() for name, call in gradients.items()})
    contestants = {(CASE, name): call for name, call in gradients.items()}
    contestants[CASE, "plain numpy"] = partial(loss_over(x), numpy, m)
    harness.time_rounds(report, contestants, rounds)
    for name in (*peers.MAKERS, "plain numpy"):
        if name != "dualad":
            report.compare(CASE, "dualad", name)
    for name, allowed in (("autograd", 0.2), ("torch", 0.4)):
        measured = report.median_ratio(CASE, "dualad", name)
        report.require(f"{CASE}, warm, over {name}", measured, allowed)
    return report


if __name__ == "__main__":
    harness.script(measure, str(__doc__), rounds=15)
