//! What one resolution gathered: the input of every check. Pure data without a verdict.
//!
//! Different kinds of absence stay distinct: a [`HttpsOutcome`] that was not requested, one that had no content, one
//! that must not be contacted, and one that exceeded the size limit are four variants.

pub mod continuity;
pub mod edition;
pub mod links;

use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::card::AgentCard;
use crate::schema::served::ServedSchema;
use clresolve_core::characters::first_unsafe_character_in_value;
use clresolve_core::digest::Digest;
use clresolve_core::fetch::{FetchError, ForbiddenUrlError, SourceUnavailableError};
use clresolve_core::name::{EnsName, EnsNameError};
use clresolve_core::reading::{BlockSelector, ChainError, ClOwnerReading, EnsAnswer, NameReading, ResolvedRecords};
use clresolve_core::recordable::LiveOrRecordedCause;
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::uri;
use clresolve_ipfs::{
    CidError, ContentId, DagWalkError, ProvenContentDefect, UnixFsPath, UnixFsPathError, VerifiedFile,
};
use continuity::{HistoryOutcome, NameObservation, record_digests};
use edition::CardSuccessionFacts;
use links::ExternalLinks;

/// Everything that one resolution gathered about a name.
#[derive(Clone, Debug)]
pub struct ResolutionEvidence {
    /// The name in normal form.
    pub name: EnsName,
    /// When the resolution ran.
    pub now: Timestamp,
    /// EIP-155 id of the chain that was read.
    pub chain_id: u64,
    /// The requested block.
    pub block: BlockSelector,
    /// The records read from the chain.
    pub reading: Result<NameReading, ChainError>,
    /// Who holds the name in `cl.owner`.
    pub owner: ClOwnerEvidence,
    /// What the card's URL served.
    pub https: HttpsOutcome,
    /// Content under `cl.cid.agentcard` at the mirror's path.
    pub ipfs: IpfsWalkOutcome,
    /// Content under the mirror's own CID, if it differs from the one in `cl.cid.agentcard`.
    pub mirror: IpfsWalkOutcome,
    /// Gateways (labels) that sent a wrong block, each with the requested CID.
    pub liars: Vec<(String, String)>,
    /// The bound schemas; fetched only at depth `schemas`.
    pub schemas: Option<SchemaEvidence>,
    /// What earlier resolutions recorded about the name.
    pub continuity: HistoryOutcome,
    /// External documents that link back to the card; `None` if they were not requested.
    pub links: Option<ExternalLinks>,
    /// Each missing key for which a record exists under another spelling, with that spelling.
    pub misspelt_keys: Vec<(TextRecordKey, &'static str)>,
}

/// What was fetched for the two bound schemas: hashed and parsed documents, or only their bytes.
#[derive(Clone, Debug)]
pub struct SchemaEvidence<D = ServedSchema> {
    /// The request schema.
    pub request: CanonicalAndMirrorSchema<D>,
    /// The receipt schema.
    pub receipt: CanonicalAndMirrorSchema<D>,
}

/// What was fetched for one schema that the card binds.
#[derive(Clone, Debug)]
pub struct CanonicalAndMirrorSchema<D = ServedSchema> {
    /// Response of the canonical location.
    pub canonical: SchemaFetchResult<D>,
    /// Response of the mirror; `None` if the card names no mirror.
    pub mirror: Option<SchemaFetchResult<D>>,
}

/// What one location of a schema served, or why it served nothing.
pub type SchemaFetchResult<D = ServedSchema> = Result<D, LiveOrRecordedCause<SchemaFetchError>>;

impl SchemaEvidence {
    /// The same evidence reduced to bytes.
    pub fn reduce_to_bytes(&self) -> SchemaEvidence<Bytes> {
        SchemaEvidence { request: self.request.reduce_to_bytes(), receipt: self.receipt.reduce_to_bytes() }
    }
}

impl CanonicalAndMirrorSchema {
    fn reduce_to_bytes(&self) -> CanonicalAndMirrorSchema<Bytes> {
        let bytes =
            |answer: &SchemaFetchResult| answer.as_ref().map(|served| served.bytes().clone()).map_err(Clone::clone);
        CanonicalAndMirrorSchema { canonical: bytes(&self.canonical), mirror: self.mirror.as_ref().map(bytes) }
    }
}

impl<D> CanonicalAndMirrorSchema<D> {
    /// The documents that were served, the canonical location first.
    pub fn served_documents(&self) -> impl Iterator<Item = &D> {
        [Some(&self.canonical), self.mirror.as_ref()].into_iter().flatten().flatten()
    }
}

/// Why a schema's bytes are unavailable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFetchError {
    /// The card names no location.
    #[error("the card names no location")]
    NotNamed,
    /// Not requested: the manifest pins no digest to compare a response with.
    #[error("not asked")]
    NotAsked,
    /// The `https` URL served nothing usable.
    #[error(transparent)]
    Https(#[from] FetchError),
    /// The `ipfs` URL led to no file.
    #[error(transparent)]
    Ipfs(#[from] IpfsFetchError),
}

/// Why an `ipfs` URL led to no file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IpfsFetchError {
    /// The URL has no usable CID and path.
    #[error(transparent)]
    Url(#[from] IpfsMirrorLocationError),
    /// The outcome of the IPFS walk.
    #[error("{0}")]
    Walk(Box<IpfsWalkOutcome>),
}

/// Who holds the name in `cl.owner`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClOwnerEvidence {
    /// Not requested, because `cl.owner` names nobody to look up.
    NotAsked,
    /// `cl.owner` is not an ENS name.
    NotAName(LiveOrRecordedCause<EnsNameError>),
    /// Read at the pinned block.
    Read(ClOwnerReading),
    /// Could not be read.
    Failed(LiveOrRecordedCause<ClOwnerReadError>),
}

/// Why the holder of the name in `cl.owner` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClOwnerReadError {
    /// The lookup timed out.
    #[error("no answer in time")]
    Late,
    /// The chain lookup failed.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// Response of the card's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpsOutcome {
    /// Not requested: there is no usable URL.
    NotAsked,
    /// A 2xx response.
    Body {
        /// The body, after decompression.
        bytes: Bytes,
        /// The URL that served it, after redirects.
        url: String,
    },
    /// No 2xx body.
    Unavailable(LiveOrRecordedCause<SourceUnavailableError>),
    /// Policy forbids contacting the URL or a redirect target.
    Forbidden(LiveOrRecordedCause<ForbiddenUrlError>),
    /// The body exceeds this many bytes.
    Oversize(u64),
}

