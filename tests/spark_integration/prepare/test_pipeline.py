"""What `prepare` prints."""

from __future__ import annotations

import pytest

from spark_integration.prepare.pipeline import PrepareSummary


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("/c/classes.jsa", "Spark 4.0.0 is ready with kafka, delta; its classes are in /c/classes.jsa\n"),
        (None, "Spark 4.0.0 is ready with kafka, delta; this Java cannot keep its classes\n"),
    ],
)
def test_the_summary_is_a_sentence(capsys: pytest.CaptureFixture[str], file: str | None, sentence: str) -> None:
    PrepareSummary("4.0.0", "kafka, delta", file).show()
    assert capsys.readouterr().out == sentence
