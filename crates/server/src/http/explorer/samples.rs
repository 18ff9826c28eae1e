//! Renders the names of the sandbox as links, for the start page of a sandbox daemon.

use std::sync::LazyLock;

use clresolve_core::state::TrustState;
use clresolve_core::text::capitalize_first;
use clresolve_resolver::sandbox::Sandbox;
use maud::{Markup, html};

use super::html::{explorer_url, foreign_text};

/// The section. It is rendered once, because every sandbox of this version has the same names.
static SECTION: LazyLock<Markup> = LazyLock::new(|| {
    html! {
        section.samples aria-labelledby="samples" {
            h2 #samples { "This is a sandbox" }
            p { "Its names are samples. They prove nothing about real names. Try one:" }
            @for state in [TrustState::Trusted, TrustState::Untrusted, TrustState::Indeterminate] { (sandbox_names_in_state(state)) }
        }
    }
});

/// The names of the sandbox, grouped by expected state.
pub(super) fn sandbox_names_section() -> &'static Markup {
    &SECTION
}

/// The names that are expected to have this state.
fn sandbox_names_in_state(state: TrustState) -> Markup {
    let mut expected = Sandbox::expected_verdicts();
    expected.retain(|expected| expected.state == state);
    html! {
        // A newcomer should see good agents first.
        details open[state == TrustState::Trusted] {
            summary { (capitalize_first(state.as_str())) " (" (expected.len()) ")" }
            ul {
                @for sample in &expected {
                    @let (name, about) = (foreign_text(&sample.name), foreign_text(&sample.about));
                    li { a href=(explorer_url([("name", &*sample.name)])) { (name) } " " span.soft { (about) } }
                }
            }
        }
    }
}
