//! Judges the requests that cost most, for a program that counts instructions.
//!
//! `worst-requests count` prints how many are known. `worst-requests judge NUMBER` judges one of them, once unmeasured and
//! once in `judge_measured`. `worst-requests time` prints how long each of them takes.

#[path = "../tests/worst/documents.rs"]
mod documents;

use std::process::ExitCode;
use std::time::Instant;

use documents::{Kind, World};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["count"] => println!("{}", Kind::ALL.len()),
        ["judge", number] => match number.parse::<usize>().ok().and_then(|number| Kind::ALL.get(number)) {
            Some(kind) => judge(*kind),
            None => return usage(),
        },
        ["time"] => Kind::ALL.into_iter().for_each(time),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("worst-requests count | judge NUMBER | time");
    ExitCode::from(2)
}

fn judge(kind: Kind) {
    let (world, request) = (World::new(), kind.request());
    std::hint::black_box(world.judge(b"{}"));
    println!("{} bytes: {kind:?}", request.len());
    std::hint::black_box(world.judge_measured(&request));
}

/// The shortest of some runs.
fn time(kind: Kind) {
    let (world, request) = (World::new(), kind.request());
    let run = || {
        let started = Instant::now();
        std::hint::black_box(world.judge(&request));
        started.elapsed()
    };
    let shortest = (0..20).map(|_| run()).min().unwrap_or_default();
    println!("{shortest:?}  {kind:?}");
}
