//! The reference in `docs/reference/`, rendered from the program. `just reference` writes it again.

use std::fmt::Write as _;

use clresolve_core::reason::{Code, Effect, Fixer, Refusal};
use clresolve_resolver::telemetry::{FAMILIES, Kind};

use super::documented_keys::{Documented, documented};
use super::orloj::SYSTEM;
use super::*;

/// Options that mean the same in every command; the page describes them once.
const COMMON: [&str; 6] = ["--json", "--out", "--verbose", "--quiet", "--color", "--help"];

/// The headings over lists of commands: the groups of the program, and that of a command with commands below it.
const LISTS: [&str; 5] = ["Ask:", "Pay:", "Publish:", "Operate:", "Commands:"];

/// The command whose help has the exit statuses of a verdict, and the options of every command.
const VERIFY: [&str; 1] = ["verify"];

const METHODS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn reference_pages_match_the_program() {
    let description = description().await;
    let pages = [
        ("cli", cli()),
        ("configuration", configuration()),
        ("http", http(&description)),
        ("metrics", metrics()),
        ("reasons", reasons()),
    ];
    let mut stale = Vec::new();
    for (name, page) in pages {
        let file = root().join(format!("docs/reference/{name}.md"));
        if std::env::var_os("REFERENCE").is_some_and(|value| value == "write") {
            fs::write(&file, &page).expect("the page can be written");
        }
        if fs::read_to_string(&file).ok().as_deref() != Some(&page) {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "`just reference` writes {stale:?} again");
}

/// A table with these columns.
fn table<const N: usize>(columns: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head = line(&columns.map(str::to_owned)) + &line(&columns.map(|_| "---".to_owned()));
    rows.into_iter().fold(head, |table, row| table + &line(&row))
}

/// Text that Markdown shows as it is.
fn cell(text: &str) -> String {
    // Spans of code show every character but the one that ends a cell.
    let spans = text.split('`').enumerate().map(|(at, span)| match at % 2 {
        0 => span.replace('<', "&lt;").replace('*', "\\*").replace('[', "\\["),
        _ => span.to_owned(),
    });
    spans.collect::<Vec<_>>().join("`").replace('|', "\\|")
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
}

fn help(command: &[&str]) -> String {
    let arguments = [command, &["-h"]].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_clresolve")).args(arguments).output().expect("the program runs");
    String::from_utf8(output.stdout).expect("help is UTF-8")
}

/// The paragraph of a help text that begins so.
fn paragraph<'a>(help: &'a str, start: &str) -> Option<&'a str> {
    let at = help.find(&format!("\n{start}"))? + 1;
    help[at..].split("\n\n").next().map(str::trim_end)
}

/// The entries of a help text: what is typed, and what it means.
fn entries_of(help: &str, starts: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    let is_list =
        |part: &&str| !part.starts_with("Examples:") && part.lines().nth(1).is_some_and(|line| line.starts_with("  "));
    for line in help.split("\n\n").skip(2).take_while(is_list).flat_map(str::lines) {
        let text = line.trim_start();
        let (indent, (typed, meaning)) = (line.len() - text.len(), text.split_once("  ").unwrap_or((text, "")));
        match entries.last_mut() {
            _ if (2..=6).contains(&indent) => entries.push((typed.to_owned(), meaning.trim_start().to_owned())),
            Some((_, meaning)) if indent > 6 => *meaning = format!("{meaning} {text}").trim_start().to_owned(),
            _ => {}
        }
    }
    entries.retain(|(typed, _)| starts(typed));
    entries
}

fn cli() -> String {
    let verify = help(&VERIFY);
    let is_option = |typed: &str| typed.starts_with(['-', '<', '[']);
    let mut page = "# Command line\n\n\
        `clresolve NAME...` is short for `clresolve verify NAME...`. `clresolve help COMMAND` adds notes and examples to what \
        is\nlisted here. Options of the world are those of every command that asks the chain, a host or a gateway; each is a\n\
        [configuration key](configuration.md) too.\n\n## Exit statuses\n\n"
        .to_owned();
    let statuses = paragraph(&verify, "Exit codes:").expect("the exit statuses");
    let _ = write!(page, "```text\n{statuses}\n```\n\n## Options of every command\n\n");
    let row = |(typed, meaning): &(String, String)| [code(typed), cell(meaning)];
    page += &table(["option", "meaning"], entries_of(&verify, is_common).iter().map(row));
    page += "\n## Options of the world\n\n";
    let world = shell(&workplace(), "clresolve help world").stdout;
    let world = String::from_utf8(world).expect("help is UTF-8");
    let known = entries_of(&world, is_option);
    page += &table(["option", "meaning"], known.iter().map(row));
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(command) = commands.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let text = help(&words);
        let below: Vec<&str> = LISTS.iter().filter_map(|heading| paragraph(&text, heading)).collect();
        let below = entries_of(&format!("\n\n\n\n{}", below.join("\n")), |name| name != "help");
        commands.extend(below.iter().rev().map(|(name, _)| [command.as_slice(), std::slice::from_ref(name)].concat()));
        if !command.is_empty() {
            page += &of_command(&words, &text, below.is_empty(), &known);
        }
    }
    page
}

