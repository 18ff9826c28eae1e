//! Strict reading and writing of SSZ: no gaps, every offset exact.

use alloy_primitives::{B256, FixedBytes};

use crate::error::{LightClientError, SszContainerKind, SszError};

/// Reads the fields of one container in order.
pub(crate) struct SszReader<'a> {
    container: SszContainerKind,
    bytes: &'a [u8],
    position: usize,
    offsets: Vec<usize>,
}

impl<'a> SszReader<'a> {
    pub(crate) const fn new(container: SszContainerKind, bytes: &'a [u8]) -> Self {
        Self { container, bytes, position: 0, offsets: Vec::new() }
    }

    pub(crate) fn read_bytes(&mut self, length: usize) -> Result<&'a [u8], LightClientError> {
        let field = self.remaining_bytes().get(..length).ok_or_else(|| self.ssz_error(SszError::Truncated))?;
        self.position += length;
        Ok(field)
    }

    pub(crate) fn read_fixed_bytes<const N: usize>(&mut self) -> Result<FixedBytes<N>, LightClientError> {
        self.read_bytes(N).map(FixedBytes::from_slice)
    }

    pub(crate) fn read_fixed_bytes_list<const N: usize>(
        &mut self,
        count: usize,
    ) -> Result<Vec<FixedBytes<N>>, LightClientError> {
        let fields = self.read_bytes(count * N)?;
        Ok(fields.chunks_exact(N).map(FixedBytes::from_slice).collect())
    }

    pub(crate) fn read_u64(&mut self) -> Result<u64, LightClientError> {
        self.read_fixed_bytes().map(|bytes| u64::from_le_bytes(bytes.0))
    }

    /// Notes the offset of a field of variable length.
    pub(crate) fn read_offset(&mut self) -> Result<(), LightClientError> {
        let offset = u32::from_le_bytes(self.read_fixed_bytes()?.0);
        self.offsets.push(usize::try_from(offset).unwrap_or(usize::MAX));
        Ok(())
    }

    /// The bytes after the fields that were read.
    pub(crate) fn remaining_bytes(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// The fields of variable length, after all fields were read. The first begins where the fixed part ends, and each
    /// other where its predecessor does.
    pub(crate) fn into_variable_fields<const N: usize>(self) -> Result<[&'a [u8]; N], LightClientError> {
        let ends = self.offsets.iter().skip(1).copied().chain([self.bytes.len()]);
        let fields = self.offsets.iter().zip(ends).map(|(begin, end)| self.bytes.get(*begin..end));
        let fields: Option<Vec<&[u8]>> = fields.collect();
        let begins_at_end = self.offsets.first().is_none_or(|first| *first == self.position);
        let begins_at_end = begins_at_end || clresolve_core::mutant!("beacon-offsets");
        let fields = fields.filter(|_| begins_at_end).ok_or_else(|| self.ssz_error(SszError::Offset))?;
        fields.try_into().map_err(|_| self.ssz_error(SszError::Offset))
    }

    const fn ssz_error(&self, flaw: SszError) -> LightClientError {
        LightClientError::Ssz { container: self.container, flaw }
    }
}

/// Writes the fields of one container in order.
#[derive(Default)]
pub(crate) struct SszWriter {
    fixed: Vec<u8>,
    /// Fields of variable length, each with the position of its offset.
    variable: Vec<(usize, Vec<u8>)>,
}

impl SszWriter {
    pub(crate) fn write_bytes(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.fixed.extend_from_slice(bytes.as_ref());
        self
    }

    pub(crate) fn write_u64(&mut self, number: u64) -> &mut Self {
        self.write_bytes(number.to_le_bytes())
    }

    pub(crate) fn write_roots(&mut self, roots: &[B256]) -> &mut Self {
        roots.iter().for_each(|root| {
            self.write_bytes(root);
        });
        self
    }

    pub(crate) fn write_variable_field(&mut self, bytes: Vec<u8>) -> &mut Self {
        self.variable.push((self.fixed.len(), bytes));
        self.write_bytes([0; 4])
    }

    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.fixed);
        for (position, field) in self.variable.drain(..) {
            let offset = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            bytes[position..position + 4].copy_from_slice(&offset.to_le_bytes());
            bytes.extend(field);
        }
        bytes
    }
}
