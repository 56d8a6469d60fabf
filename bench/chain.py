"""Large arrays: 20 times sin and multiply, then a sum; gradient, jvp and hvp.

At n = 10^6 memory traffic decides, and the ratio to the value alone is what theory
bounds.  The same gradient, written by hand with ``out=``, shows what is left to gain.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import harness
import numpy
import peers

SIZES = (10_000, 1_000_000)
LENGTH = 20
VALUE = "plain numpy"


def chain(np: Any, x: Any) -> Any:
    """Multiply by the sine, again and again."""
    for _ in range(LENGTH):
        x = x * np.sin(x)
    return np.sum(x)


def start(n: int) -> Any:
    """Return values that the chain neither shrinks to nothing nor blows up.

    From above, ``x * sin(x)`` tends to its fixed point pi/2; other starting values end
    among the denormal numbers, whose arithmetic is slow.
    """
    return numpy.random.default_rng(0).uniform(1.6, 2.0, n)


class ByHand:
    """The gradient as one would write it by hand: every buffer allocated once."""

    def __init__(self, x: Any) -> None:
        """Allocate what the forward and the reverse sweep need."""
        self.x = [x, *(numpy.empty_like(x) for _ in range(LENGTH))]
        self.sine = [numpy.empty_like(x) for _ in range(LENGTH)]
        self.x_bar = numpy.empty_like(x)
        self.partial = numpy.empty_like(x)

    def __call__(self) -> Any:
        """Return the value, and the gradient in memory that the next call reuses."""
        for k, sine in enumerate(self.sine):
            numpy.sin(self.x[k], out=sine)
            numpy.multiply(self.x[k], sine, out=self.x[k + 1])
        value = numpy.sum(self.x[-1])
        self.x_bar.fill(1.0)
        for k in reversed(range(LENGTH)):
            numpy.cos(self.x[k], out=self.partial)
            self.partial *= self.x[k]
            self.partial += self.sine[k]
            self.x_bar *= self.partial
        return value, self.x_bar


def modes(x: Any) -> dict[tuple[str, str], peers.Call]:
    """Return what is timed at one size, by (mode, library)."""
    x_dot = numpy.random.default_rng(1).normal(size=len(x))
    calls: dict[tuple[str, str], peers.Call] = {
        ("value", VALUE): partial(chain, numpy, x),
        ("gradient", "by hand, out="): ByHand(x),
    }
    for peer in peers.available():
        calls["gradient", peer.name] = peer.gradient(chain, x)
        if peer.jvp:
            calls["jvp", peer.name] = peer.jvp(chain, x, x_dot)
        if peer.hvp:
            calls["hvp", peer.name] = peer.hvp(chain, x, x_dot)
    return calls


def check_agreement(x: Any) -> None:
    """Check that all libraries, and the one by hand, find the same."""
    answers: dict[str, dict[str, Any]] = {}
    for (mode, name), call in modes(x).items():
        answer = call()
        # Some return only the tangent of a jvp, without the value.
        is_pair = mode == "jvp" and isinstance(answer, tuple)
        answers.setdefault(mode, {})[name] = answer[-1] if is_pair else answer
    for found in answers.values():
        peers.check_agreement(found)


def measure(rounds: int) -> harness.Report:
    """Time all modes at all sizes."""
    report = harness.Report("chain: 20 x (sin, multiply), then sum")
    check_agreement(start(100))
    for n in SIZES:
        contestants = {
            (f"{mode}, n = {n}", name): call
            for (mode, name), call in modes(start(n)).items()
        }
        harness.time_rounds(report, contestants, rounds)
        for case, name in contestants:
            if name != VALUE:
                report.compare(case, name, VALUE, f"value, n = {n}")
        report.compare(f"gradient, n = {n}", "dualad", "by hand, out=")
    largest = SIZES[-1]
    for mode, allowed in (("gradient", 3.0), ("jvp", 2.8), ("hvp", 6.0)):
        case, value_case = f"{mode}, n = {largest}", f"value, n = {largest}"
        measured = report.median_ratio(case, "dualad", VALUE, value_case)
        report.require(f"chain, n = {largest}: {mode} over value", measured, allowed)
    return report


if __name__ == "__main__":
    harness.script(measure, str(__doc__), rounds=7)
