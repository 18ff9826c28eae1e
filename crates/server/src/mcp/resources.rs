//! The resources that a client may read: the registries of reasons and profiles, as returned by the daemon's routes.

use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use super::asker::McpBackend;
use crate::registries::{self, ConformanceProfileEntry, ConformanceProfileList};

const REASONS: &str = "clresolve://reasons";
const PROFILES: &str = "clresolve://profiles";

const JSON: &str = "application/json";

pub(super) fn list_resources() -> Vec<Resource> {
    vec![
        Resource::new(REASONS, "reasons")
            .with_description("Every reason code: what it means, and who can fix it")
            .with_mime_type(JSON),
        Resource::new(PROFILES, "profiles")
            .with_description("Every profile: the rules of a release line that a name can be judged by")
            .with_mime_type(JSON),
    ]
}

pub(super) fn list_templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{REASONS}/{{code}}"), "reason")
            .with_description("One reason code")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{PROFILES}/{{+id}}"), "profile")
            .with_description("One profile")
            .with_mime_type(JSON),
    ]
}

pub(super) fn read_resource_at(uri: &str, asker: &dyn McpBackend) -> Option<ReadResourceResult> {
    let document = find_resource(uri, asker)?;
    let contents = ResourceContents::text(document.to_string(), uri).with_mime_type(JSON);
    Some(ReadResourceResult::new(vec![contents]))
}

fn find_resource(uri: &str, asker: &dyn McpBackend) -> Option<Value> {
    let default = asker.default_profile();
    let below = |root: &str| uri.strip_prefix(root)?.strip_prefix('/');
    if uri == REASONS {
        return Some(registries::all_codes_document());
    }
    if uri == PROFILES {
        return serde_json::to_value(ConformanceProfileList::new(asker.resolver().profiles(), default)).ok();
    }
    if let Some(slug) = below(REASONS) {
        return registries::reason_document(slug);
    }
    let profile = asker.resolver().profiles().get(below(PROFILES)?)?;
    serde_json::to_value(ConformanceProfileEntry::new(&profile, default)).ok()
}
