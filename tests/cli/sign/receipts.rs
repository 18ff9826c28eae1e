//! Signed documents about receipts: made from a live verdict, and held to agent, receipt, request, time and key.

use clresolve_core::reading::ProofStrength;
use clresolve_messages::receipt::document::ReceiptVerificationDocumentInputs;
use clresolve_messages::receipt::judge::ReceiptKnowledge;
use clresolve_messages::receipt::{ReceiptVerificationDocument, judge_receipt};
use clresolve_payment::settlement::{SettlementAssuranceLevel, SettlementCheckResult};
use clresolve_resolver::sign::{
    ExpectedReceiptResult, RECEIPT_TYPE, VerifiedReceiptResult, sign_receipt_result, verify_signed_receipt_result,
};
use clresolve_verdict::verdict::ChainAnchor;

use super::*;

const RECEIPT: &[u8] = b"{}";

/// What is said at [`NOW`] of a receipt of no family.
fn document() -> ReceiptVerificationDocument {
    document_of(&verdict(NOW))
}

/// The same, about the agent of this verdict.
fn document_of(verdict: &Verdict) -> ReceiptVerificationDocument {
    document_with(verdict, None)
}

/// The same, with what is said of a settlement.
fn document_with(verdict: &Verdict, settlement: Option<&SettlementCheckResult>) -> ReceiptVerificationDocument {
    let unknown = Reason::new(ReasonCode::ReceiptKeyUnpublished);
    let known = ReceiptKnowledge {
        agent: None,
        signer: Err(&unknown),
        request: None,
        bought: None,
        earliest: None,
        schema: None,
        now: at(NOW),
    };
    let setting = ReceiptVerificationDocumentInputs {
        verdict,
        signer: None,
        is_signer_attested: false,
        request: None,
        decision: None,
        settlement,
        now: at(NOW),
    };
    ReceiptVerificationDocument::from_judgement(judge_receipt(RECEIPT, &known), &setting)
}

fn expected() -> ExpectedReceiptResult {
    let name = EnsName::parse(NAME).expect("a name");
    ExpectedReceiptResult {
        name,
        receipt: Digest::compute(RECEIPT),
        request: None,
        decision: None,
        requires_settlement: false,
        chain: "eip155:1".to_owned(),
        world: "mainnet".to_owned(),
        proof: None,
        issuer: Some(ISSUER.to_owned()),
    }
}

fn signed() -> String {
    sign_receipt_result(
        &VerdictIssuer::new(key(), ISSUER),
        &document(),
        &resolution_of_verdict(verdict(NOW), None),
        at(NOW),
    )
    .expect("it is fresh")
}

#[test]
fn a_signed_document_is_about_one_receipt_agent_and_request() {
    let jws = signed();
    let found = verify_signed_receipt_result(&jws, &keys(), &expected(), at(NOW)).expect("it holds");
    let VerifiedReceiptResult { document: said, state, issuer, key_id } = found;
    assert_eq!((said, state), (document().to_value(), TrustState::Indeterminate));
    assert_eq!((issuer.as_str(), key_id.as_str()), (ISSUER, THUMBPRINT));
    let other = Digest::compute(b"other");
    for (expected, what) in [
        (
            ExpectedReceiptResult { name: EnsName::parse("thief.eth").expect("a name"), ..expected() },
            SignedDocumentMismatch::Name,
        ),
        (ExpectedReceiptResult { receipt: other, ..expected() }, SignedDocumentMismatch::Receipt),
        (ExpectedReceiptResult { request: Some(other), ..expected() }, SignedDocumentMismatch::Request),
        (ExpectedReceiptResult { decision: Some(other.to_string()), ..expected() }, SignedDocumentMismatch::Decision),
        (ExpectedReceiptResult { requires_settlement: true, ..expected() }, SignedDocumentMismatch::Settlement),
    ] {
        let refused = verify_signed_receipt_result(&jws, &keys(), &expected, at(NOW));
        assert!(
            matches!(&refused, Err(VerdictVerifyError::Other { what: found, .. }) if *found == what),
            "{refused:?}"
        );
    }
    let issuer = ExpectedReceiptResult { issuer: Some("https://other.example".to_owned()), ..expected() };
    assert!(matches!(
        verify_signed_receipt_result(&jws, &keys(), &issuer, at(NOW)),
        Err(VerdictVerifyError::Issuer { .. })
    ));
}

