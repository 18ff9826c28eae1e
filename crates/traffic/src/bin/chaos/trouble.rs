//! The faults: each kind runs by itself at random times.

use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use clresolve_core::name::EnsName;
use redis::Commands as _;
use tokio::time::sleep;

use crate::fleet::{ApiKind, DaemonReply, Member};
use crate::line::Line;
use crate::report::{GateAnswer, KNOWN_WITHIN};
use crate::stage::{Stage, TURNING, turning};

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
pub(crate) struct Lot(u64);

impl Lot {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).expect("it is below the bound")
    }

    fn time(&mut self, millis: Range<usize>) -> Duration {
        Duration::from_millis((millis.start + self.below(millis.len())) as u64)
    }

    /// A random duration of a fault.
    fn trouble(&mut self) -> Duration {
        self.time(500..LONGEST.as_millis() as usize)
    }

    /// A random time between two faults.
    fn rest(&mut self) -> Duration {
        self.time(200..2_000)
    }
}

/// One endpoint at a time stalls, closes connections or lies. Sometimes all stall.
pub(crate) async fn of_endpoints(stage: Arc<Stage>, mut lot: Lot) -> anyhow::Result<()> {
    while stage.goes_on() {
        sleep(lot.rest()).await;
        let (one, time) = (lot.below(stage.endpoints.len()), lot.trouble());
        match lot.below(8) {
            0 => {
                let _nobody_sees = stage.sight.lock().await;
                stage.report.trouble("all endpoints silent");
                stage.endpoints.iter().for_each(|(laid, _)| laid.set(Line::Silent));
                sleep(time).await;
                stage.endpoints.iter().for_each(|(laid, line)| laid.set(*line));
                continue;
            }
            1 | 2 => (stage.report.trouble("an endpoint silent"), stage.endpoints[one].0.set(Line::Silent)),
            3 | 4 => (stage.report.trouble("an endpoint dead"), stage.endpoints[one].0.set(Line::Cut)),
            _ => (stage.report.trouble("an endpoint lying"), stage.endpoints[one].0.set(stage.liar)),
        };
        sleep(time).await;
        let (laid, line) = &stage.endpoints[one];
        laid.set(*line);
    }
    Ok(())
}

/// The hosts and the gateway stall, close connections, or serve bytes that do not match the chain.
pub(crate) async fn of_hosts(stage: Arc<Stage>, mut lot: Lot) -> anyhow::Result<()> {
    let (laid, line) = &stage.hosts;
    while stage.goes_on() {
        sleep(lot.rest()).await;
        let (trouble, instead) = match lot.below(3) {
            0 => ("hosts and gateway gone", Line::Silent),
            1 => ("hosts and gateway gone", Line::Cut),
            _ => ("hosts and gateway lying", stage.lying_hosts),
        };
        stage.report.trouble(trouble);
        laid.set(instead);
        sleep(lot.trouble()).await;
        laid.set(*line);
    }
    Ok(())
}

/// The Redis server is killed, paused, full, or returns wrong values.
pub(crate) async fn of_redis(stage: Arc<Stage>, mut lot: Lot) -> anyhow::Result<()> {
    let redis = || stage.redis.lock().unwrap_or_else(PoisonError::into_inner);
    while stage.goes_on() {
        sleep(lot.rest()).await;
        let time = lot.trouble();
        match lot.below(4) {
            0 => {
                stage.report.trouble("Redis killed");
                redis().kill();
                sleep(time).await;
                redis().start_again();
            }
            1 => {
                stage.report.trouble("Redis standing still");
                redis().signal("-STOP");
                sleep(time).await;
                redis().signal("-CONT");
            }
            2 => {
                stage.report.trouble("Redis full");
                let mut connection = redis().open();
                let limit = |connection: &mut redis::Connection, bytes: &str| {
                    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes).exec(connection)
                };
                limit(&mut connection, FULL)?;
                sleep(time).await;
                limit(&mut connection, "0")?;
            }
            _ => {
                stage.report.trouble("Redis lying");
                mix_up(&mut redis().open())?;
            }
        }
    }
    Ok(())
}

/// Replaces each value with that of the next key, as anyone with write access could.
fn mix_up(connection: &mut redis::Connection) -> anyhow::Result<()> {
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
pub(crate) async fn of_daemons(stage: Arc<Stage>, mut lot: Lot) -> anyhow::Result<()> {
    while stage.goes_on() {
        sleep(lot.rest()).await;
        if lot.below(2) == 0 {
            stage.report.trouble("configuration read again");
            stage.fleet[0].reload()?;
            continue;
        }
        let one = &stage.fleet[1 + lot.below(stage.fleet.len() - 1)];
        stage.report.trouble("a daemon killed");
        one.kill()?;
        sleep(lot.time(0..1_000)).await;
        start_again(one).await?;
    }
    Ok(())
}

/// Restarts a daemon until it succeeds, as its supervisor does. Only an unreachable host of its profile manifest may
/// prevent a start.
async fn start_again(daemon: &Member) -> anyhow::Result<()> {
    while let Err(error) = daemon.start_again().await {
        ensure!(error.to_string().contains("manifest"), "a daemon does not start: {error}");
        sleep(ASK_AGAIN).await;
    }
    Ok(())
}

/// The owner makes a name lose its trust. After every daemon must know, the original record is restored.
pub(crate) async fn of_names(stage: Arc<Stage>, mut lot: Lot) -> anyhow::Result<()> {
    let (record, old, new) = RECORD;
    while stage.goes_on() {
        sleep(lot.rest()).await;
        let name = turning(lot.below(TURNING));
        let ens = EnsName::parse(&name)?;
        let mut world = stage.sight.lock().await;
        let was_allowed = is_allowed(&stage, &name).await;
        world.write_text(&ens, record, new)?;
        stage.report.turns(&name);
        stage.report.trouble("a record changed");
        sleep(KNOWN_WITHIN).await;
        drop(world);
        sleep(STANDS).await;
        let mut world = stage.sight.lock().await;
        stage.report.returns(&name, was_allowed);
        world.write_text(&ens, record, old)?;
    }
    Ok(())
}

async fn is_allowed(stage: &Stage, name: &str) -> bool {
    for member in &stage.fleet {
        if let DaemonReply::Answer(said) = member.ask(&ApiKind::Gate.path(name)).await
            && GateAnswer::of(&said).is_some_and(|said| said.is_allowed)
        {
            return true;
        }
    }
    false
}
