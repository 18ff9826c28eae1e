//! Values that shell completion offers, but that the parser does not require, since a configuration may add more.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clresolve_core::reason::{Code, Refusal};
use clresolve_resolver::config::{ProofDemand, parse_profile};
use clresolve_verdict::profile::Profiles;

use crate::cli::explain::guard;

/// A profile. Completion offers the built-in ones.
pub(super) fn profile() -> impl TypedValueParser<Value = String> {
    Suggesting { parse: parse_profile, known: profiles }
}

/// A grade of proof.
pub(super) fn proof() -> impl TypedValueParser<Value = ProofDemand> {
    Suggesting { parse: str::parse, known: grades }
}

/// A reason code, or a requirement of the checklist.
pub(super) fn code() -> impl TypedValueParser<Value = String> {
    Suggesting { parse: |text| Ok(text.to_owned()), known: codes }
}

fn profiles() -> Vec<String> {
    Profiles::builtin().iter().map(|profile| profile.id().to_owned()).collect()
}

fn grades() -> Vec<String> {
    let grades = [ProofDemand::SingleRpc, ProofDemand::Quorum, ProofDemand::StateProof, ProofDemand::ConsensusProof];
    grades.iter().map(ToString::to_string).collect()
}

fn codes() -> Vec<String> {
    let refusals = Refusal::ALL.iter().map(|refusal| refusal.slug());
    let others = refusals.chain(guard::CODES.iter().map(|code| code.code));
    Code::ALL.iter().map(|code| code.slug()).chain(others).map(str::to_owned).collect()
}

/// A value that `parse` accepts. Completion offers `known`.
#[derive(Clone, Copy)]
struct Suggesting<T> {
    parse: fn(&str) -> Result<T, String>,
    known: fn() -> Vec<String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Suggesting<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parse = self.parse;
        StringValueParser::new().try_map(move |text| parse(&text)).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.known)().into_iter().map(PossibleValue::new)))
    }
}
