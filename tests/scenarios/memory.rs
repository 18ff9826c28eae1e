//! The memory over time: cards change, resolvers restart, and the file is shown, cleared and damaged.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use clresolve_core::reading::BlockSelector;
use clresolve_core::state::TrustState;
use clresolve_payment::check::{OriginMemoryEntry, ProvenSellerIdentity, RememberedPayee, WebOrigin};
use clresolve_resolver::memory::{MemoryFile, OriginKey, ResolverMemory};
use clresolve_resolver::resolve::{Resolver, SetupError};
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_verdict::verdict::Verdict;

const NAME: &str = "agent.eth";

/// A world in which the agent's card differs from a good one by `patch`, in TOML.
async fn world(patch: &str) -> CustomSandbox {
    let text = format!(
        "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n\
         [[agent]]\nname = \"{NAME}\"\nabout = \"An agent.\"\n[agent.card.patch]\n{patch}\n"
    );
    CustomSandbox::start(&SandboxSpec::parse(&text).expect("a good specification")).await.expect("the world starts")
}

/// What a resolver that starts now, with the memory in `folder`, says of the agent.
async fn ask(world: &CustomSandbox, folder: &Path) -> Verdict {
    let resolver = Resolver::new(&config(world, folder)).await.expect("a good configuration");
    Verdict::clone(resolver.resolve(NAME).await.verdict())
}

fn config(world: &CustomSandbox, folder: &Path) -> clresolve_resolver::Config {
    let mut config = world.config();
    config.memory.path = Some(folder.join("memory"));
    config.timeout = std::time::Duration::from_secs(120);
    config
}

