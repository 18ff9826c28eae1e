//! The program as a service: what a service manager is told over a real socket, and what its log says at the start.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use clresolve_resolver::sandbox::Sandbox;
use serde_json::{Value, json};

use crate::http::{START, patient, program};

#[tokio::test(flavor = "multi_thread")]
async fn a_service_manager_is_told_of_start_reload_life_and_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let (file, path) = (folder.path().join("clresolve.toml"), folder.path().join("notify"));
    let mut config = patient(&sandbox);
    config.http.drain_notice = Duration::from_millis(1);
    config.save(&file).expect("the folder can be written");
    let socket = UnixDatagram::bind(&path).expect("the folder can be written");
    socket.set_read_timeout(Some(START)).expect("a timeout");
    // The next state that it is told, without the signs of life before it, and their number.
    let told = || {
        for signs in 0.. {
            let mut state = [0; 128];
            let length = socket.recv(&mut state).expect("a state in time");
            let state = String::from_utf8(state[..length].to_vec()).expect("UTF-8");
            if state != "WATCHDOG=1\n" {
                return (signs, state);
            }
        }
        unreachable!("states are endless")
    };

    let mut child = program(&["serve", "--config", &file.display().to_string()])
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "60000")
        .spawn()
        .expect("the program starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    // What its endpoints are worth, it may say before.
    let address = log.find_map(|line| Some(line.split_once("listening on http://")?.1.to_owned())).expect("an address");
    assert_eq!(told(), (0, "READY=1\n".to_owned()));
    std::net::TcpStream::connect(address).expect("what is ready listens");

    let mut state = [0; 128];
    let length = socket.recv(&mut state).expect("a sign of life");
    assert_eq!(&state[..length], b"WATCHDOG=1\n");

    let signal = |signal: &str| {
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
    };
    signal("-HUP");
    let (_, reloading) = told();
    let began = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").map(str::trim);
    assert!(began.is_some_and(|began| began.parse::<u64>().is_ok_and(|began| began > 0)), "{reloading}");
    assert_eq!(told().1, "READY=1\n");
    std::fs::write(&file, "no configuration").expect("the folder can be written");
    signal("-HUP");
    assert!(told().1.starts_with("RELOADING=1\n"));
    assert_eq!(told().1, "READY=1\n", "the configuration before stays in force, and the service is ready");

    signal("-TERM");
    assert_eq!(told().1, "STOPPING=1\n");
    log.for_each(drop);
    assert_eq!(child.wait().expect("the program ends").code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_in_json_is_an_object_a_line_and_begins_with_what_holds() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let file = folder.path().join("clresolve.toml");
    let mut config = patient(&sandbox);
    config.http.drain_notice = Duration::from_millis(1);
    config.chain.endpoints[0].label = "own-node".to_owned();
    config.save(&file).expect("the folder can be written");
    let mut child = program(&["serve", "--log-format", "json", "--config", &file.display().to_string()])
        .spawn()
        .expect("the program starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut fields_of = |start: &str| loop {
        let mut line = String::new();
        log.read_line(&mut line).expect("a line");
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if line["fields"]["message"].as_str().expect("a message").starts_with(start) {
            break line["fields"].clone();
        }
    };
    let listening = fields_of("listening on http://")["message"].to_string();
    let address = listening.trim_matches('"').trim_start_matches("listening on http://");
    let configured = fields_of("the configuration file is ")["message"].to_string();
    assert!(configured.contains(&file.display().to_string()), "{configured}");
    let started = fields_of("started");
    assert_eq!(started["version"], env!("CARGO_PKG_VERSION"));
    for (member, value) in [
        ("world", "sandbox"),
        ("profile", &config.rules.profile),
        ("proof", "single-rpc"),
        ("endpoints", "own-node"),
        ("gateways", "gateway"),
        ("cache", "10000 trusted, 10000 untrusted, 134217728 bytes"),
    ] {
        assert_eq!(started[member], value, "{member}: {started}");
    }
    let url = config.chain.endpoints[0].url.to_string();
    assert!(!started.to_string().contains(&url), "{started}");

    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let answer = client.get(format!("http://{address}/v1/gate/a%1b%5B31mb%0a.eth")).send().await.expect("an answer");
    assert_eq!(answer.status(), 403);
    let metrics = client.get(format!("http://{address}/metrics")).send().await.expect("an answer");
    let metrics = metrics.text().await.expect("UTF-8");
    let build = format!("clresolve_build_info{{version=\"{}\",commit=\"", env!("CARGO_PKG_VERSION"));
    assert!(metrics.lines().any(|line| line.starts_with(&build) && line.ends_with("\"} 1")), "{metrics}");
    let start = metrics.lines().find_map(|line| line.strip_prefix("process_start_time_seconds "));
    assert!(start.and_then(|start| start.parse::<f64>().ok()).is_some_and(|start| start > 1.7e9), "{metrics}");
    #[cfg(target_os = "linux")]
    for (name, least) in [
        ("process_cpu_seconds_total", 0.0),
        ("process_resident_memory_bytes", 1e6),
        ("process_virtual_memory_bytes", 1e6),
        ("process_open_fds", 3.0),
        ("process_max_fds", 16.0),
    ] {
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
        assert!(value.is_some_and(|value| value >= least), "{name}: {metrics}");
        assert!(metrics.contains(&format!("# TYPE {name} ")), "{name}: {metrics}");
    }

    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let mut rest = String::new();
    log.read_to_string(&mut rest).expect("UTF-8");
    assert_eq!(child.wait().expect("the program ends").code(), Some(0), "{rest}");
    let lines: Vec<Value> =
        rest.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    assert!(lines.iter().any(|line| line["fields"]["path"] == "/v1/gate/a%1b%5B31mb%0a.eth"), "{rest}");
    assert!(lines.iter().any(|line| line["fields"]["message"] == "draining"), "{rest}");
}

/// What was decided about money is one event each, also where an answer is given again.
#[tokio::test(flavor = "multi_thread")]
async fn each_decision_is_one_event_of_the_log() {
    const URL: &str = "https://api.sandbox.example/summarize/v1";
    const DOLLAR: &str = "0x00000000000000000000000000000000d0114400";
    const PAYEE: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    const THIEF: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let file = folder.path().join("clresolve.toml");
    let mut config = patient(&sandbox);
    config.http.drain_notice = Duration::from_millis(1);
    config.save(&file).expect("the folder can be written");
    let mut child = program(&["serve", "--log-format", "json", "--config", &file.display().to_string()])
        .spawn()
        .expect("the program starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let address = log.find_map(|line| Some(line.split_once("listening on http://")?.1.split('"').next()?.to_owned()));
    let decisions = format!("http://{}/v1/decisions", address.expect("an address"));
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let mut decided = Vec::new();
    for pay_to in [PAYEE, PAYEE, THIEF] {
        let entry = json!({
            "scheme": "exact", "network": "eip155:31337", "amount": "10000", "asset": DOLLAR, "payTo": pay_to,
            "maxTimeoutSeconds": 60, "extra": {"name": "Sandbox Dollar", "version": "1"},
        });
        let terms = json!({"x402Version": 2, "resource": {"url": URL}, "accepts": [entry]});
        let question = json!({"name": "summarizeagent.eth", "verb": "summarize", "url": URL, "paymentRequired": terms});
        let asked = client.post(&decisions).header("content-type", "application/json").body(question.to_string());
        let answer = asked.send().await.expect("an answer").bytes().await.expect("a whole answer");
        decided.push(serde_json::from_slice::<Value>(&answer).expect("JSON"));
    }
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let lines = log.map(|line| serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}")));
    let events: Vec<Value> = lines.filter(|line| line["target"] == "clresolve::decision").collect();
    assert_eq!(child.wait().expect("the program ends").code(), Some(0));
    assert_eq!(events.len(), decided.len(), "{events:#?}");
    for (event, decision) in events.iter().zip(&decided) {
        let codes: Vec<&str> = decision["codes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let expected = json!({
            "message": "decision",
            "id": decision["id"],
            "decision": decision["decision"],
            "name": "summarizeagent.eth",
            "verb": "summarize",
            "network": "eip155:31337",
            "asset": DOLLAR,
            "amount": "10000",
            "payee": decision["payee"]["address"],
            "codes": codes.join(","),
            "verdict": decision["verdict"],
        });
        let mut fields = event["fields"].clone();
        let proven_by = fields.as_object_mut().expect("an object").remove("proven_by").unwrap_or_default();
        assert_eq!(proven_by, decision["payee"]["proven_by"]);
        for address in ["asset", "payee"] {
            fields[address] = fields[address].as_str().expect("text").to_lowercase().into();
        }
        assert_eq!(fields, expected);
    }
}
