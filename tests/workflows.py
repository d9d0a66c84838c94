"""Three scientific workflows as graphs of their tasks and datasets, and a history of many runs."""

from __future__ import annotations

from random import Random

from tests.graphs import Drawing, Graph


def fmri() -> Graph:
    """Four brain scans aligned to a reference, resliced, averaged and sliced along three axes.

    Every image comes with a header; 45 nodes.
    """
    d = Drawing()
    reference = [d.made(), d.made()]
    resliced = []
    for _ in range(4):
        scan = [d.made(), d.made()]
        reslice = d.through(3, *scan, *reference)
        resliced += [d.made(reslice), d.made(reslice)]
    mean = d.made(*resliced)
    atlas = [d.made(mean), d.made(mean)]
    for _ in range(3):
        d.through(4, *atlas)
    return d.graph


def montage(inputs: int) -> Graph:
    """A mosaic: each input transferred, projected and fitted; all meet; each corrected; assembled.

    An input passes 25 tasks and datasets in parallel with the others: 40 inputs make 1 007 nodes.
    """
    d = Drawing()
    fitted = []
    for _ in range(inputs):
        projection = d.through(4)
        image, area = d.made(projection), d.made(projection)
        fitted.append(d.through(6, image, area))
    model = d.through(2, *fitted)
    tiles = []
    for _ in range(inputs):
        corrected = d.through(4, model)
        image, area = d.made(corrected), d.made(corrected)
        tiles.append(d.through(7, image, area))
    d.through(5, *tiles)
    return d.graph


def eman(iterations: int, width: int = 8) -> Graph:
    """A particle's structure: a first model, refined over and over in two parallel stages."""
    d = Drawing()
    model = d.through(6)
    for _ in range(iterations):
        projections = d.through(2, model)
        classes = d.made(*[d.through(2, projections) for _ in range(width)])
        averages = d.made(*[d.through(2, classes) for _ in range(width)])
        model = d.through(2, averages)
    return d.graph


def history(rng: Random, runs: int, size: int = 100, recent: int = 20) -> Graph:
    """Many runs, each of so many datasets, three arrows to two datasets.

    A run reads what earlier runs ended with, mostly recent ones, and makes each dataset from one
    or two that it read or made not long before.
    """
    d = Drawing()
    ends: list[int] = []
    for _ in range(runs):
        read = _read(rng, ends, recent)
        made: list[int] = []
        for n in range(size):
            near = made[-12:] if n > 2 else []
            used = rng.sample(near, min(len(near), 2 if rng.random() < 0.52 else 1))
            made.append(d.made(*dict.fromkeys([*read[n : n + 1], *used])))
        ends += made[-3:]
    return d.graph


def _read(rng: Random, ends: list[int], recent: int) -> list[int]:
    if not ends:
        return []
    late = rng.choices(ends[-3 * recent :], k=2)
    return list(dict.fromkeys([*late, rng.choice(ends)]))
