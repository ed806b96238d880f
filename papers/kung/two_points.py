"""Figure 2 of the papers, A to H: two training and two test points, and the noise that hides either output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from sklearn.gaussian_process.kernels import RBF

from papers.shared.cloaking import workload
from papers.shared.report import Result, judged
from privgp.gp.kernels.evaluate import evaluate
from privgp.pictures.style import (
    BLACK,
    BLUE,
    GREY,
    SKY,
    VERMILION,
    legend,
    new_figure,
    set_labels,
    set_title,
)
from privgp.plan.designs.workload import design
from privgp.types import Array

INPUTS, OUTPUTS = np.array([[0.0], [1.0]]), np.array([0.3, -0.1])
TARGETS = np.array([[-0.4], [1.5]])
LENGTHSCALE, NOISE, CHANGE = 2.5, 0.05, 1.0
SAMPLE = np.array([0.7, -0.4])  # standard normal numbers of the drawn noise
CURVE = np.linspace(-0.8, 1.9, 120)[:, None]
STARS: dict[str, Any] = {"linestyle": "", "marker": "*", "markersize": 9}


@dataclass(frozen=True)
class TwoPoints:
    """Two predictions, how far either output moves them, and two kinds of noise.

    Attributes
    ----------
    weights : (targets, inputs), the papers' cloaking matrix
    prior, cloak : (targets, targets), covariances at one sensitivity

    """

    weights: Array
    prior: Array
    cloak: Array

    @property
    def predictions(self) -> Array:
        return np.asarray(self.weights @ OUTPUTS)

    def move(self, output: int) -> Array:
        """How far a training output moves the predictions, changed as far as it may be."""
        return np.asarray(CHANGE * self.weights[:, output])

    def distance(self, output: int, covariance: Array) -> float:
        """The same move in stds of a noise; 1 is the edge of its ellipse."""
        move = self.move(output)
        return float(np.sqrt(move @ np.linalg.solve(covariance, move)))


def two_points() -> TwoPoints:
    """The papers print no numbers: inputs, lengthscale and noise are chosen to show what they say."""
    kernel = RBF(LENGTHSCALE)
    C = workload(kernel, NOISE, INPUTS, TARGETS).matrix
    K = evaluate(kernel, INPUTS)
    A = np.linalg.inv(K + NOISE * np.eye(2))
    norm = CHANGE * float(np.sqrt(np.diag(A @ K @ A).max()))
    R = CHANGE * design(C, "logdet", tolerance=1e-6).reconstruction
    return TwoPoints(C, norm**2 * evaluate(kernel, TARGETS), R @ R.T)


def figure_2(points: TwoPoints) -> Figure:
    """Above: curves, with noise (A, G) or with one output changed (C, E). Below: both predictions."""
    figure = new_figure(5.6, 9.0)
    set_title(
        figure,
        "What one private output can do to two predictions, and the noise that hides it\n"
        "Above, the function; below, both predictions, and in blue the noise for one sensitivity",
    )
    axes = figure.subplots(2, 4)
    noisy = [
        points.predictions + np.linalg.cholesky(M) @ SAMPLE for M in (points.prior, points.cloak)
    ]
    moved = [points.predictions + points.move(j) for j in (0, 1)]
    columns = (
        ("A", "B", "noise from the prior", noisy[0], None, points.prior),
        ("C", "D", "first output changed", moved[0], 0, points.prior),
        ("E", "F", "second output changed", moved[1], 1, points.prior),
        ("G", "H", "cloaking", noisy[1], None, points.cloak),
    )
    for (above, below), (one, two, title, ends, output, M) in zip(axes.T, columns, strict=True):
        _curves(above, points, ends, output)
        set_title(above, f"{one}: {title}")
        _plane(below, points, ends, M, moved if two == "H" else ())
        set_title(below, two)
    for row, (x, y) in zip(
        axes, (("input", "output"), ("first prediction", "second prediction")), strict=True
    ):
        for ax in row:
            set_labels(ax, x, y if ax is row[0] else "")
    legend([axes[0, 0], axes[0, 1], axes[1, 3]], below=True, columns=3)
    return figure


def _curves(ax: Axes, points: TwoPoints, ends: Array, output: int | None) -> None:
    """The prediction, and the one with an output changed; stars at the test points before and after."""
    C = workload(RBF(LENGTHSCALE), NOISE, INPUTS, CURVE).matrix
    ax.plot(CURVE[:, 0], C @ OUTPUTS, color=GREY, label="prediction")
    ax.plot(INPUTS[:, 0], OUTPUTS, "o", color=BLACK, markersize=4, label="private outputs")
    if output is not None:
        changed = OUTPUTS + CHANGE * (np.arange(2) == output)
        ax.plot(CURVE[:, 0], C @ changed, color=VERMILION, label="with one output changed")
        ax.plot(INPUTS[output], changed[output], "o", color=VERMILION, markersize=4)
    ax.plot(TARGETS[:, 0], points.predictions, color=GREY, **STARS, label="test points")
    ax.plot(TARGETS[:, 0], ends, color=BLACK, **STARS, label="the same afterwards")
    ax.set_ylim(-2.2, 2.2)


def _plane(
    ax: Axes, points: TwoPoints, ends: Array, M: Array, others: tuple[Array, ...] | list[Array]
) -> None:
    """The two predictions against each other, with the ellipse of the noise at one sensitivity."""
    values, vectors = np.linalg.eigh(M)
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    size = 2.0 * np.sqrt(values)
    look: dict[str, Any] = {"facecolor": SKY, "edgecolor": BLUE, "alpha": 0.4}
    ax.add_patch(Ellipse(tuple(points.predictions), size[1], size[0], angle=angle, **look))
    for j, other in enumerate(others):
        name = "predictions of D and F" if j == 0 else None
        ax.plot(*other, markerfacecolor="white", markeredgecolor=BLACK, **STARS, label=name)
    ax.plot(*points.predictions, color=GREY, **STARS)
    ax.plot(*ends, color=BLACK, **STARS)
    reach = 1.2 * float(np.sqrt(np.diag(points.prior).max()))
    x, y = points.predictions
    ax.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")


def figure_2_text(points: TwoPoints) -> tuple[str, ...]:
    """What the caption says, with the numbers of this figure."""
    together = float(points.prior[0, 1] / np.sqrt(points.prior[0, 0] * points.prior[1, 1]))
    first, second = points.move(0), points.move(1)
    inside = [points.distance(j, points.prior) for j in (0, 1)]
    edge = [points.distance(j, points.cloak) for j in (0, 1)]
    ratio = area_ratio(points)
    return (
        judged(f"A, B: noise from the prior moves both predictions together (correlation {together:.2f})",
            together > 0.5),
        judged(
            f"C: the first output moves one prediction by {first[0]:+.2f} and the other by {first[1]:+.2f}, "
            "the other way and less", first[0] * first[1] < 0 and abs(first[1]) < abs(first[0])),
        judged(f"E: the second output moves them by {second[0]:+.2f} and {second[1]:+.2f}, not together",
            second[0] * second[1] < 0),
        judged(f"D, F: both moves lie inside the ellipse ({inside[0]:.2f} and {inside[1]:.2f} stds)",
            max(inside) <= 1.0 + 1e-9),
        judged(f"G, H: both moves lie inside the ellipse of cloaking too ({edge[0]:.2f} and {edge[1]:.2f} "
            f"stds), which has 1/{ratio:.1f} of the area", max(edge) <= 1.0 + 1e-3 and ratio > 1.0),
        "An ellipse is the covariance of the noise at one sensitivity. The papers print no numbers for this "
        "figure; inputs, lengthscale and noise are our choice.",
    )  # fmt: skip


def area_ratio(points: TwoPoints) -> float:
    """The area of the prior's ellipse over that of cloaking."""
    return float(np.sqrt(np.linalg.det(points.prior) / np.linalg.det(points.cloak)))


def figure_2_results(points: TwoPoints) -> tuple[Result, ...]:
    """The numbers of the figure, none of which are printed."""
    return (
        Result(
            "figure 2: area of the prior's ellipse over cloaking's", None, area_ratio(points), None
        ),
        *(
            Result(
                f"figure 2: move by output {j + 1} in stds of {name}",
                None,
                points.distance(j, M),
                None,
            )
            for name, M in (("the prior's noise", points.prior), ("cloaking", points.cloak))
            for j in (0, 1)
        ),
    )
