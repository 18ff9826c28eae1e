//! Reports of shards, and the one that they are merged to.

use super::*;
use crate::report::merge::{MergeError, ReportReader, Shards};

/// The report of one shard of the rows.
fn shard_of(rows: &[Row], shard: Shard) -> String {
    let rows: Vec<Row> = rows.iter().filter(|row| shard.has(&row.key())).cloned().collect();
    json_of(&Report { shard: Some(shard), ..report(&rows, Ending::Complete) }, &rows)
}

/// The reports of a list's halves.
fn halves_of(rows: &[Row]) -> [String; 2] {
    ["1/2", "2/2"].map(|shard| shard_of(rows, shard.parse().unwrap()))
}

fn json_of(report: &Report, rows: &[Row]) -> String {
    let mut out = Vec::new();
    report.write(Format::Json, &Listed(rows), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn merged(reports: &[String]) -> Result<String, MergeError> {
    merged_to(Format::Json, reports)
}

fn merged_to(format: Format, reports: &[String]) -> Result<String, MergeError> {
    let opened: Result<Vec<_>, _> = reports.iter().map(|text| ReportReader::open(io::Cursor::new(text))).collect();
    let mut shards = Shards::of(opened?).map_err(|(_, error)| error)?;
    let (scope, ending) = (shards.scope().expect("there are reports"), shards.ending());
    let mut rows = Vec::new();
    while let Some(row) = shards.next_row().map_err(|(_, error)| error)? {
        rows.push(row);
    }
    let (list, flags) = (shards.list(), shards.flags());
    let mut out = Vec::new();
    Report { scope, list, flags, ..report(&rows, ending) }.write(format, &Listed(&rows), &mut out).unwrap();
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn the_reports_of_all_shards_are_the_report_of_one_run() {
    let rows: Vec<Row> = (1..=50).map(misrouted).chain([Row::unreadable(51, HOSTILE, None, "not UTF-8")]).collect();
    let whole = json_of(&report(&rows, Ending::Complete), &rows);
    let shards: Vec<Shard> = (1..=4).map(|index| format!("{index}/4").parse().unwrap()).collect();
    let mut reports: Vec<String> = shards.iter().map(|shard| shard_of(&rows, *shard)).collect();
    assert!(reports.iter().all(|report| fits_schema(&serde_json::from_str(report).expect("JSON"))));
    reports.reverse();
    assert_eq!(merged(&reports).unwrap(), whole);

    let error = |reports: &[String]| merged(reports).expect_err("it is refused");
    let missing = error(&reports[..3]);
    assert!(matches!(&missing, MergeError::Missing(shards) if *shards == [1]));
    assert_eq!(missing.to_string(), "reports of these shards are missing: 1");
    let twice = error(&[&reports[..], &reports[..1]].concat());
    assert!(matches!(twice, MergeError::Twice(shard) if shard == shards[3]), "{twice}");
    assert!(matches!(error(&[whole]), MergeError::Whole));
    let half: Shard = "1/2".parse().unwrap();
    let divided = error(&[reports[0].clone(), shard_of(&rows, half)]);
    assert!(matches!(divided, MergeError::Divided { observed, of: 4 } if observed == half), "{divided}");
    let cut = reports[0][..reports[0].len() / 2].to_owned();
    assert!(matches!(error(&[cut]), MergeError::Report(PastError::Cut)));
    let changed = reports[0].replace("untrusted", "trusted");
    assert!(matches!(error(&[changed]), MergeError::Report(PastError::Changed { .. })));
}

/// In every form: what it shows of the list and of the world comes from the reports too.
#[test]
fn the_merged_report_is_that_of_one_run_in_every_form() {
    let mut rows: Vec<Row> = (1..=50).map(misrouted).collect();
    rows.push(Row::unreadable(51, HOSTILE, Some(Digest::of(b"all of it")), "not UTF-8"));
    rows.push(Row { line: 52, ..rows[50].clone() });
    rows.push(Row::of(53, &changed_host()));
    let halves = halves_of(&rows);
    for format in [Format::Json, Format::Html, Format::Markdown, Format::Csv, Format::Sarif] {
        let mut whole = Vec::new();
        report(&rows, Ending::Complete).write(format, &Listed(&rows), &mut whole).unwrap();
        let whole = String::from_utf8(whole).unwrap();
        assert!(merged_to(format, &halves).unwrap() == whole, "{format:?}");
        assert!(merged_to(format, &[halves[1].clone(), halves[0].clone()]).unwrap() == whole, "{format:?}");
    }
}

#[test]
fn shards_of_different_lists_are_told_apart() {
    let rows: Vec<Row> = (1..=20).map(misrouted).collect();
    let halves = halves_of(&rows);
    assert!(merged(&halves).is_ok());
    let refused = |second: &str, is_it: fn(&MergeError) -> bool| {
        for reports in [[halves[0].clone(), second.to_owned()], [second.to_owned(), halves[0].clone()]] {
            let error = merged(&reports).expect_err("they are of different lists");
            assert!(is_it(&error), "{error}");
        }
    };
    // The same rows, of a list with one name more, which the other half has.
    let list = |report: &str, digest: &str| {
        let known = format!("{{\"file\":\"names.txt\",\"digest\":\"{}\"}}", Digest::of(b"list"));
        assert!(report.contains(&known), "{report}");
        with_new_digest(&report.replace(&known, &format!("{{\"file\":\"names.txt\",\"digest\":{digest}}}")))
    };
    let another = list(&halves[1], &format!("\"{}\"", Digest::of(b"another list")));
    refused(&another, |error| matches!(error, MergeError::Scope("list of names")));
    refused(&list(&halves[1], "null"), |error| matches!(error, MergeError::NoList));
    let other_tool =
        halves[1].replace(&format!("\"version\":\"{}\"", Tool::default().version), "\"version\":\"0.0.1\"");
    refused(
        &with_new_digest(&other_tool),
        |error| matches!(error, MergeError::Tool(tool, _) if tool == "clresolve 0.0.1"),
    );

    // Rows that are not of the shard that the report says that it is.
    let claims: Shard = "2/2".parse().unwrap();
    let foreign = json_of(&Report { shard: Some(claims), ..report(&rows[..1], Ending::Complete) }, &rows);
    refused(&foreign, |error| matches!(error, MergeError::Astray(1..=20)));

    // One name twice in a shard, in two spellings, at lines that follow each other.
    let first: Shard = "1/2".parse().unwrap();
    let twice = rows.iter().find(|row| first.has(&row.key())).unwrap();
    let again = Row { line: 99, input: twice.input.to_uppercase(), ..twice.clone() };
    let of_first = [rows.clone(), vec![again]].concat();
    assert!(matches!(merged(&halves_of(&of_first)), Err(MergeError::Again(99))));
    let at_one_line: Vec<Row> = rows.iter().cloned().map(|row| Row { line: 1, ..row }).collect();
    assert!(matches!(merged(&halves_of(&at_one_line)), Err(MergeError::Order(1))));
}

#[test]
fn what_shards_name_differently_does_not_depend_on_their_order() {
    let rows: Vec<Row> = (1..=20).map(misrouted).collect();
    let halves = halves_of(&rows);
    let of_registry = |half: &str, manifest: &str, proven: bool| {
        let registry = format!(
            "\"registry\":{{\"manifest\":\"{manifest}\",\"digest\":\"{}\",\"proven\":{proven},\"entries\":7}}",
            Digest::of(b"manifest")
        );
        with_new_digest(&half.replace("\"depth\":\"schemas\"", &format!("\"depth\":\"schemas\",{registry}")))
    };
    let by_ipfs = of_registry(&halves[0], "ipfs://bafy/manifest.json", true);
    let by_https = of_registry(&halves[1], "https://registry.example/manifest.json", false);
    let joined = merged(&[by_ipfs.clone(), by_https.clone()]).unwrap();
    assert_eq!(merged(&[by_https, by_ipfs]).unwrap(), joined);
    assert!(
        joined.contains("\"manifest\":\"https://registry.example/manifest.json\"")
            && joined.contains("\"proven\":false")
    );

    let elsewhere = with_new_digest(&halves[1].replace("\"file\":\"names.txt\"", "\"file\":\"copy.txt\""));
    let joined = merged(&[halves[0].clone(), elsewhere]).unwrap();
    assert!(joined.contains("\"list\": {\"file\":null,"), "{joined}");
    let flags = with_new_digest(&halves[1].replace("\"flags\": []", "\"flags\": [\"--sandbox\"]"));
    assert!(merged(&[flags.clone(), halves[0].clone()]).unwrap().contains("\"flags\": []"));
}

#[test]
fn the_report_of_a_shard_is_not_that_of_a_list() {
    let rows: Vec<Row> = (1..=20).map(misrouted).collect();
    let [half, _] = halves_of(&rows);
    let error = Past::read(io::Cursor::new(half)).and_then(Past::whole).expect_err("it is of a shard");
    assert!(matches!(error, PastError::Shard(shard) if shard == "1/2".parse().unwrap()), "{error}");
}

#[test]
fn shards_of_different_blocks_are_shown_as_such() {
    let rows: Vec<Row> = (1..=20).map(misrouted).collect();
    let halves = halves_of(&rows);
    let at = |report: &str, block: &str| {
        with_new_digest(&report.replace("\"block\":\"finalized\"", &format!("\"block\":\"{block}\"")))
    };
    let joined = merged(&[at(&halves[0], "1000, 1001"), at(&halves[1], "999, 1000")]).unwrap();
    assert!(joined.contains("\"block\":\"999, 1000, 1001\""), "{joined}");
    let other_depth = with_new_digest(&halves[1].replace("\"depth\":\"schemas\"", "\"depth\":\"identity\""));
    let error = merged(&[halves[0].clone(), other_depth]).expect_err("it is refused");
    assert_eq!(error.to_string(), "has another depth than the first report");
    let settings = format!("\"settings\":\"{}\"", digest("settings"));
    for (then, now, what) in [
        ("\"proof\":\"quorum\"", "\"proof\":\"single-rpc\"".to_owned(), "demanded proof"),
        ("\"agree\":2", "\"agree\":3".to_owned(), "demanded proof"),
        (&settings, format!("\"settings\":\"{}\"", digest("others")), "set of rules"),
    ] {
        let other = with_new_digest(&halves[1].replace(then, &now));
        let error = merged(&[halves[0].clone(), other.clone()]).expect_err("it is refused");
        assert_eq!(error.to_string(), format!("has another {what} than the first report"));
        let past = |report: &str| Past::read(io::Cursor::new(report)).expect("a report");
        let difference = Difference::between(&past(&halves[0]), &past(&other)).expect("one world");
        assert!(difference.warnings()[0].contains("different rules"), "{what}");
    }
}

/// Why each reader of reports refuses this one.
fn refusals(report: &str) -> [PastError; 2] {
    let whole = Past::read(io::Cursor::new(report)).map(|_| ());
    let by_rows = ReportReader::open(io::Cursor::new(report)).map(|_| ());
    [whole, by_rows].map(|read| read.expect_err(report))
}

#[test]
fn a_report_ends_with_its_digest_and_nothing_stands_behind_it() {
    let rows = [misrouted(1)];
    let whole = json_of(&report(&rows, Ending::Complete), &rows);
    assert!(Past::read(io::Cursor::new(&whole)).is_ok() && ReportReader::open(io::Cursor::new(&whole)).is_ok());
    let last_lines: usize = whole.lines().rev().take(3).map(|line| line.len() + 1).sum();
    for cut in whole.len() - last_lines..whole.len() {
        let refusals = refusals(&whole[..cut]);
        let is_cut = |why: &PastError| matches!(why, PastError::Cut | PastError::Changed { .. });
        assert!(refusals.iter().all(is_cut), "{cut}: {refusals:?}");
    }
    let inner = whole.strip_suffix("\n}\n").expect("its end");
    let members = "\"resolution\": [], \"reasons\": [], \"since\": null, \"warning\": \"all good\"";
    for behind in [" ", "\n", "}\n", "\0", "garbage", &whole] {
        assert!(
            refusals(&format!("{whole}{behind}")).iter().all(|why| matches!(why, PastError::Continued)),
            "{behind}"
        );
    }
    for changed in [format!("{inner}, {members}}}\n"), format!("{inner}\r\n}}\n")] {
        assert!(refusals(&changed).iter().all(|why| matches!(why, PastError::Changed { .. })), "{changed}");
    }
    let continued = format!("{inner}\n, {members}\n}}\n");
    assert!(refusals(&continued).iter().all(|why| matches!(why, PastError::Continued)), "{continued}");
    for behind in [" }\n", "}", "}\r\n", "}\n ", "\n}\n"] {
        refusals(&format!("{inner}\n{behind}"));
    }
}

#[test]
fn members_that_a_report_does_not_have_or_has_twice_are_refused() {
    let rows = [misrouted(1)];
    let whole = json_of(&report(&rows, Ending::Complete), &rows);
    for (member, why) in [("\"since\": null,\n", "duplicate field `since`"), ("\"all\": 1,\n", "unknown field `all`")] {
        let changed = with_new_digest(&whole.replace("\"since\": null,\n", &format!("{member}\"since\": null,\n")));
        let is_it = |refusal: &PastError| matches!(refusal, PastError::Other(error) if error.to_string().contains(why));
        assert!(refusals(&changed).iter().all(is_it), "{why}: {:?}", refusals(&changed));
    }
    for (member, why) in [
        ("\"line\":1", "duplicate field `line`"),
        ("\"summary\":\"all is well\"", "duplicate field `summary`"),
        ("\"edition\":null,\"edition\":null", "duplicate field `edition`"),
        ("\"all\":1", "unknown field `all` of a row"),
        ("\"\\u001b[2J\":1", "unknown field `\\u{1b}[2J` of a row"),
    ] {
        let changed = with_new_digest(&whole.replace("{\"line\":1,", &format!("{{{member},\"line\":1,")));
        let is_it = |refusal: &PastError| matches!(refusal, PastError::Other(error) if error.to_string().contains(why));
        assert!(refusals(&changed).iter().all(is_it), "{why}: {:?}", refusals(&changed));
    }
    let other = with_new_digest(&whole.replace(SCHEMA, "clresolve.audit/0"));
    let is_it = |refusal: &PastError| matches!(refusal, PastError::Schema(schema) if schema == "clresolve.audit/0");
    assert!(refusals(&other).iter().all(is_it), "{:?}", refusals(&other));
}

/// The schema of the JSON form, which every report fits, names the same.
#[test]
fn the_members_of_rows_are_those_of_the_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/audit.schema.json")).expect("JSON");
    let named = schema["$defs"]["row"]["properties"].as_object().expect("the members");
    let named: std::collections::BTreeSet<&str> = named.keys().map(String::as_str).collect();
    assert_eq!(named, std::collections::BTreeSet::from(row::MEMBERS));
}

/// A report with the digest of its lines, whoever changed them.
fn with_new_digest(report: &str) -> String {
    let (lines, _) = report.split_once("\"digest\": ").expect("a digest");
    format!("{lines}\"digest\": \"{}\"\n}}\n", Digest::of(lines.as_bytes()))
}
