//! The process metrics that every Prometheus client library exports, read from `/proc/self` at each scrape. They are
//! absent on systems other than Linux.

use std::fmt::Write as _;
use std::fs;

use super::{CPU_SECONDS, FAMILIES, MAX_FDS, MetricFamily, MetricType, OPEN_FDS, RESIDENT_MEMORY, VIRTUAL_MEMORY};

/// Clock ticks per second in `/proc/self/stat`: `USER_HZ`, which is 100 on each architecture that Rust supports.
const USER_HZ: f64 = 100.0;

/// The series of the process in Prometheus's text format. A value that cannot be read is omitted.
pub(super) fn render_process_metrics() -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let status = read("status");
    let values = [
        (CPU_SECONDS, parse_cpu_seconds(&read("stat"))),
        (RESIDENT_MEMORY, parse_status_bytes(&status, "VmRSS:")),
        (VIRTUAL_MEMORY, parse_status_bytes(&status, "VmSize:")),
        (OPEN_FDS, count_open_fds()),
        (MAX_FDS, parse_max_fds(&read("limits"))),
    ];
    let mut text = String::new();
    for MetricFamily { name, kind, help, .. } in &FAMILIES {
        let value = values.iter().find(|(known, _)| known == name).and_then(|(_, value)| *value);
        if let Some(value) = value {
            let word = if *kind == MetricType::Counter { "counter" } else { "gauge" };
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {word}\n{name} {value}");
        }
    }
    text
}

/// User and system time: fields 14 and 15. The second field, the program's name, may contain spaces and parentheses.
fn parse_cpu_seconds(stat: &str) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut times = after_name.split_whitespace().skip(11);
    let mut ticks = || times.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / USER_HZ)
}

/// The size with this label in `/proc/self/status`, in bytes.
fn parse_status_bytes(status: &str, label: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(label))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}

/// Open file descriptors, without the one that lists them.
fn count_open_fds() -> Option<f64> {
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(listed.saturating_sub(1) as f64)
}

/// The soft limit, which the kernel enforces.
fn parse_max_fds(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_the_files_of_the_kernel() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 1500 0 0 0 250 75 9 9 20 0 4 0 123 1000 200";
        assert_eq!(parse_cpu_seconds(stat), Some(3.25));
        let status = "Name:\tclresolve\nVmSize:\t  204800 kB\nVmRSS:\t   10240 kB\n";
        assert_eq!(parse_status_bytes(status, "VmRSS:"), Some(10_485_760.0));
        assert_eq!(parse_status_bytes(status, "VmSize:"), Some(209_715_200.0));
        let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files            1024        524288      files\n";
        assert_eq!(parse_max_fds(limits), Some(1024.0));
        let nothing = [
            parse_cpu_seconds(""),
            parse_status_bytes("", "VmRSS:"),
            parse_max_fds(""),
            parse_max_fds("Max open files   unlimited   files"),
        ];
        assert_eq!(nothing, [None; 4]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_has_the_standard_families_with_help_and_type() {
        let text = render_process_metrics();
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} is missing from {text}"))
        };
        assert!(value(CPU_SECONDS) >= 0.0);
        assert!(value(RESIDENT_MEMORY) > 0.0 && value(RESIDENT_MEMORY) < value(VIRTUAL_MEMORY), "{text}");
        assert!(value(OPEN_FDS) > 0.0 && value(OPEN_FDS) < value(MAX_FDS), "{text}");
        assert!(text.contains("# TYPE process_cpu_seconds_total counter\n"), "{text}");
        assert!(text.contains("# TYPE process_open_fds gauge\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("# HELP process_")).count(), 5);
    }
}
