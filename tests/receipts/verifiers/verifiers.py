"""What CommandLayer's Python SDK says of receipts, with the key that the signer publishes: rows of a table."""

import json
import pathlib
import sys
from importlib.metadata import version

from commandlayer.verify import verify_receipt

KEY = "ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw="


def said(text: str) -> str:
    found = verify_receipt(json.loads(text), public_key=KEY)
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
