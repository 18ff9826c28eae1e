"""A guard below an x402 payment client.

    x402AsyncTransport(client, transport=GuardTransport(httpx.AsyncHTTPTransport(), daemon=..., agent=..., verb=...))

Below the client every request, every reply and the signed payment are seen as they go over the wire. The guard asks
clresolve about each of them and lets no payment out that was not allowed. `README.md` has the rules.
"""

from ._daemon import Signer
from ._error import Code, GuardError
from ._transport import GuardTransport, Paid

__all__ = ["Code", "GuardError", "GuardTransport", "Paid", "Signer"]
