//! The common fields of a CommandLayer card. Its distinctive parts (verbs bound to schemas, networks) have no
//! equivalent in other systems.

use crate::system::mapping::{CardFieldMapping, CommonCardField, CommonSkillField, FieldRepresentation};
use clresolve_core::name::EnsName;

pub(crate) static MAPPING: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Slug, "/slug", FieldRepresentation::Fitting(clresolve_verdict::check::card::is_url_safe)),
        (CommonCardField::Name, "/display_name", FieldRepresentation::Text),
        (CommonCardField::Description, "/description", FieldRepresentation::Text),
        (CommonCardField::Version, "/version", FieldRepresentation::Text),
        (CommonCardField::Endpoint, "/entry", FieldRepresentation::Fitting(is_entry)),
        (CommonCardField::Organization, "/owner", FieldRepresentation::Fitting(is_ens_name)),
        (CommonCardField::License, "/license", FieldRepresentation::Text),
        (CommonCardField::Created, "/created_at", FieldRepresentation::Text),
        (CommonCardField::Updated, "/updated_at", FieldRepresentation::Text),
        (CommonCardField::Tags, "/meta/tags", FieldRepresentation::Texts),
        (CommonCardField::InputModes, "/capabilities/input_types", FieldRepresentation::Texts),
        (CommonCardField::OutputModes, "/capabilities/output_types", FieldRepresentation::Texts),
    ],
    defaults: &[],
    skills: "/implements",
    skill: &[
        (CommonSkillField::Name, "", FieldRepresentation::Text),
        (CommonSkillField::Id, "", FieldRepresentation::Text),
    ],
};

/// CL-22.
fn is_entry(text: &str) -> bool {
    text.starts_with("x402://")
}

/// CL-3: an organisation without an ENS name cannot be an owner.
fn is_ens_name(text: &str) -> bool {
    text.contains('.') && EnsName::parse(text).is_ok()
}
