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

use super::{Findings, verbs};
use crate::card::Card;
use crate::evidence::{SchemaAnswers, SchemaEvidence, SchemaFault};
use crate::manifest::{Manifest, SchemaEntry, Side, Verb};
use crate::profile::Profile;
use crate::schema::served::ServedSchema;
use crate::schema::strict::StrictModeFaults;
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::recordable::Recordable;
use clresolve_core::records::{Key, Record, RecordSet};
use clresolve_core::text::excerpt;
use clresolve_core::uri;

/// All findings on the bound schemas and their text records. A card whose class or primary verb is unknown to the
/// manifests binds no schema; [`super::verbs`] reports that.
pub fn schemas(card: &Card, evidence: &SchemaEvidence, records: &RecordSet, profile: &Profile) -> Vec<Reason> {
    bound(card, KnownBytes::Fetched(evidence), records, profile)
}

/// The state of the bound schemas' bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum KnownBytes<'e> {
    Fetched(&'e SchemaEvidence),
    /// Assumed to be the bytes that the manifest pins.
    AsPinned,
}

impl<'e> KnownBytes<'e> {
    fn fetched(self, side: Side) -> Option<&'e SchemaAnswers> {
        match (self, side) {
            (Self::Fetched(evidence), Side::Request) => Some(&evidence.request),
            (Self::Fetched(evidence), Side::Receipt) => Some(&evidence.receipt),
            (Self::AsPinned, _) => None,
        }
    }
}

pub(super) fn bound(card: &Card, schemas: KnownBytes<'_>, records: &RecordSet, profile: &Profile) -> Vec<Reason> {
    let mut found = Findings::default();
    let layer = card.class().and_then(|class| profile.layer(class));
    if let Some(manifest) = layer.map(|layer| layer.manifest())
        && let Some(verb) = card.primary_verb().and_then(|verb| manifest.verb(verb))
    {
        let mut all_pinned = true;
        for side in Side::ALL {
            let Some(pinned) = Pinned::of(verb.schema(side)) else {
                all_pinned = false;
                found.add(Reason::new(Code::SchemaUnpinned).at(side.schema_pointer()));
                continue;
            };
            if let Some(fetched) = schemas.fetched(side) {
                bytes(side, fetched, pinned, profile, &mut found);
            }
            if let Some(location) = card.schema_mirror(side).filter(|location| !verbs::is_https(location)) {
                let reason = Reason::new(Code::SchemaMirrorUnreachable).expected("an https URL");
                found.add_once(reason.observed(excerpt(location)).at(side.mirror_pointer()));
            }
            checksums(side, pinned, records, &mut found);
        }
        if all_pinned {
            binding(verb, manifest, records, &mut found);
        }
    }
    found.weighed(profile)
}

/// Returns the bytes of one bound schema if they have the digest that the manifest pins.
///
/// # Errors
/// The reasons why the bytes are not proven, with the codes of depth `schemas`.
pub fn proven(
    side: Side,
    fetched: &SchemaAnswers,
    entry: &SchemaEntry,
    profile: &Profile,
) -> Result<ServedSchema, Vec<Reason>> {
    let mut found = Findings::default();
    let Some(pinned) = Pinned::of(entry) else {
        return Err(vec![Reason::new(Code::SchemaUnpinned).at(side.schema_pointer())]);
    };
    bytes(side, fetched, pinned, profile, &mut found);
    let mut against: Vec<_> =
        found.weighed(profile).into_iter().filter(|reason| reason.effect != Effect::Warn).collect();
    let is_believed = clresolve_core::mutant!("schemas-of-anybody");
    match fetched.served().find(|served| served.digest() == pinned.sha256 || is_believed) {
        Some(served) if against.is_empty() || is_believed => Ok(served.clone()),
        _ => {
            if against.is_empty() {
                against.push(Reason::new(Code::SchemaUnavailable).at(side.schema_pointer()));
            }
            Err(against)
        }
    }
}

