//! `plan`: shows the records to set for a folder of cards, and predicts their verdicts. Opens no connection.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clresolve_core::characters::first_unsafe_character_in_value;
use clresolve_core::state::TrustState;
use clresolve_core::text::{UntrustedText, shell_quote};
use clresolve_ipfs::build::IpfsImportProfile;
use clresolve_verdict::profile::DEFAULT;
use clresolve_verdict::verdict::ResolutionDepth;
use jiff::Timestamp;

use super::args::{OutputFormat, PublicationPlanArguments};
use super::exit::ExitStatus;
use super::input;
use super::notice;
use super::output::{OutputSink, ResultWriter, is_same_file};
use super::render::{self, Palette};
use super::world::OfflineRules;
use crate::plan::{
    self, CardPublicationPlan, FileTreeNode, PlannedPaymentRecord, PublisherDeclarations, UnixFsPublication,
    VerdictPredictionRules,
};

/// Maximum number of files and folders: hundreds of times the published registry.
const MAX_NODES: usize = 20_000;

/// Maximum total size of all files, in bytes. They are held in memory, and again as blocks.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum depth of folders, so that a hostile tree cannot exhaust the stack.
const MAX_DEPTH: usize = 32;

const MAX_NOTES: usize = 10;

/// Maximum length of a displayed record, in bytes. A record to copy must be shown whole.
const MAX_RECORD_BYTES: usize = 4096;

pub(super) fn run(args: PublicationPlanArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new_unless_input_file(&args.output.out, [("--calldata", args.calldata.as_deref())])?;
    let calldata = args.calldata.as_deref().map(|file| open_calldata_output(file, &args.target)).transpose()?;
    let (publication, hidden) = read_publication(&args.target, args.import)?;
    let OfflineRules { profiles, profile, policy } = OfflineRules::read(&args.offline)?;
    let rules =
        VerdictPredictionRules { profile: &profile, profiles: &profiles, policy: &policy, now: Timestamp::now() };
    let declared = PublisherDeclarations { url: args.url.as_deref(), payees: &args.payee };
    let mut plans = plan::plan_card_publications(&publication, declared, rules)?;
    plans.sort_by_key(|plan| plan.would_be == TrustState::Trusted);
    print_plan_notes(&publication, &hidden);
    report_cards_with_same_name(&plans);
    if let Some(calldata) = calldata {
        write_calldata(&plans, calldata)?;
    }
    write_plans(&plans, output, args.output.output_format(), args.calldata.as_deref())
}

/// Reads a folder or a single card. Also returns the hidden files and folders, which are omitted.
pub(super) fn read_publication(
    target: &Path,
    import: IpfsImportProfile,
) -> anyhow::Result<(UnixFsPublication, Vec<String>)> {
    let mut reader = PublicationFolderReader { nodes: 0, bytes: 0, hidden: Vec::new() };
    let publication = UnixFsPublication::build(&reader.read_node(target, 0)?, import)?;
    if publication.card_paths().is_empty() {
        report_unreadable_files(&publication);
        bail!("{} contains no card", input::escaped_path(target));
    }
    Ok((publication, reader.hidden))
}

/// Opens the file of `--calldata`, which must not overwrite the card.
fn open_calldata_output(file: &Path, target: &Path) -> anyhow::Result<OutputSink> {
    if is_same_file(file, target) {
        bail!("--calldata {}: this is the card; name another file", input::escaped_path(file));
    }
    OutputSink::open_file("--calldata", file)
}

/// Writes one line for each card that would be trusted: its name and its call data.
fn write_calldata(plans: &[CardPublicationPlan], output: OutputSink) -> anyhow::Result<()> {
    let mut lines = String::new();
    for plan in plans {
        if let (Some(name), Some(data)) = (&plan.name, &plan.calldata) {
            let _ = writeln!(lines, "{name} {data}");
        } else {
            notice::print_notice(format_args!(
                "note: no call data for {}, which would be {}",
                plan_title(plan),
                plan.would_be
            ));
        }
    }
    if !lines.is_empty() {
        output.write_all_and_finish(lines.as_bytes())?;
    }
    Ok(())
}

