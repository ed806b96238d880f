"""What a careful reader would ask about a budget before it is spent."""

from typing import Any

import numpy as np

from privgp.tables.roundness import are_round

MUCH = 10.0


def advice(epsilon: float, delta: float, people: int, unit: str = "row") -> list[str]:
    """Sentences about a budget that protects little. ``people``: how many rows or people there are;
    ``unit``: which of them."""
    sentences = []
    if epsilon >= MUCH:
        sentences.append(
            f"Epsilon {epsilon:g} promises little: an attacker may become exp({epsilon:g}) times more "
            "certain of one value."
        )
    if delta * people >= 1.0:
        one_over = "1" if people == 1 else f"1/{people:,}"
        sentences.append(
            f"Delta {delta:g} is not below {one_over}, one over the number of {_plural(unit)}: a "
            f"mechanism that published one whole {unit} could keep this promise."
        )
    return sentences


def budget_advice(plan: Any) -> list[str]:
    """The same about the budget of a plan."""
    people, whole = plan.strategy.people, bool(getattr(plan.strategy, "whole_people", False))
    count = plan.rows if people is None else int(people.max()) + 1
    unit = "person" if whole or people is not None else "row"
    return advice(plan.epsilon, plan.promised_delta, count, unit)


def bounds_advice(asked: Any) -> list[str]:
    """A sentence about every pair of declared bounds that looks read off the data. It depends on the
    declared numbers alone. ``asked``: the parameters of a plan."""
    pairs = [] if asked.labels() is not None else np.reshape(asked.y_bounds, (-1, 2)).tolist()
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
        f"The {name}{numbers} look read off the data, which tells private values: declare round numbers "
        "that are known without looking."
    )


def _plural(unit: str) -> str:
    return "people" if unit == "person" else f"{unit}s"
