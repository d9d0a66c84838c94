"""What tests share: one Spark session, one workspace with the demo in it, and one browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from explorer.demo import asset
from inverses.registry import Registry
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.spark import session, warm
from pipelines.workspace import Workspace
from tests.browser import chromium as chromium
from tests.databases import catalog_url as catalog_url
from tests.databases import postgres as postgres

settings.register_profile("day", max_examples=100, deadline=None, derandomize=True)
settings.register_profile(
    "night", max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck)
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--night", action="store_true", help="run the long examples too")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("night" if config.getoption("--night") else "day")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--night"):
        nightly = [i for i in items if i.get_closest_marker("night")]
        items[:] = [i for i in items if i not in nightly]
        config.hook.pytest_deselected(items=nightly)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that all tests share."""
    running = session("local[2,4]")
    warm(running, "inverses.trace")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def demo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace in which the demo pipeline has run."""
    workspace = Workspace.create(tmp_path_factory.mktemp("demo"))
    run(Pipeline.from_file(asset("cyclones.yaml")), workspace, spark)
    return workspace


@pytest.fixture(scope="session")
def registry() -> Registry:
    """All that is shipped."""
    return Registry.of()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty workspace."""
    return Workspace.create(tmp_path / "workspace")
