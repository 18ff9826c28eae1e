//! The changes between two audits, and the facts copied from one to the next.

use super::*;
use clresolve_verdict::card::SchemaRole;

/// The changes from one row of a name to another: kind, before and after.
fn changes(before: &AuditRow, after: &AuditRow) -> Vec<(&'static str, Option<String>, Option<String>)> {
    let past = |row: &AuditRow| {
        let rows = std::slice::from_ref(row);
        ComparableReport::from_rows(&report(rows, AuditEnding::Complete).scope, true, &Listed(rows))
            .expect("rows in memory")
    };
    let difference = AuditDifference::between(&past(before), &past(after)).expect("one world");
    difference.changes.into_iter().map(|change| (change.kind.as_str(), change.before, change.after)).collect()
}

/// The row of a.eth during an outage, in the audit after `before`.
fn outage_after(before: &AuditRow) -> AuditRow {
    let mut verdict = trusted();
    verdict.state = TrustState::Indeterminate;
    (verdict.anchor, verdict.identity) = (None, None);
    for step in [ResolutionStep::Records, ResolutionStep::FetchIpfs, ResolutionStep::FetchHttps] {
        see(&mut verdict, step, json!({"error": "no endpoint answered"}));
    }
    let mut row = AuditRow::from_verdict(1, &verdict);
    row.carry_over_from(&before.into());
    row
}

fn kinds(before: &AuditRow, after: &AuditRow) -> Vec<&'static str> {
    changes(before, after).into_iter().map(|change| change.0).collect()
}

#[test]
fn another_card_of_an_untrusted_name_is_a_change() {
    let (before, after) =
        (row_of(TrustState::Untrusted, "one", "0x01"), row_of(TrustState::Untrusted, "three", "0x01"));
    let records = |row: &AuditRow| row.known.records.clone();
    assert_eq!(
        changes(&before, &after),
        [
            ("bytes", Some(digest("one")), Some(digest("three"))),
            ("version", Some("3".to_owned()), Some("5".to_owned())),
            ("records", records(&before), records(&after)),
        ]
    );
    let mut host_alone = before.clone();
    host_alone.known.served.as_mut().expect("it answered").sha256 = Digest::compute(b"other");
    assert_eq!(kinds(&before, &host_alone), ["bytes"]);
    host_alone.known.proven = None;
    host_alone.known.served.clone_from(&before.known.served);
    assert_eq!(kinds(&before, &host_alone), [""; 0], "a gateway that does not answer changes no card");
}

#[test]
fn records_that_change_without_the_card_are_a_change() {
    let before = row_of(TrustState::Untrusted, "one", "0x01");
    let mut after = before.clone();
    after.known.records = Some(digest("another cl.owner"));
    assert_eq!(kinds(&before, &after), ["records"]);
    after.known.served.as_mut().expect("it answered").sha256 = Digest::compute(b"other");
    assert_eq!(kinds(&before, &after), ["bytes", "records"], "other served bytes hide no change of records");
}

#[test]
fn an_outage_between_two_audits_hides_no_change() {
    let before = row_of(TrustState::Trusted, "one", "0x01");
    let outage = outage_after(&outage_after(&before));
    assert_eq!(outage.known, before.known);
    let carried = outage.carried.as_ref().expect("what was known");
    assert_eq!((carried.state, carried.members.len()), (Some(DecidedTrustState::Trusted), 4));
    assert_eq!(kinds(&before, &outage), ["state"]);

    let same = changes(&outage, &before);
    let was = |text: &str| Some(text.to_owned());
    assert_eq!(same, [("state", was("indeterminate, trusted before"), was("trusted"))]);
    let other = row_of(TrustState::Untrusted, "three", "0x02");
    assert_eq!(kinds(&outage, &other), ["newly-broken", "findings", "bytes", "version", "records", "owner", "payee"]);
    let trusted_anew = outage_after(&row_of(TrustState::Untrusted, "one", "0x01"));
    assert_eq!(kinds(&trusted_anew, &before)[0], "newly-trusted");
}