fn is_common(typed: &str) -> bool {
    typed.split([',', ' ', '.']).any(|word| COMMON.contains(&word))
}

/// The section of a command.
fn of_command(command: &[&str], help: &str, is_leaf: bool, world: &[(String, String)]) -> String {
    let about = help.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let usage = paragraph(help, "Usage:").unwrap_or_default().trim_start_matches("Usage:");
    let level = if command.len() == 1 { "##" } else { "###" };
    let mut section = format!("\n{level} {}\n\n{}.\n", command.join(" "), wrapped(&cell(&about)));
    let own = |typed: &str| typed.starts_with(['-', '<', '[']) && !is_common(typed);
    let (of_world, options): (Vec<_>, Vec<_>) = entries_of(help, own).into_iter().partition(|one| world.contains(one));
    if is_leaf || !options.is_empty() {
        let usage: Vec<&str> = usage.lines().map(str::trim).collect();
        let _ = write!(section, "\n`{}`\n", usage.join("`, `"));
    }
    if !options.is_empty() {
        let rows = options.iter().map(|(typed, meaning)| [code(typed), cell(meaning)]);
        let _ = write!(section, "\n{}", table(["argument", "meaning"], rows));
    }
    if !of_world.is_empty() {
        let names: Vec<String> = of_world.iter().map(|(typed, _)| code(typed)).collect();
        let _ = write!(section, "\n{}\n", wrapped(&format!("Options of the world: {}.", names.join(", "))));
    }
    if let Some(statuses) = paragraph(help, "Exit codes:").filter(|_| command != VERIFY) {
        let _ = write!(section, "\n{}\n", cell(statuses));
    }
    section
}

fn configuration() -> String {
    let mut page = "# Configuration keys\n\n\
        Precedence: defaults, file, environment, flags; the last one wins. A list from a stronger source replaces that of a\n\
        weaker one; only `connect-to`, `allow-host` and `ca` add up. Unknown keys are errors. All commands \
        and the\ndaemon read one file: the one that `--config` or `CLRESOLVE_CONFIG` names, otherwise the first that exists \
        of\n`$XDG_CONFIG_HOME/clresolve/config.toml` (`~/.config/clresolve/config.toml`) and \
        `/etc/clresolve/config.toml`.\n`clresolve config show` prints each value and its source.\n"
        .to_owned();
    let keys = documented();
    let mut tables: Vec<&str> = Vec::new();
    for key in &keys {
        if !tables.contains(&key.table.as_str()) {
            tables.push(&key.table);
        }
    }
    for name in tables {
        let of_table = keys.iter().filter(|key| key.table == name && !key.meaning.is_empty());
        let about = keys.iter().find(|key| key.table == name).map_or("", |key| key.about_table.as_str());
        let heading = if name.is_empty() { "Top level".to_owned() } else { format!("`{name}`") };
        let _ = write!(page, "\n## {heading}\n\n");
        if !about.is_empty() && !name.starts_with("[[") {
            let _ = write!(page, "{}\n\n", wrapped(&cell(about)));
        }
        page += &table(["key", "type", "default", "meaning"], of_table.map(row_of_key));
    }
    page
}

fn row_of_key(key: &Documented) -> [String; 4] {
    let value: toml::Table = format!("v = {}", key.value).parse().expect("the value is TOML");
    let kind = match &value["v"] {
        toml::Value::String(text) if is_duration(text) => "duration",
        value => value.type_str(),
    };
    let default = if key.is_of_a_list() || key.note.none { String::new() } else { code(key.default()) };
    let sources = [&key.note.flag, &key.note.variable].into_iter().flatten().map(|name| format!("`{name}`"));
    let sources = sources.collect::<Vec<_>>().join(", ");
    let sources = if sources.is_empty() { sources } else { format!(" ({sources})") };
    [code(&key.key), kind.to_owned(), default, cell(&key.meaning) + &sources]
}

fn is_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    unit.len() < text.len() && ["ms", "s", "m", "h"].contains(&unit)
}

