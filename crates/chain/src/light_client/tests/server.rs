//! A beacon endpoint on loopback that is honest or lies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::B256;
use clresolve_beacon::{ConsensusFork, LightClientCodec};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::beacon_chain::{BeaconChain, CHECKPOINT, MEMBERS, Signers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    Nothing,
    /// One member fewer than two thirds signs.
    Participation,
    WrongCommittee,
    WrongFork,
    ForgedBranch,
    OtherBootstrap,
    /// It repeats what was newest at this slot.
    Replay(u64),
    /// Another header for the newest slot, signed by the same committee.
    Equivocation,
    EndlessUpdates,
    EndlessBody,
    Silence,
    /// Everything is missing.
    NotFound,
    /// The bootstrap is missing.
    NoBootstrap,
    /// It never answers a request for updates.
    SilentUpdates,
    NoJson,
}

struct Served {
    chain: BeaconChain,
    /// The current slot.
    slot: u64,
    lie: Lie,
    is_ssz: bool,
    /// How long it waits before it answers.
    delay: Duration,
    requests: Vec<String>,
}

pub(crate) struct BeaconServer {
    url: String,
    served: Arc<Mutex<Served>>,
    task: AbortHandle,
}

enum Body {
    Json(Value),
    Ssz(Vec<u8>),
    Missing,
    Text(&'static str),
    Endless,
    Nothing,
}

impl BeaconServer {
    pub(crate) async fn start(chain: &BeaconChain, slot: u64, lie: Lie) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let served =
            Served { chain: chain.clone(), slot, lie, is_ssz: false, delay: Duration::ZERO, requests: Vec::new() };
        let served = Arc::new(Mutex::new(served));
        let shared = Arc::clone(&served);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { url, served, task: task.abort_handle() }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn set_slot(&self, slot: u64) {
        self.served.lock().unwrap().slot = slot;
    }

    pub(crate) fn set_lie(&self, lie: Lie) {
        self.served.lock().unwrap().lie = lie;
    }

    pub(crate) fn set_delay(&self, delay: Duration) {
        self.served.lock().unwrap().delay = delay;
    }

    pub(crate) fn use_ssz(&self) {
        self.served.lock().unwrap().is_ssz = true;
    }

    /// The requests since the last call: the last part of each path.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.served.lock().unwrap().requests)
    }
}

impl Drop for BeaconServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, served: Arc<Mutex<Served>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).await.is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().trim_start_matches("/eth/v1/beacon/light_client/").to_owned();
    let (body, delay) = {
        let mut served = served.lock().unwrap();
        served.requests.push(path.clone());
        (served.body(&path), served.delay)
    };
    tokio::time::sleep(delay).await;
    let response = |status: &str, content_type: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\neth-consensus-version: electra\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    let bytes = match body {
        Body::Json(json) => response("200 OK", "application/json", json.to_string().as_bytes()),
        Body::Ssz(ssz) => response("200 OK", "application/octet-stream", &ssz),
        Body::Text(text) => response("200 OK", "text/html", text.as_bytes()),
        Body::Missing => response("404 Not Found", "application/json", b"{\"message\":\"not here\"}"),
        Body::Nothing => std::future::pending().await,
        Body::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[").await;
            while stream.write_all(&[b' '; 4096]).await.is_ok() {}
            return;
        }
    };
    let _ = stream.write_all(&bytes).await;
}

impl Served {
    fn body(&self, path: &str) -> Body {
        match self.lie {
            Lie::Silence => return Body::Nothing,
            Lie::EndlessBody => return Body::Endless,
            Lie::NotFound => return Body::Missing,
            Lie::NoJson => return Body::Text("<html>Sign in</html>"),
            _ => {}
        }
        match path.split(['?', '/']).next().unwrap() {
            "bootstrap" if self.lie == Lie::NoBootstrap => Body::Missing,
            "bootstrap" => self.bootstrap(path),
            "updates" if self.lie == Lie::SilentUpdates => Body::Nothing,
            "updates" => self.updates(path),
            "finality_update" => self.finality_update(),
            "optimistic_update" => self.optimistic_update(),
            _ => Body::Missing,
        }
    }

    /// The newest slot that is signed.
    const fn head(&self) -> u64 {
        match self.lie {
            Lie::Replay(slot) => slot,
            _ => self.slot - 1,
        }
    }

    fn signers(&self) -> Signers {
        let honest = self.chain.honest();
        match self.lie {
            Lie::Participation => Signers { participants: MEMBERS * 2 / 3, ..honest },
            Lie::WrongCommittee => Signers { period_offset: 3, ..honest },
            Lie::WrongFork => {
                let mut spec = honest.spec.clone();
                spec.forks[0].version = [4, 0, 0, 1];
                Signers { spec, ..honest }
            }
            _ => honest,
        }
    }

    fn encoded(&self, data: &impl LightClientCodec) -> Body {
        match self.is_ssz {
            true => Body::Ssz(data.to_ssz(ConsensusFork::Electra)),
            false => Body::Json(data.to_json(ConsensusFork::Electra)),
        }
    }

    fn bootstrap(&self, path: &str) -> Body {
        let block = match self.lie {
            Lie::OtherBootstrap => self.chain.child_of(CHECKPOINT, B256::repeat_byte(9)),
            _ => self.chain.block(CHECKPOINT),
        };
        if self.lie != Lie::OtherBootstrap && !path.ends_with(&block.block_root().to_string()) {
            return Body::Missing;
        }
        self.encoded(&block.light_client_bootstrap())
    }

    fn updates(&self, path: &str) -> Body {
        let value = |name: &str| -> u64 {
            let query = path.split_once('?').unwrap().1;
            let pair = query.split('&').find_map(|pair| pair.strip_prefix(name)).unwrap();
            pair.trim_start_matches('=').parse().unwrap()
        };
        let (start, count) = (value("start_period"), value("count"));
        let periods = match self.lie {
            Lie::EndlessUpdates => (start..start + 1).cycle().take(usize::try_from(count).unwrap() + 1).collect(),
            _ => (start..start + count).filter(|period| period * 64 < self.head()).collect::<Vec<_>>(),
        };
        let updates = periods.into_iter().map(|period| {
            let mut update = self.chain.update(period, self.head(), &self.signers());
            if self.lie == Lie::ForgedBranch {
                update.finality_branch[0] = B256::repeat_byte(1);
            }
            update
        });
        if !self.is_ssz {
            return Body::Json(updates.map(|update| update.to_json(ConsensusFork::Electra)).collect());
        }
        let framed = updates.flat_map(|update| {
            let ssz = update.to_ssz(ConsensusFork::Electra);
            [&(ssz.len() as u64 + 4).to_le_bytes()[..], &[0; 4], &ssz].concat()
        });
        Body::Ssz(framed.collect())
    }

    fn finality_update(&self) -> Body {
        let mut update = self.chain.finality_update(self.head(), &self.signers());
        if self.lie == Lie::ForgedBranch {
            update.finality_branch[0] = B256::repeat_byte(1);
        }
        if self.lie == Lie::EndlessUpdates {
            return Body::Json(json!([]));
        }
        self.encoded(&update)
    }

    fn optimistic_update(&self) -> Body {
        let block = match self.lie {
            Lie::Equivocation => self.chain.child_of(self.head(), B256::repeat_byte(9)),
            _ => self.chain.block(self.head()),
        };
        let mut update = self.chain.optimistic_update(&block, &self.signers());
        if self.lie == Lie::ForgedBranch {
            update.attested_header.execution_branch[0] = B256::repeat_byte(1);
        }
        self.encoded(&update)
    }
}