impl HttpsOutcome {
    /// The body, when there is one.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Body { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}

/// Result of an IPFS walk from a CID and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpfsWalkOutcome {
    /// Not requested: there is no usable CID.
    NotAsked,
    /// The bytes, verified block by block.
    Proven {
        /// The file's bytes.
        bytes: Bytes,
        /// Source of the hashed blocks.
        by: ContentProofSource,
        /// Number of verified blocks.
        blocks: usize,
    },
    /// Proven absent or invalid: every honest source leads to this error.
    Refuted(RefutingWalkError),
    /// Blocks were unavailable; cause by gateway label.
    Unproven(Vec<(String, String)>),
}

/// Source of the blocks that prove the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentProofSource {
    /// Blocks that gateways sent during this resolution.
    Gateway,
    /// Bytes that the card's URL served, whose hash is the raw CID itself.
    BytesInHand,
    /// Blocks of an earlier resolution. Content under a CID never changes.
    EarlierRun,
}

/// A walk error that proves something about the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefutingWalkError {
    error: Box<DagWalkError>,
    proves: ProvenContentDefect,
}

impl RefutingWalkError {
    /// What the error proves.
    pub const fn refutation(&self) -> ProvenContentDefect {
        self.proves
    }

    /// Stable class of the walk error.
    pub fn error_class(&self) -> &'static str {
        self.error.error_class_name()
    }
}

impl fmt::Display for RefutingWalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.proves {
            ProvenContentDefect::NotFile => f.write_str("CID and path lead to a directory"),
            ProvenContentDefect::Oversize { limit } => write!(f, "the file has more than {limit} bytes"),
            ProvenContentDefect::PathMissing | ProvenContentDefect::HashForbidden | ProvenContentDefect::Invalid => {
                self.error.fmt(f)
            }
        }
    }
}

impl IpfsWalkOutcome {
    /// Converts the end of a walk. `causes` explains why blocks were unavailable, by gateway label.
    pub fn from_walk(
        ended: Result<VerifiedFile, DagWalkError>,
        by: ContentProofSource,
        causes: Vec<(String, String)>,
    ) -> Self {
        match ended {
            Ok(proven) => Self::Proven { bytes: proven.bytes, by, blocks: proven.blocks },
            Err(error) => match error.proven_content_defect() {
                Some(proves) => Self::Refuted(RefutingWalkError { error: Box::new(error), proves }),
                None => Self::Unproven(causes),
            },
        }
    }

    /// The stable error class that `clresolve cat` prints; `None` if the bytes are proven.
    pub fn error_class(&self) -> Option<&'static str> {
        match self {
            Self::Proven { .. } => None,
            Self::Refuted(refuted) => Some(match refuted.proves {
                ProvenContentDefect::PathMissing => "not-found",
                ProvenContentDefect::NotFile => "is-a-directory",
                ProvenContentDefect::HashForbidden => "hash-not-allowed",
                ProvenContentDefect::Oversize { .. } => "limit",
                ProvenContentDefect::Invalid => refuted.error_class(),
            }),
            Self::NotAsked | Self::Unproven(_) => Some("incomplete"),
        }
    }

    /// The proven bytes, if any.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Proven { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}

