"""Estimators whose fitted state is private and kept by a custodian, who asks it."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from privgp.models.published import SpendsAtFit, seeds
from privgp.models.rows.tables import numbers_only
from privgp.privacy.guarantee import Guarantee
from privgp.publish import Receipt
from privgp.question.rules import check_bounds
from privgp.storage.archive import check_target
from privgp.storage.codec import Codec
from privgp.storage.state_file import FORM
from privgp.types import Array
from privgp.vault.states.kept import COPIED, Kept


class KeptEstimator(SpendsAtFit, BaseEstimator):  # type: ignore[misc]
    """What functions and paths have in common: they ask what the vault keeps, and its file."""

    _kept: Kept
    y_bounds: Sequence[float] | None
    _CODEC: ClassVar[Codec]

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the private state to the new ``.private-state`` file ``path``, and keep it up to date there."""
        check_is_fitted(self)
        self._kept.save(path)

    @classmethod
    def load_state(cls, path: str | os.PathLike[str]) -> Self:
        """Continue with the state file ``path``, which is kept up to date."""
        kept = Kept.load(path, cls._CODEC)
        made = cls(**kept.contents.parameters())
        made._take(kept)
        return made

    @property
    def points_answered_(self) -> int:
        """How many points have an answer; through inducing inputs they are not counted."""
        return len(self._kept.contents.draws.points)

    @property
    def points_left_(self) -> float:
        """How many more may be asked for; infinite through inducing inputs."""
        return self._kept.contents.most - self.points_answered_

    def points_unanswered(self, X_new: object) -> int:
        """How many points have no answer yet. Through inducing inputs all points have one.

        Parameters
        ----------
        X_new : array (rows, inputs)
            The points.

        Returns
        -------
        int

        """
        check_is_fitted(self)
        return self._kept.count_new(validate_data(self, X_new, reset=False, dtype=np.float64))

    def _ask(self, X_new: object) -> Array:
        check_is_fitted(self)
        numbers_only(self, X_new)
        return self._kept.ask(validate_data(self, X_new, reset=False, dtype=np.float64))

    def _prepare(
        self, X: object, y: object, state: str | os.PathLike[str] | None
    ) -> tuple[Self, int | None]:
        """An estimator to try the data on, so that a fit that is refused changes nothing; a seed."""
        self._check_call(X, y)
        if state is not None:
            check_target(state, overwrite=False, form=FORM)
        return clone(self), *seeds(self)

    def _take(self, kept: Kept) -> None:
        """Become what is kept, after any answer about what was kept before."""
        c, former = kept.contents, getattr(self, "_kept", kept)
        with former.at_rest():
            self.n_features_in_ = c.model.columns
            self.__dict__.pop("feature_names_in_", None)
            if c.names is not None:
                self.feature_names_in_ = np.array(c.names, dtype=object)
            self.guarantee_ = c.guarantee if c.stated is None else c.stated
            self._kept = kept

    def _rehearsal_outputs(self, rows: int) -> Array:
        """Outputs to rehearse with, in the middle of their bounds."""
        return np.full(rows, np.mean(check_bounds("y_bounds", self.y_bounds)))

    def _state(self, guarantee: Guarantee, receipt: Receipt | None, chosen_by: str) -> None:
        """State the guarantee and the charge of a search that this model was chosen by."""
        self._kept.state(guarantee)
        self.guarantee_ = guarantee
        self._keep_receipt(receipt)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_kept")

    def __getstate__(self) -> Any:
        if hasattr(self, "_kept"):
            raise TypeError(COPIED)
        return super().__getstate__()
