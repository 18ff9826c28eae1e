//! `verdict verify`: checks a signed verdict without a network.

use clresolve_bundle::signed::{ExpectedVerdict, MAX_JWS_BYTES, VerifiedVerdict, verify};
use clresolve_core::name::EnsName;
use clresolve_core::text::Foreign;
use clresolve_resolver::clock::{Clock as _, SystemClock};
use clresolve_resolver::config::{Config, Layer, ProofDemand};
use clresolve_resolver::sign::read_trusted_keys;

use super::args::{Format, VerdictCommand, VerdictVerifyArgs, WorldArgs};
use super::exit::Exit;
use super::input::{name, read};
use super::notice;
use super::output::{Output, Results};
use super::render::{self, Objections};
use super::verify::{exit_of, report_unmet};
use super::world::{self, Reader};

/// Maximum length of a line end after a JWS, in bytes.
const LINE_END: usize = 2;

pub(super) fn run(VerdictCommand::Verify(args): VerdictCommand) -> anyhow::Result<Exit> {
    let config = world::configuration(&WorldArgs::from(&args.about), Reader::Others, Layer::default())?;
    let keys = read_trusted_keys(&args.jwks)?;
    let expected = expected(&args.name, args.chain, args.issuer.clone(), &config)?;
    let jws = String::from_utf8_lossy(&read(&args.jws, MAX_JWS_BYTES + LINE_END)?).into_owned();
    match verify(jws.trim_end_matches(['\r', '\n']), &keys, &expected, SystemClock.now()) {
        Ok(verified) => show(args, &verified),
        Err(error) => {
            let file = name(&args.jws);
            let (file, error) = (Foreign::new(&file), error.to_string());
            anstream::eprintln!("clresolve: signed verdict in {file} rejected: {}", Foreign::new(&error));
            Ok(Exit::Untrusted)
        }
    }
}

/// The required subject of the verdict: the name, and the configuration unless an option overrides it.
pub(super) fn expected(
    name: &str,
    chain: Option<u64>,
    issuer: Option<String>,
    config: &Config,
) -> anyhow::Result<ExpectedVerdict> {
    let name = name_of_flag(name)?;
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
        proof: config.chain.proof.map(ProofDemand::grade),
    })
}

pub(super) fn name_of_flag(name: &str) -> anyhow::Result<EnsName> {
    EnsName::parse(name).map_err(|error| anyhow::anyhow!("--name: {}", Foreign::new(&error.to_string())))
}

fn show(args: VerdictVerifyArgs, verified: &VerifiedVerdict) -> anyhow::Result<Exit> {
    let verdict = verified.verdict();
    let unmet = args.expect.unmet(verdict);
    let format = args.output.form();
    let output = Output::new(&args.output.out)?;
    let palette = output.palette();
    notice::note(format_args!(
        "clresolve: signed by {}, key {}",
        Foreign::new(&verified.issuer),
        Foreign::new(&verified.key_id)
    ));
    if format != Format::Text {
        report_unmet(verdict, &unmet);
    }
    let mut results = Results::one(output, format);
    results.push(verdict, |format| match format {
        Format::Short => render::short(verdict, &palette),
        _ => render::walk(verdict, Objections::of_expectations(&unmet), &palette),
    })?;
    results.finish()?;
    Ok(exit_of(verdict, &unmet))
}
