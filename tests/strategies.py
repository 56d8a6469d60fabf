"""Random programs: plain NumPy code drawn line by line.

A program is the text of a function ``f(x)``.  Each line is drawn by one of the
``STEPS`` below and run at once on plain arrays, so that shapes are known and every
branch, mask and maximum keeps a margin from its kink.  A line that NumPy refuses,
or that makes values large, is dropped.  Because a program is text, a failing one
prints as the code to paste.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

T = TypeVar("T")

LARGE = 5.0  # values beyond this make a line be dropped
MARGIN = 0.02  # distance of every comparison from its kink
POOL = 9  # variables that a program may hold
SIZE = 40  # elements that a variable may have


# --- what a program is ---------------------------------------------------------------


def constants(dtype: str) -> dict[str, np.ndarray]:
    """Return new arrays that programs capture: short, above 16 KiB, and written to."""
    rng = np.random.default_rng(7)

    def array(*shape: int) -> np.ndarray:
        values = rng.uniform(-1.0, 1.0, shape)
        if dtype == "complex128":
            values = values + 1j * rng.uniform(-1.0, 1.0, shape)
        return values

    found = {"C": array(12), "K": array(6, 6), "BIG": array(500, 10), "BUF": array(12)}
    return {**found, "I": np.array([0, 2, 1, 2])}


LAYOUTS = {
    "vector": lambda base: base[:7],
    "reversed": lambda base: base[6::-1],
    "strided": lambda base: base[1:15:2],
    "matrix": lambda base: base[:12].reshape(3, 4),
    "fortran": lambda base: base[:12].reshape(4, 3).T,
    "square": lambda base: base[:9].reshape(3, 3),
    "block": lambda base: base.reshape(4, 6)[1:, ::2],
    "flipped": lambda base: base[:12].reshape(3, 4)[::-1],
}


@dataclass(frozen=True)
class Program:
    """A function of one array as text, and the argument to call it with."""

    lines: tuple[str, ...]
    layout: str
    seed: int
    capture: str  # how f reaches its constants: closure, globals or defaults
    dtype: str = "float64"

    def __repr__(self) -> str:
        """Show the program as code that runs after ``import dualad as ad``."""
        return f"\n{self.source}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001, ARG002 -- hypothesis's signature
        """Show hypothesis the code, too."""
        printer.text(repr(self))

    @functools.cached_property
    def source(self) -> str:
        """The text of ``f``, in the way that it captures its constants."""
        body = "\n".join("    " + line for line in self.lines)
        if self.capture == "globals":
            return f"def f(x):\n{body}\n"
        if self.capture == "defaults":
            return f"def f(x, C=C, K=K, BIG=BIG, BUF=BUF, I=I):\n{body}\n"
        body = body.replace("\n", "\n    ")
        return (
            f"def make(C, K, BIG, BUF, I):\n    def f(x):\n    {body}\n    return f\n"
            "f = make(C, K, BIG, BUF, I)\n"
        )

    @functools.cached_property
    def code(self) -> Any:
        """The compiled text."""
        return compile(self.source, f"<program {self.seed}>", "exec")

    def memory(self) -> np.ndarray:
        """Return new memory that holds the argument among other values."""
        rng = np.random.default_rng(self.seed)
        values = rng.uniform(0.3, 1.4, 24) * rng.choice([-1.0, 1.0], 24)
        if self.dtype == "complex128":
            values = values + 1j * rng.uniform(-1.0, 1.0, 24)
        return values

    def start(self) -> Run:
        """Return a run: fresh constants, fresh argument and the function."""
        layouts: list[Any] = []
        namespace = {
            "np": np,
            "sliding_window_view": sliding_window_view,
            "note": lambda *values: layouts.extend(map(layout_of, values)),
        }
        captured = constants(self.dtype)
        namespace.update(captured)
        exec(self.code, namespace)  # noqa: S102 -- our own text
        memory = self.memory()
        x = LAYOUTS[self.layout](memory)
        return Run(self.source, namespace["f"], memory, x, captured, layouts)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the argument."""
        return LAYOUTS[self.layout](np.zeros(24)).shape


@dataclass(frozen=True)
class Run:
    """One program ready to be called once."""

    source: str
    f: Callable[[Any], Any]
    memory: np.ndarray  # what x is a view of
    x: np.ndarray
    captured: dict[str, np.ndarray]
    layouts: list[Any]  # what ``note`` saw: shape, strides and dtype of each variable

    def left(self) -> dict[str, np.ndarray]:
        """Return all memory that the program can reach from outside."""
        return {"memory": self.memory, **self.captured}


def layout_of(value: Any) -> Any:
    """Return shape, dtype and strides, as far as they matter; None for numbers."""
    strides = getattr(value, "strides", ())
    if not strides or value.size == 0:
        return None
    shown = [s if n > 1 else 0 for s, n in zip(strides, value.shape, strict=True)]
    return value.shape, shown, str(value.dtype)


# --- drawing -------------------------------------------------------------------------


class Choices(Protocol):
    """Where the choices come from: hypothesis, or a seeded generator."""

    def integer(self, low: int, high: int) -> int:
        """Return an integer, both ends included."""


