//! Rows of the registry: cards that hosts serve, and the signatures of cards.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        // the audited registry
        RegistryUnreachable "registry-unreachable" Unknown Discovery "" Asker true
            "The registry could not be asked."
            "The host of the manifest, or of the descriptor that leads to it, gave no usable answer, or no gateway has it. Which names it lists is not known, and nothing is said against it. Audit again later, or name another place of its manifest with --registry.";
        RegistryMalformed "registry-malformed" Fail Discovery "" Asker false
            "The registry is malformed."
            "The document is neither a manifest of a registry nor a descriptor that leads to one, it is too long, or it leads to what must not be asked. So no name is taken from it. Its keeper has to correct it, or another registry is named with --registry.";

        // discovery, for Orloj and for any system
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

        // the signatures of a card, and the verifier's trust roots
        SignatureMissing "signature-missing" Fail Signature "" Publisher false
            "The card is not signed."
            "The card has no member signatures, or an empty one. An unsigned card may be honest, but its origin is not shown. The publisher can sign it, for instance with `clresolve signature sign`.";
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
            "The key is no point of its curve or one of small order, or an RSA key below 2048 or above 4096 bits or with another exponent than 65537, which is what issuers use. What it signed is not looked at. The publisher must make a new key.";
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
    } };
}

pub(super) use rows;
