//! Discovery against hosts on loopback, honest and hostile: requests, responses and results.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clresolve_cards::system::CardSystem;
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_discover::{
    CardUrlOutcome, DiscoveryReport, DiscoveryRequest, DiscoveryTarget, DiscoveryTargetError, HostCardValidity,
    HostedAgentSystemName, discover_host_cards,
};
use clresolve_resolver::config::{Config, DnsResolutionMode};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_verdict::profile::DEFAULT;
use clresolve_verdict::verdict::ResolutionDepth;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use crate::support::disguise::Everywhere;
use crate::support::program::run;
use crate::support::server::{Answer, Server, answer, canary, ok, redirect, status};

const HOST: &str = "agent.example";
const CARD: &str = "/.well-known/agent-card.json";
const OLDER: &str = "/.well-known/agent.json";
const DESCRIPTOR: &str = "/.well-known/agent-cards-v1.0.0.json";
const SYSTEM: &str = "/v1/agent-systems/research/.well-known/agent-card.json";

const A2A: &str = include_str!("../../crates/sandbox/src/discovery/a2a.json");
const AEVUM: &str = include_str!("../../crates/sandbox/src/discovery/aevum.json");
const ANYPOINT: &str = include_str!("../../crates/sandbox/src/discovery/anypoint.json");
const ORLOJ: &str = include_str!("../../crates/sandbox/src/discovery/orloj.json");
const REGISTRY: &str = include_str!("../../crates/sandbox/src/discovery/descriptor.json");

/// For servers that do not answer.
const SHORT: Duration = Duration::from_millis(300);

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host under test and a resolver that reaches it.
struct World {
    server: Server,
    config: Config,
}

impl World {
    /// A host that answers by path.
    async fn new(handler: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let handler = move |head: &str| handler(head.split(' ').nth(1).unwrap_or_default());
        let server = Server::tls(&[HOST, "other.example"], handler).await;
        let mut config = Config::default();
        config.timeout = PATIENCE;
        for host in [HOST, "other.example"] {
            config.network.connect_to.push(server.detour(&format!("{host}:443")).parse().unwrap());
        }
        config.network.ca_pems = vec![String::from_utf8(server.root.to_vec()).unwrap()];
        Self { server, config }
    }

    async fn ask(&self, question: &DiscoveryRequest) -> DiscoveryReport {
        ask(&self.config, question).await
    }

    async fn walk(&self) -> DiscoveryReport {
        self.ask(&at("https://agent.example")).await
    }

    fn sorted_paths(&self) -> Vec<String> {
        let mut paths = self.server.paths();
        paths.sort();
        paths
    }
}

async fn ask(config: &Config, question: &DiscoveryRequest) -> DiscoveryReport {
    let resolver = Resolver::new(config).await.expect("a resolver");
    let profile = resolver.profiles().get(DEFAULT).expect("built in");
    let discovery = discover_host_cards(&resolver, question, &profile).await;
    follows_its_schema(&discovery);
    discovery
}

fn at(target: &str) -> DiscoveryRequest {
    DiscoveryRequest::new(DiscoveryTarget::parse(target).expect("a target"))
}

fn of(target: &str, system: CardSystem) -> DiscoveryRequest {
    DiscoveryRequest { system: Some(system), ..at(target) }
}

