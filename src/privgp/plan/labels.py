"""Priors of the function behind a link, and of the probability that it gives.

Measurements are chosen for the probability itself, as for any output in [0, 1]. Near an even
probability it moves with the function by the link's slope there, which turns the units of one into
those of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product

from privgp.gp.arithmetic import UNIT_ROUNDOFF
from privgp.gp.kernels.evaluate import variance
from privgp.gp.links import LINKS, Link
from privgp.gp.priors import Hyperparameters, Prior
from privgp.plan.strategy import NOT_TOGETHER, GroupSums, OutputSums
from privgp.privacy.noise import PURE
from privgp.privacy.sensitivity import WHOLE, column_norms
from privgp.question.outcomes import MOST_CLASSES
from privgp.types import Array, Within

# The standard deviation of the level, on the logit scale, where a probability moves by a quarter at most: about even, and about a
# declared prevalence.
CONSTANT_STD, GUESS_STD = 2.0, 1.0
LABEL_VARIANCE = 0.2  # of a label about its probability, between rare and even


def steepest(link: Link) -> float:
    """How far a probability moves with the function where that is 0: at most, unless a prevalence is declared."""
    return float(link.slope(np.zeros(1))[0])


def signal_of(link: Link) -> float:
    """The std of the probability that a usual function gives, over that of an even one."""
    usual, mean = LINKS[link.name], np.zeros(1)
    variance = np.full(1, (0.25 / steepest(usual)) ** 2)
    squares = [
        g.average_square(mean, variance) - g.average(mean, variance) ** 2 for g in (link, usual)
    ]
    return float(np.sqrt(squares[0] / squares[1])[0])


def rescale(kernel: Kernel, factor: float) -> Kernel:
    """The kernel of a function that is ``factor`` times as large."""
    first = getattr(kernel, "k1", None) if isinstance(kernel, Product) else None
    if isinstance(first, ConstantKernel) and first.hyperparameter_constant_value.fixed:
        factor, kernel = factor * float(np.sqrt(first.constant_value)), kernel.k2
    if abs(factor - 1.0) < 1e-12:
        return kernel
    return ConstantKernel(factor**2, "fixed") * kernel


def latent_prior(link: Link, prior: Prior, *, default: bool) -> Prior:
    """The prior of the function behind the link, from that of the probability.

    ``default``: of the default kernel, whose constant may be further from even than its function.
    """
    kernel, steep = prior.start.kernel, steepest(link)
    if default:
        usual = LINKS[link.name]
        signal, level = signal_of(link), CONSTANT_STD if link is usual else GUESS_STD
        kernel = kernel.k1 + ConstantKernel((0.25 * level * signal) ** 2, "fixed")
        steep = signal * steepest(usual)
    count, moves = len(prior.centre) - prior.noise_free, prior.size - prior.noise_free
    return Prior(
        start=replace(prior.start, kernel=rescale(kernel, 1.0 / steep)),
        centre=prior.centre[:count],
        root=prior.root[:count, :moves],
        noise_free=False,
    )


# For a rate over the unit: a level and a function of a quarter of the bounds' width, two units, each.
MOST_VARIANCE = 0.5


def outcome_model(model: Hyperparameters, unit: float | None) -> Hyperparameters:
    """The model of what is summed: the function itself, or the rate whose logarithm it is.

    ``unit``: of rates; None where outcomes are no counts.
    """
    if unit is None:
        return model
    share = min(1.0, MOST_VARIANCE / variance(model.kernel))
    return replace(model, kernel=rescale(model.kernel, share**0.5))


Several = Annotated[int, Within(3, MOST_CLASSES)]
ROOT_TWO = float(np.sqrt(2.0)) * (1.0 + 2.0 * UNIT_ROUNDOFF)


class OfEveryClass(OutputSums):
    """The sums of every class, one after the other."""

    classes: int

    @property
    def size(self) -> int:
        return self.classes * len(self.matrix)

    def check(self) -> None:
        super().check()
        if self.energy_weight > 0.0 or self.change != WHOLE:  # a label changes all the way
            raise ValueError(NOT_TOGETHER)

    def float_error(self) -> float:
        root = float(np.sqrt(self.classes)) * (1.0 + 2.0 * UNIT_ROUNDOFF)
        return super().float_error() * (self.classes if self.law in PURE else root)

    def worst_neighbours(self) -> tuple[Array, Array]:
        """One person's labels change between the first two classes."""
        first, second = super().worst_neighbours()
        rest = np.zeros(self.size - 2 * len(first))
        return np.concatenate([first, second, rest]), np.concatenate([second, first, rest])


@dataclass(frozen=True)
class ClassSums(OfEveryClass, OutputSums):
    """``OutputSums`` of every class."""

    classes: Several = 3

    def sensitivity(self) -> float:
        """How far one person can move the exact measurement, in the Euclidean norm.

        Rows of one person may move between different pairs of classes, so their norms are added.
        """
        norms = self.per_person(column_norms(self.matrix)[self.index] * self.row_weights)
        return 2.0 * ROOT_TWO * float(norms.max()) * (1.0 + 8.0 * UNIT_ROUNDOFF)


@dataclass(frozen=True)
class ClassGroupSums(OfEveryClass, GroupSums):
    """``GroupSums`` of every class; protected by pure noise."""

    classes: Several = 3

    def sensitivity(self) -> float:
        """How far one person can move the exact measurement, in the sum of absolute values."""
        return 2.0 * super().sensitivity()
