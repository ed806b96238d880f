"""Private records with labels of several classes: the lemmas by brute force, and how sums are read."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from privgp.plan.bins.bins import Bins, HalvedBins
from privgp.plan.features import Features
from privgp.plan.strategy import noise_of
from privgp.vault.measure import exact

EDGES = (np.zeros(1), np.ones(1), (4,))
LABELS = (0.0, 1.0, 2.0, -1.0, 7.0)  # two places that are no class


def bins_of(kind: type[Bins], matrix: np.ndarray, classes: int, rows: int = 1) -> Bins:
    return kind(*EDGES, rows, matrix, 0.0, classes=classes)


def added(strategy, place, label):
    return exact(strategy, (np.array([[place]]), np.array([label])), (0.0, 1.0))


def unit_columns(rng, rows: int = 3) -> np.ndarray:
    B = rng.standard_normal((rows, 4))
    return B / np.linalg.norm(B, axis=0)


@pytest.mark.parametrize("seed", range(5))
def test_no_pair_of_records_moves_weighted_sums_of_labels_further_than_the_bound(seed):
    bins = bins_of(Bins, unit_columns(np.random.default_rng(seed)), 3)
    records = [added(bins, *each) for each in product(bins.centres()[:, 0], LABELS)]
    moved = [np.linalg.norm(a - b) for a, b in product(records, repeat=2)]
    gram = bins.matrix.T @ bins.matrix
    assert max(moved) == pytest.approx(np.sqrt(2.0 * (1.0 + max(0.0, -gram.min()))))
    assert max(moved) <= bins.sensitivity() <= max(moved) * (1.0 + 1e-12)


def test_no_pair_of_records_moves_plain_bins_of_labels_by_more_than_two():
    bins = bins_of(HalvedBins, np.eye(4), 3)
    records = [added(bins, *each) for each in product(bins.centres()[:, 0], LABELS)]
    moved = [np.abs(a - b).sum() for a, b in product(records, repeat=2)]
    assert max(moved) == pytest.approx(2.0)
    assert 2.0 <= bins.sensitivity() <= 2.0 * (1.0 + 1e-12)


@pytest.mark.parametrize("weight", [0.3, np.sqrt(0.5), 1.0, np.sqrt(2.0)])
def test_no_pair_of_features_and_labels_moves_further_than_the_bound(weight):
    """Unit vectors of every product, and labels at the corners of the simplex, and in its middle."""
    features = Features(
        np.zeros(2), np.ones(2), 1.0, np.ones((1, 2)), np.ones((2, 1)), 1, weight, 0.0, classes=3
    )
    angles, most = np.linspace(0.0, np.pi, 241), 0.0
    corners = [*(np.eye(3) - 1 / 3) / np.sqrt(2 / 3), np.zeros(3)]
    for angle, v, w in product(angles, corners, corners):
        a, b = np.array([1.0, 0.0]), np.array([np.cos(angle), np.sin(angle)])
        gram = weight * (np.outer(a, a) - np.outer(b, b))
        most = max(
            most, np.hypot(np.linalg.norm(gram), np.linalg.norm(np.kron(v, a) - np.kron(w, b)))
        )
    assert most <= features.sensitivity()
    assert most >= 0.999 * features.sensitivity()


@pytest.mark.parametrize("kind", [Bins, HalvedBins])
@pytest.mark.parametrize("classes", [3, 7])
def test_counts_and_classes_are_read_back_with_uncorrelated_noise_of_the_stated_size(kind, classes):
    rng = np.random.default_rng(classes)
    bins = bins_of(kind, np.eye(4), classes, rows=50)
    X, codes = rng.uniform(size=(50, 1)), rng.integers(-1, classes, 50).astype(float)
    noise = noise_of(bins, 1.0, 1e-5)
    read = bins.read(exact(bins, (X, codes), (0.0, 1.0)), noise, 0.5)
    index = bins.of(X)
    np.testing.assert_allclose(read.counts, np.bincount(index, minlength=4), atol=1e-12)
    for place, values in enumerate(np.split(read.values, classes)):
        share = np.where(codes < 0, 1.0 / classes, codes == place)  # of none, what tells nothing
        wanted = np.bincount(index, share - 1.0 / classes, minlength=4)
        np.testing.assert_allclose(values, wanted, atol=1e-12)
    assert read.centre == 1.0 / classes
    # what every measured number adds to the sums of one class and to the counts, exactly
    unit = np.eye(bins.size)
    sums = np.array([bins.sums_and_counts(each)[0][:4] for each in unit]).T
    counts = np.array([bins.sums_and_counts(each)[1] for each in unit]).T
    np.testing.assert_allclose(sums @ sums.T, bins.sum_std(1.0) ** 2 * np.eye(4), atol=1e-12)
    np.testing.assert_allclose(counts @ counts.T, bins.count_std(1.0) ** 2 * np.eye(4), atol=1e-12)
    np.testing.assert_allclose(sums @ counts.T, 0.0, atol=1e-12)
    assert read.noise_std == pytest.approx(noise.std * np.sqrt(1.0 - 1.0 / classes))


def test_two_classes_as_a_simplex_are_what_two_classes_are():
    rng = np.random.default_rng(0)
    X, codes = rng.uniform(size=(30, 1)), rng.integers(-1, 2, 30).astype(float)
    u = np.where(codes < 0, 0.5, codes)
    for kind in (HalvedBins, Bins):
        simplex, number = bins_of(kind, np.eye(4), 2, 30), bins_of(kind, np.eye(4), 1, 30)
        read = [
            bins.read(exact(bins, (X, y), (0.0, 1.0)), noise_of(bins, 1.0, 1e-5), 0.5)
            for bins, y in ((simplex, codes), (number, u))
        ]
        np.testing.assert_allclose(read[0].values[4:], read[1].values, atol=1e-12)
        np.testing.assert_allclose(read[0].counts, read[1].counts, atol=1e-12)
        assert read[0].noise_std == pytest.approx(read[1].noise_std, rel=1e-6)
        stds = [bins.count_std(noise_of(bins, 1.0, 1e-5).std) for bins in (simplex, number)]
        assert stds[0] == pytest.approx(stds[1], rel=1e-6)


def test_labels_of_several_classes_have_no_energy():
    """Its bound is for outputs in [-1, 1], and places of labels are not."""
    for kind in (Bins, HalvedBins):
        bins = kind(*EDGES, 5, np.eye(4), 0.1, classes=3)
        for refused in (bins.check, bins.sensitivity):
            with pytest.raises(ValueError, match="no energy"):
                refused()


def test_people_add_averages_of_points_of_the_simplex():
    bins = bins_of(HalvedBins, np.eye(4), 3, 2).of_people()
    X, codes, whose = (
        np.array([[0.1], [0.9], [0.1]]),
        np.array([0.0, 2.0, 1.0]),
        np.array([0, 0, 1]),
    )
    blocks = exact(bins, (X, codes, whose), (0.0, 1.0)).reshape(3, 4)
    np.testing.assert_allclose(blocks, [[0.5, 0, 0, 0], [1.0, 0, 0, 0], [0, 0, 0, 0.5]])


def test_features_of_classes_are_read_back_with_the_stated_noise():
    rng = np.random.default_rng(0)
    places, matrix = rng.uniform(size=(9, 2)), rng.standard_normal((2, 9))
    features = Features(
        np.zeros(2), np.ones(2), 0.3, places, matrix, 40, np.sqrt(0.5), 0.0, classes=3
    )
    X, codes = rng.uniform(size=(40, 2)), rng.integers(-1, 3, 40).astype(float)
    noise = noise_of(features, 1.0, 1e-5)
    read = features.read(exact(features, (X, codes), (0.0, 1.0)), noise, 0.5)
    phi = features.at(X)
    np.testing.assert_allclose(read.gram, phi.T @ phi, atol=1e-9)
    for place, values in enumerate(np.split(read.values, 3)):
        share = np.where(codes < 0, 1.0 / 3.0, codes == place)
        np.testing.assert_allclose(values, phi.T @ (share - 1.0 / 3.0), atol=1e-12)
    unit = np.array([features.sums_and_counts(each)[0][:2] for each in np.eye(6)]).T
    np.testing.assert_allclose(unit @ unit.T, features.sum_std(1.0) ** 2 * np.eye(2), atol=1e-12)
    assert read.noise_std == pytest.approx(noise.std * (1.0 - 1.0 / 3.0))
