"""Pictures of a released model and of a plan, for print and screen."""

from privgp.release.plots_model import plot_model
from privgp.release.plots_plan import plot_plan, plot_strategy
from privgp.release.plots_style import save_figure

__all__ = ["plot_model", "plot_plan", "plot_strategy", "save_figure"]
