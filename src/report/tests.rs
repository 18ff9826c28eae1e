mod page;
mod shards;

use jiff::Timestamp;
use serde_json::{Value, json};

use clresolve_verdict::agreement::{
    EndpointSays, EndpointStance, GatewaySays, GatewayStance, NameFact, Silence, UpstreamAgreement,
};

use super::counts::{EXAMPLES_PER_REASON, MAX_KINDS_OF_FINDINGS, NAMES_PER_FINDING};
use super::difference::{Change, Kind};
use super::drift::TxtLine;
use super::payload::{MAX_CHANGES, Payload};
use super::row::MAX_REASONS_PER_ROW;
use super::*;
use crate::chain::{Grade, Proof};
use crate::digest::Digest;
use crate::reason::{Code, Effect, Reason, Step};
use crate::verdict::{
    self, Anchor, AnchorBlock, CardDigest, Depth, Freshness, Identity, Name, NearMiss, Pinned, ProfileUsed, Served,
    State, Status, StepReport, Tool, Verdict,
};

/// Foreign text with something against every format.
const HOSTILE: &str = "=x|`a`\n# <script>alert(1)</script>\u{202e}\"'[l](http://e)\\,&";

fn digest(content: &str) -> String {
    Digest::of(content.as_bytes()).to_string()
}

/// A trusted verdict, in which all sources hold `card`.
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
            served: Served::Fresh,
        },
        tool: Tool::default(),
    }
}

/// The same with `reasons`, of which one fails.
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

/// The checksum record claims something else.
fn wrong_checksum() -> Verdict {
    let mut verdict = failing([Reason::new(Code::ChecksumMismatch).at("https, ipfs").observed(digest("card"))]);
    see(&mut verdict, Step::Records, json!({"records": {"cl.checksum.agentcard": digest("other")}}));
    verdict
}

/// The host serves something else.
fn changed_host() -> Verdict {
    let mut verdict =
        failing([Reason::new(Code::ChecksumMismatch).at("https"), Reason::new(Code::CidMismatch).at("https")]);
    see(&mut verdict, Step::FetchHttps, json!({"sha256": digest("other")}));
    verdict
}

/// An endpoint and a gateway of this label, which both do what they should not.
fn said_by(label: &str) -> UpstreamAgreement {
    let stance = EndpointStance::Differ { facts: vec![NameFact::Records, NameFact::Holder] };
    UpstreamAgreement {
        endpoints: vec![EndpointSays { label: label.to_owned(), stance }],
        gateways: vec![GatewaySays { label: label.to_owned(), says: GatewayStance::Lies }],
    }
}

fn hostile() -> Row {
    let mut row = Row::unreadable(3, HOSTILE, None, HOSTILE);
    row.reasons[0] = row.reasons[0].clone().at(HOSTILE).expected(HOSTILE).fix(HOSTILE).message(HOSTILE);
    row.near_misses = vec![HOSTILE.to_owned()];
    row.agreement = Some(said_by(HOSTILE));
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
        registry: None,
        agreement: rows.iter().any(|row| row.agreement.is_some()),
    };
    let list = ListOfNames { file: Some("names.txt".to_owned()), digest: Some(Digest::of(b"list")) };
    Report { scope, counts, ending, since: None, before: None, earlier: Vec::new(), shard: None, list, flags: Vec::new() }
}

/// Rows in memory.
struct Listed<'a>(&'a [Row]);

