//! The card as a document: CL-1 to CL-10, CL-23 to CL-28 and CL-31 to CL-34.
//!
//! Where a rule with a code of its own and the base schema object to the same member, the rule's code stands alone;
//! `card-schema-invalid` is for all else.

use jiff::Timestamp;
use serde_json::Value;

use super::{Findings, content, entry, verbs};
use crate::card::Card;
use crate::profile::Profile;
use crate::schema::Violation;
use clresolve_core::json::kind;
use clresolve_core::reason::{Code, Reason};
use clresolve_core::text::excerpt;

/// Longest licence expression that is parsed, in bytes; a longer one is a text, not an expression.
const MAX_LICENCE_BYTES: usize = 256;

/// Everything that is wrong with the card as a document.
pub fn card(card: &Card, profile: &Profile) -> Vec<Reason> {
    let mut found = Findings::default();
    members(card, profile, &mut found);
    identity(card, &mut found);
    class(card, profile, &mut found);
    status(card, profile, &mut found);
    implements(card, &mut found);
    networks(card, &mut found);
    licence(card, &mut found);
    timestamps(card, &mut found);
    schema(card, profile, &mut found);
    content::scan(card, &mut found);
    found.weighed(profile)
}

/// CL-3, CL-4: required members are there, and no required text is blank. A member inside one that is itself missing,
/// or of another type, is not reported beside it.
fn members(card: &Card, profile: &Profile, found: &mut Findings) {
    for member in profile.members() {
        let holder = member.rsplit_once('/').map_or("", |(holder, _)| holder);
        if !card.at(holder).is_some_and(Value::is_object) {
            continue;
        }
        match card.at(member) {
            None => found.add(Reason::new(Code::CardFieldMissing).at(member)),
            Some(Value::String(text)) if text.trim().is_empty() => {
                found.add(Reason::new(Code::CardFieldEmpty).at(member));
            }
            Some(_) => {}
        }
    }
}

/// CL-5, CL-6, CL-7.
fn identity(card: &Card, found: &mut Findings) {
    if let (Some(id), Some(ens)) = (card.id(), card.ens())
        && id != ens
    {
        found.add(differs(Code::IdDiffersFromEns, "/id", ens, id));
    }
    if let Some(slug) = card.text("/slug")
        && !is_url_safe(slug)
    {
        found.add(observed(Code::SlugNotUrlSafe, "/slug", slug));
    }
    if let Some(version) = card.version()
        && semver::Version::parse(version).is_err()
    {
        found.add(observed(Code::CardVersionNotSemver, "/version", version));
    }
}

/// CL-6: whether a slug holds lower-case characters that no URL has to escape.
pub fn is_url_safe(slug: &str) -> bool {
    slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._~".contains(&b))
}

/// CL-8.
fn class(card: &Card, profile: &Profile, found: &mut Findings) {
    if let Some(class) = card.class()
        && profile.layer(class).is_none()
    {
        let known: Vec<_> = profile.classes().collect();
        found.add(differs(Code::ClassUnknown, "/class", &known.join(" or "), class));
    }
}

/// CL-9. A word of withdrawal counts in any case: what is meant as one must not pass for an unknown word.
fn status(card: &Card, profile: &Profile, found: &mut Findings) {
    let Some(status) = card.status() else { return };
    let among = |words: &[String]| words.iter().any(|word| word == status);
    let words = profile.status();
    if among(&words.revoked) {
        found.add(observed(Code::StatusRevoked, "/status", status));
    } else if words.withdrawn.iter().any(|word| word.eq_ignore_ascii_case(status)) {
        found.add(observed(Code::StatusWithdrawn, "/status", status));
    } else if among(&words.deprecated) {
        found.add(observed(Code::StatusDeprecated, "/status", status));
    } else if !among(&words.known) {
        found.add(differs(Code::StatusUnknown, "/status", &words.known.join(", "), status));
    }
}

