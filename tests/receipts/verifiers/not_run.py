"""What the verifiers that are in no registry say: rows of a table.

They are not run here. Beside each answer stands where it is from: the published vector that was given to the verifier, or
the code that was read. Of a stranger's signature neither says anything, so there is no row for it.
"""

import json
import pathlib
import sys

TYPESCRIPT = "sdk 2a7d14b, its `typescript-sdk`"
RUNTIME = "runtime 98e2960, its `/verify`"
VERIFYAGENT = "verifyagent 22d3b3f"
WEBSITE = "commandlayer-org 5b49475, `lib/verifyReceipt.js`"
MCP_SERVER = "mcp-server 42e9f03, its `receiptVerifier.js`"
MCP_TOOL = "mcp-server 42e9f03, its tool `verify_receipt`"
LAYERED = "runtime-core 7756191, its `receipt.ts`"
HASH_BOUND = "runtime-core 7756191, its `receipt-v1.ts`"
EXECUTION = "commandlayer-org 99af225, `lib/receipts/first-action-receipt.js`"


def valid(vector: str) -> str:
    return f"it holds: of the published vector `{vector}.valid.json`"


def altered(vector: str) -> str:
    return f"it does not hold: of the published vector `{vector}.tampered.json`"


def of_trap(vector: str, said: str) -> str:
    return f"{said}: of the published vector `trap.{vector}.json`"


LOST = "VERIFIED: by its code, which loses the member before it computes the digest"
TWO_NAMES = "SIGNER_MISMATCH: by its code, where signer and agent are two names"
ONE_KEY = "ok: by its code, which checks every receipt with the one key that it is configured with"
NO_ALGORITHM = "VERIFIED: by its code, which does not read `alg`"
CLAIMED = "its signature holds: by its code, which checks it over the claimed digest"
NAMES = "its digest is right: by its code, which sorts members by UTF-16 code unit"
NUMBERS = "its digest is right: by its code, which writes numbers as ECMAScript does"
ANY_KEY_ID = "it holds: by its code, which fetches `cl.sig.kid` and never compares it"
NOT_READ = "refused: by its code, which sends `{receipt}` where the runtime reads the whole body as the receipt"
ROWS = [
    ("A1", TYPESCRIPT, "sdk-altered.json", CLAIMED),
    ("A1", TYPESCRIPT, "sdk-names.json", NAMES),
    ("A1", TYPESCRIPT, "sdk-numbers.json", NUMBERS),
    ("A1", TYPESCRIPT, "sdk-other-kid.json", ANY_KEY_ID),
    ("A2", RUNTIME, "runtime-other-signer.json", ONE_KEY),
    ("B1", VERIFYAGENT, "agent-sdk.json", valid("agent-sdk-top-level-signature")),
    ("B1", VERIFYAGENT, "receipt-hash-mismatch.json", altered("agent-sdk-top-level-signature")),
    ("B1", VERIFYAGENT, "receipt-duplicate-key.json", of_trap("duplicate-key", "VERIFIED")),
    ("B1", VERIFYAGENT, "receipt-signer-mismatch.json", of_trap("other-signer-name", "VERIFIED")),
    ("B1", VERIFYAGENT, "prototype.json", LOST),
    ("B1", VERIFYAGENT, "agent-sdk-other-alg.json", NO_ALGORITHM),
    ("B1", VERIFYAGENT, "agent-sdk-keys.json", of_trap("keys-and-numbers.agent-sdk", "it holds")),
    ("B1", WEBSITE, "agent-sdk-keys.json", of_trap("keys-and-numbers.agent-sdk", "another digest")),
    ("B2", WEBSITE, "website.json", valid("website-metadata-proof")),
    ("B2", WEBSITE, "website-altered.json", altered("website-metadata-proof")),
    ("C", MCP_SERVER, "mcp-server.json", valid("mcp-1.1.0-top-level-proof")),
    ("C", MCP_SERVER, "mcp-server-altered.json", altered("mcp-1.1.0-top-level-proof")),
    ("C", MCP_TOOL, "mcp-server.json", NOT_READ),
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