impl fmt::Display for IpfsWalkOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str("not asked"),
            Self::Proven { bytes, .. } => write!(f, "{} bytes proven", bytes.len()),
            Self::Refuted(refuted) => refuted.fmt(f),
            Self::Unproven(causes) => {
                f.write_str("no gateway returned the blocks")?;
                causes.iter().try_for_each(|(gateway, cause)| write!(f, "; {gateway}: {cause}"))
            }
        }
    }
}

impl ResolutionEvidence {
    /// The records at the pinned block, if the name has any.
    pub fn resolved_records(&self) -> Option<&ResolvedRecords> {
        match &self.reading {
            Ok(NameReading { answer: EnsAnswer::Records(found), .. }) => Some(found),
            _ => None,
        }
    }

    /// The observation to record for continuity; `None` without records or a valid card.
    pub fn name_observation(&self) -> Option<NameObservation> {
        let block = &self.reading.as_ref().ok()?.block;
        let records = record_digests(&self.resolved_records()?.records);
        let bytes = self.card_bytes()?;
        let card = AgentCard::parse(bytes).ok()?;
        let edition =
            CardSuccessionFacts::from_card(&card, Digest::compute(bytes)).without_future_date(block.timestamp);
        let card = edition.version.clone().map(|version| (version, edition.card.clone()));
        Some(NameObservation { block: block.number, card, records, edition: Some(edition) })
    }

    /// The bytes that the card checks judge. Preference: bytes proven under the CID, then bytes served by the URL, then
    /// bytes proven under the mirror's own CID.
    pub fn card_bytes(&self) -> Option<&Bytes> {
        self.ipfs.bytes().or_else(|| self.https.bytes()).or_else(|| self.mirror.bytes())
    }
}

/// Usability of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordUsability<'a> {
    /// The value with surrounding white space trimmed.
    Text(&'a str),
    /// Not set.
    Absent,
    /// Set but unusable: invalid UTF-8, unsafe characters, or only white space. Nothing is derived from it.
    Unsafe,
}

impl<'a> RecordUsability<'a> {
    /// Classifies the record under `key`.
    pub fn from_record(records: &'a TextRecordSet, key: TextRecordKey) -> Self {
        match records.get(key) {
            TextRecord::Absent => Self::Absent,
            TextRecord::NotUtf8(_) => Self::Unsafe,
            TextRecord::Text(text) if first_unsafe_character_in_value(text).is_some() || text.trim().is_empty() => {
                Self::Unsafe
            }
            TextRecord::Text(text) => Self::Text(text.trim()),
        }
    }

    /// The text, if usable.
    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Unsafe => None,
        }
    }
}

/// Locations of the card according to the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardLocations {
    /// The card's https URL.
    pub url: Option<String>,
    /// The card's CID.
    pub cid: Option<ContentId>,
    /// The path below that CID, taken from the mirror's record.
    pub path: UnixFsPath,
    /// The mirror, if it names another CID.
    pub mirror: Option<IpfsMirrorLocation>,
}

impl CardLocations {
    /// The usable locations in `records`.
    pub fn from_records(records: &TextRecordSet) -> Self {
        let text = |key| RecordUsability::from_record(records, key).text();
        let cid = text(TextRecordKey::CidAgentcard).and_then(|value| ContentId::parse(value).ok());
        let mirror = text(TextRecordKey::MirrorIpfs).and_then(|value| IpfsMirrorLocation::parse(value).ok());
        Self {
            url: text(TextRecordKey::Agentcard).filter(|url| is_https_url(url)).map(str::to_owned),
            path: mirror.as_ref().map(|mirror| mirror.path.clone()).unwrap_or_default(),
            mirror: mirror.filter(|mirror| cid.as_ref() != Some(&mirror.cid)),
            cid,
        }
    }

    /// Whether the IPFS walk waits for the URL's response. Bytes from the URL can be checked against a raw CID
    /// directly, and no gateway is needed if they match. If `all` sources must answer, nothing waits.
    pub fn ipfs_walk_awaits_url(&self, all: bool) -> bool {
        !all && self.cid.as_ref().is_some_and(ContentId::is_raw)
    }
}

/// CID and path from `cl.agentcard.mirror.ipfs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpfsMirrorLocation {
    /// The CID.
    pub cid: ContentId,
    /// The path below the CID.
    pub path: UnixFsPath,
}

impl IpfsMirrorLocation {
    /// Parses an `ipfs://CID/path` URI, the URL of a path gateway (`https://host/ipfs/CID/path`), or that of a
    /// subdomain gateway (`https://CID.ipfs.host/path`). The host is never contacted.
    ///
    /// # Errors
    /// [`IpfsMirrorLocationError`] identifies the invalid part.
    pub fn parse(value: &str) -> Result<Self, IpfsMirrorLocationError> {
        let (cid, path) = split_mirror(value).ok_or(IpfsMirrorLocationError::Form)?;
        Ok(Self { cid: ContentId::parse(cid)?, path: UnixFsPath::parse(path)? })
    }

