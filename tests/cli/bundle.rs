//! Evidence bundles: an exported bundle replays to the same conclusion, and a tampered one does not.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clresolve_bundle::signed::ExpectedVerdict;
use clresolve_bundle::{BundleError, MAX_BYTES, ResolutionBundle};
use clresolve_cards::project::a2a_card_from_verdict;
use clresolve_core::cause::ResolverContractError;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{ChainError, ProofGrade};
use clresolve_core::state::TrustState;
use clresolve_ipfs::car::{CarLimits, CarReader};
use clresolve_ipfs::{ContentId, build};
use clresolve_jose::{Ed25519KeySet, Ed25519SigningKey};
use clresolve_resolver::config::ChainProofMode;
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_state::{ProvenCallError, StateProofError};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::profile::ConformanceProfiles;
use clresolve_verdict::trust::TrustOrigin;
use clresolve_verdict::verdict::{ResolutionDepth, Verdict, canonical_digest};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::program;

#[path = "bundle/consensus.rs"]
mod consensus;

/// Names of the sandbox whose bundles are tried, one of each kind.
const GOOD: &str = "summarizeagent.eth";
const RAW: &str = "raw-cid.eth";

/// Bundles of the sandbox as they are exported, by name; made once.
static EXPORTED: LazyLock<Vec<(String, TrustState, Value)>> = LazyLock::new(|| exported(None));

/// The same with proofs of the state.
static PROVEN: LazyLock<Vec<(String, TrustState, Value)>> =
    LazyLock::new(|| exported(Some(ChainProofMode::StateProof)));

fn exported(proof: Option<ChainProofMode>) -> Vec<(String, TrustState, Value)> {
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    runtime.block_on(async {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        config.chain.proof = proof;
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let mut exported = Vec::new();
        for expected in Sandbox::expected_verdicts() {
            let mut question = NameQuestion::new(expected.name.as_str());
            question.depth = Some(ResolutionDepth::Schemas).filter(|_| expected.name == GOOD);
            if let Ok(bundle) = resolver.export_bundle(&question).await {
                exported.push((expected.name.clone(), expected.state, bundle.unsigned_bundle().to_json()));
            }
        }
        exported
    })
}

fn good() -> &'static Value {
    let (_, _, bundle) = EXPORTED.iter().find(|(name, _, _)| name == GOOD).expect("the good agent is exported");
    bundle
}

fn proven(name: &str) -> &'static Value {
    let (_, _, bundle) = PROVEN.iter().find(|(proven, _, _)| proven == name).expect("it is exported");
    bundle
}

fn profiles() -> &'static ConformanceProfiles {
    static PROFILES: LazyLock<ConformanceProfiles> = LazyLock::new(Sandbox::profiles);
    &PROFILES
}

/// The id of the verdict that a bundle replays to, and its state.
fn replayed(bytes: &[u8]) -> Result<(String, TrustState), BundleError> {
    let verified = ResolutionBundle::from_bytes(bytes)?.verify_by_replay(profiles())?;
    let verdict = verified.replay.verdict();
    Ok((verdict.id.clone(), verdict.state))
}

fn bytes(bundle: &Value) -> Vec<u8> {
    serde_json::to_vec(bundle).expect("JSON")
}

/// The bundle with a digest that fits, as whoever changes it would write it.
fn resealed(mut bundle: Value) -> Vec<u8> {
    if let Some(members) = bundle.as_object_mut() {
        members.remove("digest");
    }
    bundle["digest"] = canonical_digest(&bundle).into();
    bytes(&bundle)
}

#[test]
fn every_name_of_the_sandbox_replays_to_its_verdict() {
    let mut names = 0;
    for (name, state, bundle) in EXPORTED.iter() {
        let verified =
            ResolutionBundle::from_bytes(&bytes(bundle)).and_then(|bundle| bundle.verify_by_replay(profiles()));
        let verified = verified.unwrap_or_else(|error| panic!("{name}: {error}"));
        let verdict = verified.replay.verdict();
        assert_eq!(
            (verdict.state, Some(verdict.conclusion.as_str())),
            (*state, bundle["verdict"]["conclusion"].as_str())
        );
        assert_eq!(bundle.pointer("/run/world"), Some(&json!("sandbox")), "{name}");
        names += 1;
    }
    let without_evidence = Sandbox::expected_verdicts().len() - names;
    println!("{names} bundles, {without_evidence} inputs that are no name");
    assert!(names > 90 && without_evidence < 10, "{names} bundles, {without_evidence} inputs that are no name");
}

/// The card of a replayed agent is made of the same bytes, and says that it is as of the block of the bundle.
#[test]
fn the_projected_card_of_a_bundle_says_which_block_it_is_of() {
    let verified = ResolutionBundle::from_bytes(&bytes(good()))
        .and_then(|bundle| bundle.verify_by_replay(profiles()))
        .expect("it holds");
    let trusted = verified.replay.trusted_verdict().expect("it is trusted");
    let block = verified.replay.verdict().anchor.as_ref().expect("a trusted verdict has an anchor").block.number;
    assert_eq!(trusted.origin(), TrustOrigin::Replayed { block });
    let card = a2a_card_from_verdict(&trusted, &GatePolicy::default()).expect("nothing is against it");
    let said = card.pointer("/capabilities/extensions/0/params/origin");
    assert_eq!(said, Some(&json!({"replayed": {"block": block}})));
    let demanding = GatePolicy { min_proof: Some(ProofGrade::Quorum), ..GatePolicy::default() };
    assert_eq!(a2a_card_from_verdict(&trusted, &demanding), Err("proof-too-weak"));
    for (name, _, bundle) in EXPORTED.iter().filter(|(_, state, _)| *state != TrustState::Trusted) {
        let verified = ResolutionBundle::from_bytes(&bytes(bundle))
            .and_then(|bundle| bundle.verify_by_replay(profiles()))
            .expect("it holds");
        assert!(verified.replay.trusted_verdict().is_none(), "{name}");
    }
}

