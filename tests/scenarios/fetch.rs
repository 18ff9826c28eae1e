//! Outbound fetches of trusted and untrusted URLs, against honest and hostile servers on loopback.

#[path = "fetch/gateways.rs"]
mod gateways;
#[path = "fetch/guard.rs"]
mod guard;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::address;
use async_trait::async_trait;
use bytes::Bytes;
use clresolve_chain::ccip::{CcipReadGatewayClient, CcipReadRequest};
use clresolve_resolver::fetch::ccip::GuardedCcipReadGatewayClient;
use clresolve_resolver::fetch::https::{self, CARD_LIMIT, FetchLimits, FetchedDocument};
use clresolve_resolver::fetch::{
    AddressLookup, Egress, EgressConfig, EgressSetupError, EgressViolation, FetchError, ForbiddenUrlError,
    SourceUnavailableError,
};
use clresolve_state::MAX_LOOK_UP_BYTES;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

use crate::support::faults::SHORT;
use crate::support::server::{Answer, Server, answer, canary, gzip, ok, redirect, status};

/// For what should succeed: never waited for.
const AMPLE: Duration = Duration::from_secs(30);

// --- the foreign class ---

const NAME: &str = "cards.example";

/// A config under which `https://cards.example/` leads to the server.
fn toward(server: &Server) -> EgressConfig {
    EgressConfig {
        connect_to: vec![server.detour("cards.example:443").parse().unwrap()],
        extra_roots: vec![server.root.clone()],
        ..EgressConfig::default()
    }
}

async fn world(handler: impl Fn(&str) -> Answer + Send + Sync + 'static) -> (Server, Egress) {
    let server = Server::tls(&[NAME], handler).await;
    let egress = Egress::new(toward(&server)).unwrap();
    (server, egress)
}

async fn get(egress: &Egress, url: &str) -> Result<FetchedDocument, FetchError> {
    https::fetch_document(egress, url, FetchLimits { total: AMPLE, ..FetchLimits::for_card() }).await
}