/// The words in lines that are short enough.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is a line");
        match last.len() {
            0 => last.push_str(word),
            length if length + 1 + word.len() <= LINE => *last = format!("{last} {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// The OpenAPI description of a daemon that has every route.
async fn description() -> Value {
    let folder = workplace();
    let (key, resources) = (folder.path().join("k.pem"), folder.path().join("orloj.yaml"));
    fs::write(&resources, SYSTEM).expect("the folder can be written");
    assert!(shell(&folder, "clresolve signature key new k.pem").status.success(), "no key");
    let daemon = Daemon::start(|config| {
        (config.http.discover, config.explorer.probe) = (true, true);
        // The sandbox signs nothing.
        config.chain.world = "lab".to_owned();
        (config.sign.key, config.sign.issuer) = (Some(key), Some("https://clresolve.example".to_owned()));
        config.mcp.hosts = vec!["127.0.0.1".to_owned()];
        config.orloj.resources = vec![resources];
        config.orloj.base_url = Some("https://orloj.example".parse().expect("a URL"));
    })
    .await;
    labels_are_those_of_the_table(&get(&daemon, "/metrics").await);
    serde_json::from_str(&get(&daemon, "/openapi.json").await).expect("JSON")
}

async fn get(daemon: &Daemon, path: &str) -> String {
    let answer = reqwest::get(format!("{}{path}", daemon.url)).await.expect("the daemon answers");
    answer.text().await.expect("a text")
}

fn labels_are_those_of_the_table(exposition: &str) {
    let series = exposition.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('{'));
    let mut count = 0;
    for (name, labels) in series {
        let family = FAMILIES.iter().find(|family| name.starts_with(family.name)).expect("a family of the table");
        let labels = labels.split("=\"").filter_map(|part| part.rsplit(['"', ',', '{']).next());
        let mut labels: Vec<&str> = labels.filter(|label| !label.contains(' ') && *label != "le").collect();
        labels.retain(|label| !label.is_empty());
        assert_eq!(labels, family.labels, "{name}");
        count += 1;
    }
    assert!(count > 10, "{exposition}");
}

fn http(description: &Value) -> String {
    let mut page = "# HTTP API\n\n\
        `GET /openapi.json` describes the routes of a running daemon in OpenAPI 3.1, with the schemas of all bodies. Some\n\
        routes exist only if the [configuration](configuration.md) enables them: `/mcp`, `/v1/discover`, `/v1/probes`,\n\
        `/.well-known/jwks.json` and the cards of Orloj. Refusals are problem documents (RFC 9457) whose `type` ends with a\n\
        [reason code](reasons.md).\n\n"
        .to_owned();
    let mut rows: Vec<[String; 5]> = Vec::new();
    for (path, methods) in description["paths"].as_object().expect("paths") {
        let methods = methods.as_object().expect("methods");
        let named: Vec<String> = methods.keys().map(|method| method.to_uppercase()).collect();
        let every = named.len() == METHODS;
        for (method, operation) in methods.iter().take(if every { 1 } else { METHODS }) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters =
                parameters.filter(|parameter| parameter["in"] != "path" && parameter["name"] != "If-None-Match");
            let parameters =
                parameters.map(|one| format!("`{}`: {}", text(&one["name"]), cell(&text(&one["description"]))));
            let statuses = operation["responses"].as_object().expect("responses").keys().cloned();
            rows.push([
                code(path),
                if every { "any".to_owned() } else { method.to_uppercase() },
                cell(&text(&operation["summary"])),
                parameters.collect::<Vec<_>>().join("<br>"),
                statuses.collect::<Vec<_>>().join(", "),
            ]);
        }
    }
    page += &table(["route", "method", "what it does", "query and headers", "statuses"], rows);
    page
}

fn metrics() -> String {
    let mut page = "# Metrics\n\n`GET /metrics` serves these in the text format of Prometheus.\n\n".to_owned();
    let rows = FAMILIES.iter().map(|family| {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels: Vec<String> = family.labels.iter().map(|label| code(label)).collect();
        [code(family.name), kind.to_owned(), labels.join(", "), cell(family.help)]
    });
    page += &table(["metric", "kind", "labels", "meaning"], rows);
    page
}

fn reasons() -> String {
    let mut page = "# Reason codes\n\n\
        `clresolve explain CODE` prints the full meaning of a code and what to do. `fail`: the verdict is untrusted, or the\n\
        payment, card, request, receipt or signature is rejected. `unknown`: undecided, unless something fails. `warn`:\n\
        reported only. Codes are stable.\n"
        .to_owned();
    let mut steps = Vec::new();
    for step in Code::ALL.iter().map(|code| code.entry().step) {
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    for step in steps {
        let entries = Code::ALL.iter().map(|code| code.entry()).filter(|entry| entry.step == step);
        let rows = entries.map(|entry| {
            let effect = match entry.effect {
                Effect::Fail => "fail",
                Effect::Unknown => "unknown",
                Effect::Warn => "warn",
            };
            let fixer = match entry.fixer {
                Fixer::Asker => "caller",
                Fixer::Publisher => "publisher",
                Fixer::Operator => "operator",
                Fixer::Nobody => "wait",
            };
            let again = if entry.retryable { ", retry" } else { "" };
            [code(entry.code.slug()), effect.to_owned(), cell(entry.title), format!("{fixer}{again}")]
        });
        let _ = write!(page, "\n## {step}\n\n{}", table(["code", "effect", "meaning", "who acts"], rows));
    }
    let rows = Refusal::ALL.iter().map(|refusal| [code(refusal.slug()), cell(refusal.title())]);
    let _ = write!(
        page,
        "\n## Refused requests\n\nThese codes answer a request or a question to the gate; they never appear in a verdict.\n\n{}",
        table(["code", "meaning"], rows)
    );
    page
}
