//! The common fields of a CommandLayer card. Its distinctive parts (verbs bound to schemas, networks) have no
//! equivalent in other systems.

use crate::system::mapping::{CardFieldMapping, CardFieldRepresentation, CommonCardField, CommonSkillField};
use clresolve_core::name::EnsName;

pub(crate) static MAPPING: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Slug, "/slug", CardFieldRepresentation::Fitting(clresolve_verdict::check::card::is_url_safe)),
        (CommonCardField::Name, "/display_name", CardFieldRepresentation::Text),
        (CommonCardField::Description, "/description", CardFieldRepresentation::Text),
        (CommonCardField::Version, "/version", CardFieldRepresentation::Text),
        (CommonCardField::Endpoint, "/entry", CardFieldRepresentation::Fitting(is_x402_entry)),
        (CommonCardField::Organization, "/owner", CardFieldRepresentation::Fitting(is_ens_name)),
        (CommonCardField::License, "/license", CardFieldRepresentation::Text),
        (CommonCardField::Created, "/created_at", CardFieldRepresentation::Text),
        (CommonCardField::Updated, "/updated_at", CardFieldRepresentation::Text),
        (CommonCardField::Tags, "/meta/tags", CardFieldRepresentation::Texts),
        (CommonCardField::InputModes, "/capabilities/input_types", CardFieldRepresentation::Texts),
        (CommonCardField::OutputModes, "/capabilities/output_types", CardFieldRepresentation::Texts),
    ],
    defaults: &[],
    skills: "/implements",
    skill: &[
        (CommonSkillField::Name, "", CardFieldRepresentation::Text),
        (CommonSkillField::Id, "", CardFieldRepresentation::Text),
    ],
};

/// CL-22.
fn is_x402_entry(text: &str) -> bool {
    text.starts_with("x402://")
}

/// CL-3: an organisation without an ENS name cannot be an owner.
fn is_ens_name(text: &str) -> bool {
    text.contains('.') && EnsName::parse(text).is_ok()
}
