"""What a method is given and what it hands back, and the tasks of the benchmark."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from benchmarks.functions import BOUNDS, RANGE, TRUTHS
from benchmarks.suite import methods
from benchmarks.tasks import TASKS
from privgp.types import Array, Pair

DELTA = 1e-5
FUNCTIONS = ("growth", "wave", "step", "narrow bump", "hill", "border")
# Data tasks with the domain that is declared of their inputs.
DATA: dict[str, tuple[Pair, ...]] = {
    "wage by age": ((16, 80),),
    "Milan": ((0, 3700),),
    "quakes": ((-40, -10), (165, 190)),
    "malaria": ((340_000, 630_000), (1_450_000, 1_520_000)),
    "Ames by place": ((-93.7, -93.57), (41.98, 42.07)),
}
LABELS = ("malaria",)


@dataclass(frozen=True)
class Problem:
    """One data set, its declared bounds and a budget.

    Attributes
    ----------
    X, y : array (rows, inputs), array (rows,)
        What is learned from. Outputs lie within ``bounds``; labels are 0 and 1.
    bounds, domain
        Declared bounds of the output, and of every input.
    epsilon, delta, seed
        The budget of one release, and the seed of its noise.
    places : array (places, inputs)
        Where predictions are judged.
    observed : bool
        Whether ``truth`` holds new outputs, as of real data, and not the function itself.
    has_labels : bool
        Whether outputs are labels, and predictions probabilities.
    truth : array (places,)
        What predictions are compared with. Methods must not read it.

    """

    task: str
    X: Array
    y: Array
    bounds: Pair
    domain: tuple[Pair, ...]
    epsilon: float
    delta: float
    seed: int
    places: Array
    observed: bool
    has_labels: bool
    truth: Array

    @property
    def half(self) -> float:
        """Half the width of the bounds."""
        return 0.5 * (self.bounds[1] - self.bounds[0])

    @property
    def middle(self) -> float:
        return 0.5 * (self.bounds[0] + self.bounds[1])

    def scaled(self, rows: Array) -> Array:
        """Inputs as shares of the declared domain, clipped to it."""
        low, high = np.array(self.domain, dtype=float).T
        return np.asarray(np.clip((rows - low) / (high - low), 0.0, 1.0))

    def outputs(self) -> Array:
        """The outputs scaled to [-1, 1]."""
        return np.asarray((np.clip(self.y, *self.bounds) - self.middle) / self.half)

    def kernel(self) -> Kernel:
        """One that is fixed beforehand, for methods that learn none: a fifth of the domain."""
        widths = np.ptp(np.array(self.domain, dtype=float), axis=1)
        return ConstantKernel((0.5 * self.half) ** 2) * Matern(0.2 * widths, nu=2.5)


@dataclass(frozen=True)
class Answer:
    """Predictions at the places, and the ends of 90% intervals where a method has them."""

    mean: Array
    low: Array | None = None
    high: Array | None = None


@dataclass(frozen=True)
class Method:
    """A way to answer a problem.

    Attributes
    ----------
    name : str
    protects : {"outputs", "records", "nothing"}
    run : callable
        From a problem to an answer. What it raises is reported in the table.
    for_labels : bool
        Whether it answers problems with labels only.
    note : str
        What a reader should know, such as a choice that is made in hindsight.

    """

    name: str
    protects: str
    run: Callable[[Problem], Answer]
    for_labels: bool = False
    note: str = ""

    def suits(self, problem: Problem) -> bool:
        return problem.has_labels or not self.for_labels


def all_methods() -> list[Method]:
    """The methods of all files in ``methods/``, by the names of the files."""
    found: list[Method] = []
    for each in pkgutil.iter_modules(methods.__path__):
        found += importlib.import_module(f"{methods.__name__}.{each.name}").METHODS
    return found


def problem_of(task: str, epsilon: float, number: int, data: Path) -> Problem:
    """Release ``number`` of a task: its own rows and its own noise."""
    truth = next((each for each in TRUTHS if each.name == task), None)
    if truth is not None:
        X, y = truth.sample(np.random.default_rng(7000 + number))
        places, domain = truth.places(), ((0.0, RANGE),) * truth.columns
        bounds, goal, observed = BOUNDS, truth.f(places), False
    else:
        known = next(each for each in TASKS if each.name == task)
        X, y, places, goal = known.split(data, 7000 + number)
        bounds, domain, observed = known.bounds, DATA[task], True
    return Problem(
        task, X, y, bounds, domain, epsilon, DELTA, number, places, observed, task in LABELS, goal
    )
