//! The trust roots of card signatures: from what a verifier names to keys.

use std::fmt::Display;
use std::time::Duration;

use super::content::Content;
use super::walk::Walker;
use crate::chain::{Answer, Reading};
use crate::check::records::{chain_error, unsettled};
use crate::evidence::Source;
use crate::name::EnsName;
use crate::reason::{Code, Reason};
use crate::records::{Key, Record};
use crate::signature::{DidWeb, Root, RootError};

/// Where a verifier lets keys come from, where they must be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootSource {
    /// A JSON Web Key Set at an `https` URL.
    Url(String),
    /// The document of a DID.
    Did(DidWeb),
    /// The record `cl.sig.pub` of a name.
    Ens(EnsName),
}

/// The keys of a trust root, within the time limit of one question.
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
    let block = walker.config.chain.block;
    let reading = match tokio::time::timeout(limit, walker.chain.read_keys(name, block, &Key::SIGNER)).await {
        Ok(Ok(reading)) => reading,
        Ok(Err(error)) => return unavailable(label, chain_error(&error).observed.unwrap_or_default()),
        Err(_) => return unavailable(label, "no answer in time"),
    };
    match unsettled(&reading, block, walker.now()).first() {
        Some(reason) => unavailable(label, format_args!("{}: {}", reason.code, reason.message)),
        None => of_reading(name, &reading),
    }
}

fn of_reading(name: &EnsName, reading: &Reading) -> Root {
    let label = name.as_str();
    let found = match &reading.answer {
        Answer::Records(found) => found,
        Answer::Unregistered => return unusable(label, "the name is not registered"),
        Answer::NoResolver(_) => return unusable(label, "the name has no resolver"),
    };
    let key = match found.records.get(Key::SigPub) {
        Record::Text(text) => text,
        Record::Absent => return unusable(label, "cl.sig.pub is not set"),
        Record::NotUtf8(_) => return unusable(label, "cl.sig.pub is not UTF-8"),
    };
    let key_id = match found.records.get(Key::SigKid) {
        Record::Text(text) => Some(text.as_str()),
        Record::Absent => None,
        Record::NotUtf8(_) => return unusable(label, "cl.sig.kid is not UTF-8"),
    };
    Root::or_unusable(Root::from_record(name, key, key_id), label)
}

fn unusable(label: &str, why: impl Display) -> Root {
    Root::without_keys(label, Reason::new(Code::SignatureRootUnusable).observed(why.to_string()))
}

fn unavailable(label: &str, why: impl Display) -> Root {
    Root::without_keys(label, Reason::new(Code::SignatureRootUnavailable).observed(why.to_string()))
}
