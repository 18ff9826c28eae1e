//! `POST /v1/lint`: a card of any system, judged by itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use url::form_urlencoded;

use super::Shared;
use super::body::{self, Refused};
use crate::card::Limits;
use crate::flavour::{Flavour, Rules};
use crate::lint::judge;
use crate::profile::Profile;
use crate::reason::Refusal;

/// What a query asks for.
struct Asked {
    flavour: Option<Flavour>,
    profile: Arc<Profile>,
}

pub(super) async fn card(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    judged(&shared, request).await.unwrap_or_else(body::refused)
}

async fn judged(shared: &Shared, request: Request) -> Result<Response, Refused> {
    let Asked { flavour, profile } = asked(request.uri().query().unwrap_or_default(), shared)?;
    let bytes = body::json(request, Limits::CARD.bytes, shared).await?;
    // A card of the greatest size takes some milliseconds, which other requests are not to wait for.
    let resolver = shared.resolver.clone();
    let work = move || judge(&bytes, flavour, &Rules::of(&profile), resolver.profiles());
    let judgement = tokio::task::spawn_blocking(work).await;
    Ok(Json(judgement.map_err(|_| (Refusal::InternalError, None))?).into_response())
}

fn asked(query: &str, shared: &Shared) -> Result<Asked, Refused> {
    let malformed = |detail: String| (Refusal::RequestMalformed, Some(detail));
    let (mut flavour, mut profile) = (None, None);
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let place = match &*key {
            "as" => &mut flavour,
            "profile" => &mut profile,
            _ => return Err(malformed(format!("expected as or profile, found the parameter {key}"))),
        };
        if place.replace(value.into_owned()).is_some() {
            return Err(malformed(format!("{key} is given twice")));
        }
    }
    let id = profile.unwrap_or_else(|| shared.default_profile.clone());
    let Some(profile) = shared.resolver.profiles().get(&id) else { return Err((Refusal::ProfileUnknown, Some(id))) };
    let flavour = flavour.map(|slug| slug.parse::<Flavour>()).transpose();
    Ok(Asked { flavour: flavour.map_err(|error| malformed(error.to_string()))?, profile })
}
