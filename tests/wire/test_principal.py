"""The client's principal in an Envelope."""

from __future__ import annotations

import pytest

from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.principal import DefaultPrincipalData, decode_principal, encode_principal


def test_the_form_is_that_of_apache_kafka() -> None:
    anonymous = DefaultPrincipalData(type="User", name="ANONYMOUS")
    assert encode_principal(anonymous) == b"\0\0\x05User\x0aANONYMOUS\0\0"


def test_a_principal_reads_as_it_was_written() -> None:
    principal = DefaultPrincipalData(type="User", name="ä", token_authenticated=True)
    assert decode_principal(encode_principal(principal)) == principal


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1\1\1\0\0", b"\xff\xff", b"\0\0\5Us", b"\0\0"])
def test_damaged_principals(data: bytes) -> None:
    with pytest.raises(MalformedError):
        decode_principal(data)
