//! IPFS gateways, honest and in every way not.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use clresolve_ipfs::build::write_car;
use clresolve_ipfs::{ContentId, DagWalkBudget, DagWalkError, ProvenContentDefect, UnixFsPath};
use clresolve_resolver::fetch::ipfs::{
    BAN, HedgeDelay, IpfsClient, IpfsGateway, IpfsGatewayFault, IpfsRetrieval, IpfsRetrievalRequest,
};
use clresolve_resolver::fetch::{
    Egress, EgressConfig, EgressViolation, FetchError, ForbiddenUrlError, SourceUnavailableError,
};
use jiff::Timestamp;
use tokio::net::TcpListener;

use super::{AMPLE, NAME, toward, unavailable};
use crate::support::faults::{Content, Ends, FAULTS, GatewayQuery, SHORT, as_car, as_raw, is_car};
use crate::support::server::{ANYWHERE, Answer, Server, answer, canary, ok, redirect, status};

/// Serves blocks one by one.
fn blocks(head: &str) -> Answer {
    Content::new().raw(head)
}

fn honest(head: &str) -> Answer {
    Content::new().honest(head)
}

fn gateway(label: &str, server: &Server) -> IpfsGateway {
    IpfsGateway { label: label.to_owned(), url: server.url(), own: false }
}

/// A client that asks one gateway after the other.
fn ipfs(servers: &[&Server]) -> IpfsClient {
    hedged(servers, IN_TURN)
}

fn hedged(servers: &[&Server], hedging: HedgeDelay) -> IpfsClient {
    let labels = ["first", "second", "third"];
    let gateways = labels.iter().zip(servers).map(|(label, server)| gateway(label, server)).collect();
    IpfsClient::new(&Egress::new(EgressConfig::default()).unwrap(), gateways, hedging).unwrap()
}

/// The time is an argument, and any will do.
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// So patient that a busy machine asks nobody else.
const IN_TURN: HedgeDelay = HedgeDelay::After(AMPLE);

async fn retrieve(client: &IpfsClient, path: &str, known: &[Bytes], now: Timestamp) -> IpfsRetrieval {
    let path = UnixFsPath::parse_literal(path).unwrap();
    let want = IpfsRetrievalRequest {
        cid: Content::new().root,
        path: &path,
        known,
        budget: DagWalkBudget::for_agent_card(),
        total: AMPLE,
    };
    client.retrieve(&want, now).await
}

async fn card_from(servers: &[&Server]) -> IpfsRetrieval {
    retrieve(&ipfs(servers), "agents/a b.json", &[], NOW).await
}

fn proven(retrieval: &IpfsRetrieval) -> Bytes {
    match &retrieval.ended {
        Ok(proven) => proven.bytes.clone(),
        other => panic!("{other:?}, {:?}", retrieval.failures),
    }
}

/// What a retrieval without a file proves; `None` where blocks were missing.
fn refuted(retrieval: &IpfsRetrieval) -> Option<ProvenContentDefect> {
    retrieval.ended.as_ref().expect_err("there is no file").proven_content_defect()
}

/// More than an answer takes: a rest counts from it.
const ANSWERED: Duration = Duration::from_secs(30);

#[tokio::test]
async fn one_car_proves_path_and_file() {
    let server = Server::plain(honest).await;
    let got = card_from(&[&server]).await;
    assert_eq!(proven(&got), Content::new().card);
    assert_eq!((got.requests, got.failures, got.liars), (1, vec![], vec![]));
    let root = Content::new().root;
    assert_eq!(server.paths(), [format!("/ipfs/{root}/agents/a%20b.json?format=car&dag-scope=entity")]);
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(head.contains("accept: application/vnd.ipld.car;version=1;order=dfs;dups=n\r\n"), "{head}");
}

#[tokio::test]
async fn what_no_car_gives_comes_block_by_block() {
    let content = Content::new();
    let all = content.car();
    let cut = all[..all.len() - 60].to_vec();
    let cars: [(&str, Answer); 6] = [
        ("404", status("404 Not Found")),
        ("a page", ok(b"<html>")),
        ("an empty answer", as_car(b"")),
        ("a redirect", redirect("https://elsewhere.example/")),
        ("a short CAR", as_car(&cut)),
        ("a cut CAR", Answer::Cut([&b"HTTP/1.1 200 OK\r\n\r\n"[..], &cut].concat())),
    ];
    for (what, car) in cars {
        let car = Mutex::new(Some(car));
        let server = Server::plain(move |head| match is_car(head) {
            true => car.lock().unwrap().take().unwrap(),
            false => blocks(head),
        })
        .await;
        let got = card_from(&[&server]).await;
        assert_eq!(proven(&got), content.card, "{what}");
        assert!(got.requests > 1, "{what}");
        assert_eq!((got.failures, got.liars), (vec![], vec![]), "{what}");
    }
}

