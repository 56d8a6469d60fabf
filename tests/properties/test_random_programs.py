"""Random programs of views, writes, loops and branches: all modes, two orders."""

from __future__ import annotations

from hypothesis import given, settings

from tests.properties.comparison import check_program
from tests.strategies import Program, programs

EXAMPLES = settings().max_examples  # 300, or thousands in the deep profile


@settings(max_examples=2 * EXAMPLES)
@given(programs())
def test_first_order(program: Program) -> None:
    """Value, memory, reverse, forward and complex steps agree."""
    check_program(program)


@settings(max_examples=EXAMPLES)
@given(programs(most=10))
def test_second_order(program: Program) -> None:
    """Four ways to second derivatives and differences of gradients agree."""
    check_program(program, order=2)


@settings(max_examples=EXAMPLES)
@given(programs("complex128"))
def test_complex(program: Program) -> None:
    """Complex programs agree with differences along both parts."""
    check_program(program)


@settings(max_examples=max(1, EXAMPLES // 4))
@given(programs("complex128", most=8))
def test_complex_second_order(program: Program) -> None:
    """Complex programs agree to second order."""
    check_program(program, order=2)
