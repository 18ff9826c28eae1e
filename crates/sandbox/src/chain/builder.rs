//! Builds the chain: names, records and blocks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_WITHDRAWALS;
use alloy_primitives::{Address, B256, Bytes, U256, address, b256, keccak256, logs_bloom};
use alloy_sol_types::{SolCall, SolValue};
use jiff::Timestamp;
use revm::context::result::Output;
use revm::primitives::TxKind;
use serde::Deserialize;

use super::abi::{
    IdentityRegistry, Multicoin, NameWrapper, OwnMulticoin, OwnResolver, PublicResolver, RecordResolver, Registrar,
    Registry, UniversalResolverV2,
};
use super::artifacts::Contract;
use super::ensv2::{Ensv2, MIGRATION_CONTROLLER, Traces, link};
use super::evm::{Accounts, Executed};
use super::gateway::Gateway;
use super::mined::{Mined, receipts_root};
use super::resolver_kind::ResolverKind;
use super::{
    DOLLAR, GAS_LIMIT, IDENTITY_REGISTRY, MULTICALL3, NAME_WRAPPER, REGISTRAR, REGISTRY, SandboxChain, Sealed,
    UNIVERSAL_RESOLVER,
};
use crate::keys::payer;
use clresolve_core::name::EnsName;
use clresolve_core::payment::CoinType;
use clresolve_core::reading::Block;

const ROOT_NODE: B256 = B256::ZERO;
/// Namehash of `eth`.
const ETH_NODE: B256 = b256!("93cdeb708b7545dc668eb9280176169d1c33cfd8ed6f04690a0bcc88a93fc4ae");
/// The account that deploys the contracts. It holds the root and every name that exists only as a parent.
const OPERATOR: Address = address!("00000000000000000000000000000000005a4d80");
/// The year 2100: the default expiry of a name.
const FAR_FUTURE: u64 = 4_102_444_800;
/// SHA-256 of the empty string: the root of a block without requests (EIP-7685).
const EMPTY_REQUESTS_HASH: B256 = b256!("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");

/// A name to register on the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRegistration {
    /// The name. Missing ancestors are registered without a resolver.
    pub name: EnsName,
    /// The holder's account.
    pub owner: Address,
    /// The contract that holds it. A subname is held by the contract of its parent.
    pub custody: Custody,
    /// Its expiry. `None` means the year 2100. Ignored for a subname in the registry.
    pub expiry: Option<Timestamp>,
    /// Its resolver.
    pub resolver: ResolverKind,
    /// What ENSv1 still contains of the name, if it has [migrated](ChainBuilder::migrate) to ENSv2. Its records are
    /// then in ENSv2.
    pub migrated: Option<Traces>,
    /// Text records (ENSIP-5) by key.
    pub texts: BTreeMap<String, String>,
    /// Address record (EIP-137).
    pub addr: Option<Address>,
    /// Address records by coin type (ENSIP-9). Any bytes are allowed, because a publisher may set invalid addresses. In
    /// the public resolver, the record for ether is also `addr`.
    pub addresses: BTreeMap<CoinType, Bytes>,
}

impl NameRegistration {
    /// A registration of `name` for `owner` with [`ResolverKind::Public`], no records and no expiry.
    pub fn new(name: EnsName, owner: Address) -> Self {
        Self {
            name,
            owner,
            custody: Custody::Registry,
            expiry: None,
            resolver: ResolverKind::Public,
            migrated: None,
            texts: BTreeMap::new(),
            addr: None,
            addresses: BTreeMap::new(),
        }
    }
}

/// The contract that stores a name's holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Custody {
    /// The registry.
    #[default]
    Registry,
    /// The NameWrapper, which owns the name in the registry.
    NameWrapper,
}

