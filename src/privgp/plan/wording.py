"""A plan in words: what it measures, and how accurate that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privgp.gp.priors import lengthscales
from privgp.plan.accuracy import rough_error
from privgp.plan.part import Part
from privgp.privacy.noise import GAUSSIAN, LAPLACE, LAWS

if TYPE_CHECKING:
    from privgp.plan.plan import Plan

MOST_SCALES = 4  # that are listed


def describe(plan: Plan) -> str:
    """A few sentences about a plan before it is carried out."""
    unknown = ""
    if len(plan.parts) == 1 and plan.parts[0].learns:
        least, most = plan.parts[0].error_range()
        unknown = (
            f"It is {least:.4g} to {most:.4g} for 90% of plausible functions, because it is not known before "
            "measuring how rough the function is and whether it changes abruptly.\n"
        )
        rough = rough_error(plan.parts[0])
        if rough is not None:
            unknown += (
                f"It is about {rough:.4g} for a function that is rough everywhere, such as temperature by "
                "hour or price by place.\n"
            )
    unneeded = plan.parts[0].outcome.unneeded or plan.parts[0].kind.unneeded
    return f"{plan.summary()}\n{unknown}Nothing has been spent: a plan needs {unneeded}."


def summarize(plan: Plan) -> str:
    """What remains true after the release."""
    if len(plan.parts) == 1:
        return _summarize_part(plan, plan.parts[0])
    rows, count = plan.parts[0].kind.describe_rows(plan.parts[0]), len(plan.parts)
    lines = [
        f"Budget: {plan.budget}, for {count} outputs of one person together.",
        f"{rows}; {plan.strategy.size} numbers are measured.",
        describe_choice(plan),
        *(_describe_part(*each) for each in zip(plan.names, plan.parts, strict=True)),
    ]
    return "\n".join(lines)


def _summarize_part(plan: Plan, part: Part) -> str:
    declared = part.outcome.describe_declaration()
    changed = ""
    if part.max_change is not None:
        changed = f"; {part.outcome.describe_change(part.max_change)}"
    averaged = "under the given hyperparameters"
    if part.learns:
        averaged = f"averaged over smooth and rough functions{_scales_of(part)}"
    return (
        f"Budget: {plan.budget}; {declared}{changed}{part.kind.domain(part)}.\n"
        f"{part.kind.describe_measurement(part)}.\n{_describe_stages(part)}"
        f"Privacy noise at the targets: {part.weighted(part.noise_std):.4g} (root mean square).\n"
        f"Expected error of the released function there{part.kind.condition}: "
        f"{part.expected_error():.4g}, {averaged}."
    )


def _scales_of(part: Part) -> str:
    """Over which distances the function is assumed to change; nothing where inputs have no units."""
    scales = lengthscales(part.start.kernel)
    if len(scales) != part.targets.shape[1]:
        return ""
    kinds = None if part.asked is None else part.asked.columns
    if kinds is None:
        each = " and ".join(f"{scale:.3g}" for scale in scales)
        told = [f"{each} along the {'input' if len(scales) == 1 else 'inputs'}"]
    else:  # once along a place, and not along levels
        firsts = np.cumsum([0, *kinds.widths[:-1]])
        told = [
            f"{scales[first]:.3g} along {' and '.join(column.names)}"
            for first, column in zip(firsts, kinds.columns, strict=True)
            if column.apart != "|"
        ]
    if not told or len(scales) > MOST_SCALES:
        return ""
    return f" (lengthscales from a quarter to twice {', '.join(told)})"


def _describe_stages(part: Part) -> str:
    """What each of two stages measures and spends; nothing where there is one."""
    if part.residuals is None:
        return ""
    given = part.residuals.budgets(part.strategy.law, part.epsilon, part.delta)
    first, second = (f"epsilon = {epsilon:.4g}" for epsilon, _ in given)
    added = (
        f", neighbours added up to {len(set(groups))}" if (groups := part.residuals.groups) else ""
    )
    return (
        f"Two stages: {first} measures these sums{added}. Then {second} measures how far outputs lie "
        f"above or below the curve learned from them, clipped to {part.residuals.reach:g} learned "
        "standard deviations. The expected error is an average over how much outputs scatter.\n"
    )


def _describe_part(name: str, part: Part) -> str:
    spread = ""
    if part.learns:
        least, most = part.error_range()
        spread = f" ({least:.4g} to {most:.4g} over 90% of the prior)"
    return (
        f"{name}, {part.outcome.within()}: privacy noise at the targets "
        f"{part.weighted(part.noise_std):.4g}, expected error {part.expected_error():.4g}{spread}."
    )


def describe_choice(plan: Plan) -> str:
    """Which noise distribution it is, what several outputs cost with it, and why it was taken."""
    times = [1.0 / a for a in plan.factors]
    each = f"{times[0]:.3g}" if np.ptp(times) < 1e-9 else " and ".join(f"{t:.3g}" for t in times)
    kind = plan.noise.describe()
    text = kind if len(times) == 1 else f"{kind} {each} times as large as for one output alone"
    if plan.compared is None:
        return f"{text}; no other noise was compared."
    other, worse = LAWS[plan.compared.law], 100.0 * (plan.compared.error - 1.0)
    why = {
        GAUSSIAN: "Gaussian noise grows with the root of the number of outputs only",
        LAPLACE: "Laplace noise grows with the number of outputs, but starts smaller",
    }[plan.noise.law]
    expected = f"would have {worse:.0f}% more error" if worse >= 1 else "is hardly worse"
    return f"{text}; {other.law.capitalize()} noise {expected}: {why}."
