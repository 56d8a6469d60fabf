"""What ``python -m dualad`` runs: ``demo`` trains a classifier of digits."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dualad import demo


def main() -> int:
    """Read the command line and run what it names."""
    parser = argparse.ArgumentParser(
        prog="python -m dualad", description="Derivatives of plain NumPy code."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser(
        "demo", help="train a small classifier of handwritten digits"
    )
    training.add_argument("--epochs", type=int, default=30)
    training.add_argument(
        "--output",
        type=Path,
        default=Path("loss.png"),
        help="where the loss curve goes",
    )
    options = parser.parse_args()
    return demo.run(epochs=options.epochs, output=options.output)


if __name__ == "__main__":
    sys.exit(main())
