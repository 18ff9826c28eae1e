//! Rows of the registry: whether a payment may be made. These codes appear in decisions, never in a verdict.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // the terms
        PaymentTermsMalformed "payment-terms-malformed" Fail Payment "" Publisher false
            "The reply is no well-formed x402 demand for payment."
            "Terms come with status 402, in the header PAYMENT-REQUIRED (x402 version 2: one strict JSON object in base64), in the body (version 1) or in an MCP result's structuredContent. A header that is present decides: one that is empty or cannot be decoded is never replaced by the body. Networks are CAIP-2 identifiers (version 1: the published names), amounts decimal integers of atomic units below 2^256 without a leading zero, addresses 20 bytes in hex, in mixed case with a valid EIP-55 checksum. At most 64 KiB and 32 entries are read. The seller must send what the specification demands.";
        PaymentTermsAmbiguous "payment-terms-ambiguous" Fail Payment "" Publisher false
            "The reply demands two different payments."
            "The header PAYMENT-REQUIRED came twice, two places of the reply demand different payments, or the reply also asks to be paid by another protocol than x402 (`Payment`, `L402` or `LSAT`, over MCP the error -32042). Clients differ in what they read, so what is decided here may not be what is paid. The seller must demand the same everywhere. A challenge of another protocol must be removed before a client sees the reply.";
        PaymentSchemeUnchecked "payment-scheme-unchecked" Unknown Payment "" Publisher false
            "The scheme or the transfer method of the terms is not one that is checked."
            "Only the scheme `exact` states a price, and only where it moves the asset by EIP-3009 or through the canonical Permit2 proxy is it known what a signature permits. `upto` names a maximum, `erc7710` an opaque delegation. The limits may permit fewer schemes still. Choose another entry of the terms.";
        PaymentNetworkMismatch "payment-network-mismatch" Fail Payment "CL-71" Publisher false
            "The terms ask for payment on a network that is not permitted."
            "A network counts if both the card's `networks` and the limits' name it. Published cards list eip155:1 only; an operator who relies on the limits alone sets networks = \"limits\" under [limits].";
        PaymentAssetUnlisted "payment-asset-unlisted" Fail Payment "" Operator false
            "The asset of the terms is not among those of the limits, or its EIP-712 domain is another one."
            "An asset is a contract on a network, never a symbol: any contract can call itself USDC. The limits must list the address, and `extra.name` and `extra.version` must equal the domain that the built-in table or the configuration states for it.";
        PaymentAmountExceeds "payment-amount-exceeds" Fail Payment "" Publisher false
            "The terms ask for more than the limits permit for the asset."
            "Amounts are in atomic units of the asset. Compare the decimals of the asset before a limit is raised.";
        PaymentLimitMissing "payment-limit-missing" Unknown Payment "" Operator false
            "No limit on the amount is configured for the asset."
            "Without a limit there is nothing to compare the amount with, so nothing is paid. Set limits.assets in the configuration; a caller can only tighten it.";
        PaymentTimeoutExcessive "payment-timeout-excessive" Fail Payment "" Publisher false
            "The terms want an authorisation that is valid for longer than the limits permit, or for no time at all."
            "maxTimeoutSeconds decides for how long a signed authorisation can be cashed; a seller that asks for years keeps it. At most 300 s are ever permitted. 0 s leave no time to pay, and are refused too.";

        // the payee
        PayeeMismatch "payee-mismatch" Fail Payment "" Publisher false
            "The terms pay another address than the one that the name publishes."
            "payTo is compared as 20 bytes with what the name's records, its ERC-8004 registration or the configuration state, and is neither zero nor the asset itself. The 402 may not come from this agent at all: do not pay.";
        PayeeUnproven "payee-unproven" Unknown Payment "" Publisher false
            "Nothing that the name publishes says that payTo is its own."
            "A payee is proven by the name's address record for the network, by the wallet of its ERC-8004 registration, by an offer that a key of the name has signed, or by the configuration. A name that publishes none of them is never paid. The publisher can set addr for the network's coin type (ENSIP-11); `clresolve plan` names the record. A registration is read where [chains.ID] of the configuration names endpoints of its chain.";
        OfferInvalid "offer-invalid" Fail Payment "" Publisher false
            "The signed offer does not hold, or is for other terms."
            "An offer proves a payee if its signature is valid, if it has not expired, and if it states exactly the entry's scheme, network, asset, payTo and amount, for this resource. This one does not.";
        OfferSignerUnproven "offer-signer-unproven" Unknown Payment "" Publisher false
            "The offer is signed by a key that the name does not publish."
            "A signature shows which key signed, not whose key it is. A key counts if the name publishes it: an address of the name, or cl.sig.pub of the name that cl.receipt.signer names. A key that the offer itself or a web host brings proves nothing. Where the key could not be read, or a contract wallet has signed, it is not known who did: `observed` says why, and asking again may help.";

        // the route
        InvokeNoRoute "invoke-no-route" Unknown Payment "CL-61" Publisher false
            "It is not known which URL the agent's entry stands for."
            "The specification leaves the transport of an x402:// entry open, so the URL must come from the configuration ([routes]), from the name's records (cl.endpoint.runtime, agent-endpoint[web], agent-endpoint[mcp], agent-endpoint[a2a]) or from a card whose entry is https. Here none of them says, or the asker did not say which URL answered.";
        InvokeRefusedUntrusted "invoke-refused-untrusted" Fail Payment "CL-67" Asker false
            "The agent is not trusted, so its route was not asked."
            "An entry that is invalid or untrusted is not invoked unless the caller overrides this explicitly (`clresolve probe --untrusted`). A decision about it aborts in any case.";
        EndpointMismatch "endpoint-mismatch" Fail Payment "CL-61" Publisher false
            "The URL that answered is not the agent's."
            "The terms came from another origin or path than the agent's route, for instance after a redirect: the sender of the 402 is somebody else, and payment headers would go there. Or the caller does not use the published URL: compare it with what `clresolve route NAME VERB` prints.";
        ResourceMismatch "resource-mismatch" Fail Payment "" Publisher false
            "The terms are for a resource on another host."
            "resource.url names another host than the one that answered: the terms were made for, or taken from, another seller.";
        ResourceDiffers "resource-differs" Warn Payment "" Publisher false
            "The terms' resource.url is not exactly the URL that answered."
            "Either the host is the same, and scheme, port, path or query differ, as behind an honest proxy; or resource.url names a tool, which is called where the agent's tools are. So it is reported and decides nothing.";

        // the signed payment
        PaymentSignatureMismatch "payment-signature-mismatch" Fail Payment "" Asker false
            "What was signed is not what was decided."
            "The payment header is compared by what its signature permits (to, value, asset, chain, validBefore, or Permit2's spender and witness), never by what it says it accepted. Something between the decision and the signature changed the terms: do not send the header.";
    } };
}

pub(super) use rows;