/// All findings on one schema as its layer publishes it: its bytes at the canonical location and at one mirror, and
/// the publisher's checksum list. A good mirror does not replace a canonical location that serves nothing.
pub fn published(side: Side, fetched: &SchemaAnswers, entry: &SchemaEntry, profile: &Profile) -> Vec<Reason> {
    let mut found = Findings::default();
    let Some(pinned) = Pinned::of(entry) else {
        return vec![Reason::new(Code::SchemaUnpinned).at(side.schema_pointer())];
    };
    bytes(side, fetched, pinned, profile, &mut found);
    if let Err(fault) = &fetched.canonical {
        found.add_once(unavailable(side, fault));
    }
    if let Some(listed) = entry.published_crlf_sha256 {
        let note = Reason::new(Code::ChecksumLineEndings).expected(listed.to_string());
        found.add(note.observed(pinned.sha256.to_string()).at(CHECKSUM_LIST));
    }
    found.weighed(profile)
}

/// The location of findings on the publisher's checksum list.
const CHECKSUM_LIST: &str = "checksums.txt";

#[derive(Clone, Copy)]
struct Pinned<'m> {
    entry: &'m SchemaEntry,
    sha256: Digest,
}

impl<'m> Pinned<'m> {
    fn of(entry: &'m SchemaEntry) -> Option<Self> {
        entry.sha256.map(|sha256| Self { entry, sha256 })
    }
}

/// Checks one bound schema's bytes from its canonical location and its mirror.
fn bytes(side: Side, bound: &SchemaAnswers, pinned: Pinned<'_>, profile: &Profile, found: &mut Findings) {
    let SchemaAnswers { canonical, mirror } = bound;
    match canonical {
        Ok(served) => held(served, pinned, side.schema_pointer(), found),
        Err(cause) if !matches!(mirror, Some(Ok(mirror)) if mirror.digest() == pinned.sha256) => {
            found.add(unavailable(side, cause));
        }
        Err(_) => {}
    }
    match mirror {
        None => {}
        Some(Err(cause)) => {
            found.add(
                Reason::new(Code::SchemaMirrorUnreachable)
                    .observed(excerpt(&cause.to_string()))
                    .at(side.mirror_pointer()),
            );
        }
        Some(Ok(mirror)) => mirrored(mirror, canonical.as_ref().ok(), pinned, side.mirror_pointer(), found),
    }
    if let Some(Ok(document)) = bound.served().next().map(ServedSchema::document) {
        strict(&document.strict_mode, side.schema_pointer(), profile, found);
    }
}

/// The canonical location served nothing.
fn unavailable(side: Side, fault: &Recordable<SchemaFault>) -> Reason {
    Reason::new(Code::SchemaUnavailable).observed(excerpt(&fault.to_string())).at(side.schema_pointer())
}

/// PC-2, PC-5, PC-9: compares the bytes of a canonical location with the manifest.
fn held(served: &ServedSchema, pinned: Pinned<'_>, place: &str, found: &mut Findings) {
    let id = &pinned.entry.id;
    let same = served.digest() == pinned.sha256;
    let differs =
        |code| Reason::new(code).expected(pinned.sha256.to_string()).observed(served.digest().to_string()).at(place);
    if !same && is_but_for_line_ends(served, pinned) {
        found.add(differs(Code::SchemaChecksumMismatch).requirement("PC-5"));
        found.add(differs(Code::ChecksumLineEndings));
        return;
    }
    match served.document() {
        Ok(document) if document.id.as_ref() != Some(id) => {
            let observed = document.id.as_deref().map_or_else(|| "no $id".to_owned(), excerpt);
            found.add(Reason::new(Code::SchemaIdMismatch).expected(id.as_str()).observed(observed).at(place));
        }
        _ if same => {}
        _ => found.add(differs(Code::PublishedVersionMutated)),
    }
}

/// Whether these are the pinned bytes with CRLF line ends.
fn is_but_for_line_ends(served: &ServedSchema, pinned: Pinned<'_>) -> bool {
    served.unix_digest() == Some(pinned.sha256)
}

