"""Files and folders below a path of any file system that Hadoop knows (file, hdfs, s3a)."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


class HadoopFiles:
    """The files below *path*, a Hadoop path that need not exist yet; names are relative to it.

    Failures are Py4JJavaError, or OSError if a file system gives no reason.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        self._hadoop = jvm.org.apache.hadoop.fs
        self._io = jvm.org.apache.commons.io.IOUtils
        root = self._hadoop.Path(path)
        self._gateway: Any = spark.sparkContext._gateway
        self._configuration: Any = spark._jsc.hadoopConfiguration()
        self._files: Any = root.getFileSystem(self._configuration)
        self._root: Any = self._files.makeQualified(root)

    @property
    def uri(self) -> str:
        """The whole path, with its scheme, as Spark shows it."""
        return str(self._root.toString())

    def path(self, name: str) -> str:
        """Return the whole path of *name*."""
        return str(self._at(name).toString())

    def exists(self, name: str = "") -> bool:
        """Return whether a file or folder of that name exists."""
        return bool(self._files.exists(self._at(name)))

    def names(self, folder: str = "") -> list[str]:
        """Return the names in a folder, sorted; none if the folder does not exist."""
        if not self.exists(folder):
            return []
        return sorted(str(status.getPath().getName()) for status in self._files.listStatus(self._at(folder)))

    def numbers(self, folder: str) -> list[int]:
        """Return the names in a folder that are numbers, in order, as in Spark's logs."""
        return sorted(int(name) for name in self.names(folder) if name.isdecimal())

    def read(self, name: str) -> str:
        """Return a file's text."""
        stream = self._files.open(self._at(name))
        try:
            return str(self._io.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_new(self, name: str, text: str) -> None:
        """Write a file that must not exist yet; readers see it completely or not at all."""
        folder, slash, last = name.rpartition("/")
        partial = f"{folder}{slash}_{last}.partial"
        stream = self._files.create(self._at(partial), True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()
        self.rename(partial, name)

    def rename(self, name: str, to: str) -> None:
        """Rename a file or folder atomically; raises FileExistsError if the new name exists."""
        options = getattr(self._hadoop, "Options$Rename")
        keep = self._gateway.new_array(options, 1)
        keep[0] = options.NONE
        context = self._hadoop.FileContext.getFileContext(self._root.toUri(), self._configuration)
        try:
            context.rename(self._at(name), self._at(to), keep)
        except Py4JJavaError as failure:
            if "FileAlreadyExists" not in str(failure):
                raise
            raise FileExistsError(f"{self.path(to)} is there already") from failure

    def is_folder(self, name: str = "") -> bool:
        """Return whether a folder of that name exists."""
        return self.exists(name) and bool(self._files.getFileStatus(self._at(name)).isDirectory())

    def make_folder(self, name: str = "") -> None:
        """Create a folder and those above it, unless they exist."""
        if not self._files.mkdirs(self._at(name)):
            raise OSError(f"{self.path(name)} could not be made")

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its contents, if it exists."""
        self._files.delete(self._at(name), True)

    def _at(self, name: str) -> Any:
        return self._hadoop.Path(self._root, name) if name else self._root
