//! Counts the instructions, across all threads, that a daemon executes for each of the worst messages, from its first
//! byte to the end of the response. `CLRESOLVE_BIN` names a program that runs the daemon under callgrind with the
//! counters off, as `.ci/worst` does.
//!
//! ```text
//! messages FOLDER MOST    FOLDER is callgrind's output folder, MOST the limit per message
//! ```

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_traffic::DaemonProcess;
use clresolve_traffic::documents::{self, DocumentResponseClass, WorstCaseDocumentRequest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Length of the large agent's description, in bytes.
const LARGE_BYTES: usize = 200_000;

/// Warm-up messages. After them, nothing is fetched or compiled any more.
const SMALL: [(&str, &str); 5] = [
    ("/v1/lint", "{}"),
    ("/v1/requests/check", r#"{"name":"good.eth","verb":"summarize","request":{}}"#),
    ("/v1/receipts/verify", r#"{"name":"good.eth","receipt":{},"request":{}}"#),
    ("/v1/decisions", r#"{"name":"good.eth","verb":"summarize","paymentRequired":{}}"#),
    ("/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
];

/// Number of checks for callgrind's output, and the pause between two checks.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let [folder, most] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else { bail!("messages FOLDER MOST") };
    let (folder, most) = (Path::new(folder), most.parse::<u64>()?);
    let world = CustomSandbox::start(&SandboxSpec::parse(&agents_toml()).map_err(anyhow::Error::msg)?).await?;
    let mut config = world.config();
    config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
    config.http.cold_runs_per_minute = u32::MAX;
    config.mcp.hosts = vec![documents::HOST.to_owned()];
    config.timeout = Duration::from_secs(600);
    let file = folder.join("clresolve.toml");
    config.save(&file)?;
    let daemon = DaemonProcess::start(&file).await?;
    let mut exceeded = 0;
    for (path, body) in SMALL {
        send_request(&daemon, &documents::post_request_text(path, body)).await?;
    }
    send_request(
        &daemon,
        &format!("GET /v1/verdicts/{} HTTP/1.1\r\nhost: {}\r\n\r\n", documents::LARGE, documents::HOST),
    )
    .await?;
    for question in documents::document_requests() {
        run_callgrind_control(&daemon, folder, &["--zero"])?;
        check_document(&daemon, &question).await?;
        run_callgrind_control(&daemon, folder, &["--dump"])?;
        let (instructions, bytes) = (read_instruction_count(folder).await?, question.request.len() as u64);
        println!("{instructions:12} instructions  {bytes:7} bytes to {}", question.to);
        exceeded += u32::from(instructions == 0 || instructions > most);
    }
    ensure!(exceeded == 0, "{exceeded} messages exceed the limit, or nothing was counted");
    Ok(())
}

/// Two good agents, one with a large card.
fn agents_toml() -> String {
    let agent = |name: &str, rest: &str| format!("[[agent]]\nname = \"{name}\"\nabout = \"Is good.\"\n{rest}\n");
    let description = format!("card.patch = {{ description = \"{}\" }}", "x".repeat(LARGE_BYTES));
    let publisher = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n".to_owned();
    publisher + &agent("good.eth", "") + &agent(documents::LARGE, &description)
}

async fn check_document(daemon: &DaemonProcess, question: &WorstCaseDocumentRequest) -> anyhow::Result<()> {
    let said = send_request(daemon, &question.request).await?;
    let excerpt = || said.chars().take(500).collect::<String>();
    ensure!(question.classify(&said) == DocumentResponseClass::Judged, "{}: {}", question.to, excerpt());
    Ok(())
}

async fn send_request(daemon: &DaemonProcess, request: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(daemon.address).await?;
    stream.write_all(request.replacen("\r\n", "\r\nconnection: close\r\n", 1).as_bytes()).await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    Ok(said)
}

/// Makes callgrind reset its counters, or write them.
fn run_callgrind_control(daemon: &DaemonProcess, folder: &Path, command: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("callgrind_control")
        .args(command)
        .arg(daemon.process_id().to_string())
        .current_dir(folder)
        .output();
    let output = output.context("callgrind_control: valgrind has it")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The latest count, once callgrind has written it. Removes the file.
async fn read_instruction_count(folder: &Path) -> anyhow::Result<u64> {
    for _ in 0..LOOKS {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let text = match path.file_name() {
                Some(name) if name.to_string_lossy().starts_with("callgrind.out.") => fs::read_to_string(&path)?,
                _ => continue,
            };
            if let Some(total) = text.lines().find_map(|line| line.strip_prefix("totals: ")) {
                fs::remove_file(&path)?;
                return Ok(total.trim().parse()?);
            }
        }
        sleep(PAUSE).await;
    }
    bail!("callgrind has written nothing")
}
