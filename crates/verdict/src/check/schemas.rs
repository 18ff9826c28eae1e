//! The bytes of the bound schemas, and the text records of the schema binding; depth `schemas` only. CL-11, CL-15,
//! CL-17, CL-2, PC-2 to PC-5, PC-9.
//!
//! If several rows of the checklist apply, one defect has one code:
//!
//! | content of the canonical location | code |
//! |---|---|
//! | the bytes that the manifest pins | none |
//! | those bytes with other line ends | `schema-checksum-mismatch`, with the note `checksum-line-endings` |
//! | a schema, pinned or not, whose `$id` is not the URL of its path | `schema-id-mismatch` |
//! | other bytes with the same `$id`, or no JSON | `published-version-mutated` |
//! | nothing, and no pinned bytes at the mirror either | `schema-unavailable` |
//!
//! If the manifest pins no bytes, nothing can be proven, and only `schema-unpinned` is reported.
//!
//! A mirror is first compared with the pinned bytes, so that it is not blamed for a changed canonical location. A
//! checksum record is compared with the pinned digest: if the fetched bytes differ from the pinned ones, they are the
//! defect.

use super::{ReasonCollector, verbs};
use crate::card::AgentCard;
use crate::evidence::{CanonicalAndMirrorSchema, SchemaEvidence, SchemaFetchError};
use crate::manifest::{BoundSchemaEntry, ManifestVerb, SchemaReleaseManifest, SchemaRole};
use crate::profile::ConformanceProfile;
use crate::schema::served::ServedSchema;
use crate::schema::strict::StrictModeFaults;
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::recordable::LiveOrRecordedCause;
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::text::excerpt_text;
use clresolve_core::uri;

/// All findings on the bound schemas and their text records. A card whose class or primary verb is unknown to the
/// manifests binds no schema; [`super::verbs`] reports that.
pub fn check_schemas(
    card: &AgentCard,
    evidence: &SchemaEvidence,
    records: &TextRecordSet,
    profile: &ConformanceProfile,
) -> Vec<Reason> {
    check_bound_schemas(card, FetchedOrPinnedSchemas::Fetched(evidence), records, profile)
}

/// The state of the bound schemas' bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum FetchedOrPinnedSchemas<'e> {
    Fetched(&'e SchemaEvidence),
    /// Assumed to be the bytes that the manifest pins.
    AsPinned,
}

impl<'e> FetchedOrPinnedSchemas<'e> {
    fn fetched_responses(self, side: SchemaRole) -> Option<&'e CanonicalAndMirrorSchema> {
        match (self, side) {
            (Self::Fetched(evidence), SchemaRole::Request) => Some(&evidence.request),
            (Self::Fetched(evidence), SchemaRole::Receipt) => Some(&evidence.receipt),
            (Self::AsPinned, _) => None,
        }
    }
}

pub(super) fn check_bound_schemas(
    card: &AgentCard,
    schemas: FetchedOrPinnedSchemas<'_>,
    records: &TextRecordSet,
    profile: &ConformanceProfile,
) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    let layer = card.class().and_then(|class| profile.class_rules(class));
    if let Some(manifest) = layer.map(|layer| layer.manifest())
        && let Some(verb) = card.primary_verb().and_then(|verb| manifest.verb(verb))
    {
        let mut all_pinned = true;
        for side in SchemaRole::ALL {
            let entry = verb.schema(side);
            let Some(pinned) = entry.sha256 else {
                all_pinned = false;
                found.add(Reason::new(ReasonCode::SchemaUnpinned).at_place(side.schema_pointer()));
                continue;
            };
            if let Some(fetched) = schemas.fetched_responses(side) {
                check_schema_bytes(side, fetched, &entry.id, pinned, profile, &mut found);
            }
            if let Some(location) = card.schema_mirror_location(side).filter(|location| !verbs::is_https(location)) {
                let reason = Reason::new(ReasonCode::SchemaMirrorUnreachable).expected("an https URL");
                found.add_once(reason.observed(excerpt_text(location)).at_place(side.mirror_pointer()));
            }
            check_schema_checksum_records(side, entry, pinned, records, &mut found);
        }
        if all_pinned {
            check_binding_records(verb, manifest, records, &mut found);
        }
    }
    found.with_effects(profile)
}

