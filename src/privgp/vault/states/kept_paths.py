"""Sample paths that a curator keeps: what is kept of them, and how they go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privgp.gp.kernels.evaluate import variance
from privgp.plan.functions.paths import PathModel, path_model
from privgp.privacy.guarantee import Guarantee
from privgp.storage.archive import DamagedFile
from privgp.types import Array
from privgp.vault.states.kept import Kept
from privgp.vault.states.paths import PathDraws, PathSampler, extended_paths


@dataclass(frozen=True)
class PathContents:
    """All there is to some paths."""

    model: PathModel
    guarantee: Guarantee
    names: tuple[str, ...] | None
    draws: PathDraws

    def parameters(self) -> dict[str, Any]:
        """The arguments that fix the model."""
        m = self.model
        norm = m.sensitivity
        return {
            "kernel": m.kernel,
            "noise_variance": m.noise_variance,
            "domain": m.domain,
            "y_bounds": m.y_bounds,
            "n_paths": m.paths,
            "extra_noise": m.extra_noise,
            "delta": m.delta,
            "sensitivity": norm if isinstance(norm, str) else ("function", norm),
            "max_points": m.max_points,
        }

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        model, draws = path_model(**self.parameters()), self.draws
        columns, records, points = len(model.domain), len(draws.inputs), len(draws.points)
        shapes = [
            (draws.inputs.shape[1:], (columns,)),
            (draws.outputs.shape, (records,)),
            (draws.factor.shape, (records, records)),
            (draws.points.shape[1:], (columns,)),
            (draws.normals.shape, (points, model.paths)),
            (draws.answers.shape, (points, model.paths)),
            (draws.lower.size, points),
            (len(self.names or (0,) * columns), columns),
        ]
        if any(one != other for one, other in shapes) or records == 0:
            raise DamagedFile("its parts do not belong together")
        if points > model.max_points:
            raise DamagedFile("it has drawn more than it may")
        low, high = np.array(model.domain).T
        half = 0.5 * model.y_bounds[1] - 0.5 * model.y_bounds[0]
        inside = np.all((draws.inputs >= low) & (draws.inputs <= high))
        if not (inside and np.all(np.abs(draws.outputs) <= half)):
            raise DamagedFile("its records leave their bounds")
        if self.guarantee.path_curves != (model.curve(records),):
            raise DamagedFile("its guarantee does not belong to it")


class KeptPaths(Kept):
    """Some paths, asked point by point."""

    COPIED = (
        "fitted PosteriorPaths cannot be copied or pickled: two copies would draw different paths. "
        "Use save_state and load_state."
    )
    OTHER_PROCESS = (
        "these paths belong to another process, which would draw them otherwise: give them a state "
        "file and load that with load_state."
    )

    contents: PathContents

    @property
    def most(self) -> int:
        return self.contents.model.max_points

    def _new_engine(self) -> PathSampler:
        model, draws = self.contents.model, self.contents.draws
        extra = model.extra_noise**2 / variance(model.kernel)
        nugget = model.precision(len(draws.factor)).nugget
        return PathSampler(draws, model.kernel, extra, nugget)

    def _further(self, engine: PathSampler, points: Array) -> PathDraws:
        return extended_paths(self.contents.draws, self.contents.model, engine, points)

    def _too_many(self, most: int, answered: int) -> str:
        return (
            f"these paths answer at most {most:,} points (max_points), and have answered "
            f"{answered:,}: ask for fewer."
        )

    def _second_file(self, path: str) -> str:
        return f"these paths are kept in {path!r}: a second file would fall behind."
