//! Other card systems: Orloj's cards, generated from AgentSystem resources through the library, the command line and
//! the daemon, and the ledger part of Aevum's cards.

#[path = "cards/aevum.rs"]
mod aevum;
#[path = "cards/orloj.rs"]
mod orloj;

use std::process::Output;

use crate::support::program::{fed, program};

/// The program with this standard input.
fn run(arguments: &[&str], input: &[u8]) -> Output {
    fed(program().args(arguments), input)
}

/// Exit code, standard output and standard error.
fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code().expect("it ends by itself"), text(&output.stdout), text(&output.stderr))
}
