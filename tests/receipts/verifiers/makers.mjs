// Receipts that @x402/extensions makes for the sandbox's agent, with keys that everybody has, three that were changed, and
// three as CommandLayer's SDKs and runtime write them: makers.mjs FOLDER.
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createReceiptEIP712, createReceiptJWS } from "@x402/extensions/offer-receipt";
import { privateKeyToAccount } from "viem/accounts";

const folder = process.argv[2];
const input = {
  resourceUrl: "https://api.sandbox.example/summarize/v1",
  payer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
  network: "eip155:31337",
};
// The address that honest names publish, and one that no name does (crates/sandbox/src/keys.rs).
const payee = privateKeyToAccount("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");
const stranger = privateKeyToAccount("0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a");
// The key that the agent's signer publishes, in PKCS #8: its seed is 32 bytes of value 7 (crates/sandbox/src/receipts.rs).
// A stranger's seed is 32 bytes of value 8.
const keyOf = (byte) => {
  const seed = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, byte)]);
  return createPrivateKey({ key: seed, format: "der", type: "pkcs8" });
};
const key = keyOf(7);
const signer = (kid, key) => ({
  kid,
  format: "jws",
  algorithm: "EdDSA",
  sign: async (bytes) => sign(null, bytes, key).toString("base64url"),
});

// The name under did:key of an Ed25519 key: in base58, which has no digit for a leading zero.
function didOf(key) {
  const { x } = createPublicKey(key).export({ format: "jwk" });
  const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  let number = BigInt(`0xed01${Buffer.from(x, "base64url").toString("hex")}`);
  let text = "";
  for (; number > 0n; number /= 58n) text = digits[Number(number % 58n)] + text;
  return `did:key:z${text}#z${text}`;
}

// As `cl-stable-json-v1` has it.
function stable(value) {
  if (Array.isArray(value)) return `[${value.map(stable).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${stable(value[name])}`).join(",")}}`;
}

// As the agent SDK has it: every object made anew, which puts names that look like indices first.
function rebuilt(value) {
  if (Array.isArray(value)) return value.map(rebuilt);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, rebuilt(value[name])]));
}

const read = (file) => JSON.parse(readFileSync(join(folder, file), "utf8"));
const make = async (file, receipt) => writeFileSync(join(folder, file), JSON.stringify(await receipt));
await make("made-eip712.json", createReceiptEIP712(input, (data) => payee.signTypedData(data)));
await make("made-by-stranger.json", createReceiptEIP712(input, (data) => stranger.signTypedData(data)));
await make("made-jws.json", createReceiptJWS(input, signer("did:web:api.sandbox.example#key-1", key)));
const stranger8 = keyOf(8);
await make("made-by-did-key.json", createReceiptJWS(input, signer(didOf(stranger8), stranger8)));
const good = read("x402-eip712.json");
const payer = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
await make("other-payer.json", { ...good, payload: { ...good.payload, payer } });
// Three that the signer's own key has signed, as they are written: of the SDKs under the identifier of another key, of the
// runtime under another name, and of the agent SDK with names that its form orders in another way than the website's.
const proven = (text) => {
  const hash_sha256 = createHash("sha256").update(text).digest("hex");
  return { hash_sha256, signature_b64: sign(null, Buffer.from(hash_sha256), key).toString("base64") };
};
const seal = (signed) => {
  const proof = { ...signed.metadata.proof, ...proven(stable(signed)) };
  return { ...signed, metadata: { ...signed.metadata, receipt_id: proof.hash_sha256, proof } };
};
const sdk = read("sdk.json");
const { alg, canonical, signer_id } = sdk.metadata.proof;
await make("sdk-other-kid.json", seal({ ...sdk, kid: "another-key", metadata: { proof: { alg, canonical, signer_id } } }));
const runtime = read("runtime.json");
const blank = { ...runtime.metadata.proof, signer_id: "stranger.sandbox.eth", hash_sha256: "", signature_b64: "" };
await make("runtime-other-signer.json", seal({ ...runtime, metadata: { ...runtime.metadata, receipt_id: "", proof: blank } }));
const agentSdk = read("agent-sdk.json");
const { metadata, signature, ...content } = agentSdk;
const named = { ...content, input: { 9: "nine", 10: "ten", b: 1, B: 2, _: 3, "｡": "halfwidth", "😀": "emoji" } };
const { hash_sha256, signature_b64: sig } = proven(JSON.stringify(rebuilt(named)));
await make("agent-sdk-keys.json", {
  ...named,
  metadata: { proof: { ...metadata.proof, hash_sha256 } },
  signature: { ...signature, sig },
});
// Whole, but for a signature of which it says that it is by another algorithm.
await make("agent-sdk-other-alg.json", { ...agentSdk, signature: { ...agentSdk.signature, alg: "ed448" } });
await make("year-2100.json", { ...good, payload: { ...good.payload, issuedAt: 4102444800 }, signature: "0x00" });
