"""Check many random programs: ``python tests/properties/fuzz.py --programs 5000``."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.properties.comparison import check_program
from tests.strategies import seeded_program


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
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                check_program(program, order=options.order)
        except Exception as e:  # noqa: BLE001 -- report and go on
            failures += 1
            if failures <= options.shown:
                notes = "\n".join(getattr(e, "__notes__", []))
                print(f"--- seed {seed}: {type(e).__name__}: {e}\n{notes}")  # noqa: T201
    print(f"{options.programs - failures} passed, {failures} failed")  # noqa: T201
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
