//! Names, text records, CIDs, paths and cards.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use clresolve_cards::lint::lint_document;
use clresolve_cards::system::{CardLintContext, CardSystem};
use clresolve_core::digest::Digest;
use clresolve_core::name::{EnsName, MAX_NAME_BYTES, normalize_ens_name};
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ClOwnerReading, EnsAnswer, NameHolder, NameReading, ProofGrade, ProofStrength,
    ResolvedRecords,
};
use clresolve_core::reason::ReasonEffect;
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::state::TrustState;
use clresolve_core::text::{UntrustedText, is_unsafe_character};
use clresolve_ipfs::{ContentId, UnixFsPath};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::{self, JudgementPolicy};
use clresolve_verdict::evidence::{
    ClOwnerEvidence, HttpsOutcome, IpfsMirrorLocation, IpfsWalkOutcome, RecordUsability, ResolutionEvidence,
};
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles};
use jiff::Timestamp;
use serde_json::Value;

static PROFILES: LazyLock<Vec<Arc<ConformanceProfile>>> =
    LazyLock::new(|| ConformanceProfiles::builtin().iter().cloned().collect());

/// A name: the normal form is its own normal form, and both encodings follow from the labels.
pub(crate) fn name(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    check_shown(text);
    if let Ok(normal) = normalize_ens_name(text) {
        assert_eq!(normalize_ens_name(&normal), Ok(normal), "the normal form is not normal");
    }
    let Ok(name) = EnsName::parse(text) else { return };
    assert_eq!(EnsName::parse(name.as_str()).as_ref(), Ok(&name));
    assert!(name.as_str().len() <= MAX_NAME_BYTES && name.labels().all(|label| !label.is_empty()));
    let wire = name.dns_encoded();
    let labels: Vec<u8> = name.labels().flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    assert_eq!(wire, [&labels[..], &[0]].concat(), "the wire form is not that of the labels");
    let ancestors = (0..=wire.len()).filter_map(|at| Some((at, name.ancestor_at_dns_offset(at)?)));
    let ancestors: Vec<_> = ancestors.collect();
    assert_eq!(ancestors.len() + 1, name.labels().count());
    for (at, ancestor) in ancestors {
        assert_eq!(ancestor.dns_encoded(), wire[at..], "the ancestor at {at} is another one");
        assert_ne!(ancestor.namehash(), name.namehash());
    }
}

fn check_shown(text: &str) {
    let shown = UntrustedText::new(text).to_string();
    assert!(!shown.chars().any(is_unsafe_character), "an unsafe character is shown: {shown:?}");
}

/// The six text records of a good agent, one a line, where a line that is left empty is a record that is not set.
///
/// The verdict may be `trusted` only where an independent reading of the records says that they bind the card.
pub(crate) fn records(input: &[u8]) {
    let lines = input.split(|byte| *byte == b'\n').zip(TextRecordKey::ALL);
    let records: TextRecordSet = lines.map(|(line, key)| (key, record(line))).collect();
    let evidence = evidence(records);
    for profile in PROFILES.iter() {
        let judgement = check::judge_evidence(&evidence, profile, &JudgementPolicy::default());
        if judgement.state == TrustState::Trusted {
            assert!(binds(&evidence), "trusted, though the records do not bind the card");
        }
    }
}

fn record(line: &[u8]) -> TextRecord {
    match String::from_utf8(line.to_vec()) {
        Ok(text) if text.is_empty() => TextRecord::Absent,
        Ok(text) => TextRecord::Text(text),
        Err(error) => TextRecord::NotUtf8(error.into_bytes()),
    }
}

/// A good card, whose CID is raw.
pub(crate) const CARD: &str = include_str!("card.json");

fn evidence(records: TextRecordSet) -> ResolutionEvidence {
    let holder = [1; 20].into();
    let found = ResolvedRecords {
        resolver: [2; 20].into(),
        wildcard: None,
        offchain: false,
        records,
        payment: PaymentRecords::default(),
    };
    let reading = NameReading {
        block: ChainBlock { number: 1, hash: [3; 32].into(), timestamp: Timestamp::UNIX_EPOCH },
        answer: EnsAnswer::Records(found),
        latest: None,
        newest: None,
        holder: NameHolder::Address(holder),
        expiry: None,
        proof: ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: true },
        endpoints: vec!["fuzz".to_owned()],
        contradicted_by: Vec::new(),
        failed_endpoints: Vec::new(),
    };
    ResolutionEvidence {
        name: EnsName::parse("summarizeagent.eth").expect("a good name"),
        now: Timestamp::UNIX_EPOCH,
        chain_id: 1,
        block: BlockSelector::Finalized,
        reading: Ok(reading),
        owner: ClOwnerEvidence::Read(ClOwnerReading { address: Some(holder), holder: NameHolder::Address(holder) }),
        https: HttpsOutcome::Body {
            bytes: Bytes::from_static(CARD.as_bytes()),
            url: "https://example.org/".to_owned(),
        },
        ipfs: IpfsWalkOutcome::NotAsked,
        mirror: IpfsWalkOutcome::NotAsked,
        liars: Vec::new(),
        schemas: None,
        continuity: clresolve_verdict::evidence::continuity::HistoryOutcome::NotAsked,
        links: None,
        misspelt_keys: Vec::new(),
    }
}