fn codes(verdict: &Verdict) -> Vec<&str> {
    let mut codes: Vec<_> = verdict.reasons.iter().map(|reason| reason.code.slug()).collect();
    codes.dedup();
    codes
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[tokio::test]
async fn a_card_that_changes_and_goes_back_is_told_after_each_restart() {
    let folder = folder();
    let (first, changed) = (world("").await, world("description = \"Makes other texts short.\"").await);
    let (raised, lowered) = (world("version = \"1.1.0\"").await, world("version = \"0.9.0\"").await);

    assert_eq!(codes(&ask(&first, folder.path()).await), [""; 0]);
    assert_eq!(codes(&ask(&first, folder.path()).await), [""; 0]);
    let silent = ask(&changed, folder.path()).await;
    assert_eq!(
        (silent.state, codes(&silent)),
        (TrustState::Trusted, vec!["card-changed-silently", "record-recent", "updated-at-not-advanced"])
    );
    let again = ask(&changed, folder.path()).await;
    assert_eq!(
        codes(&again),
        ["card-changed-silently", "record-recent", "updated-at-not-advanced"],
        "the first bytes stay the measure"
    );
    assert_eq!(codes(&ask(&raised, folder.path()).await), ["record-recent", "updated-at-not-advanced"]);
    let lower = ask(&lowered, folder.path()).await;
    assert_eq!(codes(&lower), ["record-recent", "updated-at-not-advanced", "version-rollback"]);
    let back = ask(&first, folder.path()).await;
    assert_eq!(codes(&back), ["record-recent", "version-rollback"], "a known version, but no longer the highest");
}

#[tokio::test]
async fn what_is_remembered_stays_out_of_the_conclusion() {
    let folder = folder();
    let world = world("").await;
    let mut config = config(&world, folder.path());
    let plain = {
        config.memory.path = None;
        Resolver::new(&config).await.expect("a good configuration").resolve(NAME).await.verdict().clone()
    };
    let remembering = ask(&world, folder.path()).await;
    assert_eq!(plain.anchor.as_ref().map(|a| &a.block), remembering.anchor.as_ref().map(|a| &a.block));
    assert_eq!(plain.conclusion, remembering.conclusion);
    assert_ne!(plain.id, remembering.id);
}

#[tokio::test]
async fn only_a_trusted_verdict_at_a_finalized_block_is_remembered() {
    let folder = folder();
    let (good, bad) = (world("").await, world("display_name = \" \"").await);
    assert_eq!(ask(&bad, folder.path()).await.state, TrustState::Untrusted);
    let mut latest = config(&good, folder.path());
    latest.chain.block = BlockSelector::Latest;
    let mut stranger = config(&good, folder.path());
    stranger.chain.endpoints.iter_mut().for_each(|endpoint| endpoint.own = false);
    for config in [latest, stranger] {
        let verdict = Resolver::new(&config).await.expect("a good configuration").resolve(NAME).await.verdict().clone();
        assert_eq!(verdict.state, TrustState::Trusted);
    }
    let seen = ask(&good, folder.path()).await;
    assert_eq!(seen.steps[10].evidence["remembered"], false);
    assert_eq!(ask(&good, folder.path()).await.steps[10].evidence["remembered"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_refused_at_the_start_and_says_what_to_do() {
    let folder = folder();
    let world = world("").await;
    let config = config(&world, folder.path());
    std::fs::write(folder.path().join("memory"), "no memory at all, but long enough to be one, one might say")
        .expect("the folder can be written");
    let Err(SetupError::Invalid { what, detail }) = Resolver::new(&config).await.map(|_| ()) else {
        panic!("a damaged file was taken")
    };
    assert_eq!(what, "memory.path");
    assert!(detail.contains("move the file away"), "{detail}");

    let file = folder.path().join("f.toml");
    config.save(&file).expect("the folder can be written");
    let output = clresolve(&["verify", NAME], &file);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("move the file away"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_shown_and_forgotten_and_the_gate_goes_by_the_policy() {
    let folder = folder();
    let (first, changed) = (world("").await, world("description = \"Makes other texts short.\"").await);
    ask(&first, folder.path()).await;
    let file = folder.path().join("f.toml");
    let mut config = config(&changed, folder.path());
    config.gate.deny = vec![clresolve_core::reason::ReasonCode::CardChangedSilently];
    config.save(&file).expect("the folder can be written");

    let shown = clresolve(&["memory", "show", NAME, "-o", "json"], &file);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["versions"][0]["version"], "1.0.0");
    assert_eq!((&shown["world"], &shown["remembered"]), (&"sandbox".into(), &true.into()));

    let denied = clresolve(&["gate", NAME, "-o", "json"], &file);
    let said: serde_json::Value = serde_json::from_slice(&denied.stdout).expect("JSON");
    assert_eq!((denied.status.code(), &said["code"]), (Some(1), &"card-changed-silently".into()));
    assert_eq!((&said["decision"], &said["state"]), (&"deny".into(), &"trusted".into()));
    assert_eq!(clresolve(&[NAME], &file).status.code(), Some(0), "the verdict stays what it is");

    // A memory that another process holds tells nothing, and what it might have told is to be denied.
    let held = ResolverMemory::open(&folder.path().join("memory"), 10).expect("nobody else has it now");
    let denied = clresolve(&["gate", NAME, "-o", "json"], &file);
    let said: serde_json::Value = serde_json::from_slice(&denied.stdout).expect("JSON");
    assert_eq!((denied.status.code(), &said["code"]), (Some(1), &"memory-unavailable".into()));
    drop(held);

    assert_eq!(clresolve(&["memory", "forget", NAME], &file).status.code(), Some(0));
    let allowed = clresolve(&["gate", NAME, "summarize"], &file);
    assert_eq!((allowed.status.code(), allowed.stdout.starts_with(b"allow\n")), (Some(0), true), "{allowed:?}");
    assert_eq!(clresolve(&["gate", NAME, "translate"], &file).status.code(), Some(1));
    assert_eq!(clresolve(&["gate", NAME, "--block", "1"], &file).status.code(), Some(2));

    let all = clresolve(&["memory", "forget", "--all"], &file);
    assert_eq!(String::from_utf8_lossy(&all.stderr), "clresolve: 1 names forgotten\n");
    let none = clresolve(&["memory", "show", NAME], &file);
    assert!(String::from_utf8_lossy(&none.stdout).contains("nothing is remembered"), "{none:?}");
}

/// A memory with the origins `shop.example`, whose identity was accepted before another was proposed, and
/// `new.example`, with a payee. Returns the configuration file that names it.
fn sellers(folder: &Path) -> std::path::PathBuf {
    let store = MemoryFile::open(&folder.join("memory"), 10).expect("a new file");
    let key = |origin: &str| OriginKey::new("mainnet", 1, &origin.parse::<WebOrigin>().expect("an origin"));
    let note = |origin: &str, noted| store.remember_origin(&key(origin), noted).expect("the disk has room");
    let at = "2026-01-02T03:04:05Z".parse().expect("a time");
    let proposing = |name: &str| {
        let seen = ProvenSellerIdentity { identity: name.parse().expect("an identity"), at, block: Some(16) };
        OriginMemoryEntry { proposed: Some(seen), ..OriginMemoryEntry::default() }
    };
    note("https://shop.example", proposing("shop.eth"));
    store.accept_proposed_identity(&key("https://shop.example")).expect("it is proposed");
    note("https://shop.example", proposing("other.eth"));
    let payee = RememberedPayee {
        address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().expect("an address"),
        network: "eip155:8453".parse().expect("a network"),
        at,
        block: Some(17),
    };
    note("https://new.example", OriginMemoryEntry { payee: Some(payee), ..OriginMemoryEntry::default() });
    let file = folder.join("f.toml");
    std::fs::write(&file, "[memory]\npath = \"memory\"\n").expect("the folder can be written");
    file
}

#[test]
fn origins_are_shown_as_text_and_json() {
    let folder = folder();
    let file = sellers(folder.path());
    let text = |arguments: &[&str]| String::from_utf8(clresolve(arguments, &file).stdout).expect("UTF-8");
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&clresolve(arguments, &file).stdout).expect("JSON")
    };
    let new = "https://new.example  (mainnet eip155:1)\n  payee \
        0x70997970C51812dc3A010C7d01b50e0d17dc79C8 on eip155:8453  first seen at 2026-01-02T03:04:05Z, block 17\n";
    let shop = "https://shop.example  (mainnet eip155:1)\n  identity shop.eth  first seen at 2026-01-02T03:04:05Z, \
        block 16\n  proposed other.eth  first seen at 2026-01-02T03:04:05Z, block 16\n  \
        `clresolve memory accept https://shop.example` accepts it\n";
    assert_eq!(text(&["memory", "show"]), format!("{new}{shop}"));
    assert_eq!(text(&["memory", "show", "https://shop.example/any/path"]), shop);
    let all = json(&["memory", "show", "-o", "json"]);
    let seen = |name| serde_json::json!({"identity": name, "at": "2026-01-02T03:04:05Z", "block": 16});
    let of_shop = serde_json::json!({
        "origin": "https://shop.example", "world": "mainnet", "chain": "eip155:1", "remembered": true,
        "identity": seen("shop.eth"), "proposed": seen("other.eth"), "payee": null
    });
    assert_eq!((all.as_array().map(Vec::len), &all[1]), (Some(2), &of_shop));
    assert_eq!((&all[0]["payee"]["network"], &all[0]["payee"]["block"]), (&"eip155:8453".into(), &17.into()));
    assert_eq!(json(&["memory", "show", "https://shop.example", "-o", "json"]), of_shop);
    let mixed = json(&["memory", "show", NAME, "https://none.example", "-o", "json"]);
    assert_eq!((&mixed[0]["name"], &mixed[1]["remembered"]), (&NAME.into(), &false.into()));
    let bad = clresolve(&["memory", "show", "http://user:SECRET@shop.example"], &file);
    let said = String::from_utf8_lossy(&bad.stderr);
    assert_eq!(bad.status.code(), Some(2));
    assert!(said.contains("expected an origin such as https://api.example") && !said.contains("SECRET"), "{said}");
}

#[test]
fn proposal_is_accepted_once_and_origin_is_forgotten() {
    let folder = folder();
    let file = sellers(folder.path());
    let said = |arguments: &[&str]| {
        let output = clresolve(arguments, &file);
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let accept = ["memory", "accept", "https://shop.example"];
    assert_eq!(said(&accept), (Some(0), "clresolve: the seller at https://shop.example is other.eth\n".to_owned()));
    for origin in ["https://shop.example", "https://new.example", "https://none.example"] {
        let (code, error) = said(&["memory", "accept", origin]);
        assert_eq!(code, Some(2), "{error}");
        let expected = format!("{origin}: no identity is waiting to be accepted; `clresolve check URL` reads the one");
        assert!(error.contains(&expected), "{error}");
    }
    assert_eq!(said(&["memory", "forget", "--all"]).1, "clresolve: 0 names forgotten\n");
    let forget = ["memory", "forget", "https://shop.example"];
    assert_eq!(said(&forget), (Some(0), "clresolve: https://shop.example forgotten\n".to_owned()));
    assert_eq!(said(&forget), (Some(0), "clresolve: https://shop.example was not remembered\n".to_owned()));
    let left = clresolve(&["memory", "show", "-o", "json"], &file);
    let left: serde_json::Value = serde_json::from_slice(&left.stdout).expect("JSON");
    assert_eq!((left.as_array().map(Vec::len), &left[0]["origin"]), (Some(1), &"https://new.example".into()));
}

#[test]
fn without_a_memory_there_is_nothing_to_show() {
    for (further, said) in [(None, "memory.path"), (Some("--sandbox"), "the sandbox has no memory file")] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        let output =
            program.args(["memory", "show", NAME]).args(further).env_clear().output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{output:?}");
    }
}

/// The binary under a configuration file and no environment.
fn clresolve(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.args(arguments).arg("--config").arg(file).env_clear().stdin(Stdio::null());
    command.output().expect("the binary runs")
}
