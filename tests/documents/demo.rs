//! `clresolve sandbox --demo` as a reader uses it: the commands that it prints run as they are printed.

use std::io::{BufRead as _, BufReader};

use super::*;

/// The last line that the demo prints.
const LAST: &str = "clresolve allows ";

/// A running demo.
struct Demo {
    process: Child,
    printed: Vec<String>,
}

impl Demo {
    fn start(listen: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        command.args(["sandbox", "--demo", "--listen", listen]).env_clear();
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut printed = Vec::new();
        for line in BufReader::new(process.stdout.take().expect("a pipe")).lines() {
            printed.push(line.expect("UTF-8"));
            if printed.last().is_some_and(|line| line.starts_with(LAST)) {
                return Self { process, printed };
            }
        }
        panic!("it ended before it was ready ({:?}): {printed:#?}", process.wait());
    }

    /// The pair of commands that contain this text: about the honest and the lying seller.
    fn commands(&self, part: &str) -> [&str; 2] {
        let found: Vec<&str> = self.printed.iter().map(String::as_str).filter(|line| line.contains(part)).collect();
        found.try_into().unwrap_or_else(|found| panic!("two commands with {part}: {found:?}"))
    }

    /// What it prints behind a label.
    fn labelled(&self, label: &str) -> &str {
        let found = self.printed.iter().find_map(|line| line.trim().strip_prefix(label));
        found.unwrap_or_else(|| panic!("{label}: {:#?}", self.printed)).trim()
    }

    fn signal(&mut self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
        assert_eq!(self.process.wait().expect("a process of ours").code(), Some(0), "{signal}");
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A free port that is followed by one, below the range in which the system chooses ports.
fn free_pair() -> u16 {
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (18_402..18_600).step_by(2).find(|port| is_free(port) && is_free(&(port + 1))).expect("two free ports")
}

/// Runs a command in the root of the checkout: whether it succeeded, and what it wrote.
fn runs(command: &str) -> (bool, String) {
    let mut shell = Command::new("sh");
    for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        shell.env_remove(proxy);
    }
    let output = shell.args(["-c", command]).current_dir(root()).stdin(Stdio::null()).output().expect("the shell runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_commands_buy_from_the_honest_seller_alone() {
    let listen = format!("127.0.0.1:{}", free_pair());
    let mut demo = Demo::start(&listen);
    let explorer = demo.labelled("explorer").to_owned();
    // Fills the cache: a debug build may take longer than the clients wait.
    for page in ["", "v1/verdicts/summarizeagent.eth", "v1/verdicts/payee-mismatch.eth"] {
        let response = reqwest::get(format!("{explorer}{page}")).await.expect("the daemon answers");
        assert!(response.status().is_success(), "{page}: {}", response.status());
    }
    let [honest, lying] = demo.commands("curl -s").map(|command| runs(command).1);
    assert!(honest.contains(r#""decision":"allow""#) && honest.contains(r#""abort":false"#), "{honest}");
    assert!(lying.contains(r#""decision":"deny""#) && lying.contains("payee-mismatch"), "{lying}");
    for (client, example) in [("typescript", "examples/buy.mjs"), ("python", "examples/buy.py")] {
        if !purchases::install(client) {
            println!("skipped: clients/install.sh {client} misses a tool");
            continue;
        }
        let [honest, lying] = demo.commands(example).map(runs);
        assert_eq!(honest, (true, "200\n".to_owned()));
        assert!(!lying.0 && lying.1.contains("payee-mismatch"), "{}", lying.1);
    }

    demo.signal("-INT");
    let mut again = Demo::start(&listen);
    assert_eq!(again.printed, demo.printed, "the same commands work again");
    let [honest, _] = again.commands("curl -s").map(|command| runs(command).1);
    assert!(honest.contains(r#""decision":"#), "{honest}");
    again.signal("-TERM");
}

#[tokio::test]
async fn demo_seller_refuses_a_malformed_payment() {
    let demo = Demo::start("127.0.0.1:0");
    let url = demo.labelled("honest seller");
    let request = reqwest::Client::new().post(url).header("payment-signature", "e30=");
    let response = request.send().await.expect("the seller answers");
    assert_eq!(response.status(), 402);
    let terms: Value = serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON");
    assert_eq!(terms["error"], "the payment is not valid for these terms");
    assert_eq!(terms["resource"]["url"], url);
}

#[test]
fn demo_names_the_port_of_the_sellers_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it is bound").port();
    let command = format!("clresolve sandbox --demo --listen 127.0.0.1:{}", port - 1);
    let output = shell(&workplace(), &command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("127.0.0.1:{port}")) && said.contains("--listen"), "{said}");
}
