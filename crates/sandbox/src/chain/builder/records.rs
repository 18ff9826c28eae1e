//! Writes the records of a name where they are stored.

use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::SolCall as _;
use clresolve_core::name::EnsName;
use clresolve_core::payment::CoinType;

use super::{OPERATOR, SandboxChainBuildError, SandboxChainBuilder, SandboxRecordStorage, SandboxRecordValues};
use crate::chain::abi::{Multicoin, OwnMulticoin, OwnResolver, PublicResolver, RecordResolver};

impl SandboxChainBuilder {
    pub(super) fn write_records(
        &mut self,
        name: &EnsName,
        values: &SandboxRecordValues<'_>,
    ) -> Result<(), SandboxChainBuildError> {
        let SandboxRecordValues { texts, addr, addresses } = values;
        if texts.is_empty() && addr.is_none() && addresses.is_empty() {
            return Ok(());
        }
        let node = name.namehash();
        let holding = self.registered_name(name)?;
        match holding.records {
            SandboxRecordStorage::Nowhere => Err(SandboxChainBuildError::NoRecords(name.to_string())),
            SandboxRecordStorage::Public => self.write_public_records(node, holding.owner, values),
            SandboxRecordStorage::Own(resolver) => self.write_own_resolver_records(resolver, values),
            SandboxRecordStorage::Record(record) => self.write_ensv2_records(U256::from(record), values),
            SandboxRecordStorage::Gateway => {
                texts.iter().for_each(|(key, value)| self.gateway.set_text(node, key, value));
                addr.iter().for_each(|value| self.gateway.set_addr(node, *value));
                addresses.iter().for_each(|(coin, value)| self.gateway.set_address(node, *coin, value));
                Ok(())
            }
        }
    }

    fn write_public_records(
        &mut self,
        node: B256,
        owner: Address,
        values: &SandboxRecordValues<'_>,
    ) -> Result<(), SandboxChainBuildError> {
        let SandboxRecordValues { texts, addr, addresses } = values;
        let set_texts = texts.iter().map(|(key, value)| {
            PublicResolver::setTextCall { node, key: key.clone(), value: value.clone() }.abi_encode().into()
        });
        let set_addr = addr.map(|value| PublicResolver::setAddrCall { node, value }.abi_encode().into());
        let set_addresses = addresses.iter().map(|(coin, value)| {
            let coin_type = U256::from(coin.number());
            Multicoin::setAddrCall { node, coinType: coin_type, value: value.clone() }.abi_encode().into()
        });
        let calls: Vec<Bytes> = set_texts.chain(set_addr).chain(set_addresses).collect();
        self.send_transaction(owner, self.public_resolver, PublicResolver::multicallCall { calls })
    }

    fn write_own_resolver_records(
        &mut self,
        resolver: Address,
        values: &SandboxRecordValues<'_>,
    ) -> Result<(), SandboxChainBuildError> {
        let SandboxRecordValues { texts, addr, addresses } = values;
        for (coin, value) in *addresses {
            let set = OwnMulticoin::setAddrCall { coinType: U256::from(coin.number()), value: value.clone() };
            self.send_transaction(OPERATOR, resolver, set)?;
        }
        for (key, value) in *texts {
            let set = OwnResolver::setTextCall { key: key.clone(), value: value.clone() };
            self.send_transaction(OPERATOR, resolver, set)?;
        }
        addr.map_or(Ok(()), |value| self.send_transaction(OPERATOR, resolver, OwnResolver::setAddrCall { value }))
    }

    fn write_ensv2_records(
        &mut self,
        record: U256,
        values: &SandboxRecordValues<'_>,
    ) -> Result<(), SandboxChainBuildError> {
        let SandboxRecordValues { texts, addr, addresses } = values;
        let resolver = self.ensure_ensv2()?.resolver;
        let ether = addr.iter().map(|value| (CoinType::ETHER, Bytes::copy_from_slice(value.as_slice())));
        for (coin, value) in ether.chain(addresses.iter().map(|(coin, value)| (*coin, value.clone()))) {
            let set = RecordResolver::setAddrCall { recordId: record, coinType: U256::from(coin.number()), value };
            self.send_transaction(OPERATOR, resolver, set)?;
        }
        for (key, value) in *texts {
            let set = RecordResolver::setTextCall { recordId: record, key: key.clone(), value: value.clone() };
            self.send_transaction(OPERATOR, resolver, set)?;
        }
        Ok(())
    }
}
