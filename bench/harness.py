"""Time contestants side by side, and say what holds.

All contestants of a case run in one process.  A round times each of them once, in a
new random order, so that a machine that slows down slows all of them.  Reported are
medians over rounds, and ratios formed within rounds: a ratio of two things measured
within the same second travels between machines, a time does not.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("dualad", "numpy", "autograd", "mygrad", "advect", "torch")
LABELS = 2  # columns of a table that hold text
ENOUGH = 0.005  # seconds that one timing lasts at least: 10^5 clock ticks


# --- what is measured --------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """A median with the quartiles around it."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise one value per round."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, lower, upper)


@dataclass(frozen=True)
class Measurement:
    """One contestant in one case: one value per round."""

    case: str
    name: str
    values: list[float]
    unit: str = "s"

    @property
    def spread(self) -> Spread:
        """The median and quartiles over rounds."""
        return Spread.of(self.values)


@dataclass(frozen=True)
class Ratio:
    """One contestant over another, round by round."""

    case: str
    name: str
    over: str
    values: list[float]

    @property
    def spread(self) -> Spread:
        """The median and quartiles over rounds."""
        return Spread.of(self.values)


@dataclass(frozen=True)
class Requirement:
    """A number that must not be exceeded."""

    measure: str
    measured: float | None  # None: the contestant is not installed
    allowed: float
    unit: str = ""

    @property
    def verdict(self) -> str:
        """``holds``, ``FAILS``, or ``not measured``."""
        if self.measured is None:
            return "not measured"
        return "holds" if self.measured <= self.allowed else "FAILS"


@dataclass
class Report:
    """What one benchmark found."""

    benchmark: str
    measurements: list[Measurement] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)

    def find(self, case: str, name: str) -> Measurement | None:
        """Return a contestant's measurement, or None if it did not take part."""
        for found in self.measurements:
            if (found.case, found.name) == (case, name):
                return found
        return None

    def ratio(
        self, case: str, name: str, over: str, over_case: str | None = None
    ) -> Ratio | None:
        """Divide two measurements of the same rounds; None if one did not take part."""
        above, below = self.find(case, name), self.find(over_case or case, over)
        if above is None or below is None:
            return None
        values = [a / b for a, b in zip(above.values, below.values, strict=True)]
        label = over if over_case is None else f"{over} ({over_case})"
        return Ratio(case, name, label, values)

    def compare(
        self, case: str, name: str, over: str, over_case: str | None = None
    ) -> None:
        """Add a ratio to what is reported."""
        found = self.ratio(case, name, over, over_case)
        if found is not None:
            self.ratios.append(found)

    def median_ratio(
        self, case: str, name: str, over: str, over_case: str | None = None
    ) -> float | None:
        """Return the median of a ratio."""
        found = self.ratio(case, name, over, over_case)
        return None if found is None else found.spread.median

    def require(
        self, measure: str, measured: float | None, allowed: float, unit: str = ""
    ) -> None:
        """Hold a number against its limit."""
        self.requirements.append(Requirement(measure, measured, allowed, unit))


# --- timing ------------------------------------------------------------------------


def time_rounds(
    report: Report,
    contestants: Mapping[tuple[str, str], Callable[[], object]],
    rounds: int,
    *,
    per: int = 1,
) -> None:
    """Time every contestant once per round, and add seconds per call / ``per``.

    The keys are (case, name).  Contestants are warm: each has been called to find
    how many calls make a timing long enough to trust.
    """
    repeats = {key: calls_needed(call) for key, call in contestants.items()}
    seconds: dict[tuple[str, str], list[float]] = {key: [] for key in contestants}
    gc.collect()
    gc.freeze()  # imported modules: a collection need not look at them again
    order = list(contestants)
    for _ in range(rounds):
        random.shuffle(order)
        for key in order:
            seconds[key].append(seconds_per_call(contestants[key], repeats[key]) / per)
            gc.collect()  # nobody pays for the reference cycles of another
    gc.unfreeze()
    report.measurements += [
        Measurement(case, name, values) for (case, name), values in seconds.items()
    ]


def calls_needed(call: Callable[[], object]) -> int:
    """Return how many calls last :data:`ENOUGH`; the first call is not counted."""
    call()
    repeats = 1
    while True:
        elapsed = seconds_per_call(call, repeats) * repeats
        if elapsed >= ENOUGH:
            return repeats
        repeats = max(repeats + 1, int(repeats * min(10.0, 1.2 * ENOUGH / elapsed)))


