"""Distinguished names as Java prints them (``X500Principal.getName()``, RFC 2253): users and ACLs are named by this text."""

from __future__ import annotations

from cryptography.x509 import InvalidVersion, Name, NameAttribute
from cryptography.x509.oid import NameOID

_KEYWORDS = {
    NameOID.COMMON_NAME: "CN",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.COUNTRY_NAME: "C",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
"""The attributes that RFC 2253 names; all others are a dotted number with the value in hexadecimal."""
UNREADABLE = (ValueError, InvalidVersion)
"""Errors of cryptography for a certificate of a peer that OpenSSL has read."""
_BLANKS = " \r"
_ESCAPED = ',=+<>;#"\\'


def format_name(name: Name) -> str:
    """Format a distinguished name, the most specific part first."""
    return ",".join("+".join(map(_format_attribute, part)) for part in reversed(name.rdns))


def _format_attribute(attribute: NameAttribute[str | bytes]) -> str:
    keyword, encoded = _KEYWORDS.get(attribute.oid), _encode_der(attribute)
    if keyword is None or isinstance(attribute.value, bytes):
        return f"{keyword or attribute.oid.dotted_string}=#{encoded.hex()}"
    # Java takes the bytes of all kinds of strings for UTF-8, those of BMPString too.
    return f"{keyword}={_escape(encoded[_header_size(encoded) :].decode(errors='replace'))}"


def _escape(value: str) -> str:
    """Escape special characters, and all blanks at both ends."""
    end = len(value.rstrip(_BLANKS))
    begin = len(value) - len(value.lstrip(_BLANKS))
    return "".join(
        "\\00" if char == "\0" else f"\\{char}" if char in _ESCAPED or not begin <= place < end else char
        for place, char in enumerate(value)
    )


def _encode_der(attribute: NameAttribute[str | bytes]) -> bytes:
    """Return the value with its tag and length, cut from the encoding of a name that has this attribute alone."""
    data = Name([attribute]).public_bytes()
    for _ in ("name", "relative name", "attribute"):
        data = data[_header_size(data) :]
    return data[_header_size(data) + data[1] :]  # The type comes first; its length is always short.


def _header_size(data: bytes) -> int:
    return 2 if data[1] < 0x80 else 2 + (data[1] & 0x7F)
