"""What keeps a cluster from being started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kafkacompat.cli.cluster.folder import ClusterCommandError
from kafkacompat.cli.cluster.start_checks import check_folder, check_ports
from kafkacompat.metadata.sqlite_store import FILE_NAME


@pytest.mark.parametrize("part", ["", "broker-1/data"])
def test_a_single_node_is_no_broker(part: str, tmp_path: Path) -> None:
    folder = tmp_path / part
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).touch()
    with pytest.raises(ClusterCommandError, match="holds a single node, which is no broker of a cluster") as problem:
        check_folder(tmp_path, 3)
    assert str(problem.value).startswith(str(folder))
    assert problem.value.exit_code == 1


def test_brokers_with_replicas_have_to_start(tmp_path: Path) -> None:
    for number in (1, 4, 10):
        (tmp_path / f"broker-{number}" / "data").mkdir(parents=True)
    check_folder(tmp_path, 3)
    (tmp_path / "broker-4" / "data" / "orders-0").mkdir()
    (tmp_path / "broker-4" / "data" / "orders-1").mkdir()
    check_folder(tmp_path, 4)
    with pytest.raises(ClusterCommandError, match=r"broker 4 holds 2 replicas in .*, such as orders-0.*--brokers 4"):
        check_folder(tmp_path, 3)


def test_a_folder_that_is_missing_is_no_problem(tmp_path: Path) -> None:
    check_folder(tmp_path / "missing", 3)


def test_ports_that_are_bound_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Probe:
        def __init__(self, *_: object) -> None:
            pass

        def __enter__(self) -> Probe:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def setsockopt(self, *_: object) -> None:
            pass

        def bind(self, address: tuple[str, int]) -> None:
            if address[1] == 9093:
                raise OSError(98, "Address already in use")

        def listen(self) -> None:
            pass

    monkeypatch.setattr(socket, "socket", Probe)
    check_ports("127.0.0.1", 9094, 3)
    with pytest.raises(ClusterCommandError, match=r"cannot listen on 127\.0\.0\.1:9093: another process listens there"):
        check_ports("127.0.0.1", 9092, 3)
