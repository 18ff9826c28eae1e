//! Ask before you pay: what an x402 runtime does with the library. Runs against the embedded world.
//!
//! ```text
//! cargo run --example embed -- summarizeagent.eth
//! ```

use clresolve_resolver::sandbox::Sandbox;
use clresolve_resolver::{Resolver, State};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "summarizeagent.eth".to_owned());

    // In production: `Config::default()`, or a file read with `Layer::from_file`.
    let sandbox = Sandbox::start().await?;
    let resolver = Resolver::new(&sandbox.config()).await?;

    let resolution = resolver.resolve(&name).await;
    let verdict = resolution.verdict();
    match verdict.state {
        State::Trusted => {
            let identity = verdict.identity.as_ref().expect("a trusted verdict has an identity");
            println!("invoke {}", identity.entry.as_deref().unwrap_or_default());
        }
        State::Untrusted | State::Indeterminate => {
            println!("do not invoke: {}", verdict.summary);
            for reason in &verdict.reasons {
                println!("  {} ({:?}): {}", reason.code, reason.effect, reason.message);
            }
        }
    }
    Ok(())
}
