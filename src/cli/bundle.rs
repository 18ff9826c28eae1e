//! `bundle`: writes a verdict with its evidence to a file, and replays it without a network.

use std::fmt::Write as _;
use std::time::Duration;

use alloy_primitives::B256;
use clresolve_bundle::purchase::{AnyBundle, MAX_BYTES, VerifiedPurchase};
use clresolve_bundle::signed::{ExpectedVerdict, VerdictIssuer};
use clresolve_bundle::{
    BundleError, BundleTrustAnchors, ResolutionBundle, SignableBundle, VerifiedBundle, VerifiedVerdictSignature,
};
use clresolve_core::mutant;
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_core::world::SANDBOX;
use clresolve_jose::Ed25519KeySet;
use clresolve_resolver::config::ConfigLayer;
use clresolve_resolver::resolve::{ExportError, NameQuestion, local_profiles};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_resolver::sign::{self, read_trusted_keys};
use clresolve_verdict::profile::ConformanceProfiles;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::args::{BundleCommand, BundleExportArguments, BundleVerifyArguments, NetworkArguments, OutputFormat};
use super::exit::{ContentRefusal, ExitStatus};
use super::input::read_file_or_stdin;
use super::output::{OutputSink, ResultWriter, json_line};
use super::progress::ProgressLine;
use super::verdict::{expected_verdict, parse_name_flag};
use super::verify::{report_unmet_expectations, verdict_exit_status, verify_progress_message};
use super::world::{CommandContext, CommandPaymentAuthority, read_merged_config};
use super::{receipt, render};

const CLOCK_SKEW: Duration = Duration::from_secs(300);

pub(super) fn run(command: BundleCommand) -> anyhow::Result<ExitStatus> {
    match command {
        BundleCommand::Export(args) => super::runtime::run_async_until_interrupt(export_bundle(args)),
        BundleCommand::Verify(args) => verify_bundle_offline(args),
    }
}

async fn export_bundle(args: BundleExportArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.out)?;
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open_with_layer(&args.world, args.sign.try_into()?).await?;
    let signer = sign::open_signer(&world.config.sign)?;
    let exported = world.resolver.export_bundle(&NameQuestion::new(args.name)).await;
    drop(progress);
    match exported {
        Ok(packed) => {
            let bundle = match &signer {
                Some(signer) => try_sign_bundle(packed, signer, world.resolver.now()),
                None => packed.into_unsigned_bundle(),
            };
            output.write_all_and_finish((json_line(&bundle.to_json())? + "\n").as_bytes())?;
            Ok(ExitStatus::Trusted)
        }
        Err(ExportError::Setup(error)) => Err(error.into()),
        Err(error) => {
            anstream::eprintln!("clresolve: no bundle was written: {}", UntrustedText::new(&error.to_string()));
            Ok(if matches!(error, ExportError::Header(_)) { ExitStatus::Indeterminate } else { ExitStatus::Untrusted })
        }
    }
}

/// Signs the bundle. If that fails, the bundle is written unsigned, with the same evidence.
fn try_sign_bundle(packed: SignableBundle, signer: &VerdictIssuer, now: Timestamp) -> ResolutionBundle {
    packed.sign_verdict(signer, now).unwrap_or_else(|error| {
        anstream::eprintln!("clresolve: exported, not signed: {error}");
        packed.into_unsigned_bundle()
    })
}

