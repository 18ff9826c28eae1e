//! The section that lists the waivers, with and without effect.

use std::io::{self, Write};

use super::markup::{code, table};
use crate::Report;
use crate::waiver::{AppliedWaiver, Waiver};

/// Writes the section if the audit has waivers.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if report.waivers.all().is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section id=\"waivers\">\n<h2>Waivers</h2>\n<p class=\"soft\">An accepted finding does not affect the exit \
         code until its waiver expires. No state changes.</p>\n{}",
        table("waivers-table", "waivers", &["name", "code", "where", "observed value", "until", "status", "reason"])
    )?;
    for AppliedWaiver { waiver, status, .. } in report.waivers.all() {
        let Waiver { name, code: slug, place, observed, reason, until } = waiver;
        let shown = |text: &Option<String>| text.as_deref().map_or_else(|| "–".to_owned(), code);
        writeln!(
            out,
            "<tr><td class=\"subject\" data-label=\"name\">{}</td><td data-label=\"code\"><code>{slug}</code></td>\
             <td class=\"wide\" data-label=\"where\">{}</td><td class=\"wide\" data-label=\"observed value\">{}</td>\
             <td data-label=\"until\">{until}</td>\
             <td data-label=\"status\">{}</td><td class=\"wide\" data-label=\"reason\">{}</td></tr>",
            code(name.as_str()),
            shown(place),
            shown(observed),
            status.in_words(),
            code(reason)
        )?;
    }
    writeln!(out, "</tbody></table></div>\n</section>")
}
