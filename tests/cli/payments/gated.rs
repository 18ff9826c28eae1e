//! The check `identity` is the gate's own decision: for every name of the sandbox, whatever the verb and the policy.

use clresolve_core::reading::ProofGrade;
use clresolve_core::reason::{ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_core::state::TrustState;
use clresolve_payment::PaymentDecisionRequest;
use clresolve_payment::decision::{PaymentCheck, PaymentDecision};
use clresolve_resolver::config::Config;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_verdict::gate::GateVerbs;
use futures_util::{StreamExt as _, stream};

use super::{NAME, URL, asked, confirming_once};

/// Questions at once.
const AT_ONCE: usize = 16;

/// Verbs that some name of the sandbox implements first, or later, or that none does.
const VERBS: [&str; 5] = ["summarize", "classify", "checkout", "pay", ""];

/// Names that the sandbox does not have.
const NO_NAMES: [&str; 4] = ["nobody.eth", "", "summarizeаgent.eth", "a..eth"];

/// What gate and decision say of a name and a verb.
struct Said {
    gate: Result<(), &'static str>,
    decision: PaymentDecision,
}

/// Both answers for every name and verb, under one configuration.
async fn said_of_all(config: &Config) -> Vec<Said> {
    let (resolver, _following) = confirming_once(config.clone()).await;
    let honest = asked(&resolver, NAME, URL).await;
    let names = Sandbox::expected_verdicts().into_iter().map(|agent| agent.name).chain(NO_NAMES.map(str::to_owned));
    let questions: Vec<_> = names.flat_map(|name| VERBS.map(|verb| (name.clone(), verb))).collect();
    let answers = stream::iter(questions).map(|(name, verb)| {
        let question = PaymentDecisionRequest { name: name.clone(), verb: verb.to_owned(), ..honest.clone() };
        let resolver = &resolver;
        async move {
            Said { gate: resolver.check_gate(&name, verb).await, decision: resolver.decide_payment(&question).await }
        }
    });
    answers.buffer_unordered(AT_ONCE).collect().await
}

/// The codes of a decision that are not about payments.
fn of_identity(decision: &PaymentDecision) -> Vec<&str> {
    let is_of_payment = |slug: &str| {
        slug == ReasonCode::RecordPending.slug()
            || ReasonCode::from_slug(slug).is_some_and(|code| code.entry().step == ResolutionStep::Payment)
    };
    decision.codes.iter().map(String::as_str).filter(|slug| !is_of_payment(slug)).collect()
}

fn assert_the_gate_decides(Said { gate, decision }: &Said) {
    let about = format!("{} {}: {gate:?} {:?}", decision.name, decision.verb, decision.codes);
    let Err(code) = gate else {
        assert_eq!(of_identity(decision), Vec::<&str>::new(), "{about}");
        assert!(decision.checked.contains(&PaymentCheck::Identity), "{about}");
        return;
    };
    assert!(decision.abort, "{about}");
    assert!(decision.codes.iter().any(|slug| slug == code), "{about}");
    assert!(decision.entries.iter().all(|row| row.abort && row.codes.iter().any(|slug| slug == code)), "{about}");
    let is_open = decision.state == TrustState::Indeterminate;
    assert_eq!(decision.unchecked.contains(&PaymentCheck::Identity), is_open, "{about}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gate_says_of_any_name_and_verb_decides() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let said = said_of_all(&sandbox.config()).await;
    said.iter().for_each(assert_the_gate_decides);
    for state in [TrustState::Trusted, TrustState::Untrusted, TrustState::Indeterminate] {
        let denied = said.iter().filter(|one| one.decision.state == state && one.gate.is_err()).count();
        assert!(denied > 0, "nothing {state} is denied");
    }
    assert!(said.iter().any(|one| one.gate.is_ok() && !one.decision.abort), "nothing is allowed");
}

/// What an operator denies, the weakest proof that is demanded, and verbs without an entry, decide for payments too.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_denies_at_the_gate_is_not_paid() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let mut strict = sandbox.config();
    let is_warning = |code: &&ReasonCode| {
        code.entry().effect == ReasonEffect::Warn && code.entry().step != ResolutionStep::Continuity
    };
    strict.gate.deny = ReasonCode::ALL.iter().filter(is_warning).copied().collect();
    let said = said_of_all(&strict).await;
    said.iter().for_each(assert_the_gate_decides);
    let denied = |one: &&Said| {
        let code = one.gate.err().and_then(ReasonCode::from_slug);
        one.decision.state == TrustState::Trusted && code.is_some_and(|code| strict.gate.deny.contains(&code))
    };
    assert!(said.iter().filter(denied).count() > 0, "no warning is denied");

    let mut proven = sandbox.config();
    proven.gate.min_proof = Some(ProofGrade::StateProof);
    let said = said_of_all(&proven).await;
    said.iter().for_each(assert_the_gate_decides);
    assert!(said.iter().all(|one| one.decision.abort), "a quorum is not enough");

    let mut loose = sandbox.config();
    loose.gate.verbs = GateVerbs::Implemented;
    loose.gate.deny.clear();
    said_of_all(&loose).await.iter().for_each(assert_the_gate_decides);
}
