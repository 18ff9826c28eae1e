//! `version`: which build this is. `--version -v`: by which rules it judges, too.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;

use clresolve_resolver::telemetry::COMMIT;
use clresolve_verdict::profile::Profiles;

use super::args::OutArgs;
use super::exit::Exit;
use super::output::Output;

/// Whether `-v` stands beside `--version`. The parser stops at the first of the two.
pub(super) fn is_whole_asked_for(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).filter_map(|argument| argument.to_str()).any(|argument| {
        let cluster = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        argument == "--verbose" || cluster.is_some_and(|letters| letters.contains('v'))
    })
}

/// Writes version, target and commit.
pub(super) fn run() -> anyhow::Result<Exit> {
    Output::new(&OutArgs::default())?.write_whole(build().as_bytes())?;
    Ok(Exit::Trusted)
}

/// Writes the same, and every profile and manifest with its digest.
pub(super) fn write_whole() -> anyhow::Result<Exit> {
    Output::new(&OutArgs::default())?.write_whole(whole(&Profiles::builtin()).as_bytes())?;
    Ok(Exit::Trusted)
}

fn build() -> String {
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let commit = COMMIT.unwrap_or("unknown");
    format!("clresolve {}\ntarget    {target}\ncommit    {commit}\n", env!("CARGO_PKG_VERSION"))
}

fn whole(profiles: &Profiles) -> String {
    let mut text = build();
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
