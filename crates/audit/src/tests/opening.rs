//! The first lines: the network, who must act, the trend, and what other rules accept.

use super::*;
use crate::opening;
use crate::overview::AuditOverview;
use crate::page::TextRun;

/// The lines of a report as plain text.
fn lines_of(whole: &AuditReport, rows: &[AuditRow]) -> Vec<String> {
    let overview = AuditOverview::from_rows(whole, &Listed(rows)).expect("rows in memory");
    let piece = |piece: &TextRun<'_>| match piece {
        TextRun::Plain(text) | TextRun::Foreign(text) => text.to_string(),
        TextRun::Code(code, _) => code.to_string(),
    };
    let line = |line: opening::ReportSummaryLine<'_>| {
        line.label.to_owned() + &line.pieces.iter().map(piece).collect::<String>()
    };
    opening::summary_lines(whole, &overview).into_iter().map(line).collect()
}

/// A name of this owner with these findings.
fn of_owner(line: u64, owner: Value, codes: &[ReasonCode]) -> AuditRow {
    let mut verdict = failing(codes.iter().map(|code| Reason::new(*code)));
    see(&mut verdict, ResolutionStep::Records, json!({"answer": "records", "holder": owner}));
    let name = format!("n{line}.eth");
    verdict.name = RequestedName { input: name.clone(), normalized: Some(name), node: None };
    AuditRow::from_verdict(line, &verdict)
}

#[test]
fn networks_other_than_mainnet_are_labelled() {
    let rows = [AuditRow::from_verdict(1, &trusted())];
    let world = |world: &str, chain: &str| {
        let mut whole = report(&rows, AuditEnding::Complete);
        (whole.scope.world, whole.scope.chain) = (world.to_owned(), chain.to_owned());
        lines_of(&whole, &rows).remove(0)
    };
    let read = "read at block 7 on 2026-11-20.";
    assert_eq!(world("mainnet", "eip155:1"), format!("Network: mainnet, Ethereum (eip155:1), {read}"));
    let local = "a local test chain (eip155:31337)";
    assert_eq!(world("sandbox", "eip155:31337"), format!("Test network: sandbox, {local}, {read}"));
    assert_eq!(world("lab", "eip155:31337"), format!("Test network: lab, {local}, {read}"));
    assert_eq!(world("fork", "eip155:1"), format!("Not mainnet: fork, with Ethereum's chain id (eip155:1), {read}"));
    assert_eq!(world("eip155-10", "eip155:10"), format!("Not mainnet: eip155-10, chain eip155:10, {read}"));
    let unread = report(&[], AuditEnding::Complete);
    assert!(lines_of(&unread, &[])[0].ends_with(". No block was read."), "{:?}", lines_of(&unread, &[]));
}

#[test]
fn names_with_an_unreadable_holder_are_counted() {
    let of = |holder: Value, codes: &[ReasonCode]| of_owner(1, holder, codes);
    let unreadable = of(json!({"unreadable": "stale"}), &[ReasonCode::HolderUnreadable, ReasonCode::TxtMissing]);
    let rows = [of(json!("0xaa"), &[ReasonCode::TxtMissing]), unreadable.clone(), unreadable];
    let whole = report(&rows, AuditEnding::Complete);
    let line =
        "Holder or expiry unknown: 2 names. They, or their owners' names, have moved to ENSv2 (holder-unreadable).";
    assert_eq!(lines_of(&whole, &rows)[2], line);
    assert!(
        lines_of(&report(&rows[..1], AuditEnding::Complete), &rows[..1]).iter().all(|line| !line.starts_with("Holder"))
    );
    let json: Value =
        serde_json::from_str(&written(AuditReportFormat::Json, &rows, AuditEnding::Complete)).expect("JSON");
    assert_eq!(json["counts"]["holder_unreadable"], 2);
    assert!(fits_schema(&json), "{json}");
}