/// Starts no runtime and builds no resolver, so nothing here can contact a network.
fn verify_bundle_offline(args: BundleVerifyArguments) -> anyhow::Result<ExitStatus> {
    let name = args.name.as_deref().map(parse_name_flag).transpose()?;
    let signer = read_required_signer(&args)?;
    let output = OutputSink::new(&args.output.out)?;
    let bytes = read_file_or_stdin(&args.document, MAX_BYTES)?;
    let mut results = ResultWriter::for_single_result(output, args.output.output_format());
    let config = read_merged_config(
        &NetworkArguments::from(&args.about),
        CommandPaymentAuthority::Others,
        ConfigLayer::default(),
    )?;
    let checkpoint = args.checkpoint.or(config.beacon.checkpoint);
    let demands = BundleRequirements { name, max_age: args.max_age, block: args.block, checkpoint, signer };
    let profiles = local_profiles(&config)?;
    let (verified, signature, purchase) = match verify_bundle_bytes(&bytes, &profiles, &demands, Timestamp::now()) {
        Ok(verified) => verified,
        Err(refusal) => {
            return Ok(refusal.print_and_get_exit_status());
        }
    };
    let verdict = verified.replay.verdict();
    let unmet = match &purchase {
        Some(purchase) if purchase.trust_state() != TrustState::Trusted => Vec::new(),
        _ => args.expect.unmet_expectations(verdict),
    };
    if args.output.output_format() != OutputFormat::Text {
        report_unmet_expectations(verdict, &unmet);
    }
    results.push(&bundle_result_json(&verified, &signature, purchase.as_ref()), |format| {
        match (format, &purchase) {
            (OutputFormat::Short, None) => render::format_verdict_line(verdict, &render::Palette::plain()),
            (OutputFormat::Short, Some(purchase)) => {
                receipt::format_receipt_line(&purchase.verification, &render::Palette::plain())
            }
            _ => format_bundle_result(&verified, &signature, purchase.as_ref(), &unmet),
        }
    })?;
    results.finish()?;
    Ok(match &purchase {
        Some(purchase) if unmet.is_empty() => purchase.trust_state().into(),
        _ => verdict_exit_status(verdict, &unmet),
    })
}

/// Opens the bundle of a name, or of a purchase and the name's bundle in it.
fn verify_bundle_bytes(
    bytes: &[u8],
    profiles: &ConformanceProfiles,
    demands: &BundleRequirements,
    now: Timestamp,
) -> Result<(VerifiedBundle, BundleSignatureStatus, Option<VerifiedPurchase>), ContentRefusal> {
    let purchase = match AnyBundle::from_bytes(bytes)? {
        AnyBundle::Purchase(purchase) => purchase,
        AnyBundle::Name(bundle) => {
            let (verified, signed) = verify_bundle_requirements(&bundle, profiles, demands, now)?;
            return Ok((verified, signed, None));
        }
    };
    if demands.signer.is_some() && !mutant!("purchases-pass-for-signed") {
        return Err(unsigned_purchase_refusal());
    }
    let (verified, signed) = verify_bundle_requirements(purchase.name_bundle(), profiles, demands, now)?;
    let purchase = purchase.verify_evidence(&verified)?;
    if let Some(max_age) = demands.max_age {
        require_max_age(purchase.made_at, max_age, now)?;
    }
    Ok((verified, signed, Some(purchase)))
}

/// A signature covers only the verdict on the name. Anyone can put another purchase around it.
fn unsigned_purchase_refusal() -> ContentRefusal {
    let message = "nobody signs a purchase, and a signature of the name's bundle in it does not cover it; leave --jwks \
                   out, or check its member `bundle` by itself";
    ContentRefusal::new(BundleError::Unsigned.error_class(), message.to_owned())
}

/// The required signer and subject, if keys are given.
fn read_required_signer(args: &BundleVerifyArguments) -> anyhow::Result<Option<(Ed25519KeySet, ExpectedVerdict)>> {
    let (Some(jwks), Some(name)) = (&args.jwks, &args.name) else { return Ok(None) };
    let config = read_merged_config(
        &NetworkArguments::from(&args.about),
        CommandPaymentAuthority::Others,
        ConfigLayer::default(),
    )?;
    let expected = expected_verdict(name, None, args.issuer.clone(), &config)?;
    Ok(Some((read_trusted_keys(jwks)?, expected)))
}

impl From<BundleError> for ContentRefusal {
    fn from(error: BundleError) -> Self {
        let exit = if error.is_undecided() { ExitStatus::Indeterminate } else { ExitStatus::Untrusted };
        Self { class: error.error_class(), message: error.to_string(), exit }
    }
}

/// Requirements on a bundle besides its integrity.
struct BundleRequirements {
    name: Option<EnsName>,
    max_age: Option<Duration>,
    /// The numbered block that the bundle may be about.
    block: Option<BlockSelector>,
    /// The beacon block root that the reader trusts.
    checkpoint: Option<B256>,
    signer: Option<(Ed25519KeySet, ExpectedVerdict)>,
}

enum BundleSignatureStatus {
    Not,
    /// It has a signature that was not checked.
    Unchecked,
    By(VerifiedVerdictSignature),
}

