use std::convert::Infallible;
use std::net::Ipv4Addr;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;

/// A busy machine is no defect; and nothing here waits for this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// In every answer of the daemon, and in none that hyper makes by itself.
const OURS: &str = "x-content-type-options: nosniff";

fn limits() -> HttpConfig {
    let mut limits = HttpConfig::default();
    (limits.idle_timeout, limits.head_timeout) = (PATIENCE, PATIENCE);
    limits
}

/// Serves one connection that answers everything with 200, and drops it at its end.
async fn serve(near: DuplexStream, limits: HttpConfig) {
    let service = service_fn(|_: Request<hyper::body::Incoming>| async {
        let mut response = Response::new(Body::empty());
        response.headers_mut().insert("x-content-type-options", "nosniff".parse().expect("a value"));
        Ok::<_, Infallible>(response)
    });
    let front = Front::new(near, Client::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST)), limits);
    let mut http = http1::Builder::new();
    http.header_read_timeout(None)
        .max_headers(limits.headers)
        .half_close(true)
        .max_buf_size(limits.head_bytes.max(8192));
    let _ = http.serve_connection(TokioIo::new(front), service).await;
}

/// All that is answered to `sent`, after which the client sends no more.
async fn said_to(sent: &[u8]) -> String {
    let (near, mut far) = duplex(1 << 20);
    let served = tokio::spawn(serve(near, limits()));
    far.write_all(sent).await.expect("room");
    far.shutdown().await.expect("a stream");
    let mut said = Vec::new();
    far.read_to_end(&mut said).await.expect("a stream");
    served.await.expect("no panic");
    String::from_utf8(said).expect("ASCII")
}

/// The statuses in `said`, each of an answer that is ours.
fn statuses(said: &str) -> Vec<&str> {
    let statuses: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("HTTP/1.")).map(|l| &l[2..5]).collect();
    assert_eq!(said.matches(OURS).count(), statuses.len(), "{said}");
    statuses
}

#[tokio::test]
async fn good_requests_pass_and_a_bad_one_is_answered_after_them() {
    let good =
        "GET /livez HTTP/1.1\r\n\r\nPOST /v1/gate/a HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n";
    assert_eq!(statuses(&said_to(good.as_bytes()).await), ["200", "200", "200"]);
    let then = |bad: &str| format!("{good}{bad}");
    assert_eq!(statuses(&said_to(then("GET / HTTP/3.0\r\n\r\n").as_bytes()).await), ["200", "200", "200", "400"]);
    assert_eq!(statuses(&said_to(then("GET /v1/gate/a HTTP/1.1\r\nx").as_bytes()).await), ["200", "200", "200", "403"]);
    assert_eq!(statuses(&said_to(then("\r\n\r\n").as_bytes()).await), ["200", "200", "200"]);
    let long = format!("GET /v1/verdicts/a HTTP/1.1\r\nx: {}", "y".repeat(20_000));
    assert_eq!(statuses(&said_to(long.as_bytes()).await), ["431"]);
    assert_eq!(statuses(&said_to(b"").await), [""; 0]);
}

#[tokio::test]
async fn a_head_in_pieces_is_put_together() {
    let (near, mut far) = duplex(64);
    let served = tokio::spawn(serve(near, limits()));
    for byte in b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" {
        far.write_all(&[*byte]).await.expect("room");
        tokio::task::yield_now().await;
    }
    let mut start = [0; 12];
    far.read_exact(&mut start).await.expect("an answer");
    assert_eq!(&start, b"HTTP/1.1 200");
    drop(far);
    served.await.expect("no panic");
}

#[tokio::test]
async fn a_slow_head_is_refused_and_an_idle_connection_ends_without_a_word() {
    let wait = |sent: &'static str, change: fn(&mut HttpConfig)| async move {
        let mut limits = limits();
        change(&mut limits);
        let (near, mut far) = duplex(1 << 16);
        tokio::spawn(serve(near, limits));
        far.write_all(sent.as_bytes()).await.expect("room");
        let mut said = String::new();
        far.read_to_string(&mut said).await.expect("a stream");
        said
    };
    let slow: fn(&mut HttpConfig) = |limits| limits.head_timeout = Duration::from_millis(10);
    assert_eq!(statuses(&wait("GET /v1/gate/a.eth HTTP/1.1\r\nho", slow).await), ["403"]);
    assert_eq!(statuses(&wait("GET /v1/verdicts/a.eth HTTP/1.1\r\nho", slow).await), ["408"]);
    assert_eq!(statuses(&wait("GET", slow).await), ["403"]);
    let idle: fn(&mut HttpConfig) = |limits| limits.idle_timeout = Duration::from_millis(10);
    assert_eq!(wait("", idle).await, "");
    assert_eq!(statuses(&wait("GET / HTTP/1.1\r\n\r\n", idle).await), ["200"]);
}

#[tokio::test]
async fn a_body_without_end_is_cut_after_its_answer() {
    for head in ["content-length: 9999999999", "transfer-encoding: chunked\r\n\r\nffffffff"] {
        let (near, mut far) = duplex(1 << 12);
        let served = tokio::spawn(serve(near, limits()));
        far.write_all(format!("POST /v1/gate/a HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).await.expect("room");
        let (mut reader, mut writer) = tokio::io::split(far);
        let sending = tokio::spawn(async move {
            let mut sent = 0_usize;
            while writer.write_all(&[b'x'; 4096]).await.is_ok() {
                sent += 4096;
            }
            sent
        });
        let mut said = String::new();
        reader.read_to_string(&mut said).await.expect("a stream");
        assert_eq!(statuses(&said), ["200"]);
        served.await.expect("no panic");
        let sent = sending.await.expect("no panic");
        assert!(sent <= LINGER_BYTES + (1 << 17), "{sent}");
    }
}

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "GET ",
        "POST ",
        "CONNECT ",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "/",
        "/v1/gate/a.eth",
        "//v1/%67ate",
        "*",
        "http://x/y",
        "a:1",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        " HTTP/1.1\n",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "content-length: 3\r\n",
        "content-length: -1\r\n",
        "transfer-encoding: chunked\r\n",
        "transfer-encoding: x\r\n",
        "3\r\nabc\r\n0\r\n\r\n",
        "expect: 100-continue\r\n",
        "upgrade: h2c\r\n",
        "connection: upgrade, close\r\n",
        "connection: keep-alive\r\n",
        "host: x\r\n",
        "x",
        ": ",
        "é",
        "\0",
        "?a=b#c",
        "%zz",
        "[::1]",
        "@",
        " ",
        "GET / HTTP/1.1\r\n\r\n",
    ]);
    prop_oneof![4 => known.prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..6)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn hyper_refuses_nothing_that_comes_through(fragments in prop::collection::vec(fragment(), 0..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        // Every answer is one of ours: what hyper says by itself has no such header.
        statuses(&runtime.block_on(said_to(&fragments.concat())));
    }
}