@dataclass
class Seeded:
    """Choices of a seeded generator, for long runs without hypothesis."""

    rng: random.Random

    def integer(self, low: int, high: int) -> int:
        """Return an integer, both ends included."""
        return self.rng.randint(low, high)


@dataclass
class Drawn:
    """Choices of hypothesis, which shrink to a small program."""

    draw: Any

    def integer(self, low: int, high: int) -> int:
        """Return an integer, both ends included."""
        return self.draw(st.integers(low, high))


class Refused(Exception):  # noqa: N818 -- never leaves this file
    """A step does not apply to the variables at hand."""


class Builder:
    """Draws a program, running it on plain arrays as it grows."""

    def __init__(self, choices: Choices, dtype: str = "float64") -> None:
        """Choose the argument and start with it alone."""
        self.choices = choices
        self.dtype = dtype
        self.layout = self.pick(list(LAYOUTS))
        self.seed = choices.integer(0, 999)
        self.capture = self.pick(["closure", "globals", "defaults"])
        self.lines: list[str] = []
        self.count = 0
        self.state = self.replay()

    # --- choices

    def pick(self, options: Sequence[T]) -> T:
        """Choose one of the options; the first is the simplest."""
        if not options:
            raise Refused
        return options[self.choices.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """Say yes in so many of a hundred cases."""
        return self.choices.integer(0, 99) >= 100 - percent

    @property
    def real(self) -> bool:
        """Say whether the program is one of real numbers."""
        return self.dtype == "float64"

    # --- running

    def program(self, *end: str) -> Program:
        """Return the lines drawn so far as a program."""
        lines = "\n".join((*self.lines, *end)).split("\n")
        return Program(tuple(lines), self.layout, self.seed, self.capture, self.dtype)

    def replay(self) -> dict[str, Any]:
        """Run all lines anew."""
        run = self.program("pass").start()
        state = {
            "np": np,
            "sliding_window_view": sliding_window_view,
            "x": run.x,
            **run.captured,
        }
        for line in self.lines:
            exec(line, state)  # noqa: S102 -- our own text
        return state

    def add(self, step: Step) -> None:
        """Draw one step; keep it if NumPy runs it and values stay moderate."""
        try:
            lines = step(self)
        except Refused:
            return
        try:
            with np.errstate(all="raise"):
                exec(lines, self.state)  # noqa: S102 -- our own text
            self.check()
        except (Refused, ValueError, IndexError, TypeError, FloatingPointError):
            self.state = self.replay()
            return
        self.lines.append(lines)

    def check(self) -> None:
        """Refuse what is large, empty or of too many axes."""
        for value in self.variables().values():
            fits = np.ndim(value) <= 2 and 0 < np.size(value) <= SIZE
            if not fits or not np.all(np.abs(value) < LARGE):
                raise Refused
        if len(self.variables()) > POOL:
            raise Refused

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression at this place of the program."""
        try:
            return eval(expression, self.state)  # noqa: S307 -- our own text
        except (ValueError, IndexError, TypeError) as e:
            raise Refused from e

    # --- variables

    def variables(self) -> dict[str, Any]:
        """Return the pool: all variables that hold floating numbers."""
        names = ["x", *(f"v{i}" for i in range(self.count))]
        return {n: self.state[n] for n in names if n in self.state}

    def some(self, test: Callable[[Any], bool]) -> str:
        """Choose a variable whose value passes the test; late ones are simplest."""
        return self.pick([n for n, v in self.variables().items() if test(v)][::-1])

    def array(self, ndim: int | None = None, least: int = 1) -> str:
        """Choose an array."""
        return self.some(
            lambda v: (
                isinstance(v, np.ndarray)
                and (v.ndim > 0 if ndim is None else v.ndim == ndim)
                and min(v.shape, default=0) >= least
            )
        )

    def target(self, ndim: int | None = None, least: int = 1) -> str:
        """Choose an array that can be written to."""
        return self.some(
            lambda v: (
                isinstance(v, np.ndarray)
                and v.flags.writeable
                and (ndim is None or v.ndim == ndim)
                and min(v.shape, default=1) >= least
            )
        )

    def shape(self, expression: str) -> tuple[int, ...]:
        """Return the shape of an expression."""
        return np.shape(self.evaluate(expression))

    def new(self) -> str:
        """Return the name to bind next: a new one, or now and then a used one."""
        if self.count and self.chance(15):
            return f"v{self.choices.integer(0, self.count - 1)}"
        self.count += 1
        return f"v{self.count - 1}"

    def bind(self, expression: str) -> str:
        """Return a line that binds a name to an expression."""
        return f"{self.new()} = {expression}"

    # --- pieces of expressions

    def number(self) -> str:
        """Return a literal."""
        real = self.pick(["0.5", "-0.7", "1.25", "0.3", "2", "-0.2"])
        if self.real or self.chance(50):
            return real
        return f"({real} + {self.pick(['0.5j', '-0.25j'])})"

    def cut(self, n: int) -> str:
        """Return a slice of an axis of length ``n``."""
        i = self.choices.integer(0, max(0, n - 2))
        j = self.choices.integer(i + 1, n)
        cuts = [":", f"{i}:", f":{j}", f"{i}:{j}", "::-1", "::2", "1::2", f"{j}:{i}:-1"]
        return self.pick(cuts)

    def basic(self, shape: tuple[int, ...], whole: int = 20) -> str:
        """Return a basic index of an array of this shape; never of one element."""
        if not shape or self.chance(whole):
            return "..."
        if len(shape) == 2 and self.chance(30):
            axis, n = self.pick([(0, shape[0]), (1, shape[1])])
            i = self.choices.integer(-n, n - 1)
            return f"{i}" if axis == 0 else f":, {i}"
        cuts = [self.cut(n) for n in shape]
        return ", ".join(cuts if self.chance(70) else cuts[:1])

    def position(self, shape: tuple[int, ...]) -> str:
        """Return an index of one element."""
        return ", ".join(str(self.choices.integer(-n, n - 1)) for n in shape) or "()"

    def indices(self, n: int, count: int | None = None) -> str:
        """Return a list of positions, often with repeats."""
        if n > 2 and (count is None or count < 5) and self.chance(20):
            return "I" if count is None else f"I[:{count}]"
        count = self.choices.integer(1, 5) if count is None else count
        drawn = [self.choices.integer(-n, n - 1) for _ in range(count)]
        text = f"[{', '.join(map(str, drawn))}]"
        return text if self.chance(60) else f"np.array({text})"

    def advanced(self, shape: tuple[int, ...]) -> str:
        """Return an index by integers, alone or beside slices."""
        if len(shape) == 1:
            return self.indices(shape[0])
        k = self.choices.integer(1, 4)
        both = f"{self.indices(shape[0], k)}, {self.indices(shape[1], k)}"
        rows, columns = self.indices(shape[0]), self.indices(shape[1])
        grid = f"np.ix_({rows}, {columns})"
        return self.pick(
            [rows, f":, {columns}", both, f"{self.cut(shape[0])}, {columns}", grid]
        )

    def threshold(self, expression: str) -> str:
        """Return a number that keeps a margin from all elements of an expression."""
        values = np.sort(np.ravel(np.real(self.evaluate(expression))))
        ends = [[values[0] - 1.0], values, [values[-1] + 1.0]]
        values = np.concatenate(ends)
        gaps = [i for i, d in enumerate(np.diff(values)) if d > 2.5 * MARGIN]
        i = self.pick(gaps[len(gaps) // 2 :] + gaps[: len(gaps) // 2])
        return f"{(values[i] + values[i + 1]) / 2:.3f}"

    def mask(self, shape: tuple[int, ...]) -> str:
        """Return a mask, fixed or of the values of a variable."""
        same = [n for n, v in self.variables().items() if np.shape(v) == shape]
        if same and shape and self.chance(70):
            name = self.pick(same)
            part = name if self.real else f"{name}.{self.pick(['real', 'imag'])}"
            return f"({part} {self.pick(['>', '<'])} {self.threshold(part)})"
        if len(shape) == 1:
            return f"(C[:{shape[0]}].real > 0.1)"
        if len(shape) == 2:
            return f"(K[:{shape[0]}, :{shape[1]}].real > 0.1)"
        raise Refused

    def operand(self, shape: tuple[int, ...], *, active: bool = False) -> str:
        """Return an expression that broadcasts to the shape."""
        found = []
        for name, value in self.variables().items():
            found += fitting(name, np.shape(value), shape)
        if not active:
            found += fitting("C", (12,), shape) + fitting("K", (6, 6), shape)
            found += 2 * fitting("BUF", (12,), shape) + [self.number()]
        return self.pick(found[::-1])

    def element(self) -> str:
        """Return an expression that is one number."""
        kind = self.choices.integer(0, 9)
        if kind < 2:
            return self.number()
        name = self.pick(list(self.variables())[::-1])
        shape = np.shape(self.state[name])
        if not shape:
            return name
        if kind < 8:
            return f"{name}[{self.position(shape)}]"
        return self.pick([f"np.mean({name})", f"{name}.sum() * 0.1"])


def depends_on_order(target: Any, value: Any) -> bool:
    """Say whether NumPy's own ``target[...] = value`` copies over what it still reads.

    It does so in one dimension if strides differ, ``x[::2] = x[:4]``, and for masks
    (for which the target is the whole array).
    """
    return (
        isinstance(value, np.ndarray)
        and target.ndim == value.ndim == 1
        and value.size > 1
        and target.strides != value.strides
        and np.shares_memory(target, value)
    )


def fitting(name: str, have: tuple[int, ...], want: tuple[int, ...]) -> list[str]:
    """Return the pieces of a variable that broadcast to a shape."""
    if not have:
        return [name]
    if have == want:
        return [name, name]
    if len(have) == 1 and want and have[0] >= want[-1]:
        n = want[-1]
        end = f"{name}[-{n}:]" if n > 1 else f"{name}[-1:]"
        return [f"{name}[:{n}]", end, f"{name}[::-1][:{n}]"]
    if len(have) == 2 and len(want) == 2:
        r, c = want
        pieces = [f"{name}[:{r}, :{c}]"] if have[0] >= r and have[1] >= c else []
        if have[1] >= r and have[0] >= c:
            pieces += [f"{name}.T[:{r}, :{c}]"]
        return pieces
    if len(have) == 2 and len(want) == 1:
        pieces = [f"{name}[0, :{want[0]}]"] if have[1] >= want[0] else []
        return pieces + ([f"{name}[:{want[0]}, -1]"] if have[0] >= want[0] else [])
    return []


# --- the steps -----------------------------------------------------------------------

Step = Callable[[Builder], str]
STEPS: list[Step] = []
REAL_ONLY: set[Step] = set()


def step(weight: int = 1, *, real: bool = False) -> Callable[[Step], Step]:
    """Register a step; a heavier one is drawn more often."""

    def register(f: Step) -> Step:
        STEPS.extend([f] * weight)
        if real:
            REAL_ONLY.add(f)
        return f

    return register


@step(6)
def elementwise(b: Builder) -> str:
    """Apply a smooth function to each element."""
    name = b.pick(list(b.variables())[::-1])
    # np.float64 ** 3 and np.power differ in the last bit, so only arrays have powers.
    powers = ["{v} ** 2 * 0.5", "0.3 * {v} ** 3"] if b.shape(name) else []
    forms = [
        *powers,
        "np.sin({v})",
        "np.tanh({v})",
        "np.exp(-{v} * {v})",
        "-{v}",
        "+{v}",
        "{v} + 1.0",
        "1.0 - {v}",
        "np.cos({v})",
        "np.square({v}) * 0.5",
        "np.negative({v})",
        "np.positive({v})",
    ]
    if b.real:
        forms += [
            "np.sqrt({v} * {v} + 1.0)",
            "np.log({v} * {v} + 1.5)",
            "np.arctan({v})",
            "1.0 / ({v} * {v} + 1.5)",
        ]
    return b.bind(b.pick(forms).format(v=name))


@step(7)
def binary(b: Builder) -> str:
    """Combine two variables, or a variable and a constant."""
    name = b.pick(list(b.variables())[::-1])
    other = b.operand(b.shape(name))
    forms = [
        "{v} * {w}",
        "{v} + {w}",
        "{v} - {w}",
        "{w} - {v}",
        "{w} * {v}",
        "np.add({w}, {v})",
        "np.multiply({v}, {w})",
        "np.sin({v}) * {w}",
    ]
    if b.real:
        forms += ["{v} / ({w} * {w} + 1.5)", "{w} / ({v} * {v} + 1.5)"]
    return b.bind(b.pick(forms).format(v=name, w=other))


@step(3)
def shared(b: Builder) -> str:
    """Add two values that are used elsewhere: one cotangent reaches both."""
    name = b.pick(list(b.variables())[::-1])
    other = b.operand(b.shape(name), active=True)
    n, m, c = b.new(), b.new(), b.new()
    if len({n, m, c, name}) < 4 or other.startswith((n, m, c)):
        raise Refused
    form = b.pick(["{n} + {m}", "{n} - {m}", "np.add({n}, {m})", "({n} + {m}) + {n}"])
    return (
        f"{n} = {name} * 0.5\n{m} = np.sin({other})\n{c} = {n} * {n}\n"
        f"{c} = {c} + {form.format(n=n, m=m)}"
    )


@step(6)
def basic_view(b: Builder) -> str:
    """Take a slice, a row, a column, or an array of no axes."""
    name = b.array()
    shape = b.shape(name)
    if b.chance(10):
        return b.bind(f"{name}[{b.position(shape)}, ...]")
    return b.bind(f"{name}[{b.basic(shape, whole=5)}]")


@step(5)
def shape_view(b: Builder) -> str:
    """Reshape, transpose, flip: views where NumPy makes views, else copies."""
    name = b.array()
    shape = b.shape(name)
    forms = ["{v}.reshape(-1)", "{v}.ravel()", "{v}.T", "np.flip({v})", "{v}[None]"]
    forms += ["np.ravel({v})", "{v}.flatten()", "{v}", "np.squeeze({v})"]
    forms += ["np.expand_dims({v}, -1)", "np.atleast_2d({v})", "np.transpose({v})"]
    forms += ["{v}[::-1].reshape(-1)", "{v}[::-1].ravel()"]
    size = int(np.prod(shape))
    for p in (2, 3, 4):
        if size % p == 0:
            q = size // p
            forms += [f"{{v}}.reshape({p}, {q})", f"np.reshape({{v}}, ({q}, -1))"]
            forms += [f"np.reshape({{v}}, ({p}, {q}), order='F')"]
            forms += [f"{{v}}.reshape({q}, {p}).T"]
    if len(shape) == 2:
        forms += [
            "np.ravel({v}, order='F')",
            "{v}.ravel(order='K' if all({v}.strides) else 'A')",
        ]
        forms += ["{v}.swapaxes(0, 1)", "np.moveaxis({v}, 0, 1)", "np.fliplr({v})"]
        forms += ["np.rot90({v})", "{v}.transpose(1, 0)", "np.flip({v}, 0)"]
        forms += ["np.diagonal({v})", "{v}.diagonal(1)", "np.diag({v})"]
        forms += ["{v}[:, ::-1].reshape(-1)", "{v}[::-1, ::-1].ravel()"]
    return b.bind(b.pick(forms).format(v=name))


@step(3)
def overlapping_view(b: Builder) -> str:
    """Take a view whose elements share memory."""
    name = b.array(1, least=2)
    n = b.shape(name)[0]
    width = b.choices.integer(2, min(4, n))
    forms = [
        f"sliding_window_view({name}, {width})",
        f"np.broadcast_to({name}, (3, {n}))",
        f"np.broadcast_to({name}[:, None], ({n}, 2))",
        f"sliding_window_view({name}, 2)[::-1]",
        f"np.broadcast_to({name}, (2, {n})).T",
        f"np.broadcast_to({name}[0], 4)",
        f"sliding_window_view({name}, {width})[:, 0]",
        f"np.ravel(sliding_window_view({name}, {width})[:, 0])",
        f"np.broadcast_to({name}[:, None], ({n}, 2))[:, 1].ravel()",
    ]
    return b.bind(b.pick(forms))


@step(4)
def gather(b: Builder) -> str:
    """Read by integers, by a mask, or one element."""
    name = b.array()
    shape = b.shape(name)
    kind = b.choices.integer(0, 4)
    if kind == 0:
        return b.bind(f"{name}[{b.position(shape)}]")
    if kind == 1:
        return b.bind(f"{name}[{b.mask(shape)}]")
    if kind == 2:
        axis = b.choices.integer(0, len(shape) - 1)
        return b.bind(f"np.take({name}, {b.indices(shape[axis])}, axis={axis})")
    return b.bind(f"{name}[{b.advanced(shape)}]")


@step(3)
def reduction(b: Builder) -> str:
    """Sum, mean, running sum, product."""
    name = b.array()
    ndim = len(b.shape(name))
    axis = b.pick(["", f", axis={ndim - 1}", ", axis=0"])
    keep = b.pick(["", ", keepdims=True"])
    forms = [
        f"np.sum({name}{axis}{keep}) * 0.3",
        f"np.mean({name}{axis}{keep})",
        f"0.2 * {name}.sum({axis[2:]})",
        f"np.cumsum({name}{axis}) * 0.2",
        f"np.prod({name}{axis}) * 0.1",
        f"np.add.reduce({name}) * 0.3",
        f"{name}.mean({axis[2:]})",
    ]
    if b.real:
        forms += [f"np.add.accumulate({name}) * 0.2"]
    return b.bind(b.pick(forms))


@step(3)
def product(b: Builder) -> str:
    """Multiply matrices and vectors, also by a large constant."""
    name = b.array()
    shape = b.shape(name)
    n = shape[-1]
    forms = [f"0.3 * ({name} @ K[:{n}, :3])", f"0.3 * (K[:3, :{n}] @ {name}.T)"]
    forms += [f"np.sum(BIG[:, :{n}] @ {name}.T, axis=0) * 0.02"] if n <= 10 else []
    forms += [f"np.outer({name}, {name}) * 0.5"] if len(shape) == 1 else []
    if len(shape) == 1:
        forms += [f"np.sum(BIG[:, :{n}] * {name}, axis=0) * 0.02"]
        forms += [f"({name} @ {b.operand(shape, active=True)}) * 0.2"]
        forms += [f"np.dot({name}, C[:{n}]) * 0.5"]
    else:
        forms += [f"0.2 * ({name} @ {name}.T)", f"0.2 * ({name}.T @ {name})"]
        forms += [f"0.3 * np.matmul(C[:{shape[0]}], {name})"]
        forms += [f"0.3 * np.einsum('ij,kj->i', {name}, K[:2, :{n}])"]
        forms += [f"0.3 * np.tensordot({name}, K[:{n}, :2], axes=1)"]
    return b.bind(b.pick(forms))


@step(3)
def selection(b: Builder) -> str:
    """Choose between two values element by element."""
    name = b.array()
    shape = b.shape(name)
    other = b.operand(shape)
    if b.real and b.chance(40):
        gap = np.abs(b.evaluate(f"{name} - {other}"))
        if np.min(gap) > MARGIN:
            f = b.pick(["np.maximum", "np.minimum"])
            return b.bind(f"{f}({name}, {other})")
    return b.bind(f"np.where({b.mask(shape)}, {name}, {other})")


@step(2, real=True)
def ordering(b: Builder) -> str:
    """Sort or take the largest, where no two values are close."""
    name = b.array()
    values = np.sort(np.ravel(b.evaluate(name)))
    if values.size > 1 and np.min(np.diff(values)) < MARGIN:
        raise Refused
    middle = f"{values.mean():.2f}"
    forms = [f"np.sort({name})", f"np.max({name}, axis=0)", f"{name}.min()"]
    if np.min(np.abs(values - float(middle))) > MARGIN:
        forms += [f"np.clip({name}, {middle}, 9.0)", f"{name}.clip(max={middle})"]
    return b.bind(b.pick(forms))


@step(3)
def joining(b: Builder) -> str:
    """Concatenate, stack, split, repeat."""
    name = b.array()
    shape = b.shape(name)
    other = b.operand(shape, active=True)
    if b.shape(other) != shape:
        other = f"{name} * 0.5"
    half = max(1, shape[0] // 2)
    forms = [
        f"np.concatenate([{name}, {other}])",
        f"np.concatenate([{name}, {other}], axis=-1)",
        f"np.split({name}, [{half}])[{b.choices.integer(0, 1)}]",
        f"np.repeat({name}, 2, axis=0)",
        f"np.roll({name}, 1)",
        f"np.take_along_axis({name}, np.argsort({name}, axis=0), axis=0)"
        if b.real
        else f"{name}[::-1].copy()",
    ]
    if len(shape) == 1:
        forms += [f"np.stack([{name}, {other}])"]
        forms += [f"np.stack([{name}, {other}], axis=1)"]
        forms += [f"np.concatenate([{name}, C[:2], {name}[:1]])"]
        forms += [f"np.hstack([{name}, {other}])", f"np.append({name}, {name}[0])"]
    return b.bind(b.pick(forms))


@step(4)
def creation(b: Builder) -> str:
    """Make scratch memory or a copy."""
    name = b.array()
    shape = b.shape(name)
    forms = [
        "{v}.copy()",
        "np.zeros_like({v})",
        "np.ones_like({v})",
        "np.full_like({v}, 0.4)",
        "np.copy({v})",
        f"np.zeros({shape}, dtype=x.dtype, like=x)",
        "{v}.copy(order='F')",
        "np.copy({v}, order='F')",
        "{v} * 1.0",
        "{v}.astype(x.dtype)",
        "{v}.astype(x.dtype, copy=False)",
    ]
    return b.bind(b.pick(forms).format(v=name))


# --- writes


@step(12)
def write(b: Builder) -> str:
    """Write into a part of an array, plainly or augmented."""
    name = b.target()
    index = b.basic(b.shape(name))
    value = b.operand(b.shape(f"{name}[{index}]"))
    if index == "..." and b.chance(60):
        return b.pick(
            [
                f"{name} *= {value}",
                f"{name} += {value}",
                f"{name} -= {value}",
                f"{name} += 0.5 * {value}",
                f"{name} *= {name}",
                f"{name} **= 2",
                *([f"{name} /= 1.5 + {value} * {value}"] if b.real else []),
            ]
        )
    form = b.pick(["{a} = {w}", "{a} = {w} * 0.5", "{a} += {w}", "{a} *= {w}"])
    if depends_on_order(b.evaluate(f"{name}[{index}]"), b.evaluate(value)):
        form = "{a} = {w} * 1.0"
    if b.chance(30):
        form = b.pick(["{a} = np.sin({w})", "{a} -= {w} * {w}", "{a} = {w} + {a}"])
    return form.format(a=f"{name}[{index}]", w=value)


@step(5)
def write_element(b: Builder) -> str:
    """Write one element."""
    name = b.target()
    place = f"{name}[{b.position(b.shape(name))}]"
    form = b.pick(["{a} = {s}", "{a} += {s}", "{a} *= {s}", "{a} = {a} * {s}"])
    return form.format(a=place, s=b.element())


@step(5)
def write_advanced(b: Builder) -> str:
    """Write by integers (repeats too) or by a mask."""
    name = b.target()
    shape = b.shape(name)
    if not shape:
        raise Refused
    index = b.mask(shape) if b.chance(40) else b.advanced(shape)
    value = b.operand(b.shape(f"{name}[{index}]"))
    form = b.pick(["{a} = {w}", "{a} += {w}", "{a} *= {w}", "{a} = {a} * 0.5"])
    if np.shares_memory(b.evaluate(name), b.evaluate(value)):
        form = form.replace(" = {w}", " = {w} * 1.0")
    return form.format(a=f"{name}[{index}]", w=value)


@step(4)
def write_itself(b: Builder) -> str:
    """Move an array within itself."""
    name = b.target(least=2)
    forms = ["{v}[1:] = {v}[:-1]", "{v}[:-1] = {v}[1:]", "{v}[...] = {v}"]
    forms += ["{v}[:] = {v}[::-1]", "{v}[1:] += {v}[:-1]", "{v}[::-1] = {v} * 0.5"]
    forms += ["{v}[0], {v}[1] = {v}[1], {v}[0]", "{v}[[0, 1]] = {v}[[1, 0]]"]
    forms += ["{v}[1:] *= {v}[:-1]", "{v}[:1] = {v}[1:2]", "{v}[:2] += 1.0"]
    shape = b.shape(name)
    if not shape:
        raise Refused
    if len(shape) == 2 and shape[0] == shape[1]:
        forms += ["{v}[...] = {v}.T", "{v} += {v}.T", "{v} *= {v}.T"]
    if len(shape) == 2:
        forms += ["{v}[0] = {v}[1]", "{v}[:, 0] *= {v}[:, 1]"]
    return b.pick(forms).format(v=name)


@step(4)
def write_out(b: Builder) -> str:
    """Write through ``out=`` and through functions that fill an array."""
    name = b.target()
    shape = b.shape(name)
    index = b.basic(shape, whole=50)
    place = f"{name}[{index}]"
    inner = b.shape(place)
    w, u = b.operand(inner), b.operand(inner)
    mask = b.mask(inner) if inner else True
    given = b.operand(inner, active=True)
    forms = [
        f"np.sin({w}, out={place})",
        f"np.multiply({w}, {u}, out={place})",
        f"np.add({w}, {u}, out={place})",
        f"np.add({place}, {w}, out={place})",
        f"{name}.fill({b.element()})",
        f"np.subtract({u}, {place}, out={place})",
        f"np.copyto({place}, {w}, where={mask})",
        f"np.tanh({given} + 0.0 * {place}, out={place}, where={mask})",
    ]
    if not depends_on_order(b.evaluate(place), b.evaluate(w)):
        forms += [f"np.copyto({place}, {w})"]
    if len(shape) == 2:
        forms += [f"np.sum({name}.copy(), axis=0, out={name}[0])"]
        forms += [f"np.fill_diagonal({name}, {b.element()})"]
        forms += [f"np.matmul(K[:{shape[0]}, :2], K[:2, :{shape[1]}], out={name})"]
    return b.pick(forms)


@step(3)
def write_at(b: Builder) -> str:
    """Add at positions that repeat."""
    name = b.target(ndim=1)
    index = b.indices(b.shape(name)[0])
    value = b.operand(b.shape(f"{name}[{index}]"))
    f = b.pick(["np.add.at", "np.subtract.at", "np.add.at"])
    return f"{f}({name}, {index}, {value})"


@step(2)
def write_put(b: Builder) -> str:
    """Fill by position or by mask through functions."""
    name = b.target()
    shape = b.shape(name)
    if not shape:
        raise Refused
    k = b.choices.integer(1, 3)
    index = b.indices(int(np.prod(shape)), k)
    forms = [f"np.put({name}, {index}, {b.operand((k,))} * 1.0)"]
    forms += [f"np.putmask({name}, {b.mask(shape)}, {b.element()})"]
    return b.pick(forms)


@step(2, real=True)
def sort_in_place(b: Builder) -> str:
    """Sort an array where it lies."""
    name = b.target()
    values = np.sort(np.ravel(b.evaluate(name)))
    if not b.shape(name) or (values.size > 1 and np.min(np.diff(values)) < MARGIN):
        raise Refused
    return f"{name}.sort()"


@step(4)
def write_captured(b: Builder) -> str:
    """Refill the captured buffer or the captured indices."""
    forms = ["BUF[...] = 0.25", "BUF[...] *= -0.5", "BUF[:6] = BUF[6:]"]
    forms += ["BUF[:] = BUF[::-1]", "I[...] = I[::-1]", "I[0] = 1", "I[:2] = 2"]
    return b.pick(forms)


@step(2)
def write_parts(b: Builder) -> str:
    """Write to the parts of a complex array."""
    if b.real:
        raise Refused
    name = b.target()
    part = f"{name}.{b.pick(['real', 'imag'])}"
    forms = [f"{part}[...] = 0.3", f"{part} *= 0.5", f"{part}[...] = {name}.real * 0.7"]
    return b.pick(forms)


@step(3)
def scalar(b: Builder) -> str:
    """Rebind a number: NumPy's scalars never write through."""
    names = [n for n, v in b.variables().items() if not isinstance(v, np.ndarray)]
    if not names:
        return b.bind(b.element())
    form = b.pick(["{s} += {e}", "{s} *= {e}", "{s} -= {e}", "{s} = {s} * {s} + {e}"])
    return form.format(s=b.pick(names), e=b.element())


# --- control flow


@step(4)
def branch(b: Builder) -> str:
    """Write one thing or another, depending on a value."""
    name = b.pick(list(b.variables())[::-1])
    shape = b.shape(name)
    test = name if not shape else f"{name}[{b.position(shape)}]"
    test = test if b.real else f"{test}.real"
    then, otherwise = write(b), write(b)
    if b.real and b.chance(20):
        return f"if {test} > {b.threshold(test)}:\n    {then}"
    return f"if {test} > {b.threshold(test)}:\n    {then}\nelse:\n    {otherwise}"


@step(5)
def loop(b: Builder) -> str:
    """Go through an array element by element."""
    name = b.target(ndim=1, least=3)
    n = b.shape(name)[0]
    other = b.operand((n,))
    other = other if np.size(b.evaluate(other)) == n else name
    bodies = [
        f"{name}[i] = np.sin({name}[i - 1] + {other}[i])",
        f"{name}[i] += 0.25 * {name}[i - 1] * {other}[i]",
        f"{name}[i] = {other}[i - 1] * 0.5",
        f"{name}[:i] *= 0.9",
        f"{name}[i:] += 0.1 * {other}[i]",
        f"{name}[{n} - i] = {name}[i] * 0.8",
        f"{name}[...] = np.sin({name} + {other})",
    ]
    return f"for i in range(1, {n}):\n    {b.pick(bodies)}"


@step(3)
def loop_sum(b: Builder) -> str:
    """Collect a number in a loop."""
    name = b.array(1, least=2)
    n = b.shape(name)[0]
    s = b.new()
    if s == name:
        raise Refused
    heads = [
        f"for i in range(1, {n}):\n    {s} = {s} + 0.3 * {name}[i] * {name}[i - 1]",
        f"for e in {name}:\n    {s} = {s} + 0.2 * e * e",
        f"for i in range({n}):\n    {s} += 0.2 * np.sin({name}[i])",
        f"for i in range({n}):\n    {s} = {name}[i] - 0.5 * {s}",
    ]
    return f"{s} = 0.0\n{b.pick(heads)}"


@step(3)
def loop_rows(b: Builder) -> str:
    """Go through the rows of a matrix, which are views."""
    name = b.target(ndim=2)
    c = b.shape(name)[1]
    bodies = [
        "row *= 0.5",
        f"row += 0.5 * {b.operand((c,))}",
        "row[...] = np.sin(row)",
        "row[0] = row[-1] * row[0]",
        "row[::-1] = row * 0.9",
    ]
    return f"for row in {name}:\n    {b.pick(bodies)}"


@step(2)
def loop_scratch(b: Builder) -> str:
    """Use scratch memory again and again."""
    name = b.array()
    bodies = [
        "{s}[...] = 0.0\n    {s} += {v} * (0.2 * i + 0.1)\n    {v2} = {s} * {s}",
        "{s} += {v} * {s} + 0.1",
        "np.multiply({v}, 0.3, out={s})\n    {s} *= {s}",
    ]
    s, v2 = b.new(), b.new()
    if name in (s, v2) or s == v2:
        raise Refused
    body = b.pick(bodies).format(s=s, v=name, v2=v2)
    return f"{s} = np.zeros_like({name})\nfor i in range(3):\n    {body}"


@step(2)
def loop_while(b: Builder) -> str:
    """Shrink an array until its squares are small."""
    name = b.target()
    squares = float(np.sum(np.abs(b.evaluate(name)) ** 2))
    if b.real and squares > 0.3:
        limit = f"{squares * 0.49 ** b.choices.integer(0, 2) * 0.7:.3f}"
        return f"while np.sum({name} * {name}) > {limit}:\n    {name} *= 0.7"
    raise Refused


@step(2)
def comprehension(b: Builder) -> str:
    """Build an array from a list of elements."""
    name = b.array(1, least=2)
    n = b.shape(name)[0]
    forms = [
        f"np.stack([{name}[i] * {name}[{n - 1} - i] for i in range({n})])",
        f"np.stack([np.sin(e) for e in {name}])",
        f"0.3 * sum({name}[i] for i in range({n}))",
        f"0.3 * sum({name})",
        f"np.concatenate([{name}[i : i + 1] * i * 0.2 for i in range({n})])",
    ]
    return b.bind(b.pick(forms))


# --- the end of a program


def terms(b: Builder) -> list[str]:
    """Return lines that join x and most variables to one real number.

    Those left out have shadows that are still fresh when their uses are pulled.
    """
    lines = ["t = 0.0"]
    for name, value in b.variables().items():
        if name != "x" and b.chance(40):
            continue
        forms = REAL_TERMS if b.real else COMPLEX_TERMS
        forms = [f for f in forms if np.ndim(value) == 1 or "dot" not in f]
        lines.append(f"t = t + {b.pick(forms).format(v=name)}")
    return [*lines, f"note({', '.join(b.variables())})", "return t"]


REAL_TERMS = [
    "np.sum({v} * {v})",
    "np.sum(np.sin({v}) + 0.3 * {v})",
    "np.mean({v}) * 0.7",
    "np.dot({v}, {v}) * 0.5",
    "np.sum({v} * np.cos({v}))",
]
COMPLEX_TERMS = [
    "np.sum(np.abs({v}) ** 2)",
    "np.sum(np.real({v}) * 0.7 + np.imag({v}) * np.imag({v}))",
    "np.real(np.sum({v} * (0.3 + 0.7j)))",
    "np.vdot({v}, {v}).real",
    "np.sum(np.real({v} * np.conj({v}) * {v}))",
]


def build(choices: Choices, dtype: str = "float64", most: int = 14) -> Program:
    """Draw a whole program."""
    b = Builder(choices, dtype)
    steps = [s for s in STEPS if dtype == "float64" or s not in REAL_ONLY]
    for _ in range(choices.integer(1, most)):
        b.add(steps[choices.integer(0, len(steps) - 1)])
    return b.program(*terms(b))


def seeded_program(seed: int, dtype: str = "float64", most: int = 14) -> Program:
    """Return the program of a seed."""
    return build(Seeded(random.Random(seed)), dtype, most)  # noqa: S311 -- no secret


@st.composite
def programs(draw: Any, dtype: str = "float64", most: int = 14) -> Program:
    """Draw programs with hypothesis."""
    return build(Drawn(draw), dtype, most)


@contextlib.contextmanager
def shown(program: Program) -> Any:
    """Add the program's text to whatever goes wrong inside."""
    try:
        yield
    except BaseException as e:
        e.add_note(f"program (x is {program.layout}, seed {program.seed}):\n{program}")
        raise
