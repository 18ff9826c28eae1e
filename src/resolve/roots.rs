//! Trust roots of card signatures: obtains the keys of the source that a verifier names.

use std::fmt::Display;
use std::time::Duration;

use clresolve_cards::signature::{DidWeb, Root, RootError};
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Code, Reason};
use clresolve_verdict::evidence::Source;

use super::content::Content;
use super::signer::{SignerError, SignerRecords};
use super::walk::Walker;

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

/// Reads the keys of a trust root, within the time limit of one question.
pub(super) async fn read(walker: &Walker, source: &RootSource) -> Root {
    let (content, limit) = (&*walker.sources.content, walker.config.timeout);
    match source {
        RootSource::Url(url) => document(content, url, url, limit, |bytes| Root::from_jwks(url, bytes)).await,
        RootSource::Did(did) => {
            let root = |bytes: &[u8]| Root::from_did_document(did, bytes);
            document(content, did.as_str(), did.url(), limit, root).await
        }
        RootSource::Ens(name) => record(walker, name, limit).await,
    }
}

async fn document(
    content: &dyn Content,
    label: &str,
    url: &str,
    limit: Duration,
    read: impl FnOnce(&[u8]) -> Result<Root, RootError>,
) -> Root {
    match content.key_set(url, limit).await {
        Source::Body { bytes, .. } => Root::or_unusable(read(&bytes), label),
        Source::Forbidden(why) => unusable(label, why),
        Source::Oversize(limit) => unusable(label, format_args!("more than {limit} bytes")),
        Source::Unavailable(why) => unavailable(label, why),
        Source::NotAsked => unavailable(label, "not asked"),
    }
}

async fn record(walker: &Walker, name: &EnsName, limit: Duration) -> Root {
    let label = name.as_str();
    match SignerRecords::read(walker, name, limit).await.and_then(|records| root(name, &records)) {
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
