//! The content sources of a resolution: cards and schemas over HTTPS, and blocks by CID.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_ipfs::{Budget, ContentId, ContentPath, WalkedBlocks};
use clresolve_payment::terms::Reply as SellerReply;
use clresolve_verdict::evidence::{IpfsOutcome, Source};

use crate::fetch::https::Body;
use crate::fetch::{EgressViolation, FetchError, Forbidden};

/// Fetches content for a resolution: from the network, or from a script in a test.
#[async_trait]
pub trait Content: Send + Sync {
    /// Fetches the document at the card's URL, within `limit`.
    async fn card(&self, url: &str, limit: Duration) -> Source;

    /// Walks from `cid` along `path`. `known` contains bytes from other sources that may be the file itself.
    async fn walk(
        &self,
        cid: &ContentId,
        path: &ContentPath,
        known: &[Bytes],
        budget: Budget,
        limit: Duration,
    ) -> Retrieved;

    /// Fetches a trust root's keys from a URL, within `limit`. A redirect must not lead to another origin.
    async fn key_set(&self, url: &str, limit: Duration) -> Source {
        self.card(url, limit).await
    }

    /// Fetches a schema from a URL.
    ///
    /// # Errors
    /// The egress guard refuses the URL, or its host returns no body.
    async fn schema(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError>;

    /// Fetches the document at a URL that a caller names, with its caching headers. The default implementation fetches
    /// nothing.
    ///
    /// # Errors
    /// The egress guard refuses the URL, or its host returns no body.
    async fn document(&self, _url: &str, _limit: Duration) -> Result<Body, FetchError> {
        Err(Forbidden { hop: 0, target: "the URL".to_owned(), why: EgressViolation::Disabled }.into())
    }

    /// Fetches a document from a plain `http` URL if the operator named its origin. The default implementation fetches
    /// nothing.
    ///
    /// # Errors
    /// As [`document`](Self::document).
    async fn plain_document(&self, _url: &str, _limit: Duration) -> Result<Body, FetchError> {
        Err(Forbidden { hop: 0, target: "the URL".to_owned(), why: EgressViolation::Disabled }.into())
    }

    /// Fetches a registry's manifest from a URL that a caller names. It may be larger than a card. The default
    /// implementation treats it like any other document.
    ///
    /// # Errors
    /// The egress guard refuses the URL, or its host returns no body.
    async fn registry(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError> {
        self.document(url, limit).await.map(|body| body.bytes)
    }

    /// Sends a request without a payment to a seller's URL: a POST of `body` if there is one, otherwise a GET.
    /// Redirects are not followed. Plain `http` is for origins that the operator named. The default implementation
    /// sends nothing.
    ///
    /// # Errors
    /// The egress guard refuses the URL, or its host does not respond.
    async fn unpaid(&self, _url: &str, _body: Option<Bytes>, _limit: Duration) -> Result<SellerReply, FetchError> {
        Err(Forbidden { hop: 0, target: "the URL".to_owned(), why: EgressViolation::Disabled }.into())
    }

    /// How long until the first gateway may be asked again, among those that asked for a pause within the last `past`.
    /// The default implementation returns `None`.
    fn rest(&self, _past: Duration) -> Option<Duration> {
        None
    }

    /// The same source without the content that it has stored. The default implementation stores nothing.
    fn anew(&self) -> Option<Arc<dyn Content>> {
        None
    }
}

/// The result of retrieving a path below a CID, and the gateways that sent wrong blocks.
#[derive(Clone, Debug)]
pub struct Retrieved {
    /// The result of the walk.
    pub walked: IpfsOutcome,
    /// The gateways that sent wrong blocks.
    pub liars: Liars,
    /// The blocks that were proven along the path.
    pub blocks: WalkedBlocks,
}

/// Gateways (labels) that sent a wrong block, each with the requested CID.
pub type Liars = Vec<(String, String)>;

impl Retrieved {
    /// The result if no CID is named.
    pub(super) fn not_asked() -> Self {
        IpfsOutcome::NotAsked.into()
    }
}

impl From<IpfsOutcome> for Retrieved {
    /// A result without wrong blocks and without new blocks.
    fn from(walked: IpfsOutcome) -> Self {
        Self { walked, liars: Vec::new(), blocks: WalkedBlocks::default() }
    }
}
