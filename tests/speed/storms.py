"""PyStormTracker, a tracker that keeps no lineage, in the configuration that suits it best."""

from __future__ import annotations

import io
import time
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal


def installed() -> bool:
    """Whether PyStormTracker is there; it comes with the extra `speed`."""
    return find_spec("pystormtracker") is not None


@dataclass(frozen=True, slots=True)
class Setup:
    """One way to call its simple tracker, without the spectral filter that we have not either."""

    file: Path
    backend: Literal["serial", "dask"]
    cores: int

    def __str__(self) -> str:
        kind = "Zarr" if self.file.is_dir() else "NetCDF"
        workers = f" with {self.cores} workers" if self.backend == "dask" else ""
        return f"PyStormTracker {version('pystormtracker')}, {self.backend}{workers}, on {kind}"

    def track(self) -> int:
        """Find the minima of the pressure and the tracks they form; how many there are."""
        from pystormtracker import SimpleTracker

        with redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            found = SimpleTracker().track(
                infile=str(self.file),
                varname="msl",
                mode="min",
                backend=self.backend,
                n_workers=self.cores,
                filter=False,
            )
        return len(found)


def fastest(files: list[Path], cores: int, tries: int = 2) -> Setup:
    """The quickest of its setups on these files, once everything is compiled."""
    serial = [Setup(file, "serial", cores) for file in files]
    setups = [*serial, *(replace(setup, backend="dask") for setup in serial)]
    setups[0].track()
    return min(setups, key=lambda setup: min(_seconds(setup) for _ in range(tries)))


def _seconds(setup: Setup) -> float:
    began = time.perf_counter()
    setup.track()
    return time.perf_counter() - began
