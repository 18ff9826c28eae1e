//! The payees of a name, and how they are proven.

use alloy_primitives::{Address, U256};
use clresolve_core::payment::CoinType;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_verdict::published::{PaymentRecordStatus, PublishedPaymentRecords};
use jiff::Timestamp;
use serde::Serialize;

use crate::network::Caip2Network;
use crate::offer::{OfferResources, ParsedOffers, PublishedSigningKeys};
use crate::terms::ExactPrice;

/// Everything known about a name's payees on one network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkPayees {
    /// The payees that the operator configured for the agent.
    pub configured: Vec<Address>,
    /// The address record for the network.
    pub record: PayeeClaim,
    /// The wallet of the name's ERC-8004 registration on the network.
    pub registration: PayeeClaim,
    /// The owner of that registration, if it was read. Paying the owner is neither proven nor contradicted.
    pub registration_owner: Option<Address>,
    /// Published keys that sign offers.
    pub signers: PublishedSigningKeys,
}

/// The claim of one source about the payee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PayeeClaim {
    /// There is no claim, or the source was not asked.
    #[default]
    None,
    /// The payee is this address.
    Is(Address, PayeeClaimSource),
    /// The claim is undecided: `record-pending`, or `payee-unproven` with the cause.
    Undecided(Box<Reason>),
}

impl PayeeClaim {
    /// The claim of the address records for a network: the record of its own coin type, else the default record for all
    /// EVM chains (ENSIP-19). A stored zero address means that nobody is paid there; it is not replaced by the default.
    pub fn from_records(published: &PublishedPaymentRecords, network: &Caip2Network) -> Self {
        let own = network.chain_id().and_then(CoinType::from_chain_id);
        for coin in own.into_iter().chain([CoinType::EVM_DEFAULT]) {
            match published.payment_address_status(coin) {
                PaymentRecordStatus::Settled(Some(address)) => {
                    return Self::Is(address, PayeeClaimSource::Record(coin));
                }
                PaymentRecordStatus::Settled(None) if clresolve_core::mutant!("zero-asks-the-default") => {}
                PaymentRecordStatus::Settled(None) => return Self::None,
                PaymentRecordStatus::Absent => {}
                PaymentRecordStatus::Pending { .. } => {
                    return Self::undecided_claim(ReasonCode::RecordPending, coin, None);
                }
                PaymentRecordStatus::Malformed(bytes) => {
                    return Self::undecided_claim(ReasonCode::PayeeUnproven, coin, Some(bytes.to_string()));
                }
                PaymentRecordStatus::Failed(cause) => {
                    return Self::undecided_claim(ReasonCode::PayeeUnproven, coin, Some(cause.to_string()));
                }
                // If the network's own record is unknown, the default does not apply either.
                PaymentRecordStatus::NotAsked => return Self::None,
            }
        }
        Self::None
    }

    fn undecided_claim(code: ReasonCode, coin: CoinType, observed: Option<String>) -> Self {
        let reason = Reason::new(code).at_place(format!("addr({coin})"));
        Self::Undecided(Box::new(match observed {
            Some(observed) => reason.observed(observed),
            None => reason,
        }))
    }
}

/// The source of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayeeClaimSource {
    /// The name's address record of this coin type.
    Record(CoinType),
    /// The entry of the ERC-8004 registry on the network.
    Registration(Box<Erc8004WalletProvenance>),
}

/// The entry of an ERC-8004 registry from which a wallet was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erc8004WalletProvenance {
    /// The agent's number in the registry.
    pub agent: U256,
    /// The height of the registry's block at which it was read.
    pub block: u64,
    /// When the reading expires.
    pub until: Timestamp,
}

/// How an address is proven to be the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PayeeProofMethod {
    /// The configuration lists it.
    Configured,
    /// It is the name's address record for the network, or the ENSIP-19 default.
    Addr,
    /// It is the wallet of the name's ERC-8004 registration.
    Erc8004,
    /// A published key signed an offer for exactly these terms.
    Offer,
}

