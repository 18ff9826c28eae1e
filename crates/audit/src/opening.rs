//! The first lines of the report: the network, who must act and why, the changes, the trend, and the rules, including
//! other rules that accept more.

use super::cause::Cause;
use super::difference::{Difference, Kind};
use super::document::Report;
use super::overview::{NearMisses, Overview};
use super::owners::Owner;
use super::page::{Piece, day, foreign, names, plain};
use super::waiver::WaiverStatus;
use super::words::{chain_name, do_together, in_sentence, people};
use clresolve_core::reason::{Code, Fixer};

/// Maximum number of other profiles listed: those that would trust the most names. The reports for programs list all.
const MOST_RULES: usize = 3;

/// Maximum number of findings listed per profile: the most frequent.
const MOST_CODES: usize = 2;

/// Maximum number of reports in the trend: the latest. The chart below has all.
const MOST_REPORTS: usize = 6;

pub(super) struct OpeningLine<'a> {
    pub(super) label: &'static str,
    pub(super) pieces: Vec<Piece<'a>>,
}

/// The lines, in order. The network is first: on a phone, `html/page.css` keeps the first line below the headline and
/// moves the others down.
pub(super) fn lines<'a>(report: &'a Report, overview: &'a Overview) -> Vec<OpeningLine<'a>> {
    let lines = [
        Some(network(report)),
        Some(who_must_act(report, overview)),
        holders(report),
        changed(report),
        trend(report),
        Some(rules(report, overview)),
    ];
    lines.into_iter().flatten().chain(waivers(report)).collect()
}

/// The network and the blocks. A fork has the chain identifier of its original, so mainnet requires the right name too.
fn network(report: &Report) -> OpeningLine<'_> {
    let scope = &report.scope;
    let label = match (scope.world.as_str(), scope.chain.as_str()) {
        ("mainnet", "eip155:1") => "Network:",
        ("sandbox", _) | (_, "eip155:31337" | "eip155:11155111") => "Test network:",
        _ => "Not mainnet:",
    };
    let mut pieces = vec![plain(" "), foreign(&scope.world), plain(", ")];
    match chain_name(&scope.chain) {
        Some(_) if scope.chain == "eip155:1" && scope.world != "mainnet" => {
            pieces.push(plain("with Ethereum's chain id (eip155:1)"));
        }
        Some(name) => pieces.push(plain(format!("{name} ({})", scope.chain))),
        None => pieces.extend([plain("chain "), foreign(&scope.chain)]),
    }
    let read =
        report.blocks().map_or_else(|| ". No block was read.".to_owned(), |blocks| format!(", read at {blocks}"));
    pieces.push(plain(read));
    if let Some((first, last)) = report.counts.checked {
        let (first, last) = (day(first), day(last));
        let days = if first == last { format!(" on {first}.") } else { format!(" from {first} to {last}.") };
        pieces.push(plain(days));
    }
    OpeningLine { label, pieces }
}

/// The actor who must act on the most names, the account that owns most of them, and the most frequent cause.
fn who_must_act<'a>(report: &Report, overview: &'a Overview) -> OpeningLine<'a> {
    let label = "Who must act:";
    let Some((actor, due)) = overview.most_due() else {
        let nobody = match (report.is_complete(), overview.waiting()) {
            (false, _) => " not known. Names of the list are missing.".to_owned(),
            (true, 0) => " nobody. Nothing is wrong.".to_owned(),
            (true, waiting) => format!(" nobody. Waiting alone resolves the findings of {}.", names(waiting)),
        };
        return OpeningLine { label, pieces: vec![plain(nobody)] };
    };
    let mut pieces = vec![plain(format!(" {}, who {}", people(actor), do_together(actor)))];
    if actor == Fixer::Publisher {
        pieces.extend(main_owner(overview, due));
    }
    pieces.push(plain("."));
    pieces.extend(overview.causes_of(actor).first().map(|(cause, on)| plain(most_frequent(*cause, *on, due))));
    OpeningLine { label, pieces }
}

fn most_frequent(cause: Cause, on: u64, due: u64) -> String {
    let cause = in_sentence(cause.in_words());
    if on == due {
        format!(" The cause: {cause}.")
    } else {
        format!(" The most frequent cause: {cause} ({on} of the {}).", names(due))
    }
}

/// The account that owns the most of the names.
fn main_owner(overview: &Overview, due: u64) -> Vec<Piece<'_>> {
    let most = overview.owners.most();
    let account = most.iter().find_map(|(owner, owned)| match owner {
        Owner::Account(account) => Some((account, owned.names)),
        Owner::Nobody | Owner::Unread => None,
    });
    let Some((account, owned)) = account else { return vec![plain("; no owner of these names could be read")] };
    let (before, after) = match owned {
        1 if due == 1 => ("; here the account ", ", which owns the name".to_owned()),
        all if all == due => ("; here the account ", format!(", which owns all {}", names(due))),
        most if most * 2 > due => ("; above all the account ", format!(", which owns {most} of the {}", names(due))),
        few => ("; no account owns most of the names, ", format!(" owns {few} of the {}", names(due))),
    };
    vec![plain(before), foreign(account), plain(after)]
}

