"""Why the scripts of the site cannot be fetched, in the words of npm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat_tests.documentation import scripts


def test_the_words_of_npm_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\necho "npm error code E404" >&2\necho "npm error 404 Not Found" >&2\nexit 1\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(scripts, "BUILD", tmp_path)
    with pytest.raises(scripts.NoScriptsError) as failure:
        scripts.fetch_scripts()
    sentence = str(failure.value)
    assert sentence.endswith("returned non-zero exit status 1. npm error code E404 npm error 404 Not Found")
    assert "\n" not in sentence
