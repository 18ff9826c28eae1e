//! Whether each endpoint and each gateway of a configuration, asked by itself, agrees with what a verdict rests on. For
//! audits: nothing of it counts in a verdict. Pure.

use std::collections::BTreeMap;

use alloy_primitives::Address;
use clresolve_core::payment::{AddressRecord, EndpointRecord, PaymentRecords};
use clresolve_core::reading::Answer;
use clresolve_core::reason::Step;
use clresolve_core::records::{Key, Record, RecordSet};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::build::{answer_value, expiry_value, holder_value, records_digest};
use crate::evidence::Targets;
use crate::trust::Resolution;
use crate::verdict::{Anchor, Verdict};

/// What each endpoint and each gateway says of a name that was judged, in the order of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamAgreement {
    /// The RPC endpoints; none where the chain was not read.
    pub endpoints: Vec<EndpointSays>,
    /// The IPFS gateways. Empty if the records name no CID, or one that holds the whole card.
    pub gateways: Vec<GatewaySays>,
}

/// What an endpoint says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointSays {
    /// Its label, never its URL.
    pub label: String,
    /// What it says.
    #[serde(flatten)]
    pub stance: EndpointStance,
}

/// What an endpoint says of the block of a verdict, held against the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "says", rename_all = "kebab-case")]
pub enum EndpointStance {
    /// The same.
    Agree,
    /// Something else.
    Differ {
        /// What it says otherwise.
        #[serde(rename = "in")]
        facts: Vec<NameFact>,
    },
    /// Nothing that can be used.
    Silent {
        /// Why.
        why: Silence,
    },
}

/// Why an endpoint says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Silence {
    /// It does not have the block, or not the state of it.
    NoBlock,
    /// It gave no usable answer in time, now or a short time ago.
    NoAnswer,
}

/// What the chain says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameFact {
    /// Which block stands at that height.
    Block,
    /// Whether the name is registered, and which resolver answers for it.
    Resolver,
    /// The text records.
    Records,
    /// Who holds the name.
    Holder,
    /// When it expires.
    Expiry,
    /// Whom it pays, and where it is called.
    Payment,
}

impl Silence {
    /// Its word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoBlock => "no-block",
            Self::NoAnswer => "no-answer",
        }
    }
}

impl NameFact {
    /// Its word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Resolver => "resolver",
            Self::Records => "records",
            Self::Holder => "holder",
            Self::Expiry => "expiry",
            Self::Payment => "payment",
        }
    }
}

/// What a gateway says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewaySays {
    /// Its label, never its URL.
    pub label: String,
    /// Whether it serves the card.
    pub says: GatewayStance,
}

/// Whether a gateway serves the card under the CID of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayStance {
    /// It sent every block that was asked for.
    Has,
    /// It says that it does not have a block.
    Lacks,
    /// It sent a wrong block.
    Lies,
    /// It gave no usable answer in time.
    Unreached,
}

impl EndpointStance {
    /// What an endpoint's word on the name, at the block of the verdict, comes to.
    pub fn of(resolution: &Resolution, answer: &Answer, holder: Option<Address>, expiry: Option<Timestamp>) -> Self {
        let evidence = records_evidence(resolution.verdict());
        let settled = resolution.payment().map(|published| published.settled());
        let facts = [
            (NameFact::Resolver, same_resolver(resolution.verdict().anchor.as_ref(), evidence, answer)),
            (NameFact::Records, same_records(resolution.verdict().anchor.as_ref(), answer)),
            (NameFact::Holder, evidence["holder"] == holder_value(holder)),
            (NameFact::Expiry, evidence["expiry"] == expiry_value(expiry)),
            (NameFact::Payment, same_payment(settled, answer)),
        ];
        let facts: Vec<NameFact> = facts.into_iter().filter(|(_, same)| !same).map(|(fact, _)| fact).collect();
        if facts.is_empty() || clresolve_core::mutant!("every-endpoint-agrees") {
            Self::Agree
        } else {
            Self::Differ { facts }
        }
    }
}

/// Where the records that a verdict rests on say that the card is.
pub fn targets(verdict: &Verdict) -> Targets {
    let records = &records_evidence(verdict)["records"];
    let text = |key: Key| Some((key, Record::Text(records.get(key.as_str())?.as_str()?.to_owned())));
    Targets::of(&[Key::CidAgentcard, Key::MirrorIpfs].into_iter().filter_map(text).collect::<RecordSet>())
}

/// What the step `records` found. Null if the verdict has no such step.
fn records_evidence(verdict: &Verdict) -> &Value {
    let step = verdict.steps.iter().find(|report| report.step == Step::Records);
    step.map_or(&Value::Null, |report| &report.evidence)
}

fn same_resolver(anchor: Option<&Anchor>, evidence: &Value, answer: &Answer) -> bool {
    let read = anchor.map(|anchor| (anchor.resolver.clone(), anchor.wildcard.as_deref(), anchor.offchain));
    let said = match answer {
        Answer::Records(found) => {
            (Some(found.resolver.to_string()), found.wildcard.as_ref().map(|name| name.as_str()), found.offchain)
        }
        Answer::Unregistered | Answer::NoResolver(_) => (None, None, false),
    };
    evidence["answer"] == answer_value(answer) && read == Some(said)
}

fn same_records(anchor: Option<&Anchor>, answer: &Answer) -> bool {
    let said = match answer {
        Answer::Records(found) => Some(records_digest(&found.records)),
        Answer::Unregistered | Answer::NoResolver(_) => None,
    };
    anchor.and_then(|anchor| anchor.records_digest.as_ref()) == said.as_ref()
}

