//! The formats for people: the HTML page and Markdown.

use super::*;

/// The part of `text` between two others.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    text.split_once(start).and_then(|(_, rest)| rest.split_once(end)).map_or("", |(inside, _)| inside)
}

#[test]
fn the_page_runs_its_own_script_alone() {
    use base64::Engine as _;
    let text = written(AuditReportFormat::Html, &[hostile()], AuditEnding::Complete);
    let policy = between(&text, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe-inline"), "{policy}");
    for (kind, start, end) in [("script", "<script>", "</script>"), ("style", "<style>", "</style>")] {
        let digest = Digest::compute(between(&text, start, end).as_bytes());
        let hash = base64::engine::general_purpose::STANDARD.encode(digest.as_bytes());
        assert!(policy.contains(&format!("{kind}-src 'sha256-{hash}'")), "{kind}: {policy}");
    }
}

#[test]
fn every_link_has_a_target_and_every_anchor_is_unique() {
    let mut undecided = trusted();
    (undecided.state, undecided.reasons) = (TrustState::Indeterminate, vec![Reason::new(ReasonCode::CidUnproven)]);
    undecided.name.normalized = Some("b.eth".to_owned());
    let rows = [
        hostile(),
        AuditRow::from_verdict(2, &changed_host()),
        misrouted(4),
        misrouted(5),
        AuditRow::from_verdict(6, &undecided),
    ];
    let text = written(AuditReportFormat::Html, &rows, AuditEnding::Complete);
    let ids: Vec<&str> = text.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let known: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(known.len(), ids.len(), "{ids:?}");
    for target in text.split(" href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(known.contains(target), "{target}");
    }
    for anchor in ["name-a.eth", "line-3", "code-cid-mismatch", "act-publisher", "findings-4"] {
        assert!(known.contains(anchor), "{anchor}: {ids:?}");
    }
    assert!(!known.contains("findings-5"), "n5.eth shares the findings of n4.eth");
}

#[test]
fn each_actor_gets_their_names_and_the_line_to_run() {
    use clresolve_core::reason::FixerRole;
    use duty::{is_actor_needed, repair_tasks};
    let rows = [AuditRow::from_verdict(1, &wrong_checksum()), AuditRow::from_verdict(2, &changed_host()), misrouted(3)];
    let whole = report(&rows, AuditEnding::Complete);
    let duties_of = |actor, row: &AuditRow| -> Vec<(String, Option<String>)> {
        repair_tasks(actor, &whole, row).into_iter().map(|duty| (duty.what, duty.line)).collect()
    };
    let check = Some("clresolve verify --profile agent-cards/1.0.0 --depth schemas a.eth".to_owned());
    let record = Some(format!("cl.checksum.agentcard={}", digest("card")));
    assert_eq!(
        duties_of(FixerRole::Publisher, &rows[0]),
        [("Set this text record:".to_owned(), record), ("Then check:".to_owned(), check.clone())]
    );
    assert_eq!(
        duties_of(FixerRole::Publisher, &rows[1]),
        [("Restore the released bytes at the card's URL.".to_owned(), None), ("Then check:".to_owned(), check)]
    );
    assert_eq!(duties_of(FixerRole::Publisher, &rows[2])[0].0, "Correct what the findings name, then check:");
    let mut unregistered = AuditRow::from_verdict(4, &failing([Reason::new(ReasonCode::NameUnregistered)]));
    assert_eq!(duties_of(FixerRole::Asker, &unregistered)[0].0, "Take line 4 off the list, or correct its spelling.");
    let mut pending = trusted();
    (pending.state, pending.reasons) = (TrustState::Indeterminate, vec![Reason::new(ReasonCode::RecordPending)]);
    let pending = AuditRow::from_verdict(6, &pending);
    assert!(duties_of(FixerRole::Nobody, &pending)[0].0.starts_with("Wait until the newer block is final"));
    assert!(
        duty::ACTORS.iter().all(|actor| !is_actor_needed(*actor, &pending))
            && is_actor_needed(FixerRole::Nobody, &pending)
    );
    let page =
        written_as(&report(std::slice::from_ref(&pending), AuditEnding::Complete), AuditReportFormat::Html, &[pending]);
    assert!(
        page.contains("nobody. Waiting alone resolves the findings of 1 name.") && page.contains("id=\"act-nobody\""),
        "{page}"
    );
    assert!(page.contains("Nobody has to act") && !page.contains("id=\"act-asker\""), "{page}");
    let mut unproven = trusted();
    (unproven.state, unproven.reasons) = (TrustState::Indeterminate, vec![Reason::new(ReasonCode::CidUnproven)]);
    let unproven = AuditRow::from_verdict(7, &unproven);
    assert!(
        duties_of(FixerRole::Publisher, &unproven)[0].0.starts_with("Pin the content"),
        "{:?}",
        duties_of(FixerRole::Publisher, &unproven)
    );
    assert_eq!(cause::DefectCategory::for_actor(FixerRole::Publisher, &unproven), Some(cause::DefectCategory::Ipfs));
    assert!(is_actor_needed(FixerRole::Asker, &unregistered) && !is_actor_needed(FixerRole::Publisher, &unregistered));
    let mut run = |name: &str, flags: &[&str]| {
        unregistered.normalized = Some(name.to_owned());
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let asked = AuditReport { flags, ..report(&[], AuditEnding::Complete) };
        repair_tasks(FixerRole::Operator, &asked, &unregistered).into_iter().find_map(|duty| duty.line)
    };
    let rules = "--profile agent-cards/1.0.0 --depth schemas";
    for (name, ends) in [("größe.eth", "'größe.eth'"), ("$HOME.eth", "'$HOME.eth'"), ("-x.eth", "-- -x.eth")] {
        assert_eq!(run(name, &[]), Some(format!("clresolve trace {rules} {ends}")));
    }
    let flags = ["--config", "it's here; rm", "--chain-id", "31337"];
    let quoted = r#"--config 'it'"'"'s here; rm' --chain-id 31337"#;
    assert_eq!(run("a.eth", &flags), Some(format!("clresolve trace {quoted} {rules} a.eth")));
    assert_eq!(run("a\u{200d}b.eth", &[]), None, "what is escaped where it is shown is no command");
    let trusted = AuditRow::from_verdict(5, &trusted());
    assert!(duty::ACTORS.iter().all(|actor| !is_actor_needed(*actor, &trusted)));
}

#[test]
fn both_depths_are_told_apart() {
    use overview::{identity_check_status, schema_check_status};
    let both = |verdict: &Verdict| {
        let row = AuditRow::from_verdict(1, verdict);
        (identity_check_status(&row), schema_check_status(&row))
    };
    assert_eq!(both(&trusted()), (StepStatus::Pass, StepStatus::Pass));
    assert_eq!(
        both(&failing([Reason::new(ReasonCode::PublishedVersionMutated)])),
        (StepStatus::Pass, StepStatus::Fail)
    );
    assert_eq!(both(&wrong_checksum()), (StepStatus::Fail, StepStatus::Pass));
    let mut shallow = trusted();
    shallow
        .steps
        .iter_mut()
        .filter(|step| step.step == ResolutionStep::Schemas)
        .for_each(|step| step.status = StepStatus::Skip);
    assert_eq!(both(&shallow), (StepStatus::Pass, StepStatus::Skip));
    let mut cut = AuditRow::from_verdict(1, &failing([Reason::new(ReasonCode::PublishedVersionMutated)]));
    cut.more_reasons = 1;
    assert_eq!(identity_check_status(&cut), StepStatus::Unknown, "what was cut off may be of this depth");
}

#[test]
fn both_depths_stand_in_table_and_article() {
    let mut mutated = AuditRow::from_verdict(2, &failing([Reason::new(ReasonCode::PublishedVersionMutated)]));
    mutated.normalized = Some("b.eth".to_owned());
    let page = written(
        AuditReportFormat::Html,
        &[AuditRow::from_verdict(1, &wrong_checksum()), mutated],
        AuditEnding::Complete,
    );
    let marks = |name: &str| {
        let row = between(&page, &format!("<tr id=\"name-{name}\""), "</tr>");
        ["identity", "schemas"].map(|depth| {
            let cell = between(row, &format!("<td class=\"mark\" data-label=\"{depth}\">"), "</td>");
            between(cell, "aria-label=\"", "\"")
        })
    };
    assert_eq!(marks("a.eth"), ["differ", "agree"]);
    assert_eq!(marks("b.eth"), ["agree", "differ"]);
    let depths = |line: u64| {
        let article = between(&page, &format!("<article id=\"findings-{line}\""), "</article>");
        between(article, "<p class=\"depths\">", "</p>")
    };
    let (hold, fail) = ("<span class=\"agree\">✓ pass</span>", "<span class=\"differ\">✗ fail</span>");
    assert_eq!(depths(1), format!("identity checks {fail} · schema checks {hold}"));
    assert_eq!(depths(2), format!("identity checks {hold} · schema checks {fail}"));
}

/// Warnings follow failures, under the actor who can resolve them.
#[test]
fn warnings_stand_beside_failures_with_who_ends_them() {
    let mut broken = misrouted(1);
    broken.reasons.push(Reason::new(ReasonCode::StatusDeprecated));
    let page =
        written(AuditReportFormat::Html, &[broken, AuditRow::from_verdict(2, &trusted())], AuditEnding::Complete);
    let under = |actor: &str| between(&page, &format!("<section id=\"act-{actor}\">"), "</section>");
    let warned = |actor: &str| between(under(actor), "<h4>Warnings</h4>", "</ul>");
    let publisher = warned("publisher");
    assert!(publisher.contains("href=\"#code-status-deprecated\"") && !publisher.contains("single-rpc"), "{publisher}");
    assert!(publisher.contains(" (1 name): <code>n1.eth</code></li>"), "{publisher}");
    let (failures, _) = under("publisher").split_once("<h4>Warnings</h4>").expect("warnings");
    assert!(failures.contains("<article id=\"findings-1\""), "{failures}");
    let operator = warned("operator");
    assert!(
        operator.contains("href=\"#code-single-rpc\"") && operator.contains("<code>a.eth</code></li>"),
        "{operator}"
    );
    assert!(!under("operator").contains("<article"), "nothing fails there: {}", under("operator"));
}

#[test]
fn expiries_are_counted_by_month_and_the_soonest_listed() {
    let expiring = |line: u64, expiry: &str| {
        let mut row = read_as(&json!({"expiry": expiry}));
        (row.line, row.normalized) = (line, Some(format!("n{line}.eth")));
        row.checked_at = Some("2026-11-20T10:10:00Z".to_owned());
        row
    };
    let mut rows = vec![
        expiring(1, "2026-11-20T10:10:00Z"),
        expiring(2, "2026-11-30T00:00:00Z"),
        expiring(3, "2027-10-31T23:59:59Z"),
        expiring(4, "2027-11-01T00:00:00Z"),
        expiring(5, "not readable"),
    ];
    rows.extend((6..60).map(|line| expiring(line, "2027-01-15T00:00:00Z")));
    let whole = report(&rows, AuditEnding::Complete);
    let overview = overview::AuditOverview::from_rows(&whole, &Listed(&rows)).expect("rows in memory");
    let expiries = overview.expiries.expect("the report has a date");
    assert_eq!((expiries.expired, expiries.later, expiries.known_expiries()), (1, 1, 58));
    assert_eq!((expiries.months[0], expiries.months[2], expiries.months[11]), (1, 54, 1));
    let soonest: Vec<&str> = expiries.soonest.iter().map(|(_, _, name, _)| name.as_str()).collect();
    assert_eq!((soonest.len(), &soonest[..3]), (20, &["n1.eth", "n2.eth", "n6.eth"][..]));
    let page = written(AuditReportFormat::Html, &rows, AuditEnding::Complete);
    assert!(page.contains("past: 1, Nov 2026: 1, Jan 2027: 54, Oct 2027: 1, later: 1</desc>"), "{page}");
    assert!(page.contains("<td data-label=\"in\">has expired</td>") && page.contains(">9 days</td>"), "{page}");
    let over = "<p class=\"soft\">36 more names that have expired, or will within 90 days, are omitted.";
    assert!(page.contains(over), "{page}");
    rows[0].known.on_chain.as_mut().expect("it was read").holder = Some("0xaa".to_owned());
    let table = written(AuditReportFormat::Csv, &rows, AuditEnding::Complete);
    assert!(table.lines().next().expect("a head").ends_with(",owner,expiry,carried,generated_at,waivers"), "{table}");
    assert!(
        table.lines().nth(1).expect("a row").ends_with(",\"0xaa\",\"2026-11-20T10:10:00Z\",\"\",\"\",\"\""),
        "{table}"
    );
}

#[test]
fn markdown_fits_into_an_issue_and_says_what_it_lacks() {
    let rows: Vec<AuditRow> = (1..=2_010)
        .map(|line| {
            let mut row = misrouted(line);
            row.reasons = (0..3)
                .map(|_| {
                    Reason::new(ReasonCode::VerbUnknown).at_place(HOSTILE.repeat(9)).with_fix("\u{202e}".repeat(400))
                })
                .collect();
            row.reasons[0] = row.reasons[0].clone().at_place(line.to_string());
            row.txt = vec![TextRecordFix { key: "cl.entry".to_owned(), value: "x".repeat(300) }];
            row
        })
        .collect();
    let text = written(AuditReportFormat::Markdown, &rows, AuditEnding::Interrupted);
    assert!(text.len() <= markdown::MAX_ISSUE_BYTES, "{}", text.len());
    assert_eq!(
        text.matches(" more are omitted here, such as `n").count(),
        4,
        "names, findings, records and drafts: {text}"
    );
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    let page = written(AuditReportFormat::Html, &rows, AuditEnding::Interrupted);
    assert!(page.contains("10 more names are omitted. The JSON form has all."));
    assert_eq!(page.matches("<tr id=").count() - page.matches("<tr id=\"code-").count(), 2_000);
}

/// One publisher's text leaves room for the report's text about others.
#[test]
fn findings_that_do_not_fit_are_named_and_leave_out_no_others() {
    let mut loud = misrouted(1);
    loud.reasons = (0..64)
        .map(|at| Reason::new(ReasonCode::VerbUnknown).at_place(format!("/{at}")).with_fix("\u{202e}".repeat(400)))
        .collect();
    let rows = [loud, misrouted(2), misrouted(3)];
    let text = written(AuditReportFormat::Markdown, &rows, AuditEnding::Complete);
    assert!(!text.contains("### `n1.eth`") && text.contains("### `n2.eth` and 1 more: untrusted"), "{text}");
    assert!(text.contains("1 more are omitted here, such as `n1.eth`. "), "{text}");
}

#[test]
fn earlier_reports_are_counted_and_drawn() {
    let rows = [AuditRow::from_verdict(1, &trusted()), misrouted(2), hostile()];
    let past = ComparableReport::from_rows(&report(&rows, AuditEnding::Complete).scope, true, &Listed(&rows))
        .expect("rows in memory");
    let at = |day: &str, counts: ReportStateCounts| ReportStateCounts {
        checked: Some(format!("{day}T10:00:00Z").parse().expect("a time")),
        ..counts
    };
    let counts = ReportStateCounts::from_report(&past);
    assert_eq!(counts.state_counts(), [1, 2, 0]);
    let mut whole = report(&rows, AuditEnding::Complete);
    whole.before = Some(at("2026-10-01", ReportStateCounts { untrusted: 1, indeterminate: 3, ..counts }));
    whole.earlier = vec![
        at("2026-09-01", counts),
        at("2026-10-01", ReportStateCounts { untrusted: 1, indeterminate: 3, ..counts }),
    ];
    let written = |format| {
        let mut out = Vec::new();
        whole.write(format, &Listed(&rows), &mut out).expect("a vector takes all");
        String::from_utf8(out).expect("a report is UTF-8")
    };
    let page = written(AuditReportFormat::Html);
    assert!(page.contains("2026-09-01: 1 trusted, 2 untrusted, 0 indeterminate; 2026-10-01: 1 trusted, 1 untrusted, 3 indeterminate; 2026-11-20: "), "{page}");
    for step in ["trusted <span class=\"step\">as before</span>", "+1 since then", "−3 since then"] {
        assert!(page.contains(step), "{step}: {page}");
    }
    assert!(
        written(AuditReportFormat::Markdown).contains("| untrusted | 2 | 1 |\n"),
        "{}",
        written(AuditReportFormat::Markdown)
    );
    assert_eq!(page, written(AuditReportFormat::Html), "the same evidence, the same bytes");
}

#[test]
fn a_report_that_lacks_names_never_reads_as_if_all_were_trusted() {
    let rows = [AuditRow::from_verdict(1, &trusted())];
    for form in [AuditReportFormat::Html, AuditReportFormat::Markdown] {
        assert!(written(form, &rows, AuditEnding::Complete).contains("1 of 1 name is trusted"));
        let cut = written(form, &rows, AuditEnding::Interrupted);
        assert!(cut.contains("Incomplete: 1 of 1 name is trusted so far"), "{cut}");
        assert!(!cut.contains("Nothing is wrong") && !cut.contains("Nobody has to act."), "{cut}");
    }
}

#[test]
fn title_names_registry_rules_block_and_day_without_a_list() {
    let rows = [AuditRow::from_verdict(1, &trusted()), misrouted(2)];
    let mut whole = report(&rows, AuditEnding::Complete);
    whole.list.file = None;
    whole.scope.registry = Some(AuditedRegistryManifest {
        manifest: "https://registry.example/manifest.json".to_owned(),
        digest: digest("manifest"),
        proven: false,
        entries: 2,
    });
    let page = written_as(&whole, AuditReportFormat::Html, &rows);
    let title = "Audit of the registry https://registry.example/manifest.json, by the rules agent-cards/1.0.0, block 7, \
                 2026-11-20: 1 of 2 names is not trusted. Publishers must act on 1 name, because the card's x402 entry \
                 breaks the rules";
    assert_eq!(between(&page, "<title>", "</title>"), title);
    let text = written_as(&whole, AuditReportFormat::Markdown, &rows);
    let title = "# Audit of the registry `https://registry.example/manifest.json`, by the rules `agent-cards/1.0.0`, \
                 block 7, 2026-11-20\n";
    assert!(text.starts_with(title), "{text}");
    let headline = "**1 of 2 names is not trusted. Publishers must act on 1 name, because the card's x402 entry breaks the \
                    rules.**";
    assert!(text.contains(headline), "{text}");
}

/// A name that fails and whose gateways did not respond, so that publisher and operator must act.
fn failing_and_unread(line: u64) -> AuditRow {
    let mut row = misrouted(line);
    row.reasons.push(Reason::new(ReasonCode::RpcDisagree));
    row
}

#[test]
fn causes_add_up_and_names_of_several_actors_are_counted() {
    let codes = [
        ReasonCode::TxtMissing,
        ReasonCode::CardNotJson,
        ReasonCode::SourceOversize,
        ReasonCode::ChecksumMismatch,
        ReasonCode::VerbUnknown,
        ReasonCode::SchemaUriNotCanonical,
    ];
    let mut rows: Vec<AuditRow> =
        (1..).zip(codes).map(|(line, code)| AuditRow::from_verdict(line, &failing([Reason::new(code)]))).collect();
    rows.push(failing_and_unread(7));
    let whole = report(&rows, AuditEnding::Complete);
    let overview = overview::AuditOverview::from_rows(&whole, &Listed(&rows)).expect("rows in memory");
    for (actor, due) in duty::ACTORS.into_iter().zip(overview.due) {
        assert_eq!(overview.causes_of(actor).iter().map(|(_, names)| names).sum::<u64>(), due, "{actor:?}");
    }
    assert_eq!((overview.due, overview.shared), ([7, 1, 0, 0], 1));
    let page = written_as(&whole, AuditReportFormat::Html, &rows);
    assert!(page.contains("1 name needs several of them and is counted for each."), "{page}");
    let card = between(&page, "<h3>Publishers", "</ul>");
    assert_eq!(card.matches("<li>").count(), 5, "{card}");
    assert!(card.contains("<li><a href=\"#cause-publisher-card\">Other causes</a>"), "the first of them: {card}");
    assert!(page.contains("<h4 id=\"cause-publisher-card\">"), "{page}");
    let text = written_as(&whole, AuditReportFormat::Markdown, &rows);
    assert!(text.contains("\nNames that need several of them are counted for each: 1.\n"), "{text}");
}

fn held(line: u64, holder: Value) -> AuditRow {
    let mut verdict = failing([Reason::new(ReasonCode::VerbUnknown)]);
    see(&mut verdict, ResolutionStep::Records, json!({"answer": "records", "holder": holder}));
    let name = format!("n{line}.eth");
    verdict.name = RequestedName { input: name.clone(), normalized: Some(name), node: None };
    AuditRow::from_verdict(line, &verdict)
}

#[test]
fn names_that_publishers_must_act_on_are_grouped_by_owner() {
    let mut rows = vec![held(1, json!("0xaa")), held(2, json!("0xbb")), held(3, json!("0xbb"))];
    let whole = report(&rows, AuditEnding::Complete);
    let page = written_as(&whole, AuditReportFormat::Html, &rows);
    assert!(
        page.contains(
            "<h1>3 of 3 names are not trusted. 2 owners must act on 3 names, because the card \
                    contradicts the manifest.</h1>"
        ),
        "{page}"
    );
    assert_eq!(whose(&page), [("Owned by <code>0xbb</code>", "2"), ("Owned by <code>0xaa</code>", "1")]);
    let owners = between(&page, "id=\"owners-table\"", "</table>");
    let of_most = owners.find("<code>0xbb</code>").expect("an owner");
    assert!(of_most < owners.find("<code>0xaa</code>").expect("another"), "{owners}");
    assert!(owners.contains("<a href=\"#name-n2.eth\"><code>n2.eth</code></a>, <a href=\"#name-n3.eth\">"), "{owners}");
    let text = written_as(&whole, AuditReportFormat::Markdown, &rows);
    let why = "The card contradicts the manifest";
    assert!(text.contains(&format!("|---|--:|---|\n| `0xbb` | 2 | 2: {why} |\n| `0xaa` | 1 | 1: {why} |\n")), "{text}");
    assert!(owners.contains(&format!("2: <a href=\"#cause-publisher-manifest\">{why}</a>")), "{owners}");
    assert!(page.contains("<h4 id=\"cause-publisher-manifest\">"), "{page}");
    let mixed = report(&[misrouted(1), held(2, json!("0xaa")), held(3, Value::Null)], AuditEnding::Complete);
    let counted =
        |rows: &[AuditRow]| overview::AuditOverview::from_rows(&mixed, &Listed(rows)).expect("rows in memory").owners;
    let mut twice = held(4, json!("0xaa"));
    twice.reasons = vec![Reason::new(ReasonCode::TxtMissing), Reason::new(ReasonCode::VerbUnknown)];
    let owners = counted(&[held(1, json!("0xaa")), twice, held(3, json!("0xaa"))]);
    let causes = owners.sorted_by_name_count()[0].1.causes();
    assert_eq!(
        causes,
        [(cause::DefectCategory::Manifest, 2), (cause::DefectCategory::Records, 1)],
        "each name has one"
    );

    rows.push(held(4, Value::Null));
    rows.push(misrouted(5));
    let whole = report(&rows, AuditEnding::Complete);
    let page = written_as(&whole, AuditReportFormat::Html, &rows);
    assert!(
        page.contains("Publishers must act on 5 names, on 4 because the card contradicts the manifest"),
        "whose names two of them are is not known: {page}"
    );
    assert!(page.contains(">nobody owns it</td>") && page.contains(">the owner could not be read</td>"), "{page}");
    assert_eq!(whose(&page), [("Owned by <code>0xbb</code>", "2"), ("Other owners, or none known", "3")]);
}

/// The owners of the names on which publishers must act, as shown in the card at the top.
fn whose(page: &str) -> Vec<(&str, &str)> {
    let list = between(page, "<ul class=\"lengths whose\">", "</ul>");
    let row = |row| (between(row, "<a href=\"#owners\">", "</a>"), between(row, "<b>", "</b>"));
    list.split("<li>").skip(1).map(row).collect()
}

#[test]
fn the_card_of_the_publishers_says_who_owns_how_many_names() {
    let of = |rows: &[AuditRow]| written(AuditReportFormat::Html, rows, AuditEnding::Complete);
    let (aa, bb) = (json!("0xaa"), json!("0xbb"));
    let mut rows = vec![held(1, aa.clone()), held(2, aa.clone()), held(3, aa)];
    let of_most = ("Owned by <code>0xaa</code>", "3");
    assert_eq!(whose(&of(&rows)), [of_most]);
    rows.push(misrouted(4));
    assert_eq!(whose(&of(&rows)), [of_most, ("The owner could not be read", "1")]);
    rows[3] = held(4, Value::Null);
    assert_eq!(whose(&of(&rows)), [of_most, ("Nobody owns it", "1")]);
    rows[3] = held(4, bb);
    rows.push(held(5, json!("0xcc")));
    assert_eq!(whose(&of(&rows)), [of_most, ("Owned by 2 others", "2")]);
    assert!(whose(&of(&[AuditRow::from_verdict(1, &trusted())])).is_empty());
}

#[test]
fn owners_and_their_names_are_told_apart_up_to_a_bound() {
    let of_others = (1..=300).map(|line| held(line, json!(format!("0x{line:040x}"))));
    let of_one = (301..=320).map(|line| held(line, json!(format!("0x{:040x}", 1))));
    let rows: Vec<AuditRow> = of_others.chain(of_one).collect();
    let page = written(AuditReportFormat::Html, &rows, AuditEnding::Complete);
    let of_most = format!("Owned by <code>0x{:040x}</code>", 1);
    assert_eq!(whose(&page), [(of_most.as_str(), "21"), ("Other owners, or none known", "299")]);
    let owners = between(&page, "id=\"owners-table\"", "</section>");
    assert_eq!(owners.matches("class=\"account\"").count(), 256, "{owners}");
    assert!(owners.contains("44 more names of other owners are omitted."), "{owners}");
    let first = between(owners, "<tbody>", "</tr>");
    assert!(first.matches("<a href=\"#name-").count() == 12 && first.contains("and 9 more"), "{first}");
    assert!(
        page.contains("Publishers must act on 320 names, because the card contradicts the manifest"),
        "whose names 44 of them are is not counted"
    );
}

#[test]
fn the_bars_of_all_causes_have_one_scale() {
    let operator = AuditRow::from_verdict(9, &failing([Reason::new(ReasonCode::RpcDisagree)]));
    let page = written(AuditReportFormat::Html, &[misrouted(1), misrouted(2), operator], AuditEnding::Complete);
    let bars = between(&page, "<ul class=\"actors\">", "</section>").split("<rect class=\"bad\" width=\"").skip(1);
    let widths: Vec<&str> = bars.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(widths, ["100.00%", "50.00%"]);
}

#[test]
fn what_broke_leads_to_its_row_beside_the_reason_and_who_acts() {
    let [before, after] = [row_of(TrustState::Trusted, "card", "0xaa"), row_of(TrustState::Untrusted, "card", "0xaa")];
    let past = |row: &AuditRow| {
        let rows = std::slice::from_ref(row);
        ComparableReport::from_rows(&report(rows, AuditEnding::Complete).scope, true, &Listed(rows))
            .expect("rows in memory")
    };
    let rows = [after];
    let mut whole = report(&rows, AuditEnding::Complete);
    whole.since = Some(AuditDifference::between(&past(&before), &past(&rows[0])).expect("one world"));
    let page = written_as(&whole, AuditReportFormat::Html, &rows);
    let change = between(&page, "id=\"states-changed\"", "</table>");
    for part in [
        "<a href=\"#name-a.eth\"><code>a.eth</code></a>",
        "newly-broken",
        "href=\"#code-verb-unknown\"",
        ">publisher</td>",
    ] {
        assert!(change.contains(part), "{part}: {change}");
    }
}

#[test]
fn names_beyond_the_table_are_no_links() {
    let mut rows: Vec<AuditRow> = (1..=2_001).map(misrouted).collect();
    for row in &mut rows {
        row.txt = vec![TextRecordFix { key: "cl.entry".to_owned(), value: "x".to_owned() }];
    }
    // Trusted names are last in the table, whatever their line.
    rows[0].state = TrustState::Trusted;
    let page = written(AuditReportFormat::Html, &rows, AuditEnding::Complete);
    let records = between(&page, "id=\"records-table\"", "</table>");
    assert!(records.contains("<td class=\"subject\" data-label=\"name\"><code>n1.eth</code></td>"), "{records}");
    assert!(
        records.contains("<a href=\"#name-n2.eth\"><code>n2.eth</code></a>") && !page.contains("id=\"name-n1.eth\"")
    );
}

#[test]
fn the_age_of_what_a_name_has_stands_beside_its_state() {
    let mut row = misrouted(1);
    let row_of = |page: &str| between(page, "<tr id=\"name-n1.eth\"", "</tr>").to_owned();
    assert!(
        !row_of(&written(AuditReportFormat::Html, std::slice::from_ref(&row), AuditEnding::Complete))
            .contains("unchanged")
    );
    row.unchanged_since = Some("2026-11-01T12:00:00Z".to_owned());
    let aged = row_of(&written(AuditReportFormat::Html, &[row], AuditEnding::Complete));
    assert!(aged.contains("<small class=\"soft\">unchanged since 2026-11-01</small></td>"), "{aged}");
}

#[test]
fn what_was_audited_is_text_in_the_title_too() {
    let rows = [misrouted(1)];
    let mut whole = report(&rows, AuditEnding::Complete);
    whole.list.file = Some("</title><script>\u{202e}.txt".to_owned());
    let page = written_as(&whole, AuditReportFormat::Html, &rows);
    let title = between(&page, "<title>", "<style>");
    assert!(title.starts_with("Audit of &lt;/title&gt;&lt;script&gt;") && !page.contains('\u{202e}'), "{title}");
    assert_eq!(page.matches("<script>").count(), 1, "{page}");
}