/// CL-10.
fn implements(card: &Card, found: &mut Findings) {
    let Some(verbs) = card.get("implements").and_then(Value::as_array) else {
        return;
    };
    let odd = verbs.iter().find(|verb| !verb.is_string());
    let seen = match odd {
        Some(odd) => kind(odd),
        None if verbs.is_empty() => "an empty list",
        None => return,
    };
    found.add(differs(Code::ImplementsEmpty, "/implements", "at least one string", seen));
}

/// CL-24, CL-25. The base schema reports an entry that is not a string.
fn networks(card: &Card, found: &mut Findings) {
    let Some(networks) = card.get("networks").and_then(Value::as_array) else {
        return;
    };
    if networks.is_empty() {
        found.add(Reason::new(Code::NetworksEmpty).at("/networks"));
    }
    for (at, network) in networks.iter().enumerate() {
        if let Some(network) = network.as_str()
            && !is_caip2(network)
            && !found.full(Code::NetworkNotCaip2)
        {
            found.add(observed(Code::NetworkNotCaip2, &format!("/networks/{at}"), network));
        }
    }
}

/// Whether this is a CAIP-2 identifier: `namespace:reference`.
pub fn is_caip2(text: &str) -> bool {
    let Some((namespace, reference)) = text.split_once(':') else {
        return false;
    };
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let any = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (3..=8).contains(&namespace.len())
        && namespace.bytes().all(lower)
        && (1..=32).contains(&reference.len())
        && reference.bytes().all(any)
}

/// CL-26: an SPDX expression (`LicenseRef-` included, deprecated identifiers too), or the https address of the text.
fn licence(card: &Card, found: &mut Findings) {
    if let Some(licence) = card.text("/license")
        && !is_spdx(licence)
        && !is_licence_url(licence)
    {
        found.add(observed(Code::LicenseUnrecognized, "/license", licence));
    }
}

fn is_spdx(text: &str) -> bool {
    let mode = spdx::ParseMode { allow_deprecated: true, ..spdx::ParseMode::STRICT };
    text.len() <= MAX_LICENCE_BYTES && spdx::Expression::parse_mode(text, mode).is_ok()
}

fn is_licence_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| url.scheme() == "https" && url.path().len() > 1)
}

/// CL-27, CL-28.
fn timestamps(card: &Card, found: &mut Findings) {
    let [created, updated] = ["/created_at", "/updated_at"].map(|place| {
        let text = card.text(place)?;
        let instant = instant(text);
        if instant.is_none() {
            found.add(observed(Code::TimestampMalformed, place, text));
        }
        instant.map(|instant| (instant, text))
    });
    if let (Some((created, since)), Some((updated, text))) = (created, updated)
        && updated < created
    {
        found.add(differs(Code::TimestampsReversed, "/updated_at", &format!("not before {since}"), text));
    }
}

/// An RFC 3339 date-time. A leap second counts as the second before it, and digits below the nanosecond are dropped.
fn instant(text: &str) -> Option<Timestamp> {
    const SECONDS: usize = "2025-11-22T00:00:00".len();
    let shape = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(b, s)| if s == b'0' { b.is_ascii_digit() } else { b == s })
    };
    let normal = text.to_ascii_uppercase();
    let (seconds, rest) = normal.split_at_checked(SECONDS)?;
    let zone_at = rest.find(['Z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone_at);
    let fraction_fits = match fraction.strip_prefix('.') {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()),
        None => fraction.is_empty(),
    };
    let zone_fits =
        zone == "Z" || (shape(&zone.replace('-', "+"), "+00:00") && zone[1..3] < *"24" && zone[4..6] < *"60");
    if !shape(seconds, "0000-00-00T00:00:00") || !fraction_fits || !zone_fits {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(".123456789".len())];
    format!("{seconds}{fraction}{zone}").parse().ok()
}

