//! The first lines of the report: the network, who must act and why, the changes, the trend, and the rules, including
//! other rules that accept more.

use super::cause::DefectCategory;
use super::difference::{AuditChangeKind, AuditDifference};
use super::document::AuditReport;
use super::overview::{AuditOverview, ProfileNearMissCounts};
use super::owners::OnChainOwner;
use super::page::{TextRun, name_count_text, plain_run, untrusted_run, utc_day};
use super::waiver::WaiverStatus;
use super::words::{actor_noun, chain_name, embed_sentence, plural_duty_phrase};
use clresolve_core::reason::{FixerRole, ReasonCode};

/// Maximum number of other profiles listed: those that would trust the most names. The reports for programs list all.
const MOST_RULES: usize = 3;

/// Maximum number of findings listed per profile: the most frequent.
const MOST_CODES: usize = 2;

/// Maximum number of reports in the trend: the latest. The chart below has all.
const MOST_REPORTS: usize = 6;

pub(super) struct ReportSummaryLine<'a> {
    pub(super) label: &'static str,
    pub(super) pieces: Vec<TextRun<'a>>,
}

/// The lines, in order. The network is first: on a phone, `html/page.css` keeps the first line below the headline and
/// moves the others down.
pub(super) fn summary_lines<'a>(report: &'a AuditReport, overview: &'a AuditOverview) -> Vec<ReportSummaryLine<'a>> {
    let lines = [
        Some(network_line(report)),
        Some(actor_line(report, overview)),
        unknown_holders_line(report),
        changes_line(report),
        trend_line(report),
        Some(rules_line(report, overview)),
    ];
    lines.into_iter().flatten().chain(waivers_line(report)).collect()
}

/// The network and the blocks. A fork has the chain identifier of its original, so mainnet requires the right name too.
fn network_line(report: &AuditReport) -> ReportSummaryLine<'_> {
    let scope = &report.scope;
    let label = match (scope.world.as_str(), scope.chain.as_str()) {
        ("mainnet", "eip155:1") => "Network:",
        ("sandbox", _) | (_, "eip155:31337" | "eip155:11155111") => "Test network:",
        _ => "Not mainnet:",
    };
    let mut pieces = vec![plain_run(" "), untrusted_run(&scope.world), plain_run(", ")];
    match chain_name(&scope.chain) {
        Some(_) if scope.chain == "eip155:1" && scope.world != "mainnet" => {
            pieces.push(plain_run("with Ethereum's chain id (eip155:1)"));
        }
        Some(name) => pieces.push(plain_run(format!("{name} ({})", scope.chain))),
        None => pieces.extend([plain_run("chain "), untrusted_run(&scope.chain)]),
    }
    let read = report
        .block_range_text()
        .map_or_else(|| ". No block was read.".to_owned(), |blocks| format!(", read at {blocks}"));
    pieces.push(plain_run(read));
    if let Some((first, last)) = report.counts.checked {
        let (first, last) = (utc_day(first), utc_day(last));
        let days = if first == last { format!(" on {first}.") } else { format!(" from {first} to {last}.") };
        pieces.push(plain_run(days));
    }
    ReportSummaryLine { label, pieces }
}

/// The actor who must act on the most names, the account that owns most of them, and the most frequent cause.
fn actor_line<'a>(report: &AuditReport, overview: &'a AuditOverview) -> ReportSummaryLine<'a> {
    let label = "Who must act:";
    let Some((actor, due)) = overview.busiest_actor() else {
        let nobody = match (report.is_complete(), overview.waiting_names()) {
            (false, _) => " not known. Names of the list are missing.".to_owned(),
            (true, 0) => " nobody. Nothing is wrong.".to_owned(),
            (true, waiting) => format!(" nobody. Waiting alone resolves the findings of {}.", name_count_text(waiting)),
        };
        return ReportSummaryLine { label, pieces: vec![plain_run(nobody)] };
    };
    let mut pieces = vec![plain_run(format!(" {}, who {}", actor_noun(actor), plural_duty_phrase(actor)))];
    if actor == FixerRole::Publisher {
        pieces.extend(main_owner_text(overview, due));
    }
    pieces.push(plain_run("."));
    pieces.extend(
        overview.causes_of(actor).first().map(|(cause, on)| plain_run(most_frequent_cause_text(*cause, *on, due))),
    );
    ReportSummaryLine { label, pieces }
}