/// Returns the bytes of one bound schema if they have the digest that the manifest pins.
///
/// # Errors
/// The reasons why the bytes are not proven, with the codes of depth `schemas`.
pub fn proven_schema(
    side: SchemaRole,
    fetched: &CanonicalAndMirrorSchema,
    entry: &BoundSchemaEntry,
    profile: &ConformanceProfile,
) -> Result<ServedSchema, Vec<Reason>> {
    let mut found = ReasonCollector::default();
    let Some(pinned) = entry.sha256 else {
        return Err(vec![Reason::new(ReasonCode::SchemaUnpinned).at_place(side.schema_pointer())]);
    };
    check_schema_bytes(side, fetched, &entry.id, pinned, profile, &mut found);
    let mut against: Vec<_> =
        found.with_effects(profile).into_iter().filter(|reason| reason.effect != ReasonEffect::Warn).collect();
    let is_believed = clresolve_core::mutant!("schemas-of-anybody");
    match fetched.served_documents().find(|served| served.digest() == pinned || is_believed) {
        Some(served) if against.is_empty() || is_believed => Ok(served.clone()),
        _ => {
            if against.is_empty() {
                against.push(Reason::new(ReasonCode::SchemaUnavailable).at_place(side.schema_pointer()));
            }
            Err(against)
        }
    }
}

/// All findings on one schema as its layer publishes it: its bytes at the canonical location and at one mirror, and
/// the publisher's checksum list. A good mirror does not replace a canonical location that serves nothing.
pub fn check_published_schema(
    side: SchemaRole,
    fetched: &CanonicalAndMirrorSchema,
    entry: &BoundSchemaEntry,
    profile: &ConformanceProfile,
) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    let Some(pinned) = entry.sha256 else {
        return vec![Reason::new(ReasonCode::SchemaUnpinned).at_place(side.schema_pointer())];
    };
    check_schema_bytes(side, fetched, &entry.id, pinned, profile, &mut found);
    if let Err(fault) = &fetched.canonical {
        found.add_once(unavailable_schema_reason(side, fault));
    }
    if let Some(listed) = entry.published_crlf_sha256 {
        let note = Reason::new(ReasonCode::ChecksumLineEndings).expected(listed.to_string());
        found.add(note.observed(pinned.to_string()).at_place(CHECKSUM_LIST));
    }
    found.with_effects(profile)
}

/// The location of findings on the publisher's checksum list.
const CHECKSUM_LIST: &str = "checksums.txt";

/// Checks one bound schema's bytes from its canonical location and its mirror.
fn check_schema_bytes(
    side: SchemaRole,
    bound: &CanonicalAndMirrorSchema,
    id: &str,
    pinned: Digest,
    profile: &ConformanceProfile,
    found: &mut ReasonCollector,
) {
    let CanonicalAndMirrorSchema { canonical, mirror } = bound;
    match canonical {
        Ok(served) => compare_with_pin(served, id, pinned, side.schema_pointer(), found),
        Err(cause) if !matches!(mirror, Some(Ok(mirror)) if mirror.digest() == pinned) => {
            found.add(unavailable_schema_reason(side, cause));
        }
        Err(_) => {}
    }
    match mirror {
        None => {}
        Some(Err(cause)) => {
            found.add(
                Reason::new(ReasonCode::SchemaMirrorUnreachable)
                    .observed(excerpt_text(&cause.to_string()))
                    .at_place(side.mirror_pointer()),
            );
        }
        Some(Ok(mirror)) => check_mirror_bytes(mirror, canonical.as_ref().ok(), pinned, side.mirror_pointer(), found),
    }
    if let Some(Ok(document)) = bound.served_documents().next().map(ServedSchema::parsed_schema) {
        check_strictness(&document.strict_mode, side.schema_pointer(), profile, found);
    }
}

