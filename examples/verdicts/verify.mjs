// Verifies a signed verdict. Exit status 0: the verdict is trusted.
//   node verify.mjs FILE JWKS NAME PROFILE CHAIN WORLD ISSUER
import { createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";

const SKEW = 30, MAX_LIFETIME = 3600;

function refuse(why) {
  throw new Error(`refused: ${why}`);
}

function decode(part) {
  const bytes = Buffer.from(part, "base64url");
  return bytes.toString("base64url") === part ? bytes : refuse("not base64url");
}

export function checkedVerdict(jws, jwks, expected, now) {
  const parts = jws.split(".");
  if (parts.length !== 3) refuse("not a compact JWS");
  const header = JSON.parse(decode(parts[0]).toString("utf8"));
  if (header.alg !== "EdDSA") refuse("alg");
  if (header.typ !== "clresolve-verdict+jwt") refuse("typ");
  if (Object.keys(header).sort().join() !== "alg,kid,typ") refuse("an unknown header member");
  const jwk = jwks.keys.find((key) => key.kid === header.kid && key.kty === "OKP" && key.crv === "Ed25519");
  if (!jwk) refuse("no trusted key has this kid");
  const key = createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, format: "jwk" });
  const signed = Buffer.from(`${parts[0]}.${parts[1]}`, "ascii");
  if (!verify(null, signed, key, decode(parts[2]))) refuse("signature");

  const { iss, iat, exp, verdict } = JSON.parse(decode(parts[1]).toString("utf8"));
  if (iss !== expected.issuer) refuse("iss");
  if (!Number.isInteger(iat) || !Number.isInteger(exp)) refuse("iat or exp");
  if (exp <= iat || exp - iat > MAX_LIFETIME) refuse("lifetime");
  if (now >= exp + SKEW) refuse("expired");
  if (iat > now + SKEW) refuse("issued in the future");
  if (verdict.schema !== "clresolve.verdict/1") refuse("schema");
  if (verdict.name.normalized !== expected.name) refuse("name");
  if (verdict.profile.id !== expected.profile) refuse("profile");
  if (verdict.anchor?.chain !== expected.chain) refuse("chain");
  if (verdict.anchor?.world !== expected.world) refuse("world");
  if (verdict.reasons.some((reason) => reason.code === "single-rpc")) refuse("only one endpoint vouches for it");
  return verdict;
}

const [file, keys, name, profile, chain, world, issuer] = process.argv.slice(2);
const jws = readFileSync(file, "utf8").trimEnd();
const jwks = JSON.parse(readFileSync(keys, "utf8"));
const now = Math.floor(Date.now() / 1000);
const verdict = checkedVerdict(jws, jwks, { name, profile, chain, world, issuer }, now);
console.log(verdict.state);
process.exitCode = verdict.state === "trusted" ? 0 : 1;
