//! `check`: the URLs that it refuses, the request that it sends, and what it prints.

use std::collections::BTreeSet;

use clresolve_payment::check::SellerCheckRequest;
use clresolve_resolver::sandbox::Sandbox;
use serde_json::Value;

use super::{confirming_once, printed};
use crate::support::program::clresolve;

const PINNED: &str = "https://honest-pinned.sandbox.example/weather";
const NAMED: &str = "https://honest-name.sandbox.example/weather";

#[test]
fn url_that_is_not_https_is_a_usage_error() {
    for (url, expected) in [
        ("http://shop.example/a", "expected an https URL; plain http is for sellers on this machine"),
        ("ftp://shop.example/a", "expected an https URL"),
        ("https://user:secret@shop.example/a", "expected a URL without a user name and a password"),
        ("user:secret@shop.example", "expected an https URL"),
        ("summarizeagent.eth", "expected the URL of a seller, such as https://api.example/summarize"),
        ("https://shop.example/ a", "expected the URL of a seller"),
        ("http://127.0.0.1:9/a", "for plain http to this one, add --allow-host 127.0.0.1:9"),
    ] {
        let output = clresolve(&["check", "--no-config", url], "");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), printed(&output).as_str()), (Some(2), ""), "{url}: {error}");
        assert!(error.contains(expected) && !error.contains("secret"), "{url}: {error}");
    }
    for arguments in [
        &["check"][..],
        &["check", "--list"],
        &["check", "--sandbox", "--list", PINNED],
        &["check", "--sandbox", PINNED, "--method", "get", "--body", "-"],
        &["check", "--sandbox", PINNED, "--name", "https://a.eth"],
        &["check", "--sandbox", PINNED, "--block", "1"],
    ] {
        assert_eq!(clresolve(arguments, "{}").status.code(), Some(2), "{arguments:?}");
    }
    let long = " ".repeat((256 << 10) + 1);
    let output = clresolve(&["check", "--sandbox", PINNED, "--body", "-"], &long);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && error.contains("expected at most 256 KiB"), "{error}");
}

#[test]
fn seller_that_does_not_answer_is_undecided() {
    let output =
        clresolve(&["check", "--no-config", "http://127.0.0.1:9/a", "--allow-host", "127.0.0.1:9", "--json"], "");
    let check: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (output.status.code(), &check["codes"]),
        (Some(3), &serde_json::json!(["invoke-no-route"])),
        "{check:#}"
    );
}

#[test]
fn text_is_a_ladder_of_evidence_and_a_conclusion() {
    for (arguments, exit, last) in [
        (&[PINNED][..], 0, "Pay 0.01 SBD (eip155:31337) to 0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
        (&[NAMED, "--name", "honest-name.eth", "--body", "-"], 0, "Pay 0.01 SBD"),
        (&[NAMED, "--method", "post"], 3, "Do not pay. "),
        (&["https://redirect.sandbox.example/weather"], 1, "Do not pay. payment-terms-malformed: "),
    ] {
        let output = clresolve(&[&["check", "--sandbox"], arguments].concat(), "{}");
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(exit), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        let kinds: Vec<_> = lines[1..6].iter().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(kinds, ["card", "name", "erc8004", "offer", "history"], "{text}");
        let [.., conclusion, end] = lines[..] else { panic!("{text}") };
        assert!(conclusion.starts_with(last), "{text}");
        assert_eq!(text.contains("  payee proven by name: "), exit == 0, "{text}");
        assert_eq!(end, "Nothing was paid. Only a guard judges the reply that is paid.");
        assert!(!text.contains("trusted"), "{text}");
        let short = printed(&clresolve(&[&["check", "--sandbox", "-o", "short"], arguments].concat(), "{}"));
        let decision = ["allow", "deny", "", "undecided"][usize::try_from(exit).expect("a status")];
        assert!(short.starts_with(&format!("{}\t{decision}\t", arguments[0])), "{short}");
    }
}

#[test]
fn list_has_every_seller_with_its_decision() {
    let listed = clresolve(&["check", "--sandbox", "--list", "--json"], "");
    let rows: Vec<Value> = serde_json::from_slice(&listed.stdout).expect("a list");
    assert_eq!((listed.status.code(), rows.len()), (Some(0), Sandbox::expected_seller_checks().len()));
    for row in &rows {
        let members: BTreeSet<&str> = row.as_object().expect("a row").keys().map(String::as_str).collect();
        assert_eq!(members, ["decision", "name", "url"].into());
    }
    let text = printed(&clresolve(&["check", "--sandbox", "--list"], ""));
    assert_eq!(text.lines().count(), rows.len());
    assert!(text.lines().any(|line| line.starts_with("allow ") && line.ends_with(" honest-name.eth")), "{text}");
}

/// A cold check sends the requests of a verdict on the name, or reads a registration in two round trips: its blocks,
/// then three calls in them. A warm check of a name sends none.
#[tokio::test(flavor = "multi_thread")]
async fn check_costs_a_verdict_or_the_reads_of_a_registration() {
    const OF_A_REGISTRATION: u64 = 5;
    const REGISTERED: &str = "https://registration-pinned.sandbox.example/weather";
    let sandbox = Sandbox::start().await.expect("it starts");
    let (resolver, _following) = confirming_once(sandbox.config()).await;
    let asked = async |url: &str, name: Option<&str>| {
        let reply = resolver.send_unpaid_request(url, Some("{}")).await.expect("the seller answers");
        SellerCheckRequest { name: name.map(str::to_owned), ..SellerCheckRequest::from_seller_reply(url, reply) }
    };
    let (named, registered) = (asked(NAMED, Some("honest-name.eth")).await, asked(REGISTERED, None).await);
    let requests = || {
        let counts = sandbox.request_counts();
        (counts.rpc, counts.https + counts.gateway + counts.sellers + counts.ccip)
    };
    // The first questions pay for what is learnt once: the first blocks of the chains.
    for request in [&named, &named, &registered] {
        assert!(!resolver.check_seller(request).await.abort);
    }
    let before = requests();
    assert!(!resolver.check_seller(&named).await.abort);
    assert_eq!(requests(), before, "a warm check");

    resolver.with_empty_cache().resolve("honest-name.eth").await;
    let of_verdict = requests().0 - before.0;
    let before = requests();
    assert!(!resolver.with_empty_cache().check_seller(&named).await.abort);
    assert_eq!(requests(), (before.0 + of_verdict, before.1), "a cold check of a name");
    let before = requests();
    assert!(!resolver.with_empty_cache().check_seller(&registered).await.abort);
    assert_eq!(requests(), (before.0 + OF_A_REGISTRATION, before.1), "a cold check of a registration");
}