fn most_frequent_cause_text(cause: DefectCategory, on: u64, due: u64) -> String {
    let cause = embed_sentence(cause.in_words());
    if on == due {
        format!(" The cause: {cause}.")
    } else {
        format!(" The most frequent cause: {cause} ({on} of the {}).", name_count_text(due))
    }
}

/// The account that owns the most of the names.
fn main_owner_text(overview: &AuditOverview, due: u64) -> Vec<TextRun<'_>> {
    let most = overview.owners.sorted_by_name_count();
    let account = most.iter().find_map(|(owner, owned)| match owner {
        OnChainOwner::Account(account) => Some((account, owned.names)),
        OnChainOwner::Nobody | OnChainOwner::Unread => None,
    });
    let Some((account, owned)) = account else { return vec![plain_run("; no owner of these names could be read")] };
    let (before, after) = match owned {
        1 if due == 1 => ("; here the account ", ", which owns the name".to_owned()),
        all if all == due => ("; here the account ", format!(", which owns all {}", name_count_text(due))),
        most if most * 2 > due => {
            ("; above all the account ", format!(", which owns {most} of the {}", name_count_text(due)))
        }
        few => ("; no account owns most of the names, ", format!(" owns {few} of the {}", name_count_text(due))),
    };
    vec![plain_run(before), untrusted_run(account), plain_run(after)]
}

/// The number of names whose holder or expiry is unknown.
fn unknown_holders_line(report: &AuditReport) -> Option<ReportSummaryLine<'_>> {
    let unreadable = report.counts.holder_unreadable;
    let (they, have) =
        if unreadable == 1 { ("It, or its owner's name,", "has") } else { ("They, or their owners' names,", "have") };
    let text = format!(
        " {}. {they} {have} moved to ENSv2 ({}).",
        name_count_text(unreadable),
        ReasonCode::HolderUnreadable.slug()
    );
    (unreadable > 0).then(|| ReportSummaryLine { label: "Holder or expiry unknown:", pieces: vec![plain_run(text)] })
}

fn changes_line(report: &AuditReport) -> Option<ReportSummaryLine<'_>> {
    let since = report.since.as_ref()?;
    let count = |kind: AuditChangeKind| since.changes.iter().filter(|change| change.kind == kind).count();
    let earlier = report.before.and_then(|before| before.generated_at.or(before.checked));
    let earlier = earlier.map_or_else(|| "the previous report".to_owned(), |at| format!("{at:.0}"));
    let text = format!(
        " since {earlier}, {} added, {} removed, {} newly broken, {} newly trusted, {} with another owner{}.",
        count(AuditChangeKind::Added),
        count(AuditChangeKind::Removed),
        count(AuditChangeKind::NewlyBroken),
        count(AuditChangeKind::NewlyTrusted),
        count(AuditChangeKind::Owner),
        other_changes_text(since)
    );
    Some(ReportSummaryLine { label: "What changed:", pieces: vec![plain_run(text)] })
}

/// The number of trusted names in the latest reports, if there are at least three.
fn trend_line(report: &AuditReport) -> Option<ReportSummaryLine<'_>> {
    let over_time = report.counts_over_time();
    let latest = &over_time[over_time.len().saturating_sub(MOST_REPORTS)..];
    let trusted: Vec<String> = latest.iter().map(|report| report.trusted.to_string()).collect();
    let text = format!(" trusted names in the last {} reports: {}.", trusted.len(), trusted.join(", "));
    (over_time.len() > 2).then(|| ReportSummaryLine { label: "Trend:", pieces: vec![plain_run(text)] })
}

