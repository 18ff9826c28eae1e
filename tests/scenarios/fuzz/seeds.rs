//! The seeds of every target: small inputs, good and bad, from which a fuzzer finds its way.

use std::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::{SolValue as _, sol};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64URL};
use clresolve_beacon::{ConsensusFork, LightClientCodec as _, LightClientFinalityUpdate};
use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::records::TextRecordKey;
use clresolve_ipfs::build::{self, BlocksByCid, DagBuilder, DirectoryEntries, HamtFanout, UnixFsLayout};
use clresolve_ipfs::{ContentId, MAX_DIGEST_BYTES};
use clresolve_jose::Ed25519PublicKey;
use clresolve_verdict::verdict::Verdict;
use ed25519_dalek::Signer as _;
use serde_json::{Value, json};

use super::targets::{BEACON, BLANK, Beacon, CARD, HEADER, MADE, NOW, OFFER, PAYEE, RESOLVER, SHOP, aggregate};

sol! {
    error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData);
    error ResolverNotFound(bytes name);
    error ResolverNotContract(bytes name, address resolver);
    error ResolverError(bytes errorData);
    error HttpError(uint16 status, string message);
}

/// The seeds of a target, by file name.
pub(crate) fn of(target: &str) -> BTreeMap<String, Vec<u8>> {
    let seeds = match target {
        "name" => names(),
        "records" => records(),
        "cid" => cids(),
        "car" => cars(),
        "dag" => dags(),
        "card" => cards(),
        "abi" => replies(),
        "ccip" => look_ups(),
        "beacon" => beacon_data(),
        "bundle" => bundles(),
        "jws" => signed_verdicts(),
        "resources" => resources(),
        "ledger" => ledgers(),
        "system" => systems(),
        "proof" => proofs(),
        "header" => headers(),
        "block-receipts" => block_receipts(),
        "terms" => terms(),
        "offers" => offers(),
        "payment-header" => payment_headers(),
        "receipt" => receipts(),
        "decision-request" => decision_requests(),
        "request" => requests(),
        other => panic!("no seeds for {other}"),
    };
    seeds.into_iter().map(|(file, input)| (file.to_owned(), input)).collect()
}

/// Questions about payments: a reply, terms alone, and what is none.
fn decision_requests() -> Seeds {
    let asked = |members: Value| {
        let mut question = json!({"name": "a.eth", "verb": "summarize"});
        question.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
        question.to_string().into_bytes()
    };
    let response = |headers: Value| json!({"status": 402, "url": SHOP, "headers": headers, "body": "{}"});
    let twice = r#"{"name":"a.eth","verb":"v","response":{"status":402,"url":"u","headers":{"a":"1","a":["2"]}}}"#;
    vec![
        ("reply", asked(json!({"response": response(json!([["payment-required", "e30="]]))}))),
        ("headers-by-name", asked(json!({"response": response(json!({"payment-required": ["e30=", "e30="]}))}))),
        ("header-twice", twice.into()),
        ("base64", asked(json!({"response": {"status": 402, "url": SHOP, "body_base64": "e30="}}))),
        ("terms", asked(json!({"url": SHOP, "paymentRequired": {"x402Version": 2, "accepts": []}, "selected": 1}))),
        ("entry", asked(json!({"paymentRequired": {}, "selected": {"scheme": "exact"}, "header": "e30="}))),
        ("no-entry", asked(json!({"paymentRequired": {}, "selected": ["scheme"]}))),
        ("limits", asked(json!({"paymentRequired": {}, "limits": {"networks": ["eip155:1"], "max_amount": "7"}}))),
        ("both", asked(json!({"paymentRequired": {}, "response": response(json!([]))}))),
    ]
}

/// Requests that the target's schema takes, and some that it does not.
fn requests() -> Seeds {
    let good =
        json!({"x402": {"verb": "sum", "version": "1.0.0", "request_id": "r"}, "input": {"n": 1.5, "text": "abcd"}});
    let with = |pointer: &str, value: Value| changed(&good, pointer, value).to_string().into_bytes();
    let text = good.to_string();
    vec![
        ("good", text.clone().into_bytes()),
        ("other-verb", with("/x402/verb", json!("pay"))),
        ("other-version", with("/x402/version", json!("1.1.0"))),
        ("long", with("/input/text", json!("abcde"))),
        ("inexact", text.replace("1.5", "0.10000000000000000000000000001").into_bytes()),
        ("twice", text.replace("\"n\"", "\"n\":1,\"n\"").into_bytes()),
        ("lines", serde_json::to_vec_pretty(&good).expect("JSON")),
    ]
}

