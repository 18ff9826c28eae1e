//! Renders the names of the sandbox as links, for the start page of a sandbox daemon.

use std::sync::LazyLock;

use clresolve_core::state::State;
use clresolve_core::text::capitalized;
use clresolve_resolver::sandbox::Sandbox;

use super::html::{foreign, link};

/// The section. It is rendered once, because every sandbox of this version has the same names.
static SECTION: LazyLock<String> = LazyLock::new(|| {
    let lists: String = [State::Trusted, State::Untrusted, State::Indeterminate].into_iter().map(samples_in).collect();
    format!(
        "<section class=\"samples\" aria-labelledby=\"samples\"><h2 id=\"samples\">This is a sandbox</h2>\n\
         <p>Its names are samples. They prove nothing about real names. Try one:</p>\n{lists}</section>\n"
    )
});

/// The names of the sandbox, grouped by expected state.
pub(super) fn section() -> &'static str {
    &SECTION
}

/// The names that are expected to have this state, as HTML.
fn samples_in(state: State) -> String {
    let expected = Sandbox::expected().into_iter().filter(|expected| expected.state == state);
    let rows: Vec<String> = expected
        .map(|expected| {
            let (target, name) = (link([("name", &*expected.name)]), foreign(&expected.name));
            format!(
                "<li><a href=\"{target}\">{name}</a> <span class=\"soft\">{}</span></li>\n",
                foreign(&expected.about)
            )
        })
        .collect();
    // A newcomer should see good agents first.
    let open = if state == State::Trusted { " open" } else { "" };
    let (title, count) = (capitalized(state.as_str()), rows.len());
    format!("<details{open}><summary>{title} ({count})</summary>\n<ul>\n{}</ul></details>\n", rows.concat())
}
