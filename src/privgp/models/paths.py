"""PosteriorPaths: sample paths of a posterior, whole records private, kept by the curator."""

from __future__ import annotations

import os
import threading
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from privgp.gp.threads import one_thread
from privgp.models.spending import SpendsAtFit
from privgp.plan.functions.paths import (
    NOISE,
    Calibration,
    PathModel,
    check_count,
    path_model,
)
from privgp.plan.inputs.arguments import check_inside
from privgp.privacy.guarantee import Guarantee
from privgp.release.excursions import Excursion, check_vote, excursion_set
from privgp.storage.state_file import StateFile, check_new
from privgp.types import Array
from privgp.vault.states import paths_file as paths_contents
from privgp.vault.states.paths import PathSampler, taken_records
from privgp.vault.states.paths_draws import further, sampler_of
from privgp.vault.states.paths_file import PathContents, first_contents, parameters
from privgp.vault.validate import checked_inputs, checked_outputs

BATCH = 1024


class PosteriorPaths(SpendsAtFit, BaseEstimator):  # type: ignore[misc]
    """Paths drawn from the posterior of private records: the draw itself is what hides them.

    They are drawn lazily, where they are asked for, so the records stay with the curator as long as
    they are asked. Answers may be published.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y, fixed.
    noise_variance : variance of an output about the function (None: the kernel's WhiteKernel).
        Divided by the kernel's variance it is r^2, the regularisation that privacy rests on.
    domain : (low, high), or one such pair per input; inputs outside are projected onto it, and
        questions outside are refused.
    y_bounds : (low, high), public bounds of the outputs; outputs outside are clipped.
    n_paths : how many paths; each costs.
    extra_noise : std of Gaussian-process noise with the same kernel, added to every path.
    delta : the promise is (epsilon, delta), epsilon follows from the rest.
    sensitivity : "auto", the least proved bound; "paper", the paper's bounds throughout; or
        ("function", norm), which assumes that all outputs are one function of that norm.
    max_points : the most points that will ever be asked. Every value has independent noise that
        hides all rounding errors; it grows with this number, slowly.
    random_state : for simulations only: repeatable paths, and a guarantee that says so.

    Attributes
    ----------
    guarantee_ : what is promised, for all paths and points together.
    sensitivity_ : the bound of how far one record moves the posterior mean, in units of y.
    nugget_std_ : std of the independent noise of every value, in units of y.

    """

    _file: StateFile | None
    _lock: threading.Lock
    _process: int
    _unsaved: bool

    def __init__(
        self,
        kernel: Any,
        noise_variance: float | None,
        *,
        domain: Any,
        y_bounds: Any,
        n_paths: int = 1,
        extra_noise: float = 0.0,
        delta: float,
        sensitivity: Any = "auto",
        max_points: int = 2000,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.domain = domain
        self.y_bounds = y_bounds
        self.n_paths = n_paths
        self.extra_noise = extra_noise
        self.delta = delta
        self.sensitivity = sensitivity
        self.max_points = max_points
        self.random_state = random_state

    def guarantee_for(self, n: int) -> Guarantee:
        """What paths of n records would promise. Needs no data."""
        model = self._model()
        return model.guarantee(check_count(n), simulated=self.random_state is not None)

    def calibrate(self, epsilon: float, n: int, by: str = NOISE) -> Calibration:
        """The least noise with which paths of n records are epsilon-private. Needs no data.

        ``by="noise_variance"``: the least regularisation; ``by="extra_noise"``: the least extra
        noise at the noise variance given.
        """
        return self._model().calibrated(epsilon, check_count(n), by)

    def fit(self, X: Any, y: Any, state: str | os.PathLike[str] | None = None) -> Self:
        """Take the records. The first release spends the budget, for all points there will ever be.

        ``state``: a new file, ending in ``.private-state``, in which every draw is kept before its
        answer is given. Every fit makes other paths, with a budget of their own.
        """
        if y is None:
            raise ValueError("PosteriorPaths requires y to be passed, but the target y is None.")
        model = self._model()
        inputs = checked_inputs(X, len(model.domain))
        y = checked_outputs(y, len(inputs))
        columns = clone(self)  # a fit that is refused leaves the former paths as they were
        validate_data(columns, X, skip_check_array=True)  # remembers the names of the columns
        n = check_count(len(inputs))
        if state is not None:
            check_new(state)
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31))
        records = taken_records(inputs, y, model.domain, model.y_bounds)
        del inputs, X, y
        names = getattr(columns, "feature_names_in_", None)
        contents = first_contents(model, records, n, seed, names)
        file = None if state is None else StateFile.create(state, contents, paths_contents)
        if getattr(self, "_process", None) != os.getpid():
            self._lock = threading.Lock()
        with self._lock:  # a release in another thread ends first
            self._take(contents, file, n)
        return self

    def release(self, X_new: Any) -> Array:
        """The paths at these points, (paths, points): always the same paths.

        What was asked before gets the same answer. A state file is written before this returns.
        """
        check_is_fitted(self)
        self._check_process()
        X = validate_data(self, X_new, reset=False, dtype=np.float64) + 0.0  # no negative zeros
        with self._lock, one_thread(), np.errstate(all="ignore"):
            check_inside(X, self._contents.model.domain)
            asked = [row.tobytes() for row in X]
            self._find_places()
            new = list(dict.fromkeys(point for point in asked if point not in self._places))
            if len(new) > self.points_left_:
                raise ValueError(
                    f"these paths answer at most {self._contents.model.max_points:,} points "
                    f"(max_points), and have answered {len(self._places):,}: ask for fewer."
                )
            for start in range(0, len(new), BATCH):
                part = new[start : start + BATCH]
                self._draw_at(np.frombuffer(b"".join(part)).reshape(len(part), -1))
            self._find_places()
            if self._file is not None and self._unsaved:
                self._file.keep(self._contents)
                self._unsaved = False
            return self._contents.answers[:, [self._places[point] for point in asked]]

    def excursion(
        self, X_new: Any, threshold: float, *, vote: float = 0.5, smoothing: float | None = None
    ) -> Excursion:
        """Where the function is at least ``threshold``, by a vote of the paths at these points.

        ``smoothing``: the std, in units of X, of a Gaussian filter over the points, applied to every
        path first. Both are post-processing: they cost nothing.
        """
        check_vote(threshold, vote, smoothing)
        names = getattr(self, "feature_names_in_", None)
        values = self.release(X_new)
        points = validate_data(self, X_new, reset=False, dtype=np.float64)
        return excursion_set(
            points, values, threshold, vote=vote, smoothing=smoothing, names=names,
            guarantee=self.guarantee_,
        )  # fmt: skip

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the private state to a new ``.private-state`` file, and keep it up to date there."""
        check_is_fitted(self)
        self._check_process()
        with self._lock:
            if self._file is not None:
                raise RuntimeError(
                    f"these paths are kept in {self._file.path!r}: a second file would fall behind."
                )
            self._file = StateFile.create(path, self._contents, paths_contents)
            self._unsaved = False

    @classmethod
    def load_state(cls, path: str | os.PathLike[str]) -> Self:
        """Go on with the paths of a state file, which is kept up to date."""
        file, c = StateFile.open(path, paths_contents)
        made = cls(**parameters(c))
        made._lock = threading.Lock()
        made._take(c, file, len(c.records.outputs))
        return made

    @property
    def points_answered_(self) -> int:
        """How many points have an answer."""
        return len(self._contents.points)

    @property
    def points_left_(self) -> int:
        """How many more may be asked for."""
        return self._contents.model.max_points - len(self._contents.points)

    def _model(self) -> PathModel:
        return path_model(
            self.kernel, self.noise_variance, domain=self.domain, y_bounds=self.y_bounds,
            n_paths=self.n_paths, extra_noise=self.extra_noise, delta=self.delta,
            sensitivity=self.sensitivity, max_points=self.max_points,
        )  # fmt: skip

    def _take(self, contents: PathContents, file: StateFile | None, n: int) -> None:
        """Become the paths of these contents, which a file may hold."""
        c = self._contents = contents
        self._sampler: PathSampler | None = None
        self._places: dict[bytes, int] = {}
        self._file, self._unsaved = file, False
        self._process = os.getpid()
        self.n_features_in_ = len(c.model.domain)
        self.__dict__.pop("feature_names_in_", None)
        if c.names is not None:
            self.feature_names_in_ = np.array(c.names, dtype=object)
        self.sensitivity_ = c.model.mean_sensitivity(n).value
        self.nugget_std_ = c.model.nugget_std(n)
        self.guarantee_ = c.guarantee

    def _find_places(self) -> None:
        """Where every point stands among the answers."""
        for place in range(len(self._places), len(self._contents.points)):
            self._places[self._contents.points[place].tobytes()] = place

    def _draw_at(self, points: Array) -> None:
        """Draw one number per path for each of these new points, and compute their answers."""
        # An interrupt leaves no sampler that was stopped halfway, and all of the draw or nothing.
        sampler, self._sampler = self._sampler or sampler_of(self._contents), None
        found = further(self._contents, sampler, points)
        self._unsaved = True
        self._contents = found
        self._sampler = sampler

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError(
                "these paths belong to another process, which would draw them otherwise: "
                "give them a state file and load that with load_state."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_contents")

    def __getstate__(self) -> Any:
        if hasattr(self, "_contents"):
            raise TypeError(
                "fitted PosteriorPaths cannot be copied or pickled: two copies would draw "
                "different paths. Use save_state and load_state."
            )
        return super().__getstate__()
