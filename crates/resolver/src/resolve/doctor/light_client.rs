//! The part of an examination that is about the light client of the beacon chain.

use serde::Serialize;

use crate::config::Config;

/// Age of a finalized header, in seconds, beyond which the chain does not finalize or the endpoints have stopped. A
/// checkpoint is final after 13 to 19 minutes.
const MAX_FINALIZED_AGE_SECONDS: u64 = 25 * 60;

/// The light client, as each beacon endpoint by itself lets it see the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LightClientHealth {
    /// The configured checkpoint.
    pub checkpoint: String,
    /// Age of the checkpoint's block in seconds. `None` if no endpoint proved the block.
    pub checkpoint_age_s: Option<u64>,
    /// Why the light client cannot start from the checkpoint, if the checkpoint itself is the cause.
    pub checkpoint_error: Option<String>,
    /// The newest verified headers of all endpoints.
    pub headers: Option<VerifiedHeaderHealth>,
    /// The endpoints, in the order of the configuration.
    pub endpoints: Vec<BeaconApiEndpointHealth>,
}

/// Verified headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerifiedHeaderHealth {
    /// Slot of the finalized header.
    pub finalized_slot: u64,
    /// Age of that slot in seconds.
    pub finalized_age_s: u64,
    /// Slot of the newest header.
    pub head_slot: u64,
    /// The current slot.
    pub current_slot: u64,
    /// Members of the sync committee that signed the last update.
    pub participants: Option<usize>,
    /// Members in all.
    pub committee: Option<usize>,
}

/// The results for a beacon endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BeaconApiEndpointHealth {
    /// Its label.
    pub label: String,
    /// Why it gave no valid header.
    pub error: Option<String>,
    /// The rule that its data violated.
    pub violated_rule: Option<String>,
    /// The headers that its data proves.
    pub headers: Option<VerifiedHeaderHealth>,
}

/// Recommended changes.
pub(super) fn light_client_advice(health: &LightClientHealth) -> Vec<String> {
    let of_endpoints = health.endpoints.iter().filter_map(|endpoint| advice_on_endpoint(endpoint, health));
    advice_on_checkpoint(health).into_iter().chain(of_endpoints).chain(advice_on_finality(health)).collect()
}

fn advice_on_checkpoint(health: &LightClientHealth) -> Option<String> {
    let error = health.checkpoint_error.as_ref()?;
    Some(format!("{error}: set beacon.checkpoint to the root of a newer finalized block that you trust"))
}

fn advice_on_endpoint(endpoint: &BeaconApiEndpointHealth, health: &LightClientHealth) -> Option<String> {
    let label = &endpoint.label;
    if let Some(rule) = &endpoint.violated_rule {
        return Some(format!("{label} sends false light-client data ({rule}): take it out of beacon.endpoints"));
    }
    let error = endpoint.error.as_ref().filter(|_| health.checkpoint_error.is_none())?;
    Some(format!("{label} gives no valid header ({error}): correct its URL, or take it out of beacon.endpoints"))
}

fn advice_on_finality(health: &LightClientHealth) -> Option<String> {
    let age = health.headers?.finalized_age_s;
    (age > MAX_FINALIZED_AGE_SECONDS).then(|| {
        let minutes = age / 60;
        format!(
            "the newest finalized header is {minutes} minutes old: wait until the chain finalizes, or add endpoints"
        )
    })
}

#[cfg(not(feature = "state-proof"))]
pub(super) async fn examine_light_client(
    _: &Config,
    _: Option<&crate::resolve::upstream::ChainRpcUpstream>,
    _: &dyn crate::clock::Clock,
) -> Option<LightClientHealth> {
    None
}

#[cfg(feature = "state-proof")]
pub(super) use self::asked::examine_light_client;

#[cfg(feature = "state-proof")]
mod asked {
    use std::sync::Arc;

    use clresolve_chain::{LightClient, LightClientStatus, VerifiedHeadersStatus};
    use clresolve_core::reading::{BlockSelector, ChainError, LightClientHeaderError};
    use futures_util::future::join_all;
    use jiff::SignedDuration;
    use tokio::time::{Instant, timeout};

    use super::{BeaconApiEndpointHealth, Config, LightClientHealth, VerifiedHeaderHealth};
    use crate::clock::Clock;
    use crate::config::{BeaconEndpointConfig, LightClientSettings};
    use crate::resolve::consensus::{beacon_client, light_client_config};
    use crate::resolve::upstream::ChainRpcUpstream;

    /// What one endpoint led to.
    struct LightClientProbeResult {
        status: LightClientStatus,
        fault: Option<ChainError>,
    }

