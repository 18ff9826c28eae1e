//! Verbs, class and schema locations against the manifests: CL-12 to CL-14, CL-16, CL-18, CL-56, CL-57, PC-1.
//!
//! A canonical location with another shape, verb or side is `schema-uri-not-canonical`. A canonical location with
//! another CID or release, or a mirror that is not the primary verb's schema, is `schema-manifest-mismatch`. Whether a
//! mirror on another host serves the schema is only checked at depth `schemas`. A location under a folder that is
//! forbidden for the class yields only `commercial-as-commons`.

use serde_json::Value;

use super::ReasonCollector;
use crate::card::AgentCard;
use crate::manifest::{BoundSchemaEntry, SchemaReleaseManifest, SchemaRole};
use crate::profile::{ClassRules, ConformanceProfile};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::{excerpt_text, nearest_word};
use clresolve_core::uri;
use clresolve_ipfs::{CidError, ContentId};

/// Number of verbs for which similar verbs are suggested: an honest card has a handful, and each is compared with
/// every verb of the manifest.
const MAX_SUGGESTIONS: usize = 8;

/// All findings on the card's verbs and schema locations. An unknown class is reported by [`super::card::check_card`]
/// only.
pub fn check_verbs(card: &AgentCard, profile: &ConformanceProfile) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    if let Some(layer) = card_class_rules(card, profile) {
        check_implemented_verbs(card, &layer, profile, &mut found);
        check_card_id_folder(card, &layer, &mut found);
        for side in SchemaRole::ALL {
            check_canonical_location(card, side, &layer, &mut found);
            check_mirror_location(card, side, &layer, &mut found);
        }
    }
    found.with_effects(profile)
}

/// Whether this step reports every text that the base schema rejects at `place`.
pub(super) fn reports_schema_rejection_at(card: &AgentCard, profile: &ConformanceProfile, place: &str) -> bool {
    let location =
        SchemaRole::ALL.into_iter().any(|side| place == side.schema_pointer() || place == side.mirror_pointer());
    location
        && card.text_at(place).is_some()
        && card_class_rules(card, profile)
            .is_some_and(|layer| bound_schema_entry(card, SchemaRole::Request, &layer).is_some())
}

fn card_class_rules<'p>(card: &AgentCard, profile: &'p ConformanceProfile) -> Option<ClassRules<'p>> {
    profile.class_rules(card.class()?)
}

/// The manifest's entry for the primary verb's schema; `None` for an unknown verb.
fn bound_schema_entry<'p>(card: &AgentCard, side: SchemaRole, layer: &ClassRules<'p>) -> Option<&'p BoundSchemaEntry> {
    Some(layer.manifest().verb(card.primary_verb()?)?.schema(side))
}

/// CL-12, CL-13, CL-56, PC-1.
fn check_implemented_verbs(
    card: &AgentCard,
    layer: &ClassRules<'_>,
    profile: &ConformanceProfile,
    found: &mut ReasonCollector,
) {
    let verbs = card.get("implements").and_then(Value::as_array);
    for (at, verb) in verbs.into_iter().flatten().enumerate() {
        if let Some(verb) = verb.as_str()
            && let Some(mut reason) = misnamed_verb_reason(verb, layer, profile)
        {
            if at < MAX_SUGGESTIONS && reason.code == ReasonCode::VerbUnknown {
                reason = with_suggested_verb(reason, verb, layer.manifest());
            }
            found.add(reason.observed(excerpt_text(verb)).at_place(format!("/implements/{at}")));
        }
    }
}

fn misnamed_verb_reason(verb: &str, layer: &ClassRules<'_>, profile: &ConformanceProfile) -> Option<Reason> {
    let manifest = layer.manifest();
    if manifest.verb(verb).is_some() {
        return None;
    }
    if profile.manifests().any(|other| other.verb(verb).is_some()) {
        return Some(Reason::new(layer.foreign_verb_code()).expected(verb_list(manifest)));
    }
    match manifest.verb_by_alias(verb) {
        Some(meant) => Some(Reason::new(ReasonCode::VerbAlias).expected(meant.name.as_str())),
        None => Some(Reason::new(ReasonCode::VerbUnknown).expected(verb_list(manifest))),
    }
}