fn write_plans(
    plans: &[CardPublicationPlan],
    output: OutputSink,
    format: OutputFormat,
    calldata: Option<&Path>,
) -> anyhow::Result<ExitStatus> {
    let palette = output.palette();
    let mut results = ResultWriter::for_requested_results(output, format, plans.len());
    let mut worst = ExitStatus::Trusted;
    for (at, plan) in plans.iter().enumerate() {
        worst = worst.max(plan.would_be.into());
        results.push(plan, |format| match format {
            OutputFormat::Short => format_plan_line(plan, &palette),
            _ if at > 0 => format!("\n{}", format_publication_plan(plan, &palette, calldata)),
            _ => format_publication_plan(plan, &palette, calldata),
        })?;
    }
    results.finish()?;
    Ok(worst)
}

fn print_plan_notes(publication: &UnixFsPublication, hidden: &[String]) {
    report_unreadable_files(publication);
    if let Some(first) = hidden.first() {
        let count = hidden.len();
        notice::print_notice(format_args!(
            "note: {count} hidden left out, as importers do; {} is one",
            UntrustedText::new(first)
        ));
    }
    if let Some(first) = publication.ambiguous_files().next() {
        notice::print_notice(format_args!(
            "note: {} is larger than 256 KiB; the CID is valid only for importers with 1 MiB chunks",
            UntrustedText::new(first)
        ));
    }
}

/// Reports names that several cards claim, since a name has one set of records.
fn report_cards_with_same_name(plans: &[CardPublicationPlan]) {
    let mut seen = BTreeMap::new();
    for name in plans.iter().filter_map(|plan| plan.name.as_deref()) {
        *seen.entry(name).or_insert(0) += 1;
    }
    for (name, count) in seen.into_iter().filter(|(_, count)| *count > 1).take(MAX_NOTES) {
        notice::print_notice(format_args!(
            "note: {count} cards are bound to {}; set the records of one",
            UntrustedText::new(name)
        ));
    }
}

fn report_unreadable_files(publication: &UnixFsPublication) {
    for (path, error) in publication.unreadable_json_files().iter().take(MAX_NOTES) {
        if !path.is_empty() {
            notice::print_notice(format_args!(
                "note: not read as a card: {}: {}",
                UntrustedText::new(path),
                UntrustedText::new(&error.to_string())
            ));
        }
    }
}

fn format_plan_line(plan: &CardPublicationPlan, palette: &Palette) -> String {
    let style = palette.state_style(plan.would_be);
    let codes: Vec<&str> = plan.reasons.iter().map(|reason| reason.code.slug()).collect();
    format!("{style}would be {}{style:#}  {}  {}\n", plan.would_be, plan_title(plan), codes.join(","))
}

fn plan_title(plan: &CardPublicationPlan) -> String {
    let name = plan.name.as_deref().or(plan.path.as_deref()).unwrap_or("the card");
    UntrustedText::new(name).to_string()
}

fn format_publication_plan(plan: &CardPublicationPlan, palette: &Palette, calldata: Option<&Path>) -> String {
    let style = palette.state_style(plan.would_be);
    let name = plan_title(plan);
    let mut text = format!("plan for {name}: {style}would be {}{style:#}\n", plan.would_be);
    for reason in &plan.reasons {
        text.push('\n');
        render::write_reason(&mut text, reason, palette);
    }
    if !plan.reasons.is_empty() {
        text.push('\n');
    }
    let path = plan.path.as_deref().unwrap_or("none: the CID is the card");
    let _ = writeln!(text, "  cid     {}\n  path    {}", plan.cid, UntrustedText::new(path));
    for (profile, cid) in plan.cids.iter().filter(|(_, cid)| **cid != plan.cid) {
        let _ =
            writeln!(text, "  or      {cid} if your importer follows {profile}: plan again with --import {profile}");
    }
    let _ = writeln!(text, "  sha256  {}, {} bytes", plan.sha256.to_hex(), plan.bytes);
    for (depth, state) in &plan.would_be_at {
        let _ = writeln!(text, "  {depth:<9}would be {state}");
    }
    let heading =
        if plan.would_be == TrustState::Trusted { "records to set" } else { "records of this card, not to be set" };
    let _ = writeln!(text, "\n{heading}:");
    for (key, value) in &plan.records {
        let _ = match first_unsafe_character_in_value(value) {
            // An escaped value would be another record.
            None if value.len() <= MAX_RECORD_BYTES => writeln!(text, "  {key}={value}"),
            None => writeln!(text, "  {key}: {} bytes, too long to be shown; -o json has it", value.len()),
            Some(_) => writeln!(text, "  {key}: not to be set; it reads {}", UntrustedText::new(value)),
        };
    }
    for PlannedPaymentRecord { record, value, .. } in &plan.payment_records {
        let _ = value.as_ref().map_or(Ok(()), |value| writeln!(text, "  {record}={value}"));
    }
    if let (Some(manager), Some(_)) = (&plan.manager, &plan.calldata) {
        let _ = writeln!(text, "\nset them by hand at {manager}");
        let _ = match calldata {
            Some(file) => writeln!(text, "or at once, with the call data in {}", input::escaped_path(file)),
            None => writeln!(text, "or at once, with the call data that --calldata FILE writes"),
        };
    }
    text.push_str("\nto be paid, set these too:\n");
    for PlannedPaymentRecord { record, says, .. } in plan.payment_records.iter().filter(|record| record.value.is_none())
    {
        let _ = writeln!(text, "  {record:<20} {says}");
    }
    let _ = writeln!(text, "\n{style}{}{style:#}", publication_advice(plan, &name));
    text
}

