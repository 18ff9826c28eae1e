//! What each endpoint and each gateway said of the names, each asked by itself.

use std::collections::BTreeMap;
use std::io;

use clresolve_verdict::agreement::{EndpointStance, GatewayStance, NameFact, UpstreamAgreement};
use serde_json::{Value, json};

use super::row::{Row, Rows};

/// Most endpoints, and most gateways, that are counted. A configuration has a handful.
const MAX_COUNTED: usize = 64;

/// What an endpoint says, as the counts are called.
pub(super) const ENDPOINT_COLUMNS: [&str; 3] = ["agree", "differ", "silent"];

/// What a gateway does, as the counts are called.
pub(super) const GATEWAY_COLUMNS: [&str; 4] = ["has", "lacks", "lies", "unreached"];

/// How many names each endpoint and each gateway agrees on, in the order of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamCounts {
    endpoints: Vec<LabelCounts<{ ENDPOINT_COLUMNS.len() }>>,
    gateways: Vec<LabelCounts<{ GATEWAY_COLUMNS.len() }>>,
}

/// Numbers of names under a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LabelCounts<const N: usize> {
    pub(super) label: String,
    pub(super) counts: [u64; N],
}

impl UpstreamCounts {
    /// Counts a row.
    pub(super) fn add(&mut self, row: &Row) {
        let Some(UpstreamAgreement { endpoints, gateways }) = &row.agreement else { return };
        for said in endpoints {
            count(&mut self.endpoints, &said.label, endpoint_column(&said.stance));
        }
        for said in gateways {
            count(&mut self.gateways, &said.label, gateway_column(said.says));
        }
    }

    /// Of each endpoint, by [`ENDPOINT_COLUMNS`].
    pub(super) fn endpoints(&self) -> &[LabelCounts<{ ENDPOINT_COLUMNS.len() }>] {
        &self.endpoints
    }

    /// Of each gateway, by [`GATEWAY_COLUMNS`].
    pub(super) fn gateways(&self) -> &[LabelCounts<{ GATEWAY_COLUMNS.len() }>] {
        &self.gateways
    }

    /// What all say, in two sentences.
    pub(super) fn sentences(&self) -> String {
        let Self { endpoints, gateways } = self;
        let of_endpoints =
            [(with(endpoints, 1), "said something else of a name"), (with(endpoints, 2), "gave no answer")];
        let of_gateways = [
            (with(gateways, 1), "lacked a card"),
            (with(gateways, 2), "sent a wrong block"),
            (with(gateways, 3), "gave no answer"),
        ];
        format!(
            "{} {}",
            said(endpoints.len(), "RPC endpoint", &of_endpoints, "no difference"),
            said(gateways.len(), "gateway", &of_gateways, "every card was there")
        )
    }

    /// The counts as JSON.
    pub(super) fn json(&self) -> Value {
        json!({
            "endpoints": self.endpoints.iter().map(|of| of.json(ENDPOINT_COLUMNS)).collect::<Value>(),
            "gateways": self.gateways.iter().map(|of| of.json(GATEWAY_COLUMNS)).collect::<Value>(),
        })
    }
}

impl<const N: usize> LabelCounts<N> {
    fn json(&self, columns: [&str; N]) -> Value {
        let counts = columns.into_iter().zip(self.counts).map(|(column, count)| (column.to_owned(), json!(count)));
        std::iter::once(("label".to_owned(), json!(self.label))).chain(counts).collect::<serde_json::Map<_, _>>().into()
    }
}

const fn endpoint_column(stance: &EndpointStance) -> usize {
    match stance {
        EndpointStance::Agree => 0,
        EndpointStance::Differ { .. } => 1,
        EndpointStance::Silent { .. } => 2,
    }
}

const fn gateway_column(stance: GatewayStance) -> usize {
    match stance {
        GatewayStance::Has => 0,
        GatewayStance::Lacks => 1,
        GatewayStance::Lies => 2,
        GatewayStance::Unreached => 3,
    }
}

/// Counts a name in a column of a label, which may be new.
fn count<const N: usize>(all: &mut Vec<LabelCounts<N>>, label: &str, column: usize) {
    let place = all.iter().position(|of| of.label == label).unwrap_or(all.len());
    if place == all.len() && place < MAX_COUNTED {
        all.push(LabelCounts { label: label.to_owned(), counts: [0; N] });
    }
    if let Some(of) = all.get_mut(place) {
        of.counts[column] += 1;
    }
}

