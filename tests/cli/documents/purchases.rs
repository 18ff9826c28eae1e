//! The samples that pay: each is an example of the clients, and buys from a seller on this machine, through the daemon.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;

/// The first development account of anvil and hardhat: everybody has its key.
pub(super) const PAYER_KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// Where the samples buy.
const SELLER: &str = "https://api.example/summarize";

const PAYEE: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const THIEF: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

/// Longest head of a request; a payment has two kilobytes.
const MAX_HEAD_BYTES: u64 = 64 * 1024;

/// The samples of documents that are examples of the clients.
const EXAMPLES: [(&str, &str, &str); 4] = [
    ("clients/go/README.md", "go", "clients/go/examples/buy/main.go"),
    ("clients/python/README.md", "python", "clients/python/examples/buy.py"),
    ("clients/rust/README.md", "rust", "clients/rust/examples/buy.rs"),
    ("clients/typescript/README.md", "js", "clients/typescript/examples/buy.mjs"),
];

/// The rows of the table are the attacks by sellers without a card, with whom the plain client pays and how the guard
/// refuses.
#[test]
fn table_of_attacks_is_that_of_the_purchases() {
    let attacks = read("tests/purchases/attacks.mjs");
    let rows = attacks.split("id: 'any-").skip(1).map(|attack| {
        let quoted = |before: &str| Some(attack.split_once(before)?.1.split_once('\'')?.0);
        let name = quoted("name: '").expect("an attack has a name").trim_end_matches(", by a seller without a card");
        let payee = quoted("plain: ['").expect("the plain client pays");
        let code = quoted("codes: ['").filter(|_| !attack.contains("codes: []")).or_else(|| quoted("guarded: '"));
        format!("| {name} | the {payee} | nobody: `{}` |", code.expect("the guard refuses"))
    });
    let table = read("clients/README.md");
    let shown: BTreeSet<&str> = table.lines().filter(|line| line.contains(" | nobody: `")).collect();
    assert_eq!(shown, rows.collect::<Vec<_>>().iter().map(String::as_str).collect());
}

#[test]
fn the_samples_that_pay_are_the_examples_of_the_clients() {
    for (file, language, example) in EXAMPLES {
        let text = read(example);
        let shown = blocks(file).iter().any(|block| block.language == language && block.text == text);
        assert!(shown, "{file} does not show {example} as it is");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_samples_pay_a_trusted_agent_alone() {
    let clients = root().join("clients/typescript");
    buys("typescript", "node".as_ref(), &clients, &["buy.mjs", "hook.mjs"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_samples_pay_a_trusted_agent_alone() {
    let clients = root().join("clients/python");
    buys("python", &clients.join(".venv/bin/python"), &clients, &["buy.py", "hook.py"]).await;
}

/// Runs examples of a client: they must pay [`GOOD`], and nobody where the seller names another payee, for [`BAD`] or
/// without a daemon.
async fn buys(client: &str, interpreter: &Path, clients: &Path, examples: &[&str]) {
    if !install(client) {
        println!("skipped: clients/install.sh {client} misses a tool");
        return;
    }
    // The packages of the clients are found from there.
    let folder = tempfile::Builder::new().prefix("sample-").tempdir_in(clients).expect("a folder among the clients");
    let seller = Seller::start();
    for example in examples {
        let text = read(&format!("clients/{client}/examples/{example}"));
        let run = |daemon: &str, name: &str| {
            let replaced = [(DAEMON, daemon), (GOOD, name), (SELLER, &seller.url)];
            run_program(interpreter, &folder.path().join(example), &text, &replaced)
        };
        let refused = |output: &Output, why: &str| {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains(why), "{example} does not say {why}: {said}");
            assert!(seller.take_payments().is_empty(), "{example} pays in spite of {why}");
        };
        let daemon = Daemon::start(|config| seller.be_the_agents(config)).await;
        let bought = run(&daemon.url, GOOD);
        assert_eq!(String::from_utf8_lossy(&bought.stdout), "200\n", "{}", String::from_utf8_lossy(&bought.stderr));
        assert_eq!(seller.take_payments(), [PAYEE.to_lowercase()]);
        seller.is_thief.store(true, Ordering::SeqCst);
        refused(&run(&daemon.url, GOOD), "payee-mismatch");
        seller.is_thief.store(false, Ordering::SeqCst);
        refused(&run(&daemon.url, BAD), BAD_CODE);
        let url = daemon.url.clone();
        drop(daemon);
        refused(&run(&url, GOOD), "");
    }
}

/// Installs what the examples of a client need. Whether its tools are there.
pub(super) fn install(client: &str) -> bool {
    // Two installations in one folder would disturb each other.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new("sh").arg(root().join("clients/install.sh")).arg(client).output().expect("a shell");
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 69)), "{}", String::from_utf8_lossy(&output.stderr));
    code == Some(0)
}

/// A seller that takes what it gets.
struct Seller {
    url: String,
    is_thief: Arc<AtomicBool>,
    payments: Arc<Mutex<Vec<String>>>,
}

impl Seller {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/summarize", listener.local_addr().expect("it is bound"));
        let (is_thief, payments) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let seller = Self { url, is_thief, payments };
        let (is_thief, payments, resource) = (seller.is_thief.clone(), seller.payments.clone(), seller.url.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let pay_to = if is_thief.load(Ordering::SeqCst) { THIEF } else { PAYEE };
                // A client that goes away is none of the seller's business.
                let _ = serve(stream, pay_to, &resource, &payments);
            }
        });
        seller
    }

    /// Names it as the agents' in a configuration.
    fn be_the_agents(&self, config: &mut Config) {
        config.routes = [GOOD, BAD].map(|name| (name.to_owned(), self.url.clone())).into();
        let account = format!("eip155:84532:{PAYEE}");
        config.payees = [GOOD, BAD].map(|name| (name.to_owned(), vec![account.parse().expect("an account")])).into();
    }

    /// For whom the payments are that came since the last question.
    fn take_payments(&self) -> Vec<String> {
        std::mem::take(&mut *self.payments.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn serve(mut stream: TcpStream, pay_to: &str, resource: &str, payments: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?.take(MAX_HEAD_BYTES));
    let mut payment = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("payment-signature")
        {
            payment = Some(value.trim().to_owned());
        }
    }
    let head = match payment {
        Some(header) => {
            let payment: Value = serde_json::from_slice(&STANDARD.decode(header).unwrap_or_default())?;
            let to = payment["payload"]["authorization"]["to"].as_str().unwrap_or("nobody").to_lowercase();
            payments.lock().unwrap_or_else(PoisonError::into_inner).push(to);
            "200 OK".to_owned()
        }
        None => format!("402 Payment Required\r\nPAYMENT-REQUIRED: {}", demand(pay_to, resource)),
    };
    write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}")
}

fn demand(pay_to: &str, resource: &str) -> String {
    let entry = json!({
        "scheme": "exact",
        "network": "eip155:84532",
        "amount": "10000",
        "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
        "payTo": pay_to,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "USDC", "version": "2"},
    });
    STANDARD.encode(json!({"x402Version": 2, "resource": {"url": resource}, "accepts": [entry]}).to_string())
}
