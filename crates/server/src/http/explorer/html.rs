//! Renders foreign text and icons as HTML.

use jiff::Timestamp;

use clresolve_core::text::Foreign;

/// Maximum number of characters shown of foreign text. It exceeds any line of suggested records, which are meant to be
/// copied.
const SHOWN: usize = 1_000;

/// Escapes foreign text for element content or a quoted attribute. This and [`verbatim`] are the only ways to put
/// foreign text into the page.
pub(super) fn foreign(text: &str) -> String {
    if clresolve_core::mutant!("explorer-shows-markup") {
        return text.to_owned();
    }
    Foreign::new(text).at_most(SHOWN).html().to_string()
}

/// Escapes foreign text at full length, as a value that is submitted or copied.
pub(super) fn verbatim(text: &str) -> String {
    Foreign::new(text).verbatim_html().to_string()
}

/// Foreign text in a `code` element.
pub(super) fn code(text: &str) -> String {
    format!("<code>{}</code>", foreign(text))
}

/// The URL of the explorer's page with these query parameters, escaped for an attribute.
pub(super) fn link<V: AsRef<str>>(parameters: impl IntoIterator<Item = (&'static str, V)>) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    verbatim(&format!("/?{query}"))
}

/// A row in a list of facts. `value` is HTML.
pub(super) fn fact(label: &str, value: &str) -> String {
    format!("<div><dt>{label}</dt><dd>{value}</dd></div>")
}

/// A section with a heading and facts. Empty if there are no facts.
pub(super) fn facts(id: &str, heading: &str, lead: &str, facts: &[String]) -> String {
    let list = if facts.is_empty() { String::new() } else { format!("<dl>{}</dl>", facts.concat()) };
    let lead = if lead.is_empty() { String::new() } else { format!("<p>{lead}</p>") };
    format!("<section class=\"facts\" aria-labelledby=\"{id}\"><h2 id=\"{id}\">{heading}</h2>{lead}{list}</section>\n")
}

/// `number` with commas as thousands separators.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// An RFC 3339 time to the second, in a readable form.
pub(super) fn moment(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => foreign(text),
    }
}

/// A digest or a CID with its middle elided: enough to compare two by eye.
pub(super) fn short(digest: &str) -> String {
    let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
    let characters = digest.chars().count();
    if characters < 24 {
        return digest.to_owned();
    }
    let start: String = digest.chars().take(8).collect();
    let end: String = digest.chars().skip(characters - 6).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_digests_and_times_are_made_to_be_read() {
        assert_eq!([0, 999, 1_000, 21_000_000].map(grouped), ["0", "999", "1,000", "21,000,000"]);
        assert_eq!(short("sha256:57b9b8e25fa3820e47f86d5372149f648af7f35a6a94119421d442528951dee6"), "57b9b8e2…51dee6");
        assert_eq!(short("nothing"), "nothing");
        assert_eq!(moment("2026-11-22T19:10:26.588744982Z"), "2026-11-22 19:10:26 UTC");
        assert_eq!(moment("<b>"), "&lt;b&gt;");
    }
}
