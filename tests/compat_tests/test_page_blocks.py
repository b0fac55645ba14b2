"""The blocks of a page that cannot be run as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.page_blocks import PageRun, find_blocks

PAGE = """
```{0}
{1}
```
"""


@pytest.mark.parametrize("kind", ["java", "js", "go", "xml", "yaml", "properties"])
def test_a_program_without_a_file_name_is_one_sentence(kind: str, tmp_path: Path) -> None:
    (block,) = find_blocks(PAGE.format(kind, "content"))
    with pytest.raises(AssertionError, match=f"a block of {kind} begins with a comment that names its file"):
        PageRun(tmp_path, {}).run(block)


def test_a_program_with_a_file_name_is_written(tmp_path: Path) -> None:
    (block,) = find_blocks(PAGE.format("js", "// main.js\nconsole.log(1)"))
    PageRun(tmp_path, {"log(1)": "log(2)"}).run(block)
    assert (tmp_path / "main.js").read_text() == "// main.js\nconsole.log(2)\n"
