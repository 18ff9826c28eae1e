//! Asks a daemon whether it accepts requests.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use url::Url;

use crate::fetch::{Egress, EgressConfig};

/// Longest time for the answer: shorter than the interval of common health checks.
const LIMIT: Duration = Duration::from_secs(2);

/// Longest answer: a line for each configured upstream.
const MAX_BYTES: usize = 64 << 10;

/// The body of the daemon's answer to `GET /readyz`, if it accepts requests.
///
/// # Errors
/// No answer in time, or any status other than 200.
pub async fn readiness(listener: SocketAddr) -> Result<String, Box<dyn Error + Send + Sync>> {
    let url = Url::parse(&format!("http://{listener}/readyz"))?;
    let daemon = Egress::new(EgressConfig::default())?.operator(&url)?;
    let answer = daemon.get(&url, "text/plain", MAX_BYTES, LIMIT).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
