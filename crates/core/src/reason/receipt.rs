//! Rows of the registry: whether a receipt is valid. These codes appear in receipt reports, never in a verdict.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // the receipt by itself
        ReceiptSchemaInvalid "receipt-schema-invalid" Fail Receipt "CL-63" Publisher false
            "The receipt is not what its schema demands."
            "A receipt is one JSON object; line 1.0.0 needs verb and version in x402, a trace with trace_id, a status of success, error or delegated, and the matching result or error (PC-7). Nothing can be verified if a signed member is missing, or a signed number has more digits than a double beyond 2^53 or is 1e400.";
        ReceiptDuplicateKey "receipt-duplicate-key" Fail Receipt "" Publisher false
            "The receipt contains a member twice."
            "Some readers take the first value and some the last, so a receipt altered in this way can pass as verified elsewhere. The signature was not checked.";
        ReceiptFamilyUnknown "receipt-family-unknown" Unknown Receipt "" Publisher false
            "It is not known how this receipt was signed."
            "The receipt matches none of the eleven published forms, its algorithm or canonical form cannot be checked (trust-verification and genesis receipts publish none, and one form depends on the signer's locale), or it exceeds 256 KiB, 16 levels, 8192 values or 1000 numbers of more than 17 digits. Nothing is proven or refuted.";
        ReceiptHashMismatch "receipt-hash-mismatch" Fail Receipt "CL-64" Publisher false
            "The receipt's digest does not match its content."
            "The digest over the canonical form of the signed members differs from the stated one: the receipt was altered after signing, or its signer uses another form. The signature is checked over the recomputed digest.";
        ReceiptSignatureInvalid "receipt-signature-invalid" Fail Receipt "CL-64" Publisher false
            "The signature is invalid under the signer's published key."
            "Another key signed, or a signed member was changed. Ed25519 is verified strictly: small-order keys, malleable signatures and the algorithm none are rejected.";
        ReceiptKeyMismatch "receipt-key-mismatch" Fail Receipt "CL-64" Publisher false
            "The receipt names another key than the one that its signer publishes."
            "The receipt's key id differs from cl.sig.kid of the signer's name. If the key was rotated, verify the receipt at an older block (--block).";

        // whose receipt it is
        ReceiptKeyUnpublished "receipt-key-unpublished" Unknown Receipt "" Publisher true
            "The key that should have signed the receipt could not be read."
            "The agent's record cl.receipt.signer names the signer (by default the agent itself), whose cl.sig.pub holds the key (ed25519: and base64) and cl.sig.kid its id. A record is unset or invalid, or was not final at the verdict's block. A key in the receipt itself proves nothing.";
        ReceiptSignerMismatch "receipt-signer-mismatch" Fail Receipt "" Publisher false
            "The receipt names another signer, or another agent, than the one that was asked."
            "Anyone can sign a receipt in their own name. The signer must be the one in the agent's record cl.receipt.signer, and an agent named in the receipt must be the one you asked.";

        // which call it is about
        ReceiptRequestMismatch "receipt-request-mismatch" Fail Receipt "" Publisher false
            "The receipt is about another call."
            "The signed verb, version, entry or input differs from the request or the agent: one signer often signs for many agents. With a decision, name and verb are compared too, and network, payer and URL of x402's own receipts.";
        ReceiptTraceNotEchoed "receipt-trace-not-echoed" Fail Receipt "PC-8" Publisher false
            "The receipt does not echo the identifier of the request."
            "A receipt must repeat x402.request_id and, if the request has one, trace.trace_id. Otherwise an older receipt for the same verb could be shown. Send a fresh x402.request_id with each request.";
        ReceiptReplayed "receipt-replayed" Fail Receipt "" Publisher false
            "The receipt was shown before, for another request."
            "The memory (--remember or receipts.remember) has this receipt for another request; changes of unsigned members do not matter. Undecided if the memory is unavailable or no request or decision was given.";
        ReceiptTimeImplausible "receipt-time-implausible" Fail Receipt "" Publisher false
            "A time that the receipt states cannot be right."
            "A signed time is not RFC 3339, is more than five minutes in the future or before the purchase, or the execution ends before it begins. In x402's own receipts this is issuedAt.";

        // whether the call was paid for
        SettlementMismatch "settlement-mismatch" Fail Receipt "" Publisher false
            "The payment was settled otherwise than it was permitted, or not at all."
            "Decision, payment header, the seller's reply and the chain differ in network, asset, amount, payer, payee, nonce or transaction; or the transaction failed or holds another transfer. Logs of other contracts never count.";
        SettlementUnproven "settlement-unproven" Unknown Receipt "" Operator true
            "It is not known whether the payment was settled."
            "The seller's PAYMENT-RESPONSE header is unsigned and only names the transaction. Proof needs the payment header, the reply's header, and endpoints under [chains.ID] that agree on the transaction in a finalized block, which takes about 15 minutes on most networks.";
    } };
}

pub(super) use rows;
