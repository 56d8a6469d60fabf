"""One face for every library that takes part.

A program under test is a function ``f(np, x)`` that takes the library's own ``np``
(NumPy itself for dualad), so that each library runs what its users would write.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy

Array = Any
Program = Callable[[Any, Any], Any]
Call = Callable[[], Any]


@dataclass(frozen=True)
class Library:
    """A library, what it calls ``np``, and how it differentiates.

    ``gradient``, ``jvp`` and ``hvp`` take a program and NumPy arrays, do once what
    its users would do once, and return a call to time; None where it has no such mode.
    """

    name: str
    np: ModuleType
    array: Callable[[Array], Array]
    gradient: Callable[[Program, Any], Call]
    jvp: Callable[[Program, Array, Array], Call] | None = None
    hvp: Callable[[Program, Array, Array], Call] | None = None


def available(*names: str) -> list[Library]:
    """Return the libraries that are installed here, dualad first."""
    candidates = names or tuple(MAKERS)
    return [MAKERS[name]() for name in candidates if takes_part(name)]


def takes_part(name: str) -> bool:
    """Say whether a library is here; a benchmark without dualad is none."""
    return name == "dualad" or importlib.util.find_spec(name) is not None


def dualad_library() -> Library:
    """Return dualad on plain NumPy."""
    ad = importlib.import_module("dualad")

    def gradient(program: Program, x: Any) -> Call:
        return lambda: ad.value_and_gradient(lambda x: program(numpy, x), x)

    def jvp(program: Program, x: Array, x_dot: Array) -> Call:
        return lambda: ad.jvp(lambda x: program(numpy, x), (x,), (x_dot,))

    def hvp(program: Program, x: Array, x_dot: Array) -> Call:
        return lambda: ad.hvp(lambda x: program(numpy, x), x, x_dot)

    return Library("dualad", numpy, lambda x: x, gradient, jvp, hvp)


def autograd_library() -> Library:
    """Return HIPS autograd."""
    autograd = importlib.import_module("autograd")
    np = importlib.import_module("autograd.numpy")

    def gradient(program: Program, x: Any) -> Call:
        differentiated = autograd.value_and_grad(lambda x: program(np, x))
        return lambda: differentiated(x)

    def jvp(program: Program, x: Array, x_dot: Array) -> Call:
        differentiated = autograd.make_jvp(lambda x: program(np, x))
        return lambda: differentiated(x)(x_dot)

    def hvp(program: Program, x: Array, x_dot: Array) -> Call:
        product = autograd.hessian_vector_product(lambda x: program(np, x))
        return lambda: product(x, x_dot)

    return Library("autograd", np, lambda x: x, gradient, jvp, hvp)


def mygrad_library() -> Library:
    """Return MyGrad: reverse mode, first order."""
    mg = importlib.import_module("mygrad")

    def gradient(program: Program, x: Any) -> Call:
        def call() -> Any:
            leaves = mapped(lambda a: mg.tensor(a, copy=False), x)
            y = program(mg, leaves)
            y.backward()
            return y.item(), mapped(lambda t: t.grad, leaves)

        return call

    return Library("mygrad", mg, lambda x: x, gradient)


def advect_library() -> Library:
    """Return Advect (Python >= 3.12)."""
    advect = importlib.import_module("advect")

    def gradient(program: Program, x: Any) -> Call:
        differentiated = advect.value_and_grad(lambda x: program(numpy, x))
        return lambda: differentiated(x)

    def jvp(program: Program, x: Array, x_dot: Array) -> Call:
        differentiated = advect.jvp(lambda x: program(numpy, x))
        return lambda: differentiated(x, tangents=x_dot)

    def hvp(program: Program, x: Array, x_dot: Array) -> Call:
        product = advect.hvp(lambda x: program(numpy, x))
        return lambda: product(x, vectors=x_dot)[1]

    return Library("advect", numpy, lambda x: x, gradient, jvp, hvp)


def torch_library() -> Library:
    """Return PyTorch, eager, on one thread."""
    torch = importlib.import_module("torch")
    forward_mode = importlib.import_module("torch.autograd.forward_ad")
    torch.set_num_threads(1)

    def leaf(x: Array) -> Array:
        return x.detach().requires_grad_()

    def gradient(program: Program, x: Any) -> Call:
        tensors = mapped(torch.from_numpy, x)

        def call() -> Any:
            leaves = mapped(leaf, tensors)
            y = program(torch, leaves)
            found = torch.autograd.grad(y, list(flat(leaves)))
            return y.item(), rebuilt(leaves, iter(found))

        return call

    def jvp(program: Program, x: Array, x_dot: Array) -> Call:
        x, x_dot = torch.from_numpy(x), torch.from_numpy(x_dot)

        def call() -> Any:
            with forward_mode.dual_level():
                y = program(torch, forward_mode.make_dual(x, x_dot))
                return tuple(forward_mode.unpack_dual(y))

        return call

    def hvp(program: Program, x: Array, x_dot: Array) -> Call:
        x, x_dot = torch.from_numpy(x), torch.from_numpy(x_dot)

        def call() -> Any:
            x_leaf = leaf(x)
            y = program(torch, x_leaf)
            (x_bar,) = torch.autograd.grad(y, x_leaf, create_graph=True)
            return torch.autograd.grad(x_bar, x_leaf, x_dot)[0]

        return call

    return Library("torch", torch, torch.from_numpy, gradient, jvp, hvp)


MAKERS: dict[str, Callable[[], Library]] = {
    "dualad": dualad_library,
    "autograd": autograd_library,
    "mygrad": mygrad_library,
    "advect": advect_library,
    "torch": torch_library,
}


# --- an array, or a dict of arrays -------------------------------------------------


def mapped(f: Callable[[Array], Array], x: Any) -> Any:
    """Apply ``f`` to an array, or to each array of a dict."""
    return {k: f(v) for k, v in x.items()} if isinstance(x, dict) else f(x)


def flat(x: Any) -> Iterator[Array]:
    """Yield an array, or each array of a dict."""
    if isinstance(x, dict):
        yield from x.values()
    else:
        yield x


def rebuilt(x: Any, arrays: Iterator[Array]) -> Any:
    """Give new arrays the structure of ``x``."""
    return mapped(lambda _: next(arrays), x)


def check_agreement(answers: dict[str, Any]) -> None:
    """Raise unless all libraries found the same derivatives."""
    (reference, expected), *others = answers.items()
    for name, answer in others:
        for a, b in zip(numbers(expected), numbers(answer), strict=True):
            if not numpy.allclose(a, b, rtol=1e-9, atol=1e-12):
                message = f"{name} and {reference} disagree"
                raise AssertionError(message)


def numbers(answer: Any) -> Iterator[Array]:
    """Yield the arrays of an answer, as NumPy arrays."""
    if isinstance(answer, tuple | list):
        for part in answer:
            yield from numbers(part)
    elif isinstance(answer, dict):
        for key in sorted(answer):
            yield from numbers(answer[key])
    elif hasattr(answer, "detach"):
        yield answer.detach().numpy()
    else:
        yield numpy.asarray(answer)
