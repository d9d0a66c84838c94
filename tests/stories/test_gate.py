"""Who is let in, what is handed out, and that foreign text is never more than text."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
import xarray as xr
from playwright.sync_api import Browser
from pyspark.sql import SparkSession

from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.browser import visiting
from tests.files import grid, pressures
from tests.stories.explored import Explorer, exploring

SCRIPT = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def hostile(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace over a file whose every attribute carries script."""
    folder = tmp_path_factory.mktemp("hostile")
    data: xr.Dataset = grid(pressures())
    data["slp"].attrs |= {"long_name": SCRIPT, "comment": SCRIPT}
    data["note"] = (("time", "lat", "lon"), data["slp"].values, {"units": SCRIPT})
    data.attrs = {"title": SCRIPT, "history": SCRIPT}
    data.to_netcdf(folder / "world.nc")
    text = (
        "name: p\nsources: {world: {path: world.nc}}\n"
        "boxes: {minima: {box: extract_minima, inputs: {field: world}}}\n"
    )
    (folder / "p.yaml").write_text(text)
    workspace = Workspace.create(folder / "w")
    run(Pipeline.from_file(folder / "p.yaml"), workspace, spark)
    return workspace


@pytest.fixture(scope="module")
def explorer(hostile: Workspace) -> Iterator[Explorer]:
    with exploring(hostile) as served:
        yield served


def status(explorer: Explorer, path: str, **headers: str) -> int:
    """How the server answers a request, redirections not followed."""
    connection = HTTPConnection("127.0.0.1", explorer.server.gate.port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_without_the_token_nothing_is_shown(explorer: Explorer) -> None:
    bare = explorer.url.split("?")[0]
    for url in (bare, f"{bare}?token=wrong", f"{bare}?token="):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, timeout=10)
        assert refused.value.code == 403
        assert b"Not admitted" in refused.value.read()


def test_nothing_else_is_handed_out_without_it_either(explorer: Explorer) -> None:
    assert status(explorer, "/ws") in (401, 403, 404, 400)
    assert status(explorer, "/fetch/whatever") == 403
    assert status(explorer, "/autoload.js?bokeh-autoload-element=1") != 200


def test_the_token_is_good_only_under_our_own_name(explorer: Explorer) -> None:
    path = f"/?token={explorer.server.gate.token}"
    assert status(explorer, path) == 200
    assert status(explorer, path, Host="evil.example:80") != 200


def test_a_foreign_origin_gets_no_connection(explorer: Explorer) -> None:
    gate = explorer.server.gate
    upgrade = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Cookie": f"whence-{gate.port}={gate.token}",
    }  # fmt: skip
    assert status(explorer, "/ws", Origin="http://evil.example", **upgrade) == 403


def test_no_module_can_be_imported_by_asking_for_its_files(explorer: Explorer) -> None:
    path = f"/components/antigravity/x/y/z?token={explorer.server.gate.token}"
    assert status(explorer, path) == 403


def test_a_page_lives_by_a_policy_without_evaluation(explorer: Explorer) -> None:
    with urllib.request.urlopen(explorer.url, timeout=30) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "unsafe-eval" not in policy and "frame-ancestors 'none'" in policy


def test_an_export_is_fetched_only_with_its_own_address(explorer: Explorer, tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("1,2\n")
    address = explorer.server.parcels.leave(tmp_path / "cells.csv", "cells.csv")
    token = f"?token={explorer.server.gate.token}"
    assert status(explorer, address) == 403
    assert status(explorer, f"{address}{token}") == 200
    assert status(explorer, f"/fetch/{'a' * 24}{token}") == 404
    assert status(explorer, f"/fetch/..%2f..%2fetc%2fpasswd{token}") == 404


def test_script_in_a_file_is_shown_as_text(explorer: Explorer, chromium: Browser) -> None:
    with visiting(chromium, explorer.url) as page:
        page.get_by_text("On the canvas").wait_for()
        page.get_by_role("tab", name="Slices").click()
        page.get_by_text("time 0 of 4").wait_for()
        page.get_by_role("tab", name="Table").click()
        page.get_by_text("shown of").first.wait_for()
        visit = explorer.visits[-1]
        assert visit.state.array is not None and "note" in visit.state.array.variables
        for variable in visit.state.array.variables:
            visit.map.picture.figure.document.add_next_tick_callback(
                lambda v=variable: visit.state.param.update(variable=v)
            )
            page.wait_for_timeout(300)
        visit.map.picture.figure.document.add_next_tick_callback(
            lambda: visit.map._tapped(90, 0, (0.1, 0.1), (100, 100))
        )
        page.wait_for_timeout(700)
        assert page.title() != "owned"
