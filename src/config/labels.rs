//! The labels by which verdicts and logs tell endpoints and gateways apart.

use std::collections::BTreeMap;

use super::endpoint::Endpoint;

/// The endpoints, each under a label of its own: this prefix and its place where it is [`Endpoint::UNNAMED`].
pub(super) fn labelled(endpoints: &[Endpoint], prefix: &str) -> Vec<Endpoint> {
    let mut endpoints = endpoints.to_vec();
    for (place, endpoint) in endpoints.iter_mut().enumerate() {
        if endpoint.label == Endpoint::UNNAMED {
            endpoint.label = format!("{prefix}-{}", place + 1);
        }
    }
    number_labels(endpoints.iter_mut().map(|endpoint| &mut endpoint.label));
    endpoints
}

/// Gives the second and later of equal labels a number: verdicts and logs tell endpoints apart by their labels alone.
pub(super) fn number_labels<'a>(labels: impl Iterator<Item = &'a mut String>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for label in labels {
        let count = seen.entry(label.clone()).or_default();
        *count += 1;
        if *count > 1 {
            label.push_str(&format!("#{count}"));
        }
    }
}
