//! Repeats the calls of a recorded reading over the state that its proofs prove. No I/O.

use alloy_primitives::{Address, Bytes};
use clresolve_core::cause::{CcipLookupError, ResolverContractError};
use clresolve_core::name::EnsName;
use clresolve_core::reading::{ChainError, ClOwnerReading, EnsAnswer};
use clresolve_core::records::TextRecordKey;

use super::answer::{self, EnsAnswerStage, UniversalResolverBytes};
use super::contracts::{CALL_GAS, NameFindings, NameMulticall};
use super::evm::{EvmCall, EvmCallOutcome};
use super::header::HashedBlockHeader;
use super::look_up::{CcipReadLookup, MAX_LOOK_UP_BYTES, MAX_LOOK_UPS};
use super::proven_state::ProvenBlockState;
use super::state_proof::{ProvenNameReading, StateProof, StateProofError};

/// A state proof that was verified against its header.
pub struct StateProofReplay<'a> {
    proof: &'a StateProof,
    state: ProvenBlockState,
}

impl StateProof {
    /// Verifies the proofs against the header with these bytes. The caller must already have compared the header's
    /// hash.
    ///
    /// # Errors
    /// [`StateProofError`].
    pub fn verify_under_header(&self, header: &[u8], chain_id: u64) -> Result<StateProofReplay<'_>, StateProofError> {
        let header = HashedBlockHeader::from_rlp(header).ok_or(StateProofError::Header)?;
        Ok(StateProofReplay { proof: self, state: ProvenBlockState::new(header, chain_id, &self.state)? })
    }
}

impl StateProofReplay<'_> {
    /// Computes the reading of `name` again.
    ///
    /// # Errors
    /// [`StateProofError`].
    pub fn replay_reading(&self, name: &EnsName) -> Result<ProvenNameReading, StateProofError> {
        let subject = NameMulticall::new(name, &self.proof.contracts).with_payment(self.proof.coins.clone());
        let resolve = subject.resolve_texts_call(TextRecordKey::ALL.map(TextRecordKey::as_str));
        let findings = self.replay_findings(&subject, &resolve)?;
        let response = answer::records_answer_stage(&findings).map_err(StateProofError::Call)?;
        let answer = self.complete_response(response, resolve, &self.proof.name_look_ups, |returned| {
            answer::decode_returned_records(&findings, &TextRecordKey::ALL, returned)
        })?;
        let answer = self.add_replayed_payment(answer, &subject, &findings)?;
        Ok(ProvenNameReading { answer, holder: findings.holder, expiry: findings.expiry })
    }

    /// Adds the payment records to the answer, if they were requested. A failed lookup cannot be replayed, so a lookup
    /// without responses counts as failed.
    fn add_replayed_payment(
        &self,
        answer: EnsAnswer,
        subject: &NameMulticall,
        findings: &NameFindings,
    ) -> Result<EnsAnswer, StateProofError> {
        let look_ups = &self.proof.payment_look_ups;
        let (Some(coins), Some(resolve)) = (subject.coins(), subject.resolve_payment_call()) else {
            return if look_ups.is_empty() { Ok(answer) } else { Err(StateProofError::LookUps("no call needs them")) };
        };
        let decode = |returned: &UniversalResolverBytes| answer::decode_returned_payment(findings, coins, returned);
        let payment = match answer::payment_answer_stage(findings) {
            Err(cause) if look_ups.is_empty() => Err(cause),
            Err(_) => return Err(StateProofError::LookUps("no call needs them")),
            Ok(EnsAnswerStage::OffChain) if look_ups.is_empty() => Err(ChainError::Ccip(CcipLookupError::NotTaken)),
            Ok(response) => match self.complete_response(response, resolve, look_ups, decode) {
                Err(StateProofError::Call(cause)) => Err(cause),
                completed => Ok(completed?),
            },
        };
        Ok(answer::add_payment_records(answer, coins, payment))
    }

    /// Computes address and holder of `owner` again.
    ///
    /// # Errors
    /// [`StateProofError`].
    pub fn replay_owner_details(&self, owner: &EnsName) -> Result<ClOwnerReading, StateProofError> {
        let subject = NameMulticall::new(owner, &self.proof.contracts);
        let resolve = subject.resolve_address_call();
        let findings = self.replay_findings(&subject, &resolve)?;
        let response = answer::owner_details_answer_stage(&findings).map_err(StateProofError::Call)?;
        self.complete_response(response, resolve, &self.proof.owner_look_ups, |returned| {
            answer::decode_returned_owner_details(&findings, returned)
        })
    }

    fn replay_findings(&self, subject: &NameMulticall, resolve: &Bytes) -> Result<NameFindings, StateProofError> {
        let failed = |fault| StateProofError::Call(ChainError::Resolver(fault));
        let data = match self.compute_call(self.proof.contracts.multicall3, subject.aggregate_call(resolve.clone()))? {
            EvmCallOutcome::Returned(data) => data,
            EvmCallOutcome::Reverted(_) => return Err(failed(ResolverContractError::CallReverted)),
            EvmCallOutcome::Halted(cause) => return Err(failed(ResolverContractError::Halted(cause))),
        };
        let findings =
            subject.decode(&data).map_err(|garbled| failed(ResolverContractError::Malformed(garbled.to_string())))?;
        if findings.block == self.state.block_number() {
            Ok(findings)
        } else {
            Err(failed(ResolverContractError::Malformed("Multicall3 names another block".to_owned())))
        }
    }

    /// The answer. If a lookup is required, it uses the gateways' responses in `look_ups`.
    fn complete_response<T>(
        &self,
        response: EnsAnswerStage<T>,
        resolve: Bytes,
        look_ups: &[Bytes],
        decode: impl FnOnce(&UniversalResolverBytes) -> Result<T, ChainError>,
    ) -> Result<T, StateProofError> {
        let returned = match response {
            EnsAnswerStage::OffChain => UniversalResolverBytes::OffChain(self.follow_lookups(resolve, look_ups)?),
            _ if !look_ups.is_empty() => return Err(StateProofError::LookUps("no call needs them")),
            EnsAnswerStage::Complete(answer) => return Ok(answer),
            EnsAnswerStage::Returned(returned) => returned,
        };
        decode(&returned).map_err(StateProofError::Call)
    }

    /// The result of the Universal Resolver after the callbacks with the gateways' responses (EIP-3668).
    fn follow_lookups(&self, resolve: Bytes, look_ups: &[Bytes]) -> Result<Bytes, StateProofError> {
        if look_ups.len() > MAX_LOOK_UPS || look_ups.iter().any(|response| response.len() > MAX_LOOK_UP_BYTES) {
            return Err(StateProofError::LookUps("they are too many or too long"));
        }
        let resolver = self.proof.contracts.universal_resolver;
        let mut data = resolve;
        for response in look_ups {
            let EvmCallOutcome::Reverted(revert) = self.compute_call(resolver, data)? else {
                return Err(StateProofError::LookUps("the calls need fewer"));
            };
            let look_up = CcipReadLookup::decode(&revert, resolver);
            data =
                look_up.map_err(|_| StateProofError::LookUps("no lookup needs them"))?.callback_call(response.clone());
        }
        match self.compute_call(resolver, data)? {
            EvmCallOutcome::Returned(data) => Ok(data),
            _ => Err(StateProofError::LookUps("the resolver rejects them")),
        }
    }

    fn compute_call(&self, to: Address, data: Bytes) -> Result<EvmCallOutcome, StateProofError> {
        Ok(self.state.compute_call(&EvmCall { to, data, gas: CALL_GAS })?)
    }
}
