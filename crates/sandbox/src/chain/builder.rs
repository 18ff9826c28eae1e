//! Builds the chain: names, records and blocks.

mod records;

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

use super::abi::{IdentityRegistry, NameWrapper, Registrar, Registry, UniversalResolverV2};
use super::artifacts::SandboxContract;
use super::ensv2::{Ensv1Remnant, Ensv2Deployment, MIGRATION_CONTROLLER, record_link_call};
use super::evm::{SandboxEvmAccounts, SandboxEvmOutcome};
use super::gateway::SandboxCcipGateway;
use super::mined::{MinedTransaction, receipts_root};
use super::resolver_kind::EnsResolverKind;
use super::{
    DOLLAR, GAS_LIMIT, IDENTITY_REGISTRY, MULTICALL3, NAME_WRAPPER, REGISTRAR, REGISTRY, SandboxBlock, SandboxChain,
    UNIVERSAL_RESOLVER,
};
use crate::keys::payer_address;
use clresolve_core::name::EnsName;
use clresolve_core::payment::CoinType;
use clresolve_core::reading::ChainBlock;

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
pub struct SandboxNameRegistration {
    /// The name. Missing ancestors are registered without a resolver.
    pub name: EnsName,
    /// The holder's account.
    pub owner: Address,
    /// The contract that holds it. A subname is held by the contract of its parent.
    pub custody: CustodyContract,
    /// Its expiry. `None` means the year 2100. Ignored for a subname in the registry.
    pub expiry: Option<Timestamp>,
    /// Its resolver.
    pub resolver: EnsResolverKind,
    /// What ENSv1 still contains of the name, if it has [migrated](SandboxChainBuilder::migrate_to_ensv2) to ENSv2. Its
    /// records are then in ENSv2.
    pub migrated: Option<Ensv1Remnant>,
    /// Text records (ENSIP-5) by key.
    pub texts: BTreeMap<String, String>,
    /// Address record (EIP-137).
    pub addr: Option<Address>,
    /// Address records by coin type (ENSIP-9). Any bytes are allowed, because a publisher may set invalid addresses. In
    /// the public resolver, the record for ether is also `addr`.
    pub addresses: BTreeMap<CoinType, Bytes>,
}

