//! Rows of the registry: whether a request may be sent. These codes appear in request reports, never in a verdict.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        RequestSchemaInvalid "request-schema-invalid" Fail Request "CL-62" Asker false
            "The request is not what the agent's schema demands."
            "The request is held against the request schema that the agent's card binds: JSON Schema 2020-12, formats asserted. What it objects to is named with its place. A request is one JSON object in UTF-8 without a byte order mark, and its numbers are the same to all readers: beyond 2^53 with digits that a double does not have, or 1e400, they are not.";
        RequestDuplicateKey "request-duplicate-key" Fail Request "" Asker false
            "The request holds a member twice."
            "Most readers keep the last of two members of the same name, some keep the first, so the agent may read another request than the one that was checked. Remove one.";
        RequestVerbUnbound "request-verb-unbound" Fail Request "CL-62" Asker false
            "The agent's card binds no request schema for this verb."
            "A card binds the schemas of the first verb in implements, which is the one that its entry serves. The request cannot be held against anything: name that verb, or ask the agent that has yours first.";
        RequestTooComplex "request-too-complex" Unknown Request "" Asker false
            "The request is larger than what is judged."
            "A request is judged up to 256 KiB, 16 levels, 8192 values and 1 KiB for the name of a member, so that no request can exhaust the daemon. A schema may allow more: nothing is wrong that could be named, and nothing is checked. Split the request, or hand the content over by reference.";
        RequestIdMissing "request-id-missing" Warn Request "PC-8" Asker false
            "Nothing will tie the receipt to this request."
            "A receipt of line 1.0.0 repeats x402.request_id, and nothing else of the request. Without one an older receipt for the same verb could be shown instead. `clresolve request template` puts a fresh one in.";
    } };
}

pub(super) use rows;
