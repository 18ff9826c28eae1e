//! The registry whose names are audited. Its manifest is read from a file, a host or IPFS.

mod manifest;

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use clresolve_audit::list_digest::normalized_digest;
use clresolve_core::digest::Digest;
use clresolve_core::reason::ReasonCode;
use clresolve_core::text::{UntrustedText, excerpt_text, strip_url_secrets};
use clresolve_core::uri;
use clresolve_resolver::resolve::REGISTRY_LIMIT;
use clresolve_resolver::resolve::Resolver;
use url::Url;

use self::manifest::RegistryManifestOrDescriptor;
use crate::cli::args::AuditArguments;
use crate::cli::input::{self, STDIN};
use crate::cli::names::{DuplicateNameDetector, NameListLine};

pub(super) struct RegistryNameList {
    /// Its description in the report. `None` if it could not be read.
    pub(super) about: Option<clresolve_audit::AuditedRegistryManifest>,
    /// Its entries as lines of a list. An unreadable registry is a single line.
    entries: Vec<NameListLine>,
    /// The first entry of each name.
    numbers: HashMap<Digest, u64>,
}

impl RegistryNameList {
    /// Reads the registry, if one is audited. One that cannot be read or parsed becomes a line that contains the
    /// position of the error.
    ///
    /// # Errors
    /// If its file cannot be opened, or is also the list.
    pub(super) async fn read_from_arguments(
        args: &AuditArguments,
        resolver: &Resolver,
    ) -> anyhow::Result<Option<Self>> {
        let Some(typed) = &args.registry else { return Ok(None) };
        if typed == STDIN && args.names.as_deref() == Some(Path::new(STDIN)) {
            bail!("--registry -: standard input is the list of names already");
        }
        let location = RegistryLocation::from_argument(typed);
        match Self::read(&location, resolver).await {
            Err(error) if !is_local_file_error(&error) => {
                let why = UntrustedText::new(&format!("{error:#}")).to_string();
                let rest = if args.names.is_some() { "; the names of the list are audited all the same" } else { "" };
                anstream::eprintln!("clresolve: --registry: {why}{rest}");
                Ok(Some(Self::from_read_error(&location, &error)))
            }
            read => read.map(Some).context("--registry"),
        }
    }

    async fn read(location: &RegistryLocation, resolver: &Resolver) -> anyhow::Result<Self> {
        let (bytes, document) = location.fetch_document(resolver).await?;
        let to = match document {
            RegistryManifestOrDescriptor::Manifest(entries) => {
                return Ok(Self::from_manifest(location, &bytes, entries));
            }
            RegistryManifestOrDescriptor::Descriptor(to) => RegistryLocation::from_descriptor(to),
        };
        match to.fetch_document(resolver).await {
            Ok((bytes, RegistryManifestOrDescriptor::Manifest(entries))) => {
                Ok(Self::from_manifest(&to, &bytes, entries))
            }
            Ok((_, RegistryManifestOrDescriptor::Descriptor(_))) => {
                Err(anyhow!("{to} is a descriptor too, not a manifest"))
            }
            Err(error) => Err(error),
        }
        .with_context(|| format!("the descriptor at {location} leads on"))
    }

    fn from_manifest(location: &RegistryLocation, bytes: &[u8], entries: Vec<NameListLine>) -> Self {
        let mut numbers = HashMap::new();
        for entry in &entries {
            if let NameListLine::Name { line, name } = entry {
                numbers.entry(normalized_digest(name)).or_insert(*line);
            }
        }
        let about = clresolve_audit::AuditedRegistryManifest {
            manifest: location.redacted_location(),
            digest: Digest::compute(bytes).to_string(),
            proven: matches!(location, RegistryLocation::Ipfs(_)),
            entries: entries.len() as u64,
        };
        Self { about: Some(about), entries, numbers }
    }

    fn from_read_error(location: &RegistryLocation, error: &anyhow::Error) -> Self {
        let is_silence = error.chain().any(|cause| cause.is::<RegistryUnavailableError>());
        let code = if is_silence { ReasonCode::RegistryUnreachable } else { ReasonCode::RegistryMalformed };
        let line = NameListLine::unreadable_registry(location.redacted_location(), code, format!("{error:#}"));
        Self { about: None, entries: vec![line], numbers: HashMap::new() }
    }

    /// Why it could not be read, if so.
    pub(super) fn read_error(&self) -> Option<String> {
        match (&self.about, self.entries.first()) {
            (None, Some(NameListLine::Unreadable { why, .. })) => Some(format!("the registry cannot be read: {why}")),
            _ => None,
        }
    }

    /// The entries. Their numbers start at 1.
    pub(super) fn entries(&self) -> &[NameListLine] {
        &self.entries
    }

    /// Number of distinct names, including unreadable ones.
    pub(super) fn distinct_name_count(&self) -> u64 {
        let mut distinct = DuplicateNameDetector::default();
        self.entries.iter().filter(|entry| distinct.insert_line(entry)).count() as u64
    }