    /// Starts a light client for each endpoint. `None` if headers need no consensus, or cannot be had as configured.
    pub(in crate::resolve::doctor) async fn examine_light_client(
        config: &Config,
        upstream: Option<&ChainRpcUpstream>,
        clock: &dyn Clock,
    ) -> Option<LightClientHealth> {
        let (settings, upstream) = (config.light_client_settings().ok()??, upstream?);
        let now = time_source_from_clock(clock);
        let seen = settings
            .endpoints
            .iter()
            .map(|endpoint| probe_beacon_endpoint(endpoint, &settings, config, upstream, &now));
        let seen = join_all(seen).await;
        let checkpoint_age = seen.iter().filter_map(checkpoint_age).max();
        let checkpoint_error = seen.iter().find_map(|seen| match &seen.fault {
            Some(ChainError::HeaderUnproven(fault @ LightClientHeaderError::CheckpointTooOld { .. })) => {
                Some(fault.to_string())
            }
            _ => None,
        });
        let headers = seen.iter().filter_map(|seen| seen.status.headers).max_by_key(|seen| seen.optimistic_slot);
        let health =
            |(endpoint, seen): (&BeaconEndpointConfig, &LightClientProbeResult)| beacon_health(&endpoint.label, seen);
        Some(LightClientHealth {
            checkpoint: settings.checkpoint.to_string(),
            checkpoint_age_s: checkpoint_age,
            checkpoint_error,
            headers: headers.map(Into::into),
            endpoints: settings.endpoints.iter().zip(&seen).map(health).collect(),
        })
    }

    /// What a light client sees that asks this endpoint alone. It starts from the checkpoint, or else from the file.
    async fn probe_beacon_endpoint(
        endpoint: &BeaconEndpointConfig,
        settings: &LightClientSettings,
        config: &Config,
        upstream: &ChainRpcUpstream,
        now: &clresolve_chain::TimeSource,
    ) -> LightClientProbeResult {
        let alone = LightClientSettings { endpoints: vec![endpoint.clone()], file: None, ..settings.clone() };
        let from_checkpoint = synchronize_light_client(&alone, config, upstream, now).await;
        let Some(file) = settings.file.clone().filter(|_| from_checkpoint.fault.is_some()) else {
            return from_checkpoint;
        };
        let from_file =
            synchronize_light_client(&LightClientSettings { file: Some(file), ..alone }, config, upstream, now).await;
        LightClientProbeResult {
            status: from_file.status,
            fault: from_checkpoint.fault.filter(|_| from_file.fault.is_some()),
        }
    }

    async fn synchronize_light_client(
        settings: &LightClientSettings,
        config: &Config,
        upstream: &ChainRpcUpstream,
        now: &clresolve_chain::TimeSource,
    ) -> LightClientProbeResult {
        let light_client_config = light_client_config(settings.clone(), config, upstream);
        let client = LightClient::new_read_only(light_client_config, beacon_client(&upstream.egress), Arc::clone(now));
        let both = async {
            client.fetch_verified_header(BlockSelector::Finalized).await?;
            client.fetch_verified_header(BlockSelector::Latest).await
        };
        let milliseconds = u64::try_from(config.timeout.as_millis()).unwrap_or(u64::MAX);
        let fault = timeout(config.timeout, both).await.map_or(Some(ChainError::Late { milliseconds }), Result::err);
        LightClientProbeResult { status: client.status(), fault }
    }

    /// A clock that starts at the time of `clock` and can be passed to other tasks.
    fn time_source_from_clock(clock: &dyn Clock) -> clresolve_chain::TimeSource {
        let (began, start) = (Instant::now(), clock.now());
        let since = move || SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
        Arc::new(move || start.checked_add(since()).unwrap_or(start))
    }

    fn checkpoint_age(seen: &LightClientProbeResult) -> Option<u64> {
        match &seen.fault {
            Some(ChainError::HeaderUnproven(LightClientHeaderError::CheckpointTooOld { age, .. })) => {
                Some(age.as_secs())
            }
            _ => seen.status.checkpoint_age.map(|age| age.as_secs()),
        }
    }

    fn beacon_health(label: &str, seen: &LightClientProbeResult) -> BeaconApiEndpointHealth {
        let status = seen.status.endpoints.first();
        let failure = status.and_then(|status| status.failure.as_ref()).map(|(_, cause)| cause.clone());
        let set_aside = status.and_then(|status| status.set_aside.as_ref());
        BeaconApiEndpointHealth {
            label: label.to_owned(),
            error: seen.fault.as_ref().map(|fault| failure.unwrap_or_else(|| fault.to_string())),
            violated_rule: set_aside.map(|aside| aside.cause.clone()),
            headers: seen.status.headers.map(Into::into),
        }
    }

