//! The `cl.*` text records of a name: their keys, and the result of reading each.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The key of a text record that clresolve reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextRecordKey {
    /// `cl.entry`: the x402 entry.
    Entry,
    /// `cl.agentcard`: the card's https URL.
    Agentcard,
    /// `cl.cid.agentcard`: the CID of the card, or of a directory that contains it.
    CidAgentcard,
    /// `cl.agentcard.mirror.ipfs`: CID and path of the card on IPFS.
    MirrorIpfs,
    /// `cl.checksum.agentcard`: SHA-256 of the card.
    Checksum,
    /// `cl.owner`: the ENS name responsible for the identity.
    Owner,
    /// `cl.verb`: primary verb; depth `schemas`.
    Verb,
    /// `cl.version`: schema version; depth `schemas`.
    Version,
    /// `cl.schema.request`: request schema location; depth `schemas`.
    SchemaRequest,
    /// `cl.schema.receipt`: receipt schema location; depth `schemas`.
    SchemaReceipt,
    /// `cl.cid.schemas`: directory CID of the schema release; depth `schemas`.
    CidSchemas,
    /// `cl.schemas.mirror.ipfs`: IPFS location of the schema release; depth `schemas`.
    SchemasMirrorIpfs,
    /// `cl.checksum.request`; depth `schemas`.
    ChecksumRequest,
    /// `cl.checksum.receipt`; depth `schemas`.
    ChecksumReceipt,
    /// `cl.checksum.schema.request`, the alternative spelling; depth `schemas`.
    ChecksumSchemaRequest,
    /// `cl.checksum.schema.receipt`, the alternative spelling; depth `schemas`.
    ChecksumSchemaReceipt,
    /// `cl.sig.pub`: the public key with which the name signs documents. Not read by a resolution.
    SigPub,
    /// `cl.sig.kid`: the key id by which signatures refer to that key. Not read by a resolution.
    SigKid,
    /// `cl.sig.canonical`: the canonical form in which documents are signed. Not read by a resolution.
    SigCanonical,
    /// `cl.receipt.signer`: the name whose key signs an agent's receipts and offers. Not read by a resolution.
    ReceiptSigner,
}

impl TextRecordKey {
    /// Every key that a resolution reads, the six of the Agent-Card specification first.
    pub const ALL: [Self; 16] = [
        Self::Entry,
        Self::Agentcard,
        Self::CidAgentcard,
        Self::MirrorIpfs,
        Self::Checksum,
        Self::Owner,
        Self::Verb,
        Self::Version,
        Self::SchemaRequest,
        Self::SchemaReceipt,
        Self::CidSchemas,
        Self::SchemasMirrorIpfs,
        Self::ChecksumRequest,
        Self::ChecksumReceipt,
        Self::ChecksumSchemaRequest,
        Self::ChecksumSchemaReceipt,
    ];

    /// The keys of the Agent-Card specification.
    pub const CARD: [Self; 6] =
        [Self::Entry, Self::Agentcard, Self::CidAgentcard, Self::MirrorIpfs, Self::Checksum, Self::Owner];

    /// The keys that state the key with which a name signs documents, and who signs for it.
    pub const SIGNER: [Self; 4] = [Self::SigPub, Self::SigKid, Self::SigCanonical, Self::ReceiptSigner];

