//! Serializes the registries of reasons and profiles.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use clresolve_core::reason::{ReasonCode, RefusalCode};
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles};

/// All codes: those of verdicts and other judgements, and those of refusals.
pub(crate) fn all_codes_document() -> Value {
    json!({
        "reasons": ReasonCode::ALL.iter().copied().map(code_document).collect::<Vec<_>>(),
        "refusals": RefusalCode::ALL.into_iter().map(refusal_document).collect::<Vec<_>>(),
    })
}

pub(crate) fn reason_document(slug: &str) -> Option<Value> {
    let refusal = || RefusalCode::ALL.into_iter().find(|refusal| refusal.slug() == slug);
    ReasonCode::from_slug(slug).map(code_document).or_else(|| refusal().map(refusal_document))
}

fn code_document(code: ReasonCode) -> Value {
    let mut entry = serde_json::to_value(code.entry()).unwrap_or_default();
    entry["type"] = code.uri().into();
    entry
}

fn refusal_document(refusal: RefusalCode) -> Value {
    json!({"code": refusal, "title": refusal.title(), "type": refusal.uri()})
}

/// All profiles that a question may select.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ConformanceProfileList<'p> {
    profiles: Vec<ConformanceProfileEntry<'p>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ConformanceProfileEntry<'p> {
    id: &'p str,
    title: &'p str,
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    digest: String,
    /// Whether it applies to questions that select none.
    default: bool,
    manifests: Vec<ProfileManifestEntry<'p>>,
}

/// The manifest of a profile's release line.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ProfileManifestEntry<'p> {
    id: &'p str,
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    digest: String,
}

impl<'p> ConformanceProfileList<'p> {
    pub(crate) fn new(profiles: &'p ConformanceProfiles, default: &str) -> Self {
        Self { profiles: profiles.iter().map(|profile| ConformanceProfileEntry::new(profile, default)).collect() }
    }
}

impl<'p> ConformanceProfileEntry<'p> {
    pub(crate) fn new(profile: &'p ConformanceProfile, default: &str) -> Self {
        let manifests =
            profile.manifests().map(|m| ProfileManifestEntry { id: m.id(), digest: m.digest().to_string() });
        Self {
            id: profile.id(),
            title: profile.title(),
            digest: profile.digest().to_string(),
            default: profile.id() == default,
            manifests: manifests.collect(),
        }
    }
}
