//! The daemon listens to WebSockets that flood, are silent, end or say nonsense: polls go on as if there were none, and no
//! more of them than without.

use std::future::pending;
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;
use url::Url;

use crate::follow::{GOOD, POLL, Stage};

/// What a server of WebSockets does to each connection.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Tells of 10,000 blocks a second.
    Flood,
    /// Sends a message of some megabytes.
    Huge,
    /// Takes the subscription and says nothing more.
    Silent,
    /// Takes the connection and says nothing at all.
    NoHandshake,
    /// Ends as soon as it is asked for anything.
    Closes,
    /// Says what is no JSON.
    Garbage,
}

/// Blocks of a flood that are sent together, and how often. Together they are 10,000 a second.
const BURST: (usize, Duration) = (100, Duration::from_millis(10));

/// A server with this fault. Gives its URL.
async fn server(fault: Fault) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, fault));
        }
    });
    url.parse().unwrap()
}

/// Ends with the connection.
async fn serve(stream: TcpStream, fault: Fault) -> Option<()> {
    if matches!(fault, Fault::NoHandshake) {
        return pending().await;
    }
    let mut socket = accept_async(stream).await.ok()?;
    socket.next().await?.ok()?;
    if matches!(fault, Fault::Closes) {
        return None;
    }
    socket.send(Message::text(json!({"jsonrpc": "2.0", "id": 1, "result": "0x1"}).to_string())).await.ok()?;
    let head = json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": {"subscription": "0x1", "result": {}}});
    match fault {
        Fault::Huge => socket.send(Message::text(" ".repeat(4 << 20))).await.ok()?,
        Fault::Garbage => socket.send(Message::text("{\"params\":")).await.ok()?,
        Fault::Flood => {
            let mut bursts = tokio::time::interval(BURST.1);
            loop {
                bursts.tick().await;
                for _ in 0..BURST.0 {
                    socket.feed(Message::text(head.to_string())).await.ok()?;
                }
                socket.flush().await.ok()?;
            }
        }
        Fault::Silent | Fault::NoHandshake | Fault::Closes => {}
    }
    // Until the other side ends it.
    while socket.next().await?.is_ok() {}
    None
}

/// A flood of blocks that do not exist evicts nothing and costs what polling costs without a stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_blocks_wakes_no_more_polls_than_time_does() {
    let url = server(Fault::Flood).await;
    let hour = Duration::from_secs(3600);
    let stage = Stage::of("flood", &[], |config| {
        config.chain.endpoints[0].ws = Some(url);
        config.follow.poll = hour;
    });
    let stage = stage.await;
    stage.until_gate(GOOD, (200, "")).await;
    let (began, before) = (Instant::now(), stage.world.counts().rpc);
    let ignored = "clresolve_follow_notices_ignored_total{endpoint=\"flood-own\",cause=\"waiting\"}";
    let first = stage.metric(ignored).await;
    stage.until_metric(ignored, first + 2000).await;
    let (lasted, requests) = (began.elapsed(), stage.world.counts().rpc - before);
    // At the same block a poll is one request. One may have begun before, and one may end after.
    let most = lasted.as_millis() / 500 + 2;
    assert!((1..=most).contains(&u128::from(requests)), "{requests} requests in {lasted:?}");
    assert_eq!(stage.get(&format!("/v1/gate/{GOOD}")).await.0, 200);
    assert_eq!(stage.metric("clresolve_follow_hints_total{endpoint=\"flood-own\"}").await, 0);
}

/// Whatever a stream does, polling finds the change, and how the stream ended is counted.
#[tokio::test(flavor = "multi_thread")]
async fn no_fault_of_a_stream_keeps_a_change_from_being_found() {
    for (fault, cause) in [
        (Fault::Huge, Some("too-long")),
        (Fault::Garbage, Some("malformed")),
        (Fault::Closes, Some("closed")),
        (Fault::Silent, None),
        (Fault::NoHandshake, None),
    ] {
        let (url, label) = (server(fault).await, format!("{fault:?}"));
        let mut stage = Stage::of(&label, &[], |config| {
            config.chain.endpoints[0].ws = Some(url);
            config.follow.poll = POLL;
        })
        .await;
        stage.until_gate(GOOD, (200, "")).await;
        if let Some(cause) = cause {
            let ended = format!("clresolve_follow_streams_ended_total{{endpoint=\"{label}-own\",cause=\"{cause}\"}}");
            stage.until_metric(&ended, 1).await;
        }
        stage.write(GOOD, "thief.eth");
        stage.until_gate(GOOD, (403, "record-pending")).await;
    }
}
