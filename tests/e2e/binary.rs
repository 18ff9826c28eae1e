//! What a verdict of the binary says, as far as the tests compare it.

use std::collections::BTreeSet;

use serde_json::Value;

/// State and reasons of one name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    name: String,
    state: String,
    /// Effect and code of each reason.
    codes: BTreeSet<String>,
}

impl Finding {
    /// What is expected.
    pub(crate) fn new<'a>(name: &str, state: &str, codes: impl IntoIterator<Item = &'a str>) -> Self {
        let codes = codes.into_iter().map(str::to_owned).collect();
        Self { name: name.to_owned(), state: state.to_owned(), codes }
    }

    /// What a verdict says.
    pub(crate) fn of(verdict: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned();
        let reasons = verdict["reasons"].as_array().unwrap_or_else(|| panic!("no verdict: {verdict}"));
        let code = |reason: &Value| format!("{} {}", text(&reason["effect"]), text(&reason["code"]));
        Self {
            name: text(&verdict["name"]["normalized"]),
            state: text(&verdict["state"]),
            codes: reasons.iter().map(code).collect(),
        }
    }

    /// The exit code of a run that finds this alone. Of the three, 1 outweighs 3 and 3 outweighs 0.
    pub(crate) fn exit(&self) -> Exit {
        match self.state.as_str() {
            "trusted" => Exit::Trusted,
            "untrusted" => Exit::Untrusted,
            "indeterminate" => Exit::Indeterminate,
            other => panic!("no state: {other}"),
        }
    }
}

/// An exit code; of several names the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Trusted,
    Indeterminate,
    Untrusted,
    /// None that a verdict gives.
    Other(i32),
}

impl From<Option<i32>> for Exit {
    fn from(code: Option<i32>) -> Self {
        match code {
            Some(0) => Self::Trusted,
            Some(1) => Self::Untrusted,
            Some(3) => Self::Indeterminate,
            other => Self::Other(other.unwrap_or(-1)),
        }
    }
}
