//! What is shipped for operators against the daemon: alert rules, dashboard and `docs/run.md` name metrics and codes
//! that exist, and each alert is explained. Image, manifests, compose file, unit and proxies have what they are for.

use clresolve_core::reason::{ReasonCode, RefusalCode};
use clresolve_resolver::telemetry::{FAMILIES, MetricType};

use super::*;

const RULES: &str = "deploy/prometheus/alerts.yml";
const RULE_TESTS: &str = "deploy/prometheus/alerts.test.yml";
const DASHBOARD: &str = "deploy/grafana/dashboard.json";
const DOCUMENT: &str = "docs/run.md";
const MANIFESTS: &str = "deploy/kubernetes/clresolve.yaml";
const COMPOSE: &str = "deploy/compose.yml";
const UNIT: &str = "deploy/clresolve.service";

/// The words in `text` that can be names of metrics.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_of_name(c)).filter(|word| {
        word.starts_with("process_") || (word.starts_with("clresolve_") && word.len() > "clresolve_".len())
    });
    words.map(str::to_owned).collect()
}

/// Whether the daemon exposes a series of that name.
fn is_exposed(metric: &str) -> bool {
    let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| metric.strip_suffix(end));
    FAMILIES.iter().any(|family| match family.kind {
        MetricType::Histogram => Some(family.name) == of_histogram,
        MetricType::Counter | MetricType::Gauge => family.name == metric,
    })
}

/// The queries of the dashboard, each with what its lines are called.
fn lines() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let text = |target: &Value, key: &str| target[key].as_str().expect("a text").to_owned();
    targets.map(|target| (text(target, "expr"), text(target, "legendFormat"))).collect()
}

/// The queries of the dashboard.
fn queries() -> Vec<String> {
    lines().into_iter().map(|(query, _)| query).collect()
}

#[test]
fn rules_and_dashboard_name_metrics_that_the_daemon_exposes() {
    for (file, text) in [(RULES, read(RULES)), (RULE_TESTS, read(RULE_TESTS)), (DASHBOARD, queries().concat())] {
        let named = metrics(&text);
        assert!(named.len() > 5, "{file}: {named:?}");
        let unknown: Vec<&String> = named.iter().filter(|metric| !is_exposed(metric)).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    let named = metrics(&read(DOCUMENT));
    let families = || FAMILIES.iter().map(|family| family.name);
    assert!(named.iter().all(|metric| is_exposed(metric) || families().any(|name| name == metric)), "{named:?}");
    let drawn = metrics(&queries().join(" "));
    let missing: Vec<&str> = families().filter(|name| !drawn.iter().any(|drawn| drawn.starts_with(name))).collect();
    assert!(missing.is_empty(), "not on the dashboard: {missing:?}");
}

#[test]
fn rules_name_codes_that_the_gate_gives() {
    let text = read(RULES);
    let known = |code: &str| {
        code == "allow"
            || ReasonCode::ALL.iter().any(|known| known.slug() == code)
            || RefusalCode::ALL.iter().any(|refusal| refusal.slug() == code)
    };
    let matchers = text.split("code=").skip(1).filter_map(|rest| rest.split('"').nth(1));
    let codes: Vec<&str> = matchers.flat_map(|matcher| matcher.split('|')).collect();
    assert!(codes.len() > 3, "{codes:?}");
    assert!(codes.iter().all(|code| known(code)), "{codes:?}");
}

#[test]
fn rules_and_dashboard_name_labels_that_the_daemon_gives() {
    let text = read(RULES) + &queries().join("\n").replace("instance=~\"$instance\"", "");
    let metrics = text.split("clresolve_").skip(1).filter_map(|rest| rest.split(['}', ' ', '[']).next());
    let matchers = metrics.filter_map(|metric| metric.split_once('{')).flat_map(|(_, matchers)| matchers.split("\","));
    let values = matchers.filter_map(|matcher| matcher.split('"').nth(1)).flat_map(|values| values.split('|'));
    let values: BTreeSet<&str> =
        values.filter(|value| RefusalCode::ALL.iter().all(|code| code.slug() != *value)).collect();
    assert!(values.len() > 8, "{values:?}");
    let folders = ["crates/resolver/src", "crates/server/src", "crates/egress/src"]
        .map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let source: String = folders.iter().flat_map(|folder| sources(folder)).collect();
    let unknown: Vec<&str> = values.into_iter().filter(|value| !source.contains(&format!("\"{value}\""))).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// A label that a sum drops leaves a hole in the name of a line.
#[test]
fn lines_of_the_dashboard_are_called_by_labels_that_their_sums_keep() {
    for (query, legend) in lines() {
        let Some((_, kept)) = query.split_once(" by (") else { continue };
        let kept: Vec<&str> = kept.split(')').next().unwrap_or_default().split(", ").collect();
        let mut named = legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
        assert!(named.all(|label| kept.contains(&label)), "{legend} of {query}");
    }
}

/// The texts of a folder of Rust.
fn sources(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![fs::read_to_string(path).expect("UTF-8")] })
        .collect()
}