/// Whether the records bind [`CARD`], read without the checks.
fn binds(evidence: &ResolutionEvidence) -> bool {
    let records = &evidence.resolved_records().expect("there are records").records;
    let text = |key| RecordUsability::from_record(records, key).text().unwrap_or_default();
    let card: Value = serde_json::from_str(CARD).expect("the card is JSON");
    let cid = ContentId::parse(text(TextRecordKey::CidAgentcard));
    let mirror = IpfsMirrorLocation::parse(text(TextRecordKey::MirrorIpfs));
    text(TextRecordKey::Entry) == card["entry"]
        && text(TextRecordKey::Owner) == card["owner"]
        && text(TextRecordKey::Agentcard).get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
        && text(TextRecordKey::Checksum).to_ascii_lowercase().ends_with(&Digest::compute(CARD.as_bytes()).to_hex())
        && cid.as_ref() == Ok(&ContentId::from_raw_block(CARD.as_bytes()))
        && mirror.is_ok_and(|mirror| Ok(mirror.cid) == cid && mirror.path.is_empty())
}

/// A CID, and after a line feed a path: what is parsed is read back from what is printed.
pub(crate) fn cid(input: &[u8]) {
    if let Ok(cid) = ContentId::from_bytes(input) {
        assert_eq!(cid.to_bytes(), input, "a binary CID has two forms");
        assert_eq!(ContentId::parse(&cid.to_string()), Ok(cid));
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (cid, path) = text.split_once('\n').unwrap_or((text, ""));
    let cid = ContentId::parse(cid);
    if let Ok(cid) = cid {
        assert_eq!(ContentId::parse(&cid.to_string()), Ok(cid));
        assert_eq!(ContentId::from_bytes(&cid.to_bytes()), Ok(cid));
        assert_eq!(ContentId::parse(&cid.to_v1().to_string()), Ok(cid));
        if let Some(content) = cid.identity_content() {
            assert!(cid.is_cid_of_block(content), "an identity CID refuses its own content");
        }
    }
    let path = UnixFsPath::parse(path);
    if let Ok(path) = &path {
        let names = path.segments();
        assert!(names.iter().all(|name| !matches!(name.as_str(), "" | "." | "..") && !name.contains(['/', '\0'])));
        assert_eq!(UnixFsPath::parse(&path.to_string()).as_ref(), Ok(path));
        assert_eq!(UnixFsPath::parse_literal(&names.join("/")).as_ref(), Ok(path));
    }
    if let (Ok(cid), Ok(path)) = (cid, path) {
        let mirror = IpfsMirrorLocation::parse(&format!("ipfs://{cid}/{path}"));
        assert_eq!(mirror, Ok(IpfsMirrorLocation { cid, path }), "a mirror record is not read back");
    }
}

/// A card: strict JSON is JSON, and what a card is found guilty of has a place in its text.
pub(crate) fn card(input: &[u8]) {
    let card = AgentCard::parse(input);
    if let Ok(card) = &card {
        let lax: Value = serde_json::from_slice(input).expect("strict JSON is JSON");
        assert_eq!(card.document(), &lax, "strict and common readers see two cards");
        check_printed(card);
    }
    let lines = input.split(|byte| *byte == b'\n').count();
    for profile in PROFILES.iter() {
        let report = lint_document(input, Some(CardSystem::CommandLayer), &CardLintContext::from_profile(profile));
        let fails = report.findings.iter().any(|finding| finding.effect == ReasonEffect::Fail);
        assert_eq!(report.valid, !fails);
        assert!(card.is_ok() || fails, "what is no card is found valid");
        for finding in &report.findings {
            assert!(finding.line.is_none_or(|line| (1..=lines).contains(&line)), "{finding:?}");
            assert!(finding.span.as_ref().is_none_or(|span| input.get(span.clone()).is_some()), "{finding:?}");
        }
    }
}

/// What is printed reads back as the same document, but for numbers with a fraction, of which JSON keeps no exact form.
fn check_printed(card: &AgentCard) {
    let printed = card.document().to_string();
    if !holds_fraction(card.document())
        && let Ok(again) = AgentCard::parse(printed.as_bytes())
    {
        assert_eq!(&again, card);
    }
}

fn holds_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(holds_fraction),
        Value::Object(members) => members.values().any(holds_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}
