//! The arguments of all commands.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clresolve_core::text;

use super::hint;

mod ask;
mod cards;
mod ctl;
mod groups;
mod mcp;
mod output;
mod pay;
mod program;
mod receipt;
mod request;
mod signing;
mod suggest;
mod world;

pub(super) use ask::{
    AuditArguments, AuditCommand, AuditDiffArguments, AuditListArguments, AuditRenderArguments,
    AuditResolutionArguments, AuditSchemasArguments, AuditSignArguments, AuditVerifyArguments, BundleCommand,
    BundleExportArguments, BundleVerifyArguments, CardArguments, CatArguments, DiscoverArguments,
    EarlierAuditReportsArguments, GateArguments, MemoryCommand, MemoryForgetArguments, MemoryShowArguments,
    MemorySubject, RecordsArguments, VerifyArguments,
};
pub(super) use cards::{
    AevumCommand, AevumMetadataArguments, CardsCommand, ConvertCardArguments, GenerateCardsArguments,
    LedgerDecayArguments, LintArguments, NewCardArguments, ProjectCardArguments, ProjectionTarget,
    PublicationPlanArguments,
};
pub(super) use ctl::{AdminCommand, AdminSocketArguments, CacheFlushArguments, CtlCommand, DaemonReadyArguments};
pub(super) use mcp::McpArguments;
pub(super) use output::{
    AuditReportOutputArguments, CardOutputFormat, ConversionOutputFormat, LintOutputFormat, OutputFileArguments,
    OutputFormat, VerdictOutputFormat,
};
pub(super) use pay::{DecideArguments, ProbeArguments, ProbeMethod, RouteArguments, SellerCheckArguments};
pub(super) use program::{
    CompletionsArguments, ConfigCommand, ConfigShowArguments, DoctorArguments, ExplainArguments, HelpArguments,
    LogFormat, ManPageArguments, NameArguments, SandboxArguments, ServeArguments,
};
pub(super) use receipt::{
    PurchaseEvidenceArguments, ReceiptCommand, ReceiptVerdictCheckArguments, ReceiptVerifyArguments,
};
pub(super) use request::{AgentRequestCommand, RequestCheckArguments, RequestTemplateArguments};
pub(super) use signing::{
    CardSignArguments, SignatureCommand, SignatureVerifyArguments, SigningKeyCommand, VerdictCommand,
    VerdictSigningArguments, VerdictVerifyArguments,
};
pub(super) use world::{GlobalArguments, NetworkArguments, OfflineRulesArguments, RulesArguments};

/// The exit codes of a verdict.
macro_rules! exit_codes {
    () => {
        "\
Exit codes:
    0  trusted               3  indeterminate: could not be decided
    1  untrusted             4  trusted, but not what an --expect-* names
    2  usage, configuration  70  a bug in clresolve
  130  interrupted           74  the output cannot be written
  Of several names the worst counts, in the order 70, 74, 2, 1, 3, 4, 0."
    };
}

/// The last lines of the help.
const AFTER_HELP: &str = "\
Exit codes: 0 trusted, 1 untrusted, 2 usage or configuration, 3 indeterminate,
4 an --expect-* is unmet, 70 a bug, 74 output not writable, 130 interrupted.
Endpoints and rules: `clresolve help world`. Examples: `clresolve help COMMAND`.
Try it without a network: `clresolve --sandbox summarizeagent.eth`.";

/// The description in the manual page.
const DESCRIPTION: &str = "\
clresolve reads the name's cl.* records at one block of the chain, fetches the Agent-Card over HTTPS and IPFS, proves its
bytes against CID and checksum, and judges them by the published rules. The answer is trusted, untrusted or
indeterminate, with reasons; never a score.";

