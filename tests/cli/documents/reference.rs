//! The reference in `docs/reference/`, rendered from the program. `just reference` writes it again.

use std::fmt::Write as _;

use clresolve_core::reason::{Code, CodeEntry, Effect, Fixer, Refusal};
use clresolve_resolver::telemetry::{FAMILIES, Kind};

use super::*;
use crate::support::documented_keys::{Documented, documented};
use crate::support::orloj::SYSTEM;

/// Options that mean the same in every command; the page describes them once.
const COMMON: [&str; 6] = ["--json", "--out", "--verbose", "--quiet", "--color", "--help"];

/// The headings over lists of commands: the groups of the program, and that of a command with commands below it.
const LISTS: [&str; 5] = ["Ask:", "Pay:", "Publish:", "Operate:", "Commands:"];

/// The command whose help has the exit statuses of a verdict, and the options that commands share.
const VERIFY: [&str; 1] = ["verify"];

/// A command whose results have the usual forms.
const RECORDS: [&str; 1] = ["records"];

/// The options of commands that judge without asking a network.
const RULES: [&str; 4] = ["--profile", "--depth", "--config", "--no-config"];

/// The statuses that most routes share.
const EVERYWHERE: [&str; 4] = ["400", "429", "500", "503"];

const METHODS: usize = 8;

/// What precedes the configuration keys.
const KEYS: &str = "\
Precedence: defaults, file, environment, flags; the last one wins. A list from a stronger source replaces that of a \
weaker one; only `connect-to`, `allow-host` and `ca` add up. Unknown keys are errors. All commands and the daemon read \
one file: the one that `--config` or `CLRESOLVE_CONFIG` names, otherwise the first that exists of \
`$XDG_CONFIG_HOME/clresolve/config.toml` (`~/.config/clresolve/config.toml`) and `/etc/clresolve/config.toml`. \
`clresolve config show` prints each value and its source. A key without a default shows its type instead.";

/// What precedes the routes.
const ROUTES: &str = "\
`GET /openapi.json` describes the routes of a running daemon in OpenAPI 3.1, with the schemas of all bodies. Some \
routes exist only if the [configuration](configuration.md) enables them: `/mcp`, `/v1/discover`, `/v1/probes`, \
`/.well-known/jwks.json` and the cards of Orloj. Refusals are problem documents (RFC 9457) whose `type` ends with a \
[reason code](reasons.md). After the listed statuses, `…` stands for 400, 429, 500 and 503.";

/// What precedes the reason codes.
const CODES: &str = "\
`clresolve explain CODE` prints the full meaning of a code and what to do. `fail`: the verdict is untrusted, or the \
payment, card, request, receipt or signature is rejected. `unknown`: undecided, unless something fails. `warn`: \
reported only. The publisher has to act, unless the code is followed by caller, operator or wait (it resolves itself). \
With retry, the same question may succeed later. Codes are stable.";

/// What precedes the commands.
const COMMANDS: &str = "\
`clresolve NAME...` is short for `clresolve verify NAME...`. `clresolve help COMMAND` adds notes and examples.";

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

/// Text that Markdown shows as it is in a table.
fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}