    impl From<VerifiedHeadersStatus> for VerifiedHeaderHealth {
        fn from(status: VerifiedHeadersStatus) -> Self {
            Self {
                finalized_slot: status.finalized_slot,
                finalized_age_s: status.finalized_age.as_secs(),
                head_slot: status.optimistic_slot,
                current_slot: status.current_slot,
                participants: status.participation.map(|participation| participation.participants),
                committee: status.participation.map(|participation| participation.size),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well(label: &str) -> BeaconApiEndpointHealth {
        BeaconApiEndpointHealth {
            label: label.to_owned(),
            headers: Some(headers(800)),
            ..BeaconApiEndpointHealth::default()
        }
    }

    const fn headers(finalized_age_s: u64) -> VerifiedHeaderHealth {
        VerifiedHeaderHealth {
            finalized_slot: 64,
            finalized_age_s,
            head_slot: 130,
            current_slot: 131,
            participants: Some(510),
            committee: Some(512),
        }
    }

    fn health(endpoints: Vec<BeaconApiEndpointHealth>) -> LightClientHealth {
        LightClientHealth { headers: Some(headers(800)), endpoints, ..LightClientHealth::default() }
    }

    #[test]
    fn each_fault_of_a_beacon_endpoint_has_its_advice() {
        assert_eq!(light_client_advice(&health(vec![well("a")])), Vec::<String>::new());
        let liar = BeaconApiEndpointHealth { violated_rule: Some("the signature is invalid".to_owned()), ..well("b") };
        let down = BeaconApiEndpointHealth { error: Some("no connection".to_owned()), headers: None, ..well("c") };
        let expected = [
            "b sends false light-client data (the signature is invalid): take it out of beacon.endpoints",
            "c gives no valid header (no connection): correct its URL, or take it out of beacon.endpoints",
        ];
        assert_eq!(light_client_advice(&health(vec![well("a"), liar, down])), expected);
    }

    #[test]
    fn old_checkpoint_is_the_only_advice_about_its_endpoints() {
        let error = "the checkpoint is 20 days old, and at most 14 are safe";
        let unused = BeaconApiEndpointHealth { error: Some("it is too old".to_owned()), ..well("a") };
        let health = LightClientHealth { checkpoint_error: Some(error.to_owned()), ..health(vec![unused]) };
        let expected = format!("{error}: set beacon.checkpoint to the root of a newer finalized block that you trust");
        assert_eq!(light_client_advice(&health), [expected]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn liar_is_named_and_the_honest_endpoint_is_well() {
        use crate::clock::SystemClock;
        use crate::config::ChainProofMode;
        use crate::resolve::doctor;
        use crate::sandbox::{CustomSandbox, SandboxBeaconBehaviour};
        use clresolve_sandbox::spec::SandboxSpec;

        let world = CustomSandbox::start(&SandboxSpec::parse("").expect("it is a world")).await.expect("it starts");
        let mut config = world.config();
        config.chain.proof = Some(ChainProofMode::ConsensusProof);
        let liar = world.start_beacon_endpoint(SandboxBeaconBehaviour::OtherCommittee).await.expect("a port");
        let few = world.start_beacon_endpoint(SandboxBeaconBehaviour::LowParticipation).await.expect("a port");
        config.beacon.endpoints.extend([liar, few]);
        let found = doctor::examine_upstreams(&config, &SystemClock).await.expect("the configuration is good");
        let health = found.light_client.as_ref().expect("headers need consensus");
        let [honest, liar, few] = &health.endpoints[..] else { panic!("{health:?}") };
        assert_eq!((&honest.error, &honest.violated_rule), (&None, &None), "{health:?}");
        let headers = honest.headers.expect("it proves headers");
        assert!(
            headers.finalized_slot <= headers.head_slot && headers.head_slot <= headers.current_slot,
            "{headers:?}"
        );
        assert_eq!(headers.committee, Some(32));
        assert!(health.checkpoint_age_s.is_some() && health.checkpoint_error.is_none(), "{health:?}");
        assert!(liar.violated_rule.as_ref().is_some_and(|rule| rule.contains("signature")), "{health:?}");
        assert!(few.violated_rule.is_none() && few.error.as_ref().is_some_and(|error| error.contains("two thirds")));
        let named = |advice: &String| advice.starts_with("beacon-other-committee sends false light-client data");
        assert!(found.advice.iter().any(named), "{:?}", found.advice);
    }

    #[test]
    fn chain_that_does_not_finalize_is_noticed() {
        let still = LightClientHealth { headers: Some(headers(1560)), ..health(vec![well("a")]) };
        let expected =
            "the newest finalized header is 26 minutes old: wait until the chain finalizes, or add endpoints";
        assert_eq!(light_client_advice(&still), [expected]);
    }
}
