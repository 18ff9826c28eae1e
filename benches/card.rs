//! Measures the checks of one card without I/O, from its bytes to the verdict's state and reasons, and compares them
//! with the three necessary parts (hash, strict parse, schema), measured alone in the same run.
//!
//! Also prints the cost of the verdict's two digests, which are computed afterwards. They have no budget.

mod support;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::state::TrustState;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::{self, JudgementPolicy};
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles, DEFAULT};
use clresolve_verdict::sample::faultless_evidence;
use clresolve_verdict::verdict::Verdict;
use jiff::Timestamp;

use support::{GOOD, Good, ROUNDS, Row, in_turn, micros, timed, undisturbed};

/// Maximum ratio of the checks to the parts.
const BUDGET: f64 = 3.5;

/// A published card in `CLRESOLVE_CORPUS`.
const PUBLISHED: &str = "commandlayer/agent-cards/agents/v1.0.0/commons/summarizeagent.eth.json";

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let (card, verdict, letter) = sandbox();
    if let Some(bytes) = published() {
        let released = ConformanceProfiles::builtin().get("agent-cards/1.0.0+released").expect("it is built in");
        measure("a published card", &bytes, &released).print("bench-card");
    } else {
        eprintln!("not measured: a published card, {PUBLISHED} below the folder that CLRESOLVE_CORPUS names");
    }
    let digests =
        in_turn(ROUNDS, [&mut timed(|| verdict.clone().with_computed_digests()), &mut timed(|| verdict.clone())]);
    println!(
        "afterwards, without a budget: the verdict's digests {}",
        micros(undisturbed(&digests[0]) - undisturbed(&digests[1]))
    );
    measure("checks of one card, bytes to verdict", &card, &letter).end("bench-card");
}

/// Measures the judgement of `card` as a whole and in parts.
fn measure<'w>(what: &'w str, card: &Bytes, profile: &ConformanceProfile) -> Row<'w> {
    let document = AgentCard::parse(card).expect("strict JSON");
    let evidence = faultless_evidence(document.document(), card, Timestamp::now());
    let policy = JudgementPolicy::default();
    let judge = || check::judge_evidence(&evidence, profile, &policy);
    let judgement = judge();
    assert_eq!(judgement.state, TrustState::Trusted, "{:?}", judgement.reasons);
    let [whole, hash, parse, schema] = in_turn(
        ROUNDS,
        [
            &mut timed(judge),
            &mut timed(|| Digest::compute(card)),
            &mut timed(|| AgentCard::parse(card)),
            &mut timed(|| profile.base_schema().accepts(document.document())),
        ],
    );
    let parts: f64 = [&hash, &parse, &schema].map(|part| undisturbed(part)).iter().sum();
    println!(
        "{what}, {} bytes: {}; alone: hash {}, strict parse {}, schema {}",
        card.len(),
        micros(undisturbed(&whole)),
        micros(undisturbed(&hash)),
        micros(undisturbed(&parse)),
        micros(undisturbed(&schema)),
    );
    Row {
        what,
        measured: micros(undisturbed(&whole)),
        beside: format!("hash, strict parse and schema alone: {}", micros(parts)),
        ratio: undisturbed(&whole) / parts,
        budget: BUDGET,
        good: Good::AtMost,
    }
}

/// The card of a good agent, its verdict, and the profile with the sandbox's manifests.
fn sandbox() -> (Bytes, Verdict, Arc<ConformanceProfile>) {
    let (runtime, _sandbox, resolver) = support::sandbox();
    let profile = resolver.profiles().get(DEFAULT).expect("it is built in");
    let resolution = runtime.block_on(resolver.resolve(GOOD));
    let card = resolution.card_bytes().cloned().expect("a trusted verdict comes with its card");
    (card, resolution.verdict().as_ref().clone(), profile)
}

/// The card from the corpus, if it is available.
fn published() -> Option<Bytes> {
    let path = Path::new(&std::env::var_os("CLRESOLVE_CORPUS")?).join(PUBLISHED);
    Some(std::fs::read(path).ok()?.into())
}
