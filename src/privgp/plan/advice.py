"""What a careful reader would ask about a budget before it is spent."""

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


def _plural(unit: str) -> str:
    return "people" if unit == "person" else f"{unit}s"
