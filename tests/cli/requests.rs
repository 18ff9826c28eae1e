//! Requests to the sandbox's agents, through the library and the command.

use clresolve_core::digest::Digest;
use clresolve_core::reason::{ReasonCode, ResolutionStep};
use clresolve_core::state::TrustState;
use clresolve_messages::request::{OutgoingAgentRequest, RequestCheckDocument};
use clresolve_resolver::config::{Config, SchemaManifestSource};
use clresolve_resolver::fetch::{FetchError, SourceUnavailableError};
use clresolve_resolver::resolve::{self, Resolver};
use clresolve_resolver::sandbox::{CustomSandbox, Sandbox};
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_verdict::evidence::SchemaFetchError;
use clresolve_verdict::verdict::ResolutionDepth;
use serde_json::{Value, json};

use crate::support::program::clresolve;
use crate::support::server::{Server, ok};

fn question(name: &str, verb: &str, request: &str) -> OutgoingAgentRequest {
    OutgoingAgentRequest { name: name.to_owned(), verb: verb.to_owned(), request: request.as_bytes().to_vec() }
}

fn schema() -> jsonschema::Validator {
    let text = std::fs::read_to_string("schemas/request.schema.json").expect("a schema");
    jsonschema::draft202012::new(&serde_json::from_str(&text).expect("JSON")).expect("a schema")
}

const NAME: &str = "summarizeagent.eth";

/// What is asked, and what is to be said: agent, verb, a change of the good request, state and codes.
type Case = (&'static str, &'static str, &'static str, &'static str, TrustState, &'static [&'static str]);

