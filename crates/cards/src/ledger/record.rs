//! One record of a ledger, in the JSON encoding that Aevum publishes for PACR records.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use clresolve_core::json;
use clresolve_core::json::{JsonError, JsonLimits};
use clresolve_core::text::{UntrustedText, excerpt_text};

/// Maximum length of a line in bytes: a payload with a card of 256 KiB, in base64, fits.
pub const MAX_LINE_BYTES: usize = 512 * 1024;

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const ULID_CHARACTERS: usize = 26;

const HEX_CHARACTERS: usize = 32;

const MEMBERS: [&str; 6] = ["id", "predecessors", "landauer_cost", "resources", "cognitive_split", "payload"];

/// The prefix of a payload with a kind.
const MAGIC: &[u8] = b"PACR";

/// The highest known kind of payload.
const COUNTERFACTUAL: u8 = 5;

/// The largest point of an estimate. It exceeds any real duration or energy, and sums of such points do not overflow.
const MAX_POINT: f64 = 1e100;

/// Many times the depth and the number of values of the published encoding.
const LIMITS: JsonLimits = JsonLimits { bytes: MAX_LINE_BYTES, levels: 16, values: 256 * 1024, ..JsonLimits::DOCUMENT };

/// An `agent_id`: 26 characters of Crockford's Base32 (AE-2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AevumAgentId([u8; ULID_CHARACTERS]);

impl AevumAgentId {
    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for AevumAgentId {
    type Err = AevumAgentIdError;

    fn from_str(text: &str) -> Result<Self, AevumAgentIdError> {
        let characters: [u8; ULID_CHARACTERS] = text.as_bytes().try_into().map_err(|_| AevumAgentIdError)?;
        if characters.iter().all(|c| CROCKFORD.contains(c)) { Ok(Self(characters)) } else { Err(AevumAgentIdError) }
    }
}

impl fmt::Display for AevumAgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for AevumAgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentId({self})")
    }
}

impl Serialize for AevumAgentId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

/// The text is not an `agent_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an agent_id: 26 characters of 0-9 and A-Z without I, L, O and U")]
pub struct AevumAgentIdError;

/// ι: the identity of a record. Its first 48 bits are the record's time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PacrRecordId(u128);

impl PacrRecordId {
    /// The record's time, in milliseconds since 1970.
    pub(super) const fn unix_milliseconds(self) -> u64 {
        (self.0 >> 80) as u64
    }

    /// Whether this is the sentinel for "no predecessor".
    pub(super) const fn is_genesis(self) -> bool {
        self.0 == 0
    }

    /// Parses a ULID, or 32 upper-case hexadecimal digits. The published text shows the first and requires the second.
    fn parse(text: &str) -> Option<Self> {
        match text.len() {
            ULID_CHARACTERS => {
                let digits = text.bytes().map(|c| CROCKFORD.iter().position(|known| *known == c));
                let mut value: u128 = 0;
                for (at, digit) in digits.enumerate() {
                    let digit = digit?;
                    if at == 0 && digit > 7 {
                        return None;
                    }
                    value = (value << 5) | digit as u128;
                }
                Some(Self(value))
            }
            HEX_CHARACTERS => {
                let is_upper_hex = text.bytes().all(|c| c.is_ascii_digit() || (b'A'..=b'F').contains(&c));
                if is_upper_hex { u128::from_str_radix(text, 16).ok().map(Self) } else { None }
            }
            _ => None,
        }
    }
}

