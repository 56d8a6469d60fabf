"""A classifier of handwritten digits in plain NumPy, trained with dualad.

The model is two affine layers with a tanh between them, its parameters are a dict of
arrays, and its loss is a closure over a batch of images.  Nothing below but the
calls of ``ad`` knows about derivatives.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dualad as ad

Array = Any
Parameters = dict[str, Array]
Loss = Callable[[Parameters], Array]

HIDDEN, CLASSES = 64, 10
BATCH = 64
LEARNING_RATE, MOMENTUM = 0.05, 0.9
REQUIRED_ACCURACY = 0.95
ALLOWED_HVP_ERROR = 1e-6
INSTALL = 'The demo needs more packages: pip install "dualad[demo]" (here: ".[demo]")'


# --- data --------------------------------------------------------------------------


@dataclass(frozen=True)
class Digits:
    """Images as rows of 64 grey levels, and the digit that each shows."""

    images: Array  # float64[n, 64], about -1 to 1
    labels: Array  # int64[n], 0 to 9

    def __getitem__(self, index: Array) -> Digits:
        """Return some of them."""
        return Digits(self.images[index], self.labels[index])

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.labels)


def load_data(rng: np.random.Generator) -> tuple[Digits, Digits]:
    """Return scikit-learn's digits: four fifths to train with, one fifth to test."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 -- of the extra "demo"

    images, labels = load_digits(return_X_y=True)
    digits = Digits(images / 8.0 - 1.0, labels)  # grey levels are 0 to 16
    order = rng.permutation(len(digits))
    split = len(digits) * 4 // 5
    return digits[order[:split]], digits[order[split:]]


# --- model and loss ----------------------------------------------------------------


def initial_parameters(rng: np.random.Generator, inputs: int) -> Parameters:
    """Draw weights that keep the variance of what flows through them."""
    return {
        "W1": rng.normal(0.0, inputs**-0.5, (inputs, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "W2": rng.normal(0.0, HIDDEN**-0.5, (HIDDEN, CLASSES)),
        "b2": np.zeros(CLASSES),
    }


def scores(p: Parameters, images: Array) -> Array:
    """Return one score per image and class."""
    hidden = np.tanh(images @ p["W1"] + p["b1"])
    return hidden @ p["W2"] + p["b2"]


def log_softmax(z: Array) -> Array:
    """Return the logarithms of the class probabilities, without overflow."""
    z = z - np.max(z, axis=1, keepdims=True)
    return z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))


def loss_over(batch: Digits) -> Loss:
    """Return the cross entropy over a batch, as a function of the parameters."""

    def loss(p: Parameters) -> Array:
        log_probabilities = log_softmax(scores(p, batch.images))
        right = log_probabilities[np.arange(len(batch)), batch.labels]
        return -np.mean(right)

    return loss


def accuracy(p: Parameters, digits: Digits) -> float:
    """Return which fraction of the digits scores highest for the right class."""
    guesses = np.argmax(scores(p, digits.images), axis=1)
    return float(np.mean(guesses == digits.labels))


# --- training ----------------------------------------------------------------------


def train(
    p: Parameters, digits: Digits, rng: np.random.Generator, epochs: int
) -> list[float]:
    """Train the parameters in place by gradient descent; return the loss per step.

    The shadow, which receives the gradient, is allocated once.
    """
    from tqdm import tqdm  # noqa: PLC0415 -- of the extra "demo"

    losses = []
    shadow = ad.make_shadow(p)
    velocity = {name: np.zeros_like(w) for name, w in p.items()}
    for _ in tqdm(range(epochs), desc="training", unit="epoch"):
        order = rng.permutation(len(digits))
        for start in range(0, len(digits), BATCH):
            loss = loss_over(digits[order[start : start + BATCH]])
            ad.zero_shadow(shadow)
            losses.append(
                float(ad.autodiff(ad.Reverse, loss, ad.Duplicated(p, shadow)))
            )
            descend(p, shadow, velocity)
    return losses


def descend(p: Parameters, shadow: Parameters, velocity: Parameters) -> None:
    """Take one step of gradient descent with momentum, in place."""
    for name in p:
        velocity[name] *= MOMENTUM
        velocity[name] -= LEARNING_RATE * shadow[name]
        p[name] += velocity[name]


def save_loss_curve(losses: list[float], output: Path) -> None:
    """Draw the loss of every step, and its moving mean."""
    import matplotlib as mpl  # noqa: PLC0415 -- of the extra "demo"

    mpl.use("Agg")  # no screen needed
    from matplotlib import pyplot as plt  # noqa: PLC0415 -- after the backend

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    axes.semilogy(losses, linewidth=0.6, label="one batch")
    window = min(len(losses), 20)
    smooth = np.convolve(losses, np.full(window, 1 / window), mode="valid")
    steps = np.arange(window - 1, len(losses))
    axes.semilogy(steps, smooth, linewidth=2.0, label=f"mean of {window}")
    axes.set(xlabel="step", ylabel="cross entropy", title="Handwritten digits")
    axes.legend()
    figure.savefig(output, dpi=150)
    plt.close(figure)