/// Every answer of these tests follows the schema, which is strict.
#[track_caller]
fn follows_its_schema(discovery: &DiscoveryReport) {
    let schema: Value = serde_json::from_str(include_str!("../../schemas/discovery.schema.json")).expect("JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let instance = serde_json::to_value(discovery).expect("JSON");
    let errors: Vec<String> =
        validator.iter_errors(&instance).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{instance:#}");
}

fn codes(discovery: &DiscoveryReport) -> Vec<ReasonCode> {
    discovery.reasons.iter().map(|reason| reason.code).collect()
}

fn nothing() -> Answer {
    status("404 Not Found")
}

fn served(headers: &str, body: &str) -> Answer {
    Answer::Whole(answer("200 OK", headers, body.as_bytes()))
}

/// The outcome and the codes of `path`.
#[track_caller]
fn place<'d>(discovery: &'d DiscoveryReport, path: &str) -> (CardUrlOutcome, &'d [ReasonCode]) {
    let found = discovery.places.iter().find(|place| place.url.ends_with(&format!("example{path}")));
    let place = found.unwrap_or_else(|| panic!("{path} was not asked: {discovery:#?}"));
    (place.outcome, &place.codes)
}

// --- requests ---

#[tokio::test]
async fn a_host_is_asked_once_for_each_path_and_nothing_that_a_card_names_is_asked() {
    // The card names the host itself and another one that is within reach: AE-21.
    let card = AEVUM.replace("aevum.sandbox.example", "other.example");
    let world = World::new(move |path| if path == OLDER { ok(card.as_bytes()) } else { nothing() }).await;
    let discovery = world.walk().await;
    assert_eq!(discovery.outcome, HostCardValidity::Valid, "{discovery:#?}");
    assert_eq!(discovery.cards[0].report.system, Some(CardSystem::Aevum));
    assert_eq!(world.sorted_paths(), [CARD, DESCRIPTOR, OLDER]);
    assert_eq!(world.server.connections(), 3);
    assert!(discovery.ens_bound.is_none());
}

#[tokio::test]
async fn aevum_alone_is_looked_for_at_one_path() {
    let world = World::new(|path| if path == OLDER { ok(AEVUM.as_bytes()) } else { nothing() }).await;
    let discovery = world.ask(&of("agent.example", CardSystem::Aevum)).await;
    assert_eq!((discovery.outcome, world.sorted_paths()), (HostCardValidity::Valid, vec![OLDER.to_owned()]));
    let silent = World::new(|_| nothing()).await;
    let discovery = silent.ask(&of("agent.example", CardSystem::Aevum)).await;
    assert_eq!(
        (discovery.outcome, codes(&discovery)),
        (HostCardValidity::Undecided, vec![ReasonCode::AeCardUnreachable])
    );
}

#[tokio::test]
async fn no_credentials_are_sent_whatever_the_host_sets_or_demands() {
    let world = World::new(|path| match path {
        CARD => Answer::Whole(answer("302 Found", "Set-Cookie: a=b; Path=/\r\nLocation: /moved.json\r\n", b"")),
        "/moved.json" => served("Content-Type: application/json\r\nSet-Cookie: c=d\r\n", A2A),
        OLDER => Answer::Whole(answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"cards\"\r\n", b"no")),
        _ => redirect("https://user:secret@agent.example/moved.json"),
    })
    .await;
    let discovery = world.walk().await;
    let again = world.walk().await;
    assert_eq!(discovery, again);
    assert_eq!(place(&discovery, CARD), (CardUrlOutcome::Found, &[][..]));
    assert_eq!(place(&discovery, OLDER), (CardUrlOutcome::Unreachable, &[ReasonCode::SourceUnavailable][..]));
    assert_eq!(place(&discovery, DESCRIPTOR), (CardUrlOutcome::Forbidden, &[ReasonCode::SourceForbidden][..]));
    let heads = world.server.heads();
    assert_eq!(heads.len(), 8, "{heads:?}");
    for head in heads {
        let head = head.to_ascii_lowercase();
        for header in ["authorization:", "cookie:", "proxy-authorization:", "referer:", "origin:"] {
            assert!(!head.contains(&format!("\r\n{header}")), "{head}");
        }
        assert!(!head.contains("secret"), "{head}");
    }
    assert_eq!(DiscoveryTarget::parse("https://user:secret@agent.example"), Err(DiscoveryTargetError::UserInfo));
}

#[tokio::test]
async fn a_host_that_demands_credentials_shows_no_orloj_card() {
    let world = World::new(|_| status("401 Unauthorized")).await;
    let discovery = world.ask(&at("https://agent.example/v1/agent-systems/research")).await;
    assert_eq!(place(&discovery, SYSTEM), (CardUrlOutcome::Unreachable, &[ReasonCode::OrDiscoveryCredentialed][..]));
    assert_eq!(
        (discovery.outcome, codes(&discovery)),
        (HostCardValidity::Undecided, vec![ReasonCode::OrCardUnreachable])
    );
}

// --- one card or several ---

