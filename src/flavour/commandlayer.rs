//! CommandLayer Agent-Cards: the checks of the walk that need no name, no record and no network.

use super::{Rules, System, present};
use crate::card::Card;
use crate::check;
use crate::name::EnsName;
use crate::reason::{Code, Reason};
use crate::text::excerpt;

pub(super) static SYSTEM: System = System { title: "CommandLayer Agent-Card", tells, refines: &[], version, check };

fn tells(card: &Card) -> Vec<&'static str> {
    present(card, &["ens", "implements", "entry", "schemas_mirror"])
}

/// The release lines are told apart by profiles; the card's own version names the line.
fn version(card: &Card) -> Option<String> {
    card.version().map(excerpt)
}

fn check(card: &Card, rules: &Rules<'_>) -> Vec<Reason> {
    let profile = rules.profile;
    let checks = [check::card::card, check::entry::entry, check::verbs::verbs];
    let reasons = checks.iter().flat_map(|check| check(card, profile));
    reasons.chain(unreachable_name(card).map(|reason| profile.weigh(reason))).collect()
}

/// CL-53, as far as the card alone tells: a name that is not in normal form equals no name that is asked for.
fn unreachable_name(card: &Card) -> Option<Reason> {
    let ens = card.ens()?;
    let reason = |expected: String| {
        let message = "No name that is asked for can equal the card's ens.";
        Reason::new(Code::CardEnsMismatch).message(message).expected(expected).observed(excerpt(ens)).at("/ens")
    };
    match EnsName::parse(ens) {
        Ok(name) if name.as_str() == ens => None,
        Ok(name) => Some(reason(name.as_str().to_owned())),
        Err(error) => Some(reason(format!("an ENS name ({error})"))),
    }
}