#[tokio::test]
async fn reading_stops_once_the_walk_is_over() {
    let server = Server::plain(|_| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.ipld.car\r\n\r\n".to_vec();
        Answer::Endless([head, Content::new().car()].concat(), vec![0xff; 1000])
    })
    .await;
    assert_eq!(proven(&card_from(&[&server]).await), Content::new().card);
}

/// A CAR whose every block is changed in its last byte.
fn lying(head: &str) -> Answer {
    let mut content = Content::new();
    if !is_car(head) {
        return as_raw(b"something else");
    }
    for block in content.blocks.values_mut() {
        let mut changed = block.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        *block = changed.into();
    }
    as_car(&content.car())
}

#[tokio::test]
async fn a_liar_is_named_banned_and_replaced() {
    let root = Content::new().root;
    let only_lying_blocks = |head: &str| {
        if is_car(head) { status("404 Not Found") } else { lying(head) }
    };
    for liar in [Server::plain(lying).await, Server::plain(only_lying_blocks).await] {
        let good = Server::plain(honest).await;
        let client = ipfs(&[&liar, &good]);

        let got = retrieve(&client, "agents/a b.json", &[], NOW).await;
        assert_eq!(proven(&got), Content::new().card);
        assert_eq!(got.liars, [("first".to_owned(), root)]);
        assert_eq!(got.failures, [("first".to_owned(), IpfsGatewayFault::WrongBlock(Box::new(root)))]);

        let asked = liar.heads().len();
        let got = retrieve(&client, "agents/a b.json", &[], NOW + BAN - Duration::from_secs(1)).await;
        assert_eq!(proven(&got), Content::new().card);
        assert_eq!((got.failures, got.liars), (vec![("first".to_owned(), IpfsGatewayFault::Resting)], vec![]));
        assert_eq!(liar.heads().len(), asked, "banned");

        retrieve(&client, "agents/a b.json", &[], NOW + BAN + ANSWERED).await;
        assert!(liar.heads().len() > asked, "asked again after the ban");
    }
}

/// A whole tree of the gateway's own: each of its blocks has the hash by which its parent links to it. Only the root is
/// another one, or the first block of the tree below the genuine root.
#[tokio::test]
async fn a_gateway_with_a_tree_of_its_own_is_refused_at_the_root_and_below_a_genuine_one() {
    let own = || Content::of(b"another card");
    let of_its_own_root = move |head: &str| own().passed_off(&Content::new(), 0, head);
    let below_a_genuine_root = move |head: &str| own().passed_off(&Content::new(), 1, head);
    let along = Content::new().along().into_iter().map(|(cid, _)| cid);
    let liars = [Server::plain(of_its_own_root).await, Server::plain(below_a_genuine_root).await];
    for (liar, lie) in liars.iter().zip(along) {
        let good = Server::plain(honest).await;
        let alone = card_from(&[liar]).await;
        assert_eq!(alone.ended, Err(DagWalkError::Incomplete { cid: Box::new(lie) }));
        let beside = card_from(&[liar, &good]).await;
        assert_eq!(proven(&beside), Content::new().card);
        for got in [alone, beside] {
            assert_eq!(got.failures, [("first".to_owned(), IpfsGatewayFault::WrongBlock(Box::new(lie)))]);
            assert_eq!(got.liars, [("first".to_owned(), lie)]);
        }
    }
}

#[tokio::test]
async fn a_page_in_place_of_a_block_is_no_lie() {
    let page =
        || Answer::Whole(answer("200 OK", "Content-Type: text/html; charset=utf-8\r\n", b"<html>please log in</html>"));
    let server = Server::plain(move |_| page()).await;
    let got = card_from(&[&server]).await;
    assert_eq!((refuted(&got), got.liars), (None, vec![]));
    assert_eq!(
        got.failures,
        [("first".to_owned(), IpfsGatewayFault::Fetch(unavailable(SourceUnavailableError::Malformed)))]
    );
}