#[test]
fn what_was_carried_is_written_and_read_again() {
    let rows = [outage_after(&row_of(TrustState::Trusted, "one", "0x01"))];
    let text = written(AuditReportFormat::Json, &rows, AuditEnding::Complete);
    let scope = report_under(HOSTILE, &rows, AuditEnding::Complete).scope;
    let read = ComparableReport::read(io::Cursor::new(&text)).expect("it was just written");
    let digest =
        serde_json::from_str::<Value>(&text).expect("JSON")["digest"].as_str().and_then(|digest| digest.parse().ok());
    assert_eq!(
        read,
        ComparableReport {
            digest,
            ..ComparableReport::from_rows(&scope, true, &Listed(&rows)).expect("rows in memory")
        }
    );
    assert!(read.digest.is_some() && fits_schema(&serde_json::from_str(&text).expect("JSON")), "{text}");
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

/// Otherwise the report would show the stale holder and expiry from before the migration.
#[test]
fn holder_of_before_a_migration_is_not_carried_over() {
    let before = read_as(&json!({"holder": "0x01"}));
    let now = read_as(&json!({"holder": {"unreadable": "stale"}, "expiry": "not readable"}));
    assert_eq!(kinds(&before, &now), [""; 0]);
    let mut followed = now.clone();
    followed.carry_over_from(&(&before).into());
    let chain = followed.known.on_chain.as_ref().expect("it was read");
    assert_eq!((chain.holder.as_deref(), chain.expiry.as_deref()), (None, None));
    assert_eq!(chain.unreadable.as_deref(), Some("stale"));
    assert!(chain.absent.is_empty(), "{:?}", chain.absent);
    assert!(fits_schema(
        &serde_json::from_str(&written(AuditReportFormat::Json, &[followed], AuditEnding::Complete)).expect("JSON")
    ));
}

#[test]
fn an_owner_or_an_expiry_that_comes_or_goes_is_a_change() {
    let of = |name: &str, holder: Value, expiry: &str| {
        let mut row = read_as(&json!({"holder": holder, "expiry": expiry}));
        let mut verdict = trusted();
        verdict.name = RequestedName { input: name.to_owned(), normalized: Some(name.to_owned()), node: None };
        let evidence = json!({"answer": "records", "resolver": "0x01", "holder": holder, "expiry": expiry});
        see(&mut verdict, ResolutionStep::Records, evidence);
        row.known = AuditRow::from_verdict(1, &verdict).known;
        row
    };
    let (year, none) = ("2030-01-01T00:00:00Z", "not readable");
    let text = |text: &str| Some(text.to_owned());
    let (wrapped, unwrapped) = (of("b.a.eth", json!("0x01"), year), of("b.a.eth", json!(null), none));
    assert_eq!(changes(&wrapped, &unwrapped), [("owner", text("0x01"), None), ("expiry", text(year), None)]);
    assert_eq!(changes(&unwrapped, &wrapped), [("owner", None, text("0x01")), ("expiry", None, text(year))]);
    assert_eq!(changes(&unwrapped, &unwrapped), []);
    // Every second-level name has an expiry at the registrar, so a missing one was not read.
    let unread = of("a.eth", json!("0x01"), none);
    assert_eq!(kinds(&of("a.eth", json!("0x01"), year), &unread), [""; 0]);
    // Reports of the older form contain neither the value nor its absence.
    let mut old = unwrapped.clone();
    old.known.on_chain.as_mut().expect("it was read").absent.clear();
    assert_eq!((kinds(&wrapped, &old), kinds(&old, &wrapped)), (Vec::new(), Vec::new()));
    let mut carried = outage_after(&unwrapped);
    assert_eq!(changes(&carried, &wrapped)[1..], [("owner", None, text("0x01")), ("expiry", None, text(year))]);
    carried.known = old.known.clone();
    carried.carry_over_from(&(&unwrapped).into());
    assert_eq!(carried.known, unwrapped.known, "the earlier audit had read it");
    assert!(fits_schema(
        &serde_json::from_str(&written(AuditReportFormat::Json, &[unwrapped], AuditEnding::Complete)).expect("JSON")
    ));
}

#[test]
fn lines_that_begin_alike_are_told_apart() {
    let long = |line: u64, end: &str| {
        AuditRow::from_unreadable_line(line, "aaaa", Some(Digest::compute(end.as_bytes())), "too long")
    };
    let rows =
        [long(1, "one"), long(2, "two"), long(3, "two"), AuditRow::from_unreadable_line(4, "aaaa", None, "no name")];
    let page = written(AuditReportFormat::Html, &rows, AuditEnding::Complete);
    for line in 1..=4 {
        assert_eq!(page.matches(&format!(" id=\"line-{line}\"")).count(), 1, "{page}");
    }
    let text = written(AuditReportFormat::Json, &rows, AuditEnding::Complete);
    let past = ComparableReport::read(io::Cursor::new(&text)).expect("it was just written");
    assert_eq!((past.names.len(), past.rows, ReportStateCounts::from_report(&past).state_counts()), (3, 4, [0, 4, 0]));
    assert!(fits_schema(&serde_json::from_str(&text).expect("JSON")), "{text}");
}

#[test]
fn what_one_audit_could_not_read_is_carried_to_the_next() {
    let paid = |address: Value| read_as(&json!({"holder": "0x01", "addresses": {"60": address}}));
    let before = paid(json!("0x02"));
    let mut unread = paid(json!({"error": "the resolver failed"}));
    unread.carry_over_from(&(&before).into());
    assert_eq!(unread.carried.as_ref().map(|carried| &*carried.members), Some(&["on_chain.addresses".to_owned()][..]));
    assert_eq!(kinds(&before, &unread), [""; 0]);
    assert_eq!(kinds(&unread, &paid(json!("0x03"))), ["payee"]);
}

#[test]
fn what_was_carried_is_marked_where_it_is_shown() {
    let read = |holder: Value, expiry: &str| {
        let mut row = read_as(&json!({"holder": holder, "expiry": expiry}));
        row.checked_at = Some("2026-11-20T10:10:00Z".to_owned());
        row
    };
    let before = read(json!("0x0042"), "2026-12-01T00:00:00Z");
    let mut now = read(json!("0x0042"), "not readable");
    (now.state, now.reasons) = (TrustState::Untrusted, vec![Reason::new(ReasonCode::VerbUnknown)]);
    now.carry_over_from(&(&before).into());
    let page = written(AuditReportFormat::Html, std::slice::from_ref(&now), AuditEnding::Complete);
    let mark = "<small class=\"soft\">as of the previous report</small>";
    assert_eq!(page.matches(mark).count(), 1, "beside the expiry alone: {page}");
    assert!(page.contains("as of the previous report: on_chain.expiry"), "{page}");
    let csv = written(AuditReportFormat::Csv, std::slice::from_ref(&now), AuditEnding::Complete);
    assert!(csv.lines().next().is_some_and(|head| head.ends_with(",expiry,carried,generated_at,waivers")), "{csv}");
    assert!(csv.contains("on_chain.expiry"), "{csv}");

    let mut out = outage_after(&before);
    (out.state, out.reasons) = (TrustState::Untrusted, vec![Reason::new(ReasonCode::VerbUnknown)]);
    let page = written(AuditReportFormat::Html, std::slice::from_ref(&out), AuditEnding::Complete);
    assert_eq!(page.matches(mark).count(), 1, "beside the owner; no block dates the expiries: {page}");
    let md = written(AuditReportFormat::Markdown, &[out], AuditEnding::Complete);
    assert!(md.contains("The owner of 1 name is as of the previous report"), "{md}");
}

#[test]
fn a_row_says_since_when_nothing_changed() {
    let at = |day: u8, resolver: &str| {
        let mut row = row_of(TrustState::Trusted, "one", resolver);
        row.checked_at = Some(format!("2026-11-{day:02}T12:00:00Z"));
        row
    };
    let after = |mut row: AuditRow, earlier: &AuditRow| {
        row.carry_over_from(&earlier.into());
        row
    };
    let first = at(1, "0x01");
    let second = after(at(2, "0x01"), &first);
    let third = after(at(3, "0x01"), &second);
    assert_eq!(first.unchanged_since, None);
    assert_eq!([&second, &third].map(|row| row.unchanged_since.as_deref()), [Some("2026-11-01T12:00:00Z"); 2]);
    assert_eq!(after(at(4, "0x02"), &third).unchanged_since, None, "another resolver");
    let mut broken = at(4, "0x01");
    broken.state = TrustState::Untrusted;
    assert_eq!(after(broken, &third).unchanged_since, None, "another state");
    assert_eq!(outage_after(&third).unchanged_since, first.checked_at, "nothing else was seen");
}

/// The layers appear in each format for people, and are compared if both audits checked them.
#[test]
fn schema_layers_are_reported_and_compared() {
    let schema = |verb: &str, reasons: Vec<Reason>| PublishedSchemaRow {
        layer: "protocol-commons/1.0.0".to_owned(),
        verb: verb.to_owned(),
        side: SchemaRole::Receipt,
        path: format!("schemas/{HOSTILE}"),
        state: if reasons.is_empty() { TrustState::Trusted } else { TrustState::Untrusted },
        reasons,
    };
    let rows = [AuditRow::from_verdict(1, &trusted())];
    let with = |schemas: Option<Vec<PublishedSchemaRow>>| {
        let mut report = report(&rows, AuditEnding::Complete);
        (report.scope.schema_layers, report.schema_layers) = (schemas.is_some(), schemas);
        report
    };
    let broken = || schema("fetch", vec![Reason::new(ReasonCode::PublishedVersionMutated)]);
    let now = with(Some(vec![schema("parse", Vec::new()), broken()]));
    let expected = "Published schemas of the layers: 2. Matching their manifests: 1, different: 1, unknown: 0.";
    let page = written_as(&now, AuditReportFormat::Html, &rows);
    assert!(page.contains("<a href=\"#layers\">") && page.contains(expected), "{page}");
    let section = page.split_once("<section id=\"layers\">").expect("a section").1;
    let section = section.split_once("</section>").expect("its end").0;
    assert!(section.contains("<code>published-version-mutated</code>") && !section.contains("<script>"), "{section}");
    assert!(section.contains("1.0.0 fetch receipt") && !section.contains("1.0.0 parse receipt"), "{section}");
    let text = written_as(&now, AuditReportFormat::Markdown, &rows);
    let row = "| `protocol-commons/1.0.0 fetch receipt` | differs | published-version-mutated |";
    assert!(text.contains(expected) && text.contains(row), "{text}");
    assert!(!written(AuditReportFormat::Html, &rows, AuditEnding::Complete).contains("id=\"layers\""));

    let past = |report: &AuditReport| {
        let text = written_as(report, AuditReportFormat::Json, &rows);
        ComparableReport::read(std::io::Cursor::new(text)).expect("a report")
    };
    let changes = |before: &AuditReport, after: &AuditReport| {
        AuditDifference::between(&past(before), &past(after)).expect("one world").changes
    };
    let good = with(Some(vec![schema("parse", Vec::new()), schema("fetch", Vec::new())]));
    let change = AuditChange {
        name: "protocol-commons/1.0.0 fetch receipt".to_owned(),
        kind: AuditChangeKind::Schema,
        before: Some("agrees".to_owned()),
        after: Some("published-version-mutated".to_owned()),
    };
    assert_eq!(changes(&good, &now), [change]);
    assert_eq!(changes(&now, &now), []);
    assert_eq!(changes(&with(None), &now), [], "the one before did not look");
}
