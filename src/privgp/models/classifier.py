"""PrivateGPClassifier: a scikit-learn classifier that spends its budget once, in ``fit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from privgp.gp.arithmetic import one_thread
from privgp.ledger.account import Account
from privgp.models.published import SpendingClassifier
from privgp.models.rows.estimator import RowsModel
from privgp.plan.build import Question
from privgp.plan.parameters import LabelParameters, Parameters
from privgp.privacy.budget import check_budget
from privgp.question.outcomes import Label, Outcome, check_classes
from privgp.question.parameters import check_values
from privgp.question.rules import LABELS
from privgp.release.queries.quantities import check_coverage
from privgp.release.release import Release
from privgp.types import Array, Bounds, Column, RandomState, Table, UserData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NO_OBSERVATION = (
    "observation=True is for numbers and counts: a new label is one of the classes, and predict_proba has "
    "the probability of each (docs/proofs/classes.md)."
)


@dataclass(eq=False, repr=False)
class PrivateGPClassifier(RowsModel, SpendingClassifier):
    """Gaussian-process classification of private labels, (epsilon, delta)-private.

    Parameters
    ----------
    kernel : scikit-learn kernel of the function behind the link, as for ``PrivateGPRegressor``. None:
        Matern 5/2 with a lengthscale from the public X, plus a constant.
    classes : all labels that may occur, two or more, chosen without looking at them: all numbers or
        all text. A label that is none of them is silently ignored.
    x_bounds : (low, high), or one such pair per input, for ``protect="records"``: public bounds of the
        inputs. Inputs outside are moved to them.
    epsilon, delta : the budget that one ``fit`` spends.
    protect : "outputs": labels are private; or "records": inputs and labels are.
    targets : points where the release should be accurate; None: the rows of X.
    hyperparameters : "learned" from the private measurement at no cost and averaged over, or "fixed".
    inducing : the number of inputs that carry the function, or points whose nearest inputs do. None: all
        inputs, or the most telling 512 of them. With ``protect="records"``: the largest number of bins
        or features.
    link : from the function to a probability: "logit" or "probit".
    prevalence : about how common the last of two classes, in sorted order, is: a public guess, made without
        looking at the labels, such as a published rate. Plans are then made for such probabilities. None:
        nothing is assumed.
    mechanism : the noise distribution: "gaussian", on weighted sums of all labels; "laplace", on sums
        over groups of inputs, which needs no delta; or "auto", the one with the smaller expected error.
    columns : what inputs are, by their names, as for ``PrivateGPRegressor``.
    max_weight : with ``protect="records"`` and sample weights: the largest weight that counts, declared without
        looking at the data. Larger ones are lowered to it. None: records have no weights.
    ledger : the Account of these data, which every fit charges before it draws; None: none.
    random_state : for simulations only: reproducible, ordinary noise, and a guarantee that states this.
        None: the noise that protects.

    Attributes
    ----------
    classes_ : the declared classes, sorted; columns of probabilities are in their order.
    guarantee_, plan_, kernel_ : what was guaranteed and planned, and the most plausible kernel (on the
        inputs as its ``input_map_`` maps them) of the function behind the link.
    measurements_ : the sums of every class; of two classes, of the second. All are of one mechanism.
    release_, functionals_ : what predicts, and which sums of the function were measured.
    released_at_ : when the budget was spent, in UTC.
    output_ : the name of the output, and its units, where they are known.
    n_features_in_, feature_names_in_ : the number of columns of X, and their names in a table.
    inputs_ : the column kinds, where not all inputs are numbers; else None.

    """

    _declares: ClassVar[type[Parameters]] = LabelParameters
    kernel: Kernel | None = None
    _: KW_ONLY
    classes: Column | None = None
    x_bounds: Bounds | None = None
    epsilon: float = 1.0
    delta: float = 1e-6
    protect: str = "outputs"
    targets: Table | None = None
    hyperparameters: str = "learned"
    inducing: int | Table | None = None
    link: str = "logit"
    prevalence: float | None = None
    mechanism: str = "auto"
    columns: Mapping[Any, Any] | None = None
    max_weight: float | None = None
    ledger: Account | None = None
    random_state: RandomState = None

    def predict_proba(self, X: Table) -> Array:
        """The probability of every class: free and deterministic.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.

        Returns
        -------
        array (rows, classes)
            In the order of ``classes_``; every row sums to 1.

        """
        rows = self._locate(X)
        with one_thread():
            return np.asarray(self.release_.at(rows))

    def predict(self, X: Table) -> Any:
        """The most probable class at every row of X.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.

        Returns
        -------
        array (rows,)
            Labels as they were declared.

        """
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def interval(
        self,
        X: Table,
        coverage: float = 0.9,
        *,
        observation: bool = False,
        simultaneous: bool = False,
    ) -> tuple[Array, Array]:
        """Intervals of the probability of every class. Free, like ``predict``.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        coverage : float, default 0.9
            The probability that an interval contains the probability of its class.
        observation : bool
            Refused, because a new label is not a number.
        simultaneous : bool, default False
            Whether intervals contain the probabilities at all rows of X at once.

        Returns
        -------
        low, high : array (rows, classes)
            The ends.

        """
        if observation:
            raise ValueError(NO_OBSERVATION)
        if simultaneous:
            return self._band(X, coverage, observation)
        levels, rows = check_coverage(coverage), self._locate(X)
        with one_thread():
            low, high = self.release_.between(rows, levels)
        return low, high

    def plot(
        self,
        ax: Axes | None = None,
        *,
        figure: Figure | None = None,
        output: str | None = None,
        label: object = None,
        points: UserData = None,
    ) -> Figure:
        """Draw the probability of a class as a curve, map or slices with its 90% interval.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        figure : matplotlib Figure, optional
            Where to draw. Default: a new figure.
        output : str, optional
            The name of the label on the picture. Default: as ``name_output`` set it.
        label : object, optional
            The class. Default: the last one.
        points : table, optional
            Rows to mark.

        Returns
        -------
        matplotlib Figure

        """
        from privgp.models.picture import on_paper, probability_picture
        from privgp.pictures.curves import plot_release

        check_is_fitted(self)
        label = self.classes_[-1] if label is None else label
        places = np.flatnonzero(self.classes_ == label)
        if len(places) != 1:
            raise ValueError("label must be one of the classes.")
        output = self._released.label("") if output is None else output
        released = probability_picture(self._released, int(places[0]), output)
        return plot_release(on_paper(self, released, points), ax, figure)

    def _outcome_rules(self) -> str:
        return LABELS

    def _rehearsal_outputs(self, rows: int) -> Any:
        """Labels to rehearse with."""
        return np.full(rows, check_classes(self.classes)[0])

    def _question(self, columns: int) -> Question:
        """The parameters, checked, for this many input columns."""
        check_budget(self.epsilon, self.delta, pure=True)
        check_classes(self.classes)
        check_values(self.get_params(deep=False))
        self._check_together()
        check_budget(self.epsilon, self.delta, pure=self.mechanism != "gaussian")
        return Question.of(self._parameters(columns))

    def _hold(self, release: Release) -> Self:
        super()._hold(release)
        asked: Any = release.parameters
        self.classes_ = np.array(asked.classes)
        return self

    def _outcome(self) -> Outcome:
        """The declared classes."""
        return self._declared or Label(*check_classes(self.classes))
