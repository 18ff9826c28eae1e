//! The worst documents of 256 KiB, generated from a few parameters.
//!
//! A [`Seed`] is a valid card of some system in which one value is replaced by many values of one kind. `just worst`
//! searches for the most expensive seeds, and `corpus.json` stores them. Anyone who can send documents to a daemon can
//! send these.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clresolve_cards::signature::MAX_SIGNATURES;
use clresolve_core::json::{self, JsonLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) fn known() -> Vec<Seed> {
    serde_json::from_str(include_str!("corpus.json")).expect("the corpus is a list of seeds")
}

/// A placeholder in a card for the filling.
const MARK: &str = "\"@filling@\"";

/// The values that a filling repeats. A string is repeated within one string, any other value is a separate item.
pub(crate) const LEAVES: [&str; 55] = [
    "0",
    "-1.5e-7",
    "1e300",
    "9007199254740993",
    "null",
    "true",
    "{}",
    "[]",
    r#"{"":0}"#,
    r#"{"a":{}}"#,
    "[[]]",
    r#""""#,
    r#""a""#,
    r#"" ""#,
    r#"".""#,
    r#""/""#,
    r#"":""#,
    r#""=""#,
    r#""-""#,
    r#""@""#,
    r#""<""#,
    r#""1""#,
    r#""é""#,
    r#""\u0000""#,
    r#""\n""#,
    r#""://a:b@""#,
    r#""10.0.0.1 ""#,
    r#""::1 ""#,
    r#""[::""#,
    r#""localhost:""#,
    r#""javascript:""#,
    r#""<script""#,
    r#""eyJhbGciOi.""#,
    r#""-----BEGIN ""#,
    r#""+1 415 ""#,
    r#""a@b.c ""#,
    r#""Bearer a1 ""#,
    r#""api_key=a1""#,
    r#""ghp_a1b2c3d4e5""#,
    r#""data:text/html,""#,
    r#""https://a.b/""#,
    r#""%2f""#,
    r#""~1/""#,
    r#""sk-1 password: ""#,
    r#""file:/_""#,
    r#""http:/""#,
    r#""http:/x:""#,
    "0\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
    r#"{"$ref":"a"}"#,
    r#"{"$ref":"/schemas/v1.0.0/commons/summarize/requests/summarize.request.schema.json"}"#,
    r#"{"if":0}"#,
    r#"{"format":"uri"}"#,
    r#"{"minContains":1,"contains":{}}"#,
    r#""act ""#,
    // Three rows of twelve words from the seed phrase word list, none with a valid checksum.
    r#""act act act act act act act act act act act act act act a ""#,
];

/// Text before and after the items. `N` is a name.
const AROUND: [(&str, &str); 5] = [
    ("", ""),
    ("{\"N\":", "}"),
    ("[{\"N\":", "}]"),
    ("[{\"schemes\":{\"N\":{\"list\":", "}}}]"),
    ("{\"N\":{\"N\":{\"N\":{\"N\":", "}}}}"),
];

/// Members that the valid documents lack.
const FURTHER: [&str; 6] = ["/x", "/security", "/securityRequirements", "/securitySchemes", "/metadata", "/examples"];

/// Length in bytes of the longest accepted RSA modulus.
pub(crate) const RSA_BYTES: usize = 512;

/// Lists that a projection iterates over.
const PROJECTED: [&str; 2] = ["/capabilities/input_types", "/capabilities/output_types"];

/// How often one string repeats its leaf.
const REPEATS: [usize; 6] = [1, 2, 16, 256, 4096, 65_536];

/// The code that judges a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Judge {
    /// The judgement of evidence, with a verdict as the result.
    Verdict,
    /// The same at depth `schemas`, with four documents of maximum size served from the schema locations.
    Schemas,
    /// Parsing of the document at a schema location.
    Served,
    /// `lint`.
    Lint,
    /// One document at a location where a host publishes cards.
    Discovery,
    /// The signatures of a card.
    Signatures,
    /// Conversion to another system.
    Conversion,
    /// The A2A card of a trusted verdict, as served by a daemon.
    Projection,
}

impl Judge {
    pub(crate) const ALL: [Self; 8] = [
        Self::Verdict,
        Self::Schemas,
        Self::Served,
        Self::Lint,
        Self::Discovery,
        Self::Signatures,
        Self::Conversion,
        Self::Projection,
    ];

    pub(crate) const fn limits(self) -> JsonLimits {
        match self {
            Self::Served => JsonLimits::SCHEMA,
            _ => JsonLimits::CARD,
        }
    }
}

/// The parameters of a document. Each is taken modulo the number of choices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seed {
    pub(crate) judge: Judge,
    /// Which valid document.
    pub(crate) card: usize,
    /// Which of its values is replaced.
    pub(crate) place: usize,
    /// Which leaf, and how often a string repeats it.
    pub(crate) leaf: usize,
    pub(crate) repeat: usize,
    /// Containers around each leaf.
    pub(crate) levels: usize,
    /// Length of the names in objects.
    pub(crate) name: usize,
    /// Whether the outer container, and the inner ones, are objects.
    pub(crate) outer_object: bool,
    pub(crate) inner_object: bool,
    /// The text around the items.
    pub(crate) around: usize,
    /// Maximum number of items.
    pub(crate) items: usize,
    /// The target system of a conversion, or the signature algorithm.
    pub(crate) to: usize,
}