#[test]
fn the_owner_of_most_names_and_the_main_cause_are_named() {
    let lines_of = |rows: &[AuditRow]| lines_of(&report(rows, AuditEnding::Complete), rows).remove(1);
    let publishers = "Who must act: publishers, who own the names, set their records and host the cards; ";
    let (aa, bb) = (json!("0xaa"), json!("0xbb"));
    let of = |owner: &Value, line: u64, code: ReasonCode| of_owner(line, owner.clone(), &[code]);
    let mut rows = vec![of(&aa, 1, ReasonCode::VerbUnknown)];
    let cause = "The cause: the card contradicts the manifest.";
    assert_eq!(lines_of(&rows), format!("{publishers}here the account 0xaa, which owns the name. {cause}"));
    rows.extend([of(&aa, 2, ReasonCode::TxtMissing), of(&aa, 3, ReasonCode::TxtMissing)]);
    let cause = "The most frequent cause: records on the chain are missing or wrong (2 of the 3 names).";
    assert_eq!(lines_of(&rows), format!("{publishers}here the account 0xaa, which owns all 3 names. {cause}"));
    rows.push(of(&bb, 4, ReasonCode::ChecksumMismatch));
    let cause = "The most frequent cause: records on the chain are missing or wrong (2 of the 4 names).";
    let owner = "above all the account 0xaa, which owns 3 of the 4 names.";
    assert_eq!(lines_of(&rows), format!("{publishers}{owner} {cause}"));
    rows.extend([of(&bb, 5, ReasonCode::TxtMissing), of(&Value::Null, 6, ReasonCode::TxtMissing)]);
    let cause = "The most frequent cause: records on the chain are missing or wrong (4 of the 6 names).";
    let owner = "no account owns most of the names, 0xaa owns 3 of the 6 names.";
    assert_eq!(lines_of(&rows), format!("{publishers}{owner} {cause}"));

    let unread = [AuditRow::from_verdict(1, &failing([Reason::new(ReasonCode::TxtMissing)]))];
    assert!(lines_of(&unread).contains("; no owner of these names could be read. "), "{}", lines_of(&unread));
    let operator = [AuditRow::from_verdict(1, &failing([Reason::new(ReasonCode::RpcDisagree)]))];
    let cause = "The cause: the RPC endpoints contradict each other.";
    assert_eq!(lines_of(&operator), format!("Who must act: the operator, who runs this resolver. {cause}"));
    assert_eq!(lines_of(&[AuditRow::from_verdict(1, &trusted())]), "Who must act: nobody. Nothing is wrong.");
}

#[test]
fn rules_and_more_lenient_profiles_are_listed() {
    let near = |line: u64, codes: &[ReasonCode], profiles: &[&str]| {
        let mut row = of_owner(line, json!("0xaa"), codes);
        row.near_misses = profiles.iter().map(|profile| (*profile).to_owned()).collect();
        row
    };
    let other = |rows: &[AuditRow]| lines_of(&report(rows, AuditEnding::Complete), rows).remove(2);
    let mut rows = vec![near(1, &[ReasonCode::EntryVersionNoncompliant], &[])];
    assert_eq!(other(&rows), "Rules: agent-cards/1.0.0. No other known profile would trust more names.");
    rows.push(near(2, &[ReasonCode::EntryVersionNoncompliant], &["a", "b"]));
    rows.push(near(
        3,
        &[ReasonCode::EntryVersionNoncompliant, ReasonCode::SchemaMirrorPlaceholder, ReasonCode::TxtMissing],
        &["b"],
    ));
    let because = "because it accepts what fails here: the route version of the entry is not an accepted one";
    let line = other(&rows);
    assert!(line.starts_with(&format!("Rules: agent-cards/1.0.0. b would trust 2 more names, {because}; ")), "{line}");
    assert!(line.ends_with(&format!("; and 1 more. a would trust 1 more name, {because}.")), "{line}");
    for (line, profile) in (4..).zip(["c", "d", "e"]) {
        rows.push(near(line, &[ReasonCode::TxtMissing], &[profile]));
    }
    assert!(other(&rows).ends_with(" 2 further profiles would trust more names."), "{}", other(&rows));
    let good = [AuditRow::from_verdict(1, &trusted())];
    assert_eq!(other(&good), "Rules: agent-cards/1.0.0.", "nothing is left to trust");
}

