//! Decides when to use colours: `--color`, then `NO_COLOR`, then `FORCE_COLOR` and `CLICOLOR_FORCE`, then the kind of
//! stream.

use std::ffi::OsString;

use anstream::ColorChoice;

/// Decides for the whole process, before arguments are parsed, since usage errors and help have colours too.
pub(super) fn set_color_choice(arguments: &[OsString]) {
    color_choice(arguments, |key| std::env::var(key).ok()).write_global();
}

fn color_choice(arguments: &[OsString], variable: impl Fn(&str) -> Option<String>) -> ColorChoice {
    let is_set = |key: &str| variable(key).is_some_and(|value| !value.is_empty());
    let forces = |key: &str| variable(key).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    match last_color_flag(arguments) {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ if is_set("NO_COLOR") => ColorChoice::Never,
        _ if forces("FORCE_COLOR") || forces("CLICOLOR_FORCE") => ColorChoice::Always,
        _ => ColorChoice::Auto,
    }
}

/// The value of the last `--color`. The parser validates it.
fn last_color_flag(arguments: &[OsString]) -> Option<&str> {
    let texts: Vec<&str> =
        arguments.iter().map_while(|argument| argument.to_str().filter(|text| *text != "--")).collect();
    let at = |index: usize| match texts[index].strip_prefix("--color") {
        Some("") => texts.get(index + 1).copied(),
        Some(rest) => rest.strip_prefix('='),
        None => None,
    };
    (0..texts.len()).rev().find_map(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_and_no_color_wins_over_what_forces_colours() {
        let chosen = |line: &str, set: &[(&str, &str)]| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            color_choice(&arguments, |key| set.iter().find(|(k, _)| *k == key).map(|(_, value)| (*value).to_owned()))
        };
        for (line, set, expected) in [
            ("c a.eth", &[][..], ColorChoice::Auto),
            ("c a.eth", &[("FORCE_COLOR", "1")], ColorChoice::Always),
            ("c a.eth", &[("FORCE_COLOR", "0")], ColorChoice::Auto),
            ("c a.eth", &[("CLICOLOR_FORCE", "1")], ColorChoice::Always),
            ("c a.eth", &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], ColorChoice::Never),
            ("c a.eth --color always", &[("NO_COLOR", "1")], ColorChoice::Always),
            ("c --color=never a.eth", &[("FORCE_COLOR", "1")], ColorChoice::Never),
            ("c --color auto a.eth", &[("FORCE_COLOR", "1")], ColorChoice::Always),
            ("c -- --color=never", &[], ColorChoice::Auto),
        ] {
            assert_eq!(chosen(line, set), expected, "{line} {set:?}");
        }
    }
}
