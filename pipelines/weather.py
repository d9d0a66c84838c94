"""Weather made from a seed: any time step of it, computed alone, with faults planted on record."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import Refused

Reals = NDArray[np.float64]
Fields = dict[str, NDArray[np.float32]]
Kind = tuple[tuple[float, ...], tuple[float, ...]]

EARTH, SPIN, AIR = 6.371e6, 7.292e-5, 1.2  # m, rad/s, kg/m3
# Against the Coriolis parameter of 45 degrees, this drag turns the wind 20 degrees towards the low.
DRAG = math.tan(math.radians(20)) * 2 * SPIN * math.sin(math.radians(45))  # 1/s
SLOWED = 0.75  # with the cosine of that turn, a surface wind of 0.7 times the geostrophic one
FASTEST, DEEPEST = 45.0, 9000.0  # m/s and Pa, which wind and overlapping lows never reach
LONGEST = 8.0  # days; births come in blocks of as many, so two blocks hold all that is alive
WAVES = 36
STUCK = 87_100.0  # Pa

# Least and most latitude, Pa, radius in m, days to live, m/s eastward and m/s poleward.
LOWS: Kind = (30, -4500, 6.0e5, 3, 8, 0.5), (50, -2000, 1.0e6, LONGEST, 15, 3.0)
HIGHS: Kind = (28, 500, 9.0e5, 4, 5, -0.5), (42, 1500, 1.5e6, LONGEST, 10, 0.5)

# Latitudes, widths (degrees) and departures from 1012 hPa (Pa) of the belts of mean pressure.
BELTS = (
    (90, 62, 32, 2, -31, -65, -90),
    (14, 10, 12, 12, 11, 12, 12),
    (300, -550, 600, -250, 650, -1900, 100),
)


@dataclass(frozen=True, slots=True)
class Vortex:
    """A round high, or a low if `strength` is negative, at one moment."""

    lat: float
    lon: float
    strength: float  # Pa at the centre
    radius: float  # m to where the strength is down to 1/e


# Winter's high of Asia, the highs of the Pacific and the Azores, the lows of Alaska and Iceland.
CENTRES = (
    Vortex(50, 95, 1200, 2.4e6),
    Vortex(35, 220, 400, 2.2e6),
    Vortex(34, 325, 400, 2.2e6),
    Vortex(53, 190, -500, 2.0e6),
    Vortex(60, 335, -500, 2.0e6),
)


@dataclass(frozen=True, slots=True)
class System:
    """A travelling low or high, from birth to death."""

    birth: float  # days since the start
    life: float  # days
    east: float  # degrees a day
    north: float  # degrees a day
    prime: Vortex  # where it is born, with the strength of its best day

    def at(self, day: float) -> Vortex:
        """Where it is and how strong: it grows faster than it fades."""
        age = day - self.birth
        grown = math.sin(math.pi * (age / self.life) ** 0.8) ** 2
        lat, lon = self.prime.lat + self.north * age, self.prime.lon + self.east * age
        return Vortex(lat, lon, self.prime.strength * grown, self.prime.radius)


def system(rng: np.random.Generator, block: int, side: int, kind: Kind) -> System:
    """A system of one hemisphere (1 north, -1 south), drawn between the bounds of its kind."""
    lat, strength, radius, life, east, poleward = rng.uniform(*kind).tolist()
    birth, lon = rng.uniform(0, (LONGEST, 360)).tolist()
    daily = 86_400 * math.degrees(1 / EARTH)
    speed = daily * east / math.cos(math.radians(lat)), side * daily * poleward
    prime = Vortex(side * lat, lon, strength, radius)
    return System(LONGEST * block + birth, life, *speed, prime)


@lru_cache(maxsize=16)
def born(seed: int, block: int) -> tuple[System, ...]:
    """The systems born in one block of days; block -1 is the one before the start."""
    rng = np.random.default_rng([seed, block + 2])
    kinds = [LOWS] * 22 + [HIGHS] * 6
    return tuple(system(rng, block, side, kind) for kind in kinds for side in (1, -1))


def living(seed: int, day: float) -> Iterator[Vortex]:
    """What travels on the map on this day."""
    every = born(seed, int(day // LONGEST) - 1) + born(seed, int(day // LONGEST))
    return (one.at(day) for one in every if 0 < day - one.birth < one.life)


@dataclass(frozen=True, slots=True)
class Globe:
    """A grid of the globe, in radians, and what its shape alone decides."""

    lat: Reals  # (lat, 1), from north to south
    lon: Reals

    def spread(self, vortices: Iterable[Vortex]) -> Reals:
        """The sum (lat, lon) of some vortices, each on the rows where single precision shows it."""
        total = np.zeros((self.lat.size, self.lon.size))
        for vortex in vortices:
            south, reach = -math.radians(vortex.lat), 3.7 * vortex.radius / EARTH
            rows = slice(*np.searchsorted(-self.lat[:, 0], (south - reach, south + reach)).tolist())
            total[rows] += self.bell(vortex, self.lat[rows])
        return total

    def bell(self, vortex: Vortex, rows: Reals) -> Reals:
        """A vortex on some rows: a bell of the great circle from its centre."""
        lat, lon = math.radians(vortex.lat), math.radians(vortex.lon)
        across = np.cos(rows) * (math.cos(lat) * np.cos(self.lon - lon))
        cosine = across + np.sin(rows) * math.sin(lat)
        return np.asarray(vortex.strength * np.exp(2 * (EARTH / vortex.radius) ** 2 * (cosine - 1)))

    def slope(self, pressure: Reals) -> tuple[Reals, Reals]:
        """The gradient eastward and northward, per metre; at the poles none eastward."""
        step = math.pi / (self.lat.size - 1) * EARTH
        around = np.roll(pressure, -1, axis=1) - np.roll(pressure, 1, axis=1)
        east = around / (2 * step * np.cos(self.lat))
        east[[0, -1]] = 0
        return east, np.gradient(pressure, -step, axis=0)

    def wind(self, pressure: Reals) -> tuple[Reals, Reals]:
        """The wind at which pressure, Coriolis and drag balance: at the equator drag alone."""
        east, north = self.slope(pressure)
        turn = 2 * SPIN * np.sin(self.lat)
        ease = SLOWED / (AIR * (turn**2 + DRAG**2))
        u, v = -ease * (DRAG * east + turn * north), ease * (turn * east - DRAG * north)
        calmed = (1 + ((u**2 + v**2) / FASTEST**2) ** 2) ** -0.25
        return u * calmed, v * calmed

    def climate(self) -> Reals:
        """The mean pressure (lat, lon) in Pa, the same every day."""
        belts, widths, excess = np.array(BELTS, float)
        bells = excess * np.exp(-(((np.degrees(self.lat) - belts) / widths) ** 2))
        return np.asarray(101_200 + bells.sum(axis=1, keepdims=True) + self.spread(CENTRES))


def noise(globe: Globe, seed: int, day: float) -> Reals:
    """Waves along the parallels, none at the poles, whose speeds differ so they never repeat."""
    rng, one_each = np.random.default_rng([seed, 0]), (WAVES, 1)
    number, bands = rng.integers(1, 9, one_each), rng.uniform(1, 5, one_each)
    north, east = rng.uniform(0, 2 * np.pi, (2, *one_each))
    speed = rng.uniform(-3, 9, one_each) * 86_400 / (EARTH * math.cos(math.pi / 4))
    rows = np.cos(globe.lat.T) ** 2 * np.cos(bands * globe.lat.T + north) * 130 / np.sqrt(number)
    crests = np.cos(number * (globe.lon - speed * day) + east)
    # Not a matrix product: its last bits may depend on how many threads it is given.
    return np.asarray(np.einsum("kl,km->lm", rows, crests))


def pressures(globe: Globe, seed: int, days: Iterable[float]) -> Iterator[Reals]:
    """The sea level pressure (lat, lon) in Pa on each of some days."""
    mean = globe.climate()
    for day in days:
        systems = DEEPEST * np.tanh(globe.spread(living(seed, day)) / DEEPEST)
        pressure = mean + noise(globe, seed, day) + systems
        pressure[[0, -1]] = pressure[[0, -1], :1]
        yield pressure


@dataclass(frozen=True, slots=True)
class Defect:
    """One planted fault: when (steps), where (indices), all bounds included, and what was done."""

    name: str
    first: int
    last: int
    lat: tuple[int, int]
    lon: tuple[int, int]
    note: str

    def fits(self, steps: int, lats: int, lons: int) -> bool:
        """Whether it lies on the grid, with a sound step before it and one after."""
        on_grid = self.lat[1] < lats and self.lon[0] >= 0 and self.lon[1] < lons
        return on_grid and self.first > 0 and self.last < steps - 1


def cells(degrees: float, lons: int) -> int:
    """The whole number of cells, at least one, nearest to an angle of longitude."""
    return max(1, round(degrees * lons / 360))


def shifted(steps: int, lats: int, lons: int) -> Defect:
    """One step out of place."""
    at, note = int(0.15 * steps), f"Every field was rolled {cells(15, lons)} cells east."
    return Defect("shifted time step", at, at, (0, lats - 1), (0, lons - 1), note)


def stuck(steps: int, lats: int, lons: int) -> Defect:
    """A cell of the North Atlantic that reports one value."""
    first, row, column = steps // 4, round(0.25 * (lats - 1)), round(0.9 * (lons - 1))
    note = f"The pressure of the cell was held at {STUCK:,.0f} Pa, below any low on record."
    return Defect("stuck cell", first, first + 13, (row, row), (column, column), note)


def corrupt(steps: int, lats: int, lons: int) -> Defect:
    """A block of the South Pacific that goes west, against every low around it."""
    first, row, west, by = steps // 2, round(0.71 * lats), round(0.75 * lons), cells(5, lons)
    note = f"Pressures of 4 by 4 cells, {by} further west each step, fall by up to 9 %."
    rows, columns = (row, row + 3), (west - 11 * by, west + 3)
    return Defect("corrupt block", first, first + 11, rows, columns, note)


def spoil(fields: Fields, defect: Defect, step: int) -> None:
    """Do what a defect does to the fields (lat, lon) of one of its steps."""
    slp, lons = fields["slp"], fields["slp"].shape[1]
    if defect.name == "shifted time step":
        for field in fields.values():
            field[:] = np.roll(field, cells(15, lons), axis=1)
    elif defect.name == "stuck cell":
        slp[defect.lat[0], defect.lon[0]] = STUCK
    else:
        west = defect.lon[1] - 3 - cells(5, lons) * (step - defect.first)
        # Steep towards one corner, so that the block has a single minimum, which moves as it does.
        ramp = (np.add.outer(np.arange(4), np.arange(4)) / 6) ** 16
        slp[defect.lat[0] : defect.lat[1] + 1, west : west + 4] *= (1 - 0.09 * ramp).astype(
            slp.dtype
        )


@dataclass(frozen=True, slots=True)
class Weather:
    """Pressure and wind of the whole globe, step by step, from a seed.

    >>> week = Weather(resolution=5.0, days=7.0)
    >>> week.steps, week.lat.size, week.lon.size, str(week.times[-1])[:13]
    (28, 37, 72, '2000-01-07T18')
    >>> [defect.name for defect in week.planted()]
    ['shifted time step', 'stuck cell', 'corrupt block']

    Steps may be asked for in any pieces; the pieces agree to the bit.

    >>> part = week.fields(10, 12)
    >>> all((part[name] == field[10:12]).all() for name, field in week.fields(0, 28).items())
    True
    """

    resolution: float = 2.5  # degrees
    days: float = 60.0
    hours: int = 6  # between steps
    seed: int = 0
    defects: bool = True
    start: str = "2000-01-01"

    def __post_init__(self) -> None:
        rows = 180 / self.resolution
        if rows < 2 or abs(rows - round(rows)) > 1e-6:
            raise Refused(f"{self.resolution} degrees do not divide 180; 2.5, 1 or 0.25 would")

    @property
    def steps(self) -> int:
        """How many time steps the run has."""
        return round(self.days * 24 / self.hours)

    @property
    def lat(self) -> Reals:
        """Degrees north, from pole to pole."""
        return np.linspace(90, -90, round(180 / self.resolution) + 1)

    @property
    def lon(self) -> Reals:
        """Degrees east, from 0 to the last before 360."""
        return np.linspace(0, 360, 2 * round(180 / self.resolution), endpoint=False)

    @property
    def times(self) -> NDArray[np.datetime64]:
        """The moment of each step; nanoseconds end in the year 2262."""
        hours = np.datetime64(self.start, "h") + np.arange(self.steps) * np.timedelta64(self.hours)
        if hours.size and hours[-1] > np.datetime64("2262-04-11", "h"):
            raise Refused(f"{self.days} days from {self.start} end after 2262; ask for fewer")
        return hours.astype("datetime64[ns]")

    def planted(self) -> tuple[Defect, ...]:
        """The faults in the data: a long run has those of 60 days, a short one those that fit."""
        size = round(min(self.days, 60) * 24 / self.hours), self.lat.size, self.lon.size
        every = (make(*size) for make in (shifted, stuck, corrupt) if self.defects)
        return tuple(defect for defect in every if defect.fits(*size))

    def fields(self, first: int, last: int) -> Fields:
        """Steps `first` to `last - 1` of "slp" in Pa, "u10" and "v10" in m/s, (step, lat, lon)."""
        if not 0 <= first <= last <= self.steps:
            raise Refused(f"steps {first} to {last} asked of a run of {self.steps} steps")
        globe = Globe(np.radians(self.lat)[:, None], np.radians(self.lon))
        shape = last - first, globe.lat.size, globe.lon.size
        fields = {name: np.empty(shape, np.float32) for name in ("slp", "u10", "v10")}
        days = (step * self.hours / 24 for step in range(first, last))
        for row, slp in enumerate(pressures(globe, self.seed, days)):
            now = {name: field[row] for name, field in fields.items()}
            now["slp"][:], (now["u10"][:], now["v10"][:]) = slp, globe.wind(slp)
            for defect in self.planted():
                if defect.first <= first + row <= defect.last:
                    spoil(now, defect, first + row)
        return fields
