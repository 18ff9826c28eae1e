//! The common fields of a CommandLayer card. Its distinctive parts (verbs bound to schemas, networks) have no
//! equivalent in other systems.

use crate::system::mapping::{Field, Form, Mapping, SkillField};
use clresolve_core::name::EnsName;

pub(crate) static MAPPING: Mapping = Mapping {
    fields: &[
        (Field::Slug, "/slug", Form::Fitting(clresolve_verdict::check::card::is_url_safe)),
        (Field::Name, "/display_name", Form::Text),
        (Field::Description, "/description", Form::Text),
        (Field::Version, "/version", Form::Text),
        (Field::Endpoint, "/entry", Form::Fitting(is_entry)),
        (Field::Organization, "/owner", Form::Fitting(is_ens_name)),
        (Field::License, "/license", Form::Text),
        (Field::Created, "/created_at", Form::Text),
        (Field::Updated, "/updated_at", Form::Text),
        (Field::Tags, "/meta/tags", Form::Texts),
        (Field::InputModes, "/capabilities/input_types", Form::Texts),
        (Field::OutputModes, "/capabilities/output_types", Form::Texts),
    ],
    defaults: &[],
    skills: "/implements",
    skill: &[(SkillField::Name, "", Form::Text), (SkillField::Id, "", Form::Text)],
};

/// CL-22.
fn is_entry(text: &str) -> bool {
    text.starts_with("x402://")
}

/// CL-3: an organisation without an ENS name cannot be an owner.
fn is_ens_name(text: &str) -> bool {
    text.contains('.') && EnsName::parse(text).is_ok()
}
