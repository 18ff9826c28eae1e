//! Whether documents that link back to a card agree with it. Informational: no state, reason or conclusion depends on
//! it.

use serde::Serialize;

use crate::card::Card;
use crate::evidence::links::{Links, RegistrationFile, is_name};
use clresolve_core::name::EnsName;
use clresolve_core::records::Record;
use clresolve_core::text::excerpt;
use clresolve_core::uri;

/// Maximum number of words of `agent-context` that are examined: it is free text of any length.
const MAX_WORDS: usize = 4096;

/// An external statement, compared with the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The record, or the member of the registration file, that contains the statement.
    pub source: String,
    /// The statement, truncated.
    pub says: String,
    /// The corresponding value of the card or the name, truncated.
    pub card: Option<String>,
    /// The result of the comparison.
    pub relation: Relation,
}

/// How an external statement relates to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
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
pub fn links(links: &Links, name: &EnsName, card: &Card, url: Option<&str>) -> Vec<Link> {
    let mut found = Vec::new();
    match &links.records {
        Ok(records) => found.extend(records.iter().flat_map(|(key, record)| of_record(key, record, card, url))),
        Err(cause) => found.push(unread("agent-endpoint", cause)),
    }
    match links.file.as_deref().map(RegistrationFile::parse) {
        Ok(Ok(file)) => found.extend(of_file(&file, name, card)),
        Ok(Err(error)) => found.push(unread("agent-registration.json", &error.to_string())),
        Err(cause) => found.push(unread("agent-registration.json", cause)),
    }
    match &links.registrations {
        Ok(records) => found.extend(records.iter().map(|(key, record)| of_registration(key, record, name))),
        Err(cause) => found.push(unread("agent-registration", cause)),
    }
    found
}

fn of_record(key: &str, record: &Record, card: &Card, url: Option<&str>) -> Vec<Link> {
    let text = match record {
        Record::Absent => return Vec::new(),
        Record::NotUtf8(_) => return vec![unread(key, "not valid UTF-8")],
        Record::Text(text) => text.trim(),
    };
    match key {
        "agent-context" => text
            .split(|c: char| c.is_whitespace() || "\"'`<>()[]{},".contains(c))
            .take(MAX_WORDS)
            .filter_map(|word| match word {
                word if word.starts_with("x402://") => Some(compared(key, word, card.entry())),
                word if uri::strip_scheme(word, "https").is_some() => Some(mentioned(key, word, card, url)),
                _ => None,
            })
            .take(super::MAX_REASONS_PER_CODE)
            .collect(),
        "agent-endpoint[card]" => vec![compared(key, text, url)],
        _ => vec![mentioned(key, text, card, url)],
    }
}

fn of_file(file: &RegistrationFile, name: &EnsName, card: &Card) -> Vec<Link> {
    let mut found = Vec::new();
    if let Some(stated) = &file.name {
        found.push(compared("agent-registration.json /name", stated, card.text("/display_name")));
    }
    for endpoint in file.names() {
        let relation = if is_name(endpoint, name) { Relation::Agrees } else { Relation::Contradicts };
        found.push(link("agent-registration.json ENS service", endpoint, Some(name.as_str()), relation));
    }
    found
}

/// A record that is set confirms the registration; a record that is not set leaves the file's claim unconfirmed.
fn of_registration(key: &str, record: &Record, name: &EnsName) -> Link {
    match record {
        Record::Absent => link(key, "not set", Some(name.as_str()), Relation::Contradicts),
        Record::Text(text) => link(key, text, Some(name.as_str()), Relation::Agrees),
        Record::NotUtf8(_) => unread(key, "not valid UTF-8"),
    }
}

fn compared(source: &str, says: &str, card: Option<&str>) -> Link {
    let relation = match card {
        Some(card) if card.trim() == says => Relation::Agrees,
        Some(_) => Relation::Contradicts,
        None => Relation::Unmentioned,
    };
    link(source, says, card, relation)
}

/// Looks for a URL among the card's own URL and all of its texts. Absence is not a contradiction.
fn mentioned(source: &str, says: &str, card: &Card, url: Option<&str>) -> Link {
    let mut open = vec![card.document()];
    let mut found = url.is_some_and(|url| uri::are_equivalent(url, says));
    // The loop visits each value of the document once; the parser bounds its size.
    while let Some(value) = open.pop().filter(|_| !found) {
        found = value.as_str().is_some_and(|text| uri::are_equivalent(text, says));
        open.extend(value.as_array().into_iter().flatten());
        open.extend(value.as_object().into_iter().flat_map(serde_json::Map::values));
    }
    let relation = if found { Relation::Agrees } else { Relation::Unmentioned };
    link(source, says, found.then_some(says), relation)
}

fn unread(source: &str, cause: &str) -> Link {
    link(source, cause, None, Relation::Unread)
}

fn link(source: &str, says: &str, card: Option<&str>, relation: Relation) -> Link {
    Link { source: excerpt(source), says: excerpt(says), card: card.map(excerpt), relation }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::good;

    const URL: &str = "https://cards.example/a.json";

    fn checked(links_of: &Links) -> Vec<(String, Relation)> {
        let card = Card::parse(good().to_string().as_bytes()).expect("a card");
        let name = EnsName::parse("summarizeagent.eth").expect("a name");
        links(links_of, &name, &card, Some(URL)).into_iter().map(|link| (link.source, link.relation)).collect()
    }

    fn given(records: &[(&str, &str)], file: serde_json::Value, registration: Record) -> Links {
        let text = |(key, text): &(&str, &str)| ((*key).to_owned(), Record::Text((*text).to_owned()));
        Links {
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
            Record::Text("1".to_owned()),
        );
        assert!(checked(&agree).iter().all(|(_, relation)| *relation == Relation::Agrees), "{:?}", checked(&agree));
        assert_eq!(checked(&agree).len(), 6);
        let differ = given(
            &[("agent-context", "x402://other.eth/summarize/v1"), ("agent-endpoint[card]", "https://other.example/")],
            file("Another", "other.eth"),
            Record::Absent,
        );
        assert!(
            checked(&differ).iter().all(|(_, relation)| *relation == Relation::Contradicts),
            "{:?}",
            checked(&differ)
        );
        assert_eq!(checked(&differ).len(), 5);
    }

    #[test]
    fn what_could_not_be_read_says_nothing() {
        let failed = || Err("no answer in time".to_owned());
        let none = Links { records: failed(), file: Err("404".to_owned()), registrations: failed() };
        assert!(checked(&none).iter().all(|(_, relation)| *relation == Relation::Unread));
        assert_eq!(checked(&none).len(), 3);
        let other = given(&[("agent-endpoint[mcp]", "https://mcp.example/")], json!([]), Record::NotUtf8(vec![255]));
        let relations: Vec<_> = checked(&other).into_iter().map(|(_, relation)| relation).collect();
        assert_eq!(relations, [Relation::Unmentioned, Relation::Unread, Relation::Unread]);
    }
}