def seconds_per_call(call: Callable[[], object], repeats: int) -> float:
    """Time ``repeats`` calls.  The garbage collector stays on, as it is in use."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def spread_over_rounds(
    report: Report,
    probes: Mapping[tuple[str, str], Callable[[], float]],
    rounds: int,
    unit: str,
) -> None:
    """Let probes measure themselves (in processes of their own), once per round."""
    values: dict[tuple[str, str], list[float]] = {key: [] for key in probes}
    order = list(probes)
    for _ in range(rounds):
        random.shuffle(order)
        for key in order:
            values[key].append(probes[key]())
    report.measurements += [
        Measurement(case, name, found, unit) for (case, name), found in values.items()
    ]


# --- where it was measured ---------------------------------------------------------


def facts() -> dict[str, Any]:
    """Return commit, versions and machine."""
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "versions": versions(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "openblas": {k: v for k, v in os.environ.items() if k.startswith("OPENBLAS")},
    }


def commit() -> str:
    """Return the commit of the working tree, marked if it has changes."""
    describe = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(
            describe, cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def versions() -> dict[str, str]:
    """Return the versions of the libraries that are installed."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """Return the processor's name as the system gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


# --- printing ----------------------------------------------------------------------


def readable(value: float, unit: str) -> str:
    """Return a value with its unit: seconds and bytes are scaled."""
    if unit == "s":
        for scale, name in ((1e-6, "ns"), (1e-3, "us"), (1.0, "ms")):
            if value < scale:
                return f"{value / scale * 1e3:.3g} {name}"
        return f"{value:.3g} s"
    return f"{value:.3g} {unit}".rstrip()


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a table: labels to the left, numbers to the right."""
    table = [list(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = [
            cell.ljust(width) if i < LABELS else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def describe(report: Report) -> str:
    """Return a report as text."""
    parts = [f"== {report.benchmark} =="]
    rows: list[Sequence[str]] = [("case", "library", "median", "quartiles")]
    for found in report.measurements:
        spread, unit = found.spread, found.unit
        quartiles = f"{readable(spread.lower, unit)} .. {readable(spread.upper, unit)}"
        rows.append((found.case, found.name, readable(spread.median, unit), quartiles))
    parts.append(aligned(rows))
    if report.ratios:
        rows = [("case", "ratio", "median", "quartiles")]
        for ratio in report.ratios:
            spread = ratio.spread
            quartiles = f"{spread.lower:.3g} .. {spread.upper:.3g}"
            label = f"{ratio.name} / {ratio.over}"
            rows.append((ratio.case, label, f"{spread.median:.3g}", quartiles))
        parts.append(aligned(rows))
    if report.requirements:
        parts.append(requirements_table(report.requirements))
    return "\n\n".join(parts)


def requirements_table(requirements: Iterable[Requirement]) -> str:
    """Return the "must hold" table: measured against allowed."""
    rows: list[Sequence[str]] = [("must hold", "", "measured", "at most")]
    for r in requirements:
        measured = "-" if r.measured is None else readable(r.measured, r.unit)
        rows.append((r.measure, r.verdict, measured, readable(r.allowed, r.unit)))
    return aligned(rows)


# --- the command line --------------------------------------------------------------


def arguments(description: str, rounds: int) -> argparse.ArgumentParser:
    """Return a parser with what all benchmarks take."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results here")
    parser.add_argument(
        "--rounds", type=int, default=rounds, help=f"timings of each (default {rounds})"
    )
    return parser


def script(measure: Callable[[int], Report], description: str, *, rounds: int) -> None:
    """Run one benchmark as a program: print a table, write JSON if asked to."""
    options = arguments(description, rounds).parse_args()
    report = measure(options.rounds)
    sys.stdout.write(describe(report) + "\n")
    if options.json:
        write_json(options.json, [report])


def write_json(path: Path, reports: Sequence[Report]) -> None:
    """Write reports with commit, versions and machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"facts": facts(), "reports": [as_plain(r) for r in reports]}
    path.write_text(json.dumps(content, indent=1) + "\n")


def as_plain(report: Report) -> dict[str, Any]:
    """Return a report as JSON's types, medians and quartiles included."""
    return {
        "benchmark": report.benchmark,
        "measurements": [
            {**asdict(m), "spread": asdict(m.spread)} for m in report.measurements
        ],
        "ratios": [{**asdict(r), "spread": asdict(r.spread)} for r in report.ratios],
        "requirements": [
            {**asdict(r), "verdict": r.verdict} for r in report.requirements
        ],
    }


def read_requirements(path: Path) -> list[Requirement]:
    """Read the requirements back from a JSON file."""
    return [
        Requirement(r["measure"], r["measured"], r["allowed"], r["unit"])
        for report in json.loads(path.read_text())["reports"]
        for r in report["requirements"]
    ]
