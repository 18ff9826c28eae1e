//! [`ContentId`]: a CID against which bytes can be verified.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use ::cid::multibase::Base;
use ::cid::{CidGeneric, Version};
use multihash::Multihash;
use sha2::Digest;

use super::varint;

/// Codec of a block of plain bytes.
pub(crate) const CODEC_RAW: u64 = 0x55;
/// Codec of a block with links and data, such as UnixFS files and directories.
pub(crate) const CODEC_DAG_PB: u64 = 0x70;

/// Maximum length of a digest, in bytes: the longest identity digest that boxo, helia and IPIP-512 accept.
///
/// An identity digest is the content itself, so without a bound a CID could have any size.
pub const MAX_DIGEST_BYTES: usize = 128;

/// Maximum length of a text that is decoded from a base with quadratic cost (base58, base36), in bytes.
///
/// The longest allowed CID has 265 characters in base16. A longer text in such a base is either not a CID or a CID
/// with an oversized digest, so only its characters are checked. The other bases are decoded in linear time.
pub const MAX_TEXT_BYTES: usize = 2048;

/// The supported multibase encodings. Base2, base8, base10, emoji and the like are not supported: CIDs are not
/// published in them, and each would add a decoder for foreign text.
const BASES: [Base; 14] = [
    Base::Base16Lower,
    Base::Base16Upper,
    Base::Base32Lower,
    Base::Base32Upper,
    Base::Base32PadLower,
    Base::Base32PadUpper,
    Base::Base36Lower,
    Base::Base36Upper,
    Base::Base58Btc,
    Base::Base58Flickr,
    Base::Base64,
    Base::Base64Pad,
    Base::Base64Url,
    Base::Base64UrlPad,
];

/// A content identifier with an allowed hash function and a complete digest.
///
/// Two CIDs are equal if their bytes are equal after CIDv0 is converted to CIDv1. Text form, multibase and version do
/// not matter.
#[derive(Clone, Copy)]
pub struct ContentId(CidGeneric<MAX_DIGEST_BYTES>);

impl ContentId {
    /// Parses the text form: `Qm…` (version 0) or a multibase text (version 1), with nothing before or after it.
    ///
    /// # Errors
    /// [`CidError::Malformed`] if the text is not a CID, [`CidError::HashForbidden`] if its hash is not on the
    /// allow-list or its digest does not have the full length.
    pub fn parse(text: &str) -> Result<Self, CidError> {
        let (bytes, version) = decode_cid_text(text)?;
        let parts = CidParts::parse_exact(&bytes).map_err(malformed_error)?;
        if parts.version != version {
            return Err(malformed_error("only a bare base58 text that begins with Qm is a CID of version 0"));
        }
        Ok(parts.into_content_id()?)
    }

    /// Parses the binary form. `bytes` must be exactly one CID.
    ///
    /// # Errors
    /// See [`ContentId::parse`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CidError> {
        Ok(CidParts::parse_exact(bytes).map_err(malformed_error)?.into_content_id()?)
    }

    /// The CID of `bytes` as a raw block, with SHA-256.
    pub fn from_raw_block(bytes: &[u8]) -> Self {
        Self::from_sha2_256(CODEC_RAW, bytes)
    }

    /// The CID of `block` as a dag-pb block, with SHA-256.
    pub fn from_dag_pb_block(block: &[u8]) -> Self {
        Self::from_sha2_256(CODEC_DAG_PB, block)
    }

    /// The CIDv0 of `block`, which must be a dag-pb block.
    pub fn from_dag_pb_block_v0(block: &[u8]) -> Self {
        Self(CidGeneric::new_v0(sha2_256_multihash(block)).expect("version 0 is for SHA-256"))
    }

    fn from_sha2_256(codec: u64, bytes: &[u8]) -> Self {
        Self(CidGeneric::new_v1(codec, sha2_256_multihash(bytes)))
    }

    /// Whether the hash of `block` matches this CID.
    pub fn is_cid_of_block(&self, block: &[u8]) -> bool {
        AllowedHashFunction::from_code(self.0.hash().code())
            .is_some_and(|function| function.is_matching_digest(block, self.0.hash().digest()))
    }

    /// The content of an identity CID, which needs no block.
    pub fn identity_content(&self) -> Option<&[u8]> {
        let hash = self.0.hash();
        (hash.code() == AllowedHashFunction::IDENTITY).then(|| hash.digest())
    }

    /// The multicodec of the block.
    pub fn codec(&self) -> u64 {
        self.0.codec()
    }

    /// Whether the block is the content of the file itself.
    pub fn is_raw(&self) -> bool {
        self.codec() == CODEC_RAW
    }

    /// The same content as a CIDv1.
    #[must_use]
    pub fn to_v1(&self) -> Self {
        Self(CidGeneric::new_v1(self.0.codec(), *self.0.hash()))
    }

    /// The binary form, in the version in which this CID was given.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// The hash alone. It identifies the bytes, independent of the codec.
    pub(super) fn multihash(&self) -> Multihash<MAX_DIGEST_BYTES> {
        *self.0.hash()
    }

    fn comparison_key(&self) -> (u64, u64, &[u8]) {
        (self.0.codec(), self.0.hash().code(), self.0.hash().digest())
    }
}