/// The other sections of the manual page.
const MANUAL: &str = concat!(
    "\
A bare argument is an ENS name with a dot. `clresolve verify NAME` accepts any
name.

Examples:
  clresolve --sandbox summarizeagent.eth   try it: an embedded world, no network
  clresolve summarizeagent.eth             may I call and pay this agent?
  clresolve a.eth b.eth -o short           a line each
  clresolve a.eth --json | jq .reasons     everything, for programs
  clresolve trace a.eth                    each step with its evidence and time
  clresolve card a.eth > card.json         the card's bytes, once proven
  clresolve lint card.json                 is this card fit to be published?
  clresolve plan agents/                   which CID and records; would it pass?
  clresolve discover https://agent.example which cards does this host serve?
  clresolve bundle export a.eth > b.json   the verdict with all its evidence
  clresolve signature verify card.json --ens a.eth
                                           who has signed this A2A card?
  clresolve probe --sandbox summarizeagent.eth summarize
                                           the cost, and is the payee real?
  clresolve check https://api.a.example/summarize
                                           who is paid, and what proves it?
  clresolve request check a.eth summarize r.json
                                           does the agent's schema allow it?
  clresolve receipt verify r.json --name a.eth
                                           has the agent's signer signed it?
  clresolve serve                          a daemon for programs and proxies
  clresolve doctor                         are my endpoints and gateways well?
  clresolve explain checksum-mismatch      what a code means, and who can fix it
  clresolve audit --names FILE             a report on many names
  clresolve a.eth --rpc http://127.0.0.1:8545 --gateway http://127.0.0.1:8080
                                           ask your own node and gateway

Files:
  ~/.config/clresolve/config.toml (or below $XDG_CONFIG_HOME), then
  /etc/clresolve/config.toml
      The first that exists is the configuration file: see clresolve.toml(5).

",
    exit_codes!()
);

/// The message for a command line without arguments.
pub(super) const BARE: &str = "\
clresolve: is the binding of an ENS name, an Agent-Card and an x402 entry real?

  clresolve --sandbox summarizeagent.eth   try it without a network
  clresolve NAME                           may I call and pay this agent?
  clresolve serve                          a daemon for programs and proxies
  clresolve audit --names FILE             a report on many names
  clresolve lint CARD                      is this card fit to be published?
  clresolve help                           all commands and options
";

/// Is the binding of an ENS name, an Agent-Card and an x402:// entry real?
#[derive(Debug, Parser)]
#[command(
    name = "clresolve",
    version,
    after_help = AFTER_HELP,
    override_usage = "clresolve [OPTIONS] NAME...\n       clresolve COMMAND ...",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    disable_version_flag = true,
    arg_required_else_help = true
)]
pub(super) struct Cli {
    #[command(subcommand)]
    command: Option<CliCommand>,
    // Before the groups with a heading, which would otherwise apply to these options too.
    #[command(flatten)]
    global: GlobalArguments,
    /// Print the version; with -v also commit, profiles and manifests
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    #[command(flatten)]
    verify: VerifyArguments,
}

/// A parsed command line.
#[derive(Debug)]
pub(super) struct ParsedCommandLine {
    pub(super) command: CliCommand,
    pub(super) global: GlobalArguments,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Resolve names; the default command
    #[command(after_help = concat!(
        exit_codes!(),
        "

Examples:
  clresolve verify summarizeagent.eth
  clresolve verify - -o jsonl < names.txt   names from standard input"
    ))]
    Verify(VerifyArguments),
    /// Resolve names and show each step with evidence and time
    #[command(after_help = "\
