//! Bounds on foreign ABI data, checked before decoding.
//!
//! An ABI offset may point anywhere, so a few kilobytes can decode to gigabytes. [`check_abi_parameters`] validates an
//! encoding against a known [`AbiType`] without allocating, and refuses what no honest encoder writes. After that,
//! decoding is safe.

use alloy_primitives::U256;

const WORD: usize = 32;

/// Maximum number of elements of an array that a contract chooses.
pub(crate) const MAX_ELEMENTS: usize = 64;

/// The expected ABI type of a value.
pub(crate) enum AbiType {
    /// A value of one word: an integer, `address`, `bool`, `bytesN`.
    Word,
    Bytes,
    /// `T[]`, with its maximum number of elements.
    Array(&'static AbiType, usize),
    /// A tuple or a parameter list.
    Tuple(&'static [AbiType]),
}

/// Why an encoding is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AbiError {
    /// A word, a length or an offset points past the end.
    #[error("the ABI data ends too early")]
    Overrun,
    /// An offset points into the head, where the offsets themselves are.
    #[error("an ABI offset points into the head")]
    BadOffset,
    /// An array is longer than its shape allows.
    #[error("an ABI array has too many elements")]
    TooMany,
    /// The parts are longer than the whole, because several offsets point to the same data.
    #[error("parts of the ABI data overlap")]
    Aliased,
    /// The offsets are valid, but the decoder refuses the value.
    #[error("the ABI data contains a value that its type does not allow")]
    BadValue,
}

/// Checks that `data` encodes the parameters `shape`, and that its parts do not overlap.
///
/// # Errors
/// [`AbiError`] for the first violation.
pub(crate) fn check_abi_parameters(data: &[u8], shape: &'static [AbiType]) -> Result<(), AbiError> {
    let mut walk = AbiValidator { left: data.len() };
    walk.check_tuple(data, shape)
}

impl AbiType {
    const fn is_dynamic(&self) -> bool {
        match self {
            Self::Word => false,
            Self::Bytes | Self::Array(..) => true,
            Self::Tuple(parts) => has_dynamic_part(parts),
        }
    }

    /// The length of the value in its parent's head, in bytes.
    const fn head_length(&self) -> usize {
        match self {
            Self::Tuple(parts) if !has_dynamic_part(parts) => heads_length(parts),
            _ => WORD,
        }
    }
}

const fn has_dynamic_part(parts: &[AbiType]) -> bool {
    let mut i = 0;
    while i < parts.len() {
        if parts[i].is_dynamic() {
            return true;
        }
        i += 1;
    }
    false
}

const fn heads_length(parts: &[AbiType]) -> usize {
    let (mut i, mut sum) = (0, 0);
    while i < parts.len() {
        sum += parts[i].head_length();
        i += 1;
    }
    sum
}

/// A validation pass with its remaining budget. An encoding without overlaps is at least as long as its parts together,
/// so the budget is the length of the data. The recursion is as deep as the shape, which is a constant.
struct AbiValidator {
    left: usize,
}

impl AbiValidator {
    fn check_tuple(&mut self, region: &[u8], parts: &'static [AbiType]) -> Result<(), AbiError> {
        let head = heads_length(parts);
        self.charge_bytes(head)?;
        let mut at = 0;
        for part in parts {
            if part.is_dynamic() {
                self.check_tail(offset_target(region, at, head)?, part)?;
            } else {
                region.get(at..at + part.head_length()).ok_or(AbiError::Overrun)?;
            }
            at += part.head_length();
        }
        Ok(())
    }

    fn check_array(&mut self, tail: &[u8], element: &'static AbiType, most: usize) -> Result<(), AbiError> {
        let count = decode_length(tail, 0)?;
        if count > most {
            return Err(AbiError::TooMany);
        }
        self.charge_bytes(WORD)?;
        let region = &tail[WORD..];
        let step = element.head_length();
        let head = count * step;
        region.get(..head).ok_or(AbiError::Overrun)?;
        self.charge_bytes(head)?;
        if !element.is_dynamic() {
            return Ok(());
        }
        (0..count).try_for_each(|i| self.check_tail(offset_target(region, i * step, head)?, element))
    }

    fn check_bytes(&mut self, tail: &[u8]) -> Result<(), AbiError> {
        let len = decode_length(tail, 0)?;
        let end = WORD.checked_add(len).ok_or(AbiError::Overrun)?;
        tail.get(..end).ok_or(AbiError::Overrun)?;
        self.charge_bytes(end)
    }

    /// Checks the part at an offset.
    fn check_tail(&mut self, tail: &[u8], shape: &'static AbiType) -> Result<(), AbiError> {
        match shape {
            AbiType::Word => Ok(()),
            AbiType::Bytes => self.check_bytes(tail),
            AbiType::Array(element, most) => self.check_array(tail, element, *most),
            AbiType::Tuple(parts) => self.check_tuple(tail, parts),
        }
    }

