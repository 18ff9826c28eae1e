//! The manual page on the configuration file, and the environment in the program's page.

use std::fmt::Write as _;

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::keys::{ConfigKeyDocumentation, parse_documented_keys};

/// The file that documents every key.
const FILE: &str = include_str!("../../../deploy/config.prod.toml");

const DESCRIPTION: [&str; 3] = [
    "All commands and the daemon read one configuration file in TOML: the file that --config or CLRESOLVE_CONFIG names, \
     otherwise the first that exists of those under FILES. `serve` logs which.",
    "Precedence: defaults, file, environment, flags; the last one wins. A list from a stronger source replaces that of a \
     weaker one; only connect-to, allow-host and ca add up. Unknown keys are errors.",
    "`clresolve config init` writes a file to start from, `clresolve config check` checks one, and `clresolve config show` \
     prints each value and its source.",
];

/// The default places, in order.
const FILES: &str = "$XDG_CONFIG_HOME/clresolve/config.toml (~/.config/clresolve/config.toml if the variable is unset), \
                     /etc/clresolve/config.toml";

const VARIABLES: [(&str, &str); 3] = [
    ("CLRESOLVE_CONFIG", "the configuration file, like --config"),
    ("NO_COLOR", "no colours, unless --color asks for them"),
    ("RUST_LOG", "filter of the log, instead of --verbose"),
];

/// Renders clresolve.toml(5). `source` and `manual` are part of its title.
pub(super) fn render_config_page(source: &str, manual: &str) -> String {
    let keys = parse_documented_keys(FILE);
    let mut page = Roff::new();
    page.control("TH", ["clresolve.toml", "5", "\"\"", source, manual]);
    page.control("SH", ["NAME"]);
    page.text([roman("clresolve.toml - configuration of clresolve")]);
    page.control("SH", ["DESCRIPTION"]);
    for paragraph in DESCRIPTION {
        page.control("PP", []);
        page.text([roman(paragraph)]);
    }
    page.control("SH", ["KEYS"]);
    let mut tables: Vec<&str> = Vec::new();
    for key in &keys {
        if !tables.contains(&key.table.as_str()) {
            tables.push(&key.table);
        }
    }
    for table in tables {
        let of_table: Vec<&ConfigKeyDocumentation> = keys.iter().filter(|key| key.table == table).collect();
        add_config_table(&mut page, table, &of_table);
    }
    page.control("SH", ["FILES"]);
    page.text([roman(FILES)]);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("clresolve"), roman("(1)")]);
    page.render()
}

fn add_config_table(page: &mut Roff, table: &str, keys: &[&ConfigKeyDocumentation]) {
    page.control("SS", [if table.is_empty() { "Top level" } else { table }]);
    // The key of a list describes its tables.
    let about = keys.first().filter(|key| !key.is_list_element_key()).map_or("", |key| key.about_table.as_str());
    if !about.is_empty() {
        page.text([roman(about)]);
    }
    for key in keys.iter().filter(|key| !key.meaning.is_empty()) {
        page.control("TP", []);
        page.text([bold(key.key.as_str())]);
        page.text(describe_key(key));
    }
}

/// Meaning, default and other names of a key.
fn describe_key(key: &ConfigKeyDocumentation) -> Vec<Inline> {
    let (label, value) = if key.is_list_element_key() || key.note.none {
        (" Example: ", key.value.as_str())
    } else {
        (" Default: ", key.default_value())
    };
    let mut text = vec![roman(key.meaning.as_str()), roman(label), italic(value), roman(".")];
    for (label, name) in [(" Flag: ", &key.note.flag), (" Environment: ", &key.note.variable)] {
        if let Some(name) = name {
            text.extend([roman(label), bold(name.as_str()), roman(".")]);
        }
    }
    text
}

/// The environment, as a section of a help text.
pub(super) fn environment_section() -> String {
    let keys = parse_documented_keys(FILE);
    let of_key =
        |key: &ConfigKeyDocumentation| Some((key.note.variable.clone()?, format!("the key `{}`", key.key_path())));
    let variables = VARIABLES.map(|(name, meaning)| (name.to_owned(), meaning.to_owned()));
    let mut text = "Environment:\n".to_owned();
    for (name, meaning) in keys.iter().filter_map(of_key).chain(variables) {
        let _ = writeln!(text, "  {name:<30}{meaning}");
    }
    text
}
