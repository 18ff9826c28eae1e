//! Compares a verdict with what a scenario expects. It works on the JSON, so that library and binary are judged alike.

use std::collections::BTreeSet;

use clresolve_core::reason::{ReasonCode, ResolutionStep};
use clresolve_verdict::incident::SecurityIncident;
use clresolve_verdict::verdict::Verdict;
use serde_json::Value;

use super::scenario::Ask;

/// Everything that is wrong with `verdict`.
pub(crate) fn problems(ask: &Ask, verdict: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |what: &str, expected: &Value, found: &Value| {
        if expected != found {
            wrong.push(format!("{what}: expected {expected}, found {found}"));
        }
    };
    let at = |pointer: &str| verdict.pointer(pointer).unwrap_or(&Value::Null);
    expect("state", &json(ask.state), at("/state"));
    let codes: BTreeSet<&str> = ask.codes.iter().map(|code| code.slug()).collect();
    expect("codes", &json(codes), &json(codes_of(verdict)));
    expect("near misses", &json(&ask.near_misses), at("/profile/near_misses"));
    for (pointer, value) in &ask.evidence {
        expect(pointer, value, at(pointer));
    }
    for pointer in &ask.absent {
        expect(pointer, &Value::Null, at(pointer));
    }
    for (step, status) in &ask.steps {
        expect(&format!("step {step}"), &json(status), step_of(verdict, step));
    }
    for (code, places) in &ask.places {
        expect(&format!("places of {code}"), &json(places), &json(places_of(verdict, *code)));
    }
    if let Some(incidents) = &ask.incidents {
        expect("incidents", &json(incidents), &json(incidents_of(verdict)));
    }
    expect("number of steps", &Value::from(ResolutionStep::WALK.len()), &Value::from(list(verdict, "/steps").len()));
    for reason in list(verdict, "/reasons") {
        let said = reason["message"].as_str().is_some_and(|message| message.len() > 10);
        expect(&format!("{} has a diagnostic", reason["code"]), &Value::Bool(true), &Value::Bool(said));
    }
    wrong
}

/// The codes of a verdict, sorted, each once.
pub(crate) fn codes_of(verdict: &Value) -> BTreeSet<&str> {
    list(verdict, "/reasons").iter().filter_map(|reason| reason["code"].as_str()).collect()
}

/// The codes of the events about a verdict that has its digests, in their order; each must say what is expected of one.
fn incidents_of(verdict: &Value) -> Vec<ReasonCode> {
    let verdict: Verdict = serde_json::from_value(verdict.clone()).expect("a verdict");
    let told = |incident: &SecurityIncident<'_>| {
        let has_values = incident.expected.is_some() && incident.observed.is_some();
        has_values && incident.block.is_some() && incident.verdict == verdict.id && !incident.name.is_empty()
    };
    SecurityIncident::from_verdict(&verdict).filter(told).map(|incident| incident.code).collect()
}

fn step_of<'v>(verdict: &'v Value, step: &str) -> &'v Value {
    let found = list(verdict, "/steps").iter().find(|report| report["step"] == step);
    found.map_or(&Value::Null, |report| &report["status"])
}

fn places_of(verdict: &Value, code: ReasonCode) -> BTreeSet<&str> {
    let of_code = list(verdict, "/reasons").iter().filter(|reason| reason["code"] == code.slug());
    of_code.filter_map(|reason| reason["where"].as_str()).collect()
}

fn list<'v>(verdict: &'v Value, pointer: &str) -> &'v [Value] {
    verdict.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("the types of a verdict have a JSON form")
}
