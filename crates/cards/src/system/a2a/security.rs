//! Security schemes and requirements of an A2A card. The schemas define their types. This module checks the rest.

use serde_json::{Map, Value};

use crate::signature::message::{A2aProtobufField, A2aProtobufFieldType, OAUTH_FLOWS, SECURITY_SCHEME};
use clresolve_core::json::pointer;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::ReasonCollector;

/// A member of a 1.0 scheme that has another name in 0.3: the new name and the old one.
const RENAMED: (&str, &str) = ("location", "in");

/// Checks the schemes of a 1.0 card. Each must have exactly one of five members, and an OAuth scheme at most one flow.
pub(super) fn check_security_schemes(card: &AgentCard, found: &mut ReasonCollector) {
    for (name, scheme) in card.get("securitySchemes").and_then(Value::as_object).into_iter().flatten() {
        let Some(members) = scheme.as_object() else { continue };
        let mut place = "/securitySchemes".to_owned();
        pointer::push_pointer_segment(&mut place, name);
        let place = excerpt_text(&place);
        let is_misnamed = report_misnamed(members, SECURITY_SCHEME, &place, found);
        let kinds = check_at_most_one(members, SECURITY_SCHEME, &place, found);
        if kinds == 0 && !is_misnamed {
            found.add(
                missing_scheme_reason(members.get("type"))
                    .expected(joined_member_names(SECURITY_SCHEME))
                    .at_place(place.clone()),
            );
        }
        if let Some(flows) = scheme.pointer("/oauth2SecurityScheme/flows").and_then(Value::as_object) {
            check_at_most_one(flows, OAUTH_FLOWS, &format!("{place}/oauth2SecurityScheme/flows"), found);
        }
    }
}

/// The finding for a scheme without any of the five members. In 0.3, the kind is in `type`.
fn missing_scheme_reason(older_kind: Option<&Value>) -> Reason {
    match older_kind {
        Some(kind) => Reason::new(ReasonCode::A2aSecurityMisnamed)
            .message("A security scheme of the A2A 1.0 card has the form of 0.3.")
            .observed(format!("type {}", excerpt_text(&kind.to_string()))),
        None => {
            Reason::new(ReasonCode::A2aFieldMissing).message("A security scheme of the A2A 1.0 card is of no kind.")
        }
    }
}

/// Counts the members of a oneof that are present. More than one is a finding.
fn check_at_most_one(
    members: &Map<String, Value>,
    one_of: &[A2aProtobufField],
    place: &str,
    found: &mut ReasonCollector,
) -> usize {
    let kinds: Vec<&str> = one_of.iter().map(|kind| kind.name).filter(|kind| members.contains_key(*kind)).collect();
    if kinds.len() > 1 {
        let reason = Reason::new(ReasonCode::A2aSecurityMisnamed)
            .message("A part of the A2A 1.0 card has several members of which the message definition allows one.");
        found.add(reason.expected(joined_member_names(one_of)).observed(kinds.join(", ")).at_place(place));
    }
    kinds.len()
}

fn joined_member_names(one_of: &[A2aProtobufField]) -> String {
    format!("one of {}", one_of.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", "))
}

/// Reports members with the name from the message definition or from 0.3, if the correct one is missing. Messages do
/// not contain themselves, so the recursion ends.
fn report_misnamed(
    members: &Map<String, Value>,
    message: &'static [A2aProtobufField],
    place: &str,
    found: &mut ReasonCollector,
) -> bool {
    let mut is_misnamed = false;
    for member in message {
        if let Some(value) = members.get(member.name) {
            if let (A2aProtobufFieldType::Message(inner), Some(members)) = (member.kind, value.as_object()) {
                report_misnamed(members, inner, &format!("{place}/{}", member.name), found);
            }
            continue;
        }
        let (new, old) = RENAMED;
        let other = if member.name == new { old.to_owned() } else { member.snake_case() };
        if other != member.name && members.contains_key(&other) {
            is_misnamed = true;
            let reason = Reason::new(ReasonCode::A2aSecurityMisnamed).expected(member.name).observed(other.as_str());
            found.add(reason.at_place(format!("{place}/{other}")));
        }
    }
    is_misnamed
}

/// Checks that each scheme in a requirement is declared.
pub(super) fn check_security_requirements(card: &AgentCard, is_of_1_0: bool, found: &mut ReasonCollector) {
    let member = if is_of_1_0 { "securityRequirements" } else { "security" };
    let declared = card.get("securitySchemes").and_then(Value::as_object);
    let mut judge = |list: Option<&Value>, place: &str| {
        for (at, requirement) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let Some(members) = requirement.as_object() else { continue };
            let place = format!("{place}/{at}");
            // The JSON form of protocol buffers nests the schemes one level deeper.
            let schemes = members.get("schemes").filter(|_| is_of_1_0);
            let named = schemes.and_then(Value::as_object).unwrap_or(members);
            if is_of_1_0 && named.is_empty() {
                let reason = Reason::new(ReasonCode::A2aFieldMissing)
                    .message("A security requirement of the A2A 1.0 card names no scheme: it asks for nothing.");
                found.add(reason.expected("names of securitySchemes").at_place(format!("{place}/schemes")));
            } else if is_of_1_0 && schemes.is_none() {
                let reason = Reason::new(ReasonCode::A2aSecurityMisnamed)
                    .message("A security requirement has the form of 0.3: a reader of A2A 1.0 sees an empty one.");
                found.add(reason.expected("schemes").at_place(place.clone()));
            }
            for scheme in named.keys() {
                if !declared.is_some_and(|declared| declared.contains_key(scheme)) {
                    let reason = Reason::new(ReasonCode::A2aSecurityUnknown).expected("a name of securitySchemes");
                    found.add(reason.observed(excerpt_text(scheme)).at_place(place.clone()));
                }
            }
        }
    };
    judge(card.get(member), &format!("/{member}"));
    for (at, skill) in card.items("skills").enumerate() {
        judge(skill.get(member), &format!("/skills/{at}/{member}"));
    }
}