const CASES: [Case; 10] = [
    (NAME, "summarize", "", "", TrustState::Trusted, &[]),
    (NAME, "summarize", "\"actor\"", "\"doer\"", TrustState::Untrusted, &["request-schema-invalid"]),
    (NAME, "summarize", "\"actor\"", "\"input\": {}, \"actor\"", TrustState::Untrusted, &["request-duplicate-key"]),
    (NAME, "summarize", "64", "1e400", TrustState::Untrusted, &["request-schema-invalid"]),
    (NAME, "summarize", "A long", "\\ud800", TrustState::Untrusted, &["request-schema-invalid"]),
    (
        NAME,
        "summarize",
        "\"request_id\": \"req-1\"",
        "\"entry\": \"x402://a.eth/b/v1\"",
        TrustState::Trusted,
        &["request-id-missing"],
    ),
    (NAME, "summarize", "64", "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", TrustState::Indeterminate, &["request-too-complex"]),
    (NAME, "analyze", "", "", TrustState::Untrusted, &["request-verb-unbound"]),
    ("host-changed.eth", "summarize", "", "", TrustState::Untrusted, &["checksum-mismatch", "cid-mismatch"]),
    ("unregistered.eth", "summarize", "", "", TrustState::Untrusted, &["name-unregistered"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_request_gets_its_state_and_every_code_is_shown() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let (schema, good) = (schema(), Sandbox::sample_request().1);
    let mut shown = Vec::new();
    for (name, verb, from, to, state, codes) in CASES {
        let request = if from.is_empty() { good.to_owned() } else { good.replacen(from, to, 1) };
        let found = resolver.check_request(&question(name, verb, &request)).await;
        let said: Vec<&str> = found.codes.iter().map(String::as_str).collect();
        assert_eq!((found.state, &said[..]), (state, codes), "{name} {verb} {to}: {found:#?}");
        let errors: Vec<_> = schema.iter_errors(&found.to_value()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        shown.extend(found.codes);
    }
    let of_requests = ReasonCode::ALL.iter().filter(|code| code.entry().step == ResolutionStep::Request);
    let missing: Vec<_> = of_requests.filter(|code| !shown.iter().any(|slug| slug == code.slug())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_checkers_come_to_the_same_conclusion() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let checked = async || -> RequestCheckDocument {
        let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
        resolver.check_request(&question(NAME, "summarize", Sandbox::sample_request().1)).await
    };
    let (one, other) = (checked().await, checked().await);
    assert_eq!(one.conclusion, other.conclusion);
    assert_ne!(one.id, other.id, "they were made at two times");
    let bound = one.bound.expect("it was held against a schema");
    assert!(bound.location.starts_with("ipfs://") && bound.id.contains("/summarize.request.schema.json"), "{bound:?}");
}

/// A schema whose bytes are not the pinned ones, or that is not strict, judges nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_schema_is_said() {
    let cases = [
        ("commons", "clean", "foreign-reference", TrustState::Untrusted, "schema-not-strict"),
        ("commons", "convert", "unknown-keyword", TrustState::Untrusted, "schema-not-strict"),
        ("commons", "describe", "wrong-id", TrustState::Untrusted, "schema-id-mismatch"),
        ("commons", "fetch", "unavailable", TrustState::Indeterminate, "schema-unavailable"),
        ("commercial", "ship", "mutated", TrustState::Untrusted, "published-version-mutated"),
        ("commons", "parse", "mirror-down", TrustState::Untrusted, "request-schema-invalid"),
    ];
    let mut spec = String::new();
    for (class, verb, defect, ..) in cases {
        spec += &format!("[[schema]]\nverb = \"{verb}\"\ndefect = \"{defect}\"\n");
        spec +=
            &format!("[[agent]]\nname = \"{verb}.eth\"\nabout = \"Good.\"\nclass = \"{class}\"\nverb = \"{verb}\"\n");
    }
    let world = CustomSandbox::start(&SandboxSpec::parse(&spec).expect("it is a world")).await.expect("it starts");
    let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
    for (_, verb, defect, state, code) in cases {
        let found = resolver.check_request(&question(&format!("{verb}.eth"), verb, Sandbox::sample_request().1)).await;
        assert_eq!((found.state, found.codes[0].as_str()), (state, code), "{defect}: {found:#?}");
        assert_eq!(found.bound.is_some(), code.starts_with("request-"), "{defect}");
    }
}

/// An agent of the line 1.1.0, whose schemas stand at the flat places of that line.
const NEXT: &str = r#"
[[agent]]
name = "next.eth"
about = "A good commons card of the line 1.1.0."
card.remove = ["/slug", "/display_name", "/description", "/schemas_mirror", "/capabilities", "/meta"]
[agent.card.patch]
"$schema" = "https://commandlayer.org/agent-cards/schemas/v1.1.0/agent.card.schema.json"
version = "1.1.0"
entry = "https://runtime.commandlayer.org/execute"
[agent.card.patch.schemas]
request = "https://schemas.sandbox.example/schemas/v1.1.0/{class}/{verb}/{verb}.request.schema.json"
receipt = "https://schemas.sandbox.example/schemas/v1.1.0/{class}/{verb}/{verb}.receipt.schema.json"
"#;

/// The schema of its requests, as the line has them: flat.
fn flat_schema() -> Vec<u8> {
    let text = json!({"type": "string", "minLength": 1, "maxLength": 128});
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://schemas.sandbox.example/schemas/v1.1.0/commons/summarize/summarize.request.schema.json",
        "type": "object",
        "additionalProperties": false,
        "required": ["verb", "version", "request_id", "input"],
        "properties": {"verb": {"const": "summarize"}, "version": {"const": "1.1.0"}, "request_id": text, "input": text},
    });
    schema.to_string().into_bytes()
}

/// An operator's own manifest of the line, which pins this schema.
fn pinning(schema: &[u8]) -> String {
    let entry = |kind: &str| {
        let path = format!("schemas/v1.1.0/commons/summarize/summarize.{kind}.schema.json");
        let id = format!("https://schemas.sandbox.example/{path}");
        json!({"canonical": id, "mirrors": [], "path": path, "id": id})
    };
    let mut verb = json!({"name": "summarize", "request": entry("request"), "receipt": entry("receipt")});
    verb["request"]["bytes"] = schema.len().into();
    verb["request"]["sha256"] = Digest::compute(schema).to_hex().into();
    let manifest = json!({
        "schema": "clresolve.manifest/1", "id": "protocol-commons/1.1.0", "class": "commons", "version": "1.1.0",
        "source": {"repository": "own", "commit": "none", "licence": "Apache-2.0"}, "verbs": [verb], "shared": [],
    });
    manifest.to_string()
}

/// Nothing of the line 1.1.0 is pinned by its publisher. What an operator pins decides, and no other bytes do.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_the_line_1_1_0_are_held_against_what_the_operator_pins() {
    let world = CustomSandbox::start(&SandboxSpec::parse(NEXT).expect("it is a world")).await.expect("it starts");
    let good = r#"{"verb": "summarize", "version": "1.1.0", "request_id": "r-1", "input": "A long text."}"#;
    let checked = async |config: &Config, request: &str| {
        let resolver = Resolver::new(config).await.expect("its configuration is good");
        let found = resolver.check_request(&question("next.eth", "summarize", request)).await;
        (found.state, found.codes, found.bound.is_some())
    };
    let mut config = world.config();
    config.rules.profile = "agent-cards/1.1.0".to_owned();
    let unpinned = (TrustState::Indeterminate, vec!["schema-unpinned".to_owned()], false);
    assert_eq!(checked(&config, good).await, unpinned, "no manifest pins it");

    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("commons.json");
    for (served, pinned, code) in
        [(flat_schema(), flat_schema(), None), (flat_schema(), b"{}".to_vec(), Some("published-version-mutated"))]
    {
        let host = Server::tls(&["schemas.sandbox.example"], move |_| ok(&served)).await;
        let mut config = config.clone();
        std::fs::write(&manifest, pinning(&pinned)).expect("the folder can be written");
        config.rules.manifests = vec![SchemaManifestSource::File(manifest.clone())];
        config.network.connect_to.insert(0, host.detour("schemas.sandbox.example:443").parse().expect("a detour"));
        config.network.ca_pems.push(String::from_utf8(host.root.to_vec()).expect("PEM"));
        let (state, codes, bound) = checked(&config, good).await;
        assert_eq!((codes.first().map(String::as_str), bound), (code, code.is_none()), "{codes:?}");
        assert_eq!(state == TrustState::Trusted, code.is_none(), "{codes:?}");
        if code.is_none() {
            let bad = checked(&config, &good.replace("input", "text")).await;
            assert_eq!((bad.0, bad.1[0].as_str(), bad.2), (TrustState::Untrusted, "request-schema-invalid", true));
        }
    }
}

