"""The report on private Bayesian optimisation, on a small surface."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.svm import SVC

from papers.optimisation import report as optimisation
from papers.optimisation.surfaces import digits_surface
from papers.shared.report import Request


@pytest.fixture(scope="module")
def small():
    return digits_surface(4, training=100)


def test_a_surface_holds_what_its_machines_predict(small):
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = images[order] / 16.0, labels[order]
    machine = SVC(C=small.costs[3], gamma=small.gammas[2]).fit(images[:100], labels[:100])
    assert np.mean(machine.predict(images[-898:]) == small.predictions[:, 14]) > 0.999
    assert small.accuracy[3, 2] == np.mean(small.predictions[:, 14] == labels[-898:])
    model = small.estimator().set_params(C=small.costs[3], gamma=small.gammas[2]).fit(None, None)
    assert np.array_equal(model.predict(small.predictions), small.predictions[:, 14])


def test_the_report_sets_the_methods_side_by_side(small, monkeypatch):
    monkeypatch.setattr(optimisation, "digits_surface", lambda *a: small)
    repeated = optimisation.repeated
    monkeypatch.setattr(
        optimisation, "repeated", lambda s, m, n, **k: repeated(s, m, min(n, 2), **k)
    )
    told: list[float] = []
    report = optimisation.run(Request(quick=True, progress=lambda share, doing: told.append(share)))
    assert report.name == "optimisation"
    assert told == sorted(told)
    assert told[-1] == 1.0
    values = {r.quantity: r for r in report.results}
    assert values["accuracy chosen without privacy"].default_method == small.accuracy.max()
    noise = values["std of the noise of the score (1)"]
    assert noise.papers_method > 100 * noise.default_method
    json.dumps([asdict(r) for r in report.results], allow_nan=False)
    assert [s.figure is not None for s in report.sections] == [True, True, False, False]
    assert all(text for section in report.sections for text in section.text)
