//! [`Content`] from the network: cards through the egress guard, CIDs through trustless gateways.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_egress::{Call, ForeignUrl, deadline_in};
use clresolve_ipfs::{Budget, ContentId, ContentPath, WalkedBlocks};
use clresolve_payment::terms::{MAX_TERMS_BYTES, Reply as SellerReply};
use clresolve_verdict::evidence::{IpfsOutcome, ProvenBy, Source};

use super::content::{Content, Retrieved};
use crate::clock::Clock;
use crate::fetch::https::{self, Body, FetchLimits};
use crate::fetch::ipfs::{IpfsClient, Retrieval, Want};
use crate::fetch::{Egress, FetchError, Forbidden};
use crate::telemetry::{self, Upstream};

pub(super) struct Network {
    pub(super) egress: Egress,
    pub(super) ipfs: IpfsClient,
    /// The resolver's clock, which determines which gateways are resting.
    pub(super) clock: Arc<dyn Clock>,
}

impl Network {
    async fn fetched(&self, kind: Upstream, url: &str, limits: FetchLimits) -> Result<Body, FetchError> {
        let document = https::get(&self.egress, url, limits).await;
        let outcome = document.as_ref().map_or_else(Into::into, |_| telemetry::RequestOutcome::Ok);
        telemetry::upstream(kind, telemetry::FOREIGN, outcome);
        document
    }

    async fn answer(&self, url: &str, body: Option<Bytes>, limit: Duration) -> Result<SellerReply, FetchError> {
        let forbidden = |why| Forbidden { hop: 0, target: "the URL".to_owned(), why };
        let url = ForeignUrl::parse(url, https::URL_LIMIT).map_err(forbidden)?;
        let call = match body {
            Some(body) => Call::post_json(body),
            None => Call::get("application/json"),
        };
        // Plain http reaches only origins that the operator named.
        let reply = match url.as_url().scheme() {
            "http" => self.egress.plain(&url, call, deadline_in(limit)).await?,
            _ => self.egress.foreign(&url, call, deadline_in(limit)).await?,
        };
        let (status, headers) = (reply.status(), reply.headers());
        let body = reply.beginning(MAX_TERMS_BYTES + 1).await?;
        Ok(SellerReply { status, headers, body })
    }
}

#[async_trait]
impl Content for Network {
    async fn card(&self, url: &str, limit: Duration) -> Source {
        source(self.fetched(Upstream::Card, url, FetchLimits { total: limit, ..FetchLimits::card() }).await)
    }

    async fn key_set(&self, url: &str, limit: Duration) -> Source {
        source(self.fetched(Upstream::Keys, url, FetchLimits { total: limit, ..FetchLimits::keys() }).await)
    }

    async fn walk(
        &self,
        cid: &ContentId,
        path: &ContentPath,
        known: &[Bytes],
        budget: Budget,
        limit: Duration,
    ) -> Retrieved {
        let want = Want { cid: *cid, path, known, budget, total: limit };
        let retrieval = self.ipfs.retrieve(&want, self.clock.now()).await;
        let liars = retrieval.liars.iter().map(|(gateway, cid)| (gateway.clone(), cid.to_string())).collect();
        let (walked, blocks) = walked(retrieval);
        Retrieved { walked, liars, blocks }
    }

    async fn schema(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError> {
        let served = self.fetched(Upstream::Schema, url, FetchLimits { total: limit, ..FetchLimits::card() }).await;
        served.map(|body| body.bytes)
    }

    async fn unpaid(&self, url: &str, body: Option<Bytes>, limit: Duration) -> Result<SellerReply, FetchError> {
        let reply = self.answer(url, body, limit).await;
        let outcome = reply.as_ref().map_or_else(Into::into, |_| telemetry::RequestOutcome::Ok);
        telemetry::upstream(Upstream::Seller, telemetry::FOREIGN, outcome);
        reply
    }

    async fn document(&self, url: &str, limit: Duration) -> Result<Body, FetchError> {
        self.fetched(Upstream::Card, url, FetchLimits { total: limit, ..FetchLimits::card() }).await
    }

    async fn plain_document(&self, url: &str, limit: Duration) -> Result<Body, FetchError> {
        self.fetched(Upstream::Card, url, FetchLimits { total: limit, plain: true, ..FetchLimits::card() }).await
    }

    async fn registry(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError> {
        let served = self.fetched(Upstream::Card, url, FetchLimits { total: limit, ..FetchLimits::registry() }).await;
        served.map(|body| body.bytes)
    }

    fn rest(&self, past: Duration) -> Option<Duration> {
        self.ipfs.rest(self.clock.now(), past)
    }
}

fn source(document: Result<Body, FetchError>) -> Source {
    match document {
        Ok(body) => Source::Body { bytes: body.bytes, url: body.final_url.to_string() },
        Err(FetchError::Forbidden(forbidden)) => Source::Forbidden(forbidden.into()),
        Err(FetchError::Oversize { limit }) => Source::Oversize(limit as u64),
        Err(FetchError::Unavailable(cause)) => Source::Unavailable(cause.into()),
    }
}

fn walked(retrieval: Retrieval) -> (IpfsOutcome, WalkedBlocks) {
    let by = if retrieval.requests > 0 { ProvenBy::Gateway } else { ProvenBy::BytesInHand };
    let causes = retrieval.failures.into_iter().map(|(gateway, fault)| (gateway, fault.to_string()));
    (IpfsOutcome::of(retrieval.ended, by, causes.collect()), retrieval.blocks)
}