/// Each location says for itself why there are no bytes.
#[tokio::test(flavor = "multi_thread")]
async fn why_a_location_gives_no_schema_is_said() {
    let spec = "[[schema]]\nverb = \"ship\"\ndefect = \"unavailable\"\n\
                [[agent]]\nname = \"gone.eth\"\nabout = \"Its host is down.\"\nclass = \"commercial\"\nverb = \"ship\"\n\
                [[agent]]\nname = \"unnamed.eth\"\nabout = \"Names no schema.\"\ncard.remove = [\"/schemas\", \"/schemas_mirror\"]\n";
    let world = CustomSandbox::start(&SandboxSpec::parse(spec).expect("it is a world")).await.expect("it starts");
    let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
    let down = SchemaFetchError::Https(FetchError::from(SourceUnavailableError::Status(503)));
    for (name, fault) in [("gone.eth", down), ("unnamed.eth", SchemaFetchError::NotNamed)] {
        let mut asked = resolve::NameQuestion::new(name);
        asked.depth = Some(ResolutionDepth::Schemas);
        let verdict = resolver.resolve_question(&asked).await.expect("the question is good");
        let reasons = verdict.verdict().reasons.iter();
        let found: Vec<_> = reasons
            .filter(|reason| {
                reason.code == ReasonCode::SchemaUnavailable && reason.place.as_deref() == Some("/schemas/request")
            })
            .map(|reason| reason.observed.clone())
            .collect();
        assert_eq!(found, [Some(fault.to_string())], "{name}: {:#?}", verdict.verdict().reasons);
    }
}

/// Whoever sends requests for one agent over and over has its schema fetched and compiled once.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_is_fetched_once() {
    let sandbox = CustomSandbox::start(&agent()).await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let check = async |resolver: &Resolver| {
        let before = sandbox.request_counts();
        let found = resolver.check_request(&question("agent.eth", "summarize", Sandbox::sample_request().1)).await;
        assert_eq!(found.state, TrustState::Trusted, "{found:#?}");
        let now = sandbox.request_counts();
        (now.gateway - before.gateway) + (now.schemas - before.schemas)
    };
    assert!(check(&resolver).await > 0);
    assert_eq!(check(&resolver).await, 0);
}

