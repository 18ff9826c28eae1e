// Signs and verifies cards with the A2A SDK for JavaScript.
//   node cards.mjs sign ALG CARD SIGNED JWKS   a new key; its public part goes into JWKS
//   node cards.mjs verify CARD JWKS            exit 1 where no signature holds
// Cards go in as JSON: of a card that was read with AgentCard.fromJSON the SDK (1.3.0) leaves the security schemes out.
import { readFileSync, writeFileSync } from 'node:fs';
import { generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk';
import * as jose from 'jose';

const [command, ...rest] = process.argv.slice(2);
const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const write = (path, value) => writeFileSync(path, JSON.stringify(value));

if (command === 'sign') {
  const [alg, card, signed, jwks] = rest;
  const pair = await jose.generateKeyPair(alg, { extractable: true, crv: 'Ed25519' });
  const kid = `js-${alg}`;
  const sign = generateAgentCardSignature(pair.privateKey, { alg, kid, typ: 'JOSE', jku: 'https://never.example/jwks' });
  write(signed, await sign(read(card)));
  write(jwks, { keys: [{ ...(await jose.exportJWK(pair.publicKey)), kid, alg, use: 'sig' }] });
} else {
  const [card, jwks] = rest;
  const named = (kid) => read(jwks).keys.find((key) => key.kid === kid);
  const key = async (kid) => {
    const jwk = named(kid);
    if (!jwk) throw new Error(`no key ${kid}`);
    return jose.importJWK(jwk, jwk.alg);
  };
  console.debug = () => {};
  try {
    await verifyAgentCardSignature(key)(read(card));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