/// The number of changes of all other kinds.
fn other_changes_text(since: &AuditDifference) -> String {
    let counted = [
        AuditChangeKind::Added,
        AuditChangeKind::Removed,
        AuditChangeKind::NewlyBroken,
        AuditChangeKind::NewlyTrusted,
        AuditChangeKind::Owner,
    ];
    match since.changes.iter().filter(|change| !counted.contains(&change.kind)).count() {
        0 => String::new(),
        1 => ", 1 other change".to_owned(),
        several => format!(", {several} other changes"),
    }
}

/// The number of accepted findings, and of waivers without effect.
fn waivers_line(report: &AuditReport) -> Option<ReportSummaryLine<'_>> {
    let waivers = report.waivers.as_slice();
    if waivers.is_empty() {
        return None;
    }
    let having = |status| waivers.iter().filter(move |applied| applied.status == status);
    let mut accepted: Vec<&str> = having(WaiverStatus::Accepted).map(|applied| applied.waiver.name.as_str()).collect();
    accepted.dedup();
    let findings = having(WaiverStatus::Accepted).map(|applied| applied.findings);
    let mut text = match findings.fold(0, u64::saturating_add) {
        0 => " no finding is accepted".to_owned(),
        1 => " 1 finding is accepted and does not affect the exit code".to_owned(),
        findings => format!(
            " {findings} findings of {} are accepted and do not affect the exit code",
            name_count_text(accepted.len() as u64)
        ),
    };
    for (status, what) in [
        (WaiverStatus::Expired, "expired"),
        (WaiverStatus::OtherValue, "for another value or place"),
        (WaiverStatus::UnlistedFindings, "for a name with more findings than the report lists"),
        (WaiverStatus::NoFinding, "without a finding"),
    ] {
        match having(status).count() {
            0 => {}
            1 => text += &format!("; 1 waiver {what}"),
            several => text += &format!("; {several} waivers {what}"),
        }
    }
    Some(ReportSummaryLine { label: "Waivers:", pieces: vec![plain_run(text + ".")] })
}

/// The report's profile, other profiles that would trust more names, and the failures that these accept.
fn rules_line<'a>(report: &'a AuditReport, overview: &'a AuditOverview) -> ReportSummaryLine<'a> {
    let label = "Rules:";
    let mut pieces = vec![plain_run(" "), untrusted_run(&report.scope.profile.id), plain_run(".")];
    let mut near: Vec<_> = overview.near_misses.iter().collect();
    near.sort_by_key(|(_, misses)| std::cmp::Reverse(misses.names));
    if near.is_empty() && report.counts.trusted < report.counts.names {
        pieces.push(plain_run(" No other known profile would trust more names."));
    }
    for (profile, misses) in near.iter().take(MOST_RULES) {
        let more = if misses.names == 1 { "1 more name".to_owned() } else { format!("{} more names", misses.names) };
        pieces.extend([plain_run(" "), untrusted_run(profile.as_str())]);
        pieces.push(plain_run(format!(" would trust {more}{}.", profile_accepted_failures(misses))));
    }
    match near.len().saturating_sub(MOST_RULES) {
        0 => {}
        1 => pieces.push(plain_run(" 1 further profile would trust more names.")),
        more => pieces.push(plain_run(format!(" {more} further profiles would trust more names."))),
    }
    ReportSummaryLine { label, pieces }
}

/// The failures that the other profile accepts.
fn profile_accepted_failures(misses: &ProfileNearMissCounts) -> String {
    let mut codes: Vec<_> = misses.codes.iter().collect();
    codes.sort_by_key(|(_, on)| std::cmp::Reverse(**on));
    let titles = codes.iter().take(MOST_CODES).map(|((_, code), _)| embed_sentence(code.entry().title));
    let mut titles: Vec<String> = titles.collect();
    let more = codes.len().saturating_sub(MOST_CODES);
    if more > 0 {
        titles.push(format!("and {more} more"));
    }
    if titles.is_empty() {
        String::new()
    } else {
        format!(", because it accepts what fails here: {}", titles.join("; "))
    }
}