/// A schema is known by its digest: every agent whose card binds it has it fetched and compiled once for all.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_another_agent_binds_too_is_not_fetched_again() {
    let spec = "[[agent]]\nname = \"one.eth\"\nabout = \"Good.\"\n[[agent]]\nname = \"other.eth\"\nabout = \"Good.\"\n";
    let sandbox = CustomSandbox::start(&SandboxSpec::parse(spec).expect("it is a world")).await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let mut costs = Vec::new();
    for name in ["one.eth", "other.eth"] {
        // The verdict is known, so that nothing but the schema is left to fetch.
        resolver.resolve(name).await;
        let before = sandbox.request_counts();
        let found = resolver.check_request(&question(name, "summarize", Sandbox::sample_request().1)).await;
        assert_eq!((found.state, found.bound.is_some()), (TrustState::Trusted, true), "{found:#?}");
        let now = sandbox.request_counts();
        costs.push((now.gateway - before.gateway) + (now.schemas - before.schemas));
    }
    assert!(costs[0] > 0 && costs[1] == 0, "{costs:?}");
}

fn agent() -> SandboxSpec {
    SandboxSpec::parse("[[agent]]\nname = \"agent.eth\"\nabout = \"Good.\"\n").expect("it is a world")
}

/// A template of every agent that can be asked passes as it stands, with an identifier of its own.
#[tokio::test(flavor = "multi_thread")]
async fn templates_pass() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    for (name, verb) in [(NAME, "summarize"), ("checkoutagent.eth", "checkout"), ("raw-cid.eth", "summarize")] {
        let made = resolver.request_template(name, verb, "fresh-1".to_owned()).await.expect("it has a schema");
        assert!(made.is_valid && !made.blanks.is_empty(), "{made:#?}");
        assert_eq!(made.request["x402"]["request_id"], "fresh-1");
        let found = resolver.check_request(&question(name, verb, &made.request.to_string())).await;
        assert_eq!((found.state, found.codes), (TrustState::Trusted, vec![]), "{name}");
    }
    let refused =
        resolver.request_template("host-changed.eth", "summarize", String::new()).await.expect_err("untrusted");
    assert_eq!((refused.state, refused.request), (TrustState::Untrusted, None));
    assert!(schema().is_valid(&refused.to_value()));
}

#[test]
fn the_command_says_what_the_library_says() {
    let made = clresolve(&["--sandbox", "request", "template", NAME, "summarize"], b"");
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let said = String::from_utf8(made.stderr).expect("UTF-8");
    assert!(said.contains("fill in /input/content: What it is done to."), "{said}");
    let request: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let again = clresolve(&["--sandbox", "request", "template", NAME, "summarize"], b"");
    let other: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_ne!(request["x402"]["request_id"], other["x402"]["request_id"]);

    let check = |request: &[u8], form: &str| {
        clresolve(&["--sandbox", "request", "check", NAME, "summarize", "-", "-o", form], request)
    };
    let good = check(&made.stdout, "json");
    assert_eq!(good.status.code(), Some(0), "{good:?}");
    assert!(schema().is_valid(&serde_json::from_slice(&good.stdout).expect("JSON")));
    let text = String::from_utf8(made.stdout).expect("UTF-8").replace("\"<actor>\"", "7");
    let bad = check(text.as_bytes(), "text");
    let shown = String::from_utf8(bad.stdout).expect("UTF-8");
    assert_eq!(bad.status.code(), Some(1), "{shown}");
    assert!(shown.contains("--> -:2:3") && shown.contains("^^^^^^^^^^ /actor"), "{shown}");
    let short = String::from_utf8(check(text.as_bytes(), "short").stdout).expect("UTF-8");
    assert!(short.contains("-:2:3: fail request-schema-invalid"), "{short}");
    let untrusted = clresolve(&["--sandbox", "request", "template", "host-changed.eth", "summarize"], b"");
    assert_eq!((untrusted.status.code(), untrusted.stdout.len()), (Some(1), 0), "{untrusted:?}");
    let missing = clresolve(&["--sandbox", "request", "check", NAME, "summarize", "/nonexistent.json"], b"");
    assert_eq!(missing.status.code(), Some(2));
}
