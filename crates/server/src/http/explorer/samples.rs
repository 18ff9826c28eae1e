//! Renders the names of the sandbox as links, for the start page of a sandbox daemon.

use std::sync::LazyLock;

use clresolve_core::state::State;
use clresolve_core::text::capitalized;
use clresolve_resolver::sandbox::Sandbox;
use maud::{Markup, html};

use super::html::{foreign, link};

/// The section. It is rendered once, because every sandbox of this version has the same names.
static SECTION: LazyLock<Markup> = LazyLock::new(|| {
    html! {
        section.samples aria-labelledby="samples" {
            h2 #samples { "This is a sandbox" }
            p { "Its names are samples. They prove nothing about real names. Try one:" }
            @for state in [State::Trusted, State::Untrusted, State::Indeterminate] { (samples_in(state)) }
        }
    }
});

/// The names of the sandbox, grouped by expected state.
pub(super) fn section() -> &'static Markup {
    &SECTION
}

/// The names that are expected to have this state.
fn samples_in(state: State) -> Markup {
    let mut expected = Sandbox::expected();
    expected.retain(|expected| expected.state == state);
    html! {
        // A newcomer should see good agents first.
        details open[state == State::Trusted] {
            summary { (capitalized(state.as_str())) " (" (expected.len()) ")" }
            ul {
                @for sample in &expected {
                    @let (name, about) = (foreign(&sample.name), foreign(&sample.about));
                    li { a href=(link([("name", &*sample.name)])) { (name) } " " span.soft { (about) } }
                }
            }
        }
    }
}