/// CL-17: the mirror serves the pinned bytes, the bytes of the canonical location, or the same JSON value.
fn mirrored(
    mirror: &ServedSchema,
    canonical: Option<&ServedSchema>,
    pinned: Pinned<'_>,
    place: &str,
    found: &mut Findings,
) {
    let same = |canonical: &ServedSchema| {
        let value = |served: &ServedSchema| served.document().map(|document| document.value).ok();
        mirror.digest() == canonical.digest() || value(mirror).is_some() && value(mirror) == value(canonical)
    };
    if mirror.digest() == pinned.sha256 || is_but_for_line_ends(mirror, pinned) || canonical.is_some_and(same) {
        return;
    }
    let expected = canonical.map_or(pinned.sha256, ServedSchema::digest);
    found.add(
        Reason::new(Code::SchemaMirrorMismatch)
            .expected(expected.to_string())
            .observed(mirror.digest().to_string())
            .at(place),
    );
}

/// CL-2. A third party's schema is never compiled here.
fn strict(strict_mode: &StrictModeFaults, place: &str, profile: &Profile, found: &mut Findings) {
    let at_hand = |uri: &str| profile.manifests().any(|manifest| manifest.schema_ids().any(|id| id == uri));
    if let Some(fault) = strict_mode.faults(at_hand).next() {
        found.add(Reason::new(Code::SchemaNotStrict).observed(excerpt(&fault.to_string())).at(place));
    }
}

/// PC-4: both spellings of the checksum record, if set.
fn checksums(side: Side, pinned: Pinned<'_>, records: &RecordSet, found: &mut Findings) {
    let keys = match side {
        Side::Request => [Key::ChecksumRequest, Key::ChecksumSchemaRequest],
        Side::Receipt => [Key::ChecksumReceipt, Key::ChecksumSchemaReceipt],
    };
    for key in keys {
        let Some(text) = records.text(key) else {
            continue;
        };
        let digest = text.parse::<Digest>().ok();
        if digest == Some(pinned.sha256) {
            continue;
        }
        let reason =
            |code| Reason::new(code).expected(pinned.sha256.to_string()).observed(excerpt(text)).at(key.as_str());
        found.add(reason(Code::SchemaChecksumMismatch));
        if digest.is_some() && digest == pinned.entry.published_crlf_sha256 {
            found.add(reason(Code::ChecksumLineEndings));
        }
    }
}

/// The records of the schema binding. They belong to the name of a schema layer; an agent's name needs none of them.
const BINDING: [Key; 6] =
    [Key::Verb, Key::Version, Key::SchemaRequest, Key::SchemaReceipt, Key::CidSchemas, Key::SchemasMirrorIpfs];

/// CL-11, PC-3: the records of the schema binding, if any is set. The step `records` reports values that are not
/// UTF-8.
fn binding(verb: &Verb, manifest: &Manifest, records: &RecordSet, found: &mut Findings) {
    if BINDING.iter().all(|key| matches!(records.get(*key), Record::Absent)) {
        return;
    }
    let request = verb.schema(Side::Request);
    let receipt = verb.schema(Side::Receipt);
    let mut hold = |key: Key, code: Code, expected: &str, fits: &dyn Fn(&str) -> bool| match records.get(key) {
        Record::Absent => found.add(Reason::new(Code::SchemaTxtMissing).expected(excerpt(expected)).at(key.as_str())),
        Record::Text(text) if !fits(text) => {
            found.add(Reason::new(code).expected(excerpt(expected)).observed(excerpt(text)).at(key.as_str()));
        }
        Record::Text(_) | Record::NotUtf8(_) => {}
    };
    let other = Code::SchemaTxtMismatch;
    hold(Key::Verb, Code::PrimaryVerbMismatch, &verb.name, &|text| text == verb.name);
    hold(Key::Version, other, manifest.version(), &|text| text == manifest.version());
    hold(Key::SchemaRequest, other, &request.canonical, &|text| is_location_of(text, request));
    hold(Key::SchemaReceipt, other, &receipt.canonical, &|text| is_location_of(text, receipt));
    if let Some(cid) = manifest.directory_cid() {
        hold(Key::CidSchemas, other, cid, &|text| verbs::same_cid(text, cid));
        hold(Key::SchemasMirrorIpfs, other, &format!("ipfs://{cid}"), &|text| is_release(text, cid, manifest));
    }
}