#[tokio::test]
async fn the_same_bytes_at_two_paths_are_one_card() {
    let world = World::new(|path| if path == DESCRIPTOR { nothing() } else { ok(A2A.as_bytes()) }).await;
    let discovery = world.walk().await;
    assert_eq!((discovery.outcome, discovery.cards.len()), (HostCardValidity::Valid, 1));
    let urls = [CARD, OLDER].map(|path| format!("https://agent.example{path}"));
    assert_eq!(discovery.cards[0].urls, urls);
    assert!(discovery.reasons.is_empty());
}

#[tokio::test]
async fn different_cards_are_both_judged_and_one_that_is_bad_makes_the_host_invalid() {
    let world = World::new(|path| match path {
        CARD => ok(A2A.as_bytes()),
        OLDER => ok(br#"{"ens": "a.eth"}"#),
        _ => nothing(),
    })
    .await;
    let discovery = world.walk().await;
    let judged: Vec<_> = discovery.cards.iter().map(|card| (card.report.system, card.report.valid)).collect();
    assert_eq!(judged, [(Some(CardSystem::A2a), true), (Some(CardSystem::CommandLayer), false)]);
    assert_eq!(
        (discovery.outcome, codes(&discovery)),
        (HostCardValidity::Invalid, vec![ReasonCode::DiscoveryCardsDiffer])
    );
}

#[tokio::test]
async fn the_descriptor_of_a_registry_is_no_card_and_is_not_followed() {
    let registry = REGISTRY.replace("commandlayer.sandbox.example", "other.example");
    let world = World::new(move |path| if path == OLDER { ok(registry.as_bytes()) } else { nothing() }).await;
    let discovery = world.walk().await;
    assert_eq!(
        (discovery.outcome, discovery.cards.len(), discovery.descriptors.len()),
        (HostCardValidity::Undecided, 0, 1)
    );
    assert_eq!(world.sorted_paths(), [CARD, DESCRIPTOR, OLDER]);
}

// --- Orloj ---

#[tokio::test]
async fn without_a_root_card_the_path_of_the_system_is_tried() {
    let world = World::new(|path| if path == SYSTEM { ok(ORLOJ.as_bytes()) } else { nothing() }).await;
    let mut question = at("https://agent.example");
    question.target = question.target.with_agent_system(HostedAgentSystemName::parse("research").unwrap()).unwrap();
    let discovery = world.ask(&question).await;
    assert_eq!(place(&discovery, CARD), (CardUrlOutcome::Absent, &[ReasonCode::OrRootCardAbsent][..]));
    assert_eq!(place(&discovery, SYSTEM), (CardUrlOutcome::Found, &[][..]));
    assert_eq!(discovery.cards[0].report.system, Some(CardSystem::Orloj));
    assert!(discovery.outcome == HostCardValidity::Valid && discovery.reasons.is_empty(), "{discovery:#?}");

    let root = world.ask(&of("agent.example", CardSystem::Orloj)).await;
    assert_eq!(place(&root, CARD), (CardUrlOutcome::Absent, &[ReasonCode::OrRootCardAbsent][..]));
    assert_eq!((root.outcome, codes(&root)), (HostCardValidity::Undecided, vec![ReasonCode::OrCardUnreachable]));
    let unnamed = world.walk().await;
    assert_eq!(place(&unnamed, CARD), (CardUrlOutcome::Absent, &[ReasonCode::DiscoveryAbsent][..]));
}

#[tokio::test]
async fn a_system_of_another_namespace_is_asked_for_in_it_and_no_other_one_passes_for_it() {
    let world = World::new(|path| match path {
        "/v1/agent-systems/research/.well-known/agent-card.json?namespace=team-a" => {
            ok(ORLOJ.replace("/research/a2a", "/research/a2a?namespace=team-a").as_bytes())
        }
        SYSTEM | "/v1/agent-systems/research/.well-known/agent-card.json?namespace=team-b" => ok(ORLOJ.as_bytes()),
        "/v1/agent-systems/other/.well-known/agent-card.json" => ok(ORLOJ.as_bytes()),
        "/v1/agent-systems/aevum/.well-known/agent-card.json" => ok(AEVUM.as_bytes()),
        _ => nothing(),
    })
    .await;
    let mismatch = &[ReasonCode::OrUrlNameMismatch][..];
    for (name, query, expected) in [
        ("research", "", &[][..]),
        ("research", "?namespace=team-a", &[]),
        ("research", "?namespace=team-b", mismatch),
        ("other", "", mismatch),
        ("aevum", "", mismatch),
    ] {
        let discovery = world.ask(&at(&format!("https://agent.example/v1/agent-systems/{name}{query}"))).await;
        let path = format!("/v1/agent-systems/{name}/.well-known/agent-card.json{query}");
        assert_eq!(place(&discovery, &path), (CardUrlOutcome::Found, expected), "{discovery:#?}");
        let own = discovery.places.iter().find(|place| place.outcome == CardUrlOutcome::Found).expect("asserted");
        assert_eq!(own.detail.is_some(), !expected.is_empty());
        let document = world.ask(&at(&format!("https://agent.example{path}"))).await;
        assert_eq!(place(&document, &path), (CardUrlOutcome::Found, expected), "{document:#?}");
    }
    let typed = DiscoveryTarget::parse(HOST)
        .unwrap()
        .with_agent_system(HostedAgentSystemName::parse("team-a/research").unwrap())
        .unwrap();
    let discovery = world.ask(&DiscoveryRequest::new(typed)).await;
    assert_eq!(discovery.asked, "https://agent.example/v1/agent-systems/research?namespace=team-a");
    assert_eq!((discovery.outcome, discovery.cards.len()), (HostCardValidity::Valid, 1));
}

#[tokio::test]
async fn a_host_without_a_root_card_is_said_to_have_perhaps_several_systems() {
    let world = World::new(|_| nothing()).await;
    for question in [at(HOST), of(HOST, CardSystem::Orloj)] {
        let discovery = world.ask(&question).await;
        assert!(discovery.reasons[0].message.contains("Name one (--system"), "{discovery:#?}");
    }
    for question in [of(HOST, CardSystem::Aevum), at("https://agent.example/v1/agent-systems/research")] {
        let discovery = world.ask(&question).await;
        assert!(!discovery.reasons[0].message.contains("--system"), "{discovery:#?}");
    }
    let down = World::new(|_| status("503 Service Unavailable")).await;
    assert!(!down.walk().await.reasons[0].message.contains("--system"));
}

#[tokio::test]
async fn the_query_of_a_document_is_sent_and_not_told() {
    let world = World::new(|path| if path == "/a.json?token=SECRET" { ok(A2A.as_bytes()) } else { nothing() }).await;
    let discovery = world.ask(&at("https://agent.example/a.json?token=SECRET")).await;
    assert_eq!(
        (discovery.outcome, discovery.asked.as_str()),
        (HostCardValidity::Valid, "https://agent.example/a.json")
    );
    let text = serde_json::to_string(&discovery).expect("JSON");
    assert!(!text.contains("SECRET"), "{text}");
}

#[tokio::test]
async fn a_card_that_changed_is_no_finding_and_one_past_its_freshness_is() {
    const TURNS: [(&str, &[ReasonCode]); 5] = [
        ("Cache-Control: public, max-age=0\r\nAge: 0\r\n", &[]),
        ("Cache-Control: public, max-age=300\r\nAge: 299\r\n", &[]),
        ("Cache-Control: public, max-age=300\r\nAge: 300\r\n", &[ReasonCode::OrCardStale]),
        ("Date: Thu, 01 Jan 2015 00:00:00 GMT\r\nExpires: Fri, 01 Jan 2100 00:00:00 GMT\r\n", &[]),
        (
            "Date: Thu, 01 Jan 2015 00:00:00 GMT\r\nExpires: Thu, 01 Jan 2015 01:00:00 GMT\r\n",
            &[ReasonCode::OrCardStale],
        ),
    ];
    let asked = AtomicUsize::new(0);
    let world = World::new(move |path| match path {
        SYSTEM => {
            let turn = asked.fetch_add(1, Ordering::SeqCst);
            let headers = format!("Content-Type: application/json\r\n{}", TURNS[turn].0);
            served(&headers, &ORLOJ.replace("1.0.0", &format!("1.0.{turn}")))
        }
        _ => nothing(),
    })
    .await;
    let question = at("https://agent.example/v1/agent-systems/research");
    let mut digests = Vec::new();
    for (headers, expected) in TURNS {
        let discovery = world.ask(&question).await;
        assert_eq!(place(&discovery, SYSTEM), (CardUrlOutcome::Found, expected), "{headers}");
        assert!(discovery.outcome == HostCardValidity::Valid && discovery.reasons.is_empty(), "{discovery:#?}");
        digests.push(discovery.cards[0].sha256);
    }
    assert!(digests[0] != digests[1] && digests[1] != digests[2]);
}

// --- MA²D ---

#[tokio::test]
async fn a_direct_url_is_one_request_and_its_content_type_is_held() {
    let world = World::new(|path| match path {
        "/cards/a.json" => ok(ANYPOINT.as_bytes()),
        "/cards/charset.json" => served("Content-Type: application/json; charset=utf-8\r\n", ANYPOINT),
        "/cards/plain.json" => served("Content-Type: text/plain\r\n", ANYPOINT),
        "/cards/page.json" => served("Content-Type: text/html\r\n", "<!doctype html>"),
        _ => nothing(),
    })
    .await;
    for (path, outcome, expected) in [
        ("/cards/a.json", HostCardValidity::Valid, (CardUrlOutcome::Found, &[][..])),
        ("/cards/charset.json", HostCardValidity::Valid, (CardUrlOutcome::Found, &[])),
        ("/cards/plain.json", HostCardValidity::Valid, (CardUrlOutcome::Found, &[ReasonCode::AnContentType])),
        (
            "/cards/page.json",
            HostCardValidity::Undecided,
            (CardUrlOutcome::WrongContentType, &[ReasonCode::DiscoveryContentType]),
        ),
        ("/cards/none.json", HostCardValidity::Undecided, (CardUrlOutcome::Absent, &[ReasonCode::DiscoveryAbsent])),
    ] {
        let discovery = world.ask(&of(&format!("https://agent.example{path}"), CardSystem::Anypoint)).await;
        assert_eq!((discovery.outcome, place(&discovery, path)), (outcome, expected), "{discovery:#?}");
        assert_eq!(discovery.places.len(), 1);
        let reasons =
            if outcome == HostCardValidity::Undecided { vec![ReasonCode::AnCardUnreachable] } else { Vec::new() };
        assert_eq!(codes(&discovery), reasons);
    }
    assert_eq!(world.server.connections(), 5);
}

// --- hostile hosts ---

#[tokio::test]
async fn each_failure_has_its_outcome_and_its_code() {
    let canary = canary().await;
    let inside = format!("https://127.0.0.1:{}/card.json", canary.address.port());
    let world = World::new(move |path| match path {
        "/moved.json" => redirect("/a2a.json"),
        "/a2a.json" => ok(A2A.as_bytes()),
        "/inside.json" => redirect(&inside),
        "/local.json" => redirect("https://localhost/card.json"),
        "/plain.json" => redirect("http://agent.example/a2a.json"),
        "/loop.json" => redirect("/loop.json"),
        "/far.json" => redirect("/far.json?1"),
        "/far.json?1" => redirect("/far.json?2"),
        "/far.json?2" => redirect("/far.json?3"),
        "/far.json?3" => redirect("/far.json?4"),
        "/big.json" => served("Content-Type: application/json\r\n", &" ".repeat(256 * 1024 + 1)),
        "/cut.json" => Answer::Cut(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec()),
        "/endless.json" => Answer::Endless(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 4096]),
        "/gone.json" => status("410 Gone"),
        "/down.json" => status("503 Service Unavailable"),
        "/broken.json" => ok(b"{\"name\": \"a\",,}"),
        _ => nothing(),
    })
    .await;
    let unavailable = (CardUrlOutcome::Unreachable, &[ReasonCode::SourceUnavailable][..]);
    let forbidden = (CardUrlOutcome::Forbidden, &[ReasonCode::SourceForbidden][..]);
    let oversize = (CardUrlOutcome::Oversize, &[ReasonCode::SourceOversize][..]);
    for (path, outcome, expected) in [
        ("/moved.json", HostCardValidity::Valid, (CardUrlOutcome::Found, &[][..])),
        ("/inside.json", HostCardValidity::Undecided, forbidden),
        ("/local.json", HostCardValidity::Undecided, forbidden),
        ("/plain.json", HostCardValidity::Undecided, forbidden),
        ("/loop.json", HostCardValidity::Undecided, unavailable),
        ("/far.json", HostCardValidity::Undecided, unavailable),
        ("/big.json", HostCardValidity::Undecided, oversize),
        ("/cut.json", HostCardValidity::Undecided, unavailable),
        ("/endless.json", HostCardValidity::Undecided, oversize),
        ("/gone.json", HostCardValidity::Undecided, (CardUrlOutcome::Absent, &[ReasonCode::DiscoveryAbsent])),
        ("/down.json", HostCardValidity::Undecided, unavailable),
        ("/broken.json", HostCardValidity::Invalid, (CardUrlOutcome::Found, &[])),
    ] {
        let discovery = world.ask(&at(&format!("https://agent.example{path}"))).await;
        assert_eq!((discovery.outcome, place(&discovery, path)), (outcome, expected), "{path}: {discovery:#?}");
    }
    assert_eq!(canary.connections(), 0);
    assert!(!world.server.paths().contains(&"/far.json?4".to_owned()), "a hop too many");
}

