"""PrivateGPClassifier: a scikit-learn classifier that spends its budget once, in ``fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from privgp.gp.functionals import Functionals
from privgp.gp.inference.linked import learn_linked, linked_posterior
from privgp.gp.links import LINKS, Link
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.threads import one_thread
from privgp.ledger.account import Account
from privgp.models.files import columns_to_fit, columns_to_plan
from privgp.models.kept import names_of
from privgp.models.kinds.records import fit_records, measured_functions, plan_records
from privgp.models.kinds.updates import measure_again, measure_new, stages
from privgp.models.planned import PublicRows, accepted, bound, from_inputs_alone, named
from privgp.models.promise import OF_LABELS, Told, simulation
from privgp.models.published import FIRST, Further, Published
from privgp.models.regressor import check_coverage
from privgp.models.spending import SpendingClassifier, charge
from privgp.models.tables import any_column, located, rows_at, rows_to_fit, rows_to_plan
from privgp.plan.build import Question, make_plan
from privgp.plan.classes.declared import Classes, declared_classes
from privgp.plan.classes.latent import LABEL_VARIANCE, behind
from privgp.plan.parameters import LabelParameters
from privgp.plan.plan import Plan
from privgp.privacy.budget import check_budget
from privgp.privacy.stages import Stages
from privgp.question.parameters import check_values
from privgp.question.rules import LABELS, check_rules
from privgp.release.classes import Probabilities, functions_of, outcomes_of
from privgp.release.file import LabelContents
from privgp.release.several import OneClass, OutputContents
from privgp.types import Array, Bounds, Column, RandomState, Table
from privgp.vault.checks.roles import check_order
from privgp.vault.labels import values_of
from privgp.vault.measure import measure
from privgp.vault.validate import person_ids

NO_OBSERVATION = (
    "observation=True is for numbers and counts: a new label is one of the classes, and predict_proba has "
    "the probability of each (docs/proofs/classes.md)."
)


@dataclass(eq=False, repr=False)
class PrivateGPClassifier(Published, SpendingClassifier):
    """Gaussian-process classification of private labels, (epsilon, delta)-private.

    Parameters
    ----------
    kernel : scikit-learn kernel of the function behind the link, as for ``PrivateGPRegressor``. None:
        Matern 5/2 with a lengthscale from the public X, plus a constant.
    classes : all labels that may occur, two or more, chosen without looking at them: all numbers or
        all text. A label that is none of them is counted in no class, and nobody is told.
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
    mechanism : the noise distribution: "gaussian", on weighted sums of all labels; "laplace", on sums
        over groups of inputs, which needs no delta; or "auto", the one with the smaller expected error.
    columns : what inputs are, by their names, as for ``PrivateGPRegressor``.
    ledger : the Account of these data, which every fit charges before it draws; None: none.
    random_state : for simulations only: reproducible, ordinary noise, and a guarantee that says so.
        None: the noise that protects.

    Attributes
    ----------
    classes_ : the declared classes, sorted; columns of probabilities are in their order.
    guarantee_, plan_, kernel_ : what was promised and planned, and the most plausible kernel (on the
        inputs as its ``input_map_`` maps them) of the function behind the link.
    measurements_ : the sums of every class; of two classes, of the second. All are of one mechanism.

    """

    _told: ClassVar[Told] = OF_LABELS
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
    mechanism: str = "auto"
    columns: Mapping[Any, Any] | None = None
    ledger: Account | None = None
    random_state: RandomState = None

    @from_inputs_alone
    def plan(self, X: Table, *, groups: Column | None = None) -> Plan:
        """What a ``fit`` on these inputs would measure and how accurate the probability of a class
        would be. Spends nothing.

        With ``protect="records"`` X may be the number of records: nothing else of it is used.
        """
        check_order(X=X, groups=groups)
        names, asked = names_of(X), self
        X, groups, _ = columns_to_plan(self, X, groups)
        if self.protect != "records":
            asked, X = rows_to_plan(self, X)
        return named(asked._plan(X, groups), names)

    def fit(
        self, X: Table, y: Column, *, groups: Column | None = None, plan: Plan | None = None
    ) -> Self:
        """Measure once, with noise, and learn from the measurement. The only call that spends.

        ``groups``: person identifiers, public unless records are protected; all rows of one person
        are protected together.
        ``plan``: what ``plan(X, groups=groups)`` returned, which is then measured and not made again. A plan
        made for anything else is refused before anything is spent.
        """
        self._check_given(X, y, groups)
        X, y, groups, _ = columns_to_fit(self, X, y, groups)
        if self.protect == "records":
            column = any_column(X)
            rows = len(column) if isinstance(column, Sized) else 0
            y = values_of(y, declared_classes(self.classes), rows)
            fit_records(self, X, y, groups, plan)
            return self
        X = rows_to_fit(self, X)
        y = values_of(y, declared_classes(self.classes), len(X))
        public = PublicRows.of(X, person_ids(groups, len(X)))
        plan = self._plan_for(public, groups, plan)
        charge(self, self._promised(plan), public.inputs, rows=len(X))
        measurement = measure(y, plan.y_bounds, plan.strategy, plan.noise, simulation(self))
        del y
        self._release(plan, measurement)
        return self

    def update(self, X: Table, y: Column, *, groups: Column | None = None) -> Self:
        """Measure labels of new people and learn from all measurements together, as
        ``PrivateGPRegressor.update`` does. Spends their budget."""
        self._check_given(X, y, groups)
        X, y, groups, _ = columns_to_fit(self, X, y, groups)
        measure_new(self, X, y, groups, {})
        return self

    def refine(
        self,
        X: Table,
        y: Column,
        epsilon: float,
        delta: float = 0.0,
        *,
        groups: Column | None = None,
    ) -> Self:
        """Measure the rows of an earlier ``fit`` or ``update`` again, with this further budget, as
        ``PrivateGPRegressor.refine`` does. ``guarantee_`` then states the total."""
        self._check_given(X, y, groups)
        X, y, groups, _ = columns_to_fit(self, X, y, groups)
        measure_again(self, X, y, epsilon, delta, groups, {})
        return self

    @from_inputs_alone
    def stages(
        self, X: Table, *, shares: Sequence[float] = (0.5, 0.5), groups: Column | None = None
    ) -> Stages:
        """How to divide (epsilon, delta) between a ``fit`` and refinements of the same rows, as
        ``PrivateGPRegressor.stages`` does. Reads no label and spends nothing."""
        return stages(self, X, shares, groups)

    def predict_proba(self, X: Table) -> Array:
        """The probability of every class at the rows of X, (rows, classes). Free, deterministic."""
        X = self._asked_at(X)
        with one_thread():
            return self.release_.at(X)

    def predict(self, X: Table) -> Any:
        """The most probable class at every row of X."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def interval(
        self, X: Table, coverage: float = 0.9, *, observation: bool = False
    ) -> tuple[Array, Array]:
        """The ends (low, high), each (rows, classes), of an interval that holds the probability of a
        class, the function behind it, with this coverage. Free, like ``predict``. ``observation``: refused,
        as a new label is no number."""
        if observation:
            raise ValueError(NO_OBSERVATION)
        levels = check_coverage(coverage)
        X = self._asked_at(X)
        with one_thread():
            return self.release_.between(X, levels)

    def plot(
        self,
        ax: Any = None,
        *,
        figure: Any = None,
        output: str | None = None,
        label: Any = None,
        points: Any = None,
    ) -> Any:
        """The probability of a class as a curve, map or slices with its 90% interval.

        ``label``: of the class, the last one unless given; ``output``: the name of the label; None: as
        ``name_output`` said; ``points``: rows to mark.
        """
        from privgp.models.picture import on_paper, released_probability
        from privgp.pictures.curves import plot_released

        check_is_fitted(self)
        label = self.classes_[-1] if label is None else label
        places = np.flatnonzero(self.classes_ == label)
        if len(places) != 1:
            raise ValueError("label must be one of the classes.")
        output = self._called("") if output is None else output
        released = released_probability(self, int(places[0]), output)
        return plot_released(on_paper(self, released, points), ax, figure)

    def _asked_at(self, X: Any) -> Array:
        check_is_fitted(self)
        return rows_at(self, X)

    def _plan(self, X: Any, groups: Any, exposure: Any = None, earlier: Any = None) -> Plan:
        """``earlier``: what was measured before, if anything."""
        if self.protect == "records":
            return plan_records(self, X, groups, earlier)
        question = self._question(X.shape[1])
        people = person_ids(groups, len(X))
        with one_thread():
            plan = make_plan(X, question, self._budget(), people, earlier)
        return bound(self, plan, PublicRows.of(X, people))

    def _plan_for(self, rows: PublicRows, groups: Any, plan: Any) -> Plan:
        """A new plan for these rows, or the given one if it was made for them."""
        if plan is None:
            return self._plan(rows.count if rows.inputs is None else rows.inputs, groups)
        self._question(rows.columns)
        return accepted(self, plan, rows)

    def _checked(self, y: Any, rows: int) -> Array:
        """Labels of a further measurement, to be handed to the vault."""
        return values_of(y, declared_classes(self.classes), rows)

    def _exposed_by(self, exposure: Any, rows: int) -> dict[int, Array]:
        """Labels are counted over nothing."""
        return {}

    def _made_up(self, rows: int) -> Any:
        """Labels to rehearse with."""
        return np.full(rows, declared_classes(self.classes)[0])

    def _parameters(self, columns: int) -> LabelParameters:
        return LabelParameters.of(self.get_params(deep=False) | located(self), columns)

    def _question(self, columns: int) -> Question:
        """The parameters, checked, for this many input columns."""
        check_budget(self.epsilon, self.delta, pure=True)
        declared_classes(self.classes)
        given = self.get_params(deep=False)
        check_values(given)
        check_rules(given, LABELS)
        check_budget(self.epsilon, self.delta, pure=self.mechanism != "gaussian")
        asked = self._parameters(columns)
        return Question(y_bounds=(0.0, 1.0), **asked.asks())

    def _release(self, plan: Plan, measurement: Measurement, further: Further = FIRST) -> None:
        """All that follows from a measurement: post-processing. ``further``: the measurements that it
        is added to."""
        functions = functions_of(len(declared_classes(self.classes)))
        held: Sequence[OneClass | None] = self._held if further.before else (None,) * functions
        measured = self._note(plan, measurement, functions, further)
        with one_thread():
            found, priors = measured_functions(plan, measured)
            self.functionals_ = found[0]
            default = self._asked.kernel is None
            latent = tuple(behind(self._link, each, default=default) for each in priors)
            each = zip(found, measured, held, strict=True)
            self._answer_by(
                [OneClass(m, self._models_for(f, m, latent, h), f.fixed_gram) for f, m, h in each]
            )

    def _models_for(
        self,
        functionals: Functionals,
        measurement: Measurement,
        priors: tuple[Prior, ...],
        held: OneClass | None,
    ) -> tuple[Hyperparameters, ...]:
        """The weighted models of the function of one class; ``held``: what was released of it before."""
        if self.hyperparameters == "fixed":
            return (priors[0].start,) if held is None else held.models
        return learn_linked(outcomes_of(functionals, measurement, self._link), priors)

    @property
    def _link(self) -> Link:
        return LINKS[self._asked.link]

    def _answer_by(self, held: list[OneClass]) -> None:
        """Answer from what was measured and learned of every class."""
        self.classes_ = np.array(self._asked.classes)
        functions = (
            linked_posterior(
                outcomes_of(c.functionals(self.functionals_), c.measurement, self._link), c.models
            )
            for c in held
        )
        self.release_, self._held = Probabilities(tuple(functions), self._link), tuple(held)
        self.kernel_ = held[0].models[0].kernel
        self.input_map_ = held[0].models[0].input_map

    def _contents(self, parts: dict[str, Any]) -> LabelContents:
        """What a file of this model holds, ``parts`` of which every model has."""
        first, *further = self._held
        return LabelContents(
            measurement=first.measurement,
            spent=self._spent,
            models=first.models,
            at_targets=None,
            noise_variance=LABEL_VARIANCE,
            further=tuple(further),
            **parts,
        )

    def _part_contents(self) -> OutputContents:
        """What a file of several outcomes holds of this one."""
        first, *further = self._held
        return OutputContents(
            measurement=first.measurement,
            functionals=self.functionals_,
            models=first.models,
            noise_variance=LABEL_VARIANCE,
            further=tuple(further),
            spent=self._spent,
        )

    def _answer_from(self, held: LabelContents | OutputContents) -> None:
        """Answer as the model did whose file held this."""
        self._hold(held.spent, tuple(each.measurement for each in held.every_class))
        self._answer_by(list(held.every_class))

    def _answers(self, X: Any, coverage: float, observation: bool) -> dict[str, Array]:
        """What a table of predictions holds of this label, by the names of its columns."""
        probabilities = self.predict_proba(X)
        low, high = self.interval(X, coverage)
        found = {"label": self.classes_[np.argmax(probabilities, axis=1)]}
        for name, of_all in (("probability", probabilities), ("low", low), ("high", high)):
            each = zip(self.classes_, of_all.T, strict=True)
            found |= {f"{name}_{label}": column for label, column in each}
        return found

    def _classes(self) -> Classes:
        """The declared classes."""
        return declared_classes(self.classes)

    def _pictured(self, output: str, observation: bool) -> Any:
        """What a picture among those of several outcomes shows: the probability of the last class."""
        from privgp.models.picture import released_probability

        return released_probability(self, len(self.classes_) - 1, output)