/// Text that Markdown shows as it is outside of tables.
fn plain(text: &str) -> String {
    // Spans of code show every character but the one that ends a cell.
    let spans = text.split('`').enumerate().map(|(at, span)| match at % 2 {
        0 => span.replace('<', "&lt;").replace('*', "\\*").replace('[', "\\["),
        _ => span.to_owned(),
    });
    spans.collect::<Vec<_>>().join("`")
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

/// Options that several commands share: the word for them, the heading of their section, and the options.
struct Group {
    word: &'static str,
    heading: &'static str,
    entries: Vec<(String, String)>,
}

fn groups() -> Vec<Group> {
    let verify = help(&VERIFY);
    let named = |typed: &str, names: &[&str]| typed.split([',', ' ', '.']).any(|word| names.contains(&word));
    let world = shell(&workplace(), "clresolve help world").stdout;
    let world = entries_of(&String::from_utf8(world).expect("help is UTF-8"), |typed| typed.starts_with('-'));
    let rules = world.iter().filter(|(typed, _)| named(typed, &RULES)).cloned().collect();
    let group = |word, heading, entries| Group { word, heading, entries };
    vec![
        group("all", "All commands", entries_of(&verify, is_common)),
        group("output", "Output", entries_of(&help(&RECORDS), |typed| typed.starts_with("-o"))),
        group("signing", "Signing", entries_of(&verify, |typed| typed.starts_with("--sign-"))),
        group("expectations", "Expectations", entries_of(&verify, |typed| typed.starts_with("--expect-"))),
        group("network", "Network", world),
        group("rules", "Rules", rules),
    ]
}

fn cli() -> String {
    let groups = groups();
    let mut page = format!("# Command line\n\n{}\n\n## Exit statuses\n\n", wrapped(COMMANDS));
    let statuses = help(&VERIFY);
    let statuses = paragraph(&statuses, "Exit codes:").expect("the exit statuses");
    let _ = write!(
        page,
        "```text\n{statuses}\n```\n\n## Shared options\n\n\
         The section of a command names the groups that it takes. Network options are\n\
         [configuration keys](configuration.md) too.\n"
    );
    for group in groups.iter().filter(|group| group.word != "rules") {
        let _ = write!(page, "\n### {}\n\n{}", group.heading, list(&group.entries));
    }
    let rules = groups.last().map(|rules| names_of(&rules.entries)).unwrap_or_default();
    let _ = write!(page, "\n### Rules\n\nThe network options {rules}.\n");
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(command) = commands.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let text = help(&words);
        let below: Vec<&str> = LISTS.iter().filter_map(|heading| paragraph(&text, heading)).collect();
        let below = entries_of(&format!("\n\n\n\n{}", below.join("\n")), |name| name != "help");
        commands.extend(below.iter().rev().map(|(name, _)| [command.as_slice(), std::slice::from_ref(name)].concat()));
        if !command.is_empty() {
            page += &of_command(&words, &text, below.is_empty(), &groups);
        }
    }
    page
}

fn is_common(typed: &str) -> bool {
    typed.split([',', ' ', '.']).any(|word| COMMON.contains(&word))
}

/// What is typed for each entry, as one text.
fn names_of(entries: &[(String, String)]) -> String {
    entries.iter().map(|(typed, _)| format!("`{typed}`")).collect::<Vec<_>>().join(", ")
}

/// The entries as items of a list.
fn list<'e>(entries: impl IntoIterator<Item = &'e (String, String)>) -> String {
    let short = |meaning: &str| match meaning.rsplit_once(" [possible values: ") {
        Some((meaning, values)) => plain(&format!("{meaning} ({})", values.trim_end_matches(']'))),
        None => plain(meaning),
    };
    entries.into_iter().map(|(typed, meaning)| item(&format!("`{typed}`: {}", short(meaning)))).collect()
}

/// An item of a list.
fn item(text: &str) -> String {
    format!("- {}\n", wrapped_to(text, LINE - 2).replace('\n', "\n  "))
}

/// The section of a command.
fn of_command(command: &[&str], help: &str, is_leaf: bool, groups: &[Group]) -> String {
    let about = help.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let usage = paragraph(help, "Usage:").unwrap_or_default().trim_start_matches("Usage:").replace(" [OPTIONS]", "");
    let level = if command.len() == 1 { "##" } else { "###" };
    let end = if about.ends_with('?') { "" } else { "." };
    let mut section = format!("\n{level} {}\n\n{}{end}\n", command.join(" "), wrapped(&plain(&about)));
    let mut own = entries_of(help, |typed| typed.starts_with(['-', '<', '[']) && !is_common(typed));
    let mut shared: Vec<String> = Vec::new();
    for group in groups {
        if group.entries.iter().all(|entry| own.contains(entry)) {
            own.retain(|entry| !group.entries.contains(entry));
            shared.push(group.word.to_owned());
        }
    }
    if help.contains("`clresolve help world`") {
        shared.push("network".to_owned());
    }
    let (known, own): (Vec<_>, Vec<_>) =
        own.into_iter().partition(|entry| groups.iter().any(|group| group.entries.contains(entry)));
    shared.extend(known.iter().map(|(typed, _)| format!("`{typed}`")));
    if is_leaf || !own.is_empty() {
        let usage: Vec<&str> = usage.lines().map(str::trim).collect();
        let _ = write!(section, "\n`{}`\n", usage.join("`, `"));
    }
    if !own.is_empty() {
        let _ = write!(section, "\n{}", list(&own));
    }
    if !shared.is_empty() {
        let _ = write!(section, "\n{}\n", wrapped(&format!("Shared: {}.", shared.join(", "))));
    }
    if let Some(statuses) = paragraph(help, "Exit codes:").filter(|_| command != VERIFY) {
        let _ = write!(section, "\n{}\n", plain(statuses));
    }
    section
}

