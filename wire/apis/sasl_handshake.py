"""SaslHandshake (key 17): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, array, int16, string


class SaslHandshakeRequest(Request, api_key=17, versions="0-1"):
    """DOC"""

    mechanism: str = string()


class SaslHandshakeResponse(Response, api_key=17, versions="0-1"):
    """DOC"""

    error_code: int = int16()
    mechanisms: list[str] = array(string())
