//! Renders foreign text and lists of facts as HTML.

use clresolve_core::text::UntrustedText;
use jiff::Timestamp;
use maud::{Markup, PreEscaped, Render, html};

/// Maximum number of characters shown of foreign text. It exceeds any line of suggested records, which are meant to be
/// copied.
const SHOWN: usize = 1_000;

/// Foreign text with its unsafe characters visible. Only values that the user submits or copies bypass this: the page
/// contains them unchanged and in full, and maud escapes their markup.
pub(super) fn foreign_text(text: &str) -> Markup {
    if clresolve_core::mutant!("explorer-shows-markup") {
        return PreEscaped(text.to_owned());
    }
    html! { (UntrustedText::new(text).with_limit(SHOWN)) }
}

/// Foreign text in a `code` element.
pub(super) fn foreign_code(text: &str) -> Markup {
    html! { code { (foreign_text(text)) } }
}

/// The URL of the explorer's page with these query parameters.
pub(super) fn explorer_url<V: AsRef<str>>(parameters: impl IntoIterator<Item = (&'static str, V)>) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("/?{query}")
}

/// A list of the facts that have a value. Empty if none has.
pub(super) fn fact_list<L: Render>(rows: impl IntoIterator<Item = (L, Option<Markup>)>) -> Markup {
    let mut rows = rows.into_iter().filter_map(|(label, value)| Some((label, value?))).peekable();
    html! {
        @if rows.peek().is_some() {
            dl { @for (label, value) in rows { div { dt { (label) } dd { (value) } } } }
        }
    }
}

pub(super) fn page_section(id: &str, heading: &str, body: &Markup) -> Markup {
    html! { section.facts aria-labelledby=(id) { h2 #(id) { (heading) } (body) } }
}

/// `number` with commas as thousands separators.
pub(super) fn group_thousands(number: u64) -> String {
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
pub(super) fn time_element(text: &str) -> Markup {
    match text.parse::<Timestamp>() {
        Ok(time) => html! { (time.strftime("%Y-%m-%d %H:%M:%S UTC")) },
        Err(_) => foreign_text(text),
    }
}

/// A digest or a CID with its middle elided: enough to compare two by eye.
pub(super) fn shorten_digest(digest: &str) -> String {
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
    fn foreign_text_has_no_markup_and_hides_nothing() {
        let shown = foreign_text("<script>\"a\" & 'b'\u{202e}</script>").into_string();
        assert_eq!(shown, "&lt;script&gt;&quot;a&quot; &amp; 'b'\\u{202e}&lt;/script&gt;");
    }

    #[test]
    fn numbers_digests_and_times_are_made_to_be_read() {
        assert_eq!([0, 999, 1_000, 21_000_000].map(group_thousands), ["0", "999", "1,000", "21,000,000"]);
        assert_eq!(
            shorten_digest("sha256:57b9b8e25fa3820e47f86d5372149f648af7f35a6a94119421d442528951dee6"),
            "57b9b8e2…51dee6"
        );
        assert_eq!(shorten_digest("nothing"), "nothing");
        assert_eq!(time_element("2026-11-22T19:10:26.588744982Z").into_string(), "2026-11-22 19:10:26 UTC");
        assert_eq!(time_element("<b>").into_string(), "&lt;b&gt;");
    }
}
