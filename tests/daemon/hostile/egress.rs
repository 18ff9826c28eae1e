//! Every disguise of a forbidden address, through every way by which a publisher, a host or a contract names a URL.
//!
//! A canary listens on a loopback address, to which every name of the world's DNS leads but the world's own.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use clresolve_resolver::config::{Config, ConnectToRule};
use clresolve_resolver::fetch::EgressViolation;
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use url::Url;

use crate::hostile::{codes, expect, json, patient, resolved, spec};
use crate::support::disguise::{Everywhere, PORT, disguises, own_loopback};
use crate::support::server::{Answer, Server, answer};

/// A public host that redirects every request.
const HOST: &str = "moved.example";

/// Questions at once.
const AT_ONCE: usize = 8;

const REDIRECTS: [(u16, &str); 5] =
    [(301, "Moved"), (302, "Found"), (303, "See Other"), (307, "Temporary"), (308, "Permanent")];

/// A response of this kind is not followed to any location.
const NO_REDIRECTS: [(u16, &str); 4] = [(300, "Choices"), (304, "Not Modified"), (305, "Use Proxy"), (306, "Unused")];

/// A name, the further description of its agent, and its expected verdict.
struct Case {
    name: String,
    what: String,
    toml: String,
    state: &'static str,
    codes: Vec<&'static str>,
}

fn text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The URL is the record of the card.
fn in_records(index: usize, url: &str) -> Case {
    let codes = if url.contains(|c: char| c.is_control() || ['\u{2028}', '\u{ad}'].contains(&c)) {
        vec!["txt-unsafe-characters"]
    } else if url.trim() != url {
        vec!["source-forbidden", "txt-value-inexact"]
    } else if url.starts_with("https://") && Url::parse(url).is_ok() {
        vec!["source-forbidden"]
    } else {
        vec!["agentcard-url-not-https"]
    };
    let toml = format!("records = {{ \"cl.agentcard\" = {} }}", text(url));
    Case { name: format!("record-{index}.eth"), what: format!("record {url:?}"), toml, state: "untrusted", codes }
}

/// The URL is what the card's host redirects to.
fn in_redirect(index: usize, (code, _): (u16, &str)) -> Case {
    let toml = format!("records = {{ \"cl.agentcard\" = \"https://{HOST}/{code}/{index}\" }}");
    let (state, codes) = match REDIRECTS.iter().any(|(known, _)| *known == code) {
        true => ("untrusted", vec!["source-forbidden"]),
        // The card says where it is published, and cl.agentcard says otherwise.
        false => ("trusted", vec!["card-id-mismatch", "source-unavailable"]),
    };
    Case { name: format!("hop-{code}-{index}.eth"), what: format!("redirect {code} to {index}"), toml, state, codes }
}

/// The URL is what a contract sends its clients to (EIP-3668).
fn in_contract(index: usize, url: &str) -> Case {
    let toml = format!("chain.resolver.offchain = [{}]", text(url));
    let name = format!("contract-{index}.eth");
    Case { name, what: format!("contract {url:?}"), toml, state: "indeterminate", codes: vec!["ccip-failed"] }
}

/// Whether a host can write it into a `Location` header.
fn is_header(url: &str) -> bool {
    !url.is_empty() && url.bytes().all(|byte| (0x21..0x7f).contains(&byte))
}

fn cases(table: &[(String, EgressViolation)]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, (url, why)) in table.iter().enumerate().filter(|(_, (url, _))| !url.is_empty()) {
        cases.push(in_records(index, url));
        cases.push(in_contract(index, url));
        if is_header(url) && *why != EgressViolation::NotUrl {
            cases.push(in_redirect(index, REDIRECTS[index % REDIRECTS.len()]));
        }
    }
    let somewhere = table.iter().position(|(url, _)| is_header(url)).expect("a plain URL");
    for code in REDIRECTS.into_iter().chain(NO_REDIRECTS) {
        let case = in_redirect(somewhere, code);
        if cases.iter().all(|known| known.name != case.name) {
            cases.push(case);
        }
    }
    cases
}

