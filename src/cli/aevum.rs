//! `cards aevum`: computes the members of Aevum's agent cards that derive from a ledger.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use clresolve_cards::ledger::{AevumAgentId, PacrAgentMetricsRow, PacrLedgerMetrics, insert_metrics};
use clresolve_cards::lint::MAX_BYTES;
use clresolve_verdict::card::AgentCard;

use super::args::{AevumCommand, AevumMetadataArguments, OutputFormat};
use super::exit::ExitStatus;
use super::input::{escaped_path, read_file_or_stdin};
use super::output::{OutputSink, OutputWriteError, ResultWriter};
use super::{ledger, new_file};

pub(super) fn run(command: AevumCommand) -> anyhow::Result<ExitStatus> {
    match command {
        AevumCommand::Metadata(args) => compute_agent_metadata(args),
    }
}

fn compute_agent_metadata(args: AevumMetadataArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let name = escaped_path(&args.ledger);
    let card = args.into.as_deref().map(AevumCardFile::read).transpose()?;
    let mut projection = match ledger::compute_ledger_metrics(&args.ledger, args.weights)? {
        Ok(projection) => projection,
        Err(refused) => {
            anstream::eprintln!("clresolve: {name}: {refused}");
            return Ok(ExitStatus::Untrusted);
        }
    };
    if let Some(agent) = card.as_ref().map(|card| card.agent).or(args.agent) {
        projection.agents.retain(|known| known.agent_id == agent);
        if projection.agents.is_empty() {
            anstream::eprintln!("clresolve: {name} has no record of {agent} up to {}", projection.stated.at);
            return Ok(ExitStatus::Untrusted);
        }
    }
    if let (Some(card), [only]) = (&card, projection.agents.as_slice()) {
        card.write_metrics(only)?;
    }
    let mut results = ResultWriter::for_single_result(output, args.output.output_format());
    results.push(&projection, |format| match format {
        OutputFormat::Short => projection.agents.iter().map(format_agent_metrics).collect(),
        _ => format_ledger_metrics(&projection),
    })?;
    results.finish()?;
    Ok(ExitStatus::Trusted)
}

/// The card into which the figures are written.
struct AevumCardFile<'p> {
    file: &'p Path,
    text: String,
    agent: AevumAgentId,
}

impl<'p> AevumCardFile<'p> {
    fn read(file: &'p Path) -> anyhow::Result<Self> {
        let name = escaped_path(file);
        let bytes = read_file_or_stdin(file, MAX_BYTES)?;
        let card = AgentCard::parse(&bytes).with_context(|| format!("--into {name}: not a card"))?;
        let agent = card.text_at("/agent_id").and_then(|agent| agent.parse().ok());
        let agent = agent.with_context(|| format!("--into {name}: expected an Aevum card, with its agent_id"))?;
        let text = String::from_utf8(bytes).with_context(|| format!("--into {name}: not a card"))?;
        Ok(Self { file, text, agent })
    }

    fn write_metrics(&self, figures: &PacrAgentMetricsRow) -> anyhow::Result<()> {
        let name = escaped_path(self.file);
        let text = insert_metrics(&self.text, &figures.metadata).with_context(|| format!("--into {name}"))?;
        if text == self.text {
            return Ok(());
        }
        new_file::replace_file(self.file, text.as_bytes())
            .map_err(|error| OutputWriteError::new(name.clone(), error))?;
        anstream::eprintln!("clresolve: {name}: wrote the ledger's figures of {} into metadata", self.agent);
        Ok(())
    }
}

fn format_agent_metrics(agent: &PacrAgentMetricsRow) -> String {
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

fn format_ledger_metrics(projection: &PacrLedgerMetrics) -> String {
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
