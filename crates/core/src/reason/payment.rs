//! Rows of the registry: whether a payment may be made. These codes appear in decisions, never in a verdict.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // the terms
        PaymentTermsMalformed "payment-terms-malformed" Fail Payment "" Publisher false
            "The reply is no well-formed x402 demand for payment."
            "Terms come with status 402: in the header PAYMENT-REQUIRED (x402 version 2: one JSON object in base64), in the body (version 1) or in an MCP result's structuredContent. A header that is present is never replaced by the body. Networks are CAIP-2 identifiers (version 1: the published names), amounts decimal integers below 2^256 without leading zero, addresses 20 bytes in hex with a valid EIP-55 checksum if in mixed case. At most 64 KiB and 32 entries are read. The seller must correct its terms.";
        PaymentTermsAmbiguous "payment-terms-ambiguous" Fail Payment "" Publisher false
            "The reply demands two different payments."
            "PAYMENT-REQUIRED came twice, parts of the reply differ, or the reply also demands another payment protocol (`Payment`, `L402` or `LSAT`, over MCP the error -32042). Clients could pay something else than was decided. The seller must send the same terms everywhere; remove challenges of other protocols before a client sees the reply.";
        PaymentSchemeUnchecked "payment-scheme-unchecked" Unknown Payment "" Publisher false
            "The scheme or the transfer method of the terms is not one that is checked."
            "Only the scheme `exact` states a price, and only transfers by EIP-3009 or the canonical Permit2 proxy can be checked; `upto` names a maximum, `erc7710` an opaque delegation. The limits may permit fewer schemes. Choose another entry of the terms.";
        PaymentNetworkMismatch "payment-network-mismatch" Fail Payment "CL-71" Publisher false
            "The terms ask for payment on a network that is not permitted."
            "Both the card's `networks` and the limits must list the network. Published cards list eip155:1 only; to rely on the limits alone, set networks = \"limits\" under [limits].";
        PaymentAssetUnlisted "payment-asset-unlisted" Fail Payment "" Operator false
            "The asset of the terms is not among those of the limits, or its EIP-712 domain is another one."
            "An asset is a contract on a network, never a symbol. The limits must list its address, and `extra.name` and `extra.version` must equal the EIP-712 domain in the built-in table or the configuration.";
        PaymentAmountExceeds "payment-amount-exceeds" Fail Payment "" Publisher false
            "The terms ask for more than the limits permit for the asset."
            "Amounts are in atomic units. Check the asset's decimals before you raise a limit.";
        PaymentLimitMissing "payment-limit-missing" Unknown Payment "" Operator false
            "No limit on the amount is configured for the asset."
            "Without a limit nothing is paid. Set limits.assets in the configuration; callers can only tighten it.";
        PaymentTimeoutExcessive "payment-timeout-excessive" Fail Payment "" Publisher false
            "The terms want an authorisation that is valid for longer than the limits permit, or for no time at all."
            "maxTimeoutSeconds decides how long a signed authorisation can be cashed: at least 1 s and at most 300 s, or less if the limits say so.";

        // the payee
        PayeeMismatch "payee-mismatch" Fail Payment "" Publisher false
            "The terms pay another address than the one that the name publishes."
            "payTo differs from what the name's records, its ERC-8004 registration or the configuration state, or is zero or the asset itself. The 402 may come from someone else: do not pay.";
        PayeeUnproven "payee-unproven" Unknown Payment "" Publisher false
            "Nothing that the name publishes proves that payTo is its own."
            "A payee is proven by the name's address record for the network, the wallet of its ERC-8004 registration (read if [chains.ID] has endpoints), an offer signed by a key of the name, or the configuration. The publisher can set addr for the network's coin type (ENSIP-11); `clresolve plan` names the record.";
        OfferInvalid "offer-invalid" Fail Payment "" Publisher false
            "The signed offer is invalid, or is for other terms."
            "An offer must have a valid signature, be unexpired, and state exactly the entry's scheme, network, asset, payTo and amount, for this resource.";
        OfferSignerUnproven "offer-signer-unproven" Unknown Payment "" Publisher false
            "The offer is signed by a key that the name does not publish."
            "The key must be an address of the name, or cl.sig.pub of the name in cl.receipt.signer; a key in the offer or on a web host proves nothing. If the key could not be read, or a contract wallet signed, `observed` gives the cause, and asking again may help.";

        // the identity of the seller
        IdentityClaimed "identity-claimed" Unknown Payment "" Operator false
            "Only the seller vouches for its identity."
            "A seller can set up both directions of any link: a name of its own that points to its host, or a registration that lists it. So an identity that only the 402, the host or a model names does not allow a payment. Verify the identity, then pin it under [check.origins], pass it to the guard's constructor, or accept it with `clresolve memory accept ORIGIN`.";
        IdentityChanged "identity-changed" Fail Payment "" Operator false
            "The origin showed another identity before."
            "The memory binds an origin to the name or registration that was accepted for it. Any other identity is denied, even if it is proven. If the seller has changed its identity, accept the new one with `clresolve memory accept ORIGIN`.";
        OriginMismatch "origin-mismatch" Fail Payment "" Publisher false
            "The origin that answered is not the seller's."
            "The requested URL, the URL that answered and the identity's record must have the same scheme, host and port, and a path in the record must match whole segments. A redirect target, `www`, plain http and another tenant of a shared host are other origins.";
        PayeeChanged "payee-changed" Warn Payment "" Publisher false
            "The origin demanded payment to another address before."
            "Nothing proves who this seller is, and its payee has changed since the last check. An honest seller may rotate addresses, but a thief's address looks the same.";

        // the route
        InvokeNoRoute "invoke-no-route" Unknown Payment "CL-61" Publisher false
            "The URL of the agent's entry is unknown."
            "An x402:// entry does not define a URL. Set it in the configuration ([routes]), in the name's records (cl.endpoint.runtime, agent-endpoint[web], agent-endpoint[mcp], agent-endpoint[a2a]) or as an https entry; and state which URL answered.";
        InvokeRefusedUntrusted "invoke-refused-untrusted" Fail Payment "CL-67" Asker false
            "The agent is not trusted, so its route was not called."
            "clresolve does not call untrusted agents unless told to (`clresolve probe --untrusted`). The decision aborts in any case.";
        EndpointMismatch "endpoint-mismatch" Fail Payment "CL-61" Publisher false
            "The URL that answered is not the agent's."
            "The terms came from another origin or path than the agent's route, for instance after a redirect, so payment headers would go to someone else. Compare the URL with the output of `clresolve route NAME VERB`.";
        ResourceMismatch "resource-mismatch" Fail Payment "" Publisher false
            "The terms are for a resource on another host."
            "resource.url has another host than the one that answered, so the terms belong to another seller.";
        ResourceDiffers "resource-differs" Warn Payment "" Publisher false
            "The terms' resource.url is not exactly the URL that answered."
            "Scheme, port, path or query differ on the same host, as behind an honest proxy, or resource.url names a tool. This decides nothing.";

        // the signed payment
        PaymentSignatureMismatch "payment-signature-mismatch" Fail Payment "" Asker false
            "The signed payment differs from the decision."
            "What the signature permits (to, value, asset, chain, validBefore, or Permit2's spender and witness) differs from the decision: something changed the terms in between. Do not send the header.";
    } };
}

pub(super) use rows;