/// Who expects a payment to be settled takes no document that says nothing of it, or by less than is demanded.
#[test]
fn a_signed_document_shows_the_settlement_by_the_grade_that_is_demanded() {
    let of = |shown_by: Option<SettlementAssuranceLevel>, grade: ProofGrade, least: Option<ProofGrade>| {
        let proof = Some(ProofStrength { grade, asked: 2, agreed: 2, own: false });
        let settlement =
            SettlementCheckResult { shown_by, due: None, block: None, proof, decision: None, objection: None };
        let mut verdict = verdict(NOW);
        verdict.anchor.as_mut().expect("it has one").proof.grade = ProofGrade::StateProof;
        let verdict = verdict.with_computed_digests();
        let document = document_with(&verdict, Some(&settlement));
        let jws = sign_receipt_result(
            &VerdictIssuer::new(key(), ISSUER),
            &document,
            &resolution_of_verdict(verdict, None),
            at(NOW),
        );
        let expected = ExpectedReceiptResult { requires_settlement: true, proof: least, ..expected() };
        verify_signed_receipt_result(&jws.expect("it is fresh"), &keys(), &expected, at(NOW)).map(|found| found.state)
    };
    let reported = Some(SettlementAssuranceLevel::Reported);
    assert_eq!(of(reported, ProofGrade::Quorum, None), Ok(TrustState::Indeterminate));
    assert_eq!(of(reported, ProofGrade::Quorum, Some(ProofGrade::Quorum)), Ok(TrustState::Indeterminate));
    assert_eq!(of(reported, ProofGrade::SingleRpc, Some(ProofGrade::Quorum)), Err(VerdictVerifyError::ProofTooWeak));
    assert_eq!(of(reported, ProofGrade::Quorum, Some(ProofGrade::StateProof)), Err(VerdictVerifyError::ProofTooWeak));
    assert_eq!(
        of(Some(SettlementAssuranceLevel::Proven), ProofGrade::Quorum, Some(ProofGrade::StateProof)),
        Ok(TrustState::Indeterminate)
    );
    let unseen = of(None, ProofGrade::Quorum, None);
    assert!(
        matches!(unseen, Err(VerdictVerifyError::Other { what: SignedDocumentMismatch::Settlement, .. })),
        "{unseen:?}"
    );
}

/// A daemon that has the same key and looks at another chain says nothing of this one.
#[test]
fn a_signed_document_is_held_to_world_chain_and_proof_as_a_verdict_is() {
    let of = |verdict: &Verdict, expected: &ExpectedReceiptResult| {
        let jws = sign_receipt_result(
            &VerdictIssuer::new(key(), ISSUER),
            &document_of(verdict),
            &resolution_of_verdict(verdict.clone(), None),
            at(NOW),
        );
        verify_signed_receipt_result(&jws.expect("it is fresh"), &keys(), expected, at(NOW)).map(|found| found.state)
    };
    let anchored = |change: fn(&mut ChainAnchor)| {
        let mut verdict = verdict(NOW);
        change(verdict.anchor.as_mut().expect("it has one"));
        verdict.with_computed_digests()
    };
    let lab = of(&anchored(|anchor| anchor.world = "lab".to_owned()), &expected());
    assert!(matches!(lab, Err(VerdictVerifyError::Other { what: SignedDocumentMismatch::World, .. })), "{lab:?}");
    let other = of(&anchored(|anchor| anchor.chain = "eip155:5".to_owned()), &expected());
    assert!(matches!(other, Err(VerdictVerifyError::Other { what: SignedDocumentMismatch::Chain, .. })), "{other:?}");
    let quorum = ExpectedReceiptResult { proof: Some(ProofGrade::Quorum), ..expected() };
    assert_eq!(of(&verdict(NOW), &quorum), Err(VerdictVerifyError::ProofTooWeak));
    let strangers = strangers_word(NOW);
    assert_eq!(of(&strangers, &expected()), Err(VerdictVerifyError::OneStrangersWord));
    let enough = ExpectedReceiptResult { proof: Some(ProofGrade::SingleRpc), ..expected() };
    assert_eq!(of(&strangers, &enough), Ok(TrustState::Indeterminate));
}

#[test]
fn a_signed_document_holds_as_long_as_the_verdict() {
    let jws = signed();
    assert!(verify_signed_receipt_result(&jws, &keys(), &expected(), at(NOW + 299)).is_ok());
    let late = verify_signed_receipt_result(&jws, &keys(), &expected(), at(NOW + 300 + SKEW));
    assert_eq!(late, Err(VerdictVerifyError::Expired { ago: SKEW }));
    let early = verify_signed_receipt_result(&jws, &keys(), &expected(), at(NOW - SKEW - 1));
    assert_eq!(early, Err(VerdictVerifyError::IssuedInTheFuture));
    let stale = sign_receipt_result(
        &VerdictIssuer::new(key(), ISSUER),
        &document(),
        &resolution_of_verdict(verdict(NOW), None),
        at(NOW + 300),
    );
    assert_eq!(stale, Err(VerdictSignError::NotFresh));
}

