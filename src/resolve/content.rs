//! The content side of the walk: cards and schemas over HTTPS, and blocks by CID.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_payment::terms::Reply as SellerReply;

use crate::cid::{Budget, ContentId, ContentPath, WalkedBlocks};
use crate::evidence::{Source, Walked};
use crate::fetch::https::Body;
use crate::fetch::{EgressViolation, FetchError, Forbidden};

/// Fetches bytes for the walk: from the network, or from a script in a test.
#[async_trait]
pub trait Content: Send + Sync {
    /// What the card's URL serves, within `limit`.
    async fn card(&self, url: &str, limit: Duration) -> Source;

    /// The walk from `cid` along `path`. `known` are bytes in hand that may be the file itself.
    async fn walk(
        &self,
        cid: &ContentId,
        path: &ContentPath,
        known: &[Bytes],
        budget: Budget,
        limit: Duration,
    ) -> Retrieved;

    /// What is served at the URL of a trust root's keys, within `limit`. A redirect must not lead to another origin.
    async fn key_set(&self, url: &str, limit: Duration) -> Source {
        self.card(url, limit).await
    }

    /// What the URL of a schema serves.
    ///
    /// # Errors
    /// Where the door for foreign URLs refuses it, or its host gives no body.
    async fn schema(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError>;

    /// The document at a URL that a caller names, with what its host says about it. The default implementation fetches
    /// nothing.
    ///
    /// # Errors
    /// Where the door for foreign URLs refuses it, or its host gives no body.
    async fn document(&self, _url: &str, _limit: Duration) -> Result<Body, FetchError> {
        Err(Forbidden { hop: 0, target: "the URL".to_owned(), why: EgressViolation::Disabled }.into())
    }

    /// The same at a plain `http` URL, if the operator named its origin. The default implementation fetches nothing.
    ///
    /// # Errors
    /// As [`document`](Self::document).
    async fn plain_document(&self, _url: &str, _limit: Duration) -> Result<Body, FetchError> {
        Err(Forbidden { hop: 0, target: "the URL".to_owned(), why: EgressViolation::Disabled }.into())
    }

    /// The manifest of a registry at a URL that a caller names, which may be longer than a card. The default implementation
    /// takes it for any other document.
    ///
    /// # Errors
    /// Where the door for foreign URLs refuses it, or its host gives no body.
    async fn registry(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError> {
        self.document(url, limit).await.map(|body| body.bytes)
    }

    /// What the URL of an agent answers to a request without a payment: a POST of `body` where there is one, else a GET.
    /// No redirect is followed. The default implementation asks nobody.
    ///
    /// # Errors
    /// Where the door for foreign URLs refuses it, or its host gives no answer.
    async fn unpaid(
        &self,
        _url: &str,
        _body: Option<&'static str>,
        _limit: Duration,
    ) -> Result<SellerReply, FetchError> {
        Err(Forbidden { hop: 0, target: "the URL".to_owned(), why: EgressViolation::Disabled }.into())
    }

    /// How long until the first gateway may be asked again that has rested within the last `past`, as it asked for. The
    /// default implementation knows of none.
    fn rest(&self, _past: Duration) -> Option<Duration> {
        None
    }

    /// The same without what it was served before, where it keeps that. The default implementation keeps nothing.
    fn anew(&self) -> Option<Arc<dyn Content>> {
        None
    }
}

/// What the gateways gave for a path below a CID, and which of them lied on the way.
#[derive(Clone, Debug)]
pub struct Retrieved {
    /// What was found.
    pub walked: Walked,
    /// The gateways that lied.
    pub liars: Liars,
    /// The blocks that were proven on the way.
    pub blocks: WalkedBlocks,
}

/// Gateways (labels) that sent a wrong block, each with the CID that it was asked for.
pub type Liars = Vec<(String, String)>;

impl Retrieved {
    /// The result where no CID is named.
    pub(super) fn not_asked() -> Self {
        Walked::NotAsked.into()
    }
}

impl From<Walked> for Retrieved {
    /// A result without liars and without new blocks.
    fn from(walked: Walked) -> Self {
        Self { walked, liars: Vec::new(), blocks: WalkedBlocks::default() }
    }
}
