"""A bundle shows on another machine the trace that it was made of, and whatever else it holds."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast
from urllib.parse import quote
from zipfile import ZipFile

import numpy as np
import pytest
import xarray as xr
from prov.model import ProvDocument
from pyspark.sql import SparkSession
from rocrate.rocrate import ROCrate

from explorer import bundle as bundling
from explorer.bundle import bundle
from explorer.cells import traced_box
from explorer.cli import main
from explorer.evidence import Evidence, opened
from explorer.shown import plans_json
from inverses import words
from inverses.answer import Answer
from inverses.trace import trace
from pipelines.errors import Failed, Refused, SourceChanged, TooDear
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.explorer.traced import traced
from tests.faults.bundler import untraced
from tests.files import LAYOUTS, grid, pressures

ROOT = Path(__file__).parents[2]
HERE = cast(SparkSession, Here(2))
WHERE = "track = 600001800129 and time = '2000-01-16'"


@pytest.fixture(scope="module")
def answer(demo: Workspace, spark: SparkSession) -> Answer:
    return trace(demo, "tracks", WHERE, spark=spark)


@pytest.fixture(scope="module")
def path(answer: Answer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle(answer, tmp_path_factory.mktemp("bundle") / "deepest.whence.zip")


@pytest.fixture(scope="module")
def evidence(path: Path) -> Evidence:
    return opened(path)


@pytest.fixture(scope="module")
def unpacked(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with ZipFile(path) as file:
        file.extractall(folder)
    return folder


def test_a_bundle_gives_back_the_answer_its_plan_its_cells_and_its_pipeline(
    evidence: Evidence, answer: Answer
) -> None:
    assert evidence.answer == answer.to_json()
    assert evidence.plan == plans_json(answer.plan, {})
    assert evidence.words == tuple(words.told(answer))
    assert evidence.cells.keys() == {"minima", "agcm"}
    for name, cells in evidence.cells.items():
        assert cells.equals(answer.cells(name))
    assert evidence.pipeline == (ROOT / "assets" / "cyclones.yaml").read_text()


def test_a_bundle_is_opened_without_workspace_and_without_spark(
    path: Path, answer: Answer, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "sent.whence.zip"
    elsewhere.write_bytes(path.read_bytes())
    script = "import sys; from explorer.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "JAVA_HOME": "/nowhere"}
    told = subprocess.run(
        [sys.executable, "-c", script, "open", elsewhere.name],
        cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines() == words.told(answer)
    assert [p.name for p in tmp_path.iterdir()] == [elsewhere.name]


def test_json_and_words_are_those_that_the_trace_printed(
    demo: Workspace, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "cells.whence.zip")
    asked = ["trace", "tracks", "--where", WHERE, "-w", str(demo.path), "--export", target]
    assert main([*asked, "--json"]) == 0
    printed = capsys.readouterr().out
    assert main(["open", target, "--json"]) == 0
    assert capsys.readouterr().out == printed
    assert main(asked) == 0
    said = capsys.readouterr().out.splitlines()
    assert main(["open", target]) == 0
    assert [*capsys.readouterr().out.splitlines(), f"wrote {target}"] == said


def test_nothing_in_a_bundle_says_where_on_a_machine_it_was_made(
    unpacked: Path, demo: Workspace
) -> None:
    for file in (f for f in unpacked.rglob("*") if f.is_file()):
        for place in (demo.path, ROOT, Path.home()):
            assert str(place).encode() not in file.read_bytes(), file


def test_entries_are_always_the_same_in_the_same_order(
    path: Path, answer: Answer, tmp_path: Path
) -> None:
    with ZipFile(path) as one, ZipFile(bundle(answer, tmp_path / "again.whence.zip")) as other:
        assert one.namelist() == other.namelist()
        assert one.namelist()[:3] == ["README.txt", "answer.json", "plan.json"]
        for name in set(one.namelist()) - {"cells/agcm.nc"} - {"whence.json"}:
            if name != "ro-crate-metadata.json":
                assert one.read(name) == other.read(name), name


def test_rocrate_finds_every_file_as_described(path: Path, unpacked: Path) -> None:
    crate = ROCrate(unpacked)
    described = {e.id: e for e in crate.data_entities}
    with ZipFile(path) as file:
        listed = set(file.namelist()) - {"whence.json", "ro-crate-metadata.json"}
    assert set(described) == listed
    for name, entity in described.items():
        content = (unpacked / name).read_bytes()
        assert entity["sha256"] == hashlib.sha256(content).hexdigest()
        assert int(entity["contentSize"]) == len(content)
    assert "tracks" in crate.name and "came from" in crate.description


def test_prov_tells_how_every_version_was_made_and_what_was_traced(unpacked: Path) -> None:
    with (unpacked / "provenance.json").open() as file:
        document = ProvDocument.deserialize(file, format="json")
    told = json.loads((unpacked / "provenance.json").read_text())
    derived = {
        (d["prov:generatedEntity"], d["prov:usedEntity"]) for d in told["wasDerivedFrom"].values()
    }
    chain = ["whence:dataset/tracks/v1", "whence:dataset/minima/v1", "whence:dataset/agcm/v1"]
    assert {(chain[0], chain[1]), (chain[1], chain[2])} <= derived
    assert {("whence:selection", f"whence:traced/{n}/v1") for n in ("minima", "agcm")} <= derived
    assert ("whence:traced/agcm/v1", chain[2]) in derived
    assert len(told["activity"]) == 4 and len(told["wasGeneratedBy"]) == 5
    assert told["entity"]["whence:traced/agcm/v1"]["whence:guarantee"] == "complete, pure"
    assert len(list(document.get_records())) > 20


def test_the_box_in_a_bundle_is_plain_netcdf_with_its_mask(unpacked: Path, answer: Answer) -> None:
    with xr.open_dataset(unpacked / "cells" / "agcm.nc") as data:
        expected = traced_box(answer, "agcm")
        xr.testing.assert_equal(data.load(), expected)
        assert int(data["slp_traced"].sum()) == 9


def test_manifests_describe_every_dataset_on_the_way(unpacked: Path) -> None:
    found = {p.name: json.loads(p.read_text()) for p in (unpacked / "datasets").iterdir()}
    assert set(found) == {"agcm-v1.json", "minima-v1.json", "tracks-v1.json"}
    assert found["minima-v1.json"]["made"]["inputs"] == {"field": ["agcm", "v1"]}
    assert found["agcm-v1.json"]["path"] == "array.zarr"


def test_a_file_from_elsewhere_keeps_its_name_and_loses_its_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = traced(LAYOUTS["era5"], tmp_path, spark, absolute=True)
    target = bundle(world.answer, tmp_path / "cells.whence.zip")
    text = opened(target).pipeline
    assert text is not None and "path: world.nc" in text
    with ZipFile(target) as file:
        assert not [n for n in file.namelist() if str(tmp_path).encode() in file.read(n)]


def test_a_selection_of_a_source_is_bundled_too(
    demo: Workspace, spark: SparkSession, tmp_path: Path
) -> None:
    found = trace(demo, "agcm", "time = '2000-01-16' and lat = 45", ["slp"], spark=spark)
    evidence = opened(bundle(found, tmp_path / "cells.whence.zip"))
    assert evidence.cells["agcm"].num_rows == 144 and evidence.plan["hops"] == []


def test_a_dataset_may_have_any_name_that_datasets_have(demo: Workspace, tmp_path: Path) -> None:
    answer, name = untraced(demo.path), "größe.v1-2"
    (found,) = answer.found.values()
    dataset = replace(found.dataset, name=name)
    selection = replace(answer.plan.selection, dataset=dataset)
    renamed = replace(
        answer,
        plan=replace(answer.plan, selection=selection),
        found={dataset.key: replace(found, dataset=dataset)},
    )
    target = bundle(renamed, tmp_path / "cells.whence.zip")
    assert opened(target).cells[name].equals(answer.cells("agcm"))
    with ZipFile(target) as file:
        file.extractall(tmp_path / "unpacked")
    assert f"cells/{quote(name)}.parquet" in {
        e.id for e in ROCrate(tmp_path / "unpacked").data_entities
    }


UNKEPT = """
name: unkept
sources: {world: {path: world.nc}}
boxes:
  smooth: {box: window_mean, inputs: {field: world}, keep: false}
  thin: {box: select, inputs: {field: smooth}, params: {lon: 2}}
  top: {box: window_extreme, inputs: {field: world}, params: {lat: 1, lon: 1}}