    /// The key as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entry => "cl.entry",
            Self::Agentcard => "cl.agentcard",
            Self::CidAgentcard => "cl.cid.agentcard",
            Self::MirrorIpfs => "cl.agentcard.mirror.ipfs",
            Self::Checksum => "cl.checksum.agentcard",
            Self::Owner => "cl.owner",
            Self::Verb => "cl.verb",
            Self::Version => "cl.version",
            Self::SchemaRequest => "cl.schema.request",
            Self::SchemaReceipt => "cl.schema.receipt",
            Self::CidSchemas => "cl.cid.schemas",
            Self::SchemasMirrorIpfs => "cl.schemas.mirror.ipfs",
            Self::ChecksumRequest => "cl.checksum.request",
            Self::ChecksumReceipt => "cl.checksum.receipt",
            Self::ChecksumSchemaRequest => "cl.checksum.schema.request",
            Self::ChecksumSchemaReceipt => "cl.checksum.schema.receipt",
            Self::SigPub => "cl.sig.pub",
            Self::SigKid => "cl.sig.kid",
            Self::SigCanonical => "cl.sig.canonical",
            Self::ReceiptSigner => "cl.receipt.signer",
        }
    }

    /// Misspellings of a key of the Agent-Card specification under which a record may have been set in error: other
    /// separators, another case, another order. They are never read in place of the record.
    pub const fn misspellings(self) -> &'static [&'static str] {
        match self {
            Self::Entry => {
                &["CL.ENTRY", "CL.Entry", "CL.entry", "cl-entry", "cl.Entry", "cl:entry", "clEntry", "cl_entry"]
            }
            Self::Agentcard => &[
                "CL.AgentCard",
                "CL.agentcard",
                "cl.AgentCard",
                "cl.agent-card",
                "cl.agent.card",
                "cl.agentCard",
                "cl.agent_card",
                "cl_agentcard",
            ],
            Self::CidAgentcard => &[
                "CL.cid.agentcard",
                "cl.CID.agentcard",
                "cl.agentcard.cid",
                "cl.cid.agent-card",
                "cl.cid.agent.card",
                "cl.cid.agentCard",
                "cl.cidagentcard",
                "cl_cid_agentcard",
            ],
            Self::MirrorIpfs => &[
                "cl.agent-card.mirror.ipfs",
                "cl.agent.card.mirror.ipfs",
                "cl.agentCard.mirror.ipfs",
                "cl.agentcard.ipfs.mirror",
                "cl.agentcard.mirror.IPFS",
                "cl.ipfs.mirror.agentcard",
                "cl.mirror.ipfs.agentcard",
                "cl_agentcard_mirror_ipfs",
            ],
            Self::Checksum => &[
                "CL.checksum.agentcard",
                "cl.agentcard.checksum",
                "cl.checkSum.agentcard",
                "cl.checksum.agent-card",
                "cl.checksum.agent.card",
                "cl.checksum.agentCard",
                "cl.checksumagentcard",
                "cl_checksum_agentcard",
            ],
            Self::Owner => {
                &["CL.OWNER", "CL.Owner", "CL.owner", "cl-owner", "cl.Owner", "cl:owner", "clOwner", "cl_owner"]
            }
            _ => &[],
        }
    }

    /// The key with this spelling, among those that a resolution reads.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.as_str() == name)
    }
}

impl fmt::Display for TextRecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The resolver's answer for one key. A failed read is not a `TextRecord`: it fails the whole reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TextRecord {
    /// The resolver answered that the record is not set (ENSIP-5: the empty string).
    Absent,
    /// The record is set to valid UTF-8.
    Text(String),
    /// The record is set, but its bytes are not valid UTF-8.
    NotUtf8(Vec<u8>),
}

/// One answer per [`TextRecordKey`], all from one block and one resolver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextRecordSet(BTreeMap<TextRecordKey, TextRecord>);

impl TextRecordSet {
    /// The answer for `key`. A key that was not requested is absent.
    pub fn get(&self, key: TextRecordKey) -> &TextRecord {
        self.0.get(&key).unwrap_or(&TextRecord::Absent)
    }

    /// The text for `key`, if it is set and valid UTF-8.
    pub fn text(&self, key: TextRecordKey) -> Option<&str> {
        match self.get(key) {
            TextRecord::Text(text) => Some(text),
            TextRecord::Absent | TextRecord::NotUtf8(_) => None,
        }
    }

    /// All answers, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (TextRecordKey, &TextRecord)> {
        self.0.iter().map(|(k, r)| (*k, r))
    }
}

impl FromIterator<(TextRecordKey, TextRecord)> for TextRecordSet {
    fn from_iter<I: IntoIterator<Item = (TextRecordKey, TextRecord)>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl Serialize for TextRecordSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(key, record)| (key.as_str(), record)))
    }
}

impl<'de> Deserialize<'de> for TextRecordSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = BTreeMap::<String, TextRecord>::deserialize(deserializer)?;
        let known = named.into_iter().map(|(name, record)| match TextRecordKey::from_name(&name) {
            Some(key) => Ok((key, record)),
            None => Err(serde::de::Error::custom(format_args!("{name} is not a known record"))),
        });
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn near_misses_have_the_letters_of_their_key() {
        let letters = |key: &str| {
            let mut letters: Vec<u8> = key.bytes().filter(u8::is_ascii_alphanumeric).collect();
            letters.make_ascii_lowercase();
            letters.sort_unstable();
            letters
        };
        let mut spellings = BTreeSet::from(TextRecordKey::ALL.map(TextRecordKey::as_str));
        for key in TextRecordKey::CARD {
            assert_eq!(key.misspellings().len(), 8, "{key}");
            for near in key.misspellings() {
                assert_eq!(letters(near), letters(key.as_str()), "{near}");
                assert!(spellings.insert(near), "{near} is a key or stands twice");
            }
        }
    }
}
