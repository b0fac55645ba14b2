"""``python -m compat_tests.spark.archive_reader FORMAT PATH FILE``: read an archive and pickle its records.

It is a process of its own, since a session has the jars of a format from its start on.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from compat_tests.spark.archives import read_frame
from spark_integration.archive.reading import read_archive
from spark_integration.session import start_session


def main(form: str, path: str, file: str) -> None:
    """Read the archive and write its records."""
    packages = [] if form == "parquet" else [form]
    spark = start_session("archive-reader", master="local[2]", memory="512m", packages=packages)
    Path(file).write_bytes(pickle.dumps({tuple(record) for record in read_frame(read_archive(spark, path))}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
