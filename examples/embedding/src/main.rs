//! The library alone, without command line, daemon and sandbox: asks for the name that the command line gives.
//!
//! Without a name it asks for a text that is not a name, which needs no network.

use clresolve_resolver::{Config, Resolver, TrustState};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "not a name".to_owned());
    let resolver = Resolver::new(&Config::default()).await?;
    let resolution = resolver.resolve(&name).await;
    let verdict = resolution.verdict();
    println!("{name}: {}: {}", verdict.state, verdict.summary);
    if verdict.state == TrustState::Trusted {
        println!("{:?}", verdict.identity);
    }
    Ok(())
}
