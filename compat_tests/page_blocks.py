"""Runs what a page of the documentation shows: its commands, the files that it writes, and its programs.

A block ``sh`` runs in a shell, ``python`` as a program. A block of another kind, or of Python, whose first line is a comment with a
file's name is written to that file. An indented block is one command: ``kafkacompat serve`` serves until the end, all others run to
their end, ``keytool`` gets passwords.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from compat_tests.brokers import ROOT
from compat_tests.java_tools import java_command
from compat_tests.waiting import until

_BLOCK = re.compile(
    r"^```(sh|properties|python|java|js|go|xml|yaml)\n(.*?)^```|^```\w*\n.*?^```|((?:^    [^\n]*\n)+)",
    re.MULTILINE | re.DOTALL,
)
_FILE_NAME = re.compile(r"(?:#|//|<!--) ([\w-]+\.\w+)(?: -->)?\n")
_TOOLS = {"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand", "kafka-configs.sh": "kafka.admin.ConfigCommand"}
_INTERPRETERS = {"sh": ["bash", "-e", "-c"], "python": [sys.executable, "-c"]}
_PASSWORDS = "change-me\n" * 3
_TIMEOUT_SECONDS = 120


class Block(NamedTuple):
    """One block of a page: its kind, ``command`` for an indented one, and its text."""

    kind: str
    text: str


def find_section(page: str, title: str) -> str:
    """Return a section with its subsections."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert match is not None, title
    return match[1]


def find_blocks(section: str) -> Iterator[Block]:
    """Yield the blocks of a section that are run or written; others show output."""
    for match in _BLOCK.finditer(section):
        if match[1]:
            yield Block(match[1], match[2])
        elif match[3]:
            yield Block("command", re.sub(r"\\\n\s*", "", match[3]).strip())


class PageRun:
    """Runs blocks in one folder; *replacements* adapt their text, such as ports. `stop` ends the broker."""

    def __init__(self, folder: Path, replacements: Mapping[str, str]) -> None:
        self.folder = folder
        self._replacements = replacements
        self._broker: subprocess.Popen[bytes] | None = None

    def run(self, block: Block) -> str:
        """Run one block and return its output; raises AssertionError with it if the block fails."""
        text = block.text
        for old, new in self._replacements.items():
            text = text.replace(old, new)
        if block.kind == "command":
            return self._run_command(shlex.split(text))
        if file_name := _FILE_NAME.match(text):
            (self.folder / file_name[1]).write_text(text)
            return ""
        assert block.kind in _INTERPRETERS, (
            f"a block of {block.kind} begins with a comment that names its file:\n{text}"
        )
        return self._call(_INTERPRETERS[block.kind] + [text])

    def _run_command(self, words: list[str]) -> str:
        if words[:2] == ["kafkacompat", "serve"]:
            self._serve(words[1:])
            return ""
        if words[0] == "kafkacompat":
            return self._call([sys.executable, "-m", *words])
        if words[0] in _TOOLS:
            return self._call(java_command(_TOOLS[words[0]], words[1:]))
        return self._call(words, stdin=_PASSWORDS)

    def _serve(self, arguments: list[str]) -> None:
        command = [sys.executable, "-m", "kafkacompat", *arguments]
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            self._broker = subprocess.Popen(
                command, cwd=self.folder, stdout=out, stderr=err, env={"PYTHONPATH": str(ROOT)}
            )
        until(lambda: "kafkacompat ready" in (self.folder / "stdout").read_text())

    def _call(self, command: list[str], stdin: str = "") -> str:
        done = subprocess.run(
            command, cwd=self.folder, input=stdin, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @property
    def log(self) -> str:
        """The broker's log lines."""
        return (self.folder / "stderr").read_text()

    def stop(self) -> None:
        """End the broker."""
        if self._broker is not None:
            self._broker.terminate()
            self._broker.wait(30)
