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

use super::difference::{Change, Kind};
use super::drift::TxtLine;
use super::*;
use clresolve_core::digest::Digest;
use clresolve_core::reading::{Grade, GradeDemand, Proof};
use clresolve_core::reason::{Code, Effect, Reason, Step};
use clresolve_core::state::{NearMiss, State};
use clresolve_verdict::verdict::{
    self, Anchor, AnchorBlock, CardDigest, Depth, Freshness, Identity, Name, Pinned, ProfileUsed, Served, Status,
    StepReport, Tool, Verdict,
};

/// Foreign text with a special character for every format.
const HOSTILE: &str = "=x|`a`\n# <script>alert(1)</script>\u{202e}\"'[l](http://e)\\,&";

fn digest(content: &str) -> String {
    Digest::of(content.as_bytes()).to_string()
}

/// A trusted verdict whose sources all contain `card`.
fn trusted() -> Verdict {
    let step = |step: &Step| StepReport {
        step: *step,
        status: if *step == Step::Continuity { Status::Skip } else { Status::Pass },
        evidence: match step {
            Step::Records => json!({"records": {"cl.checksum.agentcard": digest("card")}}),
            Step::FetchHttps | Step::FetchIpfs => json!({"sha256": digest("card")}),
            _ => json!({}),
        },
        ms: 0,
    };
    Verdict {
        schema: verdict::SCHEMA.to_owned(),
        id: digest("id"),
        conclusion: digest("conclusion"),
        name: Name { input: "a.eth".to_owned(), normalized: Some("a.eth".to_owned()), node: None },
        state: State::Trusted,
        summary: "The binding of a.eth is real.".to_owned(),
        reasons: vec![Reason::new(Code::SingleRpc)],
        identity: Some(Identity {
            entry: Some("x402://a.eth/summarize/v1".to_owned()),
            card: CardDigest { sha256: Digest::of(b"card").hex(), ..CardDigest::default() },
            ..Identity::default()
        }),
        anchor: Some(Anchor {
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
            proof: Proof { grade: Grade::SingleRpc, asked: 1, agreed: 1, own: false },
            records_digest: None,
        }),
        profile: ProfileUsed {
            id: "agent-cards/1.0.0".to_owned(),
            depth: Depth::Schemas,
            digest: digest("profile"),
            manifests: Vec::new(),
            near_misses: Vec::new(),
        },
        steps: Step::WALK.iter().map(step).collect(),
        freshness: Freshness {
            checked_at: "2026-11-20T10:10:00.5Z".parse().unwrap(),
            fresh_until: "2026-11-20T10:11:00Z".parse().unwrap(),
            retry_after: None,
            confirmed: None,
            served: Served::Fresh,
        },
        tool: Tool::default(),
    }
}

/// Such a verdict with `reasons`, of which one is a failure.
fn failing(reasons: impl IntoIterator<Item = Reason>) -> Verdict {
    let mut verdict = trusted();
    verdict.state = State::Untrusted;
    verdict.reasons = reasons.into_iter().collect();
    for reason in &verdict.reasons {
        let step = verdict.steps.iter_mut().find(|step| step.step == reason.step).expect("every step is there");
        step.status = Status::Fail;
    }
    verdict
}

fn see(verdict: &mut Verdict, step: Step, evidence: Value) {
    let report = verdict.steps.iter_mut().find(|report| report.step == step).expect("every step is there");
    report.evidence = evidence;
}

/// The checksum record contains another digest.
fn wrong_checksum() -> Verdict {
    let mut verdict = failing([Reason::new(Code::ChecksumMismatch).at("https, ipfs").observed(digest("card"))]);
    see(&mut verdict, Step::Records, json!({"records": {"cl.checksum.agentcard": digest("other")}}));
    verdict
}

fn changed_host() -> Verdict {
    let mut verdict =
        failing([Reason::new(Code::ChecksumMismatch).at("https"), Reason::new(Code::CidMismatch).at("https")]);
    see(&mut verdict, Step::FetchHttps, json!({"sha256": digest("other")}));
    verdict
}

