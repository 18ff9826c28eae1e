//! Projects a trusted verdict to an A2A 1.0 card, for A2A clients, which look for agents at a well-known path and do
//! not use ENS.
//!
//! The card has the content of the proven Agent-Card, and the verdict's `conclusion` in an extension. Only trusted
//! verdicts are projected. The card expires with the verdict: since A2A cards have no expiry, the extension contains
//! `fresh_until`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::signature;
use clresolve_core::reason::RefusalCode;
use clresolve_core::world::SANDBOX;
use clresolve_jose::Ed25519SigningKey;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::trust::{Resolution, TrustOrigin, TrustedVerdict};
use clresolve_verdict::verdict::{AgentIdentity, Verdict};

/// Identifier of the extension that contains the verdict.
pub const EXTENSION: &str = "urn:clresolve:a2a:verdict:1";

/// The A2A version of the card.
pub const PROTOCOL_VERSION: &str = "1.0";

/// CommandLayer requests and receipts are JSON by their schemas, even if a card lists other types.
const JSON: &str = "application/json";

/// The unsigned A2A 1.0 card of a trusted verdict. If the verdict does not come from a live resolution, the card states
/// that.
///
/// # Errors
/// The code of the reason why the gate would deny the agent. A client that uses this card does not ask the gate.
pub fn a2a_card_from_verdict(trusted: &TrustedVerdict, policy: &GatePolicy) -> Result<Value, &'static str> {
    let verdict = trusted.verdict();
    if let Some(code) =
        policy.policy_objection(trusted).filter(|_| !clresolve_core::mutant!("refused-agents-are-projected"))
    {
        return Err(code);
    }
    let card = trusted.card_bytes().and_then(|bytes| AgentCard::parse(bytes).ok());
    let (Some(identity), Some(card)) = (&verdict.identity, card) else {
        return Err(RefusalCode::InternalError.slug());
    };
    let entry = identity.entry.as_deref().unwrap_or_default();
    let (Some(name), Some(binding)) = (agent_display_name(&card, verdict), interface_protocol(entry)) else {
        return Err(RefusalCode::InternalError.slug());
    };
    let description = card.text_at("/description").map_or_else(|| default_description(name, identity), str::to_owned);
    Ok(json!({
        "name": name,
        "description": description,
        "supportedInterfaces": [{
            "url": entry,
            "protocolBinding": binding,
            "protocolVersion": PROTOCOL_VERSION,
        }],
        "version": identity.version,
        "capabilities": {"extensions": [clresolve_extension(verdict, identity, trusted.origin())]},
        "defaultInputModes": declared_media_types(&card, "/capabilities/input_types"),
        "defaultOutputModes": declared_media_types(&card, "/capabilities/output_types"),
        "skills": policy.admitted_verbs(identity).map(|verb| verb_skill(verb, binding, verdict, identity)).collect::<Vec<_>>(),
    }))
}

/// The card of a live resolution as built by [`a2a_card_from_verdict`], signed if there is a key. Sandbox cards are
/// never signed, so that they cannot be mistaken for real ones.
///
/// # Errors
/// The code of the reason why the gate would deny the agent.
pub fn signed_a2a_card_from_resolution(
    resolution: &Resolution,
    policy: &GatePolicy,
    key: Option<&Ed25519SigningKey>,
) -> Result<Value, &'static str> {
    let card = a2a_card_from_verdict(&resolution.trusted_verdict()?, policy)?;
    let world = resolution.verdict().anchor.as_ref().map(|anchor| anchor.world.as_str());
    match key.filter(|_| world != Some(SANDBOX)) {
        Some(key) => signature::sign_card(&card, key).map_err(|_| RefusalCode::InternalError.slug()),
        None => Ok(card),
    }
}

/// `display_name`, or the proven name, since cards of 1.1.0 have no `display_name`.
fn agent_display_name<'c>(card: &'c AgentCard, verdict: &'c Verdict) -> Option<&'c str> {
    card.text_at("/display_name").or(verdict.name.normalized.as_deref())
}

/// The description of an agent whose card has none.
fn default_description(name: &str, identity: &AgentIdentity) -> String {
    let class = identity.class.as_deref().unwrap_or_default();
    format!("The agent {name} of CommandLayer's class {class}; its verbs: {}.", identity.verbs.join(", "))
}

/// The protocol of the interface, by the entry's scheme: `x402` or, if a profile permits an entry on the web, `https`.
/// Neither is an A2A binding, and the card does not claim one.
fn interface_protocol(entry: &str) -> Option<&str> {
    entry.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| !scheme.is_empty())
}

/// The proven facts, so that users of clresolve can ask again or compare. The reasons of a trusted verdict are
/// warnings. A reader who has only the card must see that there are some.
fn clresolve_extension(verdict: &Verdict, identity: &AgentIdentity, origin: TrustOrigin) -> Value {
    let mut params = Map::new();
    let mut say = |member: &str, value: Value| params.insert(member.to_owned(), value);
    say("schema", verdict.schema.as_str().into());
    say("state", verdict.state.as_str().into());
    if origin != TrustOrigin::Live {
        say("origin", json!(origin));
    }
    say("conclusion", verdict.conclusion.as_str().into());
    let warnings: BTreeSet<&str> = verdict.reasons.iter().map(|reason| reason.code.slug()).collect();
    if !warnings.is_empty() {
        say("warnings", json!(warnings));
    }
    say("status", json!(identity.status));
    say("name", json!(verdict.name.normalized));
    say("owner", json!(identity.owner));
    say("card", json!(identity.card));
    say("profile", json!({"id": verdict.profile.id, "digest": verdict.profile.digest, "depth": verdict.profile.depth}));
    say("checked_at", json!(verdict.freshness.checked_at));
    if !clresolve_core::mutant!("projection-without-end") {
        say("fresh_until", json!(verdict.freshness.fresh_until));
    }
    if let Some(anchor) = &verdict.anchor {
        say("world", anchor.world.as_str().into());
        say("chain", anchor.chain.as_str().into());
        say("block", json!({"number": anchor.block.number, "hash": anchor.block.hash}));
        say("proof", json!(anchor.proof));
    }
    json!({
        "uri": EXTENSION,
        "description": "This agent's identity was proven on ENS by clresolve; ask it again after fresh_until.",
        "required": false,
        "params": without_null_members(params.into()),
    })
}

/// Removes nulls. Common A2A card parsers drop them, which would invalidate a signature over the card.
fn without_null_members(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let known = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(known.map(|(name, value)| (name, without_null_members(value))).collect())
        }
        other => other,
    }
}

/// A verb of the manifests as a skill.
fn verb_skill(verb: &str, binding: &str, verdict: &Verdict, identity: &AgentIdentity) -> Value {
    let class = identity.class.as_deref().unwrap_or_default();
    let layer = format!("protocol-{class}/");
    let manifests = verdict.profile.manifests.iter().map(|manifest| manifest.id.as_str());
    let manifests: Vec<&str> = manifests.filter(|id| id.starts_with(&layer)).collect();
    json!({
        "id": verb,
        "name": verb,
        "description": format!("The {class} verb {verb}; requests and receipts follow its schemas ({}).", manifests.join(", ")),
        "tags": [class, binding],
    })
}

/// The media types in the card, or else JSON.
fn declared_media_types(card: &AgentCard, pointer: &str) -> Vec<String> {
    let named = card.value_at(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_media_type =
        |text: &&str| text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
    let named: Vec<String> = named.iter().filter_map(Value::as_str).filter(is_media_type).map(str::to_owned).collect();
    if named.is_empty() { vec![JSON.to_owned()] } else { named }
}
