//! The HTTP client for beacon endpoints.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use url::Url;

use crate::transport::HttpRequestError;

/// What a request to a beacon endpoint accepts.
pub const BEACON_ACCEPT: &str = "application/json, application/octet-stream;q=0.9";

/// Media type of SSZ.
pub(super) const SSZ: &str = "application/octet-stream";

/// A successful response of a beacon endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeaconResponse {
    /// The header `Content-Type`, if it is text.
    pub content_type: Option<String>,
    /// The header `Eth-Consensus-Version`, if it is text: the fork that decides the layout of SSZ.
    pub version: Option<String>,
    /// The body.
    pub body: Bytes,
}

impl BeaconResponse {
    /// Whether the body is SSZ. Anything else is read as JSON.
    pub(super) fn is_ssz(&self) -> bool {
        self.content_type.as_deref().is_some_and(|media_type| media_type.trim_start().starts_with(SSZ))
    }
}

/// The HTTP client for beacon endpoints.
#[async_trait]
pub trait BeaconHttpClient: Send + Sync {
    /// GETs `url` with [`BEACON_ACCEPT`], follows no redirect, and returns a success (2xx).
    ///
    /// The body has at most `cap` bytes, also after decompression. Head and body arrive within `timeout`.
    ///
    /// # Errors
    /// [`HttpRequestError`], whose message must not contain the URL, since that may include a key.
    async fn get(&self, url: &Url, cap: usize, timeout: Duration) -> Result<BeaconResponse, HttpRequestError>;
}