/// What was computed from proven state is computed again from the bundle, whatever the name's resolver is like.
#[test]
fn every_name_replays_from_its_proofs() {
    let (mut with_proofs, mut with_look_ups) = (0, 0);
    for (name, state, bundle) in PROVEN.iter() {
        let verified =
            ResolutionBundle::from_bytes(&bytes(bundle)).and_then(|bundle| bundle.verify_by_replay(profiles()));
        let verified = verified.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(verified.replay.verdict().state, *state, "{name}");
        let is_proven = bundle.pointer("/reading/given/backing/proven").is_some();
        assert_eq!(is_proven, bundle.pointer("/reading/given").is_some(), "{name}");
        let says = |clauses: &[String], what: &str| clauses.iter().any(|clause| clause.starts_with(what));
        assert_eq!(says(&verified.proven, "records, resolver"), is_proven, "{name}");
        assert_eq!(says(&verified.attested, "header: that it is the canonical one"), is_proven, "{name}");
        assert!(!says(&verified.attested, "records, resolver"), "{name}");
        let off_chain = bundle.pointer(&format!("{WITNESS}/name_look_ups/0")).is_some();
        assert_eq!(says(&verified.attested, "off-chain records"), off_chain, "{name}");
        with_proofs += usize::from(is_proven);
        with_look_ups += usize::from(off_chain);
    }
    println!("{with_proofs} of {} bundles hold proofs, {with_look_ups} a gateway's answers", PROVEN.len());
    assert!(with_proofs > 80 && with_look_ups >= 1, "{with_proofs} and {with_look_ups}");
}

/// Where the proofs stand in a bundle.
const WITNESS: &str = "/reading/given/backing/proven";

/// The class with which a proven bundle is refused after a change, under a digest that fits.
#[track_caller]
fn refused_class(bundle: &Value, change: impl FnOnce(&mut Value)) -> &'static str {
    let mut changed = bundle.clone();
    change(&mut changed);
    assert_ne!(changed, *bundle, "it is changed");
    replayed(&resealed(changed)).expect_err("refused").error_class()
}

/// Nodes, code, slots and accounts changed, left out and added, every fourth of a kind; other contracts, another
/// header, other records.
#[test]
fn every_lie_about_the_state_is_refused() {
    const STRIDE: usize = 4;
    let bundle = proven(RAW);
    fn at<'a>(bundle: &'a mut Value, place: &str) -> &'a mut Value {
        bundle.pointer_mut(&format!("{WITNESS}{place}")).expect("a place of the proofs")
    }
    let count =
        |place: &str| bundle.pointer(&format!("{WITNESS}{place}")).and_then(Value::as_array).map_or(0, Vec::len);
    let mut lies = 0;
    for list in ["/state/nodes", "/state/codes"] {
        assert!(count(list) > 2, "{list}");
        for place in (0..count(list)).step_by(STRIDE) {
            let without = |b: &mut Value| drop(at(b, list).as_array_mut().expect("a list").remove(place));
            assert_eq!(refused_class(bundle, without), "bundle-proof-refused", "{list}/{place} left out");
            let with_other_byte = |b: &mut Value| {
                let text = at(b, &format!("{list}/{place}")).as_str().expect("hex").to_owned();
                let middle = text.len() / 2;
                let other = if &text[middle..=middle] == "0" { "1" } else { "0" };
                at(b, list)[place] = json!(format!("{}{other}{}", &text[..middle], &text[middle + 1..]));
                at(b, list).as_array_mut().expect("a list").sort_by_key(|item| item.as_str().map(str::to_owned));
            };
            assert_eq!(refused_class(bundle, with_other_byte), "bundle-proof-refused", "{list}/{place} changed");
            lies += 2;
        }
        let with_one_more = |b: &mut Value| {
            let list = at(b, list).as_array_mut().expect("a list");
            list.push(json!(format!("0xff{}", "ee".repeat(40))));
            list.sort_by_key(|item| item.as_str().map(str::to_owned));
        };
        assert_eq!(refused_class(bundle, with_one_more), "bundle-proof-refused", "{list} with one more");
    }
    let accounts = bundle.pointer(&format!("{WITNESS}/state/accounts")).and_then(Value::as_object).expect("accounts");
    for (account, slots) in accounts.iter().step_by(2) {
        let without = |b: &mut Value| drop(at(b, "/state/accounts").as_object_mut().expect("a map").remove(account));
        assert_eq!(refused_class(bundle, without), "bundle-proof-refused", "{account} left out");
        for place in (0..slots.as_array().map_or(0, Vec::len)).step_by(STRIDE) {
            let other = |b: &mut Value| {
                let slots = at(b, &format!("/state/accounts/{account}")).as_array_mut().expect("a list");
                slots[place] = json!(format!("0x{:064x}", place + 1_000_000));
                slots.sort_by_key(|slot| slot.as_str().map(str::to_owned));
            };
            assert_eq!(refused_class(bundle, other), "bundle-proof-refused", "{account}: slot {place}");
            lies += 1;
        }
        lies += 1;
    }
    for contract in ["universal_resolver", "multicall3", "registry", "name_wrapper"] {
        let other = |b: &mut Value| at(b, "/contracts")[contract] = json!(format!("0x{}", "11".repeat(20)));
        assert_eq!(refused_class(bundle, other), "bundle-proof-refused", "{contract}");
    }
    println!("{lies} lies about nodes, code, accounts and slots");

    let with_other_root = |b: &mut Value| {
        let rlp = STANDARD.decode(b["header"].as_str().expect("a header")).expect("base64");
        let mut header: alloy_consensus::Header = alloy_rlp::decode_exact(&rlp).expect("a header");
        header.state_root = alloy_primitives::keccak256("another state");
        b["header"] = json!(STANDARD.encode(alloy_rlp::encode(&header)));
        b["reading"]["given"]["block"]["hash"] = json!(header.hash_slow());
    };
    assert_eq!(refused_class(bundle, with_other_root), "bundle-proof-refused");
    assert_eq!(refused_class(bundle, |b| b["header"] = Value::Null), "bundle-header-mismatch");
    assert_eq!(refused_class(bundle, |b| b["reading"]["given"]["backing"] = json!("attested")), "bundle-proof-refused");
    let lower = |b: &mut Value| b["reading"]["given"]["proof"]["grade"] = json!("single-rpc");
    assert_eq!(refused_class(bundle, lower), "bundle-inconsistent");

    let records = "/reading/given/answer/records";
    let given = |b: &mut Value, place: &str, value: Value| *b.pointer_mut(place).expect("a place") = value;
    let entry = json!(format!("x402://{RAW}/summarize/v2"));
    for (place, value) in [
        (format!("{records}/records/cl.entry"), entry),
        (format!("{records}/resolver"), json!(format!("0x{}", "11".repeat(20)))),
        (format!("{records}/wildcard"), json!("eth")),
        (format!("{records}/offchain"), json!(true)),
        ("/reading/given/answer".to_owned(), json!("unregistered")),
        ("/reading/given/holder".to_owned(), Value::Null),
        ("/reading/given/expiry".to_owned(), json!("2999-01-01T00:00:00Z")),
        ("/owner/read/address".to_owned(), json!(format!("0x{}", "11".repeat(20)))),
        ("/owner/read/holder".to_owned(), json!(format!("0x{}", "11".repeat(20)))),
        (format!("{WITNESS}/name_look_ups"), json!(["0x00"])),
        (format!("{WITNESS}/owner_look_ups"), json!(["0x00"])),
    ] {
        let class = refused_class(bundle, |b| {
            given(b, &place, value);
            if place.ends_with("/answer") {
                (b["https"], b["ipfs"], b["owner"], b["schemas"]) =
                    (json!("not-asked"), json!("not-asked"), json!("not-asked"), Value::Null);
            }
        });
        assert_eq!(class, "bundle-proof-refused", "{place}");
    }
}

