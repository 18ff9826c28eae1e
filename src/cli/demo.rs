//! `sandbox --demo`: runs the sandbox, a daemon and two sellers, and prints commands that buy from the sellers.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use clresolve_resolver::config::Config;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_sandbox::keys::PAYER;
use clresolve_server::http::HttpDaemon;
use serde::Serialize;

use super::args::{OutputFormat, SandboxArguments};
use super::exit::ExitStatus;
use super::output::{OutputSink, json_line, pretty_json};
use super::stop::wait_for_stop_signal;

/// Commands of the example buyers, for a shell in the root of a checkout.
const NODE: &str = "node clients/typescript/examples/buy.mjs";
const PYTHON: &str = "PYTHONPATH=clients/python clients/python/.venv/bin/python clients/python/examples/buy.py";

/// Runs the demo until a signal stops it.
pub(super) async fn run(args: SandboxArguments) -> anyhow::Result<ExitStatus> {
    let stop = wait_for_stop_signal();
    let output = OutputSink::new(&args.output.out)?;
    let listen = args.listen.unwrap_or_else(|| Config::default().http.listen);
    let Some(address) = listen.tcp_address() else { bail!("--listen {listen}: the demo needs an address and a port") };
    let sandbox = Sandbox::start().await?;
    let port = seller_port(address.port());
    let sellers = sandbox.start_sellers(port).await.with_context(|| {
        format!(
            "the sellers cannot listen on 127.0.0.1:{port}, the port after the daemon's: choose another with --listen"
        )
    })?;
    let mut config = sandbox.demo_config(&sellers);
    config.http.listen = listen;
    clresolve_core::name::load_tables();
    let server = HttpDaemon::bind(&config).await?;
    let demo =
        DemoInstructions::new(&format!("http://{}", server.address()), sellers.honest_url(), sellers.lying_url());
    let text = match args.output.output_format() {
        OutputFormat::Text | OutputFormat::Short => demo.format_text(),
        OutputFormat::Json => pretty_json(&demo)? + "\n",
        OutputFormat::Jsonl => json_line(&demo)? + "\n",
    };
    output.write_all_and_finish(text.as_bytes())?;
    tokio::select! {
        () = server.run(std::future::pending()) => {}
        () = sandbox.run_until_dropped() => {}
        () = stop => {}
    }
    Ok(ExitStatus::Trusted)
}

/// The port of the sellers: the one after the daemon's `port`. 0 lets the system choose a free port.
const fn seller_port(port: u16) -> u16 {
    match port {
        0 | u16::MAX => 0,
        port => port + 1,
    }
}

/// The URLs of the running demo, and the commands that use them.
#[derive(Serialize)]
struct DemoInstructions {
    explorer: String,
    honest_seller: String,
    lying_seller: String,
    test_key: String,
    /// One command for the honest seller and one for the lying seller, as in `node` and `python`.
    curl: [String; 2],
    node: [String; 2],
    python: [String; 2],
}

impl DemoInstructions {
    fn new(daemon: &str, honest: String, lying: String) -> Self {
        let key = PAYER.to_string();
        let both = [(Sandbox::HONEST_AGENT, &*honest), (Sandbox::LYING_AGENT, &*lying)];
        let buy = |program: &str| both.map(|(agent, url)| format!("PAYER_KEY={key} {program} {agent} {url} {daemon}"));
        let ask = |(agent, url): (&str, &str)| {
            let question = format!(r#"{{"name":"{agent}","verb":"summarize","url":"{url}","paymentRequired":%s}}"#);
            let post = format!("curl -s --noproxy '*' {daemon}/v1/decisions -H 'content-type: application/json' -d @-");
            format!("printf '{question}' \"$(curl -s --noproxy '*' {url})\" | {post}")
        };
        Self {
            explorer: format!("{daemon}/"),
            curl: both.map(ask),
            node: buy(NODE),
            python: buy(PYTHON),
            test_key: key,
            honest_seller: honest,
            lying_seller: lying,
        }
    }

    fn format_text(&self) -> String {
        let Self { explorer, honest_seller, lying_seller, test_key, curl, node, python } = self;
        let mut text = format!(
            "The demo is running; Ctrl-C stops it. The sellers verify payments, and settle none.\n  \
             explorer       {explorer}\n  \
             honest seller  {honest_seller}\n  \
             lying seller   {lying_seller}\n  \
             test key       {test_key}\n\
             The test key is public. Its account owns the sandbox's dollars; never send real money to it.\n"
        );
        for (heading, [honest, lying]) in [
            ("Ask clresolve about the terms of each seller, with curl", curl),
            ("Buy in Node, from a checkout, after clients/install.sh typescript", node),
            ("Buy in Python, from a checkout, after clients/install.sh python", python),
        ] {
            let _ = write!(text, "\n{heading}:\n\n{honest}\n\n{lying}\n");
        }
        text + "\nclresolve allows the honest seller and refuses the lying one (payee-mismatch).\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sellers_take_the_next_port() {
        assert_eq!([0, 8402, u16::MAX].map(seller_port), [0, 8403, 0]);
    }
}