fn sha2_256_multihash(bytes: &[u8]) -> Multihash<MAX_DIGEST_BYTES> {
    Multihash::wrap(AllowedHashFunction::SHA2_256, &sha2::Sha256::digest(bytes))
        .expect("a SHA-256 digest has 32 bytes, fewer than MAX_DIGEST_BYTES")
}

impl PartialEq for ContentId {
    fn eq(&self, other: &Self) -> bool {
        self.comparison_key() == other.comparison_key()
    }
}

impl Eq for ContentId {}

impl Hash for ContentId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.comparison_key().hash(state);
    }
}

impl PartialOrd for ContentId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ContentId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.comparison_key().cmp(&other.comparison_key())
    }
}

/// Base58 for version 0, base32 for version 1.
impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentId({self})")
    }
}

impl FromStr for ContentId {
    type Err = CidError;

    fn from_str(text: &str) -> Result<Self, CidError> {
        Self::parse(text)
    }
}

/// Why a value is not a [`ContentId`]. The messages contain no foreign text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CidError {
    /// The value is not exactly one CID.
    #[error("not a CID: {0}")]
    Malformed(String),
    /// The value is a CID, but its hash is unknown, broken or truncated, or is an identity digest longer than
    /// [`MAX_DIGEST_BYTES`].
    #[error("the CID proves nothing: {0}")]
    HashForbidden(String),
}

fn malformed_error(why: &str) -> CidError {
    CidError::Malformed(why.to_owned())
}

/// The bytes that a text encodes, and the CID version that this encoding allows.
fn decode_cid_text(text: &str) -> Result<(Vec<u8>, Version), CidError> {
    if !text.is_ascii() {
        return Err(malformed_error("the text has characters outside ASCII"));
    }
    let bad_text = |_| malformed_error("the text has characters outside its base's alphabet, or is cut short");
    if Version::is_v0_str(text) {
        return Ok((Base::Base58Btc.decode(text).map_err(bad_text)?, Version::V0));
    }
    let prefix = text.chars().next().ok_or_else(|| malformed_error("the text is empty"))?;
    let base = BASES
        .into_iter()
        .find(|base| base.code() == prefix)
        .ok_or_else(|| malformed_error("the first character is no multibase prefix that CIDs use"))?;
    if text.len() > MAX_TEXT_BYTES && QUADRATIC.contains(&base) {
        return Err(cid_text_too_long_error(text, base));
    }
    Ok((base.decode(&text[1..]).map_err(bad_text)?, Version::V1))
}

/// Bases whose digits do not represent a whole number of bits. Decoding them has quadratic cost.
const QUADRATIC: [Base; 4] = [Base::Base36Lower, Base::Base36Upper, Base::Base58Btc, Base::Base58Flickr];

/// Number of digits decoded at a time if only their alphabet is checked.
const DIGITS_AT_ONCE: usize = 64;

