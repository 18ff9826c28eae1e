//! The program of this package, run as a user runs it, and its output.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_clresolve");

/// The program without the configuration of the user who runs the tests. Its standard input is empty.
pub(crate) fn program() -> Command {
    let mut command = Command::new(BINARY);
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("CLRESOLVE_")) {
        command.env_remove(key);
    }
    for key in ["RUST_LOG", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(key);
    }
    // This folder does not exist, so the program finds no configuration file of the user.
    command.env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    command
}

pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    program().args(arguments).output().expect("the program runs")
}

/// Runs the program with this standard input and an empty environment.
pub(crate) fn clresolve(arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
    let mut command = Command::new(BINARY);
    // `tests/mutants/run` sets this variable.
    command.env_clear().envs(std::env::var_os("MUTANT").map(|switch| ("MUTANT", switch)));
    fed(command.args(arguments), input)
}

/// Runs a command with this standard input.
pub(crate) fn fed(command: &mut Command, input: impl AsRef<[u8]>) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.as_ref().to_vec();
    // The program may end before it has read all of its input, which closes the pipe.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the writer does not panic");
    output
}

#[track_caller]
pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("the program ends by itself")
}

#[track_caller]
pub(crate) fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("stdout is UTF-8")
}

#[track_caller]
pub(crate) fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("stderr is UTF-8")
}

#[track_caller]
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}{}", out(output), err(output)))
}

/// The standard output and the standard error of a program that ends with this exit status.
#[track_caller]
pub(crate) fn ends(output: &Output, status: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{out}{err}");
    (out, err)
}
