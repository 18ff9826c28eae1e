//! The fuzz targets over their committed corpora, without libFuzzer, and the seeds from which those are made.
//!
//! `SEEDS=write cargo test --test fuzz` writes `fuzz/corpus` anew after a seed has changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "fuzz/seeds.rs"]
mod seeds;
#[path = "../fuzz/src/targets/mod.rs"]
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
        assert!(made == found, "{}: run SEEDS=write cargo test --test fuzz", target.name);
    }
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
