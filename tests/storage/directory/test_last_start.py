"""What a start finds out about a log directory: that it is new, or that its machine has restarted after a kill."""

from __future__ import annotations

import pytest

from kafkacompat.storage.directory.last_start import FILE_NAME, LastStart, read_last_start
from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.files.checkpoints import replace_file
from tests.storage.support import Store, take_directory


def start(store: Store, boot_id: str, *, stops: bool = False, confirms: bool = True) -> LastStart | None:
    """Start a broker on the directory, and end it; return what it found out."""
    directory: LogDirectory = take_directory(store, boot_id=boot_id)
    last_start = directory.start
    if confirms:
        directory.confirm_contents()
        assert directory.start == LastStart(boot_id)
    if stops:
        directory.close([])
    else:
        directory.release()
    return last_start


def test_a_new_directory_has_begun_empty_until_that_is_known(store: Store) -> None:
    assert start(store, "a", confirms=False) == LastStart("a", began_empty=True)
    assert start(store, "a", confirms=False) == LastStart("a", began_empty=True)
    assert start(store, "a") == LastStart("a", began_empty=True)
    assert start(store, "a") == LastStart("a")


@pytest.mark.parametrize(
    ("boots", "stops", "loses"),
    [
        (("a", "a"), False, False),
        (("a", "b"), False, True),
        (("a", "b"), True, False),
        (("", ""), False, True),
        (("", ""), True, False),
    ],
)
def test_the_page_cache_is_lost_with_another_boot_after_a_kill(
    store: Store, boots: tuple[str, str], stops: bool, loses: bool
) -> None:
    start(store, boots[0], stops=stops)
    assert start(store, boots[1], confirms=False) == LastStart(boots[1], lost_page_cache=loses)
    # Another kill in the same boot does not hide the loss.
    assert start(store, boots[1] or "") == LastStart(boots[1], lost_page_cache=loses or not boots[1])


def test_a_directory_of_an_earlier_release_or_of_kafka_may_have_lost_its_page_cache(store: Store) -> None:
    take_directory(store).release()
    assert not store.files.exists(store.path("data", FILE_NAME))
    assert start(store, "a") == LastStart("a", lost_page_cache=True)


@pytest.mark.parametrize("contents", [b"", b"{", b"[]", b"3", b'{"boot_id":"a"}', b"\xff"])
def test_notes_that_cannot_be_read_count_as_absent(store: Store, contents: bytes) -> None:
    start(store, "a", stops=True)
    replace_file(store.files, store.path("data", FILE_NAME), contents)
    assert read_last_start(store.files, store.path("data")) is None
    assert start(store, "a") == LastStart("a")