/// Whether the payment records are equal. A record that one of the two could not read does not count.
fn same_payment(read: Option<&PaymentRecords>, answer: &Answer) -> bool {
    let (Some(read), Answer::Records(found)) = (read, answer) else { return true };
    let of_address = |record: &AddressRecord| !matches!(record, AddressRecord::Failed(_));
    let of_endpoint = |record: &EndpointRecord| !matches!(record, EndpointRecord::Failed(_));
    same_where_read(&read.addresses, &found.payment.addresses, of_address)
        && same_where_read(&read.endpoints, &found.payment.endpoints, of_endpoint)
}

fn same_where_read<K: Ord, R: PartialEq>(
    one: &BTreeMap<K, R>,
    other: &BTreeMap<K, R>,
    is_read: impl Fn(&R) -> bool,
) -> bool {
    let both = one.iter().filter_map(|(key, record)| Some((record, other.get(key)?)));
    both.filter(|(one, other)| is_read(one) && is_read(other)).all(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use clresolve_core::reading::{ChainError, Found, Reading};
    use serde_json::json;

    use super::*;
    use crate::build::{self, Run};
    use crate::check::Policy;
    use crate::evidence::Evidence;
    use crate::profile::{DEFAULT, Profiles};
    use crate::sample;

    fn evidence() -> Evidence {
        let card = Bytes::from(sample::good().to_string());
        sample::evidence(&sample::good(), &card, "2026-11-20T10:00:00Z".parse().unwrap())
    }

    fn resolution(evidence: &Evidence) -> Resolution {
        let (profiles, policy) = (Profiles::builtin(), Policy::default());
        let profile = profiles.get(DEFAULT).unwrap();
        let reporter =
            build::Reporter { world: "mainnet", chain_id: 1, profiles: &profiles, profile: &profile, policy: &policy };
        let run = Run { evidence: evidence.clone(), milliseconds: BTreeMap::new(), content_fetched_at: None };
        build::resolution(&reporter, &run, 0)
    }

    /// What an endpoint that says the same with a change comes to.
    fn stance(change: impl FnOnce(&mut Reading)) -> EndpointStance {
        let evidence = evidence();
        let resolution = resolution(&evidence);
        let mut said = evidence.reading.clone().unwrap();
        change(&mut said);
        EndpointStance::of(&resolution, &said.answer, said.holder, said.expiry)
    }

    fn differing(facts: &[NameFact]) -> EndpointStance {
        EndpointStance::Differ { facts: facts.to_vec() }
    }

    fn found(reading: &mut Reading) -> &mut Found {
        match &mut reading.answer {
            Answer::Records(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_endpoint_that_says_the_same_agrees() {
        assert_eq!(stance(|_| {}), EndpointStance::Agree);
    }

    #[test]
    fn each_fact_that_is_said_otherwise_is_named() {
        let other = Address::repeat_byte(9);
        assert_eq!(stance(|said| said.holder = Some(other)), differing(&[NameFact::Holder]));
        let expiry = "2031-01-01T00:00:00Z".parse().ok();
        assert_eq!(stance(|said| said.expiry = expiry), differing(&[NameFact::Expiry]));
        assert_eq!(stance(|said| found(said).resolver = other), differing(&[NameFact::Resolver]));
        assert_eq!(stance(|said| found(said).offchain = true), differing(&[NameFact::Resolver]));
        let lie = || RecordSet::from_iter([(Key::Entry, Record::Text("x402://a.eth".to_owned()))]);
        assert_eq!(stance(|said| found(said).records = lie()), differing(&[NameFact::Records]));
        let gone = [NameFact::Resolver, NameFact::Records];
        assert_eq!(stance(|said| said.answer = Answer::Unregistered), differing(&gone));
        assert_eq!(stance(|said| said.answer = Answer::NoResolver(None)), differing(&gone));
    }

    #[test]
    fn payments_are_compared_where_both_were_read() {
        let (read, other) = (AddressRecord::Address(Address::repeat_byte(1)), AddressRecord::Absent);
        let failed = AddressRecord::Failed(ChainError::Late { milliseconds: 1 });
        let records = |record: &AddressRecord| {
            let coin = clresolve_core::payment::CoinType::of_chain(1).unwrap();
            PaymentRecords { addresses: [(coin, record.clone())].into(), ..PaymentRecords::default() }
        };
        let answer = |record: &AddressRecord| {
            let mut said = evidence().reading.unwrap();
            found(&mut said).payment = records(record);
            said.answer
        };
        let same = |one: &AddressRecord, said: &AddressRecord| same_payment(Some(&records(one)), &answer(said));
        assert!(same(&read, &read) && same(&read, &failed) && same(&failed, &other));
        assert!(!same(&read, &other) && !same(&other, &read));
    }

    #[test]
    fn the_card_is_where_the_records_of_the_verdict_say() {
        let evidence = evidence();
        let verdict = resolution(&evidence).verdict().clone();
        assert_eq!(targets(&verdict).cid, Targets::of(&evidence.found().unwrap().records).cid);
    }

    #[test]
    fn what_is_said_has_one_flat_form() {
        let says = |stance| serde_json::to_value(EndpointSays { label: "rpc-2".to_owned(), stance }).unwrap();
        assert_eq!(says(EndpointStance::Agree), json!({"label": "rpc-2", "says": "agree"}));
        let differs = json!({"label": "rpc-2", "says": "differ", "in": ["block"]});
        assert_eq!(says(differing(&[NameFact::Block])), differs);
        let silent = json!({"label": "rpc-2", "says": "silent", "why": "no-answer"});
        assert_eq!(says(EndpointStance::Silent { why: Silence::NoAnswer }), silent);
        assert_eq!(serde_json::from_value::<EndpointSays>(differs).unwrap().stance, differing(&[NameFact::Block]));
    }
}
