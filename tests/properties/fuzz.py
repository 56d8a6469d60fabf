"""Check many random programs: ``python tests/properties/fuzz.py --programs 5000``."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import warnings
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.properties.comparison import check_program
from tests.strategies import Program, seeded_program


def failure(program: Program, order: int) -> Exception | None:
    """Return what goes wrong with a program, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_program(program, order=order)
    except Exception as e:  # noqa: BLE001 -- reported by the caller
        return e
    return None


def runs(program: Program) -> bool:
    """Say whether a program is one: it may be broken by leaving out a line."""
    try:
        run = program.start()
        run.f(run.x)
    except Exception:  # noqa: BLE001 -- whatever it is, it does not run
        return False
    return True


def reduced(program: Program, order: int) -> Program:
    """Leave out lines, from the last to the first, as long as it goes wrong alike."""
    kind = type(failure(program, order))
    k = len(program.lines) - 1
    while k >= 0:
        for width in (3, 2, 1):
            lines = program.lines[:k] + program.lines[k + width :]
            shorter = dataclasses.replace(program, lines=lines)
            if lines and runs(shorter) and type(failure(shorter, order)) is kind:
                program = shorter
                break
        k = min(k, len(program.lines)) - 1
    return program


def main() -> int:
    """Run the programs of consecutive seeds and print those that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--order", type=int, default=2)
    parser.add_argument("--most", type=int, default=14, help="steps per program")
    parser.add_argument("--dtype", default="float64", help="or complex128")
    parser.add_argument("--shown", type=int, default=5, help="failures to print")
    options = parser.parse_args()
    failures = 0
    for seed in range(options.seed, options.seed + options.programs):
        program = seeded_program(seed, options.dtype, options.most)
        e = failure(program, options.order)
        failures += e is not None
        if e is not None and failures <= options.shown:
            program = reduced(program, options.order)
            e = failure(program, options.order)
            print(f"--- seed {seed}: {type(e).__name__}: {e}")  # noqa: T201
            print(f"x is {program.layout}, seed {program.seed}\n{program}")  # noqa: T201
    print(f"{options.programs - failures} passed, {failures} failed")  # noqa: T201
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
