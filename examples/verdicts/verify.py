"""Verifies a signed verdict. Exit status 0: the verdict is trusted.

    python verify.py FILE JWKS NAME PROFILE CHAIN WORLD ISSUER

Needs the package cryptography.
"""

import base64
import json
import sys
import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SKEW, MAX_LIFETIME = 30, 3600


def require(holds, what):
    if not holds:
        raise ValueError(f"refused: {what}")


def decode(part):
    data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    require(base64.urlsafe_b64encode(data).rstrip(b"=").decode() == part, "not base64url")
    return data


def checked_verdict(jws, jwks, expected, now):
    parts = jws.split(".")
    require(len(parts) == 3, "not a compact JWS")
    header = json.loads(decode(parts[0]))
    require(header.get("alg") == "EdDSA", "alg")
    require(header.get("typ") == "clresolve-verdict+jwt", "typ")
    require(set(header) == {"alg", "kid", "typ"}, "an unknown header member")
    ours = [k for k in jwks["keys"] if k.get("kty") == "OKP" and k.get("crv") == "Ed25519"]
    keys = [k for k in ours if k.get("kid") == header["kid"]]
    require(keys, "no trusted key has this kid")
    key = Ed25519PublicKey.from_public_bytes(decode(keys[0]["x"]))
    key.verify(decode(parts[2]), f"{parts[0]}.{parts[1]}".encode("ascii"))

    claims = json.loads(decode(parts[1]))
    iat, exp, verdict = claims["iat"], claims["exp"], claims["verdict"]
    anchor = verdict["anchor"] or {}
    require(claims["iss"] == expected["issuer"], "iss")
    require(type(iat) is int and type(exp) is int, "iat or exp")
    require(0 < exp - iat <= MAX_LIFETIME, "lifetime")
    require(now < exp + SKEW, "expired")
    require(iat <= now + SKEW, "issued in the future")
    require(verdict["schema"] == "clresolve.verdict/1", "schema")
    require(verdict["name"]["normalized"] == expected["name"], "name")
    require(verdict["profile"]["id"] == expected["profile"], "profile")
    require(anchor.get("chain") == expected["chain"], "chain")
    require(anchor.get("world") == expected["world"], "world")
    require(all(reason["code"] != "single-rpc" for reason in verdict["reasons"]), "only one endpoint vouches for it")
    return verdict


file, keys, name, profile, chain, world, issuer = sys.argv[1:]
expected = {"name": name, "profile": profile, "chain": chain, "world": world, "issuer": issuer}
with open(file) as jws, open(keys) as jwks:
    verdict = checked_verdict(jws.read().rstrip(), json.load(jwks), expected, int(time.time()))
print(verdict["state"])
sys.exit(0 if verdict["state"] == "trusted" else 1)
