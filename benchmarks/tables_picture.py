"""The picture of docs/tables.md: made-up calls for help by date, region and hour of the day."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from privgp import PrivateGPRegressor

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "tables.png"
ROWS = 600


def main() -> None:
    rng = np.random.default_rng(1)
    minutes = rng.integers(0, 365 * 24 * 60, ROWS)
    when = np.datetime64("2024-01-01", "us") + minutes.astype("timedelta64[m]")
    hour = (minutes / 60) % 24
    region = rng.choice(["centre", "north", "south"], ROWS)
    season = 6.0 * np.cos(2 * np.pi * minutes / (365 * 24 * 60))
    minutes_taken = 20.0 + season + 5.0 * np.cos(np.pi * (hour - 17) / 12)
    minutes_taken += np.select([region == "north", region == "south"], [6.0, -2.0])
    minutes_taken += rng.normal(0.0, 4.0, ROWS)
    model = PrivateGPRegressor(
        y_bounds=(0, 60), epsilon=1.0, delta=1e-5, columns={"hour": ("periodic", 24)}
    )
    model.fit(pl.DataFrame({"when": when, "region": region, "hour": hour}), minutes_taken)
    model.name_output("time to arrive", "minutes")
    model.plot().savefig(PICTURE, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    main()
