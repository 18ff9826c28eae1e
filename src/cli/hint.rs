//! Suggestions for mistyped arguments.

use clresolve_core::name_hint::{NonNameInputHint, NonNameInputKind};
use clresolve_core::text::{UntrustedText, nearest_word};

/// Maximum number of characters of the input that a hint repeats.
const SHOWN_CHARACTERS: usize = 60;

/// Maximum number of an agent's verbs that are compared. An honest card has a handful, a hostile one thousands.
const MAX_COMPARED_VERBS: usize = 64;

/// Parses an argument that is an ENS name.
///
/// # Errors
/// Why it is not a name, and what was probably meant. The normal form is not checked here.
pub(super) fn parse_name_argument(given: &str) -> Result<String, String> {
    hint_on_invalid_name(given).map_or_else(|| Ok(given.to_owned()), Err)
}

/// Why `given` is not an ENS name, and what was probably meant. `None` if it looks like one.
fn hint_on_invalid_name(given: &str) -> Option<String> {
    if given.starts_with("--") && !given.contains('.') && !given.contains("://") {
        return Some("an option is not an ENS name; put it before `--`".to_owned());
    }
    let hint = NonNameInputHint::from_text(given)?;
    let why = match hint.what {
        NonNameInputKind::Entry => "an entry is not an ENS name",
        NonNameInputKind::Url => {
            "a URL is not an ENS name (`clresolve check` asks a seller who is paid, `clresolve discover` fetches a host's cards, \
             `clresolve lint` judges the card at a URL)"
        }
        NonNameInputKind::Address => "an address is not an ENS name",
        NonNameInputKind::Padded => "an ENS name has no spaces around it and no dot at its end",
    };
    let meant =
        hint.meant.map(|name| format!("; did you mean `{}`?", UntrustedText::new(name).with_limit(SHOWN_CHARACTERS)));
    Some(format!("{why}{}", meant.unwrap_or_default()))
}

/// What replaces a removed command. `None` if there was no such command.
pub(super) fn hint_on_removed_command(given: &str) -> Option<String> {
    let instead = match given {
        "watch" => "run `clresolve audit` and `clresolve audit diff` from a timer".to_owned(),
        "aevum" | "convert" | "generate" | "project" => format!("use `clresolve cards {given}`"),
        "key" | "sign" => format!("use `clresolve signature {given}`"),
        _ => return None,
    };
    Some(format!("`{given}` is not a command: {instead}"))
}

/// Why a bare argument to `command` is rejected: one word without a dot is probably not a name. `None` if it may be
/// one.
pub(super) fn hint_on_bare_word(given: &str, command: &clap::Command) -> Option<String> {
    if given.is_empty() || given == "-" || given.contains(|c: char| c == '.' || c.is_whitespace()) {
        return None;
    }
    let shown = UntrustedText::new(given).with_limit(SHOWN_CHARACTERS);
    let commands = || command.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name);
    if commands().any(|known| known == given) {
        return Some(format!("`{shown}` is a command; put it before the names"));
    }
    let meant = match nearest_word(given, commands()) {
        Some(known) => format!("did you mean the command `{known}`?"),
        None => "`clresolve help` lists the commands".to_owned(),
    };
    Some(format!(
        "`{shown}` is not an ENS name, which has a dot as in {shown}.eth; {meant} (`clresolve verify {shown}` asks all the same)"
    ))
}

/// What was probably meant by an unknown option or subcommand of the command with this usage.
pub(super) fn hint_on_usage_error(usage: &str, option: &str, subcommand: &str) -> Option<&'static str> {
    if usage.contains("clresolve config check") && option == "--config" {
        return Some("pass the file without an option: `clresolve config check FILE`");
    }
    if option == "--format" {
        return Some("`-o` sets the form of the results, as in `-o json`");
    }
    if usage.contains("clresolve audit") && ["-o", "--output"].contains(&option) {
        return Some("`--format` sets the form of a report, as in `--format html`");
    }
    if usage.contains("clresolve audit") && option == "--agreement" {
        return Some("`clresolve doctor` asks each endpoint and each gateway by itself");
    }
    if usage.contains("clresolve audit") && (["--shard", "--pin"].contains(&option) || subcommand == "merge") {
        return Some("one audit accepts a list of any length, at one block; `--resume FILE` continues after a kill");
    }
    if usage.contains("clresolve audit") && subcommand.contains(['.', '/']) {
        return Some("a list of names is a file: `clresolve audit --names FILE`, or `--names -` for standard input");
    }
    None
}

