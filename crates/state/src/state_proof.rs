//! The recorded proof of a reading of the grade `state-proof`. Everyone who has the header can replay it. No I/O.
//!
//! [`StateProof`] holds the proofs and the responses of CCIP-Read gateways. [`StateProof::open`] checks the proofs against a
//! header. [`ReplayContext`] makes the calls of the reading again, so that the results can be compared.

use std::sync::{Mutex, PoisonError};

use alloy_primitives::{Address, Bytes};
use alloy_sol_types::{SolError as _, SolValue as _};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::abi::{self, Shape};
use super::answer::{self, Response};
use super::contracts::{CALL_GAS, Contracts, Findings, OffchainLookup, Subject};
use super::error::ProofError;
use super::evm::{Call, CallOutcome};
use super::header::HashedHeader;
use super::proof_nodes::{ProofNodes, ProvenState};
use clresolve_core::cause::ResolverFault;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Answer, ChainError, Holding};
use clresolve_core::records::Key;

/// Most redirects of one look-up. An honest resolver needs one; a resolver behind another one needs two.
pub const MAX_LOOK_UPS: usize = 4;

/// Longest gateway response and longest revert data, in bytes. The records of a name take some 20 KB.
pub const MAX_LOOK_UP_BYTES: usize = 256 << 10;

/// The parameters of an `OffchainLookup`.
const LOOK_UP: &[Shape] = &[Shape::Word, Shape::Array(&Shape::Bytes), Shape::Bytes, Shape::Word, Shape::Bytes];

/// Length of a function selector in bytes.
const SELECTOR_BYTES: usize = 4;

/// Everything that a reading was computed from, except the header. Its member names are part of the bundle format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateProof {
    /// The contracts that were called.
    pub contracts: Contracts,
    /// The state that they read.
    pub state: ProofNodes,
    /// The gateways' responses in the look-up of the name's records, in order.
    pub name_look_ups: Vec<Bytes>,
    /// The same for the address of the name in `cl.owner`.
    pub owner_look_ups: Vec<Bytes>,
}

/// The replayed reading of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenReading {
    /// The resolver's answer.
    pub answer: Answer,
    /// The address that holds the name.
    pub holder: Option<Address>,
    /// Expiry of the registration.
    pub expiry: Option<Timestamp>,
}

/// A state proof that holds against its header.
pub struct ReplayContext<'a> {
    proof: &'a StateProof,
    state: ProvenState,
}

