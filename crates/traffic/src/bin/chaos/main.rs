//! Chaos test: three replicas under load while their upstreams and their Redis server stall, die, lie and recover.
//!
//! ```text
//! just chaos        a minute
//! just chaos 600    ten minutes
//! ```
//!
//! The sandbox network runs in this process. The daemons, each in its own process, share a cache in Debian's
//! `redis-server`. They read the chain through three endpoints of different operators, with a quorum of two. The faults
//! below occur concurrently, each at random times:
//!
//! - an endpoint stalls, closes connections, or serves the chain of another network in which bad names are good;
//!   sometimes all endpoints stall;
//! - the card hosts and the IPFS gateway stall, close connections, or serve bytes that do not match the chain;
//! - the Redis server is killed and restarted, is paused, is out of memory, or holds swapped values;
//! - a daemon is killed and restarted, and another one reloads its configuration;
//! - the owner of a name changes a record so that the name loses its trust, and later restores the record.
//!
//! Some clients query the gate, others request verdicts. No daemon may ever allow a bad name or call it trusted, nor a
//! name that lost its trust more than [`report::KNOWN_WITHIN`] ago. While a daemon is up, it must answer every request,
//! and a refused verdict must carry `Retry-After`.

mod fleet;
mod line;
mod report;
#[allow(dead_code, reason = "the tests of the fleet do more with the server")]
#[path = "../../../linked/support/redis.rs"]
mod server;
mod stage;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use tokio::task::JoinSet;

use fleet::DaemonApiKind;
use stage::{ChaosTestEnvironment, DAEMONS};
use trouble::FaultScheduleRng;

/// Number of clients per daemon, by API.
const CLIENTS: [(DaemonApiKind, usize); 2] = [(DaemonApiKind::Gate, 4), (DaemonApiKind::Report, 2)];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(60), |text| text.parse::<u64>())?;
    ensure!(seconds > 0, "expected: chaos [SECONDS]");
    let stage = Arc::new(ChaosTestEnvironment::start(Duration::from_secs(seconds)).await?);
    stage.warm_up().await?;
    let mut work = JoinSet::new();
    for member in 0..DAEMONS {
        for (api, clients) in CLIENTS {
            for client in 0..clients {
                work.spawn(Arc::clone(&stage).run_client(member, api, client));
            }
        }
    }
    work.spawn(trouble::inject_endpoint_faults(Arc::clone(&stage), FaultScheduleRng::new(1)));
    work.spawn(trouble::inject_host_faults(Arc::clone(&stage), FaultScheduleRng::new(2)));
    work.spawn(trouble::inject_redis_faults(Arc::clone(&stage), FaultScheduleRng::new(3)));
    work.spawn(trouble::inject_daemon_faults(Arc::clone(&stage), FaultScheduleRng::new(4)));
    work.spawn(trouble::change_name_records(Arc::clone(&stage), FaultScheduleRng::new(5)));
    work.spawn(Arc::clone(&stage).sample_memory());
    while let Some(done) = work.join_next().await {
        done??;
    }
    for member in &stage.fleet {
        member.stop().await?;
    }
    stage.report.print_and_check(seconds)
}
