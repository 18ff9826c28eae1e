//! `[check]`: the evidence that a payment to a seller needs, and the pinned identities of sellers.

use std::collections::{BTreeMap, BTreeSet};

use clresolve_payment::check::{FirstContactPolicy, PayeeEvidenceKind, PayeeEvidencePolicy, SellerIdentity, WebOrigin};
use serde::{Deserialize, Deserializer, Serialize};

/// Maximum number of origins with a pinned identity.
const MAX_ORIGINS: usize = 1024;

/// The evidence that a payment to a seller needs. By default, this is a proven identity that the operator pinned or
/// accepted, or that the caller names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SellerCheckConfig {
    /// Kinds of evidence that prove a payee. History alone never does.
    #[serde(deserialize_with = "deserialize_evidence_kinds")]
    pub accept: BTreeSet<PayeeEvidenceKind>,
    /// What happens at the first contact with an identity that only the seller names and that is proven in both
    /// directions.
    pub first_contact: FirstContactPolicy,
    /// Whether the address of an off-chain name proves a payee. Only the gateway's signer vouches for it.
    pub offchain: bool,
    /// Pinned identities of sellers, by origin.
    #[serde(deserialize_with = "deserialize_pinned_identities")]
    pub origins: PinnedSellerIdentities,
}

impl Default for SellerCheckConfig {
    fn default() -> Self {
        Self {
            accept: PayeeEvidencePolicy::default().accept,
            first_contact: FirstContactPolicy::default(),
            offchain: false,
            origins: PinnedSellerIdentities::new(),
        }
    }
}

/// `[check.origins]`: the identity of the seller at an origin.
type PinnedSellerIdentities = BTreeMap<WebOrigin, SellerIdentity>;

impl SellerCheckConfig {
    /// The policy of checks.
    pub fn payee_evidence_policy(&self) -> PayeeEvidencePolicy {
        let Self { accept, first_contact, offchain, .. } = self;
        PayeeEvidencePolicy { accept: accept.clone(), first_contact: *first_contact, offchain: *offchain }
    }
}

fn deserialize_evidence_kinds<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeSet<PayeeEvidenceKind>, D::Error> {
    let kinds = BTreeSet::<PayeeEvidenceKind>::deserialize(d)?;
    if kinds == BTreeSet::from([PayeeEvidenceKind::History]) {
        return Err(serde::de::Error::custom("history alone proves no payee; add card, name, erc8004 or offer"));
    }
    Ok(kinds)
}

/// An origin as the configuration writes it.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct ConfiguredSellerOrigin(WebOrigin);

impl TryFrom<String> for ConfiguredSellerOrigin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match WebOrigin::from_url_text(&text) {
            Some(origin) if origin.as_str() == text => Ok(Self(origin)),
            Some(origin) => Err(format!("expected an origin without a path: {origin}")),
            None => Err("expected an origin such as https://api.example; http is for this machine alone".to_owned()),
        }
    }
}

