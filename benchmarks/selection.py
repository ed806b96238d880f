"""Private choice of hyperparameters on the heights of the !Kung, by simulated releases. Prints JSON.

``python -m benchmarks.selection [--data DIR] [--releases N]``. The papers name the ranges (lengthscales
3 to 81 years, noise 1.1 to 12.7 cm) and not what lies between; so 4 and 7 lengthscales, 4 noise levels.
Total epsilon 1, delta 0.01; RMSE over all rows, root mean square over releases with seeds 0, 1, ...
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from benchmarks.accuracy import BESIDE, kung
from privgp import PrivateGPRegressor, PrivateGridSearchCV

KERNELS = {"Matern 5/2": Matern(9.0, nu=2.5), "RBF": RBF(9.0)}


def search(kernel: str, steps: int, method: str, seed: int) -> PrivateGridSearchCV:
    signal = ConstantKernel(25.0**2, "fixed")  # a quarter of the bounds' width, as the default has
    model = PrivateGPRegressor(signal * KERNELS[kernel] + signal, y_bounds=(75, 175))
    grid = {
        "kernel__k1__k2__length_scale": np.geomspace(3.0, 81.0, steps),
        "noise_variance": np.geomspace(1.1, 12.7, 4) ** 2,
    }
    return PrivateGridSearchCV(
        model, grid, epsilon=1.0, delta=0.01, method=method, random_state=seed
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=BESIDE)
    parser.add_argument("--releases", type=int, default=100)
    given = parser.parse_args()
    X, y = kung(given.data)
    found = []
    runs = [("measurement", kernel, steps) for kernel in KERNELS for steps in (4, 7)]
    runs += [("permute-and-flip", kernel, 4) for kernel in KERNELS]
    for method, kernel, steps in runs:
        label = f"{method}, {kernel}, {steps} lengthscales"
        squares = [
            np.mean((search(kernel, steps, method, seed).fit(X, y).predict(X) - y) ** 2)
            for seed in track(range(given.releases), label, console=Console(stderr=True))
        ]
        found.append({"search": label, "rmse": round(float(np.sqrt(np.mean(squares))), 3)})
        print(found[-1], file=sys.stderr)
    print(json.dumps({"releases": given.releases, "results": found}, indent=2))


if __name__ == "__main__":
    main()
