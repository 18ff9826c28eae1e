//! Asks a daemon whether it accepts requests.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use url::Url;

use crate::fetch::{Egress, EgressConfig};

/// Timeout of the request, shorter than the interval of common health checks.
const LIMIT: Duration = Duration::from_secs(2);

/// Maximum size of the response in bytes. It has one line for each configured upstream.
const MAX_BYTES: usize = 64 << 10;

/// Sends `GET /readyz` to the daemon, and returns the body of the response if the daemon accepts requests.
///
/// # Errors
/// If the daemon does not answer in time, or if its status is not 200.
pub async fn query_daemon_readiness(listener: SocketAddr) -> Result<String, Box<dyn Error + Send + Sync>> {
    let url = Url::parse(&format!("http://{listener}/readyz"))?;
    let daemon = Egress::new(EgressConfig::default())?.single_origin_client(&url)?;
    let answer = daemon.get(&url, "text/plain", MAX_BYTES, LIMIT).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
