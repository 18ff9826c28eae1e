//! Which API of the daemon a path belongs to, and how that API refuses.

use axum::response::Response;
use clresolve_core::reason::RefusalCode;
use percent_encoding::percent_decode_str;

use super::{gate_response, problem};

/// Which listener a request came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListenerApiScope {
    All,
    /// The gate's own listener. It serves the gate and health. Any other path gets the gate's refusal.
    Gate,
}

/// The API that a path addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestedApi {
    /// The gate, whether or not the path is one of its routes.
    Gate,
    /// Not literally a gate path, but a proxy or framework in front could interpret it as one, or the request arrived
    /// on the gate's own listener. No route is looked up for it.
    DisguisedGate,
    /// Health and metrics. An overloaded daemon serves them too, so that a monitor does not consider it dead.
    Health,
    /// The report API: everything else.
    Report,
}

/// Prefixes of gate paths: two segments each.
const GATES: [[&str; 2]; 2] = [["v1", "gate"], ["v1", "envoy"]];

impl RequestedApi {
    /// The API that serves `path` on the listener `role`.
    pub(super) fn for_listener(role: ListenerApiScope, path: &str) -> Self {
        match Self::from_path(path) {
            Self::Report if role == ListenerApiScope::Gate => Self::DisguisedGate,
            api => api,
        }
    }

    pub(super) fn from_path(path: &str) -> Self {
        match path {
            "/livez" | "/livez/" | "/readyz" | "/readyz/" | "/metrics" | "/metrics/" => Self::Health,
            _ if is_gate_path(path) => Self::Gate,
            _ if is_disguised_gate_path(path) && !clresolve_core::mutant!("disguised-gate") => Self::DisguisedGate,
            _ => Self::Report,
        }
    }

    /// The response of this API in place of a verdict.
    pub(super) fn refusal_response(self, refusal: RefusalCode) -> Response {
        match self {
            Self::Gate | Self::DisguisedGate => gate_response::gate_refusal_response(refusal),
            Self::Health | Self::Report => problem::refusal_response(refusal, None),
        }
    }
}

fn is_gate_path(path: &str) -> bool {
    let mut segments = path.splitn(4, '/');
    let is_absolute = segments.next() == Some("");
    let (first, second) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
    is_absolute && GATES.contains(&[first, second])
}

/// Whether the path becomes a gate path after percent-decoding, replacing backslashes with slashes, ignoring case, or
/// resolving empty and dot segments.
fn is_disguised_gate_path(path: &str) -> bool {
    let is_special = |byte| matches!(byte, b'%' | b'\\' | b';' | b'A'..=b'Z');
    if !path.bytes().any(is_special) && !path.contains("//") && !path.contains("/.") {
        return false;
    }
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split(['/', '\\']).map(|segment| segment.split(';').next().unwrap_or_default()) {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
        // Checked after each segment: one hop may resolve a later `..` and the next hop may not.
        if let [first, second] = segments[..]
            && GATES.iter().any(|gate| first.eq_ignore_ascii_case(gate[0]) && second.eq_ignore_ascii_case(gate[1]))
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_gate_are_its_own() {
        for path in ["/v1/gate", "/v1/gate/", "/v1/gate/a/b/c", "/v1/envoy/x"] {
            assert_eq!(RequestedApi::from_path(path), RequestedApi::Gate, "{path}");
        }
        for path in ["/v1/gates", "/v1", "/v1/verdicts/v1/gate", "/v1/envoyx/a", "v1/gate/a", ""] {
            assert_eq!(RequestedApi::from_path(path), RequestedApi::Report, "{path}");
        }
        for path in ["/livez", "/readyz", "/metrics", "/readyz/"] {
            assert_eq!(RequestedApi::from_path(path), RequestedApi::Health, "{path}");
        }
    }

    #[test]
    fn a_path_that_could_be_taken_for_the_gates_is_recognised() {
        for path in [
            "/v1/g%61te/a",
            "//v1/gate/a",
            "/v1//gate",
            "/./v1/envoy/a",
            "/v1/verdicts/../gate/a",
            "/v1/verdicts/..%2fgate%2fa.eth",
            "/v1/verdicts/%2e%2e/gate/a",
            "/V1/GATE/a",
            "/v1;x/gate;y/a",
            "\\v1\\gate",
            "/v1/%67ate/../verdicts/a",
        ] {
            assert_eq!(RequestedApi::from_path(path), RequestedApi::DisguisedGate, "{path}");
        }
        for path in ["/v1/verdicts/%67ate", "/v1/verdicts/SummarizeAgent.eth", "/v1/cards/a%2Fv1%2Fgate", "*", ""] {
            assert_eq!(RequestedApi::from_path(path), RequestedApi::Report, "{path}");
        }
    }

    #[test]
    fn each_face_refuses_in_its_own_way() {
        for (api, status) in [
            (RequestedApi::Gate, 403),
            (RequestedApi::DisguisedGate, 403),
            (RequestedApi::Health, 503),
            (RequestedApi::Report, 503),
        ] {
            assert_eq!(api.refusal_response(RefusalCode::Overloaded).status(), status, "{api:?}");
        }
    }
}
