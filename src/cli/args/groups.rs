//! The help of the program: its commands in groups, within one screen.

use std::fmt::Write as _;

/// Each group with its commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Ask",
        &[
            "verify", "trace", "records", "card", "gate", "explain", "name", "discover", "cat", "bundle", "verdict",
            "audit", "memory",
        ],
    ),
    ("Pay", &["check", "route", "probe", "decide", "request", "receipt"]),
    ("Publish", &["lint", "plan", "cards", "signature"]),
    ("Operate", &["serve", "ctl", "mcp", "sandbox", "config", "doctor", "version", "completions", "man", "help"]),
];

/// Width of the column with the names of the commands.
const COLUMN: usize = 13;

/// `program` with a help that lists its commands in groups and each option on one line. Options under their own heading
/// appear only in the help of `verify`.
pub(super) fn add_grouped_help(program: clap::Command) -> clap::Command {
    let template = help_template(&program);
    program
        .mut_args(|arg| if arg.get_help_heading().is_some() { arg.hide(true) } else { arg })
        .mut_arg("form", inline_possible_values)
        .help_template(template)
}

/// The template of the help. clap fills in the parts in braces.
fn help_template(program: &clap::Command) -> String {
    let styles = program.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut template = "{about}\n\n{usage-heading} {usage}\n\n".to_owned();
    for (heading, names) in GROUPS {
        let _ = writeln!(template, "{header}{heading}:{header:#}");
        for name in names {
            let about = program.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let padding = COLUMN.saturating_sub(name.len());
            let _ = writeln!(template, "  {literal}{name}{literal:#}{:padding$}{about}", "");
        }
        template.push('\n');
    }
    let _ = write!(template, "{header}Options:{header:#}\n{{options}}{{after-help}}");
    template
}

/// The option for the form of the results, with its values in its help instead of below it.
fn inline_possible_values(form: clap::Arg) -> clap::Arg {
    let values = form.get_possible_values();
    let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
    let help = form.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.replacen(" [default", &format!(": {} [default", names.join(", ")), 1);
    form.hide_possible_values(true).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::clap_command_for_parsing;

    #[test]
    fn every_visible_command_is_in_exactly_one_group() {
        let command = clap_command_for_parsing();
        let visible = command.get_subcommands().filter(|known| !known.is_hide_set());
        let mut visible: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn template_has_no_braces_of_descriptions() {
        let template = help_template(&clap_command_for_parsing());
        let mut tags = template.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        assert!(
            tags.all(|tag| ["about", "usage-heading", "usage", "options", "after-help"].contains(&tag)),
            "{template}"
        );
    }
}