impl SandboxNameRegistration {
    /// A registration of `name` for `owner` with [`EnsResolverKind::Public`], no records and no expiry.
    pub fn new(name: EnsName, owner: Address) -> Self {
        Self {
            name,
            owner,
            custody: CustodyContract::Registry,
            expiry: None,
            resolver: EnsResolverKind::Public,
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
pub enum CustodyContract {
    /// The registry.
    #[default]
    Registry,
    /// The NameWrapper, which owns the name in the registry.
    NameWrapper,
}

/// Why the chain cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxChainBuildError {
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
pub struct SandboxChainBuilder {
    state: SandboxEvmAccounts,
    /// The state root, if nothing has changed since it was computed. Computing it is slow.
    root: Option<B256>,
    gateway: SandboxCcipGateway,
    public_resolver: Address,
    /// `None` until a name migrates.
    ensv2: Option<Ensv2Deployment>,
    /// Registered names by node.
    names: HashMap<B256, SandboxRegisteredName>,
    /// Transactions since the newest block.
    transactions: Vec<MinedTransaction>,
    blocks: Vec<Arc<SandboxBlock>>,
    finalized: Option<u64>,
}

#[derive(Clone, Copy)]
struct SandboxRegisteredName {
    owner: Address,
    custody: CustodyContract,
    records: SandboxRecordStorage,
}

/// Where the records of a name are stored.
#[derive(Clone, Copy)]
enum SandboxRecordStorage {
    Nowhere,
    Public,
    /// This resolver, which has a single set of records.
    Own(Address),
    /// This record of the ENSv2 resolver.
    Record(u64),
    Gateway,
}

impl SandboxChainBuilder {
    /// Creates a chain with the contracts, without names, and with an empty block 0.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Transaction`] if a contract cannot be deployed.
    pub fn new() -> Result<Self, SandboxChainBuildError> {
        let mut builder = Self {
            state: SandboxEvmAccounts::default(),
            root: None,
            gateway: SandboxCcipGateway::new(),
            public_resolver: Address::ZERO,
            ensv2: None,
            names: HashMap::new(),
            transactions: Vec::new(),
            blocks: vec![Arc::new(SandboxBlock::new(
                next_header(None, 0, SandboxEvmAccounts::default().state_root()),
                SandboxEvmAccounts::default(),
                Vec::new(),
            ))],
            finalized: None,
        };
        builder.deploy_contract_at(REGISTRY, SandboxContract::Registry, &[])?;
        builder.deploy_contract_at(
            REGISTRAR,
            SandboxContract::Registrar,
            &(REGISTRY, ETH_NODE, NAME_WRAPPER).abi_encode_params(),
        )?;
        builder.deploy_contract_at(
            NAME_WRAPPER,
            SandboxContract::NameWrapper,
            &(REGISTRY, REGISTRAR, ETH_NODE).abi_encode_params(),
        )?;
        builder.deploy_contract_at(UNIVERSAL_RESOLVER, SandboxContract::UniversalResolver, &REGISTRY.abi_encode())?;
        builder.deploy_contract_at(MULTICALL3, SandboxContract::Multicall3, &[])?;
        builder.public_resolver =
            builder.deploy_contract(SandboxContract::PublicResolver, &(REGISTRY, NAME_WRAPPER).abi_encode_params())?;
        builder.deploy_contract_at(DOLLAR, SandboxContract::Dollar, &payer_address().abi_encode())?;
        builder.deploy_contract_at(IDENTITY_REGISTRY, SandboxContract::IdentityRegistry, &[])?;
        let eth = keccak256("eth");
        builder.send_transaction(
            OPERATOR,
            REGISTRY,
            Registry::setSubnodeOwnerCall { node: ROOT_NODE, label: eth, owner: REGISTRAR },
        )?;
        let held = SandboxRegisteredName {
            owner: OPERATOR,
            custody: CustodyContract::Registry,
            records: SandboxRecordStorage::Nowhere,
        };
        builder.names.insert(ROOT_NODE, held);
        builder.names.insert(ETH_NODE, SandboxRegisteredName { owner: REGISTRAR, ..held });
        Ok(builder)
    }

    /// Registers a name. An existing name gets the new holder, expiry and resolver, and keeps its records in the public
    /// resolver.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Reserved`], [`SandboxChainBuildError::Custody`],
    /// [`SandboxChainBuildError::NoRecords`], [`SandboxChainBuildError::Time`], or
    /// [`SandboxChainBuildError::Transaction`] if a contract rejects the registration.
    pub fn register_name(&mut self, registration: &SandboxNameRegistration) -> Result<(), SandboxChainBuildError> {
        let name = &registration.name;
        let node = name.namehash();
        if node == ETH_NODE {
            return Err(SandboxChainBuildError::Reserved(name.to_string()));
        }
        let parent = self.ensure_ancestors(name, registration.custody)?;
        let (resolver, records) = self.deploy_resolver(&registration.resolver)?;
        let holding = SandboxRegisteredName { owner: registration.owner, custody: registration.custody, records };
        let expiry = registration.expiry.map_or(Ok(FAR_FUTURE), unix_seconds)?;
        self.register_subname(
            name,
            parent,
            SandboxSubnameRegistration { holding, label: first_label(name), resolver, expiry },
        )?;
        self.names.insert(node, holding);
        if let Some(traces) = registration.migrated {
            self.migrate_to_ensv2(name, traces)?;
        }
        let SandboxNameRegistration { texts, addr, addresses, .. } = registration;
        self.write_records(name, &SandboxRecordValues { texts, addr: *addr, addresses })
    }

    /// Registers an agent with this URI in the registry of agents (ERC-8004). The sending account is its wallet. Agents
    /// are numbered from 1.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Transaction`].
    pub fn register_agent(&mut self, account: Address, uri: &str) -> Result<(), SandboxChainBuildError> {
        self.send_transaction(account, IDENTITY_REGISTRY, IdentityRegistry::registerCall { agentURI: uri.to_owned() })
    }

    /// Unsets the wallet of an agent that this account registered.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Transaction`].
    pub fn unset_agent_wallet(&mut self, account: Address, agent: u64) -> Result<(), SandboxChainBuildError> {
        let unset = IdentityRegistry::unsetAgentWalletCall { agentId: U256::from(agent) };
        self.send_transaction(account, IDENTITY_REGISTRY, unset)
    }

    /// Sends a call from an account.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Transaction`] if the contract rejects it.
    pub fn send_call(&mut self, from: Address, to: Address, data: Bytes) -> Result<(), SandboxChainBuildError> {
        self.execute_transaction(from, TxKind::Call(to), data).map(drop)
    }

    /// Sets one text record. An empty value removes it.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Unregistered`], [`SandboxChainBuildError::NoRecords`], or
    /// [`SandboxChainBuildError::Transaction`].
    pub fn set_text(&mut self, name: &EnsName, key: &str, value: &str) -> Result<(), SandboxChainBuildError> {
        let texts = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        self.write_records(name, &SandboxRecordValues { texts: &texts, addr: None, addresses: &BTreeMap::new() })
    }

    /// Sets the address record of one coin type. Empty bytes remove it.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Unregistered`], [`SandboxChainBuildError::NoRecords`], or
    /// [`SandboxChainBuildError::Transaction`].
    pub fn set_address(&mut self, name: &EnsName, coin: CoinType, value: &Bytes) -> Result<(), SandboxChainBuildError> {
        let addresses = BTreeMap::from([(coin, value.clone())]);
        self.write_records(name, &SandboxRecordValues { texts: &BTreeMap::new(), addr: None, addresses: &addresses })
    }

    /// Changes the resolver of a registered name.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Unregistered`] or [`SandboxChainBuildError::Transaction`].
    pub fn set_resolver(&mut self, name: &EnsName, kind: &EnsResolverKind) -> Result<(), SandboxChainBuildError> {
        let node = name.namehash();
        let holding = self.registered_name(name)?;
        let (resolver, records) = self.deploy_resolver(kind)?;
        match holding.custody {
            CustodyContract::Registry => {
                self.send_transaction(holding.owner, REGISTRY, Registry::setResolverCall { node, resolver })
            }
            CustodyContract::NameWrapper => {
                self.send_transaction(holding.owner, NAME_WRAPPER, NameWrapper::setResolverCall { node, resolver })
            }
        }?;
        self.names.insert(node, SandboxRegisteredName { records, ..holding });
        Ok(())
    }

    /// Transfers a name that the registry holds to another account. Its records are kept.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Unregistered`], [`SandboxChainBuildError::Custody`] for a wrapped name, or
    /// [`SandboxChainBuildError::Transaction`].
    pub fn transfer_name(&mut self, name: &EnsName, to: Address) -> Result<(), SandboxChainBuildError> {
        let node = name.namehash();
        let holding = self.registered_name(name)?;
        if holding.custody != CustodyContract::Registry {
            return Err(SandboxChainBuildError::Custody(name.to_string()));
        }
        self.send_transaction(holding.owner, REGISTRY, Registry::setOwnerCall { node, owner: to })?;
        self.names.insert(node, SandboxRegisteredName { owner: to, ..holding });
        Ok(())
    }

    /// Migrates an unwrapped name and all names below it to ENSv2. If the name uses the public resolver, the builder
    /// replaces that by the resolver that keys records by id, and links the name to a new, empty record. The name keeps
    /// any other resolver.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Unregistered`], [`SandboxChainBuildError::Custody`] for a wrapped name,
    /// [`SandboxChainBuildError::NoRecords`] if its resolver accepts no records, or
    /// [`SandboxChainBuildError::Transaction`].
    pub fn migrate_to_ensv2(&mut self, name: &EnsName, traces: Ensv1Remnant) -> Result<(), SandboxChainBuildError> {
        let node = name.namehash();
        let holding = self.registered_name(name)?;
        if holding.custody != CustodyContract::Registry {
            return Err(SandboxChainBuildError::Custody(name.to_string()));
        }
        let mut ensv2 = self.ensure_ensv2()?;
        let (resolver, records) = match holding.records {
            SandboxRecordStorage::Public => (ensv2.resolver, SandboxRecordStorage::Record(ensv2.allocate_record_id())),
            SandboxRecordStorage::Own(resolver) => (resolver, holding.records),
            _ => return Err(SandboxChainBuildError::NoRecords(name.to_string())),
        };
        self.ensv2 = Some(ensv2);
        if let SandboxRecordStorage::Record(record) = records {
            self.send_transaction(OPERATOR, ensv2.resolver, record_link_call(node, name.dns_encoded(), record))?;
        }
        self.send_transaction(OPERATOR, UNIVERSAL_RESOLVER, UniversalResolverV2::migrateCall { node })?;
        self.send_transaction(OPERATOR, UNIVERSAL_RESOLVER, UniversalResolverV2::setResolverCall { node, resolver })?;
        let owner = match traces {
            Ensv1Remnant::Kept => holding.owner,
            Ensv1Remnant::Taken => MIGRATION_CONTROLLER,
            Ensv1Remnant::Cleared => Address::ZERO,
        };
        if owner != holding.owner {
            let set = Registry::setResolverCall { node, resolver: Address::ZERO };
            self.send_transaction(holding.owner, REGISTRY, set)?;
            self.send_transaction(holding.owner, REGISTRY, Registry::setOwnerCall { node, owner })?;
        }
        self.names.insert(node, SandboxRegisteredName { owner, records, ..holding });
        Ok(())
    }

    /// Links a migrated name to the record of another one, which changes all of its records at once.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Unregistered`], [`SandboxChainBuildError::NoRecords`] unless both have a record of the
    /// ENSv2 resolver, or [`SandboxChainBuildError::Transaction`].
    pub fn link_name_to_record_of(&mut self, name: &EnsName, to: &EnsName) -> Result<(), SandboxChainBuildError> {
        let no_records = |name: &EnsName| SandboxChainBuildError::NoRecords(name.to_string());
        let (SandboxRecordStorage::Record(_), Some(ensv2)) = (self.registered_name(name)?.records, self.ensv2) else {
            return Err(no_records(name));
        };
        let SandboxRecordStorage::Record(record) = self.registered_name(to)?.records else {
            return Err(no_records(to));
        };
        self.send_transaction(OPERATOR, ensv2.resolver, record_link_call(name.namehash(), name.dns_encoded(), record))
    }

    /// Deletes a name from ENSv2. From then on, the wildcard resolver of a migrated ancestor answers for the name.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Transaction`] unless a name has migrated.
    pub fn delete_from_ensv2(&mut self, name: &EnsName) -> Result<(), SandboxChainBuildError> {
        let delete = UniversalResolverV2::setResolverCall { node: name.namehash(), resolver: Address::ZERO };
        self.send_transaction(OPERATOR, UNIVERSAL_RESOLVER, delete)
    }

    /// The contracts of ENSv2. The first call deploys them; the Universal Resolver keeps its address.
    fn ensure_ensv2(&mut self) -> Result<Ensv2Deployment, SandboxChainBuildError> {
        if let Some(ensv2) = self.ensv2 {
            return Ok(ensv2);
        }
        self.deploy_contract_at(UNIVERSAL_RESOLVER, SandboxContract::UniversalResolverV2, &REGISTRY.abi_encode())?;
        let ensv2 = Ensv2Deployment::new(self.deploy_contract(SandboxContract::RecordResolver, &[])?);
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
    /// [`SandboxChainBuildError::Time`] unless `timestamp`, in whole seconds, is later than that of the previous block.
    pub fn seal_block(&mut self, timestamp: Timestamp) -> Result<ChainBlock, SandboxChainBuildError> {
        let seconds = unix_seconds(timestamp)?;
        let parent = self.blocks.last();
        if parent.is_some_and(|parent| parent.header.timestamp >= seconds) {
            return Err(SandboxChainBuildError::Time(timestamp));
        }
        let root = *self.root.get_or_insert_with(|| self.state.state_root());
        let transactions = std::mem::take(&mut self.transactions);
        let header = Header {
            logs_bloom: logs_bloom(transactions.iter().flat_map(|mined| &mined.logs)),
            receipts_root: receipts_root(&transactions),
            ..next_header(parent.map(Arc::as_ref), seconds, root)
        };
        let sealed = SandboxBlock::new(header, self.state.clone(), transactions);
        self.state.insert_block_hash(sealed.header.number, sealed.hash);
        let block = sealed.to_chain_block();
        self.blocks.push(Arc::new(sealed));
        Ok(block)
    }

    /// Makes the newest sealed block `finalized` and `safe`. Until the first call, this is always the newest block.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::NoBlock`].
    pub fn finalize_newest_block(&mut self) -> Result<(), SandboxChainBuildError> {
        self.finalized = Some(self.newest_block_number()?);
        Ok(())
    }

    /// The chain as sealed so far, without changes after the last block.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::NoBlock`].
    pub fn build(&self) -> Result<SandboxChain, SandboxChainBuildError> {
        let newest = self.newest_block_number()?;
        Ok(SandboxChain {
            blocks: self.blocks.clone(),
            finalized: self.finalized.unwrap_or(newest),
            gateway: self.gateway.clone(),
        })
    }

    fn newest_block_number(&self) -> Result<u64, SandboxChainBuildError> {
        self.blocks
            .last()
            .map(|block| block.header.number)
            .filter(|number| *number > 0)
            .ok_or(SandboxChainBuildError::NoBlock)
    }

    fn registered_name(&self, name: &EnsName) -> Result<SandboxRegisteredName, SandboxChainBuildError> {
        self.names.get(&name.namehash()).copied().ok_or_else(|| SandboxChainBuildError::Unregistered(name.to_string()))
    }

    /// Registers the missing ancestors of `name` and returns the node of its parent.
    fn ensure_ancestors(&mut self, name: &EnsName, custody: CustodyContract) -> Result<B256, SandboxChainBuildError> {
        let labels: Vec<&str> = name.labels().collect();
        let mut parent = ROOT_NODE;
        for label in labels.iter().skip(1).rev() {
            let node = subnode_hash(parent, keccak256(label));
            if !self.names.contains_key(&node) {
                let custody = if parent == ROOT_NODE { CustodyContract::Registry } else { custody };
                let holding =
                    SandboxRegisteredName { owner: OPERATOR, custody, records: SandboxRecordStorage::Nowhere };
                self.register_subname(
                    name,
                    parent,
                    SandboxSubnameRegistration { holding, label, resolver: Address::ZERO, expiry: FAR_FUTURE },
                )?;
                self.names.insert(node, holding);
            }
            parent = node;
        }
        Ok(parent)
    }

    fn register_subname(
        &mut self,
        name: &EnsName,
        parent: B256,
        claim: SandboxSubnameRegistration<'_>,
    ) -> Result<(), SandboxChainBuildError> {
        let SandboxSubnameRegistration {
            holding: SandboxRegisteredName { owner, custody, .. },
            label: text,
            resolver,
            expiry,
        } = claim;
        let (label, text) = (keccak256(text), text.to_owned());
        let parents = *self.names.get(&parent).ok_or_else(|| SandboxChainBuildError::Unregistered(name.to_string()))?;
        match (custody, parent == ETH_NODE) {
            (CustodyContract::Registry, true) => {
                let register = Registrar::registerCall { labelhash: label.into(), owner, expires: U256::from(expiry) };
                self.send_transaction(OPERATOR, REGISTRAR, register)?;
                let node = subnode_hash(parent, label);
                self.send_transaction(owner, REGISTRY, Registry::setResolverCall { node, resolver })?;
            }
            (CustodyContract::NameWrapper, true) => {
                let wrap = NameWrapper::registerAndWrapCall { label: text, owner, expires: expiry, resolver };
                self.send_transaction(OPERATOR, NAME_WRAPPER, wrap)?;
            }
            _ if parents.custody != custody => return Err(SandboxChainBuildError::Custody(name.to_string())),
            (CustodyContract::Registry, false) => {
                let set = Registry::setSubnodeRecordCall { node: parent, label, owner, resolver, ttl: 0 };
                self.send_transaction(parents.owner, REGISTRY, set)?;
            }
            (CustodyContract::NameWrapper, false) => {
                let set = NameWrapper::setSubnodeRecordCall { parent, label: text, owner, resolver, expiry };
                self.send_transaction(parents.owner, NAME_WRAPPER, set)?;
            }
        }
        Ok(())
    }

    fn deploy_resolver(
        &mut self,
        kind: &EnsResolverKind,
    ) -> Result<(Address, SandboxRecordStorage), SandboxChainBuildError> {
        match kind {
            EnsResolverKind::Public => Ok((self.public_resolver, SandboxRecordStorage::Public)),
            EnsResolverKind::None => Ok((Address::ZERO, SandboxRecordStorage::Nowhere)),
            EnsResolverKind::Address(address) => Ok((*address, SandboxRecordStorage::Nowhere)),
            EnsResolverKind::Wildcard => {
                let resolver = self.deploy_contract(SandboxContract::WildcardResolver, &[])?;
                Ok((resolver, SandboxRecordStorage::Own(resolver)))
            }
            EnsResolverKind::Offchain { urls } => {
                let arguments = (self.gateway.signer(), urls.clone()).abi_encode_params();
                Ok((
                    self.deploy_contract(SandboxContract::OffchainResolver, &arguments)?,
                    SandboxRecordStorage::Gateway,
                ))
            }
            EnsResolverKind::Hostile { mode, arg } => {
                let arguments = (U256::from(*mode as u8), arg.clone()).abi_encode_params();
                let resolver = self.deploy_contract(SandboxContract::HostileResolver, &arguments)?;
                Ok((resolver, SandboxRecordStorage::Own(resolver)))
            }
        }
    }

    fn send_transaction(
        &mut self,
        from: Address,
        to: Address,
        call: impl SolCall,
    ) -> Result<(), SandboxChainBuildError> {
        self.execute_transaction(from, TxKind::Call(to), call.abi_encode().into()).map(drop)
    }

    fn deploy_contract(
        &mut self,
        contract: SandboxContract,
        arguments: &[u8],
    ) -> Result<Address, SandboxChainBuildError> {
        match self.execute_transaction(OPERATOR, TxKind::Create, contract.creation_code(arguments))? {
            Output::Create(_, Some(address)) => Ok(address),
            Output::Create(_, None) | Output::Call(_) => {
                Err(SandboxChainBuildError::Transaction(format!("{contract:?} was not created")))
            }
        }
    }

    fn deploy_contract_at(
        &mut self,
        address: Address,
        contract: SandboxContract,
        arguments: &[u8],
    ) -> Result<(), SandboxChainBuildError> {
        let created = self.deploy_contract(contract, arguments)?;
        self.state.move_account(created, address);
        Ok(())
    }

    fn execute_transaction(
        &mut self,
        from: Address,
        kind: TxKind,
        data: Bytes,
    ) -> Result<Output, SandboxChainBuildError> {
        self.root = None;
        let transacted = self.state.execute_and_commit(from, kind, data.clone());
        let (executed, logs) = transacted.map_err(|rejected| SandboxChainBuildError::Transaction(rejected.0))?;
        match executed {
            SandboxEvmOutcome::Returned(output) => {
                self.transactions.push(MinedTransaction::new(from, kind, data, logs));
                Ok(output)
            }
            SandboxEvmOutcome::Reverted(data) => {
                Err(SandboxChainBuildError::Transaction(format!("reverted with {data}")))
            }
            SandboxEvmOutcome::Halted(cause) => Err(SandboxChainBuildError::Transaction(cause)),
        }
    }
}

struct SandboxRecordValues<'a> {
    texts: &'a BTreeMap<String, String>,
    addr: Option<Address>,
    addresses: &'a BTreeMap<CoinType, Bytes>,
}

/// The registration of one name below its parent.
struct SandboxSubnameRegistration<'a> {
    holding: SandboxRegisteredName,
    label: &'a str,
    resolver: Address,
    expiry: u64,
}

/// The header of the block after `parent`, or of block 0 if there is none.
fn next_header(parent: Option<&SandboxBlock>, timestamp: u64, state_root: B256) -> Header {
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

fn subnode_hash(parent: B256, label: B256) -> B256 {
    keccak256([parent, label].concat())
}

fn unix_seconds(timestamp: Timestamp) -> Result<u64, SandboxChainBuildError> {
    u64::try_from(timestamp.as_second()).map_err(|_| SandboxChainBuildError::Time(timestamp))
}
