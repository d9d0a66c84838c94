"""What tests of the explorer share: traces over files as others write them."""

import pytest
from pyspark.sql import SparkSession

from tests.explorer.traced import Traced, traced
from tests.files import LAYOUTS


@pytest.fixture(scope="session")
def era5(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return traced(LAYOUTS["era5"], tmp_path_factory.mktemp("era5"), spark)


@pytest.fixture(
    scope="session",
    params=["era5", "cmip", "ncep", "odd", "with_level", "transposed", "rolled", "zarr_2"],
)
def world(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Traced:
    return traced(LAYOUTS[request.param], tmp_path_factory.mktemp(request.param), spark)
