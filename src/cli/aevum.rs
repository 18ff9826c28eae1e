//! `cards aevum`: the ledger's part of Aevum's agent cards.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::Context as _;

use super::args::{AevumCommand, Format, MetadataArgs};
use super::exit::Exit;
use super::output::{Output, Results};
use crate::clock::{Clock as _, SystemClock};
use crate::ledger::{AgentMetadata, Ledger, LedgerError, MAX_LINE_BYTES, MAX_RECORDS, Projection};
use crate::text::Foreign;

/// Most lines, empty ones among them: a ledger without records must end, too.
const MAX_LINES: usize = 2 * MAX_RECORDS;

pub(super) fn run(command: AevumCommand) -> anyhow::Result<Exit> {
    match command {
        AevumCommand::Metadata(args) => metadata(args),
    }
}

fn metadata(args: MetadataArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let name = Foreign::new(&args.ledger.display().to_string()).to_string();
    let mut ledger = Ledger::default();
    let read = if args.ledger == Path::new("-") {
        read(io::stdin().lock(), &mut ledger)
    } else {
        let file = File::open(&args.ledger).with_context(|| format!("cannot read {name}"))?;
        read(BufReader::new(file), &mut ledger)
    };
    let at = args.at.unwrap_or_else(|| SystemClock.now());
    let projected = read
        .with_context(|| format!("cannot read {name}"))?
        .and_then(|()| ledger.project(at, args.lambda.unwrap_or_default()));
    let mut projection = match projected {
        Ok(projection) => projection,
        Err(refused) => {
            anstream::eprintln!("clresolve: {name}: {refused}");
            return Ok(Exit::Untrusted);
        }
    };
    if let Some(agent) = args.agent {
        projection.agents.retain(|known| known.agent_id == agent);
        if projection.agents.is_empty() {
            anstream::eprintln!("clresolve: {name} has no record of {agent} up to {at}");
            return Ok(Exit::Untrusted);
        }
    }
    let mut results = Results::new(output, args.output.form(), false);
    results.push(&projection, |format| match format {
        Format::Short => projection.agents.iter().map(short).collect(),
        _ => people(&projection),
    })?;
    results.finish()?;
    Ok(Exit::Trusted)
}

/// Pushes every line. The outer error is that of reading, the inner one that of what was read.
fn read(mut from: impl BufRead, ledger: &mut Ledger) -> io::Result<Result<(), LedgerError>> {
    let mut line = Vec::new();
    for _ in 0..MAX_LINES {
        line.clear();
        // A longer line is cut, and then too long for the ledger.
        if from.by_ref().take(MAX_LINE_BYTES as u64 + 2).read_until(b'\n', &mut line)? == 0 {
            return Ok(Ok(()));
        }
        if let Err(refused) = ledger.push(&line) {
            return Ok(Err(refused));
        }
    }
    Ok(Err(LedgerError::TooMany { line: MAX_LINES + 1, what: "lines", limit: MAX_LINES }))
}

fn short(agent: &AgentMetadata) -> String {
    let figures = &agent.metadata;
    format!(
        "{} {} {} {} {} {}\n",
        agent.agent_id,
        figures.interaction_count,
        figures.avg_latency_ms,
        figures.avg_cost_joules,
        figures.influence_rank,
        figures.critical_score
    )
}

fn people(projection: &Projection) -> String {
    let mut text = String::new();
    for agent in &projection.agents {
        let figures = &agent.metadata;
        let _ = writeln!(text, "{}", agent.agent_id);
        let _ = writeln!(text, "  pacr:interaction_count  {}", figures.interaction_count);
        let _ = writeln!(text, "  pacr:avg_latency_ms     {}", figures.avg_latency_ms);
        let _ = writeln!(text, "  pacr:avg_cost_joules    {:e}", figures.avg_cost_joules);
        let _ = writeln!(text, "  pacr:influence_rank     {}", figures.influence_rank);
        let _ = writeln!(text, "  pacr:critical_score     {}", figures.critical_score);
        text.push('\n');
    }
    let (ledger, stated) = (&projection.ledger, &projection.stated);
    let _ = writeln!(
        text,
        "{} of {} records used; left out: {} later, {} counterfactual, {} without an agent. {} agents, {} links.",
        ledger.used,
        ledger.records,
        ledger.later,
        ledger.counterfactual,
        ledger.unattributed,
        ledger.agents,
        ledger.links
    );
    if ledger.predecessors_unknown > 0 {
        let _ = writeln!(text, "{} predecessors are not in the ledger.", ledger.predecessors_unknown);
    }
    let _ = writeln!(text, "As of {}, lambda {} per second: weight {}.", stated.at, stated.lambda, stated.weight);
    let _ = writeln!(text, "Graph: {}.", stated.graph);
    let _ = writeln!(text, "Influence: {}. Critical: {}.", stated.influence_rank, stated.critical_score);
    for (member, why) in &stated.not_computed {
        let _ = writeln!(text, "Not computed: {member}; {why}.");
    }
    text
}