#[test]
fn each_alert_fires_in_the_tests_of_the_rules() {
    let tests = read(RULE_TESTS);
    for alert in starting_with(RULES, "- alert: ") {
        let fires = format!("alertname: {alert}\n        exp_alerts:");
        assert!(tests.contains(&fires), "{alert} fires in no test of {RULE_TESTS}");
    }
}

/// What follows `start` on the lines of a file.
fn starting_with(file: &str, start: &str) -> Vec<String> {
    let text = read(file);
    text.lines().filter_map(|line| line.trim_start().strip_prefix(start)).map(str::to_owned).collect()
}

#[test]
fn each_alert_is_explained() {
    let alerts = starting_with(RULES, "- alert: ");
    assert!(alerts.len() > 10, "{alerts:?}");
    let text = read(RULES);
    for (alert, rule) in alerts.iter().zip(text.split("- alert: ").skip(1)) {
        let mut descriptions = rule.lines().filter_map(|line| line.trim_start().strip_prefix("description: "));
        let is_explained = descriptions.next().is_some_and(|text| text.split(' ').count() > 5);
        assert!(is_explained, "{alert} has no description");
    }
}

/// What holds memory is measured as it is shipped.
#[test]
fn unit_and_image_set_the_allocator_that_the_load_programs_set() {
    let text = read("crates/traffic/src/lib.rs");
    let line = text.lines().find(|line| line.starts_with("const ALLOCATOR: ")).expect("what the load programs set");
    let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    let set: Vec<String> = words.chunks(2).map(|pair| pair.join("=")).collect();
    for (file, keyword) in [("deploy/clresolve.service", "Environment="), ("deploy/Dockerfile", "ENV ")] {
        let line = format!("{keyword}{}", set.join(" "));
        assert!(read(file).lines().any(|written| written == line), "{file}: {line}");
    }
    let bench = read("benches/crowd.rs");
    for (pair, variable) in words.chunks(2).zip(&set) {
        assert!(read(DOCUMENT).contains(&format!("`{variable}`")), "{DOCUMENT}: {variable}");
        assert!(bench.contains(&format!("({:?}, {:?})", pair[0], pair[1])), "benches/crowd.rs: {variable}");
    }
}

/// An alert compares the commits that daemons say they were built from.
#[test]
fn what_is_shipped_is_built_with_its_commit() {
    for (file, given) in [
        (".github/workflows/release.yml", "CLRESOLVE_COMMIT: ${{ github.sha }}"),
        ("deploy/Dockerfile", "CLRESOLVE_COMMIT=$(git rev-parse HEAD) "),
    ] {
        assert!(read(file).contains(given), "{file}: {given}");
    }
}

/// The workflows, and what a user copies as one.
const WORKFLOWS: [&str; 3] = [".github/workflows/ci.yml", ".github/workflows/release.yml", "deploy/github-audit.yml"];

