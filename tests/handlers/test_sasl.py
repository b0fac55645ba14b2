"""SaslHandshake and SaslAuthenticate where there is no SASL."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.data_node import DataNode


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_is_refused_with_no_mechanism(version: int) -> None:
    answer = DataNode().ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, version)
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_authentication_is_refused_in_words(version: int) -> None:
    answer = DataNode().ask(SaslAuthenticateRequest(auth_bytes=b"\0me\0secret"), SaslAuthenticateResponse, version)
    assert (answer.error_code, answer.auth_bytes) == (ErrorCode.ILLEGAL_SASL_STATE, b"")
    assert answer.error_message is not None and "PLAINTEXT has no SASL" in answer.error_message
