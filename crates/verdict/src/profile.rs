//! Profiles: the rules of a release line, as data.
//!
//! The written specification and the published data disagree, and newer release lines exist. Their differences are data
//! in profiles rather than code. Three profiles are compiled in. Configuration can add profiles and replace manifests.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::manifest::{SchemaReleaseManifest, SchemaReleaseManifestError};
use crate::schema::{SchemaError, StrictSchema};
use clresolve_core::digest::Digest;
use clresolve_core::json;
use clresolve_core::json::{JsonError, JsonLimits};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::records::TextRecordKey;
use clresolve_core::text::excerpt_text;

/// Version of the profile format that this crate reads.
pub const FORMAT: &str = "clresolve.profile/1";

/// The default profile, which follows the letter of the specification.
pub const DEFAULT: &str = "agent-cards/1.0.0";

const MANIFESTS: [&[u8]; 4] = [
    include_bytes!("../manifests/protocol-commons-1.0.0.json"),
    include_bytes!("../manifests/protocol-commercial-1.0.0.json"),
    include_bytes!("../manifests/protocol-commons-1.1.0.json"),
    include_bytes!("../manifests/protocol-commercial-1.1.0.json"),
];
const SCHEMAS: [&[u8]; 2] = [
    include_bytes!("../schemas/agent.card.base.schema.json"),
    include_bytes!("../schemas/agent.card.base-1.1.0.schema.json"),
];
/// The published schemas that the base schemas restate, by URL.
const PUBLISHED_AT: [(&str, &str); 2] = [
    (
        "urn:clresolve:schema:agent-card-base:1.0.0",
        "https://commandlayer.org/agent-cards/schemas/v1.0.0/_shared/agent.card.base.schema.json",
    ),
    (
        "urn:clresolve:schema:agent-card-base:1.1.0",
        "https://commandlayer.org/agent-cards/schemas/v1.1.0/agent.card.schema.json",
    ),
];
const PROFILES: [&[u8]; 3] = [
    include_bytes!("../manifests/profiles/agent-cards-1.0.0.json"),
    include_bytes!("../manifests/profiles/agent-cards-1.0.0-released.json"),
    include_bytes!("../manifests/profiles/agent-cards-1.1.0.json"),
];

/// The rules of one release line, with the manifests and schemas that they refer to.
#[derive(Debug)]
pub struct ConformanceProfile {
    digest: Digest,
    file: ProfileDocument,
    records: Vec<TextRecordKey>,
    base_schema: Arc<StrictSchema>,
    manifests: BTreeMap<String, Arc<SchemaReleaseManifest>>,
}

impl ConformanceProfile {
    /// The profile's identifier, such as `agent-cards/1.0.0`.
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// SHA-256 of the profile's canonical form (RFC 8785), which includes the digests of manifests and base schema.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// One line that describes the profile.
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// The required text records.
    pub fn required_records(&self) -> &[TextRecordKey] {
        &self.records
    }

    /// The rule for the entry of a card of this class. `None` for an unknown class, if the known classes have different
    /// rules.
    pub fn entry_rule(&self, class: Option<&str>) -> Option<&EntryRule> {
        let known = class.and_then(|class| self.file.classes.get(class));
        match known {
            Some(rule) => Some(rule.entry.as_ref().unwrap_or(&self.file.entry)),
            None if self.file.classes.values().any(|rule| rule.entry.is_some()) => None,
            None => Some(&self.file.entry),
        }
    }

    /// JSON Pointers of the required members, each after its parent.
    pub fn required_members(&self) -> &[String] {
        &self.file.members
    }

    /// The lifecycle statuses.
    pub fn lifecycle_statuses(&self) -> &LifecycleStatuses {
        &self.file.status
    }

