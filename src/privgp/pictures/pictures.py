"""Pictures of a released model, of a function and of a plan, for print and screen."""

from privgp.pictures.functions import plot_function
from privgp.pictures.models import plot_model
from privgp.pictures.plans import plot_plan, plot_strategy
from privgp.pictures.style import save_figure

__all__ = ["plot_function", "plot_model", "plot_plan", "plot_strategy", "save_figure"]
