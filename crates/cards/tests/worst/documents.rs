//! The worst documents of 256 KiB: how they are made from a few parameters, and what judges them.
//!
//! A [`Seed`] is a good card of some system in which one value is replaced by many of one kind. `just worst` searches for
//! the seeds that cost most; `corpus.json` keeps them. `tests/worst.rs` counts what they allocate, and
//! `.ci/worst` counts their instructions.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use clresolve_cards::convert::convert;
use clresolve_cards::lint;
use clresolve_cards::signature::{MAX_SIGNATURES, Root, TrustRoots, verify};
use clresolve_cards::system::{CardSystem, Rules};
use clresolve_core::json::Limits;
use clresolve_verdict::build::{self, Reporter, Run};
use clresolve_verdict::card::Card;
use clresolve_verdict::check::Policy;
use clresolve_verdict::profile::{DEFAULT, Profile, Profiles};
use clresolve_verdict::sample;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What stands in a card until its filling does.
const MARK: &str = "\"@filling@\"";

/// What a filling repeats. A text is repeated within one string, any other value stands alone.
pub(crate) const LEAVES: [&str; 47] = [
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
];

/// What stands before and after the items; `N` is a name.
const AROUND: [(&str, &str); 5] = [
    ("", ""),
    ("{\"N\":", "}"),
    ("[{\"N\":", "}]"),
    ("[{\"schemes\":{\"N\":{\"list\":", "}}}]"),
    ("{\"N\":{\"N\":{\"N\":{\"N\":", "}}}}"),
];

/// Members that the good cards lack.
const FURTHER: [&str; 6] = ["/x", "/security", "/securityRequirements", "/securitySchemes", "/metadata", "/examples"];

/// How much one string repeats its leaf.
const REPEATS: [usize; 6] = [1, 2, 16, 256, 4096, 65_536];

/// What judges a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Judge {
    /// The walk: evidence to verdict.
    Verdict,
    /// `lint`, which also judges what discovery finds.
    Lint,
    /// The signatures of a card.
    Signatures,
    /// Conversion to another system.
    Conversion,
}

impl Judge {
    pub(crate) const ALL: [Self; 4] = [Self::Verdict, Self::Lint, Self::Signatures, Self::Conversion];
}

/// A document, by its parameters. Each is taken modulo what there is to choose from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seed {
    pub(crate) judge: Judge,
    /// Which good card.
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
    /// What stands around the items.
    pub(crate) around: usize,
    /// Most items.
    pub(crate) items: usize,
    /// The system that a card is converted to.
    pub(crate) to: usize,
}