impl Seed {
    pub(crate) fn document(&self) -> Vec<u8> {
        let base = &DOCUMENTS[self.base()];
        let mut template = base.0.clone();
        let place = &base.1[self.place % base.1.len()];
        match template.pointer_mut(place) {
            Some(value) => *value = json!("@filling@"),
            None => place
                .split('/')
                .skip(1)
                .fold(&mut template, |value, name| &mut value[name])
                .clone_from(&json!("@filling@")),
        }
        if self.judge == Judge::Signatures {
            template["signatures"] = signatures(self.to);
        }
        let text = template.to_string();
        let mut items = self.items;
        loop {
            let filling = self.filling(items, self.judge.limits().bytes - text.len());
            let document = text.replacen(MARK, &filling, 1).into_bytes();
            // A text beyond the limits is rejected at once, which is cheap. The worst text is just within them.
            if items <= 1 || json::parse_strict_json(&document, self.judge.limits()).is_ok() {
                return document;
            }
            items = items * 7 / 8;
        }
    }

    fn filling(&self, items: usize, room: usize) -> String {
        let leaf = LEAVES[self.leaf % LEAVES.len()];
        let repeats = REPEATS[self.repeat % REPEATS.len()];
        let leaf = match leaf.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) if !text.is_empty() => format!("\"{}\"", text.repeat(repeats.min(room / 2 / text.len()).max(1))),
            _ => leaf.to_owned(),
        };
        let levels = self.levels % 13;
        let name = "n".repeat(self.name % (JsonLimits::CARD.name - 8));
        let (open, close) = if self.inner_object { (format!("{{\"{name}\":"), "}") } else { ("[".to_owned(), "]") };
        let item = format!("{}{leaf}{}", open.repeat(levels), close.repeat(levels));
        let (before, after) = AROUND[self.around % AROUND.len()];
        let before = before.replace('N', &name);
        let mut filling = format!("{before}{}", if self.outer_object { "{" } else { "[" });
        for number in 0..items {
            let piece = if self.outer_object { format!("\"{name}{number}\":{item}") } else { item.clone() };
            if filling.len() + piece.len() + after.len() + 2 > room {
                break;
            }
            if number > 0 {
                filling.push(',');
            }
            filling.push_str(&piece);
        }
        filling.push(if self.outer_object { '}' } else { ']' });
        filling + after
    }

    /// The index of its valid document in [`DOCUMENTS`].
    pub(crate) fn base(&self) -> usize {
        self.card % DOCUMENTS.len()
    }
}

/// The valid card of each system, in the order of `CardSystem::ALL`, an older A2A card and a schema, with the locations
/// of their values and of additional members.
static DOCUMENTS: LazyLock<Vec<(Value, Vec<String>)>> = LazyLock::new(|| {
    let file = |text: &str| serde_json::from_str(text).expect("JSON");
    let cards = [
        file(include_str!("../../../verdict/src/sample/good.json")),
        file(include_str!("../../../sandbox/src/discovery/aevum.json")),
        file(include_str!("../../../sandbox/src/discovery/orloj.json")),
        file(include_str!("../../../sandbox/src/discovery/anypoint.json")),
        file(include_str!("../../../sandbox/src/discovery/a2a.json")),
        older(),
        schema(),
    ];
    let with_places = |card: Value| {
        let lacking = FURTHER.into_iter().filter(|place| card.pointer(place).is_none());
        let mut places: Vec<String> = lacking.map(str::to_owned).collect();
        add_places(&card, "", &mut places);
        let is_projected = card.get("implements").is_some();
        places.extend(PROJECTED.into_iter().filter(|_| is_projected).map(str::to_owned));
        (card, places)
    };
    cards.into_iter().map(with_places).collect()
});

/// An A2A 0.3 card.
fn older() -> Value {
    json!({
        "protocolVersion": "0.3.0", "name": "a", "description": "b", "url": "https://a.example/", "version": "1.0.0",
        "preferredTransport": "JSONRPC", "capabilities": {}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"], "skills": [{"id": "c", "name": "d", "description": "e", "tags": ["f"]}],
    })
}

/// A schema with each kind of keyword.
fn schema() -> Value {
    json!({
        "$id": "https://commandlayer.org/schemas/v1.0.0/commons/summarize/receipts/summarize.receipt.schema.json",
        "allOf": [], "properties": {}, "enum": [0], "required": [], "items": {}, "pattern": "",
    })
}

fn add_places(value: &Value, at: &str, places: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (format!("{at}/{name}"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, value)| (format!("{at}/{n}"), value)).collect(),
        _ => Vec::new(),
    };
    for (at, value) in below {
        add_places(value, &at, places);
        places.push(at);
    }
}

/// The maximum number of signatures of a card, all invalid, each to be tried with every key. Their points and numbers
/// are values that a signer could have chosen, so that only the complete equation rejects them.
fn signatures(algorithm: usize) -> Value {
    let (algorithm, signature) = match algorithm % 3 {
        0 => ("EdDSA", [[0x58].as_slice(), &[0x66; 31], &[1], &[0; 31]].concat()),
        1 => ("ES256", vec![0x55; 64]),
        _ => ("RS256", vec![0x55; RSA_BYTES]),
    };
    let protected = URL_SAFE_NO_PAD.encode(json!({"alg": algorithm}).to_string());
    json!(vec![json!({"protected": protected, "signature": URL_SAFE_NO_PAD.encode(signature)}); MAX_SIGNATURES])
}
