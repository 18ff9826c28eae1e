mod changes;
mod counting;
mod drafts;
mod forms;
mod opening;
mod page;
mod reading;
mod sarif;
mod sources;
mod stored;
mod waivers;

use serde_json::{Value, json};

use super::difference::{AuditChange, AuditChangeKind};
use super::drift::TextRecordFix;
use super::*;
use clresolve_core::digest::Digest;
use clresolve_core::reading::{ProofGrade, ProofGradeDemand, ProofStrength};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_core::state::{TrustState, TrustStateUnderOtherProfile};
use clresolve_verdict::verdict::{
    self, AgentIdentity, AnchorBlock, AppliedProfile, CardReference, ChainAnchor, Freshness, PinnedDocument,
    RequestedName, ResolutionDepth, StepReport, StepStatus, ToolVersion, Verdict, VerdictCopyKind,
};

/// Foreign text with a special character for every format.
const HOSTILE: &str = "=x|`a`\n# <script>alert(1)</script>\u{202e}\"'[l](http://e)\\,&";

fn digest(content: &str) -> String {
    Digest::compute(content.as_bytes()).to_string()
}

/// A trusted verdict whose sources all contain `card`.
fn trusted() -> Verdict {
    let step = |step: &ResolutionStep| StepReport {
        step: *step,
        status: if *step == ResolutionStep::Continuity { StepStatus::Skip } else { StepStatus::Pass },
        evidence: match step {
            ResolutionStep::Records => json!({"records": {"cl.checksum.agentcard": digest("card")}}),
            ResolutionStep::FetchHttps | ResolutionStep::FetchIpfs => json!({"sha256": digest("card")}),
            _ => json!({}),
        },
        ms: 0,
    };
    Verdict {
        schema: verdict::SCHEMA.to_owned(),
        id: digest("id"),
        conclusion: digest("conclusion"),
        name: RequestedName { input: "a.eth".to_owned(), normalized: Some("a.eth".to_owned()), node: None },
        state: TrustState::Trusted,
        summary: "The binding of a.eth is real.".to_owned(),
        reasons: vec![Reason::new(ReasonCode::SingleRpc)],
        identity: Some(AgentIdentity {
            entry: Some("x402://a.eth/summarize/v1".to_owned()),
            card: CardReference { sha256: Digest::compute(b"card").to_hex(), ..CardReference::default() },
            ..AgentIdentity::default()
        }),
        anchor: Some(ChainAnchor {
            world: "sandbox".to_owned(),
            chain: "eip155:31337".to_owned(),
            block: AnchorBlock {
                number: 7,
                hash: String::new(),
                timestamp: "2026-11-20T10:00:00Z".to_owned(),
                tag: "finalized".to_owned(),
            },
            resolver: None,
            wildcard: None,
            offchain: false,
            proof: ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: false },
            records_digest: None,
        }),
        profile: AppliedProfile {
            id: "agent-cards/1.0.0".to_owned(),
            depth: ResolutionDepth::Schemas,
            digest: digest("profile"),
            manifests: Vec::new(),
            near_misses: Vec::new(),
        },
        steps: ResolutionStep::WALK.iter().map(step).collect(),
        freshness: Freshness {
            checked_at: "2026-11-20T10:10:00.5Z".parse().unwrap(),
            fresh_until: "2026-11-20T10:11:00Z".parse().unwrap(),
            retry_after: None,
            confirmed: None,
            served: VerdictCopyKind::Fresh,
        },
        tool: ToolVersion::default(),
    }
}

/// Such a verdict with `reasons`, of which one is a failure.
fn failing(reasons: impl IntoIterator<Item = Reason>) -> Verdict {
    let mut verdict = trusted();
    verdict.state = TrustState::Untrusted;
    verdict.reasons = reasons.into_iter().collect();
    for reason in &verdict.reasons {
        let step = verdict.steps.iter_mut().find(|step| step.step == reason.step).expect("every step is there");
        step.status = StepStatus::Fail;
    }
    verdict
}

fn see(verdict: &mut Verdict, step: ResolutionStep, evidence: Value) {
    let report = verdict.steps.iter_mut().find(|report| report.step == step).expect("every step is there");
    report.evidence = evidence;
}

/// The checksum record contains another digest.
fn wrong_checksum() -> Verdict {
    let mut verdict =
        failing([Reason::new(ReasonCode::ChecksumMismatch).at_place("https, ipfs").observed(digest("card"))]);
    see(&mut verdict, ResolutionStep::Records, json!({"records": {"cl.checksum.agentcard": digest("other")}}));
    verdict
}

fn changed_host() -> Verdict {
    let mut verdict = failing([
        Reason::new(ReasonCode::ChecksumMismatch).at_place("https"),
        Reason::new(ReasonCode::CidMismatch).at_place("https"),
    ]);
    see(&mut verdict, ResolutionStep::FetchHttps, json!({"sha256": digest("other")}));
    verdict
}

