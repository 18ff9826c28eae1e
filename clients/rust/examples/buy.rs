//! Buys from an agent, unless clresolve denies it.

use std::{env, error::Error, sync::Arc};

use alloy_signer_local::PrivateKeySigner;
use clresolve_guard::{Config, Daemon, Guard};
use x402_chain_eip155::V2Eip155ExactClient;
use x402_reqwest::X402Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let daemon = Daemon::new(Config::new("http://127.0.0.1:8402", "summarizeagent.eth", "summarize"))?;
    let payer = Arc::new(env::var("PAYER_KEY")?.parse::<PrivateKeySigner>()?);
    let payments = X402Client::new().register(V2Eip155ExactClient::new(payer));
    let client = Guard::new(daemon, reqwest::Client::builder())?.beneath(payments);

    let answer = client.get("https://api.example/summarize").send().await?;
    println!("{}", answer.status());
    Ok(())
}
