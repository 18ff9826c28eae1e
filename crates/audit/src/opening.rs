//! The first lines of the report: whether its world is the real one, who must act and why, what changed, and which rules
//! count beside those that accept more.

use super::cause::Cause;
use super::difference::{Difference, Kind};
use super::document::Report;
use super::overview::{NearMisses, Overview};
use super::owners::Owner;
use super::page::{Piece, day, foreign, names, plain};
use super::waiver::WaiverStatus;
use super::words::{chain_name, do_together, in_sentence, people};
use clresolve_core::reason::{Code, Fixer};

/// Most sets of rules that are named, those that would trust the most names. The reports for programs name all.
const MOST_RULES: usize = 3;

/// Most findings that are named beside a set of rules, the most frequent.
const MOST_CODES: usize = 2;

/// Most reports whose trusted names are told, the latest. The chart below has all.
const MOST_REPORTS: usize = 6;

/// One line, and the words that it begins with.
pub(super) struct OpeningLine<'a> {
    /// The words that stand out.
    pub(super) label: &'static str,
    /// The rest.
    pub(super) pieces: Vec<Piece<'a>>,
}

/// The lines, in their order. The world is the first: on a phone `html/page.css` leaves the first line below the headline
/// and moves the others down.
pub(super) fn lines<'a>(report: &'a Report, overview: &'a Overview) -> Vec<OpeningLine<'a>> {
    let lines = [
        Some(world(report)),
        Some(who_must_act(report, overview)),
        holders(report),
        changed(report),
        Some(rules(report, overview)),
    ];
    lines.into_iter().flatten().chain(waivers(report)).collect()
}

/// Whether the world is the real one. A fork has the chain identifier of its original, so both must fit.
fn world(report: &Report) -> OpeningLine<'_> {
    let scope = &report.scope;
    let label = match (scope.world.as_str(), scope.chain.as_str()) {
        ("mainnet", "eip155:1") => "The real world:",
        ("sandbox", _) | (_, "eip155:31337" | "eip155:11155111") => "A test world, not the real one:",
        _ => "Not Ethereum mainnet:",
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

/// Who must act on most names, the account that owns most of these, and the most frequent cause.
fn who_must_act<'a>(report: &Report, overview: &'a Overview) -> OpeningLine<'a> {
    let label = "Who must act:";
    let Some((actor, due)) = overview.most_due() else {
        let nobody = match (report.is_complete(), overview.waiting()) {
            (false, _) => " not known. Names of the list are missing.".to_owned(),
            (true, 0) => " nobody. Nothing is wrong.".to_owned(),
            (true, waiting) => format!(" nobody. What {} lacks passes with time.", names(waiting)),
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

/// The account that owns most of the names, if one does.
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

/// For how many names the holder or the expiry is unknown.
fn holders(report: &Report) -> Option<OpeningLine<'_>> {
    let unreadable = report.counts.holder_unreadable;
    let told = format!(
        " for {}. In each case, the name or its owner's name lives in ENSv2 ({}).",
        names(unreadable),
        Code::HolderUnreadable.slug()
    );
    (unreadable > 0).then(|| OpeningLine { label: "Holder or expiry unknown:", pieces: vec![plain(told)] })
}

/// What changed since the previous report, and how many names were trusted over time.
fn changed(report: &Report) -> Option<OpeningLine<'_>> {
    let mut told = String::new();
    if let Some(since) = &report.since {
        let count = |kind: Kind| since.changes.iter().filter(|change| change.kind == kind).count();
        let earlier = report.before.and_then(|before| before.generated_at.or(before.checked));
        let earlier = earlier.map_or_else(|| "the report before".to_owned(), |at| format!("{at:.0}"));
        told = format!(
            " since {earlier}, {} added, {} removed, {} newly broken, {} newly trusted, {} with another owner{}.",
            count(Kind::Added),
            count(Kind::Removed),
            count(Kind::NewlyBroken),
            count(Kind::NewlyTrusted),
            count(Kind::Owner),
            others(since)
        );
    }
    let over_time = report.over_time();
    if over_time.len() > 2 {
        let latest = &over_time[over_time.len().saturating_sub(MOST_REPORTS)..];
        let trusted: Vec<String> = latest.iter().map(|report| report.trusted.to_string()).collect();
        told += &format!(" Trusted in the last {} reports: {}.", trusted.len(), trusted.join(", "));
    }
    (!told.is_empty()).then(|| OpeningLine { label: "What changed:", pieces: vec![plain(told)] })
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

/// How many findings are accepted, and how many waivers have no effect.
fn waivers(report: &Report) -> Option<OpeningLine<'_>> {
    let waivers = report.waivers.all();
    if waivers.is_empty() {
        return None;
    }
    let having = |status| waivers.iter().filter(move |applied| applied.status == status);
    let mut accepted: Vec<&str> = having(WaiverStatus::Accepted).map(|applied| applied.waiver.name.as_str()).collect();
    accepted.dedup();
    let findings = having(WaiverStatus::Accepted).map(|applied| applied.findings);
    let mut told = match findings.fold(0, u64::saturating_add) {
        0 => " no finding is accepted".to_owned(),
        1 => " 1 finding is accepted, and left out of the exit code".to_owned(),
        findings => format!(
            " {findings} findings of {} are accepted, and left out of the exit code",
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
            1 => told += &format!("; 1 waiver {what}"),
            several => told += &format!("; {several} waivers {what}"),
        }
    }
    Some(OpeningLine { label: "Waivers:", pieces: vec![plain(told + ".")] })
}

/// By which rules, by which others more names would be trusted, how many, and what these accept that fails here.
fn rules<'a>(report: &'a Report, overview: &'a Overview) -> OpeningLine<'a> {
    let label = "The rules that count:";
    let mut pieces = vec![plain(" "), foreign(&report.scope.profile.id), plain(".")];
    let mut near: Vec<_> = overview.near_misses.iter().collect();
    near.sort_by_key(|(_, misses)| std::cmp::Reverse(misses.names));
    if near.is_empty() && report.counts.trusted < report.counts.names {
        pieces.push(plain(" By no others known here more names would be trusted."));
    }
    for (profile, misses) in near.iter().take(MOST_RULES) {
        let more = if misses.names == 1 { "1 more name".to_owned() } else { format!("{} more names", misses.names) };
        pieces.extend([plain(" By "), foreign(profile.as_str())]);
        pieces.push(plain(format!(" {more} would be trusted{}.", accepted(misses))));
    }
    match near.len().saturating_sub(MOST_RULES) {
        0 => {}
        1 => pieces.push(plain(" 1 more set of rules would trust more.")),
        more => pieces.push(plain(format!(" {more} more sets of rules would trust more."))),
    }
    OpeningLine { label, pieces }
}

/// What fails here and is accepted there.
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
        format!(", because these accept what fails here: {}", titles.join("; "))
    }
}