/// The error for a text of more than [`MAX_TEXT_BYTES`] in one of the [`QUADRATIC`] bases.
fn cid_text_too_long_error(text: &str, base: Base) -> CidError {
    let mut digits = text.as_bytes()[1..].chunks(DIGITS_AT_ONCE).map(str::from_utf8);
    let is_of_base = digits.all(|digits| digits.is_ok_and(|digits| base.decode(digits).is_ok()));
    if is_of_base && !mutant!("long-inline-cids-are-malformed") {
        return CidError::HashForbidden(format!("a CID of {} characters has too long a digest", text.len()));
    }
    malformed_error("the text has characters outside its base's alphabet")
}

/// A well-formed CID that borrows its bytes. Its hash function and digest length are not checked yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct CidParts<'a> {
    version: Version,
    codec: u64,
    hash: u64,
    digest: &'a [u8],
}

impl<'a> CidParts<'a> {
    /// Splits a CID off the start of `bytes`.
    pub(super) fn parse_prefix(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), &'static str> {
        if let Some(rest) = bytes.strip_prefix(&[AllowedHashFunction::SHA2_256 as u8, 32]) {
            let (digest, rest) = rest.split_at_checked(32).ok_or("the digest is cut short")?;
            let parts = Self { version: Version::V0, codec: CODEC_DAG_PB, hash: AllowedHashFunction::SHA2_256, digest };
            return Ok((parts, rest));
        }
        let (version, rest) = split_unsigned_varint(bytes)?;
        if version != 1 {
            return Err("the version is neither 0 nor 1");
        }
        let (codec, rest) = split_unsigned_varint(rest)?;
        let (hash, rest) = split_unsigned_varint(rest)?;
        let (length, rest) = split_unsigned_varint(rest)?;
        let (digest, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length))
            .ok_or("the digest is cut short")?;
        Ok((Self { version: Version::V1, codec, hash, digest }, rest))
    }

    /// Parses `bytes` as exactly one CID.
    pub(super) fn parse_exact(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let (parts, rest) = Self::parse_prefix(bytes)?;
        if rest.is_empty() { Ok(parts) } else { Err("bytes follow the digest") }
    }

    /// Whether the digest is longer than [`MAX_DIGEST_BYTES`].
    pub(super) fn has_oversized_digest(&self) -> bool {
        self.digest.len() > MAX_DIGEST_BYTES
    }

    /// The CID, if its hash function is allowed and its digest is complete.
    pub(super) fn into_content_id(self) -> Result<ContentId, ForbiddenCidHash> {
        let forbidden = ForbiddenCidHash { code: self.hash, length: self.digest.len() };
        if !AllowedHashFunction::from_code(self.hash)
            .is_some_and(|function| function.is_full_digest_length(self.digest.len()))
        {
            return Err(forbidden);
        }
        let hash = Multihash::wrap(self.hash, self.digest).map_err(|_| forbidden)?;
        CidGeneric::new(self.version, self.codec, hash).map(ContentId).map_err(|_| forbidden)
    }
}

/// Splits a number of at most 63 bits, in multiformats encoding, off the start of `bytes`.
fn split_unsigned_varint(bytes: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    match varint::split_varint(bytes) {
        Ok((value, rest)) if value <= i64::MAX as u64 => Ok((value, rest)),
        Ok(_) | Err(varint::VarintError::Invalid) => Err("a number is padded or too large"),
        Err(varint::VarintError::Truncated) => Err("a number is cut short"),
    }
}

/// The hash of a well-formed CID, if it is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForbiddenCidHash {
    code: u64,
    length: usize,
}

impl ForbiddenCidHash {
    /// Whether it is an identity hash with too much content.
    pub(super) fn is_long_identity(self) -> bool {
        self.code == AllowedHashFunction::IDENTITY
    }
}

impl fmt::Display for ForbiddenCidHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, length } = self;
        if self.is_long_identity() {
            return write!(f, "inline content of {length} bytes; at most {MAX_DIGEST_BYTES} are allowed");
        }
        match AllowedHashFunction::from_code(*code) {
            Some(function) => write!(f, "a digest of {length} bytes is not a full {function:?} digest"),
            None => write!(f, "the hash function 0x{code:x} is not on the allow-list"),
        }
    }
}

impl From<ForbiddenCidHash> for CidError {
    fn from(forbidden: ForbiddenCidHash) -> Self {
        Self::HashForbidden(forbidden.to_string())
    }
}

