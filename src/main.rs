//! The program `clresolve`.

use std::process::ExitCode;

fn main() -> ExitCode {
    clresolve::cli::run(std::env::args_os())
}
