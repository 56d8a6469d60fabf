"""Peak memory of the chain gradient, in units of x.

Each library runs in a process of its own.  Two measures: what NumPy's allocator
reports to tracemalloc (exact, but blind to PyTorch), and how far the process grew
(coarser, the same for all).
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tracemalloc
from functools import partial
from pathlib import Path

import chain
import harness
import peers

SIZE = 1_000_000
ALLOCATED, GREW = "allocated (tracemalloc)", "process grew (peak RSS)"
BLIND_TO_TRACEMALLOC = ("torch",)


def allocated(name: str) -> int:
    """Return the peak of allocated bytes during one gradient, here and now."""
    call = prepared(name)
    tracemalloc.start()
    call()
    return tracemalloc.get_traced_memory()[1]


def grew(name: str) -> int:
    """Return by how many bytes one gradient raised the process's peak."""
    call = prepared(name)
    before = resident()
    call()
    return peak() - before


MEASURES = {ALLOCATED: allocated, GREW: grew}


def prepared(name: str) -> peers.Call:
    """Return the gradient of the chain, its code warmed up on a small array."""
    (library,) = peers.available(name)
    library.gradient(chain.chain, chain.start(10))()
    return library.gradient(chain.chain, chain.start(SIZE))


def resident() -> int:
    """Return how many bytes of the process are in memory; its peak if unknown."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return peak()
    return int(statm.read_text().split()[1]) * resource.getpagesize()


def peak() -> int:
    """Return the most bytes that the process had in memory."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def probe(measure: str, name: str) -> float:
    """Measure in a process of its own, in units of x."""
    command = [sys.executable, __file__, "--measure", measure, "--library", name]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(found.stdout) / (8 * SIZE)


def measure(rounds: int) -> harness.Report:
    """Measure every library in both ways."""
    report = harness.Report("memory: peak of the chain gradient, n = 10^6")
    names = [p.name for p in peers.available()]
    probes = {
        (kind, name): partial(probe, kind, name)
        for kind in MEASURES
        for name in names
        if kind == GREW or name not in BLIND_TO_TRACEMALLOC
    }
    harness.spread_over_rounds(report, probes, rounds, "x")
    for kind in MEASURES:
        for name in names[1:]:
            report.compare(kind, "dualad", name)
    report.require(
        "chain gradient: peak memory over autograd's",
        report.median_ratio(ALLOCATED, "dualad", "autograd"),
        1.0,
    )
    return report


def main() -> None:
    """Run as a benchmark, or as one of its probes."""
    if "--measure" in sys.argv:
        kind, name = sys.argv[2], sys.argv[4]
        sys.stdout.write(f"{MEASURES[kind](name)}\n")
    else:
        harness.script(measure, str(__doc__), rounds=3)


if __name__ == "__main__":
    main()
