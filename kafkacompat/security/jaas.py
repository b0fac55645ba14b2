"""JAAS texts: the login modules and options of ``sasl.jaas.config``, as Kafka's broker and clients write them.

A text is parsed and never executed: it chooses among the login modules of this table, and no class is loaded by its name. So a
configuration cannot run code, as with JndiLoginModule and its like (CVE-2023-25194). Messages show no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

LOGIN_MODULES: Mapping[str, str] = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": "PLAIN",
    "org.apache.kafka.common.security.scram.ScramLoginModule": "SCRAM",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": "OAUTHBEARER",
}
"""The family of mechanisms that each known login module is for."""

_FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_CLASS_NAME = re.compile(r"[\w.$]{1,80}LoginModule")

_TOKEN = re.compile(
    r"""[\x00-\x20]+                        # white space
    | /\*.*?(?:\*/|\Z) | /[^\r\n]*          # comments; a single slash begins one, too
    | "(?P<double>(?:\\.|[^"\\\r\n])*)(?P<end_double>")?
    | '(?P<single>(?:\\.|[^'\\\r\n])*)(?P<end_single>')?
    | (?P<mark>[;=])
    | (?P<word>[^\x00-\x20/"';=]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class JaasError(ValueError):
    """A JAAS text cannot be used; the message is one sentence without any of its values."""


class LoginEntry(NamedTuple):
    """A login module with its options, which hold passwords: its representation shows only their names."""

    module: str
    options: Mapping[str, str]

    @property
    def family(self) -> str:
        """The mechanisms that the module is for: PLAIN, SCRAM or OAUTHBEARER."""
        return LOGIN_MODULES[self.module]

    def __repr__(self) -> str:
        return f"LoginEntry({self.module}, options {', '.join(sorted(self.options)) or 'none'})"


class _Token(NamedTuple):
    kind: str  # "word" or "mark"
    text: str


def parse_jaas(text: str) -> list[LoginEntry]:
    """Parse ``MODULE FLAG NAME="VALUE" ...;``, once or several times; raises JaasError."""
    tokens = _tokenize(text)
    entries = []
    for token in tokens:
        entries.append(_parse_entry(token, tokens))
    if not entries:
        raise JaasError("it names no login module")
    return entries


def find_login(entries: list[LoginEntry], family: str) -> LoginEntry | None:
    """Return the first entry of a family of mechanisms."""
    return next((entry for entry in entries if entry.family == family), None)


def _parse_entry(first: _Token, tokens: Iterator[_Token]) -> LoginEntry:
    module = first.text
    if first.kind == "mark" or module not in LOGIN_MODULES:
        # Any other text may be a part of a password, where an option is written wrongly.
        shown = f" {module!r}" if _CLASS_NAME.fullmatch(module) else ""
        raise JaasError(f"the login module{shown} is not served: it takes one of {', '.join(LOGIN_MODULES)}")
    flag = next(tokens, _Token("mark", ""))
    if flag.text.upper() not in _FLAGS:
        raise JaasError(f"no control flag follows the login module: it takes one of {', '.join(_FLAGS).lower()}")
    options: dict[str, str] = {}
    for token in tokens:
        if token == _Token("mark", ";"):
            return LoginEntry(module, options)
        _parse_option(token, tokens, options)
    raise JaasError("a login module's options do not end with a semicolon")


def _parse_option(name: _Token, tokens: Iterator[_Token], options: dict[str, str]) -> None:
    equals, value = next(tokens, None), next(tokens, None)
    if name.kind == "mark" or equals != _Token("mark", "=") or value is None or value.kind == "mark":
        raise JaasError(f"option {len(options) + 1} of a login module is not NAME=VALUE")
    options[name.text] = value.text


def _tokenize(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the alternatives cover every character
        position = match.end()
        kind = match.lastgroup
        if kind in ("word", "mark"):
            yield _Token(kind, match[kind])
        elif match["double"] is not None or match["single"] is not None:
            if match["end_double"] is None and match["end_single"] is None:
                raise JaasError("a quoted value has no closing quote")
            yield _Token("word", _ESCAPE.sub(_unescape, match["double"] or match["single"] or ""))


def _unescape(match: re.Match[str]) -> str:
    character = match[1]
    return chr(int(character, 8)) if character[0] in "01234567" else _ESCAPED.get(character, character)
