//! The requests of a light client, and the decoding of their responses.

use alloy_primitives::B256;
use clresolve_beacon::{
    ChainSpec, ConsensusFork, LightClientCodec, LightClientError, LightClientUpdate, MAX_JSON_BYTES,
};
use url::Url;

use super::http::BeaconResponse;

/// Maximum number of updates in one response. It bounds the memory of one response; a checkpoint of mainnet is at most
/// 13 updates old.
pub(super) const MAX_UPDATES_AT_ONCE: u64 = 8;

/// A request of the beacon API's namespace for light clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BeaconRequest {
    /// The bootstrap of the block with this root.
    Bootstrap(B256),
    /// The updates of `count` sync committee periods.
    Updates {
        start_period: u64,
        count: u64,
    },
    FinalityUpdate,
    OptimisticUpdate,
}

impl BeaconRequest {
    /// The URL under the base URL of an endpoint. `None` if the base URL has no path.
    pub(super) fn request_url(self, base: &Url) -> Option<Url> {
        let mut url = base.clone();
        let mut path = url.path_segments_mut().ok()?;
        path.pop_if_empty().extend(["eth", "v1", "beacon", "light_client"]);
        match self {
            Self::Bootstrap(root) => path.extend(["bootstrap", root.to_string().as_str()]),
            Self::Updates { .. } => path.push("updates"),
            Self::FinalityUpdate => path.push("finality_update"),
            Self::OptimisticUpdate => path.push("optimistic_update"),
        };
        drop(path);
        if let Self::Updates { start_period, count } = self {
            let mut query = url.query_pairs_mut();
            query.append_pair("start_period", &start_period.to_string()).append_pair("count", &count.to_string());
        }
        Some(url)
    }

    /// Maximum length of the response in bytes.
    pub(super) fn max_response_bytes(self) -> usize {
        let objects = if let Self::Updates { count, .. } = self { count.min(MAX_UPDATES_AT_ONCE) } else { 1 };
        usize::try_from(objects).unwrap_or(1) * MAX_JSON_BYTES
    }
}

/// Decodes a single object.
pub(super) fn decode_response<T: LightClientCodec>(
    response: &BeaconResponse,
    spec: &ChainSpec,
) -> Result<T, LightClientError> {
    if !response.is_ssz() {
        return T::from_json(&response.body, spec);
    }
    let fork =
        response.version.as_deref().and_then(ConsensusFork::from_name).ok_or(LightClientError::VersionUnknown)?;
    T::from_ssz(&response.body, fork, spec)
}

/// Decodes at most `count` updates.
pub(super) fn decode_updates_response(
    response: &BeaconResponse,
    count: u64,
    spec: &ChainSpec,
) -> Result<Vec<LightClientUpdate>, LightClientError> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    match response.is_ssz() {
        true => LightClientUpdate::list_from_ssz(&response.body, count, spec),
        false => LightClientUpdate::list_from_json(&response.body, count, spec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_path_and_query_of_the_base_url() {
        let url = |base: &str, request: BeaconRequest| request.request_url(&base.parse().unwrap()).unwrap().to_string();
        let path = "eth/v1/beacon/light_client";
        let finality = BeaconRequest::FinalityUpdate;
        assert_eq!(url("https://node.example", finality), format!("https://node.example/{path}/finality_update"));
        assert_eq!(
            url("https://node.example/key/", finality),
            format!("https://node.example/key/{path}/finality_update")
        );
        let updates = BeaconRequest::Updates { start_period: 7, count: 2 };
        let expected = format!("https://node.example/{path}/updates?k=1&start_period=7&count=2");
        assert_eq!(url("https://node.example/?k=1", updates), expected);
        let bootstrap = BeaconRequest::Bootstrap(B256::repeat_byte(7));
        assert!(url("https://node.example", bootstrap).ends_with(&format!("/bootstrap/0x{}", "07".repeat(32))));
    }
}