#[tokio::test]
async fn wrong_bytes_that_call_themselves_a_page_are_a_lie() {
    let lie = || Answer::Whole(answer("200 OK", "Content-Type: text/html\r\n", b"other bytes"));
    let server = Server::plain(move |_| lie()).await;
    let got = card_from(&[&server]).await;
    assert_eq!(got.liars, [("first".to_owned(), Content::new().root)]);
}

#[tokio::test]
async fn the_next_gateway_goes_on_with_what_is_proven() {
    let content = Content::new();
    let root = content.root;
    let first = Server::plain(move |head| match head.contains(&format!("/ipfs/{root}?format=raw")) {
        true => blocks(head),
        false => status("404 Not Found"),
    })
    .await;
    let second = Server::plain(move |head| match is_car(head) || head.contains(&root.to_string()) {
        true => status("404 Not Found"),
        false => blocks(head),
    })
    .await;
    let got = card_from(&[&first, &second]).await;
    assert_eq!(proven(&got), content.card);
    assert_eq!(
        got.failures,
        [("first".to_owned(), IpfsGatewayFault::Fetch(unavailable(SourceUnavailableError::Status(404))))]
    );
}

#[tokio::test]
async fn a_gateway_that_asks_for_rest_gets_it() {
    let dated = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:50:07 GMT\r\n";
    let cases = [
        (429, "Retry-After: 30\r\n", 30),
        (503, dated, 30),
        (503, "", 10),
        (429, "Retry-After: soon\r\n", 10),
        (429, "Retry-After: 99999999999\r\n", 300),
        (429, "Retry-After: Sun, 06 Nov 1994 08:50:07 GMT\r\n", 10),
    ];
    for (status, headers, seconds) in cases {
        let server = Server::plain(move |_| Answer::Whole(answer(&format!("{status} Busy"), headers, b""))).await;
        let client = ipfs(&[&server]);
        let rest = Duration::from_secs(seconds);
        let ask = async |now| retrieve(&client, "agents/a b.json", &[], now).await.failures.remove(0).1;
        assert_eq!(ask(NOW).await, IpfsGatewayFault::Throttled { status, rest }, "{headers}");
        assert_eq!(ask(NOW + rest - Duration::from_millis(1)).await, IpfsGatewayFault::Resting);
        assert_eq!(ask(NOW + rest + ANSWERED).await, IpfsGatewayFault::Throttled { status, rest });
        assert_eq!(server.heads().len(), 2);
    }
}

/// Where requests are paced, a gateway that refused many bears one at once. Who gets no turn in its time leaves word.
#[tokio::test]
async fn a_gateway_without_a_turn_in_time_rests_for_a_moment() {
    let refusals = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::plain(move |_| match refusals.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0..6 => Answer::Whole(answer("429 Busy", "Retry-After: 1\r\n", b"")),
        _ => Answer::Stall(Vec::new()),
    })
    .await;
    let egress = Egress::new(EgressConfig { is_paced: true, ..EgressConfig::default() }).unwrap();
    let client = IpfsClient::new(&egress, vec![gateway("first", &server)], IN_TURN).unwrap();
    let mut now = NOW;
    for _ in 0..6 {
        let fault = retrieve(&client, "agents/a b.json", &[], now).await.failures.remove(0).1;
        assert!(matches!(fault, IpfsGatewayFault::Throttled { .. }), "{fault}");
        now += ANSWERED * 2;
    }
    let path = UnixFsPath::parse_literal("agents/a b.json").unwrap();
    let want = IpfsRetrievalRequest {
        cid: Content::new().root,
        path: &path,
        known: &[],
        budget: DagWalkBudget::for_agent_card(),
        total: SHORT,
    };
    let stalled = retrieve(&client, "agents/a b.json", &[], now);
    let second = async {
        while server.heads().len() < 7 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        client.retrieve(&want, now).await
    };
    let got = tokio::select! {
        _ = stalled => panic!("it ended before the other had its time"),
        got = second => got,
    };
    assert_eq!(
        got.failures,
        [("first".to_owned(), IpfsGatewayFault::Fetch(unavailable(SourceUnavailableError::NoTurn)))]
    );
    assert_eq!((server.heads().len(), got.requests), (7, 0), "it was not asked again");
    assert!(
        client.time_until_gateway_available(now, Duration::ZERO).is_some_and(|rest| rest > Duration::from_secs(1)),
        "{:?}",
        client.time_until_gateway_available(now, Duration::ZERO)
    );
}

