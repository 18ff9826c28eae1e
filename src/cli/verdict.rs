//! `verdict verify`: checks a signed verdict without a network.

use clresolve_bundle::signed::{ExpectedVerdict, MAX_JWS_BYTES, VerifiedVerdict, verify_signed_verdict};
use clresolve_core::name::EnsName;
use clresolve_core::text::UntrustedText;
use clresolve_resolver::clock::{Clock as _, SystemClock};
use clresolve_resolver::config::{ChainProofMode, Config, ConfigLayer};
use clresolve_resolver::sign::read_trusted_keys;

use super::args::{NetworkArguments, OutputFormat, VerdictCommand, VerdictVerifyArguments};
use super::exit::ExitStatus;
use super::input::{input_label, read_file_or_stdin};
use super::notice;
use super::output::{OutputSink, ResultWriter};
use super::render::{self, ObjectionsToAgent};
use super::verify::{report_unmet_expectations, verdict_exit_status};
use super::world::{self, CommandPaymentAuthority};

/// Maximum length of a line end after a JWS, in bytes.
const LINE_END: usize = 2;

pub(super) fn run(VerdictCommand::Verify(args): VerdictCommand) -> anyhow::Result<ExitStatus> {
    let config = world::read_merged_config(
        &NetworkArguments::from(&args.about),
        CommandPaymentAuthority::Others,
        ConfigLayer::default(),
    )?;
    let keys = read_trusted_keys(&args.jwks)?;
    let expected = expected_verdict(&args.name, args.chain, args.issuer.clone(), &config)?;
    let jws = String::from_utf8_lossy(&read_file_or_stdin(&args.jws, MAX_JWS_BYTES + LINE_END)?).into_owned();
    match verify_signed_verdict(jws.trim_end_matches(['\r', '\n']), &keys, &expected, SystemClock.now()) {
        Ok(verified) => show_verified_verdict(args, &verified),
        Err(error) => {
            let file = input_label(&args.jws);
            let (file, error) = (UntrustedText::new(&file), error.to_string());
            anstream::eprintln!("clresolve: signed verdict in {file} rejected: {}", UntrustedText::new(&error));
            Ok(ExitStatus::Untrusted)
        }
    }
}

/// The required subject of the verdict: the name, and the configuration unless an option overrides it.
pub(super) fn expected_verdict(
    name: &str,
    chain: Option<u64>,
    issuer: Option<String>,
    config: &Config,
) -> anyhow::Result<ExpectedVerdict> {
    let name = parse_name_flag(name)?;
    let (chain, world) = match chain {
        None => (config.chain.id, config.chain.world.clone()),
        Some(id) if id == config.chain.id => (id, config.chain.world.clone()),
        Some(1) => (1, "mainnet".to_owned()),
        Some(id) => (id, format!("eip155-{id}")),
    };
    Ok(ExpectedVerdict {
        name,
        profile: config.rules.profile.clone(),
        depth: config.rules.depth,
        chain: format!("eip155:{chain}"),
        world,
        issuer,
        proof: config.chain.proof.map(ChainProofMode::proof_grade),
    })
}

pub(super) fn parse_name_flag(name: &str) -> anyhow::Result<EnsName> {
    EnsName::parse(name).map_err(|error| anyhow::anyhow!("--name: {}", UntrustedText::new(&error.to_string())))
}

fn show_verified_verdict(args: VerdictVerifyArguments, verified: &VerifiedVerdict) -> anyhow::Result<ExitStatus> {
    let verdict = verified.verdict();
    let unmet = args.expect.unmet_expectations(verdict);
    let format = args.output.output_format();
    let output = OutputSink::new(&args.output.out)?;
    let palette = output.palette();
    notice::print_notice(format_args!(
        "clresolve: signed by {}, key {}",
        UntrustedText::new(&verified.issuer),
        UntrustedText::new(&verified.key_id)
    ));
    if format != OutputFormat::Text {
        report_unmet_expectations(verdict, &unmet);
    }
    let mut results = ResultWriter::for_single_result(output, format);
    results.push(verdict, |format| match format {
        OutputFormat::Short => render::format_verdict_line(verdict, &palette),
        _ => render::format_verdict_walk(verdict, ObjectionsToAgent::from_unmet_expectations(&unmet), &palette),
    })?;
    results.finish()?;
    Ok(verdict_exit_status(verdict, &unmet))
}
