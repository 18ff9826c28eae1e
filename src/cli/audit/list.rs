//! `audit list`: finds names in the chain's logs and writes them as a list for audits.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::B256;
use anyhow::Context as _;
use clresolve_core::name::EnsName;
use clresolve_core::text::UntrustedText;
use clresolve_resolver::resolve::{FoundNamehashes, NameSearchScope, NamehashPreimages};
use serde::Serialize;

use crate::cli::args::{AuditListArguments, OutputFormat};
use crate::cli::exit::ExitStatus;
use crate::cli::names::{self, NameListLine};
use crate::cli::notice;
use crate::cli::output::{OutputSink, ResultWriter};
use crate::cli::progress::ProgressLine;
use crate::cli::world::{CommandContext, CommandInputFiles};

pub(super) fn run(args: AuditListArguments) -> anyhow::Result<ExitStatus> {
    crate::cli::runtime::run_async_until_interrupt(list_names_in_logs(args))
}

async fn list_names_in_logs(args: AuditListArguments) -> anyhow::Result<ExitStatus> {
    let world = CommandInputFiles::from_arguments(&args.world);
    let read = [("--known", args.known.as_deref())].into_iter().chain(world.iter());
    let output = OutputSink::new_unless_input_file(&args.output.out, read)?;
    let known = args.known.as_deref().map(names::open_name_list).transpose().context("--known")?;
    let world = CommandContext::open(&args.world).await?;
    let finder = world.resolver.name_finder().context("the chain is not read through endpoints")?;
    let progress = ProgressLine::start("reading logs".to_owned());
    let mut nodes = BTreeMap::new();
    let mut is_whole = true;
    for wanted in args.changed.iter().chain(&args.below) {
        let found = finder.find_names(wanted).await;
        progress.with_line_hidden(|| is_whole &= report_endpoint_log_completeness(wanted, &found));
        for (node, block) in found.nodes {
            let last = nodes.entry(node).or_default();
            *last = block.max(*last);
        }
    }
    let mut unspelt: BTreeSet<B256> = nodes.keys().copied().collect();
    let mut spelt =
        progress.with_line_hidden(|| match_known_names_to_nodes(&mut unspelt, known.map(|list| list.reader)))?;
    let NamehashPreimages { names, unanswered } = finder.fetch_node_names(unspelt).await;
    spelt.extend(names);
    drop(progress);
    if unanswered > 0 {
        anstream::eprintln!("clresolve: no endpoint returned the spelling of {unanswered} names in time");
        is_whole = false;
    }
    let mut results = ResultWriter::for_result_list(output, args.output.output_format());
    for listed in sorted_name_search_rows(&nodes, &spelt) {
        results.push(&listed, |format| format_search_row(&listed, format))?;
    }
    results.finish()?;
    Ok(if is_whole { ExitStatus::Trusted } else { ExitStatus::Indeterminate })
}

/// Reports which endpoints have sent their logs, and returns whether all are complete.
fn report_endpoint_log_completeness(wanted: &NameSearchScope, found: &FoundNamehashes) -> bool {
    let wanted = match wanted {
        NameSearchScope::Changed { .. } => "--changed".to_owned(),
        NameSearchScope::Below(name) => format!("--below {name}"),
    };
    for (endpoint, block) in &found.told {
        notice::print_notice(format_args!(
            "clresolve: {wanted}: {} has sent all its logs up to block {block}",
            UntrustedText::new(endpoint)
        ));
    }
    for (endpoint, cause) in &found.failed {
        let (endpoint, cause) = (UntrustedText::new(endpoint), UntrustedText::new(cause));
        anstream::eprintln!("clresolve: {wanted}: {endpoint} has not sent all its logs: {cause}");
    }
    found.failed.is_empty()
}

/// Maximum number of invalid lines that are reported individually.
const MOST_TOLD: u64 = 10;

