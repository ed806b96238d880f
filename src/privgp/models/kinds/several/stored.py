"""A release of several outcomes to and from what its file holds."""

from __future__ import annotations

from typing import Any

from privgp.models.kept import names_of
from privgp.models.kinds.several.model import answer_by
from privgp.models.tables import remember
from privgp.release.certificate import stored
from privgp.release.several import JointContents


def joint_contents(model: Any) -> JointContents:
    """What a file holds of a fitted model."""
    return JointContents(
        parameters=model._asked,
        columns=int(model._each[0].functionals_.nodes.shape[1]),
        names=names_of(model),
        output_names=model.output_names_,
        guarantee=model.guarantee_,
        outputs=tuple(one._part_contents() for one in model._each),
        plan_summary=model.plan_summary_,
        certificate=stored(model),
    )


def answer_from(model: Any, contents: JointContents, answered: Any) -> None:
    """Let a model predict as the one that was saved. ``answered``: lets the model of one output answer
    by its contents."""
    c, model.inputs_ = contents, contents.parameters.columns
    each = model._alone()
    remember(model, c.names, c.columns)
    model.guarantee_ = c.guarantee
    for one, held, asked in zip(each, c.outputs, c.parameters.parts(), strict=True):
        one._asked, one.inputs_ = asked, model.inputs_
        one.functionals_ = held.functionals
        answered(one, held)
    answer_by(model, each, c.output_names)
    model.released_at_ = c.certificate["date"]
    model.loaded_ = c
