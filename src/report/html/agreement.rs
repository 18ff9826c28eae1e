//! What each endpoint and each gateway said, each asked by itself.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::markup::{code, left_out, name_link, table};
use crate::report::page::Quota;
use crate::report::upstreams::{self, ENDPOINT_COLUMNS, GATEWAY_COLUMNS, LabelCounts};
use crate::report::{Report, Rows};

/// Most findings that are listed: more are one endpoint or gateway of another world. The JSON form has all.
const MAX_FINDINGS_SHOWN: usize = 500;

/// Writes the section, where they were asked.
pub(super) fn write(
    report: &Report,
    rows: &dyn Rows,
    table_has: &BTreeSet<u64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(said) = report.agreement() else { return Ok(()) };
    writeln!(
        out,
        "<section id=\"agreement\">\n<h2>Endpoints and gateways</h2>\n<p>{said}</p>\n<p class=\"soft\">No state depends on \
         it: a verdict rests on the endpoints that had to agree, and on blocks that were proven.</p>"
    )?;
    counts("endpoint", ENDPOINT_COLUMNS, report.counts.upstreams.endpoints(), out)?;
    counts("gateway", GATEWAY_COLUMNS, report.counts.upstreams.gateways(), out)?;
    findings(rows, table_has, out)?;
    writeln!(out, "</section>")
}

fn counts<const N: usize>(
    what: &str,
    columns: [&str; N],
    counts: &[LabelCounts<N>],
    out: &mut dyn Write,
) -> io::Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", table(&format!("{what}s-table"), "counts", &[&[what], &columns[..]].concat()))?;
    for LabelCounts { label, counts } in counts {
        write!(out, "<tr><td class=\"subject\" data-label=\"{what}\">{}</td>", code(label))?;
        for (column, count) in columns.iter().zip(counts) {
            write!(out, "<td class=\"number\" data-label=\"{column}\">{count}</td>")?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn findings(rows: &dyn Rows, table_has: &BTreeSet<u64>, out: &mut dyn Write) -> io::Result<()> {
    let mut quota = Quota::of(MAX_FINDINGS_SHOWN);
    let mut any = false;
    upstreams::each_finding(rows, &mut |row, label, finding| {
        if !quota.take() {
            return Ok(());
        }
        if !std::mem::replace(&mut any, true) {
            writeln!(out, "{}", table("agreement-table", "registry", &["name", "endpoint or gateway", "finding"]))?;
        }
        writeln!(
            out,
            "<tr><td class=\"subject\" data-label=\"name\">{}</td>\
             <td data-label=\"endpoint or gateway\">{}</td><td data-label=\"finding\">{finding}</td></tr>",
            name_link(row, table_has),
            code(label)
        )
    })?;
    writeln!(out, "{}", if any { "</tbody></table></div>" } else { "" })?;
    left_out(quota.over, "findings", out)
}
