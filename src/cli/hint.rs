//! Hints for what was typed and cannot have been meant.

use clresolve_core::text::{Foreign, nearest};

/// Characters of what was typed that a hint repeats: more than a name people type has.
const SHOWN_CHARACTERS: usize = 60;

/// Verbs of an agent that a typed one is compared with: an honest card has a handful, a hostile one thousands.
const MAX_COMPARED_VERBS: usize = 64;

/// What was probably meant by this ENS name; `None` where it looks like one.
pub(super) fn on_name(given: &str) -> Option<String> {
    let shown = Foreign::new(given).at_most(SHOWN_CHARACTERS);
    if let Some((scheme, rest)) = given.split_once("://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        return Some(match scheme {
            "x402" => format!(
                "`{shown}` is an entry; ask about the name in it: clresolve {}",
                Foreign::new(host).at_most(SHOWN_CHARACTERS)
            ),
            _ => format!(
                "`{shown}` is a URL, not an ENS name; `clresolve discover` fetches a host's cards, `clresolve lint` judges the card at a URL"
            ),
        });
    }
    is_address(given).then(|| format!("`{shown}` is an address; clresolve asks by ENS name"))
}

/// Why a bare argument to `command` is refused: it is one word without a dot, and so hardly a name. `None` where it may
/// be one.
pub(super) fn on_bare_word(given: &str, command: &clap::Command) -> Option<String> {
    if given.is_empty() || given == "-" || given.contains(|c: char| c == '.' || c.is_whitespace()) {
        return None;
    }
    if let Some(hint) = on_name(given) {
        return Some(hint);
    }
    if given == "watch" {
        return Some("`watch` is no command: run `clresolve audit` and `clresolve audit diff` from a timer".to_owned());
    }
    let shown = Foreign::new(given).at_most(SHOWN_CHARACTERS);
    let commands = || command.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name);
    if commands().any(|known| known == given) {
        return Some(format!("`{shown}` is a command, and stands before the names"));
    }
    let meant = match nearest(given, commands()) {
        Some(known) => format!("did you mean the command `{known}`?"),
        None => "`clresolve help` lists the commands".to_owned(),
    };
    Some(format!(
        "`{shown}` is not an ENS name, which has a dot as in {shown}.eth; {meant} (`clresolve verify {shown}` asks all the same)"
    ))
}

/// What was probably meant by an option or a subcommand that the command of this usage does not have.
pub(super) fn on_usage(usage: &str, option: &str, subcommand: &str) -> Option<&'static str> {
    if usage.contains("clresolve config check") && option == "--config" {
        return Some("the file stands alone: `clresolve config check FILE`");
    }
    if usage.contains("clresolve audit") && option == "--agreement" {
        return Some("`clresolve doctor` asks each endpoint and each gateway by itself");
    }
    if usage.contains("clresolve audit") && (["--shard", "--pin"].contains(&option) || subcommand == "merge") {
        return Some("one audit takes a list of any length, at one block; `--resume FILE` goes on after a kill");
    }
    if usage.contains("clresolve audit") && subcommand.contains(['.', '/']) {
        return Some("a list of names is a file: `clresolve audit --names FILE`, or `--names -` for standard input");
    }
    None
}

/// The verb that was probably meant, among those of the agent; `None` where none of them is like it.
pub(super) fn on_verb(given: &str, verbs: &[String]) -> Option<String> {
    let near = nearest(given, verbs.iter().take(MAX_COMPARED_VERBS).map(String::as_str))?;
    Some(format!("did you mean `{}`?", Foreign::new(near).at_most(SHOWN_CHARACTERS)))
}

fn is_address(given: &str) -> bool {
    given.strip_prefix("0x").is_some_and(|digits| digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::command;

    #[test]
    fn a_verb_that_was_nearly_typed_is_named() {
        let verbs = |list: &[&str]| list.iter().map(|verb| (*verb).to_owned()).collect::<Vec<_>>();
        let hint = |list: &[&str]| on_verb("sumarize", &verbs(list));
        assert_eq!(hint(&["clean", "summarize"]).as_deref(), Some("did you mean `summarize`?"));
        assert_eq!(hint(&["summarize\u{1b}"]).as_deref(), Some("did you mean `summarize\\u{1b}`?"));
        assert_eq!((hint(&["checkout"]), hint(&[])), (None, None));
        let mut many = vec!["checkout"; MAX_COMPARED_VERBS];
        many.push("summarize");
        assert_eq!(hint(&many), None);
    }

    #[test]
    fn what_is_no_name_gets_a_hint() {
        for (given, part) in [
            ("x402://a.eth/do/v1", "clresolve a.eth"),
            ("https://a.example/card.json", "clresolve discover"),
            ("0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e", "is an address"),
        ] {
            let hint = on_name(given).expect("a hint");
            assert!(hint.contains(part), "{hint}");
        }
        assert_eq!(on_name("summarizeagent.eth"), None);
        assert_eq!(on_name(""), None);
    }

    #[test]
    fn what_stands_in_the_wrong_place_gets_a_tip() {
        for (line, part) in [
            ("clresolve config check --config f.toml", "tip: the file stands alone"),
            ("clresolve audit names.txt", "tip: a list of names is a file"),
            ("clresolve audit --names n.txt --shard 1/8", "tip: one audit takes a list of any length"),
            ("clresolve audit --names n.txt --pin p.json", "tip: one audit takes a list of any length"),
            ("clresolve audit merge a.json", "tip: one audit takes a list of any length"),
            ("clresolve audit --names n.txt --agreement", "tip: `clresolve doctor` asks each endpoint"),
        ] {
            let error = crate::cli::args::parse(line.split(' ').map(Into::into).collect()).expect_err(line);
            let message = crate::cli::args::plain_message(error);
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_bare_word_is_refused_unless_it_can_be_a_name() {
        for (given, part) in [
            ("trcae", "the command `trace`"),
            ("watch", "`clresolve audit diff` from a timer"),
            ("summarizer", "`clresolve help` lists the commands"),
            ("https://localhost/card", "is a URL"),
            ("a\u{1b}b", "a\\u{1b}b"),
        ] {
            let refusal = on_bare_word(given, &command()).expect("a refusal");
            assert!(refusal.contains(part), "{refusal}");
        }
        for name in ["a.eth", "x402://a.eth/do/v1", "", "-", "no name"] {
            assert_eq!(on_bare_word(name, &command()), None, "{name}");
        }
    }
}
