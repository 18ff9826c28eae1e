//! Decisions about the sandbox's sellers: each code, the requests that a decision costs, and the commands.

#[path = "payments/checks.rs"]
mod checks;
#[path = "payments/gated.rs"]
mod gated;
#[path = "payments/offers.rs"]
mod offers;
#[path = "payments/probing.rs"]
mod probing;
#[path = "payments/published.rs"]
mod published;
#[path = "payments/registration.rs"]
mod registration;

use std::collections::BTreeSet;
use std::process::Output;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::reason::{ReasonCode, ResolutionStep};
use clresolve_payment::PaymentDecisionRequest;
use clresolve_payment::decision::{DecisionOutcome, PaymentDecision};
use clresolve_payment::request::PaymentDemand;
use clresolve_resolver::config::Config;
use clresolve_resolver::resolve::{HeadFollower, Resolver};
use clresolve_resolver::sandbox::{CustomSandbox, Sandbox};
use clresolve_sandbox::spec::SandboxSpec;
use serde_json::{Value, json};

use crate::support::payer;
use crate::support::program::clresolve;

/// Sandbox names with what is decided about their sellers, and all codes of it.
const SELLERS: [(&str, DecisionOutcome, &[&str]); 24] = [
    ("summarizeagent.eth", DecisionOutcome::Allow, &[]),
    ("payment-terms-malformed.eth", DecisionOutcome::Deny, &["payment-terms-malformed"]),
    ("payment-terms-ambiguous.eth", DecisionOutcome::Deny, &["payment-terms-ambiguous"]),
    (
        "payment-network-mismatch.eth",
        DecisionOutcome::Deny,
        &["payment-network-mismatch", "payment-asset-unlisted", "payee-unproven"],
    ),
    ("payment-asset-unlisted.eth", DecisionOutcome::Deny, &["payment-asset-unlisted"]),
    ("payment-amount-exceeds.eth", DecisionOutcome::Deny, &["payment-amount-exceeds"]),
    ("payment-limit-missing.eth", DecisionOutcome::Undecided, &["payment-limit-missing"]),
    ("payment-timeout-excessive.eth", DecisionOutcome::Deny, &["payment-timeout-excessive"]),
    ("payment-scheme-unchecked.eth", DecisionOutcome::Undecided, &["payment-scheme-unchecked"]),
    ("payee-mismatch.eth", DecisionOutcome::Deny, &["payee-mismatch"]),
    ("second-entry-poisoned.eth", DecisionOutcome::Deny, &["payee-mismatch"]),
    ("payee-unproven.eth", DecisionOutcome::Undecided, &["payee-unproven"]),
    ("payee-pending.eth", DecisionOutcome::Undecided, &["record-pending"]),
    ("resource-mismatch.eth", DecisionOutcome::Deny, &["resource-mismatch"]),
    ("resource-differs.eth", DecisionOutcome::Allow, &["resource-differs"]),
    ("endpoint-mismatch.eth", DecisionOutcome::Deny, &["endpoint-mismatch", "resource-mismatch"]),
    ("seller-redirects.eth", DecisionOutcome::Deny, &["payment-terms-malformed"]),
    ("invoke-no-route.eth", DecisionOutcome::Undecided, &["invoke-no-route"]),
    ("offered-payee.eth", DecisionOutcome::Allow, &[]),
    ("registered-payee.eth", DecisionOutcome::Allow, &[]),
    ("registered-elsewhere.eth", DecisionOutcome::Deny, &["payee-mismatch"]),
    ("offer-invalid.eth", DecisionOutcome::Deny, &["offer-invalid"]),
    ("offer-signer-unproven.eth", DecisionOutcome::Undecided, &["offer-signer-unproven"]),
    ("payment-signature-mismatch.eth", DecisionOutcome::Allow, &[]),
];

