//! Creates an Agent-Card for a name. It has every required member; the publisher edits the values.

use clresolve_core::base_url::PublicBaseUrl;
use clresolve_core::name::EnsName;
use clresolve_core::text::{UntrustedText, nearest_word};
use clresolve_verdict::check::card::is_url_safe;
use clresolve_verdict::manifest::{ManifestVerb, SchemaReleaseManifest, SchemaRole};
use clresolve_verdict::profile::ConformanceProfile;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::generate::percent_encode_segment;
use crate::lint;
use crate::system::{CardLintContext, CardSystem};

/// The last segment of the entry of an Agent-Card 1.0.0.
const ROUTE: &str = "v1";

/// The inputs of a new card.
#[derive(Clone, Debug)]
pub struct NewCardInput<'a> {
    /// The name that the card is bound to.
    pub name: &'a EnsName,
    /// The verb that the agent implements.
    pub verb: &'a str,
    /// The publisher's name.
    pub owner: &'a EnsName,
    /// The base URL of the publisher's cards. With it the card has a `$id`.
    pub base_url: Option<&'a PublicBaseUrl>,
    /// The current time.
    pub created: Timestamp,
}

/// Why no card was created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NewCardError {
    /// No layer of the profile defines the verb.
    #[error("no verb is called `{}`; the verbs are {known}{}", UntrustedText::new(.verb), suggestion_clause(.meant.as_deref()))]
    UnknownVerb {
        /// The verb.
        verb: String,
        /// The verb that was probably meant.
        meant: Option<String>,
        /// All verbs.
        known: String,
    },
    /// The profile in force rejects a card of Agent-Cards 1.0.0.
    #[error("{} does not accept a new card of agent-cards/1.0.0: {codes}", UntrustedText::new(.profile))]
    OtherRules {
        /// The profile in force.
        profile: String,
        /// The codes of the findings.
        codes: String,
    },
}

fn suggestion_clause(meant: Option<&str>) -> String {
    meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

impl NewCardInput<'_> {
    /// The card as JSON text. `profile` has no findings about it.
    ///
    /// # Errors
    /// [`NewCardError`]
    pub fn to_card_json(&self, profile: &ConformanceProfile) -> Result<String, NewCardError> {
        let layers =
            || profile.classes().filter_map(move |class| Some((class, profile.class_rules(class)?.manifest())));
        let Some((class, verb)) = layers().find_map(|(class, manifest)| Some((class, manifest.verb(self.verb)?)))
        else {
            let manifests: Vec<&SchemaReleaseManifest> = layers().map(|(_, manifest)| manifest).collect();
            return Err(self.unknown_verb_error(&manifests));
        };
        let text = format!("{:#}\n", self.card_members(class, verb, profile.card_schema_url()));
        let text = lint::reorder_members(&text, CardSystem::CommandLayer).unwrap_or(text);
        let report = lint::lint_document(
            text.as_bytes(),
            Some(CardSystem::CommandLayer),
            &CardLintContext::from_profile(profile),
        );
        if report.findings.is_empty() {
            return Ok(text);
        }
        let codes: Vec<&str> = report.findings.iter().map(|finding| finding.code.slug()).collect();
        Err(NewCardError::OtherRules { profile: profile.id().to_owned(), codes: codes.join(", ") })
    }

    fn card_members(&self, class: &str, verb: &ManifestVerb, schema: Option<&str>) -> Value {
        let (name, label) = (self.name.as_str(), self.name.labels().next().unwrap_or_default());
        let verb_name = verb.name.as_str();
        let slug = if is_url_safe(label) { label.to_owned() } else { format!("{verb_name}-agent") };
        let created = Timestamp::from_second(self.created.as_second()).unwrap_or(self.created).to_string();
        let mut card = json!({
            "id": name,
            "slug": slug,
            "display_name": slug,
            "description": format!("Implements the verb {verb_name}."),
            "owner": self.owner.as_str(),
            "ens": name,
            "version": "1.0.0",
            "status": "active",
            "class": class,
            "implements": [verb_name],
            "schemas": {"request": verb.request.canonical, "receipt": verb.receipt.canonical},
            "entry": format!("x402://{name}/{verb_name}/{ROUTE}"),
            "networks": ["eip155:1"],
            "license": "Apache-2.0",
            "created_at": created,
            "updated_at": created,
        });
        if let Some(schema) = schema {
            card["$schema"] = schema.into();
        }
        if let Some(base) = self.base_url {
            card["$id"] = format!("{base}/{class}/{}.json", percent_encode_segment(name)).into();
        }
        let mirrors = first_schema_mirrors(verb);
        if !mirrors.is_empty() {
            card["schemas_mirror"] = mirrors.into();
        }
        card
    }

    fn unknown_verb_error(&self, manifests: &[&SchemaReleaseManifest]) -> NewCardError {
        let verbs = || manifests.iter().flat_map(|manifest| manifest.verbs()).map(|verb| verb.name.as_str());
        let alias = manifests.iter().find_map(|manifest| manifest.verb_by_alias(self.verb));
        let meant = alias.map(|verb| verb.name.as_str()).or_else(|| nearest_word(self.verb, verbs()));
        NewCardError::UnknownVerb {
            verb: self.verb.to_owned(),
            meant: meant.map(str::to_owned),
            known: verbs().collect::<Vec<_>>().join(", "),
        }
    }
}