impl PayeeProofMethod {
    /// The serialized form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Addr => "addr",
            Self::Erc8004 => "erc8004",
            Self::Offer => "offer",
        }
    }
}

/// A payee that is proven to be the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayeeProof {
    /// How it is proven.
    pub by: PayeeProofMethod,
    /// When the proof expires. `None`: with the verdict.
    pub until: Option<Timestamp>,
}

impl NetworkPayees {
    /// Proves that `price.pay_to` is the agent's, using the name's claims or an offer for one of `resources`.
    ///
    /// # Errors
    /// Every objection; at least one.
    pub fn prove_payee(
        &self,
        price: &ExactPrice,
        offers: &ParsedOffers,
        resources: &OfferResources<'_>,
        now: Timestamp,
    ) -> Result<PayeeProof, Vec<Reason>> {
        if let Some(reason) = unowned_address_reason(price) {
            return Err(vec![reason]);
        }
        if let Some(proven) = self.prove_without_offer(price.pay_to) {
            return Ok(proven);
        }
        let mut objections = Vec::new();
        let mut may_be_offered = false;
        match offers.prove_price(price, resources, &self.signers, now) {
            Some(Ok(until)) => return Ok(PayeeProof { by: PayeeProofMethod::Offer, until }),
            Some(Err(unproven)) => {
                may_be_offered = unproven.is_open;
                objections.push(*unproven.reason);
            }
            None => {}
        }
        let undecided: Vec<_> =
            [&self.record, &self.registration].into_iter().filter_map(PayeeClaim::undecided_reason).collect();
        // A different address is no contradiction while an undecided source may still prove this one.
        let is_open = may_be_offered || !undecided.is_empty() || self.registration_owner == Some(price.pay_to);
        objections.extend(undecided);
        let others = self.known_addresses();
        if !others.is_empty() && !is_open {
            let expected = others.iter().map(Address::to_string).collect::<Vec<_>>().join(", ");
            objections.push(payee_mismatch_reason(price).expected(expected));
        } else if objections.is_empty() {
            objections.push(Reason::new(ReasonCode::PayeeUnproven).observed(price.pay_to.to_string()));
        }
        Err(objections)
    }

    /// How the address is proven without an offer.
    fn prove_without_offer(&self, address: Address) -> Option<PayeeProof> {
        let lasting = |by| Some(PayeeProof { by, until: None });
        if clresolve_core::mutant!("any-payee") {
            return lasting(PayeeProofMethod::Addr);
        }
        if self.configured.contains(&address) {
            return lasting(PayeeProofMethod::Configured);
        }
        if self.record.claimed_address() == Some(address) {
            return lasting(PayeeProofMethod::Addr);
        }
        match &self.registration {
            PayeeClaim::Is(known, PayeeClaimSource::Registration(read)) if *known == address => {
                Some(PayeeProof { by: PayeeProofMethod::Erc8004, until: Some(read.until) })
            }
            _ => None,
        }
    }

    /// Every address that the configuration or the name specifies.
    pub fn known_addresses(&self) -> Vec<Address> {
        let claimed = [&self.record, &self.registration].into_iter().filter_map(PayeeClaim::claimed_address);
        self.configured.iter().copied().chain(claimed).collect()
    }

    /// Describes the proof in words. `anchor` is the block of the name's records.
    pub fn describe_proof(&self, by: PayeeProofMethod, network: &Caip2Network, anchor: Option<u64>) -> String {
        let at = |words: &str| match anchor {
            Some(block) => format!("proven by {words} at block {block}"),
            None => format!("proven by {words}"),
        };
        match (by, &self.registration) {
            (PayeeProofMethod::Configured, _) => "proven by the configuration".to_owned(),
            (PayeeProofMethod::Addr, _) => at("addr(name)"),
            (PayeeProofMethod::Erc8004, PayeeClaim::Is(_, PayeeClaimSource::Registration(read))) => {
                let Erc8004WalletProvenance { agent, block, .. } = &**read;
                format!("proven by agent {agent} of the ERC-8004 registry on {network} at its block {block}")
            }
            (PayeeProofMethod::Erc8004, _) => at("its ERC-8004 registration"),
            (PayeeProofMethod::Offer, _) => at("an offer that a key of the name has signed"),
        }
    }
}

