//! Whether documents that link back to a card agree with it. Informational: no state, reason or conclusion depends on
//! it.

use serde::Serialize;

use crate::card::AgentCard;
use crate::evidence::links::{ExternalLinks, RegistrationFile, normalizes_to};
use clresolve_core::name::EnsName;
use clresolve_core::records::TextRecord;
use clresolve_core::text::excerpt_text;
use clresolve_core::uri;

/// Maximum number of words of `agent-context` that are examined: it is free text of any length.
const MAX_WORDS: usize = 4096;

/// An external statement, compared with the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkComparison {
    /// The record, or the member of the registration file, that contains the statement.
    pub source: String,
    /// The statement, truncated.
    pub says: String,
    /// The corresponding value of the card or the name, truncated.
    pub card: Option<String>,
    /// The result of the comparison.
    pub relation: LinkAgreement,
}

/// How an external statement relates to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkAgreement {
    /// Both have the same value.
    Agrees,
    /// They have different values.
    Contradicts,
    /// The card has no corresponding value.
    Unmentioned,
    /// The statement could not be read, which implies nothing.
    Unread,
}

/// Compares `links` with the card of `name`, whose record `cl.agentcard` contains `url`.
pub fn compare_external_statements(
    links: &ExternalLinks,
    name: &EnsName,
    card: &AgentCard,
    url: Option<&str>,
) -> Vec<LinkComparison> {
    let mut found = Vec::new();
    match &links.records {
        Ok(records) => {
            found.extend(records.iter().flat_map(|(key, record)| compare_ensip26_record(key, record, card, url)))
        }
        Err(cause) => found.push(unread_link("agent-endpoint", cause)),
    }
    match links.file.as_deref().map(RegistrationFile::parse) {
        Ok(Ok(file)) => found.extend(compare_registration_file(&file, name, card)),
        Ok(Err(error)) => found.push(unread_link("agent-registration.json", &error.to_string())),
        Err(cause) => found.push(unread_link("agent-registration.json", cause)),
    }
    match &links.registrations {
        Ok(records) => found.extend(records.iter().map(|(key, record)| compare_ensip25_record(key, record, name))),
        Err(cause) => found.push(unread_link("agent-registration", cause)),
    }
    found
}

fn compare_ensip26_record(key: &str, record: &TextRecord, card: &AgentCard, url: Option<&str>) -> Vec<LinkComparison> {
    let text = match record {
        TextRecord::Absent => return Vec::new(),
        TextRecord::NotUtf8(_) => return vec![unread_link(key, "not valid UTF-8")],
        TextRecord::Text(text) => text.trim(),
    };
    match key {
        "agent-context" => text
            .split(|c: char| c.is_whitespace() || "\"'`<>()[]{},".contains(c))
            .take(MAX_WORDS)
            .filter_map(|word| match word {
                word if word.starts_with("x402://") => Some(compare_statement(key, word, card.entry())),
                word if uri::strip_scheme(word, "https").is_some() => Some(compare_stated_url(key, word, card, url)),
                _ => None,
            })
            .take(super::MAX_REASONS_PER_CODE)
            .collect(),
        "agent-endpoint[card]" => vec![compare_statement(key, text, url)],
        _ => vec![compare_stated_url(key, text, card, url)],
    }
}

fn compare_registration_file(file: &RegistrationFile, name: &EnsName, card: &AgentCard) -> Vec<LinkComparison> {
    let mut found = Vec::new();
    if let Some(stated) = &file.name {
        found.push(compare_statement("agent-registration.json /name", stated, card.text_at("/display_name")));
    }
    for endpoint in file.ens_service_names() {
        let relation = if normalizes_to(endpoint, name) { LinkAgreement::Agrees } else { LinkAgreement::Contradicts };
        found.push(new_comparison("agent-registration.json ENS service", endpoint, Some(name.as_str()), relation));
    }
    found
}

/// A record that is set confirms the registration; a record that is not set leaves the file's claim unconfirmed.
fn compare_ensip25_record(key: &str, record: &TextRecord, name: &EnsName) -> LinkComparison {
    match record {
        TextRecord::Absent => new_comparison(key, "not set", Some(name.as_str()), LinkAgreement::Contradicts),
        TextRecord::Text(text) => new_comparison(key, text, Some(name.as_str()), LinkAgreement::Agrees),
        TextRecord::NotUtf8(_) => unread_link(key, "not valid UTF-8"),
    }
}