/// What gateways answered is what the resolver's callback was given: other answers, fewer and more are refused.
#[test]
fn every_lie_about_a_gateways_answer_is_refused() {
    let off_chain = |bundle: &Value| bundle.pointer(&format!("{WITNESS}/name_look_ups/0")).is_some();
    let (name, _, bundle) = PROVEN
        .iter()
        .find(|(_, state, bundle)| *state == TrustState::Trusted && off_chain(bundle))
        .expect("a good off-chain name");
    fn answers(bundle: &mut Value) -> &mut Vec<Value> {
        bundle.pointer_mut(&format!("{WITNESS}/name_look_ups")).and_then(Value::as_array_mut).expect("answers")
    }
    for change in [
        (|answers: &mut Vec<Value>| answers.clear()) as fn(&mut Vec<Value>),
        |answers| answers.push(answers[0].clone()),
        |answers| answers[0] = json!("0x"),
        |answers| *answers = vec![answers[0].clone(); 9],
        |answers| {
            let text = answers[0].as_str().expect("hex").to_owned();
            let middle = text.rfind('1').expect("a digit");
            answers[0] = json!(format!("{}2{}", &text[..middle], &text[middle + 1..]));
        },
    ] {
        assert_eq!(refused_class(bundle, |b| change(answers(b))), "bundle-proof-refused", "{name}");
    }
}

/// What a name says about payments is computed again, like its records: a value that is altered, added or left out is
/// refused, and so is another question.
#[test]
fn every_lie_about_an_address_is_refused() {
    let address = || json!({"address": format!("0x{}", "11".repeat(20))});
    let cause = || json!({"failed": {"resolver": "it reverted"}});
    let payment = "/reading/given/answer/records/payment";
    for name in [RAW, "offchain.eth", "alice.wildcard.eth"] {
        let bundle = proven(name);
        let read = bundle.pointer(&format!("{payment}/addresses")).expect("addresses were asked for");
        let coins: Vec<&String> = read.as_object().expect("an object").keys().collect();
        assert!(coins.len() > 2 && read["60"] == "absent", "{name}: {read}");
        let altered = |place: &str, value: Value| {
            let change = |b: &mut Value| *b.pointer_mut(&format!("{payment}{place}")).expect("a place") = value;
            assert_eq!(refused_class(bundle, change), "bundle-proof-refused", "{name}: {place}");
        };
        altered("/addresses/60", address());
        altered("/addresses/60", json!({"malformed": "0x00"}));
        altered("/addresses/60", cause());
        for coin in coins {
            altered(&format!("/addresses/{coin}"), json!({"malformed": "0x0000"}));
        }
        altered("/addresses", json!({"60": "absent"}));
        let mut one_more = read.clone();
        one_more["2147492101"] = json!("absent");
        altered("/addresses", one_more);
        altered("/endpoints/cl.endpoint.runtime", json!({"read": "https://thief.example"}));
        altered("/endpoints/cl.endpoint.runtime", cause());
        altered("/endpoints", json!({}));
        let more = json!([60, 2_147_483_648_u64, 2_147_483_658_u64]);
        let asked = |b: &mut Value| *b.pointer_mut(&format!("{WITNESS}/coins")).expect("coins") = more;
        assert_eq!(refused_class(bundle, asked), "bundle-proof-refused", "{name}");
        let unasked = |b: &mut Value| {
            let proofs = b.pointer_mut(WITNESS).and_then(Value::as_object_mut).expect("proofs");
            drop(proofs.remove("coins"));
        };
        assert_eq!(refused_class(bundle, unasked), "bundle-proof-refused", "{name}");
        let without = |b: &mut Value| {
            let records = b.pointer_mut("/reading/given/answer/records").and_then(Value::as_object_mut);
            drop(records.expect("an object").remove("payment"));
        };
        assert_eq!(refused_class(bundle, without), "bundle-proof-refused", "{name}");
        let answers = |b: &mut Value| b.pointer_mut(WITNESS).expect("proofs")["payment_look_ups"] = json!(["0x00"]);
        assert_eq!(refused_class(bundle, answers), "bundle-proof-refused", "{name}");
    }
    let asked = |b: &mut Value| *b.pointer_mut(&format!("{WITNESS}/coins")).expect("coins") = json!([60]);
    assert_eq!(refused_class(proven(RAW), asked), "bundle-malformed", "a list that no run asks for");
    let left_out = |b: &mut Value| {
        let proofs = b.pointer_mut(WITNESS).and_then(Value::as_object_mut).expect("proofs");
        assert!(proofs.remove("payment_look_ups").is_some(), "addresses came through the gateway");
    };
    assert_eq!(refused_class(proven("offchain.eth"), left_out), "bundle-proof-refused", "values without an answer");
}

