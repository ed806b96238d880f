"""Why a request is refused: a status and one sentence, which depends on no private value."""

from collections.abc import Iterator
from contextlib import contextmanager


class Refused(Exception):
    """The request is refused, and nothing was spent."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


def absent() -> Refused:
    """The same for what does not exist and for what somebody may not see."""
    return Refused(404, "There is nothing here for this key.")


def first_line(problem: Exception) -> str:
    """What the library refuses, as one sentence."""
    lines = str(problem).strip().splitlines()
    return (lines[0][:1].upper() + lines[0][1:])[:600] if lines else "This cannot be computed."


@contextmanager
def explain(*kinds: type[Exception]) -> Iterator[None]:
    """Refuse what the library refuses, in its words, where these are about public things alone."""
    try:
        yield
    except kinds as problem:
        raise Refused(422, first_line(problem)) from None
