//! Rows of the registry: cards of any system, each judged on its own.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // cards of every system, each judged on its own
        FlavourUnknown "flavour-unknown" Fail Document "" Publisher false
            "The card system of the document is not known."
            "No member shows whether this is a card of CommandLayer, Aevum, Orloj, MA²D or A2A. Name the system with --as.";
        FlavourAmbiguous "flavour-ambiguous" Fail Document "" Publisher false
            "The document has members of several card systems."
            "Readers could take the document for cards of different systems. Publish one card per system, or name the system with --as.";
        DocumentSchemaInvalid "document-schema-invalid" Fail Document "" Publisher false
            "A member has the wrong type or form for its card system."
            "The system's schema rejects the member, most often because of its type.";

        // Orloj
        OrNameMissing "or-name-missing" Fail Document "OR-1" Publisher false
            "The Orloj card has no name."
            "name must be the name of the AgentSystem, a non-empty string.";
        OrUrlMalformed "or-url-malformed" Fail Document "OR-2" Publisher false
            "The Orloj card's url is missing or is not a URI."
            "url is the A2A endpoint of the AgentSystem, an absolute URI. The server derives it from its public base URL: set that.";
        OrUrlNameMismatch "or-url-name-mismatch" Warn Document "OR-3" Publisher false
            "The Orloj card's url does not match the card's name."
            "The path must end in /v1/agent-systems/NAME/a2a with the card's name, percent-encoded; a query may follow. Otherwise callers reach another system.";
        OrSkillIncomplete "or-skill-incomplete" Fail Document "OR-8" Publisher false
            "A skill of the Orloj card has no id or no name."
            "Each skill is a tool of the agents, with its name as id and name.";
        OrSkillDescriptionEmpty "or-skill-description-empty" Warn Document "OR-9" Publisher false
            "A skill of the Orloj card has an empty description."
            "Leave the description out instead of setting an empty string.";
        OrInputSchemaEmpty "or-input-schema-empty" Warn Document "OR-10" Publisher false
            "A skill of the Orloj card has an empty input schema."
            "Leave the input schema out: an empty object accepts any input.";
        OrInputSchemaInvalid "or-input-schema-invalid" Fail Document "OR-17" Publisher false
            "The input schema of a skill of the Orloj card is not a JSON Schema."
            "inputSchema must be a valid JSON Schema 2020-12 object; unknown keywords are allowed, and other dialects in $schema are not checked. Correct the tool's schema, or leave it out.";
        OrCapabilityType "or-capability-type" Fail Document "OR-11" Publisher false
            "A capability of the Orloj card is neither true nor false."
            "streaming, pushNotifications and stateTransitionHistory are booleans.";
        OrAuthType "or-auth-type" Fail Document "OR-12" Publisher false
            "The authentication of the Orloj card is malformed."
            "authentication.schemes must be a list of strings; leave it out if callers need no authentication.";
        OrProviderUrlMalformed "or-provider-url-malformed" Fail Document "OR-13" Publisher false
            "The provider's url in the Orloj card is not a URI."
            "provider.url must be an absolute URI if present.";
        OrVersionType "or-version-type" Fail Document "OR-14" Publisher false
            "A version in the Orloj card is malformed."
            "version and protocolVersion are optional strings. A protocolVersion other than a dotted number, such as 1.0, is a warning.";

        // A2A
        A2aFieldMissing "a2a-field-missing" Fail Document "" Publisher false
            "A required member of the A2A card is missing."
            "The card's A2A version requires the member, so conforming readers reject the card. In A2A 1.0, null counts as missing.";
        A2aInterfaceMalformed "a2a-interface-malformed" Fail Document "" Publisher false
            "An interface of the A2A card is malformed."
            "An A2A 1.0 interface has the strings url, protocolBinding and protocolVersion; an entry of additionalInterfaces in 0.2 and 0.3 has url and transport.";
        A2aUrlMalformed "a2a-url-malformed" Fail Document "" Publisher false
            "A URL of the A2A card is not an absolute URI."
            "The endpoint and the URLs of documentation, icon and provider must be absolute URIs.";
        A2aProviderIncomplete "a2a-provider-incomplete" Fail Document "" Publisher false
            "The provider of the A2A card lacks its name or its address."
            "A provider needs both organization and url; otherwise leave it out.";
        A2aSkillIncomplete "a2a-skill-incomplete" Fail Document "" Publisher false
            "A skill of the A2A card is incomplete."
            "Each skill needs id, name, description and tags.";
        A2aSkillDuplicate "a2a-skill-duplicate" Warn Document "" Publisher false
            "Two skills of the A2A card have the same id."
            "Clients identify skills by their ids.";
        A2aExtensionMalformed "a2a-extension-malformed" Fail Document "" Publisher false
            "An extension of the A2A card is malformed."
            "An extension has a uri (required before 1.0), and optionally description, required and an object params.";
        A2aModeNotMediaType "a2a-mode-not-media-type" Warn Document "" Publisher false
            "A mode of the A2A card is not a media type."
            "Modes are media types such as text/plain or application/json. Clients that compare media types do not recognise values such as text.";
        A2aSecurityUnknown "a2a-security-unknown" Fail Document "" Publisher false
            "The A2A card demands a security scheme that it does not declare."
            "Each name in the security requirements must be declared in securitySchemes.";
        A2aSecurityMisnamed "a2a-security-misnamed" Fail Document "" Publisher false
            "A security member of the A2A 1.0 card does not have the name or form of 1.0."
            "Readers of A2A 1.0 ignore the member and call without credentials. Each of securitySchemes has exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme (with one flow), openIdConnectSecurityScheme and mtlsSecurityScheme. Each of securityRequirements has schemes, with a list of scopes per name. Use camelCase names, and location instead of in. The older name security causes only a warning.";
        A2aVersionMixed "a2a-version-mixed" Warn Document "" Publisher false
            "The A2A card of 1.0 has members of older versions."
            "supportedInterfaces makes this an A2A 1.0 card; only older clients read the older members. Make sure that both agree.";
        A2aProtocolVersionUnknown "a2a-protocol-version-unknown" Warn Document "" Publisher false
            "The A2A card states a protocol version that its card format does not define."
            "Before 1.0, protocolVersion is 0.2 or 0.3, optionally with a patch number; others are checked as 0.3. In 1.0, each of supportedInterfaces has a version without patch number: 1.0, not 1.0.0.";

        // Aevum
        AeFieldMissing "ae-field-missing" Fail Document "AE-1" Publisher false
            "A required member of the Aevum card is missing."
            "Every Aevum AgentCard needs agent_id, name, version, capabilities and endpoint.";
        AeAgentIdMalformed "ae-agent-id-malformed" Fail Document "AE-2" Publisher false
            "agent_id is not 26 characters of Crockford Base32."
            "agent_id is a ULID: 26 upper-case characters of 0 to 9 and A to Z without I, L, O and U. Make one with a ULID library.";
        AeAgentIdOverflow "ae-agent-id-overflow" Warn Document "AE-3" Publisher false
            "agent_id is more than 128 bits."
            "A ULID has 128 bits, so its first character is 0 to 7. ULID libraries reject or truncate this one.";
        AeNameLength "ae-name-length" Fail Document "AE-4" Publisher false
            "name does not have 1 to 128 characters."
            "name is a text of 1 to 128 characters.";
        AeVersionNotSemver "ae-version-not-semver" Fail Document "AE-5" Publisher false
            "The Aevum card's version is not a semantic version."
            "version must be a Semantic Version 2.0, such as 1.0.0 or 0.3.2-beta.1.";
        AeCapabilitiesEmpty "ae-capabilities-empty" Fail Document "AE-6" Publisher false
            "The Aevum card names no capability."
            "capabilities must have at least one entry.";
        AeCapabilityIncomplete "ae-capability-incomplete" Fail Document "AE-7" Publisher false
            "A capability lacks its id or its description."
            "Each capability needs an id and a description.";
        AeCapabilityIdMalformed "ae-capability-id-malformed" Fail Document "AE-8" Publisher false
            "A capability's id is not machine-readable."
            "The id has at most 128 letters, digits, dots, hyphens and underscores, and begins with a letter or digit. Lower case with a namespace (text.generate) is customary; anything else is only a warning.";
        AeDescriptionLength "ae-description-length" Fail Document "AE-9" Publisher false
            "A capability's description does not have 1 to 512 characters."
            "The description is a text of at most 512 characters.";
        AeTagsType "ae-tags-type" Fail Document "AE-10" Publisher false
            "A capability's tags are not a list of strings."
            "tags is a list of distinct strings.";
        AeIoSchemaInvalid "ae-io-schema-invalid" Fail Document "AE-11" Publisher false
            "A capability's input or output schema is not a JSON Schema."
            "input_schema and output_schema are null or a JSON Schema object, valid under JSON Schema 2020-12 unless $schema names another dialect. References are never fetched.";
        AeProtocolUnknown "ae-protocol-unknown" Fail Document "AE-12" Publisher false
            "endpoint.protocol is not one that Aevum 1.0 defines."
            "The protocol is one of http, websocket, sse, grpc, mcp, google_a2a and native. Readers of 1.0 do not support the protocols of later drafts.";
        AeUrlMalformed "ae-url-malformed" Fail Document "AE-13" Publisher false
            "A URL of the endpoint is not a URI."
            "endpoint.url, and health_url if present, must be absolute URIs (RFC 3986).";
        AeAuthUnknown "ae-auth-unknown" Fail Document "AE-14" Publisher false
            "endpoint.auth does not name a scheme that Aevum 1.0 defines."
            "auth is null or an object with scheme `none`, `bearer`, `api_key`, `oauth2` or `mtls`.";
        AeCostBelowLandauer "ae-cost-below-landauer" Fail Document "AE-15" Publisher false
            "base_cost_joules is below the Landauer floor."
            "Erasing one bit at 300 K takes at least 2.854e-21 J, so no request costs less. The specification sets this floor; the published schema only requires a non-negative number.";
        AePricingType "ae-pricing-type" Fail Document "AE-16" Publisher false
            "A member of pricing is of the wrong type, or negative."
            "base_cost_joules, estimated_latency_ms and cost_per_request are non-negative numbers, currency is a string; each may be null.";
        AePacrSelfDeclared "ae-pacr-self-declared" Warn Document "AE-17" Publisher false
            "The card's operator states figures that only the ledger can prove."
            "Members of metadata that begin with pacr: are computed from the causal ledger; in a served card they are unverified and decide nothing. `clresolve cards aevum metadata` computes them, and `clresolve lint --ledger` compares them.";
        AeReputationRange "ae-reputation-range" Fail Document "AE-18" Publisher false
            "pacr:reputation_score is not between 0 and 1."
            "The score is a number from 0 to 1.";
        AePacrDiffers "ae-pacr-differs" Fail Document "AE-30" Publisher false
            "A pacr: member differs from the ledger."
            "The given ledger yields another figure for the agent, or has no record of it; figures must agree to six digits. Write the ledger's figures into the card (clresolve cards aevum metadata --into), or name the right ledger.";
        AePacrType "ae-pacr-type" Warn Document "AE-30" Publisher false
            "A pacr: member has the wrong type or is out of range."
            "pacr:interaction_count is an integer of 0 or more; pacr:avg_latency_ms and pacr:avg_cost_joules are numbers of 0 or more; pacr:influence_rank and pacr:critical_score are numbers from 0 to 1.";
        AeCurrencyUnknown "ae-currency-unknown" Warn Document "AE-31" Publisher false
            "pricing.currency is neither a currency code nor a token symbol."
            "currency is an ISO 4217 code, such as USD, or a token symbol of 3 to 10 capital letters and digits that begins with a letter, such as USDC.";
        AeUnknownMember "ae-unknown-member" Warn Document "AE-22" Publisher false
            "Aevum 1.0 does not define this member."
            "A later version of the append-only schema may have added the member, or it is misspelled. Strict readers of 1.0 reject the card.";
        AeCardUnreachable "ae-card-unreachable" Unknown Discovery "AE-20" Publisher true
            "The host has no Aevum card at its well-known path."
            "Aevum cards are served at /.well-known/agent.json. That path gave no answer, an error, a redirect, or no JSON.";

        // MA²D
        AnNameMalformed "an-name-malformed" Fail Document "AN-1" Publisher false
            "The MA²D card's name is missing or malformed."
            "name has 1 to 50 lower-case letters, digits and hyphens.";
        AnVersionNotSemver "an-version-not-semver" Fail Document "AN-2" Publisher false
            "The MA²D card's version is not a semantic version."
            "version must be a semantic version X.Y.Z, optionally with a pre-release part.";
        AnDescriptionLength "an-description-length" Fail Document "AN-3" Publisher false
            "The description does not have 200 to 2000 characters."
            "Other agents choose by the description; it has 200 to 2000 characters (not bytes).";
        AnSkillsEmpty "an-skills-empty" Fail Document "AN-4" Publisher false
            "The MA²D card has no skill."
            "skills must have at least one entry.";
        AnSkillNameMalformed "an-skill-name-malformed" Fail Document "AN-5" Publisher false
            "A skill's name is missing or not snake_case."
            "A skill's name has lower-case letters, digits and underscores.";
        AnSkillDescriptionLength "an-skill-description-length" Fail Document "AN-6" Publisher false
            "A skill's description is missing or shorter than 50 characters."
            "Each skill needs a description of at least 50 characters.";
        AnProtocolUnknown "an-protocol-unknown" Fail Document "AN-7" Publisher false
            "invocation.protocol is missing or unknown."
            "The protocol is one of mcp, rest, grpc, graphql and websocket.";
        AnEndpointMalformed "an-endpoint-malformed" Fail Document "AN-8" Publisher false
            "invocation.endpoint is missing or is not an HTTP(S) URL."
            "The endpoint is a URL that begins with http:// or https:// and has a host, also for websocket.";
        AnAuthUnknown "an-auth-unknown" Fail Document "AN-9" Publisher false
            "invocation.authentication is of an unknown form."
            "The type is one of `none`, `bearer`, `api_key`, `oauth2`, `basic` and `mtls`. required is a boolean, false by default.";
        AnFormatUnknown "an-format-unknown" Fail Document "AN-10" Publisher false
            "invocation.format is of an unknown form."
            "The format is json-rpc, rest or graphql.";
        AnLanguageUnknown "an-language-unknown" Fail Document "AN-11" Publisher false
            "A language is not an ISO 639-1 code."
            "capabilities.languages holds ISO 639-1 codes, two lower-case letters without region: en, not EN or en-US.";
        AnInputModeUnknown "an-input-mode-unknown" Fail Document "AN-12" Publisher false
            "An input mode is unknown."
            "capabilities.input_modes may contain text, voice, image, video and file.";
        AnOutputModeUnknown "an-output-mode-unknown" Fail Document "AN-13" Publisher false
            "An output mode is unknown."
            "capabilities.output_modes may contain text, json, speech, image, video and file.";
        AnCapabilityType "an-capability-type" Fail Document "AN-14" Publisher false
            "A capability that must be a boolean is not one."
            "capabilities.streaming, async and state_management are booleans, false by default.";
        AnUrlMalformed "an-url-malformed" Fail Document "AN-15" Publisher false
            "homepage or repository is not an HTTP(S) URL."
            "homepage and repository are optional URLs that begin with http:// or https:// and have a host.";
        AnTimestampMalformed "an-timestamp-malformed" Fail Document "AN-16" Publisher false
            "A timestamp of the metadata is not ISO 8601."
            "metadata.created_at and updated_at are ISO 8601 dates, or date-times such as 2026-01-28T12:00:00Z.";
        AnExampleIncomplete "an-example-incomplete" Fail Document "AN-17" Publisher false
            "An example lacks its skill, input or output."
            "Each example needs skill (a string), input and output (objects).";
        AnExampleSkillUnknown "an-example-skill-unknown" Warn Document "AN-18" Publisher false
            "An example names a skill that the card does not have."
            "examples[].skill must be the name of one of the card's skills. Correct the example, or add the skill.";
        AnVersionNotRaised "an-version-not-raised" Warn Document "AN-21" Publisher false
            "The card changed, but its version was not raised as the change requires."
            "Raise the major version if a skill is gone or its parameters or the invocation changed, the minor version for a new skill, the patch version for anything else. In version 0 and pre-releases any higher version will do. Versions never go down.";
        AnMethodUnknown "an-method-unknown" Warn Document "AN-23" Publisher false
            "invocation.method is not a method of HTTP."
            "The method is GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE or PATCH in any case, POST by default. Anything but a string makes the card invalid. Correct it, or leave it out.";
        AnSkillDuplicate "an-skill-duplicate" Fail Document "AN-23" Publisher false
            "Two skills have the same name."
            "Skills are called by name, so each name must be unique. Rename one of the skills, or remove it.";
        AnCardUnreachable "an-card-unreachable" Unknown Discovery "AN-20" Publisher true
            "The host has no MA²D card where one was looked for."
            "MA²D cards are served at /.well-known/agent-card.json, or at a URL that ends in .json. That URL gave no answer, an error, a redirect, or no JSON.";
        AnContentType "an-content-type" Warn Discovery "AN-20" Publisher false
            "The card is not served as application/json."
            "Readers that rely on the content type may not recognise the card. Serve it as application/json.";
    } };
}

pub(super) use rows;
