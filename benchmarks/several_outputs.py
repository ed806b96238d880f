"""Several outputs together or one by one: ``python -m benchmarks.several_outputs [PICTURE]``.

With the name of a picture: what plans expect for 1 to 13 outputs. Without: errors measured on held-out rows: the depth
and the magnitude of earthquakes, and eight simulated outputs of 400 people. Simulated releases.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import brentq

from benchmarks.tasks import BESIDE
from privgp import PrivateGPRegressor
from privgp.pictures import style
from privgp.privacy.budget import gaussian_multiplier
from privgp.types import Array

EPSILON, DELTA = 1.0, 1e-5
COUNTS = (1, 2, 3, 5, 8, 13)
RELEASES = 8
LOOKS = {
    "one by one, Gaussian noise, ε / K each (dashed)": (style.BLACK, "x", "--"),
    "one by one, ε / K each (squares)": (style.VERMILION, "s", "-"),
    "together, Laplace noise (same)": (style.VERMILION, "s", ":"),
    "together, Gaussian noise (dotted)": (style.SKY, "^", ":"),
    "together, as planned (dots)": (style.BLUE, "o", "-"),
}


def composed_epsilon(count: int) -> float:
    """The epsilon of each of so many Gaussian releases that are (EPSILON, DELTA)-private together."""
    wanted = np.sqrt(count) * gaussian_multiplier(EPSILON, DELTA)
    return float(brentq(lambda e: gaussian_multiplier(e, DELTA) - wanted, 1e-4, EPSILON))


def one_by_one(bounds: Sequence[Any], **settings: Any) -> list[PrivateGPRegressor]:
    return [PrivateGPRegressor(y_bounds=pair, **settings) for pair in bounds]


def together(bounds: Sequence[Any], **settings: Any) -> PrivateGPRegressor:
    return PrivateGPRegressor(y_bounds=bounds, **{"epsilon": EPSILON, "delta": DELTA, **settings})


def planned_errors(count: int, X: Array) -> list[float]:
    """The expected error of one of so many outputs, as a share of its bounds, in the order of LOOKS."""
    part: dict[str, Any] = {"y_bounds": (0, 1), "epsilon": EPSILON / count, "delta": DELTA / count}
    split = [PrivateGPRegressor(**part, mechanism=law) for law in ("gaussian", "auto")]
    errors = [one.plan(X).expected_error() for one in split]
    for law in ("laplace", "gaussian", "auto"):
        bounds = [(0, 1)] * count if count > 1 else (0, 1)
        plan = together(bounds, mechanism=law).plan(X)
        errors.append(float(np.ravel(plan.expected_error())[0]))
        print(count, law, f"{errors[-1]:.4f}", plan.noise.law, flush=True)
    return errors


def picture(path: Path) -> None:
    X = np.linspace(0, 1, 200)[:, None]
    errors = 100 * np.array([planned_errors(count, X) for count in COUNTS])
    figure = style.new_figure(3.4)
    panel = figure.subplots()
    for column, (label, (colour, mark, line)) in zip(errors.T, LOOKS.items(), strict=True):
        panel.plot(COUNTS, column, color=colour, marker=mark, ls=line, ms=4, label=label)
    panel.set_xscale("log")
    panel.set_xticks(COUNTS, [str(count) for count in COUNTS])
    panel.minorticks_off()
    panel.set_ylim(bottom=0.0)
    panel.grid(alpha=0.3, lw=0.5)
    labels = "outputs of every person (K)", "expected error, % of the bounds' width"
    style.set_labels(panel, *labels, room=30)
    style.set_title(
        figure,
        f"Planned together, many outputs have smaller errors\nPlans for 200 people; all their outputs are protected with {style.budget_text(EPSILON, DELTA)}",
    )
    style.label_curves(panel)
    path.write_bytes(style.figure_bytes(figure, path.suffix))


def quakes() -> tuple[Array, Array, list[tuple[float, float]]]:
    table = pl.read_csv(BESIDE / "suite" / "quakes.csv").cast(pl.Float64)
    columns = table.select("lat", "long").to_numpy(), table.select("depth", "mag").to_numpy()
    return *columns, [(0.0, 700.0), (4.0, 7.0)]


def eight() -> tuple[Array, Array, list[tuple[float, float]]]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (530, 1))
    phases = np.arange(8) / 8
    Y = 0.5 + 0.3 * np.sin(2 * np.pi * (X + phases)) + rng.normal(0, 0.1, (530, 8))
    return X, Y, [(0.0, 1.0)] * 8


def errors_of(models: Any, X: Array, Y: Array, Z: Array, T: Array) -> Array:
    """Root mean square error of every output on the held-out rows (Z, T)."""
    if isinstance(models, list):
        pairs = zip(models, Y.T, strict=True)
        predicted = np.column_stack([model.fit(X, y).predict(Z) for model, y in pairs])
    else:
        predicted = models.fit(X, Y).predict(Z)
    return np.asarray(np.sqrt(np.mean((predicted - T) ** 2, axis=0)))


def measured(X: Array, Y: Array, bounds: list[tuple[float, float]]) -> dict[str, Array]:
    """Errors as shares of the bounds' widths, the root mean square over releases and outputs."""
    found: dict[str, list[Array]] = {}
    count, widths = len(bounds), np.ptp(bounds, axis=1)
    half: dict[str, Any] = {"epsilon": EPSILON / count, "delta": DELTA / count}
    gaussian: dict[str, Any] = {
        "epsilon": composed_epsilon(count),
        "delta": DELTA,
        "mechanism": "gaussian",
    }
    for release in range(RELEASES):
        order = np.random.default_rng(release).permutation(len(X))
        test, train = np.split(order, [len(X) // 4])
        seeded: dict[str, Any] = {"random_state": release}
        tried = {
            "together": together(bounds, **seeded),
            "epsilon / K each": one_by_one(bounds, **half, **seeded),
            "Gaussian, composed": one_by_one(bounds, **gaussian, **seeded),
        }
        for name, models in tried.items():
            errors = errors_of(models, X[train], Y[train], X[test], Y[test]) / widths
            found.setdefault(name, []).append(errors)
        print({name: np.round(100 * np.mean(e), 2) for name, e in found.items()}, flush=True)
    return {name: 100 * np.sqrt(np.mean(np.square(e), axis=0)) for name, e in found.items()}


def main() -> None:
    if len(sys.argv) > 1:
        picture(Path(sys.argv[1]))
        return
    for name, load in (("earthquakes", quakes), ("eight outputs", eight)):
        for method, errors in measured(*load()).items():
            print(
                f"{name}, {method}: {', '.join(f'{e:.2f}%' for e in errors)} of the bounds' width"
            )


if __name__ == "__main__":
    main()
