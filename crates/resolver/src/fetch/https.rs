//! Fetches documents from untrusted `https` URLs: cards and schemas. Every redirect target is checked like the first
//! URL. Only discovery may use plain `http`, and only for origins that the operator named.

use std::time::Duration;

use bytes::Bytes;
use clresolve_core::json;
use clresolve_core::text::excerpt_text;
use clresolve_egress::header;
use clresolve_ipfs::DagWalkBudget;
use url::Url;

use super::egress::{Egress, EgressRequest, EgressResponse, UntrustedUrl, deadline_in, origin_text};
use super::{EgressViolation, FetchError, ForbiddenUrlError, SourceUnavailableError};

/// Maximum number of bytes of an Agent-Card, on the wire and decoded: what the parser accepts. Released cards have 2
/// KiB.
pub const CARD_LIMIT: usize = json::JsonLimits::CARD.bytes;

// The limit of a card does not depend on its source.
const _: () = assert!(DagWalkBudget::for_agent_card().total_bytes == CARD_LIMIT);

/// Maximum number of bytes of a registry's manifest, from any source: room for 5,000 agents. The published manifests
/// use about 850 bytes for each of 14 agents. A longer list of names needs no manifest.
pub const REGISTRY_LIMIT: usize = 4 << 20;

/// Maximum number of redirects that are followed. A host that moved needs one or two (`www.`, a trailing slash).
pub const MAX_HOPS: u8 = 3;

/// Maximum length of a requested URL in bytes: the largest that common clients and servers agree on.
pub const URL_LIMIT: usize = 2048;

/// Time limit of a whole fetch, including redirects, if the caller sets no other.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(15);

/// Limits on the size, the duration and the redirects of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Maximum number of bytes of the body, on the wire and decoded.
    pub bytes: usize,
    /// Total time, including redirects.
    pub total: Duration,
    /// Whether redirects must keep the scheme, host and port of the first request. The egress guard checks every
    /// target.
    pub same_origin: bool,
    /// Whether plain `http` is allowed, for an origin that the operator named.
    pub plain: bool,
}

impl FetchLimits {
    /// The limits for an Agent-Card.
    #[must_use]
    pub const fn for_card() -> Self {
        Self { bytes: CARD_LIMIT, total: FETCH_TIMEOUT, same_origin: false, plain: false }
    }

    /// The limits for a registry's manifest.
    #[must_use]
    pub const fn for_registry() -> Self {
        Self { bytes: REGISTRY_LIMIT, ..Self::for_card() }
    }

    /// The limits for the keys of a trust root. The verifier names the origin, so no other origin may respond in its
    /// place.
    #[must_use]
    pub const fn for_key_set() -> Self {
        Self { same_origin: true, ..Self::for_card() }
    }
}

/// A document as received, after decoding its content coding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedDocument {
    /// The bytes.
    pub bytes: Bytes,
    /// The URL that served the bytes, without a fragment.
    pub final_url: Url,
    /// Number of redirects followed.
    pub hops: u8,
    /// The `Content-Type` header, truncated. It does not influence any decision.
    pub content_type: Option<String>,
    /// The caching headers of the response.
    pub caching: CachingHeaders,
}

/// The headers that determine the age and freshness of a response (RFC 9111), truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachingHeaders {
    /// `Age`.
    pub age: Option<String>,
    /// `Cache-Control`.
    pub control: Option<String>,
    /// `Expires`.
    pub expires: Option<String>,
    /// `Date`.
    pub date: Option<String>,
}

impl CachingHeaders {
    fn from_reply(reply: &EgressResponse) -> Self {
        let header = |name| reply.header(name).map(excerpt_text);
        Self {
            age: header(header::AGE),
            control: header(header::CACHE_CONTROL),
            expires: header(header::EXPIRES),
            date: header(header::DATE),
        }
    }
}