impl Seed {
    /// The document.
    pub(crate) fn document(&self) -> Vec<u8> {
        let base = &CARDS[self.card % CARDS.len()];
        let mut template = base.0.clone();
        let place = &base.1[self.place % base.1.len()];
        match template.pointer_mut(place) {
            Some(value) => *value = json!("@filling@"),
            None => template[place.trim_start_matches('/')] = json!("@filling@"),
        }
        if self.judge == Judge::Signatures {
            template["signatures"] = signatures();
        }
        let text = template.to_string();
        let mut items = self.items;
        loop {
            let filling = self.filling(items, Limits::CARD.bytes - text.len());
            let document = text.replacen(MARK, &filling, 1).into_bytes();
            // A text beyond the limits is refused at once, which is cheap. The worst one is just within them.
            if items <= 1 || Card::parse(&document).is_ok() {
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
        let name = "n".repeat(self.name % (Limits::CARD.name - 8));
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

    /// What the judge needs beside the document.
    pub(crate) fn prepared(&self) -> Prepared {
        Prepared { seed: self.clone(), document: self.document().into(), world: World::get() }
    }
}

/// A document and its judge, ready to be measured.
pub(crate) struct Prepared {
    seed: Seed,
    pub(crate) document: Bytes,
    world: &'static World,
}

impl Prepared {
    /// As [`Prepared::judge`], under a name of its own, by which a counter of instructions knows what to count.
    #[inline(never)]
    pub(crate) fn judge_measured(&self) -> usize {
        std::hint::black_box(self.judge())
    }

    /// Judges the document; gives something of the result.
    pub(crate) fn judge(&self) -> usize {
        let world = self.world;
        match self.seed.judge {
            Judge::Verdict => {
                let evidence = sample::evidence(&world.agent, &self.document, world.now);
                let run = Run { evidence, milliseconds: BTreeMap::new(), content_fetched_at: None };
                build::resolution(&world.reporter(), &run, 0).verdict().reasons.len()
            }
            Judge::Lint => {
                let judgement = lint::judge(&self.document, None, &Rules::of(&world.profile), &world.profiles);
                serde_json::to_string(&judgement).map_or(0, |text| text.len())
            }
            Judge::Signatures => {
                let Ok(card) = Card::parse(&self.document) else { return 0 };
                verify(card.document(), &world.roots).reasons.len()
            }
            Judge::Conversion => {
                let Ok(card) = Card::parse(&self.document) else { return 0 };
                let from = CardSystem::ALL[(self.seed.card % CARDS.len()).min(CardSystem::ALL.len() - 1)];
                let to = CardSystem::ALL[self.seed.to % CardSystem::ALL.len()];
                convert(&card, from, to, &Rules::of(&world.profile)).lost.len()
            }
        }
    }
}

/// What documents are judged by.
struct World {
    profiles: Profiles,
    profile: Arc<Profile>,
    policy: Policy,
    roots: TrustRoots,
    /// The agent whose card each document stands for, and the time of its judgement.
    agent: Value,
    now: Timestamp,
}

impl World {
    fn get() -> &'static Self {
        static WORLD: LazyLock<World> = LazyLock::new(|| {
            let profiles = Profiles::builtin();
            let profile = profiles.get(DEFAULT).expect("it is built in");
            let now = "2026-01-01T00:00:00Z".parse().expect("a time");
            World { profiles, profile, policy: Policy::default(), roots: roots(), agent: sample::good(), now }
        });
        &WORLD
    }

    fn reporter(&self) -> Reporter<'_> {
        let Self { profiles, profile, policy, .. } = self;
        Reporter { world: "mainnet", chain_id: 1, profiles, profile, policy }
    }
}

/// The good card of each system, in the order of [`CardSystem::ALL`], and an older A2A card, with the places of their
/// values and of further members.
static CARDS: LazyLock<Vec<(Value, Vec<String>)>> = LazyLock::new(|| {
    let file = |text: &str| serde_json::from_str(text).expect("JSON");
    let cards = [
        sample::good(),
        file(include_str!("../../../sandbox/src/discovery/aevum.json")),
        file(include_str!("../../../sandbox/src/discovery/orloj.json")),
        file(include_str!("../../../sandbox/src/discovery/anypoint.json")),
        file(include_str!("../../../sandbox/src/discovery/a2a.json")),
        older(),
    ];
    let with_places = |card: Value| {
        let lacking = FURTHER.into_iter().filter(|place| card.pointer(place).is_none());
        let mut places: Vec<String> = lacking.map(str::to_owned).collect();
        add_places(&card, "", &mut places);
        (card, places)
    };
    cards.into_iter().map(with_places).collect()
});

/// An A2A card of 0.3.
fn older() -> Value {
    json!({
        "protocolVersion": "0.3.0", "name": "a", "description": "b", "url": "https://a.example/", "version": "1.0.0",
        "preferredTransport": "JSONRPC", "capabilities": {}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"], "skills": [{"id": "c", "name": "d", "description": "e", "tags": ["f"]}],
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

/// As many signatures as a card may have, none of them good, each to be tried with every key: a point that a signer
/// could have chosen and a number in range, so that nothing but the whole equation refuses them.
fn signatures() -> Value {
    let protected = "eyJhbGciOiJFZERTQSJ9";
    let point_and_number = [[0x58].as_slice(), &[0x66; 31], &[1], &[0; 31]].concat();
    let signature = URL_SAFE_NO_PAD.encode(point_and_number);
    json!(vec![json!({"protected": protected, "signature": signature}); MAX_SIGNATURES])
}

/// The public key of RFC 8037, many times.
fn roots() -> TrustRoots {
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let keys = json!({"keys": vec![jwk; 8]}).to_string();
    Root::from_jwks("keys", keys.as_bytes()).expect("a key set").into()
}
