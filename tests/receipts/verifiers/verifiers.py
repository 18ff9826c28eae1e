"""What CommandLayer's Python SDK says of receipts, with what agent and signer publish: rows of a table.

It asks for the key itself, as it does over a chain, and is answered with the records of the sandbox.
"""

import json
import pathlib
import sys
from importlib.metadata import version

from commandlayer import verify

AGENT = "summarizeagent.eth"
RECORDS = {
    (AGENT, "cl.receipt.signer"): "runtime.sandbox.eth",
    ("runtime.sandbox.eth", "cl.sig.pub"): "ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=",
    ("runtime.sandbox.eth", "cl.sig.kid"): "test-key-7",
}


class Records:
    def __init__(self, _rpc_url: str) -> None:
        pass

    def get_text(self, name: str, key: str) -> str | None:
        return RECORDS.get((name, key))


verify.Web3EnsTextResolver = Records


def said(text: str) -> str:
    found = verify.verify_receipt(json.loads(text), ens={"name": AGENT, "rpcUrl": "of the sandbox"})
    assert found["values"]["pubkey_source"] == "ens", found["errors"]
    if found["ok"]:
        return "ok"
    failed = [name for name, holds in found["checks"].items() if not holds]
    return "not ok: " + ", ".join(failed)


for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    judged = path.with_name(path.name + ".clresolve")
    if not judged.exists():
        continue
    here = json.loads(judged.read_text())
    family = (here["family"] or {"id": "-"})["id"]
    if not family.startswith("A"):
        continue
    own = " ".join([here["state"], *here["codes"]])
    print(f"| {family} | PyPI commandlayer {version('commandlayer')} | `{path.name}` | {said(path.read_text())} | {own} |")
