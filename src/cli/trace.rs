//! `trace`: like `verify`, with the evidence and time of each step.

use super::args::VerifyArgs;
use super::exit::Exit;
use super::verify::{View, judge};

pub(super) fn run(args: VerifyArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(judge(args, View::Trace))
}