Examples:
  clresolve trace summarizeagent.eth
  clresolve trace a.eth --depth schemas --links")]
    Trace(VerifyArguments),
    /// Show the cl.* text records on the chain, unchecked
    Records(RecordsArguments),
    /// Write the verified bytes of a trusted name's card
    Card(CardArguments),
    /// Decide whether a request to an agent may pass, as the daemon's gate does
    Gate(GateArguments),
    /// Ask any x402 seller without paying, and show who would be paid and what proves it
    Check(SellerCheckArguments),
    /// Decide whether the terms of a 402 may be paid: payee, route and your limits
    Decide(DecideArguments),
    /// Show the URL behind an agent's entry, and its source
    Route(RouteArguments),
    /// Ask an agent's route for its terms without paying, and decide on them
    Probe(ProbeArguments),
    /// Check a request against the agent's schema, or start one
    #[command(subcommand)]
    Request(AgentRequestCommand),
    /// Check an agent's receipt
    #[command(subcommand)]
    Receipt(ReceiptCommand),
    /// Explain a reason code or a requirement, or list all codes
    Explain(ExplainArguments),
    /// Show normal form, namehash and DNS encoding of names, without a network
    Name(NameArguments),
    /// Check cards of any system before you publish them
    Lint(LintArguments),
    /// Preview the CID and the records to set for a folder of cards, and their verdict
    Plan(PublicationPlanArguments),
    /// Convert, generate and project cards of other systems
    #[command(subcommand)]
    Cards(CardsCommand),
    /// Fetch and check a host's cards of any system
    Discover(DiscoverArguments),
    /// Write proven IPFS content from gateways or a CAR file
    Cat(CatArguments),
    /// Write a verdict with its evidence to a file, or check one without a network
    #[command(subcommand)]
    Bundle(BundleCommand),
    /// Resolve a list of names and write a report
    Audit(Box<AuditArguments>),
    /// Show, accept or forget what is remembered of names and of sellers' origins
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Answer over HTTP: verdicts for programs, and a gate for proxies
    Serve(ServeArguments),
    /// Show and change the state of a running daemon through its admin socket
    #[command(subcommand)]
    Ctl(CtlCommand),
    /// Serve the Model Context Protocol (MCP) to an agent's client on stdin and stdout
    Mcp(McpArguments),
    /// Run the embedded sandbox for any client
    Sandbox(SandboxArguments),
    /// Check a signed verdict, without a network
    #[command(subcommand)]
    Verdict(VerdictCommand),
    /// Sign A2A cards, check their signatures, and make keys
    #[command(subcommand)]
    Signature(SignatureCommand),
    /// Show, check or start the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check each RPC endpoint and gateway, and suggest changes
    Doctor(DoctorArguments),
    /// Print version, target and commit
    #[command(after_help = "\
Examples:
  clresolve version
  clresolve --version -v   profiles and manifests, too")]
    Version,
    /// Write a completion script for a shell
    Completions(CompletionsArguments),
    /// Write manual pages
    Man(ManPageArguments),
    /// Show help on a command, or on the network options
    Help(HelpArguments),
}

/// Parses a command line, whose first argument is the program's own name.
///
/// Rejects a bare argument without a dot: it is far more often a mistyped command than a name. After `verify` or `--`,
/// it is a name.
pub(super) fn parse_command_line(arguments: Vec<OsString>) -> Result<ParsedCommandLine, clap::Error> {
    let refused = |why: String| Err(clap_command_for_parsing().error(ErrorKind::InvalidValue, why));
    let first = first_positional_index(&Cli::command(), &arguments, 1).and_then(|at| arguments[at].to_str());
    if let Some(refusal) = first.and_then(hint::hint_on_removed_command) {
        return refused(refusal);
    }
    let is_literal = arguments.iter().any(|argument| argument == "--");
    let matches = clap_command_for_parsing().try_get_matches_from(move_subcommand_before_flags(arguments))?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut clap_command_for_parsing()))?;
    if let Some(command) = cli.command {
        return Ok(ParsedCommandLine { command, global: cli.global });
    }
    let bare = cli.verify.names.iter().filter(|_| !is_literal);
    match bare.filter_map(|name| hint::hint_on_bare_word(name, &clap_command_for_parsing())).next() {
        Some(refusal) => refused(refusal),
        None => Ok(ParsedCommandLine { command: CliCommand::Verify(cli.verify), global: cli.global }),
    }
}

/// Whether the help in `error` is that of a subcommand.
pub(super) fn is_subcommand_help(error: &clap::Error) -> bool {
    !error.to_string().contains("Usage: clresolve [OPTIONS] NAME...")
}