fn verify_bundle_requirements(
    bundle: &ResolutionBundle,
    profiles: &ConformanceProfiles,
    demands: &BundleRequirements,
    now: Timestamp,
) -> Result<(VerifiedBundle, BundleSignatureStatus), ContentRefusal> {
    if demands.name.as_ref().is_some_and(|name| name != bundle.name()) {
        return Err(ContentRefusal::new("bundle-other-name", format!("it is about {}", bundle.name())));
    }
    if let Some(height) = bundle.requested_block_number()
        && demands.block != Some(BlockSelector::Number(height))
    {
        let message =
            format!("it is about block {height} and ignores later changes; pass --block {height} to accept that");
        return Err(ContentRefusal::new("bundle-past-block", message));
    }
    let checkpoint = demands.checkpoint;
    let verified = match bundle.network_name() {
        SANDBOX => bundle.verify_by_replay(BundleTrustAnchors { profiles: &Sandbox::profiles(), checkpoint })?,
        _ => bundle.verify_by_replay(BundleTrustAnchors { profiles, checkpoint })?,
    };
    let signed = match &demands.signer {
        Some((keys, expected)) => BundleSignatureStatus::By(require_unexpired_signature(
            bundle.check_verdict_signature(keys, expected, now)?,
            demands,
        )?),
        None if bundle.has_signature() => BundleSignatureStatus::Unchecked,
        None => BundleSignatureStatus::Not,
    };
    if let Some(max_age) = demands.max_age {
        require_max_age(verified.made_at, max_age, now)?;
    }
    Ok((verified, signed))
}

fn require_unexpired_signature(
    signature: VerifiedVerdictSignature,
    demands: &BundleRequirements,
) -> Result<VerifiedVerdictSignature, ContentRefusal> {
    if signature.is_expired && demands.max_age.is_none() {
        let message =
            format!("the signature expired at {}; pass --max-age to accept a bundle up to that age", signature.expires);
        return Err(ContentRefusal::new("bundle-expired", message));
    }
    Ok(signature)
}

fn require_max_age(made_at: Timestamp, max_age: Duration, now: Timestamp) -> Result<(), ContentRefusal> {
    let refused = |class, message| Err(ContentRefusal::new(class, message));
    let age = now.duration_since(made_at);
    match Duration::try_from(age) {
        Ok(age) if age > max_age => {
            refused("bundle-too-old", format!("it was made at {made_at}, longer ago than --max-age"))
        }
        Err(_) if age.unsigned_abs() > CLOCK_SKEW => {
            refused("bundle-from-the-future", format!("it claims to be from {made_at}"))
        }
        _ => Ok(()),
    }
}

fn bundle_result_json(
    verified: &VerifiedBundle,
    signed: &BundleSignatureStatus,
    purchase: Option<&VerifiedPurchase>,
) -> Value {
    let verdict = verified.replay.verdict();
    let signature = match signed {
        BundleSignatureStatus::Not => Value::Null,
        BundleSignatureStatus::Unchecked => json!({"checked": false}),
        BundleSignatureStatus::By(signature) => json!({
            "checked": true,
            "issuer": signature.issuer,
            "key_id": signature.key_id,
            "expires": signature.expires.to_string(),
            "expired": signature.is_expired,
        }),
    };
    json!({
        "schema": "clresolve.bundle-check/1",
        "bundle": verified.digest,
        "state": verdict.state,
        "conclusion": verdict.conclusion,
        "made_at": verified.made_at.to_string(),
        "fresh_until": verdict.freshness.fresh_until,
        "proven": verified.proven,
        "attested": verified.attested,
        "signature": signature,
        "verdict": verdict.as_ref(),
        "purchase": purchase.map(|purchase| json!({
            "bundle": purchase.digest,
            "state": purchase.trust_state(),
            "proven": purchase.proven,
            "attested": purchase.attested,
            "verification": purchase.verification.to_value(),
        })),
    })
}

/// What is proven, and what depends on the exporter's honesty.
fn write_bundle_claims(text: &mut String, proven: &[String], attested: &[String]) {
    for (title, clauses) in [("shown here", proven), ("the exporter's word", attested)] {
        let _ = writeln!(text, "{title}:");
        for clause in clauses {
            let _ = writeln!(text, "  {}", UntrustedText::new(clause));
        }
    }
}

