//! What every endpoint and every gateway of the configuration says of a name that was judged, each asked by itself. For
//! audits: no verdict rests on it.

use std::sync::Arc;
use std::time::Duration;

use clresolve_verdict::agreement::{
    EndpointSays, EndpointStance, GatewaySays, GatewayStance, NameFact, Silence, UpstreamAgreement, targets,
};
use futures_util::future::join;

use super::turns::Turns;
use super::upstream::Upstream;
use super::{Resolver, SetupError, setup};
use crate::chain::{Block, EndpointStatement, EndpointSurvey, NameStatement};
use crate::cid::Budget;
use crate::clock::Clock;
use crate::evidence::Targets;
use crate::fetch::ipfs::{GatewayFault, IpfsClient, Retrieval, Want};
use crate::fetch::{Cause, FetchError};
use crate::name::EnsName;
use crate::verdict::{AnchorBlock, Resolution, Verdict};

/// The part of the time limit of a question that each gateway has for the card: as much as the chain leaves at worst.
const GATEWAY_SHARE: f64 = 0.4;

/// Statuses with which a gateway says that it does not have a block.
const LACKING: [u16; 2] = [404, 410];

/// The endpoints and gateways of a configuration, each to be asked by itself.
pub(crate) struct UpstreamSurvey {
    endpoints: EndpointSurvey,
    gateways: IpfsClient,
    /// Those of the names that ask gateways.
    turns: Turns,
    clock: Arc<dyn Clock>,
    /// The time that each gateway has.
    limit: Duration,
}

impl Resolver {
    /// What asks each endpoint and each gateway; `None` where the chain is not read through endpoints.
    ///
    /// # Errors
    /// [`SetupError`].
    pub(crate) fn upstream_survey(&self) -> Result<Option<UpstreamSurvey>, SetupError> {
        let walker = &self.0.walker;
        let Some(Upstream { settings, http, egress }) = &walker.upstream else { return Ok(None) };
        Ok(Some(UpstreamSurvey {
            endpoints: EndpointSurvey::new(
                settings,
                http,
                setup::look_ups(&walker.config, egress),
                &setup::chain_clock(&walker.clock),
            ),
            gateways: setup::gateways(&walker.config, egress)?,
            turns: walker.turns.clone(),
            clock: Arc::clone(&walker.clock),
            limit: walker.config.timeout.mul_f64(GATEWAY_SHARE),
        }))
    }
}

impl UpstreamSurvey {
    /// What each says of a name that was judged.
    pub(crate) async fn ask(&self, resolution: &Resolution) -> UpstreamAgreement {
        let (endpoints, gateways) = join(self.ask_endpoints(resolution), self.ask_gateways(resolution.verdict())).await;
        UpstreamAgreement { endpoints, gateways }
    }

    async fn ask_endpoints(&self, resolution: &Resolution) -> Vec<EndpointSays> {
        let verdict = resolution.verdict();
        let name = verdict.name.normalized.as_deref().and_then(|name| EnsName::parse(name).ok());
        let block = verdict.anchor.as_ref().and_then(|anchor| block(&anchor.block));
        let (Some(name), Some(block)) = (name, block) else { return Vec::new() };
        let statements = self.endpoints.ask(&name, &block).await.into_iter();
        statements.map(|(label, statement)| EndpointSays { label, stance: stance(resolution, statement) }).collect()
    }

    async fn ask_gateways(&self, verdict: &Verdict) -> Vec<GatewaySays> {
        let Targets { cid: Some(cid), path, .. } = targets(verdict) else { return Vec::new() };
        let _turn = self.turns.next().await;
        let want = Want { cid, path: &path, known: &[], budget: Budget::card(), total: self.limit };
        let retrievals = self.gateways.retrieve_from_each(&want, self.clock.now()).await.into_iter();
        retrievals.filter_map(|(label, retrieval)| Some(GatewaySays { label, says: served(&retrieval)? })).collect()
    }
}

/// The block of a verdict.
fn block(anchor: &AnchorBlock) -> Option<Block> {
    let AnchorBlock { number, hash, timestamp, tag: _ } = anchor;
    Some(Block { number: *number, hash: hash.parse().ok()?, timestamp: timestamp.parse().ok()? })
}

/// What the word of an endpoint comes to.
fn stance(resolution: &Resolution, statement: EndpointStatement) -> EndpointStance {
    match statement {
        EndpointStatement::Statement(statement) => {
            let NameStatement { answer, holder, expiry } = *statement;
            EndpointStance::of(resolution, &answer, holder, expiry)
        }
        EndpointStatement::ResolverFails => EndpointStance::Differ { facts: vec![NameFact::Resolver] },
        EndpointStatement::OtherBlock => EndpointStance::Differ { facts: vec![NameFact::Block] },
        EndpointStatement::NoBlock => EndpointStance::Silent { why: Silence::NoBlock },
        EndpointStatement::NoAnswer => EndpointStance::Silent { why: Silence::NoAnswer },
    }
}

/// What a gateway's part in a walk comes to. Blocks that prove that there is no such card are the right ones too. `None`
/// where the CID holds the whole content, so that nothing was to be asked, and where the gateway was not asked in time
/// because others were.
fn served(retrieval: &Retrieval) -> Option<GatewayStance> {
    if !retrieval.liars.is_empty() && !clresolve_core::mutant!("every-gateway-is-honest") {
        return Some(GatewayStance::Lies);
    }
    let is_whole = match &retrieval.ended {
        Ok(_) => true,
        Err(error) => error.refutation().is_some(),
    };
    if is_whole {
        return (retrieval.requests > 0).then_some(GatewayStance::Has);
    }
    let is_lacking = |fault: &GatewayFault| matches!(fault, GatewayFault::Fetch(FetchError::Unavailable(Cause::Status(status))) if LACKING.contains(status));
    let lacks = retrieval.failures.iter().any(|(_, fault)| is_lacking(fault));
    let is_unasked = |fault: &GatewayFault| *fault == GatewayFault::Fetch(FetchError::Unavailable(Cause::NoTurn));
    if !lacks && retrieval.failures.iter().any(|(_, fault)| is_unasked(fault)) {
        return None;
    }
    Some(if lacks { GatewayStance::Lacks } else { GatewayStance::Unreached })
}
