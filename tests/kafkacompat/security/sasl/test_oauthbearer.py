"""OAUTHBEARER: the exchange, unsecured tokens by Kafka's rules, and signed ones by keys of each kind."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from kafkacompat.security.jaas import JaasError
from kafkacompat.security.principals import Principal
from kafkacompat.security.sasl.mechanism import SaslError
from kafkacompat.security.sasl.oauthbearer import BearerToken, OAuthBearerServer, TokenError
from kafkacompat.security.sasl.settings import JwksSettings, SignedRules
from kafkacompat.security.sasl.signed_tokens import KeySet, SignedTokens
from kafkacompat.security.sasl.unsecured_tokens import UnsecuredRules, check_unsecured_token

NOW_S = 1_700_000_000
RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def now_ms() -> int:
    return NOW_S * 1000


def initial(token: str, header: str = "n,,", extensions: str = "") -> bytes:
    return f"{header}\x01auth=Bearer {token}\x01{extensions}\x01".encode()


def accept(token: str) -> BearerToken:
    if token != "good.token":
        raise TokenError("it is bad")
    return BearerToken("alice", 5000)


def test_a_token() -> None:
    server = OAuthBearerServer(accept)
    assert server.evaluate(initial("good.token", extensions="traceId=123\x01x=y\x01")) == b""
    assert (server.principal, server.expires_at_ms) == (Principal("User", "alice"), 5000)
    server = OAuthBearerServer(accept)
    assert server.evaluate(initial("good.token", "n,a=alice,")) == b""


def test_a_refused_token_is_answered_before_the_failure() -> None:
    server = OAuthBearerServer(accept)
    assert server.evaluate(initial("bad.token")) == b'{"status":"invalid_token"}'
    assert server.principal is None
    with pytest.raises(SaslError, match="it is bad") as refused:
        server.evaluate(b"\x01")
    assert refused.value.client_message == '{"status":"invalid_token"}'


def test_another_token_after_a_refused_one() -> None:
    server = OAuthBearerServer(accept)
    server.evaluate(initial("bad.token"))
    assert server.evaluate(initial("good.token")) == b""
    assert server.principal is not None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "Invalid OAUTHBEARER client first message"),
        (b"\x01", "Invalid OAUTHBEARER client first message"),
        (b"n,,\x01\x01", "'auth' not specified"),
        (b"n,,\x01auth=Basic x\x01\x01", "Invalid scheme"),
        (b"n,,\x01auth=Bearer\x01\x01", "invalid 'auth' format"),
        (b"p,,\x01auth=Bearer good.token\x01\x01", "Invalid OAUTHBEARER client first message"),
        (b"n,,\x01auth=Bearer " + b"x" * 500_000, "Invalid OAUTHBEARER client first message"),
        (initial("good.token", "n,a=bob,"), "different from the token's principal name"),
    ],
)
def test_bad_messages(message: bytes, reason: str) -> None:
    server = OAuthBearerServer(accept)
    with pytest.raises(SaslError, match=reason):
        server.evaluate(message)
    assert server.principal is None


# Unsecured tokens


def encode(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def make_unsecured(claims: dict[str, Any], alg: str = "none", signature: str = "") -> str:
    return f"{encode({'alg': alg})}.{encode(claims)}.{signature}"


CLAIMS = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 60, "scope": ["read", "write"]}


def test_unsecured_tokens_need_an_option_that_allows_them() -> None:
    assert UnsecuredRules.read({}) is None
    assert UnsecuredRules.read({"user_alice": "x"}) is None
    assert UnsecuredRules.read({"unsecuredLoginStringClaim_sub": "x"}) == UnsecuredRules()
    options = {
        "unsecuredValidatorPrincipalClaimName": "name",
        "unsecuredValidatorScopeClaimName": "scp",
        "unsecuredValidatorRequiredScope": "a b",
        "unsecuredValidatorAllowableClockSkewMs": "3000",
    }
    assert UnsecuredRules.read(options) == UnsecuredRules("name", "scp", ("a", "b"), 3000)
    with pytest.raises(JaasError):
        UnsecuredRules.read({"unsecuredValidatorAllowableClockSkewMs": "-1"})


def test_an_unsecured_token() -> None:
    rules = UnsecuredRules(required_scope=("write",))
    assert check_unsecured_token(make_unsecured(CLAIMS), rules, now_ms) == BearerToken("alice", (NOW_S + 60) * 1000)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("x", "three parts"),
        ("a..b", "three parts"),
        ("a.b.", "not JSON"),
        (make_unsecured(CLAIMS, alg="HS256"), "not unsecured"),
        (make_unsecured(CLAIMS, signature="AAAA"), "not unsecured"),
        (make_unsecured({**CLAIMS, "sub": " "}), "claim sub"),
        (make_unsecured({**CLAIMS, "sub": 1}), "claim sub"),
        (make_unsecured({**CLAIMS, "exp": "soon"}), "claim exp"),
        (make_unsecured({**CLAIMS, "exp": True}), "claim exp"),
        (make_unsecured({**CLAIMS, "exp": NOW_S}), "expired"),
        (make_unsecured({**CLAIMS, "iat": NOW_S + 5}), "future"),
        (make_unsecured({**CLAIMS, "iat": "x"}), "no number"),
        (f"{encode({'alg': 'none'})}.{encode([1])}.", "no JSON object"),
        (f"{encode({'alg': 'none'})}.{'W1tb' * 100_000}.", "not JSON"),
    ],
)
def test_bad_unsecured_tokens(token: str, reason: str) -> None:
    with pytest.raises(TokenError, match=reason):
        check_unsecured_token(token, UnsecuredRules(), now_ms)


def test_a_missing_scope() -> None:
    with pytest.raises(TokenError) as refused:
        check_unsecured_token(make_unsecured(CLAIMS), UnsecuredRules(required_scope=("admin", "x")), now_ms)
    assert (refused.value.status, refused.value.scope) == ("insufficient_scope", "[admin, x]")


# Signed tokens


def describe(algorithm: Any, key: Any, **fields: str) -> dict[str, Any]:
    return {**json.loads(algorithm.to_jwk(key.public_key())), **fields}


KEYS = KeySet.parse(
    json.dumps(
        {
            "keys": [
                describe(RSAAlgorithm, RSA_KEY, kid="rsa", use="sig"),
                describe(ECAlgorithm, EC_KEY, kid="ec", alg="ES256"),
                describe(OKPAlgorithm, ED_KEY, kid="ed"),
                {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"},
            ]
        }
    )
)
JWKS = JwksSettings("file:///keys", 60, 1, 1)
RULES = SignedRules(JWKS, audience=("kafka",), issuer="https://issuer")
SIGNED = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 60, "aud": "kafka", "iss": "https://issuer"}


def sign(claims: dict[str, Any], key: Any = RSA_KEY, alg: str = "RS256", **headers: str) -> str:
    return jwt.encode(claims, key, algorithm=alg, headers={"kid": "rsa", **headers})


def make_check(rules: SignedRules = RULES, keys: KeySet | None = KEYS) -> tuple[SignedTokens, list[str]]:
    unknown: list[str] = []
    return SignedTokens(rules, lambda: keys, now_ms, unknown.append), unknown


@pytest.mark.parametrize(
    ("key", "alg", "kid"),
    [
        (RSA_KEY, "RS256", "rsa"),
        (RSA_KEY, "RS512", "rsa"),
        (RSA_KEY, "PS256", "rsa"),
        (EC_KEY, "ES256", "ec"),
        (ED_KEY, "EdDSA", "ed"),
    ],
)
def test_a_signed_token(key: Any, alg: str, kid: str) -> None:
    check, _ = make_check()
    assert check.check(sign(SIGNED, key, alg, kid=kid)) == BearerToken("alice", (NOW_S + 60) * 1000)


def test_a_token_without_a_key_id_is_tried_with_every_key() -> None:
    token = jwt.encode(SIGNED, RSA_KEY, algorithm="RS256")
    assert make_check()[0].check(token).subject == "alice"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"exp": NOW_S - 31}, "expired"),
        ({"exp": None}, "exp"),
        ({"iat": None}, "iat"),
        ({"iat": "x"}, "no number|Issued"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"aud": "other"}, "[Aa]udience"),
        ({"aud": None}, "aud"),
        ({"iss": "https://other"}, "[Ii]ssuer"),
        ({"iss": None}, "iss"),
        ({"sub": ""}, "claim sub"),
        ({"sub": None}, "claim sub"),
        ({"sub": 5}, "claim sub"),
        ({"scope": ["a", "a"]}, "scope"),
    ],
)
def test_bad_claims(change: dict[str, Any], reason: str) -> None:
    claims = {name: value for name, value in {**SIGNED, **change}.items() if value is not None}
    # PyJWT refuses to encode some of these by itself.
    token = jwt.api_jws.encode(json.dumps(claims).encode(), RSA_KEY, algorithm="RS256", headers={"kid": "rsa"})
    with pytest.raises(TokenError, match=reason):
        make_check()[0].check(token)


def test_the_clock_skew_is_allowed() -> None:
    assert make_check()[0].check(sign({**SIGNED, "exp": NOW_S - 29})).subject == "alice"


def test_other_names_of_claims() -> None:
    rules = SignedRules(JWKS, subject_claim="name", scope_claim="scp")
    claims = {"name": " bob ", "iat": NOW_S, "exp": NOW_S + 60, "scp": "a"}
    assert make_check(rules)[0].check(sign(claims)).subject == "bob"


def test_an_audience_that_nobody_expects_is_refused() -> None:
    """As Kafka's library does: such a token is for another service."""
    with pytest.raises(TokenError, match=r"[Aa]udience"):
        make_check(SignedRules(JWKS))[0].check(sign(SIGNED))