/// Removes the nodes of the listed names from `nodes`, and returns their names. Reports invalid lines.
fn match_known_names_to_nodes(
    nodes: &mut BTreeSet<B256>,
    list: Option<names::NameListReader>,
) -> anyhow::Result<BTreeMap<B256, EnsName>> {
    let (mut known, mut nameless) = (BTreeMap::new(), 0_u64);
    for line in list.into_iter().flatten() {
        let line = line.context("--known")?;
        let number = line.line_number();
        match name_of_line(line) {
            Ok(name) => {
                if nodes.remove(&name.namehash()) {
                    known.insert(name.namehash(), name);
                }
            }
            Err(why) => {
                nameless += 1;
                if nameless <= MOST_TOLD {
                    notice::print_notice(format_args!(
                        "clresolve: --known, line {number}: {}",
                        UntrustedText::new(&why)
                    ));
                }
            }
        }
    }
    if nameless > MOST_TOLD {
        notice::print_notice(format_args!("clresolve: --known: {} more invalid lines", nameless - MOST_TOLD));
    }
    Ok(known)
}

/// The name in a line, or why there is none.
fn name_of_line(line: NameListLine) -> Result<EnsName, String> {
    match line {
        NameListLine::Name { name, .. } => EnsName::parse(&name).map_err(|error| error.to_string()),
        NameListLine::Unreadable { why, .. } => Err(why),
    }
}

#[derive(Debug, PartialEq, Serialize)]
struct NameSearchRow {
    /// The name, if it is known.
    name: Option<String>,
    /// Its node (EIP-137).
    node: B256,
    /// The last block with a log about the name.
    block: u64,
}

/// Sorts by name. Nodes without a known name come last.
fn sorted_name_search_rows(nodes: &BTreeMap<B256, u64>, spelt: &BTreeMap<B256, EnsName>) -> Vec<NameSearchRow> {
    let listed = |(node, block): (&B256, &u64)| NameSearchRow {
        name: spelt.get(node).map(|name| name.as_str().to_owned()),
        node: *node,
        block: *block,
    };
    let mut listed: Vec<_> = nodes.iter().map(listed).collect();
    listed.sort_by(|a, b| (a.name.is_none(), &a.name, a.node).cmp(&(b.name.is_none(), &b.name, b.node)));
    listed
}

/// Names are written unescaped, so that an audit can read them again. A normal form (ENSIP-15) contains no control or
/// bidirectional characters, except for the joiners of emoji, which are part of the name.
fn format_search_row(listed: &NameSearchRow, format: OutputFormat) -> String {
    let NameSearchRow { name, node, block } = listed;
    match (name, format) {
        (Some(name), OutputFormat::Short) => format!("{name}\n"),
        (Some(name), _) => format!("{name}  # block {block}\n"),
        (None, OutputFormat::Short) => format!("{node}\n"),
        (None, _) => format!("{node}  # block {block}, its name is not known\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_name_is_read_again_as_it_is() {
        let long = format!("{}.eth", ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(34)].join("."));
        for text in ["👨‍👩‍👦.eth", "🏴󠁧󠁢󠁥󠁮󠁧󠁿.eth", "1⃣.eth", &long] {
            let name = EnsName::parse(text).expect(text);
            let listed = NameSearchRow { name: Some(name.as_str().to_owned()), node: name.namehash(), block: 7 };
            for format in [OutputFormat::Short, OutputFormat::Text] {
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(file.path(), format_search_row(&listed, format)).unwrap();
                let lines: Vec<_> = names::open_name_list(file.path()).unwrap().reader.collect();
                let expected = NameListLine::Name { line: 1, name: name.as_str().to_owned() };
                assert_eq!(lines, [Ok(expected)], "{text}");
            }
        }
    }

    /// The reason why names may be written to a list or a terminal unescaped.
    #[test]
    fn no_normal_form_holds_what_acts_on_a_terminal() {
        let is_held = |c: char| {
            let texts = [format!("a{c}b.eth"), format!("{c}.eth"), format!("א{c}ב.eth")];
            texts.iter().filter_map(|text| EnsName::parse(text).ok()).any(|name| name.as_str().contains(c))
        };
        // Controls, bidirectional and invisible characters, and line ends.
        let acts = |c: char| {
            c.is_control()
                || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
                || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        };
        let held: Vec<char> = ('\0'..='\u{ffff}').filter(|c| acts(*c) && is_held(*c)).collect();
        assert!(held.is_empty(), "{held:?}");
    }
}
