use axum::http::HeaderValue;
use proptest::prelude::*;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::Notify;

use super::*;

/// Longer than any step of these tests takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Far longer than a stalled write may take.
const STALLED: Duration = Duration::from_secs(20);

/// Present in every response of the handler, and in none that hyper generates itself.
const OURS: &str = "x-content-type-options: nosniff";

/// Malformed or oversized heads, with the status of hyper's rejection. The list is empty if hyper sends no response.
const BAD_HEADS: [(&str, &[&str]); 22] = [
    ("\u{16}\u{3}\u{1}", &["400"]),
    ("G{T / HTTP/1.1\r\n\r\n", &["400"]),
    ("GET / HTTP/2.0\r\n\r\n", &["400"]),
    ("GET / HTTP/9.9\r\n\r\n", &["400"]),
    ("GET /v1/gate/a.eth\r\n\r\n", &["400"]),
    ("GET /v1/gate/a.eth HTTP/1.1\r\nno header\r\n\r\n", &["400"]),
    ("GET / HTTP/1.1\r\nhost : x\r\n\r\n", &["400"]),
    ("GET / HTTP/1.1\r\nhost: x\r\n folded\r\n\r\n", &["400"]),
    ("GET / HTTP/1.1\r\nx: \0\r\n\r\n", &["400"]),
    ("GET /<> HTTP/1.1\r\n\r\n", &["400"]),
    ("GET nowhere\u{e9} HTTP/1.1\r\n\r\n", &["400"]),
    ("POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", &["400"]),
    ("POST / HTTP/1.1\r\ncontent-length: +5\r\n\r\n", &["400"]),
    ("POST / HTTP/1.1\r\ncontent-length: \r\n\r\n", &["400"]),
    ("POST / HTTP/1.1\r\ncontent-length: 18446744073709551615\r\n\r\n", &["431"]),
    ("POST / HTTP/1.1\r\ntransfer-encoding: chunked, gzip\r\n\r\n", &["400"]),
    ("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n", &["400"]),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[]),
    ("GET", &[]),
    ("GET /v1/gate/a.eth HTTP/1.1\r\nx", &[]),
    ("\r\n\r\n", &[]),
    ("", &[]),
];

fn limits() -> HttpServerConfig {
    let mut limits = HttpServerConfig::default();
    (limits.idle_timeout, limits.head_timeout) = (PATIENCE, PATIENCE);
    limits
}

/// Serves one connection whose handler answers every request with 200, and drops the stream at the end.
async fn serve_all(near: DuplexStream, limits: HttpServerConfig) {
    let activity = Arc::new(ConnectionActivity::new());
    let handle = |_: Request<Body>| async {
        activity.begin_request(false);
        let mut response = Response::new(Body::empty());
        response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
        response
    };
    let (_end, ended) = watch::channel(false);
    let _ = serve_connection(near, &limits, &activity, handle, ended).await;
}

/// The responses to `sent`, after which the client closes its sending side.
async fn answers_to(sent: &[u8]) -> String {
    let (near, mut far) = duplex(1 << 20);
    let served = tokio::spawn(serve_all(near, limits()));
    far.write_all(sent).await.expect("the pipe has room");
    far.shutdown().await.expect("the pipe is open");
    let mut answers = Vec::new();
    far.read_to_end(&mut answers).await.expect("the pipe is open");
    served.await.expect("no panic");
    String::from_utf8(answers).expect("ASCII")
}

/// The statuses of these responses. Every response that is not the handler's is a bare 4xx.
fn statuses(answers: &str) -> Vec<&str> {
    let answers = answers.split("HTTP/1.").skip(1);
    answers
        .map(|answer| {
            let status = &answer[2..5];
            let is_bare = answer.contains("content-length: 0\r\n") && answer.ends_with("\r\n\r\n");
            assert!(answer.contains(OURS) || (status.starts_with('4') && is_bare), "{answer}");
            status
        })
        .collect()
}

