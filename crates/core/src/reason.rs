//! The registry of reason codes: the only place in which a code is made.
//!
//! One table holds slug, effect, step, requirement, who can fix it, a title and an explanation. `clresolve explain`, the
//! schema's enum and the documents are made from it. A code is never renamed and never reused.

mod refusal;

use std::fmt;

pub use refusal::Refusal;
use serde::{Deserialize, Serialize};

use crate::text::clipped;

/// What the URI of every code begins with.
const URI_PREFIX: &str = "urn:clresolve:reason:";

/// What a reason does to the state of a verdict. Ordered: fail over unknown over warn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// A value that was read contradicts the rules, or absence was proven: the state is `untrusted`.
    Fail,
    /// A required step could not be decided: the state is `indeterminate`, unless something fails.
    Unknown,
    /// Reported; never changes the state.
    Warn,
}

/// The steps of the walk, in the order in which they are reported, and those beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// ENSIP-15 normal form of the input.
    Name,
    /// The `cl.*` records, read from the chain at one block.
    Records,
    /// The card, over HTTPS.
    FetchHttps,
    /// The card, over IPFS, block by block.
    FetchIpfs,
    /// CID and checksum against the bytes.
    Integrity,
    /// The card as a document.
    Card,
    /// The records against the card.
    Binding,
    /// The `x402://` entry.
    Entry,
    /// Verbs, class and schema locations against the manifests.
    Verbs,
    /// The bytes of the bound schemas; depth `schemas` only.
    Schemas,
    /// What this resolver remembers of the name.
    Continuity,
    /// A card of any system, judged by itself; not a step of the walk.
    Document,
    /// Where a host's cards are; not a step of the walk.
    Discovery,
    /// The signatures of a card; not a step of the walk.
    Signature,
}

impl Step {
    /// The steps of the walk, in report order: those of a verdict.
    pub const WALK: [Self; 11] = [
        Self::Name,
        Self::Records,
        Self::FetchHttps,
        Self::FetchIpfs,
        Self::Integrity,
        Self::Card,
        Self::Binding,
        Self::Entry,
        Self::Verbs,
        Self::Schemas,
        Self::Continuity,
    ];

    /// The step's stable slug, as in the verdict.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Records => "records",
            Self::FetchHttps => "fetch-https",
            Self::FetchIpfs => "fetch-ipfs",
            Self::Integrity => "integrity",
            Self::Card => "card",
            Self::Binding => "binding",
            Self::Entry => "entry",
            Self::Verbs => "verbs",
            Self::Schemas => "schemas",
            Self::Continuity => "continuity",
            Self::Document => "document",
            Self::Discovery => "discovery",
            Self::Signature => "signature",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

/// Who can make the reason go away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fixer {
    /// The asker: another name, another option.
    Asker,
    /// The publisher of the card and its records.
    Publisher,
    /// The operator of this resolver: endpoints, gateways, configuration.
    Operator,
}

/// One line of the registry.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// The code itself.
    pub code: Code,
    /// What it does to the state, unless a profile says otherwise.
    pub effect: Effect,
    /// The step that finds it.
    pub step: Step,
    /// The rule of the conformance checklist behind it; empty for an operational reason.
    pub requirement: &'static str,
    /// Who can fix it.
    pub fixer: Fixer,
    /// Whether asking again later may give another answer without anybody changing what is published.
    pub retryable: bool,
    /// One short sentence.
    pub title: &'static str,
    /// A paragraph: what was found, why it matters, what to do.
    pub explanation: &'static str,
}

macro_rules! registry {
    ($($variant:ident $slug:literal $effect:ident $step:ident $requirement:literal $fixer:ident $retryable:literal
       $title:literal $explanation:literal;)*) => {
        /// A stable reason code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $title] #[serde(rename = $slug)] $variant,)*
        }

        impl Code {
            /// Every code, in registry order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable kebab-case slug.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The registry's line for this code.
            pub const fn entry(self) -> &'static Entry {
                match self {
                    $(Self::$variant => const { &Entry {
                        code: Code::$variant, effect: Effect::$effect, step: Step::$step, requirement: $requirement,
                        fixer: Fixer::$fixer, retryable: $retryable, title: $title, explanation: $explanation,
                    } },)*
                }
            }
        }
    };
}