#[test]
fn what_was_signed_for_another_purpose_or_changed_is_refused() {
    let verdict = VerdictIssuer::new(key(), ISSUER)
        .sign_verdict(&resolution_of_verdict(verdict(NOW), None), at(NOW))
        .expect("it is fresh");
    assert!(matches!(
        verify_signed_receipt_result(&verdict, &keys(), &expected(), at(NOW)),
        Err(VerdictVerifyError::Jws(_))
    ));
    let claims = |receipt: Value| json!({"iss": ISSUER, "iat": NOW, "exp": NOW + 300, "receipt": receipt});
    let of = |claims: Value| {
        let jws = key().sign_compact(RECEIPT_TYPE, claims.to_string().as_bytes());
        verify_signed_receipt_result(&jws, &keys(), &expected(), at(NOW))
    };
    assert!(of(claims(document().to_value())).is_ok());
    let mut changed = document().to_value();
    changed["state"] = "trusted".into();
    assert_eq!(of(claims(changed)), Err(VerdictVerifyError::WrongDigests));
    let mut long = claims(document().to_value());
    long["exp"] = (NOW + MAX_LIFETIME + 1).into();
    assert_eq!(of(long), Err(VerdictVerifyError::Lifetime));
}

#[test]
fn the_command_checks_a_signed_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("the folder can be written");
        path.display().to_string()
    };
    let now = Timestamp::now();
    let signer = VerdictIssuer::new(key(), ISSUER);
    let jws = sign_receipt_result(&signer, &document(), &resolution_of_verdict(verdict(now.as_second()), None), now)
        .expect("it is fresh");
    let (jws, receipt) = (file("a.jws", jws.as_bytes()), file("r.json", RECEIPT));
    let keys = file("keys.json", keys().to_jwks().to_string().as_bytes());
    let run = |name: &str| {
        let arguments = ["receipt", "check", &jws, "--receipt", &receipt, "--jwks", &keys, "--name", name];
        Command::new(env!("CARGO_BIN_EXE_clresolve")).args(arguments).output().expect("the program runs")
    };
    let found = run(NAME);
    assert_eq!(found.status.code(), Some(3), "{found:?}");
    assert_eq!(serde_json::from_slice::<Value>(&found.stdout).expect("JSON"), document().to_value());
    assert_eq!(run("thief.eth").status.code(), Some(1));
    let long = file("long.json", " ".repeat(1 << 20).as_bytes());
    let of_a_part = ["receipt", "check", &jws, "--receipt", &long, "--jwks", &keys, "--name", NAME];
    let refused = Command::new(env!("CARGO_BIN_EXE_clresolve")).args(of_a_part).output().expect("the program runs");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let elsewhere = ["receipt", "check", &jws, "--receipt", &receipt, "--jwks", &keys, "--name", NAME];
    for further in [["--chain", "eip155:5"], ["--proof", "quorum"]] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        let refused = program.args(elsewhere).args(further).output().expect("the program runs");
        assert_eq!(refused.status.code(), Some(1), "{further:?}: {refused:?}");
    }
}

#[test]
fn what_is_said_of_a_receipt_is_signed_and_checked_by_the_program() {
    let world = Devnet::start();
    let [receipt, said, keys, config] =
        ["r.json", "said.jws", "keys.json", "devnet.toml"].map(|file| world.desk.path(file));
    let sample = Sandbox::sample_receipts().iter().find(|sample| sample.file == "agent-sdk.json").expect("a receipt");
    fs::write(&receipt, sample.text).expect("written");
    let (jws, _) = ends(&world.run(&["receipt", "verify", &receipt, "--name", NAME, "-o", "jws"], true), 0);
    fs::write(&said, jws).expect("written");
    let check = ["receipt", "check", &said, "--receipt", &receipt, "--jwks", &keys, "--name", NAME, "--issuer", ISSUER];
    let mut program = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    let checked = program.args(check).env("CLRESOLVE_CONFIG", &config).output().expect("the program runs");
    let (document, _) = ends(&checked, 0);
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!((&document["name"], &document["state"]), (&json!(NAME), &json!("trusted")));
}