#[tokio::test]
async fn a_host_that_stalls_is_given_up_and_the_other_paths_still_count() {
    let mut world = World::new(|path| match path {
        CARD => Answer::Stall(Vec::new()),
        OLDER => ok(A2A.as_bytes()),
        _ => nothing(),
    })
    .await;
    world.config.timeout = Duration::from_secs(5);
    let discovery = world.walk().await;
    assert_eq!(place(&discovery, CARD), (CardUrlOutcome::Unreachable, &[ReasonCode::SourceUnavailable][..]));
    assert_eq!(discovery.outcome, HostCardValidity::Valid);
    world.config.timeout = SHORT;
    assert_eq!(world.ask(&at(&format!("https://agent.example{CARD}"))).await.outcome, HostCardValidity::Undecided);
}

#[tokio::test]
async fn addresses_that_are_not_public_are_not_asked() {
    let canary = canary().await;
    let port = canary.address.port();
    for target in [
        format!("https://127.0.0.1:{port}"),
        format!("https://localhost:{port}"),
        format!("https://0x7f.1:{port}"),
        format!("https://[::1]:{port}"),
        "https://metadata.internal".to_owned(),
    ] {
        let discovery = ask(&Config::default(), &at(&target)).await;
        assert!(discovery.places.iter().all(|place| place.outcome == CardUrlOutcome::Forbidden), "{discovery:#?}");
        assert_eq!(discovery.outcome, HostCardValidity::Undecided);
    }
    assert_eq!(canary.connections(), 0);
}

