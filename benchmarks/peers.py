"""Against what people would use instead: same data, same budget, same run. Prints JSON.

``make bench-peers`` installs the peers into ``.venv-peers`` and runs this. A peer that did not
install is reported so. ``--quick`` runs 10 of dp4gp's 1,000 steps and fewer releases.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.metrics import log_loss

from benchmarks.accuracy import BESIDE, diabetes, kung, malaria
from privgp import PrivateGPClassifier, PrivateGPRegressor
from privgp.gp.smoothers import exact_smoother
from privgp.plan.designs.workload import design
from privgp.types import Array

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
TARGETS, ROWS = 100, 2000
EPSILON, DELTA = 1.0, 1e-5


def there(task: str, **problem: Any) -> dict[str, Any]:
    """Run a peer in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, **problem)
        side = ROOT / "benchmarks" / "peers_side.py"
        command = [str(PEERS), str(side), task, str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        except FileNotFoundError:
            return {"failed": "no .venv-peers: run make bench-peers"}
        except subprocess.CalledProcessError as error:
            return {"failed": error.stderr.strip().splitlines()[-1]}
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def smoother() -> Array:
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, size=(ROWS, 2))
    wanted = rng.uniform(0, 10, size=(TARGETS, 2))
    return exact_smoother(Matern(1.0, nu=2.5), 0.1, X, np.ones(ROWS), wanted).weights


def safe(M: Array, C: Array) -> Array:
    """The covariance scaled so that it hides every column of C, and no more."""
    return np.asarray(M * np.max(np.einsum("ij,ij->j", C, np.linalg.solve(M, C))))


def told(M: Array, C: Array) -> dict[str, float]:
    """What is compared: log det M, and the noise's root mean square at the targets."""
    M = safe(M, C)
    return {"logdet": float(np.linalg.slogdet(M)[1]), "noise": float(np.sqrt(np.trace(M) / len(M)))}


def designs(steps: int, limit: float) -> dict[str, Any]:
    C = smoother()
    out: dict[str, Any] = {"targets": TARGETS, "rows": ROWS}
    for objective in ("logdet", "trace"):
        runs = []
        for _ in range(3):
            start = time.perf_counter()
            found = design(C, objective)
            runs.append(time.perf_counter() - start)
        M = found.reconstruction @ found.reconstruction.T
        out[objective] = {"privgp": {"seconds": min(runs), "gap": found.gap, **told(M, C)}}
        solved = there("convex", C=C, objective=objective, gap=1e-3, limit=limit)
        if "v" in solved:
            G = (C * np.array(solved.pop("v"))) @ C.T
            if objective == "trace":
                values, vectors = np.linalg.eigh(G)
                G = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
            solved |= told(G, C) | {"times_slower": solved["seconds"] / min(runs)}
        out[objective]["cvxpy with SCS"] = solved
    peer = there("dp4gp", C=C, steps=steps)
    if "seconds" in peer:
        M = peer.pop("M")
        peer |= told(np.array(M), C) if M else {}
        peer["times_slower"] = peer["seconds"] / out["logdet"]["privgp"]["seconds"]
    out["logdet"]["dp4gp"] = peer
    return out


def rmse(predictions: Any, y: Array) -> float:
    return float(np.sqrt(np.mean((np.asarray(predictions) - y) ** 2)))


def accuracy(X: Array, y: Array, y_bounds: Any, x_bounds: Any, releases: int) -> dict[str, Any]:
    """RMSE at all rows, over many releases, at one epsilon (diffprivlib's delta is 0)."""
    settings = {"y_bounds": y_bounds, "epsilon": EPSILON, "delta": DELTA}
    ours = {}
    ways = {"outputs": {}, "records": {"protect": "records", "x_bounds": x_bounds}}
    for private, way in ways.items():
        ours[f"privgp, {private} private"] = rmse(
            [
                PrivateGPRegressor(**settings, **way, random_state=seed).fit(X, y).predict(X)
                for seed in range(releases)
            ],
            y,
        )
    kernel = ConstantKernel(1.0) * Matern(np.std(X, axis=0), nu=2.5) + WhiteKernel(0.1)
    start = time.perf_counter()
    plain = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    found: dict[str, Any] = {
        "releases": releases,
        **ours,
        "scikit-learn GP, not private": rmse(plain.predict(X), y),
        "scikit-learn GP seconds": time.perf_counter() - start,
    }
    start = time.perf_counter()
    PrivateGPRegressor(**settings, random_state=0).fit(X, y)
    found["privgp seconds"] = time.perf_counter() - start
    low, high = np.array(x_bounds, dtype=float).reshape(-1, 2).T
    for bins in (5, 10, 20):
        peer = there("diffprivlib", X=X, y=y, test=X, epsilon=EPSILON, y_bounds=y_bounds,
                     x_bounds=(low, high), bins=bins, releases=releases)  # fmt: skip
        if "failed" in peer:
            return found | {"diffprivlib": peer}
        found["diffprivlib linear regression"] = rmse(peer["linear"], y)
        found[f"diffprivlib means in {bins} bins of the first input"] = rmse(peer["binned"], y)
        found["versions"] = peer["versions"]
    return found