/// The number of names whose holder or expiry is unknown.
fn holders(report: &Report) -> Option<OpeningLine<'_>> {
    let unreadable = report.counts.holder_unreadable;
    let (they, have) =
        if unreadable == 1 { ("It, or its owner's name,", "has") } else { ("They, or their owners' names,", "have") };
    let text = format!(" {}. {they} {have} moved to ENSv2 ({}).", names(unreadable), Code::HolderUnreadable.slug());
    (unreadable > 0).then(|| OpeningLine { label: "Holder or expiry unknown:", pieces: vec![plain(text)] })
}

fn changed(report: &Report) -> Option<OpeningLine<'_>> {
    let since = report.since.as_ref()?;
    let count = |kind: Kind| since.changes.iter().filter(|change| change.kind == kind).count();
    let earlier = report.before.and_then(|before| before.generated_at.or(before.checked));
    let earlier = earlier.map_or_else(|| "the previous report".to_owned(), |at| format!("{at:.0}"));
    let text = format!(
        " since {earlier}, {} added, {} removed, {} newly broken, {} newly trusted, {} with another owner{}.",
        count(Kind::Added),
        count(Kind::Removed),
        count(Kind::NewlyBroken),
        count(Kind::NewlyTrusted),
        count(Kind::Owner),
        others(since)
    );
    Some(OpeningLine { label: "What changed:", pieces: vec![plain(text)] })
}

/// The number of trusted names in the latest reports, if there are at least three.
fn trend(report: &Report) -> Option<OpeningLine<'_>> {
    let over_time = report.over_time();
    let latest = &over_time[over_time.len().saturating_sub(MOST_REPORTS)..];
    let trusted: Vec<String> = latest.iter().map(|report| report.trusted.to_string()).collect();
    let text = format!(" trusted names in the last {} reports: {}.", trusted.len(), trusted.join(", "));
    (over_time.len() > 2).then(|| OpeningLine { label: "Trend:", pieces: vec![plain(text)] })
}

/// The number of changes of all other kinds.
fn others(since: &Difference) -> String {
    let counted = [Kind::Added, Kind::Removed, Kind::NewlyBroken, Kind::NewlyTrusted, Kind::Owner];
    match since.changes.iter().filter(|change| !counted.contains(&change.kind)).count() {
        0 => String::new(),
        1 => ", 1 other change".to_owned(),
        several => format!(", {several} other changes"),
    }
}

/// The number of accepted findings, and of waivers without effect.
fn waivers(report: &Report) -> Option<OpeningLine<'_>> {
    let waivers = report.waivers.all();
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
            names(accepted.len() as u64)
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
    Some(OpeningLine { label: "Waivers:", pieces: vec![plain(text + ".")] })
}

/// The report's profile, other profiles that would trust more names, and the failures that these accept.
fn rules<'a>(report: &'a Report, overview: &'a Overview) -> OpeningLine<'a> {
    let label = "Rules:";
    let mut pieces = vec![plain(" "), foreign(&report.scope.profile.id), plain(".")];
    let mut near: Vec<_> = overview.near_misses.iter().collect();
    near.sort_by_key(|(_, misses)| std::cmp::Reverse(misses.names));
    if near.is_empty() && report.counts.trusted < report.counts.names {
        pieces.push(plain(" No other known profile would trust more names."));
    }
    for (profile, misses) in near.iter().take(MOST_RULES) {
        let more = if misses.names == 1 { "1 more name".to_owned() } else { format!("{} more names", misses.names) };
        pieces.extend([plain(" "), foreign(profile.as_str())]);
        pieces.push(plain(format!(" would trust {more}{}.", accepted(misses))));
    }
    match near.len().saturating_sub(MOST_RULES) {
        0 => {}
        1 => pieces.push(plain(" 1 further profile would trust more names.")),
        more => pieces.push(plain(format!(" {more} further profiles would trust more names."))),
    }
    OpeningLine { label, pieces }
}

/// The failures that the other profile accepts.
fn accepted(misses: &NearMisses) -> String {
    let mut codes: Vec<_> = misses.codes.iter().collect();
    codes.sort_by_key(|(_, on)| std::cmp::Reverse(**on));
    let titles = codes.iter().take(MOST_CODES).map(|((_, code), _)| in_sentence(code.entry().title));
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
