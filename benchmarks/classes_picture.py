"""The picture of docs/classes.md: a probability over made-up villages, with its uncertainty."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from privgp import PrivateGPClassifier

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "classes.png"


def main() -> None:
    rng = np.random.default_rng(1)
    villages = rng.uniform(0, 1, size=(90, 2)) * (100.0, 40.0)
    villages = villages[(villages[:, 0] < 70) | (villages[:, 1] < 20)]
    X = np.repeat(np.round(villages, 1), 20, axis=0)
    latent = 1.6 * np.sin(X[:, 0] / 15.0) + (X[:, 1] - 20.0) / 15.0
    y = rng.uniform(size=len(X)) < 1.0 / (1.0 + np.exp(-latent))
    model = PrivateGPClassifier(classes=["no", "yes"], epsilon=1.0, delta=1e-5, random_state=0)
    model.fit(X, np.where(y, "yes", "no"))
    model.feature_names_in_ = np.array(["east (km)", "north (km)"], dtype=object)
    model.plot(output="malaria").savefig(PICTURE, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    main()
