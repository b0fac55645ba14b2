"""The message of a failed installation names the cause in one sentence."""

from __future__ import annotations

import subprocess

import pytest

from compat_tests.matrix.driver import Launch
from compat_tests.matrix.install import NotInstalledError, try_installing
from spark_integration.runtime.maven import MissingProgramError

PIP_SAYS = """Collecting client
  error: subprocess-exited-with-error
client.c:1:10: fatal error: library.h: No such file
hint: see above
"""


def catch_message(problem: Exception) -> str:
    """Return the message of the error when an installation ends with *problem*."""

    def install() -> Launch:
        raise problem

    with pytest.raises(NotInstalledError) as error:
        try_installing(install)
    return str(error.value)


def test_a_launch_is_handed_on() -> None:
    launch = Launch(["client"])
    assert try_installing(lambda: launch) is launch


def test_a_missing_program_is_named() -> None:
    assert (
        catch_message(MissingProgramError("go is not on the PATH: install go")) == "go is not on the PATH: install go"
    )


def test_an_installation_that_takes_too_long_is_given_up() -> None:
    assert catch_message(subprocess.TimeoutExpired(["cargo", "build"], 900)) == "cargo was not done after 900 s"


def test_the_line_with_the_error_is_reported() -> None:
    message = catch_message(subprocess.CalledProcessError(1, ["/usr/bin/pip"], PIP_SAYS, ""))
    assert message == "pip ended with code 1: client.c:1:10: fatal error: library.h: No such file"


def test_without_an_error_line_the_last_one_is_reported() -> None:
    message = catch_message(subprocess.CalledProcessError(2, ["npm"], "", "first\n\nlast\n"))
    assert message == "npm ended with code 2: last"


def test_a_program_that_says_nothing() -> None:
    assert catch_message(subprocess.CalledProcessError(2, ["npm"], "", "")) == "npm ended with code 2: "