    /// The text in the position of the mirror's CID, valid or not.
    pub fn cid_text(value: &str) -> Option<&str> {
        split_mirror(value).map(|(cid, _)| cid)
    }
}

/// Why a value is not an [`IpfsMirrorLocation`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IpfsMirrorLocationError {
    /// None of the supported forms.
    #[error("neither ipfs://CID/path nor a gateway URL with /ipfs/CID/path")]
    Form,
    /// The CID is invalid.
    #[error(transparent)]
    Cid(#[from] CidError),
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] UnixFsPathError),
}

/// Splits a mirror value into CID and raw path.
fn split_mirror(value: &str) -> Option<(&str, &str)> {
    if value.contains(['?', '#']) {
        return None;
    }
    let cut = |rest: &'_ str| -> usize { rest.find('/').unwrap_or(rest.len()) };
    if let Some(rest) = uri::strip_scheme(value, "ipfs") {
        let rest = rest.strip_prefix("ipfs/").unwrap_or(rest);
        let (cid, path) = rest.split_at(cut(rest));
        return Some((cid, path.strip_prefix('/').unwrap_or(path)));
    }
    let rest = ["https", "http"].into_iter().find_map(|scheme| uri::strip_scheme(value, scheme))?;
    url::Url::parse(value).ok().filter(|url| url.has_host())?;
    let (host, path) = rest.split_at(cut(rest));
    if let Some(rest) = path.strip_prefix("/ipfs/") {
        let (cid, path) = rest.split_at(cut(rest));
        return Some((cid, path.strip_prefix('/').unwrap_or(path)));
    }
    let (cid, domain) = host.split_once('.')?;
    let is_gateway = domain.get(..5).is_some_and(|label| label.eq_ignore_ascii_case("ipfs."));
    is_gateway.then_some((cid, path.strip_prefix('/').unwrap_or(path)))
}

/// Whether the value of `cl.agentcard` is an absolute https URL.
pub fn is_https_url(value: &str) -> bool {
    uri::strip_scheme(value, "https").is_some() && url::Url::parse(value).is_ok_and(|url| url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CID: &str = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";

    #[test]
    fn a_mirror_is_an_ipfs_uri_or_a_gateway_url() {
        let cases = [
            (format!("ipfs://{CID}"), ""),
            (format!("ipfs://{CID}/agents/a.json"), "agents/a.json"),
            (format!("ipfs://ipfs/{CID}/a.json"), "a.json"),
            (format!("https://ipfs.io/ipfs/{CID}/agents/a%20b.json"), "agents/a%20b.json"),
            (format!("https://{CID}.ipfs.dweb.link/a.json"), "a.json"),
        ];
        for (value, path) in cases {
            let mirror = IpfsMirrorLocation::parse(&value).unwrap_or_else(|error| panic!("{value}: {error}"));
            assert_eq!((mirror.cid.to_string(), mirror.path.to_string()), (CID.to_owned(), path.to_owned()), "{value}");
        }
    }

    #[test]
    fn a_mirror_without_a_plain_cid_and_path_is_refused() {
        let of_cid = ["ipfs://", "ipfs://not-a-cid/a.json", "https://example.com/ipfs/not-a-cid"];
        for value in of_cid {
            assert!(matches!(IpfsMirrorLocation::parse(value), Err(IpfsMirrorLocationError::Cid(_))), "{value}");
        }
        for path in ["/../a.json", "/a%2fb", "/a%00", "//a"] {
            let value = format!("ipfs://{CID}{path}");
            assert!(matches!(IpfsMirrorLocation::parse(&value), Err(IpfsMirrorLocationError::Path(_))), "{value}");
        }
        let of_form = [
            String::new(),
            CID.to_owned(),
            format!("ipfs://{CID}/a?x=1"),
            format!("ipfs://{CID}/a#x"),
            format!("https://example.com/{CID}/a.json"),
            format!("ftp://example.com/ipfs/{CID}"),
        ];
        for value in of_form {
            assert_eq!(IpfsMirrorLocation::parse(&value), Err(IpfsMirrorLocationError::Form), "{value}");
        }
    }

    #[test]
    fn the_card_url_is_absolute_and_https() {
        assert!(is_https_url("https://example.com/a.json"));
        assert!(is_https_url("HTTPS://example.com"));
        for bad in
            ["http://example.com", "//example.com/a", "/a.json", "https://", "ipfs://x", "", "https:/example.com"]
        {
            assert!(!is_https_url(bad), "{bad}");
        }
    }
}