#[tokio::test]
async fn no_name_leads_the_resolver_to_the_canary() {
    let ip = own_loopback();
    let canary = Server::slamming(SocketAddr::new(ip.into(), PORT)).await;
    let table = disguises(ip);
    let cases = cases(&table);
    assert!(cases.len() > 400, "{}", cases.len());
    let agents: String = cases
        .iter()
        .map(|case| format!("[[agent]]\nname = {}\nabout = \"Leads away.\"\n{}\n", text(&case.name), case.toml))
        .collect();
    let world = CustomSandbox::start(&spec(&agents)).await.unwrap();

    let mover = Server::tls(&[HOST], move |head| moved(head, &table)).await;
    let config = away(&world, &mover);
    let dns = Everywhere::leads_to(&[ip.into()]);
    let resolver = Resolver::with_lookup(&config, dns.clone()).await.unwrap();
    let verdicts: BTreeMap<String, Value> = stream::iter(&cases)
        .map(|case| async { (case.name.clone(), json(&resolved(&resolver, &case.name).await)) })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let found = (verdicts[&case.name]["state"].as_str(), codes(&verdicts[&case.name]));
            let expected = (Some(case.state), case.codes.iter().copied().collect());
            (found != expected).then(|| format!("{}, {}: {found:?}", case.name, case.what))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(dns.asked() > 0, "names were looked up, and led to the canary");
    assert!(mover.connections() > 0);
    assert_eq!(canary.connections(), 0, "a forbidden address was connected to");
}

/// The world's configuration, where [`HOST`] is this server.
fn away(world: &CustomSandbox, mover: &Server) -> Config {
    let mut config = patient(world);
    let detour: ConnectToRule = mover.detour(&format!("{HOST}:443")).parse().unwrap();
    config.network.connect_to.push(detour);
    config.network.ca_pems.push(String::from_utf8(mover.root.to_vec()).unwrap());
    config
}

/// Answers `/CODE/INDEX` with that status and the location that stands there in the table.
fn moved(head: &str, table: &[(String, EgressViolation)]) -> Answer {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let mut numbers = path.split('/').skip(1).map(|number| number.parse::<usize>().expect("a number"));
    let (code, index) = (numbers.next().expect("a status"), numbers.next().expect("a place"));
    let known = REDIRECTS.into_iter().chain(NO_REDIRECTS).find(|(known, _)| usize::from(*known) == code);
    let (code, word) = known.expect("a status of the tables");
    let place = &table[index].0;
    let headers = format!("Location: {place}\r\nRefresh: 0; url={place}\r\n");
    let body = if code == 304 { &b""[..] } else { b"<html>a body" };
    Answer::Whole(answer(&format!("{code} {word}"), &headers, body))
}

#[tokio::test]
async fn a_name_that_leads_to_the_canary_among_public_addresses_is_refused() {
    let ip = own_loopback();
    let canary = Server::slamming(SocketAddr::new(ip.into(), 0)).await;
    let port = PORT;
    let agent = format!(
        "[[agent]]\nname = \"mixed.eth\"\nabout = \"Mixed.\"\nrecords = {{ \"cl.agentcard\" = \"https://a.example:{port}/\" }}\n"
    );
    let world = CustomSandbox::start(&spec(&agent)).await.unwrap();
    let good: [IpAddr; 2] = ["8.8.8.8".parse().unwrap(), "2606:4700:4700::1111".parse().unwrap()];
    for place in 0..=good.len() {
        let mut answers = good.to_vec();
        answers.insert(place, ip.into());
        let dns = Everywhere::leads_to(&answers);
        let resolver = Resolver::with_lookup(&patient(&world), dns.clone()).await.unwrap();
        let verdict = json(&resolved(&resolver, "mixed.eth").await);
        expect(&format!("{answers:?}"), &verdict, "untrusted", &["source-forbidden"]);
        assert_eq!(dns.asked(), 1, "one look-up, so that no second answer can differ");
    }
    assert_eq!(canary.connections(), 0);
}
