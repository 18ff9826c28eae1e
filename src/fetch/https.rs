//! Documents at foreign `https` URLs: cards and schemas, with a few re-checked redirects. Discovery alone may send requests
//! over plain `http`, to origins that the operator named.

use std::time::Duration;

use bytes::Bytes;
use clresolve_egress::header;
use url::Url;

use super::egress::{Call, Egress, ForeignUrl, Reply, deadline_in, origin_text};
use super::{Cause, EgressViolation, FetchError, Forbidden};
use crate::text::excerpt;

/// Most bytes of an Agent-Card, on the wire and decoded. Released cards have 2 KiB.
pub const CARD_LIMIT: usize = 256 << 10;

/// Most bytes of a registry's manifest, from whatever source: room for 5,000 agents. The published ones have some 850 bytes
/// for each of 14, and a longer list of names needs no manifest.
pub const REGISTRY_LIMIT: usize = 4 << 20;

/// Most redirects that are followed. A host that moved needs one or two (`www.`, a trailing slash).
pub const MAX_HOPS: u8 = 3;

/// Longest URL that is asked, in bytes: the most that common clients and servers agree on.
pub const URL_LIMIT: usize = 2048;

/// Time limit of a whole fetch, redirects included, where the caller has no other.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(15);

/// How much of a document is read, how long it may take, and where redirects may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the body, on the wire and decoded.
    pub bytes: usize,
    /// Time for everything, redirects included.
    pub total: Duration,
    /// Who may be asked instead.
    pub redirects: Redirects,
    /// Whether plain `http` is allowed for an origin that the operator named.
    pub plain: bool,
}

impl Limits {
    /// Those of an Agent-Card.
    #[must_use]
    pub const fn card() -> Self {
        Self { bytes: CARD_LIMIT, total: FETCH_TIMEOUT, redirects: Redirects::Anywhere, plain: false }
    }

    /// Those of a registry's manifest.
    #[must_use]
    pub const fn registry() -> Self {
        Self { bytes: REGISTRY_LIMIT, ..Self::card() }
    }

    /// Those of the keys of a trust root: the verifier names the origin, so no other one may answer for it.
    #[must_use]
    pub const fn keys() -> Self {
        Self { redirects: Redirects::SameOrigin, ..Self::card() }
    }
}

/// Where redirects may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// To any URL that the guard lets through.
    Anywhere,
    /// To URLs of the scheme, host and port that were asked first.
    SameOrigin,
}

/// A document as it was received, but for its content coding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The bytes.
    pub bytes: Bytes,
    /// The URL that gave them, without a fragment.
    pub final_url: Url,
    /// How many redirects led there.
    pub hops: u8,
    /// The `Content-Type` header, cut short. Nothing is concluded from it.
    pub content_type: Option<String>,
    /// What its head says of its age and its lifetime in caches.
    pub caching: Caching,
}

/// The headers that say how old an answer is and how long it is fresh (RFC 9111), cut short.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// `Age`.
    pub age: Option<String>,
    /// `Cache-Control`.
    pub control: Option<String>,
    /// `Expires`.
    pub expires: Option<String>,
    /// `Date`.
    pub date: Option<String>,
}

impl Caching {
    fn of(reply: &Reply) -> Self {
        let header = |name| reply.header(name).map(excerpt);
        Self {
            age: header(header::AGE),
            control: header(header::CACHE_CONTROL),
            expires: header(header::EXPIRES),
            date: header(header::DATE),
        }
    }
}

