//! Unsigned LEB128 numbers (varints), as in protobuf, CIDs and CAR sections.

/// Maximum length of a 64-bit number, in bytes.
const MAX_BYTES: usize = 10;

/// Why bytes do not start with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VarintError {
    /// The bytes end before the number does. More bytes may complete it.
    Truncated,
    /// The number is padded, or does not fit into 64 bits.
    Invalid,
}

/// Splits a number off the start of `bytes`. Only the shortest encoding of a number is accepted.
pub(super) fn split_varint(bytes: &[u8]) -> Result<(u64, &[u8]), VarintError> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().take(MAX_BYTES).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let is_last = byte & 0x80 == 0;
        let overflows = index == MAX_BYTES - 1 && bits > 1;
        let is_padding = index > 0 && is_last && bits == 0;
        if overflows || is_padding {
            return Err(VarintError::Invalid);
        }
        value |= bits << (7 * index);
        if is_last {
            return Ok((value, &bytes[index + 1..]));
        }
    }
    if bytes.len() < MAX_BYTES { Err(VarintError::Truncated) } else { Err(VarintError::Invalid) }
}

/// Appends the encoding of `value` to `out`.
pub(crate) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(0x80 | (value & 0x7f) as u8);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_comes_back() {
        for shift in 0..64 {
            for value in [1_u64 << shift, (1_u64 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                write_varint(value, &mut bytes);
                bytes.push(7);
                assert_eq!(split_varint(&bytes), Ok((value, &[7][..])));
            }
        }
    }

    #[test]
    fn padding_overflow_and_cuts_differ() {
        assert_eq!(split_varint(&[]), Err(VarintError::Truncated));
        assert_eq!(split_varint(&[0x80]), Err(VarintError::Truncated));
        assert_eq!(split_varint(&[0x80, 0x00]), Err(VarintError::Invalid));
        assert_eq!(split_varint(&[0xff; 9]), Err(VarintError::Truncated));
        assert_eq!(split_varint(&[0xff; 10]), Err(VarintError::Invalid));
        let mut two_to_the_64 = [0x80; 10];
        two_to_the_64[9] = 2;
        assert_eq!(split_varint(&two_to_the_64), Err(VarintError::Invalid));
    }
}