/// Adds the most similar verb of the manifest to the reason, if there is one.
fn with_suggested_verb(reason: Reason, verb: &str, manifest: &SchemaReleaseManifest) -> Reason {
    match nearest_word(verb, manifest.verbs().iter().map(|known| known.name.as_str())) {
        Some(likely) => {
            let message = format!("{} Did you mean `{likely}`?", reason.message);
            reason.message(message)
        }
        None => reason,
    }
}

fn verb_list(manifest: &SchemaReleaseManifest) -> String {
    let names: Vec<_> = manifest.verbs().iter().map(|verb| verb.name.as_str()).collect();
    excerpt_text(&names.join(", "))
}

/// CL-74, CL-82: mirrors whose bytes are unproven because they are not fetched: on a host of their own, or without a
/// CID in the manifest. Placeholders and mirrors without an https URL are reported elsewhere.
pub fn unproven_mirrors(card: &AgentCard, profile: &ConformanceProfile) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    if let Some(layer) = card_class_rules(card, profile) {
        let mirrors = SchemaRole::ALL.into_iter().filter_map(|side| Some((side, card.schema_mirror_location(side)?)));
        for (side, location) in mirrors.filter(|(_, location)| is_https(location) && !has_placeholder_cid(location)) {
            let entry = bound_schema_entry(card, side, &layer);
            if let Some(entry) = entry.filter(|entry| is_on_unlisted_host(location, entry)) {
                let known = entry.mirrors.first().unwrap_or(&entry.canonical);
                let reason = Reason::new(ReasonCode::SchemaMirrorElsewhere).expected(excerpt_text(known));
                found.add(reason.observed(excerpt_text(location)).at_place(side.mirror_pointer()));
            } else if layer.manifest().directory_cid().is_none() {
                found.add(
                    unproven_mirror_reason(location, side).message("Only depth schemas verifies the mirror's bytes."),
                );
            }
        }
    }
    found.with_effects(profile)
}

/// CL-82: whether a mirror is an https URL without a CID, on a host that the manifest does not list for the schema.
/// Only its digest can prove what it serves.
fn is_on_unlisted_host(location: &str, entry: &BoundSchemaEntry) -> bool {
    let known = entry.mirrors.iter().chain([&entry.canonical, &entry.id]);
    let is_of_manifest = |host: &str| known.filter_map(|known| https_host(known)).any(|known| known == host);
    IpfsLocation::parse(location).is_none() && https_host(location).is_some_and(|host| !is_of_manifest(&host))
}

/// The lowercase host of an https URL, with its port unless that is 443 and without a trailing dot. `None` for a URL
/// with a user, a fragment or invalid characters.
fn https_host(location: &str) -> Option<String> {
    let rest = uri::strip_scheme(location, "https")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (name, port) = authority.split_once(':').unwrap_or((authority, ""));
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    let is_mark = |b: u8| matches!(b, b'!' | b'$'..=b'/' | b':' | b';' | b'=' | b'?' | b'@' | b'_' | b'~');
    let is_path = |b: u8| b.is_ascii_alphanumeric() || is_mark(b);
    let is_encoded = |rest: &str| rest.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    let is_uri = path.bytes().all(is_path) && path.split('%').skip(1).all(is_encoded);
    if !is_name || !port.bytes().all(|b| b.is_ascii_digit()) || !is_uri {
        return None;
    }
    let host = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    Some(match port.trim_start_matches('0') {
        "" | "443" => host,
        port => format!("{host}:{port}"),
    })
}

fn unproven_mirror_reason(location: &str, side: SchemaRole) -> Reason {
    Reason::new(ReasonCode::SchemaMirrorUnproven).observed(excerpt_text(location)).at_place(side.mirror_pointer())
}

/// Whether the location can be fetched without IPFS.
pub(super) fn is_https(location: &str) -> bool {
    uri::strip_scheme(location, "https").is_some()
}

