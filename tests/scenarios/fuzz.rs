//! The fuzz targets over their committed corpora, without libFuzzer, and the seeds from which those are made.
//!
//! `SEEDS=write cargo test --test scenarios fuzz::` writes `fuzz/corpus` anew after a seed has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "fuzz/seeds.rs"]
mod seeds;
#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

use targets::Target;

/// Largest seed, in bytes. A larger one costs the fuzzer more than it gives.
const MAX_SEED_BYTES: usize = 8 << 10;

#[test]
fn every_target_accepts_its_corpus() {
    for target in Target::ALL {
        let corpus = corpus(target.name);
        assert!(corpus.len() >= 4, "{}: {} seeds", target.name, corpus.len());
        for (file, input) in corpus {
            assert!(input.len() <= MAX_SEED_BYTES, "{}/{file}", target.name);
            (target.run)(&input);
        }
    }
}

#[test]
fn inputs_without_a_form_are_accepted_too() {
    for target in Target::ALL {
        for input in [&[][..], &[0], &[0xff; 3], &[0; 100], b"\n", &[0x80; 1000]] {
            (target.run)(input);
        }
    }
}

#[test]
fn a_target_is_known_by_its_name_alone() {
    for name in Target::names() {
        assert_eq!(Target::named(name).map(|target| target.name), Some(name));
    }
    assert!(Target::named("").is_none());
}

#[test]
fn the_corpora_are_made_from_the_seeds() {
    let write = std::env::var_os("SEEDS").is_some_and(|value| value == "write");
    for target in Target::ALL {
        let made: BTreeMap<String, Vec<u8>> = seeds::of(target.name);
        if write {
            let folder = folder(target.name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).expect("the folder can be made");
            for (file, input) in &made {
                fs::write(folder.join(file), input).expect("the file can be written");
            }
        }
        let (made, found) = (made.into_iter().collect::<Vec<_>>(), corpus(target.name));
        assert!(made == found, "{}: run SEEDS=write cargo test --test scenarios fuzz::", target.name);
    }
}

#[test]
fn the_targets_are_built_from_the_versions_of_the_program() {
    let own = ["arbitrary", "clresolve-fuzz", "libfuzzer-sys"];
    let released = locked("Cargo.lock");
    let mut strangers = locked("fuzz/Cargo.lock");
    strangers.retain(|(name, version)| {
        !own.contains(&name.as_str()) && !released.contains(&(name.clone(), version.clone()))
    });
    assert!(strangers.is_empty(), "run just fuzz-lock: {strangers:?}");
}

/// Name and version of every package in a lock file.
fn locked(path: &str) -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a lock file is readable");
    let lock: toml::Table = text.parse().expect("a lock file is TOML");
    let text = |package: &toml::Value, key: &str| package[key].as_str().expect("a text").to_owned();
    let packages = lock["package"].as_array().expect("packages").iter();
    packages.map(|package| (text(package, "name"), text(package, "version"))).collect()
}

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder(target)).expect("every target has a corpus");
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let entry = entry.expect("an entry is readable");
            let input = fs::read(entry.path()).expect("a seed is readable");
            (entry.file_name().into_string().expect("a plain name"), input)
        })
        .collect();
    files.sort();
    files
}

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}
