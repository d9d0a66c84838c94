"""The laws of regions: what faithful weak inverses keep of one, and what they say of its cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inverses.making import made_by
from inverses.perturbing import within
from inverses.places import as_data, grid_of, tells_of_cells
from inverses.plans import Hop
from inverses.registry import Registry, WeakInverse
from inverses.samples import Sample
from inverses.told import close, plain
from inverses.trials import data_of
from pipelines.arrays import inside
from pipelines.datasets import Array, Table
from pipelines.errors import WhenceError
from pipelines.filters import Filter, lattice
from pipelines.spans import Span, everything
from pipelines.tables import column, matching, rows_in

MANY = 3  # regions of an array that are tried


def faithful(registry: Registry, sample: Sample, made: Table | Array) -> str | None:
    """A region in which the box makes something else of what faithful weak inverses keep."""
    for region in _regions(made):
        parts = {port: _part(registry, sample, port, made, region) for port in sample.inputs}
        try:
            again = made_by(sample.box, parts)
        except WhenceError as error:
            return f"{_named(registry, sample, made)} nothing is made where {region}: {error}"
        if not _same(again, made, region):
            alone = _named(registry, sample, made)
            return f"{alone} the box makes something else where {region}"
    return None


def _named(registry: Registry, sample: Sample, made: Table | Array) -> str:
    """Which inverses have kept what is made of, in words."""
    inputs = sample.inputs.items()
    every = [w for p, each in inputs for w in registry.faithful(sample.box, p, made, each)]
    return f"of what {' and '.join(dict.fromkeys(w.name for w in every))} keep alone,"


def held_whole(weak: WeakInverse, hop: Hop) -> str | None:
    """What a weak inverse says of a region is no less than what it says of each datum there.

    Nor is it more where it is asked about very many cells, or rows that tell of them, as one.
    """
    rows = isinstance(hop.image, Table)
    exactly = tells_of_cells(hop) if rows else weak.of_regions
    for region, data in _with_data(hop):
        whole, single = (
            _held_by(hop.source, weak(hop.box, at, hop.source)) for at in (region, data)
        )
        if np.any(single & ~whole):
            return f"it says less of {region} than of all that is there, one by one"
        if exactly and np.any(whole & ~single):
            return f"it says more of {region} than of all that is there, one by one"
    return None


def _with_data(hop: Hop) -> Iterator[tuple[Filter, Filter]]:
    """Some regions that a hop may be asked about, each with all data there one by one."""
    if isinstance(hop.image, Table) and not tells_of_cells(hop):
        data = data_of(hop.image)
        yield _region({name: _whole(span) for name, span in data.spans.items()}), data
        return
    for region in _regions_of(grid_of(hop)):
        yield as_data(hop, region), as_data(hop, _cells_in(region))


def _whole(values: Span) -> Span:
    """From the least value to the greatest; of numbers that may be missing, all there is."""
    if values.low.dtype.kind == "f":
        return everything(values.low.dtype, 1)
    return Span(np.sort(values.low)[:1], np.sort(values.high)[-1:])


def _regions(made: Table | Array) -> Iterator[Filter]:
    """Some regions of what was made, by ranges of columns or of indices."""
    if isinstance(made, Array):
        yield from _regions_of(made)
        return
    whole = matching(made, None)
    for name in whole.column_names:
        yield from (_region({name: span}) for span in _stretches(column(whole, name)))
    half = whole.slice(0, (1 + whole.num_rows) // 2)
    around = {name: _around(column(half, name)) for name in half.column_names}
    yield _region({name: span for name, span in around.items() if span})


def _regions_of(array: Array) -> Iterator[Filter]:
    """Any ranges of the indices of an array; the same for all of its shape."""
    sown = np.random.default_rng(array.shape)
    for _ in range(MANY):
        low, high = np.sort(sown.integers(0, array.shape, (2, len(array.shape))), axis=0)
        yield _region({d: Span(low[[n]], high[[n]]) for n, d in enumerate(array.dims)})


def _region(spans: Mapping[str, Span]) -> Filter:
    return Filter(np.zeros(1, np.int64), spans)


def _stretches(values: NDArray[Any]) -> Iterator[Span]:
    """Of the values that are not missing the lower half, the upper one, and that in the middle."""
    ordered = np.sort(values[values == values])
    middle = ordered[len(ordered) // 2 :][:1]
    if len(ordered):
        yield from (Span(ordered[:1], middle), Span(middle, ordered[-1:]), Span(middle, middle))


def _around(values: NDArray[Any]) -> Span | None:
    """From the least value to the greatest, if none is missing."""
    if not np.all(values == values):
        return None
    ordered = np.sort(values)
    return Span(ordered[:1], ordered[-1:])


def _cells_in(region: Filter) -> Filter:
    """Each cell of a region by itself."""
    spans = region.spans.values()
    low, high = (
        np.column_stack(ends) for ends in ([s.low for s in spans], [s.high for s in spans])
    )
    _, cells = lattice(low, high)
    places = zip(region.spans, cells.T, strict=True)
    return Filter(np.arange(len(cells)), {dim: Span(place, place) for dim, place in places})


def _part(
    registry: Registry, sample: Sample, port: str, made: Table | Array, region: Filter
) -> Table | Array:
    """What faithful weak inverses keep of an input, all else missing."""
    source = sample.inputs[port]
    weak = registry.faithful(sample.box, port, made, source)
    kept = [_held_by(source, each(sample.box, region, source)) for each in weak]
    return within(source, np.logical_and.reduce(kept)) if kept else source


def _held_by(source: Table | Array, at: Filter) -> NDArray[np.bool_]:
    """Which rows of a table, or cells of an array, a filter holds."""
    if isinstance(source, Table):
        rows = matching(source, None)
        return np.isin(np.arange(rows.num_rows), rows_in(rows, at)[1])
    held = np.zeros(source.shape, bool)
    for each in _slices(inside(source, at).only(*source.dims)):
        held[each] = True
    return held


def _slices(at: Filter) -> Iterator[tuple[slice, ...]]:
    """Where in an array each box of a filter lies."""
    ends = [zip(s.low.tolist(), s.high.tolist(), strict=True) for s in at.spans.values()]
    for box in zip(*ends, strict=True):
        yield tuple(slice(low, high + 1) for low, high in box)


def _same(again: Table | Array, made: Table | Array, region: Filter) -> bool:
    """Whether what was made again is, in a region, what was made before."""
    if isinstance(made, Table):
        assert isinstance(again, Table)
        return _counted(again, region) == _counted(made, region)
    (there,) = _slices(region)
    assert isinstance(again, Array)
    pairs = ((again.content.variables[v], a) for v, a in made.content.variables.items())
    return again.shape == made.shape and all(close(b, a[there], there) for b, a in pairs)


def _counted(made: Table, region: Filter) -> Counter[Any]:
    """How often each row was made that lies in a region."""
    rows = matching(made, None)
    inner = rows.take(np.unique(rows_in(rows, region)[1]))
    columns = [inner[n].to_pylist() for n in inner.column_names]
    return Counter(tuple(plain(v) for v in row) for row in zip(*columns, strict=True))