/// A tag of an action may move, and a commit does not.
#[test]
fn actions_are_pinned_by_commit() {
    for file in WORKFLOWS {
        let text = read(file);
        let used = text.lines().filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix("uses: "));
        for action in used.filter(|action| !action.starts_with("./")) {
            let (_, version) = action.split_once('@').unwrap_or_else(|| panic!("{file}: {action}"));
            let (commit, tag) = version.split_once(" # v").unwrap_or_else(|| panic!("{file}: {action}"));
            let is_commit = commit.len() == 40 && commit.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            assert!(is_commit && tag.split('.').count() == 3, "{file}: {action}");
        }
    }
}

/// What runs in a build is code of dependencies too: it must not be able to change a release.
#[test]
fn release_job_that_can_write_compiles_nothing() {
    const COMPILES: [&str; 7] = ["checkout", "cargo", "rustup", "apt-get", "npm ci", "npm install", "release/"];
    let text = read(".github/workflows/release.yml");
    let (head, jobs) = text.split_once("\njobs:\n").expect("jobs");
    assert!(head.contains("\npermissions:\n  contents: read\n") && !head.contains("write\n"), "{head}");
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ") && line.ends_with(':');
    let names: Vec<&str> = jobs.lines().filter(is_name).collect();
    let reading = ["  check:", "  build:", "  components:", "  packages:"];
    let writing = ["  publish:", "  npm:", "  pypi:", "  image:", "  tap:"];
    assert_eq!(names, [&reading[..], &writing].concat());
    for (at, name) in names.iter().enumerate() {
        let (_, rest) = jobs.split_once(&format!("{name}\n")).expect("the job");
        let job = names.get(at + 1).and_then(|next| rest.split_once(&format!("{next}\n"))).map_or(rest, |(job, _)| job);
        if reading.contains(name) {
            assert!(!job.contains(": write") && !job.contains("secrets."), "{name}: {job}");
        } else {
            assert!(!COMPILES.iter().any(|word| job.contains(word)), "{name}: {job}");
        }
    }
    assert!(jobs.contains("subject-checksums: dist/SHA256SUMS") && jobs.contains("npm publish --provenance"), "{jobs}");
}

/// Nothing is in the image that a request could start but the program, and it finds its roots.
#[test]
fn image_holds_a_static_program_and_roots_alone() {
    let workflow = read(".github/workflows/release.yml");
    assert!(workflow.contains("crt-static") && workflow.contains("grep NEEDED; then exit 1"), "{workflow}");
    let text = read("deploy/Dockerfile");
    let (before, image) = text.split_once("\nFROM scratch\n").expect("the image begins with nothing");
    assert!(before.lines().all(|line| line.is_empty() || line.starts_with('#')), "{before}");
    let copied = image.lines().filter_map(|line| line.strip_prefix("COPY "));
    let copied: Vec<&str> = copied.filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(copied, ["/etc/ssl/certs/ca-certificates.crt", "/usr/local/bin/clresolve"]);
    assert!(image.contains("\nENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt\n"), "{image}");
    assert!(image.contains("\nUSER 65532:65532\n") && image.contains("\nENTRYPOINT [\""), "{image}");
    assert!(!image.lines().any(|line| line.starts_with("RUN ")), "{image}");
    let check = starting_with("deploy/Dockerfile", "HEALTHCHECK ");
    assert!(
        check.len() == 1 && check[0].ends_with(" CMD [\"/usr/local/bin/clresolve\", \"ctl\", \"ready\"]"),
        "{check:?}"
    );
    // What the manifests run in a container must not need a shell either.
    assert!(!read(MANIFESTS).contains("exec:"), "{MANIFESTS}");
}