    /// The layer of a class; `None` for a class unknown to the profile.
    pub fn class_rules(&self, class: &str) -> Option<ClassRules<'_>> {
        let rule = self.file.classes.get(class)?;
        let manifest = self.manifests.get(class)?;
        Some(ClassRules { rule, manifest })
    }

    /// All known classes.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.file.classes.keys().map(String::as_str)
    }

    /// All manifests, sorted by class.
    pub fn manifests(&self) -> impl Iterator<Item = &SchemaReleaseManifest> {
        self.manifests.values().map(Arc::as_ref)
    }

    /// The compiled base schema.
    pub fn base_schema(&self) -> &StrictSchema {
        &self.base_schema
    }

    /// The `$schema` of the line's cards: the URL at which the base schema is published.
    pub fn card_schema_url(&self) -> Option<&'static str> {
        PUBLISHED_AT.into_iter().find(|(id, _)| *id == self.file.base_schema.id).map(|(_, url)| url)
    }

    /// Sets the effect that this profile assigns to the reason's code.
    #[must_use]
    pub fn assign_effect(&self, mut reason: Reason) -> Reason {
        if let Some(effect) = self.file.effects.get(&reason.code) {
            reason.effect = *effect;
        }
        reason
    }
}

/// Rules of a profile for one class.
#[derive(Clone, Copy, Debug)]
pub struct ClassRules<'p> {
    rule: &'p ClassRulesDocument,
    manifest: &'p SchemaReleaseManifest,
}

impl<'p> ClassRules<'p> {
    /// The layer's manifest.
    pub fn manifest(&self) -> &'p SchemaReleaseManifest {
        self.manifest
    }

    /// The code for a card of this class that implements another layer's verb.
    pub fn foreign_verb_code(&self) -> ReasonCode {
        self.rule.foreign_verb
    }

    /// Path segments under which no location in a card of this class may lie.
    pub fn forbidden_segments(&self) -> &'p [String] {
        &self.rule.not_under
    }
}

/// The rule for a card's entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum EntryRule {
    /// `x402://<ens>/<verb>/<route>`.
    X402 {
        /// The accepted routes, the recommended one first. Never empty.
        routes: Vec<String>,
    },
    /// One fixed URL for every card.
    Literal {
        /// The required URL.
        value: String,
    },
}

impl EntryRule {
    fn validate(&self) -> Result<(), ProfileError> {
        match self {
            Self::X402 { routes } if routes.is_empty() => Err(invalid_value_error("entry", "routes")),
            Self::Literal { value } if !crate::evidence::is_https_url(value) => {
                Err(invalid_value_error("entry", value))
            }
            Self::X402 { .. } | Self::Literal { .. } => Ok(()),
        }
    }
}

/// The lifecycle statuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LifecycleStatuses {
    /// Statuses without a finding.
    pub known: Vec<String>,
    /// Statuses that ask callers to find a successor.
    pub deprecated: Vec<String>,
    /// Statuses by which the publisher revokes the card.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<String>,
    /// Statuses by which the publisher withdraws the agent. They are a warning that closes the gate. Release lines that
    /// list none share a default.
    #[serde(default = "default_withdrawn_statuses", skip_serializing_if = "is_default_withdrawn_statuses")]
    pub withdrawn: Vec<String>,
}

fn default_withdrawn_statuses() -> Vec<String> {
    ["revoked", "disabled", "retired", "suspended", "compromised", "withdrawn"].map(str::to_owned).into()
}

fn is_default_withdrawn_statuses(words: &Vec<String>) -> bool {
    *words == default_withdrawn_statuses()
}

/// All known profiles, with the manifests and schemas that they refer to.
#[derive(Clone, Debug, Default)]
pub struct ConformanceProfiles {
    manifests: BTreeMap<Digest, Arc<SchemaReleaseManifest>>,
    schemas: BTreeMap<Digest, Arc<StrictSchema>>,
    profiles: BTreeMap<String, Arc<ConformanceProfile>>,
}

