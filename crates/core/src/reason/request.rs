//! Rows of the registry: whether a request may be sent. These codes appear in request reports, never in a verdict.

macro_rules! rows {
    ([$next:ident $($further:ident)*] $($before:tt)*) => { $next! { [$($further)*] $($before)*
        RequestSchemaInvalid "request-schema-invalid" Fail Request "CL-62" Asker false
            "The request is not what the agent's schema demands."
            "The request does not validate under the request schema that the agent's card binds (JSON Schema 2020-12, formats asserted). It must be one JSON object in UTF-8 without a byte order mark, without numbers that readers interpret differently: more digits than a double has beyond 2^53, or 1e400.";
        RequestDuplicateKey "request-duplicate-key" Fail Request "" Asker false
            "The request contains a member twice."
            "Some readers take the first value and some the last, so the agent may read another request than the checked one. Remove one.";
        RequestVerbUnbound "request-verb-unbound" Fail Request "CL-62" Asker false
            "The agent's card binds no request schema for this verb."
            "A card binds schemas only for its primary verb, the first in implements. Use that verb, or ask the agent whose primary verb is yours.";
        RequestTooComplex "request-too-complex" Unknown Request "" Asker false
            "The request is larger than what is judged."
            "Requests are checked up to 256 KiB, 16 levels, 8192 values and 1 KiB per member name; this one was not checked. Split it, or pass the content by reference.";
        RequestIdMissing "request-id-missing" Warn Request "PC-8" Asker false
            "Nothing will link the receipt to this request."
            "A receipt of line 1.0.0 repeats only x402.request_id, so without one an older receipt for the same verb could be shown. `clresolve request template` adds a fresh one.";
    } };
}

pub(super) use rows;