fn format_bundle_result(
    verified: &VerifiedBundle,
    signed: &BundleSignatureStatus,
    purchase: Option<&VerifiedPurchase>,
    unmet: &[String],
) -> String {
    let verdict = verified.replay.verdict();
    let mut text = render::format_verdict_line(verdict, &render::Palette::plain());
    let _ = writeln!(text, "bundle {}", verified.digest);
    if let Some(anchor) = &verdict.anchor {
        let (world, chain, block) =
            (UntrustedText::new(&anchor.world), UntrustedText::new(&anchor.chain), &anchor.block);
        let (tag, time) = (UntrustedText::new(&block.tag), UntrustedText::new(&block.timestamp));
        let _ = writeln!(text, "world {world}, chain {chain}, block {} ({tag}) of {time}", block.number);
    }
    let _ = writeln!(text, "made {}, fresh until {}", verified.made_at, verdict.freshness.fresh_until);
    match signed {
        BundleSignatureStatus::Not => {}
        BundleSignatureStatus::Unchecked => text.push_str("signed: by somebody; not checked, --jwks does\n"),
        BundleSignatureStatus::By(VerifiedVerdictSignature { issuer, key_id, expires, is_expired }) => {
            let expired = if *is_expired { "expired" } else { "expires" };
            let (issuer, key_id) = (UntrustedText::new(issuer), UntrustedText::new(key_id));
            let _ = writeln!(text, "signed by {issuer}, key {key_id}: the signature is valid, {expired} {expires}");
        }
    }
    write_bundle_claims(&mut text, &verified.proven, &verified.attested);
    if let Some(purchase) = purchase {
        let _ = writeln!(text, "\npurchase {}", purchase.digest);
        text += &receipt::format_receipt_checks(&purchase.verification, &render::Palette::plain());
        write_bundle_claims(&mut text, &purchase.proven, &purchase.attested);
    }
    if verdict.anchor.as_ref().is_some_and(|anchor| anchor.world == SANDBOX) {
        text.push_str("It is about the sandbox, and proves nothing about a real network.\n");
    }
    let _ = writeln!(text, "{}", bundle_advice(verdict.state, signed, purchase, unmet));
    text
}

fn bundle_advice(
    agent: TrustState,
    signed: &BundleSignatureStatus,
    purchase: Option<&VerifiedPurchase>,
    unmet: &[String],
) -> String {
    let of_purchase = purchase.map(VerifiedPurchase::trust_state);
    match (agent, of_purchase) {
        (TrustState::Untrusted, _) => "Do not go ahead: the evidence contradicts the binding.".to_owned(),
        (_, Some(TrustState::Untrusted)) => "Do not rely on this receipt: the evidence contradicts it.".to_owned(),
        (TrustState::Indeterminate, _) => "Do not go ahead: the evidence does not decide.".to_owned(),
        (_, Some(TrustState::Indeterminate)) => {
            "Do not rely on this receipt yet: the evidence does not decide.".to_owned()
        }
        _ if !unmet.is_empty() => format!("Do not go ahead: {}.", unmet.join("; ")),
        _ => {
            let whom = match signed {
                BundleSignatureStatus::By(VerifiedVerdictSignature { issuer, .. }) => {
                    UntrustedText::new(issuer).to_string()
                }
                BundleSignatureStatus::Not | BundleSignatureStatus::Unchecked => {
                    "the exporter of this bundle".to_owned()
                }
            };
            let receipt = if of_purchase.is_some() { ", and the receipt holds" } else { "" };
            format!("If you believe {whom}: the binding was real then{receipt}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_expired_is_refused_unless_an_age_is_allowed() {
        let signature = |is_expired| VerifiedVerdictSignature {
            issuer: "https://clresolve.example".to_owned(),
            key_id: "k".to_owned(),
            expires: Timestamp::UNIX_EPOCH,
            is_expired,
        };
        let demands = |max_age| BundleRequirements { name: None, max_age, block: None, checkpoint: None, signer: None };
        let class = |is_expired, max_age| {
            require_unexpired_signature(signature(is_expired), &demands(max_age)).err().map(|r| r.class)
        };
        assert_eq!(class(true, None), Some("bundle-expired"));
        assert_eq!(class(true, Some(Duration::from_secs(60))), None);
        assert_eq!(class(false, None), None);
    }
}