/// Why the chain cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A name that exists on every chain (`eth`).
    #[error("{0} cannot be registered: every chain has it")]
    Reserved(String),
    /// A subname whose custody differs from that of its parent.
    #[error("{0} must be held by the contract that holds its parent")]
    Custody(String),
    /// The name was not registered.
    #[error("{0} is not registered")]
    Unregistered(String),
    /// The name's resolver has no writable records.
    #[error("the resolver of {0} takes no records")]
    NoRecords(String),
    /// A time before 1970, or a block that is not later than the previous one.
    #[error("{0} cannot be the time of the next block or of an expiry")]
    Time(Timestamp),
    /// A chain needs at least one sealed block.
    #[error("no block has been sealed")]
    NoBlock,
    /// A contract rejected a transaction.
    #[error("the transaction failed: {0}")]
    Transaction(String),
}

/// A chain under construction. A clone continues independently, so that one state can have several futures.
#[derive(Clone)]
pub struct ChainBuilder {
    state: Accounts,
    /// The state root, if nothing has changed since it was computed. Computing it is slow.
    root: Option<B256>,
    gateway: Gateway,
    public_resolver: Address,
    /// `None` until a name migrates.
    ensv2: Option<Ensv2>,
    /// Registered names by node.
    names: HashMap<B256, Holding>,
    /// Transactions since the newest block.
    transactions: Vec<Mined>,
    blocks: Vec<Arc<Sealed>>,
    finalized: Option<u64>,
}

#[derive(Clone, Copy)]
struct Holding {
    owner: Address,
    custody: Custody,
    records: RecordsAt,
}

/// Where the records of a name are stored.
#[derive(Clone, Copy)]
enum RecordsAt {
    Nowhere,
    Public,
    /// This resolver, which has a single set of records.
    Own(Address),
    /// This record of the ENSv2 resolver.
    Record(u64),
    Gateway,
}

impl ChainBuilder {
    /// Creates a chain with the contracts, without names, and with an empty block 0.
    ///
    /// # Errors
    /// [`BuildError::Transaction`] if a contract cannot be deployed.
    pub fn new() -> Result<Self, BuildError> {
        let mut builder = Self {
            state: Accounts::default(),
            root: None,
            gateway: Gateway::new(),
            public_resolver: Address::ZERO,
            ensv2: None,
            names: HashMap::new(),
            transactions: Vec::new(),
            blocks: vec![Arc::new(Sealed::new(
                header(None, 0, Accounts::default().root()),
                Accounts::default(),
                Vec::new(),
            ))],
            finalized: None,
        };
        builder.deploy_at(REGISTRY, Contract::Registry, &[])?;
        builder.deploy_at(REGISTRAR, Contract::Registrar, &(REGISTRY, ETH_NODE, NAME_WRAPPER).abi_encode_params())?;
        builder.deploy_at(NAME_WRAPPER, Contract::NameWrapper, &(REGISTRY, REGISTRAR, ETH_NODE).abi_encode_params())?;
        builder.deploy_at(UNIVERSAL_RESOLVER, Contract::UniversalResolver, &REGISTRY.abi_encode())?;
        builder.deploy_at(MULTICALL3, Contract::Multicall3, &[])?;
        builder.public_resolver =
            builder.deploy(Contract::PublicResolver, &(REGISTRY, NAME_WRAPPER).abi_encode_params())?;
        builder.deploy_at(DOLLAR, Contract::Dollar, &payer().abi_encode())?;
        builder.deploy_at(IDENTITY_REGISTRY, Contract::IdentityRegistry, &[])?;
        let eth = keccak256("eth");
        builder.transact(
            OPERATOR,
            REGISTRY,
            Registry::setSubnodeOwnerCall { node: ROOT_NODE, label: eth, owner: REGISTRAR },
        )?;
        let held = Holding { owner: OPERATOR, custody: Custody::Registry, records: RecordsAt::Nowhere };
        builder.names.insert(ROOT_NODE, held);
        builder.names.insert(ETH_NODE, Holding { owner: REGISTRAR, ..held });
        Ok(builder)
    }