/// Reads identities by origin.
fn deserialize_pinned_identities<'de, D: Deserializer<'de>>(d: D) -> Result<PinnedSellerIdentities, D::Error> {
    let written = BTreeMap::<ConfiguredSellerOrigin, SellerIdentity>::deserialize(d)?;
    if written.len() > MAX_ORIGINS {
        return Err(serde::de::Error::custom(format!("expected at most {MAX_ORIGINS} origins")));
    }
    Ok(written.into_iter().map(|(ConfiguredSellerOrigin(origin), identity)| (origin, identity)).collect())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::config::testing::parse_over_defaults;
    use crate::config::{Config, ConfigError, ConfigLayer};

    const FULL: &str = r#"
[memory]
path = "m"

[check]
accept = ["name", "history"]
first-contact = "allow"
offchain = true

[check.origins]
"https://api.example" = "seller.eth"
"https://api.example:8443" = "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22"
"http://127.0.0.1:8080" = "local.eth"
"#;

    #[test]
    fn every_key_is_read_and_written() {
        let config = parse_over_defaults(FULL).unwrap();
        let policy = config.check.payee_evidence_policy();
        assert_eq!(policy.accept, [PayeeEvidenceKind::Name, PayeeEvidenceKind::History].into());
        assert_eq!((policy.first_contact, policy.offchain), (FirstContactPolicy::Allow, true));
        let of = |origin: &str| config.check.origins[&origin.parse::<WebOrigin>().unwrap()].to_string();
        assert_eq!(of("https://api.example"), "seller.eth");
        assert_eq!(of("https://api.example:8443"), "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22");
        assert_eq!(of("http://127.0.0.1:8080"), "local.eth");
        let written = ConfigLayer::from_config(&config).unwrap();
        let text = toml::to_string(&written).unwrap();
        for layer in [written, ConfigLayer::from_toml(&text, "g.toml").unwrap()] {
            assert_eq!(Config::default().with_layers([layer]).unwrap(), config, "{text}");
        }
    }

    #[test]
    fn first_contact_is_allowed_only_where_there_is_a_memory() {
        let Err(ConfigError::Conflict { key, .. }) = parse_over_defaults("[check]\nfirst-contact = \"allow\"\n") else {
            panic!("each contact would be the first");
        };
        assert_eq!(key, "check.first-contact");
    }

    #[test]
    fn default_is_that_of_the_policy() {
        assert_eq!(Config::default().check.payee_evidence_policy(), PayeeEvidencePolicy::default());
        assert_eq!(
            parse_over_defaults("[check]\naccept = []").unwrap().check.payee_evidence_policy().accept,
            BTreeSet::new()
        );
    }

    #[test]
    fn errors_name_line_key_and_what_was_expected() {
        let refused = |text: &str| match parse_over_defaults(text).unwrap_err() {
            ConfigError::Invalid { line, key, detail, .. } => (line, key, detail),
            other => panic!("{text}: {other}"),
        };
        for (text, line, key, expected) in [
            ("[check]\naccept = [\"history\"]", 2, "accept", "history alone proves no payee"),
            ("[check]\naccept = [\"name\", \"reputation\"]", 2, "accept", "expected one of `card`, `name`, `erc8004`"),
            ("[check]\naccept = \"name\"", 2, "accept", "expected a sequence"),
            ("[check]\nfirst-contact = \"deny\"", 2, "first-contact", "expected `undecided` or `allow`"),
            ("[check]\noffchain = 1", 2, "offchain", "expected a boolean"),
            ("[check]\norigin = {}", 2, "origin", "did you mean `origins`?"),
            ("[check]\norigins = [\"a\"]", 2, "origins", "expected a map"),
        ] {
            let (at, named, detail) = refused(text);
            assert_eq!((at, named.as_str()), (line, key), "{text}: {detail}");
            assert!(detail.contains(expected), "{text}: {detail}");
        }
        let pinned = |origin: &str, identity: &str| {
            refused(&format!("[check.origins]\n\"https://good.example\" = \"good.eth\"\n\"{origin}\" = \"{identity}\""))
        };
        for (origin, expected) in [
            ("https://A.example", "without a path: https://a.example"),
            ("https://a.example/", "without a path: https://a.example"),
            ("https://a.example:443", "without a path: https://a.example"),
            ("https://a.example/v1", "without a path: https://a.example"),
            ("https://a.example?key=1", "without a path: https://a.example"),
            ("http://a.example", "http is for this machine alone"),
            ("https://user:secret@a.example", "expected an origin such as https://api.example"),
            ("a.example", "expected an origin such as https://api.example"),
            ("", "expected an origin such as https://api.example"),
        ] {
            let (line, key, detail) = pinned(origin, "seller.eth");
            assert_eq!((line, key.as_str()), (3, "check.origins"), "{origin}: {detail}");
            assert!(detail.contains(expected) && !detail.contains("secret"), "{origin}: {detail}");
        }
        for identity in ["seller", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "https://seller.eth", ""] {
            let (line, key, detail) = pinned("https://a.example", identity);
            assert_eq!((line, key.as_str()), (3, "check.origins"), "{identity}: {detail}");
            assert!(detail.contains("expected an ENS name, or eip155:CHAIN:REGISTRY:AGENT"), "{identity}: {detail}");
        }
    }

    #[test]
    fn number_of_origins_is_bounded() {
        let origins = |count: usize| {
            let mut text = "[check.origins]\n".to_owned();
            (0..count).for_each(|number| {
                let _ = writeln!(text, "\"https://a{number}.example\" = \"seller.eth\"");
            });
            parse_over_defaults(&text)
        };
        assert_eq!(origins(MAX_ORIGINS).unwrap().check.origins.len(), MAX_ORIGINS);
        let error = origins(MAX_ORIGINS + 1).unwrap_err().to_string();
        assert!(error.contains("line 1, key `check.origins`: expected at most 1024 origins"), "{error}");
    }
}
