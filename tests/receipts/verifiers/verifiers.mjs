// What the helpers of @x402/extensions say of x402's own receipts: rows of a table.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureEIP712,
  verifyReceiptSignatureJWS,
} from "@x402/extensions/offer-receipt";

const folder = process.argv[2];
const read = (file) => JSON.parse(readFileSync(join(folder, file), "utf8"));
const own = (file) => {
  const { state, codes } = read(`${file}.clresolve`);
  return [state, ...codes].join(" ");
};
const key = { kty: "OKP", crv: "Ed25519", x: "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw" };
const row = (family, helper, vector, said, here) =>
  console.log(`| ${family} | npm @x402/extensions 2.27.0, \`${helper}\` | ${vector} | ${said} | ${here} |`);
const says = async (work) => {
  try {
    const said = await work();
    return typeof said === "boolean" ? String(said) : said.signer ? `signer ${said.signer}` : "the payload";
  } catch (error) {
    return `refused: ${error.message.split("\n")[0]}`;
  }
};

const eip712 = read("x402-eip712.json");
row("X1", "verifyReceiptSignatureEIP712", "`x402-eip712.json`", await says(() => verifyReceiptSignatureEIP712(eip712)), own("x402-eip712.json"));
const changed = read("other-payer.json");
row("X1", "verifyReceiptSignatureEIP712", "the same, another payer", await says(() => verifyReceiptSignatureEIP712(changed)), own("other-payer.json"));
const offer = { resourceUrl: eip712.payload.resourceUrl, network: eip712.payload.network };
const garbage = read("year-2100.json");
row("X1", "verifyReceiptMatchesOffer", "the same of the year 2100, signature `0x00`", await says(() => verifyReceiptMatchesOffer(garbage, offer, [eip712.payload.payer])), own("year-2100.json"));
for (const file of ["made-eip712.json", "made-by-stranger.json"]) {
  const made = read(file);
  row("X1", "verifyReceiptSignatureEIP712", `\`${file}\`, which createReceiptEIP712 made`, await says(() => verifyReceiptSignatureEIP712(made)), own(file));
}
const jws = read("x402-jws.json");
row("X2", "verifyReceiptSignatureJWS", "`x402-jws.json`, the key named by the caller", await says(() => verifyReceiptSignatureJWS(jws, key)), own("x402-jws.json"));
for (const file of ["x402-jws-altered.json", "x402-jws-forged.json"]) {
  const bad = read(file);
  row("X2", "verifyReceiptSignatureJWS", `\`${file}\`, the key named by the caller`, await says(() => verifyReceiptSignatureJWS(bad, key)), own(file));
}
const named = read("made-by-did-key.json");
row("X2", "verifyReceiptSignatureJWS", "`made-by-did-key.json`, a stranger's, the key named by the receipt", await says(() => verifyReceiptSignatureJWS(named)), own("made-by-did-key.json"));
const made = read("made-jws.json");
row("X2", "verifyReceiptSignatureJWS", "`made-jws.json`, which createReceiptJWS made", await says(() => verifyReceiptSignatureJWS(made, key)), own("made-jws.json"));
