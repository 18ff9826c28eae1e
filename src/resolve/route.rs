//! Which URL an agent's entry stands for, as a document: `schemas/route.schema.json`.

use clresolve_payment::route::Route;
use serde::Serialize;

use crate::reason::Reason;
use crate::verdict::{State, Verdict};

/// The answer, for programs.
#[derive(Serialize)]
pub(crate) struct RouteAnswer<'a> {
    name: &'a str,
    verb: Option<&'a str>,
    state: State,
    route: Option<&'a Route>,
    /// Why there is none.
    reason: Option<&'a Reason>,
    verdict: &'a str,
}

impl<'a> RouteAnswer<'a> {
    pub(crate) fn new(
        name: &'a str,
        verb: Option<&'a str>,
        verdict: &'a Verdict,
        route: &'a Result<Route, Box<Reason>>,
    ) -> Self {
        Self {
            name,
            verb,
            state: verdict.state,
            route: route.as_ref().ok(),
            reason: route.as_ref().err().map(|reason| &**reason),
            verdict: &verdict.id,
        }
    }
}
