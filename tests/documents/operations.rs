//! What is shipped for operators against the daemon: alert rules, dashboard and `docs/operations.md` name metrics and codes
//! that exist, and each alert is explained.

use clresolve::reason::{Code, Refusal};
use clresolve::telemetry::{FAMILIES, Kind};

use super::*;

const RULES: &str = "deploy/prometheus/alerts.yml";
const RULE_TESTS: &str = "deploy/prometheus/alerts.test.yml";
const DASHBOARD: &str = "deploy/grafana/dashboard.json";
const DOCUMENT: &str = "docs/operations.md";

/// What `/metrics` says beside the families.
const MEMORY: &str = "process_resident_memory_bytes";

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
    metric == MEMORY
        || FAMILIES.iter().any(|family| match family.kind {
            Kind::Histogram => Some(family.name) == of_histogram,
            Kind::Counter | Kind::Gauge => family.name == metric,
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
            || Code::ALL.iter().any(|known| known.slug() == code)
            || Refusal::ALL.iter().any(|refusal| refusal.slug() == code)
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
    let values: BTreeSet<&str> = values.filter(|value| Refusal::ALL.iter().all(|code| code.slug() != *value)).collect();
    assert!(values.len() > 8, "{values:?}");
    let folders = ["src", "crates/egress/src"].map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
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
    assert_eq!(starting_with(DOCUMENT, "### "), alerts);
}

/// What holds memory is measured as it is shipped.
#[test]
fn unit_and_image_set_the_allocator_that_the_load_programs_set() {
    let text = read("crates/traffic/src/lib.rs");
    let line = text.lines().find(|line| line.starts_with("const ALLOCATOR: ")).expect("what the load programs set");
    let parts: Vec<&str> = line.split('"').collect();
    let set = format!("{}={}", parts[1], parts[3]);
    for (file, keyword) in [("deploy/clresolve.service", "Environment="), ("deploy/Dockerfile", "ENV ")] {
        assert!(read(file).lines().any(|line| line == format!("{keyword}{set}")), "{file}: {set}");
    }
    assert!(read(DOCUMENT).contains(&format!("`{set}`")), "{DOCUMENT}: {set}");
}

/// An alert compares the commits that daemons say they were built from.
#[test]
fn what_is_shipped_is_built_with_its_commit() {
    for (file, given) in [
        (".github/workflows/release.yml", "CLRESOLVE_COMMIT: ${{ github.sha }}"),
        ("deploy/Dockerfile", "CLRESOLVE_COMMIT=\"$COMMIT\" cargo build"),
        ("deploy/Dockerfile", "--build-arg COMMIT=\"$(git rev-parse HEAD)\""),
        ("deploy/compose.yml", "COMMIT: \"${COMMIT:-unknown}\""),
    ] {
        assert!(read(file).contains(given), "{file}: {given}");
    }
}
