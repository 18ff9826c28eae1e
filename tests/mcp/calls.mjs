// What every client calls, and what must come back: a member of `structuredContent`, whatever the client and the transport.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const AGENT = "summarizeagent.eth";

export const RESOURCES = ["clresolve://profiles", "clresolve://reasons"];

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
        at: ["decision", "abort"],
        is: true,
      },
      { tool: "check_request", arguments: { name: AGENT, verb: "summarize", request: "[]" }, at: ["request", "state"], is: "untrusted" },
      { tool: "verify_receipt", arguments: { name: AGENT, receipt }, at: ["receipt", "state"], is: "trusted" },
      { tool: "explain_reason", arguments: { code: "checksum-mismatch" }, at: ["reason", "effect"], is: "fail" },
      { tool: "explain_reason", arguments: { code: "no such code" }, at: ["error", "code"], is: "request-malformed", fails: true },
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
