//! Renders the check of a seller: the conclusion, a row for each kind of evidence, the demand, and each reason.

use clresolve_core::text::capitalize_first;
use clresolve_payment::check::{PayeeEvidenceRow, SellerCheckDocument};
use clresolve_payment::decision::DecisionOutcome;
use maud::{Markup, html};

use super::html::{fact_list, foreign_code, foreign_text, page_section};
use super::walk::{self, DiagramStageStatus, conclusion_heading};

/// The part of the page below the form. `reasons` shows the check's reasons.
pub(super) fn seller_section(url: &str, check: &SellerCheckDocument, reasons: &Markup) -> Markup {
    let evidence = html! { p { "Rows are never added up to a score." } (fact_list(check.evidence.iter().map(payee_evidence_fact))) };
    html! {
        (seller_headline(url, check))
        (page_section("evidence", "What proves who is paid", &evidence))
        (page_section("payee", "What it demands", &payment_demand_facts(check)))
        @if !check.reasons.is_empty() { section.reasons { (reasons) } }
        (walk::empty_diagram())
    }
}

/// The headline. A decision has the colours of a state.
fn seller_headline(url: &str, check: &SellerCheckDocument) -> Markup {
    let (class, mark) = match check.decision {
        DecisionOutcome::Allow => ("trusted", DiagramStageStatus::Pass),
        DecisionOutcome::Deny => ("untrusted", DiagramStageStatus::Fail),
        DecisionOutcome::Undecided => ("indeterminate", DiagramStageStatus::Unknown),
    };
    html! {
        section.hero.(class) aria-labelledby="state" {
            (conclusion_heading(mark, &capitalize_first(check.decision.as_str()), url))
            p.summary { (foreign_text(&check.reason)) }
            p.advice {
                (if check.abort { "Do not pay." } else { "It may be paid." })
                " This check paid nothing. Only a guard checks the reply that you actually pay."
            }
        }
    }
}

fn payee_evidence_fact(row: &PayeeEvidenceRow) -> (&'static str, Option<Markup>) {
    let shown = html! {
        strong { (capitalize_first(row.state.as_str())) "." } " " (foreign_text(&row.detail))
        @if let Some(place) = &row.place { " " (foreign_code(place)) }
    };
    (row.kind.as_str(), Some(shown))
}

fn payment_demand_facts(check: &SellerCheckDocument) -> Markup {
    let price = check.price.as_ref();
    fact_list([
        ("Price", price.map(|price| foreign_code(&format!("{} of {}", price.amount, price.asset)))),
        ("Network", price.map(|price| foreign_code(price.network.as_str()))),
        ("Payee", check.payee.as_ref().map(|payee| foreign_code(&payee.address.to_string()))),
    ])
}