    /// Registers a name. An existing name gets the new holder, expiry and resolver, and keeps its records in the public
    /// resolver.
    ///
    /// # Errors
    /// [`BuildError::Reserved`], [`BuildError::Custody`], [`BuildError::NoRecords`], [`BuildError::Time`], or
    /// [`BuildError::Transaction`] if a contract rejects the registration.
    pub fn register(&mut self, registration: &NameRegistration) -> Result<(), BuildError> {
        let name = &registration.name;
        let node = name.node();
        if node == ETH_NODE {
            return Err(BuildError::Reserved(name.to_string()));
        }
        let parent = self.ensure_ancestors(name, registration.custody)?;
        let (resolver, records) = self.install(&registration.resolver)?;
        let holding = Holding { owner: registration.owner, custody: registration.custody, records };
        let expiry = registration.expiry.map_or(Ok(FAR_FUTURE), unix_seconds)?;
        self.claim(name, parent, Claim { holding, label: first_label(name), resolver, expiry })?;
        self.names.insert(node, holding);
        if let Some(traces) = registration.migrated {
            self.migrate(name, traces)?;
        }
        let NameRegistration { texts, addr, addresses, .. } = registration;
        self.write_records(name, &Values { texts, addr: *addr, addresses })
    }

    /// Registers an agent with this URI in the registry of agents (ERC-8004). The sending account is its wallet. Agents
    /// are numbered from 1.
    ///
    /// # Errors
    /// [`BuildError::Transaction`].
    pub fn register_agent(&mut self, account: Address, uri: &str) -> Result<(), BuildError> {
        self.transact(account, IDENTITY_REGISTRY, IdentityRegistry::registerCall { agentURI: uri.to_owned() })
    }

    /// Unsets the wallet of an agent that this account registered.
    ///
    /// # Errors
    /// [`BuildError::Transaction`].
    pub fn unset_agent_wallet(&mut self, account: Address, agent: u64) -> Result<(), BuildError> {
        let unset = IdentityRegistry::unsetAgentWalletCall { agentId: U256::from(agent) };
        self.transact(account, IDENTITY_REGISTRY, unset)
    }

    /// Sends a call from an account.
    ///
    /// # Errors
    /// [`BuildError::Transaction`] if the contract rejects it.
    pub fn call(&mut self, from: Address, to: Address, data: Bytes) -> Result<(), BuildError> {
        self.execute(from, TxKind::Call(to), data).map(drop)
    }

    /// Sets one text record. An empty value removes it.
    ///
    /// # Errors
    /// [`BuildError::Unregistered`], [`BuildError::NoRecords`], or [`BuildError::Transaction`].
    pub fn set_text(&mut self, name: &EnsName, key: &str, value: &str) -> Result<(), BuildError> {
        let texts = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        self.write_records(name, &Values { texts: &texts, addr: None, addresses: &BTreeMap::new() })
    }

    /// Sets the address record of one coin type. Empty bytes remove it.
    ///
    /// # Errors
    /// [`BuildError::Unregistered`], [`BuildError::NoRecords`], or [`BuildError::Transaction`].
    pub fn set_address(&mut self, name: &EnsName, coin: CoinType, value: &Bytes) -> Result<(), BuildError> {
        let addresses = BTreeMap::from([(coin, value.clone())]);
        self.write_records(name, &Values { texts: &BTreeMap::new(), addr: None, addresses: &addresses })
    }

    /// Changes the resolver of a registered name.
    ///
    /// # Errors
    /// [`BuildError::Unregistered`] or [`BuildError::Transaction`].
    pub fn set_resolver(&mut self, name: &EnsName, kind: &ResolverKind) -> Result<(), BuildError> {
        let node = name.node();
        let holding = self.holding(name)?;
        let (resolver, records) = self.install(kind)?;
        match holding.custody {
            Custody::Registry => self.transact(holding.owner, REGISTRY, Registry::setResolverCall { node, resolver }),
            Custody::NameWrapper => {
                self.transact(holding.owner, NAME_WRAPPER, NameWrapper::setResolverCall { node, resolver })
            }
        }?;
        self.names.insert(node, Holding { records, ..holding });
        Ok(())
    }

    /// Transfers a name that the registry holds to another account. Its records are kept.
    ///
    /// # Errors
    /// [`BuildError::Unregistered`], [`BuildError::Custody`] for a wrapped name, or [`BuildError::Transaction`].
    pub fn transfer(&mut self, name: &EnsName, to: Address) -> Result<(), BuildError> {
        let node = name.node();
        let holding = self.holding(name)?;
        if holding.custody != Custody::Registry {
            return Err(BuildError::Custody(name.to_string()));
        }
        self.transact(holding.owner, REGISTRY, Registry::setOwnerCall { node, owner: to })?;
        self.names.insert(node, Holding { owner: to, ..holding });
        Ok(())
    }