    fn charge_bytes(&mut self, bytes: usize) -> Result<(), AbiError> {
        self.left = self
            .left
            .checked_sub(if clresolve_core::mutant!("parts-overlap") { 0 } else { bytes })
            .ok_or(AbiError::Aliased)?;
        Ok(())
    }
}

/// The target of the offset at `at` in `region`. An offset must not point into the first `head` bytes of the region.
fn offset_target(region: &[u8], at: usize, head: usize) -> Result<&[u8], AbiError> {
    let offset = decode_length(region, at)?;
    if offset < head {
        return Err(AbiError::BadOffset);
    }
    region.get(offset..).ok_or(AbiError::Overrun)
}

/// Decodes the word at `at` as a number of bytes or elements.
fn decode_length(region: &[u8], at: usize) -> Result<usize, AbiError> {
    let word = region.get(at..).and_then(|rest| rest.first_chunk::<WORD>()).ok_or(AbiError::Overrun)?;
    U256::from_be_bytes(*word).try_into().map_err(|_| AbiError::Overrun)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Bytes, hex};
    use alloy_sol_types::SolValue;
    use proptest::prelude::*;

    use super::*;

    const BYTES: &[AbiType] = &[AbiType::Bytes];
    const LIST: &[AbiType] = &[AbiType::Array(&AbiType::Bytes, MAX_ELEMENTS)];
    const RESULTS: &[AbiType] = &[
        AbiType::Word,
        AbiType::Word,
        AbiType::Array(&AbiType::Tuple(&[AbiType::Word, AbiType::Bytes]), MAX_ELEMENTS),
    ];

    type Results = (U256, U256, Vec<(bool, Bytes)>);

    fn word(value: usize) -> [u8; WORD] {
        U256::from(value).to_be_bytes()
    }

    fn words(values: &[usize]) -> Vec<u8> {
        values.iter().flat_map(|value| word(*value)).collect()
    }

    #[test]
    fn what_an_encoder_writes_passes() {
        assert_eq!(check_abi_parameters(&Bytes::from_static(b"cl.entry").abi_encode(), BYTES), Ok(()));
        assert_eq!(check_abi_parameters(&Bytes::new().abi_encode(), BYTES), Ok(()));
        assert_eq!(check_abi_parameters(&Vec::<Bytes>::new().abi_encode(), LIST), Ok(()));
        let results: Results = (U256::ONE, U256::ZERO, vec![(true, Bytes::from(vec![7; 100])), (false, Bytes::new())]);
        assert_eq!(check_abi_parameters(&results.abi_encode_params(), RESULTS), Ok(()));
    }

    #[test]
    fn elements_that_share_a_place_are_refused() {
        let text = Bytes::from(vec![b'a'; 4096]).abi_encode();
        let count = 40;
        let mut data = words(&[WORD, count]);
        data.extend(word(count * WORD).repeat(count));
        data.extend(&text[WORD..]);
        assert_eq!(check_abi_parameters(&data, LIST), Err(AbiError::Aliased));
    }

    #[test]
    fn a_length_word_in_the_head_is_refused() {
        assert_eq!(check_abi_parameters(&words(&[0, 5, 0]), BYTES), Err(AbiError::BadOffset));
        assert_eq!(check_abi_parameters(&words(&[WORD, 2, 0, 64, 0]), LIST), Err(AbiError::BadOffset));
    }

    #[test]
    fn absurd_lengths_and_offsets_are_refused() {
        let absurd = [0xff; WORD];
        for data in [[absurd, word(5)].concat(), [word(WORD), absurd].concat(), [word(WORD), word(33)].concat()] {
            assert_eq!(check_abi_parameters(&data, BYTES), Err(AbiError::Overrun));
            assert_eq!(check_abi_parameters(&data, LIST), Err(AbiError::Overrun));
        }
        assert_eq!(check_abi_parameters(&words(&[WORD, MAX_ELEMENTS + 1]), LIST), Err(AbiError::TooMany));
        assert_eq!(check_abi_parameters(&words(&[WORD, 1 << 40]), LIST), Err(AbiError::TooMany));
        assert_eq!(check_abi_parameters(&[], BYTES), Err(AbiError::Aliased));
        assert_eq!(check_abi_parameters(&hex!("deadbeef"), BYTES), Err(AbiError::Aliased));
    }

    #[test]
    fn a_length_near_the_largest_number_does_not_wrap() {
        let data = [word(WORD), word(usize::MAX)].concat();
        assert_eq!(check_abi_parameters(&data, BYTES), Err(AbiError::Overrun));
    }

    proptest! {
        #[test]
        fn every_honest_encoding_passes(items in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)), 0..20)) {
            let items = items.into_iter().map(|(ok, data)| (ok, Bytes::from(data))).collect::<Vec<_>>();
            let results: Results = (U256::MAX, U256::ZERO, items);
            prop_assert_eq!(check_abi_parameters(&results.abi_encode_params(), RESULTS), Ok(()));
        }

        #[test]
        fn what_passes_decodes_to_no_more_than_its_length(mut data in prop::collection::vec(any::<u8>(), 0..600), spots in prop::collection::vec((0usize..18, 0usize..640), 0..12)) {
            for (index, value) in spots {
                if let Some(spot) = data.get_mut(index * WORD..(index + 1) * WORD) {
                    spot.copy_from_slice(&word(value));
                }
            }
            if check_abi_parameters(&data, RESULTS).is_ok()
                && let Ok((_, _, items)) = Results::abi_decode_params(&data)
            {
                prop_assert!(items.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= data.len());
            }
        }
    }
}
