//! Hints for what was typed and cannot have been meant.

use super::args;
use crate::text::{Foreign, nearest};

/// What somebody who gave this as an ENS name may have meant; `None` where it looks like one.
pub(super) fn on_name(given: &str) -> Option<String> {
    let shown = Foreign::new(given).at_most(60);
    if let Some((scheme, rest)) = given.split_once("://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        return Some(match scheme {
            "x402" => {
                format!("`{shown}` is an entry; ask about the name in it: clresolve {}", Foreign::new(host).at_most(60))
            }
            _ => format!(
                "`{shown}` is a URL and no ENS name; `clresolve discover` asks a host for its cards, `clresolve lint` judges the card at a URL"
            ),
        });
    }
    if is_address(given) {
        return Some(format!("`{shown}` is an address; clresolve asks by ENS name"));
    }
    if given.is_empty() || given.contains('.') {
        return None;
    }
    let command = args::command();
    let meant = nearest(given, command.get_subcommands().map(clap::Command::get_name));
    let meant = meant
        .map_or_else(|| "--help lists the commands".to_owned(), |name| format!("did you mean the command `{name}`?"));
    Some(format!("`{shown}` is taken as an ENS name; names end in .eth, and {meant}"))
}

fn is_address(given: &str) -> bool {
    given.strip_prefix("0x").is_some_and(|digits| digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_gets_a_hint() {
        for (given, part) in [
            ("x402://a.eth/do/v1", "clresolve a.eth"),
            ("https://a.example/card.json", "clresolve discover"),
            ("0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e", "is an address"),
            ("trcae", "`trace`"),
            ("summarizer", "--help lists the commands"),
        ] {
            let hint = on_name(given).expect("a hint");
            assert!(hint.contains(part), "{hint}");
        }
        assert_eq!(on_name("summarizeagent.eth"), None);
        assert_eq!(on_name(""), None);
    }
}