/// A bundle of a version that read no payments has the verdict that it had.
#[test]
fn a_bundle_without_payments_replays_to_its_verdict() {
    for name in [GOOD, RAW, "offchain.eth", "alice.wildcard.eth"] {
        let mut bundle = proven(name).clone();
        fn remove(bundle: &mut Value, place: &str, members: &[&str]) {
            let object = bundle.pointer_mut(place).and_then(Value::as_object_mut).expect("an object");
            members.iter().for_each(|member| drop(object.remove(*member)));
        }
        remove(&mut bundle, WITNESS, &["coins", "payment_look_ups"]);
        remove(&mut bundle, "/reading/given/answer/records", &["payment"]);
        remove(&mut bundle, "/reading/given/latest/given/records", &["payment"]);
        let steps = bundle["verdict"]["steps"].as_array_mut().expect("steps");
        let records = steps.iter_mut().find(|step| step["step"] == "records").expect("records are a step");
        remove(records, "/evidence", &["addresses", "endpoints"]);
        let verdict: Verdict = serde_json::from_value(bundle["verdict"].clone()).expect("a verdict");
        let verdict = verdict.with_computed_digests();
        assert_eq!(Some(verdict.conclusion.as_str()), bundle["verdict"]["conclusion"].as_str(), "{name}");
        bundle["verdict"] = serde_json::to_value(&verdict).expect("JSON");

        let (id, _) = replayed(&resealed(bundle)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(id, verdict.id, "{name}");
    }
}

#[test]
fn a_bundle_is_valid_under_its_schema() {
    let read = |file: &str| -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(file);
        serde_json::from_slice(&std::fs::read(path).expect("the schema is readable")).expect("JSON")
    };
    let build = |schema: &Value| jsonschema::draft202012::options().should_validate_formats(true).build(schema);
    let bundles = build(&read("bundle.schema.json")).expect("a schema");
    let verdicts = build(&read("verdict.schema.json")).expect("a schema");
    let of_consensus = (RAW.to_owned(), TrustState::Trusted, consensus::consensus().clone());
    for (name, _, bundle) in EXPORTED.iter().chain(PROVEN.iter()).chain([&of_consensus]) {
        let errors: Vec<String> = bundles.iter_errors(bundle).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
        assert!(verdicts.is_valid(&bundle["verdict"]), "{name}");
    }
    for (pointer, value) in [
        ("/schema", json!("clresolve.bundle/2")),
        ("/digest", json!("sha256:00")),
        ("/header", json!("not base64!")),
        ("/reading/given/backing", json!("proven")),
        ("/signed", json!(7)),
        ("/ipfs", json!({"trusted": true})),
        ("/score", json!(7)),
    ] {
        let mut bad = good().clone();
        match bad.pointer_mut(pointer) {
            Some(member) => *member = value,
            None => bad[pointer.trim_start_matches('/')] = value,
        }
        assert!(!bundles.is_valid(&bad), "{pointer}");
    }
}

/// One bit of a byte, another bit from byte to byte: every byte of the smallest bundle, every seventh of a large one.
#[test]
fn no_flipped_byte_is_accepted() {
    let smallest = EXPORTED.iter().map(|(_, _, bundle)| bundle).min_by_key(|bundle| bytes(bundle).len());
    let mut flipped = 0;
    for (bundle, stride) in [(smallest.expect("bundles"), 1), (good(), 7)] {
        let whole = bytes(bundle);
        assert!(replayed(&whole).is_ok(), "it verifies as it is");
        for place in (0..whole.len()).step_by(stride) {
            let mut changed = whole.clone();
            changed[place] ^= 1 << (place % 8);
            assert!(ResolutionBundle::from_bytes(&changed).is_err(), "byte {place}");
            flipped += 1;
        }
    }
    println!("{flipped} bytes flipped");
}

#[test]
fn no_part_of_a_bundle_is_a_bundle() {
    let whole = bytes(good());
    for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
        assert!(ResolutionBundle::from_bytes(&whole[..length]).is_err(), "{length} bytes");
    }
    assert!(ResolutionBundle::from_bytes(&[whole.clone(), b"{}".to_vec()].concat()).is_err());
    assert!(matches!(ResolutionBundle::from_bytes(&vec![b' '; MAX_BYTES + 1]), Err(BundleError::Json(_))));
}

/// Whoever changes a bundle can write a digest that fits. Still the verdict must follow from the evidence: what is
/// accepted replays to the very verdict that was exported, whatever was changed.
#[test]
fn no_change_of_structure_gives_another_verdict() {
    let id = good().pointer("/verdict/id").and_then(Value::as_str).expect("an id").to_owned();
    let mut places = Vec::new();
    pointers(good(), String::new(), &mut places);
    let (mut tried, mut accepted) = (0, Vec::new());
    for place in &places {
        for (kind, mutated) in mutations(good(), place) {
            tried += 1;
            if let Ok((other, state)) = replayed(&resealed(mutated)) {
                assert_eq!((&other, state), (&id, TrustState::Trusted), "{kind} {place}");
                accepted.push(format!("{kind} {place}"));
            }
        }
    }
    println!("{tried} mutations, {} with the same verdict: {accepted:?}", accepted.len());
    assert!(tried > 500, "{tried} mutations");
}