/// One sentence that states what to do. It must not sound like a verdict.
fn publication_advice(plan: &CardPublicationPlan, name: &str) -> String {
    let profile = UntrustedText::new(&plan.profile);
    let near = match plan.near_misses.first() {
        Some(near) => format!(", or plan for --profile {}, under which it would be trusted", UntrustedText::new(near)),
        None => String::new(),
    };
    match plan.would_be {
        TrustState::Trusted => {
            let flags = flags_for_verify(plan);
            format!(
                "This is a plan, not a verdict: publish the CID, set the records on {name}, then ask `clresolve {flags}{}`; it would be trusted under {profile}.",
                shell_quote(plan.name.as_deref().unwrap_or("NAME"))
            )
        }
        TrustState::Untrusted | TrustState::Indeterminate => {
            format!("Do not publish yet: under {profile} {name} would be {}; fix the card first{near}.", plan.would_be)
        }
    }
}

/// The options with which `verify` applies the same rules, each followed by a space.
fn flags_for_verify(plan: &CardPublicationPlan) -> String {
    let mut flags = String::new();
    if plan.profile != DEFAULT {
        let _ = write!(flags, "--profile {} ", UntrustedText::new(&plan.profile));
    }
    if plan.depth == ResolutionDepth::Schemas {
        flags.push_str("--depth schemas ");
    }
    flags
}

/// Reads a folder like importers do: regular files and folders, except hidden ones.
struct PublicationFolderReader {
    nodes: usize,
    bytes: u64,
    hidden: Vec<String>,
}

impl PublicationFolderReader {
    fn read_node(&mut self, path: &Path, depth: usize) -> anyhow::Result<FileTreeNode> {
        let shown = || input::escaped_path(path);
        let read = if clresolve_core::mutant!("symlinks-are-published") { fs::metadata } else { fs::symlink_metadata };
        let kind = read(path).with_context(|| format!("cannot read {}", shown()))?.file_type();
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            bail!("more than {MAX_NODES} files and folders");
        }
        if kind.is_file() {
            self.read_file(path).with_context(|| format!("cannot read {}", shown())).map(FileTreeNode::File)
        } else if kind.is_symlink() {
            bail!("{} is a symlink; what it leads to is not what would be published", shown());
        } else if !kind.is_dir() {
            bail!("{} is neither a file nor a folder", shown());
        } else if depth == MAX_DEPTH {
            bail!("{} is deeper than {MAX_DEPTH} folders", shown());
        } else {
            self.read_folder(path, depth).map(FileTreeNode::Folder)
        }
    }

    fn read_folder(&mut self, path: &Path, depth: usize) -> anyhow::Result<BTreeMap<String, FileTreeNode>> {
        let shown = input::escaped_path(path);
        let mut nodes = BTreeMap::new();
        for entry in fs::read_dir(path).with_context(|| format!("cannot read {shown}"))? {
            let entry = entry.with_context(|| format!("cannot read {shown}"))?;
            let Ok(name) = entry.file_name().into_string() else { bail!("a name in {shown} is not UTF-8") };
            if name.starts_with('.') {
                self.add_hidden_path(&entry.path())?;
                continue;
            }
            let node = self.read_node(&entry.path(), depth + 1)?;
            nodes.insert(name, node);
        }
        Ok(nodes)
    }

    fn add_hidden_path(&mut self, path: &Path) -> anyhow::Result<()> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            bail!("more than {MAX_NODES} files and folders");
        }
        self.hidden.push(path.display().to_string());
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> anyhow::Result<Bytes> {
        let left = MAX_BYTES - self.bytes;
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(left + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > left {
            bail!("more than {MAX_BYTES} bytes in all files together");
        }
        self.bytes += bytes.len() as u64;
        Ok(bytes.into())
    }
}