/// The agent's verb that was probably meant. `None` if none is similar.
pub(super) fn hint_on_unknown_verb(given: &str, verbs: &[String]) -> Option<String> {
    let near = nearest_word(given, verbs.iter().take(MAX_COMPARED_VERBS).map(String::as_str))?;
    Some(format!("did you mean `{}`?", UntrustedText::new(near).with_limit(SHOWN_CHARACTERS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::clap_command_for_parsing;

    #[test]
    fn a_verb_that_was_nearly_typed_is_named() {
        let verbs = |list: &[&str]| list.iter().map(|verb| (*verb).to_owned()).collect::<Vec<_>>();
        let hint = |list: &[&str]| hint_on_unknown_verb("sumarize", &verbs(list));
        assert_eq!(hint(&["clean", "summarize"]).as_deref(), Some("did you mean `summarize`?"));
        assert_eq!(hint(&["summarize\u{1b}"]).as_deref(), Some("did you mean `summarize\\u{1b}`?"));
        assert_eq!((hint(&["checkout"]), hint(&[])), (None, None));
        let mut many = vec!["checkout"; MAX_COMPARED_VERBS];
        many.push("summarize");
        assert_eq!(hint(&many), None);
    }

    #[test]
    fn what_looks_like_a_name_gets_no_hint() {
        assert_eq!(hint_on_invalid_name("summarizeagent.eth"), None);
        for given in ["https:///card.json", "http://[::1]:8080/", "foo."] {
            let hint = hint_on_invalid_name(given).expect("a hint");
            assert!(!hint.contains("did you mean"), "{hint}");
        }
        let hint = hint_on_invalid_name("https://a\u{1b}[2J.eth/").expect("a hint");
        assert!(hint.contains("`a\\u{1b}[2J.eth`"), "{hint}");
    }

    #[test]
    fn what_stands_in_the_wrong_place_gets_a_tip() {
        for (line, part) in [
            ("clresolve config check --config f.toml", "tip: pass the file without an option"),
            ("clresolve doctor --format json", "tip: `-o` sets the form of the results"),
            ("clresolve lint c.json --format sarif", "tip: `-o` sets the form of the results"),
            ("clresolve audit --names n.txt -o json", "tip: `--format` sets the form of a report"),
            ("clresolve audit render r.json --output html", "tip: `--format` sets the form of a report"),
            ("clresolve audit names.txt", "tip: a list of names is a file"),
            ("clresolve audit --names n.txt --shard 1/8", "tip: one audit accepts a list of any length"),
            ("clresolve audit --names n.txt --pin p.json", "tip: one audit accepts a list of any length"),
            ("clresolve audit merge a.json", "tip: one audit accepts a list of any length"),
            ("clresolve audit --names n.txt --agreement", "tip: `clresolve doctor` asks each endpoint"),
        ] {
            let error =
                crate::cli::args::parse_command_line(line.split(' ').map(Into::into).collect()).expect_err(line);
            let message = crate::cli::args::redacted_clap_error_message(error);
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_bare_word_is_refused_unless_it_can_be_a_name() {
        for (given, part) in [
            ("trcae", "the command `trace`"),
            ("summarizer", "`clresolve help` lists the commands"),
            ("a\u{1b}b", "a\\u{1b}b"),
        ] {
            let refusal = hint_on_bare_word(given, &clap_command_for_parsing()).expect("a refusal");
            assert!(refusal.contains(part), "{refusal}");
        }
        for name in ["a.eth", "x402://a.eth/do/v1", "", "-", "no name"] {
            assert_eq!(hint_on_bare_word(name, &clap_command_for_parsing()), None, "{name}");
        }
    }
}
