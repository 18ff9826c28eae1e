//! Receipts of the sandbox's agents. Each family has a good receipt, one that was altered after signing, and one that a
//! third party forged. Each further defect of a receipt has one sample. Two additional good receipts contain numbers
//! (`sdk-numbers`) and names (`sdk-names`) that not every language serializes and sorts like ECMAScript.
//!
//! They are signed with a well-known key whose seed is 32 bytes of value 7. The sandbox's chain publishes the key under
//! the name that signs for `summarizeagent.eth`. The address of that agent has a worthless key too. The third party's
//! seed is 32 bytes of value 8. For the agent SDK (`agent-sdk`), `receipt-hash-mismatch` is the altered sample and
//! `receipt-signature-invalid` the forged one.

use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use serde::Serialize;

/// A receipt with its claimed agent and the expected result.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReceiptSample {
    /// Name of its file.
    pub file: &'static str,
    /// The agent.
    pub name: &'static str,
    /// The state.
    pub state: TrustState,
    /// The code of every reason, ordered by effect.
    pub codes: &'static [ReasonCode],
    /// Its text.
    #[serde(skip)]
    pub text: &'static str,
}

/// The request that the receipts answer.
pub const REQUEST: (&str, &str) = ("request.json", include_str!("receipts/request.json"));

macro_rules! samples {
    ($($file:literal $name:literal $state:ident [$($code:ident)*];)*) => {
        /// Every receipt of the sandbox, good ones first.
        pub const SAMPLES: &[ReceiptSample] = &[$(ReceiptSample {
            file: concat!($file, ".json"),
            name: $name,
            state: TrustState::$state,
            codes: &[$(ReasonCode::$code),*],
            text: include_str!(concat!("receipts/", $file, ".json")),
        }),*];
    };
}

samples! {
    "sdk" "summarizeagent.eth" Trusted [];
    "sdk-numbers" "summarizeagent.eth" Trusted [];
    "sdk-names" "summarizeagent.eth" Trusted [];
    "runtime" "summarizeagent.eth" Trusted [];
    "commercial-runtime" "summarizeagent.eth" Trusted [];
    "agent-sdk" "summarizeagent.eth" Trusted [];
    "agent-sdk-raw" "summarizeagent.eth" Trusted [];
    "website" "summarizeagent.eth" Trusted [];
    "mcp-server" "summarizeagent.eth" Trusted [];
    "runtime-core" "summarizeagent.eth" Trusted [];
    "runtime-core-hash-bound" "summarizeagent.eth" Trusted [];
    "x402-eip712" "summarizeagent.eth" Indeterminate [ReceiptTraceNotEchoed];
    "x402-jws" "summarizeagent.eth" Indeterminate [ReceiptTraceNotEchoed];
    "clas-execution" "summarizeagent.eth" Indeterminate [ReceiptTraceNotEchoed];
    "clas-scoped" "summarizeagent.eth" Indeterminate [ReceiptTraceNotEchoed];
    "sdk-altered" "summarizeagent.eth" Untrusted [ReceiptHashMismatch ReceiptSignatureInvalid];
    "sdk-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "runtime-altered" "summarizeagent.eth" Untrusted [ReceiptHashMismatch ReceiptSignatureInvalid];
    "runtime-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "commercial-runtime-altered" "summarizeagent.eth" Untrusted [ReceiptHashMismatch ReceiptSignatureInvalid];
    "commercial-runtime-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "agent-sdk-raw-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "website-altered" "summarizeagent.eth" Untrusted [ReceiptHashMismatch ReceiptSignatureInvalid];
    "website-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "mcp-server-altered" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "mcp-server-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "runtime-core-altered" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "runtime-core-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "runtime-core-hash-bound-altered" "summarizeagent.eth" Untrusted [ReceiptHashMismatch ReceiptSignatureInvalid];
    "runtime-core-hash-bound-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "clas-execution-altered" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid ReceiptTraceNotEchoed];
    "clas-execution-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid ReceiptTraceNotEchoed];
    "clas-scoped-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid ReceiptTraceNotEchoed];
    "x402-eip712-altered" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid ReceiptTraceNotEchoed];
    "x402-eip712-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid ReceiptTraceNotEchoed];
    "x402-jws-altered" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid ReceiptTraceNotEchoed];
    "x402-jws-forged" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid ReceiptTraceNotEchoed];
    "prototype" "summarizeagent.eth" Untrusted [ReceiptHashMismatch ReceiptRequestMismatch ReceiptSignatureInvalid];
    "bound-schema" "summarizeagent.eth" Untrusted [ReceiptSchemaInvalid];
    "receipt-duplicate-key" "summarizeagent.eth" Untrusted [ReceiptDuplicateKey];
    "receipt-family-unknown" "summarizeagent.eth" Indeterminate [ReceiptFamilyUnknown];
    "receipt-hash-mismatch" "summarizeagent.eth" Untrusted [ReceiptHashMismatch ReceiptSignatureInvalid];
    "receipt-key-mismatch" "summarizeagent.eth" Untrusted [ReceiptKeyMismatch];
    "receipt-key-unpublished" "raw-cid.eth" Indeterminate [ReceiptKeyUnpublished];
    "receipt-request-mismatch" "summarizeagent.eth" Untrusted [ReceiptRequestMismatch];
    "receipt-schema-invalid" "summarizeagent.eth" Untrusted [ReceiptSchemaInvalid];
    "receipt-signature-invalid" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid];
    "receipt-signer-mismatch" "summarizeagent.eth" Untrusted [ReceiptSignatureInvalid ReceiptSignerMismatch];
    "receipt-time-implausible" "summarizeagent.eth" Untrusted [ReceiptTimeImplausible];
    "receipt-trace-not-echoed" "summarizeagent.eth" Untrusted [ReceiptTraceNotEchoed];
}
