//! Decides whether a receipt is about a request (PC-8), by what it repeats of the call. Uses only signed content.

use clresolve_core::call::{REQUEST_ID, VERB, VERSION};
use clresolve_core::reason::{Code, Effect, Reason};

use crate::receipt::canonical::{MemberOrder, form};
use crate::receipt::family::Claim;
use crate::receipt::json::Node;

/// The x402 entry of a request.
const ENTRY: &str = "/x402/entry";

/// The identifier that families with their own trace envelope repeat. It is optional in requests of line 1.0.0.
const TRACE_ID: &str = "/trace/trace_id";

/// How a receipt is tied to its request, from weakest to strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tie {
    /// By the input alone, which other requests may share.
    Input,
    /// By the trace identifier, which other requests may share.
    Trace,
    /// By the request's own identifier.
    RequestId,
}

impl Tie {
    /// What the receipt is proven to be about, as text.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Input => "a request with this input",
            Self::Trace => "a request of this trace",
            Self::RequestId => "this request",
        }
    }
}

/// The parts of a request that the signed content repeats.
pub(crate) struct Echo {
    /// The request's value of the last repeated part.
    pub(crate) asked: String,
    /// The receipt's statement of that part.
    pub(crate) claim: Claim,
    /// The strongest tie among the repeated parts.
    pub(crate) tie: Tie,
}

/// Finds the parts of the request that the signed content repeats.
///
/// # Errors
/// `receipt-request-mismatch` if the receipt contradicts the request; `receipt-trace-not-echoed` if it does not
/// identify the request.
pub(crate) fn of(content: &Node, request: &Node) -> Result<Echo, Box<Reason>> {
    same_call(content, request)?;
    let input = input(content, request)?.map(|place| Claim { place: place.to_owned(), value: None });
    let asked = || "the input of the request".to_owned();
    let mut echoed = input.map(|claim| Echo { asked: asked(), claim, tie: Tie::Input });
    for (by, asked, claim) in identifiers(content, request) {
        if claim.value.as_ref() != Some(&asked) && !clresolve_core::mutant!("receipts-of-any-request") {
            return Err(differs(Code::ReceiptTraceNotEchoed, &asked, &claim));
        }
        let tie = echoed.map_or(by, |echo| echo.tie.max(by));
        echoed = Some(Echo { asked, claim, tie });
    }
    echoed.ok_or_else(untied)
}

pub(crate) fn is_identified(request: &Node) -> bool {
    REQUEST_ID.iter().any(|place| request.at(&path(place)).is_some())
}

/// Checks that both describe the same call. The verb may be at different places; entry and version are compared at the
/// same place.
fn same_call(content: &Node, request: &Node) -> Result<(), Box<Reason>> {
    let verbs = VERB.into_iter().flat_map(|asked| VERB.map(|stated| (asked, stated)));
    let others = VERSION.into_iter().chain([ENTRY]).map(|place| (place, place));
    for (asked, stated) in verbs.chain(others) {
        let (asked, stated) = (stated_at(request, asked).value, stated_at(content, stated));
        if let (Some(asked), Some(value)) = (&asked, &stated.value)
            && asked != value
            && !clresolve_core::mutant!("receipts-of-any-call")
        {
            return Err(differs(Code::ReceiptRequestMismatch, asked, &stated));
        }
    }
    Ok(())
}

/// Each identifier of the request, with every place at which the signed content repeats it or should. A family without
/// a trace envelope has no such place.
fn identifiers(content: &Node, request: &Node) -> Vec<(Tie, String, Claim)> {
    let asked = |places: &[&str]| places.iter().find_map(|place| stated_at(request, place).value);
    let mut found = Vec::new();
    if let Some(id) = asked(&REQUEST_ID) {
        let all = REQUEST_ID.map(|place| stated_at(content, place));
        let [envelope, _] = &all;
        let is_due = content.get("x402").is_some() && all.iter().all(|claim| claim.value.is_none());
        let due = is_due.then(|| envelope.clone());
        let stated = all.into_iter().filter(|claim| claim.value.is_some()).chain(due);
        found.extend(stated.map(|claim| (Tie::RequestId, id.clone(), claim)));
    }
    if let Some(id) = asked(&[TRACE_ID]).filter(|_| content.get("trace").is_some()) {
        found.push((Tie::Trace, id, stated_at(content, TRACE_ID)));
    }
    found
}

/// The value at a place defined by [`clresolve_core::call`].
pub(crate) fn stated_at(node: &Node, place: &str) -> Claim {
    Claim { place: place.to_owned(), value: node.text_at(&path(place)).map(str::to_owned) }
}

fn path(place: &str) -> Vec<&str> {
    place.split('/').skip(1).collect()
}

/// The reason for a receipt that repeats nothing of the request. It is undecided, because nothing contradicts the
/// request either.
pub(crate) fn untied() -> Box<Reason> {
    let reason = Reason { effect: Effect::Unknown, ..Reason::new(Code::ReceiptTraceNotEchoed) };
    let reason = reason.message("Nothing that is signed ties the receipt to the request.");
    Box::new(reason.expected("x402.request_id in both").observed("none"))
}

/// The place of the input in the signed content: `input` of the agent SDK, or `payload` of runtime-core. Its value must
/// equal the request's member of that name, the request's `input`, or the whole request.
fn input(content: &Node, request: &Node) -> Result<Option<&'static str>, Box<Reason>> {
    for (name, place) in [("input", "/input"), ("payload", "/payload")] {
        let Some(stated) = content.get(name) else { continue };
        let asked = request.get(name).or_else(|| request.get("input")).unwrap_or(request);
        if !is_same(asked, stated) && !is_same(request, stated) {
            let reason = Reason::new(Code::ReceiptRequestMismatch).at(place);
            return Err(Box::new(reason.expected("the input of the request").observed("another one")));
        }
        return Ok(Some(place));
    }
    Ok(None)
}

/// Whether two values are the same JSON value. Numbers that cannot be represented exactly are never equal.
fn is_same(one: &Node, other: &Node) -> bool {
    let one = form(one, MemberOrder::Sorted);
    one.is_ok() && one == form(other, MemberOrder::Sorted)
}

fn differs(code: Code, expected: &str, claim: &Claim) -> Box<Reason> {
    let observed = claim.value.as_deref().unwrap_or("nothing");
    Box::new(Reason::new(code).expected(expected).observed(observed).at(claim.place.as_str()))
}
