// Receipts that @x402/extensions makes for the sandbox's agent, with keys that everybody has, and two that were changed:
// makers.mjs FOLDER.
import { createPrivateKey, sign } from "node:crypto";
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
const seed = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, 7)]);
const key = createPrivateKey({ key: seed, format: "der", type: "pkcs8" });
const signer = {
  kid: "did:web:api.sandbox.example#key-1",
  format: "jws",
  algorithm: "EdDSA",
  sign: async (bytes) => sign(null, bytes, key).toString("base64url"),
};

const make = async (file, receipt) => writeFileSync(join(folder, file), JSON.stringify(await receipt));
await make("made-eip712.json", createReceiptEIP712(input, (data) => payee.signTypedData(data)));
await make("made-by-stranger.json", createReceiptEIP712(input, (data) => stranger.signTypedData(data)));
await make("made-jws.json", createReceiptJWS(input, signer));
const good = JSON.parse(readFileSync(join(folder, "x402-eip712.json"), "utf8"));
const payer = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
await make("other-payer.json", { ...good, payload: { ...good.payload, payer } });
await make("year-2100.json", { ...good, payload: { ...good.payload, issuedAt: 4102444800 }, signature: "0x00" });
