"""``ssl.cipher.suites``: Kafka takes the names of Java, which are IANA's; OpenSSL has names of its own up to TLS 1.2."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from OpenSSL import SSL

from kafkacompat.config.properties import ConfigError

_SUITE = re.compile(r"TLS_((?:ECDHE|DHE|ECDH|DH|RSA|PSK)[A-Z_]*?)_WITH_([A-Z0-9_]+)")
_TLS_1_3_PREFIXES = ("TLS_AES_", "TLS_CHACHA20_")


class CipherSuites(NamedTuple):
    """The suites of each version in OpenSSL's names; an empty list is a version without a suite."""

    tls_1_2: tuple[str, ...]
    tls_1_3: tuple[str, ...]


def find_cipher_suites(names: Iterable[str]) -> CipherSuites:
    """Find the suites that Java calls by these names; raises ConfigError for a name that OpenSSL does not serve."""
    old, new = [], []
    for name in names:
        if name.startswith(_TLS_1_3_PREFIXES):
            _check_suite(name, name, is_tls_1_3=True)
            new.append(name)
        else:
            translated = _translate(name)
            _check_suite(name, translated, is_tls_1_3=False)
            old.append(translated)
    return CipherSuites(tuple(old), tuple(new))


def _translate(name: str) -> str:
    """Translate TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 to ECDHE-RSA-AES128-GCM-SHA256; raises ConfigError."""
    match = _SUITE.fullmatch(name)
    if match is None:
        raise _build_error(name)
    exchange, cipher = match[1].replace("_", "-"), match[2]
    cipher = cipher.replace("AES_", "AES").replace("CAMELLIA_", "CAMELLIA").replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    if cipher.startswith(("AES", "CAMELLIA")) and cipher.endswith(("_CCM", "_CCM_8")):
        cipher = cipher.replace("_CCM_8", "_CCM8")
    cipher = cipher.replace("_", "-")
    return cipher if exchange == "RSA" else f"{exchange}-{cipher}"


def _check_suite(name: str, translated: str, *, is_tls_1_3: bool) -> None:
    context = SSL.Context(SSL.TLS_METHOD)
    try:
        if is_tls_1_3:
            context.set_tls13_ciphersuites(translated.encode())
        else:
            context.set_cipher_list(translated.encode())
    except (SSL.Error, UnicodeEncodeError):
        raise _build_error(name) from None


def _build_error(name: str) -> ConfigError:
    return ConfigError(f"ssl.cipher.suites names {name[:100]}, which is not served: remove it")
