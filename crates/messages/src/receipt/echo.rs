//! Decides whether a receipt is about a request (PC-8), by comparing the parts of the call that the receipt repeats.
//! Uses only signed content.

use clresolve_core::call::{REQUEST_ID, VERB, VERSION};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};

use crate::receipt::canonical::{JsonMemberOrder, canonical_bytes};
use crate::receipt::family::ReceiptClaim;
use crate::receipt::json::JsonNode;

/// The x402 entry of a request.
const ENTRY: &str = "/x402/entry";

/// The trace identifier, which receipts of families with their own trace envelope repeat. Requests of line 1.0.0 may
/// omit it.
const TRACE_ID: &str = "/trace/trace_id";

/// How a receipt is tied to its request, from weakest to strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestMatchStrength {
    /// By the input alone, which other requests may share.
    Input,
    /// By the trace identifier, which other requests may share.
    Trace,
    /// By the request's own identifier.
    RequestId,
}

impl RequestMatchStrength {
    /// What the receipt is proven to be about, as text.
    pub const fn match_description(self) -> &'static str {
        match self {
            Self::Input => "a request with this input",
            Self::Trace => "a request of this trace",
            Self::RequestId => "this request",
        }
    }
}

/// The parts of a request that the signed content repeats.
pub(crate) struct RequestEcho {
    /// The value in the request of the last part that the receipt repeats.
    pub(crate) asked: String,
    /// The place and value of that part in the receipt.
    pub(crate) claim: ReceiptClaim,
    /// The strongest tie among the repeated parts.
    pub(crate) tie: RequestMatchStrength,
}

/// Finds the parts of the request that the signed content repeats.
///
/// # Errors
/// `receipt-request-mismatch` if the receipt contradicts the request; `receipt-trace-not-echoed` if it does not
/// identify the request.
pub(crate) fn find_echo(content: &JsonNode, request: &JsonNode) -> Result<RequestEcho, Box<Reason>> {
    check_same_call(content, request)?;
    let input =
        find_matching_input(content, request)?.map(|place| ReceiptClaim { place: place.to_owned(), value: None });
    let asked = || "the input of the request".to_owned();
    let mut echoed = input.map(|claim| RequestEcho { asked: asked(), claim, tie: RequestMatchStrength::Input });
    for (by, asked, claim) in request_identifier_claims(content, request) {
        if claim.value.as_ref() != Some(&asked) && !clresolve_core::mutant!("receipts-of-any-request") {
            return Err(claim_mismatch_reason(ReasonCode::ReceiptTraceNotEchoed, &asked, &claim));
        }
        let tie = echoed.map_or(by, |echo| echo.tie.max(by));
        echoed = Some(RequestEcho { asked, claim, tie });
    }
    echoed.ok_or_else(untied_receipt_reason)
}

pub(crate) fn has_request_id(request: &JsonNode) -> bool {
    REQUEST_ID.iter().any(|place| request.get_path(&pointer_segments(place)).is_some())
}

/// Checks that receipt and request do not contradict each other about the call. The verb is compared even if the two
/// have it at different places. Entry and version are compared only at the same place.
fn check_same_call(content: &JsonNode, request: &JsonNode) -> Result<(), Box<Reason>> {
    let verbs = VERB.into_iter().flat_map(|asked| VERB.map(|stated| (asked, stated)));
    let others = VERSION.into_iter().chain([ENTRY]).map(|place| (place, place));
    for (asked, stated) in verbs.chain(others) {
        let (asked, stated) = (claim_at_pointer(request, asked).value, claim_at_pointer(content, stated));
        if let (Some(asked), Some(value)) = (&asked, &stated.value)
            && asked != value
            && !clresolve_core::mutant!("receipts-of-any-call")
        {
            return Err(claim_mismatch_reason(ReasonCode::ReceiptRequestMismatch, asked, &stated));
        }
    }
    Ok(())
}

/// Each identifier of the request, with every place where the signed content repeats it, or must repeat it but does
/// not. Content without `x402` need not repeat the request's own identifier, and content without `trace` need not
/// repeat the trace identifier.
fn request_identifier_claims(
    content: &JsonNode,
    request: &JsonNode,
) -> Vec<(RequestMatchStrength, String, ReceiptClaim)> {
    let asked = |places: &[&str]| places.iter().find_map(|place| claim_at_pointer(request, place).value);
    let mut found = Vec::new();
    if let Some(id) = asked(&REQUEST_ID) {
        let all = REQUEST_ID.map(|place| claim_at_pointer(content, place));
        let [envelope, _] = &all;
        let is_due = content.get("x402").is_some() && all.iter().all(|claim| claim.value.is_none());
        let due = is_due.then(|| envelope.clone());
        let stated = all.into_iter().filter(|claim| claim.value.is_some()).chain(due);
        found.extend(stated.map(|claim| (RequestMatchStrength::RequestId, id.clone(), claim)));
    }
    if let Some(id) = asked(&[TRACE_ID]).filter(|_| content.get("trace").is_some()) {
        found.push((RequestMatchStrength::Trace, id, claim_at_pointer(content, TRACE_ID)));
    }
    found
}

/// The value at a place defined by [`clresolve_core::call`].
pub(crate) fn claim_at_pointer(node: &JsonNode, place: &str) -> ReceiptClaim {
    ReceiptClaim { place: place.to_owned(), value: node.text_at(&pointer_segments(place)).map(str::to_owned) }
}

fn pointer_segments(place: &str) -> Vec<&str> {
    place.split('/').skip(1).collect()
}

/// The reason for a receipt that repeats nothing of the request. Its effect is [`ReasonEffect::Unknown`], because the
/// receipt does not contradict the request either.
pub(crate) fn untied_receipt_reason() -> Box<Reason> {
    let reason = Reason { effect: ReasonEffect::Unknown, ..Reason::new(ReasonCode::ReceiptTraceNotEchoed) };
    let reason = reason.message("Nothing that is signed ties the receipt to the request.");
    Box::new(reason.expected("x402.request_id in both").observed("none"))
}

/// The place of the input in the signed content: `input` of the agent SDK, or `payload` of runtime-core. Its value must
/// equal the request's member of that name, the request's `input`, or the whole request.
fn find_matching_input(content: &JsonNode, request: &JsonNode) -> Result<Option<&'static str>, Box<Reason>> {
    for (name, place) in [("input", "/input"), ("payload", "/payload")] {
        let Some(stated) = content.get(name) else { continue };
        let asked = request.get(name).or_else(|| request.get("input")).unwrap_or(request);
        if !is_same_json(asked, stated) && !is_same_json(request, stated) {
            let reason = Reason::new(ReasonCode::ReceiptRequestMismatch).at_place(place);
            return Err(Box::new(reason.expected("the input of the request").observed("another one")));
        }
        return Ok(Some(place));
    }
    Ok(None)
}

/// Whether two values are the same JSON value. Numbers that cannot be represented exactly are never equal.
fn is_same_json(one: &JsonNode, other: &JsonNode) -> bool {
    let one = canonical_bytes(one, JsonMemberOrder::Sorted);
    one.is_ok() && one == canonical_bytes(other, JsonMemberOrder::Sorted)
}

fn claim_mismatch_reason(code: ReasonCode, expected: &str, claim: &ReceiptClaim) -> Box<Reason> {
    let observed = claim.value.as_deref().unwrap_or("nothing");
    Box::new(Reason::new(code).expected(expected).observed(observed).at_place(claim.place.as_str()))
}