// --- plain http ---

/// A plain host that the operator named, a plain host that nobody named, and a resolver that knows the first one.
async fn plain_world() -> (Server, Server, Config) {
    let canary = canary().await;
    let inside = format!("http://127.0.0.1:{}/card.json", canary.address.port());
    let server = Server::plain(move |head| match head.split(' ').nth(1).unwrap_or_default() {
        CARD => ok(A2A.as_bytes()),
        "/moved.json" => redirect(CARD),
        "/inside.json" => redirect(&inside),
        "/up.json" => redirect("https://agent.example/back.json"),
        _ => nothing(),
    })
    .await;
    let mut config = Config::default();
    config.timeout = PATIENCE;
    config.network.allow_hosts.push(server.address.to_string().parse().unwrap());
    (server, canary, config)
}

fn plain(server: &Server, path: &str) -> DiscoveryRequest {
    DiscoveryRequest::new(
        DiscoveryTarget::parse_allowing_http(&format!("http://{}{path}", server.address)).expect("a target"),
    )
}

#[tokio::test]
async fn plain_host_is_asked_only_where_the_operator_named_it() {
    let (server, canary, config) = plain_world().await;
    let discovery = ask(&config, &plain(&server, "")).await;
    assert_eq!((discovery.outcome, discovery.cards.len()), (HostCardValidity::Valid, 1), "{discovery:#?}");
    assert_eq!(discovery.origin, format!("http://{}", server.address));
    assert_eq!(ask(&config, &plain(&server, "/moved.json")).await.outcome, HostCardValidity::Valid);
    let asked = server.connections();
    for question in [plain(&canary, ""), plain(&server, "/inside.json")] {
        let discovery = ask(&config, &question).await;
        assert!(discovery.places.iter().all(|place| place.outcome == CardUrlOutcome::Forbidden), "{discovery:#?}");
    }
    assert_eq!((canary.connections(), server.connections()), (0, asked + 1));
    let discovery = ask(&Config::default(), &plain(&server, "")).await;
    assert!(discovery.places.iter().all(|place| place.outcome == CardUrlOutcome::Forbidden), "{discovery:#?}");
    assert_eq!(server.connections(), asked + 1);
}