    /// Migrates an unwrapped name and all names below it to ENSv2. If the name uses the public resolver, the builder
    /// replaces that by the resolver that keys records by id, and links the name to a new, empty record. The name keeps
    /// any other resolver.
    ///
    /// # Errors
    /// [`BuildError::Unregistered`], [`BuildError::Custody`] for a wrapped name, [`BuildError::NoRecords`] if its resolver
    /// accepts no records, or [`BuildError::Transaction`].
    pub fn migrate(&mut self, name: &EnsName, traces: Traces) -> Result<(), BuildError> {
        let node = name.node();
        let holding = self.holding(name)?;
        if holding.custody != Custody::Registry {
            return Err(BuildError::Custody(name.to_string()));
        }
        let mut ensv2 = self.ensv2()?;
        let (resolver, records) = match holding.records {
            RecordsAt::Public => (ensv2.resolver, RecordsAt::Record(ensv2.new_record())),
            RecordsAt::Own(resolver) => (resolver, holding.records),
            _ => return Err(BuildError::NoRecords(name.to_string())),
        };
        self.ensv2 = Some(ensv2);
        if let RecordsAt::Record(record) = records {
            self.transact(OPERATOR, ensv2.resolver, link(node, name.dns_encoded(), record))?;
        }
        self.transact(OPERATOR, UNIVERSAL_RESOLVER, UniversalResolverV2::migrateCall { node })?;
        self.transact(OPERATOR, UNIVERSAL_RESOLVER, UniversalResolverV2::setResolverCall { node, resolver })?;
        let owner = match traces {
            Traces::Kept => holding.owner,
            Traces::Taken => MIGRATION_CONTROLLER,
            Traces::Cleared => Address::ZERO,
        };
        if owner != holding.owner {
            let set = Registry::setResolverCall { node, resolver: Address::ZERO };
            self.transact(holding.owner, REGISTRY, set)?;
            self.transact(holding.owner, REGISTRY, Registry::setOwnerCall { node, owner })?;
        }
        self.names.insert(node, Holding { owner, records, ..holding });
        Ok(())
    }

    /// Links a migrated name to the record of another one, which changes all of its records at once.
    ///
    /// # Errors
    /// [`BuildError::Unregistered`], [`BuildError::NoRecords`] unless both have a record of the ENSv2 resolver, or
    /// [`BuildError::Transaction`].
    pub fn relink(&mut self, name: &EnsName, to: &EnsName) -> Result<(), BuildError> {
        let no_records = |name: &EnsName| BuildError::NoRecords(name.to_string());
        let (RecordsAt::Record(_), Some(ensv2)) = (self.holding(name)?.records, self.ensv2) else {
            return Err(no_records(name));
        };
        let RecordsAt::Record(record) = self.holding(to)?.records else { return Err(no_records(to)) };
        self.transact(OPERATOR, ensv2.resolver, link(name.node(), name.dns_encoded(), record))
    }

    /// Deletes a name from ENSv2. From then on, the wildcard resolver of a migrated ancestor answers for the name.
    ///
    /// # Errors
    /// [`BuildError::Transaction`] unless a name has migrated.
    pub fn delete(&mut self, name: &EnsName) -> Result<(), BuildError> {
        let delete = UniversalResolverV2::setResolverCall { node: name.node(), resolver: Address::ZERO };
        self.transact(OPERATOR, UNIVERSAL_RESOLVER, delete)
    }

    /// The contracts of ENSv2. The first call deploys them; the Universal Resolver keeps its address.
    fn ensv2(&mut self) -> Result<Ensv2, BuildError> {
        if let Some(ensv2) = self.ensv2 {
            return Ok(ensv2);
        }
        self.deploy_at(UNIVERSAL_RESOLVER, Contract::UniversalResolverV2, &REGISTRY.abi_encode())?;
        let ensv2 = Ensv2::new(self.deploy(Contract::RecordResolver, &[])?);
        self.ensv2 = Some(ensv2);
        Ok(ensv2)
    }

