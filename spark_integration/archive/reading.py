"""Reading an archive: what its manifest names and nothing else, with every file looked for before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from spark_integration.archive.layout import COLUMNS, SCHEMA
from spark_integration.errors import PipelineError
from spark_integration.state.archives import read_manifest
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import ArchiveManifest
from spark_integration.topics.intervals import records_within


def read_archive(spark: SparkSession, path: str, format: str | None = None) -> DataFrame:
    """Return the records of the archive at *path* as they are now; later commits do not change the frame.

    *format* is found out; one that is given must be the archive's. What no finished commit names is not read.
    Raises PipelineError where there is no archive, or where one of its files is missing or of another size; reading
    fails where the contents of a file do not fit its checksums.
    """
    manifest = read_manifest(spark, path)
    found = manifest.description.format
    if format not in (None, found):
        raise PipelineError(f"the archive in {path} is {found}, not {format}: leave --format out")
    if found == "parquet":
        return read_parquet_archive(spark, path, manifest)
    require_format(spark, found)
    # A table has the records of a commit a moment before the manifest has it, and keeps those of a run that was killed.
    return records_within(spark.read.format(found).load(path), manifest.covered).select(*COLUMNS)


def read_parquet_archive(spark: SparkSession, path: str, manifest: ArchiveManifest) -> DataFrame:
    """Return the records of an archive in Parquet."""
    if problems := check_files(spark, path, manifest):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise PipelineError(f"{problems[0]}{more}: restore it from a copy, or archive its topics anew elsewhere")
    return read_parquet_files(spark, path, [file.path for file in manifest.files])


def read_parquet_files(spark: SparkSession, path: str, names: Iterable[str]) -> DataFrame:
    """Return the records of these Parquet files of the archive at *path*."""
    files = HadoopFiles(spark, path)
    named = [files.path(name) for name in names]
    if not named:
        return spark.createDataFrame([], SCHEMA)
    # Pages carry checksums, which Parquet looks at only when told to.
    options = {"basePath": path, "parquet.page.verify-checksum.enabled": "true"}
    return spark.read.schema(SCHEMA).options(**options).parquet(*named).select(*COLUMNS)


def check_files(spark: SparkSession, path: str, manifest: ArchiveManifest) -> list[str]:
    """Compare the files of a Parquet archive with its manifest; return a clause for each that is missing or changed."""
    found = data_file_sizes(spark, path)
    told = ((file, found.get(file.path)) for file in manifest.files)
    return [
        f"{path}/{file.path} is missing"
        if size is None
        else f"{path}/{file.path} is damaged ({size} bytes instead of {file.size_bytes})"
        for file, size in told
        if size != file.size_bytes
    ]


def data_file_sizes(spark: SparkSession, path: str) -> dict[str, int]:
    """Return the sizes in bytes of all data files below *path*, by their paths below it; hidden ones are left out."""
    root = HadoopFiles(spark, path).uri + "/"
    # The contents are not read, as they are not selected; Spark lists the folders in parallel.
    listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path).select("path", "length")
    return {row.path.removeprefix(root): row.length for row in listed.collect()}


# A class of what the session has to have beside Spark itself.
CLASSES = {
    "parquet": "org.apache.spark.sql.SparkSession",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.source.IcebergSource",
}


def require_format(spark: SparkSession, name: str) -> None:
    """Raise PipelineError where the session cannot write or read that format."""
    if name not in CLASSES:
        raise PipelineError(f"{name!r} is no format of an archive: choose {', '.join(CLASSES)}")
    try:
        jvm: Any = spark._jvm
        jvm.Thread.currentThread().getContextClassLoader().loadClass(CLASSES[name])
    except Py4JJavaError as problem:
        raise PipelineError(
            f'this session of Spark {spark.version} has no {name}: give --format {name} (start_session: packages=["{name}"]), or use parquet'
        ) from problem
