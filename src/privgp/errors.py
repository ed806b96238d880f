"""Errors that several rooms raise. Nothing is imported here, so that the command starts quickly."""


class TableError(ValueError):
    """What is wrong with a table, in a sentence that holds no private cell.

    Names of what may be declared stand between backticks: the command writes them as options.
    """
