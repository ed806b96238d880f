"""PrivateFunction: the posterior mean as one noisy function, at any points, kept by the curator."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from privgp.gp.kernels.evaluate import variance
from privgp.gp.threads import one_thread
from privgp.models.function.common import parameters
from privgp.models.function.outputs import fit_outputs
from privgp.models.function.records import fit_records
from privgp.models.spending import SpendsAtFit
from privgp.plan.functions.outputs import FunctionModel
from privgp.plan.functions.records import RecordsModel
from privgp.plan.inputs.arguments import check_choice, check_inside
from privgp.storage.state_file import StateFile, check_new
from privgp.types import Array
from privgp.vault.states import function_file
from privgp.vault.states.drawing import Drawer, drawer_for
from privgp.vault.states.function_file import Contents
from privgp.vault.states.outputs import Draws, extended

BATCH = 1024


class PrivateFunction(SpendsAtFit, BaseEstimator):  # type: ignore[misc]
    """One (epsilon, delta)-private function over the whole space: ``f + c Delta G``, G ~ GP(0, k).

    It is drawn lazily, where it is asked for, so it needs the private outputs as long as it is
    asked: unlike a ``.privgp`` file it stays with the curator. Answers may be published.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y, fixed.
    noise_variance : variance of an output about the function (None: the kernel's WhiteKernel).
    y_bounds : (low, high), public bounds of the outputs, chosen without looking at them.
    epsilon, delta : the budget of the function, spent once for all points.
    sensitivity : "exact", or bounds that cost more noise: the papers' "infinity" and "nonnegative",
        and "varah", Varah's for kernel matrices with a dominant diagonal.
    dominance : declared least value of ``K_ii - sum |K_ij|``: with it the noise of "varah" depends
        on no input. None: that of X.
    inducing : a number of inducing inputs, chosen from X, or an array of them: the function is then
        that many numbers, and any number of points is free. None: at most 20,000 points.
    protect : "outputs" (X is public), or "records": inputs private too, at most 4,000 points.
    domain : with records, (low, high) of the inputs, or one pair per input, declared; questions
        outside are refused.
    random_state : for simulations only: ordinary noise, and a guarantee that says so.

    Attributes
    ----------
    sensitivity_ : d times the bound of the norm; ``noise_std_`` : std of the noise at a point, in
        units of y; ``guarantee_`` : what is promised, for all points together.

    """

    _file: StateFile | None
    _lock: threading.Lock

    def __init__(
        self,
        kernel: Any,
        noise_variance: float | None,
        *,
        y_bounds: Any,
        epsilon: float,
        delta: float,
        sensitivity: str = "exact",
        dominance: float | None = None,
        inducing: Any = None,
        protect: str = "outputs",
        domain: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.y_bounds = y_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.sensitivity = sensitivity
        self.dominance = dominance
        self.inducing = inducing
        self.protect = protect
        self.domain = domain
        self.random_state = random_state

    def fit(self, X: Any, y: Any, state: str | os.PathLike[str] | None = None) -> Self:
        """Take the data. The first release spends the budget, for all points there will ever be.

        ``state``: a new file, ending in ``.private-state``, in which every draw is kept before its
        answer is given. Every fit is another function, with a budget of its own.
        """
        if y is None:
            raise ValueError("PrivateFunction requires y to be passed, but the target y is None.")
        check_choice("protect", self.protect, ("outputs", "records"))
        if state is not None:
            check_new(state)
        columns = clone(self)  # a fit that is refused leaves the former function as it was
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31))
        fit = fit_records if self.protect == "records" else fit_outputs
        contents = fit(self, X, y, columns, seed)
        self._take(
            contents, None if state is None else StateFile.create(state, contents, function_file)
        )
        return self

    def release(self, X_new: Any) -> Array:
        """The function at these points, (points,), the same for ever; kept before it is returned."""
        check_is_fitted(self)
        return self._answer(validate_data(self, X_new, reset=False, dtype=np.float64))

    def _answer(self, X: Array) -> Array:
        if self._process != os.getpid():
            raise RuntimeError(
                "this function belongs to another process, which would draw it otherwise: "
                "give it a state file and load that with load_state."
            )
        X = X + 0.0  # no negative zeros
        with self._lock, one_thread():
            model = self._contents.model
            if isinstance(model, RecordsModel):
                check_inside(X, model.domain)
            if isinstance(model, FunctionModel) and model.nodes is not None:
                return self._through_nodes(model, X)
            return self._lazily(X)

    def plot(self, ax: Any = None, *, figure: Any = None, output: str = "output") -> Any:
        """The function at a grid's points as a figure; see privgp.models.picture."""
        from privgp.models.picture import released_function
        from privgp.pictures.curves import plot_released

        check_is_fitted(self)
        shown = released_function(self._contents, self._answer, output)
        return plot_released(shown, ax, figure)

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the private state to a new ``.private-state`` file, and keep it up to date there."""
        check_is_fitted(self)
        with self._lock:
            if self._file is not None:
                raise RuntimeError(
                    f"this function is kept in {self._file.path!r}: a second file would fall behind."
                )
            self._file, self._unsaved = StateFile.create(path, self._contents, function_file), False

    @classmethod
    def load_state(cls, path: str | os.PathLike[str]) -> Self:
        """Go on with the function of a state file, which is kept up to date."""
        file, c = StateFile.open(path, function_file)
        function = cls(**parameters(c))
        function._take(c, file)
        return function

    @property
    def points_answered_(self) -> int:
        """How many points have an answer; through inducing inputs they are not counted."""
        return len(self._contents.points)

    @property
    def points_left_(self) -> float:
        """How many more may be asked for; infinite through inducing inputs."""
        c = self._contents
        return np.inf if c.model.nodes is not None else c.draws.noise.size - len(c.points)

    def _take(self, contents: Contents, file: StateFile | None) -> None:
        """Become the function of these contents, which a file may hold."""
        c = self._contents = contents
        self._drawer: Drawer | None = None
        self._places: dict[bytes, int] = {}
        self._file, self._unsaved = file, False
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.n_features_in_ = c.model.columns
        self.__dict__.pop("feature_names_in_", None)
        if c.names is not None:
            self.feature_names_in_ = np.array(c.names, dtype=object)
        width = c.y_bounds[1] - c.y_bounds[0]
        self.sensitivity_ = width * c.norm
        self.noise_std_ = 0.5 * width * c.draws.noise.std * float(np.sqrt(variance(c.model.kernel)))
        self.guarantee_ = c.guarantee

    def _lazily(self, X: Array) -> Array:
        asked = [row.tobytes() for row in X]
        self._find_places()
        new = list(dict.fromkeys(point for point in asked if point not in self._places))
        most = self._contents.draws.noise.size
        if len(self._places) + len(new) > most:
            raise ValueError(
                f"a function answers at most {most:,} points, and this one has answered "
                f"{len(self._places):,}: ask for fewer"
                + (", or give inducing= for any number." if self.protect == "outputs" else ".")
            )
        for start in range(0, len(new), BATCH):
            part = new[start : start + BATCH]
            self._draw_at(np.frombuffer(b"".join(part)).reshape(len(part), -1))
        self._find_places()
        self._persist()
        return self._contents.answers[[self._places[point] for point in asked]]

    def _find_places(self) -> None:
        """Where every point stands among the answers."""
        for place in range(len(self._places), len(self._contents.points)):
            self._places[self._contents.points[place].tobytes()] = place

    def _draw_at(self, points: Array) -> None:
        """Draw one coordinate for each of these new points, and compute their answers."""
        c = self._contents
        if self._drawer is None:
            self._drawer = drawer_for(c.model)
        draws, lower = self._drawer.draw(c, points)
        answers = self._in_units(lower @ draws.numbers)
        self._unsaved = True
        # One assignment: an interrupt leaves either all of the draw or nothing of it.
        self._contents = replace(
            c,
            draws=draws,
            points=np.vstack([c.points, points]),
            answers=np.concatenate([c.answers, answers]),
        )
        self._drawer.accept()

    def _through_nodes(self, model: FunctionModel, X: Array) -> Array:
        c = self._contents
        if len(c.draws.numbers) == 0:
            assert isinstance(c.draws, Draws)
            self._unsaved = True
            self._contents = c = replace(c, draws=extended(c.draws, model.node_rows))
        self._persist()
        return self._in_units(model.node_values(X, c.draws.numbers))

    def _in_units(self, scaled: Array) -> Array:
        low, high = self._contents.y_bounds
        return (0.5 * high + 0.5 * low) + (0.5 * high - 0.5 * low) * scaled

    def _persist(self) -> None:
        """Bring the state file up to date; answers wait for it."""
        if self._file is not None and self._unsaved:
            self._file.keep(self._contents)
            self._unsaved = False

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_contents")

    def __getstate__(self) -> Any:
        if hasattr(self, "_contents"):
            raise TypeError(
                "a fitted PrivateFunction cannot be copied or pickled: two copies would draw "
                "different noise for one function. Use save_state and load_state."
            )
        return super().__getstate__()