#[tokio::test]
async fn redirect_from_https_to_a_named_plain_host_is_refused() {
    let (server, _canary, config) = plain_world().await;
    let back = format!("http://{}{CARD}", server.address);
    let mut world = World::new(move |path| if path == "/back.json" { redirect(&back) } else { nothing() }).await;
    world.config.network.allow_hosts.extend(config.network.allow_hosts);
    for question in [at("https://agent.example/back.json"), plain(&server, "/up.json")] {
        let asked = server.connections();
        let discovery = world.ask(&question).await;
        assert_eq!(discovery.places[0].outcome, CardUrlOutcome::Forbidden, "{discovery:#?}");
        assert_eq!(server.connections() - asked, usize::from(question.target.is_plain_http()));
    }
    assert_eq!(world.server.connections(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_discovery_says_that_nothing_was_authenticated() {
    let (server, _canary, _) = plain_world().await;
    let (origin, url) = (server.address.to_string(), format!("http://{}", server.address));
    let ask = move |rest: &'static [&'static str]| {
        let (origin, url) = (origin.clone(), url.clone());
        tokio::task::spawn_blocking(move || {
            run([&["discover", &url, "--no-config", "--allow-host", &origin][..], rest].concat())
        })
    };
    let output = ask(&[]).await.expect("it runs");
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{text}{said}");
    assert!(text.ends_with("Nothing authenticated that host.\n") && said.contains("nothing authenticated"), "{text}");
    let output = ask(&["-o", "json"]).await.expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing authenticated"));
}

// --- ENS, and the embedded world ---

#[tokio::test]
async fn a_card_is_bound_by_a_trusted_verdict_on_these_very_bytes_and_by_nothing_else() {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let mut config = sandbox.config();
    config.timeout = PATIENCE;
    let host = "commandlayer.sandbox.example";
    let unasked = ask(&config, &at(host)).await;
    assert!(unasked.ens_bound.is_none() && unasked.reasons.is_empty());
    let bound = ask(&config, &DiscoveryRequest { bind: true, ..at(host) }).await;
    let name = bound.ens_bound.as_ref().expect("the name proves the card");
    assert_eq!((name.name.as_str(), name.state), ("summarizeagent.eth", TrustState::Trusted));
    assert_eq!(name.sha256, bound.cards[0].sha256);
    assert!(bound.reasons.is_empty());

    // Another host serves the same card with one more space: valid, but no name proves it.
    let resolver = Resolver::new(&config).await.expect("a resolver");
    let card = resolver.resolve("summarizeagent.eth").await.card_bytes().cloned().expect("trusted");
    let other = [&card[..], b" "].concat();
    let copy = World::new(move |path| if path == CARD { ok(&other) } else { nothing() }).await;
    config.network.connect_to.extend(copy.config.network.connect_to.clone());
    config.network.ca_pems.extend(copy.config.network.ca_pems.clone());
    let unbound = ask(&config, &DiscoveryRequest { bind: true, ..at(HOST) }).await;
    assert_eq!((unbound.outcome, unbound.ens_bound.is_none()), (HostCardValidity::Valid, true));
    assert_eq!(codes(&unbound), [ReasonCode::DiscoveryNotBound]);
    let text = serde_json::to_string(&unbound).expect("JSON");
    assert!(!text.contains("trusted") && !text.contains("verified"), "{text}");
}

#[tokio::test]
async fn the_sandbox_has_a_host_for_each_system() {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let mut config = sandbox.config();
    config.timeout = PATIENCE;
    for (target, system) in [
        ("a2a.sandbox.example", CardSystem::A2a),
        ("aevum.sandbox.example", CardSystem::Aevum),
        ("anypoint.sandbox.example", CardSystem::Anypoint),
        ("https://anypoint.sandbox.example/cards/weather-desk.json", CardSystem::Anypoint),
        ("commandlayer.sandbox.example", CardSystem::CommandLayer),
        ("https://orloj.sandbox.example/v1/agent-systems/research", CardSystem::Orloj),
    ] {
        let discovery = ask(&config, &at(target)).await;
        assert_eq!(discovery.outcome, HostCardValidity::Valid, "{discovery:#?}");
        assert_eq!(discovery.cards.len(), 1);
        assert_eq!(discovery.cards[0].report.system, Some(system));
        assert!(discovery.cards[0].report.findings.is_empty(), "{discovery:#?}");
        assert_eq!(ask(&config, &at(target)).await, discovery);
    }
    let hostile = ask(&config, &at("hostile.sandbox.example")).await;
    assert_eq!((hostile.outcome, codes(&hostile)), (HostCardValidity::Undecided, vec![ReasonCode::DiscoveryNoCard]));
    let broken = ask(&config, &at("broken.sandbox.example")).await;
    assert_eq!((broken.outcome, broken.cards.len()), (HostCardValidity::Invalid, 2), "{broken:#?}");
}

// --- the command line ---

#[test]
fn the_exit_code_says_what_was_found() {
    for (arguments, code, said) in [
        (
            &["--sandbox", "discover", "https://a2a.sandbox.example"][..],
            0,
            "serves a valid card. It is that host's word",
        ),
        (&["--sandbox", "discover", "broken.sandbox.example", "-o", "short"], 1, "not valid"),
        (&["--sandbox", "discover", "orloj.sandbox.example", "--as", "orloj"], 3, "or-root-card-absent"),
        (&["discover", "orloj.sandbox.example", "--sandbox", "--system", "research"], 0, "agent-systems/research"),
        (
            &["--sandbox", "discover", "commandlayer.sandbox.example", "--bind"],
            0,
            "summarizeagent.eth on ENS is trusted",
        ),
        (&["--sandbox", "discover", "http://a2a.sandbox.example"], 2, ""),
        (&["discover", "http://a.example", "--no-config", "--allow-host", "a.example:443"], 2, ""),
        (&["discover", "https://u:p@a2a.sandbox.example"], 2, ""),
        (&["discover", "https://a2a.sandbox.example/card.json", "--system", "a"], 2, ""),
        (&["discover", "a2a.sandbox.example", "--as", "a3a"], 2, ""),
    ] {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(text.contains(said), "{arguments:?}: {text}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("u:p@"), "user info is not repeated");
    }
}

/// Whatever is asked of the sandbox: its names, and hosts that it does not have.
#[tokio::test]
async fn the_sandbox_looks_up_no_host() {
    let sandbox = Sandbox::start().await.unwrap();
    for (dns, is_asked) in [(DnsResolutionMode::System, true), (DnsResolutionMode::Off, false)] {
        let mut config = sandbox.config();
        assert_eq!(config.network.dns, DnsResolutionMode::Off);
        config.network.dns = dns;
        config.rules.depth = ResolutionDepth::Schemas;
        config.rules.links = true;
        let system = Everywhere::leads_to(&[]);
        let resolver = Resolver::with_lookup(&config, system.clone()).await.unwrap();
        let names: Vec<String> = Sandbox::expected_verdicts().into_iter().map(|expected| expected.name).collect();
        let judged = stream::iter(&names).map(|name| resolver.resolve(name)).buffer_unordered(8).count().await;
        assert_eq!(judged, names.len());
        let profile = resolver.profiles().get(DEFAULT).unwrap();
        let absent = discover_host_cards(&resolver, &at("nowhere.example"), &profile).await;
        assert_eq!(absent.outcome, HostCardValidity::Undecided);
        assert_eq!(system.asked() > 0, is_asked, "{dns:?}");
    }
}
