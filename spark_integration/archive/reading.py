"""Reading an archive: exactly what its manifest names, with every file checked first."""

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

    *format* must be the archive's if it is given. Records that no finished commit names are left out. Raises
    PipelineError if there is no archive, or if a file is missing or has another size. Reading the frame fails if a
    file's contents do not match its checksums.
    """
    manifest = read_manifest(spark, path)
    archive_format = manifest.description.format
    if format not in (None, archive_format):
        raise PipelineError(f"the archive in {path} is {archive_format}, not {format}: leave --format out")
    if archive_format == "parquet":
        return read_parquet_archive(spark, path, manifest)
    require_format(spark, archive_format)
    # A table holds the records of a commit a moment before the manifest names them, and keeps those of killed runs.
    return records_within(spark.read.format(archive_format).load(path), manifest.covered).select(*COLUMNS)


def read_parquet_archive(spark: SparkSession, path: str, manifest: ArchiveManifest) -> DataFrame:
    """Return the records of an archive in Parquet."""
    if problems := check_files(spark, path, manifest):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise PipelineError(f"{problems[0]}{more}: restore it from a copy, or archive its topics again elsewhere")
    return read_parquet_files(spark, path, [file.path for file in manifest.files])


def read_parquet_files(spark: SparkSession, path: str, names: Iterable[str]) -> DataFrame:
    """Return the records of these Parquet files of the archive at *path*."""
    files = HadoopFiles(spark, path)
    named = [files.path(name) for name in names]
    if not named:
        return spark.createDataFrame([], SCHEMA)
    # Pages carry checksums, which Parquet verifies only on demand.
    options = {"basePath": path, "parquet.page.verify-checksum.enabled": "true"}
    return spark.read.schema(SCHEMA).options(**options).parquet(*named).select(*COLUMNS)


def check_files(spark: SparkSession, path: str, manifest: ArchiveManifest) -> list[str]:
    """Compare the files of a Parquet archive with its manifest; return a clause for each missing or changed file."""
    found_sizes = data_file_sizes(spark, path)
    compared = ((file, found_sizes.get(file.path)) for file in manifest.files)
    return [
        f"{path}/{file.path} is missing"
        if size is None
        else f"{path}/{file.path} is damaged ({size} bytes instead of {file.size_bytes})"
        for file, size in compared
        if size != file.size_bytes
    ]


def data_file_sizes(spark: SparkSession, path: str) -> dict[str, int]:
    """Return the size in bytes of each data file below *path*, by its path below it; hidden files are left out."""
    root = HadoopFiles(spark, path).uri + "/"
    # Their contents are not selected, so they are not read. Spark lists the folders in parallel.
    listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path).select("path", "length")
    return {row.path.removeprefix(root): row.length for row in listed.collect()}


# A class that a session with this format has.
CLASSES = {
    "parquet": "org.apache.spark.sql.SparkSession",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.source.IcebergSource",
}


def require_format(spark: SparkSession, name: str) -> None:
    """Raise PipelineError if the session cannot write or read that format."""
    if name not in CLASSES:
        raise PipelineError(f"{name!r} is no format of an archive: choose {', '.join(CLASSES)}")
    try:
        jvm: Any = spark._jvm
        jvm.Thread.currentThread().getContextClassLoader().loadClass(CLASSES[name])
    except Py4JJavaError as problem:
        raise PipelineError(
            f"this session of Spark {spark.version} has no {name}: "
            f'give --format {name} (start_session: packages=["{name}"]), or use parquet'
        ) from problem