#[tokio::test]
async fn a_bad_head_is_refused_with_a_bare_4xx_or_silence() {
    for (head, expected) in BAD_HEADS {
        assert_eq!(statuses(&answers_to(head.as_bytes()).await), expected, "{head:?}");
    }
    let long = format!("GET /v1/verdicts/a HTTP/1.1\r\nx: {}", "y".repeat(20_000));
    let longer_by_one = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(limits().head_bytes + 1 - 23));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(limits().headers + 1));
    for head in [long.clone(), format!("{long}\r\n\r\n"), longer_by_one.clone(), many] {
        assert_eq!(statuses(&answers_to(head.as_bytes()).await), ["431"], "{} bytes", head.len());
    }
    let longest = longer_by_one.replacen('y', "", 1);
    assert_eq!((longest.len(), statuses(&answers_to(longest.as_bytes()).await)), (limits().head_bytes, vec!["200"]));
}

#[tokio::test]
async fn good_requests_pass_and_a_bad_one_is_answered_after_them() {
    let good =
        "GET /livez HTTP/1.1\r\n\r\nPOST /v1/gate/a HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n";
    for (head, expected) in BAD_HEADS {
        let sent = format!("{good}{head}");
        assert_eq!(statuses(&answers_to(sent.as_bytes()).await), [&["200"; 3], expected].concat(), "{head:?}");
    }
}

#[tokio::test]
async fn a_head_in_pieces_is_put_together() {
    let (near, mut far) = duplex(64);
    let served = tokio::spawn(serve_all(near, limits()));
    for byte in b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" {
        far.write_all(&[*byte]).await.expect("the pipe has room");
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
    let (brief, long) = (Duration::from_millis(10), PATIENCE);
    let good = "GET / HTTP/1.1\r\n\r\n";
    for (idle_timeout, head_timeout, sent, expected) in [
        (long, brief, "GET /v1/gate/a.eth HTTP/1.1\r\nho".to_owned(), &["408"][..]),
        (long, brief, "GET".to_owned(), &["408"]),
        (long, brief, format!("{good}GET"), &["200", "408"]),
        (brief, long, "GET".to_owned(), &["408"]),
        (brief, long, String::new(), &[]),
        (brief, long, good.to_owned(), &["200"]),
        (brief, long, format!("{good}GET"), &["200"]),
    ] {
        let limits = HttpServerConfig { idle_timeout, head_timeout, ..HttpServerConfig::default() };
        let (near, mut far) = duplex(1 << 16);
        tokio::spawn(serve_all(near, limits));
        let ahead_of_the_answer = if expected.len() == 2 { good.len() } else { sent.len() };
        let (first, then) = sent.split_at(ahead_of_the_answer);
        far.write_all(first.as_bytes()).await.expect("the pipe has room");
        let mut said = Vec::new();
        if !then.is_empty() {
            while !said.ends_with(b"\r\n\r\n") {
                far.read_buf(&mut said).await.expect("the pipe is open");
            }
            far.write_all(then.as_bytes()).await.expect("the pipe has room");
        }
        far.read_to_end(&mut said).await.expect("the pipe is open");
        assert_eq!(statuses(&String::from_utf8(said).expect("ASCII")), expected, "{sent:?}");
    }
}

#[tokio::test]
async fn a_body_without_end_is_cut_after_its_answer() {
    for head in ["content-length: 9999999999", "transfer-encoding: chunked\r\n\r\nffffffff"] {
        let (near, mut far) = duplex(1 << 12);
        let served = tokio::spawn(serve_all(near, limits()));
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
        reader.read_to_string(&mut said).await.expect("the pipe is open");
        assert_eq!(statuses(&said), ["200"]);
        served.await.expect("no panic");
        let sent = sending.await.expect("no panic");
        assert!((LINGER_BYTES..=LINGER_BYTES + (1 << 17)).contains(&sent), "{sent}");
    }
}

#[tokio::test]
async fn a_client_that_keeps_its_side_open_is_left_after_a_time() {
    let (near, mut far) = duplex(1 << 12);
    linger_before_close(near, Duration::from_millis(10)).await;
    let mut said = String::new();
    far.read_to_string(&mut said).await.expect("the pipe is open");
    assert_eq!(said, "");
}

