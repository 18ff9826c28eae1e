//! The families of receipts, told apart by shape. Each of CommandLayer's has a module of its own, which says what is signed;
//! x402's own are read as its text has them (`clresolve-payment`).
//!
//! Nothing here verifies anything. A module takes a receipt apart: what is canonicalised and how, what is signed, what the
//! proof claims, and which members nobody signs.

mod agent_sdk;
mod execution;
mod hash_bound;
mod layered;
mod mcp;
mod runtime;
mod sdk;
mod website;

use serde::Serialize;

use crate::canonical::MemberOrder;
use crate::json::Node;

/// A family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum Family {
    /// The SDKs.
    A1,
    /// The runtime: the same identifiers as the SDKs, another form.
    A2,
    /// The commercial runtime.
    A3,
    /// The agent SDK, and verifyagent.
    B1,
    /// The website.
    B2,
    /// The MCP server.
    C,
    /// The layered receipts of runtime-core.
    D,
    /// The older receipts of runtime-core.
    D0,
    /// CLAS execution receipts.
    E,
    /// x402's own receipts (extension offer-receipt), signed by EIP-712.
    X1,
    /// x402's own receipts, as a JWS.
    X2,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 11] =
        [Self::A1, Self::A2, Self::A3, Self::B1, Self::B2, Self::C, Self::D, Self::D0, Self::E, Self::X1, Self::X2];

    /// The family's stable slug.
    pub fn slug(self) -> &'static str {
        row(self).slug
    }

    /// Whether its receipts are those of the request and receipt schemas of line 1.0.0, which a card binds (PC-7).
    pub(crate) fn is_of_schemas(self) -> bool {
        matches!(self, Self::A1 | Self::A2 | Self::A3 | Self::D0)
    }
}

/// A family's line of the table.
struct Row {
    family: Family,
    slug: &'static str,
    /// Whether a receipt has its shape.
    is: fn(&Node) -> bool,
    /// Takes such a receipt apart; `None` for those of x402.
    seal: Option<Take>,
}

/// Takes a receipt of a family apart.
type Take = fn(&Node) -> Result<Seal, Unsealable>;

/// A1 stands before A2, which has the same shape.
static TABLE: [Row; 11] = [
    Row { family: Family::A1, slug: "sdk-cl-stable-json-v1", is: sdk::is, seal: Some(sdk::seal) },
    Row { family: Family::A2, slug: "runtime-cl-stable-json-v1", is: sdk::is, seal: Some(runtime::seal) },
    Row {
        family: Family::A3,
        slug: "commercial-json-stringify",
        is: runtime::is_commercial,
        seal: Some(runtime::seal_commercial),
    },
    Row { family: Family::B1, slug: "agent-sdk-top-level-signature", is: agent_sdk::is, seal: Some(agent_sdk::seal) },
    Row { family: Family::B2, slug: "website-metadata-proof", is: website::is, seal: Some(website::seal) },
    Row { family: Family::C, slug: "mcp-1.1.0-top-level-proof", is: mcp::is, seal: Some(mcp::seal) },
    Row { family: Family::D, slug: "runtime-core-layered", is: layered::is, seal: Some(layered::seal) },
    Row {
        family: Family::D0,
        slug: "runtime-core-legacy-hash-bound",
        is: hash_bound::is,
        seal: Some(hash_bound::seal),
    },
    Row { family: Family::E, slug: "clas-execution-v1", is: execution::is, seal: Some(execution::seal) },
    Row { family: Family::X1, slug: "x402-receipt-eip712", is: |receipt| is_artifact(receipt, "eip712"), seal: None },
    Row { family: Family::X2, slug: "x402-receipt-jws", is: |receipt| is_artifact(receipt, "jws"), seal: None },
];

fn is_artifact(receipt: &Node, format: &str) -> bool {
    receipt.text_at(&["format"]).as_deref() == Some(format) && receipt.text_at(&["signature"]).is_some()
}

fn row(family: Family) -> &'static Row {
    TABLE.iter().find(|row| row.family == family).expect("every family has a line")
}