    /// The address of the public resolver.
    pub const fn public_resolver(&self) -> Address {
        self.public_resolver
    }

    /// Seals all pending changes into the next block, which becomes `latest`.
    ///
    /// # Errors
    /// [`BuildError::Time`] unless `timestamp`, in whole seconds, is later than that of the previous block.
    pub fn seal(&mut self, timestamp: Timestamp) -> Result<Block, BuildError> {
        let seconds = unix_seconds(timestamp)?;
        let parent = self.blocks.last();
        if parent.is_some_and(|parent| parent.header.timestamp >= seconds) {
            return Err(BuildError::Time(timestamp));
        }
        let root = *self.root.get_or_insert_with(|| self.state.root());
        let transactions = std::mem::take(&mut self.transactions);
        let header = Header {
            logs_bloom: logs_bloom(transactions.iter().flat_map(|mined| &mined.logs)),
            receipts_root: receipts_root(&transactions),
            ..header(parent.map(Arc::as_ref), seconds, root)
        };
        let sealed = Sealed::new(header, self.state.clone(), transactions);
        self.state.remember_block(sealed.header.number, sealed.hash);
        let block = sealed.summary();
        self.blocks.push(Arc::new(sealed));
        Ok(block)
    }

    /// Makes the newest sealed block `finalized` and `safe`. Until the first call, this is always the newest block.
    ///
    /// # Errors
    /// [`BuildError::NoBlock`].
    pub fn finalize(&mut self) -> Result<(), BuildError> {
        self.finalized = Some(self.newest()?);
        Ok(())
    }

    /// The chain as sealed so far, without changes after the last block.
    ///
    /// # Errors
    /// [`BuildError::NoBlock`].
    pub fn build(&self) -> Result<SandboxChain, BuildError> {
        let newest = self.newest()?;
        Ok(SandboxChain {
            blocks: self.blocks.clone(),
            finalized: self.finalized.unwrap_or(newest),
            gateway: self.gateway.clone(),
        })
    }

    fn newest(&self) -> Result<u64, BuildError> {
        self.blocks.last().map(|block| block.header.number).filter(|number| *number > 0).ok_or(BuildError::NoBlock)
    }

    fn holding(&self, name: &EnsName) -> Result<Holding, BuildError> {
        self.names.get(&name.node()).copied().ok_or_else(|| BuildError::Unregistered(name.to_string()))
    }

    /// Registers the missing ancestors of `name` and returns the node of its parent.
    fn ensure_ancestors(&mut self, name: &EnsName, custody: Custody) -> Result<B256, BuildError> {
        let labels: Vec<&str> = name.labels().collect();
        let mut parent = ROOT_NODE;
        for label in labels.iter().skip(1).rev() {
            let node = subnode(parent, keccak256(label));
            if !self.names.contains_key(&node) {
                let custody = if parent == ROOT_NODE { Custody::Registry } else { custody };
                let holding = Holding { owner: OPERATOR, custody, records: RecordsAt::Nowhere };
                self.claim(name, parent, Claim { holding, label, resolver: Address::ZERO, expiry: FAR_FUTURE })?;
                self.names.insert(node, holding);
            }
            parent = node;
        }
        Ok(parent)
    }

    fn claim(&mut self, name: &EnsName, parent: B256, claim: Claim<'_>) -> Result<(), BuildError> {
        let Claim { holding: Holding { owner, custody, .. }, label: text, resolver, expiry } = claim;
        let (label, text) = (keccak256(text), text.to_owned());
        let parents = *self.names.get(&parent).ok_or_else(|| BuildError::Unregistered(name.to_string()))?;
        match (custody, parent == ETH_NODE) {
            (Custody::Registry, true) => {
                let register = Registrar::registerCall { labelhash: label.into(), owner, expires: U256::from(expiry) };
                self.transact(OPERATOR, REGISTRAR, register)?;
                let node = subnode(parent, label);
                self.transact(owner, REGISTRY, Registry::setResolverCall { node, resolver })?;
            }
            (Custody::NameWrapper, true) => {
                let wrap = NameWrapper::registerAndWrapCall { label: text, owner, expires: expiry, resolver };
                self.transact(OPERATOR, NAME_WRAPPER, wrap)?;
            }
            _ if parents.custody != custody => return Err(BuildError::Custody(name.to_string())),
            (Custody::Registry, false) => {
                let set = Registry::setSubnodeRecordCall { node: parent, label, owner, resolver, ttl: 0 };
                self.transact(parents.owner, REGISTRY, set)?;
            }
            (Custody::NameWrapper, false) => {
                let set = NameWrapper::setSubnodeRecordCall { parent, label: text, owner, resolver, expiry };
                self.transact(parents.owner, NAME_WRAPPER, set)?;
            }
        }
        Ok(())
    }