#[tokio::test]
async fn known_bytes_stand_in_for_the_raw_leaf() {
    let content = Content::new();
    let leaf = ContentId::from_raw_block(&content.card);
    let without_leaf = move |head: &str| match is_car(head) || head.contains(&leaf.to_string()) {
        true => status("404 Not Found"),
        false => blocks(head),
    };
    let server = Server::plain(without_leaf).await;
    let known = [Bytes::from_static(b"other bytes"), content.card.clone()];
    let got = retrieve(&ipfs(&[&server]), "agents/a b.json", &known, NOW).await;
    assert_eq!(proven(&got), content.card);
    assert_eq!(got.failures, vec![]);

    let got = retrieve(&ipfs(&[&server]), "agents/a b.json", &known[..1], NOW).await;
    assert_eq!(refuted(&got), None);

    let path = UnixFsPath::default();
    let want = IpfsRetrievalRequest {
        cid: leaf,
        path: &path,
        known: &known,
        budget: DagWalkBudget::for_agent_card(),
        total: AMPLE,
    };
    let got = ipfs(&[]).retrieve(&want, NOW).await;
    assert_eq!((proven(&got), got.requests), (content.card, 0));
}

#[tokio::test]
async fn the_end_of_the_path_is_told() {
    let server = Server::plain(honest).await;
    let client = ipfs(&[&server]);
    let end = async |path: &str| refuted(&retrieve(&client, path, &[], NOW).await);
    assert_eq!(end("agents/b.json").await, Some(ProvenContentDefect::PathMissing));
    assert_eq!(end("agents/a b.json/x").await, Some(ProvenContentDefect::PathMissing));
    assert_eq!(end("agents").await, Some(ProvenContentDefect::NotFile));
    assert_eq!(end("").await, Some(ProvenContentDefect::NotFile));
    assert!(retrieve(&client, "long", &[], NOW).await.ended.is_ok());

    let path = UnixFsPath::parse_literal("long").unwrap();
    let budget = DagWalkBudget { total_bytes: 15_999, ..DagWalkBudget::for_agent_card() };
    let want = IpfsRetrievalRequest { cid: Content::new().root, path: &path, known: &[], budget, total: AMPLE };
    let got = client.retrieve(&want, NOW).await.ended;
    assert_eq!(got, Err(DagWalkError::TooLarge { size: 16_000, limit: 15_999 }));
}

#[tokio::test]
async fn public_gateways_are_asked_by_the_rules_for_foreign_urls() {
    let server = Server::tls(&[NAME], honest).await;
    let egress = Egress::new(toward(&server)).unwrap();
    let gateways = |base: &str, own| vec![IpfsGateway { label: "public".to_owned(), url: base.parse().unwrap(), own }];

    let client = IpfsClient::new(&egress, gateways("https://cards.example/prefix/", false), IN_TURN).unwrap();
    assert_eq!(proven(&retrieve(&client, "agents/a b.json", &[], NOW).await), Content::new().card);
    assert!(server.paths()[0].starts_with("/prefix/ipfs/"));

    let client = IpfsClient::new(&egress, gateways("https://10.0.0.1/", false), IN_TURN).unwrap();
    let got = retrieve(&client, "agents/a b.json", &[], NOW).await;
    let forbidden =
        ForbiddenUrlError { hop: 0, target: "https://10.0.0.1".to_owned(), why: EgressViolation::IpLiteral };
    assert_eq!(got.failures, [("public".to_owned(), IpfsGatewayFault::Fetch(forbidden.into()))]);

    let error = IpfsClient::new(&egress, gateways("ftp://cards.example/", false), IN_TURN).unwrap_err();
    assert_eq!(error.to_string(), "gateway public: the scheme is not allowed");
}

// --- hedging ---

#[tokio::test]
async fn a_stalling_gateway_is_passed_and_dropped() {
    let stalling = Server::plain(|_| Answer::Stall(Vec::new())).await;
    let good = Server::plain(honest).await;
    let got = retrieve(&hedged(&[&stalling, &good], HedgeDelay::Learnt), "agents/a b.json", &[], NOW).await;
    assert_eq!(proven(&got), Content::new().card);
    assert_eq!((got.failures, got.liars), (vec![], vec![]), "it was slower, and nothing is known against it");
    stalling.hung_up().await;
}