impl Rows for Listed<'_> {
    fn each(&self, see: &mut dyn FnMut(&Row) -> io::Result<()>) -> io::Result<()> {
        self.0.each(see)
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

#[test]
fn where_all_agree_there_is_no_drift() {
    let row = Row::of(1, &trusted());
    assert_eq!(row.drift.agreements(), [Agreement::Agree; 6]);
    assert!(!row.has_findings() && row.txt.is_empty());
    assert_eq!(Draft::of(&report(&[], Ending::Complete), &row), None);
}

#[test]
fn the_source_that_differs_is_told() {
    use Agreement::{Agree, Differ, Open};
    let pairs = |verdict: &Verdict| Drift::of(verdict).agreements();
    assert_eq!(pairs(&wrong_checksum()), [Differ, Differ, Agree, Agree, Agree, Agree]);
    assert_eq!(pairs(&changed_host()), [Differ, Agree, Differ, Agree, Agree, Agree]);
    let other_entry = failing([Reason::new(Code::TxtEntryMismatch).at("cl.entry")]);
    assert_eq!(pairs(&other_entry), [Agree, Agree, Agree, Differ, Agree, Agree]);
    let other_schema = failing([Reason::new(Code::PublishedVersionMutated)]);
    assert_eq!(pairs(&other_schema), [Agree, Agree, Agree, Agree, Agree, Differ]);
    let mut host_down = trusted();
    see(&mut host_down, Step::FetchHttps, json!({"unavailable": "404"}));
    assert_eq!(pairs(&host_down), [Open, Agree, Open, Agree, Agree, Agree]);
}

#[test]
fn a_record_is_proposed_where_the_cid_proves_its_value() {
    assert_eq!(txt(&wrong_checksum()), [format!("cl.checksum.agentcard={}", digest("card"))]);
    let missing = failing([Reason::new(Code::TxtMissing).at("cl.checksum.agentcard")]);
    assert_eq!(txt(&missing), [format!("cl.checksum.agentcard={}", digest("card"))]);
    let entry = failing([Reason::new(Code::TxtEntryMismatch).at("cl.entry")]);
    assert_eq!(txt(&entry), ["cl.entry=x402://a.eth/summarize/v1"]);
    let owner = failing([Reason::new(Code::TxtOwnerMismatch).at("cl.owner").expected("o.eth")]);
    assert_eq!(txt(&owner), ["cl.owner=o.eth"]);
}

#[test]
fn what_a_host_served_is_never_proposed() {
    assert_eq!(txt(&changed_host()), [""; 0]);
    let mut unproven = wrong_checksum();
    see(&mut unproven, Step::FetchIpfs, json!({"gateways": []}));
    assert_eq!(txt(&unproven), [""; 0]);
}

#[test]
fn a_card_with_a_defect_gets_no_record() {
    for defect in [Code::EntryVersionNoncompliant, Code::CardFieldMissing, Code::VerbUnknown, Code::CardEnsMismatch] {
        let mut verdict = failing([Reason::new(Code::ChecksumMismatch), Reason::new(defect)]);
        see(&mut verdict, Step::Records, json!({"records": {"cl.checksum.agentcard": digest("other")}}));
        assert_eq!(txt(&verdict), [""; 0], "{defect}");
    }
}

#[test]
fn a_value_that_cannot_be_copied_is_not_proposed() {
    for owner in ["a`b.eth", "a|b.eth", "a\u{202e}.eth", "a b.eth", "a\\b.eth", &"a".repeat(201)] {
        let verdict = failing([Reason::new(Code::TxtOwnerMismatch).at("cl.owner").expected(owner)]);
        assert_eq!(txt(&verdict), [""; 0], "{owner}");
    }
}

#[test]
fn counts_and_groups_are_those_of_the_rows() {
    let mut undecided = trusted();
    undecided.state = State::Indeterminate;
    undecided.reasons = vec![Reason::new(Code::CidUnproven), Reason::new(Code::SingleRpc)];
    undecided.profile.near_misses = vec![NearMiss { profile: "p".to_owned(), would_be: State::Trusted }];
    let mut rows: Vec<Row> = (1..=8).map(|line| Row::of(line, &wrong_checksum())).collect();
    rows.extend([Row::of(9, &trusted()), Row::of(10, &undecided)]);
    let counts = report(&rows, Ending::Complete).counts;
    assert_eq!((counts.names, counts.trusted, counts.untrusted, counts.indeterminate, counts.drifting), (10, 1, 8, 1, 8));
    assert_eq!((counts.blocks, counts.near_misses["p"]), (Some((7, 7)), 1));
    let groups: Vec<_> = counts.groups().iter().map(|g| (g.code, g.effect, g.names, g.examples.len())).collect();
    assert_eq!(
        groups,
        [
            (Code::ChecksumMismatch, Effect::Fail, 8, EXAMPLES_PER_REASON),
            (Code::CidUnproven, Effect::Unknown, 1, 1),
            (Code::SingleRpc, Effect::Warn, 2, 2),
        ]
    );
}

#[test]
fn what_endpoints_and_gateways_say_is_counted_told_and_bounded() {
    let mut rows = [Row::of(1, &trusted()), Row::of(2, &trusted())];
    rows[0].agreement = Some(said_by("one"));
    rows[1].agreement = Some(UpstreamAgreement { gateways: Vec::new(), ..said_by("one") });
    let text = written(Format::Markdown, &rows, Ending::Complete);
    let sentences = "Of 1 RPC endpoint: 1 said something else of a name. Of 1 gateway: 1 sent a wrong block.";
    assert!(text.contains(sentences), "{text}");
    assert!(text.contains("| `one` | 0 | 2 | 0 |\n") && text.contains("| `one` | 0 | 0 | 1 | 0 |\n"), "{text}");
    assert_eq!(text.matches("| `a.eth` | `one` | says something else: records, holder |\n").count(), 2, "{text}");
    let page = written(Format::Html, &rows, Ending::Complete);
    assert!(page.contains(sentences) && page.contains("<td data-label=\"finding\">sent a wrong block of the card</td>"));

    let labels = |label: u64| Row { agreement: Some(said_by(&label.to_string())), ..Row::of(label, &trusted()) };
    let many: Vec<Row> = (1..=1000).map(labels).collect();
    let counts = report(&many, Ending::Complete).counts;
    assert!(counts.upstreams.endpoints().len() < 100 && counts.upstreams.gateways().len() < 100);
    assert!(written(Format::Markdown, &many, Ending::Complete).len() <= 65_536);
    let unasked = written(Format::Markdown, &[Row::of(1, &trusted())], Ending::Complete);
    assert!(!unasked.contains("gateways"), "{unasked}");
}

#[test]
fn times_span_the_rows_whatever_their_order() {
    let at = |time: &str| Row { checked_at: Some(time.to_owned()), ..Row::unreadable(1, "a", None, "b") };
    let rows = [at("2026-11-20T10:00:05Z"), at("2026-11-20T10:00:01.25Z"), at("2026-11-20T10:00:05.5Z")];
    let text = written(Format::Markdown, &rows, Ending::Complete);
    assert!(text.contains("`2026-11-20T10:00:01Z to 2026-11-20T10:00:05Z`"), "{text}");
}

#[test]
fn a_name_with_the_same_reason_twice_counts_once() {
    let reasons = [Code::SourceOversize, Code::CidMismatch, Code::SourceOversize].map(Reason::new);
    let counts = report(&[Row::of(1, &failing(reasons))], Ending::Complete).counts;
    assert!(counts.groups().iter().all(|group| group.names == 1));
}

/// The row at `line` of a name whose card binds another route than it may.
fn misrouted(line: u64) -> Row {
    let name = format!("n{line}.eth");
    let mut verdict = failing([Reason::new(Code::EntryVersionNoncompliant).at("/entry").observed(&name)]);
    verdict.name = Name { input: name.clone(), normalized: Some(name), node: None };
    Row::of(line, &verdict)
}

#[test]
fn names_with_the_same_defect_share_their_findings() {
    let mut other = misrouted(3);
    other.reasons[0] = other.reasons[0].clone().at("/elsewhere");
    let rows = [misrouted(1), misrouted(2), other, misrouted(4)];
    let text = written(Format::Markdown, &rows, Ending::Complete);
    let findings: Vec<&str> = text.lines().filter(|line| line.starts_with("### ")).collect();
    assert_eq!(findings, ["### `n1.eth` and 2 more: untrusted", "### `n3.eth`: untrusted"]);
    assert!(text.contains("Same findings: `n2.eth`, `n4.eth`. "), "{text}");
    assert!(text.contains("  - at `/entry`: observed `n1.eth`\n") && !text.contains("observed `n2.eth`"), "{text}");
    for name in ["n1", "n2", "n3", "n4"] {
        assert!(text.contains(&format!("| `{name}.eth` | incident | draft: ")), "{name}: {text}");
    }
}

#[test]
fn a_name_beyond_the_known_kinds_has_its_findings_to_itself() {
    let unlike = |line: u64| {
        let mut row = misrouted(line);
        row.reasons[0] = row.reasons[0].clone().at(format!("/{line}"));
        row
    };
    let kinds = u64::try_from(MAX_KINDS_OF_FINDINGS).unwrap();
    let mut rows: Vec<Row> = (1..=kinds + 1).map(unlike).collect();
    rows.push(Row { line: kinds + 2, ..rows[rows.len() - 1].clone() });
    let counts = report(&rows, Ending::Complete).counts;
    assert_eq!((counts.alike.len(), counts.alike(&rows[0]).map(|alike| alike.names)), (MAX_KINDS_OF_FINDINGS, Some(1)));
    assert_eq!(counts.alike(rows.last().unwrap()), None);
    let text = written(Format::Html, &rows, Ending::Complete);
    assert_eq!(text.matches("<article ").count(), MAX_KINDS_OF_FINDINGS);
    assert!(text.contains("2 more sets of findings are left out. The JSON form has all."), "{text}");
}

#[test]
fn the_names_that_share_findings_are_listed_up_to_a_limit() {
    let all = u64::try_from(NAMES_PER_FINDING).unwrap() + 8;
    let rows: Vec<Row> = (1..=all).map(misrouted).collect();
    let text = written(Format::Markdown, &rows, Ending::Complete);
    assert!(text.contains(&format!("### `n1.eth` and {} more: untrusted", all - 1)), "{text}");
    assert!(text.contains(" and 7 more. The values below"), "{text}");
}

#[test]
fn without_a_card_records_do_not_differ_from_it() {
    let mut verdict = failing([Reason::new(Code::TxtMissing).at("cl.entry")]);
    assert_eq!(Drift::of(&verdict).txt_card, Agreement::Differ);
    for report in verdict.steps.iter_mut().filter(|report| matches!(report.step, Step::Card | Step::Binding)) {
        report.status = Status::Skip;
    }
    assert_eq!(Drift::of(&verdict).txt_card, Agreement::Open);
}

#[test]
fn a_row_is_bounded() {
    let mut verdict = failing((0..500).map(|_| Reason::new(Code::VerbUnknown)));
    verdict.name.input = "a".repeat(5000);
    let row = Row::of(1, &verdict);
    assert_eq!((row.reasons.len(), row.more_reasons), (MAX_REASONS_PER_ROW, 500 - MAX_REASONS_PER_ROW));
    assert!(row.input.len() <= MAX_NAME_BYTES);
}

#[test]
fn a_draft_says_who_has_to_do_what() {
    let fixing = draft(&wrong_checksum()).markdown();
    let expected = format!(
        "| 2026-11-20 | `a.eth` | incident | draft: not to be called or paid until its publisher has set \
         `cl.checksum.agentcard={}` | checksum-mismatch (CL-50); `agent-cards/1.0.0`, block 7, conclusion {} |",
        digest("card"),
        trusted().conclusion
    );
    assert_eq!(fixing, expected);
    assert!(draft(&changed_host()).decision.ends_with("has restored the released bytes at the card's URL"));
    let mut both = wrong_checksum();
    both.reasons.push(Reason::new(Code::SchemaTxtMismatch).at("cl.verb"));
    assert!(draft(&both).decision.ends_with("` and corrected the rest"));
    let defect = failing([Reason::new(Code::EntryMalformed)]);
    assert!(draft(&defect).decision.ends_with("has corrected what it published"));
    let unregistered = failing([Reason::new(Code::NameUnregistered)]);
    assert_eq!(draft(&unregistered).decision, "draft: take the name off the list, or correct its spelling");
}

#[test]
fn markdown_holds_its_form_against_hostile_text() {
    let text = written(Format::Markdown, &[hostile(), Row::of(2, &changed_host())], Ending::Interrupted);
    assert!(!text.contains('\u{202e}') && text.contains("**Incomplete.**"));
    for line in text.lines().filter(|line| line.contains("script")) {
        let outside: String = line.split('`').step_by(2).collect();
        assert!(!outside.contains("script") && !outside.contains("http"), "{line}");
        assert_eq!(line.matches('`').count() % 2, 0, "{line}");
    }
    let mut columns = 0;
    for line in text.lines() {
        if !line.starts_with('|') {
            columns = 0;
            continue;
        }
        let pipes = line.matches('|').count();
        assert!(columns == 0 || pipes == columns, "{line}");
        columns = pipes;
    }
    assert_eq!(text.matches("\n# ").count(), 0);
}

#[test]
fn html_holds_no_foreign_markup() {
    let text = written(Format::Html, &[hostile(), Row::of(2, &changed_host())], Ending::Interrupted);
    assert!(text.matches("<script").count() == 1 && !text.contains("alert(1)<") && !text.contains('\u{202e}'));
    assert!(text.contains("&lt;script&gt;") && text.contains("Incomplete."));
    for tag in ["article", "table", "ul", "li", "dl", "pre", "code", "tr", "td", "p"] {
        let opened = text.matches(&format!("<{tag}>")).count() + text.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, text.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    for outside in [" src=", "url(", "@import", "<link", "http://e)\"", " style=", " onclick="] {
        assert!(!text.contains(outside), "{outside}");
    }
    for (anchor, _) in text.match_indices(" href=\"") {
        assert!(text[anchor..].starts_with(" href=\"#"), "{}", &text[anchor..anchor + 40]);
    }
}

#[test]
fn csv_cells_are_no_formulas() {
    let text = written(Format::Csv, &[hostile(), Row::of(2, &changed_host())], Ending::Interrupted);
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 4);
    let columns = lines[0].split(',').count();
    for line in &lines[1..] {
        let cells: Vec<&str> = line.strip_prefix('"').unwrap().strip_suffix('"').unwrap().split("\",\"").collect();
        assert_eq!(cells.len(), columns, "{line}");
        assert!(cells.iter().all(|cell| !cell.starts_with(['=', '+', '-', '@'])), "{line}");
    }
    assert!(lines[1].contains("\"'=x|`a`\\u{a}#") && lines[3].contains("interrupted"));
}

/// Whether a log fits the schema of SARIF 2.1.0. Its pattern of language tags, which no log has, is no regular expression.
fn fits_sarif(text: &str) -> Result<(), String> {
    let schema = include_str!("../../tests/sarif/sarif-2.1.0-rtm.5.json").replace("{2}]?$", "{2}$");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let log = serde_json::from_str(text).expect("JSON");
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
    validator.validate(&log).map_err(|error| format!("{}: {error}", error.instance_path()))
}

#[test]
fn sarif_fits_the_schema_of_sarif() {
    let mut long = Row::of(9, &changed_host());
    long.reasons.extend(std::iter::repeat_n(long.reasons.clone(), 20).flatten());
    let full = [hostile(), Row::of(7, &changed_host()), Row::of(8, &trusted()), long];
    for rows in [&full[..], &full[..1], &[]] {
        for ending in [Ending::Complete, Ending::Interrupted, Ending::ListFailed("\u{202e}<b> 'gone'".to_owned())] {
            assert_eq!(fits_sarif(&written(Format::Sarif, rows, ending)), Ok(()));
        }
    }
    let other = written(Format::Sarif, &full, Ending::Complete).replace("\"ruleId\"", "\"rule\"");
    assert!(fits_sarif(&other).is_err(), "the schema permits no other member");
}

#[test]
fn sarif_points_at_the_line_of_the_list_and_knows_a_finding_again() {
    let mut twice = Row::of(7, &changed_host());
    twice.reasons.extend(twice.reasons.clone());
    let rows = [hostile(), twice, Row::of(8, &trusted())];
    let text = written(Format::Sarif, &rows, Ending::Interrupted);
    assert!(!text.contains('\u{202e}'));
    let log: Value = serde_json::from_str(&text).expect("JSON");
    let run = &log["runs"][0];
    assert_eq!((&log["version"], &run["invocations"][0]["executionSuccessful"]), (&json!("2.1.0"), &json!(false)));
    let results = run["results"].as_array().expect("a list");
    let count = rows.iter().map(|row| row.reasons.len()).sum::<usize>();
    assert_eq!(results.len(), count);
    for result in results {
        let index = result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok()).expect("an index");
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
    }
    let message = results[0]["message"]["text"].as_str().expect("a message");
    assert!(message.contains("\\[l\\](http://e)"), "{message}");
    let mismatch = results.iter().find(|result| result["ruleId"] == "cid-mismatch").expect("the host's");
    let place = &mismatch["locations"][0];
    assert_eq!(
        place["physicalLocation"],
        json!({"artifactLocation": {"uri": "names.txt"}, "region": {"startLine": 7}})
    );
    assert_eq!(place["logicalLocations"][0]["fullyQualifiedName"], "a.eth");
    let mut fingerprints: Vec<_> = results.iter().map(|result| result["partialFingerprints"].to_string()).collect();
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), count, "each finding has its own");
    let empty: Value = serde_json::from_str(&written(Format::Sarif, &[], Ending::Complete)).expect("JSON");
    assert_eq!(empty["runs"][0]["results"], json!([]));
}