fn compare_statement(source: &str, says: &str, card: Option<&str>) -> LinkComparison {
    let relation = match card {
        Some(card) if card.trim() == says => LinkAgreement::Agrees,
        Some(_) => LinkAgreement::Contradicts,
        None => LinkAgreement::Unmentioned,
    };
    new_comparison(source, says, card, relation)
}

/// Looks for a URL among the card's own URL and all of its texts. Absence is not a contradiction.
fn compare_stated_url(source: &str, says: &str, card: &AgentCard, url: Option<&str>) -> LinkComparison {
    let mut open = vec![card.document()];
    let mut found = url.is_some_and(|url| uri::are_equivalent_uris(url, says));
    // The loop visits each value of the document once; the parser bounds its size.
    while let Some(value) = open.pop().filter(|_| !found) {
        found = value.as_str().is_some_and(|text| uri::are_equivalent_uris(text, says));
        open.extend(value.as_array().into_iter().flatten());
        open.extend(value.as_object().into_iter().flat_map(serde_json::Map::values));
    }
    let relation = if found { LinkAgreement::Agrees } else { LinkAgreement::Unmentioned };
    new_comparison(source, says, found.then_some(says), relation)
}

fn unread_link(source: &str, cause: &str) -> LinkComparison {
    new_comparison(source, cause, None, LinkAgreement::Unread)
}

fn new_comparison(source: &str, says: &str, card: Option<&str>, relation: LinkAgreement) -> LinkComparison {
    LinkComparison { source: excerpt_text(source), says: excerpt_text(says), card: card.map(excerpt_text), relation }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::good_card;

    const URL: &str = "https://cards.example/a.json";

    fn checked(links_of: &ExternalLinks) -> Vec<(String, LinkAgreement)> {
        let card = AgentCard::parse(good_card().to_string().as_bytes()).expect("a card");
        let name = EnsName::parse("summarizeagent.eth").expect("a name");
        compare_external_statements(links_of, &name, &card, Some(URL))
            .into_iter()
            .map(|link| (link.source, link.relation))
            .collect()
    }

    fn given(records: &[(&str, &str)], file: serde_json::Value, registration: TextRecord) -> ExternalLinks {
        let text = |(key, text): &(&str, &str)| ((*key).to_owned(), TextRecord::Text((*text).to_owned()));
        ExternalLinks {
            records: Ok(records.iter().map(text).collect()),
            file: Ok(file.to_string().into()),
            registrations: Ok(vec![("agent-registration[0x][1]".to_owned(), registration)]),
        }
    }

    #[test]
    fn what_agrees_and_what_contradicts_is_told_apart() {
        let file = |name: &str, ens: &str| json!({"name": name, "services": [{"name": "ENS", "endpoint": ens}]});
        let agree = given(
            &[
                ("agent-context", "Pay x402://summarizeagent.eth/summarize/v1, see (https://cards.example/a.json)"),
                ("agent-endpoint[card]", URL),
            ],
            file("Summarize Agent", "SummarizeAgent.eth"),
            TextRecord::Text("1".to_owned()),
        );
        assert!(
            checked(&agree).iter().all(|(_, relation)| *relation == LinkAgreement::Agrees),
            "{:?}",
            checked(&agree)
        );
        assert_eq!(checked(&agree).len(), 6);
        let differ = given(
            &[("agent-context", "x402://other.eth/summarize/v1"), ("agent-endpoint[card]", "https://other.example/")],
            file("Another", "other.eth"),
            TextRecord::Absent,
        );
        assert!(
            checked(&differ).iter().all(|(_, relation)| *relation == LinkAgreement::Contradicts),
            "{:?}",
            checked(&differ)
        );
        assert_eq!(checked(&differ).len(), 5);
    }

    #[test]
    fn what_could_not_be_read_says_nothing() {
        let failed = || Err("no answer in time".to_owned());
        let none = ExternalLinks { records: failed(), file: Err("404".to_owned()), registrations: failed() };
        assert!(checked(&none).iter().all(|(_, relation)| *relation == LinkAgreement::Unread));
        assert_eq!(checked(&none).len(), 3);
        let other =
            given(&[("agent-endpoint[mcp]", "https://mcp.example/")], json!([]), TextRecord::NotUtf8(vec![255]));
        let relations: Vec<_> = checked(&other).into_iter().map(|(_, relation)| relation).collect();
        assert_eq!(relations, [LinkAgreement::Unmentioned, LinkAgreement::Unread, LinkAgreement::Unread]);
    }
}