/// The canonical location served nothing.
fn unavailable_schema_reason(side: SchemaRole, fault: &LiveOrRecordedCause<SchemaFetchError>) -> Reason {
    Reason::new(ReasonCode::SchemaUnavailable)
        .observed(excerpt_text(&fault.to_string()))
        .at_place(side.schema_pointer())
}

/// PC-2, PC-5, PC-9: compares the bytes of a canonical location with the manifest.
fn compare_with_pin(served: &ServedSchema, id: &str, pinned: Digest, place: &str, found: &mut ReasonCollector) {
    let same = served.digest() == pinned;
    let differs =
        |code| Reason::new(code).expected(pinned.to_string()).observed(served.digest().to_string()).at_place(place);
    if !same && differs_only_in_line_ends(served, pinned) {
        found.add(differs(ReasonCode::SchemaChecksumMismatch).with_requirement("PC-5"));
        found.add(differs(ReasonCode::ChecksumLineEndings));
        return;
    }
    match served.parsed_schema() {
        Ok(document) if document.id.as_deref() != Some(id) => {
            let observed = document.id.as_deref().map_or_else(|| "no $id".to_owned(), excerpt_text);
            found.add(Reason::new(ReasonCode::SchemaIdMismatch).expected(id).observed(observed).at_place(place));
        }
        _ if same => {}
        _ => found.add(differs(ReasonCode::PublishedVersionMutated)),
    }
}

/// Whether these are the pinned bytes with CRLF line ends.
fn differs_only_in_line_ends(served: &ServedSchema, pinned: Digest) -> bool {
    served.lf_digest() == Some(pinned)
}

/// CL-17: the mirror serves the pinned bytes, the bytes of the canonical location, or the same JSON value.
fn check_mirror_bytes(
    mirror: &ServedSchema,
    canonical: Option<&ServedSchema>,
    pinned: Digest,
    place: &str,
    found: &mut ReasonCollector,
) {
    let same = |canonical: &ServedSchema| {
        let value = |served: &ServedSchema| served.parsed_schema().map(|document| document.value).ok();
        mirror.digest() == canonical.digest() || value(mirror).is_some() && value(mirror) == value(canonical)
    };
    if mirror.digest() == pinned || differs_only_in_line_ends(mirror, pinned) || canonical.is_some_and(same) {
        return;
    }
    let expected = canonical.map_or(pinned, ServedSchema::digest);
    found.add(
        Reason::new(ReasonCode::SchemaMirrorMismatch)
            .expected(expected.to_string())
            .observed(mirror.digest().to_string())
            .at_place(place),
    );
}

/// CL-2. A third party's schema is never compiled here.
fn check_strictness(
    strict_mode: &StrictModeFaults,
    place: &str,
    profile: &ConformanceProfile,
    found: &mut ReasonCollector,
) {
    let at_hand = |uri: &str| profile.manifests().any(|manifest| manifest.schema_ids().any(|id| id == uri));
    if let Some(fault) = strict_mode.faults(at_hand).next() {
        found.add(Reason::new(ReasonCode::SchemaNotStrict).observed(excerpt_text(&fault.to_string())).at_place(place));
    }
}

/// PC-4: both spellings of the checksum record, if set.
fn check_schema_checksum_records(
    side: SchemaRole,
    entry: &BoundSchemaEntry,
    pinned: Digest,
    records: &TextRecordSet,
    found: &mut ReasonCollector,
) {
    let keys = match side {
        SchemaRole::Request => [TextRecordKey::ChecksumRequest, TextRecordKey::ChecksumSchemaRequest],
        SchemaRole::Receipt => [TextRecordKey::ChecksumReceipt, TextRecordKey::ChecksumSchemaReceipt],
    };
    for key in keys {
        let Some(text) = records.text(key) else {
            continue;
        };
        let digest = text.parse::<Digest>().ok();
        if digest == Some(pinned) {
            continue;
        }
        let reason =
            |code| Reason::new(code).expected(pinned.to_string()).observed(excerpt_text(text)).at_place(key.as_str());
        found.add(reason(ReasonCode::SchemaChecksumMismatch));
        if digest.is_some() && digest == entry.published_crlf_sha256 {
            found.add(reason(ReasonCode::ChecksumLineEndings));
        }
    }
}