#[test]
fn junit_has_a_test_for_each_name_and_one_for_what_is_missing() {
    let mut undecided = trusted();
    undecided.state = State::Indeterminate;
    undecided.reasons = vec![Reason::new(Code::CidUnproven)];
    let rows = [hostile(), Row::of(2, &changed_host()), Row::of(3, &trusted()), Row::of(4, &undecided)];
    let text = written(Format::Junit, &rows, Ending::Interrupted);
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let suite = document.root_element().first_element_child().expect("a suite");
    for (count, expected) in [("tests", "5"), ("failures", "2"), ("errors", "2"), ("skipped", "0")] {
        assert_eq!(suite.attribute(count), Some(expected), "{count}");
    }
    let tests: Vec<_> = suite.children().filter(|child| child.has_tag_name("testcase")).collect();
    let told = |test: &roxmltree::Node<'_, '_>| {
        let child = test.first_element_child().expect("it says something");
        (child.tag_name().name().to_owned(), child.attribute("message").map(str::to_owned))
    };
    let codes = |codes: &str| Some(codes.to_owned());
    assert_eq!(told(&tests[0]), ("failure".to_owned(), codes("name-invalid")));
    assert_eq!(told(&tests[1]), ("failure".to_owned(), codes("checksum-mismatch, cid-mismatch")));
    assert_eq!(told(&tests[2]), ("system-out".to_owned(), None), "it warns");
    assert_eq!(told(&tests[3]).0, "error");
    assert_eq!(told(&tests[4]).0, "error");
    assert_eq!((tests.len(), tests[1].attribute("name")), (5, Some("a.eth")));
}

