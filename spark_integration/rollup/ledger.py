"""The ledger of a rollup, beside Spark's checkpoint: its options, and the totals after each batch.

The checkpoint's folder ``rollup`` holds ``options.json``, and ``N`` once batch N is in the topic and in the table. If
Spark repeats a batch because it was killed before it noted its end, the batch finds its file and writes nothing.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass

from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError
from spark_integration.rollup.settings import RollupSettings
from spark_integration.state.files import HadoopFiles

FOLDER = "rollup"
OPTIONS = f"{FOLDER}/options.json"
# It lies in the table's folder; readers of Parquet and Delta skip names that begin with an underscore.
MARKER = "_rollup.json"

Description = dict[str, str | None]


@dataclass(frozen=True)
class RollupAccount:
    """The totals of all batches up to one.

    *horizon_ms*: windows that end there or before are past their retention, and have tombstones.
    """

    rows: int = 0
    late_rows: int = 0
    partly_late_rows: int = 0
    dead_rows: int = 0
    windows_written: int = 0
    tombstones: int = 0
    watermark_ms: int = 0
    horizon_ms: int | None = None


class RollupLedger:
    """The accounts of a checkpoint."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._files = HadoopFiles(spark, checkpoint)

    def read(self, number: int) -> RollupAccount | None:
        """Return the account of a batch; None before it is done."""
        name = f"{FOLDER}/{number}"
        return RollupAccount(**json.loads(self._files.read(name))) if self._files.exists(name) else None

    def before(self, number: int) -> RollupAccount:
        """Return the account of the batch before; raises PipelineError if it is lost."""
        account = RollupAccount() if number == 0 else self.read(number - 1)
        if account is None:
            raise PipelineError(
                f"{self._files.path(FOLDER)} lacks batch {number - 1}: restore it, or start over with another "
                "--checkpointLocation and --path"
            )
        return account

    def latest(self) -> RollupAccount:
        """Return the account of the last finished batch."""
        numbers = self._files.numbers(FOLDER)
        return (self.read(numbers[-1]) if numbers else None) or RollupAccount()

    def write(self, number: int, account: RollupAccount) -> None:
        """Write the account of a finished batch.

        The account before it is kept, in case that batch is repeated; older ones are removed.
        """
        self._files.write_new(f"{FOLDER}/{number}", json.dumps(asdict(account)))
        for old in self._files.numbers(FOLDER):
            if old < number - 1:
                self._files.remove(f"{FOLDER}/{old}")

    @property
    def has_finished_batch(self) -> bool:
        """Whether a batch is done."""
        return bool(self._files.numbers(FOLDER))

    def claim(self, rollup: RollupSettings, table: HadoopFiles) -> None:
        """Bind checkpoint and table to each other and to these options; raises PipelineError if they are of others."""
        own = self.check(rollup, table)
        if not self._files.exists(OPTIONS):
            self._files.write_new(OPTIONS, json.dumps(own))
        if not table.exists(MARKER):
            table.write_new(MARKER, json.dumps({"id": own["id"]}))

    def check(self, rollup: RollupSettings, table: HadoopFiles) -> Description:
        """Raise PipelineError for a checkpoint or table of another rollup; return the checkpoint's options.

        Writes nothing.
        """
        # A relative path means another folder in another working directory, so the full one is compared.
        wanted = {**rollup.fixed_options(), "path": table.uri}
        own = self._check_description(wanted)
        self._refuse_other_options(wanted, own)
        self._refuse_other_table(table, own)
        return own

    def _refuse_other_table(self, table: HadoopFiles, own: Description) -> None:
        if not table.exists(MARKER):
            if any(not name.startswith((".", MARKER, f"_{MARKER}")) for name in table.names()):
                raise PipelineError(f"--path {table.uri} holds something that is no rollup: give an empty or a new one")
            if self.has_finished_batch:
                raise PipelineError(
                    f"--path {table.uri} is gone, and with it all earlier results: restore it, or start over with "
                    "another --checkpointLocation"
                )
        elif json.loads(table.read(MARKER))["id"] != own["id"]:
            raise PipelineError(
                f"--path {table.uri} holds the rollup of another checkpoint: give that one's --checkpointLocation, "
                "or another --path"
            )

    def _check_description(self, wanted: Description) -> Description:
        if self._files.exists(OPTIONS):
            description: Description = json.loads(self._files.read(OPTIONS))
            return description
        if self._files.exists("metadata"):
            raise PipelineError(
                f"the checkpoint {self._files.uri} is not a rollup's: give a --checkpointLocation of its own"
            )
        return {"id": str(uuid.uuid4()), **wanted}

    def _refuse_other_options(self, wanted: Description, own: Description) -> None:
        for name, value in wanted.items():
            if own[name] != value:
                raise PipelineError(
                    f"the checkpoint {self._files.uri} was made with {_format_option(name, own[name])}, not with "
                    f"{_format_option(name, value)}: "
                    "give that, or start over with another --checkpointLocation and --path"
                )


def _format_option(name: str, value: str | None) -> str:
    option = f"--{name.replace('_', '-')}"
    return f"no {option}" if value is None else f"{option} {value!r}"