registry! {
    // name
    NameInvalid "name-invalid" Fail Name "X-1" Asker false
        "The name is not an ENS name."
        "The input does not normalise under ENSIP-15, is empty, has an empty label or is longer than 255 bytes. No question was sent anywhere. Look-alike names are often refused here: type the name yourself rather than copying it.";

    // records: the chain
    RpcUnreachable "rpc-unreachable" Unknown Records "" Operator true
        "Too few RPC endpoints gave a usable answer."
        "The RPC endpoints timed out, refused, or answered with something that is not the JSON-RPC answer that was asked for: all of them or, where several must agree (--quorum), too many of them. Nothing is known about the name. Add endpoints with --rpc, or try again.";
    RpcDisagree "rpc-disagree" Unknown Records "X-7" Operator true
        "The RPC endpoints contradict each other."
        "Endpoints were asked about the same block at the same time, and too few of them, counted by operator, say the same: another block at that height, or other records in it. One of them lies or is broken; which one is not known. The evidence names what each said. Add endpoints of further operators, or leave the liar out.";
    ProofRefused "proof-refused" Unknown Records "X-7" Operator true
        "No RPC endpoint proved the state of the chain."
        "With --proof state-proof the records are computed here, from accounts, storage and code that an endpoint proves against the block's header. At least one endpoint gave a proof that does not hold: it lies or is broken. The others gave none or did the same, so nothing is known about the name. The evidence names what each did. Leave the liar out, and add endpoints that serve eth_getProof for finalized blocks.";
    RpcWrongChain "rpc-wrong-chain" Unknown Records "" Operator false
        "An RPC endpoint serves another chain."
        "The endpoint's chain id is not the configured one, or its chain begins with another block, so its records would be those of another world. Point --rpc at a node of the right chain, or set the chain id (and the key genesis) that you mean.";
    BlockUnavailable "block-unavailable" Unknown Records "" Operator true
        "The chosen block cannot be had."
        "The endpoint does not have the block that was asked for: it does not exist yet, was pruned, or the tag is not supported. Choose another --block, or an archive endpoint.";
    ChainBehind "chain-behind" Unknown Records "X-6" Operator true
        "The endpoint's finalized block is too old."
        "The finalized header is more than 45 minutes old. The chain or the endpoint has stopped, so the records may have changed since. Use another endpoint, or wait.";
    RecordPending "record-pending" Unknown Records "X-6" Asker true
        "The records have changed since the finalized block."
        "The records at the newest block differ from those at the finalized one. Until the newer block is final neither can be relied on. Ask again in about 15 minutes.";
    SingleRpc "single-rpc" Warn Records "X-7" Operator false
        "One RPC operator alone vouches for the records."
        "Only one endpoint was asked, and nothing proves its answer. A lying endpoint could show any record. Configure endpoints of several operators, or your own node (own = true).";
    CcipFailed "ccip-failed" Unknown Records "" Publisher true
        "The off-chain gateway of the name failed."
        "The name's records live off chain (EIP-3668, CCIP-Read) and the gateway that the resolver names could not be asked: it is down, forbidden, sends too much, loops, or the reply does not come from the contract that was called. Nothing is known about the records.";
    ResolverFailed "resolver-failed" Unknown Records "" Publisher true
        "The name's resolver contract failed."
        "The resolver reverts, uses up its gas, or answers with bytes that are not the ABI of a text record. That is not the same as a missing record, so nothing is concluded from it. The publisher should set a working resolver.";
    LocalLimit "local-limit" Unknown Records "" Operator true
        "The reading met a bound of this resolver."
        "This resolver bounds what one name may cost it: the bytes of an endpoint's reply and, with --proof state-proof, the runs, gas, accounts and storage slots of a call that is computed here. The name needs more, or a block that cannot be computed here. Nothing is known about the records, and nothing is said against the publisher. The evidence names the bound. An endpoint that floods causes the same: ask another one, or demand a grade of proof that computes nothing here (--proof quorum).";
    ResolverMissing "resolver-missing" Fail Records "" Publisher false
        "The name has no resolver."
        "The name is registered, but no resolver contract is set for it, or none has code at that address; so it has no records. This absence is proven at the block. The publisher must set a resolver and the six cl.* records.";
    NameUnregistered "name-unregistered" Fail Records "" Asker false
        "The name is not registered."
        "The name has no owner at the block, and no ancestor answers for it with a wildcard resolver. Check the spelling: an unregistered look-alike can be bought by anyone.";
    NameWildcard "name-wildcard" Warn Records "X-5" Publisher false
        "An ancestor's resolver answers for the name."
        "The name has no resolver of its own: the resolver of an ancestor answers for every name below it (ENSIP-10). The holder of the ancestor controls this name.";
    RecordOffchain "record-offchain" Warn Records "X-5" Publisher false
        "The records come from an off-chain gateway."
        "The resolver fetched the records from a gateway through CCIP-Read and accepted them by its own rule, often a signature. They are as good as that signer, not as good as the chain.";
    NameExpired "name-expired" Warn Records "X-4" Publisher false
        "The registration of the name has expired."
        "The name still resolves, but its registration is past its expiry; after the grace period anybody can register it and point it elsewhere. The publisher must renew it.";
    NameExpiring "name-expiring" Warn Records "X-4" Publisher false
        "The registration of the name expires within 30 days."
        "If it is not renewed anybody can register the name later and point it elsewhere. The publisher should renew it.";
    OwnerUnproven "owner-unproven" Warn Records "X-3" Publisher false
        "The chain does not show that cl.owner controls the name."
        "cl.owner is the publisher's own word. It is proven only if the holder of the name, at the same block, is the address of the owner's name or the holder of the owner's name. Here it is neither, or it could not be read.";
    TxtMissing "txt-missing" Fail Records "CL-35" Publisher false
        "A required text record is not set."
        "The specification demands six text records: cl.entry, cl.agentcard, cl.cid.agentcard, cl.agentcard.mirror.ipfs, cl.checksum.agentcard and cl.owner. The resolver answered that this one is not set.";
    TxtUnsafeCharacters "txt-unsafe-characters" Fail Records "X-2" Publisher false
        "A text record holds characters that must not be there."
        "The value holds control, bidirectional, invisible or other unsafe characters, or is not valid UTF-8. Such a value can look like another one. Set the record again as plain text.";
    TxtValueInexact "txt-value-inexact" Fail Records "CL-52" Publisher false
        "A text record equals its value only after clean-up."
        "The value has surrounding white space, or differs from the card only in upper and lower case. Records must match exactly, byte for byte. Set the record again without the difference.";

    // fetch
    AgentcardUrlNotHttps "agentcard-url-not-https" Fail FetchHttps "CL-42" Publisher false
        "cl.agentcard is not an absolute https URL."
        "The card must be served over https from a host name, so that the bytes on the way are protected. Set cl.agentcard to an https URL.";
    SourceForbidden "source-forbidden" Fail FetchHttps "CL-43" Publisher false
        "A URL leads to an address that must not be contacted."
        "The card's URL, or a hop of its redirects, names an IP address, a private or otherwise non-public host, an odd port, user info, or plain http. No honest card needs that; a hostile one uses it to reach inside the resolver's network. The request was not sent.";
    SourceOversize "source-oversize" Fail FetchHttps "CL-43" Publisher false
        "A source sends more bytes than a card may have."
        "The body, before or after decompression, is longer than 256 KiB. Reading stopped there.";
    SourceUnavailable "source-unavailable" Warn FetchHttps "CL-43" Publisher true
        "One of the card's sources gave no card."
        "The host is down, slow, answers with an error, or loops in redirects. The card may still be proven from the other source.";
    GatewayLied "gateway-lied" Warn FetchIpfs "" Operator true
        "An IPFS gateway sent a wrong block."
        "The bytes that the gateway sent do not have the hash that was asked for. They were thrown away, and the gateway is not asked again for a while. The publisher is not to blame.";
    CardUnreachable "card-unreachable" Unknown FetchHttps "CL-43" Publisher true
        "No source gave the card's bytes."
        "Neither the card's URL nor any gateway for its CID gave any bytes. Nothing is known about the card. Ask again, or tell the publisher.";

    // integrity
    CidMalformed "cid-malformed" Fail Integrity "CL-44" Publisher false
        "cl.cid.agentcard is not a CID."
        "The record does not parse as a CID of version 0 or 1. Set it to the CID that your IPFS tool printed for the card or its folder.";
    CidHashForbidden "cid-hash-forbidden" Fail Integrity "CL-44" Publisher false
        "The CID uses a hash that proves nothing."
        "The CID, or one on the way to the card, uses sha1, a shortened digest, an identity hash over 128 bytes or an unknown function. Use sha2-256 (the default of every tool), sha2-512, blake2b-256 or blake3.";
    CidUnproven "cid-unproven" Unknown Integrity "CL-45" Operator true
        "No gateway gave the blocks that prove the card."
        "The card's bytes were fetched, but the blocks that link them to cl.cid.agentcard could not be had from any gateway, so the CID is neither confirmed nor refuted. Add gateways, or ask again.";
    CidMismatch "cid-mismatch" Fail Integrity "CL-45" Publisher false
        "The card's bytes are not the content of cl.cid.agentcard."
        "The bytes of this source differ from the bytes that the CID names. Either the card was changed without changing the record, or it was replaced. Restore the released bytes, or release a new card with its new CID.";
    CidPathMissing "cid-path-missing" Fail Integrity "CL-45" Publisher false
        "The path of the mirror record does not exist under the CID."
        "The directory that the CID names was walked block by block and has no such entry. Correct the path in cl.agentcard.mirror.ipfs, or the CID.";
    CidPathNotFile "cid-path-not-file" Fail Integrity "CL-45" Publisher false
        "The path under the CID is not a file."
        "The CID and path lead to a directory. cl.agentcard.mirror.ipfs must hold the path of the card below the directory CID.";
    CidDagInvalid "cid-dag-invalid" Fail Integrity "CL-45" Publisher false
        "The content under the CID is not a well-formed UnixFS file."
        "The blocks have the right hashes, but what they say is malformed, ambiguous, of an unsupported kind, or beyond the limits of depth and size. Add the card again with a common IPFS tool.";
    MirrorMalformed "mirror-malformed" Fail Integrity "CL-46" Publisher false
        "cl.agentcard.mirror.ipfs holds no CID and path."
        "The record must be an ipfs:// URI or a gateway URL with /ipfs/CID/path. Empty, . and .. segments, %2f and %00 are refused.";
    MirrorCidMismatch "mirror-cid-mismatch" Fail Integrity "CL-47" Publisher false
        "The mirror record names another CID."
        "The CID in cl.agentcard.mirror.ipfs is not the one in cl.cid.agentcard (compared as binary, after version 0 is lifted to version 1). Make the two records agree.";
    MirrorContentMismatch "mirror-content-mismatch" Fail Integrity "CL-48" Publisher false
        "The mirror's bytes differ from those of cl.agentcard."
        "The bytes proven under the CID of the mirror record are not the bytes that the card's URL serves. Two different cards are published under one name.";
    ChecksumMalformed "checksum-malformed" Fail Integrity "CL-49" Publisher false
        "cl.checksum.agentcard is not a SHA-256."
        "The record must be 64 hex digits, with or without the prefix sha256:.";
    ChecksumMismatch "checksum-mismatch" Fail Integrity "CL-50" Publisher false
        "The SHA-256 of the card is not the one in cl.checksum.agentcard."
        "The checksum is taken over the exact bytes received, without any clean-up of line ends or JSON. Either the card was changed without changing the record, or it was replaced.";

    // card
    CardNotUtf8 "card-not-utf8" Fail Card "CL-43" Publisher false
        "The card is not UTF-8."
        "JSON that is exchanged between systems is UTF-8 (RFC 8259, 8.1). Save the card as UTF-8 without a byte order mark.";
    CardNotJson "card-not-json" Fail Card "CL-43" Publisher false
        "The card is not one JSON object."
        "The bytes do not parse as exactly one JSON object: a syntax error, a byte order mark, another kind of value, or data after the end.";
    CardTooDeep "card-too-deep" Fail Card "X-8" Publisher false
        "The card is nested too deeply."
        "A card has at most 16 levels. Deeper nesting serves only to exhaust readers.";
    CardDuplicateKey "card-duplicate-key" Fail Card "X-8" Publisher false
        "The card has the same member twice."
        "Two readers of such a card see two different values under one checksum: the last one wins for some, the first for others. Remove one.";
    CardSchemaInvalid "card-schema-invalid" Fail Card "CL-1" Publisher false
        "The card does not validate under the base schema."
        "A member has the wrong type or format, or is not known to the base schema. The place in the card is named.";
    SchemaNotStrict "schema-not-strict" Fail Schemas "CL-2" Publisher false
        "A schema does not compile in strict mode."
        "The schema uses an unknown keyword or format, or a reference that the manifest does not hold, so what it demands is unclear. No remote reference is ever fetched.";
    CardFieldMissing "card-field-missing" Fail Card "CL-3" Publisher false
        "A required member of the card is missing."
        "The specification demands this member in every card.";
    CardFieldEmpty "card-field-empty" Fail Card "CL-4" Publisher false
        "A required member of the card is empty."
        "The member is an empty string or only white space.";
    IdDiffersFromEns "id-differs-from-ens" Warn Card "CL-5" Publisher false
        "The card's id is not its ENS name."
        "By custom id equals ens. Nothing is bound to id, but readers expect the two to agree.";
    SlugNotUrlSafe "slug-not-url-safe" Fail Card "CL-6" Publisher false
        "The card's slug is not URL-safe."
        "slug holds lower-case letters, digits and - . _ ~ only.";
    CardVersionNotSemver "card-version-not-semver" Fail Card "CL-7" Publisher false
        "The card's version is not a semantic version."
        "version must be a Semantic Version 2.0, such as 1.0.0.";
    ClassUnknown "class-unknown" Fail Card "CL-8" Publisher false
        "The card's class is neither commons nor commercial."
        "The class says which layer the verbs come from; without it no verb can be judged.";
    StatusUnknown "status-unknown" Warn Card "CL-9" Publisher false
        "The card's status is not a known word."
        "Known are protocol_reference, active, experimental, deprecated and the like. The value is kept as it is.";
    StatusDeprecated "status-deprecated" Warn Card "CL-9" Publisher false
        "The card is deprecated."
        "The publisher marks the agent as deprecated. Look for its successor.";
    StatusWithdrawn "status-withdrawn" Warn Card "CL-9" Publisher false
        "The publisher has withdrawn the agent."
        "status says revoked, disabled, retired, suspended, compromised or withdrawn. The binding may be real all the same, so this is a warning; the gate denies it unless gate.deny is set without it. Look for another agent.";
    StatusRevoked "status-revoked" Fail Card "CL-9" Publisher false
        "The card is revoked."
        "The publisher has taken the card back. Only profiles whose release line knows such a word give this code.";
    ImplementsEmpty "implements-empty" Fail Card "CL-10" Publisher false
        "The card implements no verb."
        "implements must be a list of at least one string; its first entry is the primary verb.";
    CardDuplicateEntry "card-duplicate-entry" Warn Card "CL-73" Publisher false
        "A list of the card holds an entry twice."
        "implements and networks are read as sets, whose first entry has a meaning of its own. Remove the repetition.";
    CardUnsafeCharacters "card-unsafe-characters" Fail Card "CL-73" Publisher false
        "A text by which the agent is known can be mistaken for another one."
        "display_name, slug or id holds control, bidirectional, invisible or other unsafe characters, or the slug is a dot segment (. or ..), which a path takes for a folder. Publish the card again with plain text.";
    CardIdMismatch "card-id-mismatch" Warn Card "CL-72" Publisher false
        "The card's $id or $schema is not the published one."
        "$id is the URL in cl.agentcard, and the folder in it is the card's class; $schema is the base schema of the release line. Nothing is bound to them, but readers expect them to agree. Correct the member, or leave it out.";
    NetworksEmpty "networks-empty" Fail Card "CL-24" Publisher false
        "The card names no network."
        "networks must name at least one CAIP-2 chain on which the agent is valid.";
    NetworkNotCaip2 "network-not-caip2" Fail Card "CL-25" Publisher false
        "A network is not a CAIP-2 identifier."
        "Each entry has the form namespace:reference, such as eip155:1.";
    LicenseUnrecognized "license-unrecognized" Warn Card "CL-26" Publisher false
        "The card's licence is no SPDX expression, and nothing documents it."
        "Use an SPDX identifier such as Apache-2.0, or document the licence: LicenseRef- and a name, the URL of its text, or words that name a known licence or the file that holds the terms.";
    LicenseNotOpen "license-not-open" Warn Card "CL-26" Publisher false
        "Neither OSI nor FSF recognises the card's licence."
        "license is an SPDX expression that cannot be met with licences that the Open Source Initiative or the Free Software Foundation recognises; the SPDX list says which they are. Choose such a licence, or document your own under LicenseRef-, with a URL or in words.";
    TimestampMalformed "timestamp-malformed" Fail Card "CL-27" Publisher false
        "A timestamp of the card is malformed."
        "created_at and updated_at are RFC 3339 date-times such as 2025-11-22T00:00:00Z.";
    TimestampsReversed "timestamps-reversed" Fail Card "CL-28" Publisher false
        "The card was updated before it was created."
        "updated_at must not lie before created_at; both are compared as instants.";
    SecretInCard "secret-in-card" Fail Card "CL-31" Publisher false
        "The card holds a credential."
        "A member looks like a token, a key or a password. A card is public: revoke the credential, then remove it.";
    PrivateAddressInCard "private-address-in-card" Fail Card "CL-32" Publisher false
        "The card names a private address."
        "A URL or host in the card is a loopback, private, link-local or otherwise non-public one. It leads nowhere for others, or into their own network.";
    PiiInCard "pii-in-card" Warn Card "CL-33" Publisher false
        "The card seems to hold personal data."
        "An e-mail address or telephone number stands outside the publisher's contact members.";
    ScriptInCard "script-in-card" Fail Card "CL-34" Publisher false
        "The card holds a script."
        "A string holds executable code: a script element, a javascript: or data: script URL, or a shebang line. A card is data.";

    // binding
    TxtEntryMismatch "txt-entry-mismatch" Fail Binding "CL-41" Publisher false
        "cl.entry is not the card's entry."
        "The record and the card must name the same x402 entry, byte for byte.";
    TxtOwnerMismatch "txt-owner-mismatch" Fail Binding "CL-51" Publisher false
        "cl.owner is not the card's owner."
        "The record and the card must name the same owner, byte for byte.";
    CardEnsMismatch "card-ens-mismatch" Fail Binding "CL-53" Publisher false
        "The card is bound to another name."
        "The card's ens member is not the name that was asked for. The card of one agent proves nothing about another name.";
    PublisherNotAllowed "publisher-not-allowed" Fail Binding "CL-58" Operator false
        "The owner is not on the allow-list of this resolver."
        "The policy of this resolver accepts commons cards only of certain proven owners.";

    // entry
    EntryMalformed "entry-malformed" Fail Entry "CL-19" Publisher false
        "The card's entry does not have the form of an x402 entry."
        "The form is x402://<ens>/<verb>/v1 and nothing else: no port, query, fragment or trailing slash. The entry is cut at its bytes, not by a URL parser. Where the profile names one URL for a class, as agent-cards/1.1.0 does for commons, the entry is exactly that.";
    EntryEnsMismatch "entry-ens-mismatch" Fail Entry "CL-20" Publisher false
        "The name in the entry is not the card's name."
        "Payments to this entry would go to another name.";
    EntryVerbMismatch "entry-verb-mismatch" Fail Entry "CL-21" Publisher false
        "The verb in the entry is not the card's primary verb."
        "The verb of the entry must be the first one of implements.";
    EntryVersionNoncompliant "entry-version-noncompliant" Fail Entry "CL-22" Publisher false
        "The route version of the entry is not an accepted one."
        "The specification fixes the route segment as v1, whatever the card's version. The cards as released end in v1.0.0: the profile agent-cards/1.0.0+released accepts them. Commercial cards of the line 1.1.0 end in v1.1.0: see agent-cards/1.1.0.";

    // verbs, class, schema locations
    VerbUnknown "verb-unknown" Fail Verbs "CL-12" Publisher false
        "The card implements a verb that no layer defines."
        "Every verb must exist in the manifest of the layer that the card's class names.";
    VerbAlias "verb-alias" Fail Verbs "CL-13" Publisher false
        "A verb is misspelt."
        "Verbs equal the names of their schema folders byte for byte; aliases and other cases are not accepted.";
    CommonsVerbForeign "commons-verb-foreign" Fail Verbs "CL-56" Publisher false
        "A commons card implements a verb of another layer."
        "A card of class commons may implement only verbs of Protocol-Commons.";
    CommercialAsCommons "commercial-as-commons" Fail Verbs "CL-57" Publisher false
        "A commercial card is shown as commons."
        "The card's class is commercial, but its schemas or its $id sit under commons.";
    SchemaUriNotCanonical "schema-uri-not-canonical" Fail Verbs "CL-14" Publisher false
        "A schema location is not the canonical one of the verb."
        "schemas.request and schemas.receipt must be the locations that the manifest of the layer gives for the primary verb.";
    SchemaManifestMismatch "schema-manifest-mismatch" Fail Verbs "CL-16" Publisher false
        "A schema location differs from the manifest."
        "The location has the right shape, but names another CID or version than the manifest, or the mirror names another verb.";
    SchemaMirrorPlaceholder "schema-mirror-placeholder" Fail Verbs "CL-18" Publisher false
        "A schema mirror holds a placeholder in place of a CID."
        "The mirror was published before its CID was known and was never completed. The profile agent-cards/1.0.0+released accepts this as a warning.";

    SchemaMirrorUnproven "schema-mirror-unproven" Warn Verbs "CL-74" Publisher false
        "Nothing here shows what a schema mirror holds."
        "The manifest of the layer knows no CID of its schemas, so at depth identity the mirror's bytes are not shown to be those of the schema: --depth schemas fetches and compares them. Or the mirror is not an https URL, so a reader without IPFS cannot fetch it: name a gateway.";

    // depth schemas
    PrimaryVerbMismatch "primary-verb-mismatch" Fail Schemas "CL-11" Publisher false
        "cl.verb is not the card's primary verb."
        "The first entry of implements is the primary verb; cl.verb must name it.";
    SchemaUnavailable "schema-unavailable" Unknown Schemas "CL-59" Publisher true
        "A bound schema could not be fetched."
        "Neither its canonical location nor its mirror gave the schema's bytes, so the binding to the schema is undecided.";
    SchemaUnpinned "schema-unpinned" Unknown Schemas "PC-5" Publisher false
        "No digest of a bound schema is known."
        "The release line binds its schemas to locations whose bytes its publisher changes, so the manifest holds no digest to prove them against. At depth identity this is not asked.";
    SchemaMirrorUnreachable "schema-mirror-unreachable" Warn Schemas "CL-15" Publisher true
        "A schema mirror does not answer."
        "The mirror gave no 2xx answer, or is not an https URL. The canonical location decides.";
    SchemaMirrorMismatch "schema-mirror-mismatch" Fail Schemas "CL-17" Publisher false
        "A schema mirror serves another schema."
        "The mirror's bytes are not those of the canonical location, nor the same JSON value under the same $id.";
    SchemaIdMismatch "schema-id-mismatch" Fail Schemas "PC-2" Publisher false
        "A schema's $id is not the URL of its path."
        "The $id must be the canonical URL of the schema.";
    SchemaTxtMissing "schema-txt-missing" Warn Schemas "PC-3" Publisher false
        "The text records of the schema binding are not complete."
        "cl.verb, cl.version, cl.schema.request, cl.schema.receipt, cl.cid.schemas and cl.schemas.mirror.ipfs are records of schema layers. An agent's name needs none of them, but here some are set and this one is not. Set it too, or remove the others.";
    SchemaTxtMismatch "schema-txt-mismatch" Fail Schemas "PC-3" Publisher false
        "A text record of the schema binding differs from the manifest."
        "The record does not hold the value that the manifest gives for the primary verb.";
    SchemaChecksumMismatch "schema-checksum-mismatch" Fail Schemas "PC-4" Publisher false
        "A schema's SHA-256 is not the published one."
        "The bytes that were fetched, or the checksum in a text record, contradict the manifest.";
    ChecksumLineEndings "checksum-line-endings" Warn Schemas "PC-5" Publisher false
        "The checksum fits only after changing line ends."
        "The published digest is that of the same text with CRLF line ends. It is a mismatch all the same; this note says where it comes from.";
    PublishedVersionMutated "published-version-mutated" Fail Schemas "PC-9" Publisher false
        "A published schema was changed."
        "The bytes at the canonical location of a released version are not the released ones.";

    // continuity: what this resolver remembers
    CardChangedSilently "card-changed-silently" Warn Continuity "CL-29" Publisher false
        "The card has changed without a new version."
        "This resolver remembers a trusted card of the same name and version with other bytes; build metadata makes no other version. An agent that pinned the version now gets something else. Compare the two cards; the publisher should give the new one a version of its own and restore the released bytes under the old. Once you accept the change, `clresolve memory forget NAME` starts anew; the key gate.deny makes the gate refuse on this warning.";
    VersionRollback "version-rollback" Warn Continuity "X-9" Publisher false
        "The card's version is lower than one that was seen before."
        "This resolver remembers a trusted card of the same name with a higher version. Going back may be meant, or may bring back a card with a known fault. Ask the publisher; once you accept it, `clresolve memory forget NAME` starts anew. The key gate.deny makes the gate refuse on this warning.";
    UpdatedAtNotAdvanced "updated-at-not-advanced" Warn Continuity "CL-69" Publisher false
        "The card has changed, and its updated_at has not advanced."
        "An earlier card of the same name has other bytes and the same or a later updated_at, so no reader can tell which of the two is the newer one. Set updated_at to the time of the change. The earlier card is the one that --previous names (there this is a defect), or the latest one that the memory took for a proper successor; `clresolve memory forget NAME` starts anew.";
    VersionNotRaised "version-not-raised" Warn Continuity "CL-69" Publisher false
        "What callers rely on has changed without a higher version."
        "Compared with an earlier card of the same name the owner, the entry or the schemas differ, or a verb is gone, and version has not risen. Callers that pinned the version now meet another agent. Raise the version. The earlier card is the one that --previous names (there this is a defect), or the latest one that the memory took for a proper successor; `clresolve memory forget NAME` starts anew.";
    RecordRecent "record-recent" Warn Continuity "X-9" Asker true
        "A record changed a short time ago."
        "One of the six cl.* records had another value not long ago: within the last blocks that memory.record-rest names. A stolen key shows as a fresh change, and its owner may not have noticed yet. Wait, or compare with what the publisher announced. A name that is seen for the first time gives no such warning. The key gate.deny makes the gate refuse on this warning.";
    MemoryUnavailable "memory-unavailable" Warn Continuity "" Operator true
        "The memory of names could not be used."
        "A memory is configured, but its file could not be read or written: another process holds it, the disk is full, or what is kept of this name cannot be read. The verdict is as good as one without a memory; nothing was compared, or nothing new was kept. Look at the file that memory.path names. The key gate.deny makes the gate refuse on this warning.";

    // cards of every system, judged by themselves
    FlavourUnknown "flavour-unknown" Fail Document "" Publisher false
        "The card system of the document is not known."
        "No member tells which card system the document belongs to: CommandLayer, Aevum, Orloj, MA²D or A2A. It is not guessed. Name the system with --as, and its rules say what is missing.";
    FlavourAmbiguous "flavour-ambiguous" Fail Document "" Publisher false
        "The document has members of several card systems."
        "Two readers could take the document for cards of two different systems and understand it differently. It is not guessed which is meant. Publish a card for each system, or name the one that you mean with --as.";
    DocumentSchemaInvalid "document-schema-invalid" Fail Document "" Publisher false
        "A member has the wrong type or form for its card system."
        "The system's schema objects to the member, and no rule with a code of its own speaks of it: most often it is of another type. The place in the document is named.";

    // Orloj
    OrNameMissing "or-name-missing" Fail Document "OR-1" Publisher false
        "The Orloj card has no name."
        "name is the name of the AgentSystem, a string with something in it.";
    OrUrlMalformed "or-url-malformed" Fail Document "OR-2" Publisher false
        "The Orloj card's url is missing or is not a URI."
        "url is the A2A endpoint of the AgentSystem, an absolute URI. The server makes it from its public base URL: set that.";
    OrUrlNameMismatch "or-url-name-mismatch" Warn Document "OR-3" Publisher false
        "The Orloj card's url is not that of the system that it names."
        "The endpoint's path ends in /v1/agent-systems/NAME/a2a, NAME being the card's name, percent-encoded; a query may follow. Another one calls another system than the card describes.";
    OrSkillIncomplete "or-skill-incomplete" Fail Document "OR-8" Publisher false
        "A skill of the Orloj card has no id or no name."
        "Each skill is a tool of the agents, with its name as id and as name.";
    OrSkillDescriptionEmpty "or-skill-description-empty" Warn Document "OR-9" Publisher false
        "A skill of the Orloj card has an empty description."
        "A tool without a description has none in the card; an empty string says that it has one.";
    OrInputSchemaEmpty "or-input-schema-empty" Warn Document "OR-10" Publisher false
        "A skill of the Orloj card has an empty input schema."
        "A tool without an input schema has none in the card; an empty object says that anything will do.";
    OrCapabilityType "or-capability-type" Fail Document "OR-11" Publisher false
        "A capability of the Orloj card is neither true nor false."
        "streaming, pushNotifications and stateTransitionHistory are booleans.";
    OrAuthType "or-auth-type" Fail Document "OR-12" Publisher false
        "The authentication of the Orloj card is malformed."
        "authentication.schemes is a list of strings; where nothing is asked of callers the member is left out.";
    OrProviderUrlMalformed "or-provider-url-malformed" Fail Document "OR-13" Publisher false
        "The provider's url in the Orloj card is not a URI."
        "provider.url is an absolute URI where it is there.";
    OrVersionType "or-version-type" Fail Document "OR-14" Publisher false
        "A version in the Orloj card is not a string."
        "version and protocolVersion are strings where they are there; none of them is required.";

    // A2A
    A2aFieldMissing "a2a-field-missing" Fail Document "" Publisher false
        "A required member of the A2A card is missing."
        "The card's version of A2A requires the member. Readers that follow the specification refuse the card.";
    A2aInterfaceMalformed "a2a-interface-malformed" Fail Document "" Publisher false
        "An interface of the A2A card is malformed."
        "An interface of 1.0 has url, protocolBinding and protocolVersion; one of additionalInterfaces in 0.2 and 0.3 has url and transport. All are strings.";
    A2aUrlMalformed "a2a-url-malformed" Fail Document "" Publisher false
        "A URL of the A2A card is not an absolute URI."
        "The endpoint, and the addresses of documentation, icon and provider, are absolute URIs.";
    A2aProviderIncomplete "a2a-provider-incomplete" Fail Document "" Publisher false
        "The provider of the A2A card lacks its name or its address."
        "A provider has both organization and url; leave the whole member out rather than one of them.";
    A2aSkillIncomplete "a2a-skill-incomplete" Fail Document "" Publisher false
        "A skill of the A2A card is incomplete."
        "Each skill has id, name, description and tags.";
    A2aSkillDuplicate "a2a-skill-duplicate" Warn Document "" Publisher false
        "Two skills of the A2A card have the same id."
        "Clients tell skills apart by their ids.";
    A2aExtensionMalformed "a2a-extension-malformed" Fail Document "" Publisher false
        "An extension of the A2A card is malformed."
        "An extension has a uri that identifies it (required before 1.0) and may have description, required and params; params is an object.";
    A2aModeNotMediaType "a2a-mode-not-media-type" Warn Document "" Publisher false
        "A mode of the A2A card is not a media type."
        "Input and output modes are media types such as text/plain or application/json. Many published cards say text; clients that compare media types find nothing in common with them.";
    A2aSecurityUnknown "a2a-security-unknown" Fail Document "" Publisher false
        "The A2A card demands a security scheme that it does not declare."
        "Each name in the security requirements is one of securitySchemes; else no client knows what is asked of it.";
    A2aSecurityMisnamed "a2a-security-misnamed" Warn Document "" Publisher false
        "The A2A card of 1.0 has its requirements under the older name."
        "In 1.0 the member is securityRequirements. Readers that follow the message definition do not see security, and call without credentials; the sample in the specification's text has the older name.";
    A2aVersionMixed "a2a-version-mixed" Warn Document "" Publisher false
        "The A2A card of 1.0 has members of older versions."
        "The card has supportedInterfaces, so it is judged as one of 1.0. Older members beside them are read by older clients alone: make sure that both say the same.";
    A2aProtocolVersionUnknown "a2a-protocol-version-unknown" Warn Document "" Publisher false
        "The A2A card claims a version whose form it does not have."
        "protocolVersion is 0.2 or 0.3, or a patch of these, in a card of this shape; it is judged as one of 0.3. A card of 1.0 lists its interfaces in supportedInterfaces.";

    // Aevum
    AeFieldMissing "ae-field-missing" Fail Document "AE-1" Publisher false
        "A required member of the Aevum card is missing."
        "Every Aevum AgentCard has agent_id, name, version, capabilities and endpoint.";
    AeAgentIdMalformed "ae-agent-id-malformed" Fail Document "AE-2" Publisher false
        "agent_id is not 26 characters of Crockford Base32."
        "agent_id is a ULID as text: 26 characters of 0 to 9 and A to Z without I, L, O and U, in upper case. Make one with a ULID library.";
    AeAgentIdOverflow "ae-agent-id-overflow" Warn Document "AE-3" Publisher false
        "agent_id is more than 128 bits."
        "26 characters of Base32 hold 130 bits and a ULID has 128, so its first character is 0 to 7. The text admits any 26 characters, but ULID libraries refuse or truncate this one.";
    AeNameLength "ae-name-length" Fail Document "AE-4" Publisher false
        "name does not have 1 to 128 characters."
        "name is what people are shown: a text of 1 to 128 characters.";
    AeVersionNotSemver "ae-version-not-semver" Fail Document "AE-5" Publisher false
        "The Aevum card's version is not a semantic version."
        "version follows Semantic Versioning 2.0, such as 1.0.0 or 0.3.2-beta.1.";
    AeCapabilitiesEmpty "ae-capabilities-empty" Fail Document "AE-6" Publisher false
        "The Aevum card names no capability."
        "capabilities is a list with at least one entry. An agent that can do nothing needs no card.";
    AeCapabilityIncomplete "ae-capability-incomplete" Fail Document "AE-7" Publisher false
        "A capability lacks its id or its description."
        "Each capability has an id for machines and a description for people.";
    AeCapabilityIdMalformed "ae-capability-id-malformed" Fail Document "AE-8" Publisher false
        "A capability's id is not machine-readable."
        "The id holds lower-case letters, digits, dots, hyphens and underscores, begins with a letter or digit and has at most 128 characters. A namespace before a dot (text.generate) is the custom; an id without one is only a warning.";
    AeDescriptionLength "ae-description-length" Fail Document "AE-9" Publisher false
        "A capability's description does not have 1 to 512 characters."
        "The description is a text for people of at most 512 characters.";
    AeTagsType "ae-tags-type" Fail Document "AE-10" Publisher false
        "A capability's tags are not a list of strings."
        "tags is a list of strings, each of them once.";
    AeIoSchemaInvalid "ae-io-schema-invalid" Fail Document "AE-11" Publisher false
        "A capability's input or output schema is not a JSON Schema."
        "input_schema and output_schema are each a JSON Schema (an object) or null. The object is held against the meta-schema of JSON Schema 2020-12, unless it names another dialect in $schema. What it refers to is never fetched.";
    AeProtocolUnknown "ae-protocol-unknown" Fail Document "AE-12" Publisher false
        "endpoint.protocol is not one that Aevum 1.0 defines."
        "The protocol is one of http, websocket, sse, grpc, mcp, google_a2a and native. Later drafts of the same project list others; a reader of 1.0 does not know them.";
    AeUrlMalformed "ae-url-malformed" Fail Document "AE-13" Publisher false
        "A URL of the endpoint is not a URI."
        "endpoint.url, and health_url where present, are absolute URIs (RFC 3986).";
    AeAuthUnknown "ae-auth-unknown" Fail Document "AE-14" Publisher false
        "endpoint.auth does not name a scheme that Aevum 1.0 defines."
        "auth is null, or an object whose scheme is none, bearer, api_key, oauth2 or mtls.";
    AeCostBelowLandauer "ae-cost-below-landauer" Fail Document "AE-15" Publisher false
        "base_cost_joules is below the Landauer floor."
        "To erase one bit at 300 K takes at least 2.854e-21 J, so no request costs less. The text sets this floor; the published schema only asks for a number that is not negative.";
    AePricingType "ae-pricing-type" Fail Document "AE-16" Publisher false
        "A member of pricing is of the wrong type, or negative."
        "base_cost_joules, estimated_latency_ms and cost_per_request are numbers that are not negative, currency is a string; each may be null.";
    AePacrSelfDeclared "ae-pacr-self-declared" Warn Document "AE-17" Publisher false
        "The card's operator states what only the ledger can say."
        "Members of metadata that begin with pacr: are computed from the causal ledger, and an operator must not forge them. In a card that its operator serves nothing shows where they come from: they are unverified, and no decision rests on them. `clresolve aevum metadata` computes them from a ledger.";
    AeReputationRange "ae-reputation-range" Fail Document "AE-18" Publisher false
        "pacr:reputation_score is not between 0 and 1."
        "The score is a number from 0 to 1.";
    AeUnknownMember "ae-unknown-member" Warn Document "AE-22" Publisher false
        "Aevum 1.0 does not define this member."
        "The schema is append-only: a later version may have added the member, so it is kept and does not change what the known ones mean. It may as well be a misspelling. A strict reader of 1.0 refuses the card.";
    AeCardUnreachable "ae-card-unreachable" Unknown Discovery "AE-20" Publisher true
        "The host has no Aevum card at its well-known path."
        "An Aevum card is served at /.well-known/agent.json. Nothing usable came from there: no answer, an error, a redirect, or no JSON.";

    // MA²D
    AnNameMalformed "an-name-malformed" Fail Document "AN-1" Publisher false
        "The MA²D card's name is missing or malformed."
        "name holds lower-case letters, digits and hyphens, 1 to 50 of them.";
    AnVersionNotSemver "an-version-not-semver" Fail Document "AN-2" Publisher false
        "The MA²D card's version is not a semantic version."
        "version is X.Y.Z after Semantic Versioning, with a pre-release part where there is one.";
    AnDescriptionLength "an-description-length" Fail Document "AN-3" Publisher false
        "The description does not have 200 to 2000 characters."
        "Other agents choose by the description, so it has at least 200 and at most 2000 characters (not bytes).";
    AnSkillsEmpty "an-skills-empty" Fail Document "AN-4" Publisher false
        "The MA²D card has no skill."
        "skills is a list with at least one entry.";
    AnSkillNameMalformed "an-skill-name-malformed" Fail Document "AN-5" Publisher false
        "A skill's name is missing or not snake_case."
        "A skill's name holds lower-case letters, digits and underscores.";
    AnSkillDescriptionLength "an-skill-description-length" Fail Document "AN-6" Publisher false
        "A skill's description is missing or shorter than 50 characters."
        "Each skill says what it does in at least 50 characters.";
    AnProtocolUnknown "an-protocol-unknown" Fail Document "AN-7" Publisher false
        "invocation.protocol is missing or unknown."
        "The protocol is one of mcp, rest, grpc, graphql and websocket.";
    AnEndpointMalformed "an-endpoint-malformed" Fail Document "AN-8" Publisher false
        "invocation.endpoint is missing or is not an HTTP(S) URL."
        "The endpoint is a URL that begins with http:// or https:// and names a host; by the letter also where the protocol is websocket.";
    AnAuthUnknown "an-auth-unknown" Fail Document "AN-9" Publisher false
        "invocation.authentication is of an unknown form."
        "Its type is none, bearer, api_key, oauth2, basic or mtls, and required is a boolean (false when absent).";
    AnFormatUnknown "an-format-unknown" Fail Document "AN-10" Publisher false
        "invocation.format or invocation.method is of an unknown form."
        "The format is json-rpc, rest or graphql; the method is a string (POST when absent).";
    AnLanguageUnknown "an-language-unknown" Fail Document "AN-11" Publisher false
        "A language is not an ISO 639-1 code."
        "capabilities.languages holds codes of the list ISO 639-1, two lower-case letters without region: en, not EN or en-US.";
    AnInputModeUnknown "an-input-mode-unknown" Fail Document "AN-12" Publisher false
        "An input mode is unknown."
        "capabilities.input_modes holds only text, voice, image, video and file.";
    AnOutputModeUnknown "an-output-mode-unknown" Fail Document "AN-13" Publisher false
        "An output mode is unknown."
        "capabilities.output_modes holds only text, json, speech, image, video and file.";
    AnCapabilityType "an-capability-type" Fail Document "AN-14" Publisher false
        "A capability that is yes or no is not a boolean."
        "capabilities.streaming, async and state_management are booleans, false when absent.";
    AnUrlMalformed "an-url-malformed" Fail Document "AN-15" Publisher false
        "homepage or repository is not an HTTP(S) URL."
        "Both are optional URLs that begin with http:// or https:// and name a host.";
    AnTimestampMalformed "an-timestamp-malformed" Fail Document "AN-16" Publisher false
        "A timestamp of the metadata is not ISO 8601."
        "metadata.created_at and updated_at are ISO 8601: a date, or a date and a time with T between them, such as 2026-01-28T12:00:00Z.";
    AnExampleIncomplete "an-example-incomplete" Fail Document "AN-17" Publisher false
        "An example lacks its skill, input or output."
        "Each example has skill (a string), input and output (objects).";
    AnExampleSkillUnknown "an-example-skill-unknown" Warn Document "AN-18" Publisher false
        "An example names a skill that the card does not have."
        "examples[].skill is the name of one of the card's skills. Correct the example, or add the skill.";
    AnVersionNotRaised "an-version-not-raised" Warn Document "AN-21" Publisher false
        "Skills or invocation have changed without a new major version."
        "Compared with the earlier card a skill is gone, its parameters, result or MCP tool differ, or the invocation does. That breaks the agent's callers, which a new major version announces. While it is 0 any higher version will do. Raise the version.";
    AnCardUnreachable "an-card-unreachable" Unknown Discovery "AN-20" Publisher true
        "The host has no MA²D card where one was looked for."
        "An MA²D card is served at /.well-known/agent-card.json, or under a URL of its own that ends in .json. Nothing usable came from there: no answer, an error, a redirect, or no JSON.";
    AnContentType "an-content-type" Warn Discovery "AN-20" Publisher false
        "The card is not served as application/json."
        "The content type of an MA²D card is application/json. Readers that go by the content type may not take it for a card.";

    // discovery, of Orloj and of any system
    OrRootCardAbsent "or-root-card-absent" Warn Discovery "OR-4" Asker false
        "The host has no root card, so more than one system may be exposed there."
        "Orloj serves a card at /.well-known/agent-card.json only while exactly one system is exposed. Without one, none of several is the host's own: name the system whose card is meant (--system).";
    OrCardUnreachable "or-card-unreachable" Unknown Discovery "OR-5" Publisher true
        "The host has no Orloj card where one was looked for."
        "The card of a system is served at /v1/agent-systems/NAME/.well-known/agent-card.json, and as the root card while the system is the only one. Nothing usable came from there.";
    OrDiscoveryCredentialed "or-discovery-credentialed" Warn Discovery "OR-6" Publisher false
        "The host demands credentials before it shows a card."
        "Cards are discovered without credentials, and none are ever sent. The answer was 401, 403 or 407: open the path, or keep the system private and hand its card over in another way.";
    OrCardStale "or-card-stale" Warn Discovery "OR-15" Operator true
        "The card comes from a cache and is past its freshness."
        "The answer's Age is beyond its max-age, so a cache between here and the host served it too long. The card is computed on request and may be another by now. Nothing is concluded from a change.";
    DiscoveryAbsent "discovery-absent" Warn Discovery "" Publisher false
        "There is nothing at this path."
        "The host answered 404 or 410. No host has a card at every path, so this alone is not a defect.";
    DiscoveryContentType "discovery-content-type" Warn Discovery "" Publisher false
        "The host serves something other than JSON there."
        "The body is announced as something else and does not parse, as the page that many hosts give for any path. It was not judged.";
    DiscoveryCardsDiffer "discovery-cards-differ" Warn Discovery "" Publisher false
        "The host serves different cards at different paths."
        "Each was judged by itself. Which of them a client gets depends on where it looks: serve one card, or make sure that they are meant to differ.";
    DiscoveryNoCard "discovery-no-card" Unknown Discovery "" Publisher true
        "No card was found where cards are looked for."
        "None of the paths gave a document that could be judged. The host may have no card, may keep it elsewhere, or may be down.";
    DiscoveryNotBound "discovery-not-bound" Warn Discovery "" Publisher true
        "No name on ENS vouches for these bytes."
        "Either no CommandLayer card was found, or the name that it states is not trusted, or the name's proven card has other bytes. A card that only a host serves is that host's word.";

    // the signatures of a card, and the roots that a verifier names
    SignatureMissing "signature-missing" Fail Signature "" Publisher false
        "The card is not signed."
        "The card has no member signatures, or an empty one. An unsigned card may be honest, but its origin is not shown. The publisher can sign it, for instance with `clresolve sign`.";
    SignatureMalformed "signature-malformed" Fail Signature "" Publisher false
        "A signature does not have the form of one."
        "An entry of signatures must be an object with the texts protected and signature in base64url, and perhaps an object header; the protected header is one strict JSON object that names alg. No member stands in both headers (RFC 7515, 7.2.1). A card has at most 16 signatures.";
    SignatureAlgorithmRefused "signature-algorithm-refused" Fail Signature "" Publisher false
        "A signature uses an algorithm that is not accepted."
        "alg of the protected header must be EdDSA (Ed25519), ES256 or RS256. none, and HS256 and its like, whose key would be everybody's, are never accepted. Sign with one of the three.";
    SignatureHeaderRefused "signature-header-refused" Fail Signature "" Publisher false
        "A signature's header demands or says what is not accepted."
        "crit and b64 change how a signature is checked, and no extension is known here that a card needs. A typ that is neither JOSE nor a card's own (agent-card+jws) belongs to a signature that was made for another purpose. Sign again without them.";
    SignatureKeyUnknown "signature-key-unknown" Fail Signature "" Publisher false
        "No named root has the key of a signature."
        "kid of the protected header names a key, and no root that the verifier named holds a key of that name. Where the card itself says its keys are (jku, jwk, x5u, x5c) is never looked at: a forger of the card writes that with it. Name the root that vouches for the key, or ask the publisher which key signed.";
    SignatureKeyUnfit "signature-key-unfit" Fail Signature "" Publisher false
        "The key of a signature is not one for its algorithm."
        "The root has the key that kid names, but it is of another kind than alg demands, or is marked for another algorithm or use. To go on would let the header choose how a key is read.";
    SignatureKeyWeak "signature-key-weak" Fail Signature "" Publisher false
        "The key of a signature is too weak."
        "The key is no point of its curve or one of small order, or an RSA key below 2048 or above 8192 bits or with an exponent below 65537. Whatever it signed proves nothing. The publisher must make a new key.";
    SignatureInvalid "signature-invalid" Fail Signature "" Publisher false
        "A signature does not hold."
        "The key that kid names has not signed this card: the card was changed after it was signed, the signature was taken from another card, or the signer made the canonical form in another way. Signed is the card without signatures in RFC 8785 form; of an A2A 1.0 card members at their default value are left out first, unless they are required or explicitly optional.";
    SignaturePayloadRefused "signature-payload-refused" Fail Signature "" Publisher false
        "The card has no canonical form."
        "RFC 8785 is defined for I-JSON: an integer beyond 2^53 - 1 would be read as another one by other programs, so two cards would share a signature. Write such a number as text.";
    SignatureRootUnavailable "signature-root-unavailable" Unknown Signature "" Operator true
        "A trust root could not be asked."
        "The JWKS URL, the DID document or the chain gave no answer that can be relied on, so nothing is known about its keys. For a key on ENS that is also so where one stranger's endpoint alone vouches for the record: name endpoints of several operators, or your own node. Ask again.";
    SignatureRootUnusable "signature-root-unusable" Fail Signature "" Operator false
        "A trust root holds no keys that can be used."
        "What the root gave is no JSON Web Key Set, no DID document of that DID, or no cl.sig.pub record of the form ed25519:BASE64; it holds a private key; or the record is proven not to be set. Name another root, or tell its operator.";
}