/// The changes from one row of a name to another: kind, before and after.
fn changes(before: &Row, after: &Row) -> Vec<(&'static str, Option<String>, Option<String>)> {
    let past = |row: &Row| {
        let rows = std::slice::from_ref(row);
        Past::of(&report(rows, Ending::Complete).scope, true, &Listed(rows)).expect("rows in memory")
    };
    let difference = Difference::between(&past(before), &past(after)).expect("one world");
    difference.changes.into_iter().map(|change| (change.kind.as_str(), change.before, change.after)).collect()
}

/// A row of a.eth: in this state, with this card, held by this account and paid there.
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

/// The row of a.eth while nobody answers, in the audit after `before`.
fn outage_after(before: &Row) -> Row {
    let mut verdict = trusted();
    verdict.state = State::Indeterminate;
    (verdict.anchor, verdict.identity) = (None, None);
    for step in [Step::Records, Step::FetchIpfs, Step::FetchHttps] {
        see(&mut verdict, step, json!({"error": "no endpoint answered"}));
    }
    let mut row = Row::of(1, &verdict);
    row.follow(&before.into());
    row
}

fn kinds(before: &Row, after: &Row) -> Vec<&'static str> {
    changes(before, after).into_iter().map(|change| change.0).collect()
}

#[test]
fn another_card_of_an_untrusted_name_is_a_change() {
    let (before, after) = (row_of(State::Untrusted, "one", "0x01"), row_of(State::Untrusted, "three", "0x01"));
    let records = |row: &Row| row.known.records.clone();
    assert_eq!(
        changes(&before, &after),
        [
            ("bytes", Some(digest("one")), Some(digest("three"))),
            ("version", Some("3".to_owned()), Some("5".to_owned())),
            ("records", records(&before), records(&after)),
        ]
    );
    let mut host_alone = before.clone();
    host_alone.known.served.as_mut().expect("it answered").sha256 = Digest::of(b"other");
    assert_eq!(kinds(&before, &host_alone), ["bytes"]);
    host_alone.known.proven = None;
    host_alone.known.served.clone_from(&before.known.served);
    assert_eq!(kinds(&before, &host_alone), [""; 0], "a gateway that does not answer changes no card");
}

