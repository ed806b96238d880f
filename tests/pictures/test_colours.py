"""What stands side by side differs in lightness, for readers of all kinds and in a copy without colours.

The matrices are those of Machado, Oliveira and Fernandes (2009) for complete protanopia and deuteranopia.
"""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from privgp.pictures.curves import FILLS, LEVEL_LINES, LEVELS, LINES
from privgp.pictures.maps import UNCERTAINTY, VALUES
from privgp.pictures.released import PRIVACY, TOTAL

SEEN = {
    "everybody": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "a copy without colours": np.tile([0.2126, 0.7152, 0.0722], (3, 1)),
}
WHITE = np.ones(3)


def lightness(colours, seen) -> np.ndarray:
    """L* from 0 to 100 of sRGB colours (..., 3), as a reader sees them."""
    rgb = np.asarray(colours, dtype=float)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    Y = np.clip(linear @ np.transpose(seen), 0.0, 1.0) @ [0.2126, 0.7152, 0.0722]
    return np.where(Y > 0.008856, 116.0 * np.cbrt(Y) - 16.0, 903.3 * Y)


def over(name: str, below: np.ndarray) -> np.ndarray:
    """The colour of a band over another colour."""
    colour, alpha, _ = FILLS[name]
    return alpha * np.array(to_rgb(colour)) + (1.0 - alpha) * below


@pytest.fixture(params=SEEN)
def seen(request):
    return SEEN[request.param]


@pytest.mark.parametrize("colours", [VALUES, UNCERTAINTY], ids=lambda colours: colours.name)
def test_more_is_always_lighter_or_always_darker(colours, seen):
    steps = np.diff(lightness(colours(np.linspace(0.0, 1.0, 11))[:, :3], seen))
    assert np.all(np.abs(steps) > 3.0)
    assert len({*np.sign(steps)}) == 1


def test_bands_differ_from_paper_and_from_each_other(seen):
    total = over(TOTAL, WHITE)
    shown = lightness([WHITE, total, to_rgb(LINES[PRIVACY][0]), np.zeros(3)], seen)
    assert np.all(np.diff(shown) < -8.0)


def test_no_value_is_as_pale_as_the_paper_to_which_maps_fade(seen):
    paper = lightness(WHITE, seen)
    for colours in (VALUES, UNCERTAINTY):
        every = lightness(colours(np.linspace(0.0, 1.0, 256))[:, :3], seen)
        assert paper - every.max() > 4.0


def test_a_rainbow_would_fail():
    from matplotlib import colormaps

    steps = np.diff(lightness(colormaps["jet"](np.linspace(0.0, 1.0, 11))[:, :3], np.eye(3)))
    assert len({*np.sign(steps)}) == 2


def test_curves_of_levels_differ_in_their_lines_where_colours_are_not_seen():
    looks = [(LEVELS[i % len(LEVELS)], LEVEL_LINES[i % len(LEVEL_LINES)]) for i in range(20)]
    assert len({*looks}) == 20
    assert len({line for _, line in looks[:4]}) == 4