/// Blocks dropped, doubled, swapped, or changed in one bit, under a digest that fits.
#[test]
fn no_change_of_the_blocks_is_accepted() {
    let place = "/ipfs/blocks/car";
    let text = good().pointer(place).and_then(Value::as_str).expect("the good agent's card is in blocks");
    let car = STANDARD.decode(text).expect("base64");
    let mut reader = CarReader::new(CarLimits { block_size: car.len(), bytes: car.len(), sections: 64 });
    reader.push_chunk(car.clone().into());
    let mut blocks = Vec::new();
    while let Some(section) = reader.next_section().expect("a CAR") {
        blocks.push((section.cid, section.block));
    }
    let root = blocks[0].0;
    let written =
        |blocks: &[(ContentId, Bytes)]| build::write_car(&root, blocks.iter().map(|(cid, block)| (cid, block)));
    assert_eq!(written(&blocks), car);
    assert!(blocks.len() > 2, "several blocks");

    let mut changed = vec![Vec::new(), [car.as_slice(), &car].concat(), [&car[..], &[0]].concat()];
    for place in 0..blocks.len() {
        let mut without = blocks.clone();
        changed.push(written(&[&blocks[..], &[without.remove(place)]].concat()));
        changed.push(written(&without));
        let mut swapped = blocks.clone();
        swapped.swap(place, (place + 1) % blocks.len());
        changed.push(written(&swapped));
    }
    for place in 0..car.len() {
        let mut flipped = car.clone();
        flipped[place] ^= 1 << (place % 8);
        changed.push(flipped);
    }
    println!("{} changes of {} blocks", changed.len(), blocks.len());
    for (number, car) in changed.into_iter().enumerate() {
        let mut bundle = good().clone();
        *bundle.pointer_mut(place).expect("the blocks") = json!(STANDARD.encode(car));
        let refused = replayed(&resealed(bundle)).expect_err("other blocks");
        assert!(matches!(refused, BundleError::Blocks { .. }), "change {number}: {refused}");
    }
}

/// The newest block may only make a verdict worse, so whoever would have it better leaves that word out.
#[test]
fn the_word_on_the_newest_block_cannot_be_left_out() {
    for bundles in [&EXPORTED, &PROVEN] {
        let (_, _, bundle) = bundles.iter().find(|(name, _, _)| name == "record-pending.eth").expect("it is exported");
        let mut without = bundle.clone();
        *without.pointer_mut("/reading/given/latest").expect("a word on it") = Value::Null;
        let judged = ResolutionBundle::from_bytes(&resealed(without)).expect("of the form").judge_evidence(profiles());
        assert!(matches!(judged, Err(BundleError::Inconsistent(_))), "{judged:?}");
    }
}

/// A failing agent whose verdict is rewritten to `trusted`, with all digests made to fit.
#[test]
fn no_bundle_of_a_bad_agent_can_be_made_trusted_by_its_verdict() {
    for (name, state, bundle) in EXPORTED.iter().filter(|(_, state, _)| *state != TrustState::Trusted) {
        let mut forged = bundle.clone();
        forged["verdict"] = good()["verdict"].clone();
        assert!(matches!(replayed(&resealed(forged)), Err(BundleError::Verdict { .. })), "{name} {state}");
        let mut forged = bundle.clone();
        forged["verdict"]["state"] = json!("trusted");
        assert!(matches!(replayed(&resealed(forged)), Err(BundleError::Verdict { .. })), "{name} {state}");
    }
}

/// A stranger changes bytes or members of a bundle at random and corrects its digest. No such bundle is trusted, unless
/// its verdict is the original one.
#[test]
fn no_random_mutation_makes_a_bundle_trusted() {
    /// Mutations of one byte of the document, without a digest that fits: each is refused.
    const BYTES: usize = 1_500;
    /// Mutations of values, of bytes within texts, and of several values at once, each under a digest that fits.
    const VALUES: usize = 250;
    let pick = |bundles: &'static [(String, TrustState, Value)], state: TrustState| {
        let of_state = bundles.iter().filter(move |(_, found, _)| *found == state);
        of_state.map(|(_, _, bundle)| bundle).min_by_key(|bundle| bytes(bundle).len()).expect("one of this state")
    };
    let mut subjects = Vec::new();
    for state in [TrustState::Trusted, TrustState::Untrusted, TrustState::Indeterminate] {
        subjects.extend([pick(&EXPORTED, state), pick(&PROVEN, state)]);
    }
    subjects.push(consensus::consensus());
    let (mut tried, mut accepted) = (0, 0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = subjects
            .iter()
            .zip(1..)
            .map(|(bundle, seed)| {
                scope.spawn(move || {
                    let mut random = Random(seed);
                    let whole = bytes(bundle);
                    for _ in 0..BYTES {
                        let mut changed = whole.clone();
                        let place = random.below(whole.len());
                        changed[place] =
                            changed[place].wrapping_add(1 + u8::try_from(random.below(255)).expect("a byte"));
                        assert!(ResolutionBundle::from_bytes(&changed).is_err(), "byte {place}");
                    }
                    let mut places = Vec::new();
                    pointers(bundle, String::new(), &mut places);
                    (0..VALUES).filter(|_| is_accepted(bundle, &mutated(bundle, &places, &mut random))).count()
                })
            })
            .collect();
        for thread in threads {
            accepted += thread.join().expect("no mutation is trusted");
            tried += BYTES + VALUES;
        }
    });
    println!("{tried} mutations of {} bundles; {accepted} are accepted, with the same conclusion", subjects.len());
    assert!(tried >= 10_000 && accepted > 0, "{tried} mutations, {accepted} accepted");
}

/// Whether the mutated bundle verifies, which it may only with the conclusion of the one before.
fn is_accepted(bundle: &Value, mutated: &Value) -> bool {
    let Ok(read) = ResolutionBundle::from_bytes(&resealed(mutated.clone())) else { return false };
    gives_nothing_better(bundle, &read, mutated);
    let Ok(verified) = read.verify_by_replay(consensus::anchors()) else { return false };
    let verdict = verified.replay.verdict();
    let is_same = bundle["verdict"]["conclusion"] == verdict.conclusion;
    assert!(is_same || verdict.state != TrustState::Trusted, "a mutation is trusted: {mutated}");
    is_same
}