/// Whether the card's `$id` is under a folder that is forbidden for its class.
pub(super) fn is_card_id_misplaced(card: &AgentCard, profile: &ConformanceProfile) -> bool {
    let layer = card_class_rules(card, profile);
    card.text_at("/$id").zip(layer).is_some_and(|(id, layer)| forbidden_folder_reason(id, &layer).is_some())
}

/// CL-57 for the card's own URL.
fn check_card_id_folder(card: &AgentCard, layer: &ClassRules<'_>, found: &mut ReasonCollector) {
    if let Some(id) = card.text_at("/$id")
        && let Some(reason) = forbidden_folder_reason(id, layer)
    {
        found.add(reason.at_place("/$id"));
    }
}

/// CL-57: whether `location` contains a path segment that is forbidden for the class.
fn forbidden_folder_reason(location: &str, layer: &ClassRules<'_>) -> Option<Reason> {
    let holds = |name: &str| location.split(['/', '?', '#']).any(|segment| segment == name);
    let under = layer.forbidden_segments().iter().find(|name| location.contains(name.as_str()) && holds(name))?;
    let expected = format!("not under /{under}/");
    Some(Reason::new(ReasonCode::CommercialAsCommons).expected(expected).observed(excerpt_text(location)))
}

/// CL-14, CL-16.
fn check_canonical_location(card: &AgentCard, side: SchemaRole, layer: &ClassRules<'_>, found: &mut ReasonCollector) {
    let Some(location) = card.schema_location(side) else {
        return;
    };
    let place = side.schema_pointer();
    if let Some(reason) = forbidden_folder_reason(location, layer) {
        return found.add(reason.at_place(place));
    }
    let Some(entry) = bound_schema_entry(card, side, layer) else {
        return;
    };
    let code = match compare_locations(location, &entry.canonical) {
        ManifestLocationMatch::Same => return,
        ManifestLocationMatch::OtherRelease => ReasonCode::SchemaManifestMismatch,
        ManifestLocationMatch::Other => ReasonCode::SchemaUriNotCanonical,
    };
    found.add(
        Reason::new(code).expected(excerpt_text(&entry.canonical)).observed(excerpt_text(location)).at_place(place),
    );
}

/// CL-16, CL-18, CL-74. A placeholder and a wrong path are separate defects.
fn check_mirror_location(card: &AgentCard, side: SchemaRole, layer: &ClassRules<'_>, found: &mut ReasonCollector) {
    let Some(location) = card.schema_mirror_location(side) else {
        return;
    };
    let place = side.mirror_pointer();
    if let Some(reason) = forbidden_folder_reason(location, layer) {
        return found.add(reason.at_place(place));
    }
    let Some(entry) = bound_schema_entry(card, side, layer) else {
        return;
    };
    let reason = |code| {
        let known = entry.mirrors.first().unwrap_or(&entry.canonical);
        Reason::new(code).expected(excerpt_text(known)).observed(excerpt_text(location)).at_place(place)
    };
    let ipfs = IpfsLocation::parse(location);
    if ipfs.as_ref().is_some_and(|ipfs| is_placeholder_cid(ipfs.root)) {
        found.add(reason(ReasonCode::SchemaMirrorPlaceholder).expected("a CID"));
    }
    if !matches_manifest(location, ipfs.as_ref(), entry, layer.manifest()) {
        if !is_on_unlisted_host(location, entry) {
            found.add(reason(ReasonCode::SchemaManifestMismatch));
        }
    } else if !is_https(location) {
        found.add(
            unproven_mirror_reason(location, side).message("A mirror must be an https URL.").expected("an https URL"),
        );
    }
}

/// Whether a mirror is a location in the manifest, or an IPFS location with the release's CID and the schema's path.
/// If the manifest has no CID, any CID is accepted. Placeholders are judged separately.
fn matches_manifest(
    location: &str,
    ipfs: Option<&IpfsLocation<'_>>,
    entry: &BoundSchemaEntry,
    manifest: &SchemaReleaseManifest,
) -> bool {
    let named =
        || entry.mirrors.iter().chain([&entry.canonical]).any(|known| uri::are_equivalent_uris(known, location));
    let proven = |ipfs: &IpfsLocation<'_>| {
        let root = match manifest.directory_cid() {
            Some(cid) => is_same_cid(ipfs.root, cid),
            None => is_cid(ipfs.root),
        };
        (root || is_placeholder_cid(ipfs.root)) && ipfs.path == path_in_release(entry, manifest)
    };
    named() || ipfs.is_some_and(proven)
}

