// Signs and verifies cards with the A2A SDK for JavaScript.
//   node cards.mjs sign ALG CARD SIGNED JWKS   a new key; its public part goes into JWKS
//   node cards.mjs verify CARD JWKS            exit 1 where no signature holds
//   node cards.mjs discover BASE [JWKS]        the card at BASE's well-known path, as the SDK reads it; verified where keys are given
// Cards go in as JSON: of a card that was read with AgentCard.fromJSON the SDK (1.3.0) leaves the security schemes out.
import { readFileSync, writeFileSync } from 'node:fs';
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client';
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
} else if (command === 'discover') {
  const [base, jwks] = rest;
  const path = '.well-known/agent-card.json';
  const { name, version, skills, supportedInterfaces } = await new DefaultAgentCardResolver().resolve(base, path);
  const { url, protocolBinding } = supportedInterfaces[0];
  if (jwks) await verify(await (await fetch(new URL(path, base))).json(), jwks);
  console.log(JSON.stringify({ name, version, skills: skills.map(({ id }) => id), url, protocolBinding }));
} else {
  const [card, jwks] = rest;
  await verify(read(card), jwks);
}

async function verify(card, jwks) {
  const named = (kid) => read(jwks).keys.find((key) => key.kid === kid);
  const key = async (kid) => {
    const jwk = named(kid);
    if (!jwk) throw new Error(`no key ${kid}`);
    return jose.importJWK(jwk, jwk.alg);
  };
  console.debug = () => {};
  try {
    await verifyAgentCardSignature(key)(card);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
