//! Renders the check of a seller: the conclusion, a row for each kind of evidence, the demand, and each reason.

use clresolve_core::text::capitalized;
use clresolve_payment::check::{CheckAnswer, EvidenceRow};
use clresolve_payment::decision::Outcome;
use maud::{Markup, html};

use super::html::{code, facts, foreign, section};
use super::walk::{self, Mark, headline};

/// The part of the page below the form. `reasons` shows the check's reasons.
pub(super) fn of(url: &str, check: &CheckAnswer, reasons: &Markup) -> Markup {
    let evidence = html! { p { "Rows are never added up to a score." } (facts(check.evidence.iter().map(row))) };
    html! {
        (hero(url, check))
        (section("evidence", "What proves who is paid", &evidence))
        (section("payee", "What it demands", &demand(check)))
        @if !check.reasons.is_empty() { section.reasons { (reasons) } }
        (walk::waiting())
    }
}

/// The headline. A decision has the colours of a state.
fn hero(url: &str, check: &CheckAnswer) -> Markup {
    let (class, mark) = match check.decision {
        Outcome::Allow => ("trusted", Mark::Pass),
        Outcome::Deny => ("untrusted", Mark::Fail),
        Outcome::Undecided => ("indeterminate", Mark::Unknown),
    };
    html! {
        section.hero.(class) aria-labelledby="state" {
            (headline(mark, &capitalized(check.decision.as_str()), url))
            p.summary { (foreign(&check.reason)) }
            p.advice {
                (if check.abort { "Do not pay." } else { "It may be paid." })
                " This check paid nothing. Only a guard checks the reply that you actually pay."
            }
        }
    }
}

fn row(row: &EvidenceRow) -> (&'static str, Option<Markup>) {
    let shown = html! {
        strong { (capitalized(row.state.as_str())) "." } " " (foreign(&row.detail))
        @if let Some(place) = &row.place { " " (code(place)) }
    };
    (row.kind.as_str(), Some(shown))
}

fn demand(check: &CheckAnswer) -> Markup {
    let price = check.price.as_ref();
    facts([
        ("Price", price.map(|price| code(&format!("{} of {}", price.amount, price.asset)))),
        ("Network", price.map(|price| code(price.network.as_str()))),
        ("Payee", check.payee.as_ref().map(|payee| code(&payee.address.to_string()))),
    ])
}
