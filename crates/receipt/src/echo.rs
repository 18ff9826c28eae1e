//! Whether a receipt is about a request: PC-8, and what it repeats of the call. It reads what the signature covers alone.

use clresolve_core::reason::{Code, Effect, Reason};

use crate::canonical::{Order, form};
use crate::family::Claim;
use crate::json::Node;

/// What a request says of itself in `x402`, and a receipt repeats.
const CALL: [[&str; 2]; 3] = [["x402", "verb"], ["x402", "version"], ["x402", "entry"]];

/// The identifiers of a request. A request of line 1.0.0 may carry no `trace`.
const IDENTIFIERS: [[&str; 2]; 2] = [["x402", "request_id"], ["trace", "trace_id"]];

/// The place where the signed content repeats the request.
///
/// # Errors
/// `receipt-request-mismatch` where it says something else, `receipt-trace-not-echoed` where it does not say which
/// request it is about.
pub(crate) fn of(content: &Node, request: &Node) -> Result<Claim, Box<Reason>> {
    for path in CALL {
        let (asked, stated) = (request.text_at(&path), Claim::at(content, &path));
        if let (Some(asked), Some(value)) = (&asked, &stated.value)
            && asked != value
        {
            return Err(differs(Code::ReceiptRequestMismatch, asked, &stated));
        }
    }
    let mut echoed = input(content, request)?.map(|place| Claim { place: place.to_owned(), value: None });
    // A family without the envelope has no place for its identifier.
    for path in IDENTIFIERS.into_iter().filter(|path| content.get(path[0]).is_some()) {
        let Some(asked) = request.text_at(&path) else { continue };
        let stated = Claim::at(content, &path);
        if stated.value.as_ref() != Some(&asked) && !clresolve_core::mutant!("receipts-of-any-request") {
            return Err(differs(Code::ReceiptTraceNotEchoed, &asked, &stated));
        }
        echoed = Some(stated);
    }
    echoed.ok_or_else(|| {
        // Nothing contradicts the request either.
        let reason = Reason { effect: Effect::Unknown, ..Reason::new(Code::ReceiptTraceNotEchoed) };
        let reason = reason.message("Nothing that is signed ties the receipt to the request.");
        Box::new(reason.expected("x402.request_id in both").observed("none"))
    })
}

/// The place of the input, where the signed content has it: `input` of the agent SDK, `payload` of runtime-core. It equals
/// that member of the request, or `input`, or the request whole.
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

/// Whether two values are the same JSON value; numbers that cannot be told apart are not.
fn is_same(one: &Node, other: &Node) -> bool {
    let one = form(one, Order::Sorted);
    one.is_ok() && one == form(other, Order::Sorted)
}

fn differs(code: Code, expected: &str, claim: &Claim) -> Box<Reason> {
    let observed = claim.value.as_deref().unwrap_or("nothing");
    Box::new(Reason::new(code).expected(expected).observed(observed).at(claim.place.as_str()))
}
