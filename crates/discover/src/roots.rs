//! Trust roots of card signatures: obtains the keys from the source that a verifier selects.

use std::fmt::Display;

use clresolve_cards::signature::{DidWeb, Root, RootError};
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Code, Reason};
use clresolve_resolver::resolve::{Resolver, SignerError, SignerRecords};
use clresolve_verdict::evidence::Source;

/// Where a verifier obtains keys that must be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootSource {
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
pub async fn trust_root(resolver: &Resolver, source: &RootSource) -> Root {
    match source {
        RootSource::Url(url) => document(resolver, url, url, |bytes| Root::from_jwks(url, bytes)).await,
        RootSource::Did(did) => {
            let root = |bytes: &[u8]| Root::from_did_document(did, bytes);
            document(resolver, did.as_str(), did.url(), root).await
        }
        RootSource::Ens(name) => record(resolver, name).await,
    }
}

async fn document(
    resolver: &Resolver,
    label: &str,
    url: &str,
    read: impl FnOnce(&[u8]) -> Result<Root, RootError>,
) -> Root {
    match resolver.key_set(url).await {
        Source::Body { bytes, .. } => Root::or_unusable(read(&bytes), label),
        Source::Forbidden(why) => unusable(label, why),
        Source::Oversize(limit) => unusable(label, format_args!("more than {limit} bytes")),
        Source::Unavailable(why) => unavailable(label, why),
        Source::NotAsked => unavailable(label, "not asked"),
    }
}

async fn record(resolver: &Resolver, name: &EnsName) -> Root {
    let label = name.as_str();
    match resolver.signer_records(name).await.and_then(|records| root(name, &records)) {
        Ok(root) => root,
        Err(error @ (SignerError::Unavailable(_) | SignerError::Pending(_))) => unavailable(label, error),
        Err(error) => unusable(label, error),
    }
}

fn root(name: &EnsName, records: &SignerRecords) -> Result<Root, SignerError> {
    let root = Root::from_record(name, records.public_key()?, records.key_id()?);
    Ok(Root::or_unusable(root, name.as_str()))
}

fn unusable(label: &str, why: impl Display) -> Root {
    Root::without_keys(label, Reason::new(Code::SignatureRootUnusable).observed(why.to_string()))
}

fn unavailable(label: &str, why: impl Display) -> Root {
    Root::without_keys(label, Reason::new(Code::SignatureRootUnavailable).observed(why.to_string()))
}
