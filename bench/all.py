"""Run every benchmark, each in a fresh process, and print what must hold."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import harness

BENCHMARKS = ("overhead", "dense", "indexing", "chain", "memory", "importtime")
HERE = Path(__file__).resolve().parent


def main() -> int:
    """Run all; the exit status says whether everything holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--json", type=Path, metavar="FOLDER", default=harness.ROOT / "build" / "bench"
    )
    parser.add_argument("--rounds", type=int, help="instead of each one's own default")
    options = parser.parse_args()
    requirements = []
    for name in BENCHMARKS:
        path = options.json / f"{name}.json"
        command = [sys.executable, str(HERE / f"{name}.py"), "--json", str(path)]
        if options.rounds:
            command += ["--rounds", str(options.rounds)]
        subprocess.run(command, check=True)
        sys.stdout.write("\n")
        sys.stdout.flush()
        requirements += harness.read_requirements(path)
    sys.stdout.write(harness.requirements_table(requirements) + "\n\n")
    for fact, value in harness.facts().items():
        sys.stdout.write(f"{fact}: {value}\n")
    return int(any(r.verdict == "FAILS" for r in requirements))


if __name__ == "__main__":
    sys.exit(main())