#[tokio::test]
async fn two_gateways_feed_one_walk_at_the_same_time() {
    let root = Content::new().root;
    let first = Server::plain(move |head| match head.contains(&format!("/ipfs/{root}?format=raw")) {
        true => blocks(head),
        false if is_car(head) => status("404 Not Found"),
        false => Answer::Stall(Vec::new()),
    })
    .await;
    let second = Server::plain(move |head| match is_car(head) || head.contains(&root.to_string()) {
        true => status("404 Not Found"),
        false => blocks(head),
    })
    .await;
    let path = UnixFsPath::parse_literal("agents/a b.json").unwrap();
    let total = Duration::from_secs(4);
    let want =
        IpfsRetrievalRequest { cid: root, path: &path, known: &[], budget: DagWalkBudget::for_agent_card(), total };
    let got = hedged(&[&first, &second], IN_TURN).retrieve(&want, NOW).await;
    assert_eq!((proven(&got), got.failures), (Content::new().card, vec![]));
    first.hung_up().await;
}

#[tokio::test]
async fn whoever_wins_proves_the_same() {
    let ends = |path: &'static str| async move {
        let mut ends = Vec::new();
        for hedging in [IN_TURN, HedgeDelay::Learnt, HedgeDelay::After(Duration::from_nanos(1))] {
            for liar_first in [true, false] {
                let (bad, good) = (Server::plain(lying).await, Server::plain(honest).await);
                let pair = if liar_first { [&bad, &good] } else { [&good, &bad] };
                ends.push(retrieve(&hedged(&pair, hedging), path, &[], NOW).await.ended);
            }
        }
        ends
    };
    for path in ["agents/a b.json", "long", "agents", "nothing", "agents/a b.json/x"] {
        let ends = ends(path).await;
        assert!(ends.iter().all(|end| *end == ends[0]), "{path}: {ends:?}");
        assert!(!matches!(&ends[0], Err(error) if !error.is_final()), "{path}");
    }
}

#[tokio::test]
async fn a_liar_is_named_each_time_that_it_lies() {
    let (liar, good) = (Server::plain(lying).await, Server::plain(honest).await);
    let client = hedged(&[&liar, &good], IN_TURN);
    for (round, lies) in [(0, 1), (0, 0), (1, 1)] {
        let got = retrieve(&client, "agents/a b.json", &[], NOW + (BAN + ANSWERED) * round).await;
        let liars: Vec<&str> = got.liars.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(liars, vec!["first"; lies]);
    }
}

#[tokio::test]
async fn the_bounds_hold_for_all_gateways_together() {
    let budget = DagWalkBudget::for_agent_card();
    let random: Vec<(ContentId, Bytes)> = (0..64_u32)
        .map(|number| {
            let block = Bytes::from(number.to_be_bytes().repeat(1 << 14));
            (ContentId::from_raw_block(&block), block)
        })
        .collect();
    let whole = write_car(&Content::new().root, random.iter().map(|(cid, block)| (cid, block)));
    let head = b"HTTP/1.1 200 OK\r\n\r\n";
    let start = [&head[..], &whole].concat();
    let section = whole[whole.len() - (1 << 16) - 39..].to_vec();
    let mut servers = Vec::new();
    for _ in 0..3 {
        let (start, section) = (start.clone(), section.clone());
        servers.push(Server::plain(move |_| Answer::Endless(start.clone(), section.clone())).await);
    }
    let got = retrieve(
        &hedged(&[&servers[0], &servers[1], &servers[2]], HedgeDelay::After(Duration::from_nanos(1))),
        "agents/a b.json",
        &[],
        NOW,
    )
    .await;
    let oversize = IpfsGatewayFault::Fetch(FetchError::Oversize { limit: budget.block_size });
    let expected = ["first", "second", "third"].map(|label| (label.to_owned(), oversize.clone()));
    assert_eq!((refuted(&got), got.failures), (None, expected.to_vec()));
    assert_eq!(got.requests, 6, "a CAR and a block of each");
}

// --- every fault of a gateway ---