fn configuration() -> String {
    let mut page = format!("# Configuration keys\n\n{}\n", wrapped(KEYS));
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
        page += &table(["key", "default or type", "meaning"], of_table.map(row_of_key));
    }
    page
}

fn row_of_key(key: &Documented) -> [String; 3] {
    let value: toml::Table = format!("v = {}", key.value).parse().expect("the value is TOML");
    let kind = match &value["v"] {
        toml::Value::String(text) if is_duration(text) => "duration",
        value => value.type_str(),
    };
    let default = if key.is_of_a_list() || key.note.none { kind.to_owned() } else { code(key.default()) };
    let sources = [&key.note.flag, &key.note.variable].into_iter().flatten().map(|name| format!("`{name}`"));
    let sources = sources.collect::<Vec<_>>().join(", ");
    let sources = if sources.is_empty() { sources } else { format!(" ({sources})") };
    [code(&key.key), default, cell(&key.meaning) + &sources]
}

fn is_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    unit.len() < text.len() && ["ms", "s", "m", "h"].contains(&unit)
}

/// The words in lines that are short enough.
fn wrapped(text: &str) -> String {
    wrapped_to(text, LINE)
}

fn wrapped_to(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is a line");
        match last.len() {
            0 => last.push_str(word),
            length if length + 1 + word.len() <= width => *last = format!("{last} {word}"),
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
    let mut page = format!("# HTTP API\n\n{}\n\n", wrapped(ROUTES));
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
            let statuses = operation["responses"].as_object().expect("responses");
            let is_usual = EVERYWHERE.iter().all(|status| statuses.contains_key(*status));
            let listed = statuses.keys().filter(|status| !is_usual || !EVERYWHERE.contains(&status.as_str())).cloned();
            let statuses = listed.chain(is_usual.then(|| "…".to_owned()));
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
    let mut page = format!("# Reason codes\n\n{}\n", wrapped(CODES));
    let mut steps = Vec::new();
    for step in Code::ALL.iter().map(|code| code.entry().step) {
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    for step in steps {
        let _ = write!(page, "\n## {step}\n");
        for (effect, word) in [(Effect::Fail, "fail"), (Effect::Unknown, "unknown"), (Effect::Warn, "warn")] {
            let entries = Code::ALL.iter().map(|code| code.entry());
            let entries = entries.filter(|entry| entry.step == step && entry.effect == effect);
            let items: String = entries.map(|entry| item(&meaning_of(entry))).collect();
            if !items.is_empty() {
                let _ = write!(page, "\n`{word}`:\n\n{items}");
            }
        }
    }
    page += "\n## Refused requests\n\nThese codes answer a request or a question to the gate; they never appear in a \
             verdict.\n\n";
    page.extend(Refusal::ALL.iter().map(|one| item(&format!("{}: {}", code(one.slug()), plain(one.title())))));
    page
}

/// The code with who acts, and its title.
fn meaning_of(entry: &CodeEntry) -> String {
    let fixer = match entry.fixer {
        Fixer::Asker => Some("caller"),
        Fixer::Publisher => None,
        Fixer::Operator => Some("operator"),
        Fixer::Nobody => Some("wait"),
    };
    let notes: Vec<&str> = fixer.into_iter().chain(entry.retryable.then_some("retry")).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    format!("{}{notes}: {}", code(entry.code.slug()), plain(entry.title))
}
