"""Several measurements: a year of batches, and budgets spent in two stages.

``python -m benchmarks.updates year FUNCTION`` compares 12 updates at epsilon 1 with one release of all
rows at epsilon 1/sqrt(12). ``refine FUNCTION`` compares a fit and a refinement with one release at the
composed budget. ``picture`` draws docs/pictures/updates.svg. Simulated noise, fresh data sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.functions import BOUNDS, TRUTHS, Truth
from privgp import PrivateGPRegressor
from privgp.pictures import style
from privgp.types import Array

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "updates.svg"
MONTHS, ROWS, DELTA = 12, 60, 1e-5
SHOWN = (1, 4, 12)


def batches(truth: Truth, seed: int) -> list[tuple[Array, Array]]:
    """The rows of every month, all of different people."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(MONTHS):
        X = truth.draw(rng, ROWS)
        out.append((X, np.clip(truth.f(X) + rng.normal(0.0, truth.noise(X)), *BOUNDS)))
    return out


def year(truth: Truth, seed: int) -> Iterator[PrivateGPRegressor]:
    """The model after each month."""
    first, *later = batches(truth, seed)
    model = PrivateGPRegressor(y_bounds=BOUNDS, epsilon=1.0, delta=DELTA, random_state=seed)
    yield model.fit(*first)
    for month in later:
        yield model.update(*month)


def error(model: PrivateGPRegressor, truth: Truth) -> float:
    """Mean square over the range."""
    places = truth.places()
    return float(np.mean(np.square(model.predict(places) - truth.f(places))))


def coverage(model: PrivateGPRegressor, truth: Truth) -> float:
    low, high = model.interval(truth.places())
    f = truth.f(truth.places())
    return float(np.mean((low <= f) & (f <= high)))


def compare_year(truth: Truth, seed: int) -> tuple[float, float, float]:
    """Mean squares of the updates and of one release; coverage of the former."""
    *_, last = year(truth, seed)
    X, y = (np.concatenate(parts) for parts in zip(*batches(truth, seed), strict=True))
    once = PrivateGPRegressor(
        y_bounds=BOUNDS, epsilon=1.0 / np.sqrt(MONTHS), delta=DELTA, random_state=1000 + seed
    )
    return error(last, truth), error(once.fit(X, y), truth), coverage(last, truth)


def compare_refined(truth: Truth, seed: int) -> tuple[float, float, float]:
    """Mean squares of a fit with a refinement and of one release; coverage of the former."""
    X, y = truth.sample(np.random.default_rng(seed))
    asked: dict[str, Any] = {"y_bounds": BOUNDS, "mechanism": "gaussian"}
    model = PrivateGPRegressor(epsilon=1.0, delta=DELTA, random_state=seed, **asked)
    model.fit(X, y).refine(X, y, 1.0, DELTA)
    total = model.guarantee_
    once = PrivateGPRegressor(
        epsilon=total.epsilon, delta=total.delta, random_state=1000 + seed, **asked
    ).fit(X, y)
    return error(model, truth), error(once, truth), coverage(model, truth)


def picture(path: Path, seed: int = 0) -> None:
    """The curve and its band after some of the months."""
    truth = TRUTHS[0]
    places = truth.places()
    figure = style.new_figure(3.7, 9.0)
    budget = style.budget_text(1.0, DELTA)
    title = f"Mean height by age, updated every month with new people\nProtects each height with {budget}"
    style.set_title(figure, title, simulation=True)
    axes = figure.subplots(1, len(SHOWN), sharey=True)
    shown = [model for month, model in enumerate(_kept(truth, seed), 1) if month in SHOWN]
    for ax, month, (mean, low, high) in zip(axes, SHOWN, shown, strict=True):
        band = "90% interval of the function"
        ax.fill_between(places[:, 0], low, high, color=style.SKY, alpha=0.4, lw=0, label=band)
        ax.plot(places[:, 0], mean, color=style.BLUE, label="released mean")
        ax.plot(
            places[:, 0], truth.f(places), "--", color=style.BLACK, lw=1, label="truth (simulated)"
        )
        after = f"after {month} month{'s' if month > 1 else ''}, {month * ROWS} people"
        style.set_title(ax, after)
        style.set_labels(ax, "age (years)", "height (cm)" if month == SHOWN[0] else "")
    axes[0].set_ylim(40, 200)
    style.legend([axes[0]], below=True, columns=3)
    path.write_bytes(style.figure_bytes(figure, path.suffix))


def _kept(truth: Truth, seed: int) -> Iterator[tuple[Array, Array, Array]]:
    """Mean and interval after each month, of a model that goes on changing."""
    places = truth.places()
    for model in year(truth, seed):
        yield model.predict(places), *model.interval(places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("year", "refine", "picture"))
    parser.add_argument("function", nargs="?", default="growth")
    parser.add_argument("--runs", type=int, default=6)
    asked = parser.parse_args()
    if asked.what == "picture":
        picture(PICTURE)
        return
    (truth,) = (each for each in TRUTHS if each.name == asked.function)
    compare = {"year": compare_year, "refine": compare_refined}[asked.what]
    found = []
    for seed in range(asked.runs):
        found.append(compare(truth, 4000 + seed))
        several, once, covered = np.mean(found, axis=0)
        ratio = np.exp(0.5 * np.mean(np.log([one / other for one, other, _ in found])))
        print(
            f"{truth.name}, {seed + 1} runs: several {several**0.5:.2f}, once {once**0.5:.2f}, "
            f"geometric mean of ratios {ratio:.2f}, coverage {covered:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