def test_a_forged_signature() -> None:
    other = rsa.generate_private_key(65537, 2048)
    with pytest.raises(TokenError, match=r"[Ss]ignature"):
        make_check()[0].check(sign(SIGNED, other))


def test_no_algorithm_without_a_public_key() -> None:
    """Neither "none" nor an HMAC, be it with the public key as its secret."""
    check, unknown = make_check()
    for token in (
        make_unsecured(SIGNED),
        jwt.encode(SIGNED, "secret" * 10, algorithm="HS256", headers={"kid": "oct"}),
        jwt.encode(SIGNED, "x" * 64, algorithm="HS256", headers={"kid": "rsa"}),
        sign(SIGNED, RSA_KEY, "RS256", kid="ec"),
    ):
        with pytest.raises(TokenError, match=r"no key|no signed JWT"):
            check.check(token)
    assert unknown == ["ec"]


def test_an_unknown_key_is_reported_once_for_each_token() -> None:
    check, unknown = make_check()
    with pytest.raises(TokenError, match="no key"):
        check.check(sign(SIGNED, kid="new"))
    assert unknown == ["new"]
    with pytest.raises(TokenError, match="no key"):
        check.check(sign(SIGNED, kid="x" * 251))
    assert unknown == ["new"]


def test_tokens_before_the_first_keys() -> None:
    with pytest.raises(TokenError, match="not known yet"):
        make_check(keys=None)[0].check(sign(SIGNED))


@pytest.mark.parametrize("token", ["", "a.b.c", "." * 1000, "e30.e30.e30", "x" * 400_000, "W1tb" * 50_000 + ".a.b"])
def test_texts_that_are_no_token(token: str) -> None:
    with pytest.raises(TokenError):
        make_check()[0].check(token)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"keys":[]}', '{"keys":[{"kty":"oct"}]}', '{"keys":[{}]}', "[" * 100_000]
)
def test_texts_that_are_no_key_set(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON Web Key Set|keys for signatures"):
        KeySet.parse(text)


def test_a_damaged_key_is_left_out() -> None:
    keys = KeySet.parse('{"keys":[{"kty":"RSA","kid":"rsa","n":"!","e":"AQAB"}]}')
    with pytest.raises(TokenError, match="no key"):
        make_check(keys=keys)[0].check(sign(SIGNED))
