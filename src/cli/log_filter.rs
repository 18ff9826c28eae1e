//! The filter of a daemon's log, which the operator may replace at run time.

use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::Metadata;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::reload::Handle;

use clresolve_core::text::UntrustedText;

/// Maximum length of a filter, in bytes: a level for each of some dozen targets.
const MAX_FILTER_BYTES: usize = 1024;

/// The library that logs client input unescaped.
const QUIETED: &str = "rmcp";

/// The filter of this process, once its log supports replacement.
static FILTER: OnceLock<ReplaceableLogFilter> = OnceLock::new();

struct ReplaceableLogFilter {
    text: Mutex<String>,
    put: Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>,
}

/// The initial filter: the chosen one if it is valid, or else the level.
pub(super) fn initial_log_filter(chosen: Option<&str>, level: &str) -> EnvFilter {
    let chosen = chosen.filter(|chosen| !chosen.is_empty());
    let chosen = chosen.and_then(|chosen| EnvFilter::try_new(chosen).ok());
    chosen.unwrap_or_else(|| EnvFilter::new(level))
}

/// Suppresses client input, whatever filter is chosen. This is a separate filter, because a longer target or a span
/// would take precedence within the chosen one.
pub(super) fn client_input_suppressing_filter() -> FilterFn {
    FilterFn::new(is_not_client_input)
}

fn is_not_client_input(metadata: &Metadata<'_>) -> bool {
    metadata.target().split("::").next() != Some(QUIETED)
}

/// Stores how the filter is replaced, and its current text.
pub(super) fn store_log_filter_handle<S: 'static>(handle: Handle<EnvFilter, S>, text: String) {
    let put = Box::new(move |filter| handle.reload(filter).map_err(|error| error.to_string()));
    // This fails only for a second call in one process, which keeps the first log.
    let _ = FILTER.set(ReplaceableLogFilter { text: Mutex::new(text), put });
}

pub(super) fn current_log_filter() -> String {
    FILTER.get().map(|filter| filter.text.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
}

/// Replaces the filter.
///
/// # Errors
/// What is wrong with the filter.
pub(super) fn replace_log_filter(text: &str) -> Result<(), String> {
    let filter = parse_log_filter(text)?;
    let Some(in_force) = FILTER.get() else { return Err("this log has no filter that can be replaced".to_owned()) };
    let mut said = in_force.text.lock().unwrap_or_else(PoisonError::into_inner);
    (in_force.put)(filter)?;
    text.clone_into(&mut said);
    Ok(())
}

/// Parses a filter. A single word must be a level: a mistyped one would be a target whose events are all logged.
fn parse_log_filter(text: &str) -> Result<EnvFilter, String> {
    if text.len() > MAX_FILTER_BYTES {
        return Err(format!("a filter has at most {MAX_FILTER_BYTES} bytes"));
    }
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let is_known = |word: &&str| word.contains('=') || is_level(word);
    if let Some(word) = text.split(',').find(|word| !is_known(word)) {
        let word = UntrustedText::new(word);
        return Err(format!("`{word}`: expected off, error, warn, info, debug or trace, or TARGET=LEVEL"));
    }
    EnvFilter::builder().parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that pass a filter: of a client of the daemon, and of the program itself.
    fn logged(chosen: Option<&str>) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt().with_env_filter(initial_log_filter(chosen, "clresolve=info,warn"));
        let log = log.with_writer(move || writer.clone()).finish().with(client_input_suppressing_filter());
        tracing::subscriber::with_default(log, || {
            let _span = tracing::error_span!(target: "rmcp::service", "serve_inner").entered();
            tracing::error!(target: "rmcp", "said by a client");
            tracing::error!(target: "rmcp::transport::worker", "said by a client");
            tracing::error!(target: "clresolve::http", "said by the daemon");
        });
        let bytes = lines.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn no_choice_brings_back_the_log_of_what_clients_say() {
        let chosen = ["", "==", "trace", "clresolve=debug", "rmcp=trace,info", "rmcp::transport=trace,info"];
        for chosen in chosen.into_iter().chain(["[serve_inner]=trace,info"]).map(Some).chain([None]) {
            let said = logged(chosen);
            assert!(said.contains("said by the daemon") && !said.contains("said by a client"), "{chosen:?}: {said}");
        }
    }

    #[test]
    fn what_was_chosen_at_the_start_holds_where_it_can_be_read() {
        let filter = |chosen| initial_log_filter(chosen, "clresolve=info,warn").to_string();
        assert!(filter(Some("clresolve=debug")).contains("clresolve=debug"));
        assert!(filter(Some("==")).contains("clresolve=info"), "what cannot be read is no choice");
    }

    #[test]
    fn a_filter_that_says_nothing_known_is_refused() {
        for good in ["debug", "off", "clresolve=debug,warn", "clresolve::incident=info"] {
            assert!(parse_log_filter(good).is_ok(), "{good}");
        }
        let long = "x=info,".repeat(MAX_FILTER_BYTES);
        for bad in ["", "debgu", "info, warn", "clresolve=loud", "info,,warn", "clresolve", "a\u{1b}[31m", &long] {
            assert!(parse_log_filter(bad).is_err(), "{bad}");
        }
    }
}
