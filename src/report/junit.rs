//! The report as JUnit's XML, which continuous integration shows as tests: a name is one, and passes where it is trusted.
//!
//! Nothing is timed: the same evidence gives the same bytes.

use std::io::{self, Write};

use super::words::slugs;
use super::{Report, Row, Rows};
use crate::reason::{Effect, MAX_VALUE_BYTES, Reason};
use crate::text::{Foreign, Html};
use crate::verdict::State;

/// Longest text of an attribute or a line, in characters: a reason with all its values fits.
const MAX_TEXT_CHARACTERS: usize = 4 * MAX_VALUE_BYTES;

pub(super) fn write(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    let counts = &report.counts;
    let warning = report.ending.warning();
    let cut = u64::from(warning.is_some());
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\"",
        counts.names + cut,
        counts.untrusted,
        counts.indeterminate + cut,
    );
    let suite = format!("{} {}", report.scope.profile.id, report.scope.depth.as_str());
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"clresolve audit\" {counts}>")?;
    writeln!(out, "<testsuite name=\"{}\" {counts}>", xml(&suite))?;
    writeln!(out, "<properties>")?;
    for (what, value) in report.facts() {
        writeln!(out, "<property name=\"{what}\" value=\"{}\"/>", xml(&value))?;
    }
    writeln!(out, "</properties>")?;
    rows.each(&mut |row| test(&suite, row, out))?;
    if let Some(warning) = warning {
        // A test that fails: a list that was cut short must not look whole.
        writeln!(out, "<testcase classname=\"clresolve\" name=\"the whole list\">")?;
        writeln!(out, "<error type=\"incomplete\" message=\"{}\"/>\n</testcase>", xml(&warning))?;
    }
    writeln!(out, "</testsuite>\n</testsuites>")
}

fn test(suite: &str, row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let head = format!("<testcase classname=\"{}\" name=\"{}\"", xml(suite), xml(row.name()));
    let (element, effects) = match row.state {
        State::Trusted => ("system-out", vec![Effect::Warn]),
        State::Untrusted => ("failure", vec![Effect::Fail, Effect::Unknown, Effect::Warn]),
        State::Indeterminate => ("error", vec![Effect::Unknown, Effect::Warn]),
    };
    let text: String = row.reasons.iter().filter(|reason| effects.contains(&reason.effect)).map(line).collect();
    let text = if row.more_reasons > 0 { format!("{text}and {} more\n", row.more_reasons) } else { text };
    match row.state {
        State::Trusted if text.is_empty() => writeln!(out, "{head}/>"),
        State::Trusted => writeln!(out, "{head}>\n<{element}>{text}</{element}>\n</testcase>"),
        state => {
            let codes = slugs(&row.codes(effects[0]), ", ");
            let kind = format!("type=\"{state}\" message=\"{}\"", xml(&codes));
            writeln!(out, "{head}>\n<{element} {kind}>{text}</{element}>\n</testcase>")
        }
    }
}

/// A reason, as XML on a line.
fn line(reason: &Reason) -> String {
    let mut text = format!("{}: {}", reason.code, reason.message);
    let values =
        [("at", &reason.place), ("expected", &reason.expected), ("observed", &reason.observed), ("fix", &reason.fix)];
    for (label, value) in values {
        if let Some(value) = value {
            text.push_str(&format!(" | {label}: {value}"));
        }
    }
    format!("{}\n", xml(&text))
}

fn xml(text: &str) -> Html<'_> {
    Foreign::new(text).at_most(MAX_TEXT_CHARACTERS).html()
}