impl Code {
    /// Whether a verdict can hold it: not so what is found in a card of another system, on a host, or in a signature.
    pub fn is_of_verdicts(self) -> bool {
        Step::WALK.contains(&self.entry().step)
    }

    /// The code's stable URI, as the `type` of a problem (RFC 9457). It names the code and leads nowhere.
    pub fn uri(self) -> String {
        format!("{URI_PREFIX}{}", self.slug())
    }

    /// The code with this slug.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.slug() == slug)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

/// One finding, as it stands in a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The stable code.
    pub code: Code,
    /// What it does to the state under the profile in force.
    pub effect: Effect,
    /// The step that found it.
    pub step: Step,
    /// The rule behind it; absent for an operational reason.
    pub requirement: Option<String>,
    /// One plain sentence.
    pub message: String,
    /// What the rules or the other side demand.
    pub expected: Option<String>,
    /// What was found.
    pub observed: Option<String>,
    /// Where: a record's key, a member's JSON Pointer, a source or an endpoint's label.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Whether asking again may give another answer.
    pub retryable: bool,
    /// What to change; proposes a value only when the CID proves it.
    pub fix: Option<String>,
}

impl Reason {
    /// A reason with the registry's effect, step and requirement, and its title as the message.
    pub fn new(code: Code) -> Self {
        let entry = code.entry();
        Self {
            code,
            effect: entry.effect,
            step: entry.step,
            requirement: Some(entry.requirement).filter(|r| !r.is_empty()).map(str::to_owned),
            message: entry.title.to_owned(),
            expected: None,
            observed: None,
            place: None,
            retryable: entry.retryable,
            fix: None,
        }
    }

