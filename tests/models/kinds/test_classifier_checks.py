"""scikit-learn's own checks of a classifier, whose classes the test declares for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from privgp import PrivateGPClassifier

EXPECTED = {
    "check_classifiers_regression_target": "wants numbers refused for the values that they have, "
    "while what is refused here never depends on a private value",
}


@dataclass(eq=False, repr=False)
class Declaring(PrivateGPClassifier):
    """Declares the classes that a check has simulated, as its data holder would."""

    def fit(self, X: Any, y: Any, *, groups: Any = None, plan: Any = None) -> Declaring:
        self._check_call(X, y)
        settings = {**self.get_params(deep=False), "classes": np.unique(np.asarray(y))}
        fitted = vars(PrivateGPClassifier(**settings).fit(X, y, groups=groups, plan=plan))
        vars(self).update({name: fitted[name] for name in fitted if name not in settings})
        return self


@parametrize_with_checks(
    [Declaring(hyperparameters="fixed", random_state=0)],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)
