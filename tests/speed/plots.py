"""Figures of what each approach takes, as PNG files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.speed.approaches import APPROACHES, Kept

Taken = Callable[[Kept, str], float | None]
MEASURES: dict[str, Taken] = {
    "rows stored": lambda kept, name: kept.rows.get(name),
    "preparation (s)": lambda kept, name: kept.prepared.get(name),
    "query (ms)": lambda kept, name: kept.asked.get(name),
}
ALONG = {"random": "nodes", "Montage": "inputs", "EMAN": "iterations", "fMRI": "nodes"}


def plot(every: Sequence[Kept], folder: Path) -> list[Path]:
    """A file for each kind of graph: rows, preparation and query time of every approach."""
    if not find_spec("matplotlib"):
        return []
    folder.mkdir(parents=True, exist_ok=True)
    kinds = list(dict.fromkeys(kept.name for kept in every))
    return [_drawn(kind, [k for k in every if k.name == kind], folder) for kind in kinds]


def _drawn(kind: str, every: Sequence[Kept], folder: Path) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(MEASURES), figsize=(13, 4), layout="constrained")
    for axis, (title, taken) in zip(axes, MEASURES.items(), strict=True):
        for name in APPROACHES:
            points = sorted((k.size, v) for k in every if (v := taken(k, name)))
            axis.plot(*zip(*points, strict=True) if points else ((), ()), "o-", ms=3, label=name)
        axis.set(title=title, xlabel=ALONG[kind], yscale="log")
    axes[0].legend()
    figure.suptitle(kind)
    path = folder / f"{kind.lower()}.png"
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
