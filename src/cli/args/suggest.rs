//! Values that shell completion offers. Only those of [`named_value_parser`] are required: a configuration may add more
//! of the others.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clresolve_core::reason::{ReasonCode, RefusalCode};
use clresolve_resolver::config::{ChainProofMode, parse_profile};
use clresolve_verdict::profile::ConformanceProfiles;

use crate::cli::explain::guard;

/// A profile. Completion offers the built-in ones.
pub(super) fn conformance_profile_parser() -> impl TypedValueParser<Value = String> {
    SuggestingValueParser { parse: parse_profile, known: conformance_profile_suggestions }
}

/// A grade of proof.
pub(super) fn proof_demand_parser() -> impl TypedValueParser<Value = ChainProofMode> {
    SuggestingValueParser { parse: str::parse, known: proof_demand_suggestions }
}

/// A reason code, or a requirement of the checklist.
pub(super) fn reason_code_parser() -> impl TypedValueParser<Value = String> {
    SuggestingValueParser { parse: |text| Ok(text.to_owned()), known: reason_code_suggestions }
}

/// The value of one of the rows, each of which has a value, its name and its help.
pub(super) fn named_value_parser<T: Copy + Send + Sync>(
    rows: &'static [(T, &'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(rows.iter().map(|(_, name, help)| PossibleValue::new(name).help(*help)));
    names.map(|text| rows.iter().find(|(_, name, _)| *name == text).expect("the name of a row").0)
}

fn conformance_profile_suggestions() -> Vec<String> {
    ConformanceProfiles::builtin().iter().map(|profile| profile.id().to_owned()).collect()
}

fn proof_demand_suggestions() -> Vec<String> {
    let grades =
        [ChainProofMode::SingleRpc, ChainProofMode::Quorum, ChainProofMode::StateProof, ChainProofMode::ConsensusProof];
    grades.iter().map(ToString::to_string).collect()
}

fn reason_code_suggestions() -> Vec<String> {
    let refusals = RefusalCode::ALL.iter().map(|refusal| refusal.slug());
    let others = refusals.chain(guard::CODES.iter().map(|code| code.code));
    ReasonCode::ALL.iter().map(|code| code.slug()).chain(others).map(str::to_owned).collect()
}

/// A value that `parse` accepts. Completion offers `known`.
#[derive(Clone, Copy)]
struct SuggestingValueParser<T> {
    parse: fn(&str) -> Result<T, String>,
    known: fn() -> Vec<String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for SuggestingValueParser<T> {
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
