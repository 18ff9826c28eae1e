//! The configuration keys as `deploy/config.prod.toml` documents them. The tests read the file with this module too, so
//! it uses nothing of the crate.

#[derive(Debug)]
pub(crate) struct ConfigKeyDocumentation {
    /// The table that the key is in, with its brackets; empty at the top.
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) value: String,
    /// Whether the key is set, not commented out.
    pub(crate) set: bool,
    /// The comment above it.
    pub(crate) meaning: String,
    /// The comment above its table.
    pub(crate) about_table: String,
    pub(crate) note: ConfigKeyFlagAndDefault,
}

/// The line `#: --flag, VARIABLE, default VALUE` above a key; `none by default` may replace the default.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigKeyFlagAndDefault {
    pub(crate) flag: Option<String>,
    pub(crate) variable: Option<String>,
    pub(crate) default: Option<String>,
    /// Whether the key is unset by default: the program may derive a value from other keys.
    pub(crate) none: bool,
}

impl ConfigKeyFlagAndDefault {
    fn parse(text: &str) -> Self {
        let (names, default) = match text.split_once("default ") {
            Some((names, default)) => (names, Some(default.to_owned())),
            None => (text, None),
        };
        let mut note = Self { default, ..Self::default() };
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "none by default" => note.none = true,
                flag if flag.starts_with("--") => note.flag = Some(flag.to_owned()),
                variable if variable.starts_with("CLRESOLVE_") => note.variable = Some(variable.to_owned()),
                other => debug_assert!(other.is_empty(), "`{other}` is neither a flag nor a variable"),
            }
        }
        note
    }
}

impl ConfigKeyDocumentation {
    /// Whether it is a key of an element of a list, which has an example and no default.
    pub(crate) fn is_list_element_key(&self) -> bool {
        self.table.starts_with("[[")
    }

    pub(crate) fn key_path(&self) -> String {
        let table = self.table.trim_matches(['[', ']']);
        if table.is_empty() { self.key.clone() } else { format!("{table}.{}", self.key) }
    }

    pub(crate) fn default_value(&self) -> &str {
        match &self.note.default {
            Some(default) => default,
            None => {
                debug_assert!(!self.set, "{} is set, and its default is not documented", self.key_path());
                &self.value
            }
        }
    }
}

/// The keys in the order of the file. A list of tables (`[[rpc]]`) is also a key, whose note precedes it.
pub(crate) fn parse_documented_keys(file: &str) -> Vec<ConfigKeyDocumentation> {
    let mut keys: Vec<ConfigKeyDocumentation> = Vec::new();
    let (mut table, mut about_table, mut meaning, mut note) =
        (String::new(), String::new(), String::new(), ConfigKeyFlagAndDefault::default());
    for line in file.lines() {
        if let Some(names) = line.strip_prefix("#: ") {
            note = ConfigKeyFlagAndDefault::parse(names);
            continue;
        }
        let (line, set) = line.strip_prefix("# ").map_or((line, true), |rest| (rest, false));
        let is_word = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        if line.starts_with('[') && is_word(line.trim_matches(['[', ']'])) {
            table = line.to_owned();
            about_table = std::mem::take(&mut meaning);
            let key = line.trim_matches(['[', ']']).to_owned();
            let first = !keys.iter().any(|known| known.table.is_empty() && known.key == key);
            if line.starts_with("[[") && first {
                let (note, meaning) = (std::mem::take(&mut note), about_table.clone());
                let (table, about_table) = (String::new(), String::new());
                keys.push(ConfigKeyDocumentation {
                    table,
                    key,
                    value: "[]".to_owned(),
                    set: false,
                    meaning,
                    about_table,
                    note,
                });
            }
        } else if let Some((key, value)) = line.split_once(" = ").filter(|(key, _)| is_word(key)) {
            keys.push(ConfigKeyDocumentation {
                table: table.clone(),
                key: key.to_owned(),
                value: value.to_owned(),
                set,
                meaning: std::mem::take(&mut meaning),
                about_table: about_table.clone(),
                note: std::mem::take(&mut note),
            });
        } else if set {
            meaning.clear();
        } else {
            meaning = format!("{meaning} {line}").trim_start().to_owned();
        }
    }
    keys
}