impl PayeeClaim {
    const fn claimed_address(&self) -> Option<Address> {
        match self {
            Self::Is(address, _) => Some(*address),
            Self::None | Self::Undecided(_) => None,
        }
    }

    fn undecided_reason(&self) -> Option<Reason> {
        match self {
            Self::Undecided(reason) => Some((**reason).clone()),
            Self::None | Self::Is(..) => None,
        }
    }
}

/// Rejects addresses that nobody owns: zero, and the asset itself.
fn unowned_address_reason(price: &ExactPrice) -> Option<Reason> {
    let is_nobody = price.pay_to.is_zero() || price.pay_to == price.asset;
    (is_nobody && !clresolve_core::mutant!("the-asset-is-paid"))
        .then(|| payee_mismatch_reason(price).message("The terms pay the zero address, or the asset itself."))
}

fn payee_mismatch_reason(price: &ExactPrice) -> Reason {
    Reason::new(ReasonCode::PayeeMismatch).observed(price.pay_to.to_string())
}

#[cfg(test)]
mod tests {
    use clresolve_jose::Ed25519SigningKey;
    use serde_json::json;

    use super::*;
    use crate::testing::{jws_offer, usdc_price};

    const URL: &str = "https://a.example";
    const WALLET: Address = Address::repeat_byte(7);
    const OTHER: Address = Address::repeat_byte(8);
    const UNTIL: Timestamp = Timestamp::UNIX_EPOCH;

    fn registered(wallet: Address) -> PayeeClaim {
        let read = Erc8004WalletProvenance { agent: U256::from(22), block: 5, until: UNTIL };
        PayeeClaim::Is(wallet, PayeeClaimSource::Registration(Box::new(read)))
    }

    fn paid_to(payees: &NetworkPayees, address: Address) -> Result<PayeeProof, Vec<ReasonCode>> {
        let price = ExactPrice { pay_to: address, ..usdc_price() };
        let codes = |reasons: Vec<Reason>| reasons.into_iter().map(|reason| reason.code).collect();
        payees
            .prove_payee(&price, &ParsedOffers::from_values(&[]), &OfferResources::default(), Timestamp::UNIX_EPOCH)
            .map_err(codes)
    }

