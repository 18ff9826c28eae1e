//! The faults: each kind runs by itself at random times.

use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use clresolve_core::name::EnsName;
use redis::Commands as _;
use tokio::time::sleep;

use crate::fleet::{DaemonApiKind, DaemonRequestOutcome, RestartableDaemon};
use crate::line::TcpProxyMode;
use crate::report::{KNOWN_WITHIN, ParsedGateResponse};
use crate::stage::{ChaosTestEnvironment, TURNING, turning_name};

/// The change that makes a name lose its trust.
const RECORD: (&str, &str, &str) = ("cl.owner", "publisher.eth", "thief.eth");

/// How long a change stays in place after it must be known.
const STANDS: Duration = Duration::from_secs(2);

/// Maximum duration of one fault.
pub(crate) const LONGEST: Duration = Duration::from_secs(3);

/// Memory limit of a full Redis server, in bytes: below what an empty one uses.
const FULL: &str = "1";

/// The pause before a daemon is restarted.
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// SplitMix64 random numbers, the same in each run.
pub(crate) struct FaultScheduleRng(u64);

impl FaultScheduleRng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn random_below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).expect("it is below the bound")
    }

    fn random_duration(&mut self, millis: Range<usize>) -> Duration {
        Duration::from_millis((millis.start + self.random_below(millis.len())) as u64)
    }

    /// A random duration of a fault.
    fn fault_duration(&mut self) -> Duration {
        self.random_duration(500..LONGEST.as_millis() as usize)
    }

    /// A random time between two faults.
    fn pause_duration(&mut self) -> Duration {
        self.random_duration(200..2_000)
    }
}

/// One endpoint at a time stalls, closes connections or lies. Sometimes all stall.
pub(crate) async fn inject_endpoint_faults(
    stage: Arc<ChaosTestEnvironment>,
    mut lot: FaultScheduleRng,
) -> anyhow::Result<()> {
    while stage.is_running() {
        sleep(lot.pause_duration()).await;
        let (one, time) = (lot.random_below(stage.endpoints.len()), lot.fault_duration());
        match lot.random_below(8) {
            0 => {
                let _nobody_sees = stage.sight.lock().await;
                stage.report.count_fault("all endpoints silent");
                stage.endpoints.iter().for_each(|(laid, _)| laid.set_mode(TcpProxyMode::Silent));
                sleep(time).await;
                stage.endpoints.iter().for_each(|(laid, line)| laid.set_mode(*line));
                continue;
            }
            1 | 2 => {
                (stage.report.count_fault("an endpoint silent"), stage.endpoints[one].0.set_mode(TcpProxyMode::Silent))
            }
            3 | 4 => (stage.report.count_fault("an endpoint dead"), stage.endpoints[one].0.set_mode(TcpProxyMode::Cut)),
            _ => (stage.report.count_fault("an endpoint lying"), stage.endpoints[one].0.set_mode(stage.liar)),
        };
        sleep(time).await;
        let (laid, line) = &stage.endpoints[one];
        laid.set_mode(*line);
    }
    Ok(())
}

/// The hosts and the gateway stall, close connections, or serve bytes that do not match the chain.
pub(crate) async fn inject_host_faults(
    stage: Arc<ChaosTestEnvironment>,
    mut lot: FaultScheduleRng,
) -> anyhow::Result<()> {
    let (laid, line) = &stage.hosts;
    while stage.is_running() {
        sleep(lot.pause_duration()).await;
        let (trouble, instead) = match lot.random_below(3) {
            0 => ("hosts and gateway gone", TcpProxyMode::Silent),
            1 => ("hosts and gateway gone", TcpProxyMode::Cut),
            _ => ("hosts and gateway lying", stage.lying_hosts),
        };
        stage.report.count_fault(trouble);
        laid.set_mode(instead);
        sleep(lot.fault_duration()).await;
        laid.set_mode(*line);
    }
    Ok(())
}

