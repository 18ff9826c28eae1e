//! Expectations about a trusted verdict.

use clap::Args;
use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_verdict::check::card::is_caip2;
use clresolve_verdict::verdict::{AgentIdentity, Verdict};

use super::hint;

/// What else must hold of a trusted verdict; else the exit code is 4.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Expectations (exit code 4 if a trusted name does not meet them)")]
pub(super) struct ExpectationArguments {
    /// The proven owner is this ENS name
    #[arg(long, value_name = "NAME", value_parser = parse_owner_name)]
    expect_owner: Option<String>,
    /// The card implements this verb
    #[arg(long, value_name = "VERB")]
    expect_verb: Option<String>,
    /// The card lists this network (CAIP-2, such as eip155:1)
    #[arg(long, value_name = "NETWORK", value_parser = parse_caip2_network)]
    expect_network: Option<String>,
    /// The card has this x402 entry
    #[arg(long, value_name = "ENTRY")]
    expect_entry: Option<String>,
    /// The card has this SHA-256
    #[arg(long, value_name = "HEX", value_parser = parse_sha256)]
    expect_sha256: Option<String>,
}

impl ExpectationArguments {
    /// A clause for each expectation that a trusted verdict does not meet. Empty for any other verdict.
    pub(super) fn unmet_expectations(&self, verdict: &Verdict) -> Vec<String> {
        if verdict.state != TrustState::Trusted {
            return Vec::new();
        }
        let identity = verdict.identity.as_ref();
        let wrong = [
            self.expect_owner.as_ref().and_then(|expected| wrong_owner_clause(expected, identity)),
            self.expect_verb.as_ref().and_then(|expected| wrong_verb_clause(expected, identity)),
            self.expect_network
                .as_ref()
                .and_then(|expected| missing_value_clause("network", expected, identity.map(|i| &i.networks))),
            self.expect_entry.as_ref().and_then(|expected| {
                mismatch_clause("entry", expected, identity.and_then(|i| i.entry.as_deref()).unwrap_or_default())
            }),
            self.expect_sha256.as_ref().and_then(|expected| {
                let observed = identity.map(|i| i.card.sha256.to_ascii_lowercase()).unwrap_or_default();
                mismatch_clause("card's SHA-256", expected, &observed)
            }),
        ];
        wrong.into_iter().flatten().collect()
    }
}

fn wrong_owner_clause(expected: &str, identity: Option<&AgentIdentity>) -> Option<String> {
    let Some(owner) = identity.and_then(|i| i.owner.as_ref()) else {
        return mismatch_clause("owner", expected, "");
    };
    if !owner.proven {
        return Some(format!(
            "its owner {} is not proven on the chain, where {} was expected",
            UntrustedText::new(&owner.name),
            UntrustedText::new(expected)
        ));
    }
    let observed = EnsName::parse(&owner.name).map_or_else(|_| owner.name.clone(), |name| name.as_str().to_owned());
    mismatch_clause("owner", expected, &observed)
}

fn wrong_verb_clause(expected: &str, identity: Option<&AgentIdentity>) -> Option<String> {
    let clause = missing_value_clause("verb", expected, identity.map(|i| &i.verbs))?;
    let verbs = identity.map(|i| i.verbs.as_slice()).unwrap_or_default();
    Some(match hint::hint_on_unknown_verb(expected, verbs) {
        Some(hint) => format!("{clause} ({hint})"),
        None => clause,
    })
}

fn missing_value_clause(what: &str, expected: &str, listed: Option<&Vec<String>>) -> Option<String> {
    let listed = listed.map(Vec::as_slice).unwrap_or_default();
    if listed.iter().any(|item| item == expected) { None } else { mismatch_clause(what, expected, &listed.join(", ")) }
}

fn mismatch_clause(what: &str, expected: &str, observed: &str) -> Option<String> {
    if expected == observed {
        return None;
    }
    let observed = if observed.is_empty() { "absent".to_owned() } else { UntrustedText::new(observed).to_string() };
    Some(format!("its {what} is {observed}, not {}", UntrustedText::new(expected)))
}

fn parse_owner_name(text: &str) -> Result<String, String> {
    EnsName::parse(text)
        .map(|name| name.as_str().to_owned())
        .map_err(|e| UntrustedText::new(&e.to_string()).to_string())
}

/// Parses a CAIP-2 identifier, so that a typing error is not reported as a defect of the agent.
pub(super) fn parse_caip2_network(text: &str) -> Result<String, String> {
    if is_caip2(text) {
        return Ok(text.to_owned());
    }
    Err("expected a CAIP-2 identifier, such as eip155:1".to_owned())
}

fn parse_sha256(text: &str) -> Result<String, String> {
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

    fn expecting(set: impl FnOnce(&mut ExpectationArguments)) -> ExpectationArguments {
        let mut args = ExpectationArguments::default();
        set(&mut args);
        args
    }

    #[test]
    fn a_trusted_verdict_meets_what_it_holds() {
        let args = ExpectationArguments {
            expect_owner: Some("commandlayer.eth".to_owned()),
            expect_verb: Some("summarize".to_owned()),
            expect_network: Some("eip155:1".to_owned()),
            expect_entry: Some("x402://summarizeagent.eth/summarize/v1".to_owned()),
            expect_sha256: Some(parse_sha256(&format!("sha256:{}", "AB".repeat(32))).unwrap()),
        };
        assert_eq!(args.unmet_expectations(&trusted()), Vec::<String>::new());
    }

    #[test]
    fn only_a_proven_owner_counts() {
        let args = expecting(|a| a.expect_owner = Some("commandlayer.eth".to_owned()));
        let mut verdict = trusted();
        verdict.identity.as_mut().unwrap().owner.as_mut().unwrap().proven = false;
        assert_eq!(
            args.unmet_expectations(&verdict),
            ["its owner commandlayer.eth is not proven on the chain, where commandlayer.eth was expected"]
        );
        verdict.identity.as_mut().unwrap().owner = None;
        assert_eq!(args.unmet_expectations(&verdict), ["its owner is absent, not commandlayer.eth"]);
    }

    #[test]
    fn each_unmet_expectation_is_named() {
        let args = ExpectationArguments {
            expect_owner: Some("other.eth".to_owned()),
            expect_verb: Some("translate".to_owned()),
            expect_network: Some("eip155:8453".to_owned()),
            expect_entry: Some("x402://summarizeagent.eth/summarize/v2".to_owned()),
            expect_sha256: Some("00".repeat(32)),
        };
        let unmet = args.unmet_expectations(&trusted());
        assert_eq!(unmet.len(), 5);
        assert_eq!(unmet[0], "its owner is commandlayer.eth, not other.eth");
        assert_eq!(unmet[1], "its verb is summarize, not translate");
        assert_eq!(unmet[2], "its network is eip155:1, not eip155:8453");
    }

    #[test]
    fn a_verb_that_was_nearly_typed_is_named() {
        let args = expecting(|a| a.expect_verb = Some("sumarize".to_owned()));
        assert_eq!(
            args.unmet_expectations(&trusted()),
            ["its verb is summarize, not sumarize (did you mean `summarize`?)"]
        );
    }

    #[test]
    fn another_state_speaks_for_itself() {
        let args = expecting(|a| a.expect_verb = Some("translate".to_owned()));
        assert!(args.unmet_expectations(&untrusted()).is_empty());
    }
}