def loss(probabilities: Any, y: Array, classes: Any) -> float:
    """Log loss over all releases; no probability counts as less than one in a million."""
    least = np.maximum(np.asarray(probabilities, dtype=float), 1e-6)
    shares = least / least.sum(axis=-1, keepdims=True)
    return float(np.mean([log_loss(y, each, labels=classes) for each in shares]))


def labels(X: Array, y: Array, x_bounds: Any, releases: int) -> dict[str, Any]:
    """Log loss on a quarter of the rows, with pure epsilon for all; diffprivlib protects records."""
    order = np.random.default_rng(0).permutation(len(X))
    test, train = np.split(order, [len(X) // 4])
    classes, low_high = np.unique(y), np.array(x_bounds, dtype=float)
    settings: dict[str, Any] = {"classes": classes, "epsilon": EPSILON, "delta": 0.0}
    ways = {"labels": {}, "records": {"protect": "records", "x_bounds": x_bounds}}
    shares = np.bincount(np.searchsorted(classes, y[train])) / len(train)
    found: dict[str, Any] = {
        "releases": releases,
        "constant": loss([np.tile(shares, (len(test), 1))], y[test], classes),
    }
    for private, way in ways.items():
        if private == "records" and len(classes) > 2:
            continue
        found[f"privgp, {private} private"] = loss(
            [
                PrivateGPClassifier(**settings, **way, random_state=seed)
                .fit(X[train], y[train])
                .predict_proba(X[test])
                for seed in range(releases)
            ],
            y[test],
            classes,
        )
    peer = there("labels", X=X[train], y=y[train], test=X[test], epsilon=EPSILON,
                 x_bounds=low_high.T, releases=releases)  # fmt: skip
    if "failed" in peer:
        return found | {"diffprivlib": peer}
    found["diffprivlib logistic regression"] = loss(peer["logistic"], y[test], classes)
    found["diffprivlib naive Bayes"] = loss(peer["bayes"], y[test], classes)
    return found | {"versions": peer["versions"]}


def label_tasks(data: Path) -> dict[str, tuple[Array, Array, Any]]:
    """Inputs, labels and declared bounds of the inputs."""
    flowers, cells = load_iris(), load_breast_cancer()
    tasks = {
        "iris by sepal": (flowers.data[:, :2], flowers.target, ((4, 8), (2, 4.5))),
        "tumours by radius and texture": (cells.data[:, :2], cells.target, ((5, 30), (5, 40))),
    }
    if (data / "gambia_malaria.csv").exists():
        X, y = malaria(data)
        place = ((340_000, 630_000), (1_450_000, 1_520_000))
        tasks["malaria by place"] = X.astype(float), y.astype(int), place
    return tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data files")
    asked = parser.parse_args()
    releases = 5 if asked.quick else 50
    with Console(stderr=True).status("designs, beside dp4gp and a convex solver"):
        report: dict[str, Any] = {
            "designs": designs(10 if asked.quick else 1000, 60.0 if asked.quick else 600.0)
        }
    with Console(stderr=True).status("accuracy, beside diffprivlib"):
        report["diabetes"] = accuracy(
            *diabetes(asked.data), (25, 350), ((15, 45), (60, 135)), releases
        )
        try:
            X, y = kung(asked.data)
        except FileNotFoundError:
            report["kung"] = {"skipped": f"no data in {asked.data}"}
        else:
            report["kung"] = accuracy(X, y, (75, 175), (0, 90), releases)
    with Console(stderr=True).status("labels, beside diffprivlib"):
        for name, task in label_tasks(asked.data).items():
            report[name] = labels(*task, releases)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
