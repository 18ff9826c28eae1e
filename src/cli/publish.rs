//! `sandbox --publish`: publishes cards in the sandbox, with the records that `plan` prints.

use std::path::Path;

use anyhow::{Context as _, bail};
use clresolve_ipfs::build::IpfsImportProfile;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_sandbox::spec::{PublisherCard, PublisherCardSet};
use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::profile::DEFAULT;
use jiff::Timestamp;

use super::input;
use super::plan::read_publication;
use crate::plan::{PublisherDeclarations, VerdictPredictionRules, plan_card_publications};

/// The cards of a folder or a single card, with the records that `plan` prints.
pub(super) fn plan_publisher_card_set(target: &Path) -> anyhow::Result<PublisherCardSet> {
    let (publication, _) = read_publication(target, IpfsImportProfile::UnixfsV1)?;
    let profiles = Sandbox::profiles();
    let profile = profiles.get(DEFAULT).context("the default profile is missing")?;
    let policy = JudgementPolicy::default();
    let rules =
        VerdictPredictionRules { profile: &profile, profiles: &profiles, policy: &policy, now: Timestamp::now() };
    let plans = plan_card_publications(&publication, PublisherDeclarations::default(), rules)?;
    let mut cards = Vec::new();
    for (path, planned) in publication.card_paths().into_iter().zip(plans) {
        let (Some(name), Some(card)) = (planned.name, publication.file_bytes(path)) else {
            let target = input::escaped_path(target);
            bail!("--publish {target}: a card has no usable ENS name; `clresolve lint {target}` reports its defects");
        };
        let records = planned.records.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        cards.push(PublisherCard { name, card: card.clone(), records });
    }
    Ok(PublisherCardSet { cards, blocks: publication.into_blocks() })
}