/// The message of `error`, without colours, terminal control characters and possible secrets.
pub(super) fn redacted_clap_error_message(mut error: clap::Error) -> String {
    let (argument, subcommand) = (
        error_context_text(&error, ContextKind::InvalidArg),
        error_context_text(&error, ContextKind::InvalidSubcommand),
    );
    let value = error_context_text(&error, ContextKind::InvalidValue);
    let may_hold_key = ["--rpc", "--gateway", "<HOST|URL>", "<FILE|URL|->", "<URL>", "[URL]"];
    if may_hold_key.iter().any(|secret| argument.starts_with(secret)) {
        // The rest of a key may follow after white space, which no URL contains.
        let is_url = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
        let shown = value.split_whitespace().next().filter(is_url).map(text::strip_url_secrets);
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown.unwrap_or_else(|| "…".to_owned())));
    } else if value.contains("://") {
        error.insert(ContextKind::InvalidValue, ContextValue::String(text::strip_url_secrets(&value)));
    }
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if let Some(tip) = hint::hint_on_usage_error(&usage, &argument, &subcommand) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    text::escape_unsafe_lines(&error.render().to_string())
}

/// The text that the error is about, if it is of this kind.
fn error_context_text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    }
}

/// The command with all options, for completion scripts and manual pages.
pub(super) fn clap_command_with_all_options() -> clap::Command {
    Cli::command()
}

/// The command for parsing and help. The network options have their own help page.
pub(super) fn clap_command_for_parsing() -> clap::Command {
    groups::add_grouped_help(clap_command_without_groups())
}

/// The command for manual pages: only the program's own page contains the network options.
pub(super) fn clap_command_for_man_pages() -> clap::Command {
    let program = clap_command_without_groups().long_about(DESCRIPTION).after_help(MANUAL);
    program.mut_args(|arg| if is_network_option(&arg) { arg.hide(false) } else { arg })
}

fn clap_command_without_groups() -> clap::Command {
    hide_network_options(Cli::command())
}

/// The help page for the network options.
pub(super) fn network_help_page() -> clap::Command {
    NetworkArguments::augment_args(clap::Command::new("clresolve help world"))
        .about("Network options: which chain, gateways and rules to use, and how long to wait.")
        .after_help(WORLD_AFTER_HELP)
        .override_usage("clresolve [COMMAND] [NETWORK OPTIONS] ...")
        .disable_help_flag(true)
}

const WORLD_AFTER_HELP: &str = "\
Every command that asks the chain, a host or a gateway takes these options,
before or after its name. Each is also a key of the configuration file,
without the dashes.

Configuration: defaults < file < environment < options. The file is the one
that --config or CLRESOLVE_CONFIG names, otherwise the first that exists of
$XDG_CONFIG_HOME/clresolve/config.toml (~/.config/clresolve/config.toml) and
/etc/clresolve/config.toml. All commands and the daemon read the same file.
--no-config skips the last two, and --sandbox reads no file.
`clresolve config show` names the source of each value.
The environment has CLRESOLVE_CONFIG, _RPC, _GATEWAY, _BLOCK, _PROFILE,
_DEPTH, _TIMEOUT, _CHAIN_ID and _UNIVERSAL_RESOLVER.

Examples:
  clresolve a.eth --rpc http://127.0.0.1:8545 --gateway http://127.0.0.1:8080
  clresolve a.eth --proof state-proof --quorum 3 --depth schemas";

const WORLD_FOOTER: &str = "Which chain, gateways and rules are used: `clresolve help world`.";

/// Hides the network options in all subcommands, and adds a reference to their help page.
fn hide_network_options(command: clap::Command) -> clap::Command {
    let has_world = command.get_arguments().any(is_network_option);
    let command = command
        .mut_args(|arg| if is_network_option(&arg) { arg.hide(true) } else { arg })
        .mut_subcommands(hide_network_options);
    if has_world && command.get_name() != "clresolve" { add_help_footer(command, WORLD_FOOTER) } else { command }
}

fn add_help_footer(command: clap::Command, footer: &str) -> clap::Command {
    let own = command.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
    command.after_help(format!("{own}{footer}"))
}

fn is_network_option(arg: &clap::Arg) -> bool {
    arg.get_help_heading() == Some(world::HEADING)
}

/// Moves the command, and its subcommand, before preceding flags, so that flags may precede them.
///
/// Only the first argument that is not a flag can be a command, and none after `--`.
fn move_subcommand_before_flags(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let cli = Cli::command();
    let (mut command, mut place) = (&cli, 1);
    while let Some(at) = first_positional_index(&cli, &arguments, place)
        && let Some(below) = arguments[at].to_str().and_then(|name| command.find_subcommand(name))
    {
        arguments[place..=at].rotate_right(1);
        (command, place) = (below, place + 1);
    }
    arguments
}