#[test]
fn page_and_markdown_begin_with_the_same_lines() {
    let mut near = of_owner(2, json!("0xaa"), &[ReasonCode::EntryVersionNoncompliant]);
    near.near_misses = vec!["agent-cards/1.0.0+released".to_owned()];
    let rows = [near, AuditRow::from_verdict(3, &changed_host())];
    let whole = report(&rows, AuditEnding::Complete);
    let lines = lines_of(&whole, &rows);
    let (page, text) =
        (written_as(&whole, AuditReportFormat::Html, &rows), written_as(&whole, AuditReportFormat::Markdown, &rows));
    let opening =
        page.split_once("<ul class=\"opening\">").and_then(|(_, rest)| rest.split_once("</ul>")).expect("a list").0;
    let mut plain = String::new();
    for piece in opening.split('<') {
        plain.push_str(piece.split_once('>').map_or("", |(_, text)| text));
    }
    let summary: Vec<&str> = text.lines().skip(3).filter(|line| line.starts_with("- ")).take(3).collect();
    assert_eq!((lines.len(), summary.len()), (3, 3));
    let bare = |text: &str| text.replace(['*', '`', '\n'], "").replace("- ", "").replace("&gt;", ">");
    for (line, below) in lines.iter().zip(summary) {
        let line = bare(line).replace(HOSTILE, "");
        let says = |text: &str| line.split(&bare(HOSTILE)).all(|part| bare(text).contains(part));
        assert!(says(&plain) && says(below), "{line}\n{plain}\n{below}");
    }
}

#[test]
fn changes_and_trend_are_among_the_first_lines() {
    let changed = |kind| AuditChange { name: "a.eth".to_owned(), kind, before: None, after: None };
    let rows = [AuditRow::from_verdict(1, &trusted())];
    let mut whole = report(&rows, AuditEnding::Complete);
    assert_eq!(lines_of(&whole, &rows).len(), 3);
    let at = |day: &str, trusted| ReportStateCounts {
        checked: Some(format!("{day}T10:00:00Z").parse().expect("a time")),
        trusted,
        ..ReportStateCounts::default()
    };
    let past = ComparableReport::from_rows(&whole.scope, true, &Listed(&rows)).expect("rows in memory");
    let mut since = AuditDifference::between(&past, &past).expect("one world");
    let kinds = [
        AuditChangeKind::Added,
        AuditChangeKind::Removed,
        AuditChangeKind::NewlyBroken,
        AuditChangeKind::NewlyTrusted,
        AuditChangeKind::Owner,
        AuditChangeKind::Payee,
    ];
    since.changes =
        [AuditChangeKind::Added, AuditChangeKind::NewlyBroken].into_iter().chain(kinds).map(changed).collect();
    whole.since = Some(since);
    let kinds = "2 added, 1 removed, 2 newly broken, 1 newly trusted, 1 with another owner, 1 other change.";
    assert_eq!(lines_of(&whole, &rows)[2], format!("What changed: since the previous report, {kinds}"));
    (whole.before, whole.earlier) = (Some(at("2026-10-01", 5)), vec![at("2026-10-01", 5)]);
    assert_eq!(lines_of(&whole, &rows)[2], format!("What changed: since 2026-10-01T10:00:00Z, {kinds}"));
    let written = "2026-10-02T08:30:00.5Z".parse().expect("a time");
    whole.before = Some(ReportStateCounts { generated_at: Some(written), ..at("2026-10-01", 5) });
    assert_eq!(lines_of(&whole, &rows)[2], format!("What changed: since 2026-10-02T08:30:00Z, {kinds}"));
    whole.before = Some(at("2026-10-01", 5));
    whole.earlier = vec![at("2026-10-01", 5), at("2026-09-01", 9)];
    let trend = "Trend: trusted names in the last 3 reports: 9, 5, 1.";
    assert_eq!(lines_of(&whole, &rows)[2], format!("What changed: since 2026-10-01T10:00:00Z, {kinds}"));
    assert_eq!(lines_of(&whole, &rows)[3], trend);
    whole.since = None;
    assert_eq!(lines_of(&whole, &rows)[2], trend);
    whole.earlier = (1..=9).map(|day| at(&format!("2026-10-0{day}"), day)).collect();
    assert_eq!(lines_of(&whole, &rows)[2], "Trend: trusted names in the last 6 reports: 5, 6, 7, 8, 9, 1.");
}