/// One receipt of each way to sign, by a key of the seed of 32 sevens, and some that are none.
fn receipts() -> Seeds {
    let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let sealed = |canonical: &str| {
        let hash = Digest::compute(canonical.as_bytes()).to_hex();
        let signature = STANDARD.encode(key.sign(hash.as_bytes()).to_bytes());
        (hash, signature)
    };
    let call =
        r#"{"input":{"10":1e21,"9":-1.5},"output":"\ud800","signer":"a.eth","ts":"2026-01-01T00:00:00Z","verb":"x"}"#;
    let rebuilt = call.replace(r#""10":1e21,"9":-1.5"#, r#""9":-1.5,"10":1e+21"#);
    let open = &call[..call.len() - 1];
    let (hash, sig) = sealed(&rebuilt);
    let agent_sdk = format!(
        r#"{open},"metadata":{{"proof":{{"canonicalization":"json.sorted_keys.v1","hash_sha256":"{hash}"}}}},"signature":{{"alg":"ed25519","kid":"k","sig":"{sig}"}}}}"#
    );
    let proof = |hash: &str, sig: &str| {
        json!({"alg": "ed25519-sha256", "canonical": "cl-stable-json-v1", "hash_sha256": hash, "signature_b64": sig,
            "signer_id": "a.eth"})
    };
    let content =
        json!({"status": "success", "trace": {"trace_id": "t"}, "x402": {"verb": "summarize", "version": "1.0.0"}});
    let with = |proof: Value| {
        let mut receipt = content.clone();
        receipt["metadata"] = json!({"proof": proof});
        receipt
    };
    let (hash, sig) = sealed(
        &with(json!({"alg": "ed25519-sha256", "canonical": "cl-stable-json-v1", "signer_id": "a.eth"})).to_string(),
    );
    let sdk = with(proof(&hash, &sig)).to_string();
    let layered = json!({"receipt": {"verb": "x", "line": "1.1.0"}, "signature": {"proof": {"alg": "ed25519",
        "canonical": "json.sorted_keys.v1", "kid": "k", "signature": "AA", "signer_id": "a.eth"}}});
    let execution = json!({"schema": "clas.execution.receipt.v1", "agent": {"ens": "a.eth", "kid": "k"},
        "proofs": [{"type": "execution", "signature": {"alg": "Ed25519", "kid": "k", "value": "AA=="}}]});
    let duplicate = agent_sdk.replace(r#""verb":"x""#, r#""verb":"y","verb":"x""#);
    [
        ("agent-sdk", agent_sdk),
        ("sdk", sdk),
        ("layered", layered.to_string()),
        ("execution", execution.to_string()),
        ("duplicate", duplicate),
        ("numbers", r#"{"a":[1e400,-0,9007199254740993,0.1]}"#.to_owned()),
    ]
    .map(|(file, text)| (file, text.into_bytes()))
    .into()
}

type Seeds = Vec<(&'static str, Vec<u8>)>;

fn names() -> Seeds {
    let long = "a".repeat(255);
    let seeds = [
        ("plain", "summarizeagent.eth"),
        ("capitals", "SummarizeAgent.ETH"),
        ("subname", "alice.wildcard.eth"),
        ("emoji", "\u{1f468}\u{200d}\u{1f4bb}.eth"),
        ("emoji-with-selector", "1\u{fe0f}\u{20e3}.eth"),
        ("mixed-scripts", "\u{441}heckout.eth"),
        ("greek", "\u{3be}\u{3c2}.eth"),
        ("combining", "cafe\u{301}.eth"),
        ("underscores", "__a.eth"),
        ("hyphens", "xn--a.eth"),
        ("empty-label", "a..eth"),
        ("right-to-left", "\u{5d0}\u{202e}.eth"),
        ("full-width", "\u{ff41}\u{3002}eth"),
        ("arabic", "\u{664}\u{6f4}.eth"),
        ("long", &long),
    ];
    seeds.map(|(file, text)| (file, text.as_bytes().to_vec())).into()
}

fn good_records() -> Vec<(TextRecordKey, String)> {
    let cid = ContentId::from_raw_block(CARD.as_bytes());
    vec![
        (TextRecordKey::Entry, "x402://summarizeagent.eth/summarize/v1".to_owned()),
        (TextRecordKey::Agentcard, "https://example.org/card.json".to_owned()),
        (TextRecordKey::CidAgentcard, cid.to_string()),
        (TextRecordKey::MirrorIpfs, format!("ipfs://{cid}")),
        (TextRecordKey::Checksum, Digest::compute(CARD.as_bytes()).to_string()),
        (TextRecordKey::Owner, "publisher.eth".to_owned()),
    ]
}

fn records() -> Seeds {
    let with = |key: TextRecordKey, value: &[u8]| {
        let mut lines: Vec<Vec<u8>> = good_records().into_iter().map(|(_, value)| value.into_bytes()).collect();
        let at = TextRecordKey::ALL.iter().position(|known| *known == key).expect("a key");
        lines[at] = value.to_vec();
        lines.join(&b'\n')
    };
    let cid = ContentId::from_raw_block(CARD.as_bytes());
    let upper = Digest::compute(CARD.as_bytes()).to_hex().to_ascii_uppercase();
    vec![
        ("good", with(TextRecordKey::Owner, b"publisher.eth")),
        ("checksum-in-capitals", with(TextRecordKey::Checksum, upper.as_bytes())),
        ("checksum-cut", with(TextRecordKey::Checksum, &upper.as_bytes()[..62])),
        ("cid-of-another", with(TextRecordKey::CidAgentcard, ContentId::from_raw_block(b"x").to_string().as_bytes())),
        ("cid-version-0", with(TextRecordKey::CidAgentcard, b"QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPBdG")),
        ("cid-inline", with(TextRecordKey::CidAgentcard, b"bafkqabtimvwgy3yk")),
        ("mirror-by-gateway", with(TextRecordKey::MirrorIpfs, format!("https://example.org/ipfs/{cid}").as_bytes())),
        ("mirror-by-subdomain", with(TextRecordKey::MirrorIpfs, format!("https://{cid}.ipfs.example.org/").as_bytes())),
        ("mirror-with-path", with(TextRecordKey::MirrorIpfs, format!("ipfs://{cid}/a%20b/c.json").as_bytes())),
        ("mirror-with-dots", with(TextRecordKey::MirrorIpfs, format!("ipfs://{cid}/../c.json").as_bytes())),
        ("owner-in-capitals", with(TextRecordKey::Owner, b"Publisher.eth")),
        ("owner-with-space", with(TextRecordKey::Owner, b"publisher.eth ")),
        ("owner-right-to-left", with(TextRecordKey::Owner, "publisher.\u{202e}hte".as_bytes())),
        ("owner-not-utf8", with(TextRecordKey::Owner, b"publisher.\xff")),
        ("entry-of-another", with(TextRecordKey::Entry, b"x402://stranger.eth/summarize/v1")),
        ("url-not-https", with(TextRecordKey::Agentcard, b"http://example.org/card.json")),
        ("no-records", b"\n\n\n\n\n\n".to_vec()),
    ]
}

fn cids() -> Seeds {
    let raw = ContentId::from_raw_block(b"seed");
    let node = ContentId::from_dag_pb_block(b"");
    let inline = [&[1, 0x55, 0, 5][..], b"hello"].concat();
    let longest = [&[1, 0x55, 0, 0x80, 1][..], &[b'x'; MAX_DIGEST_BYTES]].concat();
    let base16: String = raw.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    vec![
        ("raw", raw.to_string().into_bytes()),
        ("with-path", format!("{node}\nagents/v1.0.0/a.json").into_bytes()),
        ("with-escapes", format!("{node}\na%20b/%C3%A9").into_bytes()),
        ("with-dots", format!("{node}\na/%2e%2e/b").into_bytes()),
        ("with-slash", format!("{node}\na%2fb%00").into_bytes()),
        ("version-0", b"QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPBdG".to_vec()),
        ("base16", format!("f{base16}").into_bytes()),
        ("base36", b"k2jmtxseoaac5w4ex4y1kusvgpqzsf81duccxl6oi1z9nqr3uyajj1qr".to_vec()),
        ("base64", b"mAVUSIA".to_vec()),
        ("binary", raw.to_bytes()),
        ("binary-version-0", node.to_bytes()[2..].to_vec()),
        ("inline", inline),
        ("inline-longest", longest),
        ("sha1", b"bafkrcfar62wy5rjkfgckxkx5pq5vczidpboca4q".to_vec()),
    ]
}

/// Small files, so that their graphs are.
fn files(count: usize) -> BTreeMap<String, bytes::Bytes> {
    (0..count).map(|n| (format!("agents/agent-{n}.json"), format!("{{\"number\": {n}}}\n").into())).collect()
}

fn sharded() -> UnixFsLayout {
    UnixFsLayout { shard_above: 2, fanout: HamtFanout::SMALLEST, ..UnixFsLayout::default() }
}

fn cars() -> Seeds {
    let seed = |chunk: u8, root: &ContentId, blocks: &BlocksByCid| {
        // The root comes first, as gateways send it.
        let others = blocks.iter().filter(|(cid, _)| *cid != root);
        [vec![chunk], build::write_car(root, blocks.get_key_value(root).into_iter().chain(others))].concat()
    };
    let mut dag = DagBuilder::default();
    let file = dag.add_file(&[b'a'; 300], 64).cid;
    let file_blocks = dag.into_blocks();
    let (root, blocks) = build::build_directory_tree(&files(3), UnixFsLayout::default());
    let raw = ContentId::from_raw_block(b"hello");
    let hello = BlocksByCid::from([(raw, "hello".into())]);
    let wrong = BlocksByCid::from([(raw, "hullo".into())]);
    let one = seed(6, &raw, &hello);
    let mut cut = one.clone();
    cut.truncate(one.len() - 2);
    vec![
        ("raw", one.clone()),
        ("raw-cut", cut),
        ("raw-with-tail", [&one[..], &[0, 0, 0]].concat()),
        ("raw-twice", [&one[..], &one[1 + 59..]].concat()),
        ("wrong-block", seed(255, &raw, &wrong)),
        ("file", seed(10, &file, &file_blocks)),
        ("tree", seed(80, &root, &blocks)),
        ("version-2", version_2(&one)),
        ("header-only", seed(3, &raw, &BlocksByCid::new())),
    ]
}

/// The CARv1 of a seed, in the envelope of a CARv2.
fn version_2(seed: &[u8]) -> Vec<u8> {
    let inner = &seed[1..];
    let mut car = vec![seed[0]];
    car.extend(b"\x0a\xa1\x67version\x02");
    car.extend([0; 16]);
    car.extend(51_u64.to_le_bytes());
    car.extend((inner.len() as u64).to_le_bytes());
    car.extend(0_u64.to_le_bytes());
    car.extend(inner);
    car
}

fn dags() -> Seeds {
    let mut dag = DagBuilder::default();
    let file = dag.add_file(&[b'a'; 300], 64).cid;
    let file_blocks = dag.into_blocks();
    let (tree, tree_blocks) = build::build_directory_tree(&files(3), UnixFsLayout::default());
    let (hamt, hamt_blocks) = build::build_directory_tree(&files(6), sharded());
    let mut dag = DagBuilder::default();
    let leaf = dag.add_raw_block("leaf");
    let inner = dag.add_directory(&DirectoryEntries::from([("leaf".to_owned(), leaf)]));
    let diamond = dag.add_directory(&DirectoryEntries::from([("a".to_owned(), inner), ("b".to_owned(), inner)])).cid;
    let diamond_blocks = dag.into_blocks();
    let raw = ContentId::from_raw_block(b"hello");
    let hello = BlocksByCid::from([(raw, "hello".into())]);
    vec![
        ("file", graph("", &file, &file_blocks)),
        ("tree", graph("agents/agent-1.json", &tree, &tree_blocks)),
        ("tree-missing", graph("agents/nobody.json", &tree, &tree_blocks)),
        ("tree-folder", graph("agents", &tree, &tree_blocks)),
        ("hamt", graph("agents/agent-4.json", &hamt, &hamt_blocks)),
        ("hamt-missing", graph("agents/nobody.json", &hamt, &hamt_blocks)),
        ("diamond", graph("b/leaf", &diamond, &diamond_blocks)),
        ("below-a-file", graph("b/leaf/more", &diamond, &diamond_blocks)),
        ("raw", graph("", &raw, &hello)),
        ("symlink", pieces(&[b"", b"\x0a\x0d\x08\x04\x12\x09card.json"])),
        ("inline-data", pieces(&[b"", b"\x0a\x0b\x08\x02\x12\x05hello\x18\x05"])),
        ("empty-directory", pieces(&[b"a", b"\x0a\x02\x08\x01"])),
        ("garbage", pieces(&[b"", b"\x0a\x04\xff\xff\xff\xff"])),
    ]
}

/// A graph as the target reads it: blocks from the leaves up, with a number in place of each digest.
fn graph(path: &str, root: &ContentId, blocks: &BlocksByCid) -> Vec<u8> {
    let mut order: Vec<ContentId> = Vec::new();
    place(root, blocks, &mut order);
    let drafts: Vec<Vec<u8>> = order.iter().map(|cid| draft(cid, blocks, &order)).collect();
    let parts: Vec<&[u8]> = [path.as_bytes()].into_iter().chain(drafts.iter().map(Vec::as_slice)).collect();
    pieces(&parts)
}

/// Puts `cid` after all that it links to.
fn place(cid: &ContentId, blocks: &BlocksByCid, order: &mut Vec<ContentId>) {
    if order.contains(cid) {
        return;
    }
    for child in blocks.keys().filter(|child| find(&blocks[cid], child).is_some()) {
        place(child, blocks, order);
    }
    order.push(*cid);
}

fn draft(cid: &ContentId, blocks: &BlocksByCid, order: &[ContentId]) -> Vec<u8> {
    let mut draft = blocks[cid].to_vec();
    for (number, child) in order.iter().enumerate() {
        while let Some(at) = find(&draft, child) {
            draft[at + 4..at + 35].copy_from_slice(&BLANK);
            draft[at + 35] = u8::try_from(number).expect("a seed has few blocks");
        }
    }
    draft
}

fn find(block: &[u8], cid: &ContentId) -> Option<usize> {
    let bytes = cid.to_bytes();
    block.windows(bytes.len()).position(|window| window == bytes)
}

fn pieces(parts: &[&[u8]]) -> Vec<u8> {
    let length = |part: &[u8]| u16::try_from(part.len()).expect("a seed is small").to_be_bytes();
    parts.iter().flat_map(|part| [&length(part)[..], part].concat()).collect()
}

fn cards() -> Seeds {
    let with = |from: &str, to: &str| {
        assert!(CARD.contains(from), "{from}");
        CARD.replacen(from, to, 1).into_bytes()
    };
    vec![
        ("good", CARD.into()),
        ("duplicate-key", with("\"id\":", "\"\\u0069d\": 1, \"id\":")),
        ("byte-order-mark", [b"\xef\xbb\xbf", CARD.as_bytes()].concat()),
        ("not-utf8", with("long", "l").into_iter().chain([0xff]).collect()),
        ("numbers", br#"{"a": [0, -1, 1.5, 1e3, 18446744073709551615, -9223372036854775808]}"#.to_vec()),
        ("escapes", br#"{"\u0061": "\ud83d\ude00\n\u0000", "b/c~d": [{"b/c~d": null}]}"#.to_vec()),
        ("deep", format!("{}1{}", "{\"a\":".repeat(17), "}".repeat(17)).into_bytes()),
        ("not-an-object", b"[{}]".to_vec()),
        ("cut", CARD.as_bytes()[..700].to_vec()),
        ("private-address", with("agents@example.org", "http://10.0.0.1:8080/")),
        ("secret", with("\"publisher\":", "\"api_key\": \"ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2\", \"publisher\":")),
        ("script", with("Makes", "<script>alert(1)</script>")),
        ("personal-data", with("Makes", "Call +1 (415) 555-2671.")),
        ("entry-malformed", with("/summarize/v1\"", "/summarize/v1?x#y\"")),
        ("commercial", with("\"commons\"", "\"commercial\"")),
        ("date", with("2026-01-05T", "2026-02-30T")),
    ]
}

fn resources() -> Seeds {
    const GOOD: &str = "\
a2a: {protocolVersion: '1.0'}
capabilities: {streaming: true}
authentication: {schemes: [bearer]}
provider: {organization: Example, url: 'https://example.org'}
---
apiVersion: orloj.dev/v1
kind: AgentSystem
metadata:
  name: library
  namespace: below
  labels: {orloj.dev/version: '2.1.0'}
  annotations: {orloj.dev/description: Lends books.}
spec:
  agents: [librarian]
  a2a: {enabled: true, auth: public}
---
apiVersion: orloj.dev/v1
kind: Agent
metadata: {name: librarian, namespace: below}
spec:
  prompt: |
    You know
    every shelf.
  tools: [find, lend]
---
apiVersion: orloj.dev/v1
kind: Tool
metadata: {name: find, namespace: below}
spec: {description: Finds a book, capabilities: [search], input_schema: &s {type: object, a: [1, 1.5, ~, true]}}
---
apiVersion: orloj.dev/v1
kind: Tool
metadata: {name: lend, namespace: below}
spec: {operation_classes: [write], input_schema: {}}
";
    let with = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        GOOD.replacen(from, to, 1).into_bytes()
    };
    vec![
        ("good", GOOD.into()),
        ("a2a-0", with("'1.0'", "'0.2'")),
        ("prompt", with("orloj.dev/description", "other")),
        ("secret", with("Finds a book", "'password=hunter2hunter'")),
        ("alias", with("input_schema: {}", "input_schema: {<<: {b: 1}, c: 2}")),
        ("hidden", with("enabled: true", "enabled: false")),
        ("no-agent", with("[librarian]", "[porter]")),
        ("unquoted", with("'2.1.0'", "2.1")),
        ("cut", GOOD.as_bytes()[..GOOD.len() / 2].to_vec()),
    ]
}

fn ledgers() -> Seeds {
    let estimate = |point: f64| format!("{{\"point\": {point:e}, \"lower\": {point:e}, \"upper\": {point:e}}}");
    let record = |id: &str, predecessors: &str, payload: &str| {
        format!(
            "{{\"id\": \"{id}\", \"predecessors\": [{predecessors}], \"landauer_cost\": {}, \"resources\": {{\"energy\": {}, \
             \"time\": {}}}, \"cognitive_split\": {{}}, \"payload\": \"{payload}\"}}\n",
            estimate(2.854e-21),
            estimate(4e-9),
            estimate(0.25)
        )
    };
    const FIRST: &str = "01HZQK3P8EMXR9V7T5N2W4J6BQ";
    const SECOND: &str = "0190F5E8A1C2D3E4F5061728394A5B6C";
    // {"agent_id":"01HZQK3P8EMXR9V7T5N2W4J6CA"}, and the same with ...CB
    const A: &str = "eyJhZ2VudF9pZCI6IjAxSFpRSzNQOEVNWFI5VjdUNU4yVzRKNkNBIn0=";
    const B: &str = "eyJhZ2VudF9pZCI6IjAxSFpRSzNQOEVNWFI5VjdUNU4yVzRKNkNCIn0=";
    let first = record(FIRST, "", A);
    let caused = format!("{first}\n{}", record(SECOND, &format!("\"{FIRST}\""), B));
    vec![
        ("one", first.clone().into_bytes()),
        ("caused", caused.clone().into_bytes()),
        ("twice", first.repeat(2).into_bytes()),
        ("nobody", record(FIRST, "", "").into_bytes()),
        ("counterfactual", record(FIRST, "", "UEFDUgU/4AAAAAAAAA==").into_bytes()),
        ("large", caused.replace("2.5e-1", "1e200").into_bytes()),
        ("cut", caused.as_bytes()[..caused.len() - 100].to_vec()),
    ]
}

fn word(value: u64) -> Vec<u8> {
    U256::from(value).to_be_bytes_vec()
}

/// What the Universal Resolver returns for these answers to the text keys.
fn resolved(elements: Vec<Bytes>) -> Vec<u8> {
    let resolver = Address::with_last_byte(RESOLVER);
    (Bytes::from(elements.abi_encode()), resolver).abi_encode_params()
}

fn texts() -> Vec<Bytes> {
    let good: BTreeMap<TextRecordKey, String> = good_records().into_iter().collect();
    TextRecordKey::ALL.map(|key| good.get(&key).cloned().unwrap_or_default().abi_encode().into()).into()
}

fn first(element: Vec<u8>) -> Vec<u8> {
    let mut elements = texts();
    elements[0] = element.into();
    resolved(elements)
}

fn error(data: impl alloy_sol_types::SolError) -> Vec<u8> {
    data.abi_encode()
}

fn replies() -> Seeds {
    let kind = |kind: u8, data: Vec<u8>| [vec![kind], data].concat();
    let refused = |data: Vec<u8>| kind(0, aggregate(false, &data));
    let resolver = Address::with_last_byte(RESOLVER);
    vec![
        ("good", kind(0, aggregate(true, &resolved(texts())))),
        ("resolver-good", kind(2, resolved(texts()))),
        ("resolver-no-texts", kind(2, resolved(vec![]))),
        ("resolver-not-utf8", kind(2, first(Bytes::from_static(b"\xff\xfe").abi_encode()))),
        ("resolver-http-error", kind(2, first(error(HttpError { status: 502, message: "bad".to_owned() })))),
        ("resolver-empty-element", kind(2, first(Vec::new()))),
        ("offset-in-head", kind(2, [word(0), word(5)].concat())),
        ("offset-far", kind(2, [word(u64::MAX), word(5)].concat())),
        ("shared-elements", kind(2, [word(64), word(5), word(96), word(32), word(1), word(32)].concat())),
        ("not-found", refused(error(ResolverNotFound { name: Bytes::new() }))),
        ("not-contract", refused(error(ResolverNotContract { name: Bytes::new(), resolver }))),
        ("resolver-error", refused(error(ResolverError { errorData: vec![8, 0xc3, 0x79, 0xa0].into() }))),
        ("empty", kind(0, Vec::new())),
        ("reverts", kind(1, error(HttpError { status: 404, message: "x".to_owned() }))),
        (
            "body-batch",
            kind(3, br#"[{"jsonrpc":"2.0","id":0,"result":"0x1"},{"jsonrpc":"2.0","id":1,"result":null}]"#.into()),
        ),
        ("body-error", kind(3, br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"limit"}}"#.into())),
        ("body-html", kind(3, b"<html>".into())),
    ]
}

fn look_ups() -> Seeds {
    let sender = clresolve_state::UNIVERSAL_RESOLVER;
    let look_up = |sender: Address, urls: &[&str]| {
        error(OffchainLookup {
            sender,
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            callData: vec![1, 2, 3].into(),
            callbackFunction: [4, 5, 6, 7].into(),
            extraData: vec![8].into(),
        })
    };
    let url = "https://example.org/{sender}/{data}.json";
    let good = look_up(sender, &[url]);
    vec![
        ("good", pieces(&[&good, b"answer", &resolved(texts())])),
        ("no-urls", pieces(&[&look_up(sender, &[]), b"answer", &resolved(texts())])),
        ("another-sender", pieces(&[&look_up(Address::ZERO, &[url]), b"answer", &resolved(texts())])),
        ("many-urls", pieces(&[&look_up(sender, &[url; 9]), b"", b""])),
        ("cut", pieces(&[&good[..good.len() - 40], b"answer", b""])),
        ("body", br#"{"data": "0x00ff"}"#.to_vec()),
        ("body-no-hex", br#"{"data": "words"}"#.to_vec()),
        ("body-long", format!("{{\"data\": \"0x{}\"}}", "00".repeat(300)).into_bytes()),
        ("body-more", br#"{"data": "0x", "data": "0x01", "message": null}"#.to_vec()),
        ("template", url.as_bytes().to_vec()),
        ("template-relative", b"//{sender}{sender}?{data}#".to_vec()),
    ]
}

/// Changes to a good bundle: see the target.
fn bundles() -> Seeds {
    let changed = |kind: u8, changes: &[(&str, &str)]| {
        let parts: Vec<&[u8]> = changes.iter().flat_map(|(at, to)| [at.as_bytes(), to.as_bytes()]).collect();
        [vec![kind], pieces(&parts)].concat()
    };
    let records = "/reading/given/answer/records/records";
    let witness = "/reading/given/backing/proven";
    vec![
        ("good", changed(1, &[])),
        ("good-proven", changed(2, &[])),
        ("bytes", [b"\0", &br#"{"schema": "clresolve.bundle/1", "digest": "sha256:00"}"#[..]].concat()),
        ("state", changed(1, &[("/verdict/state", "\"untrusted\"")])),
        ("entry", changed(1, &[(&format!("{records}/cl.entry"), "\"x402://a.eth/b/v1\"")])),
        ("entry-proven", changed(2, &[(&format!("{records}/cl.entry"), "\"x402://a.eth/b/v1\"")])),
        ("checksum", changed(1, &[(&format!("{records}/cl.checksum.agentcard"), "null")])),
        ("blocks", changed(1, &[("/ipfs", "{\"blocks\": {\"by\": \"gateway\", \"car\": \"AA==\"}}")])),
        ("header", changed(2, &[("/header", "null"), ("/reading/given/block/number", "7")])),
        ("node", changed(2, &[(&format!("{witness}/state/nodes/0"), "\"0x80\"")])),
        ("code", changed(2, &[(&format!("{witness}/state/codes/0"), "\"0x00\"")])),
        ("accounts", changed(2, &[(&format!("{witness}/state/accounts"), "{}")])),
        ("look-ups", changed(2, &[(&format!("{witness}/name_look_ups"), "[\"0x\", \"0x\"]")])),
        ("contracts", changed(2, &[(&format!("{witness}/contracts/multicall3"), "null")])),
        ("signed", changed(1, &[("/signed", "\"a.b.c\"")])),
    ]
}

fn signed_verdicts() -> Seeds {
    let time = |seconds: i64| jiff::Timestamp::from_second(seconds).expect("in range").to_string();
    let node = EnsName::parse("summarizeagent.eth").expect("a name");
    let digest = Digest::compute(CARD.as_bytes()).to_string();
    let verdict = json!({
        "schema": "clresolve.verdict/1", "id": "", "conclusion": "",
        "name": {"input": node.as_str(), "normalized": node.as_str(), "node": node.namehash().to_string()},
        "state": "trusted", "summary": "Every required step passed.", "reasons": [], "identity": null,
        "anchor": {
            "world": "mainnet", "chain": "eip155:1",
            "block": {"number": 1, "hash": format!("0x{}", "22".repeat(32)), "timestamp": "2026-11-20T10:00:00Z",
                "tag": "finalized"},
            "resolver": null, "wildcard": null, "offchain": false,
            "proof": {"grade": "single-rpc", "asked": 1, "agreed": 1}, "records_digest": digest,
        },
        "profile": {"id": "agent-cards/1.0.0", "depth": "identity", "digest": digest, "manifests": [],
            "near_misses": []},
        "steps": [],
        "freshness": {"checked_at": time(NOW), "fresh_until": time(NOW + 300), "retry_after": null, "served": "fresh"},
        "tool": {"name": "clresolve", "version": "0.0.0"},
    });
    let verdict = serde_json::from_value::<Verdict>(verdict).expect("a verdict").with_computed_digests();
    let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let kid = Ed25519PublicKey::from_bytes(key.verifying_key().as_bytes()).expect("a good key").thumbprint().to_owned();
    let header = json!({"alg": "EdDSA", "kid": kid, "typ": "clresolve-verdict+jwt"});
    let claims = json!({"iss": "https://a.example", "iat": NOW, "exp": NOW + 300, "verdict": verdict});
    let forged = |header: &Value, claims: &Value| {
        [vec![1], pieces(&[header.to_string().as_bytes(), claims.to_string().as_bytes()])].concat()
    };
    let with = |value: &Value, member: &str, other: Value| {
        let mut copy = value.clone();
        copy[member] = other;
        copy
    };
    let encode = |value: &Value| BASE64URL.encode(value.to_string());
    let text = format!("{}.{}", encode(&header), encode(&claims));
    let whole = format!("{text}.{}", BASE64URL.encode(key.sign(text.as_bytes()).to_bytes()));
    vec![
        ("good", [b"\0", whole.as_bytes()].concat()),
        ("signed", forged(&header, &claims)),
        ("no-signature", [b"\0", text.as_bytes(), b"."].concat()),
        ("none", forged(&with(&header, "alg", json!("none")), &claims)),
        ("type", forged(&with(&header, "typ", json!("JWT")), &claims)),
        ("critical", forged(&with(&header, "crit", json!(["b64"])), &claims)),
        ("other-key", forged(&with(&header, "kid", json!("x")), &claims)),
        ("expired", forged(&header, &with(&claims, "exp", json!(1)))),
        ("unsealed", forged(&header, &with(&claims, "verdict", json!({})))),
        ("twice", forged(&header, &json!("{\"iss\":1,\"iss\":2}"))),
    ]
}

/// A question, and what is changed in the answer.
fn proofs() -> Seeds {
    let asked = |account: u8, slot: u8, edits: &[&[u8]]| [vec![account, slot], pieces(edits)].concat();
    let leaf = |value: &[u8]| {
        let path = alloy_primitives::keccak256([0; 32]);
        alloy_rlp::encode(vec![Bytes::from([&[0x20], &path[..]].concat()), Bytes::copy_from_slice(value)])
    };
    let account = alloy_rlp::encode(alloy_trie::TrieAccount::default());
    vec![
        ("honest", asked(3, 5, &[])),
        ("no-account", asked(13, 5, &[])),
        ("no-slot", asked(3, 21, &[])),
        ("other-byte", asked(3, 5, &[&[0, 0, 0, 0, 40, 1]])),
        ("other-byte-of-a-slot", asked(3, 5, &[&[0, 1, 1, 0, 40, 1]])),
        ("other-value", asked(3, 5, &[&[5, 0, 9]])),
        ("other-balance", asked(3, 5, &[&[6, 0, 9]])),
        ("other-nonce", asked(3, 5, &[&[7, 0, 9]])),
        ("other-root", asked(3, 5, &[&[8, 0, 9]])),
        ("surplus", asked(3, 5, &[&[1, 0, 0xc0]])),
        ("cut", asked(3, 5, &[&[2, 0]])),
        ("other-order", asked(3, 5, &[&[3, 0]])),
        ("no-nodes", asked(13, 5, &[&[4, 0]])),
        ("other-slot", asked(3, 5, &[&[9, 0]])),
        ("leaf-made-up", pieces(&[&leaf(&account), &leaf(&[1])])),
        ("value-made-up", pieces(&[&leaf(&[0x80]), &leaf(&[0x80])])),
    ]
}

/// What a beacon node sends, with the byte that selects how it is read.
fn beacon_data() -> Seeds {
    let electra = 16;
    let of = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let ssz = |kind: u8, bytes: Vec<u8>| of(electra + kind, &bytes);
    let json = |kind: u8, value: Value| of(kind, value.to_string().as_bytes());
    let Beacon { bootstrap, update, finality, optimistic, .. } = &*BEACON;
    let other = LightClientFinalityUpdate { signature_slot: finality.signature_slot - 1, ..finality.clone() };
    let fork = ConsensusFork::Electra;
    let list = |update: Vec<u8>| [&(update.len() as u64 + 4).to_le_bytes()[..], &[0; 4], &update].concat();
    let saved = BEACON.chain.store_at_checkpoint().expect("a valid bootstrap").to_bytes();
    let (start, finalized) = (bootstrap.to_ssz(fork), finality.to_ssz(fork));
    vec![
        ("bootstrap", ssz(0, start.clone())),
        ("update", ssz(1, update.to_ssz(fork))),
        ("update-cut", ssz(1, update.to_ssz(fork)[..2000].to_vec())),
        ("finality", ssz(2, finalized.clone())),
        ("finality-other-slot", ssz(2, other.to_ssz(fork))),
        ("finality-json", json(2, finality.to_json(fork))),
        ("finality-json-gloas", json(2, finality.to_json(ConsensusFork::Gloas))),
        ("optimistic", ssz(3, optimistic.to_ssz(fork))),
        ("optimistic-json", json(3, optimistic.to_json(fork))),
        ("list", of(4, &list(update.to_ssz(fork)))),
        ("list-json", json(4, json!([{"version": "electra", "data": optimistic}]))),
        ("saved", of(5, &saved)),
        ("saved-changed", of(5, &saved[..saved.len() - 32])),
        ("proof", of(6, &pieces(&[&start, &finalized]))),
    ]
}

/// The receipts of blocks, as endpoints state them.
fn block_receipts() -> Seeds {
    let bloom = format!("0x{}", "00".repeat(256));
    let log = |topics: usize, data: &str| json!({"address": PAYEE, "topics": vec![alloy_primitives::B256::ZERO; topics], "data": data});
    let receipt = |index: usize, further: Value| {
        let mut receipt = json!({
            "transactionHash": alloy_primitives::B256::ZERO, "transactionIndex": format!("0x{index:x}"),
            "blockHash": alloy_primitives::B256::ZERO, "blockNumber": "0x7", "to": PAYEE, "status": "0x1", "logs": [],
            "type": "0x2", "cumulativeGasUsed": "0x5208", "logsBloom": bloom,
        });
        receipt.as_object_mut().expect("an object").extend(further.as_object().expect("an object").clone());
        receipt
    };
    let of = |receipts: Value| receipts.to_string().into_bytes();
    vec![
        ("none", of(json!([]))),
        ("one", of(json!([receipt(0, json!({"logs": [log(3, "0x01"), log(0, "0x")]}))]))),
        ("several", of(json!([0, 1, 2].map(|index| receipt(index, json!({"logs": [log(index, "0x7f80")]})))))),
        ("reverted", of(json!([receipt(0, json!({"status": "0x0"})), receipt(1, json!({"type": "0x0"}))]))),
        (
            "deposit",
            of(json!([receipt(0, json!({"type": "0x7e", "depositNonce": "0x1", "depositReceiptVersion": "0x1"}))])),
        ),
        ("before-byzantium", of(json!([receipt(0, json!({"status": null}))]))),
        ("unknown-type", of(json!([receipt(0, json!({"type": "0x100"}))]))),
        ("long-index", of(json!([receipt(0, json!({"transactionIndex": "0xffffffffffffffff", "to": null}))]))),
    ]
}

fn headers() -> Seeds {
    let first = alloy_consensus::Header { number: 1, ..Default::default() };
    let full = alloy_consensus::Header {
        number: 23_000_000,
        timestamp: 1_790_000_000,
        base_fee_per_gas: Some(7),
        withdrawals_root: Some(alloy_primitives::B256::ZERO),
        blob_gas_used: Some(0),
        excess_blob_gas: Some(0),
        parent_beacon_block_root: Some(alloy_primitives::B256::ZERO),
        requests_hash: Some(alloy_primitives::B256::ZERO),
        ..first.clone()
    };
    let rlp = alloy_rlp::encode(&full);
    let told = |full: alloy_consensus::Header| {
        serde_json::to_value(alloy_rpc_types_eth::Header::new(full)).expect("a header has a JSON form")
    };
    let mut other = HEADER.clone();
    other["stateRoot"] = other["parentHash"].clone();
    vec![
        ("rlp", rlp.clone()),
        ("rlp-first", alloy_rlp::encode(&first)),
        ("rlp-cut", rlp[..rlp.len() - 3].to_vec()),
        ("rlp-more", [&rlp[..], &[0x80]].concat()),
        ("told", HEADER.to_string().into_bytes()),
        ("told-full", told(alloy_consensus::Header { number: 1, ..full }).to_string().into_bytes()),
        ("told-other-root", other.to_string().into_bytes()),
        ("told-no-header", b"null".to_vec()),
    ]
}

/// The good cards of the sandbox's hosts, bad ones, and those whose system is not told.
fn systems() -> Seeds {
    let file = |text: &str| text.as_bytes().to_vec();
    vec![
        ("commandlayer", file(CARD)),
        ("a2a", file(include_str!("../../../crates/sandbox/src/discovery/a2a.json"))),
        ("a2a-bad", file(include_str!("../../../crates/sandbox/src/discovery/a2a-bad.json"))),
        ("aevum", file(include_str!("../../../crates/sandbox/src/discovery/aevum.json"))),
        ("aevum-bad", file(include_str!("../../../crates/sandbox/src/discovery/aevum-bad.json"))),
        ("anypoint", file(include_str!("../../../crates/sandbox/src/discovery/anypoint.json"))),
        ("orloj", file(include_str!("../../../crates/sandbox/src/discovery/orloj.json"))),
        ("older", br#"{"url": "https://a.example", "protocolVersion": "0.3.0", "skills": [{"id": "a"}, 5]}"#.to_vec()),
        ("several", br#"{"agent_id": "x", "invocation": {}, "supportedInterfaces": [null]}"#.to_vec()),
        ("none", br#"{"name": "a", "further": {"a": [[], {}]}}"#.to_vec()),
    ]
}

/// The document with another value at a JSON Pointer.
fn changed(document: &Value, pointer: &str, value: Value) -> Value {
    let mut copy = document.clone();
    *copy.pointer_mut(pointer).expect("the place is there") = value;
    copy
}

fn terms() -> Seeds {
    const THIEF: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
    let entry = json!({
        "scheme": "exact", "network": "eip155:84532", "amount": "10000", "payTo": PAYEE, "maxTimeoutSeconds": 60,
        "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "extra": {"name": "USDC", "version": "2"},
    });
    let offer: Value = serde_json::from_str(OFFER).expect("JSON");
    let good = json!({
        "x402Version": 2, "resource": {"url": SHOP}, "accepts": [entry],
        "extensions": {"offer-receipt": {"info": {"offers": [offer]}}},
    });
    let mut old = entry.clone();
    old["network"] = "base-sepolia".into();
    old["maxAmountRequired"] = old["amount"].take();
    old["resource"] = SHOP.into();
    let old = json!({"x402Version": 1, "error": "X-PAYMENT header is required", "accepts": [old]});
    let headed = |terms: &Value| [b"\0", terms.to_string().as_bytes()].concat();
    let with = |pointer: &str, value: Value| headed(&changed(&good, pointer, value));
    let reply = |first: &Value, second: &str, body: &Value| {
        let first = STANDARD.encode(first.to_string());
        [vec![2], pieces(&[first.as_bytes(), second.as_bytes(), body.to_string().as_bytes()])].concat()
    };
    let stolen = changed(&old, "/accepts/0/payTo", THIEF.into());
    vec![
        ("good", headed(&good)),
        ("good-version-1", [b"\x01", old.to_string().as_bytes()].concat()),
        ("both", reply(&good, "", &old)),
        ("body-differs", reply(&good, "", &stolen)),
        ("twice", reply(&good, "e30=", &json!({}))),
        ("empty", headed(&json!({}))),
        ("no-entries", with("/accepts", json!([]))),
        ("two-entries", with("/accepts", json!([entry, {"scheme": "upto"}]))),
        ("amount-in-hex", with("/accepts/0/amount", "0x2710".into())),
        ("amount-largest", with("/accepts/0/amount", U256::MAX.to_string().into())),
        ("lower-case", with("/accepts/0/payTo", PAYEE.to_lowercase().into())),
        ("permit2", with("/accepts/0/extra", json!({"assetTransferMethod": "permit2"}))),
        ("delegation", with("/accepts/0/extra", json!({"assetTransferMethod": "erc7710"}))),
        ("solana", with("/accepts/0/network", "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp".into())),
        ("mcp", with("/resource/url", "mcp://tool/summarize".into())),
        ("duplicate-key", [b"\0", good.to_string().replacen('{', "{\"accepts\":[],", 1).as_bytes()].concat()),
    ]
}

fn offers() -> Seeds {
    let offer: Value = serde_json::from_str(OFFER).expect("JSON");
    let header = json!({"alg": "EdDSA", "kid": "did:web:api.example.org#key-1"});
    let list = |offers: &[Value]| [b"\0", Value::from(offers).to_string().as_bytes()].concat();
    let with = |pointer: &str, value: Value| list(&[changed(&offer, pointer, value)]);
    let signed = |header: &Value, payload: &Value| {
        [vec![1], pieces(&[header.to_string().as_bytes(), payload.to_string().as_bytes()])].concat()
    };
    let payload = &offer["payload"];
    let unsigned =
        format!("{}.{}.", BASE64URL.encode(r#"{"alg":"none","kid":""}"#), BASE64URL.encode(payload.to_string()));
    vec![
        ("good", list(std::slice::from_ref(&offer))),
        ("several", list(&[json!({"format": "jws", "signature": "e30.e30.e30"}), json!(1), offer.clone()])),
        ("amount", with("/payload/amount", "1".into())),
        ("ended", with("/payload/validUntil", MADE.into())),
        ("endless", with("/payload/validUntil", 0.into())),
        ("signature-cut", with("/signature", "0x1c4a".into())),
        ("signature-long", with("/signature", format!("0x{}", "11".repeat(97)).into())),
        ("none", list(&[json!({"format": "jws", "signature": unsigned})])),
        ("signed", signed(&header, payload)),
        ("signed-other-url", signed(&header, &changed(payload, "/resourceUrl", "https://api.example.net/".into()))),
        ("signed-same-url", signed(&header, &changed(payload, "/resourceUrl", SHOP.replace("api", "API").into()))),
        ("signed-other-algorithm", signed(&changed(&header, "/alg", "ES256K".into()), payload)),
        ("signed-version", signed(&header, &changed(payload, "/version", 2.into()))),
    ]
}

fn payment_headers() -> Seeds {
    // The payments that the SDKs made.
    let payments: Value =
        serde_json::from_str(include_str!("../../../crates/payment/src/signed/payments.json")).expect("JSON");
    let text = |payment: &Value| [b"\x01", payment.to_string().as_bytes()].concat();
    let with = |payment: usize, pointer: &str, value: Value| text(&changed(&payments[payment], pointer, value));
    let mut further = payments[1].clone();
    further["extensions"] = json!({"eip2612GasSponsoring": {"info": {"signature": "0x"}}});
    let authorization = "/payload/authorization";
    let permit = "/payload/permit2Authorization";
    vec![
        ("eip3009", text(&payments[0])),
        ("permit2", text(&payments[1])),
        ("version-1", text(&payments[2])),
        ("bytes", [b"\0", STANDARD.encode(payments[0].to_string()).as_bytes()].concat()),
        ("to", with(0, &format!("{authorization}/to"), format!("0x{}", "33".repeat(20)).into())),
        ("value", with(0, &format!("{authorization}/value"), "0".into())),
        ("ten-years", with(0, &format!("{authorization}/validBefore"), (MADE + 315_360_000).to_string().into())),
        ("later", with(2, &format!("{authorization}/validAfter"), (MADE + 60).to_string().into())),
        ("spender", with(1, &format!("{permit}/spender"), PAYEE.into())),
        ("witness", with(1, &format!("{permit}/witness/to"), format!("0x{}", "11".repeat(20)).into())),
        ("signature-long", with(0, "/payload/signature", format!("0x{}", "11".repeat(97)).into())),
        ("accepted", with(0, "/accepted/amount", "1".into())),
        ("further-signature", text(&further)),
        ("resource-member", with(0, "/resource", json!({"permit": "0x"}))),
        ("entry-member", with(0, "/accepted/extra", json!({"name": "USDC", "version": "2", "permit": "0x"}))),
    ]
}
