//! Rows of the registry: the card under the rules of the profile, its binding, and the continuity of the name.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
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
        CardTooComplex "card-too-complex" Fail Card "X-8" Publisher false
            "The card is too complex to judge."
            "It has more values, longer member names, longer paths or more defects than a card can honestly need. Such a card serves only to exhaust readers, so the judgement stops there. Move large data out of the card.";
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
            "slug, id, owner or entry holds a control, bidirectional, invisible or other unsafe character that is not part of an ENS name in normal form, or the slug is a dot segment (. or ..), which a path takes for a folder. display_name may hold joiners, variation selectors and tags where a valid emoji has them or where they are ordinary in their script; a control of the direction of text in it is a warning. Publish the card again with plain text.";
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
            "Outside the publisher's contact members stands an e-mail address, a telephone number, a payment card number or IBAN whose checksum is right, a national identifier, passport number or date of birth under a member named for it, or a postal address, IP address or location of a person. A card is public: remove it.";
        ScriptInCard "script-in-card" Fail Card "CL-34" Publisher false
            "The card holds a script."
            "A string holds executable code: a script element, a javascript: or data: script URL, a shebang line, a function or arrow function with its body, a command substitution, or an encoded program for PowerShell. A card is data.";

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

        SchemaMirrorElsewhere "schema-mirror-elsewhere" Warn Verbs "CL-82" Publisher false
            "A schema mirror is on another host than the manifest's."
            "Mirrors are typically under the hosts that the manifest of the layer names. At depth identity this mirror's bytes are not fetched: --depth schemas fetches them and accepts any https host whose bytes have the digest that the manifest pins.";

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

        // continuity: compared with what this resolver remembers
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
    } };
}

pub(super) use rows;