/// Whether `text` is one of the manifest's locations of the schema; published records contain its `$id`.
fn is_location_of(text: &str, entry: &SchemaEntry) -> bool {
    let known = [&entry.canonical, &entry.id].into_iter().chain(&entry.mirrors);
    let mut known = known.map(String::as_str);
    known.any(|known| {
        uri::are_equivalent(text, known)
            || matches!((verbs::ipfs_root(text), verbs::ipfs_root(known)),
                (Some((a, below)), Some((b, path))) if below == path && verbs::same_cid(a, b))
    })
}

/// `ipfs://CID` or a gateway's URL of it: the directory of the release, or the class's directory in it.
fn is_release(text: &str, cid: &str, manifest: &Manifest) -> bool {
    verbs::ipfs_root(text).is_some_and(|(root, path)| {
        let path = path.trim_end_matches('/');
        verbs::same_cid(root, cid) && (path.is_empty() || path == manifest.class())
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;
    use crate::evidence::SchemaAnswer;
    use crate::profile::{DEFAULT, Profiles};
    use crate::sample::{codes, good};
    use clresolve_core::fetch::{Cause, FetchError};

    /// A network whose schemas of `summarize` are two short texts, pinned by a manifest of its own.
    struct World {
        profiles: Profiles,
        evidence: SchemaEvidence,
        records: Vec<(Key, Record)>,
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
        ServedSchema::read(schema(side))
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
                verb[side]["sha256"] = json!(Digest::of(&schema(side)));
                verb[side]["published_crlf_sha256"] = json!(Digest::of(&crlf(&schema(side))));
            }
            let manifest = manifest.to_string();
            let mut profiles = Profiles::builtin();
            profiles.replace_manifest(manifest.as_bytes()).expect("a manifest");
            let bound = |side| SchemaAnswers { canonical: Ok(served(side)), mirror: Some(Ok(served(side))) };
            let set = |key, text: &str| (key, Record::Text(text.to_owned()));
            let records = vec![
                set(Key::Verb, "summarize"),
                set(Key::Version, "1.0.0"),
                set(Key::SchemaRequest, &id("request")),
                set(Key::SchemaReceipt, &id("receipt")),
                set(Key::CidSchemas, CID),
                set(Key::SchemasMirrorIpfs, &format!("ipfs://{CID}")),
                set(Key::ChecksumSchemaRequest, &Digest::of(&schema("request")).to_string()),
            ];
            let evidence = SchemaEvidence { request: bound("request"), receipt: bound("receipt") };
            Self { profiles, evidence, records }
        }

        fn reasons(&self) -> Vec<Reason> {
            let card = Card::parse(good().to_string().as_bytes()).expect("strict JSON");
            let records = self.records.iter().cloned().collect();
            let profile = self.profiles.get(DEFAULT).expect("built in");
            schemas(&card, &self.evidence, &records, &profile)
        }

        fn codes(&self) -> Vec<&'static str> {
            codes(&self.reasons())
        }

        fn set(mut self, key: Key, text: &str) -> Self {
            self.records.retain(|(known, _)| *known != key);
            self.records.push((key, Record::Text(text.to_owned())));
            self
        }
    }

    fn with_canonical(canonical: SchemaAnswer<Bytes>) -> Vec<&'static str> {
        let mut world = World::good();
        world.evidence.request.canonical = canonical.map(ServedSchema::read);
        world.codes()
    }

    fn with_mirror(mirror: Option<SchemaAnswer<Bytes>>) -> Vec<&'static str> {
        let mut world = World::good();
        world.evidence.request.mirror = mirror.map(|mirror| mirror.map(ServedSchema::read));
        world.codes()
    }

    fn down() -> Recordable<SchemaFault> {
        SchemaFault::from(FetchError::from(Cause::Connect)).into()
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
        world.evidence.request = SchemaAnswers { canonical: Err(down()), mirror: None };
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
        let entry = &profile.layer("commons").expect("a layer").manifest().verb("summarize").expect("a verb").request;
        let published = |canonical: SchemaAnswer, mirror: Option<SchemaAnswer>| {
            let mut reasons = published(Side::Request, &SchemaAnswers { canonical, mirror }, entry, &profile);
            reasons.retain(|reason| reason.code != Code::ChecksumLineEndings);
            codes(&reasons)
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
        let entry = &profile.layer("commons").expect("a layer").manifest().verb("summarize").expect("a verb").request;
        let proven = |canonical: SchemaAnswer<Bytes>, mirror: Option<SchemaAnswer<Bytes>>| {
            let read = |answer: SchemaAnswer<Bytes>| answer.map(ServedSchema::read);
            let fetched = SchemaAnswers { canonical: read(canonical), mirror: mirror.map(read) };
            let proven = proven(Side::Request, &fetched, entry, &profile);
            proven.map(|served| served.bytes().clone()).map_err(|reasons| codes(&reasons))
        };
        assert_eq!(proven(Ok(schema("request")), None), Ok(schema("request")));
        assert_eq!(proven(Err(down()), Some(Ok(schema("request")))), Ok(schema("request")));
        assert_eq!(proven(Err(down()), None), Err(vec!["schema-unavailable"]));
        assert_eq!(proven(Ok("<html>".into()), Some(Ok(schema("request")))), Err(vec!["published-version-mutated"]));
        let crlf = proven(Ok(crlf(&schema("request"))), None).expect_err("other bytes");
        assert!(crlf.contains(&"schema-checksum-mismatch"), "{crlf:?}");
        let unpinned = SchemaEntry { sha256: None, ..entry.clone() };
        let fetched = SchemaAnswers { canonical: Ok(served("request")), mirror: None };
        let reasons = super::proven(Side::Request, &fetched, &unpinned, &profile).expect_err("nothing is pinned");
        assert_eq!(codes(&reasons), ["schema-unpinned"]);
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
            assert_eq!(codes(&reasons), ["schema-txt-missing"], "{key}");
            assert_eq!((reasons.len(), reasons[0].effect), (1, Effect::Warn), "{key}");
            assert_eq!(reasons[0].place.as_deref(), Some(key.as_str()));
            world.records.retain(|(known, _)| !BINDING.contains(known) || *known == Key::Version);
            world.records.push((Key::Verb, Record::NotUtf8(vec![255])));
            assert_eq!(world.codes(), ["schema-txt-missing"], "one that cannot be read is set");
            world.records.retain(|(known, _)| !BINDING.contains(known));
            assert_eq!(world.codes(), NONE);
        }
    }

    #[test]
    fn records_of_the_binding_equal_the_manifest() {
        for (key, text, code) in [
            (Key::Verb, "clean", "primary-verb-mismatch"),
            (Key::Version, "1.1.0", "schema-txt-mismatch"),
            (Key::SchemaRequest, &id("receipt"), "schema-txt-mismatch"),
            (Key::SchemaReceipt, &format!("{} ", id("receipt")), "schema-txt-mismatch"),
            (Key::CidSchemas, "bafybeigypvbe4bd2skluhkdbetltfvrfm3urfiz5lshsfa57kz6pafw6le", "schema-txt-mismatch"),
            (Key::SchemasMirrorIpfs, "https://commandlayer.org/schemas", "schema-txt-mismatch"),
            (Key::ChecksumRequest, "no digest", "schema-checksum-mismatch"),
            (Key::ChecksumReceipt, &Digest::of(b"x").to_string(), "schema-checksum-mismatch"),
        ] {
            assert_eq!(World::good().set(key, text).codes(), [code], "{key}");
        }
        for (key, text) in [
            (Key::SchemaRequest, format!("ipfs://{CID}/commons/summarize/requests/summarize.request.schema.json")),
            (Key::SchemasMirrorIpfs, format!("https://ipfs.io/ipfs/{CID}/commons/")),
            (Key::ChecksumReceipt, Digest::of(&schema("receipt")).to_string().to_uppercase().replace("SHA256:", "")),
        ] {
            assert_eq!(World::good().set(key, &text).codes(), NONE, "{key}");
        }
    }

    #[test]
    fn a_checksum_over_crlf_is_told_apart() {
        let text = Digest::of(&crlf(&schema("request"))).to_string();
        let codes = ["checksum-line-endings", "schema-checksum-mismatch"];
        assert_eq!(World::good().set(Key::ChecksumRequest, &text).codes(), codes);
    }
}
