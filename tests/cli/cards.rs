//! Other card systems: Orloj's cards, generated from AgentSystem resources through the library, the command line and
//! the daemon, and the ledger part of Aevum's cards.

#[path = "cards/aevum.rs"]
mod aevum;
#[path = "cards/orloj.rs"]
mod orloj;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// The binary with this standard input. It reads no configuration of the user.
fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("CLRESOLVE_")) {
        command.env_remove(key);
    }
    command.env_remove("RUST_LOG").args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    // The program may refuse what it read before it has read all.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the binary ends");
    writer.join().expect("written");
    output
}

/// Exit code, standard output and standard error.
fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code().expect("it ends by itself"), text(&output.stdout), text(&output.stderr))
}