/// The records of the schema binding. They belong to the name of a schema layer; an agent's name needs none of them.
const BINDING: [TextRecordKey; 6] = [
    TextRecordKey::Verb,
    TextRecordKey::Version,
    TextRecordKey::SchemaRequest,
    TextRecordKey::SchemaReceipt,
    TextRecordKey::CidSchemas,
    TextRecordKey::SchemasMirrorIpfs,
];

/// CL-11, PC-3: the records of the schema binding, if any is set. The step `records` reports values that are not
/// UTF-8.
fn check_binding_records(
    verb: &ManifestVerb,
    manifest: &SchemaReleaseManifest,
    records: &TextRecordSet,
    found: &mut ReasonCollector,
) {
    if BINDING.iter().all(|key| matches!(records.get(*key), TextRecord::Absent)) {
        return;
    }
    let request = verb.schema(SchemaRole::Request);
    let receipt = verb.schema(SchemaRole::Receipt);
    let mut hold = |key: TextRecordKey, code: ReasonCode, expected: &str, fits: &dyn Fn(&str) -> bool| match records
        .get(key)
    {
        TextRecord::Absent => {
            found.add(Reason::new(ReasonCode::SchemaTxtMissing).expected(excerpt_text(expected)).at_place(key.as_str()))
        }
        TextRecord::Text(text) if !fits(text) => {
            found.add(
                Reason::new(code).expected(excerpt_text(expected)).observed(excerpt_text(text)).at_place(key.as_str()),
            );
        }
        TextRecord::Text(_) | TextRecord::NotUtf8(_) => {}
    };
    let other = ReasonCode::SchemaTxtMismatch;
    hold(TextRecordKey::Verb, ReasonCode::PrimaryVerbMismatch, &verb.name, &|text| text == verb.name);
    hold(TextRecordKey::Version, other, manifest.version(), &|text| text == manifest.version());
    hold(TextRecordKey::SchemaRequest, other, &request.canonical, &|text| is_schema_location(text, request));
    hold(TextRecordKey::SchemaReceipt, other, &receipt.canonical, &|text| is_schema_location(text, receipt));
    if let Some(cid) = manifest.directory_cid() {
        hold(TextRecordKey::CidSchemas, other, cid, &|text| verbs::is_same_cid(text, cid));
        hold(TextRecordKey::SchemasMirrorIpfs, other, &format!("ipfs://{cid}"), &|text| {
            is_release_location(text, cid, manifest)
        });
    }
}

/// Whether `text` is one of the manifest's locations of the schema; published records contain its `$id`.
fn is_schema_location(text: &str, entry: &BoundSchemaEntry) -> bool {
    let known = [&entry.canonical, &entry.id].into_iter().chain(&entry.mirrors);
    let mut known = known.map(String::as_str);
    known.any(|known| {
        uri::are_equivalent_uris(text, known)
            || matches!((verbs::split_ipfs_location(text), verbs::split_ipfs_location(known)),
                (Some((a, below)), Some((b, path))) if below == path && verbs::is_same_cid(a, b))
    })
}