/// The allow-list of hash functions: those without any foreseeable second-preimage attack.
#[derive(Clone, Copy, Debug)]
enum AllowedHashFunction {
    Identity,
    Sha2_256,
    Sha2_512,
    Blake2b256,
    Blake3,
}

impl AllowedHashFunction {
    const IDENTITY: u64 = 0x00;
    const SHA2_256: u64 = 0x12;
    const SHA2_512: u64 = 0x13;
    const BLAKE3: u64 = 0x1e;
    const BLAKE2B_256: u64 = 0xb220;

    fn from_code(code: u64) -> Option<Self> {
        match code {
            Self::IDENTITY => Some(Self::Identity),
            Self::SHA2_256 => Some(Self::Sha2_256),
            Self::SHA2_512 => Some(Self::Sha2_512),
            Self::BLAKE3 => Some(Self::Blake3),
            Self::BLAKE2B_256 => Some(Self::Blake2b256),
            _ => None,
        }
    }

    /// Whether `length` is the full length of a digest, in bytes. A truncated digest is easier to forge; an empty one
    /// matches everything.
    fn is_full_digest_length(self, length: usize) -> bool {
        match self {
            Self::Identity => length <= MAX_DIGEST_BYTES,
            Self::Sha2_512 => length == 64,
            Self::Sha2_256 | Self::Blake2b256 | Self::Blake3 => length == 32 || mutant!("short-digests"),
        }
    }

