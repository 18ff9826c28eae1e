"""What the verifiers that are in no registry say of the families B1 to E: rows of a table.

They are not run here. Beside each answer stands where it is from: the published vector that was given to the verifier, or
the code that was read. Of a stranger's signature neither says anything, so there is no row for it.
"""

import json
import pathlib
import sys

VERIFYAGENT = "verifyagent 22d3b3f"
WEBSITE = "commandlayer-org 5b49475, `lib/verifyReceipt.js`"
MCP_SERVER = "mcp-server 42e9f03"
LAYERED = "runtime-core 7756191, its `receipt.ts`"
HASH_BOUND = "runtime-core 7756191, its `receipt-v1.ts`"
EXECUTION = "commandlayer-org 99af225, `lib/receipts/first-action-receipt.js`"


def valid(vector: str) -> str:
    return f"it holds: of the published vector `{vector}.valid.json`"


def altered(vector: str) -> str:
    return f"it does not hold: of the published vector `{vector}.tampered.json`"


LOST = "VERIFIED: by its code, which loses the member before it computes the digest"
TWO_NAMES = "SIGNER_MISMATCH: by its code, where signer and agent are two names"
ROWS = [
    ("B1", VERIFYAGENT, "agent-sdk.json", valid("agent-sdk-top-level-signature")),
    ("B1", VERIFYAGENT, "receipt-hash-mismatch.json", altered("agent-sdk-top-level-signature")),
    ("B1", VERIFYAGENT, "receipt-duplicate-key.json", "VERIFIED: of the published vector `trap.duplicate-key.json`"),
    ("B1", VERIFYAGENT, "receipt-signer-mismatch.json", "VERIFIED: of the published vector `trap.other-signer-name.json`"),
    ("B1", VERIFYAGENT, "prototype.json", LOST),
    ("B2", WEBSITE, "website.json", valid("website-metadata-proof")),
    ("B2", WEBSITE, "website-altered.json", altered("website-metadata-proof")),
    ("C", MCP_SERVER, "mcp-server.json", valid("mcp-1.1.0-top-level-proof")),
    ("C", MCP_SERVER, "mcp-server-altered.json", altered("mcp-1.1.0-top-level-proof")),
    ("D", LAYERED, "runtime-core.json", valid("runtime-core-layered")),
    ("D", LAYERED, "runtime-core-altered.json", altered("runtime-core-layered")),
    ("D0", HASH_BOUND, "runtime-core-hash-bound.json", valid("runtime-core-legacy-hash-bound")),
    ("D0", HASH_BOUND, "runtime-core-hash-bound-altered.json", altered("runtime-core-legacy-hash-bound")),
    ("E", EXECUTION, "clas-execution.json", TWO_NAMES),
    ("E", EXECUTION, "clas-execution-altered.json", TWO_NAMES),
]

folder = pathlib.Path(sys.argv[1])
for family, verifier, file, said in ROWS:
    here = json.loads((folder / f"{file}.clresolve").read_text())
    own = " ".join([here["state"], *here["codes"]])
    print(f"| {family} | {verifier} | `{file}` | not run here; {said} | {own} |")