/// A client that reads nothing holds its connection for the duration of the write timeout, and no longer.
#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_left() {
    let (near, mut far) = duplex(64);
    let limits = HttpServerConfig { read_timeout: Duration::from_millis(10), ..limits() };
    let handle = async |_: Request<Body>| Response::new(Body::from(vec![b'x'; 1 << 20]));
    let (_end, ended) = watch::channel(false);
    far.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("the pipe has room");
    let activity = Arc::new(ConnectionActivity::new());
    let served = timeout(STALLED, serve_connection(near, &limits, &activity, handle, ended))
        .await
        .expect("the connection is left");
    assert!(served.is_err(), "an answer that was not read was not given");
}

#[tokio::test]
async fn a_connection_whose_body_does_not_come_makes_room() {
    let (near, mut far) = duplex(1 << 20);
    let activity = Arc::new(ConnectionActivity::new());
    let handle = async |request: Request<Body>| {
        activity.begin_request(false);
        let _ = axum::body::to_bytes(request.into_body(), 16).await;
        Response::new(Body::empty())
    };
    far.write_all(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n{").await.expect("the pipe has room");
    let (_end, ended) = watch::channel(false);
    let limits = limits();
    let stalls = async {
        while activity.head_deadline(PATIENCE, PATIENCE).is_some() || activity.eviction_rank().is_none() {
            tokio::task::yield_now().await;
        }
        activity.request_close();
    };
    let (served, ()) =
        timeout(STALLED, async { tokio::join!(serve_connection(near, &limits, &activity, handle, ended), stalls) })
            .await
            .expect("it waits for its client");
    served.expect("it ends in order");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_lingers_makes_room() {
    let (near, mut far) = duplex(1 << 20);
    let activity = Arc::new(ConnectionActivity::new());
    let handle = async |_: Request<Body>| Response::new(Body::empty());
    let (_end, ended) = watch::channel(false);
    let limits = limits();
    let client = async {
        far.write_all(b"no head\r\n\r\n").await.expect("the pipe has room");
        let mut answer = String::new();
        far.read_to_string(&mut answer).await.expect("the pipe is open");
        activity.request_close();
        answer
    };
    let began = Instant::now();
    let (_, answer) = tokio::join!(serve_connection(near, &limits, &activity, handle, ended), client);
    assert_eq!(statuses(&answer), ["400"]);
    assert!(began.elapsed() < LINGER_TIME, "it reads on for a client that has its answer");
}

/// Requests pipelined after the one in progress are not read, and its response is not lost.
#[tokio::test]
async fn a_connection_that_makes_room_gives_the_answer_in_work_and_no_other() {
    let (near, mut far) = duplex(1 << 20);
    let (activity, go) = (Arc::new(ConnectionActivity::new()), Notify::new());
    let handle = async |_: Request<Body>| {
        activity.begin_request(true);
        go.notified().await;
        Response::new(Body::from("first"))
    };
    let (_end, ended) = watch::channel(false);
    let limits = limits();
    let client = async {
        far.write_all(&b"GET /v1/gate/a.eth HTTP/1.1\r\n\r\n".repeat(3)).await.expect("the pipe has room");
        while activity.evictable_request_start().is_none() {
            tokio::task::yield_now().await;
        }
        activity.request_close();
        while !activity.closes_after_response() {
            tokio::task::yield_now().await;
        }
        go.notify_one();
        let mut answers = String::new();
        far.read_to_string(&mut answers).await.expect("it is closed in order");
        answers
    };
    let (served, answers) =
        timeout(STALLED, async { tokio::join!(serve_connection(near, &limits, &activity, handle, ended), client) })
            .await
            .expect("it ends");
    served.expect("it ends in order");
    assert!(answers.contains("connection: close\r\n") && answers.ends_with("\r\n\r\nfirst"), "{answers}");
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
    fn whatever_is_sent_gets_an_answer_of_the_handler_or_a_bare_4xx(
        fragments in prop::collection::vec(fragment(), 0..14)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        statuses(&runtime.block_on(answers_to(&fragments.concat())));
    }
}
