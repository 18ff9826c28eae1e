//! Orloj's cards: the specification's mapping, and the daemon's two paths.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clresolve_cards::generate::{
    CardGenerationError, GeneratedOrlojCards, MAX_BYTES, OrlojResourceFile, OrlojResourcePosition,
};
use clresolve_cards::system::{CardLintContext, CardSystem, CardSystemDetection, detect_card_system};
use clresolve_core::reason::{ReasonCode, ReasonEffect};
use clresolve_resolver::clock::Clock;
use clresolve_resolver::config::{Config, ConfigLayer};
use clresolve_resolver::resolve::Resolver;
use clresolve_server::http::{self, DaemonStartError, HttpDaemon, OrlojCardGenerationError};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};
use jiff::{SignedDuration, Timestamp};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{run, said};
use crate::support::corpus::corpus;

/// One system with one agent and two tools, on a server that says everything.
const LIBRARY: &str = "\
a2a: {publicBaseURL: 'https://orloj.example/', protocolVersion: '0.2'}
capabilities: {streaming: true, pushNotifications: false, stateTransitionHistory: true}
authentication: {schemes: [bearer]}
provider: {organization: Example, url: 'https://example.org'}
---
apiVersion: orloj.dev/v1
kind: AgentSystem
metadata:
  name: library
  labels: {orloj.dev/version: '2.1.0'}
  annotations: {orloj.dev/description: ' Lends books. '}
spec:
  agents: [librarian]
  a2a: {enabled: true}
---
apiVersion: orloj.dev/v1
kind: Agent
metadata: {name: librarian}
spec:
  prompt: You know every shelf.
  tools: [find, lend, find]
---
apiVersion: orloj.dev/v1
kind: Tool
metadata: {name: find}
spec:
  description: Finds a book
  capabilities: [search, shelf]
  operation_classes: [read, search]
  input_schema: {type: object, properties: {title: {type: string, minLength: 1}}}
---
apiVersion: orloj.dev/v1
kind: Tool
metadata: {name: lend}
spec: {type: http, input_schema: {}, description: ''}
";

/// A second system, which is not exposed.
const INTERNAL: &str =
    "---\napiVersion: orloj.dev/v1\nkind: AgentSystem\nmetadata: {name: cellar}\nspec: {agents: []}\n";

fn made(text: &str) -> Result<GeneratedOrlojCards, CardGenerationError> {
    GeneratedOrlojCards::generate_cards(&[OrlojResourceFile { file: "o.yaml", bytes: text.as_bytes() }], None)
}

fn card(text: &str) -> Value {
    let cards = made(text).unwrap_or_else(|error| panic!("{error}"));
    cards.single_card().expect("one card").json().clone()
}

fn changed(from: &str, to: &str) -> String {
    assert!(LIBRARY.contains(from), "{from}");
    LIBRARY.replacen(from, to, 1)
}

fn refused(text: &str) -> String {
    made(text).expect_err("refused").to_string()
}

#[test]
fn every_member_comes_from_where_the_mapping_says() {
    assert_eq!(
        card(LIBRARY),
        json!({
            "name": "library",
            "description": "Lends books.",
            "url": "https://orloj.example/v1/agent-systems/library/a2a",
            "version": "2.1.0",
            "protocolVersion": "0.2",
            "capabilities": {"streaming": true, "pushNotifications": false, "stateTransitionHistory": true},
            "skills": [
                {
                    "id": "find",
                    "name": "find",
                    "description": "Finds a book",
                    "inputSchema": {"type": "object", "properties": {"title": {"type": "string", "minLength": 1}}},
                    "tags": ["search", "shelf", "read"]
                },
                {"id": "lend", "name": "lend"}
            ],
            "authentication": {"schemes": ["bearer"]},
            "provider": {"organization": "Example", "url": "https://example.org"}
        })
    );
}

