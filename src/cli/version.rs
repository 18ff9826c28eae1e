//! `version`: prints the build. `--version -v` also prints the rules.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;

use clresolve_resolver::telemetry::COMMIT;
use clresolve_verdict::profile::Profiles;

use super::args::OutArgs;
use super::exit::Exit;
use super::output::Output;

/// Whether the command line also contains `-v`, since the parser stops at `--version`.
pub(super) fn is_whole_asked_for(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).filter_map(|argument| argument.to_str()).any(|argument| {
        let cluster = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        argument == "--verbose" || cluster.is_some_and(|letters| letters.contains('v'))
    })
}

pub(super) fn run() -> anyhow::Result<Exit> {
    Output::new(&OutArgs::default())?.write_whole(build().as_bytes())?;
    Ok(Exit::Trusted)
}

/// Like [`run`], with every profile and manifest and their digests.
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
