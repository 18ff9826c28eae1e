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
#[path = "e2e/registry.rs"]
mod registry;
#[path = "e2e/service.rs"]
mod service;
#[path = "e2e/world.rs"]
mod world;

use agents::AGENTS;
use binary::Finding;
use cards::Class;
use world::{Net, World, world};

const LETTER: &str = "agent-cards/1.0.0";
const RELEASED: &str = "agent-cards/1.0.0+released";
const LATER: &str = "agent-cards/1.1.0";

/// What every verdict here says, since each world has one node.
const ONE_NODE: &str = "warn single-rpc";
const PLACEHOLDER: &str = "fail schema-mirror-placeholder";
const PLACEHOLDER_TOLERATED: &str = "warn schema-mirror-placeholder";
const ROUTE: &str = "fail entry-version-noncompliant";

#[test]
fn cards_before_the_release_keep_to_the_letter() {
    let Some(world) = world() else { return };
    judge_cards(&world.entry_v1, LETTER, |class| match class {
        Class::Commons => ("trusted", vec![ONE_NODE]),
        Class::Commercial => ("untrusted", vec![ONE_NODE, PLACEHOLDER]),
    });
}

#[test]
fn cards_before_the_release_pass_by_the_released_rules() {
    let Some(world) = world() else { return };
    judge_cards(&world.entry_v1, RELEASED, |class| ("trusted", tolerated(class)));
}

#[test]
fn released_cards_break_the_letter() {
    let Some(world) = world() else { return };
    judge_cards(&world.released, LETTER, |class| match class {
        Class::Commons => ("untrusted", vec![ONE_NODE, ROUTE]),
        Class::Commercial => ("untrusted", vec![ONE_NODE, ROUTE, PLACEHOLDER]),
    });
}

#[test]
fn released_cards_pass_by_the_released_rules() {
    let Some(world) = world() else { return };
    judge_cards(&world.released, RELEASED, |class| ("trusted", tolerated(class)));
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
fn tmp_registry() {
    let Some(world) = world() else { return };
    for (release, net) in [("before", &world.entry_v1), ("released", &world.released), ("hosted", &world.hosted)] {
        for profile in [LETTER, RELEASED, LATER] {
            let (exit, report) = registry::audit(net, release, profile);
            println!("{release} {profile} {exit:?} {}", report["counts"]);
            for group in report["reasons"].as_array().unwrap() { println!("   {} {} {}", group["effect"], group["code"], group["names"]); }
        }
    }
}

/// Judges all cards of a release in one run.
fn judge_cards<'a>(net: &Net, profile: &str, expected: impl Fn(Class) -> (&'a str, Vec<&'a str>)) {
    let names: Vec<&str> = net.cards.iter().map(|card| card.name.as_str()).collect();
    let (exit, verdicts) = net.verify(profile, &names);
    let found: Vec<Finding> = verdicts.iter().map(Finding::of).collect();
    let expected: Vec<Finding> = net
        .cards
        .iter()
        .map(|card| {
            let (state, codes) = expected(card.class);
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