#[test]
fn the_published_example_comes_out_of_its_resources() {
    let Some(path) = corpus("orloj/examples/research-system.json") else { return };
    let published: Value = serde_json::from_slice(&std::fs::read(path).expect("the corpus")).expect("JSON");
    let text = |pointer: &str| published.pointer(pointer).and_then(Value::as_str).expect("text").to_owned();
    let skills = published["skills"].as_array().expect("skills");
    let tool = |skill: &Value| {
        json!({
            "apiVersion": "orloj.dev/v1",
            "kind": "Tool",
            "metadata": {"name": skill["id"]},
            "spec": {
                "description": skill["description"],
                "input_schema": skill["inputSchema"],
                "capabilities": skill["tags"],
                "endpoint": "http://10.0.0.1/tool"
            }
        })
    };
    let mut documents = vec![
        json!({
            "a2a": {"publicBaseURL": "https://orloj.example.com", "protocolVersion": text("/protocolVersion")},
            "capabilities": published["capabilities"],
            "authentication": published["authentication"],
            "provider": published["provider"],
        }),
        json!({
            "apiVersion": "orloj.dev/v1",
            "kind": "AgentSystem",
            "metadata": {"name": text("/name"), "annotations": {"orloj.dev/description": text("/description")}},
            "spec": {"agents": ["research-agent"], "a2a": {"enabled": true}}
        }),
        json!({
            "apiVersion": "orloj.dev/v1",
            "kind": "Agent",
            "metadata": {"name": "research-agent"},
            "spec": {"tools": skills.iter().map(|skill| skill["id"].clone()).collect::<Vec<_>>()}
        }),
    ];
    documents.extend(skills.iter().map(tool));
    // JSON is YAML.
    let resources: Vec<String> = documents.iter().map(|document| format!("---\n{document:#}\n")).collect();
    assert_eq!(card(&resources.concat()), published);
}

#[test]
fn generated_cards_pass_the_rules_for_such_cards() {
    let profiles = ConformanceProfiles::builtin();
    let profile = profiles.get(DEFAULT).expect("built in");
    for text in [LIBRARY.to_owned(), changed(", protocolVersion: '0.2'", ""), changed("[bearer]", "[]")] {
        let made = AgentCard::parse(card(&text).to_string().as_bytes()).expect("a card");
        assert_eq!(detect_card_system(&made), CardSystemDetection::One(CardSystem::Orloj));
        let found = CardSystem::Orloj.check_card(&made, &CardLintContext::from_profile(&profile));
        assert!(found.iter().all(|reason| reason.effect != ReasonEffect::Fail), "{found:#?}");
    }
}

#[test]
fn no_card_is_made_that_the_rules_for_such_cards_refuse() {
    let text = changed("https://orloj.example/", "https://orloj.example/%zz");
    match made(&text) {
        Err(CardGenerationError::Invalidated { place, system, reason }) => {
            assert_eq!((system.as_str(), reason.code, place.line), ("library", ReasonCode::OrUrlMalformed, 9));
            assert_eq!(reason.place.as_deref(), Some("/url"));
        }
        other => panic!("{other:?}"),
    }
    assert!(refused(&text).contains("`clresolve explain or-url-malformed` says more"), "{}", refused(&text));
    for (typed, written) in [
        ("https://ä.example/ü", "https://xn--4ca.example/%C3%BC"),
        ("https://Example.org", "https://example.org/"),
        ("https://example.org/a/", "https://example.org/a/"),
    ] {
        assert_eq!(card(&changed("https://example.org", typed))["provider"]["url"], written);
    }
    assert!(refused(&changed("https://example.org", "https://example.org/%zz")).contains("or-provider-url-malformed"));
}

