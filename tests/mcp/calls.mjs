// What every client calls, and what must come back: a member of `structuredContent`, whatever the client and the transport.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const AGENT = "summarizeagent.eth";
/** Where the sandbox's agent sells, whom it wants to be paid, and whom it does not. */
const SELLER = "https://api.sandbox.example/summarize/v1";
const PAYEE = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const THIEF = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

export const RESOURCES = ["clresolve://profiles", "clresolve://reasons"];

/** The question about honest terms but for who is paid. */
function payment(payTo) {
  const entry = {
    scheme: "exact",
    network: "eip155:31337",
    amount: "10000",
    asset: "0x00000000000000000000000000000000d0114400",
    payTo,
    maxTimeoutSeconds: 60,
    extra: { name: "Sandbox Dollar", version: "1" },
  };
  const paymentRequired = { x402Version: 2, resource: { url: SELLER }, accepts: [entry] };
  return { name: AGENT, verb: "summarize", url: SELLER, paymentRequired };
}

export function calls(clresolve) {
  const folder = mkdtempSync(join(tmpdir(), "clresolve-receipts-"));
  try {
    execFileSync(clresolve, ["sandbox", "--receipts", folder], { stdio: "ignore" });
    const receipt = readFileSync(join(folder, "agent-sdk.json"), "utf8");
    const terms = { x402Version: 2, accepts: [], resource: { url: "mcp://tool/summarize" } };
    return [
      { tool: "verify_agent", arguments: { name: AGENT }, at: ["verdict", "state"], is: "trusted" },
      { tool: "find_route", arguments: { name: AGENT }, at: ["route", "state"], is: "trusted" },
      {
        tool: "check_payment",
        arguments: { name: AGENT, verb: "summarize", toolResult: { isError: true, structuredContent: terms, content: [] } },
        at: ["check", "abort"],
        is: true,
      },
      { tool: "check_payment", arguments: payment(PAYEE), at: ["check", "abort"], is: false },
      { tool: "check_payment", arguments: payment(THIEF), at: ["check", "codes", 0], is: "payee-mismatch" },
      { tool: "check_request", arguments: { name: AGENT, verb: "summarize", request: "[]" }, at: ["request", "state"], is: "untrusted" },
      { tool: "verify_receipt", arguments: { name: AGENT, receipt }, at: ["receipt", "state"], is: "trusted" },
      { tool: "explain_reason", arguments: { code: "checksum-mismatch" }, at: ["reason", "effect"], is: "fail" },
      { tool: "explain_reason", arguments: { code: "no such code" }, at: ["error", "code"], is: "request-malformed", fails: true },
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
