//! The explorer: the page of a name, its policy, and what it makes of text that others chose.

use clresolve_core::reading::BlockSelector;
use clresolve_core::reason::ReasonCode;
use clresolve_resolver::config::{ChainProofMode, Config, ProofGrade};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_server::http::HttpDaemon;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::freshness::{NAME, NodeBehaviour, Scene};
use super::{BAD, Daemon, GOOD, HttpResponse, PATIENCE, answer, percent_encoded};

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// Markup, in each place where HTML would read it.
const MARKUP: &str = "\"><script>alert(1)</script><img src=x onerror='a'>&lt;";

impl Daemon {
    async fn page(&self, query: &str) -> (u16, String) {
        let answer = self.get(&format!("/{query}")).await;
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{query}");
        assert_eq!(answer.header("content-security-policy"), POLICY, "{query}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{query}");
        (answer.status, String::from_utf8(answer.body).expect("UTF-8"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_what_the_verdict_says() {
    let daemon = Daemon::start(|_| {}).await;
    let (status, start) = daemon.page("").await;
    assert!(status == 200 && start.contains("to be proven") && !start.contains("class=\"hero"), "{start}");
    let (_, good) = daemon.page(&format!("?name={GOOD}")).await;
    let verdict = daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json();
    let identity = &verdict["identity"];
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let (sha256, owner) = (text(&identity["card"]["sha256"]), text(&identity["owner"]["name"]));
    let owner = format!("<dt>Owner</dt><dd><code>{owner}</code> <span class=\"soft\">proven on chain</span></dd>");
    let version = format!("<dt>Version</dt><dd>{}</dd>", text(&identity["version"]));
    let command = "clresolve --sandbox summarizeagent.eth";
    for told in ["<title>Trusted: summarizeagent.eth</title>", &*sha256, &*owner, &*version, "single-rpc", command] {
        assert!(good.contains(told), "{told}: {good}");
    }
    assert!(good.contains(verdict["steps"][1]["evidence"]["addresses"]["2147514985"].as_str().expect("a payee")));
    let (status, bad) = daemon.page(&format!("?name={BAD}")).await;
    let reason = daemon.get(&format!("/v1/verdicts/{BAD}")).await.json()["reasons"][0].clone();
    let row = |label: &str, value: &Value| format!("<dt>{label}</dt><dd><code>{}</code></dd>", text(value));
    let (expected, observed) = (row("Expected", &reason["expected"]), row("Observed", &reason["observed"]));
    for told in ["Untrusted", "entry-version-noncompliant", "CL-22", &*expected, &*observed] {
        assert!(status == 200 && bad.contains(told), "{told}: {bad}");
    }
    let (_, offered) = daemon.page("?name=offered-payee.eth").await;
    assert!(offered.contains("takes a signed offer, an ERC-8004 registration or the operator's list"), "{offered}");
    let (_, fixable) = daemon.page("?name=checksum-mismatch.eth").await;
    assert!(fixable.contains("<code>cl.checksum.agentcard = sha256:"), "{fixable}");
    let (_, open) = daemon.page("?name=cid-unproven.eth").await;
    assert!(open.contains("Indeterminate") && open.contains("Do not rely on it yet."), "{open}");
    let (_, pending) = daemon.page("?name=record-pending.eth").await;
    assert!(pending.contains("Do not rely on it yet. Ask again in about 15 minutes."), "{pending}");
    let (_, released) = daemon.page("?name=released-form.eth").await;
    let near = "/?name=released-form.eth&amp;profile=agent-cards%2F1.0.0%2Breleased";
    assert!(released.contains(near), "{released}");
    let (_, released) = daemon.page(&near[1..].replace("&amp;", "&")).await;
    assert!(released.contains("<title>Denied: released-form.eth</title>"), "{released}");
    for told in
        ["<input type=\"checkbox\" name=\"profile\" value=\"agent-cards/1.0.0+released\" checked>", "class=\"rules\""]
    {
        assert!(released.contains(told), "{told}: {released}");
    }
    let command = "clresolve --sandbox --profile agent-cards/1.0.0+released released-form.eth";
    assert!(released.contains(command), "{released}");
    let (_, deep) = daemon.page("?name=released-form.eth&depth=schemas").await;
    for told in
        ["name=\"depth\" value=\"schemas\"", &format!("{near}&amp;depth=schemas"), "--depth schemas released-form.eth"]
    {
        assert!(deep.contains(told), "{told}: {deep}");
    }
    let other = Daemon::start(|config| config.rules.profile = "agent-cards/1.0.0+released".to_owned()).await;
    let (_, page) = other.page("?name=released-form.eth").await;
    assert!(page.contains(command), "rules of the daemon that are not the program's: {page}");
    let newest = Daemon::start(|config| config.chain.block = BlockSelector::Latest).await;
    let (_, page) = newest.page(&format!("?name={GOOD}")).await;
    assert!(page.contains("clresolve --sandbox --block latest summarizeagent.eth"), "{page}");
}

/// The page shows a hint for a typing error. The HTTP API still returns a verdict.
#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_no_name_gets_a_hint_instead_of_a_verdict() {
    let daemon = Daemon::start(|config| config.explorer.probe = false).await;
    let meant = "Did you mean <a href=\"/?name=summarizeagent.eth\">summarizeagent.eth</a>?";
    for (typed, told) in [
        ("summarizeagent", meant),
        ("summarizeagent.eth.", meant),
        ("x402://summarizeagent.eth/summarize/v1", meant),
        ("https://a.example/card.json", "Did you mean <a href=\"/?name=a.example\">a.example</a>?"),
        ("0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e", "This is an address."),
        ("no name", "An ENS name has a dot"),
        ("a..eth", "The name has an empty label."),
    ] {
        let (status, page) = daemon.page(&format!("?name={}", percent_encoded(typed))).await;
        for part in ["<title>Not an ENS name: ", "class=\"hero no-name\"", told] {
            assert!(status == 200 && page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("Untrusted") && !page.contains("stage fail"), "{page}");
        assert_eq!(page.contains("Did you mean"), told.contains("Did you mean"), "{page}");
    }
    let (_, page) = daemon.page("?name=summarizeagent&depth=schemas").await;
    assert!(page.contains("<a href=\"/?name=summarizeagent.eth&amp;depth=schemas\">"), "{page}");
    let verdict = daemon.get("/v1/verdicts/a..eth").await.json();
    assert_eq!((&verdict["state"], &verdict["reasons"][0]["code"]), (&json!("untrusted"), &json!("name-invalid")));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_sandbox_offers_its_names() {
    let (_, start) = Daemon::start(|_| {}).await.page("").await;
    assert!(start.contains("This is a sandbox"), "{start}");
    for expected in Sandbox::expected_verdicts() {
        let link = format!(">{}</a>", expected.name);
        assert_eq!(start.matches(&link).count(), 1, "{link}");
    }
    assert!(start.contains("<a href=\"/?name=summarizeagent.eth\">summarizeagent.eth</a>"), "{start}");
    let (_, start) = Daemon::start(|config| config.chain.world = "dev".to_owned()).await.page("").await;
    assert!(!start.contains("sandbox") && !start.contains("summarizeagent.eth</a>"), "{start}");
}

/// The command asks the same world by the same demand, also where the chain did not answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_asks_the_world_that_the_daemon_asks() {
    let another = Daemon::start(|config| {
        (config.chain.world, config.chain.proof) = ("dev".to_owned(), Some(ChainProofMode::StateProof));
    });
    let another = another.await;
    let (_, page) = another.page(&format!("?name={GOOD}")).await;
    assert!(page.contains("clresolve --chain-id 31337 --proof state-proof summarizeagent.eth"), "{page}");
    let silent = Daemon::start(|config| {
        let nobody = "http://127.0.0.1:1".parse().expect("an endpoint");
        (config.chain.endpoints, config.chain.block) = (vec![nobody], BlockSelector::Latest);
    });
    let (_, page) = silent.await.page(&format!("?name={GOOD}")).await;
    assert!(
        page.contains("rpc-unreachable") && page.contains("clresolve --sandbox --block latest summarize"),
        "{page}"
    );
}

/// A joiner shows nothing and is part of a name: what is sent again or copied has it.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_a_joiner_is_sent_and_copied_as_it_is() {
    let daemon = Daemon::start(|_| {}).await;
    let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f466}.eth";
    let (_, page) = daemon.page(&format!("?name={}", percent_encoded(family))).await;
    let command = r"clresolve --sandbox &quot;$(printf %b '👨\0342\0200\0215👩\0342\0200\0215👦.eth')&quot;";
    for told in ["name-unregistered", &format!("value=\"{family}\""), &format!("data-name=\"{family}\""), command] {
        assert!(page.contains(told), "{told}: {page}");
    }
}

/// A page promises no payment, and says so where the gate denies what is trusted.
#[tokio::test(flavor = "multi_thread")]
async fn what_to_do_is_what_the_gate_says() {
    type Change = fn(&mut Config);
    let as_shipped: Change = |_| {};
    let denied = [
        (as_shipped, "released-form.eth", "&profile=agent-cards%2F1.0.0%2Breleased", "entry-version-noncompliant"),
        (|config: &mut Config| config.chain.endpoints[0].own = false, GOOD, "", "single-rpc"),
        (|config: &mut Config| config.gate.min_proof = Some(ProofGrade::Quorum), GOOD, "", "proof-too-weak"),
        (
            |config: &mut Config| config.gate.deny = vec![ReasonCode::NameWildcard],
            "alice.wildcard.eth",
            "",
            "name-wildcard",
        ),
    ];
    for (change, name, rules, code) in denied {
        let daemon = Daemon::start(change).await;
        answer(daemon.request(Method::GET, &format!("/v1/gate/{name}"))).await.is_closed_gate(code);
        let (_, page) = daemon.page(&format!("?name={name}{rules}")).await;
        let advice = format!("Do not call or pay it: the gate denies it, <code>{code}</code>.");
        assert!(page.contains(&format!("<title>Denied: {name}</title>")) && page.contains(&advice), "{page}");
        assert!(!page.contains("is bound to") && !page.contains("data-seller"), "{page}");
        assert_eq!(page.contains("class=\"rules\""), !rules.is_empty(), "{page}");
    }
    let daemon = Daemon::start(|config| config.rules.profile = "agent-cards/1.0.0+released".to_owned()).await;
    let (_, page) = daemon.page("?name=released-form.eth&profile=agent-cards%2F1.0.0").await;
    assert!(page.contains("and lets it pass.") && page.contains("Do not call or pay it; its publisher"), "{page}");
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 1).await;
    let (_, page) = daemon.page(&format!("?name={GOOD}&depth=schemas")).await;
    assert!(page.contains("were not used: <code>client-over-quota</code>") && !page.contains("is bound to"), "{page}");
    // Its payee is wrong, which no verdict covers.
    let daemon = Daemon::start(|_| {}).await;
    let (_, page) = daemon.page("?name=payee-mismatch.eth").await;
    let advice = "<p class=\"advice\">The name is bound to this card and to the entry \
                  <code>x402://payee-mismatch.eth/summarize/v1</code>. This does not cover whom to pay: ";
    assert!(page.contains(advice) && !page.contains("payments may"), "{page}");
}

/// Names are typed by anybody, and a link may hold any name; cards and records are written by publishers.
#[tokio::test(flavor = "multi_thread")]
async fn markup_of_others_stays_text() {
    let daemon = Daemon::start(|_| {}).await;
    let typed = percent_encoded(MARKUP);
    for query in [format!("?name={typed}"), format!("?name={GOOD}&profile={typed}"), format!("?name=a&{typed}=b")] {
        let (_, page) = daemon.page(&query).await;
        assert!(!page.contains("alert(1)</script>") && !page.contains("<img"), "{query}: {page}");
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{query}: {page}");
        assert_eq!(page.matches("<script").count(), 1, "the page's own");
    }
    let (_, page) = daemon.page("?name=script-in-card.eth").await;
    assert_eq!(page.matches("<script").count(), 1, "the page's own: {page}");
    let (_, page) = daemon.page("?name=unsafe-characters.eth").await;
    assert!(page.contains("\\u{202e}") && !page.contains('\u{202e}'), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn style_and_script_come_from_here_and_are_kept() {
    let daemon = Daemon::start(|_| {}).await;
    let (_, page) = daemon.page("").await;
    for (path, media) in
        [("/explorer.css", "text/css; charset=utf-8"), ("/explorer.js", "text/javascript; charset=utf-8")]
    {
        assert!(page.contains(&format!("=\"{path}\"")), "{page}");
        let file = daemon.get(path).await;
        assert_eq!((file.status, file.header("content-type")), (200, media));
        assert_eq!(file.header("content-security-policy"), "default-src 'none'; frame-ancestors 'none'; sandbox");
        let known = daemon.request(Method::GET, path).header("if-none-match", file.header("etag"));
        assert_eq!(answer(known).await.status, 304, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_a_run_within_the_limits() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 1).await;
    assert_eq!(daemon.page(&format!("?name={GOOD}")).await.0, 200);
    let (status, page) = daemon.page(&format!("?name={BAD}")).await;
    assert!(status == 429 && page.contains("client-over-quota"), "{status}: {page}");
    assert_eq!(daemon.page(&format!("?name={GOOD}")).await.0, 200, "what is known is still shown");
    for query in ["?name=a.eth&name=b.eth", "?block=5"] {
        let (status, page) = daemon.page(query).await;
        assert!(status == 400 && page.contains("request-malformed"), "{query}: {page}");
    }
    assert_eq!(daemon.page(&format!("?name={GOOD}&profile=none/1")).await.0, 400);
    daemon.get("/favicon.ico").await.is_problem(404, "route-unknown");
    answer(daemon.request(Method::POST, "/")).await.is_problem(405, "method-unsupported");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gates_own_listener_has_no_page() {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let mut config = super::patient(&sandbox);
    config.gate.listen = Some(clresolve_resolver::config::ListenAddress::loopback(0));
    let server = HttpDaemon::bind(&config).await.expect("the daemon starts");
    let gate = server.gate_address().expect("it is configured").to_string();
    let daemon = Daemon::run(server, sandbox);
    for path in ["/", "/?name=summarizeagent.eth", "/explorer.css", "/explorer.js"] {
        answer(daemon.client.get(format!("http://{gate}{path}"))).await.is_closed_gate("route-unknown");
    }
}

impl Daemon {
    /// Requests that the sandbox's sellers have got.
    fn sellers_asked(&self) -> u64 {
        self.world.downcast_ref::<Sandbox>().expect("the sandbox").request_counts().sellers
    }

    async fn probe(&self, question: &Value) -> HttpResponse {
        let request = self.request(Method::POST, "/v1/probes").header("content-type", "application/json");
        answer(request.body(question.to_string())).await
    }
}

/// What a test asks of a seller.
fn asked_of(name: &str) -> Value {
    json!({"name": name, "verb": "summarize"})
}

#[tokio::test(flavor = "multi_thread")]
async fn sellers_are_asked_only_where_that_is_permitted() {
    let daemon = Daemon::start(|config| config.explorer.probe = false).await;
    daemon.probe(&asked_of(GOOD)).await.is_problem(404, "route-unknown");
    let (_, page) = daemon.page(&format!("?name={GOOD}")).await;
    assert!(!page.contains("data-seller"), "{page}");
    assert_eq!(daemon.sellers_asked(), 0);

    let daemon = Daemon::start(|_| {}).await;
    let (_, page) = daemon.page(&format!("?name={GOOD}")).await;
    assert!(page.contains("data-seller=\"/v1/probes\""), "{page}");
    let (_, page) = daemon.page(&format!("?name={BAD}")).await;
    assert!(!page.contains("data-seller"), "nobody asks an agent that is not trusted: {page}");
    assert_eq!(daemon.sellers_asked(), 0, "a page alone asks nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn page_about_a_url_shows_who_would_be_paid() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 4).await;
    let (_, start) = daemon.page("").await;
    assert!(start.contains("or the URL of an x402 seller"), "{start}");
    for (host, title, parts) in [
        ("honest-pinned", "Allow", ["hero trusted", "<dt>name</dt><dd><strong>Proven.</strong>"]),
        ("other-payee-claimed", "Deny", ["hero untrusted", "<code>payee-mismatch</code>"]),
        ("nobody", "Undecided", ["hero indeterminate", "<dt>history</dt>"]),
    ] {
        let url = format!("https://{host}.sandbox.example/weather");
        let (status, page) = daemon.page(&format!("?name={}", percent_encoded(&url))).await;
        assert!(status == 200 && page.contains(&format!("<title>{title}: {url}</title>")), "{page}");
        assert!(page.contains("Only a guard checks the reply that you actually pay"), "{page}");
        assert!(parts.iter().all(|part| page.contains(part)), "{parts:?}: {page}");
    }
    let hostile = percent_encoded(&format!("https://nobody.sandbox.example/{}", MARKUP.replace(' ', "")));
    let (status, page) = daemon.page(&format!("?name={hostile}")).await;
    assert!(status == 200 && !page.contains("<script>alert"), "{page}");
    let (status, _) = daemon.page(&format!("?name={hostile}")).await;
    assert_eq!(status, 429, "each URL takes a resolution");
    let quiet = Daemon::start(|config| config.explorer.probe = false).await;
    let (_, page) = quiet.page("?name=https%3A%2F%2Fnobody.sandbox.example%2Fweather").await;
    assert!(page.contains("This is a URL.") && !page.contains("the URL of an x402 seller"), "{page}");
    assert_eq!(quiet.sellers_asked(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_says_what_a_seller_demands_and_what_is_decided() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 7).await;
    let good = daemon.probe(&asked_of(GOOD)).await.json();
    assert_eq!((&good["decision"]["decision"], &good["terms"]["x402Version"]), (&json!("allow"), &json!(2)), "{good}");
    let wrong = daemon.probe(&asked_of("payee-mismatch.eth")).await.json();
    assert_eq!((&wrong["decision"]["abort"], &wrong["decision"]["codes"]), (&json!(true), &json!(["payee-mismatch"])));
    assert_eq!(wrong["terms"]["accepts"][0]["payTo"], wrong["decision"]["payee"]["address"]);
    assert_eq!(daemon.sellers_asked(), 2);

    let bad = daemon.probe(&asked_of(BAD)).await.json();
    assert_eq!((&bad["terms"], &bad["decision"]["abort"]), (&Value::Null, &json!(true)), "{bad}");
    assert!(bad["decision"]["codes"].to_string().contains("invoke-refused-untrusted"), "{bad}");
    assert_eq!(daemon.sellers_asked(), 2, "its seller is not asked");

    for question in [json!({"name": GOOD}), json!({"name": GOOD, "verb": "x", "url": "https://a.example"})] {
        daemon.probe(&question).await.is_problem(400, "request-malformed");
    }
    // Each of the three took a run for its verdict and one for its seller.
    assert_eq!(daemon.probe(&asked_of(GOOD)).await.status, 200);
    daemon.probe(&asked_of(GOOD)).await.is_problem(429, "client-over-quota");
    assert_eq!(daemon.sellers_asked(), 3);
}

/// The events of an answer: each with its name and its data.
fn events(body: &[u8]) -> Vec<(String, Value)> {
    let text = std::str::from_utf8(body).expect("UTF-8");
    let event = |block: &str| {
        let (event, data) = block.split_once("\ndata: ").expect("an event with data");
        (event.strip_prefix("event: ").expect("its name").to_owned(), serde_json::from_str(data).expect("JSON"))
    };
    text.split_terminator("\n\n").map(event).collect()
}

impl Daemon {
    async fn watched(&self, name: &str) -> HttpResponse {
        answer(self.request(Method::GET, &format!("/v1/verdicts/{name}")).header("accept", "text/event-stream")).await
    }
}

/// How the steps of a verdict are told.
fn judged_steps(verdict: &Value) -> Vec<(String, Value)> {
    let judged = |report: &Value| json!({"step": report["step"], "status": "judged", "result": report["status"]});
    let steps = verdict["steps"].as_array().expect("steps").iter();
    steps.map(|report| ("step".to_owned(), judged(report))).collect()
}

/// The end of a step says what its evidence says, before anything is judged.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_does_not_answer_is_told_when_it_ends() {
    let daemon = Daemon::start(|_| {}).await;
    for (name, step, result) in [
        ("card-unreachable.eth", "fetch-https", "unknown"),
        ("checksum-mismatch.eth", "records", "pass"),
        ("unregistered.eth", "records", "unknown"),
    ] {
        let told = json!({"step": step, "status": "ended", "result": result});
        let events_ = events(&daemon.watched(name).await.body);
        assert!(events_.iter().any(|(_, data)| *data == told), "{told}: {events_:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_are_told_as_they_happen_and_the_verdict_ends_them() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 1).await;
    let watched = daemon.watched(GOOD).await;
    assert_eq!((watched.status, watched.header("content-type")), (200, "text/event-stream"));
    assert_eq!((watched.header("cache-control"), watched.header("vary")), ("no-store", "accept"));
    let events_ = events(&watched.body);
    let (last, steps) = events_.split_last().expect("events");
    assert_eq!((last.0.as_str(), &last.1["state"]), ("verdict", &json!("trusted")), "{events_:?}");
    assert!(steps.iter().all(|(event, _)| event == "step"), "{events_:?}");
    let (seen, judged) = steps.split_at(steps.len() - last.1["steps"].as_array().expect("steps").len());
    assert_eq!(judged, judged_steps(&last.1));
    let place = |step: &str, status: &str| {
        let mut told = json!({"step": step, "status": status});
        if status == "ended" && step != "binding" {
            told["result"] = json!("pass");
        }
        seen.iter().position(|(_, data)| *data == told).unwrap_or_else(|| panic!("{told}: {events_:?}"))
    };
    assert_eq!(place("records", "began"), 0);
    for step in ["fetch-https", "fetch-ipfs", "binding"] {
        assert!(
            place("records", "ended") < place(step, "began") && place(step, "began") < place(step, "ended"),
            "{step}"
        );
    }
    let known = events(&daemon.watched(GOOD).await.body);
    let (verdict, told) = known.split_last().expect("events");
    assert_eq!((&verdict.1["freshness"]["served"], told), (&json!("cached"), judged), "nothing is asked");
    let invalid = events(&daemon.watched("no%20name").await.body);
    let (verdict, told) = invalid.split_last().expect("events");
    assert_eq!((&verdict.1["reasons"][0]["code"], told), (&json!("name-invalid"), &*judged_steps(&verdict.1)));
    assert_eq!(told[0].1, json!({"step": "name", "status": "judged", "result": "fail"}));
    // A run that is watched is one as any other.
    daemon.watched(BAD).await.is_problem(429, "client-over-quota");
    daemon.watched(&format!("{GOOD}?depth=deep")).await.is_problem(400, "request-malformed");
}

/// The chain does not answer yet, and the first step is told all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_told_while_its_run_goes_on() {
    let (daemon, _clock, behaviour, _asked) = Scene::new(|_| {}).await.daemon().await;
    behaviour.send_replace(NodeBehaviour::Holding);
    let watched = daemon.request(Method::GET, &format!("/v1/verdicts/{NAME}")).header("accept", "text/event-stream");
    let mut response = watched.send().await.expect("an answer");
    let mut begun = Vec::new();
    while !begun.ends_with(b"\n\n") {
        let chunk = timeout(PATIENCE, response.chunk()).await.expect("a step in time").expect("the answer goes on");
        begun.extend_from_slice(&chunk.expect("it has not ended"));
    }
    assert_eq!(events(&begun), [("step".to_owned(), json!({"step": "records", "status": "began"}))]);

    behaviour.send_replace(NodeBehaviour::Honest);
    let rest = timeout(PATIENCE, response.bytes()).await.expect("an end in time").expect("a whole answer");
    let told = events(&rest);
    let (last, steps) = told.split_last().expect("events");
    assert_eq!(steps[0].1, json!({"step": "records", "status": "ended", "result": "pass"}), "{told:?}");
    assert_eq!((last.0.as_str(), &last.1["state"]), ("verdict", &json!("trusted")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_ends_lets_nobody_watch() {
    let daemon = Daemon::start(|config| config.http.drain_notice = PATIENCE).await;
    assert_eq!(events(&daemon.watched(GOOD).await.body).last().expect("a verdict").1["state"], "trusted");
    daemon.ready().await;
    let Daemon { client, authority, stop, ended, .. } = daemon;
    stop.send(()).expect("the daemon runs");
    let ready = format!("http://{authority}/readyz");
    while answer(client.get(&ready)).await.status == 200 {}
    let watched = client.get(format!("http://{authority}/v1/verdicts/{GOOD}")).header("accept", "text/event-stream");
    answer(watched).await.is_problem(503, "draining");
    ended.abort();
}