"""


@pytest.fixture
def unkept(tmp_path: Path) -> Workspace:
    values = np.where(np.arange(16) == 0, np.nan, pressures())
    grid(values, wind=()).to_netcdf(tmp_path / "world.nc")
    workspace = Workspace.create(tmp_path / "w")
    run(Pipeline.from_text(UNKEPT, base=tmp_path), workspace, HERE)
    return workspace


def test_cells_that_were_not_kept_are_bundled_as_rows(unkept: Workspace, tmp_path: Path) -> None:
    answer = trace(unkept, "thin", "lat = 45 and lon = 45", spark=HERE)
    target = bundle(answer, tmp_path / "cells.whence.zip")
    assert opened(target).cells["smooth"].equals(answer.cells("smooth"))
    with ZipFile(target) as file:
        assert {n for n in file.namelist() if n.endswith(".nc")} == {"cells/world.nc"}


def test_that_nothing_was_found_is_bundled_too(unkept: Workspace, tmp_path: Path) -> None:
    answer = trace(unkept, "top", "lon = 0", spark=HERE)
    assert opened(bundle(answer, tmp_path / "none.whence.zip")).cells["world"].num_rows == 0


def test_cells_too_far_apart_for_a_box_are_bundled_as_rows(
    answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.cells.MOST_BOX_CELLS", 8)
    target = bundle(answer, tmp_path / "cells.whence.zip")
    with ZipFile(target) as file:
        assert "cells/agcm.nc" not in file.namelist()
    assert opened(target).cells["agcm"].num_rows == 9


def test_what_could_not_be_opened_again_is_not_written(
    answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.evidence.MOST_ROWS", 8)
    with pytest.raises(TooDear, match="too much for one bundle"):
        bundle(answer, tmp_path / "cells.whence.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_changed_since_the_trace_is_not_evidence(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = traced(LAYOUTS["windless"], tmp_path, spark)
    world.layout.write(world.path)
    world.path.write_bytes(world.path.read_bytes() + b" ")
    with pytest.raises(SourceChanged):
        bundle(world.answer, tmp_path / "cells.whence.zip")
    assert not list(tmp_path.glob("*.zip"))


def test_a_bundle_ends_as_bundles_do(answer: Answer, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="its name must end in"):
        bundle(answer, tmp_path / "cells.zip")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_bundle_that_stops_halfway_leaves_nothing(
    answer: Answer, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(*_: object) -> None:
        raise error

    monkeypatch.setattr(bundling, "provenance", stops)
    with pytest.raises((Failed, KeyboardInterrupt)):
        bundle(answer, tmp_path / "cells.whence.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_whole_bundles_and_nothing_else(
    demo: Workspace, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.faults.bundler", str(demo.path), str(tmp_path), "8"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    left = sorted(tmp_path.iterdir())
    assert len(left) >= 1 + 8
    assert all(p.name.endswith(".whence.zip") and opened(p).words for p in left)
