//! Buys from an agent, unless a resolver in this process denies it: `buy_in_process clresolve.toml URL`.

use std::{env, error::Error, sync::Arc};

use alloy_signer_local::PrivateKeySigner;
use clresolve_guard::{Guard, InProcess};
use clresolve_resolver::{Config, Resolver, config::ConfigLayer};
use x402_chain_eip155::V2Eip155ExactClient;
use x402_reqwest::X402Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, file, url] = env::args().collect::<Vec<_>>().try_into().map_err(|_| "expected clresolve.toml and a URL")?;
    let config = Config::default().with_layers([ConfigLayer::from_file(file.as_ref())?])?;
    let decides = InProcess::new(Resolver::new(&config).await?, "summarizeagent.eth", "summarize");
    let payer = Arc::new(env::var("PAYER_KEY")?.parse::<PrivateKeySigner>()?);
    let payments = X402Client::new().register(V2Eip155ExactClient::new(payer));
    let client = Guard::new(decides, reqwest::Client::builder())?.beneath(payments);

    let answer = client.get(url).send().await?;
    println!("{}", answer.status());
    Ok(())
}