#[test]
fn or_3_the_url_ends_in_the_name_and_the_namespace() {
    let url = |name: &str, more: &str| {
        let text = changed("  name: library\n", &format!("  name: '{name}'\n{more}"));
        card(&text.replace("agents: [librarian]", "agents: []"))["url"].clone()
    };
    assert_eq!(url("library", "  namespace: default\n"), "https://orloj.example/v1/agent-systems/library/a2a");
    assert_eq!(
        url("bücher&co?", "  namespace: 'a b+c'\n".replace(' ', "").replace("namespace:", "  namespace: ").as_str()),
        "https://orloj.example/v1/agent-systems/b%C3%BCcher%26co%3F/a2a?namespace=ab%2Bc"
    );
    let resource = refused(&changed("https://orloj.example/", "https://u:p@orloj.example/"));
    assert_eq!(
        resource,
        "o.yaml, line 1: a2a.publicBaseURL: expected a URL such as https://agent.example, without user info, query or fragment"
    );
    let unknown = made(&changed("publicBaseURL: 'https://orloj.example/', ", "")).map(|_| ());
    assert_eq!(unknown, Err(CardGenerationError::BaseUrlMissing));
}

#[test]
fn or_7_nothing_but_the_listed_members_reaches_a_card() {
    // Every other member, also one that nobody has thought of, holds a mark.
    let text = LIBRARY
        .replace("kind: Tool\nmetadata: {name: find}\nspec:\n", "kind: Tool\nmetadata: {name: find, labels: {l: MARK}}\nspec:\n  endpoint: MARK\n  auth: {secretRef: MARK, profile: MARK, headerName: MARK}\n  cli: {env: [MARK]}\n  runtime: {timeout: MARK}\n")
        .replace("  prompt: You", "  model_ref: MARK\n  memory: {ref: MARK}\n  roles: [MARK]\n  prompt: You")
        .replace("  a2a: {enabled: true}", "  a2a: {enabled: true, token: MARK}\n  graph: {MARK: {next: MARK}}\nstatus: {lastError: MARK}")
        .replace("  labels: {", "  uid: MARK\n  labels: {other: MARK, ")
        .replace("{organization:", "{contact: MARK, organization:")
        + "---\napiVersion: v1\nkind: Secret\nstringData: {MARK: MARK}\n---\napiVersion: orloj.dev/v1\nkind: Secret\nmetadata: MARK\nspec: [MARK]\n";
    assert!(text.matches("MARK").count() > 20);
    assert_eq!(card(&text), card(LIBRARY));
}

#[test]
fn or_7_what_looks_like_a_credential_is_refused_and_not_repeated() {
    let key = format!("sk_live_{}", "4eC39HqLyjWDarjtT1zdp7dc");
    for (text, pointer) in [
        (changed("'  Lends".replace("  ", " ").as_str(), &format!("'{key} Lends")), "/description"),
        (changed("Finds a book", &format!("Finds, password={key}")), "/skills/0/description"),
        (changed("minLength: 1", &format!("default: {key}")), "/skills/0/inputSchema/properties/title/default"),
        (
            changed("annotations: {orloj.dev/description: ' Lends books. '}", "annotations: {}")
                .replace("You know", &format!("Use {key} to know")),
            "/description",
        ),
    ] {
        match made(&text) {
            Err(CardGenerationError::Secret { place, system, pointer: found, what }) => {
                assert_eq!((system.as_str(), found.as_str(), place.line), ("library", pointer, 9));
                assert!(!what.contains("4eC39"), "{what}");
            }
            other => panic!("{other:?}"),
        }
        assert!(!refused(&text).contains("4eC39"));
    }
}

#[test]
fn or_9_and_or_10_what_a_tool_does_not_say_is_left_out() {
    for spec in ["{}", "{description: ' ', input_schema: {}, capabilities: [], operation_classes: ['']}"] {
        let text = changed("{type: http, input_schema: {}, description: ''}", spec);
        assert_eq!(card(&text)["skills"][1], json!({"id": "lend", "name": "lend"}));
        let cards = made(&text).expect("cards");
        let notes = cards.single_card().expect("one").notes();
        assert_eq!(
            notes,
            ["the card of library: the Tool lend has no spec.description, so the skill has no description"]
        );
    }
    let unknown = made(&changed("[find, lend, find]", "[find, lend, burn]")).expect("cards");
    assert_eq!(unknown.single_card().expect("one").json()["skills"].as_array().map(Vec::len), Some(2));
    let note = "the card of library: o.yaml, line 21: the Tool burn is in no document, so the card has no skill for it";
    assert!(unknown.single_card().expect("one").notes().contains(&note.to_owned()));
}