/// A forger writes the verdict that his evidence gives. That of a bad agent gives no `trusted`, and that of a good one
/// none about anything else.
fn gives_nothing_better(bundle: &Value, read: &ResolutionBundle, mutated: &Value) {
    let Ok(judged) = read.judge_evidence(consensus::anchors()) else { return };
    if judged.verdict().state != TrustState::Trusted {
        return;
    }
    assert_eq!(bundle["verdict"]["state"], "trusted", "{}", first_change(bundle, mutated));
    let identity = serde_json::to_value(&judged.verdict().identity).expect("JSON");
    for member in ["entry", "verbs", "card"] {
        assert_eq!(bundle["verdict"]["identity"][member], identity[member], "{}", first_change(bundle, mutated));
    }
}

/// Where two documents first differ, and how.
fn first_change(one: &Value, other: &Value) -> String {
    let mut places = Vec::new();
    pointers(one, String::new(), &mut places);
    let changed = places.iter().filter(|place| one.pointer(place) != other.pointer(place));
    changed.map(|place| format!("{place}: {:?} for {:?}\n", other.pointer(place), one.pointer(place))).collect()
}

/// The bundle with one to three values changed: by one of [`mutations`], by a byte within a text, or by the value of
/// another place.
fn mutated(bundle: &Value, places: &[String], random: &mut Random) -> Value {
    let mut copy = bundle.clone();
    for _ in 0..=random.below(3) {
        // Most values are nodes and slots; half of the picks go to what is outside of them.
        let mut place = &places[random.below(places.len())];
        while place.starts_with(WITNESS) && random.below(4) > 0 {
            place = &places[random.below(places.len())];
        }
        match (random.below(3), copy.pointer(place).cloned()) {
            (0, Some(Value::String(text))) if !text.is_empty() && text.is_ascii() => {
                let mut text = text.into_bytes();
                let at = random.below(text.len());
                text[at] = b"0123456789abcdefABCXYZ+/=:. -"[random.below(29)];
                *copy.pointer_mut(place).expect("it is there") = json!(String::from_utf8(text).expect("ASCII"));
            }
            (1, Some(_)) => {
                let other = bundle.pointer(&places[random.below(places.len())]).expect("a place of it").clone();
                *copy.pointer_mut(place).expect("it is there") = other;
            }
            (_, Some(_)) => {
                let mut ways = mutations(&copy, place);
                if !ways.is_empty() {
                    copy = ways.swap_remove(random.below(ways.len())).1;
                }
            }
            (_, None) => {}
        }
    }
    copy
}

/// A small generator of numbers (xorshift64*), so that every run tries the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).expect("31 bits") % limit
    }
}

#[test]
fn each_refusal_has_its_class() {
    let class = |change: fn(&mut Value)| {
        let mut changed = good().clone();
        change(&mut changed);
        replayed(&resealed(changed)).expect_err("refused").error_class()
    };
    assert_eq!(class(|b| b["schema"] = json!("clresolve.bundle/2")), "bundle-format-unknown");
    assert_eq!(class(|b| b["extra"] = json!(1)), "bundle-malformed");
    assert_eq!(class(|b| b["question"]["name"] = json!("SummarizeAgent.eth")), "bundle-malformed");
    assert_eq!(class(|b| b["question"]["profile"]["id"] = json!("mine/1")), "bundle-rules-unknown");
    let zeros = format!("sha256:{}", "0".repeat(64));
    let manifest =
        |b: &mut Value| b["question"]["manifests"][0]["digest"] = json!(format!("sha256:{}", "0".repeat(64)));
    assert_eq!(class(manifest), "bundle-rules-unknown");
    assert_eq!(class(|b| b["reading"]["given"]["block"]["number"] = json!(1)), "bundle-header-mismatch");
    assert_eq!(class(|b| b["ipfs"] = json!("not-asked")), "bundle-blocks-invalid");
    assert_eq!(class(|b| b["https"] = json!("not-asked")), "bundle-inconsistent");
    assert_eq!(class(|b| b["run"]["chain_id"] = json!(1)), "bundle-inconsistent");
    assert_eq!(class(|b| b["verdict"]["summary"] = json!("fine")), "bundle-verdict-differs");
    let mut other = good().clone();
    other["digest"] = json!(zeros);
    assert_eq!(replayed(&bytes(&other)).expect_err("refused").error_class(), "bundle-digest-mismatch");
    // The rules of the sandbox are not those of the world.
    let bundle = ResolutionBundle::from_bytes(&bytes(good())).expect("a bundle");
    assert_eq!(
        bundle.verify_by_replay(&ConformanceProfiles::builtin()).expect_err("refused").error_class(),
        "bundle-rules-unknown"
    );
}

/// A member twice: one reader would take the first, another the last.
/// The error with which a bundle is refused after a change, under a digest that fits.
fn refused(bundle: &Value, change: impl FnOnce(&mut Value)) -> BundleError {
    let mut changed = bundle.clone();
    change(&mut changed);
    replayed(&resealed(changed)).expect_err("refused")
}

