"""Reading the manifest of an archive that other runs write to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_integration.errors import PipelineError
from spark_integration.state import archives
from spark_integration.state.manifest import ArchiveDescription
from tests.spark_integration.state.test_manifest import make_commits


def test_commits_that_are_replaced_while_they_are_read_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    description = ArchiveDescription("parquet", ("topic",), "x")
    files = SimpleNamespace(exists=lambda _: True, read=lambda _: description.as_json())
    monkeypatch.setattr(archives, "HadoopFiles", lambda *_: files)
    reads = [make_commits(3), make_commits(4, kind="compact")]
    monkeypatch.setattr(archives, "_read_commits", lambda *_: reads.pop(0))
    assert archives.read_manifest(cast(Any, None), "p").number == 4
    reads = [make_commits(3), make_commits(3)]
    with pytest.raises(PipelineError, match="lacks commit"):
        archives.read_manifest(cast(Any, None), "p")
