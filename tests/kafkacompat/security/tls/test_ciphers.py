"""Cipher suites by Java's names."""

from __future__ import annotations

import pytest

from kafkacompat.config import ConfigError
from kafkacompat.security.tls.ciphers import find_cipher_suites


@pytest.mark.parametrize(
    ("name", "translated"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
    ],
)
def test_javas_names_become_those_of_openssl(name: str, translated: str) -> None:
    assert find_cipher_suites([name]).tls_1_2 == (translated,)


def test_suites_of_tls_1_3_are_kept_apart() -> None:
    suites = find_cipher_suites(["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"])
    assert suites == (("ECDHE-RSA-AES128-GCM-SHA256",), ("TLS_AES_128_GCM_SHA256",))


@pytest.mark.parametrize(
    "name", ["TLS_RSA_WITH_RC4_128_MD5", "TLS_AES_512_GCM_SHA1", "nonsense", "ALL", "HIGH:aNULL", ""]
)
def test_unknown_and_broken_suites_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"ssl.cipher.suites names {name}, which is not served: remove it"):
        find_cipher_suites([name])
