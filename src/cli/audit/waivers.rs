//! Reads the TOML file of `--waive`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, bail};
use clresolve_audit::Waiver;
use clresolve_audit::waiver::MAX_WAIVERS;
use clresolve_core::text::UntrustedText;
use serde::Deserialize;
use toml::Spanned;

use crate::cli::input::{self, escaped_path};

/// Maximum file size in bytes, enough for [`MAX_WAIVERS`] waivers with the longest values.
const MAX_BYTES: usize = 2 << 20;

/// Maximum length of a parser message, in characters.
const MAX_MESSAGE_CHARACTERS: usize = 300;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaiversDocument {
    #[serde(default)]
    waiver: Vec<Spanned<Waiver>>,
}

/// Reads the waivers of a file.
///
/// # Errors
/// If the file cannot be read or parsed, or has two waivers for one finding. The error names the first wrong line.
pub(super) fn read_waivers(file: &Path) -> anyhow::Result<Vec<Waiver>> {
    let bytes = input::read_file_or_stdin(file, MAX_BYTES)?;
    if bytes.len() > MAX_BYTES {
        bail!("{} has more than {MAX_BYTES} bytes", escaped_path(file));
    }
    let text = std::str::from_utf8(&bytes).with_context(|| format!("{} is not UTF-8", escaped_path(file)))?;
    parse_waivers(text).with_context(|| escaped_path(file))
}

fn parse_waivers(text: &str) -> anyhow::Result<Vec<Waiver>> {
    let WaiversDocument { waiver: waivers } = match toml::from_str(text) {
        Ok(file) => file,
        Err(error) => {
            bail!(
                "line {}: {}",
                line_number_at(text, error.span().map_or(0, |span| span.start)),
                toml_error_message(&error)
            )
        }
    };
    if waivers.len() > MAX_WAIVERS {
        bail!("{} waivers are more than {MAX_WAIVERS}", waivers.len());
    }
    let mut findings = BTreeSet::new();
    for waiver in &waivers {
        let Waiver { name, code, place, observed, .. } = waiver.get_ref();
        if !findings.insert((name.as_str(), *code, place, observed)) {
            let line = line_number_at(text, waiver.span().start);
            bail!("line {line}: an earlier waiver has the same name, code, where and observed value");
        }
    }
    Ok(waivers.into_iter().map(Spanned::into_inner).collect())
}

/// The number of the line with the byte at `offset`.
fn line_number_at(text: &str, offset: usize) -> usize {
    let at = offset.min(text.len());
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn toml_error_message(error: &toml::de::Error) -> String {
    UntrustedText::new(error.message()).with_limit(MAX_MESSAGE_CHARACTERS).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[[waiver]]\nname = \"a.eth\"\ncode = \"checksum-mismatch\"\nobserved = \"sha256:00\"\n\
        where = \"https\"\nreason = \"fixed with 1.0.1\"\nuntil = \"2026-12-31\"\n";

    #[test]
    fn waivers_are_read() {
        let waivers = parse_waivers(GOOD).unwrap();
        let Waiver { name, place, observed, .. } = &waivers[0];
        assert_eq!((name.as_str(), place.as_deref(), observed.as_deref()), ("a.eth", Some("https"), Some("sha256:00")));
        assert_eq!(parse_waivers("").unwrap(), []);
    }

    #[test]
    fn malformed_waivers_are_refused_with_their_line() {
        for (from, to, why) in [
            ("a.eth", "a..eth", "line 2: "),
            ("a.eth", "A.eth", "line 2: the name is not in normal form"),
            ("checksum-mismatch", "no-such-code", "line 3: "),
            ("fixed with 1.0.1", " ", "line 6: the reason is empty"),
            ("2026-12-31", "2026-13-31", "line 7: "),
            ("until = ", "since = ", "line 7: unknown field `since`"),
            ("until = \"2026-12-31\"\n", "", "line 1: missing field `until`"),
            ("[[waiver]]", "[[waver]]", "line 1: unknown field `waver`"),
            ("[[waiver]]", "[[\u{202e}", "line 1: "),
        ] {
            let refused = parse_waivers(&GOOD.replace(from, to)).unwrap_err().to_string();
            assert!(refused.starts_with(why) && !refused.contains('\u{202e}'), "{why}: {refused}");
        }
        let many = parse_waivers(&GOOD.repeat(MAX_WAIVERS + 1)).unwrap_err().to_string();
        assert_eq!(many, "1001 waivers are more than 1000");
    }

    #[test]
    fn second_waiver_for_a_finding_is_refused_with_its_line() {
        let refused = parse_waivers(&[GOOD, &GOOD.replace("1.0.1", "1.0.2")].concat()).unwrap_err().to_string();
        assert_eq!(refused, "line 8: an earlier waiver has the same name, code, where and observed value");
        for (from, to) in [
            ("a.eth", "b.eth"),
            ("checksum-mismatch", "cid-mismatch"),
            ("sha256:00", "sha256:01"),
            ("where = \"https\"", "where = \"ipfs\""),
            ("where = \"https\"\n", ""),
        ] {
            assert_eq!(parse_waivers(&[GOOD, &GOOD.replace(from, to)].concat()).unwrap().len(), 2, "{from}");
        }
    }
}
