//! Rows of the registry: whether a receipt is valid. These codes appear in receipt reports, never in a verdict.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // the receipt by itself
        ReceiptSchemaInvalid "receipt-schema-invalid" Fail Receipt "CL-63" Publisher false
            "The receipt is not what its schema demands."
            "A receipt is one JSON object. Those of line 1.0.0 carry the verb and version of the call in x402, a trace with its trace_id, the status success, error or delegated, and the result or the error that the status demands (PC-7). A signed member that is missing, or a signed number that other readers read differently (beyond 2^53 with digits that a double does not have, or 1e400), leaves nothing that a signature could be about.";
        ReceiptDuplicateKey "receipt-duplicate-key" Fail Receipt "" Publisher false
            "The receipt holds a member twice."
            "Most readers keep the last of two members of the same name, some keep the first. So what is verified may not be what is shown: the published verifiers say VERIFIED to a receipt that was altered in this way. The signature is not looked at.";
        ReceiptFamilyUnknown "receipt-family-unknown" Unknown Receipt "" Publisher false
            "It is not known how this receipt was signed."
            "CommandLayer's programs sign receipts in eleven published forms, which are recognised by shape. This receipt has the shape of none of them, or it is signed in none of the forms that share its shape. Or its signature uses an algorithm or a canonical form that is not checked (trust-verification and genesis receipts publish none, and one form depends on the signer's locale). Or it is larger than what is read: 256 KiB, 16 levels, 8192 values, 1000 numbers of more than 17 significant digits. Nothing was found wrong, and nothing is proven.";
        ReceiptHashMismatch "receipt-hash-mismatch" Fail Receipt "CL-64" Publisher false
            "The digest that the receipt states is not that of what it says."
            "The digest is recomputed over the canonical form of the signed members and compared with the claim. It differs, so the receipt was altered after it was signed, or its signer has another form. The signature is checked over the recomputed digest, never over the claimed one.";
        ReceiptSignatureInvalid "receipt-signature-invalid" Fail Receipt "CL-64" Publisher false
            "The signature does not hold under the key that the signer publishes."
            "Ed25519 is verified strictly: keys of small order, malleable signatures and the algorithm none are refused. Somebody else signed, or something that was signed was changed.";
        ReceiptKeyMismatch "receipt-key-mismatch" Fail Receipt "CL-64" Publisher false
            "The receipt names another key than the one that its signer publishes."
            "The key id of the receipt is compared with cl.sig.kid of the signer's name. Where keys were rotated, the receipt can be verified as of an older block (--block).";

        // whose receipt it is
        ReceiptKeyUnpublished "receipt-key-unpublished" Unknown Receipt "" Publisher true
            "The key that should have signed the receipt could not be learned."
            "The agent's record cl.receipt.signer names the signer (the agent itself where it is not set); that name's cl.sig.pub holds the key (ed25519: and base64) and cl.sig.kid its id. A record is not set, is no key, or could not be read settled at the block of the verdict. A key that the receipt itself brings proves nothing.";
        ReceiptSignerMismatch "receipt-signer-mismatch" Fail Receipt "" Publisher false
            "The receipt names another signer, or another agent, than the one that was asked."
            "Anybody can sign a receipt that names himself as signer. The signer must be the one that the record cl.receipt.signer of the agent that was asked names, and where the receipt names the agent, it must be that one.";

        // which call it is about
        ReceiptRequestMismatch "receipt-request-mismatch" Fail Receipt "" Publisher false
            "The receipt is about another call."
            "What the receipt states under signature of the call (verb, version, entry, input) differs from the request, or from what this agent does: one signer often signs for many agents. Where a decision is given, its name and verb are compared too, and of a receipt of x402's own network, payer and URL.";
        ReceiptTraceNotEchoed "receipt-trace-not-echoed" Fail Receipt "PC-8" Publisher false
            "The receipt does not echo the identifier of the request."
            "A receipt repeats x402.request_id and, where the request carries one, trace.trace_id. Nothing else ties a receipt of line 1.0.0 to one request, so an older receipt for the same verb could be shown instead. Send a fresh x402.request_id with each request.";
        ReceiptReplayed "receipt-replayed" Fail Receipt "" Publisher false
            "The receipt was shown before, for another request."
            "With --remember or receipts.remember, the memory keeps each receipt that holds, with the request that it was shown for. A receipt that was kept for another request is a replay. A change of members that nobody signs makes no other receipt. The same receipt for the same request is no replay. Where the memory cannot be used, or nothing was given that the receipt could be remembered for, this is undecided.";
        ReceiptTimeImplausible "receipt-time-implausible" Fail Receipt "" Publisher false
            "A time that the receipt states cannot be right."
            "A signed time is no RFC 3339 time, lies more than five minutes in the future or before the purchase, or the end of the execution lies before its beginning. Of a receipt of x402's own this is issuedAt.";

        // whether the call was paid for
        SettlementMismatch "settlement-mismatch" Fail Receipt "" Publisher false
            "The payment was settled otherwise than it was permitted, or not at all."
            "What was decided, what the payment header permits, what the seller's reply says and what the chain holds are compared: network, asset, amount, payer and payee, the nonce, and the transaction that a receipt of x402's own names. Two of them differ, or the transaction failed, or it holds another transfer. Logs of other contracts never count.";
        SettlementUnproven "settlement-unproven" Unknown Receipt "" Operator true
            "It is not known whether the payment was settled."
            "The seller's PAYMENT-RESPONSE header is not signed and proves nothing; it names the transaction to look at. That takes the payment header, the reply's header, and endpoints for the network under [chains.ID] that agree on the transaction in a finalized block. One of these is missing, or the block is not final yet: on most networks that takes a quarter of an hour.";
    } };
}

pub(super) use rows;
