"""The facts that the certificate of a fitted regressor states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privgp.release.certificate import Facts

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor


def facts_of(model: PrivateGPRegressor) -> Facts:
    plan, strategy = model.plan_, model.plan_.strategy
    release: Any = model.release_
    at_targets = plan.unbiased is not None
    return Facts(
        guarantee=model.guarantee_,
        noise=plan.noise,
        functionals=model.functionals_,
        date=model.released_at_,
        y_bounds=plan.y_bounds,
        x_bounds=plan.x_bounds,
        names=tuple(map(str, getattr(model, "feature_names_in_", ()))),
        rows=strategy.rows,
        people=None if strategy.people is None else int(strategy.people.max()) + 1,
        distinct_inputs=strategy.distinct_inputs,
        measured=int(strategy.size),
        kernel=str(model.kernel_),
        noise_variance=float(model.noise_variance_),
        models=1 if at_targets else len(release.components),
        learned=model.hyperparameters == "learned" and not at_targets,
        chosen_by=vars(model).get("chosen_by_"),
        released="values at the targets" if at_targets else "a function of the inputs",
    )
