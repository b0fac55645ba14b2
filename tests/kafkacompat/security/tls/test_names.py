"""Distinguished names as Java prints them; `compat_tests/test_tls.py` compares them with Java itself."""

from __future__ import annotations

import pytest
from cryptography.x509 import Name, NameAttribute, RelativeDistinguishedName
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from kafkacompat.security.tls.names import format_name


def name(*parts: tuple[ObjectIdentifier, str]) -> Name:
    return Name([NameAttribute(oid, value) for oid, value in parts])


def test_the_most_specific_part_comes_first() -> None:
    parts = ((NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, "Org"), (NameOID.COMMON_NAME, "alice"))
    assert format_name(name(*parts)) == "CN=alice,O=Org,C=DE"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a,b", "a\\,b"),
        ('a"b\\c', 'a\\"b\\\\c'),
        ("a+b=c<d>e;f", "a\\+b\\=c\\<d\\>e\\;f"),
        ("#a", "\\#a"),
        (" a ", "\\ a\\ "),
        ("müller", "müller"),
        (" ", "\\ "),
    ],
)
def test_special_characters_are_escaped(value: str, shown: str) -> None:
    assert format_name(name((NameOID.COMMON_NAME, value))) == f"CN={shown}"


def test_an_attribute_without_a_keyword_is_a_number_with_hexadecimal() -> None:
    mail = NameAttribute(NameOID.EMAIL_ADDRESS, "a@b", _ASN1Type.IA5String)
    assert format_name(Name([mail])) == "1.2.840.113549.1.9.1=#1603614062"


def test_a_long_value_has_a_long_length() -> None:
    mail = NameAttribute(NameOID.EMAIL_ADDRESS, "a" * 300, _ASN1Type.IA5String)
    assert format_name(Name([mail])) == f"1.2.840.113549.1.9.1=#1682012c{'61' * 300}"


def test_parts_of_several_attributes_are_joined_by_plus() -> None:
    part = RelativeDistinguishedName([NameAttribute(NameOID.COMMON_NAME, "a"), NameAttribute(NameOID.USER_ID, "b")])
    assert sorted(format_name(Name([part])).split("+")) == ["CN=a", "UID=b"]


def test_an_empty_name_is_empty() -> None:
    assert format_name(Name([])) == ""
