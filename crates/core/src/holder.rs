//! Who holds a name at one block.

use std::fmt;

use alloy_primitives::Address;
use serde::{Deserialize, Serialize};

/// Who holds a name at one block: the registry's owner, or the NameWrapper's owner if the registry's owner is the
/// NameWrapper. In JSON `null`, the address, or an object with the member `unreadable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum NameHolder {
    /// Nobody, as for a wildcard or off-chain subname, and for a wrapped name after its expiry.
    #[default]
    Nobody,
    /// This address.
    Address(Address),
    /// Unknown, because the name lives in ENSv2. Holder and expiry in the ENSv1 registry are stale.
    Unreadable {
        /// How the ENSv1 registry shows that.
        unreadable: Ensv2MigrationSign,
    },
}

/// How the ENSv1 registry shows that a name lives in ENSv2: the registry does not lead to the resolver that the
/// Universal Resolver finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ensv2MigrationSign {
    /// The registry has no owner for the name.
    Unlisted,
    /// The registry still has an owner: the previous one, or the contract that migrated the name.
    Superseded,
}

impl NameHolder {
    /// The address of the holder. `None` if nobody holds the name or the holder is unknown.
    pub const fn address(self) -> Option<Address> {
        match self {
            Self::Address(address) => Some(address),
            Self::Nobody | Self::Unreadable { .. } => None,
        }
    }

    /// Why the holder is unknown. `None` if it is known.
    pub const fn ensv2_migration_sign(self) -> Option<Ensv2MigrationSign> {
        match self {
            Self::Unreadable { unreadable } => Some(unreadable),
            Self::Nobody | Self::Address(_) => None,
        }
    }
}

impl fmt::Display for Ensv2MigrationSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unlisted => {
                "the ENSv1 registry does not list the name, and the Universal Resolver finds a resolver elsewhere"
            }
            Self::Superseded => "the ENSv1 registry leads to another resolver than the Universal Resolver",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_holder_has_its_own_json_form() {
        let unreadable = |unreadable| NameHolder::Unreadable { unreadable };
        for (holder, form) in [
            (NameHolder::Nobody, json!(null)),
            (NameHolder::Address(Address::repeat_byte(7)), json!(format!("0x{}", "07".repeat(20)))),
            (unreadable(Ensv2MigrationSign::Unlisted), json!({"unreadable": "unlisted"})),
            (unreadable(Ensv2MigrationSign::Superseded), json!({"unreadable": "superseded"})),
        ] {
            assert_eq!(serde_json::to_value(holder).expect("JSON"), form);
            assert_eq!(serde_json::from_value::<NameHolder>(form).expect("a holder"), holder);
        }
        for other in [json!({"unreadable": "perhaps"}), json!({"unreadable": "unlisted", "since": 1})] {
            assert!(serde_json::from_value::<NameHolder>(other).is_err());
        }
    }
}