/// Codes that the plain question to no seller of the sandbox shows, and the test of this file that does.
const SHOWN_BY: [(&str, &str); 2] = [
    ("payment-signature-mismatch", "a_seller_that_asks_for_a_further_signature_gets_none"),
    ("invoke-refused-untrusted", "an_agent_that_the_gate_denies_is_not_asked"),
];

const URL: &str = "https://api.sandbox.example/summarize/v1";

/// The agent of [`world_with_seller`].
const NAME: &str = "summarizeagent.eth";

/// A world with one trusted agent that sells. `rest` is what else stands in its table, and the tables after it.
async fn world_with_seller(rest: &str) -> CustomSandbox {
    world_of_seller("trusted", rest).await
}

/// The same world, in which the agent has another state.
async fn world_of_seller(state: &str, rest: &str) -> CustomSandbox {
    let spec = format!(
        r#"
[[name]]
name = "publisher.eth"
holder = "publisher"
addr = "publisher"

[[agent]]
name = "{NAME}"
about = "It sells."
state = "{state}"
seller = ""
{rest}
"#
    );
    CustomSandbox::start(&SandboxSpec::parse(&spec).expect("it is a world")).await.expect("it starts")
}

/// A resolver that reads the head once for each name: no poll comes, and what the head confirms stays confirmed.
async fn confirming_once(mut config: Config) -> (Resolver, HeadFollower) {
    const HOUR: Duration = Duration::from_secs(3600);
    (config.chain.head_poll, config.cache.max_unconfirmed) = (HOUR, HOUR);
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    let following = resolver.follow_heads();
    (resolver, following)
}

/// The same, where the head has confirmed the verdict on [`NAME`].
async fn confirmed(config: Config) -> (Resolver, HeadFollower) {
    let (resolver, following) = confirming_once(config).await;
    // A resolution counts as confirmed itself, so the second question reads the head.
    for _ in 0..2 {
        assert_eq!(resolver.check_gate(NAME, "summarize").await, Ok(()));
    }
    (resolver, following)
}

/// What a seller of the sandbox answers, as a question about it.
async fn asked(resolver: &Resolver, name: &str, url: &str) -> PaymentDecisionRequest {
    let reply = resolver.send_unpaid_request(url, Some("{}")).await.expect("the seller answers");
    PaymentDecisionRequest::from_seller_reply(name, "summarize", url, reply)
}