/// Why a state proof is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateProofError {
    /// A call over the proven state failed.
    #[error("the calls fail: {0}")]
    Call(ChainError),
    /// The replay gives another result: of what.
    #[error("the proofs give other {0}")]
    Contradicted(&'static str),
    /// The header is malformed.
    #[error("the header cannot be read")]
    Header,
    /// The gateways' responses do not match the calls.
    #[error("the responses of gateways are refused: {0}")]
    LookUps(&'static str),
    /// There are no proofs.
    #[error("the proofs of the state are missing")]
    Missing,
    /// The proofs do not prove the state: why.
    #[error(transparent)]
    State(#[from] ProofError),
}

impl StateProof {
    /// Checks the proofs against the header with these bytes, whose hash the caller has compared.
    ///
    /// # Errors
    /// [`StateProofError`].
    pub fn open(&self, header: &[u8], chain_id: u64) -> Result<ReplayContext<'_>, StateProofError> {
        let header = HashedHeader::from_rlp(header).ok_or(StateProofError::Header)?;
        Ok(ReplayContext { proof: self, state: ProvenState::new(header, chain_id, &self.state)? })
    }
}

impl ReplayContext<'_> {
    /// The reading of `name`.
    ///
    /// # Errors
    /// [`StateProofError`].
    pub fn read(&self, name: &EnsName) -> Result<ProvenReading, StateProofError> {
        let subject = Subject::new(name, &self.proof.contracts);
        let resolve = subject.resolve_texts(Key::ALL.map(Key::as_str));
        let findings = self.findings(&subject, &resolve)?;
        let response = answer::records_response(&findings).map_err(StateProofError::Call)?;
        let answer = self.complete(response, resolve, &self.proof.name_look_ups, |data, offchain| {
            answer::records(&findings, &Key::ALL, data, offchain)
        })?;
        Ok(ProvenReading { answer, holder: findings.holder, expiry: findings.expiry })
    }

    /// Address and holder of `owner`.
    ///
    /// # Errors
    /// [`StateProofError`].
    pub fn holding(&self, owner: &EnsName) -> Result<Holding, StateProofError> {
        let subject = Subject::new(owner, &self.proof.contracts);
        let resolve = subject.resolve_address();
        let findings = self.findings(&subject, &resolve)?;
        let response = answer::holding_response(&findings).map_err(StateProofError::Call)?;
        self.complete(response, resolve, &self.proof.owner_look_ups, |data, offchain| {
            answer::holding(&findings, data, offchain)
        })
    }

    fn findings(&self, subject: &Subject, resolve: &Bytes) -> Result<Findings, StateProofError> {
        let failed = |fault| StateProofError::Call(ChainError::Resolver(fault));
        let data = match self.call(self.proof.contracts.multicall3, subject.aggregate(resolve.clone()))? {
            CallOutcome::Returned(data) => data,
            CallOutcome::Reverted(_) => return Err(failed(ResolverFault::CallReverted)),
            CallOutcome::Halted(cause) => return Err(failed(ResolverFault::Halted(cause))),
        };
        let findings =
            subject.decode(&data).map_err(|garbled| failed(ResolverFault::Malformed(garbled.to_string())))?;
        if findings.block == self.state.number() {
            Ok(findings)
        } else {
            Err(failed(ResolverFault::Malformed("Multicall3 names another block".to_owned())))
        }
    }

    /// The answer, with the gateways' responses in `look_ups` where a look-up remains.
    fn complete<T>(
        &self,
        response: Response<T>,
        resolve: Bytes,
        look_ups: &[Bytes],
        decode: impl FnOnce(&[u8], bool) -> Result<T, ChainError>,
    ) -> Result<T, StateProofError> {
        let (data, offchain) = match response {
            Response::OffChain => (self.follow(resolve, look_ups)?, true),
            _ if !look_ups.is_empty() => return Err(StateProofError::LookUps("no call needs them")),
            Response::Complete(answer) => return Ok(answer),
            Response::Encoded(data) => (data, false),
        };
        decode(&data, offchain).map_err(StateProofError::Call)
    }

    /// The result of the Universal Resolver once it has the gateways' responses (EIP-3668).
    fn follow(&self, resolve: Bytes, look_ups: &[Bytes]) -> Result<Bytes, StateProofError> {
        if look_ups.len() > MAX_LOOK_UPS || look_ups.iter().any(|response| response.len() > MAX_LOOK_UP_BYTES) {
            return Err(StateProofError::LookUps("they are too many or too long"));
        }
        let resolver = self.proof.contracts.universal_resolver;
        let mut data = resolve;
        for response in look_ups {
            let CallOutcome::Reverted(revert) = self.call(resolver, data)? else {
                return Err(StateProofError::LookUps("the calls need fewer"));
            };
            data = callback(resolver, &revert, response).ok_or(StateProofError::LookUps("no look-up needs them"))?;
        }
        match self.call(resolver, data)? {
            CallOutcome::Returned(data) => Ok(data),
            _ => Err(StateProofError::LookUps("the resolver rejects them")),
        }
    }

    fn call(&self, to: Address, data: Bytes) -> Result<CallOutcome, StateProofError> {
        Ok(self.state.call(&Call { to, data, gas: CALL_GAS })?)
    }
}

/// The call that gives the gateway's `response` to the contract that demanded it.
fn callback(sender: Address, revert: &[u8], response: &Bytes) -> Option<Bytes> {
    let parameters = revert.get(SELECTOR_BYTES..).filter(|_| revert.len() <= MAX_LOOK_UP_BYTES)?;
    abi::check(parameters, LOOK_UP).ok()?;
    let look_up = OffchainLookup::abi_decode(revert).ok().filter(|look_up| look_up.sender == sender)?;
    let arguments = (response.clone(), look_up.extraData).abi_encode_params();
    Some([look_up.callbackFunction.as_slice(), &arguments].concat().into())
}

/// The gateway's response in the data of an EIP-3668 callback.
pub fn callback_answer(callback: &[u8]) -> Option<Bytes> {
    let parameters = callback.get(SELECTOR_BYTES..)?;
    <(Bytes, Bytes)>::abi_decode_params(parameters).ok().map(|(response, _)| response)
}

/// Which of the two queries a session answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The records of the name.
    Name,
    /// The address of the name in `cl.owner`.
    Owner,
}

/// Records the proofs of a chain's readings: the latest one of each query.
#[derive(Debug, Default)]
pub struct Recording(Mutex<Option<StateProof>>);

impl Recording {
    /// What was recorded since the last time.
    pub fn take(&self) -> Option<StateProof> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Adds a session. The one about the name comes first.
    pub fn add(&self, about: About, contracts: Contracts, state: ProofNodes, look_ups: Vec<Bytes>) {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (about, recorded.as_mut()) {
            (About::Name, _) => {
                let owner_look_ups = Vec::new();
                *recorded = Some(StateProof { contracts, state, name_look_ups: look_ups, owner_look_ups });
            }
            (About::Owner, Some(proof)) => {
                proof.state.extend(state);
                proof.owner_look_ups = look_ups;
            }
            (About::Owner, None) => {}
        }
    }
}