    /// The claim of one source about [`WALLET`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Says {
        Nothing,
        This,
        Another,
        /// Undecided. For an offer: signed by a third party.
        Doubtful,
    }

    const SAYINGS: [Says; 4] = [Says::Nothing, Says::This, Says::Another, Says::Doubtful];

    fn claim(says: Says, doubt: ReasonCode, source: impl FnOnce(Address) -> PayeeClaim) -> PayeeClaim {
        match says {
            Says::Nothing => PayeeClaim::None,
            Says::This => source(WALLET),
            Says::Another => source(OTHER),
            Says::Doubtful => PayeeClaim::Undecided(Box::new(Reason::new(doubt))),
        }
    }

    /// A signed offer for the price. `Another` pays someone else: same scheme, network and asset, but different terms.
    fn offers(says: Says, own: &Ed25519SigningKey, stranger: &Ed25519SigningKey) -> ParsedOffers {
        let (pay_to, key) = match says {
            Says::Nothing => return ParsedOffers::from_values(&[]),
            Says::This => (WALLET, own),
            Says::Another => (OTHER, own),
            Says::Doubtful => (WALLET, stranger),
        };
        let price = usdc_price();
        let payload = json!({
            "version": 1, "resourceUrl": URL, "scheme": "exact", "network": price.network, "validUntil": 0,
            "asset": price.asset.to_string(), "payTo": pay_to.to_string(), "amount": price.amount.to_string(),
        });
        let header = json!({"alg": "EdDSA", "kid": "did:web:a.example#1"});
        ParsedOffers::from_values(&[jws_offer(&header, &payload, key)])
    }

    /// The expected result for these claims: one source that names the payee suffices, otherwise each source raises its
    /// objection.
    fn expected(record: Says, registration: Says, offer: Says) -> Result<PayeeProofMethod, Vec<ReasonCode>> {
        let sources = [
            (record, PayeeProofMethod::Addr),
            (registration, PayeeProofMethod::Erc8004),
            (offer, PayeeProofMethod::Offer),
        ];
        if let Some((_, by)) = sources.into_iter().find(|(says, _)| *says == Says::This) {
            return Ok(by);
        }
        let others = [record, registration];
        // An undecided source may still name the payee.
        let is_contradicted = others.contains(&Says::Another) && !others.contains(&Says::Doubtful);
        let objections = [
            (offer == Says::Another, ReasonCode::OfferInvalid),
            (offer == Says::Doubtful, ReasonCode::OfferSignerUnproven),
            (record == Says::Doubtful, ReasonCode::RecordPending),
            (registration == Says::Doubtful, ReasonCode::PayeeUnproven),
            (is_contradicted, ReasonCode::PayeeMismatch),
            ([record, registration, offer] == [Says::Nothing; 3], ReasonCode::PayeeUnproven),
        ];
        Err(objections.into_iter().filter_map(|(is_said, code)| is_said.then_some(code)).collect())
    }

    #[test]
    fn a_registered_wallet_is_proven_until_its_reading_ends() {
        let payees = NetworkPayees { registration: registered(WALLET), ..NetworkPayees::default() };
        assert_eq!(paid_to(&payees, WALLET), Ok(PayeeProof { by: PayeeProofMethod::Erc8004, until: Some(UNTIL) }));
        assert_eq!(paid_to(&payees, OTHER), Err(vec![ReasonCode::PayeeMismatch]));
        let network: Caip2Network = "eip155:8453".parse().expect("a CAIP-2 identifier");
        let said = "proven by agent 22 of the ERC-8004 registry on eip155:8453 at its block 5";
        assert_eq!(payees.describe_proof(PayeeProofMethod::Erc8004, &network, Some(9)), said);
    }

    #[test]
    fn an_address_record_needs_no_registration() {
        let coin = CoinType::EVM_DEFAULT;
        let record = PayeeClaim::Is(WALLET, PayeeClaimSource::Record(coin));
        for registration in [registered(WALLET), registered(OTHER)] {
            let payees = NetworkPayees { record: record.clone(), registration, ..NetworkPayees::default() };
            assert_eq!(paid_to(&payees, WALLET), Ok(PayeeProof { by: PayeeProofMethod::Addr, until: None }));
        }
        let payees = NetworkPayees { record, registration: registered(OTHER), ..NetworkPayees::default() };
        assert_eq!(paid_to(&payees, OTHER).map(|proven| proven.by), Ok(PayeeProofMethod::Erc8004));
    }

    /// Address record, registration and offer: each silent, for the payee, for another, or undecided.
    #[test]
    fn one_source_that_names_the_payee_is_enough_and_each_other_says_what_it_has_against_it() {
        let (own, stranger) =
            (Ed25519SigningKey::generate().expect("a key"), Ed25519SigningKey::generate().expect("a key"));
        let signers =
            PublishedSigningKeys { ed25519: vec![own.public_key().clone()], ..PublishedSigningKeys::default() };
        let price = ExactPrice { pay_to: WALLET, ..usdc_price() };
        for (record, registration, offer) in
            SAYINGS.into_iter().flat_map(|a| SAYINGS.into_iter().flat_map(move |b| SAYINGS.map(|c| (a, b, c))))
        {
            let source = PayeeClaimSource::Record(CoinType::EVM_DEFAULT);
            let payees = NetworkPayees {
                configured: Vec::new(),
                record: claim(record, ReasonCode::RecordPending, |address| PayeeClaim::Is(address, source)),
                registration: claim(registration, ReasonCode::PayeeUnproven, registered),
                registration_owner: None,
                signers: signers.clone(),
            };
            let found = payees.prove_payee(
                &price,
                &offers(offer, &own, &stranger),
                &OfferResources::from_texts([URL]),
                Timestamp::UNIX_EPOCH,
            );
            let codes = |reasons: Vec<Reason>| reasons.into_iter().map(|reason| reason.code).collect();
            let found = found.map(|proven| proven.by).map_err(codes);
            let said = format!("addr {record:?}, erc8004 {registration:?}, offer {offer:?}");
            assert_eq!(found, expected(record, registration, offer), "{said}");
            let configured = NetworkPayees { configured: vec![OTHER, WALLET], ..payees };
            let by = configured.prove_payee(
                &price,
                &offers(offer, &own, &stranger),
                &OfferResources::from_texts([URL]),
                Timestamp::UNIX_EPOCH,
            );
            assert_eq!(by.map(|proven| proven.by), Ok(PayeeProofMethod::Configured), "{said}");
        }
    }

    /// Absence, contradiction and "could not ask" are different results.
    #[test]
    fn an_offer_by_a_key_that_was_not_read_contradicts_no_address() {
        let own = Ed25519SigningKey::generate().expect("a key");
        let price = ExactPrice { pay_to: WALLET, ..usdc_price() };
        let codes = |code: Option<ReasonCode>, says: Says| {
            let unread = code.map(|code| Box::new(Reason::new(code)));
            let signers = PublishedSigningKeys { unread, ..PublishedSigningKeys::default() };
            let record = PayeeClaim::Is(OTHER, PayeeClaimSource::Record(CoinType::EVM_DEFAULT));
            let payees = NetworkPayees { configured: vec![OTHER], record, signers, ..NetworkPayees::default() };
            let found = payees.prove_payee(
                &price,
                &offers(says, &own, &own),
                &OfferResources::from_texts([URL]),
                Timestamp::UNIX_EPOCH,
            );
            found.expect_err("nothing proves it").into_iter().map(|reason| reason.code).collect::<Vec<_>>()
        };
        for unread in [ReasonCode::RecordPending, ReasonCode::OfferSignerUnproven] {
            assert_eq!(codes(Some(unread), Says::This), [unread]);
            assert_eq!(codes(Some(unread), Says::Another), [ReasonCode::OfferInvalid, ReasonCode::PayeeMismatch]);
            assert_eq!(codes(Some(unread), Says::Nothing), [ReasonCode::PayeeMismatch]);
        }
        assert_eq!(codes(None, Says::This), [ReasonCode::OfferSignerUnproven, ReasonCode::PayeeMismatch]);
    }

    /// A configured address has no block.
    #[test]
    fn only_what_was_read_of_the_chain_is_proven_at_a_block() {
        let network: Caip2Network = "eip155:8453".parse().expect("a CAIP-2 identifier");
        let said = |by| NetworkPayees::default().describe_proof(by, &network, Some(9));
        assert_eq!(said(PayeeProofMethod::Configured), "proven by the configuration");
        assert_eq!(said(PayeeProofMethod::Addr), "proven by addr(name) at block 9");
    }

    #[test]
    fn a_registration_that_was_not_decided_is_said() {
        let reason = Reason::new(ReasonCode::PayeeUnproven).observed("no answer in time");
        let payees =
            NetworkPayees { registration: PayeeClaim::Undecided(Box::new(reason)), ..NetworkPayees::default() };
        assert_eq!(paid_to(&payees, WALLET), Err(vec![ReasonCode::PayeeUnproven]));
    }
}