    /// The first entry of a name, in any spelling.
    pub(super) fn entry_number_of_name(&self, name: &str) -> Option<u64> {
        self.numbers.get(&normalized_digest(name)).copied()
    }

    #[cfg(test)]
    pub(super) fn from_names(names: &[&str]) -> Self {
        let entry = |(line, name): (u64, &&str)| NameListLine::Name { line, name: (*name).to_owned() };
        Self::from_manifest(
            &RegistryLocation::from_argument("manifest.json"),
            b"",
            (1..).zip(names).map(entry).collect(),
        )
    }
}

/// Whether a local file cannot be opened or read, so that the user passed a wrong file.
fn is_local_file_error(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<std::io::Error>())
}

/// No source served the document, so nothing is known about the registry.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct RegistryUnavailableError(String);

#[derive(Clone, Debug, PartialEq, Eq)]
enum RegistryLocation {
    File(String),
    /// A URL, fetched like any untrusted URL.
    Web(String),
    /// IPFS content, verified by its CID.
    Ipfs(String),
}

impl RegistryLocation {
    /// Parses an argument: anything that is not a URL is a file.
    fn from_argument(text: &str) -> Self {
        if text.contains("://") { Self::from_descriptor(text.to_owned()) } else { Self::File(text.to_owned()) }
    }

    /// Parses a location in a descriptor, which is never a local file: anything outside IPFS is a URL, valid or not.
    fn from_descriptor(text: String) -> Self {
        if uri::strip_scheme(&text, "ipfs").is_some() {
            Self::Ipfs(text)
        } else if clresolve_core::mutant!("descriptors-lead-to-files") && !text.contains("://") {
            Self::File(text)
        } else {
            Self::Web(text)
        }
    }

    async fn fetch_document(&self, resolver: &Resolver) -> anyhow::Result<(Bytes, RegistryManifestOrDescriptor)> {
        let bytes = self.fetch_bytes(resolver).await?;
        let document = manifest::parse_registry_document(&bytes).with_context(|| self.to_string())?;
        Ok((bytes, document))
    }

    async fn fetch_bytes(&self, resolver: &Resolver) -> anyhow::Result<Bytes> {
        match self {
            Self::File(path) => input::read_file_or_stdin(Path::new(path), REGISTRY_LIMIT).map(Bytes::from),
            Self::Web(url) | Self::Ipfs(url) => resolver.fetch_registry_manifest(url).await.map_err(|fault| {
                let why = format!("{self}: {}", UntrustedText::new(&excerpt_text(&fault.to_string())));
                if fault.is_unreachable() { RegistryUnavailableError(why).into() } else { anyhow!(why) }
            }),
        }
    }

    /// The location without possible secrets.
    fn redacted_location(&self) -> String {
        let text = match self {
            Self::File(path) => return excerpt_text(&crate::cli::uri::escaped_uri_reference(path)),
            Self::Web(text) | Self::Ipfs(text) => text,
        };
        let Ok(mut url) = Url::parse(text) else { return excerpt_text(&strip_url_secrets(text)) };
        url.set_query(None);
        url.set_fragment(None);
        if url.username().is_empty() && url.password().is_none() {
            excerpt_text(url.as_str())
        } else {
            strip_url_secrets(text)
        }
    }
}

impl std::fmt::Display for RegistryLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        UntrustedText::new(&self.redacted_location()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_names_files() {
        let ipfs = "ipfs://bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq/meta/manifest.json";
        assert_eq!(
            RegistryLocation::from_argument("meta/manifest.json"),
            RegistryLocation::File("meta/manifest.json".to_owned())
        );
        assert_eq!(RegistryLocation::from_argument(ipfs), RegistryLocation::Ipfs(ipfs.to_owned()));
        for text in ["/etc/passwd", "manifest.json", "-", "file:///etc/passwd", "http://a.example/m.json"] {
            assert_eq!(
                RegistryLocation::from_descriptor(text.to_owned()),
                RegistryLocation::Web(text.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_location_is_shown_without_secrets() {
        let shown = |text: &str| RegistryLocation::from_argument(text).redacted_location();
        assert_eq!(shown("https://a.example/m.json?key=1#x"), "https://a.example/m.json");
        assert_eq!(shown("https://user:pw@a.example/m.json"), "https://a.example/…");
        assert_eq!(shown("my registry.json"), "my%20registry.json");
    }

    #[test]
    fn a_name_has_its_first_entry_in_whatever_spelling() {
        let registry = RegistryNameList::from_names(&["a.eth", "b.eth", "A.eth"]);
        assert_eq!(
            (
                registry.distinct_name_count(),
                registry.entry_number_of_name("A.ETH"),
                registry.entry_number_of_name("c.eth")
            ),
            (2, Some(1), None)
        );
    }
}