#[test]
fn records_that_change_without_the_card_are_a_change() {
    let before = row_of(State::Untrusted, "one", "0x01");
    let mut after = before.clone();
    after.known.records = Some(digest("another cl.owner"));
    assert_eq!(kinds(&before, &after), ["records"]);
    after.known.served.as_mut().expect("it answered").sha256 = Digest::of(b"other");
    assert_eq!(kinds(&before, &after), ["bytes", "records"], "other served bytes hide no change of records");
}

#[test]
fn an_outage_between_two_audits_hides_no_change() {
    let before = row_of(State::Trusted, "one", "0x01");
    let outage = outage_after(&outage_after(&before));
    assert_eq!(outage.known, before.known);
    let carried = outage.carried.as_ref().expect("what was known");
    assert_eq!((carried.state, carried.members.len()), (Some(Decided::Trusted), 4));
    assert_eq!(kinds(&before, &outage), ["state"]);

    let same = changes(&outage, &before);
    let was = |text: &str| Some(text.to_owned());
    assert_eq!(same, [("state", was("indeterminate, trusted before"), was("trusted"))]);
    let other = row_of(State::Untrusted, "three", "0x02");
    assert_eq!(kinds(&outage, &other), ["newly-broken", "findings", "bytes", "version", "records", "owner", "payee"]);
    let trusted_anew = outage_after(&row_of(State::Untrusted, "one", "0x01"));
    assert_eq!(kinds(&trusted_anew, &before)[0], "newly-trusted");
}