/// How it ends where nobody but this gateway is asked.
fn check(ends: &Ends, name: &str, got: &IpfsRetrieval) {
    if matches!(ends, Ends::Proven) {
        assert_eq!((proven(got), &got.failures[..]), (Content::new().card, &[][..]), "{name}");
        return;
    }
    assert_eq!(refuted(got), None, "{name}");
    let [(label, fault)] = &got.failures[..] else { panic!("{name}: {:?}", got.failures) };
    assert_eq!(label, "first", "{name}");
    let is_lie = matches!(fault, IpfsGatewayFault::WrongBlock(_));
    assert_eq!((is_lie, got.liars.len()), (matches!(ends, Ends::Lied), usize::from(is_lie)), "{name}: {fault:?}");
    let expected = match ends {
        Ends::Proven | Ends::Lied => return,
        Ends::Unavailable(cause) => IpfsGatewayFault::Fetch(unavailable(cause.clone())),
        Ends::Oversize => {
            IpfsGatewayFault::Fetch(FetchError::Oversize { limit: DagWalkBudget::for_agent_card().block_size })
        }
        Ends::Throttled(status, rest) => {
            IpfsGatewayFault::Throttled { status: *status, rest: Duration::from_secs(*rest) }
        }
    };
    assert_eq!(*fault, expected, "{name}");
}

#[tokio::test]
async fn every_fault_ends_in_its_reason() {
    for (name, fault, ends) in FAULTS {
        let bad = Server::plain(move |head| fault(&GatewayQuery::of(&Content::new(), head))).await;
        let path = UnixFsPath::parse_literal("agents/a b.json").unwrap();
        let total = if ends.needs_time() { SHORT } else { AMPLE };
        let want = IpfsRetrievalRequest {
            cid: Content::new().root,
            path: &path,
            known: &[],
            budget: DagWalkBudget::for_agent_card(),
            total,
        };
        check(&ends, name, &ipfs(&[&bad]).retrieve(&want, NOW).await);
        assert!(bad.heads().len() <= 1 + Content::new().along().len(), "{name}: a CAR, and each block once");
    }
}

#[tokio::test]
async fn no_fault_keeps_an_honest_gateway_from_winning() {
    for (name, fault, _) in FAULTS {
        let bad = Server::plain(move |head| fault(&GatewayQuery::of(&Content::new(), head))).await;
        let good = Server::plain(honest).await;
        let got = retrieve(&hedged(&[&bad, &good], HedgeDelay::Learnt), "agents/a b.json", &[], NOW).await;
        assert_eq!(proven(&got), Content::new().card, "{name}");
    }
}

#[tokio::test]
async fn a_reset_and_a_refused_connection_are_told() {
    let slamming = Server::slamming(ANYWHERE).await;
    let got = card_from(&[&slamming]).await;
    assert_eq!(
        got.failures,
        [("first".to_owned(), IpfsGatewayFault::Fetch(unavailable(SourceUnavailableError::Truncated)))]
    );
    assert!(slamming.connections() > 0);

    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gateway =
        IpfsGateway { label: "first".to_owned(), url: format!("http://{closed}/").parse().unwrap(), own: false };
    let client = IpfsClient::new(&Egress::new(EgressConfig::default()).unwrap(), vec![gateway], IN_TURN).unwrap();
    let got = retrieve(&client, "agents/a b.json", &[], NOW).await;
    assert_eq!(
        got.failures,
        [("first".to_owned(), IpfsGatewayFault::Fetch(unavailable(SourceUnavailableError::Connect)))]
    );
}

#[tokio::test]
async fn no_redirect_of_a_gateway_is_followed() {
    let canary = canary().await;
    for code in [300, 301, 302, 303, 305, 307, 308] {
        for to in [canary.url().as_str(), "/elsewhere", "file:///etc/hostname", "//127.0.0.1/"] {
            let headers = format!("Location: {to}\r\n");
            let server =
                Server::plain(move |_| Answer::Whole(answer(&format!("{code} Away"), &headers, b"<html>"))).await;
            let got = card_from(&[&server]).await;
            let fault = IpfsGatewayFault::Fetch(unavailable(SourceUnavailableError::Status(code)));
            assert_eq!((refuted(&got), got.failures), (None, vec![("first".to_owned(), fault)]), "{to}");
            assert_eq!(server.heads().len(), 2, "{code} {to}: a CAR and a block, and nothing else");
        }
    }
    assert_eq!(canary.connections(), 0);
}