/// How many labels have a name in a column.
fn with<const N: usize>(all: &[LabelCounts<N>], column: usize) -> usize {
    all.iter().filter(|of| of.counts[column] > 0).count()
}

/// How many of `all` did what.
fn said(all: usize, what: &str, found: &[(usize, &str)], nothing: &str) -> String {
    if all == 0 {
        return format!("No {what} was asked.");
    }
    let found: Vec<_> = found.iter().filter(|(count, _)| *count > 0).map(|(n, did)| format!("{n} {did}")).collect();
    let found = if found.is_empty() { nothing.to_owned() } else { found.join(", ") };
    format!("Of {all} {what}{}: {found}.", if all == 1 { "" } else { "s" })
}

/// Passes to `see` what an endpoint says otherwise of a name and what a gateway does not serve: the row, the label, and the
/// finding in words. Silence is counted, and no finding.
pub(super) fn each_finding(rows: &dyn Rows, see: &mut dyn FnMut(&Row, &str, &str) -> io::Result<()>) -> io::Result<()> {
    rows.each(&mut |row| {
        let Some(UpstreamAgreement { endpoints, gateways }) = &row.agreement else { return Ok(()) };
        for said in endpoints {
            if let EndpointStance::Differ { facts } = &said.stance {
                see(row, &said.label, &otherwise(facts))?;
            }
        }
        for said in gateways {
            match said.says {
                GatewayStance::Lacks | GatewayStance::Lies => see(row, &said.label, gateway_words(said.says))?,
                GatewayStance::Has | GatewayStance::Unreached => {}
            }
        }
        Ok(())
    })
}

/// What each endpoint and each gateway says of a name, by what it is and its label. Silence is an outage and says nothing.
pub(super) fn usable(agreement: &UpstreamAgreement) -> BTreeMap<String, String> {
    let UpstreamAgreement { endpoints, gateways } = agreement;
    let endpoints = endpoints.iter().filter_map(|said| {
        let stance = match &said.stance {
            EndpointStance::Agree => "agrees".to_owned(),
            EndpointStance::Differ { facts } => otherwise(facts),
            EndpointStance::Silent { .. } => return None,
        };
        Some((format!("endpoint {}", said.label), stance))
    });
    let gateways = gateways.iter().filter_map(|said| {
        let is_usable = said.says != GatewayStance::Unreached;
        is_usable.then(|| (format!("gateway {}", said.label), gateway_words(said.says).to_owned()))
    });
    endpoints.chain(gateways).collect()
}

const fn gateway_words(stance: GatewayStance) -> &'static str {
    match stance {
        GatewayStance::Has => "has the card",
        GatewayStance::Lacks => "does not have the card",
        GatewayStance::Lies => "sent a wrong block of the card",
        GatewayStance::Unreached => "gave no usable answer",
    }
}

fn otherwise(facts: &[NameFact]) -> String {
    if facts.contains(&NameFact::Block) {
        return "has another block at that height".to_owned();
    }
    format!("says something else: {}", words(facts, ", "))
}

fn words(facts: &[NameFact], between: &str) -> String {
    facts.iter().map(|fact| fact.as_str()).collect::<Vec<_>>().join(between)
}

/// What the endpoints say of a row, and what the gateways do, each in one line.
pub(super) fn cells(row: &Row) -> [String; 2] {
    let Some(UpstreamAgreement { endpoints, gateways }) = &row.agreement else { return Default::default() };
    let endpoint = |stance: &EndpointStance| {
        let word = ENDPOINT_COLUMNS[endpoint_column(stance)];
        match stance {
            EndpointStance::Agree => word.to_owned(),
            EndpointStance::Differ { facts } => format!("{word} ({})", words(facts, " ")),
            EndpointStance::Silent { why } => format!("{word} ({})", why.as_str()),
        }
    };
    let endpoints: Vec<_> =
        endpoints.iter().map(|said| format!("{}: {}", said.label, endpoint(&said.stance))).collect();
    let gateway = |stance| GATEWAY_COLUMNS[gateway_column(stance)];
    let gateways: Vec<_> = gateways.iter().map(|said| format!("{}: {}", said.label, gateway(said.says))).collect();
    [endpoints.join("; "), gateways.join("; ")]
}
