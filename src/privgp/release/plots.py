"""Pictures of a released model, of a function and of a plan, for print and screen."""

from privgp.release.plots_function import plot_function
from privgp.release.plots_model import plot_model
from privgp.release.plots_plan import plot_plan, plot_strategy
from privgp.release.plots_style import save_figure

__all__ = ["plot_function", "plot_model", "plot_plan", "plot_strategy", "save_figure"]
