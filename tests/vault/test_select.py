"""One of many: probabilities, refusals, and what the samplers guarantee."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers.shared.choices import exponential_probabilities, permute_and_flip_probabilities
from privgp.privacy.selection import selection_scale
from privgp.vault import select
from privgp.vault.scores import check_validation, make_loss, score_sensitivity
from privgp.vault.select import EXPONENTIAL, PERMUTE_AND_FLIP, choose, choose_by_validation
from tests.models.looking_up import Column, records

METHODS = (EXPONENTIAL, PERMUTE_AND_FLIP)
LAWS = (exponential_probabilities, permute_and_flip_probabilities)
utilities = st.lists(st.floats(-20, 20), min_size=1, max_size=6).map(np.array)


def by_enumeration(u, scale):
    """Permute-and-flip as its authors wrote it: walk a random order, keep each with its probability."""
    keep = np.exp(-(u.max() - u) / scale)
    total = np.zeros(len(u))
    orders = list(permutations(range(len(u))))
    for order in orders:
        left = 1.0 / len(orders)
        for i in order:
            total[i] += left * keep[i]
            left *= 1.0 - keep[i]
    return total


@given(utilities, st.floats(0.1, 30))
def test_permute_and_flip_has_the_probabilities_of_its_definition(u, scale):
    np.testing.assert_allclose(
        permute_and_flip_probabilities(u, scale), by_enumeration(u, scale), atol=1e-12
    )


@pytest.mark.parametrize("law", LAWS)
@given(u=utilities, data=st.data())
def test_neighbours_are_chosen_from_with_probabilities_within_a_factor_e_to_the_epsilon(
    law, u, data
):
    moves = data.draw(st.lists(st.floats(-1, 1), min_size=len(u), max_size=len(u)))
    epsilon = data.draw(st.floats(0.1, 3))
    scale = selection_scale(1.0, epsilon)
    ratio = law(u + np.array(moves), scale) / law(u, scale)
    assert np.all(ratio <= np.exp(epsilon) * (1 + 1e-9))


@given(utilities, st.floats(0.1, 30))
def test_permute_and_flip_expects_no_less_than_the_exponential_mechanism(u, scale):
    flip, exp = (law(u, scale) for law in (LAWS[1], LAWS[0]))
    assert flip @ u >= exp @ u - 1e-9
    assert flip.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("law", LAWS)
def test_a_scale_20_percent_too_small_breaks_the_promise(law):
    """Two equal candidates, one pushed up and the other down: the worst neighbours of both."""
    epsilon, u, v = 1.0, np.array([0.0, 100.0]), np.array([1.0, 99.0])
    ratio = law(v, 0.8 * selection_scale(1.0, epsilon)) / law(u, 0.8 * selection_scale(1.0, 1.0))
    assert ratio.max() > np.exp(epsilon)
    ratio = law(v, selection_scale(1.0, epsilon)) / law(u, selection_scale(1.0, epsilon))
    assert ratio.max() == pytest.approx(np.exp(epsilon), rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_generous_budget_finds_the_best(method):
    u = np.array([3.0, 1.0, 7.0, 6.0])
    assert {choose(method, u, 1e-3, 100.0) for _ in range(20)} == {2}
    assert choose(method, u, 1e-3, 100.0, np.random.default_rng(0)) == 2
    assert choose(method, np.array([5.0]), 1.0, 1.0) == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [[], [np.nan], [np.inf, 1.0], [[1.0]]])
def test_utilities_that_are_not_finite_are_refused(method, bad):
    for rng in (None, np.random.default_rng(0)):
        with pytest.raises(ValueError, match="not finite; nothing was released"):
            choose(method, np.array(bad), 1.0, 1.0, rng)


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, np.nan, np.inf])
def test_a_sensitivity_that_is_none_is_refused(sensitivity):
    with pytest.raises(ValueError, match="sensitivity"):
        choose(PERMUTE_AND_FLIP, np.zeros(2), sensitivity, 1.0)


def test_opendp_promises_the_epsilon_of_this_scale():
    """The library's own accounting at scale 2 Delta / epsilon."""
    import opendp.prelude as dp

    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    for sensitivity, epsilon in ((1.0, 1.0), (3.7, 0.2), (0.013, 8.0)):
        scale = selection_scale(sensitivity, epsilon)
        chosen = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)
        assert 0.999 * epsilon <= chosen.map(sensitivity) <= epsilon
        # an epsilon-bounded range is epsilon^2 / 8 in concentrated divergence
        drawn = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
        assert 0.998 * epsilon**2 / 8 <= drawn.map(sensitivity) <= epsilon**2 / 8


@pytest.mark.parametrize("method", METHODS)
def test_a_choice_by_validation_records_tells_an_index_and_spends_what_it_was_given(
    method, monkeypatch
):
    validation = check_validation(*records([0.2, 0.9, 0.5], 50), make_loss("accuracy"))
    models = [Column(j) for j in range(3)]
    assert choose_by_validation(method, models, validation, 1e4) == 1
    seen = []
    monkeypatch.setattr(select, "choose", lambda *given: seen.append(given) or 2)
    assert choose_by_validation(method, models, validation, 0.7) == 2
    ((name, given, sensitivity, epsilon, rng),) = seen
    assert (name, sensitivity, epsilon, rng) == (method, score_sensitivity(50), 0.7, None)
    np.testing.assert_allclose(given, [-0.8, -0.1, -0.5])
