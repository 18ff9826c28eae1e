//! The owners of the names on which publishers must act. Their size does not grow with the number of names.

use std::collections::BTreeMap;

use super::AuditRow;
use super::cause::DefectCategory;
use super::on_chain::OnChainFactKind;
use clresolve_core::reason::FixerRole;

/// Maximum number of owners counted separately. A registry has a handful.
const MAX_OWNERS: usize = 256;

/// Maximum number of names listed per owner. The table of names has all.
pub(super) const NAMES_PER_OWNER: usize = 12;

/// The owner of a name according to the chain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OnChainOwner {
    /// This account.
    Account(String),
    /// Nobody.
    Nobody,
    /// The owner was not requested, or could not be read.
    Unread,
}

impl OnChainOwner {
    pub(super) fn from_row(row: &AuditRow) -> Self {
        match row.known.on_chain.as_ref().and_then(|chain| chain.fact_value(OnChainFactKind::Holder)) {
            Some(Some(account)) => Self::Account(account.to_owned()),
            Some(None) => Self::Nobody,
            None => Self::Unread,
        }
    }

    /// The text in place of an account.
    pub(super) fn in_words(&self) -> &str {
        match self {
            Self::Account(account) => account,
            Self::Nobody => "nobody owns it",
            Self::Unread => "the owner could not be read",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct OwnerSummary {
    /// The number of names.
    pub(super) names: u64,
    /// The causes, with their numbers of names. Each name has one cause, so they add up.
    causes: BTreeMap<DefectCategory, u64>,
    /// The first names, at most [`NAMES_PER_OWNER`].
    pub(super) first: Vec<OwnedName>,
}

impl OwnerSummary {
    /// The causes, the most frequent first.
    pub(super) fn causes(&self) -> Vec<(DefectCategory, u64)> {
        let mut causes: Vec<_> = self.causes.iter().map(|(cause, names)| (*cause, *names)).collect();
        causes.sort_by_key(|(_, names)| std::cmp::Reverse(*names));
        causes
    }
}

#[derive(Clone, Debug)]
pub(super) struct OwnedName {
    /// Its line of the list.
    pub(super) line: u64,
    /// The name.
    pub(super) name: String,
    /// Its anchor in the page.
    pub(super) anchor: String,
    /// A note if the owner was copied from the previous report.
    pub(super) as_of: &'static str,
}

#[derive(Clone, Debug, Default)]
pub(super) struct OwnerSummaries {
    owned: BTreeMap<OnChainOwner, OwnerSummary>,
    /// Number of names of further owners.
    pub(super) over: u64,
    /// Number of names whose owner was copied from the previous report.
    pub(super) carried: u64,
}

impl OwnerSummaries {
    pub(super) fn add(&mut self, row: &AuditRow) {
        self.carried += u64::from(!row.copied_fact_note(OnChainFactKind::Holder).is_empty());
        let owner = OnChainOwner::from_row(row);
        if self.owned.len() >= MAX_OWNERS && !self.owned.contains_key(&owner) {
            self.over += 1;
            return;
        }
        let owned = self.owned.entry(owner).or_default();
        owned.names += 1;
        if let Some(cause) = DefectCategory::for_actor(FixerRole::Publisher, row) {
            *owned.causes.entry(cause).or_default() += 1;
        }
        if owned.first.len() < NAMES_PER_OWNER {
            owned.first.push(OwnedName {
                line: row.line,
                name: row.name().to_owned(),
                anchor: row.anchor(),
                as_of: row.copied_fact_note(OnChainFactKind::Holder),
            });
        }
    }

    /// The number of accounts, if each name has one.
    pub(super) fn account_count(&self) -> Option<usize> {
        let is_known = self.over == 0 && self.owned.keys().all(|owner| matches!(owner, OnChainOwner::Account(_)));
        (is_known && !self.owned.is_empty()).then_some(self.owned.len())
    }

    /// The owners, ordered by their numbers of names, largest first.
    pub(super) fn sorted_by_name_count(&self) -> Vec<(&OnChainOwner, &OwnerSummary)> {
        let mut most: Vec<_> = self.owned.iter().collect();
        most.sort_by_key(|(_, owned)| std::cmp::Reverse(owned.names));
        most
    }
}