fn first_positional_index(command: &clap::Command, arguments: &[OsString], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(argument) = arguments.get(at) {
        match argument.to_str() {
            Some("--") => return None,
            Some(flag) if flag.starts_with('-') && flag.len() > 1 => {
                at += 1 + usize::from(flag_takes_value(command, flag))
            }
            _ => return Some(at),
        }
    }
    None
}

/// Whether the flag takes the next argument as its value.
fn flag_takes_value(command: &clap::Command, flag: &str) -> bool {
    let takes_value = |a: &clap::Arg| a.get_action().takes_values();
    if let Some(long) = flag.strip_prefix("--") {
        return !long.contains('=') && command.get_arguments().any(|a| a.get_long() == Some(long) && takes_value(a));
    }
    // In a cluster such as -vo, only the last letter can take the next argument. In -ojson, the value is attached.
    let first = flag[1..]
        .char_indices()
        .find(|(_, c)| command.get_arguments().any(|a| a.get_short() == Some(*c) && takes_value(a)));
    first.is_some_and(|(i, c)| 1 + i + c.len_utf8() == flag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> CliCommand {
        parse_command_line(line.split(' ').map(OsString::from).collect())
            .unwrap_or_else(|e| panic!("{line}: {e}"))
            .command
    }

    fn names(line: &str) -> Vec<String> {
        match parsed(line) {
            CliCommand::Verify(args) => args.names,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        clap_command_for_parsing().debug_assert();
    }

    fn refusal<'w>(words: impl Iterator<Item = &'w str>) -> String {
        redacted_clap_error_message(parse_command_line(words.map(OsString::from).collect()).unwrap_err())
    }

    #[test]
    fn a_bare_argument_is_a_name() {
        assert_eq!(names("clresolve a.eth"), ["a.eth"]);
        assert_eq!(names("clresolve --sandbox a.eth"), ["a.eth"]);
        assert_eq!(names("clresolve verify trace"), ["trace"]);
        assert_eq!(names("clresolve -- trace"), ["trace"]);
        assert_eq!(names("clresolve --block latest -- trace"), ["trace"]);
        assert_eq!(names("clresolve -o short trace.eth"), ["trace.eth"]);
    }

    #[test]
    fn a_bare_word_without_a_dot_is_refused_with_a_suggestion() {
        for (line, part) in [
            ("clresolve foo", "`foo` is not an ENS name"),
            ("clresolve trcae", "did you mean the command `trace`?"),
            ("clresolve helpp", "did you mean the command `help`?"),
            ("clresolve a.eth trace", "`trace` is a command; put it before the names"),
            ("clresolve --sandbox foo", "`clresolve verify foo`"),
        ] {
            let message = refusal(line.split(' '));
            assert!(message.contains(part), "{line}: {message}");
        }
        assert_eq!(names("clresolve -"), ["-"]);
    }

    #[test]
    fn a_removed_command_says_what_replaces_it() {
        for (line, part) in [
            ("clresolve convert card.json --to a2a", "`convert` is not a command: use `clresolve cards convert`"),
            ("clresolve --timeout 3s project a.eth", "use `clresolve cards project`"),
            ("clresolve key new k", "use `clresolve signature key`"),
            ("clresolve watch --names n.txt", "`clresolve audit diff` from a timer"),
        ] {
            let message = refusal(line.split(' '));
            assert!(message.contains(part), "{line}: {message}");
        }
        assert_eq!(names("clresolve -- watch"), ["watch"]);
    }

    #[test]
    fn what_is_no_name_is_refused_with_the_name_that_was_meant() {
        for (given, part) in [
            ("x402://a.eth/do/v1", "did you mean `a.eth`?"),
            ("HTTPS://user:secret@a.example:8443/card.json", "did you mean `a.example`?"),
            ("a.eth.", "did you mean `a.eth`?"),
            (" a.eth\n", "did you mean `a.eth`?"),
            ("0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e", "an address"),
        ] {
            for words in
                [vec![], vec!["verify"], vec!["trace"], vec!["records"], vec!["gate"], vec!["bundle", "export"]]
            {
                let line = [&["clresolve"], &*words, &[given]].concat();
                let message = refusal(line.iter().copied());
                assert!(message.contains(part) && !message.contains("secret"), "{line:?}: {message}");
            }
        }
    }

    #[test]
    fn what_may_be_a_key_is_not_repeated() {
        for given in ["https://host.example /KEYKEYKEY", "KEYKEYKEY", "ftp://u:KEYKEYKEY@a", "KEYKEYKEY://x"] {
            let message = refusal(["clresolve", "a.eth", "--rpc", given].into_iter());
            assert!(message.contains("--rpc") && !message.contains("KEYKEYKEY"), "{message}");
        }
    }

    #[test]
    fn an_option_behind_two_dashes_is_no_name() {
        for line in ["clresolve -- --help", "clresolve verify -- --json"] {
            assert!(refusal(line.split(' ')).contains("put it before `--`"), "{line}");
        }
    }

    #[test]
    fn the_name_of_a_chain_is_answered_with_its_id() {
        let message = refusal("clresolve a.eth --chain-id mainnet".split(' '));
        assert!(message.contains("expected a number; mainnet is 1"), "{message}");
    }

    #[test]
    fn explanations_of_codes_name_commands_as_they_are_spelt_now() {
        let mut seen = 0;
        for code in clresolve_core::reason::ReasonCode::ALL {
            let entry = code.entry();
            let sentences = [entry.title, entry.explanation].map(|text| text.split('`').skip(1).step_by(2));
            for line in sentences.into_iter().flatten().filter_map(|quoted| quoted.strip_prefix("clresolve ")) {
                let (mut command, mut words) = (&Cli::command(), line.split(' ').peekable());
                while let Some(word) = words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())) {
                    let known = command.find_subcommand(word).filter(|known| !known.is_hide_set());
                    command = known.unwrap_or_else(|| panic!("{code}: `clresolve {line}`"));
                    seen += 1;
                }
                for flag in words.filter_map(|word| word.strip_prefix("--")) {
                    assert!(command.get_arguments().any(|known| known.get_long() == Some(flag)), "{code}: --{flag}");
                }
            }
        }
        assert!(seen > 5, "the explanations name commands");
    }

    #[test]
    fn a_command_that_opens_no_connection_has_no_option_of_the_world() {
        for line in [
            "clresolve explain --sandbox",
            "clresolve name a.eth --rpc http://a.example",
            "clresolve cards convert c --to a2a --gateway http://a.example",
            "clresolve cards generate --from x --timeout 1s",
            "clresolve signature sign c --key k --sandbox",
            "clresolve verdict verify j --jwks k --name a.eth --rpc http://a.example",
            "clresolve bundle verify b --connect-to a:1:b:1",
            "clresolve plan d --rpc http://a.example",
            "clresolve completions bash --sandbox",
        ] {
            let error = parse_command_line(line.split(' ').map(OsString::from).collect()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{line}");
        }
    }

    #[test]
    fn json_is_another_spelling_of_the_form() {
        let CliCommand::Trace(args) = parsed("clresolve trace a.eth --json") else { panic!("not a trace") };
        assert_eq!(args.output.output_format(), VerdictOutputFormat::Json);
        let CliCommand::Audit(args) = parsed("clresolve audit --names n --json") else { panic!("not an audit") };
        assert_eq!(args.output.formats_with_outputs().unwrap()[0].0, clresolve_audit::AuditReportFormat::Json);
        let line = "clresolve audit --names n --json --format csv".split(' ').map(OsString::from).collect();
        assert_eq!(parse_command_line(line).unwrap_err().kind(), ErrorKind::ArgumentConflict);
    }

    #[test]
    fn network_options_have_one_page() {
        let page = network_help_page().render_help().to_string();
        let own: Vec<String> =
            network_help_page().get_arguments().filter_map(|a| a.get_long().map(str::to_owned)).collect();
        assert!(own.len() > 15 && own.iter().all(|flag| page.contains(&format!("--{flag}"))), "{page}");
        let mut command = clap_command_for_parsing();
        command.build();
        let help = command.find_subcommand_mut("trace").expect("a command").render_help().to_string();
        for flag in ["--verbose", "--quiet", "--color <WHEN>", "clresolve trace "] {
            assert!(help.contains(flag), "{flag} is missing from {help}");
        }
        assert!(!help.contains("--universal-resolver") && help.contains("clresolve help world"), "{help}");
    }

    #[test]
    fn every_command_shows_two_examples() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            command.get_subcommands().for_each(|below| check(below, &path));
            if command.is_hide_set() {
                return;
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = help.split("Examples:").nth(1).unwrap_or_default();
            assert!(examples.matches("clresolve ").count() >= 2, "{path}: {help}");
        }
        clap_command_for_parsing().get_subcommands().for_each(|below| check(below, "clresolve"));
    }

    #[test]
    fn help_fits_a_terminal_of_80_columns() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(long.is_empty(), "{}: {long:#?}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        check(&clap_command_for_parsing());
        check(&network_help_page());
    }

    #[test]
    fn flags_may_stand_before_the_command() {
        for line in [
            "clresolve trace a.eth --sandbox",
            "clresolve --sandbox trace a.eth",
            "clresolve --timeout 3s trace a.eth",
            "clresolve --timeout=3s trace a.eth",
            "clresolve -o json trace a.eth",
            "clresolve -ojson trace a.eth",
            "clresolve -vo json trace a.eth",
            "clresolve -v trace a.eth",
        ] {
            assert!(matches!(parsed(line), CliCommand::Trace(a) if a.names == ["a.eth"]), "{line}");
        }
    }

    #[test]
    fn flags_may_stand_before_a_command_of_two_words() {
        for line in [
            "clresolve memory show a.eth --timeout 3s",
            "clresolve --timeout 3s memory show a.eth",
            "clresolve memory --timeout 3s show a.eth",
        ] {
            assert!(matches!(parsed(line), CliCommand::Memory(_)), "{line}");
        }
        assert!(matches!(parsed("clresolve --sandbox bundle export a.eth"), CliCommand::Bundle(_)));
    }

    #[test]
    fn the_value_of_a_flag_is_no_command() {
        assert_eq!(names("clresolve --expect-verb trace a.eth"), ["a.eth"]);
        assert_eq!(names("clresolve --profile card a.eth"), ["a.eth"]);
    }

    #[test]
    fn flags_that_would_leave_the_sandbox_are_refused() {
        for flag in ["--rpc http://a.example", "--gateway http://a.example", "--config f", "--ca f", "--chain-id 1"] {
            let line = format!("clresolve --sandbox {flag} a.eth");
            let error = parse_command_line(line.split(' ').map(OsString::from).collect()).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{line}");
        }
    }

    #[test]
    fn usage_errors_show_neither_keys_nor_control_characters() {
        for flag in
            ["--rpc ftp://rpc.example/SECRET", "--rpc rpc.example/SECRET", "--gateway https://u:SECRET@g.example"]
        {
            let line = format!("clresolve a.eth {flag}");
            let message = redacted_clap_error_message(
                parse_command_line(line.split(' ').map(OsString::from).collect()).unwrap_err(),
            );
            assert!(message.contains("expected") && !message.contains("SECRET"), "{message}");
        }
        let line = ["clresolve", "a.eth", "--expect-owner", "a\u{1b}[31m\u{7}\u{202e}b"].map(OsString::from);
        let message = redacted_clap_error_message(parse_command_line(line.to_vec()).unwrap_err());
        assert!(message.contains("\\u{202e}b'"), "{message}");
        assert!(!message.contains(|c| c != '\n' && text::is_unsafe_character(c)), "{message}");
    }

    #[test]
    fn an_unknown_proof_is_refused_with_those_that_are_known() {
        let proof =
            |grade: &str| parse_command_line(["clresolve", "--proof", grade, "a.eth"].map(OsString::from).to_vec());
        assert!(proof("state-proof").is_ok() && proof("consensus-proof").is_ok());
        let error = proof("word-of-honour").unwrap_err().to_string();
        assert!(error.contains("single-rpc, quorum, state-proof or consensus-proof"), "{error}");
    }
}
