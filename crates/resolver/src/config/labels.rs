//! The labels that identify endpoints and gateways in verdicts and logs.

use std::collections::BTreeMap;

use super::endpoint::RpcEndpointConfig;

/// Maximum length of a label or operator, in bytes. Verdicts contain them.
pub(super) const MAX_LABEL_BYTES: usize = 64;

/// The end of a host name, as a label or operator: a configuration that is written can be read again.
pub(super) fn label_from_host(host: &str) -> String {
    let plain: String = host.chars().map(|c| if is_label_char(c) { c } else { '_' }).collect();
    plain[plain.len().saturating_sub(MAX_LABEL_BYTES)..].to_owned()
}

/// Whether a label or operator may contain this character.
pub(super) const fn is_label_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '[' | ']' | '#')
}

/// The endpoints, each with a unique label. An [`RpcEndpointConfig::UNNAMED`] one gets `prefix` and its position.
pub(super) fn label_endpoints(endpoints: &[RpcEndpointConfig], prefix: &str) -> Vec<RpcEndpointConfig> {
    let mut endpoints = endpoints.to_vec();
    let labels = endpoints.iter_mut().map(|endpoint| &mut endpoint.label);
    label_unnamed_by_position(labels, RpcEndpointConfig::UNNAMED, prefix);
    number_duplicate_labels(endpoints.iter_mut().map(|endpoint| &mut endpoint.label));
    endpoints
}

/// Replaces the label `unnamed` by `prefix` and the position.
pub(super) fn label_unnamed_by_position<'a>(labels: impl Iterator<Item = &'a mut String>, unnamed: &str, prefix: &str) {
    for (place, label) in labels.enumerate().filter(|(_, label)| *label == unnamed) {
        *label = format!("{prefix}-{}", place + 1);
    }
}

/// Numbers the second and later of equal labels, since verdicts and logs identify endpoints only by label.
pub(super) fn number_duplicate_labels<'a>(labels: impl Iterator<Item = &'a mut String>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for label in labels {
        let count = seen.entry(label.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let number = format!("#{count}");
            label.truncate(MAX_LABEL_BYTES - number.len());
            label.push_str(&number);
        }
    }
}
