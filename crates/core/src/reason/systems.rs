//! Rows of the registry: cards of any system, each judged on its own.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // cards of every system, each judged on its own
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
        OrInputSchemaInvalid "or-input-schema-invalid" Fail Document "OR-17" Publisher false
            "The input schema of a skill of the Orloj card is not a JSON Schema."
            "inputSchema is an object that JSON Schema 2020-12 allows; unknown keywords may stand in it. One that names another dialect in $schema is not judged further. Correct the tool's schema, or leave it out.";
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
            "A version in the Orloj card is not of its form."
            "version and protocolVersion are strings where they are there; none of them is required. A protocolVersion that is no dotted number, such as 1.0, is a warning.";

        // A2A
        A2aFieldMissing "a2a-field-missing" Fail Document "" Publisher false
            "A required member of the A2A card is missing."
            "The card's version of A2A requires the member, or the security scheme or requirement is empty without it. Readers that follow the specification refuse the card. In a card of 1.0 a member that is null is missing.";
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
        A2aSecurityMisnamed "a2a-security-misnamed" Fail Document "" Publisher false
            "A security member of the A2A 1.0 card does not have the name or form of 1.0."
            "Readers that follow the message definition do not see such a member, and call without credentials. Each of securitySchemes has exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, openIdConnectSecurityScheme and mtlsSecurityScheme; an OAuth scheme has one flow. Each of securityRequirements has a member schemes, with a list of scopes for each name. Names are in camelCase, and in is location. The older name security is only a warning, since the sample in the specification's text has it.";
        A2aVersionMixed "a2a-version-mixed" Warn Document "" Publisher false
            "The A2A card of 1.0 has members of older versions."
            "The card has supportedInterfaces, so it is judged as one of 1.0. Older members beside them are read by older clients alone: make sure that both say the same.";
        A2aProtocolVersionUnknown "a2a-protocol-version-unknown" Warn Document "" Publisher false
            "The A2A card states a version that its form does not have."
            "Before 1.0, protocolVersion is 0.2 or 0.3, or a patch of these; a card with another one is judged as one of 0.3. A card of 1.0 lists its interfaces in supportedInterfaces, each with major and minor version and without a patch number: 1.0, not 1.0.0.";

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
            "The id holds letters, digits, dots, hyphens and underscores, begins with a letter or digit and has at most 128 characters. A namespace before a dot and lower case (text.generate) are the custom; an id that departs from it is only a warning.";
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
            "auth is null or an object. Its scheme is one of `none`, `bearer`, `api_key`, `oauth2` and `mtls`.";
        AeCostBelowLandauer "ae-cost-below-landauer" Fail Document "AE-15" Publisher false
            "base_cost_joules is below the Landauer floor."
            "To erase one bit at 300 K takes at least 2.854e-21 J, so no request costs less. The text sets this floor; the published schema only asks for a number that is not negative.";
        AePricingType "ae-pricing-type" Fail Document "AE-16" Publisher false
            "A member of pricing is of the wrong type, or negative."
            "base_cost_joules, estimated_latency_ms and cost_per_request are numbers that are not negative, currency is a string; each may be null.";
        AePacrSelfDeclared "ae-pacr-self-declared" Warn Document "AE-17" Publisher false
            "The card's operator states what only the ledger can say."
            "Members of metadata that begin with pacr: are computed from the causal ledger, and an operator must not forge them. In a card that its operator serves nothing shows where they come from: they are unverified, and no decision rests on them. `clresolve cards aevum metadata` computes them from a ledger, and `clresolve lint --ledger` compares them with one.";
        AeReputationRange "ae-reputation-range" Fail Document "AE-18" Publisher false
            "pacr:reputation_score is not between 0 and 1."
            "The score is a number from 0 to 1.";
        AePacrDiffers "ae-pacr-differs" Fail Document "AE-30" Publisher false
            "A pacr: member differs from the ledger."
            "The ledger that was given yields another figure for the agent, or has no record of it, and an operator must not forge these figures. Write the ledger's figures into the card (clresolve cards aevum metadata --into), or name the ledger that the card's come from. They must agree to six digits.";
        AePacrType "ae-pacr-type" Warn Document "AE-30" Publisher false
            "A pacr: member cannot be such a figure."
            "pacr:interaction_count is an integer of 0 or more, pacr:avg_latency_ms and pacr:avg_cost_joules are numbers of 0 or more, pacr:influence_rank and pacr:critical_score are numbers from 0 to 1. No ledger yields another value.";
        AeCurrencyUnknown "ae-currency-unknown" Warn Document "AE-31" Publisher false
            "pricing.currency is neither a currency code nor a token symbol."
            "It is a code of ISO 4217, such as USD, or the symbol of a token: 3 to 10 capital letters and digits, a letter first, such as USDC. Clients that compare texts do not know another spelling.";
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
            "The type is one of `none`, `bearer`, `api_key`, `oauth2`, `basic` and `mtls`. required is a boolean; without it, false holds.";
        AnFormatUnknown "an-format-unknown" Fail Document "AN-10" Publisher false
            "invocation.format is of an unknown form."
            "The format is json-rpc, rest or graphql.";
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
            "The card has changed without the version that the change demands."
            "Compared with the earlier card: a skill that is gone, other parameters of a skill or another invocation break the agent's callers and raise the major version; a further skill raises at least the minor one, any other change at least the patch. A version never goes down. After a major version of 0 or a pre-release any higher version will do. Raise the version.";
        AnMethodUnknown "an-method-unknown" Warn Document "AN-23" Publisher false
            "invocation.method is not a method of HTTP."
            "The methods that HTTP defines are GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE and PATCH, here in any case; POST when absent. A method that is no string makes the card invalid. Correct it, or leave it out.";
        AnSkillDuplicate "an-skill-duplicate" Fail Document "AN-23" Publisher false
            "Two skills have one name."
            "A skill is called by its name, so each name stands once. Rename one of the skills, or leave it out.";
        AnCardUnreachable "an-card-unreachable" Unknown Discovery "AN-20" Publisher true
            "The host has no MA²D card where one was looked for."
            "An MA²D card is served at /.well-known/agent-card.json, or under a URL of its own that ends in .json. Nothing usable came from there: no answer, an error, a redirect, or no JSON.";
        AnContentType "an-content-type" Warn Discovery "AN-20" Publisher false
            "The card is not served as application/json."
            "The content type of an MA²D card is application/json. Readers that go by the content type may not take it for a card.";
    } };
}

pub(super) use rows;