/// The error with which the proofs of a bundle are refused after a change.
fn proofs_refused(bundle: &Value, change: impl FnOnce(&mut Value)) -> StateProofError {
    match refused(bundle, change) {
        BundleError::Proof(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_refusal_has_its_name() {
    let name = |change: fn(&mut Value)| refused(good(), change);
    assert_eq!(
        name(|b| b["schema"] = json!("clresolve.bundle/2")),
        BundleError::Format("clresolve.bundle/2".to_owned())
    );
    assert!(matches!(name(|b| b["extra"] = json!(1)), BundleError::Shape(_)));
    assert!(matches!(name(|b| b["question"]["profile"]["id"] = json!("mine/1")), BundleError::Rules(_)));
    let zeros = format!("sha256:{}", "0".repeat(64));
    let mut other = good().clone();
    other["digest"] = json!(zeros);
    let error = ResolutionBundle::from_bytes(&bytes(&other)).expect_err("refused");
    assert!(matches!(error, BundleError::Digest { expected, .. } if expected.to_string() == zeros), "{error:?}");
    let bundle = ResolutionBundle::from_bytes(&bytes(good())).expect("a bundle");
    let expected = ExpectedVerdict {
        name: EnsName::parse(GOOD).expect("a name"),
        profile: "agent-cards/1.0.0".to_owned(),
        depth: ResolutionDepth::Identity,
        chain: "eip155:31337".to_owned(),
        world: "sandbox".to_owned(),
        issuer: None,
        proof: None,
    };
    let keys = Ed25519KeySet::from(Ed25519SigningKey::generate().expect("randomness").public_key());
    assert_eq!(bundle.check_verdict_signature(&keys, &expected, Timestamp::UNIX_EPOCH), Err(BundleError::Unsigned));
}

#[test]
fn each_refusal_of_proofs_has_its_name() {
    let bundle = proven(RAW);
    let without_records = |b: &mut Value| b["reading"]["given"]["answer"]["records"]["offchain"] = json!(true);
    assert_eq!(proofs_refused(bundle, without_records), StateProofError::Contradicted("records"));
    let without_holder = |b: &mut Value| b["reading"]["given"]["holder"] = Value::Null;
    let on_holder = StateProofError::Contradicted("holder or expiry");
    assert_eq!(proofs_refused(bundle, without_holder), on_holder);
    let other_owner = |b: &mut Value| b["owner"]["read"]["holder"] = json!(format!("0x{}", "11".repeat(20)));
    assert_eq!(proofs_refused(bundle, other_owner), StateProofError::Contradicted("owner"));
    let attested = |b: &mut Value| b["reading"]["given"]["backing"] = json!("attested");
    assert_eq!(proofs_refused(bundle, attested), StateProofError::Missing);
    let look_ups =
        |b: &mut Value| *b.pointer_mut(&format!("{WITNESS}/name_look_ups")).expect("a list") = json!(["0x00"]);
    assert!(matches!(proofs_refused(bundle, look_ups), StateProofError::LookUps(_)));
    let left_over = |b: &mut Value| {
        let nodes = b.pointer_mut(&format!("{WITNESS}/state/nodes")).and_then(Value::as_array_mut).expect("a list");
        nodes.push(json!(format!("0xff{}", "ee".repeat(40))));
        nodes.sort_by_key(|node| node.as_str().map(str::to_owned));
    };
    assert_eq!(proofs_refused(bundle, left_over), StateProofError::State(ProvenCallError::LeftOver));

    // A contract that is proven, and is another one.
    let swapped = |b: &mut Value| {
        let contracts = b.pointer_mut(&format!("{WITNESS}/contracts")).expect("the contracts");
        contracts["multicall3"] = contracts["registry"].clone();
    };
    let reverted = ChainError::Resolver(ResolverContractError::CallReverted);
    assert_eq!(proofs_refused(bundle, swapped), StateProofError::Call(reverted));

    // One of which the proofs say nothing.
    let unproven = |b: &mut Value| {
        let contracts = b.pointer_mut(&format!("{WITNESS}/contracts")).expect("the contracts");
        contracts["multicall3"] = json!(format!("0x{}", "11".repeat(20)));
    };
    assert_eq!(proofs_refused(bundle, unproven), StateProofError::State(ProvenCallError::NotProven));

    // A list of numbers with the right hash, number and time, that is no header all the same.
    let no_header = |b: &mut Value| {
        let rlp = STANDARD.decode(b["header"].as_str().expect("a header")).expect("base64");
        let header: alloy_consensus::Header = alloy_rlp::decode_exact(&rlp).expect("a header");
        let members: Vec<u64> = (0..12).map(|at| if at == 8 { header.number } else { header.timestamp }).collect();
        let rlp = alloy_rlp::encode(&members);
        b["header"] = json!(STANDARD.encode(&rlp));
        b["reading"]["given"]["block"]["hash"] = json!(alloy_primitives::keccak256(&rlp));
    };
    assert_eq!(proofs_refused(bundle, no_header), StateProofError::Header);
}

#[test]
fn a_member_that_stands_twice_is_refused() {
    let text = String::from_utf8(bytes(good())).expect("UTF-8");
    let twice = text.replacen("\"verdict\":", "\"liars\":[],\"verdict\":", 1);
    assert!(matches!(ResolutionBundle::from_bytes(twice.as_bytes()), Err(BundleError::Json(_))));
}

/// A bundle of a purchase from the good agent, as the program writes it.
fn purchase() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file).display().to_string();
    let run = |arguments: &[&str]| {
        let output = fed(Command::new(env!("CARGO_BIN_EXE_clresolve")).args(arguments), b"");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["sandbox", "--receipts", &path("")]);
    let [receipt, request, payment, settlement, bundle] =
        ["agent-sdk.json", "request.json", "payment.txt", "settlement.txt", "bundle.json"].map(path);
    let verify = ["receipt", "verify", &receipt, "--name", GOOD, "--sandbox", "--request", &request];
    run(&[&verify[..], &["--payment", &payment, "--settlement", &settlement, "--bundle", &bundle]].concat());
    std::fs::read(bundle).expect("it was written")
}

#[test]
fn the_program_verifies_without_a_network_interface() {
    let mut command = Command::new("unshare");
    command.args(["-rn", env!("CARGO_BIN_EXE_clresolve")]);
    let allowed = Command::new("unshare").args(["-rn", "true"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        println!("skipped: this machine permits no network namespaces");
        return;
    }
    command.args(["bundle", "verify", "-", "-o", "json"]);
    let output = fed(&mut command, &bytes(proven(GOOD)));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let output = fed(&mut command, &bytes(good()));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let check: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(check["conclusion"], good()["verdict"]["conclusion"]);
    assert_eq!((&check["state"], &check["verdict"]["anchor"]["world"]), (&json!("trusted"), &json!("sandbox")));
    let output = fed(&mut command, &purchase());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let check: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(check["purchase"]["state"], "trusted");
    let mut asks = Command::new("unshare");
    let output = fed(asks.args(["-rn", env!("CARGO_BIN_EXE_clresolve"), "--sandbox", GOOD]), b"");
    assert_ne!(output.status.code(), Some(0), "the namespace has no loopback: what needs a network fails in it");
}

#[test]
fn a_bundle_of_the_past_is_refused_unless_its_block_is_named() {
    let program = || {
        let mut program = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        program.env_remove("CLRESOLVE_CONFIG");
        program
    };
    let mut export = program();
    export.args(["bundle", "export", "record-pending.eth", "--sandbox", "--block", "1"]);
    let past = fed(&mut export, b"").stdout;
    assert_eq!(serde_json::from_slice::<Value>(&past).expect("JSON")["verdict"]["state"], "trusted");
    let verify = |further: &[&str]| fed(program().args(["bundle", "verify", "-"]).args(further), &past);
    for further in [&[] as &[&str], &["--max-age", "10m"], &["--block", "2"], &["--block", "finalized"]] {
        let refused = verify(further);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.starts_with("bundle-past-block: "), "{further:?} {said}");
    }
    let meant = verify(&["--block", "1"]);
    let said = String::from_utf8_lossy(&meant.stdout);
    assert!(meant.status.code() == Some(0) && said.contains("block 1 (1) of "), "{said}");
}

#[test]
fn the_program_says_what_is_shown_and_what_is_not() {
    let run = |arguments: &[&str], input: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        fed(command.args(["bundle", "verify", "-"]).args(arguments), input)
    };
    let whole = bytes(good());
    let output = run(&[], &whole);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for line in ["world sandbox", "shown here:", "the exporter's word:", "If you believe the exporter of this bundle"] {
        assert!(text.contains(line), "{line} is missing from\n{text}");
    }
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(run(&["--expect-verb", "translate"], &whole).status.code(), Some(4));
    assert_eq!(run(&["--max-age", "1d"], &whole).status.code(), Some(0));
    let old = run(&["--max-age", "1ns"], &whole);
    assert_eq!((old.status.code(), old.stdout.len()), (Some(1), 0));
    assert!(old.stderr.starts_with(b"bundle-too-old: "), "{}", String::from_utf8_lossy(&old.stderr));
    let refused = run(&["-o", "json"], &whole[1..]);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0));
    assert!(refused.stderr.starts_with(b"bundle-malformed: "), "{}", String::from_utf8_lossy(&refused.stderr));
    for (_, state, bundle) in
        EXPORTED.iter().filter(|(name, state, _)| *state != TrustState::Trusted || name == RAW).take(3)
    {
        let expected = match state {
            TrustState::Trusted => 0,
            TrustState::Untrusted => 1,
            TrustState::Indeterminate => 3,
        };
        assert_eq!(run(&[], &bytes(bundle)).status.code(), Some(expected));
    }
}