/// `ipfs://CID` or a gateway's URL of it: the directory of the release, or the class's directory in it.
fn is_release_location(text: &str, cid: &str, manifest: &SchemaReleaseManifest) -> bool {
    verbs::split_ipfs_location(text).is_some_and(|(root, path)| {
        let path = path.trim_end_matches('/');
        verbs::is_same_cid(root, cid) && (path.is_empty() || path == manifest.class())
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;
    use crate::evidence::SchemaFetchResult;
    use crate::profile::{ConformanceProfiles, DEFAULT};
    use crate::sample::{distinct_codes, good_card};
    use clresolve_core::fetch::{FetchError, SourceUnavailableError};

    /// A network whose schemas of `summarize` are two short texts, pinned by a manifest of its own.
    struct World {
        profiles: ConformanceProfiles,
        evidence: SchemaEvidence,
        records: Vec<(TextRecordKey, TextRecord)>,
    }

    const CID: &str = "bafybeigvf6nkzws7dblos74dqqjkguwkrwn4a2c27ieygoxmgofyzdkz6m";

    fn document(side: &str) -> Value {
        json!({"$id": id(side), "type": "object", "properties": {"x": {"type": "string"}}})
    }

    fn id(side: &str) -> String {
        format!("https://commandlayer.org/schemas/v1.0.0/commons/summarize/{side}s/summarize.{side}.schema.json")
    }

    fn schema(side: &str) -> Bytes {
        (serde_json::to_string_pretty(&document(side)).expect("JSON") + "\n").into()
    }

    fn served(side: &str) -> ServedSchema {
        ServedSchema::from_bytes(schema(side))
    }

    fn crlf(bytes: &Bytes) -> Bytes {
        String::from_utf8(bytes.to_vec()).expect("UTF-8").replace('\n', "\r\n").into()
    }

    impl World {
        fn good() -> Self {
            let text = include_str!("../../manifests/protocol-commons-1.0.0.json");
            let mut manifest: Value = serde_json::from_str(text).expect("JSON");
            let verbs = manifest["verbs"].as_array_mut().expect("a list");
            let verb = verbs.iter_mut().find(|verb| verb["name"] == "summarize").expect("a known verb");
            for side in ["request", "receipt"] {
                verb[side]["sha256"] = json!(Digest::compute(&schema(side)));
                verb[side]["published_crlf_sha256"] = json!(Digest::compute(&crlf(&schema(side))));
            }
            let manifest = manifest.to_string();
            let mut profiles = ConformanceProfiles::builtin();
            profiles.replace_manifest(manifest.as_bytes()).expect("a manifest");
            let bound = |side| CanonicalAndMirrorSchema { canonical: Ok(served(side)), mirror: Some(Ok(served(side))) };
            let set = |key, text: &str| (key, TextRecord::Text(text.to_owned()));
            let records = vec![
                set(TextRecordKey::Verb, "summarize"),
                set(TextRecordKey::Version, "1.0.0"),
                set(TextRecordKey::SchemaRequest, &id("request")),
                set(TextRecordKey::SchemaReceipt, &id("receipt")),
                set(TextRecordKey::CidSchemas, CID),
                set(TextRecordKey::SchemasMirrorIpfs, &format!("ipfs://{CID}")),
                set(TextRecordKey::ChecksumSchemaRequest, &Digest::compute(&schema("request")).to_string()),
            ];
            let evidence = SchemaEvidence { request: bound("request"), receipt: bound("receipt") };
            Self { profiles, evidence, records }
        }

        fn reasons(&self) -> Vec<Reason> {
            let card = AgentCard::parse(good_card().to_string().as_bytes()).expect("strict JSON");
            let records = self.records.iter().cloned().collect();
            let profile = self.profiles.get(DEFAULT).expect("built in");
            check_schemas(&card, &self.evidence, &records, &profile)
        }

        fn codes(&self) -> Vec<&'static str> {
            distinct_codes(&self.reasons())
        }

        fn set(mut self, key: TextRecordKey, text: &str) -> Self {
            self.records.retain(|(known, _)| *known != key);
            self.records.push((key, TextRecord::Text(text.to_owned())));
            self
        }
    }

    fn with_canonical(canonical: SchemaFetchResult<Bytes>) -> Vec<&'static str> {
        let mut world = World::good();
        world.evidence.request.canonical = canonical.map(ServedSchema::from_bytes);
        world.codes()
    }

    fn with_mirror(mirror: Option<SchemaFetchResult<Bytes>>) -> Vec<&'static str> {
        let mut world = World::good();
        world.evidence.request.mirror = mirror.map(|mirror| mirror.map(ServedSchema::from_bytes));
        world.codes()
    }

    fn down() -> LiveOrRecordedCause<SchemaFetchError> {
        SchemaFetchError::from(FetchError::from(SourceUnavailableError::Connect)).into()
    }

    fn bytes_of(document: &Value) -> Bytes {
        document.to_string().into()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_good_binding_gives_no_reason() {
        assert_eq!(World::good().codes(), NONE);
    }

    #[test]
    fn canonical_bytes_are_those_of_the_manifest() {
        let mut mutated = document("request");
        mutated["properties"]["x"] = json!({"type": "number"});
        assert_eq!(with_canonical(Ok(bytes_of(&mutated))), ["published-version-mutated"]);
        assert_eq!(with_canonical(Ok("<html>".into())), ["published-version-mutated"]);
        assert_eq!(with_canonical(Ok(schema("receipt"))), ["schema-id-mismatch"]);
        let line_ends = ["checksum-line-endings", "schema-checksum-mismatch"];
        assert_eq!(with_canonical(Ok(crlf(&schema("request")))), line_ends);
        mutated["x-note"] = json!("odd");
        assert_eq!(with_canonical(Ok(bytes_of(&mutated))), ["published-version-mutated", "schema-not-strict"]);
    }

    #[test]
    fn one_good_source_is_enough_to_have_the_schema() {
        assert_eq!(with_canonical(Err(down())), NONE);
        assert_eq!(with_mirror(Some(Err(down()))), ["schema-mirror-unreachable"]);
        assert_eq!(with_mirror(None), NONE);
        let mut world = World::good();
        world.evidence.request = CanonicalAndMirrorSchema { canonical: Err(down()), mirror: None };
        assert_eq!(world.codes(), ["schema-unavailable"]);
        world.evidence.request.mirror = Some(Err(down()));
        assert_eq!(world.codes(), ["schema-mirror-unreachable", "schema-unavailable"]);
        world.evidence.request.mirror = Some(Ok(served("receipt")));
        assert_eq!(world.codes(), ["schema-mirror-mismatch", "schema-unavailable"]);
    }

    #[test]
    fn published_schema_is_unknown_without_its_canonical_location() {
        let world = World::good();
        let profile = world.profiles.get(DEFAULT).expect("built in");
        let entry =
            &profile.class_rules("commons").expect("a layer").manifest().verb("summarize").expect("a verb").request;
        let published = |canonical: SchemaFetchResult, mirror: Option<SchemaFetchResult>| {
            let mut reasons = check_published_schema(
                SchemaRole::Request,
                &CanonicalAndMirrorSchema { canonical, mirror },
                entry,
                &profile,
            );
            reasons.retain(|reason| reason.code != ReasonCode::ChecksumLineEndings);
            distinct_codes(&reasons)
        };
        let good = || Some(Ok(served("request")));
        assert_eq!(published(Ok(served("request")), good()), NONE);
        assert_eq!(published(Err(down()), good()), ["schema-unavailable"]);
        assert_eq!(published(Err(down()), None), ["schema-unavailable"]);
        assert_eq!(published(Err(down()), Some(Err(down()))), ["schema-mirror-unreachable", "schema-unavailable"]);
        assert_eq!(with_canonical(Err(down())), NONE, "a verdict has the schema");
    }

    #[test]
    fn the_proven_bytes_are_the_pinned_ones_alone() {
        let world = World::good();
        let profile = world.profiles.get(DEFAULT).expect("built in");
        let entry =
            &profile.class_rules("commons").expect("a layer").manifest().verb("summarize").expect("a verb").request;
        let proven = |canonical: SchemaFetchResult<Bytes>, mirror: Option<SchemaFetchResult<Bytes>>| {
            let read = |answer: SchemaFetchResult<Bytes>| answer.map(ServedSchema::from_bytes);
            let fetched = CanonicalAndMirrorSchema { canonical: read(canonical), mirror: mirror.map(read) };
            let proven = proven_schema(SchemaRole::Request, &fetched, entry, &profile);
            proven.map(|served| served.bytes().clone()).map_err(|reasons| distinct_codes(&reasons))
        };
        assert_eq!(proven(Ok(schema("request")), None), Ok(schema("request")));
        assert_eq!(proven(Err(down()), Some(Ok(schema("request")))), Ok(schema("request")));
        assert_eq!(proven(Err(down()), None), Err(vec!["schema-unavailable"]));
        assert_eq!(proven(Ok("<html>".into()), Some(Ok(schema("request")))), Err(vec!["published-version-mutated"]));
        let crlf = proven(Ok(crlf(&schema("request"))), None).expect_err("other bytes");
        assert!(crlf.contains(&"schema-checksum-mismatch"), "{crlf:?}");
        let unpinned = BoundSchemaEntry { sha256: None, ..entry.clone() };
        let fetched = CanonicalAndMirrorSchema { canonical: Ok(served("request")), mirror: None };
        let reasons =
            super::proven_schema(SchemaRole::Request, &fetched, &unpinned, &profile).expect_err("nothing is pinned");
        assert_eq!(distinct_codes(&reasons), ["schema-unpinned"]);
    }

    #[test]
    fn a_mirror_may_differ_in_form_only() {
        assert_eq!(with_mirror(Some(Ok(bytes_of(&document("request"))))), NONE);
        assert_eq!(with_mirror(Some(Ok(crlf(&schema("request"))))), NONE);
        assert_eq!(with_mirror(Some(Ok(schema("receipt")))), ["schema-mirror-mismatch"]);
        assert_eq!(with_mirror(Some(Ok("<html>".into()))), ["schema-mirror-mismatch"]);
    }

    #[test]
    fn records_of_the_binding_are_all_set_or_none() {
        for key in BINDING {
            let mut world = World::good();
            world.records.retain(|(known, _)| *known != key);
            let reasons = world.reasons();
            assert_eq!(distinct_codes(&reasons), ["schema-txt-missing"], "{key}");
            assert_eq!((reasons.len(), reasons[0].effect), (1, ReasonEffect::Warn), "{key}");
            assert_eq!(reasons[0].place.as_deref(), Some(key.as_str()));
            world.records.retain(|(known, _)| !BINDING.contains(known) || *known == TextRecordKey::Version);
            world.records.push((TextRecordKey::Verb, TextRecord::NotUtf8(vec![255])));
            assert_eq!(world.codes(), ["schema-txt-missing"], "one that cannot be read is set");
            world.records.retain(|(known, _)| !BINDING.contains(known));
            assert_eq!(world.codes(), NONE);
        }
    }

    #[test]
    fn records_of_the_binding_equal_the_manifest() {
        for (key, text, code) in [
            (TextRecordKey::Verb, "clean", "primary-verb-mismatch"),
            (TextRecordKey::Version, "1.1.0", "schema-txt-mismatch"),
            (TextRecordKey::SchemaRequest, &id("receipt"), "schema-txt-mismatch"),
            (TextRecordKey::SchemaReceipt, &format!("{} ", id("receipt")), "schema-txt-mismatch"),
            (
                TextRecordKey::CidSchemas,
                "bafybeigypvbe4bd2skluhkdbetltfvrfm3urfiz5lshsfa57kz6pafw6le",
                "schema-txt-mismatch",
            ),
            (TextRecordKey::SchemasMirrorIpfs, "https://commandlayer.org/schemas", "schema-txt-mismatch"),
            (TextRecordKey::ChecksumRequest, "no digest", "schema-checksum-mismatch"),
            (TextRecordKey::ChecksumReceipt, &Digest::compute(b"x").to_string(), "schema-checksum-mismatch"),
        ] {
            assert_eq!(World::good().set(key, text).codes(), [code], "{key}");
        }
        for (key, text) in [
            (
                TextRecordKey::SchemaRequest,
                format!("ipfs://{CID}/commons/summarize/requests/summarize.request.schema.json"),
            ),
            (TextRecordKey::SchemasMirrorIpfs, format!("https://ipfs.io/ipfs/{CID}/commons/")),
            (
                TextRecordKey::ChecksumReceipt,
                Digest::compute(&schema("receipt")).to_string().to_uppercase().replace("SHA256:", ""),
            ),
        ] {
            assert_eq!(World::good().set(key, &text).codes(), NONE, "{key}");
        }
    }

    #[test]
    fn a_checksum_over_crlf_is_told_apart() {
        let text = Digest::compute(&crlf(&schema("request"))).to_string();
        let codes = ["checksum-line-endings", "schema-checksum-mismatch"];
        assert_eq!(World::good().set(TextRecordKey::ChecksumRequest, &text).codes(), codes);
    }
}