/// The Redis server is killed, paused, full, or returns wrong values.
pub(crate) async fn inject_redis_faults(
    stage: Arc<ChaosTestEnvironment>,
    mut lot: FaultScheduleRng,
) -> anyhow::Result<()> {
    let redis = || stage.redis.lock().unwrap_or_else(PoisonError::into_inner);
    while stage.is_running() {
        sleep(lot.pause_duration()).await;
        let time = lot.fault_duration();
        match lot.random_below(4) {
            0 => {
                stage.report.count_fault("Redis killed");
                redis().kill();
                sleep(time).await;
                redis().restart();
            }
            1 => {
                stage.report.count_fault("Redis standing still");
                redis().signal("-STOP");
                sleep(time).await;
                redis().signal("-CONT");
            }
            2 => {
                stage.report.count_fault("Redis full");
                let mut connection = redis().open();
                let limit = |connection: &mut redis::Connection, bytes: &str| {
                    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes).exec(connection)
                };
                limit(&mut connection, FULL)?;
                sleep(time).await;
                limit(&mut connection, "0")?;
            }
            _ => {
                stage.report.count_fault("Redis lying");
                rotate_redis_values(&mut redis().open())?;
            }
        }
    }
    Ok(())
}

/// Replaces each value with that of the next key, as anyone with write access could.
fn rotate_redis_values(connection: &mut redis::Connection) -> anyhow::Result<()> {
    let keys: Vec<String> = connection.keys("clresolve:*")?;
    // Other values, such as leases, are skipped.
    let mut values: Vec<(&String, Vec<u8>)> = Vec::new();
    for key in &keys {
        if let Ok(value) = connection.get::<_, Vec<u8>>(key) {
            values.push((key, value));
        }
    }
    for (index, (key, _)) in values.iter().enumerate() {
        let (_, other) = &values[(index + 1) % values.len()];
        let () = connection.set(key, other.as_slice())?;
    }
    Ok(())
}

/// Either a daemon is killed and restarted, or the first one reloads its configuration.
pub(crate) async fn inject_daemon_faults(
    stage: Arc<ChaosTestEnvironment>,
    mut lot: FaultScheduleRng,
) -> anyhow::Result<()> {
    while stage.is_running() {
        sleep(lot.pause_duration()).await;
        if lot.random_below(2) == 0 {
            stage.report.count_fault("configuration read again");
            stage.fleet[0].reload()?;
            continue;
        }
        let one = &stage.fleet[1 + lot.random_below(stage.fleet.len() - 1)];
        stage.report.count_fault("a daemon killed");
        one.kill()?;
        sleep(lot.random_duration(0..1_000)).await;
        restart_daemon(one).await?;
    }
    Ok(())
}

/// Restarts a daemon until it succeeds, as its supervisor does. Only an unreachable host of its profile manifest may
/// prevent a start.
async fn restart_daemon(daemon: &RestartableDaemon) -> anyhow::Result<()> {
    while let Err(error) = daemon.restart().await {
        ensure!(error.to_string().contains("manifest"), "a daemon does not start: {error}");
        sleep(ASK_AGAIN).await;
    }
    Ok(())
}

/// The owner makes a name lose its trust. After every daemon must know, the original record is restored.
pub(crate) async fn change_name_records(
    stage: Arc<ChaosTestEnvironment>,
    mut lot: FaultScheduleRng,
) -> anyhow::Result<()> {
    let (record, old, new) = RECORD;
    while stage.is_running() {
        sleep(lot.pause_duration()).await;
        let name = turning_name(lot.random_below(TURNING));
        let ens = EnsName::parse(&name)?;
        let mut world = stage.sight.lock().await;
        let was_allowed = is_allowed_by_any_daemon(&stage, &name).await;
        world.write_text(&ens, record, new)?;
        stage.report.record_trust_loss(&name);
        stage.report.count_fault("a record changed");
        sleep(KNOWN_WITHIN).await;
        drop(world);
        sleep(STANDS).await;
        let mut world = stage.sight.lock().await;
        stage.report.record_restoration(&name, was_allowed);
        world.write_text(&ens, record, old)?;
    }
    Ok(())
}

async fn is_allowed_by_any_daemon(stage: &ChaosTestEnvironment, name: &str) -> bool {
    for member in &stage.fleet {
        if let DaemonRequestOutcome::Answer(said) = member.send_request(&DaemonApiKind::Gate.request_path(name)).await
            && ParsedGateResponse::parse(&said).is_some_and(|said| said.is_allowed)
        {
            return true;
        }
    }
    false
}