/// An outage of an upstream is no change, and neither is one that only one of the audits asked.
#[test]
fn what_an_upstream_says_otherwise_is_a_change() {
    let says = |label: &str, stance| EndpointSays { label: label.to_owned(), stance };
    let serves = |says| GatewaySays { label: "one".to_owned(), says };
    let row = |endpoint: EndpointStance, gateway: GatewayStance| {
        let mut row = row_of(State::Trusted, "one", "0x01");
        let endpoints = vec![says("own", EndpointStance::Agree), says("other", endpoint)];
        row.agreement = Some(UpstreamAgreement { endpoints, gateways: vec![serves(gateway)] });
        row
    };
    let differ = || EndpointStance::Differ { facts: vec![NameFact::Records, NameFact::Holder] };
    let before = row(EndpointStance::Agree, GatewayStance::Has);
    assert_eq!(kinds(&before, &before), [""; 0]);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        changes(&before, &row(differ(), GatewayStance::Lies)),
        [
            ("upstream", text("endpoint other: agrees"), text("endpoint other: says something else: records, holder")),
            ("upstream", text("gateway one: has the card"), text("gateway one: sent a wrong block of the card")),
        ]
    );
    let out = row(EndpointStance::Silent { why: Silence::NoAnswer }, GatewayStance::Unreached);
    assert_eq!((kinds(&before, &out), kinds(&out, &before)), (Vec::new(), Vec::new()));
    assert_eq!(kinds(&before, &row_of(State::Trusted, "one", "0x01")), [""; 0]);

    let mut fewer = before.clone();
    fewer.agreement.as_mut().expect("it was asked").endpoints.pop();
    assert_eq!(kinds(&fewer, &row(differ(), GatewayStance::Has)), [""; 0]);
}

#[test]
fn what_was_carried_is_written_and_read_again() {
    let rows = [outage_after(&row_of(State::Trusted, "one", "0x01"))];
    let text = written(Format::Json, &rows, Ending::Complete);
    let scope = report_under(HOSTILE, &rows, Ending::Complete).scope;
    let read = Past::read(io::Cursor::new(&text)).expect("it was just written");
    let digest = serde_json::from_str::<Value>(&text).expect("JSON")["digest"].as_str().and_then(|digest| digest.parse().ok());
    assert_eq!(read, Past { digest, ..Past::of(&scope, true, &Listed(&rows)).expect("rows in memory") });
    assert!(read.digest.is_some() && fits_schema(&serde_json::from_str(&text).expect("JSON")), "{text}");
}

