//! The compiled contracts, embedded.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use alloy_primitives::Bytes;
use serde::Deserialize;

/// A contract of `contracts/src` on this chain. It has the name of its variant.
#[derive(Clone, Copy, Debug)]
pub(super) enum SandboxContract {
    Dollar,
    HostileResolver,
    IdentityRegistry,
    Multicall3,
    NameWrapper,
    OffchainResolver,
    PublicResolver,
    RecordResolver,
    Registrar,
    Registry,
    UniversalResolver,
    UniversalResolverV2,
    WildcardResolver,
}

impl SandboxContract {
    /// The creation code, followed by the ABI-encoded constructor arguments.
    pub(super) fn creation_code(self, arguments: &[u8]) -> Bytes {
        let code = ARTIFACTS.creation.get(&format!("{self:?}")).expect("compile.mjs writes the code of every contract");
        [code, arguments].concat().into()
    }
}

#[derive(Deserialize)]
struct ContractArtifacts {
    creation: BTreeMap<String, Bytes>,
}

static ARTIFACTS: LazyLock<ContractArtifacts> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../contracts/artifacts.json"))
        .expect("artifacts.json is compiled in, and a test compiles it again")
});
