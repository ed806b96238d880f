"""The picture of a plan shows what the plan expects and nothing where that is not known."""

from __future__ import annotations

import numpy as np

from privgp.plan.picture import PRIOR, plot_plan


class Expecting:
    """A plan of an unbiased release that expects an error from an epsilon of 0.1 on."""

    promised_delta, can_plan_again, learns = 1e-6, True, False
    unit = made_for = None
    error_unit = "in units of the output"
    rows = 30

    def __init__(self, epsilon: float = 1.0) -> None:
        self.epsilon = epsilon

    @property
    def parts(self) -> list[Expecting]:
        return [self]

    def at(self, epsilon: float) -> Expecting:
        if epsilon < 0.1:
            raise ValueError("no noise can be calibrated.")
        return Expecting(epsilon)

    def expected_error(self) -> float:
        return 0.5 + 1.5 / self.epsilon

    def error_range(self) -> tuple[float, float]:
        return 0.5, 3.0

    def error_without_privacy(self) -> float:
        return 0.5


def test_errors_that_are_not_known_leave_a_gap():
    figure = plot_plan(Expecting())
    epsilons, errors = figure.axes[0].lines[0].get_data()
    assert np.array_equal(np.isnan(errors), np.array(epsilons) < 0.1)
    assert np.isnan(errors).any()
    shown = [" ".join(text.get_text().split()) for text in figure.axes[0].texts]
    assert "planned again at every ε" in shown
    assert PRIOR not in shown
