//! The registries of reasons and profiles as documents.

use serde_json::{Value, json};

use crate::profile::{Profile, Profiles};
use crate::reason::{Code, Refusal};

/// Every code: those of verdicts and other judgements, and those of refusals.
pub(crate) fn reasons() -> Value {
    json!({
        "reasons": Code::ALL.iter().copied().map(of_judgement).collect::<Vec<_>>(),
        "refusals": Refusal::ALL.into_iter().map(of_request).collect::<Vec<_>>(),
    })
}

/// One code.
pub(crate) fn reason(slug: &str) -> Option<Value> {
    let refusal = || Refusal::ALL.into_iter().find(|refusal| refusal.slug() == slug);
    Code::from_slug(slug).map(of_judgement).or_else(|| refusal().map(of_request))
}

fn of_judgement(code: Code) -> Value {
    let mut entry = serde_json::to_value(code.entry()).unwrap_or_default();
    entry["type"] = code.uri().into();
    entry
}

fn of_request(refusal: Refusal) -> Value {
    json!({"code": refusal, "title": refusal.title(), "type": refusal.uri()})
}

/// Every profile that a question may name.
pub(crate) fn profiles(profiles: &Profiles, default: &str) -> Value {
    json!({ "profiles": profiles.iter().map(|known| profile(known, default)).collect::<Vec<_>>() })
}

/// One profile.
pub(crate) fn profile(profile: &Profile, default: &str) -> Value {
    let manifests = profile.manifests().map(|m| json!({"id": m.id(), "digest": m.digest().to_string()}));
    json!({
        "id": profile.id(),
        "title": profile.title(),
        "digest": profile.digest().to_string(),
        "default": profile.id() == default,
        "manifests": manifests.collect::<Vec<_>>(),
    })
}
