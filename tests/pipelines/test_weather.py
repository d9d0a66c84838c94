"""The simulated atmosphere is what it says: seeded, balanced, round the globe, in fit chunks."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.boxes.cyclones import SimulateAgcm
from pipelines.stores import LARGEST_CHUNK
from pipelines.weather import Weather

TWO_DAYS = {"resolution": 5.0, "days": 2.0, "hours": 6}


def weather(seed: int) -> Weather:
    return Weather(**TWO_DAYS, seed=seed, defects=False)


def test_one_seed_is_one_weather_however_it_is_cut() -> None:
    whole, part, other = weather(3).fields(0, 8), weather(3).fields(4, 6), weather(4).fields(0, 8)
    for name, values in whole.items():
        assert (part[name] == values[4:6]).all()
        assert not np.allclose(other[name], values)


def test_it_runs_from_north_to_south_and_from_greenwich_east() -> None:
    lat, lon = weather(0).lat, weather(0).lon
    assert (lat[0], lat[-1]) == (90, -90) and (np.diff(lat) < 0).all()
    assert (lon[0], lon[-1]) == (0, 355) and (np.diff(lon) > 0).all()


@pytest.mark.parametrize(("side", "turns"), [(slice(6, 14), 1), (slice(23, 31), -1)])
def test_winds_blow_along_the_lines_of_equal_pressure_around_lows(side: slice, turns: int) -> None:
    fields = weather(0).fields(0, 4)
    south = np.gradient(fields["slp"].astype(float), axis=1)[:, side]
    east = np.gradient(fields["slp"].astype(float), axis=2)[:, side]
    u, v = (fields[name][:, side] for name in ("u10", "v10"))
    assert np.corrcoef(u.ravel(), south.ravel())[0, 1] * turns > 0.8
    assert np.corrcoef(v.ravel(), east.ravel())[0, 1] * turns > 0.8


def test_chunks_are_never_too_large_to_be_read_again() -> None:
    fine, coarse = (SimulateAgcm(resolution=r, days=30).grid({}) for r in (0.05, 2.5))
    assert np.prod(fine.chunks) * 4 <= LARGEST_CHUNK and fine.chunks[0] >= 1
    assert coarse.chunks[0] == SimulateAgcm().chunk
