"""A guard below an x402 payment client.

    x402AsyncTransport(client, transport=GuardTransport(httpx.AsyncHTTPTransport(), daemon=..., agent=..., verb=...))

The guard sees every request, every response and the signed payment exactly as they are sent and received. It asks the
clresolve daemon about each of them, and sends no payment that the daemon did not allow. `README.md` lists the rules.
"""

from ._daemon import Signer
from ._error import Code, GuardError
from ._transport import GuardTransport, Paid

__all__ = ["Code", "GuardError", "GuardTransport", "Paid", "Signer"]
