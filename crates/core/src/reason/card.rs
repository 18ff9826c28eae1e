//! Rows of the registry: the card under the rules of the profile, its binding, and the continuity of the name.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // card
        CardNotUtf8 "card-not-utf8" Fail Card "CL-43" Publisher false
            "The card is not UTF-8."
            "Save the card as UTF-8 without a byte order mark (RFC 8259, 8.1).";
        CardNotJson "card-not-json" Fail Card "CL-43" Publisher false
            "The card is not one JSON object."
            "The bytes are not exactly one JSON object: a syntax error, a byte order mark, another kind of value, or data after the end.";
        CardTooDeep "card-too-deep" Fail Card "X-8" Publisher false
            "The card is nested too deeply."
            "A card has at most 16 levels, because deeper nesting exhausts readers.";
        CardTooComplex "card-too-complex" Fail Card "X-8" Publisher false
            "The card is too complex to judge."
            "The card has too many values or defects, or too long member names or paths, so validation stopped. Move large data out of the card.";
        CardDuplicateKey "card-duplicate-key" Fail Card "X-8" Publisher false
            "The card has the same member twice."
            "Some readers take the first value and some the last, so they see different cards under one checksum. Remove one.";
        CardSchemaInvalid "card-schema-invalid" Fail Card "CL-1" Publisher false
            "The card does not validate under the base schema."
            "A member has the wrong type or format, or the base schema does not define it.";
        SchemaNotStrict "schema-not-strict" Fail Schemas "CL-2" Publisher false
            "A schema does not compile in strict mode."
            "The schema uses an unknown keyword or format, or a reference that the manifest does not contain. Remote references are never fetched.";
        CardFieldMissing "card-field-missing" Fail Card "CL-3" Publisher false
            "A required member of the card is missing."
            "The specification requires this member in every card.";
        CardFieldEmpty "card-field-empty" Fail Card "CL-4" Publisher false
            "A required member of the card is empty."
            "The member is an empty string or only white space.";
        IdDiffersFromEns "id-differs-from-ens" Warn Card "CL-5" Publisher false
            "The card's id is not its ENS name."
            "By convention id equals ens. Nothing is bound to id.";
        SlugNotUrlSafe "slug-not-url-safe" Fail Card "CL-6" Publisher false
            "The card's slug is not URL-safe."
            "slug may contain lower-case letters, digits and - . _ ~ only.";
        CardVersionNotSemver "card-version-not-semver" Fail Card "CL-7" Publisher false
            "The card's version is not a semantic version."
            "version must be a Semantic Version 2.0, such as 1.0.0.";
        ClassUnknown "class-unknown" Fail Card "CL-8" Publisher false
            "The card's class is neither commons nor commercial."
            "The class decides which layer the verbs come from, so no verb can be checked without it.";
        StatusUnknown "status-unknown" Warn Card "CL-9" Publisher false
            "The card's status is not a known word."
            "Known values include protocol_reference, active, experimental and deprecated.";
        StatusDeprecated "status-deprecated" Warn Card "CL-9" Publisher false
            "The card is deprecated."
            "The publisher marks the agent as deprecated. Look for its successor.";
        StatusWithdrawn "status-withdrawn" Warn Card "CL-9" Publisher false
            "The publisher has withdrawn the agent."
            "status is revoked, disabled, retired, suspended, compromised or withdrawn. The gate denies the agent unless gate.deny omits this code. Look for another agent.";
        StatusRevoked "status-revoked" Fail Card "CL-9" Publisher false
            "The card is revoked."
            "The publisher has revoked the card. Only profiles that define this status report the code.";
        ImplementsEmpty "implements-empty" Fail Card "CL-10" Publisher false
            "The card implements no verb."
            "implements must list at least one string; the first is the primary verb.";
        CardDuplicateEntry "card-duplicate-entry" Warn Card "CL-73" Publisher false
            "A list of the card contains an entry twice."
            "implements and networks are sets whose first entry has a special meaning. Remove the repetition.";
        CardUnsafeCharacters "card-unsafe-characters" Fail Card "CL-73" Publisher false
            "A text that identifies the agent can be mistaken for another one."
            "slug, id, owner, entry or display_name contains a control, bidirectional or invisible character, or the slug is a dot segment (. or ..). ENS names in normal form are allowed, and in display_name valid emoji and the joiners of a script; a text-direction control there is only a warning. Publish the card again with plain text.";
        CardIdMismatch "card-id-mismatch" Warn Card "CL-72" Publisher false
            "The card's $id or $schema is not the published one."
            "$id should be the URL in cl.agentcard with the card's class as folder, and $schema the base schema of the release line. Correct the member, or leave it out.";
        NetworksEmpty "networks-empty" Fail Card "CL-24" Publisher false
            "The card names no network."
            "networks must list at least one CAIP-2 chain.";
        NetworkNotCaip2 "network-not-caip2" Fail Card "CL-25" Publisher false
            "A network is not a CAIP-2 identifier."
            "Each entry has the form namespace:reference, such as eip155:1.";
        LicenseUnrecognized "license-unrecognized" Warn Card "CL-26" Publisher false
            "The card's licence is no SPDX expression, and nothing documents it."
            "Use an SPDX identifier such as Apache-2.0, or document the licence: LicenseRef- and a name, the URL of its text, or the file with the terms.";
        LicenseNotOpen "license-not-open" Warn Card "CL-26" Publisher false
            "Neither OSI nor FSF recognises the card's licence."
            "No licence that satisfies the SPDX expression is recognised by the Open Source Initiative or the Free Software Foundation. Choose a recognised one, or document your own under LicenseRef-.";
        TimestampMalformed "timestamp-malformed" Fail Card "CL-27" Publisher false
            "A timestamp of the card is malformed."
            "created_at and updated_at must be RFC 3339 date-times, such as 2025-11-22T00:00:00Z.";
        TimestampsReversed "timestamps-reversed" Fail Card "CL-28" Publisher false
            "The card was updated before it was created."
            "updated_at must not be before created_at.";
        SecretInCard "secret-in-card" Fail Card "CL-31" Publisher false
            "The card contains a credential."
            "A member looks like a token, a key or a password. Cards are public: revoke the credential, then remove it.";
        PrivateAddressInCard "private-address-in-card" Fail Card "CL-32" Publisher false
            "The card names a private address."
            "A URL or host in the card is loopback, private, link-local or otherwise not public. Others cannot reach it.";
        PiiInCard "pii-in-card" Warn Card "CL-33" Publisher false
            "The card seems to contain personal data."
            "Outside the publisher's contact members, the card has an e-mail or postal address, a telephone, payment card, IBAN, passport or national number, a date of birth, an IP address or a location. Cards are public: remove it.";
        ScriptInCard "script-in-card" Fail Card "CL-34" Publisher false
            "The card contains a script."
            "A string contains executable code: a script element or URL, a shebang line, a function body, a command substitution, or an encoded PowerShell program. Remove it.";

        // binding
        TxtEntryMismatch "txt-entry-mismatch" Fail Binding "CL-41" Publisher false
            "cl.entry is not the card's entry."
            "The record and the card must have the same x402 entry, byte for byte.";
        TxtOwnerMismatch "txt-owner-mismatch" Fail Binding "CL-51" Publisher false
            "cl.owner is not the card's owner."
            "The record and the card must have the same owner, byte for byte.";
        CardEnsMismatch "card-ens-mismatch" Fail Binding "CL-53" Publisher false
            "The card is bound to another name."
            "The card's ens member is another name than the one you asked for.";
        PublisherNotAllowed "publisher-not-allowed" Fail Binding "CL-58" Operator false
            "The owner is not on the allow-list of this resolver."
            "This resolver accepts commons cards only from certain proven owners (allowed-publishers).";

        // entry
        EntryMalformed "entry-malformed" Fail Entry "CL-19" Publisher false
            "The card's entry does not have the form of an x402 entry."
            "The form is x402://<ens>/<verb>/v1 without port, query, fragment or trailing slash. Where the profile fixes one URL for a class, as agent-cards/1.1.0 does for commons, the entry must be that URL.";
        EntryEnsMismatch "entry-ens-mismatch" Fail Entry "CL-20" Publisher false
            "The name in the entry is not the card's name."
            "Payments to this entry would go to another name.";
        EntryVerbMismatch "entry-verb-mismatch" Fail Entry "CL-21" Publisher false
            "The verb in the entry is not the card's primary verb."
            "The verb of the entry must be the first one in implements.";
        EntryVersionNoncompliant "entry-version-noncompliant" Fail Entry "CL-22" Publisher false
            "The route version of the entry is not an accepted one."
            "The specification fixes the route segment as v1, whatever the card's version. The released cards end in v1.0.0, which the profile agent-cards/1.0.0+released accepts; commercial cards of line 1.1.0 end in v1.1.0 (profile agent-cards/1.1.0).";

        // verbs, class, schema locations
        VerbUnknown "verb-unknown" Fail Verbs "CL-12" Publisher false
            "The card implements a verb that no layer defines."
            "Every verb must be in the manifest of the layer of the card's class.";
        VerbAlias "verb-alias" Fail Verbs "CL-13" Publisher false
            "A verb is misspelt."
            "Verbs must equal the names of their schema folders byte for byte, including case.";
        CommonsVerbForeign "commons-verb-foreign" Fail Verbs "CL-56" Publisher false
            "A commons card implements a verb of another layer."
            "A card of class commons may implement only verbs of Protocol-Commons.";
        CommercialAsCommons "commercial-as-commons" Fail Verbs "CL-57" Publisher false
            "A commercial card is shown as commons."
            "The card's class is commercial, but its schemas or its $id are under commons.";
        SchemaUriNotCanonical "schema-uri-not-canonical" Fail Verbs "CL-14" Publisher false
            "A schema location is not the canonical one of the verb."
            "schemas.request and schemas.receipt must be the manifest's locations for the primary verb.";
        SchemaManifestMismatch "schema-manifest-mismatch" Fail Verbs "CL-16" Publisher false
            "A schema location differs from the manifest."
            "The location names another CID or version than the manifest, or the mirror names another verb.";
        SchemaMirrorPlaceholder "schema-mirror-placeholder" Fail Verbs "CL-18" Publisher false
            "A schema mirror contains a placeholder instead of a CID."
            "The mirror was published before its CID was known. The profile agent-cards/1.0.0+released reports this only as a warning.";
        SchemaMirrorUnproven "schema-mirror-unproven" Warn Verbs "CL-74" Publisher false
            "The content of a schema mirror is unproven."
            "The manifest has no CID for its schemas, so use --depth schemas to fetch and compare the mirror's bytes. Or the mirror is not an https URL: name an IPFS gateway.";

        SchemaMirrorElsewhere "schema-mirror-elsewhere" Warn Verbs "CL-82" Publisher false
            "A schema mirror is on another host than the manifest's."
            "Mirrors are usually on the hosts that the manifest names. --depth schemas fetches this one and accepts any https host whose bytes have the pinned digest.";

        // depth schemas
        PrimaryVerbMismatch "primary-verb-mismatch" Fail Schemas "CL-11" Publisher false
            "cl.verb is not the card's primary verb."
            "cl.verb must be the first entry of implements.";
        SchemaUnavailable "schema-unavailable" Unknown Schemas "CL-59" Publisher true
            "A bound schema could not be fetched."
            "Neither the canonical location nor the mirror returned the schema, so its binding is undecided.";
        SchemaUnpinned "schema-unpinned" Unknown Schemas "PC-5" Publisher false
            "No digest of a bound schema is known."
            "The manifest of this release line has no digest, because its publisher changes the schemas in place. Depth identity does not check this.";
        SchemaMirrorUnreachable "schema-mirror-unreachable" Warn Schemas "CL-15" Publisher true
            "A schema mirror does not answer."
            "The mirror gave no 2xx answer, or is not an https URL. The canonical location decides.";
        SchemaMirrorMismatch "schema-mirror-mismatch" Fail Schemas "CL-17" Publisher false
            "A schema mirror serves another schema."
            "The mirror's schema differs from the one at the canonical location.";
        SchemaIdMismatch "schema-id-mismatch" Fail Schemas "PC-2" Publisher false
            "A schema's $id is not the URL of its path."
            "The $id must be the canonical URL of the schema.";
        SchemaTxtMissing "schema-txt-missing" Warn Schemas "PC-3" Publisher false
            "The text records of the schema binding are not complete."
            "Some of cl.verb, cl.version, cl.schema.request, cl.schema.receipt, cl.cid.schemas and cl.schemas.mirror.ipfs are set, but not this one. Agents need none of them: set it too, or remove the others.";
        SchemaTxtMismatch "schema-txt-mismatch" Fail Schemas "PC-3" Publisher false
            "A text record of the schema binding differs from the manifest."
            "The record does not equal the manifest's value for the primary verb.";
        SchemaChecksumMismatch "schema-checksum-mismatch" Fail Schemas "PC-4" Publisher false
            "A schema's SHA-256 is not the published one."
            "The fetched bytes, or the checksum in a text record, contradict the manifest.";
        ChecksumLineEndings "checksum-line-endings" Warn Schemas "PC-5" Publisher false
            "The checksum fits only after changing line ends."
            "The published digest belongs to the same text with CRLF line ends. It is still a mismatch.";
        PublishedVersionMutated "published-version-mutated" Fail Schemas "PC-9" Publisher false
            "A published schema was changed."
            "The bytes at the canonical location of a released version are not the released ones.";

        // continuity: compared with what this resolver remembers
        CardChangedSilently "card-changed-silently" Warn Continuity "CL-29" Publisher false
            "The card has changed without a new version."
            "This resolver remembers a trusted card with the same name and version but other bytes; build metadata is ignored. The publisher should restore the released bytes, or raise the version. To accept the change, run `clresolve memory forget NAME`. Add the code to gate.deny to deny such agents.";
        VersionRollback "version-rollback" Warn Continuity "X-9" Publisher false
            "The card's version is lower than one that was seen before."
            "This resolver remembers a trusted card of the name with a higher version; the older one may have a known fault. Ask the publisher. To accept it, run `clresolve memory forget NAME`. Add the code to gate.deny to deny such agents.";
        UpdatedAtNotAdvanced "updated-at-not-advanced" Warn Continuity "CL-69" Publisher false
            "The card has changed, and its updated_at has not advanced."
            "The card differs from an earlier one (the memory's, or that of --previous, where this is a defect), but updated_at is not later, so readers cannot tell which is newer. Set updated_at to the time of the change. `clresolve memory forget NAME` forgets the earlier card.";
        VersionNotRaised "version-not-raised" Warn Continuity "CL-69" Publisher false
            "A part that callers rely on has changed without a higher version."
            "The owner, the entry, the schemas or a verb changed since an earlier card (the memory's, or that of --previous, where this is a defect) under the same version, so callers that pinned it reach another agent. Raise the version. `clresolve memory forget NAME` forgets the earlier card.";
        RecordRecent "record-recent" Warn Continuity "X-9" Asker true
            "A record changed a short time ago."
            "A cl.* record changed within the last memory.record-rest blocks, as it would after a key theft. Wait, or compare with the publisher's announcements. Add the code to gate.deny to deny such agents.";
        MemoryUnavailable "memory-unavailable" Warn Continuity "" Operator true
            "The memory of names could not be used."
            "The file memory.path is in use by another process or cannot be read or written, so this verdict was not compared with earlier cards. Check the file. Add the code to gate.deny to deny meanwhile.";
    } };
}

pub(super) use rows;