    /// With another sentence than the registry's title.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// With the value that was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(clipped(&expected.into(), MAX_VALUE_BYTES));
        self
    }

    /// With the value that was found.
    #[must_use]
    pub fn observed(mut self, observed: impl Into<String>) -> Self {
        self.observed = Some(clipped(&observed.into(), MAX_VALUE_BYTES));
        self
    }

    /// With the place in which it was found.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// With the rule behind it, where one code serves several rules.
    #[must_use]
    pub fn requirement(mut self, requirement: &str) -> Self {
        self.requirement = Some(requirement.to_owned());
        self
    }

    /// Found by another step than the registry's.
    #[must_use]
    pub fn in_step(mut self, step: Step) -> Self {
        self.step = step;
        self
    }

    /// With a proposal for the fix.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Longest expected or observed value in a reason, in bytes: enough for any honest record, URL or digest, and a bound
/// on what a hostile one can put into verdicts and logs.
pub const MAX_VALUE_BYTES: usize = 512;

/// Sorts by effect, then step, then code, then place: the order in which reasons are reported.
pub fn sort(reasons: &mut [Reason]) {
    reasons
        .sort_by(|a, b| (a.effect, a.step, a.code.slug(), &a.place).cmp(&(b.effect, b.step, b.code.slug(), &b.place)));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn slugs_are_unique_kebab_case_and_found_again() {
        let slugs: BTreeSet<_> = Code::ALL.iter().map(|c| c.slug()).collect();
        assert_eq!(slugs.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.slug().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            assert_eq!(Code::from_slug(code.slug()), Some(*code));
            assert_eq!(code.entry().code, *code);
        }
    }

    #[test]
    fn reasons_sort_by_effect_then_step_then_code() {
        let mut reasons = [Code::SingleRpc, Code::CidMismatch, Code::CidUnproven, Code::TxtMissing].map(Reason::new);
        sort(&mut reasons);
        let order = reasons.map(|r| r.code);
        assert_eq!(order, [Code::TxtMissing, Code::CidMismatch, Code::CidUnproven, Code::SingleRpc]);
    }
}