    fn is_matching_digest(self, block: &[u8], digest: &[u8]) -> bool {
        match self {
            Self::Identity => block == digest,
            Self::Sha2_256 => sha2::Sha256::digest(block)[..] == *digest,
            Self::Sha2_512 => sha2::Sha512::digest(block)[..] == *digest,
            Self::Blake2b256 => blake2::Blake2b256::digest(block)[..] == *digest,
            Self::Blake3 => blake3::hash(block).as_bytes()[..] == *digest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V0: &str = "Qmb2qmoVeWDmAVtcFEq2tnoc5vQnE5RZ89y8Dk6xFppPqj";

    fn of(hash: u64, digest: &[u8]) -> Result<ContentId, CidError> {
        let mut bytes = vec![1, CODEC_RAW as u8];
        varint::write_varint(hash, &mut bytes);
        varint::write_varint(digest.len() as u64, &mut bytes);
        bytes.extend(digest);
        ContentId::from_bytes(&bytes)
    }

    #[test]
    fn version_0_equals_its_lift_to_version_1() {
        let v0 = ContentId::parse(V0).unwrap();
        let v1 = ContentId::parse(&v0.to_v1().to_string()).unwrap();
        assert_eq!(v0, v1);
        assert_eq!(v0.cmp(&v1), Ordering::Equal);
        assert_eq!(v0.to_string(), V0);
        assert!(v1.to_string().starts_with("bafybei"));
        assert_ne!(v0.to_bytes(), v1.to_bytes());
    }

    #[test]
    fn codec_and_hash_function_tell_cids_apart() {
        assert_ne!(ContentId::from_raw_block(b"x"), ContentId::from_dag_pb_block(b"x"));
        assert_ne!(of(0x12, &[7; 32]), of(0x1e, &[7; 32]));
    }

    #[test]
    fn only_whole_digests_of_listed_functions_pass() {
        for (hash, length) in [(0x00, 0), (0x00, 128), (0x12, 32), (0x13, 64), (0x1e, 32), (0xb220, 32)] {
            assert!(of(hash, &vec![0; length]).is_ok(), "{hash:x} {length}");
        }
        for (hash, length) in [
            (0x00, 129),
            (0x11, 20),
            (0x12, 0),
            (0x12, 31),
            (0x12, 33),
            (0x12, 200),
            (0x13, 32),
            (0x1e, 64),
            (0x22, 8),
            (0xb220, 20),
            (0x56, 32),
        ] {
            let error = of(hash, &vec![0; length]).unwrap_err();
            assert!(matches!(error, CidError::HashForbidden(_)), "{hash:x} {length}: {error}");
        }
    }

    #[test]
    fn inline_content_that_is_too_long_is_forbidden_however_long() {
        for length in [MAX_DIGEST_BYTES + 1, 1000, 5000, 200_000] {
            let mut bytes = vec![1, CODEC_RAW as u8, 0];
            varint::write_varint(length as u64, &mut bytes);
            bytes.resize(bytes.len() + length, b'{');
            for base in BASES.into_iter().filter(|base| length < MAX_TEXT_BYTES || !QUADRATIC.contains(base)) {
                let error = ContentId::parse(&::cid::multibase::encode(base, &bytes)).unwrap_err();
                assert!(matches!(error, CidError::HashForbidden(_)), "{length} {base:?}: {error}");
            }
        }
        for prefix in ["z", "Z", "k", "K"] {
            let long = |tail: &str| ContentId::parse(&(prefix.to_owned() + &"2".repeat(100_000) + tail)).unwrap_err();
            assert!(matches!(long(""), CidError::HashForbidden(_)), "{prefix}");
            assert!(matches!(long("!"), CidError::Malformed(_)), "{prefix}");
        }
        // Base36 accepts digits of either case.
        for (begin, is_of_base) in
            [("z0", false), ("zl", false), ("ZI", false), ("ZO", false), ("kA", true), ("Ka", true)]
        {
            for tail in ["2".repeat(3000), begin[1..].repeat(3000)] {
                let error = ContentId::parse(&(begin.to_owned() + &tail)).unwrap_err();
                assert_eq!(matches!(error, CidError::HashForbidden(_)), is_of_base, "{begin}: {error}");
            }
        }
        let mut short = vec![1, CODEC_RAW as u8, 0];
        varint::write_varint(200_000, &mut short);
        short.resize(100_000, b'{');
        let error = ContentId::parse(&::cid::multibase::encode(Base::Base32Lower, &short)).unwrap_err();
        assert!(matches!(error, CidError::Malformed(_)), "it is cut short: {error}");
    }

    #[test]
    fn each_function_accepts_its_block_and_no_other() {
        let block = b"block";
        let digests: [(u64, Vec<u8>); 5] = [
            (0x00, block.to_vec()),
            (0x12, sha2::Sha256::digest(block).to_vec()),
            (0x13, sha2::Sha512::digest(block).to_vec()),
            (0xb220, blake2::Blake2b256::digest(block).to_vec()),
            (0x1e, blake3::hash(block).as_bytes().to_vec()),
        ];
        for (hash, digest) in digests {
            let cid = of(hash, &digest).unwrap();
            assert!(cid.is_cid_of_block(block), "{hash:x}");
            assert!(!cid.is_cid_of_block(b"blocK"), "{hash:x}");
            assert!(!cid.is_cid_of_block(b""), "{hash:x}");
            assert_eq!(cid.identity_content().is_some(), hash == 0);
        }
    }

    #[test]
    fn text_around_a_cid_is_refused() {
        for text in ["", " ", "Qm", "b", "🚀x", "\0x", "/ipfs/bafkqaaa", "bafkqaaa ", " bafkqaaa", "bafkqaaa/x"] {
            assert!(matches!(ContentId::parse(text), Err(CidError::Malformed(_))), "{text:?}");
        }
        assert!(matches!(ContentId::parse(&"b".repeat(MAX_TEXT_BYTES + 1)), Err(CidError::Malformed(_))));
        assert_eq!(ContentId::parse("bafkqaaa").unwrap().identity_content(), Some(&[][..]));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_parsers_panic(bytes: Vec<u8>, text: String) {
            let _ = ContentId::parse(&text);
            if let Ok(cid) = ContentId::from_bytes(&bytes) {
                proptest::prop_assert_eq!(cid.to_bytes(), bytes);
            }
        }

        #[test]
        fn text_and_bytes_come_back(content: Vec<u8>) {
            let cid = ContentId::from_raw_block(&content);
            proptest::prop_assert!(cid.is_cid_of_block(&content));
            proptest::prop_assert_eq!(ContentId::parse(&cid.to_string()).unwrap(), cid);
            proptest::prop_assert_eq!(ContentId::from_bytes(&cid.to_bytes()).unwrap(), cid);
        }
    }
}