/// Gets the document at the foreign `url`.
///
/// # Errors
/// [`FetchError::Forbidden`] for a URL or redirect hop that the guard refuses, [`FetchError::Oversize`] for too many
/// bytes, and [`FetchError::Unavailable`] for everything that leaves us without a whole 2xx body.
pub async fn get(egress: &Egress, url: &str, limits: Limits) -> Result<Body, FetchError> {
    let deadline = deadline_in(limits.total);
    let mut chain = Chain::start(url, limits.redirects)?;
    loop {
        let call = Call::get("application/json, */*;q=0.5").gzip().patient();
        let sent = match limits.plain && chain.is_plain() {
            true => egress.plain(chain.current(), call, deadline).await,
            false => egress.foreign(chain.current(), call, deadline).await,
        };
        let reply = sent.map_err(|e| chain.locate(e))?;
        if let 301 | 302 | 303 | 307 | 308 = reply.status() {
            chain.follow(&reply)?;
            continue;
        }
        check_status(reply.status())?;
        let content_type = reply.header(header::CONTENT_TYPE).map(excerpt);
        let caching = Caching::of(&reply);
        let bytes = reply.bytes(limits.bytes).await?;
        let (final_url, hops) = chain.end();
        return Ok(Body { bytes, final_url, hops, content_type, caching });
    }
}

/// A success with a whole body: neither an empty one by definition (204, 205) nor a part (206).
fn check_status(status: u16) -> Result<(), Cause> {
    match status {
        204..=206 => Err(Cause::Status(status)),
        200..=299 => Ok(()),
        _ => Err(Cause::Status(status)),
    }
}

/// The URLs asked so far: at most [`MAX_HOPS`] and one more.
struct Chain {
    redirects: Redirects,
    visited: Vec<ForeignUrl>,
    current: ForeignUrl,
}

impl Chain {
    fn start(url: &str, redirects: Redirects) -> Result<Self, FetchError> {
        let current = ForeignUrl::parse(url, URL_LIMIT).map_err(|why| forbidden(0, why))?;
        Ok(Self { redirects, visited: Vec::new(), current })
    }

    fn current(&self) -> &ForeignUrl {
        &self.current
    }

    /// Whether every URL so far is plain `http`: no redirect leads from `https` to it.
    fn is_plain(&self) -> bool {
        self.visited.iter().chain([&self.current]).all(|url| url.as_url().scheme() == "http")
    }

    fn hops(&self) -> u8 {
        u8::try_from(self.visited.len()).unwrap_or(u8::MAX)
    }

    fn end(self) -> (Url, u8) {
        let hops = self.hops();
        (self.current.into_url(), hops)
    }

    /// Says at which hop a refusal happened.
    fn locate(&self, error: FetchError) -> FetchError {
        match error {
            FetchError::Forbidden(forbidden) => Forbidden { hop: self.hops(), ..forbidden }.into(),
            other => other,
        }
    }

    /// Moves on to where a redirect leads. The next request judges the URL.
    fn follow(&mut self, reply: &Reply) -> Result<(), FetchError> {
        let leads_nowhere = Cause::Status(reply.status());
        let location = reply.header(header::LOCATION).ok_or_else(|| leads_nowhere.clone())?;
        let hop = self.hops() + 1;
        let next = self.current.join(location, URL_LIMIT).map_err(|why| match why {
            EgressViolation::NotUrl => leads_nowhere.into(),
            why => forbidden(hop, why),
        })?;
        if self.redirects == Redirects::SameOrigin
            && !clresolve_core::mutant!("keys-from-another-origin")
            && next.as_url().origin() != self.current.as_url().origin()
        {
            let target = origin_text(next.as_url());
            return Err(Forbidden { hop, target, why: EgressViolation::AnotherOrigin }.into());
        }
        if next == self.current || self.visited.contains(&next) {
            return Err(Cause::RedirectLoop.into());
        }
        if hop > MAX_HOPS && !clresolve_core::mutant!("endless-redirects") {
            return Err(Cause::TooManyRedirects.into());
        }
        self.visited.push(std::mem::replace(&mut self.current, next));
        Ok(())
    }
}

/// A URL that is too long, disguised or no URL: nothing of it is repeated.
fn forbidden(hop: u8, why: EgressViolation) -> FetchError {
    Forbidden { hop, target: "the URL".to_owned(), why }.into()
}