/// Fetches the document at the untrusted `url`.
///
/// # Errors
/// [`FetchError::Forbidden`] if the guard refuses the URL or a redirect target, [`FetchError::Oversize`] if the body is
/// too large, and [`FetchError::Unavailable`] for every other failure to obtain a complete 2xx body.
pub async fn fetch_document(egress: &Egress, url: &str, limits: FetchLimits) -> Result<FetchedDocument, FetchError> {
    let deadline = deadline_in(limits.total);
    let mut chain = RedirectChain::start(url, limits.same_origin)?;
    loop {
        let call = EgressRequest::get("application/json, */*;q=0.5").accept_gzip().with_retries();
        let sent = match limits.plain && chain.is_plain_http() {
            true => egress.send_plain_http(chain.current(), call, deadline).await,
            false => egress.send_untrusted(chain.current(), call, deadline).await,
        };
        let reply = sent.map_err(|e| chain.add_hop_to_error(e))?;
        if let 301 | 302 | 303 | 307 | 308 = reply.status() {
            chain.follow_redirect(&reply)?;
            continue;
        }
        check_status(reply.status())?;
        let content_type = reply.header(header::CONTENT_TYPE).map(excerpt_text);
        let caching = CachingHeaders::from_reply(&reply);
        let bytes = reply.read_body(limits.bytes).await?;
        let (final_url, hops) = chain.into_final_url();
        return Ok(FetchedDocument { bytes, final_url, hops, content_type, caching });
    }
}

/// Accepts a successful status with a complete body. Statuses without a body (204, 205) and partial content (206) are
/// errors.
fn check_status(status: u16) -> Result<(), SourceUnavailableError> {
    match status {
        204..=206 => Err(SourceUnavailableError::Status(status)),
        200..=299 => Ok(()),
        _ => Err(SourceUnavailableError::Status(status)),
    }
}

/// The URLs requested so far: at most [`MAX_HOPS`] plus one.
struct RedirectChain {
    same_origin: bool,
    visited: Vec<UntrustedUrl>,
    current: UntrustedUrl,
}

impl RedirectChain {
    fn start(url: &str, same_origin: bool) -> Result<Self, FetchError> {
        let current = UntrustedUrl::parse(url, URL_LIMIT).map_err(|why| forbidden_error(0, why))?;
        Ok(Self { same_origin, visited: Vec::new(), current })
    }

    fn current(&self) -> &UntrustedUrl {
        &self.current
    }

    /// Whether every URL so far is plain `http`. A redirect from `https` to `http` is not followed.
    fn is_plain_http(&self) -> bool {
        self.visited.iter().chain([&self.current]).all(|url| url.as_url().scheme() == "http")
    }

    fn hops(&self) -> u8 {
        u8::try_from(self.visited.len()).unwrap_or(u8::MAX)
    }

    fn into_final_url(self) -> (Url, u8) {
        let hops = self.hops();
        (self.current.into_url(), hops)
    }

    /// Adds the hop at which the error occurred.
    fn add_hop_to_error(&self, error: FetchError) -> FetchError {
        match error {
            FetchError::Forbidden(forbidden) => ForbiddenUrlError { hop: self.hops(), ..forbidden }.into(),
            other => other,
        }
    }

    /// Follows a redirect. Its target is checked when the next request is sent.
    fn follow_redirect(&mut self, reply: &EgressResponse) -> Result<(), FetchError> {
        let leads_nowhere = SourceUnavailableError::Status(reply.status());
        let location = reply.header(header::LOCATION).ok_or_else(|| leads_nowhere.clone())?;
        let hop = self.hops() + 1;
        let next = self.current.join(location, URL_LIMIT).map_err(|why| match why {
            EgressViolation::NotUrl => leads_nowhere.into(),
            why => forbidden_error(hop, why),
        })?;
        if self.same_origin
            && !clresolve_core::mutant!("keys-from-another-origin")
            && next.as_url().origin() != self.current.as_url().origin()
        {
            let target = origin_text(next.as_url());
            return Err(ForbiddenUrlError { hop, target, why: EgressViolation::AnotherOrigin }.into());
        }
        if next == self.current || self.visited.contains(&next) {
            return Err(SourceUnavailableError::RedirectLoop.into());
        }
        if hop > MAX_HOPS && !clresolve_core::mutant!("endless-redirects") {
            return Err(SourceUnavailableError::TooManyRedirects.into());
        }
        self.visited.push(std::mem::replace(&mut self.current, next));
        Ok(())
    }
}

/// The error for a URL that is too long, disguised or invalid. It repeats no part of the URL.
fn forbidden_error(hop: u8, why: EgressViolation) -> FetchError {
    ForbiddenUrlError { hop, target: "the URL".to_owned(), why }.into()
}
