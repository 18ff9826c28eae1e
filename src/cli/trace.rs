//! `trace`: like `verify`, with the evidence and time of each step.

use super::args::VerifyArguments;
use super::exit::ExitStatus;
use super::verify::{VerdictView, judge_names_and_write_verdicts};

pub(super) fn run(args: VerifyArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(judge_names_and_write_verdicts(args, VerdictView::Trace))
}
