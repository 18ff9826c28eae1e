//! Trust roots of card signatures: obtains the keys from the source that a verifier selects.

use std::fmt::Display;

use clresolve_cards::signature::{CardTrustRoot, CardTrustRootError, DidWeb};
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_resolver::resolve::{Resolver, SignerRecords, SignerRecordsError};
use clresolve_verdict::evidence::HttpsOutcome;

/// Where a verifier obtains keys that must be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerificationKeySource {
    /// A JSON Web Key Set at an `https` URL.
    Url(String),
    /// A DID document.
    Did(DidWeb),
    /// The record `cl.sig.pub` of a name.
    Ens(EnsName),
}

/// Reads the keys of a trust root within the time limit of one question. A root without usable keys contains the cause.
///
/// Web pages are fetched like any untrusted URL, and only from the selected origin: a redirect to another origin makes
/// the root unusable. A record must be read at a settled block, and be vouched for by several endpoints or by the
/// operator's own.
pub async fn fetch_trust_root(resolver: &Resolver, source: &VerificationKeySource) -> CardTrustRoot {
    match source {
        VerificationKeySource::Url(url) => {
            fetch_key_document(resolver, url, url, |bytes| CardTrustRoot::from_jwks(url, bytes)).await
        }
        VerificationKeySource::Did(did) => {
            let root = |bytes: &[u8]| CardTrustRoot::from_did_document(did, bytes);
            fetch_key_document(resolver, did.as_str(), did.document_url(), root).await
        }
        VerificationKeySource::Ens(name) => read_signer_record(resolver, name).await,
    }
}

async fn fetch_key_document(
    resolver: &Resolver,
    label: &str,
    url: &str,
    read: impl FnOnce(&[u8]) -> Result<CardTrustRoot, CardTrustRootError>,
) -> CardTrustRoot {
    match resolver.fetch_key_set(url).await {
        HttpsOutcome::Body { bytes, .. } => CardTrustRoot::from_result_or_failure(read(&bytes), label),
        HttpsOutcome::Forbidden(why) => unusable_trust_root(label, why),
        HttpsOutcome::Oversize(limit) => unusable_trust_root(label, format_args!("more than {limit} bytes")),
        HttpsOutcome::Unavailable(why) => unavailable_trust_root(label, why),
        HttpsOutcome::NotAsked => unavailable_trust_root(label, "not asked"),
    }
}

async fn read_signer_record(resolver: &Resolver, name: &EnsName) -> CardTrustRoot {
    let label = name.as_str();
    match resolver.read_signer_records(name).await.and_then(|records| trust_root_from_records(name, &records)) {
        Ok(root) => root,
        Err(error @ (SignerRecordsError::Unavailable(_) | SignerRecordsError::Pending(_))) => {
            unavailable_trust_root(label, error)
        }
        Err(error) => unusable_trust_root(label, error),
    }
}

fn trust_root_from_records(name: &EnsName, records: &SignerRecords) -> Result<CardTrustRoot, SignerRecordsError> {
    let root = CardTrustRoot::from_cl_sig_records(name, records.signing_public_key()?, records.signing_key_id()?);
    Ok(CardTrustRoot::from_result_or_failure(root, name.as_str()))
}

fn unusable_trust_root(label: &str, why: impl Display) -> CardTrustRoot {
    CardTrustRoot::from_failure_reason(label, Reason::new(ReasonCode::SignatureRootUnusable).observed(why.to_string()))
}

fn unavailable_trust_root(label: &str, why: impl Display) -> CardTrustRoot {
    CardTrustRoot::from_failure_reason(
        label,
        Reason::new(ReasonCode::SignatureRootUnavailable).observed(why.to_string()),
    )
}
