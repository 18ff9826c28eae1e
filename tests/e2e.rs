//! The released binary against real counterparts: a chain (anvil with the official ENS contracts that npm has), a
//! trustless IPFS gateway (helia) and an HTTPS origin. What is real and what is not is in `tests/e2e/README.md`.
//!
//! `CLRESOLVE_CORPUS` names the folder with the published cards. Without it, or without Node, the tests are skipped;
//! under `CI=true` a missing Node fails them.

#[path = "e2e/agents.rs"]
mod agents;
#[path = "e2e/binary.rs"]
mod binary;
#[path = "e2e/cards.rs"]
mod cards;
#[path = "e2e/changes.rs"]
mod changes;
#[path = "e2e/heads.rs"]
mod heads;
#[path = "e2e/payees.rs"]
mod payees;
#[path = "e2e/registry.rs"]
mod registry;
#[path = "e2e/service.rs"]
mod service;
#[path = "e2e/transactions.rs"]
mod transactions;
#[path = "e2e/world.rs"]
mod world;

#[allow(dead_code, reason = "each program uses a part of the helpers")]
#[path = "support"]
mod support {
    pub(crate) mod corpus;
    pub(crate) mod redis;
}

use std::collections::BTreeMap;

use serde_json::Value;

use agents::AGENTS;
use binary::Finding;
use cards::{Card, Class};
use registry::{Expected, audit};
use world::{Net, World, world};

const LETTER: &str = "agent-cards/1.0.0";
const RELEASED: &str = "agent-cards/1.0.0+released";
const LATER: &str = "agent-cards/1.1.0";

/// What every verdict here says, since each world has one node.
const ONE_NODE: &str = "warn single-rpc";
const PLACEHOLDER: &str = "fail schema-mirror-placeholder";
const PLACEHOLDER_TOLERATED: &str = "warn schema-mirror-placeholder";
const ROUTE: &str = "fail entry-version-noncompliant";

/// The agent whose records its publisher documents. They name an older card and a CID that nobody can make again, and
/// one of them is not set.
const DOCUMENTED: &str = "formatagent.eth";
const DOCUMENTED_CODES: [&str; 4] =
    ["fail txt-missing", "fail checksum-mismatch", "fail txt-entry-mismatch", "unknown cid-unproven"];

#[test]
fn cards_before_the_release_keep_to_the_letter() {
    let Some(world) = world() else { return };
    judge_cards(&world.entry_v1, LETTER, |card| match card.class {
        Class::Commons => ("trusted", vec![ONE_NODE]),
        Class::Commercial => ("untrusted", vec![ONE_NODE, PLACEHOLDER]),
    });
}

#[test]
fn cards_before_the_release_pass_by_the_released_rules() {
    let Some(world) = world() else { return };
    judge_cards(&world.entry_v1, RELEASED, |card| ("trusted", tolerated(card.class)));
}

#[test]
fn released_cards_break_the_letter() {
    let Some(world) = world() else { return };
    judge_cards(&world.released, LETTER, |card| match card.class {
        _ if card.name == DOCUMENTED => ("untrusted", [&DOCUMENTED_CODES[..], &[ONE_NODE, ROUTE]].concat()),
        Class::Commons => ("untrusted", vec![ONE_NODE, ROUTE]),
        Class::Commercial => ("untrusted", vec![ONE_NODE, ROUTE, PLACEHOLDER]),
    });
}

#[test]
fn released_cards_pass_by_the_released_rules() {
    let Some(world) = world() else { return };
    judge_cards(&world.released, RELEASED, |card| match card.name.as_str() {
        DOCUMENTED => ("untrusted", [&DOCUMENTED_CODES[..], &[ONE_NODE]].concat()),
        _ => ("trusted", tolerated(card.class)),
    });
}

#[test]
fn a_verdict_names_block_owner_and_card() {
    let Some(world) = world() else { return };
    let net = &world.released;
    let card = net.card("summarizeagent.eth");
    let (_, verdicts) = net.verify(RELEASED, &[&card.name]);
    let verdict = &verdicts[0];
    assert_eq!(verdict["anchor"]["chain"], format!("eip155:{}", net.chain_id));
    assert_eq!(verdict["anchor"]["block"]["number"], net.finalized_block());
    assert_eq!(verdict["anchor"]["block"]["tag"], "finalized");
    assert_eq!(verdict["anchor"]["offchain"], false);
    assert_eq!(verdict["identity"]["owner"]["name"], "commandlayer.eth");
    assert_eq!(verdict["identity"]["owner"]["proven"], true);
    assert_eq!(verdict["identity"]["card"]["sha256"], card.sha256());
    assert_eq!(verdict["identity"]["card"]["bytes"], card.bytes.len());
    assert_eq!(verdict["identity"]["card"]["path"], card.path);
}