/// CL-1, CL-23: what the base schema objects to and no rule has a code for.
fn schema(card: &Card, profile: &Profile, found: &mut Findings) {
    for violation in profile.base_schema().every_violation(card.document()) {
        if found.full(Code::CardSchemaInvalid) {
            break;
        }
        if !has_own_code(&violation, card, profile, found) {
            let reason =
                Reason::new(Code::CardSchemaInvalid).observed(violation.detail).at(excerpt(&violation.pointer));
            let free = ["/capabilities", "/meta"].contains(&violation.pointer.as_str());
            found.add(if free { reason.requirement("CL-23") } else { reason });
        }
    }
}

/// Whether a rule with a code of its own speaks for this violation: one of this file that has objected to the member
/// or to what holds it, or one of the steps entry and verbs, which object to every text that the schema refuses there.
fn has_own_code(violation: &Violation, card: &Card, profile: &Profile, found: &Findings) -> bool {
    let place = violation.pointer.as_str();
    found.speak_of(place, Code::CardSchemaInvalid) || entry::judges(card, place) || verbs::judges(card, profile, place)
}

fn observed(code: Code, place: &str, text: &str) -> Reason {
    Reason::new(code).observed(excerpt(text)).at(place)
}

fn differs(code: Code, place: &str, expected: &str, text: &str) -> Reason {
    observed(code, place, text).expected(excerpt(expected))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::{codes, good, judged};

    /// The codes that `card` gives for the good card with `value` at a top-level member.
    fn with(member: &str, value: Value) -> Vec<&'static str> {
        let mut document = good();
        document[member] = value;
        codes(&judged(&document, card))
    }

    fn without(member: &str) -> Vec<&'static str> {
        let mut document = good();
        document.as_object_mut().expect("a card").remove(member);
        codes(&judged(&document, card))
    }

    #[test]
    fn a_good_card_gives_no_reason() {
        assert_eq!(judged(&good(), card), []);
    }

    #[test]
    fn each_missing_member_gives_one_code() {
        for member in good().as_object().expect("a card").keys() {
            let optional = ["$schema", "$id", "schemas_mirror", "capabilities", "meta"].contains(&member.as_str());
            let expected: &[&str] = if optional { &[] } else { &["card-field-missing"] };
            assert_eq!(without(member), expected, "{member}");
        }
    }

    #[test]
    fn each_blank_text_gives_one_code() {
        for (member, value) in good().as_object().expect("a card") {
            if value.is_string() && !member.starts_with('$') {
                assert_eq!(with(member, json!("")), ["card-field-empty"], "{member}");
                assert_eq!(with(member, json!(" \t")), ["card-field-empty"], "{member}");
            }
        }
    }

    #[test]
    fn each_wrong_type_is_the_schema_s_matter() {
        for member in good().as_object().expect("a card").keys() {
            for value in [json!(7), json!(null), json!(true)] {
                assert_eq!(with(member, value), ["card-schema-invalid"], "{member}");
            }
        }
    }

    #[test]
    fn members_of_schemas_are_required_too() {
        let mut document = good();
        document["schemas"].as_object_mut().expect("an object").remove("receipt");
        let reasons = judged(&document, card);
        assert_eq!(codes(&reasons), ["card-field-missing"]);
        assert_eq!(reasons[0].place.as_deref(), Some("/schemas/receipt"));
        assert_eq!(with("schemas", json!({"request": "", "receipt": 5})), ["card-field-empty", "card-schema-invalid"]);
    }

    #[test]
    fn rules_with_their_own_code_speak_alone() {
        for (member, value, code) in [
            ("id", json!("other.eth"), "id-differs-from-ens"),
            ("slug", json!("Summarize Agent"), "slug-not-url-safe"),
            ("version", json!("v1"), "card-version-not-semver"),
            ("version", json!("1.0"), "card-version-not-semver"),
            ("class", json!("Commons"), "class-unknown"),
            ("class", json!("free"), "class-unknown"),
            ("status", json!("sleeping"), "status-unknown"),
            ("status", json!("deprecated"), "status-deprecated"),
            ("status", json!("revoked"), "status-withdrawn"),
            ("status", json!("Compromised"), "status-withdrawn"),
            ("implements", json!([]), "implements-empty"),
            ("implements", json!(["summarize", 5]), "implements-empty"),
            ("networks", json!([]), "networks-empty"),
            ("networks", json!(["mainnet"]), "network-not-caip2"),
            ("networks", json!(["eip155:1", ""]), "network-not-caip2"),
            ("networks", json!(["eip155:1", 5]), "card-schema-invalid"),
            ("license", json!("Proprietary"), "license-unrecognized"),
            ("created_at", json!("2025-11-22"), "timestamp-malformed"),
            ("updated_at", json!("2025-11-21T23:59:59Z"), "timestamps-reversed"),
            ("updated_at", json!("2025-11-22T00:30:00+01:00"), "timestamps-reversed"),
            ("extra", json!(1), "card-schema-invalid"),
            ("$id", json!("no uri"), "card-schema-invalid"),
        ] {
            assert_eq!(with(member, value.clone()), [code], "{member}: {value}");
        }
    }

    #[test]
    fn values_at_the_edge_of_what_is_allowed_pass() {
        for (member, value) in [
            ("version", json!("1.0.0-rc.1+build.5")),
            ("status", json!("active")),
            (
                "networks",
                json!([
                    "eip155:1",
                    "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
                    "bip122:000000000019d6689c085ae165831e93"
                ]),
            ),
            ("license", json!("MIT OR Apache-2.0")),
            ("license", json!("LicenseRef-CommandLayer-1")),
            ("license", json!("GPL-2.0")),
            ("license", json!("https://commandlayer.org/licence.txt")),
            ("updated_at", json!("2025-11-22T01:00:00+01:00")),
            ("updated_at", json!("2025-11-22t00:00:00.0000000000001z")),
            ("updated_at", json!("2026-12-31T23:59:60Z")),
        ] {
            assert_eq!(with(member, value.clone()), [""; 0], "{member}: {value}");
        }
    }

    #[test]
    fn instants_follow_rfc_3339() {
        for text in ["2025-11-22T00:00:00Z", "2025-11-22T00:00:00.5-23:59", "2024-02-29T12:00:00+00:00"] {
            assert!(instant(text).is_some(), "{text}");
        }
        for text in [
            "2025-11-22T00:00Z",
            "2025-11-22 00:00:00Z",
            "2025-11-22T00:00:00",
            "2025-02-29T00:00:00Z",
            "2025-11-22T24:00:00Z",
            "2025-11-22T00:00:00+24:00",
            "2025-11-22T00:00:00+0100",
            "2025-11-22T00:00:00.Z",
            "2025-11-22T00:00:00Z[UTC]",
            "20251122T000000Z",
            "２025-11-22T00:00:00Z",
            "",
        ] {
            assert!(instant(text).is_none(), "{text}");
        }
    }

    #[test]
    fn capabilities_and_meta_are_named_by_their_requirement() {
        let mut document = good();
        document["meta"] = json!("free text");
        let reasons = judged(&document, card);
        assert_eq!(reasons[0].requirement.as_deref(), Some("CL-23"));
    }

    #[test]
    fn a_card_with_many_defects_gives_them_all_but_not_without_end() {
        let mut document = good();
        for at in 0..1000 {
            document[format!("extra{at}")] = json!(at);
        }
        document["class"] = json!("x");
        document["networks"] = Value::Array(vec![json!("x"); 1000]);
        let reasons = judged(&document, card);
        assert_eq!(codes(&reasons), ["card-schema-invalid", "class-unknown", "network-not-caip2"]);
        assert!(reasons.len() <= 3 * crate::check::MAX_REASONS_PER_CODE);
    }
}
