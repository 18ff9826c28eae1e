//! What a name publishes of payments decides: each kind of route and of address record, and no changed byte of one.

use alloy_primitives::Address;
use clresolve_core::state::TrustState;
use clresolve_payment::PaymentDecisionRequest;
use clresolve_payment::decision::{DecisionOutcome, PaymentDecision};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::{CustomSandbox, Sandbox};
use clresolve_sandbox::spec::SandboxSpec;
use serde_json::json;

use super::{NAME, URL, asked, offers, world_of_seller, world_with_seller};
use crate::support::program::clresolve;

/// Whom an honest seller of the sandbox wants to be paid.
const PAYEE: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// Set, and nobody's: 20 bytes that are zero.
const ZERO: &str = "0x0000000000000000000000000000000000000000";

/// Whom no name publishes.
const STRANGER: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";

/// What is decided about the honest seller where its agent has these records.
async fn decided(records: &str) -> PaymentDecision {
    let world = world_with_seller(records).await;
    let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
    resolver.decide_payment(&asked(&resolver, NAME, URL).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_ensip_26_is_a_route() {
    for key in ["web", "mcp", "a2a"] {
        let records = |url: &str| {
            format!("records.\"cl.endpoint.runtime\" = \"\"\nrecords.\"agent-endpoint[{key}]\" = \"{url}\"\n")
        };
        let decision = decided(&records(URL)).await;
        assert_eq!(decision.decision, DecisionOutcome::Allow, "{decision:#?}");
        let route = decision.route.expect("a route");
        assert_eq!((route.url().as_str(), route.source().to_string()), (URL, format!("agent-endpoint[{key}]")));
        let elsewhere = decided(&records("https://api.sandbox.example/classify/v1")).await;
        assert_eq!(elsewhere.codes, ["endpoint-mismatch"], "{key}: {elsewhere:#?}");
    }
}

const ELSEWHERE: &str = "https://api.sandbox.example/classify/v1";

/// A record that stands before another decides, also where nobody can use it or it is about to change.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_record_that_names_a_route_decides() {
    let [web, mcp, a2a] = ["web", "mcp", "a2a"].map(|kind| format!("\"agent-endpoint[{kind}]\""));
    let runtime = "\"cl.endpoint.runtime\"";
    let honest = "https://api.sandbox.example";
    let unset = format!("records.{runtime} = \"\"\n");
    let both = |first: &str, second: &str| {
        let unset = if first == runtime { "" } else { &unset };
        let base = if first == runtime { honest } else { URL };
        [(base, ELSEWHERE), (ELSEWHERE, URL)]
            .map(|(good, other)| format!("{unset}records.{first} = \"{good}\"\nrecords.{second} = \"{other}\"\n"))
    };
    for (first, second) in [(runtime, web.as_str()), (&web, &mcp), (&mcp, &a2a)] {
        let [own, others] = both(first, second);
        assert_eq!(decided(&own).await.codes, [""; 0], "{own}");
        assert_eq!(decided(&others).await.codes, ["endpoint-mismatch"], "{others}");
    }
    for broken in ["http://api.sandbox.example", "no URL"] {
        let records = format!("records.{runtime} = \"{broken}\"\nrecords.{web} = \"{URL}\"\n");
        let decision = decided(&records).await;
        assert_eq!((decision.codes, decision.abort), (vec!["invoke-no-route".to_owned()], true), "{records}");
    }
    let records = format!("latest = {{ {runtime} = \"https://other.sandbox.example\" }}\nrecords.{web} = \"{URL}\"\n");
    let decision = decided(&records).await;
    assert_eq!((decision.codes, decision.abort), (vec!["record-pending".to_owned()], true), "{records}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_route_of_a_verb_goes_before_that_of_the_name() {
    let world = world_with_seller("").await;
    for (of_verb, of_name, codes) in [(URL, ELSEWHERE, &[][..]), (ELSEWHERE, URL, &["endpoint-mismatch"])] {
        let mut config = world.config();
        let of_verb = (format!("{NAME}/summarize"), of_verb.to_owned());
        config.routes = [of_verb, (NAME.to_owned(), of_name.to_owned())].into();
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        assert_eq!(resolver.decide_payment(&asked(&resolver, NAME, URL).await).await.codes, codes);
    }
}

/// The line 1.1.0 names an https URL where 1.0.0 has an `x402://` entry.
#[tokio::test(flavor = "multi_thread")]
async fn an_https_entry_of_the_card_is_the_route() {
    const CARD_ROUTE: &str = "https://runtime.commandlayer.org/execute";
    let sandbox = Sandbox::start().await.expect("it starts");
    let mut config = sandbox.config();
    config.rules.profile = "agent-cards/1.1.0".to_owned();
    config.payees =
        [("next-line.eth".to_owned(), vec![format!("eip155:31337:{PAYEE}").parse().expect("an account")])].into();
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    let honest = asked(&resolver, "next-line.eth", URL).await;
    let about = |url: &str| PaymentDecisionRequest { url: Some(url.to_owned()), ..honest.clone() };
    let decision = resolver.decide_payment(&about(CARD_ROUTE)).await;
    // The sandbox's seller states a URL of its own.
    assert_eq!(decision.codes, ["resource-mismatch"], "{decision:#?}");
    let route = decision.route.expect("a route");
    assert_eq!((route.url().as_str(), route.source().to_string()), (CARD_ROUTE, "card".to_owned()));
    let elsewhere = resolver.decide_payment(&about(URL)).await;
    assert_eq!(elsewhere.codes, ["endpoint-mismatch"], "{elsewhere:#?}");
}

/// ENSIP-19: the default counts where the network's own record is not set. Ether's record is no default.
#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_all_chains_counts_where_the_networks_own_is_not_set() {
    for (addresses, codes) in [
        (json!({"31337": "0x", "default": PAYEE}), &[][..]),
        (json!({"31337": PAYEE, "default": STRANGER}), &[]),
        (json!({"31337": STRANGER, "default": PAYEE}), &["payee-mismatch"]),
        (json!({"31337": "0x", "default": STRANGER}), &["payee-mismatch"]),
        (json!({"31337": "0x", "1": PAYEE}), &["payee-unproven"]),
        (json!({"31337": ZERO, "default": PAYEE}), &["payee-unproven"]),
        (json!({"31337": PAYEE, "default": ZERO}), &[]),
    ] {
        let table = addresses.as_object().expect("an object").iter();
        let table: Vec<_> = table.map(|(chain, address)| format!("{chain} = {address}")).collect();
        let decision = decided(&format!("addresses = {{ {} }}\n", table.join(", "))).await;
        assert_eq!(decision.codes, codes, "{addresses}: {decision:#?}");
        let proven = decision.payee.and_then(|payee| payee.proven_by).map(|by| by.as_str());
        assert_eq!(proven, codes.is_empty().then_some("addr"), "{addresses}");
    }
}

/// What a thief's seller sends.
#[derive(Clone, Copy, Debug)]
enum Theft {
    /// Terms that pay the thief.
    Payee,
    /// Honest terms, but for the payee, from another host.
    Host,
    /// An offer that the thief has signed.
    Key,
}

impl Theft {
    async fn asked(self, resolver: &Resolver, name: &str) -> PaymentDecisionRequest {
        match self {
            Self::Payee => asked(resolver, name, "https://api.sandbox.example/payee/summarize/v1").await,
            Self::Host => asked(resolver, name, "https://thief.sandbox.example/summarize/v1").await,
            Self::Key => PaymentDecisionRequest { name: name.to_owned(), ..offers::asked(offers::OTHER) },
        }
    }
}

/// The text with one bit of one byte changed, for each of its bytes.
fn changed(text: &str) -> Vec<String> {
    let change = |byte: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[byte] ^= 1;
        String::from_utf8(bytes).expect("ASCII stays ASCII")
    };
    (0..text.len()).map(change).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_changed_byte_of_a_record_turns_a_denial_into_an_allowance() {
    let addresses = (0..20).flat_map(|byte| {
        let mut address = PAYEE.parse::<Address>().expect("an address").into_array();
        address[byte] ^= 1;
        let address = Address::from(address);
        let own = format!("addresses = {{ 31337 = \"{address}\" }}");
        let of_all_chains = format!("addresses = {{ 31337 = \"0x\", default = \"{address}\" }}");
        [own, of_all_chains].map(|records| (Theft::Payee, "payee", records))
    });
    let runtimes = changed("https://api.sandbox.example").into_iter();
    let runtimes = runtimes.map(|endpoint| format!("records.\"cl.endpoint.runtime\" = '{endpoint}'"));
    let of_the_web = changed(URL).into_iter();
    let of_the_web = of_the_web
        .map(|url| format!("records.\"cl.endpoint.runtime\" = \"\"\nrecords.\"agent-endpoint[web]\" = '{url}'"));
    let others = ["mcp", "a2a"].into_iter().flat_map(|kind| {
        let record = format!("records.\"cl.endpoint.runtime\" = \"\"\nrecords.\"agent-endpoint[{kind}]\"");
        changed(URL).into_iter().map(move |url| format!("{record} = '{url}'"))
    });
    let endpoints = runtimes.chain(of_the_web).chain(others).map(|records| (Theft::Host, "", records));
    let keys = changed(&offers::public(offers::OWN)).into_iter();
    let keys = keys.map(|key| (Theft::Key, "", format!("records.\"cl.sig.pub\" = '{key}'")));
    let signers = changed("publisher.eth").into_iter();
    let signers = signers.map(|name| (Theft::Key, "", format!("records.\"cl.receipt.signer\" = '{name}'")));
    let cases: Vec<_> = addresses.chain(endpoints).chain(keys).chain(signers).collect();
    let mut spec = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n".to_owned();
    for (number, (_, seller, records)) in cases.iter().enumerate() {
        spec += &format!(
            "\n[[agent]]\nname = \"agent{number}.eth\"\nabout = \"One byte of a record differs.\"\nstate = \
             \"trusted\"\nseller = \"{seller}\"\n{records}\n"
        );
    }
    let world = CustomSandbox::start(&SandboxSpec::parse(&spec).expect("it is a world")).await.expect("it starts");
    let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
    for (number, (theft, _, records)) in cases.iter().enumerate() {
        let decision = resolver.decide_payment(&theft.asked(&resolver, &format!("agent{number}.eth")).await).await;
        assert_eq!(
            (decision.state, decision.abort),
            (TrustState::Trusted, true),
            "{theft:?}, {records}: {decision:#?}"
        );
    }
}

/// A seller of an agent that is not trusted is asked where the caller says so, and never paid.
#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_agent_is_asked_on_demand_and_never_paid() {
    let records = "codes = [\"txt-entry-mismatch\"]\nrecords.\"cl.entry\" = \"x402://{name}/classify/v1\"";
    let world = world_of_seller("untrusted", records).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("clresolve.toml");
    world.config().save(&file).expect("the folder can be written");
    let file = file.display().to_string();
    let probed = async |further: &'static [&'static str]| {
        let mut arguments = vec!["probe", "--config", &file, NAME, "summarize", "--json"];
        arguments.extend(further);
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let run = move || clresolve(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "");
        let output = tokio::task::spawn_blocking(run).await.expect("it runs");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((output.status.code(), &answer["decision"]["abort"]), (Some(1), &json!(true)), "{answer:#}");
        answer
    };
    let refused = probed(&[]).await;
    assert_eq!((&refused["terms"], world.request_counts().sellers), (&json!(null), 0));
    let asked = probed(&["--untrusted"]).await;
    assert_eq!((&asked["terms"]["x402Version"], world.request_counts().sellers), (&json!(2), 1));
    assert_eq!(asked["decision"]["codes"], json!(["txt-entry-mismatch"]));
}
