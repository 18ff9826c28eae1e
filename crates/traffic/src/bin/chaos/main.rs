//! The chaos: a fleet of three daemons under load while what they rest on stalls, dies, lies and returns.
//!
//! ```text
//! just chaos        a minute
//! just chaos 600    ten minutes
//! ```
//!
//! The world runs in this process. The daemons, each a process of its own, share evidence through Debian's
//! `redis-server`. They read the chain through three endpoints of different operators, two of which must agree. Beside
//! each other, and each at times that are drawn by lot:
//!
//! - an endpoint is silent, hangs up, or serves the whole ledger of another world in which bad names are good ones; now
//!   and then all of them are silent;
//! - the hosts of cards and the IPFS gateway are silent, hang up, or serve other bytes than the chain names;
//! - the server is killed and started again, stands still, is full, and holds other bytes than were written;
//! - a daemon is killed and started again, and another one reads its configuration again;
//! - the owner of a name writes a record that takes the name's trust away, and later the old one.
//!
//! Clients ask the gate, and others ask for verdicts. No daemon may ever allow a bad name or say that it is trusted, nor a
//! name whose trust was taken away more than [`report::KNOWN_WITHIN`] ago. None may leave a question without an answer while
//! it is up, or refuse a verdict without the time to ask again.

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

use fleet::Face;
use stage::{DAEMONS, Stage};
use trouble::Lot;

/// Clients of each daemon: those that ask its gate, and those that ask for verdicts.
const CLIENTS: [(Face, usize); 2] = [(Face::Gate, 4), (Face::Report, 2)];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(60), |text| text.parse::<u64>())?;
    ensure!(seconds > 0, "expected: chaos [SECONDS]");
    let stage = Arc::new(Stage::start(Duration::from_secs(seconds)).await?);
    stage.warm_up().await?;
    let mut work = JoinSet::new();
    for member in 0..DAEMONS {
        for (face, clients) in CLIENTS {
            for client in 0..clients {
                work.spawn(Arc::clone(&stage).client(member, face, client));
            }
        }
    }
    work.spawn(trouble::of_endpoints(Arc::clone(&stage), Lot::new(1)));
    work.spawn(trouble::of_hosts(Arc::clone(&stage), Lot::new(2)));
    work.spawn(trouble::of_redis(Arc::clone(&stage), Lot::new(3)));
    work.spawn(trouble::of_daemons(Arc::clone(&stage), Lot::new(4)));
    work.spawn(trouble::of_names(Arc::clone(&stage), Lot::new(5)));
    work.spawn(Arc::clone(&stage).memory());
    while let Some(done) = work.join_next().await {
        done??;
    }
    for member in &stage.fleet {
        member.stop().await?;
    }
    stage.report.print(seconds)
}
