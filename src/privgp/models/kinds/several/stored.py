"""A release of several outputs to and from what its file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privgp.models.kept import names_of
from privgp.models.kinds.several.model import answer_by, models_of
from privgp.models.tables import remember
from privgp.release.certificate import certificate
from privgp.release.several import JointContents, OutputContents

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor


def joint_contents(model: PrivateGPRegressor) -> JointContents:
    """What a file holds of a fitted model."""
    outputs = [
        OutputContents(one.measurements_[0], one.functionals_, one._models, one.noise_variance_)
        for one in model._each
    ]
    return JointContents(
        parameters=model._asked,
        columns=int(model._each[0].functionals_.nodes.shape[1]),
        names=names_of(model),
        output_names=model.output_names_,
        guarantee=model.guarantee_,
        outputs=tuple(outputs),
        plan_summary=model.plan_summary_,
        certificate=certificate(model),
    )


def answer_from(model: PrivateGPRegressor, contents: JointContents, answered: Any) -> None:
    """Let a model predict as the one that was saved. ``answered``: lets the model of one output answer
    by its contents."""
    c, model.inputs_ = contents, contents.parameters.columns
    each = models_of(model)
    remember(model, c.names, c.columns)
    model.guarantee_ = c.guarantee
    for one, held in zip(each, c.outputs, strict=True):
        one.measurements_ = (held.measurement,)
        one.functionals_ = held.functionals
        answered(one, held)
    answer_by(model, each, c.output_names)
    model.released_at_ = c.certificate["date"]
    model.loaded_ = c