#[test]
fn or_12_authentication_is_the_servers_unless_the_system_is_public() {
    let schemes = |text: &str| card(text).pointer("/authentication/schemes").cloned();
    assert_eq!(schemes(&changed("[bearer]", "[bearer, api_key]")), Some(json!(["bearer", "api_key"])));
    assert_eq!(schemes(&changed("[bearer]", "[]")), None);
    assert_eq!(schemes(&changed("authentication: {schemes: [bearer]}\n", "")), Some(json!(["bearer"])));
    assert_eq!(schemes(&changed("{enabled: true}", "{enabled: true, auth: public}")), None);
    assert_eq!(schemes(&changed("{enabled: true}", "{enabled: true, auth: bearer}")), Some(json!(["bearer"])));
    assert_eq!(
        refused(&changed("{enabled: true}", "{enabled: true, auth: maybe}")),
        "o.yaml, line 14: spec.a2a.auth: expected public or bearer"
    );
    assert!(
        refused(&changed("[bearer]", "[7]")).starts_with("o.yaml, line 3: authentication.schemes[0]: expected text")
    );
}

#[test]
fn or_14_versions_are_texts() {
    assert_eq!(card(&changed("{orloj.dev/version: '2.1.0'}", "{}")).get("version"), None);
    assert_eq!(card(&changed(", protocolVersion: '0.2'", "")).get("protocolVersion"), None);
    assert_eq!(
        refused(&changed("'2.1.0'", "2.1")),
        "o.yaml, line 10: metadata.labels.orloj.dev/version: expected text; put it in quotes, found a number"
    );
    assert!(refused(&changed("'0.2'", "0.2")).contains("a2a.protocolVersion: expected text; put it in quotes"));
    // Orloj's specification gives the setting no form, so the card says it as it is.
    for (text, version) in [("latest", "latest"), ("'1'", "1")] {
        assert_eq!(card(&changed("'0.2'", text))["protocolVersion"], version);
    }
}

#[test]
fn a_server_of_a2a_1_shows_the_members_of_that_version_beside_the_older_ones() {
    let card = card(&changed("protocolVersion: '0.2'", "protocolVersion: '1.0'"));
    let url = "https://orloj.example/v1/agent-systems/library/a2a";
    assert_eq!(
        card["supportedInterfaces"],
        json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}])
    );
    assert_eq!(card["url"], url);
    assert_eq!(card["defaultInputModes"], json!(["text/plain"]));
    assert_eq!(card["securitySchemes"], json!({"bearerAuth": {"httpAuthSecurityScheme": {"scheme": "bearer"}}}));
    assert_eq!(card["securityRequirements"], json!([{"schemes": {"bearerAuth": {"list": []}}}]));
}

#[test]
fn a_scheme_that_a2a_1_cannot_write_is_never_taken_for_none() {
    let of = |schemes: &str| {
        let text = changed("protocolVersion: '0.2'", "protocolVersion: '1.0'").replacen("[bearer]", schemes, 1);
        let cards = made(&text).expect("cards");
        let made = cards.single_card().expect("one");
        let note = made.notes().iter().find(|note| note.contains("A2A 1.0")).cloned().unwrap_or_default();
        (made.json().clone(), note)
    };
    for schemes in ["[apiKey]", "[oauth2, apiKey]"] {
        let (card, note) = of(schemes);
        for member in ["supportedInterfaces", "defaultInputModes", "securitySchemes", "securityRequirements"] {
            assert_eq!(card.get(member), None, "{schemes}: {member}");
        }
        assert!(card["authentication"]["schemes"].is_array());
        assert!(note.contains("the members of A2A 1.0 are omitted"), "{note}");
    }
    let bearer = json!([{"schemes": {"bearerAuth": {"list": []}}}]);
    let (card, note) = of("[bearer, apiKey]");
    assert_eq!(
        (&card["securityRequirements"], &card["authentication"]["schemes"]),
        (&bearer, &json!(["bearer", "apiKey"]))
    );
    assert!(note.contains("leave out apiKey"), "{note}");
    let (card, note) = of("[Bearer, bearer]");
    assert_eq!((&card["securityRequirements"], &card["authentication"]["schemes"]), (&bearer, &json!(["Bearer"])));
    assert_eq!(note, "");
    let (card, note) = of("[mtls, mutualTLS]");
    assert_eq!(card["securitySchemes"], json!({"mutualTls": {"mtlsSecurityScheme": {}}}));
    assert_eq!(
        (&card["securityRequirements"], note.as_str()),
        (&json!([{"schemes": {"mutualTls": {"list": []}}}]), "")
    );
    let (card, _) = of("[]");
    assert_eq!(
        (card.get("securityRequirements"), card["supportedInterfaces"].is_array()),
        (None, true),
        "nothing is asked"
    );
}