    fn install(&mut self, kind: &ResolverKind) -> Result<(Address, RecordsAt), BuildError> {
        match kind {
            ResolverKind::Public => Ok((self.public_resolver, RecordsAt::Public)),
            ResolverKind::None => Ok((Address::ZERO, RecordsAt::Nowhere)),
            ResolverKind::Address(address) => Ok((*address, RecordsAt::Nowhere)),
            ResolverKind::Wildcard => {
                let resolver = self.deploy(Contract::WildcardResolver, &[])?;
                Ok((resolver, RecordsAt::Own(resolver)))
            }
            ResolverKind::Offchain { urls } => {
                let arguments = (self.gateway.signer(), urls.clone()).abi_encode_params();
                Ok((self.deploy(Contract::OffchainResolver, &arguments)?, RecordsAt::Gateway))
            }
            ResolverKind::Hostile { mode, arg } => {
                let arguments = (U256::from(*mode as u8), arg.clone()).abi_encode_params();
                let resolver = self.deploy(Contract::HostileResolver, &arguments)?;
                Ok((resolver, RecordsAt::Own(resolver)))
            }
        }
    }

    fn write_records(&mut self, name: &EnsName, values: &Values<'_>) -> Result<(), BuildError> {
        let Values { texts, addr, addresses } = values;
        if texts.is_empty() && addr.is_none() && addresses.is_empty() {
            return Ok(());
        }
        let node = name.node();
        let holding = self.holding(name)?;
        match holding.records {
            RecordsAt::Nowhere => Err(BuildError::NoRecords(name.to_string())),
            RecordsAt::Public => self.write_public(node, holding.owner, values),
            RecordsAt::Own(resolver) => self.write_own(resolver, values),
            RecordsAt::Record(record) => self.write_record(U256::from(record), values),
            RecordsAt::Gateway => {
                texts.iter().for_each(|(key, value)| self.gateway.set_text(node, key, value));
                addr.iter().for_each(|value| self.gateway.set_addr(node, *value));
                addresses.iter().for_each(|(coin, value)| self.gateway.set_address(node, *coin, value));
                Ok(())
            }
        }
    }

    fn write_public(&mut self, node: B256, owner: Address, values: &Values<'_>) -> Result<(), BuildError> {
        let Values { texts, addr, addresses } = values;
        let set_texts = texts.iter().map(|(key, value)| {
            PublicResolver::setTextCall { node, key: key.clone(), value: value.clone() }.abi_encode().into()
        });
        let set_addr = addr.map(|value| PublicResolver::setAddrCall { node, value }.abi_encode().into());
        let set_addresses = addresses.iter().map(|(coin, value)| {
            let coin_type = U256::from(coin.number());
            Multicoin::setAddrCall { node, coinType: coin_type, value: value.clone() }.abi_encode().into()
        });
        let calls: Vec<Bytes> = set_texts.chain(set_addr).chain(set_addresses).collect();
        self.transact(owner, self.public_resolver, PublicResolver::multicallCall { calls })
    }

    fn write_own(&mut self, resolver: Address, values: &Values<'_>) -> Result<(), BuildError> {
        let Values { texts, addr, addresses } = values;
        for (coin, value) in *addresses {
            let set = OwnMulticoin::setAddrCall { coinType: U256::from(coin.number()), value: value.clone() };
            self.transact(OPERATOR, resolver, set)?;
        }
        for (key, value) in *texts {
            let set = OwnResolver::setTextCall { key: key.clone(), value: value.clone() };
            self.transact(OPERATOR, resolver, set)?;
        }
        addr.map_or(Ok(()), |value| self.transact(OPERATOR, resolver, OwnResolver::setAddrCall { value }))
    }

