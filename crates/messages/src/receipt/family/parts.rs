//! The parts of a receipt: content, proof and unsigned members.

use clresolve_core::reason::ReasonCode;
use clresolve_jose::ED25519_ALGORITHMS;
use serde::Serialize;

use crate::receipt::canonical::JsonMemberOrder;
use crate::receipt::json::JsonNode;

/// A family of receipts that are signed in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum ReceiptFamily {
    /// The SDKs.
    A1,
    /// The runtime: same identifiers as the SDKs, another canonical form.
    A2,
    /// The commercial runtime.
    A3,
    /// The agent SDK and verifyagent.
    B1,
    /// The website.
    B2,
    /// The agent SDK since 1.1: the shape of the website's receipts, another canonical form.
    B3,
    /// The MCP server.
    C,
    /// The layered receipts of runtime-core.
    D,
    /// The older receipts of runtime-core.
    D0,
    /// CLAS execution receipts.
    E,
    /// CLAS execution receipts whose proof lists the members that it covers.
    E2,
    /// x402's own receipts (extension offer-receipt), signed with EIP-712.
    X1,
    /// x402's own receipts, as a JWS.
    X2,
}

impl ReceiptFamily {
    /// Every family.
    pub const ALL: [Self; 13] = [
        Self::A1,
        Self::A2,
        Self::A3,
        Self::B1,
        Self::B2,
        Self::B3,
        Self::C,
        Self::D,
        Self::D0,
        Self::E,
        Self::E2,
        Self::X1,
        Self::X2,
    ];

    /// The family's stable slug.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::A1 => "sdk-cl-stable-json-v1",
            Self::A2 => "runtime-cl-stable-json-v1",
            Self::A3 => "commercial-json-stringify",
            Self::B1 => "agent-sdk-top-level-signature",
            Self::B2 => "website-metadata-proof",
            Self::B3 => "agent-sdk-1.1-metadata-proof",
            Self::C => "mcp-1.1.0-top-level-proof",
            Self::D => "runtime-core-layered",
            Self::D0 => "runtime-core-legacy-hash-bound",
            Self::E => "clas-execution-v1",
            Self::E2 => "clas-execution-scoped",
            Self::X1 => "x402-receipt-eip712",
            Self::X2 => "x402-receipt-jws",
        }
    }

    /// Whether its receipts follow the request and receipt schemas of line 1.0.0, which a card binds (PC-7).
    pub(crate) fn follows_published_schemas(self) -> bool {
        matches!(self, Self::A1 | Self::A2 | Self::A3 | Self::D0)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ReceiptParts {
    pub(crate) family: ReceiptFamily,
    /// The content to canonicalize: everything that the signature covers, and nothing else.
    pub(crate) content: JsonNode,
    /// JSON Pointer to the content in the receipt.
    pub(crate) root: &'static str,
    pub(crate) order: JsonMemberOrder,
    pub(crate) signs: SignedMessageFormat,
    /// The proof's algorithm names, each with the family's name of it.
    pub(crate) algorithms: Vec<(ReceiptClaim, &'static str)>,
    /// The proof's name of its canonical form, and the family's name of it.
    pub(crate) canonical: (ReceiptClaim, &'static str),
    /// The stated digest, if the family has one.
    pub(crate) hash: Option<ReceiptClaim>,
    pub(crate) signature: ReceiptClaim,
    /// Each place that names the key; empty if the family has none.
    pub(crate) kids: Vec<ReceiptClaim>,
    /// Each place that names the signer.
    pub(crate) signers: Vec<ReceiptClaim>,
    /// The place that names the agent, if the family has one.
    pub(crate) agent: Option<ReceiptClaim>,
    /// JSON Pointers of members that neither a signature nor a check covers.
    pub(crate) unsigned: Vec<String>,
}

/// The message that is signed with Ed25519.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignedMessageFormat {
    /// The SHA-256 of the canonical bytes as 64 hex digits.
    HexDigest,
    CanonicalBytes,
}

impl SignedMessageFormat {
    /// The message that a family with this one does not sign.
    pub(crate) const fn opposite_format(self) -> Self {
        match self {
            Self::HexDigest => Self::CanonicalBytes,
            Self::CanonicalBytes => Self::HexDigest,
        }
    }
}

/// The value at one place of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceiptClaim {
    /// JSON Pointer into the receipt.
    pub(crate) place: String,
    /// The text; `None` if the member is missing or not a text.
    pub(crate) value: Option<String>,
}

impl ReceiptClaim {
    pub(crate) fn from_path(receipt: &JsonNode, path: &[&str]) -> Self {
        Self {
            place: clresolve_core::json::pointer::join_pointer_segments(path.iter().copied()),
            value: receipt.text_at(path).map(str::to_owned),
        }
    }

    /// Whether the value names this algorithm. Ed25519 has several names.
    pub(crate) fn names_algorithm(&self, algorithm: &str) -> bool {
        let is_same = |name: &str| name == algorithm || (is_ed25519(name) && is_ed25519(algorithm));
        self.value.as_deref().is_some_and(is_same)
    }

    /// Prefixes the place with `root`, the place of the part in the receipt.
    pub(crate) fn with_root_prefix(self, root: &str) -> Self {
        Self { place: format!("{root}{}", self.place), ..self }
    }
}

impl ReceiptParts {
    /// Whether the proof names the family's canonical form.
    pub(crate) fn names_own_canonical_form(&self) -> bool {
        let (claim, expected) = &self.canonical;
        claim.value.as_deref() == Some(*expected)
    }

    /// The text at a path of the content.
    pub(crate) fn claim_at_path(&self, path: &[&str]) -> ReceiptClaim {
        ReceiptClaim::from_path(&self.content, path).with_root_prefix(self.root)
    }
}

/// Why a receipt of a family's shape has no content to canonicalize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceiptPartsError {
    /// JSON Pointer of the defect.
    pub(crate) place: String,
    /// What the defect is.
    pub(crate) why: &'static str,
    /// `receipt-schema-invalid` if the family requires a missing part, or `receipt-family-unknown` if the signature may
    /// be in a form that is not tried.
    pub(crate) code: ReasonCode,
}

/// Whether this is a name of Ed25519: `EdDSA` or `Ed25519`, in any case.
pub(super) fn is_ed25519(name: &str) -> bool {
    ED25519_ALGORITHMS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// JSON Pointers of the members of the object at `path` that are not in `known`.
pub(super) fn unknown_members(receipt: &JsonNode, path: &[&str], known: &[&str]) -> Vec<String> {
    let names = receipt.get_path(path).map(|object| object.other_member_names(known)).unwrap_or_default();
    let place = |name: &String| {
        clresolve_core::json::pointer::join_pointer_segments(path.iter().copied().chain([name.as_str()]))
    };
    names.iter().map(place).collect()
}

/// Whether the receipt has a value at an optional place. A null counts as absent.
pub(super) fn has_value_at(receipt: &JsonNode, path: &[&str]) -> bool {
    receipt.get_path(path).is_some_and(|value| *value != JsonNode::Null)
}

/// JSON Pointers of those `paths` that exist in the receipt.
pub(super) fn existing_pointers(receipt: &JsonNode, paths: &[&[&str]]) -> Vec<String> {
    let there = paths.iter().filter(|path| receipt.get_path(path).is_some());
    there.map(|path| clresolve_core::json::pointer::join_pointer_segments(path.iter().copied())).collect()
}
