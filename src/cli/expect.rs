//! Expectations about a trusted verdict.

use clap::Args;
use clresolve_core::name::EnsName;
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_verdict::check::card::is_caip2;
use clresolve_verdict::verdict::{Identity, Verdict};

use super::hint;

/// What else must hold of a trusted verdict; else the exit code is 4.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Expectations (exit code 4 if a trusted name does not meet them)")]
pub(super) struct ExpectArgs {
    /// The proven owner is this ENS name
    #[arg(long, value_name = "NAME", value_parser = owner)]
    expect_owner: Option<String>,
    /// The card implements this verb
    #[arg(long, value_name = "VERB")]
    expect_verb: Option<String>,
    /// The card lists this network (CAIP-2, such as eip155:1)
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    expect_network: Option<String>,
    /// The card has this x402 entry
    #[arg(long, value_name = "ENTRY")]
    expect_entry: Option<String>,
    /// The card has this SHA-256
    #[arg(long, value_name = "HEX", value_parser = sha256)]
    expect_sha256: Option<String>,
}

impl ExpectArgs {
    /// A clause for each expectation that a trusted verdict does not meet. Empty for any other verdict.
    pub(super) fn unmet(&self, verdict: &Verdict) -> Vec<String> {
        if verdict.state != State::Trusted {
            return Vec::new();
        }
        let identity = verdict.identity.as_ref();
        let wrong = [
            self.expect_owner.as_ref().and_then(|expected| wrong_owner(expected, identity)),
            self.expect_verb.as_ref().and_then(|expected| wrong_verb(expected, identity)),
            self.expect_network
                .as_ref()
                .and_then(|expected| missing("network", expected, identity.map(|i| &i.networks))),
            self.expect_entry.as_ref().and_then(|expected| {
                differs("entry", expected, identity.and_then(|i| i.entry.as_deref()).unwrap_or_default())
            }),
            self.expect_sha256.as_ref().and_then(|expected| {
                let observed = identity.map(|i| i.card.sha256.to_ascii_lowercase()).unwrap_or_default();
                differs("card's SHA-256", expected, &observed)
            }),
        ];
        wrong.into_iter().flatten().collect()
    }
}

fn wrong_owner(expected: &str, identity: Option<&Identity>) -> Option<String> {
    let Some(owner) = identity.and_then(|i| i.owner.as_ref()) else {
        return differs("owner", expected, "");
    };
    if !owner.proven {
        return Some(format!(
            "its owner {} is not proven on the chain, where {} was expected",
            Foreign::new(&owner.name),
            Foreign::new(expected)
        ));
    }
    let observed = EnsName::parse(&owner.name).map_or_else(|_| owner.name.clone(), |name| name.as_str().to_owned());
    differs("owner", expected, &observed)
}

fn wrong_verb(expected: &str, identity: Option<&Identity>) -> Option<String> {
    let clause = missing("verb", expected, identity.map(|i| &i.verbs))?;
    let verbs = identity.map(|i| i.verbs.as_slice()).unwrap_or_default();
    Some(match hint::on_verb(expected, verbs) {
        Some(hint) => format!("{clause} ({hint})"),
        None => clause,
    })
}

fn missing(what: &str, expected: &str, listed: Option<&Vec<String>>) -> Option<String> {
    let listed = listed.map(Vec::as_slice).unwrap_or_default();
    if listed.iter().any(|item| item == expected) { None } else { differs(what, expected, &listed.join(", ")) }
}

fn differs(what: &str, expected: &str, observed: &str) -> Option<String> {
    if expected == observed {
        return None;
    }
    let observed = if observed.is_empty() { "absent".to_owned() } else { Foreign::new(observed).to_string() };
    Some(format!("its {what} is {observed}, not {}", Foreign::new(expected)))
}

fn owner(text: &str) -> Result<String, String> {
    EnsName::parse(text).map(|name| name.as_str().to_owned()).map_err(|e| Foreign::new(&e.to_string()).to_string())
}

/// Parses a CAIP-2 identifier, so that a typing error is not reported as a defect of the agent.
pub(super) fn network(text: &str) -> Result<String, String> {
    if is_caip2(text) {
        return Ok(text.to_owned());
    }
    Err("expected a CAIP-2 identifier, such as eip155:1".to_owned())
}

fn sha256(text: &str) -> Result<String, String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(hex.to_ascii_lowercase());
    }
    Err("expected 64 hex digits, with or without the prefix sha256:".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::tests::{trusted, untrusted};

    fn expecting(set: impl FnOnce(&mut ExpectArgs)) -> ExpectArgs {
        let mut args = ExpectArgs::default();
        set(&mut args);
        args
    }

    #[test]
    fn a_trusted_verdict_meets_what_it_holds() {
        let args = ExpectArgs {
            expect_owner: Some("commandlayer.eth".to_owned()),
            expect_verb: Some("summarize".to_owned()),
            expect_network: Some("eip155:1".to_owned()),
            expect_entry: Some("x402://summarizeagent.eth/summarize/v1".to_owned()),
            expect_sha256: Some(sha256(&format!("sha256:{}", "AB".repeat(32))).unwrap()),
        };
        assert_eq!(args.unmet(&trusted()), Vec::<String>::new());
    }

    #[test]
    fn only_a_proven_owner_counts() {
        let args = expecting(|a| a.expect_owner = Some("commandlayer.eth".to_owned()));
        let mut verdict = trusted();
        verdict.identity.as_mut().unwrap().owner.as_mut().unwrap().proven = false;
        assert_eq!(
            args.unmet(&verdict),
            ["its owner commandlayer.eth is not proven on the chain, where commandlayer.eth was expected"]
        );
        verdict.identity.as_mut().unwrap().owner = None;
        assert_eq!(args.unmet(&verdict), ["its owner is absent, not commandlayer.eth"]);
    }

    #[test]
    fn each_unmet_expectation_is_named() {
        let args = ExpectArgs {
            expect_owner: Some("other.eth".to_owned()),
            expect_verb: Some("translate".to_owned()),
            expect_network: Some("eip155:8453".to_owned()),
            expect_entry: Some("x402://summarizeagent.eth/summarize/v2".to_owned()),
            expect_sha256: Some("00".repeat(32)),
        };
        let unmet = args.unmet(&trusted());
        assert_eq!(unmet.len(), 5);
        assert_eq!(unmet[0], "its owner is commandlayer.eth, not other.eth");
        assert_eq!(unmet[1], "its verb is summarize, not translate");
        assert_eq!(unmet[2], "its network is eip155:1, not eip155:8453");
    }

    #[test]
    fn a_verb_that_was_nearly_typed_is_named() {
        let args = expecting(|a| a.expect_verb = Some("sumarize".to_owned()));
        assert_eq!(args.unmet(&trusted()), ["its verb is summarize, not sumarize (did you mean `summarize`?)"]);
    }

    #[test]
    fn another_state_speaks_for_itself() {
        let args = expecting(|a| a.expect_verb = Some("translate".to_owned()));
        assert!(args.unmet(&untrusted()).is_empty());
    }
}