#[test]
fn descriptions_fall_back_to_the_agents_word_and_then_to_its_prompt() {
    let bare = changed("annotations: {orloj.dev/description: ' Lends books. '}", "annotations: {}");
    assert_eq!(card(&bare)["description"], "You know every shelf.");
    let annotated =
        bare.replace("{name: librarian}", "{name: librarian, annotations: {orloj.dev/description: A librarian}}");
    assert_eq!(card(&annotated)["description"], "A librarian");
    let long = bare.replace("You know every shelf.", &format!("|\n    Two\n    lines. {}", "ü".repeat(300)));
    let excerpt = card(&long)["description"].as_str().expect("text").to_owned();
    assert!(excerpt.starts_with("Two lines. üü") && excerpt.ends_with("ü…") && excerpt.len() <= 200, "{excerpt}");
    let nothing = bare.replace("  prompt: You know every shelf.\n", "");
    assert_eq!(card(&nothing).get("description"), None);
    let notes = made(&nothing).expect("cards").single_card().expect("one").notes()[0].clone();
    assert_eq!(
        notes,
        "the card of library: it has no description; annotate the AgentSystem with orloj.dev/description"
    );
}

#[test]
fn errors_name_the_line_and_what_to_do() {
    let missing = CardGenerationError::AgentMissing {
        place: OrlojResourcePosition { file: "o.yaml".to_owned(), line: 13 },
        system: "library".to_owned(),
        agent: "porter".to_owned(),
    };
    assert_eq!(made(&changed("agents: [librarian]", "agents: [porter]")).map(|_| ()), Err(missing));
    for (text, expected) in [
        (changed("agents: [librarian]", "agents: [porter]"), "line 13: the AgentSystem library names the Agent porter"),
        (changed("{enabled: true}", "{enabled: yes}"), "line 14: spec.a2a.enabled: expected true or false, found text"),
        (changed("  name: library\n", ""), "line 9: metadata: name is missing; add it"),
        (changed("kind: Agent\n", "type: Agent\n"), "line 16: apiVersion: the document has no kind"),
        (changed("apiVersion: orloj.dev/v1", "apiVersion: orloj.dev/v2"), "line 6: apiVersion: expected orloj.dev/v1"),
        (changed("name: lend}", "name: find}"), "line 34: metadata: duplicate of the Tool find in o.yaml, line 25"),
        (changed("  name: library\n", "  name: a/b\n"), "line 9: metadata.name: expected a name of 1 to 253 bytes"),
        (changed("tools: [find,", "tools: [find,,"), "line 21"),
        (
            changed("minLength: 1", "maximum: 12345678901234567890123"),
            "line 30: spec.input_schema: a whole number has a zero before it, or is beyond 9007199254740991",
        ),
        (changed("minLength: 1", "minLength: 010"), "line 30: spec.input_schema: a whole number has a zero before it"),
        (
            format!("{LIBRARY}---\na2a: {{}}\n"),
            "line 37: the document: a second document with the server's configuration",
        ),
        (changed("{type: object,", "[type,"), "line 30"),
    ] {
        let found = refused(&text);
        assert!(found.starts_with(&format!("o.yaml, {expected}")), "{expected}: {found}");
    }
    let place = OrlojResourcePosition { file: "\u{1b}[31m.yaml".to_owned(), line: 3 };
    assert_eq!(place.to_string(), "\\u{1b}[31m.yaml, line 3");
    let bytes = GeneratedOrlojCards::generate_cards(&[OrlojResourceFile { file: "o.yaml", bytes: b"a: \xff" }], None)
        .expect_err("no text");
    assert_eq!(bytes, CardGenerationError::NotUtf8 { file: "o.yaml".to_owned(), offset: 3 });
    let deep = changed("{title: {type: string, minLength: 1}}", &format!("{}1{}", "{a: ".repeat(14), "}".repeat(14)));
    assert!(matches!(made(&deep), Err(CardGenerationError::Unreadable { .. })), "{}", refused(&deep));
    let long = vec![b' '; MAX_BYTES + 1];
    let halves = long.split_at(MAX_BYTES / 2);
    let of = |bytes: &[&[u8]]| {
        let sources: Vec<_> = bytes.iter().map(|bytes| OrlojResourceFile { file: "o.yaml", bytes }).collect();
        GeneratedOrlojCards::generate_cards(&sources, None).map(|_| ())
    };
    assert_eq!(of(&[halves.0, halves.1]), Err(CardGenerationError::TooLarge { limit: MAX_BYTES }));
    assert_eq!(of(&[halves.0, &halves.1[1..]]), Ok(()));
}

