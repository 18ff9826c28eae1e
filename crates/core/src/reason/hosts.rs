//! Rows of the registry: cards that hosts serve, and the signatures of cards.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // the audited registry
        RegistryUnreachable "registry-unreachable" Unknown Discovery "" Asker true
            "The registry could not be read."
            "No host or gateway returned the registry's manifest or its descriptor. Audit again later, or give another location with --registry.";
        RegistryMalformed "registry-malformed" Fail Discovery "" Asker false
            "The registry is malformed."
            "The document is neither a registry manifest nor a descriptor that leads to one, is too long, or leads to a forbidden address. Its maintainer must correct it, or name another registry with --registry.";

        // discovery, for Orloj and for any system
        OrRootCardAbsent "or-root-card-absent" Warn Discovery "OR-4" Asker false
            "The host has no root card, so more than one system may be exposed there."
            "Orloj serves /.well-known/agent-card.json only while exactly one system is exposed. Name the system with --system.";
        OrCardUnreachable "or-card-unreachable" Unknown Discovery "OR-5" Publisher true
            "The host has no Orloj card where one was looked for."
            "Orloj serves a system's card at /v1/agent-systems/NAME/.well-known/agent-card.json, and as root card if it is the only system. Neither path returned a card.";
        OrDiscoveryCredentialed "or-discovery-credentialed" Warn Discovery "OR-6" Publisher false
            "The host demands credentials before it shows a card."
            "The host answered 401, 403 or 407. Discovery never sends credentials: open the path, or deliver the card in another way.";
        OrCardStale "or-card-stale" Warn Discovery "OR-15" Operator true
            "The card comes from a cache and is past its freshness."
            "The response's Age exceeds its max-age, so a cache served the card too long. It may be outdated.";
        DiscoveryAbsent "discovery-absent" Warn Discovery "" Publisher false
            "There is nothing at this path."
            "The host answered 404 or 410. No host has a card at every path, so this alone is not a defect.";
        DiscoveryContentType "discovery-content-type" Warn Discovery "" Publisher false
            "The host serves something other than JSON there."
            "The body is not JSON by its content type and does not parse, like a default page. It was not checked.";
        DiscoveryCardsDiffer "discovery-cards-differ" Warn Discovery "" Publisher false
            "The host serves different cards at different paths."
            "Each card was checked separately. Which one a client gets depends on the path: serve one card, or make sure that the difference is intended.";
        DiscoveryNoCard "discovery-no-card" Unknown Discovery "" Publisher true
            "No card was found where cards are looked for."
            "No path returned a card. The host may have none, serve it elsewhere, or be down.";
        DiscoveryNotBound "discovery-not-bound" Warn Discovery "" Publisher true
            "No name on ENS vouches for these bytes."
            "No CommandLayer card was found, its name is not trusted, or the name's proven card has other bytes. Only the host vouches for this card.";

        // the signatures of a card, and the verifier's trust roots
        SignatureMissing "signature-missing" Fail Signature "" Publisher false
            "The card is not signed."
            "The card has no signatures, so its origin is unproven. The publisher can sign it with `clresolve signature sign`.";
        SignatureMalformed "signature-malformed" Fail Signature "" Publisher false
            "A signature does not have the form of one."
            "Each entry of signatures needs protected and signature in base64url, and may have an object header. The protected header is one JSON object with alg; no member may be in both headers (RFC 7515, 7.2.1). A card has at most 16 signatures.";
        SignatureAlgorithmRefused "signature-algorithm-refused" Fail Signature "" Publisher false
            "A signature uses an algorithm that is not accepted."
            "alg must be EdDSA (Ed25519), ES256 or RS256; none and HS256 are never accepted. Sign again with one of the three.";
        SignatureHeaderRefused "signature-header-refused" Fail Signature "" Publisher false
            "A signature's header has a member or value that is not accepted."
            "crit and b64 are not supported, and typ, if present, must be JOSE or agent-card+jws. Sign again without them.";
        SignatureKeyUnknown "signature-key-unknown" Fail Signature "" Publisher false
            "No named root has the key of a signature."
            "No root that you named has the key in kid. Key locations in the card itself (jku, jwk, x5u, x5c) are ignored, because a forger can set them. Name the root with the key, or ask the publisher which key signed.";
        SignatureKeyUnfit "signature-key-unfit" Fail Signature "" Publisher false
            "The key of a signature is not one for its algorithm."
            "The root has the key, but its type, algorithm or use does not match alg.";
        SignatureKeyWeak "signature-key-weak" Fail Signature "" Publisher false
            "The key of a signature is too weak."
            "The key is not a point of its curve, has small order, or is an RSA key outside of 2048 to 4096 bits or with an exponent other than 65537. The publisher must make a new key.";
        SignatureInvalid "signature-invalid" Fail Signature "" Publisher false
            "A signature is invalid."
            "The card was changed after signing, the signature belongs to another card, or the signer used another canonical form. Signed is the card without signatures in RFC 8785 form; in A2A 1.0, members at their default value are omitted unless required or explicitly optional.";
        SignaturePayloadRefused "signature-payload-refused" Fail Signature "" Publisher false
            "The card has no canonical form."
            "RFC 8785 cannot represent an integer beyond 2^53 - 1 exactly. Write such a number as a string.";
        SignatureRootUnavailable "signature-root-unavailable" Unknown Signature "" Operator true
            "A trust root could not be read."
            "The JWKS URL, the DID document or the chain gave no reliable answer. A key on ENS also needs several operators' endpoints, or your own node. Ask again.";
        SignatureRootUnusable "signature-root-unusable" Fail Signature "" Operator false
            "A trust root contains no usable keys."
            "The root is not a JSON Web Key Set, not that DID's document, or not a cl.sig.pub record of the form ed25519:BASE64; or it holds a private key; or the record is not set. Name another root, or contact its operator.";
    } };
}

pub(super) use rows;