fn hostile() -> Row {
    let mut row = Row::unreadable(3, HOSTILE, None, HOSTILE);
    row.reasons[0] = row.reasons[0].clone().at(HOSTILE).expected(HOSTILE).fix(HOSTILE).message(HOSTILE);
    row.near_misses = vec![HOSTILE.to_owned()];
    row
}

fn report(rows: &[Row], ending: Ending) -> Report {
    report_under("agent-cards/1.0.0", rows, ending)
}

fn report_under(profile: &str, rows: &[Row], ending: Ending) -> Report {
    let mut counts = AuditCounts::default();
    rows.iter().for_each(|row| counts.add(row));
    let scope = Scope {
        world: HOSTILE.to_owned(),
        chain: "eip155:31337".to_owned(),
        block: "finalized".to_owned(),
        profile: Pinned { id: profile.to_owned(), digest: digest("profile") },
        manifests: Vec::new(),
        depth: Depth::Schemas,
        demands: Some(Demands::of(GradeDemand::Quorum(2), digest("settings"))),
        registry: None,
        schema_layers: false,
    };
    let list = ListOfNames { file: Some("names.txt".to_owned()), digest: Some(Digest::of(b"list")) };
    Report {
        tool: Tool::default(),
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
        waivers: Waivers::default(),
    }
}

struct Listed<'a>(&'a [Row]);

impl Rows for Listed<'_> {
    fn each(&self, see: &mut dyn FnMut(&Row) -> io::Result<()>) -> io::Result<()> {
        self.0.iter().try_for_each(see)
    }
}

fn written(format: Format, rows: &[Row], ending: Ending) -> String {
    written_as(&report_under(HOSTILE, rows, ending), format, rows)
}

fn written_as(whole: &Report, format: Format, rows: &[Row]) -> String {
    let mut out = Vec::new();
    whole.write(format, &Listed(rows), &mut out).expect("a vector takes all");
    String::from_utf8(out).expect("a report is UTF-8")
}

fn txt(verdict: &Verdict) -> Vec<String> {
    drift::fixing_lines(verdict).iter().map(ToString::to_string).collect()
}

fn draft(verdict: &Verdict) -> Draft {
    let row = Row::of(1, verdict);
    Draft::of(&report(std::slice::from_ref(&row), Ending::Complete), &row).expect("the name is untrusted")
}

/// The row at `line` of a name whose card has an entry with a forbidden route.
fn misrouted(line: u64) -> Row {
    let name = format!("n{line}.eth");
    let mut verdict = failing([Reason::new(Code::EntryVersionNoncompliant).at("/entry").observed(&name)]);
    verdict.name = Name { input: name.clone(), normalized: Some(name), node: None };
    Row::of(line, &verdict)
}

/// The row of a.eth in this state, with this card, held by this account and paid at it.
fn row_of(state: State, card: &str, account: &str) -> Row {
    let mut verdict = if state == State::Untrusted { failing([Reason::new(Code::VerbUnknown)]) } else { trusted() };
    verdict.state = state;
    let evidence = json!({"answer": "records", "holder": account, "addresses": {"60": account}});
    see(&mut verdict, Step::Records, evidence);
    see(&mut verdict, Step::FetchIpfs, json!({"sha256": digest(card)}));
    see(&mut verdict, Step::FetchHttps, json!({"sha256": digest(card)}));
    let identity = verdict.identity.as_mut().expect("a card was seen");
    identity.card.sha256 = Digest::of(card.as_bytes()).hex();
    identity.version = Some(card.len().to_string());
    verdict.anchor.as_mut().expect("the chain was read").records_digest = Some(digest(&format!("records of {card}")));
    Row::of(1, &verdict)
}

fn fits_schema(report: &Value) -> bool {
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/audit.schema.json")).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema").is_valid(report)
}

/// A name whose records were read, with this evidence.
fn read_as(evidence: &Value) -> Row {
    let mut verdict = trusted();
    let mut all = json!({"answer": "records", "resolver": "0x01", "expiry": "2030-01-01T00:00:00Z"});
    let more = evidence.as_object().expect("an object").clone();
    all.as_object_mut().expect("an object").extend(more);
    see(&mut verdict, Step::Records, all);
    Row::of(1, &verdict)
}