/// The schema's path in the release's directory: `commons/clean/requests/clean.request.schema.json`.
fn path_in_release<'e>(entry: &'e BoundSchemaEntry, manifest: &SchemaReleaseManifest) -> &'e str {
    let mark = format!("/{}/", manifest.class());
    entry.path.find(&mark).map_or(entry.path.as_str(), |at| &entry.path[at + 1..])
}

/// How a location compares with the one in the manifest.
#[derive(Debug, PartialEq, Eq)]
enum ManifestLocationMatch {
    /// The same; CIDs are compared in binary.
    Same,
    /// The same except for the CID or the version segment.
    OtherRelease,
    /// Anything else.
    Other,
}

fn compare_locations(location: &str, known: &str) -> ManifestLocationMatch {
    if uri::are_equivalent_uris(location, known) {
        return ManifestLocationMatch::Same;
    }
    let mut likeness = ManifestLocationMatch::Same;
    let mut known_segments = known.split('/');
    let ipfs = known.starts_with("ipfs://");
    for (at, segment) in location.split('/').enumerate() {
        let Some(known) = known_segments.next() else {
            return ManifestLocationMatch::Other;
        };
        let root = ipfs && at == "ipfs://".matches('/').count();
        let is_same = if at == 0 { segment.eq_ignore_ascii_case(known) } else { segment == known };
        match is_same || root && is_same_cid(segment, known) {
            true => {}
            false if root && is_cid(segment) => likeness = ManifestLocationMatch::OtherRelease,
            false if !ipfs && is_version(segment) && is_version(known) => {
                likeness = ManifestLocationMatch::OtherRelease
            }
            false => return ManifestLocationMatch::Other,
        }
    }
    if known_segments.next().is_some() { ManifestLocationMatch::Other } else { likeness }
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|version| {
        !version.is_empty() && version.split('.').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// A location on IPFS: the segment in the position of the CID, and the path below it.
struct IpfsLocation<'l> {
    root: &'l str,
    path: &'l str,
}

impl<'l> IpfsLocation<'l> {
    /// Splits `ipfs://CID/path` and `https://host/ipfs/CID/path`; `None` for anything else.
    fn parse(location: &'l str) -> Option<Self> {
        let below = match uri::strip_scheme(location, "ipfs") {
            Some(rest) => rest,
            None => {
                let (host, rest) = uri::strip_scheme(location, "https")?.split_once('/')?;
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.' || b == b':';
                rest.strip_prefix("ipfs/").filter(|_| !host.is_empty() && host.bytes().all(plain))?
            }
        };
        let (root, path) = below.split_once('/').unwrap_or((below, ""));
        Some(Self { root, path })
    }
}

/// Whether a mirror contains a placeholder instead of a CID, so that there is nothing to fetch.
pub fn has_placeholder_cid(mirror: &str) -> bool {
    IpfsLocation::parse(mirror).is_some_and(|ipfs| is_placeholder_cid(ipfs.root))
}

/// Whether `text` is a placeholder for a CID, such as `COMMERCIAL_SCHEMAS_CID`, `<cid>`, `TODO` or `...`. A mistyped
/// CID is not a placeholder.
fn is_placeholder_cid(text: &str) -> bool {
    const WORDS: [&str; 6] = ["cid", "todo", "tbd", "placeholder", "xxx", "pending"];
    let lower = text.to_ascii_lowercase();
    let odd = text.bytes().any(|b| !b.is_ascii_alphanumeric());
    !is_cid(text) && (odd || text.is_empty() || WORDS.iter().any(|word| lower.contains(word)))
}

/// Whether `text` is a CID, including one with a forbidden hash function.
fn is_cid(text: &str) -> bool {
    !matches!(ContentId::parse(text), Err(CidError::Malformed(_)))
}

/// Whether two texts are the same CID in binary, after conversion of version 0 to version 1.
pub(super) fn is_same_cid(a: &str, b: &str) -> bool {
    a == b || matches!((ContentId::parse(a), ContentId::parse(b)), (Ok(a), Ok(b)) if a == b)
}

/// The root and path of an IPFS location, for the step `schemas`.
pub(super) fn split_ipfs_location(location: &str) -> Option<(&str, &str)> {
    IpfsLocation::parse(location).map(|ipfs| (ipfs.root, ipfs.path))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sample::{distinct_codes, good_card, good_commercial_card, judge_document, judge_document_under};

    const CID: &str = "bafybeigvf6nkzws7dblos74dqqjkguwkrwn4a2c27ieygoxmgofyzdkz6m";
    const CID_BASE16: &str = "f01701220d52f9aacda5f1856e97f838412a352ca8d9bc0685afa09833aec338b8c8d59f3";
    const OTHER: &str = "bafybeigypvbe4bd2skluhkdbetltfvrfm3urfiz5lshsfa57kz6pafw6le";

    fn with(mut document: Value, pointer: &str, value: impl Into<Value>) -> Vec<&'static str> {
        let (holder, member) = pointer.rsplit_once('/').expect("a pointer");
        document.pointer_mut(holder).expect("a holder")[member] = value.into();
        let found = distinct_codes(&judge_document(&document, check_verbs));
        let as_document = distinct_codes(&judge_document(&document, crate::check::card::check_card));
        assert!(as_document.is_empty(), "{as_document:?} beside {found:?}");
        found
    }

    fn commons(pointer: &str, value: impl Into<Value>) -> Vec<&'static str> {
        with(good_card(), pointer, value)
    }

    fn commercial(pointer: &str, value: impl Into<Value>) -> Vec<&'static str> {
        let mut document = good_commercial_card();
        document["schemas_mirror"] = json!({});
        with(document, pointer, value)
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn good_cards_of_both_classes_pass() {
        for document in [good_card(), good_commercial_card()] {
            assert_eq!(judge_document(&document, check_verbs), []);
            assert_eq!(judge_document(&document, crate::check::card::check_card), []);
            assert_eq!(judge_document(&document, crate::check::entry::check_entry), []);
        }
    }

    #[test]
    fn verbs_are_told_apart() {
        let second = |verb: &str| commons("/implements", json!(["summarize", verb]));
        assert_eq!(second("clean"), NONE);
        assert_eq!(second("translate"), ["verb-unknown"]);
        assert_eq!(second(""), ["verb-unknown"]);
        assert_eq!(second("Clean"), ["verb-alias"]);
        assert_eq!(second("analyse"), ["verb-alias"]);
        assert_eq!(second("purchase"), ["commons-verb-foreign"]);
        let in_commercial = |verb: &str| commercial("/implements", json!(["purchase", verb]));
        assert_eq!(in_commercial("verify"), NONE);
        assert_eq!(in_commercial("clean"), ["verb-unknown"]);
        assert_eq!(in_commercial("Verify"), ["verb-alias"]);
    }

    #[test]
    fn the_verb_that_was_probably_meant_is_named_for_the_first_ones() {
        let mut document = good_card();
        document["implements"] = json!(["sumarize", "translate"]);
        let messages: Vec<_> =
            judge_document(&document, check_verbs).into_iter().map(|reason| reason.message).collect();
        let title = ReasonCode::VerbUnknown.entry().title;
        assert_eq!(messages, [format!("{title} Did you mean `summarize`?"), title.to_owned()]);
        document["implements"] = json!(vec!["sumarize"; MAX_SUGGESTIONS + 1]);
        let named = judge_document(&document, check_verbs).into_iter().filter(|reason| reason.message != title).count();
        assert_eq!(named, MAX_SUGGESTIONS);
    }

    #[test]
    fn an_unknown_primary_verb_gives_one_code() {
        assert_eq!(commons("/implements", json!(["translate"])), ["verb-unknown"]);
        assert_eq!(commons("/implements", json!(["Summarize"])), ["verb-alias"]);
        assert_eq!(commons("/implements", json!(["purchase"])), ["commons-verb-foreign"]);
    }

    #[test]
    fn canonical_locations() {
        let location = |cid: &str, rest: &str| format!("ipfs://{cid}/commons/{rest}");
        let good = "summarize/requests/summarize.request.schema.json";
        let set = |value: String| commons("/schemas/request", value);
        assert_eq!(set(location(CID, good)), NONE);
        assert_eq!(set(location(CID_BASE16, good)), NONE);
        assert_eq!(set(location(OTHER, good)), ["schema-manifest-mismatch"]);
        for rest in [
            "clean/requests/clean.request.schema.json",
            "summarize/receipts/summarize.receipt.schema.json",
            "summarize/requests/summarize.request.schema.json/",
            "summarize/requests/summarize.request.schema.json?x",
            "summarize",
        ] {
            assert_eq!(set(location(CID, rest)), ["schema-uri-not-canonical"], "{rest}");
        }
        assert_eq!(set(location("COMMONS_CID", good)), ["schema-uri-not-canonical"]);
        let mirror = format!("https://commandlayer.org/schemas/v1.0.0/commons/{good}");
        assert_eq!(set(mirror), ["schema-uri-not-canonical"]);
        assert_eq!(set("no uri at all".into()), ["schema-uri-not-canonical"]);
    }

    #[test]
    fn canonical_locations_of_the_commercial_layer() {
        let location = |version: &str, rest: &str| format!("https://commandlayer.org/schemas/{version}/{rest}");
        let good = "commercial/purchase/requests/purchase.request.schema.json";
        let set = |value: String| commercial("/schemas/request", value);
        assert_eq!(set(location("v1.0.0", good)), NONE);
        assert_eq!(set(location("v1.1.0", good)), ["schema-manifest-mismatch"]);
        assert_eq!(set(location("latest", good)), ["schema-uri-not-canonical"]);
        assert_eq!(
            set(location("v1.0.0", "commons/clean/requests/clean.request.schema.json")),
            ["commercial-as-commons"]
        );
        assert_eq!(set(format!("https://evil.example/schemas/v1.0.0/{good}")), ["schema-uri-not-canonical"]);
    }

    #[test]
    fn mirrors_of_commons_schemas() {
        let good = "commons/summarize/requests/summarize.request.schema.json";
        let set = |value: String| commons("/schemas_mirror/request", value);
        assert_eq!(set(format!("https://ipfs.io/ipfs/{CID}/{good}")), NONE);
        assert_eq!(set(format!("https://ipfs.io/ipfs/{CID_BASE16}/{good}")), NONE);
        assert_eq!(set(format!("ipfs://{CID_BASE16}/{good}")), ["schema-mirror-unproven"]);
        assert_eq!(set(format!("https://ipfs.io/ipfs/{OTHER}/{good}")), ["schema-manifest-mismatch"]);
        assert_eq!(set(format!("https://ipfs.io/ipfs/{}/{good}", &CID[..58])), ["schema-manifest-mismatch"]);
        assert_eq!(set(format!("HTTPS://ipfs.io/ipfs/{CID}/{good}")), NONE);
        assert_eq!(set(format!("HTTPS://CommandLayer.org/schemas/v1.0.0/{good}")), NONE);
        assert_eq!(set(format!("IPFS://{CID}/{good}")), ["schema-mirror-unproven"]);
        let other = "commons/clean/requests/clean.request.schema.json";
        assert_eq!(set(format!("https://commandlayer.org/schemas/v1.0.0/{other}")), ["schema-manifest-mismatch"]);
        assert_eq!(set("no uri at all".into()), ["schema-manifest-mismatch"]);
        assert_eq!(set(format!("https://ipfs.io/ipfs/<cid-schemas>/{good}")), ["schema-mirror-placeholder"]);
    }

    #[test]
    fn mirror_on_a_host_of_its_own_is_shown_by_its_digest() {
        let with = |mut document: Value, mirror: &str| {
            document["schemas_mirror"] = json!({"request": mirror});
            (
                distinct_codes(&judge_document(&document, check_verbs)),
                distinct_codes(&judge_document(&document, unproven_mirrors)),
            )
        };
        let elsewhere = (vec![], vec!["schema-mirror-elsewhere"]);
        let mirrors =
            ["https://mirror.example/any/path.json", "https://mirror.example:8443", "HTTPS://m.example/a%20b?c=d"];
        for mirror in mirrors {
            assert_eq!(with(good_card(), mirror), elsewhere, "{mirror}");
            assert_eq!(with(good_commercial_card(), mirror), elsewhere, "{mirror}");
        }
        let mismatch = vec!["schema-manifest-mismatch"];
        for mirror in [
            "http://mirror.example/any/path.json",
            "https://commandlayer.org/any/path.json",
            "https://COMMANDLAYER.org/any/path.json",
            "https://user@mirror.example/any/path.json",
            "https://mirror.example/a b",
            "https://mirror.example/%zz",
            "https:///any/path.json",
            &format!("https://mirror.example/ipfs/{OTHER}/commons/clean.json"),
        ] {
            assert_eq!(with(good_card(), mirror).0, mismatch, "{mirror}");
        }
    }

    #[test]
    fn a_mirror_is_unproven_where_the_manifest_knows_no_cid() {
        let mirror = |root: &str| {
            format!("https://ipfs.io/ipfs/{root}/commercial/purchase/requests/purchase.request.schema.json")
        };
        let places = |document: &Value| -> Vec<_> {
            judge_document(document, unproven_mirrors).into_iter().filter_map(|reason| reason.place).collect()
        };
        let mut document = good_commercial_card();
        assert_eq!(places(&document), NONE);
        document["schemas_mirror"] = json!({"request": mirror(OTHER)});
        assert_eq!(places(&document), ["/schemas_mirror/request"]);
        assert_eq!(judge_document(&document, check_verbs), [], "at depth schemas the mirror is asked");
        document["schemas_mirror"] = json!({"request": mirror("COMMERCIAL_SCHEMAS_CID")});
        assert_eq!(places(&document), NONE);
        assert_eq!(places(&good_card()), NONE);
    }

    #[test]
    fn placeholders_in_mirrors() {
        let mirror = |root: &str, verb: &str| {
            format!("https://ipfs.io/ipfs/{root}/commercial/{verb}/requests/{verb}.request.schema.json")
        };
        let set = |value: String| commercial("/schemas_mirror/request", value);
        assert_eq!(set(mirror(OTHER, "purchase")), NONE);
        assert_eq!(set(mirror("COMMERCIAL_SCHEMAS_CID", "purchase")), ["schema-mirror-placeholder"]);
        assert_eq!(set(mirror("TODO", "purchase")), ["schema-mirror-placeholder"]);
        let both = ["schema-manifest-mismatch", "schema-mirror-placeholder"];
        assert_eq!(set(mirror("COMMERCIAL_SCHEMAS_CID", "ship")), both);
        let mut document = good_commercial_card();
        document["schemas_mirror"] = json!({"request": mirror("COMMERCIAL_SCHEMAS_CID", "purchase")});
        let reasons = judge_document_under("agent-cards/1.0.0+released", &document, check_verbs);
        assert_eq!(reasons.len(), 1);
        assert_eq!(reasons[0].effect, clresolve_core::reason::ReasonEffect::Warn);
    }

    #[test]
    fn a_commercial_card_does_not_sit_under_commons() {
        let id = "https://commandlayer.org/agent-cards/agents/v1.0.0/commons/purchaseagent.eth.json";
        assert_eq!(commercial("/$id", id), ["commercial-as-commons"]);
        let mut document = good_card();
        document["class"] = json!("commercial");
        assert_eq!(distinct_codes(&judge_document(&document, check_verbs)), ["commercial-as-commons", "verb-unknown"]);
    }

    #[test]
    fn without_a_known_class_nothing_is_judged() {
        let mut document = good_card();
        document["class"] = json!("free");
        document["schemas"]["request"] = json!("no uri");
        assert_eq!(judge_document(&document, check_verbs), []);
        assert_eq!(
            distinct_codes(&judge_document(&document, crate::check::card::check_card)),
            ["card-schema-invalid", "class-unknown"]
        );
    }
}
