//! Runs the commands that `clresolve sandbox --demo` prints, exactly as printed.

use super::*;

/// The last line that the demo prints.
const LAST: &str = "clresolve allows ";

/// A running demo.
struct Demo {
    running: Background,
    printed: Vec<String>,
    _folder: TempDir,
}

impl Demo {
    fn start(listen: &str) -> Self {
        let folder = workplace();
        let running = Background::start(&folder, &format!("clresolve sandbox --demo --listen {listen}"));
        let is_last = |line: &str| line.starts_with(LAST);
        let printed = running.printed_when(|lines| lines.last().is_some_and(|line| is_last(line)));
        assert!(printed.last().is_some_and(|line| is_last(line)), "no line begins with {LAST:?}: {printed:#?}");
        Self { running, printed, _folder: folder }
    }

    /// The two commands that contain this text: for the honest and for the lying seller.
    fn commands(&self, part: &str) -> [&str; 2] {
        let found: Vec<&str> = self.printed.iter().map(String::as_str).filter(|line| line.contains(part)).collect();
        found.try_into().unwrap_or_else(|found| panic!("two commands with {part}: {found:?}"))
    }

    /// The text after a label in the output.
    fn labelled(&self, label: &str) -> &str {
        let found = self.printed.iter().find_map(|line| line.trim().strip_prefix(label));
        found.unwrap_or_else(|| panic!("{label}: {:#?}", self.printed)).trim()
    }

    fn signal(&mut self, signal: &str) {
        let process = &mut self.running.process;
        let sent = Command::new("kill").args([signal, &process.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
        // Its output ends with it.
        assert_eq!(self.running.out.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected), "{signal}");
        assert_eq!(process.wait().expect("a process of ours").code(), Some(0), "{signal}");
    }
}

/// The first of two consecutive free ports, below the range from which the system chooses ports.
fn free_pair() -> u16 {
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (18_402..18_600).step_by(2).find(|port| is_free(port) && is_free(&(port + 1))).expect("two free ports")
}

/// Runs a command in the root of the checkout. Returns whether it succeeded, and its output.
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
    let (folder, listen) = (workplace(), port - 1);
    let mut refused = Background::start(&folder, &format!("clresolve sandbox --demo --listen 127.0.0.1:{listen} 2>&1"));
    let said = refused.printed_when(|lines| !lines.is_empty()).join("\n");
    assert!(said.contains(&format!("127.0.0.1:{port}")) && said.contains("--listen"), "{said}");
    assert_eq!(refused.process.wait().expect("a process of ours").code(), Some(2));
}
