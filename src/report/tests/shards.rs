//! Reports of shards, and the one that they are merged to.

use super::*;
use crate::report::merge::{MergeError, ReportReader, Shards};

/// The report of one shard of the rows.
fn shard_of(rows: &[Row], shard: Shard) -> String {
    let rows: Vec<Row> = rows.iter().filter(|row| shard.has(row.name())).cloned().collect();
    json_of(&Report { shard: Some(shard), ..report(&rows, Ending::Complete) }, &rows)
}

fn json_of(report: &Report, rows: &[Row]) -> String {
    let mut out = Vec::new();
    report.write(Format::Json, &Listed(rows), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn merged(reports: &[String]) -> Result<String, MergeError> {
    let opened: Result<Vec<_>, _> = reports.iter().map(|text| ReportReader::open(io::Cursor::new(text))).collect();
    let mut shards = Shards::of(opened?).map_err(|(_, error)| error)?;
    let (scope, ending) = (shards.scope().expect("there are reports"), shards.ending());
    let mut rows = Vec::new();
    while let Some(row) = shards.next_row().map_err(|(_, error)| error)? {
        rows.push(row);
    }
    Ok(json_of(&Report { scope, ..report(&rows, ending) }, &rows))
}

#[test]
fn the_reports_of_all_shards_are_the_report_of_one_run() {
    let rows: Vec<Row> = (1..=50).map(misrouted).chain([Row::unreadable(51, HOSTILE, "not UTF-8")]).collect();
    let whole = json_of(&report(&rows, Ending::Complete), &rows);
    let shards: Vec<Shard> = (1..=4).map(|index| format!("{index}/4").parse().unwrap()).collect();
    let mut reports: Vec<String> = shards.iter().map(|shard| shard_of(&rows, *shard)).collect();
    assert!(reports.iter().all(|report| fits_schema(&serde_json::from_str(report).expect("JSON"))));
    reports.reverse();
    assert_eq!(merged(&reports).unwrap(), whole);

    let error = |reports: &[String]| merged(reports).expect_err("it is refused").to_string();
    assert_eq!(error(&reports[..3]), "reports of these shards are missing: 1");
    assert_eq!(error(&[&reports[..], &reports[..1]].concat()), "is of shard 4/4, which another report has too");
    assert_eq!(error(&[whole]), "is of a whole list, not of a shard");
    let other = shard_of(&rows, "1/2".parse().unwrap());
    assert_eq!(error(&[reports[0].clone(), other]), "is of shard 1/2, but the first report is one of 4");
    let cut = reports[0][..reports[0].len() / 2].to_owned();
    assert!(error(&[cut]).starts_with("was cut"));
    let changed = reports[0].replace("untrusted", "trusted");
    assert!(error(&[changed]).starts_with("was changed"));
}

#[test]
fn shards_of_different_lists_are_told_apart() {
    let halves: [Shard; 2] = ["1/2", "2/2"].map(|shard| shard.parse().unwrap());
    let (first, second): (Vec<Row>, Vec<Row>) = (1..=20).map(misrouted).partition(|row| halves[0].has(row.name()));
    let moved: Vec<Row> = second.into_iter().map(|row| Row { line: first[0].line, ..row }).take(1).collect();
    let error = merged(&[shard_of(&first, halves[0]), shard_of(&moved, halves[1])]).expect_err("it is refused");
    assert_eq!(error.to_string(), format!("the row of line {} is not in its place: the reports are not of one list", first[0].line));
    let twice = [first[0].clone(), first[0].clone()];
    let error = merged(&[shard_of(&twice, halves[0]), shard_of(&[], halves[1])]).expect_err("it is refused");
    assert!(matches!(error, MergeError::Order(_)));
}

#[test]
fn shards_of_different_blocks_are_shown_as_such() {
    let rows: Vec<Row> = (1..=20).map(misrouted).collect();
    let halves = ["1/2", "2/2"].map(|shard| shard_of(&rows, shard.parse().unwrap()));
    let at = |report: &str, block: &str| sealed_anew(&report.replace("\"block\":\"finalized\"", &format!("\"block\":\"{block}\"")));
    let joined = merged(&[at(&halves[0], "18"), at(&halves[1], "19")]).unwrap();
    assert!(joined.contains("\"block\":\"18, 19\""), "{joined}");
    let other_depth = sealed_anew(&halves[1].replace("\"depth\":\"schemas\"", "\"depth\":\"identity\""));
    let error = merged(&[halves[0].clone(), other_depth]).expect_err("it is refused");
    assert_eq!(error.to_string(), "has another depth than the first report");
}

/// Why each reader of reports refuses this one.
fn refusals(report: &str) -> [String; 2] {
    let whole = Past::read(io::Cursor::new(report)).map(|_| ());
    let by_rows = ReportReader::open(io::Cursor::new(report)).map(|_| ());
    [whole, by_rows].map(|read| read.expect_err(report).to_string())
}

#[test]
fn a_report_ends_with_its_digest_and_nothing_stands_behind_it() {
    let rows = [misrouted(1)];
    let whole = json_of(&report(&rows, Ending::Complete), &rows);
    assert!(Past::read(io::Cursor::new(&whole)).is_ok() && ReportReader::open(io::Cursor::new(&whole)).is_ok());
    let last_lines: usize = whole.lines().rev().take(3).map(|line| line.len() + 1).sum();
    for cut in whole.len() - last_lines..whole.len() {
        let refusals = refusals(&whole[..cut]);
        assert!(refusals.iter().all(|why| why.starts_with("was cut") || why.starts_with("was changed")), "{cut}: {refusals:?}");
    }
    let inner = whole.strip_suffix("\n}\n").expect("its end");
    let members = "\"resolution\": [], \"reasons\": [], \"since\": null, \"warning\": \"all good\"";
    for behind in [" ", "\n", "}\n", "\0", "garbage", &whole] {
        assert!(refusals(&format!("{whole}{behind}")).iter().all(|why| why.contains("behind its digest")), "{behind}");
    }
    for changed in [format!("{inner}, {members}}}\n"), format!("{inner}\n, {members}\n}}\n"), format!("{inner}\r\n}}\n")] {
        assert!(refusals(&changed).iter().all(|why| why.starts_with("was changed")), "{changed}");
    }
    for behind in [" }\n", "}", "}\r\n", "}\n ", "\n}\n"] {
        refusals(&format!("{inner}\n{behind}"));
    }
}

#[test]
fn members_that_a_report_does_not_have_or_has_twice_are_refused() {
    let rows = [misrouted(1)];
    let whole = json_of(&report(&rows, Ending::Complete), &rows);
    for (member, why) in [("\"since\": null,\n", "duplicate field `since`"), ("\"all\": 1,\n", "unknown field `all`")] {
        let changed = sealed_anew(&whole.replace("\"since\": null,\n", &format!("{member}\"since\": null,\n")));
        assert!(refusals(&changed).iter().all(|refusal| refusal.contains(why)), "{why}: {:?}", refusals(&changed));
    }
}

/// A report with the digest of its lines, whoever changed them.
fn sealed_anew(report: &str) -> String {
    let (lines, _) = report.split_once("\"digest\": ").expect("a seal");
    format!("{lines}\"digest\": \"{}\"\n}}\n", Digest::of(lines.as_bytes()))
}