/// The first mirror of each schema that has one.
fn first_schema_mirrors(verb: &ManifestVerb) -> Map<String, Value> {
    let sides = [("request", SchemaRole::Request), ("receipt", SchemaRole::Receipt)];
    let first = |(member, side): (&str, SchemaRole)| {
        Some((member.to_owned(), verb.schema(side).mirrors.first()?.as_str().into()))
    };
    sides.into_iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests {
    use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};

    use super::*;

    fn new_card(name: &str, verb: &str, profile: &str) -> Result<Value, NewCardError> {
        let profile = ConformanceProfiles::builtin().get(profile).expect("built in");
        let [name, owner] = [name, "publisher.eth"].map(|name| EnsName::parse(name).expect("a name"));
        let base_url = "https://cards.example/agents/".parse().expect("a URL");
        let created = "2026-01-02T03:04:05.6Z".parse().expect("a time");
        let card = NewCardInput { name: &name, verb, owner: &owner, base_url: Some(&base_url), created };
        card.to_card_json(&profile).map(|text| serde_json::from_str(&text).expect("JSON"))
    }

    #[test]
    fn every_verb_of_the_manifests_gives_a_card() {
        let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
        let verbs: Vec<&ManifestVerb> = profile.manifests().flat_map(SchemaReleaseManifest::verbs).collect();
        assert_eq!(verbs.len(), 15);
        for verb in verbs {
            let card = new_card("mybot.eth", &verb.name, DEFAULT).expect("a card without findings");
            assert_eq!(card["entry"], format!("x402://mybot.eth/{}/v1", verb.name));
            assert_eq!(card["schemas"]["request"], verb.request.canonical.as_str());
        }
    }

    #[test]
    fn location_and_times_follow_from_what_is_given() {
        let card = new_card("mybot.eth", "checkout", DEFAULT).expect("a card");
        assert_eq!(card["$id"], "https://cards.example/agents/commercial/mybot.eth.json");
        assert_eq!((&card["class"], &card["owner"]), (&"commercial".into(), &"publisher.eth".into()));
        assert_eq!([&card["created_at"], &card["updated_at"]], ["2026-01-02T03:04:05Z"; 2]);
    }

    #[test]
    fn label_that_is_not_url_safe_gives_another_slug() {
        let card = new_card("🦇.eth", "clean", DEFAULT).expect("a card without findings");
        assert_eq!((&card["slug"], &card["ens"]), (&"clean-agent".into(), &"🦇.eth".into()));
        assert_eq!(card["$id"], "https://cards.example/agents/commons/%F0%9F%A6%87.eth.json");
    }

    #[test]
    fn unknown_verb_is_rejected_with_the_known_ones() {
        for (verb, suggested) in [("sumarize", Some("summarize")), ("summarise", Some("summarize")), ("x", None)] {
            let error = new_card("mybot.eth", verb, DEFAULT).expect_err("no such verb");
            let NewCardError::UnknownVerb { meant, known, .. } = &error else { panic!("{error}") };
            assert_eq!(meant.as_deref(), suggested);
            assert!(known.contains("analyze") && known.contains("verify"), "{known}");
        }
    }

    #[test]
    fn rules_of_another_release_line_are_rejected() {
        let error = new_card("mybot.eth", "clean", "agent-cards/1.1.0").expect_err("other rules");
        assert!(matches!(&error, NewCardError::OtherRules { .. }), "{error}");
        assert!(new_card("mybot.eth", "clean", "agent-cards/1.0.0+released").is_ok());
    }
}