/// What comes of a card whose server answers so.
async fn outcome(handler: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Result<Bytes, FetchError> {
    let (_server, egress) = world(handler).await;
    get(&egress, "https://cards.example/card.json").await.map(|body| body.bytes)
}

fn unavailable(cause: SourceUnavailableError) -> FetchError {
    FetchError::Unavailable(cause)
}

fn refusal(error: FetchError) -> (u8, EgressViolation) {
    match error {
        FetchError::Forbidden(ForbiddenUrlError { hop, why, .. }) => (hop, why),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn gets_a_card() {
    let (server, egress) = world(|_| ok(b"{}")).await;
    let body = get(&egress, "https://cards.example/a/card.json?x=1#y").await.unwrap();
    let caching = body.caching.clone();
    let expected = FetchedDocument {
        bytes: Bytes::from_static(b"{}"),
        final_url: "https://cards.example/a/card.json?x=1".parse().unwrap(),
        hops: 0,
        content_type: Some("application/json".to_owned()),
        caching,
    };
    assert_eq!(body, expected);
    let endless = FetchLimits { bytes: 2, total: Duration::MAX, ..FetchLimits::for_card() };
    assert_eq!(https::fetch_document(&egress, "https://cards.example/", endless).await.unwrap().bytes, "{}");
    assert_eq!(server.paths(), ["/a/card.json?x=1", "/"]);
    assert!(server.heads()[0].to_ascii_lowercase().contains("\r\nhost: cards.example\r\n"));
}

/// A scripted resolver.
#[derive(Default)]
struct Names {
    addresses: BTreeMap<&'static str, Vec<&'static str>>,
    asked: AtomicUsize,
}

impl Names {
    fn of(name: &'static str, addresses: &[&'static str]) -> Arc<Self> {
        Arc::new(Self { addresses: BTreeMap::from([(name, addresses.to_vec())]), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl AddressLookup for Names {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let addresses = self.addresses.get(host).ok_or(io::ErrorKind::NotFound)?;
        Ok(addresses.iter().map(|ip| ip.parse().unwrap()).collect())
    }
}

#[tokio::test]
async fn one_bad_address_refuses_the_name() {
    let cases: [(&[&str], &str); 6] = [
        (&["127.0.0.1"], "127.0.0.1"),
        (&["8.8.8.8", "10.0.0.1"], "10.0.0.1"),
        (&["169.254.169.254", "8.8.8.8"], "169.254.169.254"),
        (&["::1"], "::1"),
        (&["::ffff:127.0.0.1"], "::ffff:127.0.0.1"),
        (&["64:ff9b::7f00:1"], "64:ff9b::7f00:1"),
    ];
    for (addresses, bad) in cases {
        let lookup = Names::of("a.example", addresses);
        let egress = Egress::with_lookup(EgressConfig::default(), lookup.clone()).unwrap();
        let error = get(&egress, "https://a.example/").await.unwrap_err();
        assert_eq!(error.to_string(), format!("https://a.example: the address {bad} is not public"));
        assert_eq!(refusal(error), (0, EgressViolation::AddressNotPublic(bad.parse().unwrap())));
        assert_eq!(lookup.asked(), 1);
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_unavailable() {
    for lookup in [Names::of("a.example", &[]), Arc::default()] {
        let egress = Egress::with_lookup(EgressConfig::default(), lookup).unwrap();
        assert_eq!(get(&egress, "https://a.example/").await, Err(unavailable(SourceUnavailableError::Dns)));
    }
}

#[tokio::test]
async fn allow_host_loosens_one_origin_only() {
    let server = Server::tls(&["lab.internal", "127.0.0.1"], |_| ok(b"{}")).await;
    let port = server.address.port();
    let lookup = Names::of("lab.internal", &["127.0.0.1"]);
    let config = EgressConfig {
        allow_host: vec![format!("lab.internal:{port}").parse().unwrap(), format!("127.0.0.1:{port}").parse().unwrap()],
        extra_roots: vec![server.root.clone()],
        ..EgressConfig::default()
    };
    let egress = Egress::with_lookup(config, lookup).unwrap();

    assert_eq!(get(&egress, &format!("https://lab.internal:{port}/")).await.unwrap().bytes, "{}");
    assert!(server.heads()[0].to_ascii_lowercase().contains(&format!("\r\nhost: lab.internal:{port}\r\n")));
    assert_eq!(get(&egress, &format!("https://127.0.0.1:{port}/")).await.unwrap().bytes, "{}");

    let cases = [
        (format!("http://lab.internal:{port}/"), EgressViolation::Scheme),
        ("https://lab.internal/".to_owned(), EgressViolation::HostNotPublic),
        (format!("https://other.internal:{port}/"), EgressViolation::HostNotPublic),
        (format!("https://a.example:{port}/"), EgressViolation::Port(port)),
        ("https://127.0.0.1/".to_owned(), EgressViolation::IpLiteral),
        (format!("https://127.0.0.2:{port}/"), EgressViolation::IpLiteral),
    ];
    for (url, why) in cases {
        assert_eq!(refusal(get(&egress, &url).await.unwrap_err()), (0, why), "{url}");
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn connect_to_keeps_the_name_and_leads_elsewhere() {
    let server = Server::tls(&[NAME], |_| ok(b"{}")).await;
    let config = EgressConfig {
        connect_to: vec![
            server.detour("cards.example:443").parse().unwrap(),
            server.detour("cards.example:9443").parse().unwrap(),
            server.detour("other.example:443").parse().unwrap(),
            format!("cards.example:8443:lab.internal:{}", server.address.port()).parse().unwrap(),
        ],
        extra_roots: vec![server.root.clone()],
        ..EgressConfig::default()
    };
    let egress = Egress::with_lookup(config, Names::of("lab.internal", &["127.0.0.1"])).unwrap();
    for (url, host) in [
        ("https://cards.example/", "cards.example"),
        ("https://cards.example./", "cards.example"),
        ("https://cards.example:9443/", "cards.example:9443"),
        ("https://cards.example:8443/", "cards.example:8443"),
    ] {
        assert_eq!(get(&egress, url).await.unwrap().bytes, "{}", "{url}");
        let head = server.heads().pop().unwrap().to_ascii_lowercase();
        assert!(head.contains(&format!("\r\nhost: {host}\r\n")), "{head}");
    }
    let error = get(&egress, "https://other.example/").await.unwrap_err();
    assert!(
        matches!(error, FetchError::Unavailable(SourceUnavailableError::Tls(_))),
        "the certificate is not for this name: {error:?}"
    );
    assert_eq!(server.heads().len(), 4);
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let server = Server::tls(&[NAME], |_| ok(b"{}")).await;
    let egress = Egress::new(EgressConfig { extra_roots: vec![canary_root().await], ..toward(&server) }).unwrap();
    let error = get(&egress, "https://cards.example/").await.unwrap_err();
    assert!(
        matches!(&error, FetchError::Unavailable(SourceUnavailableError::Tls(why)) if why.contains("certificate")),
        "{error:?}"
    );
    assert_eq!(server.heads().len(), 0);
}

/// A trust root that signed nothing here.
async fn canary_root() -> Bytes {
    Server::tls(&["unrelated.example"], |_| ok(b"")).await.root
}

#[test]
fn extra_roots_are_checked_at_once() {
    let with = |pem: &'static str| {
        Egress::new(EgressConfig { extra_roots: vec![pem.into()], ..EgressConfig::default() }).map(|_| ())
    };
    assert_eq!(with(""), Err(EgressSetupError::NotPem(0)));
    assert_eq!(with("not PEM at all"), Err(EgressSetupError::NotPem(0)));
    let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(with(bad), Err(EgressSetupError::NotAnAnchor(0)));
}

#[tokio::test]
async fn own_listeners_are_out_of_reach() {
    let server = Server::tls(&[NAME], |_| ok(b"{}")).await;
    let port = server.address.port();
    for denied in [server.address, format!("0.0.0.0:{port}").parse().unwrap()] {
        let config = EgressConfig {
            denied: vec![denied],
            allow_host: vec![format!("127.0.0.1:{port}").parse().unwrap()],
            ..toward(&server)
        };
        let egress = Egress::with_lookup(config, Names::of("self.example", &["127.0.0.1"])).unwrap();
        for url in ["https://cards.example/".to_owned(), format!("https://127.0.0.1:{port}/")] {
            assert_eq!(refusal(get(&egress, &url).await.unwrap_err()), (0, EgressViolation::OwnListener), "{url}");
        }
        for url in [format!("http://127.0.0.1:{port}/"), format!("http://self.example:{port}/")] {
            let url: Url = url.parse().unwrap();
            let client = egress.single_origin_client(&url).unwrap();
            let error = client.get(&url, "*/*", 100, AMPLE).await.unwrap_err();
            assert_eq!(refusal(error), (0, EgressViolation::OwnListener), "{url}");
        }
    }
    assert_eq!(server.connections(), 0);
}

/// Runs [`gets_a_card`] in a process whose environment names a proxy.
#[tokio::test]
async fn ignores_the_proxies_of_the_environment() {
    let proxy = canary().await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "fetch::gets_a_card"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        child.env(name, format!("http://{}", proxy.address));
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(proxy.connections(), 0);
}

// --- redirects ---

#[tokio::test]
async fn follows_three_redirects() {
    let (server, egress) = world(|head| match head.split(' ').nth(1).unwrap() {
        "/0" => redirect("https://cards.example/a/1"),
        "/a/1" => redirect("2"),
        "/a/2" => redirect("//cards.example/3#top"),
        "/3" => ok(b"{}"),
        _ => status("404 Not Found"),
    })
    .await;
    let body = get(&egress, "https://cards.example/0").await.unwrap();
    assert_eq!((body.hops, body.final_url.as_str()), (3, "https://cards.example/3"));
    assert_eq!(server.paths(), ["/0", "/a/1", "/a/2", "/3"]);
}

#[tokio::test]
async fn gives_up_on_loops_and_long_chains() {
    let (server, egress) = world(|head| match head.split(' ').nth(1).unwrap() {
        "/self" => redirect("#again"),
        "/a" => redirect("/b"),
        "/b" => redirect("/a"),
        "/nowhere" => Answer::Whole(answer("302 Found", "", b"")),
        "/broken" => redirect("https://["),
        path => redirect(&format!("{path}x")),
    })
    .await;
    let cases = [
        ("self", SourceUnavailableError::RedirectLoop, 1),
        ("a", SourceUnavailableError::RedirectLoop, 2),
        ("nowhere", SourceUnavailableError::Status(302), 1),
        ("broken", SourceUnavailableError::Status(302), 1),
        ("x", SourceUnavailableError::TooManyRedirects, 4),
    ];
    let mut requests = 0;
    for (path, cause, more) in cases {
        assert_eq!(get(&egress, &format!("https://cards.example/{path}")).await, Err(unavailable(cause)), "{path}");
        requests += more;
        assert_eq!(server.heads().len(), requests, "{path}");
    }
}

#[tokio::test]
async fn a_forbidden_hop_is_named_and_not_asked() {
    let canary = canary().await;
    let port = canary.address.port();
    let cases = [
        (format!("https://127.0.0.1:{port}/"), format!("https://127.0.0.1:{port}"), EgressViolation::IpLiteral),
        ("https://10.0.0.1/x".to_owned(), "https://10.0.0.1".to_owned(), EgressViolation::IpLiteral),
        (
            "https://169.254.169.254/latest/".to_owned(),
            "https://169.254.169.254".to_owned(),
            EgressViolation::IpLiteral,
        ),
        (format!("http://127.0.0.1:{port}/"), format!("http://127.0.0.1:{port}"), EgressViolation::Scheme),
        ("http://cards.example/".to_owned(), "http://cards.example".to_owned(), EgressViolation::Scheme),
        ("https://key:word@cards.example/".to_owned(), "https://cards.example".to_owned(), EgressViolation::UserInfo),
        ("file:///etc/passwd".to_owned(), "file://".to_owned(), EgressViolation::Scheme),
        ("https://localhost/".to_owned(), "https://localhost".to_owned(), EgressViolation::HostNotPublic),
        (
            format!("https://cards.example:{port}/"),
            format!("https://cards.example:{port}"),
            EgressViolation::Port(port),
        ),
        (
            "https://inside.example/".to_owned(),
            "https://inside.example".to_owned(),
            EgressViolation::AddressNotPublic([127, 0, 0, 1].into()),
        ),
        (format!("/{}", "x".repeat(2048)), "the URL".to_owned(), EgressViolation::TooLong(2048)),
    ];
    for (location, target, why) in cases {
        let leads_to = location.clone();
        let server = Server::tls(&[NAME], move |head| match head.split(' ').nth(1).unwrap() {
            "/" => redirect("/first"),
            _ => redirect(&leads_to),
        })
        .await;
        let lookup = Names::of("inside.example", &["127.0.0.1"]);
        let egress = Egress::with_lookup(toward(&server), lookup).unwrap();
        let error = get(&egress, "https://cards.example/").await.unwrap_err();
        assert_eq!(error, FetchError::Forbidden(ForbiddenUrlError { hop: 2, target, why }), "{location}");
        assert!(error.to_string().starts_with("redirect hop 2: "), "{error}");
    }
    assert_eq!(canary.connections(), 0);
}

// --- statuses, sizes, faults ---

#[tokio::test]
async fn keys_stay_with_the_origin_that_was_named() {
    let (server, egress) = world(|_| redirect("https://evil.example/keys.json")).await;
    let limits = FetchLimits { total: AMPLE, ..FetchLimits::for_key_set() };
    let error = https::fetch_document(&egress, "https://cards.example/keys.json", limits).await.unwrap_err();
    assert_eq!(refusal(error), (1, EgressViolation::AnotherOrigin));
    assert_eq!(server.paths(), ["/keys.json"]);
}

#[tokio::test]
async fn only_a_whole_success_counts() {
    for (line, code) in [
        ("204 No Content", 204),
        ("206 Partial Content", 206),
        ("304 Not Modified", 304),
        ("404 Not Found", 404),
        ("429 Too Many Requests", 429),
        ("500 Oops", 500),
    ] {
        assert_eq!(
            outcome(move |_| status(line)).await,
            Err(unavailable(SourceUnavailableError::Status(code))),
            "{line}"
        );
    }
    assert_eq!(outcome(|_| Answer::Whole(answer("203 Other", "", b"{}"))).await.unwrap(), "{}");
}

fn zipped(body: &[u8]) -> Answer {
    Answer::Whole(answer("200 OK", "Content-Encoding: gzip\r\n", &gzip(body)))
}

#[tokio::test]
async fn the_body_is_capped_on_both_sides_of_its_coding() {
    let oversize = Err(FetchError::Oversize { limit: CARD_LIMIT });
    let brim = vec![b'x'; CARD_LIMIT];
    assert_eq!(outcome(|_| ok(&[b'x'; CARD_LIMIT])).await.unwrap(), brim);
    assert_eq!(outcome(|_| zipped(&[b'x'; CARD_LIMIT])).await.unwrap(), brim);
    assert_eq!(outcome(|_| ok(&[b'x'; CARD_LIMIT + 1])).await, oversize);
    assert_eq!(outcome(|_| zipped(&[b'x'; CARD_LIMIT + 1])).await, oversize, "a bomb");

    let head = "HTTP/1.1 200 OK\r\n";
    let endless = move |headers: &str, piece: Vec<u8>| {
        let head = format!("{head}{headers}\r\n").into_bytes();
        move |_: &str| Answer::Endless(head.clone(), piece.clone())
    };
    assert_eq!(outcome(endless("", vec![b'x'; 1000])).await, oversize, "an endless body");
    let chunked = "Transfer-Encoding: chunked\r\n";
    let chunks = b"3\r\nabc\r\n".repeat(1000);
    assert_eq!(outcome(endless(chunked, chunks)).await, oversize, "endless chunks");
    let members = gzip(b"").repeat(100);
    assert_eq!(outcome(endless("Content-Encoding: gzip\r\n", members)).await, oversize, "endless empty members");
    let lie = "Content-Length: 9007199254740992\r\n";
    assert_eq!(outcome(endless(lie, vec![b'x'; 1000])).await, oversize, "an absurd length");
}

#[tokio::test]
async fn faults_are_told_apart() {
    let promised = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{body}").into_bytes();
    let bare = |body: &str| format!("HTTP/1.1 200 OK\r\n\r\n{body}").into_bytes();
    let flood = || [b"HTTP/1.1 200 OK\r\n".to_vec(), b"X-Flood: 0123456789\r\n".repeat(200)].concat();
    let wide = || answer("200 OK", &format!("X-Wide: {}\r\n", "x".repeat(40_000)), b"{}");
    let short_zip = || answer("200 OK", "Content-Encoding: gzip\r\n", &gzip(b"a text of some length")[..20]);
    let coded = |coding: &str| answer("200 OK", &format!("Content-Encoding: {coding}\r\n"), b"some text, not coded");

    let cases = [
        ("a short body", Answer::Whole(promised("{")), SourceUnavailableError::Truncated),
        ("a cut body", Answer::Cut(promised("{")), SourceUnavailableError::Truncated),
        ("a cut body of unknown length", Answer::Cut(bare("{}")), SourceUnavailableError::Truncated),
        ("a short gzip body", Answer::Whole(short_zip()), SourceUnavailableError::Truncated),
        ("gzip that is none", Answer::Whole(coded("gzip")), SourceUnavailableError::Encoding),
        ("a coding that was not asked for", Answer::Whole(coded("br")), SourceUnavailableError::Encoding),
        (
            "a second coding on a line of its own",
            Answer::Whole(coded("identity\r\nContent-Encoding: gzip")),
            SourceUnavailableError::Encoding,
        ),
        ("no head", Answer::Whole(Vec::new()), SourceUnavailableError::Truncated),
        ("half a head", Answer::Cut(b"HTTP/1.1 200".to_vec()), SourceUnavailableError::Truncated),
        ("garbage", Answer::Whole(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()), SourceUnavailableError::Head),
        ("a flood of headers", Answer::Endless(flood(), b"X: y\r\n".to_vec()), SourceUnavailableError::Head),
        ("a wide header", Answer::Whole(wide()), SourceUnavailableError::Head),
        (
            "an endless header",
            Answer::Endless(b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 4096]),
            SourceUnavailableError::Head,
        ),
    ];
    for (what, answer, cause) in cases {
        let once = Mutex::new(Some(answer));
        let got = outcome(move |_| once.lock().unwrap().take().unwrap_or_else(|| Answer::Cut(Vec::new()))).await;
        assert_eq!(got, Err(unavailable(cause)), "{what}");
    }
}

#[tokio::test]
async fn stalls_end_at_the_time_limit() {
    let heads = ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n{"];
    for head in heads {
        let (_server, egress) = world(move |_| Answer::Stall(head.into())).await;
        let got = https::fetch_document(
            &egress,
            "https://cards.example/",
            FetchLimits { total: SHORT, ..FetchLimits::for_card() },
        )
        .await;
        assert_eq!(got, Err(unavailable(SourceUnavailableError::Timeout)), "{head:?}");
    }

    let (server, _) = world(|_| Answer::Stall(Vec::new())).await;
    let egress = Egress::new(EgressConfig { head_timeout: SHORT, ..toward(&server) }).unwrap();
    assert_eq!(
        get(&egress, "https://cards.example/").await,
        Err(unavailable(SourceUnavailableError::Timeout)),
        "before the head"
    );

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let detour = format!("cards.example:443:{}", silent.local_addr().unwrap()).parse().unwrap();
    let config = EgressConfig { connect_to: vec![detour], connect_timeout: SHORT, ..EgressConfig::default() };
    let egress = Egress::new(config).unwrap();
    assert_eq!(
        get(&egress, "https://cards.example/").await,
        Err(unavailable(SourceUnavailableError::Timeout)),
        "in the handshake"
    );
}

#[tokio::test]
async fn nobody_there_and_no_tls_are_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let config = |address: SocketAddr| EgressConfig {
        connect_to: vec![format!("cards.example:443:{address}").parse().unwrap()],
        ..EgressConfig::default()
    };
    let egress = Egress::new(config(closed)).unwrap();
    assert_eq!(get(&egress, "https://cards.example/").await, Err(unavailable(SourceUnavailableError::Connect)));

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let egress = Egress::new(config(listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        let (mut stream, _): (TcpStream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let error = get(&egress, "https://cards.example/").await.unwrap_err();
    assert!(matches!(error, FetchError::Unavailable(SourceUnavailableError::Tls(_))), "{error:?}");
}

// --- the operator's class ---

#[tokio::test]
async fn the_operator_may_name_any_origin_but_only_that_one() {
    let server = Server::plain(|head| match head.split(' ').nth(1).unwrap() {
        "/rpc?key=1" => ok(b"{\"result\":1}"),
        "/away" => redirect("/rpc?key=1"),
        "/big" => ok(&[b'x'; 101]),
        _ => status("503 Busy"),
    })
    .await;
    let other = canary().await;
    let egress = Egress::new(EgressConfig::default()).unwrap();
    let client = egress.single_origin_client(&server.url()).unwrap();
    let post = async |url: Url| client.post_json(&url, Bytes::from_static(b"{\"id\":1}"), 100, AMPLE).await;

    let rpc = server.url().join("/rpc?key=1").unwrap();
    assert_eq!(post(rpc).await.unwrap().body, "{\"result\":1}");
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(
        head.starts_with("post ") && head.contains("content-type: application/json") && head.ends_with("{\"id\":1}")
    );

    assert_eq!(post(server.url().join("away").unwrap()).await.unwrap().status, 302);
    assert_eq!(post(server.url().join("big").unwrap()).await, Err(FetchError::Oversize { limit: 100 }));
    assert_eq!(post(server.url().join("else").unwrap()).await.unwrap().status, 503);
    let error = post(other.url()).await.unwrap_err();
    assert_eq!(error.to_string(), "the configured endpoint: not the configured origin");
    assert_eq!(refusal(error), (0, EgressViolation::OtherOrigin));
    assert_eq!(other.connections(), 0);
    assert_eq!(egress.single_origin_client(&"file:///x".parse().unwrap()).unwrap_err(), EgressViolation::Scheme);
}

#[tokio::test]
async fn detours_and_names_work_for_the_operator_too() {
    let server = Server::plain(|_| ok(b"1")).await;
    let port = server.address.port();
    let config = EgressConfig {
        connect_to: vec![server.detour("rpc.example:8545").parse().unwrap()],
        ..EgressConfig::default()
    };
    let egress = Egress::with_lookup(config, Names::of("node", &["127.0.0.1"])).unwrap();
    for url in ["http://rpc.example:8545/x".to_owned(), format!("http://node:{port}/x")] {
        let url: Url = url.parse().unwrap();
        let got = egress.single_origin_client(&url).unwrap().get(&url, "*/*", 100, AMPLE).await;
        assert_eq!(got.unwrap(), "1", "{url}");
    }
    assert!(server.heads()[0].to_ascii_lowercase().contains("\r\nhost: rpc.example:8545\r\n"));
}

// --- CCIP-Read ---

fn lookup_request(urls: &[&str]) -> CcipReadRequest {
    CcipReadRequest {
        sender: address!("0x00000000000000000000000000000000000000Aa"),
        urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        data: alloy_primitives::Bytes::from_static(&[0xab, 0xcd]),
    }
}

async fn ask(egress: &Egress, urls: &[&str]) -> Result<Vec<u8>, (Option<u16>, String)> {
    let gateway = GuardedCcipReadGatewayClient::new(egress.clone(), AMPLE);
    let asked = gateway.request_first_response(&lookup_request(urls), 100).await;
    asked.map(|data| data.to_vec()).map_err(|error| (error.status, error.message))
}

#[tokio::test]
async fn ccip_read_gets_or_posts() {
    let (server, egress) = world(|_| ok(b"{\"data\":\"0x0102\"}")).await;
    assert_eq!(ask(&egress, &["https://cards.example/{sender}/{data}.json"]).await, Ok(vec![1, 2]));
    assert_eq!(ask(&egress, &["https://cards.example/{sender}"]).await, Ok(vec![1, 2]));
    let heads = server.heads();
    let sender = "0x00000000000000000000000000000000000000aa";
    assert!(heads[0].starts_with(&format!("GET /{sender}/0xabcd.json HTTP/1.1")), "{}", heads[0]);
    assert!(heads[1].starts_with(&format!("POST /{sender} HTTP/1.1")), "{}", heads[1]);
    let body: serde_json::Value = serde_json::from_str(heads[1].split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body, serde_json::json!({ "sender": sender, "data": "0xabcd" }));
}

#[tokio::test]
async fn ccip_read_falls_through_to_the_next_gateway_unless_the_answer_is_final() {
    let (server, egress) = world(|head| match head.split(' ').nth(1).unwrap() {
        "/good" => ok(b"{\"data\":\"0x01\",\"more\":[]}"),
        "/busy" => status("503 Busy"),
        "/missing" => status("404 Not Found"),
        "/away" => redirect("/good"),
        "/none" => status("204 No Content"),
        "/created" => Answer::Whole(answer("201 Created", "", b"{\"data\":\"0x02\"}")),
        "/odd" => ok(b"{\"data\":12}"),
        "/long" => ok(format!("{{\"data\":\"0x{}\"}}", "00".repeat(101)).as_bytes()),
        _ => ok(&[b' '; 10_000]),
    })
    .await;
    let url = |path: &str| format!("https://cards.example/{path}");
    for bad in ["busy", "away", "none", "odd", "long", "huge"] {
        assert_eq!(ask(&egress, &[&url(bad), &url("good")]).await, Ok(vec![1]), "{bad}");
    }
    assert_eq!(ask(&egress, &["http://cards.example/", "nonsense", &url("good")]).await, Ok(vec![1]));

    let final_answer = ask(&egress, &[&url("missing"), &url("good")]).await;
    assert_eq!(final_answer, Err((Some(404), "HTTP status 404".to_owned())));
    assert_eq!(server.paths().last().unwrap(), "/missing");
    assert_eq!(ask(&egress, &[&url("created"), &url("good")]).await, Ok(vec![2]));
    for (bad, code) in [("busy", 503), ("away", 302), ("none", 204)] {
        assert_eq!(ask(&egress, &[&url(bad)]).await, Err((Some(code), format!("HTTP status {code}"))), "{bad}");
    }
    assert_eq!(
        ask(&egress, &["http://cards.example/"]).await,
        Err((None, "http://cards.example: the scheme is not allowed".to_owned()))
    );
    assert_eq!(ask(&egress, &[]).await, Err((None, "the contract names no gateway".to_owned())));
    assert!(ask(&egress, &[url("good").as_str(); 9]).await.is_err());
}

/// Gateways that stall in long answers take the memory of four of them, and keep nobody waiting for a short one.
#[tokio::test]
async fn long_answers_of_ccip_read_gateways_share_one_budget() {
    let answer = |bytes: usize| format!("{{\"data\":\"0x{}\"}}", "00".repeat(bytes)).into_bytes();
    let (_server, egress) = world(move |head| match head.split(' ').nth(1).unwrap() {
        "/stalls" => Answer::Stall([&b"HTTP/1.1 200 OK\r\n\r\n"[..], &answer(MAX_LOOK_UP_BYTES)].concat()),
        "/long" => ok(&answer(MAX_LOOK_UP_BYTES)),
        _ => ok(&answer(100)),
    })
    .await;
    let gateway = GuardedCcipReadGatewayClient::new(egress, AMPLE);
    let ask = |path: &str| {
        let (gateway, request) = (gateway.clone(), lookup_request(&[&format!("https://cards.example{path}")]));
        async move { gateway.request_first_response(&request, MAX_LOOK_UP_BYTES).await }
    };
    let stalling: Vec<_> = (0..4).map(|_| tokio::spawn(ask("/stalls"))).collect();
    let until_one_waits = async { while timeout(SHORT, ask("/long")).await.is_ok() {} };
    timeout(AMPLE, until_one_waits).await.expect("those that stall have the whole budget");
    assert_eq!(ask("/short").await.expect("it waits for nothing").len(), 100);
    for task in stalling {
        task.abort();
        let _ = task.await;
    }
    ask("/long").await.expect("the budget was given back");
}

#[tokio::test]
async fn ccip_read_can_be_switched_off() {
    let error = GuardedCcipReadGatewayClient::refusing_all()
        .request_first_response(&lookup_request(&["https://cards.example/"]), 100)
        .await
        .unwrap_err();
    assert_eq!(error.message, EgressViolation::Disabled.to_string());
}