impl ConformanceProfiles {
    /// The profiles that are compiled in.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<ConformanceProfiles> = LazyLock::new(|| {
            const PROMISE: &str = "what is compiled in loads, as a unit test shows";
            let mut profiles = ConformanceProfiles::default();
            for bytes in MANIFESTS {
                profiles.add_manifest(bytes).expect(PROMISE);
            }
            for bytes in SCHEMAS {
                profiles.add_schema(bytes).expect(PROMISE);
            }
            for bytes in PROFILES {
                profiles.add_profile(bytes).expect(PROMISE);
            }
            profiles
        });
        BUILTIN.clone()
    }

    /// The profile with this identifier.
    pub fn get(&self, id: &str) -> Option<Arc<ConformanceProfile>> {
        self.profiles.get(id).map(Arc::clone)
    }

    /// All profiles, sorted by identifier.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ConformanceProfile>> {
        self.profiles.values()
    }

    /// Adds a manifest, to which profiles added later can refer by its digest.
    ///
    /// # Errors
    /// [`ProfileError::Manifest`] if the bytes are not a manifest.
    pub fn add_manifest(&mut self, bytes: &[u8]) -> Result<Digest, ProfileError> {
        let manifest = SchemaReleaseManifest::load(bytes)?;
        let digest = manifest.digest();
        self.manifests.insert(digest, Arc::new(manifest));
        Ok(digest)
    }

    /// Adds a base schema, to which profiles added later can refer by its digest.
    ///
    /// # Errors
    /// [`ProfileError::Schema`] if the bytes are not a strict schema.
    pub fn add_schema(&mut self, bytes: &[u8]) -> Result<Digest, ProfileError> {
        let schema = StrictSchema::compile(bytes, &[])?;
        let digest = schema.digest();
        self.schemas.insert(digest, Arc::new(schema));
        Ok(digest)
    }

    /// Adds a profile. The manifests and the base schema that it names must have been added before.
    ///
    /// # Errors
    /// [`ProfileError`] if the bytes are not a profile, refer to something unknown, or reuse an identifier.
    pub fn add_profile(&mut self, bytes: &[u8]) -> Result<Arc<ConformanceProfile>, ProfileError> {
        let document = json::parse_strict_json(bytes, JsonLimits::DOCUMENT)?;
        let file: ProfileDocument =
            serde_json::from_value(document).map_err(|e| ProfileError::Shape(excerpt_text(&e.to_string())))?;
        if self.profiles.contains_key(&file.id) {
            return Err(ProfileError::Taken(excerpt_text(&file.id)));
        }
        let profile = Arc::new(self.build(file)?);
        self.profiles.insert(profile.id().to_owned(), Arc::clone(&profile));
        Ok(profile)
    }

    /// Replaces the manifest with the same id in every profile, which changes the digests of those profiles. If the
    /// bytes come from a source that the operator does not control, the caller first compares their digest with the
    /// configured one ([`Digest::verify_bytes`]).
    ///
    /// # Errors
    /// [`ProfileError`] if the bytes are not a manifest, or no profile uses the identifier.
    pub fn replace_manifest(&mut self, bytes: &[u8]) -> Result<(), ProfileError> {
        let observed = self.add_manifest(bytes)?;
        let id = self.manifests[&observed].id().to_owned();
        let mut used = false;
        let mut replaced = BTreeMap::new();
        for profile in self.profiles.values() {
            let mut file = profile.file.clone();
            for class in file.classes.values_mut().filter(|class| class.manifest.id == id) {
                class.manifest.digest = observed;
                used = true;
            }
            replaced.insert(file.id.clone(), Arc::new(self.build(file)?));
        }
        if !used {
            return Err(ProfileError::Unused(excerpt_text(&id)));
        }
        self.profiles = replaced;
        Ok(())
    }

    fn build(&self, file: ProfileDocument) -> Result<ConformanceProfile, ProfileError> {
        file.validate()?;
        let records = file
            .records
            .iter()
            .map(|name| TextRecordKey::from_name(name).ok_or_else(|| invalid_value_error("record", name)));
        let records = records.collect::<Result<_, _>>()?;
        let base_schema = self.schemas.get(&file.base_schema.digest);
        let base_schema = base_schema.filter(|schema| schema.id() == Some(&file.base_schema.id));
        let base_schema = Arc::clone(base_schema.ok_or_else(|| missing_document_error(&file.base_schema))?);
        let mut manifests = BTreeMap::new();
        for (class, rule) in &file.classes {
            let manifest = self.manifests.get(&rule.manifest.digest).filter(|m| m.id() == rule.manifest.id);
            let manifest = manifest.ok_or_else(|| missing_document_error(&rule.manifest))?;
            if manifest.class() != class {
                return Err(invalid_value_error("class", class));
            }
            manifests.insert(class.clone(), Arc::clone(manifest));
        }
        let canonical =
            canonical::canonical_json(&file).map_err(|e| ProfileError::Shape(excerpt_text(&e.to_string())))?;
        Ok(ConformanceProfile { digest: Digest::compute(&canonical), file, records, base_schema, manifests })
    }
}

fn missing_document_error(pinned: &PinnedDocumentReference) -> ProfileError {
    ProfileError::Missing { id: excerpt_text(&pinned.id), digest: pinned.digest }
}