#[test]
fn agents_get_the_verdict_of_their_defect() {
    let Some(world) = world() else { return };
    for agent in AGENTS {
        let (exit, verdicts) = world.entry_v1.verify(LETTER, &[agent.name]);
        let codes = agent.codes.iter().copied().chain([ONE_NODE]);
        let expected = Finding::new(agent.name, agent.state, codes);
        assert_eq!(Finding::of(&verdicts[0]), expected, "{:#}", verdicts[0]);
        assert_eq!(exit, expected.exit(), "{}", agent.name);
    }
}

#[test]
fn agents_get_the_same_verdict_from_proven_state() {
    let Some(world) = world() else { return };
    let names: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
    let (_, told) = world.entry_v1.verify(LETTER, &names);
    let (_, computed) = world.entry_v1.verify_with(&["--proof", "state-proof"], LETTER, &names);
    for (told, computed) in told.iter().zip(&computed) {
        assert_eq!(Finding::of(computed), Finding::of(told), "{computed:#}");
        assert_eq!(computed["conclusion"], told["conclusion"], "{computed:#}");
        assert_eq!(computed["anchor"]["proof"]["grade"], "state-proof", "{computed:#}");
    }
}

#[test]
fn the_proven_card_is_the_published_one() {
    let Some(World { entry_v1, .. }) = world() else { return };
    let card = entry_v1.card("summarizeagent.eth");
    let output = entry_v1.run(&["card", &card.name]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, card.bytes);
}

