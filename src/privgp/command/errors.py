"""How the command stops: one sentence on the error stream, and an exit code."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from privgp.question.parameters import TABLE

LONGEST = 600


def option_name(name: str) -> str:
    """The option of an argument of this name."""
    return "--" + name.replace("_", "-")


# Arguments that are no parameters of a release.
OTHERS = """domain noise_std sensitivity dominance extra_noise n_paths threshold vote smoothing label_noise
    loss_bounds max_points coverage exposure groups output inputs delimiter encoding date_format decimal_comma
    decimal_point dates categories numbers share low smallest largest"""
# What the library calls its arguments, and the options they come from.
OPTIONS = (
    {
        each.name: (*each.options, option_name(each.name))[0]
        for each in TABLE
        if len(each.options) < 2
    }
    | {name: option_name(name) for name in OTHERS.split()}
    | {"sample_weight": "--weights"}
)
# How the library's sentences mention arguments.
LEFT_OUT = re.compile(r"([Ll])eave (\w+)=None")
SET_TO = re.compile(r"\b(\w+)='(\w+)'")
COMPOUND = re.compile(r"\b[a-z]+_[a-z_]+\b")
QUOTED = re.compile(r"`(\w+)(?:='(\w+)')?`")


def in_options(text: str) -> str:
    """A text of the library with its `names` as options."""

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        return f"{OPTIONS[name]} {value or ''}".rstrip() if name in OPTIONS else found[0]

    return QUOTED.sub(option, text)


def is_number(word: str) -> bool:
    """Whether a word of a line is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


class Refusal(Exception):
    """Bad usage or bad input: nothing was done."""

    code = 2


def refuse_options(context: typer.Context, names: Sequence[str], where: str) -> None:
    """Refuse options, by the names of their parameters, that were given where they would be ignored."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise Refusal(f"--{name.replace('_', '-')} does not go with {where}: leave it out.")


class Failure(Exception):
    """Something went wrong that the arguments do not explain."""

    code = 1


def refusal(problem: Exception, **options: str) -> Refusal:
    """What the library refuses, in the command's words: ``y_bounds must`` is ``--bounds must``, and
    ``protect='records'`` is ``--protect records``."""
    sentence, *_ = [*in_options(str(problem)).strip().splitlines(), "This cannot be computed."]
    names = OPTIONS | options
    sentence = LEFT_OUT.sub(lambda m: f"{m[1]}eave {names.get(m[2], m[2])} out", sentence)
    sentence = SET_TO.sub(lambda m: f"{names[m[1]]} {m[2]}" if m[1] in names else m[0], sentence)
    sentence = COMPOUND.sub(lambda m: names.get(m[0], m[0]), sentence)
    name, space, rest = sentence.partition(" ")
    name = names.get(name, name[:1].upper() + name[1:])
    return Refusal(f"{name}{space}{rest}" if rest.endswith(".") else f"{name}{space}{rest}.")


@contextmanager
def refuse_on(sentence: str, *problems: type[Exception]) -> Iterator[None]:
    """Refuse with this sentence where one of the problems comes up; its own text is never told."""
    try:
        yield
    except problems:
        raise Refusal(sentence) from None


def printable(text: str) -> str:
    """Text that any terminal can show as it is: no control characters, no broken letters."""
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return shown.encode("utf-8", "backslashreplace").decode("utf-8")


def one_line(text: str) -> str:
    """Printable text on one line that is not too long."""
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "..."


def plural(count: int, thing: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def stop_phrase(problem: BaseException) -> str:
    """The start of a sentence about a stop half-way; never the problem's own text."""
    return "Interrupted" if isinstance(problem, KeyboardInterrupt) else "Failed"
