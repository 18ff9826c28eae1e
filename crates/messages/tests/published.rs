//! The published schemas of both release lines: every example request and receipt gets its stated result, and the
//! template of every verb is valid.
//!
//! The environment variable `CLRESOLVE_CORPUS` names the corpus. Without it, these tests print that they are skipped
//! and pass.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::reason::ReasonEffect;
use clresolve_core::state::TrustState;
use clresolve_messages::request::{RequestTemplate, judge_request};
use clresolve_verdict::manifest::{BoundSchemaEntry, SchemaReleaseManifest, SchemaRole};
use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};
use clresolve_verdict::schema::bound::{BoundSchema, ReferencedSchemaCollector};
use clresolve_verdict::schema::served::ServedSchema;
use serde_json::{Value, json};

/// A release: its path in the corpus, and its manifest.
struct Release {
    root: PathBuf,
    examples: PathBuf,
    manifest: SchemaReleaseManifest,
}

fn corpus() -> Option<PathBuf> {
    let corpus = std::env::var_os("CLRESOLVE_CORPUS");
    if corpus.is_none() {
        println!("skipped: CLRESOLVE_CORPUS is not set");
    }
    Some(PathBuf::from(corpus?).join("commandlayer"))
}

/// Both layers of 1.0.0, and the commercial layer of 1.1.0 with the digests that its manifest does not pin.
fn releases() -> Vec<Release> {
    let Some(corpus) = corpus() else { return Vec::new() };
    let profiles = ConformanceProfiles::builtin();
    let released = profiles.get(DEFAULT).expect("built in");
    let mut releases: Vec<_> = released
        .manifests()
        .map(|manifest| {
            let root = corpus.join(manifest.id().split('/').next().expect("a layer"));
            let examples = root.join("examples/v1.0.0").join(manifest.class());
            Release { examples, root, manifest: manifest.clone() }
        })
        .collect();
    let root = corpus.join("protocol-commercial");
    releases.push(Release {
        examples: root.join("examples/v1.1.0/commercial"),
        manifest: pinned(include_bytes!("../../verdict/manifests/protocol-commercial-1.1.0.json"), &root),
        root,
    });
    releases
}

/// The manifest with the digests of the files added.
fn pinned(manifest: &[u8], root: &Path) -> SchemaReleaseManifest {
    let mut file: Value = serde_json::from_slice(manifest).expect("JSON");
    for verb in file["verbs"].as_array_mut().expect("a list") {
        for side in ["request", "receipt"] {
            let path = root.join(verb[side]["path"].as_str().expect("a path"));
            verb[side]["sha256"] = json!(Digest::compute(&read(&path)));
        }
    }
    SchemaReleaseManifest::load(file.to_string().as_bytes()).expect("a manifest")
}

fn read(path: &Path) -> Bytes {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
}

impl Release {
    fn bound(&self, entry: &BoundSchemaEntry) -> BoundSchema {
        let served = |path: &Path| ServedSchema::from_bytes(read(path));
        let mut gathering = ReferencedSchemaCollector::new(&self.manifest, entry, served(&self.root.join(&entry.path)));
        while let Some(sibling) = gathering.next_missing_sibling().expect("it refers to its own release") {
            let own = gathering
                .sibling_locations(&sibling)
                .into_iter()
                .filter_map(|location| Some(self.root.join("schemas").join(location.split("/schemas/").nth(1)?)));
            assert!(own.into_iter().any(|path| gathering.supply_sibling(sibling, served(&path))), "{sibling:?}");
        }
        gathering.into_bundle().compile().expect("it is strict")
    }
}

#[test]
fn every_published_example_gets_its_stated_result() {
    let mut judged = 0;
    for release in releases() {
        for verb in release.manifest.verbs() {
            let [request, receipt] =
                [SchemaRole::Request, SchemaRole::Receipt].map(|side| release.bound(verb.schema(side)));
            for (folder, state) in [("valid", TrustState::Trusted), ("invalid", TrustState::Untrusted)] {
                for file in std::fs::read_dir(release.examples.join(&verb.name).join(folder)).expect("a folder") {
                    let path = file.expect("a file").path();
                    let is_request = path.to_string_lossy().contains(".request.");
                    let found = judge_request(&read(&path), Some(if is_request { &request } else { &receipt }));
                    assert_eq!(found.trust_state(), state, "{}: {found:#?}", path.display());
                    let unplaced = found.findings.iter().find(|finding| finding.line.is_none());
                    assert!(unplaced.is_none(), "{}: {unplaced:?}", path.display());
                    judged += 1;
                }
            }
        }
    }
    assert!(corpus().is_none() || judged == 4 * 15 + 3 * 5, "{judged}");
}

#[test]
fn a_template_of_every_verb_passes() {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let mut made = 0;
    for release in releases() {
        for verb in release.manifest.verbs() {
            let bound = release.bound(&verb.request);
            let template = RequestTemplate::from_schema(&bound, "fresh-1", now);
            let text = format!("{:#}", template.request);
            let found = judge_request(text.as_bytes(), Some(&bound));
            assert!(template.is_valid && found.findings.is_empty(), "{}: {text} {:#?}", verb.name, found.findings);
            assert!(text.contains("\"request_id\": \"fresh-1\""), "{text}");
            assert!(!template.blanks.is_empty(), "{text}");
            made += 1;
        }
    }
    assert!(corpus().is_none() || made == 20, "{made}");
}

/// The budget of the worst document is 16 MiB above idle.
#[test]
fn the_worst_request_takes_little_memory() {
    const MOST: u64 = 16 * 1024 * 1024;
    for release in releases() {
        for verb in release.manifest.verbs() {
            let bound = release.bound(&verb.request);
            for (shape, text) in worst(&bound) {
                let mut findings = 0;
                let used = allocation_counter::measure(|| {
                    let found = judge_request(text.as_bytes(), Some(&bound));
                    findings = found.findings.iter().filter(|finding| finding.effect != ReasonEffect::Warn).count();
                });
                assert!(findings > 0 || shape == "text", "{} {shape}", verb.name);
                assert!(used.bytes_max < MOST, "{} {shape}: {} bytes", verb.name, used.bytes_max);
            }
        }
    }
}

/// Requests of nearly 256 KiB: unknown members, long names, invalid items in each list of the template, and numbers
/// that parsers read differently.
fn worst(bound: &BoundSchema) -> Vec<(&'static str, String)> {
    let good = RequestTemplate::from_schema(bound, "r", jiff::Timestamp::UNIX_EPOCH).request.to_string();
    let with = |members: String| format!("{}{members}}}", &good[..good.len() - 1]);
    let many = |count: usize, member: &dyn Fn(usize) -> String| (0..count).map(member).collect::<String>();
    vec![
        ("unknown members", with(many(8000, &|at| format!(",\"m{at:06}\":[]")))),
        ("long names", with(many(240, &|at| format!(",\"{at:0>1000}\":1")))),
        ("numbers", with(format!(",\"n\":[0{}]", many(7000, &|_| ",9007199254740993".to_owned())))),
        ("items", with(format!(",\"items\":[0{}]", ",{\"sku\":0}".repeat(4000)))),
        ("modalities", with(format!(",\"tags\":[0{}]", ",\"x\"".repeat(8000)))),
        ("text", good.replace("\"<", &format!("\"{}", "\\u0000".repeat(40_000)))),
    ]
}