fn hostile() -> AuditRow {
    let mut row = AuditRow::from_unreadable_line(3, HOSTILE, None, HOSTILE);
    row.reasons[0] = row.reasons[0].clone().at_place(HOSTILE).expected(HOSTILE).with_fix(HOSTILE).message(HOSTILE);
    row.near_misses = vec![HOSTILE.to_owned()];
    row
}

fn report(rows: &[AuditRow], ending: AuditEnding) -> AuditReport {
    report_under("agent-cards/1.0.0", rows, ending)
}

fn report_under(profile: &str, rows: &[AuditRow], ending: AuditEnding) -> AuditReport {
    let mut counts = AuditCounts::default();
    rows.iter().for_each(|row| counts.add(row));
    let scope = AuditConditions {
        world: HOSTILE.to_owned(),
        chain: "eip155:31337".to_owned(),
        block: "finalized".to_owned(),
        profile: PinnedDocument { id: profile.to_owned(), digest: digest("profile") },
        manifests: Vec::new(),
        depth: ResolutionDepth::Schemas,
        demands: Some(StateDecidingSettings::from_grade_demand(ProofGradeDemand::Quorum(2), digest("settings"))),
        registry: None,
        schema_layers: false,
    };
    let list = NameListReference { file: Some("names.txt".to_owned()), digest: Some(Digest::compute(b"list")) };
    AuditReport {
        tool: ToolVersion::default(),
        generated_at: None,
        scope,
        counts,
        warning: ending.warning(),
        since: None,
        before: None,
        earlier: Vec::new(),
        list,
        schema_layers: None,
        flags: Vec::new(),
        waivers: AppliedWaivers::default(),
    }
}

struct Listed<'a>(&'a [AuditRow]);

impl AuditRowSource for Listed<'_> {
    fn for_each_row(&self, see: &mut dyn FnMut(&AuditRow) -> io::Result<()>) -> io::Result<()> {
        self.0.iter().try_for_each(see)
    }
}

fn written(format: AuditReportFormat, rows: &[AuditRow], ending: AuditEnding) -> String {
    written_as(&report_under(HOSTILE, rows, ending), format, rows)
}

fn written_as(whole: &AuditReport, format: AuditReportFormat, rows: &[AuditRow]) -> String {
    let mut out = Vec::new();
    whole.write(format, &Listed(rows), &mut out).expect("a vector takes all");
    String::from_utf8(out).expect("a report is UTF-8")
}

fn txt(verdict: &Verdict) -> Vec<String> {
    drift::text_record_fixes(verdict).iter().map(ToString::to_string).collect()
}

fn draft(verdict: &Verdict) -> LogRowDraft {
    let row = AuditRow::from_verdict(1, verdict);
    LogRowDraft::from_row(&report(std::slice::from_ref(&row), AuditEnding::Complete), &row)
        .expect("the name is untrusted")
}

/// The row at `line` of a name whose card has an entry with a forbidden route.
fn misrouted(line: u64) -> AuditRow {
    let name = format!("n{line}.eth");
    let mut verdict = failing([Reason::new(ReasonCode::EntryVersionNoncompliant).at_place("/entry").observed(&name)]);
    verdict.name = RequestedName { input: name.clone(), normalized: Some(name), node: None };
    AuditRow::from_verdict(line, &verdict)
}

/// The row of a.eth in this state, with this card, held by this account and paid at it.
fn row_of(state: TrustState, card: &str, account: &str) -> AuditRow {
    let mut verdict =
        if state == TrustState::Untrusted { failing([Reason::new(ReasonCode::VerbUnknown)]) } else { trusted() };
    verdict.state = state;
    let evidence = json!({"answer": "records", "holder": account, "addresses": {"60": account}});
    see(&mut verdict, ResolutionStep::Records, evidence);
    see(&mut verdict, ResolutionStep::FetchIpfs, json!({"sha256": digest(card)}));
    see(&mut verdict, ResolutionStep::FetchHttps, json!({"sha256": digest(card)}));
    let identity = verdict.identity.as_mut().expect("a card was seen");
    identity.card.sha256 = Digest::compute(card.as_bytes()).to_hex();
    identity.version = Some(card.len().to_string());
    verdict.anchor.as_mut().expect("the chain was read").records_digest = Some(digest(&format!("records of {card}")));
    AuditRow::from_verdict(1, &verdict)
}

fn fits_schema(report: &Value) -> bool {
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/audit.schema.json")).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema").is_valid(report)
}

/// A name whose records were read, with this evidence.
fn read_as(evidence: &Value) -> AuditRow {
    let mut verdict = trusted();
    let mut all = json!({"answer": "records", "resolver": "0x01", "expiry": "2030-01-01T00:00:00Z"});
    let more = evidence.as_object().expect("an object").clone();
    all.as_object_mut().expect("an object").extend(more);
    see(&mut verdict, ResolutionStep::Records, all);
    AuditRow::from_verdict(1, &verdict)
}
