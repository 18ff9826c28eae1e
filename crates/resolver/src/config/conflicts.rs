//! Checks that the keys of a configuration do not contradict each other.

use clresolve_core::world::SANDBOX;
use clresolve_payment::check::FirstContactPolicy;

use super::{Config, ConfigError, EnsChainConfig, MAINNET, RESERVED_WORLDS};

/// The error of a build without the feature `redis` when a server is configured.
const NO_REDIS: &str = "this build cannot share evidence: it lacks the feature redis";

impl Config {
    /// Checks the keys that every command needs. [`Config::check_gate`] checks those of the gate.
    pub(super) fn check_conflicts(&self) -> Result<(), ConfigError> {
        let Self { chain, .. } = self;
        if let Some((world, id)) = RESERVED_WORLDS.iter().find(|(world, id)| chain.world == *world && chain.id != *id) {
            return Err(ConfigError::conflict("world", format!("{world} is chain {id}, not {}", chain.id)));
        }
        if chain.endpoints.is_empty() {
            return Err(ConfigError::conflict("rpc", "expected at least one endpoint"));
        }
        let demand = chain.proof_grade_demand()?;
        if self.gate.min_proof.is_some_and(|least| least > demand.minimum_grade()) {
            return Err(ConfigError::conflict("min-proof", "the gate would refuse everything: proof demands less"));
        }
        if chain.id != MAINNET && chain.endpoints == EnsChainConfig::default().endpoints {
            return Err(ConfigError::conflict(
                "rpc",
                format!("the built-in endpoints serve mainnet; name one of chain {}", chain.id),
            ));
        }
        if chain.head_poll >= self.cache.max_unconfirmed {
            let detail =
                "no verdict would stay confirmed from one poll to the next: set it below cache.max-unconfirmed";
            return Err(ConfigError::conflict("head-poll", detail));
        }
        self.light_client_settings()?;
        self.limits.check_limits()?;
        super::payment::check_routes_and_payees(&self.routes, &self.payees)?;
        super::chains::check_registry_chains(&self.chains)?;
        self.check_evidence_sharing()?;
        self.check_receipts()?;
        self.check_first_contact()?;
        self.check_signing()
    }

    fn check_receipts(&self) -> Result<(), ConfigError> {
        if self.receipts.remember && self.memory.path.is_none() {
            return Err(ConfigError::conflict("receipts.remember", "nothing could be remembered; set memory.path"));
        }
        Ok(())
    }

    fn check_first_contact(&self) -> Result<(), ConfigError> {
        let Self { chain, check, memory, .. } = self;
        // The sandbox has a memory without a file.
        if check.first_contact == FirstContactPolicy::Allow && memory.path.is_none() && chain.world != SANDBOX {
            let detail = "without a memory each contact would be the first; set memory.path".to_owned();
            return Err(ConfigError::conflict("check.first-contact", detail));
        }
        Ok(())
    }

    /// Whether sharing evidence is configured and possible.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if the sandbox would share, if there is no MAC key, or if this build lacks the
    /// feature.
    pub(crate) fn check_evidence_sharing(&self) -> Result<(), ConfigError> {
        let Self { chain, redis, .. } = self;
        match (&redis.url, &redis.mac_key) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(ConfigError::conflict("redis.mac-key", "a key without a server; set redis.url")),
            (Some(_), None) => {
                Err(ConfigError::conflict("redis.url", "nothing is shared without a MAC; set redis.mac-key"))
            }
            (Some(_), Some(_)) if chain.world == SANDBOX && !clresolve_core::mutant!("sandbox-is-shared") => {
                Err(ConfigError::conflict("redis.url", "the sandbox shares nothing: its verdicts prove nothing"))
            }
            (Some(_), Some(_)) if !cfg!(feature = "redis") => Err(ConfigError::conflict("redis.url", NO_REDIS)),
            (Some(_), Some(_)) => Ok(()),
        }
    }

    /// Checks that the gate can enforce this configuration.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if `gate.deny` names a warning that requires a memory, and no memory is configured.
    pub fn check_gate(&self) -> Result<(), ConfigError> {
        if self.gate.gate_policy().requires_history() && self.memory.path.is_none() {
            return Err(ConfigError::conflict("deny", "a warning in the list requires a memory; set memory.path"));
        }
        Ok(())
    }

    fn check_signing(&self) -> Result<(), ConfigError> {
        let Self { chain, sign, .. } = self;
        if chain.world == SANDBOX && sign.key.is_some() {
            return Err(ConfigError::conflict("sign.key", "the sandbox signs nothing: its verdicts prove nothing"));
        }
        if sign.key.is_some() && sign.issuer.is_none() {
            return Err(ConfigError::conflict(
                "sign.issuer",
                "a signing key needs an issuer; set this or --sign-issuer",
            ));
        }
        if sign.key.is_none() && !sign.publish.is_empty() {
            return Err(ConfigError::conflict("sign.publish", "publishing keys requires a signing key; set sign.key"));
        }
        Ok(())
    }
}
