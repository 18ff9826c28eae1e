//! What every name of the sandbox is concluded to be: a change of the program that was meant to change no verdict
//! leaves `tests/conclusions.txt` as it is. `CONCLUSIONS=write` writes it anew.
//!
//! The chain of the sandbox is another one at every start, so the hash of its block is left out of what is compared.

use std::fmt::Write as _;

use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_verdict::verdict::{ResolutionDepth, Verdict};

const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conclusions.txt");

#[tokio::test(flavor = "multi_thread")]
async fn every_name_is_concluded_to_be_what_it_was() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let mut config = sandbox.config();
    config.timeout = std::time::Duration::from_secs(120);
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    let mut list = String::new();
    for agent in Sandbox::expected_verdicts() {
        for depth in [ResolutionDepth::Identity, ResolutionDepth::Schemas] {
            let mut question = NameQuestion::new(&agent.name);
            question.depth = Some(depth);
            let verdict =
                without_block_hash(resolver.resolve_question(&question).await.expect("the question is good").verdict());

            let [state, depth] = [serde_json::to_value(verdict.state), serde_json::to_value(depth)]
                .map(|word| word.expect("it is a word"));
            writeln!(
                list,
                "{} {} {} {}",
                agent.name,
                depth.as_str().expect("it is"),
                state.as_str().expect("it is"),
                verdict.conclusion
            )
            .expect("a text has room");
        }
    }
    if std::env::var("CONCLUSIONS").is_ok_and(|word| word == "write") {
        std::fs::write(LIST, &list).expect("the list can be written");
    }
    let known = std::fs::read_to_string(LIST).expect("the list is there");
    for (now, before) in list.lines().zip(known.lines()) {
        assert_eq!(now, before);
    }
    assert_eq!(list.lines().count(), known.lines().count());
}

fn without_block_hash(verdict: &Verdict) -> Verdict {
    let mut verdict = verdict.clone();
    if let Some(anchor) = &mut verdict.anchor {
        anchor.block.hash = format!("0x{}", "0".repeat(64));
        anchor.block.number = 0;
    }
    verdict.with_computed_digests()
}