fn invalid_value_error(what: &'static str, value: &str) -> ProfileError {
    ProfileError::Value { what, value: excerpt_text(value) }
}

/// Why a profile, or a manifest or schema that it refers to, is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not strict JSON.
    #[error("not a profile: {0}")]
    Json(#[from] JsonError),
    /// A member is missing, unknown, or of the wrong type.
    #[error("not a profile: {0}")]
    Shape(String),
    /// The format version is unsupported.
    #[error("the profile has the format {0:?}; this version reads {FORMAT:?}")]
    Format(String),
    /// A value is invalid.
    #[error("the profile's {what} {value:?} is not usable")]
    Value {
        /// The member.
        what: &'static str,
        /// The invalid value.
        value: String,
    },
    /// No manifest or schema with this id and digest was added.
    #[error("{id} with the digest {digest} is not available")]
    Missing {
        /// The missing id.
        id: String,
        /// The missing digest.
        digest: Digest,
    },
    /// Another profile has this identifier.
    #[error("there is a profile {0:?} already")]
    Taken(String),
    /// No profile uses a manifest with this id.
    #[error("no profile uses the manifest {0:?}")]
    Unused(String),
    /// Not a manifest.
    #[error(transparent)]
    Manifest(#[from] SchemaReleaseManifestError),
    /// Not a schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileDocument {
    schema: String,
    id: String,
    title: String,
    records: Vec<String>,
    entry: EntryRule,
    members: Vec<String>,
    status: LifecycleStatuses,
    classes: BTreeMap<String, ClassRulesDocument>,
    base_schema: PinnedDocumentReference,
    effects: BTreeMap<ReasonCode, ReasonEffect>,
}

impl ProfileDocument {
    fn validate(&self) -> Result<(), ProfileError> {
        if self.schema != FORMAT {
            return Err(ProfileError::Format(excerpt_text(&self.schema)));
        }
        let of_classes = self.classes.values().filter_map(|class| class.entry.as_ref());
        of_classes.chain([&self.entry]).try_for_each(EntryRule::validate)?;
        match self.members.iter().find(|member| !member.starts_with('/')) {
            Some(member) => Err(invalid_value_error("member", member)),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassRulesDocument {
    manifest: PinnedDocumentReference,
    #[serde(default = "default_foreign_verb_code", skip_serializing_if = "is_default_foreign_verb_code")]
    foreign_verb: ReasonCode,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_under: Vec<String>,
    /// Set if it differs from the profile's rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<EntryRule>,
}

const fn default_foreign_verb_code() -> ReasonCode {
    ReasonCode::VerbUnknown
}

fn is_default_foreign_verb_code(code: &ReasonCode) -> bool {
    *code == default_foreign_verb_code()
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedDocumentReference {
    id: String,
    digest: Digest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_in_loads() {
        let profiles = ConformanceProfiles::builtin();
        let ids: Vec<_> = profiles.iter().map(|profile| profile.id()).collect();
        assert_eq!(ids, ["agent-cards/1.0.0", "agent-cards/1.0.0+released", "agent-cards/1.1.0"]);
        let letter = profiles.get(DEFAULT).expect("the default profile");
        assert_eq!(letter.required_records().len(), 6);
        assert_eq!(letter.classes().collect::<Vec<_>>(), ["commercial", "commons"]);
        assert!(letter.class_rules("Commons").is_none());
    }

    #[test]
    fn the_digest_is_that_of_the_canonical_file() {
        for (bytes, profile) in PROFILES.iter().zip(ConformanceProfiles::builtin().iter()) {
            let file: serde_json::Value = serde_json::from_slice(bytes).expect("JSON");
            let canonical = serde_json_canonicalizer::to_vec(&file).expect("canonical form");
            assert_eq!(profile.digest(), Digest::compute(&canonical), "{}", profile.id());
        }
    }

    #[test]
    fn effects_are_those_of_the_profile() {
        let profiles = ConformanceProfiles::builtin();
        let effect = |id| {
            profiles.get(id).expect("built in").assign_effect(Reason::new(ReasonCode::SchemaMirrorPlaceholder)).effect
        };
        assert_eq!(effect(DEFAULT), ReasonEffect::Fail);
        assert_eq!(effect("agent-cards/1.0.0+released"), ReasonEffect::Warn);
    }

    #[test]
    fn a_class_may_have_an_entry_rule_of_its_own() {
        let profiles = ConformanceProfiles::builtin();
        let letter = profiles.get(DEFAULT).expect("built in");
        assert_eq!(letter.entry_rule(Some("commons")), letter.entry_rule(None));
        let next = profiles.get("agent-cards/1.1.0").expect("built in");
        assert!(matches!(next.entry_rule(Some("commons")), Some(EntryRule::Literal { .. })));
        assert!(matches!(next.entry_rule(Some("commercial")), Some(EntryRule::X402 { .. })));
        assert_eq!((next.entry_rule(None), next.entry_rule(Some("free"))), (None, None));
    }

    #[test]
    fn entry_rules_that_no_entry_can_meet_are_refused() {
        let text = String::from_utf8(PROFILES[2].to_vec()).expect("UTF-8").replace("agent-cards/1.1.0", "mine/1");
        let refused =
            |from: &str, to: &str| ConformanceProfiles::builtin().add_profile(text.replace(from, to).as_bytes());
        assert!(refused("", "").is_ok());
        let literal = refused("https://runtime.commandlayer.org/execute", "runtime").expect_err("no URL");
        assert_eq!(literal, ProfileError::Value { what: "entry", value: "runtime".into() });
        let routes = refused(r#""v1.1.0""#, "").expect_err("no route");
        assert_eq!(routes, ProfileError::Value { what: "entry", value: "routes".into() });
    }

    #[test]
    fn a_profile_of_another_format_is_refused() {
        let text = String::from_utf8(PROFILES[0].to_vec()).expect("UTF-8").replace(FORMAT, "clresolve.profile/0");
        let text = text.replace(r#""id": "agent-cards/1.0.0""#, r#""id": "mine/1""#);
        let refused = ConformanceProfiles::builtin().add_profile(text.as_bytes()).expect_err("no such format");
        assert_eq!(refused, ProfileError::Format("clresolve.profile/0".into()));
    }

    #[test]
    fn a_profile_is_added_once_and_only_with_what_it_names() {
        let mut profiles = ConformanceProfiles::builtin();
        let text = String::from_utf8(PROFILES[0].to_vec()).expect("UTF-8");
        assert_eq!(profiles.add_profile(PROFILES[0]).expect_err("taken"), ProfileError::Taken(DEFAULT.into()));
        let renamed = text.replace(r#""id": "agent-cards/1.0.0""#, r#""id": "mine/1""#);
        assert_eq!(profiles.add_profile(renamed.as_bytes()).expect("a new name").id(), "mine/1");
        let other = renamed.replace("mine/1", "mine/2").replace("sha256:", "sha256:0000").replace("0000", "");
        assert!(profiles.add_profile(other.as_bytes()).is_ok());
        let mut nothing = ConformanceProfiles::default();
        assert!(matches!(nothing.add_profile(PROFILES[0]), Err(ProfileError::Missing { .. })));
        let code = text.replace(r#""effects": {}"#, r#""effects": {"no-such-code": "warn"}"#);
        assert!(matches!(ConformanceProfiles::builtin().add_profile(code.as_bytes()), Err(ProfileError::Shape(_))));
    }

    #[test]
    fn a_replaced_manifest_changes_the_digest_of_its_profiles() {
        let mut profiles = ConformanceProfiles::builtin();
        let before = profiles.get(DEFAULT).expect("built in").digest();
        let text = String::from_utf8(MANIFESTS[1].to_vec()).expect("UTF-8");
        let bytes = text.replace(r#""name": "ship""#, r#""name": "deliver""#);
        profiles.replace_manifest(bytes.as_bytes()).expect("a manifest of a known id");
        let after = profiles.get(DEFAULT).expect("built in");
        assert_ne!(after.digest(), before);
        let commercial = after.class_rules("commercial").expect("a known class").manifest();
        assert!(commercial.verb("deliver").is_some() && commercial.verb("ship").is_none());
        let unused = text.replace(commercial.id(), "protocol-other/1.0.0");
        let refused = profiles.replace_manifest(unused.as_bytes()).expect_err("no profile uses it");
        assert_eq!(refused, ProfileError::Unused("protocol-other/1.0.0".into()));
    }
}
