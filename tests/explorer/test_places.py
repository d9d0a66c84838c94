"""Whatever way coordinates run, a place on a map and a cell of a grid are found from each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.highlight import outlined
from explorer.places import Axis, Plane, coastlines
from pipelines.filters import where
from pipelines.spans import span
from tests.inverses.grids import changed, plain_array

STEPS = st.lists(st.floats(0.1, 5), min_size=1, max_size=60)


@st.composite
def coordinates(draw: st.DrawFn) -> np.ndarray:
    """Rising or falling, evenly spaced or not."""
    values = np.cumsum(draw(STEPS)) + draw(st.floats(-90, 90))
    return values[::-1] if draw(st.booleans()) else values


@given(coordinates())
def test_the_middle_of_every_cell_lies_in_it(values: np.ndarray) -> None:
    axis = Axis.of(values)
    assert [axis.index(v) for v in values] == list(range(len(values)))
    assert axis.index(values.min() - 1e6) is None


@given(st.integers(3, 200), st.integers(0, 199), st.floats(-180, 180), st.booleans())
def test_on_a_circle_every_longitude_lies_in_the_nearest_cell(
    count: int, cut: int, at: float, falling: bool
) -> None:
    lon = np.roll(np.arange(count) * 360 / count, cut)
    lon = (lon[::-1] if falling else lon).astype(float)
    axis = Axis.of(lon, period=360)
    for turn in (-360, 0, 360):
        found = axis.index(at + turn)
        assert found is not None
        away = abs((lon - at + 180) % 360 - 180)
        assert away[found] == pytest.approx(away.min(), abs=1e-6)


@given(coordinates(), coordinates(), st.data())
def test_a_cell_is_drawn_where_a_click_finds_it(
    lat: np.ndarray, lon: np.ndarray, data: st.DataObject
) -> None:
    plane = Plane("lon", "lat", Axis.of(lon), Axis.of(lat))
    row = data.draw(st.integers(0, len(lat) - 1))
    column = data.draw(st.integers(0, len(lon) - 1))
    box = {k: v[0] for k, v in plane.boxes(np.array([row]), np.array([column])).items()}
    middle = (box["left"] + box["right"]) / 2, (box["bottom"] + box["top"]) / 2
    assert plane.cell(*middle) == {"lon": column, "lat": row}


def test_a_frame_is_around_all_cells_of_a_part_that_begins_west_of_the_seam() -> None:
    array = changed(plain_array((1, 3, 5)), {"lon": np.array([340.0, 350, 0, 10, 20])})
    plane, at = Plane.of(array, "lat", "lon"), where(lon=span(1, 3), lat=span(0), time=span(0))
    (frame,) = zip(*outlined(at, array, {"time": 0}, plane).values(), strict=True)
    left, right, *_ = frame
    assert left < 0 and right > 350


def test_the_cell_at_the_seam_is_drawn_on_both_sides() -> None:
    plane = Plane("lon", "lat", Axis.of(np.arange(0, 360, 90.0), 360), Axis.of(np.arange(3.0)))
    boxes = plane.boxes(np.array([1]), np.array([0]))
    assert sorted(boxes["left"].tolist()) == [-45.0, 315.0]


@pytest.mark.parametrize("size", [(73, 144), (900, 1800)])
def test_a_picture_is_no_finer_than_a_screen_and_shows_what_is_there(
    size: tuple[int, int],
) -> None:
    lat, lon = np.linspace(90, -90, size[0]), np.arange(size[1]) * 360 / size[1]
    plane = Plane("lon", "lat", Axis.of(lon, 360), Axis.of(lat))
    values = lat[:, None] + lon[None, :] / 1000
    for view in (None, (100.0, 120.0, -10.0, 10.0)):
        drawn = plane.picture(values, view)
        image = drawn["image"][0]
        assert max(image.shape) <= 720
        height, width = image.shape
        for at in ((0, 0), (height // 2, width // 3), (height - 1, width - 1)):
            y = drawn["y"][0] + (at[0] + 0.5) * drawn["dh"][0] / height
            x = drawn["x"][0] + (at[1] + 0.5) * drawn["dw"][0] / width
            cell = plane.cell(x, y)
            assert cell is not None
            assert image[at] == np.float32(values[cell["lat"], cell["lon"]])


def test_coasts_are_cut_at_the_seam() -> None:
    xs, ys = coastlines(-1.25)
    assert len(xs) == len(ys) > 100
    assert all(abs(np.diff(x)).max(initial=0) <= 180 for x in xs)
    assert all(min(x) >= -1.25 and max(x) < 358.75 for x in xs)