    fn write_record(&mut self, record: U256, values: &Values<'_>) -> Result<(), BuildError> {
        let Values { texts, addr, addresses } = values;
        let resolver = self.ensv2()?.resolver;
        let ether = addr.iter().map(|value| (CoinType::ETHER, Bytes::copy_from_slice(value.as_slice())));
        for (coin, value) in ether.chain(addresses.iter().map(|(coin, value)| (*coin, value.clone()))) {
            let set = RecordResolver::setAddrCall { recordId: record, coinType: U256::from(coin.number()), value };
            self.transact(OPERATOR, resolver, set)?;
        }
        for (key, value) in *texts {
            let set = RecordResolver::setTextCall { recordId: record, key: key.clone(), value: value.clone() };
            self.transact(OPERATOR, resolver, set)?;
        }
        Ok(())
    }

    fn transact(&mut self, from: Address, to: Address, call: impl SolCall) -> Result<(), BuildError> {
        self.execute(from, TxKind::Call(to), call.abi_encode().into()).map(drop)
    }

    fn deploy(&mut self, contract: Contract, arguments: &[u8]) -> Result<Address, BuildError> {
        match self.execute(OPERATOR, TxKind::Create, contract.creation_code(arguments))? {
            Output::Create(_, Some(address)) => Ok(address),
            Output::Create(_, None) | Output::Call(_) => {
                Err(BuildError::Transaction(format!("{contract:?} was not created")))
            }
        }
    }

    fn deploy_at(&mut self, address: Address, contract: Contract, arguments: &[u8]) -> Result<(), BuildError> {
        let created = self.deploy(contract, arguments)?;
        self.state.relocate(created, address);
        Ok(())
    }

    fn execute(&mut self, from: Address, kind: TxKind, data: Bytes) -> Result<Output, BuildError> {
        self.root = None;
        let transacted = self.state.transact(from, kind, data.clone());
        let (executed, logs) = transacted.map_err(|rejected| BuildError::Transaction(rejected.0))?;
        match executed {
            Executed::Returned(output) => {
                self.transactions.push(Mined::new(from, kind, data, logs));
                Ok(output)
            }
            Executed::Reverted(data) => Err(BuildError::Transaction(format!("reverted with {data}"))),
            Executed::Halted(cause) => Err(BuildError::Transaction(cause)),
        }
    }
}

struct Values<'a> {
    texts: &'a BTreeMap<String, String>,
    addr: Option<Address>,
    addresses: &'a BTreeMap<CoinType, Bytes>,
}

/// The registration of one name below its parent.
struct Claim<'a> {
    holding: Holding,
    label: &'a str,
    resolver: Address,
    expiry: u64,
}

/// The header of the block after `parent`, or of block 0 if there is none.
fn header(parent: Option<&Sealed>, timestamp: u64, state_root: B256) -> Header {
    Header {
        parent_hash: parent.map(|p| p.hash).unwrap_or_default(),
        state_root,
        number: parent.map_or(0, |p| p.header.number + 1),
        gas_limit: GAS_LIMIT,
        timestamp,
        base_fee_per_gas: Some(0),
        withdrawals_root: Some(EMPTY_WITHDRAWALS),
        blob_gas_used: Some(0),
        excess_blob_gas: Some(0),
        parent_beacon_block_root: Some(B256::ZERO),
        requests_hash: Some(EMPTY_REQUESTS_HASH),
        ..Header::default()
    }
}

fn first_label(name: &EnsName) -> &str {
    name.labels().next().unwrap_or_default()
}

fn subnode(parent: B256, label: B256) -> B256 {
    keccak256([parent, label].concat())
}

fn unix_seconds(timestamp: Timestamp) -> Result<u64, BuildError> {
    u64::try_from(timestamp.as_second()).map_err(|_| BuildError::Time(timestamp))
}
