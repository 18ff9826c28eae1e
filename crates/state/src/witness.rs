//! What proves a reading of the grade `state-proof`, kept so that it can be shown again to whoever has the header. No I/O.
//!
//! [`Witness`] holds the proofs and what CCIP-Read gateways answered. [`Witness::open`] proves the state against a header
//! and makes the calls of the reading again, here: what comes out is compared with what was said to have come out.

use std::sync::{Mutex, PoisonError};

use alloy_primitives::{Address, Bytes};
use alloy_sol_types::{SolError as _, SolValue as _};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::abi::{self, Shape};
use super::answer::{self, Said};
use super::contracts::{CALL_GAS, Contracts, Findings, OffchainLookup, Subject};
use super::error::ProofError;
use super::evm::{Call, Outcome};
use super::header::HashedHeader;
use super::kept::{Ground, Kept};
use clresolve_core::cause::ResolverFault;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Answer, ChainError, Holding};
use clresolve_core::records::Key;

/// Most redirects of one look-up. An honest resolver needs one, a resolver behind another two.
pub const MAX_LOOK_UPS: usize = 4;

/// Longest gateway answer and longest revert data, in bytes. The records of a name take some 20 KB.
pub const MAX_LOOK_UP_BYTES: usize = 256 << 10;

/// What an `OffchainLookup` holds.
const LOOK_UP: &[Shape] = &[Shape::Word, Shape::Array(&Shape::Bytes), Shape::Bytes, Shape::Word, Shape::Bytes];

/// Length of a function selector in bytes.
const SELECTOR_BYTES: usize = 4;

/// Everything that a reading was computed from, but for the header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The contracts that were asked.
    pub contracts: Contracts,
    /// The state that they read.
    pub state: Kept,
    /// What gateways answered in the look-up of the name's records, one after another.
    pub name_look_ups: Vec<Bytes>,
    /// The same for the address of the name in `cl.owner`.
    pub owner_look_ups: Vec<Bytes>,
}

/// What a witness gives for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// What the resolver says.
    pub answer: Answer,
    /// The address that holds the name.
    pub holder: Option<Address>,
    /// Expiry of the registration.
    pub expiry: Option<Timestamp>,
}

/// A witness whose proofs hold.
pub struct Stand<'a> {
    witness: &'a Witness,
    ground: Ground,
}