#[test]
fn the_command_line_writes_the_card() {
    let (code, out, error) = said(&run(&["cards", "generate", "--from", "-"], LIBRARY.as_bytes()));
    assert_eq!(code, 0, "{error}");
    assert_eq!(serde_json::from_str::<Value>(&out).expect("JSON"), card(LIBRARY));
    assert!(out.starts_with("{\n  \"name\": \"library\",\n  \"description\": \"Lends books.\",\n  \"url\":"), "{out}");
    assert!(error.contains("the Tool lend has no spec.description"), "{error}");

    let base = [
        "cards",
        "generate",
        "--from",
        "-",
        "--base-url",
        "https://other.example/x",
        "--system",
        "library",
        "-o",
        "jsonl",
    ];
    let (code, out, _) = said(&run(&base, format!("{LIBRARY}{INTERNAL}").as_bytes()));
    assert_eq!((code, out.lines().count()), (0, 1));
    assert!(out.contains("https://other.example/x/v1/agent-systems/library/a2a"), "{out}");

    for (arguments, input, expected) in [
        (&["--system", "cellar"][..], format!("{LIBRARY}{INTERNAL}"), "it is not exposed; set spec.a2a.enabled: true"),
        (
            &["--system", "attic"],
            LIBRARY.to_owned(),
            "no AgentSystem has this name; those that have a card are default/library",
        ),
        (&[], INTERNAL.to_owned(), "no AgentSystem is exposed; set spec.a2a.enabled: true"),
        (&[], changed("kind: Tool", "kind: ["), "clresolve: standard input, line "),
        (&["--base-url", "orloj.example"], LIBRARY.to_owned(), "expected a URL such as https://agent.example"),
    ] {
        let (code, out, error) =
            said(&run(&[&["cards", "generate", "--from", "-"], arguments].concat(), input.as_bytes()));
        assert_eq!((code, out.as_str()), (2, ""), "{error}");
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

/// So many seconds after the beginning.
#[derive(Default)]
struct Stopped(AtomicI64);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        let beginning: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a moment");
        beginning + SignedDuration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

/// A daemon whose resources stand in a file that tests change.
struct Daemon {
    root: String,
    clock: Arc<Stopped>,
    file: tempfile::NamedTempFile,
    _stop: oneshot::Sender<()>,
}

impl Daemon {
    async fn start(resources: &str) -> Self {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), resources).expect("written");
        let mut config = Config::default();
        config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
        config.orloj.resources = vec![file.path().to_owned()];
        let clock = Arc::new(Stopped::default());
        let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("a resolver");
        let server = HttpDaemon::bind_with_resolver(&config, resolver).await.expect("the daemon starts");
        let root = format!("http://{}", server.address());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(server.run(async move { drop(stopped.await) }));
        Self { root, clock, file, _stop: stop }
    }

    fn write(&self, resources: &str) {
        std::fs::write(self.file.path(), resources).expect("written");
    }

    fn later(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds, Ordering::Relaxed);
    }

    async fn get(&self, path: &str, headers: &[(&'static str, &str)]) -> Response {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let request = client.get(format!("{}{path}", self.root));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send().await.expect("an answer")
    }
}

const ROOT: &str = "/.well-known/agent-card.json";
const OWN: &str = "/v1/agent-systems/library/.well-known/agent-card.json";

async fn json_of(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON")
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    response.headers().get(name).map_or("", |value| value.to_str().expect("text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn or_4_the_root_has_a_card_only_where_one_system_is_exposed() {
    let daemon = Daemon::start(&format!("{LIBRARY}{INTERNAL}")).await;
    let root = daemon.get(ROOT, &[]).await;
    assert_eq!((root.status(), header(&root, "content-type")), (StatusCode::OK, "application/json"));
    assert_eq!(json_of(root).await, card(LIBRARY));

    // Whom the endpoint lets in decides nothing: the card of either is for anybody.
    let open = LIBRARY.replace("{enabled: true}", "{enabled: true, auth: public}");
    daemon.write(&open);
    daemon.later(10);
    assert_eq!(json_of(daemon.get(ROOT, &[]).await).await, card(&open));

    for (resources, detail) in [
        (
            format!("{LIBRARY}{}", INTERNAL.replace("agents: []", "agents: [], a2a: {enabled: true}")),
            "2 AgentSystems are",
        ),
        (
            format!("{LIBRARY}{}", INTERNAL.replace("agents: []", "agents: [], a2a: {enabled: true, auth: public}")),
            "2 AgentSystems are",
        ),
        (LIBRARY.replace("enabled: true", "enabled: false"), "no AgentSystem is exposed"),
    ] {
        daemon.write(&resources);
        daemon.later(10);
        let root = daemon.get(ROOT, &[]).await;
        assert_eq!((root.status(), header(&root, "content-type")), (StatusCode::NOT_FOUND, "application/problem+json"));
        let problem = json_of(root).await;
        assert_eq!(problem["code"], "card-absent");
        assert!(problem["detail"].as_str().is_some_and(|found| found.starts_with(detail)), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn or_5_each_system_has_its_own_path() {
    let elsewhere =
        INTERNAL.replace("name: cellar", "name: cellar, namespace: below").replace("[]", "[], a2a: {enabled: true}");
    let daemon = Daemon::start(&format!("{LIBRARY}{elsewhere}")).await;
    assert_eq!(json_of(daemon.get(OWN, &[]).await).await["name"], "library");
    assert_eq!(json_of(daemon.get(&OWN.replace("library", "li%62rary"), &[]).await).await["name"], "library");
    let path = OWN.replace("library", "cellar");
    assert_eq!(daemon.get(&path, &[]).await.status(), StatusCode::NOT_FOUND);
    let found = json_of(daemon.get(&format!("{path}?namespace=below"), &[]).await).await;
    assert_eq!(found["url"], "https://orloj.example/v1/agent-systems/cellar/a2a?namespace=below");
    for path in [OWN.replace("library", "attic"), OWN.replace("library", ""), OWN.replace("library", "%ff")] {
        assert_eq!(daemon.get(&path, &[]).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn or_6_nobody_is_asked_for_credentials() {
    let daemon = Daemon::start(LIBRARY).await;
    for path in [ROOT, OWN] {
        let plain = daemon.get(path, &[]).await;
        assert_eq!(plain.status(), StatusCode::OK);
        assert_eq!(header(&plain, "vary"), "");
        let plain = plain.bytes().await.expect("a body");
        let wrong = daemon.get(path, &[("authorization", "Bearer nonsense"), ("cookie", "a=b")]).await;
        assert_eq!((wrong.status(), header(&wrong, "www-authenticate")), (StatusCode::OK, ""));
        assert_eq!(wrong.bytes().await.expect("a body"), plain);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn or_15_cards_follow_their_resources_and_are_not_served_past_their_freshness() {
    let daemon = Daemon::start(LIBRARY).await;
    let first = daemon.get(OWN, &[]).await;
    assert_eq!(header(&first, "cache-control"), "public, max-age=300");
    assert_eq!((header(&first, "age"), header(&first, "x-content-type-options")), ("0", "nosniff"));
    let tag = header(&first, "etag").to_owned();
    let same = daemon.get(OWN, &[("if-none-match", &tag)]).await;
    assert_eq!((same.status(), header(&same, "etag")), (StatusCode::NOT_MODIFIED, tag.as_str()));

    daemon.write(&changed("Lends books", "Lends maps"));
    daemon.later(9);
    let known = daemon.get(OWN, &[]).await;
    assert_eq!((header(&known, "etag"), header(&known, "age")), (tag.as_str(), "9"));
    daemon.later(1);
    let new = daemon.get(OWN, &[("if-none-match", &tag)]).await;
    assert_eq!((new.status(), header(&new, "age")), (StatusCode::OK, "0"));
    assert_ne!(header(&new, "etag"), tag);
    assert_eq!(json_of(new).await["description"], "Lends maps.");

    daemon.write("kind: [");
    daemon.later(299);
    let kept = daemon.get(OWN, &[]).await;
    assert_eq!((kept.status(), header(&kept, "age")), (StatusCode::OK, "299"));
    daemon.later(1);
    let stale = daemon.get(OWN, &[]).await;
    assert_eq!(stale.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(json_of(stale).await["code"], "resources-unreadable");
    daemon.write(LIBRARY);
    daemon.later(10);
    assert_eq!(daemon.get(OWN, &[]).await.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_resources_there_are_no_such_routes() {
    let mut config = Config::default();
    config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
    let server = HttpDaemon::bind(&config).await.expect("the daemon starts");
    let root = format!("http://{}", server.address());
    tokio::spawn(server.run(std::future::pending()));
    for path in [ROOT, OWN] {
        let answer = reqwest::Client::builder().no_proxy().build().expect("a client");
        let answer = answer.get(format!("{root}{path}")).send().await.expect("an answer");
        assert_eq!(json_of(answer).await["code"], "route-unknown");
    }
}

#[test]
fn resources_that_make_no_cards_keep_the_daemon_from_starting() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("o.yaml"), "kind: AgentSystem\n").expect("written");
    let config = |text: &str| {
        std::fs::write(folder.path().join("c.toml"), text).expect("written");
        let layer = ConfigLayer::from_file(&folder.path().join("c.toml")).expect("a configuration");
        Config::default().with_layers([layer]).expect("a world")
    };
    let refused = |text| http::check_serving_config(&config(text)).expect_err("refused");
    // Paths are taken from the folder of the configuration.
    match refused("[orloj]\nresources = [\"o.yaml\"]\n") {
        DaemonStartError::Systems(OrlojCardGenerationError::Generate(CardGenerationError::Invalid {
            place,
            detail,
        })) => {
            assert_eq!((place.line, detail.as_str()), (1, "the document: apiVersion is missing; add it"));
        }
        other => panic!("{other:?}"),
    }
    match refused("[orloj]\nresources = [\"none.yaml\"]\n") {
        error @ DaemonStartError::Systems(OrlojCardGenerationError::Unreadable { .. }) => {
            let missing = error.to_string();
            assert!(missing.starts_with("orloj.resources: cannot read ") && missing.contains("none.yaml"), "{missing}");
        }
        other => panic!("{other:?}"),
    }
}