/// The members of a record that the figures use.
#[derive(Debug)]
pub(super) struct PacrRecord {
    pub(super) id: PacrRecordId,
    /// Without duplicates and without the genesis sentinel, in ascending order.
    pub(super) predecessors: Vec<PacrRecordId>,
    /// Ω.time, in seconds. Greater than 0.
    pub(super) seconds: f64,
    /// Ω.energy, in joules. At least 0.
    pub(super) joules: f64,
    pub(super) actor: PacrRecordAttribution,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacrRecordAttribution {
    /// The agent whose `agent_id` is in the payload.
    Agent(AevumAgentId),
    /// The payload contains no `agent_id`.
    Nobody,
    Counterfactual,
}

impl PacrRecord {
    /// Parses a line. The error describes what is wrong with it.
    pub(super) fn parse(line: &[u8]) -> Result<Self, String> {
        let document = json::parse_strict_json(line, LIMITS).map_err(|error| describe_json_error(&error))?;
        let Value::Object(members) = document else { return Err("expected an object".to_owned()) };
        for name in MEMBERS {
            if members.get(name).is_none_or(Value::is_null) {
                return Err(format!("{name} is missing; a record has {}", MEMBERS.join(", ")));
            }
        }
        let id = parse_record_id(&members["id"], "id")?;
        if id.is_genesis() {
            return Err("id: the genesis sentinel is not the id of a record".to_owned());
        }
        let resources = members["resources"].as_object().ok_or("resources: expected an object")?;
        let seconds = parse_point_estimate(resources, "time")?;
        if seconds <= 0.0 {
            return Err("resources.time.point: expected seconds above 0".to_owned());
        }
        let joules = parse_point_estimate(resources, "energy")?;
        if joules < 0.0 {
            return Err("resources.energy.point: expected joules, at least 0".to_owned());
        }
        Ok(Self {
            id,
            predecessors: parse_predecessors(&members, id)?,
            seconds,
            joules,
            actor: parse_payload_attribution(&members["payload"])?,
        })
    }
}

/// Describes a JSON error without its line number, which is always 1: the ledger adds its own.
fn describe_json_error(error: &JsonError) -> String {
    if let JsonError::NotJson { column, detail, .. } = error {
        let detail = detail.split(" at line ").next().unwrap_or_default();
        return format!("column {column}: {detail}; each line of a ledger is one whole record");
    }
    let detail = error.to_string();
    detail.strip_prefix("line 1, ").unwrap_or(&detail).to_owned()
}

fn parse_record_id(value: &Value, name: &str) -> Result<PacrRecordId, String> {
    value.as_str().and_then(PacrRecordId::parse).ok_or_else(|| {
        format!("{name}: expected a ULID or 32 upper-case hexadecimal digits, found {}", escaped_excerpt(value))
    })
}

fn parse_predecessors(members: &Map<String, Value>, id: PacrRecordId) -> Result<Vec<PacrRecordId>, String> {
    let list = members["predecessors"].as_array().ok_or("predecessors: expected a list")?;
    let mut read = Vec::with_capacity(list.len());
    for value in list {
        let predecessor = parse_record_id(value, "predecessors")?;
        if predecessor == id {
            return Err("predecessors: a record does not precede itself".to_owned());
        }
        if !predecessor.is_genesis() {
            read.push(predecessor);
        }
    }
    read.sort_unstable();
    read.dedup();
    Ok(read)
}

/// The `point` of an estimate, which must be between its bounds.
fn parse_point_estimate(resources: &Map<String, Value>, name: &str) -> Result<f64, String> {
    let number = |member: &str| {
        let value = resources.get(name).and_then(|estimate| estimate.get(member));
        value.and_then(Value::as_f64).filter(|number| number.is_finite())
    };
    match (number("lower"), number("point"), number("upper")) {
        (Some(lower), Some(point), Some(upper)) if lower <= point && point <= upper && point <= MAX_POINT => Ok(point),
        (Some(_), Some(_), Some(_)) => {
            Err(format!("resources.{name}: expected lower <= point <= upper, and no point above {MAX_POINT:e}"))
        }
        _ => Err(format!("resources.{name}: expected the numbers point, lower and upper")),
    }
}

fn parse_payload_attribution(payload: &Value) -> Result<PacrRecordAttribution, String> {
    let bytes = payload.as_str().and_then(|text| STANDARD.decode(text).ok());
    let bytes = bytes.ok_or("payload: expected base64 with padding")?;
    let content = match bytes.strip_prefix(MAGIC) {
        None => &bytes[..],
        Some([kind, content @ ..]) if *kind < COUNTERFACTUAL => content,
        Some([COUNTERFACTUAL, rest @ ..]) => return parse_counterfactual(rest),
        Some([kind, ..]) => return Err(format!("payload: unknown kind of intervention {kind}")),
        Some([]) => return Err("payload: it ends after PACR, without a kind".to_owned()),
    };
    // Other payloads are valid but name no agent.
    let Ok(document) = json::parse_strict_json(content, JsonLimits::CARD) else {
        return Ok(PacrRecordAttribution::Nobody);
    };
    match document.get("agent_id") {
        None => Ok(PacrRecordAttribution::Nobody),
        Some(id) => id
            .as_str()
            .and_then(|id| id.parse().ok())
            .map(PacrRecordAttribution::Agent)
            .ok_or_else(|| format!("payload: {AevumAgentIdError}, found {}", escaped_excerpt(id))),
    }
}

/// A counterfactual payload starts with the correlation of simulation and reality.
fn parse_counterfactual(rest: &[u8]) -> Result<PacrRecordAttribution, String> {
    let correlation = rest.first_chunk::<8>().map(|bytes| f64::from_be_bytes(*bytes));
    match correlation {
        Some(correlation) if (0.0..=1.0).contains(&correlation) => Ok(PacrRecordAttribution::Counterfactual),
        _ => Err("payload: a counterfactual record needs a correlation from 0 to 1 after its kind".to_owned()),
    }
}

fn escaped_excerpt(value: &Value) -> String {
    UntrustedText::new(&excerpt_text(&value.to_string())).to_string()
}
