//! The content sources of a resolution: cards and schemas over HTTPS, and blocks by CID.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_ipfs::{ContentId, DagWalkBudget, UnixFsPath, VerifiedBlocks};
use clresolve_payment::terms::SellerHttpReply as SellerReply;
use clresolve_verdict::evidence::{HttpsOutcome, IpfsWalkOutcome};

use crate::fetch::https::FetchedDocument;
use crate::fetch::{EgressViolation, FetchError, ForbiddenUrlError};

/// Fetches content for a resolution: from the network, or from a script in a test.
#[async_trait]
pub trait ContentFetcher: Send + Sync {
    /// Fetches the document at the card's URL, within `limit`.
    async fn fetch_card(&self, url: &str, limit: Duration) -> HttpsOutcome;

    /// Walks from `cid` along `path`. `known` contains bytes from other sources that may be the file itself.
    async fn walk_ipfs_path(
        &self,
        cid: &ContentId,
        path: &UnixFsPath,
        known: &[Bytes],
        budget: DagWalkBudget,
        limit: Duration,
    ) -> IpfsPathResult;

    /// Fetches a trust root's keys from a URL, within `limit`. A redirect must not lead to another origin.
    async fn fetch_key_set(&self, url: &str, limit: Duration) -> HttpsOutcome {
        self.fetch_card(url, limit).await
    }

    /// Fetches a schema from a URL.
    ///
    /// # Errors
    /// The egress guard refuses the URL, or its host returns no body.
    async fn fetch_schema(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError>;

    /// Fetches the document at a URL that a caller names, with its caching headers. The default implementation fetches
    /// nothing.
    ///
    /// # Errors
    /// The egress guard refuses the URL, or its host returns no body.
    async fn fetch_document(&self, _url: &str, _limit: Duration) -> Result<FetchedDocument, FetchError> {
        Err(ForbiddenUrlError { hop: 0, target: "the URL".to_owned(), why: EgressViolation::Disabled }.into())
    }

    /// Fetches a document from a plain `http` URL if the operator named its origin. The default implementation fetches
    /// nothing.
    ///
    /// # Errors
    /// As [`fetch_document`](Self::fetch_document).
    async fn fetch_plain_http_document(&self, _url: &str, _limit: Duration) -> Result<FetchedDocument, FetchError> {
        Err(ForbiddenUrlError { hop: 0, target: "the URL".to_owned(), why: EgressViolation::Disabled }.into())
    }

    /// Fetches a registry's manifest from a URL that a caller names. It may be larger than a card. The default
    /// implementation treats it like any other document.
    ///
    /// # Errors
    /// The egress guard refuses the URL, or its host returns no body.
    async fn fetch_registry_manifest(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError> {
        self.fetch_document(url, limit).await.map(|body| body.bytes)
    }

    /// Sends a request without a payment to a seller's URL: a POST of `body` if there is one, otherwise a GET.
    /// Redirects are not followed. Plain `http` is for origins that the operator named. The default implementation
    /// sends nothing.
    ///
    /// # Errors
    /// The egress guard refuses the URL, or its host does not respond.
    async fn send_unpaid_request(
        &self,
        _url: &str,
        _body: Option<Bytes>,
        _limit: Duration,
    ) -> Result<SellerReply, FetchError> {
        Err(ForbiddenUrlError { hop: 0, target: "the URL".to_owned(), why: EgressViolation::Disabled }.into())
    }

    /// How long until the first gateway may be asked again, among those that asked for a pause within the last `past`.
    /// The default implementation returns `None`.
    fn time_until_gateway_available(&self, _past: Duration) -> Option<Duration> {
        None
    }

    /// The same source without the content that it has stored. The default implementation stores nothing.
    fn without_stored_content(&self) -> Option<Arc<dyn ContentFetcher>> {
        None
    }
}

/// The result of retrieving a path below a CID, and the gateways that sent wrong blocks.
#[derive(Clone, Debug)]
pub struct IpfsPathResult {
    /// The result of the walk.
    pub walked: IpfsWalkOutcome,
    /// The gateways that sent wrong blocks.
    pub liars: LyingGateways,
    /// The blocks that were proven along the path.
    pub blocks: VerifiedBlocks,
}

/// Gateways (labels) that sent a wrong block, each with the requested CID.
pub type LyingGateways = Vec<(String, String)>;

impl IpfsPathResult {
    /// The result if no CID is named.
    pub(super) fn not_asked() -> Self {
        IpfsWalkOutcome::NotAsked.into()
    }
}

impl From<IpfsWalkOutcome> for IpfsPathResult {
    /// A result without wrong blocks and without new blocks.
    fn from(walked: IpfsWalkOutcome) -> Self {
        Self { walked, liars: Vec::new(), blocks: VerifiedBlocks::default() }
    }
}
