"""A plan in words: what it measures, how accurate that is, and what a careful reader would ask about
its budget before it is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.gp.priors import lengthscales
from privgp.plan.accuracy import rough_error
from privgp.plan.part import Part, table_rows, unit_of
from privgp.privacy.noise import GAUSSIAN, LAPLACE, LAWS
from privgp.tables.kinds import are_round

if TYPE_CHECKING:
    from privgp.plan.plan import Plan

MUCH = 10.0
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


def advice(epsilon: float, delta: float, people: int, unit: str = "row") -> list[str]:
    """Sentences about a budget that protects little. ``people``: how many rows or people there are;
    ``unit``: which of them."""
    sentences = []
    if epsilon >= MUCH:
        sentences.append(
            f"Epsilon {epsilon:g} guarantees little: an attacker may become exp({epsilon:g}) times more "
            "certain of one value."
        )
    if delta * people >= 1.0:
        one_over = "1" if people == 1 else f"1/{people:,}"
        sentences.append(
            f"Delta {delta:g} is not below {one_over}, one over the number of {_plural(unit)}: a "
            f"mechanism that published one whole {unit} could keep this guarantee."
        )
    return sentences


def budget_advice(plan: Plan) -> list[str]:
    """The same about the budget of a plan."""
    count = plan.strategy.people_count or table_rows(plan.parts[0])
    return advice(plan.epsilon, plan.promised_delta, count, unit_of(plan.parts[0]).noun)


def bounds_advice(asked: Any) -> list[str]:
    """A sentence about every pair of declared bounds that looks read off the data. It depends on the
    declared numbers alone. ``asked``: the parameters of a plan."""
    pairs = [pair for own in asked.parts() for pair in own.outcome().bounds]
    told = [("y_bounds", pair) for pair in pairs if not are_round(*pair)]
    if asked.columns is not None:  # then x_bounds are those of its coordinates
        odd = [column for column in asked.columns.columns if not column.has_round_bounds]
        told += [(f"x_bounds of {column.names[0]!r}", None) for column in odd]
    elif asked.x_bounds is not None:
        pairs = np.reshape(asked.x_bounds, (-1, 2)).tolist()
        told += [("x_bounds", pair) for pair in pairs if not are_round(*pair)]
    return [_looks_read(name, pair) for name, pair in told]


def _looks_read(name: str, pair: Any) -> str:
    numbers = "" if pair is None else f" {pair[0]:.12g} and {pair[1]:.12g}"
    return (
        f"The {name}{numbers} look as if they were read from the data, which would reveal private values: "
        "declare round numbers that are known without looking."
    )


def _plural(unit: str) -> str:
    return "people" if unit == "person" else f"{unit}s"
