//! [`ContentFetcher`] from the network: cards through the egress guard, CIDs through trustless gateways.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_egress::{EgressRequest, UntrustedUrl, deadline_in};
use clresolve_ipfs::{ContentId, DagWalkBudget, UnixFsPath, VerifiedBlocks};
use clresolve_payment::terms::{MAX_TERMS_BYTES, SellerHttpReply as SellerReply};
use clresolve_verdict::evidence::{ContentProofSource, HttpsOutcome, IpfsWalkOutcome};

use super::content::{ContentFetcher, IpfsPathResult};
use crate::clock::Clock;
use crate::fetch::https::{self, FetchLimits, FetchedDocument};
use crate::fetch::ipfs::{IpfsClient, IpfsRetrieval, IpfsRetrievalRequest};
use crate::fetch::{Egress, FetchError, ForbiddenUrlError};
use crate::telemetry::{self, UpstreamKind};

pub(super) struct NetworkContentFetcher {
    pub(super) egress: Egress,
    pub(super) ipfs: IpfsClient,
    /// The resolver's clock, which determines which gateways are resting.
    pub(super) clock: Arc<dyn Clock>,
}

impl NetworkContentFetcher {
    async fn fetch_from_upstream(
        &self,
        kind: UpstreamKind,
        url: &str,
        limits: FetchLimits,
    ) -> Result<FetchedDocument, FetchError> {
        let document = https::fetch_document(&self.egress, url, limits).await;
        let outcome = document.as_ref().map_or_else(Into::into, |_| telemetry::RequestOutcome::Ok);
        telemetry::count_request(kind, telemetry::FOREIGN, outcome);
        document
    }

    async fn send_seller_request(
        &self,
        url: &str,
        body: Option<Bytes>,
        limit: Duration,
    ) -> Result<SellerReply, FetchError> {
        let forbidden = |why| ForbiddenUrlError { hop: 0, target: "the URL".to_owned(), why };
        let url = UntrustedUrl::parse(url, https::URL_LIMIT).map_err(forbidden)?;
        let call = match body {
            Some(body) => EgressRequest::post_json(body),
            None => EgressRequest::get("application/json"),
        };
        // Plain http reaches only origins that the operator named.
        let reply = match url.as_url().scheme() {
            "http" => self.egress.send_plain_http(&url, call, deadline_in(limit)).await?,
            _ => self.egress.send_untrusted(&url, call, deadline_in(limit)).await?,
        };
        let (status, headers) = (reply.status(), reply.headers());
        let body = reply.read_beginning(MAX_TERMS_BYTES + 1).await?;
        Ok(SellerReply { status, headers, body })
    }
}

#[async_trait]
impl ContentFetcher for NetworkContentFetcher {
    async fn fetch_card(&self, url: &str, limit: Duration) -> HttpsOutcome {
        https_outcome_from_fetch(
            self.fetch_from_upstream(UpstreamKind::Card, url, FetchLimits { total: limit, ..FetchLimits::for_card() })
                .await,
        )
    }

    async fn fetch_key_set(&self, url: &str, limit: Duration) -> HttpsOutcome {
        https_outcome_from_fetch(
            self.fetch_from_upstream(
                UpstreamKind::Keys,
                url,
                FetchLimits { total: limit, ..FetchLimits::for_key_set() },
            )
            .await,
        )
    }

    async fn walk_ipfs_path(
        &self,
        cid: &ContentId,
        path: &UnixFsPath,
        known: &[Bytes],
        budget: DagWalkBudget,
        limit: Duration,
    ) -> IpfsPathResult {
        let want = IpfsRetrievalRequest { cid: *cid, path, known, budget, total: limit };
        let retrieval = self.ipfs.retrieve(&want, self.clock.now()).await;
        let liars = retrieval.liars.iter().map(|(gateway, cid)| (gateway.clone(), cid.to_string())).collect();
        let (walked, blocks) = ipfs_outcome_from_retrieval(retrieval);
        IpfsPathResult { walked, liars, blocks }
    }

    async fn fetch_schema(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError> {
        let served = self
            .fetch_from_upstream(UpstreamKind::Schema, url, FetchLimits { total: limit, ..FetchLimits::for_card() })
            .await;
        served.map(|body| body.bytes)
    }

    async fn send_unpaid_request(
        &self,
        url: &str,
        body: Option<Bytes>,
        limit: Duration,
    ) -> Result<SellerReply, FetchError> {
        let reply = self.send_seller_request(url, body, limit).await;
        let outcome = reply.as_ref().map_or_else(Into::into, |_| telemetry::RequestOutcome::Ok);
        telemetry::count_request(UpstreamKind::Seller, telemetry::FOREIGN, outcome);
        reply
    }

    async fn fetch_document(&self, url: &str, limit: Duration) -> Result<FetchedDocument, FetchError> {
        self.fetch_from_upstream(UpstreamKind::Card, url, FetchLimits { total: limit, ..FetchLimits::for_card() }).await
    }

    async fn fetch_plain_http_document(&self, url: &str, limit: Duration) -> Result<FetchedDocument, FetchError> {
        self.fetch_from_upstream(
            UpstreamKind::Card,
            url,
            FetchLimits { total: limit, plain: true, ..FetchLimits::for_card() },
        )
        .await
    }

    async fn fetch_registry_manifest(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError> {
        let served = self
            .fetch_from_upstream(UpstreamKind::Card, url, FetchLimits { total: limit, ..FetchLimits::for_registry() })
            .await;
        served.map(|body| body.bytes)
    }

    fn time_until_gateway_available(&self, past: Duration) -> Option<Duration> {
        self.ipfs.time_until_gateway_available(self.clock.now(), past)
    }
}

fn https_outcome_from_fetch(document: Result<FetchedDocument, FetchError>) -> HttpsOutcome {
    match document {
        Ok(body) => HttpsOutcome::Body { bytes: body.bytes, url: body.final_url.to_string() },
        Err(FetchError::Forbidden(forbidden)) => HttpsOutcome::Forbidden(forbidden.into()),
        Err(FetchError::Oversize { limit }) => HttpsOutcome::Oversize(limit as u64),
        Err(FetchError::Unavailable(cause)) => HttpsOutcome::Unavailable(cause.into()),
    }
}

fn ipfs_outcome_from_retrieval(retrieval: IpfsRetrieval) -> (IpfsWalkOutcome, VerifiedBlocks) {
    let by = if retrieval.requests > 0 { ContentProofSource::Gateway } else { ContentProofSource::BytesInHand };
    let causes = retrieval.failures.into_iter().map(|(gateway, fault)| (gateway, fault.to_string()));
    (IpfsWalkOutcome::from_walk(retrieval.ended, by, causes.collect()), retrieval.blocks)
}
