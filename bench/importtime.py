"""How long ``import dualad`` takes beyond ``import numpy``.

Every import happens in a process of its own; the first round, which compiles the
bytecode, is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import harness
import peers

CASE = "import, after numpy"
PROGRAM = """
import time
import numpy
start = time.perf_counter()
import {name}
print(time.perf_counter() - start)
"""
MODULES = {name: name for name in peers.MAKERS} | {"autograd": "autograd.numpy"}


def seconds(module: str) -> float:
    """Return how long one import takes in a new process."""
    command = [sys.executable, "-c", PROGRAM.format(name=module)]
    # Compiled modules are kept, as in an installed package.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    found = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=harness.ROOT, env=env
    )
    return float(found.stdout)


def measure(rounds: int) -> harness.Report:
    """Time the import of every library that is installed."""
    report = harness.Report("import time")
    probes = {
        (CASE, name): partial(seconds, module)
        for name, module in MODULES.items()
        if peers.takes_part(name)
    }
    for probe in probes.values():
        probe()
    harness.spread_over_rounds(report, probes, rounds, "s")
    found = report.find(CASE, "dualad")
    measured = found.spread.median if found else None
    report.require("import dualad, beyond numpy", measured, 0.15, "s")
    return report


if __name__ == "__main__":
    harness.script(measure, str(__doc__), rounds=9)