/// Entries that stand in the terms of honest sellers, and that nobody may pay here.
fn neighbours() -> [Value; 2] {
    let entry = |network: &str, asset: &str, pay_to: &str| {
        json!({
            "scheme": "exact",
            "network": network,
            "amount": "10000",
            "asset": asset,
            "payTo": pay_to,
            "maxTimeoutSeconds": 60,
            "extra": {"name": "USD Coin", "version": "2"},
        })
    };
    [
        entry(
            "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
            "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
            "2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4",
        ),
        entry(
            "eip155:8453",
            "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
            "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        ),
    ]
}

/// The same question, where the seller's terms have a further entry.
fn with_entry(question: &PaymentDecisionRequest, entry: Value) -> PaymentDecisionRequest {
    let mut terms: Value = serde_json::from_slice(&terms_of(question)).expect("JSON");
    terms["accepts"].as_array_mut().expect("a list").push(entry);
    with_terms(question, terms.to_string().as_bytes())
}

async fn decided(resolver: &Resolver, name: &str) -> Option<PaymentDecision> {
    let route = resolver.agent_route(&resolver.resolve(name).await, Some("summarize")).ok()?;
    Some(resolver.decide_payment(&asked(resolver, name, route.url().as_str()).await).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_seller_gets_its_decision_and_every_code_is_shown() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    for (name, outcome, codes) in SELLERS {
        let Some(decision) = decided(&resolver, name).await else {
            assert_eq!(codes, ["invoke-no-route"], "{name}");
            continue;
        };
        assert_eq!(decision.decision, outcome, "{name}: {decision:#?}");
        assert_eq!(decision.codes, codes, "{name}: {decision:#?}");
        assert_eq!(decision.abort, outcome != DecisionOutcome::Allow, "{name}");
        let first = codes.first().filter(|_| decision.abort);
        assert!(first.is_none_or(|code| decision.reason.starts_with(&format!("{code}: "))), "{name}: {decision:#?}");
    }
    let mut shown: BTreeSet<String> =
        Sandbox::expected_seller_checks().into_iter().flat_map(|seller| seller.codes).collect();
    let of_agents = SELLERS.iter().flat_map(|(_, _, codes)| *codes).chain(SHOWN_BY.iter().map(|(code, _)| code));
    shown.extend(of_agents.map(|code| (*code).to_owned()));
    let missing: Vec<_> = ReasonCode::ALL
        .iter()
        .filter(|code| code.entry().step == ResolutionStep::Payment && !shown.contains(code.slug()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let tests = include_str!("payments.rs");
    for (code, test) in SHOWN_BY {
        let (_, from) = tests.split_once(&format!("fn {test}()")).unwrap_or_else(|| panic!("{test} is no test"));
        let body = from.split_once("\n}\n").expect("it ends").0;
        assert!(body.contains(&format!("\"{code}\"")), "{test} does not show {code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_that_is_followed_leads_to_another_seller() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let redirected =
        asked(&resolver, "seller-redirects.eth", "https://api.sandbox.example/redirect/summarize/v1").await;
    let PaymentDemand::Reply(reply) = &redirected.demand else { panic!("a reply") };
    let (_, target) = reply.headers.iter().find(|(name, _)| name == "location").expect("a redirect");
    let followed = asked(&resolver, "seller-redirects.eth", target).await;
    assert_eq!(resolver.decide_payment(&followed).await.codes, ["endpoint-mismatch", "payee-mismatch"]);
}

/// Clients of some extensions add a signature that permits more than the payment. The header leaves without it, or not
/// at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_seller_that_asks_for_a_further_signature_gets_none() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let name = "payment-signature-mismatch.eth";
    let route = resolver.agent_route(&resolver.resolve(name).await, Some("summarize")).expect("a route");
    let question = asked(&resolver, name, route.url().as_str()).await;
    let terms = question.parse_terms().expect("its terms can be read");
    let entry = &terms.entries[0];
    let pay_to = entry.price.as_ref().expect("a price").pay_to;
    let mut payment = payer::payment(&entry.json, pay_to, jiff::Timestamp::now().as_second() + 60);
    let decided = async |payment: &Value| {
        let header = STANDARD.encode(payment.to_string());
        resolver.decide_payment(&PaymentDecisionRequest { header: Some(header), ..question.clone() }).await
    };
    let plain = decided(&payment).await;
    assert_eq!((plain.decision, plain.codes.len()), (DecisionOutcome::Allow, 0), "{plain:#?}");
    payment["extensions"] = terms.extensions.clone().into();
    assert_eq!(decided(&payment).await.decision, DecisionOutcome::Allow, "what the seller said is only repeated");
    payment["extensions"]["eip2612GasSponsoring"]["info"]["signature"] = "0x00".into();
    let further = decided(&payment).await;
    assert_eq!((further.abort, further.codes), (true, vec!["payment-signature-mismatch".to_owned()]));
}

/// A block that was chosen by number says nothing of now, whoever asks.
#[tokio::test(flavor = "multi_thread")]
async fn a_numbered_block_pays_nobody() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let mut config = sandbox.config();
    let live = Resolver::new(&config).await.expect("its configuration is good");
    let request = asked(&live, "summarizeagent.eth", URL).await;
    config.chain.block = clresolve_resolver::config::BlockSelector::Number(3);
    let past = Resolver::new(&config).await.expect("its configuration is good");
    let decision = past.decide_payment(&request).await;
    assert_eq!(decision.codes, ["chain-behind"], "{decision:#?}");
    assert!(decision.abort);
    assert_eq!(past.check_gate("summarizeagent.eth", "summarize").await, Err("chain-behind"));
    let route = clresolve(&["route", "summarizeagent.eth", "--sandbox", "--block", "3", "-o", "short"], "");
    let said = String::from_utf8_lossy(&route.stdout).into_owned();
    assert_eq!((route.status.code(), said.as_str()), (Some(1), "summarizeagent.eth\ttrusted\t-\tchain-behind\n"));
    for (command, said) in [
        (["verify", "summarizeagent.eth", "--sandbox", "--block", "3"], "At block 3, summarizeagent.eth was bound to"),
        (
            ["route", "summarizeagent.eth", "--sandbox", "--block", "3"],
            "block 3 was chosen, and the gate decides at the newest",
        ),
    ] {
        let text = String::from_utf8(clresolve(&command, "").stdout).expect("text");
        assert!(text.contains(said) && !text.contains("chain-behind"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_says_what_stands_against_an_agent() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    for (name, verb, said) in [
        ("summarizeagent.eth", "summarize", Ok(())),
        ("summarizeagent.eth", "pay", Err("verb-not-implemented")),
        ("summarizeagent.eth", "", Err("verb-not-implemented")),
        ("entry-version.eth", "summarize", Err("entry-version-noncompliant")),
        ("", "summarize", Err("name-invalid")),
    ] {
        assert_eq!(resolver.check_gate(name, verb).await, said, "{name} {verb}");
    }
}

/// A decision asks the upstreams for nothing more than a verdict does, whether address record or configuration proves
/// the payee, and whether the name's own records or the configuration say where the agent is called.
#[tokio::test(flavor = "multi_thread")]
async fn a_cold_decision_costs_as_many_requests_as_a_cold_verdict() {
    const NO_ADDRESS: &str = "addresses = { 31337 = \"0x\", 84532 = \"0x\" }\n";
    const NO_ENDPOINT: &str = "records.\"cl.endpoint.runtime\" = \"\"\n";
    for (payee_is_configured, route_is_configured) in [(false, false), (false, true), (true, false), (true, true)] {
        let records = |is_configured, none| if is_configured { none } else { "" };
        let rest = [records(payee_is_configured, NO_ADDRESS), records(route_is_configured, NO_ENDPOINT)].concat();
        let world = world_with_seller(&rest).await;
        let mut config = world.config();
        if payee_is_configured {
            let account = "eip155:31337:0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().expect("an account");
            config.payees = [(NAME.to_owned(), vec![account])].into();
        }
        if route_is_configured {
            config.routes = [(NAME.to_owned(), URL.to_owned())].into();
        }
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let request = asked(&resolver, NAME, URL).await;
        // The first question pays for what is learnt once: the chain's first block.
        resolver.resolve(NAME).await;
        let mut costs = Vec::new();
        for decides in [false, true] {
            let (cold, before) = (resolver.with_empty_cache(), world.request_counts());
            if decides {
                let decision = cold.decide_payment(&request).await;
                assert!(!decision.abort, "{decision:#?}");
            } else {
                cold.resolve(NAME).await;
            }
            let after = world.request_counts();
            costs.push([
                after.rpc - before.rpc,
                after.https - before.https,
                after.gateway - before.gateway,
                after.sellers - before.sellers,
            ]);
        }
        assert_eq!(costs[0], costs[1], "{rest}");
        assert!(costs[0][0] > 0);
    }
}

/// What of a byte is changed: its last bit, the case of a letter, and whether it is ASCII.
const CHANGES: [u8; 3] = [0x01, 0x20, 0x80];

/// No change of one byte of a seller's terms turns a denial into an allowance.
#[tokio::test(flavor = "multi_thread")]
async fn no_changed_byte_of_terms_turns_a_denial_into_an_allowance() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let (resolver, _following) = confirming_once(sandbox.config()).await;
    let mut denied = Vec::new();
    for name in ["payee-mismatch.eth", "resource-mismatch.eth", "offer-invalid.eth", "offer-signer-unproven.eth"] {
        let route = resolver.agent_route(&resolver.resolve(name).await, Some("summarize")).expect("a route");
        denied.push(asked(&resolver, name, route.url().as_str()).await);
    }
    let by_permit2 = with_extra(&asked(&resolver, NAME, URL).await, json!({"assetTransferMethod": "permit2"}));
    denied.push(of_thief(&resolver, &by_permit2).await);
    let of_version_1 = asked(&resolver, "checkoutagent.eth", "https://api.sandbox.example/v1/checkout/v1").await;
    denied.push(of_thief(&resolver, &PaymentDecisionRequest { verb: "checkout".to_owned(), ..of_version_1 }).await);
    for question in denied {
        let text = terms_of(&question);
        for (at, change) in (0..text.len()).flat_map(|at| CHANGES.map(|change| (at, change))) {
            let mut changed = text.clone();
            changed[at] ^= change;
            let decision = resolver.decide_payment(&with_terms(&question, &changed)).await;
            assert!(decision.abort, "{}, byte {at}: {}", question.name, String::from_utf8_lossy(&changed));
        }
    }
}

/// The same question about terms that may be paid but for their payee.
async fn of_thief(resolver: &Resolver, honest: &PaymentDecisionRequest) -> PaymentDecisionRequest {
    let decision = resolver.decide_payment(honest).await;
    assert!(!decision.abort, "{decision:#?}");
    let mut terms: Value = serde_json::from_slice(&terms_of(honest)).expect("JSON");
    terms["accepts"][0]["payTo"] = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC".into();
    with_terms(honest, terms.to_string().as_bytes())
}

/// The same question, where the first entry says this in its `extra`.
fn with_extra(question: &PaymentDecisionRequest, extra: Value) -> PaymentDecisionRequest {
    let mut terms: Value = serde_json::from_slice(&terms_of(question)).expect("JSON");
    terms["accepts"][0]["extra"] = extra;
    with_terms(question, terms.to_string().as_bytes())
}

/// The JSON text of the terms that a seller sent.
fn terms_of(question: &PaymentDecisionRequest) -> Vec<u8> {
    let PaymentDemand::Reply(reply) = &question.demand else { panic!("a reply") };
    let header = reply.headers.iter().find(|(name, _)| name == "payment-required");
    header.map_or_else(|| reply.body.clone(), |(_, value)| STANDARD.decode(value).expect("base64"))
}

/// The same question, where the seller sent these terms instead.
fn with_terms(question: &PaymentDecisionRequest, text: &[u8]) -> PaymentDecisionRequest {
    let mut question = question.clone();
    let PaymentDemand::Reply(reply) = &mut question.demand else { panic!("a reply") };
    match reply.headers.iter_mut().find(|(name, _)| name == "payment-required") {
        Some((_, value)) => *value = STANDARD.encode(text),
        None => reply.body = text.to_vec(),
    }
    question
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_walk_to_a_price_ends_with_what_is_paid_to_whom() {
    let text = clresolve(&["probe", "--sandbox", "summarizeagent.eth", "summarize"], "");
    assert_eq!(text.status.code(), Some(0));
    let last = printed(&text).trim_end().lines().last().expect("a line").to_owned();
    assert!(
        last.starts_with(
            "Pay 0.01 SBD (eip155:31337) to 0x70997970C51812dc3A010C7d01b50e0d17dc79C8, proven by addr(name) at block "
        ),
        "{last}"
    );
    assert!(printed(&text).contains("✓ records") && printed(&text).contains("✓ entry"), "{}", printed(&text));
    let refused = printed(&clresolve(&["probe", "--sandbox", "payee-mismatch.eth", "summarize"], ""));
    let last = refused.trim_end().lines().last().expect("a line");
    assert!(
        refused.contains("✓ records") && last.starts_with("Do not pay. payee-mismatch: The terms pay"),
        "{refused}"
    );
    let json = clresolve(&["probe", "--sandbox", "summarizeagent.eth", "summarize", "--json"], "");
    let answer: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&answer["decision"]["abort"], &answer["terms"]["x402Version"]), (&false.into(), &2.into()));
    let version_1 =
        clresolve(&["probe", "--sandbox", "checkoutagent.eth", "checkout", "--json", "--method", "get"], "");
    let answer: Value = serde_json::from_slice(&version_1.stdout).expect("JSON");
    assert_eq!((&answer["decision"]["abort"], &answer["terms"]["x402Version"]), (&false.into(), &1.into()));
}

#[test]
fn an_agent_that_the_gate_denies_is_not_asked() {
    let output = clresolve(&["probe", "--sandbox", "entry-version.eth", "summarize", "--json"], "");
    assert_eq!(output.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let codes = answer["decision"]["codes"].as_array().expect("a list");
    assert!(codes.contains(&"invoke-refused-untrusted".into()) && codes.contains(&"entry-version-noncompliant".into()));
    assert_eq!((&answer["terms"], &answer["decision"]["abort"]), (&Value::Null, &true.into()));
    // What is trusted, or not known yet, is not said to be untrusted.
    for (name, verb, exit, codes) in [
        ("summarizeagent.eth", "classify", 1, &["verb-not-implemented", "invoke-no-route"][..]),
        ("record-pending.eth", "summarize", 3, &["record-pending", "invoke-no-route"]),
    ] {
        let output = clresolve(&["probe", "--sandbox", name, verb, "--json"], "");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((output.status.code(), &answer["decision"]["codes"]), (Some(exit), &json!(codes)), "{answer:#}");
        let last = printed(&clresolve(&["probe", "--sandbox", name, verb], ""));
        let last = last.trim_end().lines().last().expect("a line");
        let (code, _) = last.strip_prefix("Do not pay. ").and_then(|rest| rest.split_once(": ")).expect("a code");
        assert!(last.ends_with(&format!("`clresolve explain {code}` says more.")), "{last}");
    }
}

#[test]
fn decide_takes_terms_in_each_form_and_pays_on_exit_0_alone() {
    let entry = |pay_to: &str| {
        format!(
            r#"{{"scheme":"exact","network":"eip155:31337","amount":"10000","asset":"0x00000000000000000000000000000000d0114400","payTo":"{pay_to}","maxTimeoutSeconds":60,"extra":{{"name":"Sandbox Dollar","version":"1"}}}}"#
        )
    };
    let terms =
        |pay_to: &str| format!(r#"{{"x402Version":2,"resource":{{"url":"{URL}"}},"accepts":[{}]}}"#, entry(pay_to));
    let (payee, thief) = ("0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");
    let decide = |terms: &str, further: &[&str]| {
        let mut arguments =
            vec!["decide", "--sandbox", "summarizeagent.eth", "summarize", "--url", URL, "--terms", "-", "-o", "short"];
        arguments.extend(further);
        let output = clresolve(&arguments, terms);
        (output.status.code(), printed(&output))
    };
    let allowed = (Some(0), "summarizeagent.eth\tallow\t\n".to_owned());
    assert_eq!(decide(&terms(payee), &[]), allowed);
    assert_eq!(decide(&STANDARD.encode(terms(payee)), &[]), allowed);
    let padded = |bytes: usize| STANDARD.encode(format!("{}{}", terms(payee), " ".repeat(bytes - terms(payee).len())));
    assert_eq!(decide(&padded(64 * 1024), &[]), allowed, "the longest terms fit into a header");
    assert_eq!(decide(&padded(64 * 1024 + 1), &[]).0, Some(1));
    assert_eq!(decide(&terms(payee), &["--select", "0", "--max-amount", "10000"]), allowed);
    assert_eq!(decide(&terms(thief), &[]), (Some(1), "summarizeagent.eth\tdeny\tpayee-mismatch\n".to_owned()));
    assert_eq!(decide(&terms(payee), &["--max-amount", "9999"]).0, Some(1));
    let upto = terms(payee).replace("exact", "upto");
    assert_eq!(decide(&upto, &[]).0, Some(3));
    assert_eq!(decide("{]", &[]), (Some(1), "summarizeagent.eth\tdeny\tpayment-terms-malformed\n".to_owned()));
    assert_eq!(decide(&terms(payee), &["--max-amount", "0x1"]).0, Some(2));
    assert_eq!(decide(&terms(payee), &["--block", "1"]).0, Some(2));
    let both = ["decide", "summarizeagent.eth", "summarize", "--url", URL, "--terms", "-", "--signed", "-"];
    let refused = clresolve(&both, terms(payee));
    assert_eq!((refused.status.code(), printed(&refused)), (Some(2), String::new()));
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    let why = "--terms and --signed cannot both be read from standard input; name a file for one";
    assert!(said.contains(why), "{said}");
    let route = clresolve(&["route", "--sandbox", "summarizeagent.eth", "-o", "short"], "");
    assert_eq!(printed(&route), format!("summarizeagent.eth\ttrusted\t{URL}\tcl.endpoint.runtime\n"));
}

/// Whatever form is printed, no text of a seller acts on a terminal, or hides or turns what stands beside it.
#[test]
fn no_text_of_a_seller_is_printed_raw() {
    const HOSTILE: &str = "\u{202e}\u{1b}[2J\u{7f}";
    let terms = |url: &str, pay_to: &str| {
        json!({
            "x402Version": 2,
            "resource": {"url": url},
            "accepts": [{
                "scheme": "exact",
                "network": "eip155:31337",
                "amount": "10000",
                "asset": "0x00000000000000000000000000000000d0114400",
                "payTo": pay_to,
                "maxTimeoutSeconds": 60,
                "extra": {"name": "Sandbox Dollar", "version": "1"},
            }],
        })
    };
    let elsewhere = terms(&format!("https://other.example/{HOSTILE}"), "0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
    for (terms, code) in [(elsewhere, "resource-mismatch"), (terms(URL, HOSTILE), "payment-terms-malformed")] {
        for form in ["json", "text", "short"] {
            let arguments = ["decide", "--sandbox", NAME, "summarize", "--url", URL, "--terms", "-", "-o", form];
            let output = clresolve(&arguments, terms.to_string());
            let said = printed(&output);
            assert_eq!(output.status.code(), Some(1), "{form}: {said}");
            assert!(said.contains(code), "{form}: {said}");
            assert!(!said.contains(['\u{202e}', '\u{1b}', '\u{7f}']), "{form}: {said:?}");
            assert_eq!(said.contains("\\u202e"), form == "json", "{form}: {said:?}");
        }
    }
}

/// What is cut out of one line is called.
#[test]
fn a_route_to_an_agent_that_the_gate_denies_is_not_printed_in_one_line() {
    let run = |arguments: &[&str]| clresolve(&[&["route", "--sandbox"], arguments].concat(), "");
    let short = |name: &str, verb: &str| {
        let output = run(&[name, verb, "-o", "short"]);
        (output.status.code(), printed(&output))
    };
    let denied = |name, state, code| (Some(1), format!("{name}\t{state}\t-\t{code}\n"));
    let good = "summarizeagent.eth";
    assert_eq!(short(good, "sumarize"), denied(good, "trusted", "verb-not-implemented"));
    let wrong = "checksum-mismatch.eth";
    assert_eq!(short(wrong, "summarize"), denied(wrong, "untrusted", "checksum-mismatch"));

    let people = run(&[good, "sumarize"]);
    assert_eq!(people.status.code(), Some(1));
    assert!(
        printed(&people).starts_with("https://") && printed(&people).contains("so do not call it"),
        "{}",
        printed(&people)
    );
    assert!(printed(&people).contains("did you mean `summarize`?"), "{}", printed(&people));
    let programs = run(&[good, "sumarize", "-o", "json"]);
    let document: Value = serde_json::from_slice(&programs.stdout).expect("JSON");
    assert_eq!((&document["state"], &document["denied"]), (&json!("trusted"), &json!("verb-not-implemented")));
}