/// Probes ask for what the daemon answers, and a node that is emptied takes no more daemons than one.
#[tokio::test(flavor = "multi_thread")]
async fn the_manifests_have_what_a_cluster_needs() {
    assert_eq!(starting_with(MANIFESTS, "kind: "), ["Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"]);
    let number = |key: &str| {
        let values = starting_with(MANIFESTS, key);
        values.first().and_then(|value| value.parse::<u32>().ok()).unwrap_or_else(|| panic!("{key}: {values:?}"))
    };
    assert_eq!(number("replicas: "), number("minAvailable: ") + 1);
    let text = read(MANIFESTS);
    for port in ["--listen, \"0.0.0.0:8402\"", "{ name: http, containerPort: 8402 }", "{ name: http, port: 8402,"] {
        assert!(text.contains(port), "{port}");
    }
    let daemon = Daemon::start(|_| {}).await;
    for (probe, path) in [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        let (_, of_probe) = text.split_once(&format!(" {probe}:\n")).unwrap_or_else(|| panic!("{probe}"));
        let asks = of_probe.lines().next().unwrap_or_default().trim();
        assert_eq!(asks, format!("httpGet: {{ path: {path}, port: http }}"), "{probe}");
        while reqwest::get(format!("{}{path}", daemon.url)).await.expect("the daemon answers").status() != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

/// What the daemon and Prometheus are told of each other and of Valkey is what the file calls them.
#[test]
fn compose_brings_valkey_and_prometheus() {
    let images = starting_with(COMPOSE, "image: ");
    let names: Vec<&str> = images.iter().filter_map(|image| Some(image.split_once(':')?.0)).collect();
    assert_eq!(names, ["clresolve", "valkey/valkey", "prom/prometheus"]);
    assert!(images.iter().all(|image| !image.ends_with(":latest")), "{images:?}");
    let text = read(COMPOSE);
    for told in [
        "\n  clresolve:\n",
        "\n  valkey:\n",
        "\n  prometheus:\n",
        "redis://valkey:6379/",
        "./prometheus/prometheus.yml:/etc/prometheus/prometheus.yml:ro",
        "./prometheus/alerts.yml:/etc/prometheus/alerts.yml:ro",
    ] {
        assert!(text.contains(told), "{told}");
    }
    let scraped = read("deploy/prometheus/prometheus.yml");
    for told in ["rule_files: [/etc/prometheus/alerts.yml]", "targets: [\"clresolve:8402\"]"] {
        assert!(scraped.contains(told), "{told}");
    }
}

/// `clresolve ctl` looks in the unit's folder unless it is told another one.
#[test]
fn the_unit_notifies_and_has_a_folder_for_sockets() {
    assert_eq!(starting_with(UNIT, "Type="), ["notify"]);
    let watchdog = starting_with(UNIT, "WatchdogSec=");
    let seconds = watchdog.first().and_then(|time| time.strip_suffix('s')?.parse::<u32>().ok());
    assert!(seconds.is_some_and(|seconds| seconds > 0), "{watchdog:?}");
    let folders = starting_with(UNIT, "RuntimeDirectory=");
    assert_eq!(folders.len(), 1, "{folders:?}");
    let help = shell(&workplace(), "clresolve ctl show --help").stdout;
    let help = String::from_utf8(help).expect("UTF-8");
    let default = format!("/run/{}/admin.sock]", folders[0]);
    assert!(help.split_whitespace().any(|word| word == default), "{default}: {help}");
    assert!(read(UNIT).contains(&format!("socket = \"{}\"", default.trim_end_matches(']'))), "{UNIT}");
}

/// Each of these lets a call pass whose gate is down, slow or wrong. `tests/proxy/matrix.txt` shows the first one.
#[test]
fn no_shipped_proxy_fails_open() {
    assert_eq!(starting_with("deploy/envoy.yaml", "failure_mode_allow: "), ["false"]);
    for (file, opens) in [
        ("deploy/envoy.yaml", "failure_mode_allow: true"),
        ("deploy/envoy.yaml", "status_on_error"),
        ("deploy/nginx.conf", "error_page"),
        ("deploy/nginx.conf", "satisfy any"),
        ("deploy/nginx-tls.conf", "error_page"),
        ("deploy/Caddyfile", "handle_errors"),
        ("deploy/Caddyfile", "handle_response"),
    ] {
        assert!(!read(file).contains(opens), "{file}: {opens}");
    }
}
