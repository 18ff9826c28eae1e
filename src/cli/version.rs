//! `version`: prints the build. `--version -v` also prints the rules.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;

use clresolve_resolver::telemetry::COMMIT;
use clresolve_verdict::profile::ConformanceProfiles;

use super::args::OutputFileArguments;
use super::exit::ExitStatus;
use super::output::OutputSink;

/// Whether the command line also contains `-v`, since the parser stops at `--version`.
pub(super) fn is_verbose_version_requested(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).filter_map(|argument| argument.to_str()).any(|argument| {
        let cluster = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        argument == "--verbose" || cluster.is_some_and(|letters| letters.contains('v'))
    })
}

pub(super) fn print_version() -> anyhow::Result<ExitStatus> {
    OutputSink::new(&OutputFileArguments::default())?.write_all_and_finish(build_info_text().as_bytes())?;
    Ok(ExitStatus::Trusted)
}

/// Like [`print_version`], with every profile and manifest and their digests.
pub(super) fn print_verbose_version() -> anyhow::Result<ExitStatus> {
    OutputSink::new(&OutputFileArguments::default())?
        .write_all_and_finish(verbose_version_text(&ConformanceProfiles::builtin()).as_bytes())?;
    Ok(ExitStatus::Trusted)
}

fn build_info_text() -> String {
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let commit = COMMIT.unwrap_or("unknown");
    format!("clresolve {}\ntarget    {target}\ncommit    {commit}\n", env!("CARGO_PKG_VERSION"))
}

fn verbose_version_text(profiles: &ConformanceProfiles) -> String {
    let mut text = build_info_text();
    let mut manifests = BTreeMap::new();
    for profile in profiles.iter() {
        let _ = writeln!(text, "profile   {:<26} {}", profile.id(), profile.digest());
        manifests.extend(profile.manifests().map(|manifest| (manifest.id().to_owned(), manifest.digest())));
    }
    for (id, digest) in manifests {
        let _ = writeln!(text, "manifest  {id:<26} {digest}");
    }
    text
}
