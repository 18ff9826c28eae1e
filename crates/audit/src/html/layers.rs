//! The findings on the published schemas of the layers.

use std::io::{self, Write};

use super::markup::{code, table, write_omitted};
use crate::Report;
use crate::page::Quota;

/// Maximum number of schemas listed: a registry's layers have some dozens. The JSON form has all.
const MAX_SCHEMAS_SHOWN: usize = 500;

/// Writes the section, if the layers were checked.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(summary) = report.layers() else { return Ok(()) };
    writeln!(
        out,
        "<section id=\"layers\">\n<h2>Schema layers</h2>\n<p>{summary}</p>\n<p class=\"soft\">No name's state depends \
         on this: a verdict accepts any copy with the pinned bytes.</p>"
    )?;
    let mut quota = Quota::of(MAX_SCHEMAS_SHOWN);
    let mut any = false;
    for schema in report.schemas_with_findings().filter(|_| quota.take()) {
        if !std::mem::replace(&mut any, true) {
            writeln!(out, "{}", table("layers-table", "schemas", &["schema", "path", "state", "because of"]))?;
        }
        let codes: Vec<String> = schema.codes().iter().map(|code| format!("<code>{}</code>", code.slug())).collect();
        writeln!(
            out,
            "<tr><td class=\"subject\" data-label=\"schema\">{}</td><td class=\"wide\" data-label=\"path\">{}</td>\
             <td data-label=\"state\">{}</td><td class=\"wide\" data-label=\"because of\">{}</td></tr>",
            code(&schema.key()),
            code(&schema.path),
            schema.standing(),
            codes.join(" ")
        )?;
    }
    if any {
        writeln!(out, "</tbody></table></div>")?;
    }
    write_omitted(quota.over, "schemas", out)?;
    writeln!(out, "</section>")
}