/// Why a witness is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// A call over the state that was shown came to nothing.
    #[error("the calls come to nothing: {0}")]
    Call(ChainError),
    /// Something else comes out than was said to: which.
    #[error("other {0} than these are what the proofs give")]
    Contradicted(&'static str),
    /// The header does not have the form of one.
    #[error("the header cannot be read")]
    Header,
    /// The gateways' answers are not those that the calls ask for.
    #[error("the answers of gateways are refused: {0}")]
    LookUps(&'static str),
    /// There are no proofs.
    #[error("the proofs of the state are missing")]
    Missing,
    /// The proofs do not show the state: why.
    #[error(transparent)]
    State(#[from] ProofError),
}

impl Witness {
    /// Proves the state against the header with these bytes, whose hash the caller has compared.
    ///
    /// # Errors
    /// [`WitnessError`].
    pub fn open(&self, header: &[u8], chain_id: u64) -> Result<Stand<'_>, WitnessError> {
        let header = HashedHeader::from_rlp(header).ok_or(WitnessError::Header)?;
        Ok(Stand { witness: self, ground: Ground::new(header, chain_id, &self.state)? })
    }
}

impl Stand<'_> {
    /// What the contracts say about `name`.
    ///
    /// # Errors
    /// [`WitnessError`].
    pub fn read(&self, name: &EnsName) -> Result<Computed, WitnessError> {
        let subject = Subject::new(name, &self.witness.contracts);
        let resolve = subject.resolve_texts(Key::ALL.map(Key::as_str));
        let findings = self.findings(&subject, &resolve)?;
        let told = answer::records_told(&findings).map_err(WitnessError::Call)?;
        let answer = self.completed(told, resolve, &self.witness.name_look_ups, |data, offchain| {
            answer::records(&findings, &Key::ALL, data, offchain)
        })?;
        Ok(Computed { answer, holder: findings.holder, expiry: findings.expiry })
    }

    /// Address and holder of `owner`.
    ///
    /// # Errors
    /// [`WitnessError`].
    pub fn holding(&self, owner: &EnsName) -> Result<Holding, WitnessError> {
        let subject = Subject::new(owner, &self.witness.contracts);
        let resolve = subject.resolve_address();
        let findings = self.findings(&subject, &resolve)?;
        let told = answer::holding_told(&findings).map_err(WitnessError::Call)?;
        self.completed(told, resolve, &self.witness.owner_look_ups, |data, offchain| {
            answer::holding(&findings, data, offchain)
        })
    }

    fn findings(&self, subject: &Subject, resolve: &Bytes) -> Result<Findings, WitnessError> {
        let failed = |fault| WitnessError::Call(ChainError::Resolver(fault));
        let data = match self.call(self.witness.contracts.multicall3, subject.aggregate(resolve.clone()))? {
            Outcome::Returned(data) => data,
            Outcome::Reverted(_) => return Err(failed(ResolverFault::CallReverted)),
            Outcome::Halted(cause) => return Err(failed(ResolverFault::Halted(cause))),
        };
        let findings =
            subject.decode(&data).map_err(|garbled| failed(ResolverFault::Malformed(garbled.to_string())))?;
        if findings.block == self.ground.number() {
            Ok(findings)
        } else {
            Err(failed(ResolverFault::Malformed("Multicall3 names another block".to_owned())))
        }
    }

    /// The answer, with the look-ups that are left to do taken from `answers`.
    fn completed<T>(
        &self,
        said: Said<T>,
        resolve: Bytes,
        answers: &[Bytes],
        decode: impl FnOnce(&[u8], bool) -> Result<T, ChainError>,
    ) -> Result<T, WitnessError> {
        let (data, offchain) = match said {
            Said::OffChain => (self.follow(resolve, answers)?, true),
            _ if !answers.is_empty() => return Err(WitnessError::LookUps("nothing asks for them")),
            Said::All(all) => return Ok(all),
            Said::Data(data) => (data, false),
        };
        decode(&data, offchain).map_err(WitnessError::Call)
    }

    /// What the Universal Resolver returns once it is given the gateways' answers (EIP-3668).
    fn follow(&self, resolve: Bytes, answers: &[Bytes]) -> Result<Bytes, WitnessError> {
        if answers.len() > MAX_LOOK_UPS || answers.iter().any(|answer| answer.len() > MAX_LOOK_UP_BYTES) {
            return Err(WitnessError::LookUps("there are too many of them"));
        }
        let resolver = self.witness.contracts.universal_resolver;
        let mut data = resolve;
        for answer in answers {
            let Outcome::Reverted(revert) = self.call(resolver, data)? else {
                return Err(WitnessError::LookUps("nothing asks for all of them"));
            };
            data = callback(resolver, &revert, answer).ok_or(WitnessError::LookUps("no look-up asks for them"))?;
        }
        match self.call(resolver, data)? {
            Outcome::Returned(data) => Ok(data),
            _ => Err(WitnessError::LookUps("the resolver does not take them")),
        }
    }

    fn call(&self, to: Address, data: Bytes) -> Result<Outcome, WitnessError> {
        Ok(self.ground.call(&Call { to, data, gas: CALL_GAS })?)
    }
}

/// The call that gives `answer` to the contract that demanded it.
fn callback(sender: Address, revert: &[u8], answer: &Bytes) -> Option<Bytes> {
    let parameters = revert.get(SELECTOR_BYTES..).filter(|_| revert.len() <= MAX_LOOK_UP_BYTES)?;
    abi::check(parameters, LOOK_UP).ok()?;
    let look_up = OffchainLookup::abi_decode(revert).ok().filter(|look_up| look_up.sender == sender)?;
    let arguments = (answer.clone(), look_up.extraData).abi_encode_params();
    Some([look_up.callbackFunction.as_slice(), &arguments].concat().into())
}

/// The gateway's answer in a call that [`callback`] makes.
pub fn answer_in(callback: &[u8]) -> Option<Bytes> {
    let parameters = callback.get(SELECTOR_BYTES..)?;
    <(Bytes, Bytes)>::abi_decode_params(parameters).ok().map(|(answer, _)| answer)
}

/// Which of the two questions a session was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The records of the name.
    Name,
    /// The address of the name in `cl.owner`.
    Owner,
}

/// Takes down what proves the readings of a chain, the latest one of each question.
#[derive(Debug, Default)]
pub struct Recording(Mutex<Option<Witness>>);

impl Recording {
    /// What was taken down since the last time.
    pub fn take(&self) -> Option<Witness> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Adds a session. That about the name comes first.
    pub fn add(&self, about: About, contracts: Contracts, state: Kept, look_ups: Vec<Bytes>) {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (about, recorded.as_mut()) {
            (About::Name, _) => {
                let owner_look_ups = Vec::new();
                *recorded = Some(Witness { contracts, state, name_look_ups: look_ups, owner_look_ups });
            }
            (About::Owner, Some(witness)) => {
                witness.state.extend(state);
                witness.owner_look_ups = look_ups;
            }
            (About::Owner, None) => {}
        }
    }
}
