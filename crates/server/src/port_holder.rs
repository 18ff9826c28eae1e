//! Detects whether a port in use belongs to another daemon of this program.

use std::net::SocketAddr;
use std::time::Duration;

use clresolve_resolver::fetch::{Egress, EgressConfig};

const PATIENCE: Duration = Duration::from_secs(1);

/// Whether `GET /livez` at `address` returns `live`.
pub(crate) async fn answers_livez(address: SocketAddr, live: &str) -> bool {
    let answer = async {
        let url = format!("http://{address}/livez").parse().ok()?;
        let client = Egress::new(EgressConfig::default()).ok()?.single_origin_client(&url).ok()?;
        client.get(&url, "text/plain", live.len(), PATIENCE).await.ok()
    };
    answer.await.is_some_and(|body| body == live.as_bytes())
}