#[test]
fn the_card_of_an_untrusted_name_is_withheld() {
    let Some(World { released, .. }) = world() else { return };
    let output = released.run(&["card", "summarizeagent.eth"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
}

#[test]
fn content_of_every_shape_is_read_through_the_gateway() {
    let Some(world) = world() else { return };
    for content in &world.contents {
        let output = world.entry_v1.run(&["cat", &content.target]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{}: {stderr}", content.target);
        assert_eq!(output.stdout, content.bytes, "{}", content.target);
    }
}

#[test]
fn absent_content_is_proven_absent_through_the_gateway() {
    let Some(World { contents, entry_v1, .. }) = world() else { return };
    for content in contents {
        let output = entry_v1.run(&["cat", &format!("{}.absent", content.target)]);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_audit_of_the_cards_before_the_release() {
    let Some(world) = world() else { return };
    let [letter, ..] = audit(
        &world.entry_v1,
        "before-release",
        [
            Expected {
                profile: LETTER,
                counts: [10, 5, 0, 3],
                near_misses: &[(RELEASED, 3)],
                reasons: &[
                    ("fail", "schema-mirror-placeholder", 3),
                    ("fail", "name-unregistered", 2),
                    ("warn", "single-rpc", 15),
                ],
            },
            Expected {
                profile: RELEASED,
                counts: [13, 2, 0, 0],
                near_misses: &[],
                reasons: &[
                    ("fail", "name-unregistered", 2),
                    ("warn", "single-rpc", 15),
                    ("warn", "schema-mirror-placeholder", 3),
                ],
            },
            Expected {
                profile: LATER,
                counts: [0, 15, 0, 13],
                near_misses: &[(LETTER, 10), (RELEASED, 13)],
                reasons: &[
                    ("fail", "card-schema-invalid", 13),
                    ("fail", "schema-manifest-mismatch", 13),
                    ("fail", "schema-uri-not-canonical", 13),
                    ("fail", "entry-malformed", 10),
                    ("fail", "entry-version-noncompliant", 3),
                    ("fail", "schema-mirror-placeholder", 3),
                    ("fail", "name-unregistered", 2),
                    ("unknown", "schema-unpinned", 13),
                    ("warn", "single-rpc", 15),
                ],
            },
        ],
    );
    assert_eq!(letter.row("summarizeagent.eth"), ("trusted".to_owned(), vec![], ["agree"; 6]));
    let placeholder = vec!["schema-mirror-placeholder".to_owned()];
    let pairs = ["agree", "agree", "agree", "agree", "differ", "agree"];
    assert_eq!(letter.row("verifyagent.eth"), ("untrusted".to_owned(), placeholder, pairs));
}

#[test]
fn an_audit_of_the_released_cards_and_documented_records() {
    let Some(world) = world() else { return };
    let [_, released, _] = audit(
        &world.released,
        "released",
        [
            Expected {
                profile: LETTER,
                counts: [0, 16, 0, 4],
                near_misses: &[(RELEASED, 12)],
                reasons: &[
                    ("fail", "entry-version-noncompliant", 13),
                    ("fail", "schema-mirror-placeholder", 3),
                    ("fail", "name-unregistered", 2),
                    ("fail", "txt-missing", 2),
                    ("fail", "checksum-mismatch", 1),
                    ("fail", "txt-entry-mismatch", 1),
                    ("unknown", "cid-unproven", 1),
                    ("warn", "single-rpc", 16),
                    ("warn", "schema-txt-missing", 1),
                ],
            },
            Expected {
                profile: RELEASED,
                counts: [12, 4, 0, 1],
                near_misses: &[],
                reasons: &[
                    ("fail", "name-unregistered", 2),
                    ("fail", "txt-missing", 2),
                    ("fail", "checksum-mismatch", 1),
                    ("fail", "txt-entry-mismatch", 1),
                    ("unknown", "cid-unproven", 1),
                    ("warn", "single-rpc", 16),
                    ("warn", "schema-mirror-placeholder", 3),
                    ("warn", "schema-txt-missing", 1),
                ],
            },
            Expected {
                profile: LATER,
                counts: [0, 16, 0, 13],
                near_misses: &[(RELEASED, 12)],
                reasons: &[
                    ("fail", "card-schema-invalid", 13),
                    ("fail", "schema-manifest-mismatch", 13),
                    ("fail", "schema-uri-not-canonical", 13),
                    ("fail", "entry-malformed", 10),
                    ("fail", "entry-version-noncompliant", 3),
                    ("fail", "schema-mirror-placeholder", 3),
                    ("fail", "name-unregistered", 2),
                    ("fail", "txt-missing", 2),
                    ("fail", "checksum-mismatch", 1),
                    ("fail", "txt-entry-mismatch", 1),
                    ("unknown", "schema-unpinned", 13),
                    ("unknown", "cid-unproven", 1),
                    ("warn", "single-rpc", 16),
                ],
            },
        ],
    );
    let (state, codes, pairs) = released.row("formatagent.eth");
    let documented = ["txt-missing", "checksum-mismatch", "txt-entry-mismatch", "cid-unproven"];
    assert_eq!((state.as_str(), codes), ("untrusted", documented.map(str::to_owned).to_vec()));
    assert_eq!(pairs, ["differ", "open", "open", "differ", "agree", "agree"]);
    // A name of the registry that is no agent: there is no card that its records could differ from.
    let (state, codes, pairs) = released.row("runtime.commandlayer.eth");
    assert_eq!((state.as_str(), codes, pairs), ("untrusted", vec!["txt-missing".to_owned()], ["open"; 6]));
    let (decision, reason) = released.draft("runtime.commandlayer.eth");
    assert_eq!(decision, "draft: not to be called or paid until its publisher has corrected what it published");
    assert!(reason.starts_with("txt-missing (CL-35, CL-36, CL-37, CL-38, CL-39, CL-40); "), "{reason}");
    released.has_lines(&[
        "**4 of 16 names are not trusted. 1 owner must act on 2 names, because records on the chain are missing or \
         wrong.**",
        "| name | state | TXT = HTTPS | TXT = IPFS | HTTPS = IPFS | TXT = card | card = manifest | \
         schemas = manifest | codes |",
        "|---|---|:-:|:-:|:-:|:-:|:-:|:-:|---|",
        "| `fetchagent.eth` | trusted | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ |  |",
        "| `formatagent.eth` | untrusted | ✗ | – | – | ✗ | ✓ | ✓ | txt-missing, checksum-mismatch, \
         txt-entry-mismatch, cid-unproven |",
        "| `runtime.commandlayer.eth` | untrusted | – | – | – | – | – | – | txt-missing |",
    ]);
}

#[test]
fn an_audit_of_the_hosted_cards() {
    let Some(world) = world() else { return };
    let [_, _, later] = audit(
        &world.hosted,
        "hosted",
        [
            Expected {
                profile: LETTER,
                counts: [0, 15, 0, 13],
                near_misses: &[(RELEASED, 1)],
                reasons: &[
                    ("fail", "card-field-missing", 12),
                    ("fail", "schema-txt-mismatch", 12),
                    ("fail", "schema-uri-not-canonical", 12),
                    ("fail", "entry-malformed", 10),
                    ("fail", "entry-version-noncompliant", 3),
                    ("fail", "name-unregistered", 2),
                    ("fail", "schema-mirror-placeholder", 1),
                    ("unknown", "schema-unavailable", 12),
                    ("warn", "single-rpc", 15),
                    ("warn", "card-id-mismatch", 12),
                    ("warn", "schema-txt-missing", 10),
                ],
            },
            Expected {
                profile: RELEASED,
                counts: [1, 14, 0, 12],
                near_misses: &[],
                reasons: &[
                    ("fail", "card-field-missing", 12),
                    ("fail", "schema-txt-mismatch", 12),
                    ("fail", "schema-uri-not-canonical", 12),
                    ("fail", "entry-malformed", 10),
                    ("fail", "entry-version-noncompliant", 2),
                    ("fail", "name-unregistered", 2),
                    ("unknown", "schema-unavailable", 12),
                    ("warn", "single-rpc", 15),
                    ("warn", "card-id-mismatch", 12),
                    ("warn", "schema-txt-missing", 10),
                    ("warn", "schema-mirror-placeholder", 1),
                ],
            },
            Expected {
                profile: LATER,
                counts: [0, 3, 12, 1],
                near_misses: &[(RELEASED, 1)],
                reasons: &[
                    ("fail", "name-unregistered", 2),
                    ("fail", "card-schema-invalid", 1),
                    ("fail", "entry-version-noncompliant", 1),
                    ("fail", "schema-manifest-mismatch", 1),
                    ("fail", "schema-mirror-placeholder", 1),
                    ("fail", "schema-uri-not-canonical", 1),
                    ("unknown", "schema-unpinned", 13),
                    ("warn", "single-rpc", 15),
                ],
            },
        ],
    );
    let pairs = ["agree", "agree", "agree", "agree", "agree", "open"];
    let unpinned = vec!["schema-unpinned".to_owned()];
    assert_eq!(later.row("summarizeagent.eth"), ("indeterminate".to_owned(), unpinned, pairs));
}

/// The directory that the commons schemas are published in cannot be made again: their mirrors alone serve them, so
/// that nothing is known of the place where they are published. Their published checksums were taken of other line
/// ends.
#[test]
fn an_audit_of_the_published_schemas() {
    let Some(world) = world() else { return };
    let output = world.released.run(&["audit", "schemas", "--json"]);
    let schemas: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let codes = |schema: &Value| {
        let reasons = schema["reasons"].as_array().expect("a list").iter();
        reasons.map(|reason| reason["code"].as_str().expect("a code").to_owned()).collect::<Vec<_>>()
    };
    let mut found: BTreeMap<_, usize> = BTreeMap::new();
    for schema in schemas.as_array().expect("a list") {
        let layer = schema["layer"].as_str().expect("a layer").to_owned();
        *found.entry((layer, schema["state"].as_str().expect("a state").to_owned(), codes(schema))).or_default() += 1;
    }
    let schemas = |layer: &str, state: &str, codes: &[&str]| {
        (layer.to_owned(), state.to_owned(), codes.iter().map(|code| (*code).to_owned()).collect())
    };
    let not_published = ["schema-unavailable", "checksum-line-endings"];
    let expected = [
        (schemas("protocol-commercial/1.0.0", "trusted", &[]), 10),
        (schemas("protocol-commons/1.0.0", "indeterminate", &not_published), 20),
    ];
    assert_eq!(found, BTreeMap::from(expected));
    assert_eq!(output.status.code(), Some(3));
}

/// Judges all cards of a release in one run.
fn judge_cards<'a>(net: &Net, profile: &str, expected: impl Fn(&Card) -> (&'a str, Vec<&'a str>)) {
    let names: Vec<&str> = net.cards.iter().map(|card| card.name.as_str()).collect();
    let (exit, verdicts) = net.verify(profile, &names);
    let found: Vec<Finding> = verdicts.iter().map(Finding::of).collect();
    let expected: Vec<Finding> = net
        .cards
        .iter()
        .map(|card| {
            let (state, codes) = expected(card);
            Finding::new(&card.name, state, codes)
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(exit, expected.iter().map(Finding::exit).max().expect("a release has cards"));
}

fn tolerated(class: Class) -> Vec<&'static str> {
    match class {
        Class::Commons => vec![ONE_NODE],
        Class::Commercial => vec![ONE_NODE, PLACEHOLDER_TOLERATED],
    }
}