#[test]
fn a_message_has_a_bounded_number_of_changes_and_each_kind_fits_its_schema() {
    let told = |changes: Vec<Change>| {
        let rows = [row_of(State::Trusted, "one", "0x01")];
        let scope = report(&rows, Ending::Complete).scope;
        let mut past = Past::of(&scope, true, &Listed(&rows)).expect("rows in memory");
        past.digest = Some(Digest::of(b"report"));
        let mut difference = Difference::between(&past, &past).expect("one world");
        difference.changes = changes;
        let payload = Payload::of(&difference, &past, &past, &AuditCounts::default(), Timestamp::UNIX_EPOCH);
        serde_json::to_value(&payload).expect("JSON")
    };
    let change = |kind: Kind, value: &str| Change {
        name: "a.eth".to_owned(),
        kind,
        before: None,
        after: Some(value.to_owned()),
    };
    let value = |kind: Kind| match kind {
        Kind::Added | Kind::Removed | Kind::NewlyTrusted | Kind::NewlyBroken => "trusted".to_owned(),
        Kind::State => "indeterminate, untrusted before".to_owned(),
        Kind::Findings => "cid-mismatch, checksum-mismatch".to_owned(),
        Kind::Bytes => digest("card"),
        Kind::UpdateMissing => format!("version-not-raised: {HOSTILE}"),
        _ => HOSTILE.to_owned(),
    };
    let each = told(Kind::ALL.into_iter().map(|kind| change(kind, &value(kind))).collect());
    let schema: Value = serde_json::from_str(include_str!("../../schemas/audit-changes.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    assert!(schema.is_valid(&each), "{each:#}");
    assert!(!each["data"]["changes"].to_string().contains("script"), "{each:#}");

    let many = told(vec![change(Kind::Owner, "0x01"); MAX_CHANGES + 7]);
    assert!(schema.is_valid(&many));
    assert_eq!((many["data"]["changes"].as_array().map(Vec::len), &many["data"]["left_out"]), (Some(MAX_CHANGES), &json!(7)));
}

fn fits_schema(report: &Value) -> bool {
    let schema: Value = serde_json::from_str(include_str!("../../schemas/audit.schema.json")).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema").is_valid(report)
}

/// A name whose records were read, with this in its evidence.
fn read_as(evidence: &Value) -> Row {
    let mut verdict = trusted();
    let mut all = json!({"answer": "records", "resolver": "0x01", "expiry": "2030-01-01T00:00:00Z"});
    let more = evidence.as_object().expect("an object").clone();
    all.as_object_mut().expect("an object").extend(more);
    see(&mut verdict, Step::Records, all);
    Row::of(1, &verdict)
}

#[test]
fn what_was_not_read_on_the_chain_has_not_changed() {
    let address = |number: u8| format!("0x{number:040x}");
    let whole = |coins: Value| {
        read_as(&json!({
            "holder": address(1), "addresses": coins, "endpoints": {"agent-endpoint[mcp]": "https://a.example"},
        }))
    };
    let before = whole(json!({"60": address(2), "2147483658": null}));
    assert_eq!(kinds(&before, &before), [""; 0]);
    let other = whole(json!({"60": address(3), "2147483658": address(4)}));
    assert_eq!(
        changes(&before, &other),
        [
            ("payee", None, Some(format!("2147483658: {}", address(4)))),
            ("payee", Some(format!("60: {}", address(2))), Some(format!("60: {}", address(3)))),
        ]
    );
    let not_asked = whole(json!({"60": address(2)}));
    let failed = whole(json!({"60": {"error": "the resolver failed"}, "2147483658": null}));
    let silent = read_as(&json!({
        "expiry": "not readable", "addresses": {"60": address(2)},
        "endpoints": {"agent-endpoint[mcp]": {"error": "the resolver failed"}},
    }));
    for unread in [not_asked, failed, silent] {
        assert_eq!(kinds(&before, &unread), [""; 0], "{unread:?}");
        assert_eq!(kinds(&unread, &before), [""; 0], "{unread:?}");
    }
}

#[test]
fn an_owner_or_an_expiry_that_comes_or_goes_is_a_change() {
    let of = |name: &str, holder: Value, expiry: &str| {
        let mut row = read_as(&json!({"holder": holder, "expiry": expiry}));
        let mut verdict = trusted();
        verdict.name = Name { input: name.to_owned(), normalized: Some(name.to_owned()), node: None };
        let evidence = json!({"answer": "records", "resolver": "0x01", "holder": holder, "expiry": expiry});
        see(&mut verdict, Step::Records, evidence);
        row.known = Row::of(1, &verdict).known;
        row
    };
    let (year, none) = ("2030-01-01T00:00:00Z", "not readable");
    let text = |text: &str| Some(text.to_owned());
    let (wrapped, unwrapped) = (of("b.a.eth", json!("0x01"), year), of("b.a.eth", json!(null), none));
    assert_eq!(changes(&wrapped, &unwrapped), [("owner", text("0x01"), None), ("expiry", text(year), None)]);
    assert_eq!(changes(&unwrapped, &wrapped), [("owner", None, text("0x01")), ("expiry", None, text(year))]);
    assert_eq!(changes(&unwrapped, &unwrapped), []);
    // The registrar has one of each second-level name: that none was read tells nothing.
    let unread = of("a.eth", json!("0x01"), none);
    assert_eq!(kinds(&of("a.eth", json!("0x01"), year), &unread), [""; 0]);
    // A report of the form before has neither value nor word.
    let mut old = unwrapped.clone();
    old.known.on_chain.as_mut().expect("it was read").absent.clear();
    assert_eq!((kinds(&wrapped, &old), kinds(&old, &wrapped)), (Vec::new(), Vec::new()));
    let mut carried = outage_after(&unwrapped);
    assert_eq!(changes(&carried, &wrapped)[1..], [("owner", None, text("0x01")), ("expiry", None, text(year))]);
    carried.known = old.known.clone();
    carried.follow(&(&unwrapped).into());
    assert_eq!(carried.known, unwrapped.known, "the earlier audit had read it");
    assert!(fits_schema(&serde_json::from_str(&written(Format::Json, &[unwrapped], Ending::Complete)).expect("JSON")));
}

#[test]
fn lines_that_begin_alike_are_told_apart() {
    let long = |line: u64, end: &str| Row::unreadable(line, "aaaa", Some(Digest::of(end.as_bytes())), "too long");
    let rows = [long(1, "one"), long(2, "two"), long(3, "two"), Row::unreadable(4, "aaaa", None, "no name")];
    let page = written(Format::Html, &rows, Ending::Complete);
    for line in 1..=4 {
        assert_eq!(page.matches(&format!(" id=\"line-{line}\"")).count(), 1, "{page}");
    }
    let text = written(Format::Json, &rows, Ending::Complete);
    let past = Past::read(io::Cursor::new(&text)).expect("it was just written");
    assert_eq!((past.names.len(), past.rows, PastCounts::of(&past).states()), (3, 4, [0, 4, 0]));
    assert!(fits_schema(&serde_json::from_str(&text).expect("JSON")), "{text}");
}

#[test]
fn what_names_nobody_or_has_no_date_drafts_no_incident() {
    let rows = [Row::unreadable(1, "0x00", None, "it is the hash of a name that nobody has spelt")];
    let invalid = Row { checked_at: None, block: None, ..Row::of(2, &failing([Reason::new(Code::NameInvalid)])) };
    let of = |rows: &[Row]| rows.iter().filter_map(|row| Draft::of(&report(rows, Ending::Complete), row)).collect::<Vec<_>>();
    assert_eq!(of(&rows), []);
    assert_eq!(of(std::slice::from_ref(&invalid)), []);
    let dated = of(&[rows[0].clone(), invalid, Row::of(3, &trusted())]);
    assert_eq!(dated.iter().map(|draft| &*draft.date).collect::<Vec<_>>(), ["2026-11-20"], "the day of the run");
}

#[test]
fn what_one_audit_could_not_read_is_carried_to_the_next() {
    let paid = |address: Value| read_as(&json!({"holder": "0x01", "addresses": {"60": address}}));
    let before = paid(json!("0x02"));
    let mut unread = paid(json!({"error": "the resolver failed"}));
    unread.follow(&(&before).into());
    assert_eq!(unread.carried.as_ref().map(|carried| &*carried.members), Some(&["on_chain".to_owned()][..]));
    assert_eq!(kinds(&before, &unread), [""; 0]);
    assert_eq!(kinds(&unread, &paid(json!("0x03"))), ["payee"]);
}

#[test]
fn a_row_says_since_when_nothing_changed() {
    let at = |day: u8, resolver: &str| {
        let mut row = row_of(State::Trusted, "one", resolver);
        row.checked_at = Some(format!("2026-11-{day:02}T12:00:00Z"));
        row
    };
    let after = |mut row: Row, earlier: &Row| {
        row.follow(&earlier.into());
        row
    };
    let first = at(1, "0x01");
    let second = after(at(2, "0x01"), &first);
    let third = after(at(3, "0x01"), &second);
    assert_eq!(first.unchanged_since, None);
    assert_eq!([&second, &third].map(|row| row.unchanged_since.as_deref()), [Some("2026-11-01T12:00:00Z"); 2]);
    assert_eq!(after(at(4, "0x02"), &third).unchanged_since, None, "another resolver");
    let mut broken = at(4, "0x01");
    broken.state = State::Untrusted;
    assert_eq!(after(broken, &third).unchanged_since, None, "another state");
    assert_eq!(outage_after(&third).unchanged_since, first.checked_at, "nothing else was seen");
}

#[test]
fn json_keeps_the_values_and_fits_its_schema() {
    let rows = [hostile(), Row::of(2, &wrong_checksum()), Row::of(3, &trusted())];
    let text = written(Format::Json, &rows, Ending::ListFailed("gone".to_owned()));
    assert!(!text.contains('\u{202e}'));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["schema"], &value["complete"]), (&json!(SCHEMA), &json!(false)));
    assert_eq!(value["rows"][0]["input"], HOSTILE);
    assert_eq!(value["counts"]["names"], 3);
    assert_eq!(value["resolution"].as_array().unwrap().len(), 1, "the line that is no name is no incident");
    let schema: Value = serde_json::from_str(include_str!("../../schemas/audit.schema.json")).unwrap();
    let validator = jsonschema::options().build(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|e| format!("{} {e}", e.instance_path())).collect();
    assert_eq!(errors, [""; 0]);
    let empty: Value = serde_json::from_str(&written(Format::Json, &[], Ending::Complete)).unwrap();
    assert!(validator.is_valid(&empty), "{empty}");
}
