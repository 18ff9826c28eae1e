//! Contract code, checked against the proven code hash of its account.

use alloy_primitives::{Address, B256, Bytes, keccak256};
use revm::state::Bytecode;

use crate::error::ProvenCallError;

/// Maximum length of code, in bytes. The current limit is 24 KiB (EIP-170); proposals go up to 256 KiB (EIP-7907).
const MAX_CODE_BYTES: usize = 256 << 10;

/// The code of `address`, which must have the proven code hash `hash`.
///
/// # Errors
/// [`ProvenCallError::Code`] or [`ProvenCallError::CodeTooLong`].
pub fn verify_account_code(address: Address, hash: B256, code: Bytes) -> Result<Bytecode, ProvenCallError> {
    // Check the hash first: bytes with another hash are the endpoint's fault, not a property of the contract.
    if keccak256(&code) != hash && !clresolve_core::mutant!("code-unhashed") {
        return Err(ProvenCallError::Code { address });
    }
    if code.len() > MAX_CODE_BYTES {
        return Err(ProvenCallError::CodeTooLong { address, bytes: code.len() });
    }
    // Code that begins like an EIP-7702 delegation but is not one was deployed before that prefix was reserved.
    Ok(Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code)))
}