/// A receipt taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Seal {
    pub(crate) family: Family,
    /// What is canonicalised: all that the signature covers, and nothing else.
    pub(crate) content: Node,
    /// JSON Pointer of the content in the receipt.
    pub(crate) root: &'static str,
    pub(crate) order: MemberOrder,
    pub(crate) signs: Signs,
    /// What the proof says of its algorithms, each with the one word that the family knows.
    pub(crate) algorithms: Vec<(Claim, &'static str)>,
    /// What the proof calls its canonical form, and what the family calls it.
    pub(crate) canonical: (Claim, &'static str),
    /// The claimed digest, where the family has one.
    pub(crate) hash: Option<Claim>,
    pub(crate) signature: Claim,
    pub(crate) alphabet: Alphabet,
    /// Each place that names the key; none where the family has none.
    pub(crate) kids: Vec<Claim>,
    /// Each place that names the signer.
    pub(crate) signers: Vec<Claim>,
    /// The place that names the agent, where the family has one.
    pub(crate) agent: Option<Claim>,
    /// JSON Pointers of members that no signature covers and no check compares.
    pub(crate) unsigned: Vec<String>,
}

/// What Ed25519 signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signs {
    /// The 64 hex digits of the SHA-256 of the canonical bytes.
    HexDigest,
    /// The canonical bytes.
    CanonicalBytes,
}

/// How a signature is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Base64, padded.
    Standard,
    /// Base64url, not padded.
    Url,
}

/// What a receipt says in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// JSON Pointer.
    pub(crate) place: String,
    /// The text; `None` where the member is missing or is no text.
    pub(crate) value: Option<String>,
}

impl Claim {
    /// The text at a path of a receipt.
    pub(crate) fn at(receipt: &Node, path: &[&str]) -> Self {
        Self { place: clresolve_core::json::pointer::of(path.iter().copied()), value: receipt.text_at(path) }
    }

    /// The same of a part that stands at `root` in the receipt.
    pub(crate) fn below(self, root: &str) -> Self {
        Self { place: format!("{root}{}", self.place), ..self }
    }
}

impl Seal {
    /// The text at a path of the content.
    pub(crate) fn claim(&self, path: &[&str]) -> Claim {
        Claim::at(&self.content, path).below(self.root)
    }
}

/// Why a receipt with a family's shape has nothing that could be canonicalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsealable {
    /// JSON Pointer of the member that is missing.
    pub(crate) place: String,
    /// Why it is needed.
    pub(crate) why: &'static str,
}

/// What the shape of a receipt says.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Of no family, or of several.
    Unknown(Vec<Family>),
    /// Of one family, or of the two with the same shape: the readings of it, the likelier one first.
    Known(Vec<Result<Seal, Unsealable>>),
    /// Of x402's own: this family, and JSON Pointers of members that nobody signs.
    Artifact(Family, Vec<String>),
}

/// The family or families of a receipt, by its shape.
pub(crate) fn shape(receipt: &Node) -> Shape {
    let rows: Vec<&Row> = TABLE.iter().filter(|row| (row.is)(receipt)).collect();
    let families: Vec<_> = rows.iter().map(|row| row.family).collect();
    let is_clear = matches!(families[..], [Family::A1, Family::A2] | [_]);
    if !is_clear && !clresolve_core::mutant!("receipts-of-any-shape") {
        return Shape::Unknown(families);
    }
    if let [Row { family, seal: None, .. }] = rows[..] {
        return Shape::Artifact(*family, others(receipt, &[], &["format", "payload", "signature"]));
    }
    let mut readings: Vec<_> = rows.iter().filter_map(|row| row.seal).map(|seal| seal(receipt)).collect();
    if runtime::repeats_its_digest(receipt) {
        readings.reverse();
    }
    Shape::Known(readings)
}

/// JSON Pointers of the members of the object at `path` that are not among `known`.
fn others(receipt: &Node, path: &[&str], known: &[&str]) -> Vec<String> {
    let names = receipt.at(path).map(|object| object.names_beside(known)).unwrap_or_default();
    let place = |name: &String| clresolve_core::json::pointer::of(path.iter().copied().chain([name.as_str()]));
    names.iter().map(place).collect()
}

/// JSON Pointers of those of `paths` that stand in the receipt.
fn present(receipt: &Node, paths: &[&[&str]]) -> Vec<String> {
    let there = paths.iter().filter(|path| receipt.at(path).is_some());
    there.map(|path| clresolve_core::json::pointer::of(path.iter().copied())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_one_line_for_each_family() {
        let families: Vec<_> = TABLE.iter().map(|row| row.family).collect();
        assert_eq!(families, Family::ALL);
    }
}
