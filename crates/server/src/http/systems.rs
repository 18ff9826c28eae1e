//! Orloj's agent cards, generated from the resources of `[orloj]` and regenerated when these change.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use clresolve_cards::generate::{CardGenerationError, GeneratedOrlojCards, MAX_BYTES, OrlojResourceFile};
use clresolve_core::reason::RefusalCode;
use clresolve_core::text::UntrustedText;
use clresolve_resolver::config::OrlojCardGenerationConfig;
use jiff::Timestamp;
use tokio::sync::Mutex;

/// Seconds for which a card is fresh after it was generated, as in Orloj's server.
pub(super) const FRESH_SECONDS: i64 = 300;

/// Minimum number of seconds between two reads of the resources. Frequent requests stay cheap, and a change becomes
/// visible soon.
const REREAD_SECONDS: i64 = 10;

/// Why no cards can be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrlojCardGenerationError {
    /// A file cannot be read.
    #[error("cannot read {file}: {detail}")]
    Unreadable {
        /// The file.
        file: String,
        /// The operating system's error.
        detail: String,
    },
    /// The files define no cards.
    #[error(transparent)]
    Generate(#[from] CardGenerationError),
}

/// The cards, regenerated when the resources change.
pub(super) struct OrlojCardGenerator {
    config: OrlojCardGenerationConfig,
    latest: Mutex<GeneratedCardsSnapshot>,
}

/// The cards as last generated.
#[derive(Clone)]
pub(super) struct GeneratedCardsSnapshot {
    pub(super) cards: Arc<GeneratedOrlojCards>,
    at: Timestamp,
    /// When the resources were last read, successfully or not.
    tried: Timestamp,
}

impl GeneratedCardsSnapshot {
    /// Whole seconds since the cards were generated.
    pub(super) fn age(&self, now: Timestamp) -> i64 {
        now.duration_since(self.at).as_secs().max(0)
    }
}

impl OrlojCardGenerator {
    /// Reads the resources. Returns `None` if none are configured.
    pub(super) fn open(
        config: &OrlojCardGenerationConfig,
        now: Timestamp,
    ) -> Result<Option<Self>, OrlojCardGenerationError> {
        if config.resources.is_empty() {
            return Ok(None);
        }
        let computed = GeneratedCardsSnapshot { cards: Arc::new(generate_cards(config)?), at: now, tried: now };
        Ok(Some(Self { config: config.clone(), latest: Mutex::new(computed) }))
    }

    /// The cards at the time `now`. If the resources have become unreadable, the last good cards are served until they
    /// are stale.
    pub(super) async fn current_cards(&self, now: Timestamp) -> Result<GeneratedCardsSnapshot, RefusalCode> {
        let mut latest = self.latest.lock().await;
        if now.duration_since(latest.tried).as_secs() >= REREAD_SECONDS {
            latest.tried = now;
            let config = self.config.clone();
            match tokio::task::spawn_blocking(move || generate_cards(&config)).await {
                Ok(Ok(cards)) => (latest.cards, latest.at) = (Arc::new(cards), now),
                Ok(Err(error)) => tracing::warn!(%error, "the resources of [orloj] cannot be read again"),
                Err(error) => tracing::warn!(%error, "reading the resources of [orloj] ended early"),
            }
        }
        if latest.age(now) >= FRESH_SECONDS { Err(RefusalCode::ResourcesUnreadable) } else { Ok(latest.clone()) }
    }
}

/// Reads the resources and generates their cards.
pub(super) fn generate_cards(
    config: &OrlojCardGenerationConfig,
) -> Result<GeneratedOrlojCards, OrlojCardGenerationError> {
    let files = config.resources.iter().map(|file| read_file(file)).collect::<Result<Vec<_>, _>>()?;
    let sources: Vec<_> = files.iter().map(|(file, bytes)| OrlojResourceFile { file, bytes }).collect();
    Ok(GeneratedOrlojCards::generate_cards(&sources, config.base_url.clone())?)
}

fn read_file(path: &Path) -> Result<(String, Vec<u8>), OrlojCardGenerationError> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    let opened = File::open(path).and_then(|opened| opened.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes));
    match opened {
        Ok(_) => Ok((file, bytes)),
        Err(error) => Err(OrlojCardGenerationError::Unreadable {
            file: UntrustedText::new(&file).to_string(),
            detail: error.to_string(),
        }),
    }
}
