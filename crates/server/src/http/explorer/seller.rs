//! Renders the check of a seller: the conclusion, a row for each kind of evidence, the demand, and each reason.

use clresolve_core::text::capitalized;
use clresolve_payment::check::{CheckAnswer, EvidenceRow};
use clresolve_payment::decision::Outcome;

use super::html::{code, fact, facts, foreign};
use super::walk::{self, Mark, sign};

/// The part of the page below the form. `reasons` is the HTML of the check's reasons.
pub(super) fn of(url: &str, check: &CheckAnswer, reasons: &str) -> String {
    let evidence: Vec<String> = check.evidence.iter().map(row).collect();
    [
        hero(url, check),
        facts("evidence", "What proves who is paid", "Rows are never added up to a score.", &evidence),
        facts("payee", "What it demands", "", &demand(check)),
        if reasons.is_empty() { String::new() } else { format!("<section class=\"reasons\">{reasons}</section>\n") },
        walk::waiting(),
    ]
    .concat()
}

/// The headline. A decision has the colours of a state.
fn hero(url: &str, check: &CheckAnswer) -> String {
    let (class, mark) = match check.decision {
        Outcome::Allow => ("trusted", Mark::Pass),
        Outcome::Deny => ("untrusted", Mark::Fail),
        Outcome::Undecided => ("indeterminate", Mark::Unknown),
    };
    let advice = if check.abort { "Do not pay." } else { "It may be paid." };
    format!(
        "<section class=\"hero {class}\" aria-labelledby=\"state\"><h2 id=\"state\"><span class=\"seal\">{sign}</span>\
         <span class=\"state\">{decision}</span> <span class=\"name\">{url}</span></h2><p class=\"summary\">{reason}</p>\
         <p class=\"advice\">{advice} Nothing was paid: only a guard judges the reply that is paid.</p></section>\n",
        sign = sign(mark),
        decision = capitalized(check.decision.as_str()),
        url = foreign(url),
        reason = foreign(&check.reason),
    )
}

fn row(row: &EvidenceRow) -> String {
    let state = capitalized(row.state.as_str());
    let place = row.place.as_deref().map_or_else(String::new, |place| format!(" {}", code(place)));
    fact(row.kind.as_str(), &format!("<strong>{state}.</strong> {}{place}", foreign(&row.detail)))
}

fn demand(check: &CheckAnswer) -> Vec<String> {
    let price = check.price.as_ref().map(|price| {
        [("Price", format!("{} of {}", price.amount, price.asset)), ("Network", price.network.as_str().to_owned())]
    });
    let payee = check.payee.as_ref().map(|payee| ("Payee", payee.address.to_string()));
    price.into_iter().flatten().chain(payee).map(|(label, value)| fact(label, &code(&value))).collect()
}
