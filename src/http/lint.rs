//! `POST /v1/lint`: a card of any system, judged by itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use url::form_urlencoded;

use super::body::{self, RequestError};
use super::state::AppState;
use crate::card::Limits;
use crate::lint::judge;
use crate::profile::Profile;
use crate::reason::Refusal;
use crate::system::{CardSystem, Rules};

/// What a query asks for.
struct Choice {
    flavour: Option<CardSystem>,
    profile: Arc<Profile>,
}

pub(super) async fn card(State(state): State<Arc<AppState>>, request: Request) -> Response {
    judged(&state, request).await.unwrap_or_else(RequestError::into_response)
}

async fn judged(state: &AppState, request: Request) -> Result<Response, RequestError> {
    let Choice { flavour, profile } = chosen(request.uri().query().unwrap_or_default(), state)?;
    let bytes = body::json(request, Limits::CARD.bytes, state.http.read_timeout).await?;
    // The largest card takes some milliseconds, for which other requests must not wait.
    let resolver = state.resolver.clone();
    let work = move || judge(&bytes, flavour, &Rules::of(&profile), resolver.profiles());
    let judgement = tokio::task::spawn_blocking(work).await;
    Ok(Json(judgement.map_err(|_| RequestError::from(Refusal::InternalError))?).into_response())
}

fn chosen(query: &str, state: &AppState) -> Result<Choice, RequestError> {
    let (mut flavour, mut profile) = (None, None);
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let place = match &*key {
            "as" => &mut flavour,
            "profile" => &mut profile,
            _ => return Err(RequestError::malformed(format!("expected as or profile, found the parameter {key}"))),
        };
        if place.replace(value.into_owned()).is_some() {
            return Err(RequestError::malformed(format!("{key} is given twice")));
        }
    }
    let id = profile.unwrap_or_else(|| state.default_profile.clone());
    let Some(profile) = state.resolver.profiles().get(&id) else { return Err(RequestError::unknown_profile(id)) };
    let flavour = flavour.map(|slug| slug.parse::<CardSystem>()).transpose();
    Ok(Choice { flavour: flavour.map_err(|error| RequestError::malformed(error.to_string()))?, profile })
}