# --- a second derivative, checked ---------------------------------------------------


def hessian_vector_error(loss: Loss, p: Parameters, rng: np.random.Generator) -> float:
    """Compare a Hessian-vector product with differences of gradients.

    Returned is the distance over the product's norm; central differences with this
    step are good for about 1e-8.
    """
    v = {name: rng.normal(size=w.shape) for name, w in p.items()}
    product = ad.hvp(loss, p, v)
    step = 1e-5
    ahead = ad.gradient(loss, {name: w + step * v[name] for name, w in p.items()})
    behind = ad.gradient(loss, {name: w - step * v[name] for name, w in p.items()})
    differences = {name: (ahead[name] - behind[name]) / (2 * step) for name in p}
    error = {name: product[name] - differences[name] for name in p}
    return norm(error) / norm(product)


def norm(p: Parameters) -> float:
    """Return the Euclidean norm of all entries together."""
    return float(np.sqrt(sum(np.sum(w**2) for w in p.values())))


# --- how long it takes --------------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """Seconds for a function's value, and for its value and gradient."""

    name: str
    value: float
    first: float
    warm: float


def timing(name: str, f: Loss, p: Parameters) -> Timing:
    """Time the first and the following calls of ``value_and_gradient``."""
    first = seconds(lambda: ad.value_and_gradient(f, p))
    warm = median_seconds(lambda: ad.value_and_gradient(f, p))
    return Timing(name, median_seconds(lambda: f(p)), first, warm)


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median_seconds(call: Callable[[], object], repeats: int = 200) -> float:
    """Return the median time of many calls."""
    return float(np.median([seconds(call) for _ in range(repeats)]))


def dense_timing(rng: np.random.Generator) -> Timing:
    """Time ``sum(m(x))`` for a layer ``m`` of two inputs and two outputs."""
    m = {"W": rng.normal(size=(2, 2)), "b": rng.normal(size=2)}
    x = rng.normal(size=2)
    return timing(
        "Dense(2 => 2), sum(m(x))", lambda m: np.sum(np.tanh(m["W"] @ x + m["b"])), m
    )


def table(timings: list[Timing]) -> str:
    """Return the timings as text: what ``value_and_gradient`` costs."""
    rows = [f"{'value_and_gradient of':<26}{'first call':>12}{'warm call':>12}{'':>16}"]
    for t in timings:
        ratio = f"{t.warm / t.value:.1f} x the value"
        times = f"{t.first * 1e6:>9.0f} us{t.warm * 1e6:>9.1f} us"
        rows.append(f"{t.name:<26}{times}{ratio:>18}")
    return "\n".join(rows)


# --- the whole ---------------------------------------------------------------------


def run(epochs: int, output: Path) -> int:
    """Train, test, check and time; the exit status says whether all went well."""
    try:
        import matplotlib  # noqa: F401, ICN001, PLC0415 -- of the extra "demo"
        import sklearn  # noqa: F401, PLC0415
        import tqdm  # noqa: F401, PLC0415
    except ImportError as missing:
        sys.stderr.write(f"{missing}. {INSTALL}\n")
        return 1
    return report(epochs, output)


def report(epochs: int, output: Path) -> int:
    """Do the work of :func:`run` and print what comes out."""
    rng = np.random.default_rng(0)
    training, test = load_data(rng)
    p = initial_parameters(rng, inputs=training.images.shape[1])
    count = sum(w.size for w in p.values())
    say(f"{len(training)} digits for training, {len(test)} for testing")
    say(f"{count} parameters in {len(p)} arrays")

    batch_loss = loss_over(training[:BATCH])
    timings = [dense_timing(rng), timing(f"digits, batch of {BATCH}", batch_loss, p)]

    losses = train(p, training, rng, epochs)
    save_loss_curve(losses, output)
    reached = accuracy(p, test)
    error = hessian_vector_error(batch_loss, p, rng)

    say(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, curve in {output}")
    say(f"test accuracy {reached:.1%}")
    say(f"Hessian-vector product against differences: relative error {error:.1e}")
    say(f"\n{table(timings)}")
    return verdict(reached, error)


def verdict(reached: float, error: float) -> int:
    """Return the exit status, and say what is not good enough."""
    if reached < REQUIRED_ACCURACY:
        sys.stderr.write(f"The accuracy is below {REQUIRED_ACCURACY:.0%}.\n")
    if not error <= ALLOWED_HVP_ERROR:  # a NaN fails, too
        sys.stderr.write("The Hessian-vector product is wrong.\n")
    return int(reached < REQUIRED_ACCURACY or not error <= ALLOWED_HVP_ERROR)


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
