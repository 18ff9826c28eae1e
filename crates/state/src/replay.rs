//! Repeats the calls of a recorded reading over the state that its proofs prove. No I/O.

use alloy_primitives::{Address, Bytes};
use clresolve_core::cause::{CcipFault, ResolverFault};
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Answer, ChainError, Holding};
use clresolve_core::records::Key;

use super::answer::{self, Response, Returned};
use super::contracts::{CALL_GAS, Findings, Subject};
use super::evm::{Call, CallOutcome};
use super::header::HashedHeader;
use super::look_up::{LookUp, MAX_LOOK_UP_BYTES, MAX_LOOK_UPS};
use super::proven_state::ProvenState;
use super::state_proof::{ProvenReading, StateProof, StateProofError};

/// A state proof that was verified against its header.
pub struct ReplayContext<'a> {
    proof: &'a StateProof,
    state: ProvenState,
}

impl StateProof {
    /// Verifies the proofs against the header with these bytes. The caller must already have compared the header's
    /// hash.
    ///
    /// # Errors
    /// [`StateProofError`].
    pub fn open(&self, header: &[u8], chain_id: u64) -> Result<ReplayContext<'_>, StateProofError> {
        let header = HashedHeader::from_rlp(header).ok_or(StateProofError::Header)?;
        Ok(ReplayContext { proof: self, state: ProvenState::new(header, chain_id, &self.state)? })
    }
}

impl ReplayContext<'_> {
    /// Computes the reading of `name` again.
    ///
    /// # Errors
    /// [`StateProofError`].
    pub fn read(&self, name: &EnsName) -> Result<ProvenReading, StateProofError> {
        let subject = Subject::new(name, &self.proof.contracts).with_payment(self.proof.coins.clone());
        let resolve = subject.resolve_texts(Key::ALL.map(Key::as_str));
        let findings = self.findings(&subject, &resolve)?;
        let response = answer::records_response(&findings).map_err(StateProofError::Call)?;
        let answer = self.complete(response, resolve, &self.proof.name_look_ups, |returned| {
            answer::records(&findings, &Key::ALL, returned)
        })?;
        let answer = self.with_payment(answer, &subject, &findings)?;
        Ok(ProvenReading { answer, holder: findings.holder, expiry: findings.expiry })
    }

    /// Adds the payment records to the answer, if they were requested. A failed lookup cannot be replayed, so a lookup
    /// without responses counts as failed.
    fn with_payment(&self, answer: Answer, subject: &Subject, findings: &Findings) -> Result<Answer, StateProofError> {
        let look_ups = &self.proof.payment_look_ups;
        let (Some(coins), Some(resolve)) = (subject.coins(), subject.resolve_payment()) else {
            return if look_ups.is_empty() { Ok(answer) } else { Err(StateProofError::LookUps("no call needs them")) };
        };
        let decode = |returned: &Returned| answer::payment(findings, coins, returned);
        let payment = match answer::payment_response(findings) {
            Err(cause) if look_ups.is_empty() => Err(cause),
            Err(_) => return Err(StateProofError::LookUps("no call needs them")),
            Ok(Response::OffChain) if look_ups.is_empty() => Err(ChainError::Ccip(CcipFault::NotTaken)),
            Ok(response) => match self.complete(response, resolve, look_ups, decode) {
                Err(StateProofError::Call(cause)) => Err(cause),
                completed => Ok(completed?),
            },
        };
        Ok(answer::with_payment(answer, coins, payment))
    }

    /// Computes address and holder of `owner` again.
    ///
    /// # Errors
    /// [`StateProofError`].
    pub fn holding(&self, owner: &EnsName) -> Result<Holding, StateProofError> {
        let subject = Subject::new(owner, &self.proof.contracts);
        let resolve = subject.resolve_address();
        let findings = self.findings(&subject, &resolve)?;
        let response = answer::holding_response(&findings).map_err(StateProofError::Call)?;
        self.complete(response, resolve, &self.proof.owner_look_ups, |returned| answer::holding(&findings, returned))
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

    /// The answer. If a lookup is required, it uses the gateways' responses in `look_ups`.
    fn complete<T>(
        &self,
        response: Response<T>,
        resolve: Bytes,
        look_ups: &[Bytes],
        decode: impl FnOnce(&Returned) -> Result<T, ChainError>,
    ) -> Result<T, StateProofError> {
        let returned = match response {
            Response::OffChain => Returned::OffChain(self.follow(resolve, look_ups)?),
            _ if !look_ups.is_empty() => return Err(StateProofError::LookUps("no call needs them")),
            Response::Complete(answer) => return Ok(answer),
            Response::Returned(returned) => returned,
        };
        decode(&returned).map_err(StateProofError::Call)
    }

    /// The result of the Universal Resolver after the callbacks with the gateways' responses (EIP-3668).
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
            let look_up = LookUp::decode(&revert, resolver);
            data = look_up.map_err(|_| StateProofError::LookUps("no lookup needs them"))?.callback(response.clone());
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
