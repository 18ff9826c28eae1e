"""Signs and verifies cards with the A2A SDK for Python.

python cards.py sign ALG CARD SIGNED JWKS   a new key; its public part goes into JWKS
python cards.py verify CARD JWKS            exit 1 where no signature holds
python cards.py discover BASE [JWKS]        the card at BASE's well-known path, as the SDK reads it; verified where keys are given
"""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver
from a2a.types import AgentCard
from a2a.utils.signing import SignatureVerificationError, create_agent_card_signer, create_signature_verifier
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

KEYS = {
    "EdDSA": (ed25519.Ed25519PrivateKey.generate, OKPAlgorithm),
    "ES256": (lambda: ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
    "RS256": (lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048), RSAAlgorithm),
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def sign(alg, card, signed, jwks):
    generate, algorithm = KEYS[alg]
    key = generate()
    kid = f"py-{alg}"
    header = {"alg": alg, "kid": kid, "typ": "JOSE", "jku": "https://never.example/jwks"}
    message = create_agent_card_signer(key, header)(ParseDict(read(card), AgentCard()))
    write(signed, MessageToDict(message))
    public = json.loads(algorithm.to_jwk(key.public_key()))
    write(jwks, {"keys": [{**public, "kid": kid, "alg": alg, "use": "sig"}]})


def verifier(jwks):
    keys = {key["kid"]: PyJWK(key) for key in read(jwks)["keys"]}
    return create_signature_verifier(lambda kid, jku: keys[kid], list(KEYS))


def discover(base, jwks=None):
    async def get():
        async with httpx.AsyncClient(trust_env=False) as client:
            check = verifier(jwks) if jwks else None
            return await A2ACardResolver(client, base).get_agent_card(signature_verifier=check)

    card = asyncio.run(get())
    interface = card.supported_interfaces[0]
    seen = {"name": card.name, "version": card.version, "skills": [skill.id for skill in card.skills]}
    print(json.dumps({**seen, "url": interface.url, "protocolBinding": interface.protocol_binding}))


def verify(card, jwks):
    try:
        verifier(jwks)(ParseDict(read(card), AgentCard()))
    except (KeyError, SignatureVerificationError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    {"sign": sign, "verify": verify, "discover": discover}[sys.argv[1]](*sys.argv[2:])