/// Runs a command with this standard input and an empty environment.
fn fed(command: &mut Command, input: &[u8]) -> Output {
    program::fed(command.env_clear(), input)
}

/// JSON Pointers of all values below `value`.
fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let below = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                found.push(below.clone());
                pointers(member, below, found);
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                found.push(format!("{at}/{place}"));
                pointers(item, format!("{at}/{place}"), found);
            }
        }
        _ => {}
    }
}

/// The bundle with the value at `place` dropped, made null, changed a little, doubled, or swapped with its neighbour.
fn mutations(bundle: &Value, place: &str) -> Vec<(&'static str, Value)> {
    let (parent, name) = place.rsplit_once('/').expect("a pointer");
    let name = name.replace("~1", "/").replace("~0", "~");
    let mut mutated = Vec::new();
    let mut with = |kind, change: &dyn Fn(&mut Value)| {
        let mut copy = bundle.clone();
        change(copy.pointer_mut(parent).expect("a place of the bundle"));
        if copy != *bundle {
            mutated.push((kind, copy));
        }
    };
    with("drop", &|parent| match parent {
        Value::Object(members) => drop(members.remove(&name)),
        Value::Array(items) => drop(items.remove(name.parse().expect("a place"))),
        _ => {}
    });
    with("null", &|parent| *child(parent, &name) = Value::Null);
    with("change", &|parent| {
        let value = child(parent, &name);
        *value = match &*value {
            Value::String(text) if text.is_empty() => json!("x"),
            Value::String(text) => json!(format!("{}{}", &text[1..], &text[..1])),
            Value::Number(number) => json!(number.as_u64().unwrap_or_default() + 1),
            Value::Bool(truth) => json!(!truth),
            Value::Null => json!("x"),
            Value::Array(items) => json!([items.as_slice(), &[json!("x")]].concat()),
            Value::Object(members) => json!(members.values().collect::<Vec<_>>()),
        };
    });
    with("double", &|parent| match parent {
        Value::Object(members) => drop(members.insert(format!("{name}2"), members[&name].clone())),
        Value::Array(items) => items.push(items[name.parse::<usize>().expect("a place")].clone()),
        _ => {}
    });
    with("swap", &|parent| match parent {
        Value::Object(members) => {
            if let Some(other) = members.keys().skip_while(|key| **key != name).nth(1).cloned() {
                let (one, two) = (members[&name].clone(), members[&other].clone());
                members.insert(name.clone(), two);
                members.insert(other, one);
            }
        }
        Value::Array(items) => items.rotate_left(1),
        _ => {}
    });
    mutated
}

fn child<'a>(parent: &'a mut Value, name: &str) -> &'a mut Value {
    match parent {
        Value::Array(items) => &mut items[name.parse::<usize>().expect("a place")],
        other => &mut other[name],
    }
}
