use alloy_primitives::{Bytes, LogData, address};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::testing::{PAYEE, PAYER, THIEF, test_address};

const ASSET: Address = address!("036CbD53842c5426634e7929541eC2318f3dCF7e");
const NETWORK: &str = "eip155:84532";
const TRANSACTION: B256 = B256::repeat_byte(0xab);
const NONCE: B256 = B256::repeat_byte(7);
const AMOUNT: u64 = 10_000;
const SIGNATURE: [u8; 65] = [0x11; 65];

fn header(value: &Value) -> String {
    STANDARD.encode(value.to_string())
}

fn accepted(extra: Value) -> Value {
    json!({
        "scheme": "exact", "network": NETWORK, "amount": AMOUNT.to_string(), "asset": ASSET, "maxTimeoutSeconds": 60,
        "payTo": test_address(PAYEE), "extra": extra,
    })
}

fn by_authorization() -> Value {
    let authorization = json!({
        "from": test_address(PAYER), "to": test_address(PAYEE), "value": AMOUNT.to_string(), "validAfter": "0",
        "validBefore": "1800000000", "nonce": NONCE,
    });
    let payload = json!({"signature": Bytes::from(SIGNATURE), "authorization": authorization});
    json!({"x402Version": 2, "accepted": accepted(json!({"name": "USDC", "version": "2"})), "payload": payload})
}

fn by_permit() -> Value {
    let permit = json!({
        "from": test_address(PAYER), "spender": PERMIT2_PROXY, "nonce": "5", "deadline": "1800000000",
        "permitted": {"token": ASSET, "amount": AMOUNT.to_string()},
        "witness": {"to": test_address(PAYEE), "validAfter": "0"},
    });
    let payload = json!({"signature": Bytes::from(SIGNATURE), "permit2Authorization": permit});
    json!({"x402Version": 2, "accepted": accepted(json!({"assetTransferMethod": "permit2"})), "payload": payload})
}

/// A version 1 header, which contains no asset.
fn by_version_1() -> Value {
    let mut payment = by_authorization();
    payment.as_object_mut().expect("an object").remove("accepted");
    (payment["x402Version"], payment["scheme"], payment["network"]) = (1.into(), "exact".into(), "base-sepolia".into());
    payment
}

fn reply() -> Value {
    json!({"success": true, "transaction": TRANSACTION, "network": NETWORK, "payer": test_address(PAYER)})
}

fn decision() -> Value {
    json!({
        "schema": "clresolve.decision/1", "id": "sha256:00", "name": "a.eth", "verb": "summarize", "abort": false, "further": [],
        "entries": [{"index": 0, "abort": false, "codes": []}], "valid_until": "2026-01-01T00:00:00Z",
        "price": {"network": NETWORK, "asset": ASSET, "amount": AMOUNT.to_string()},
        "payee": {"address": test_address(PAYEE), "network": NETWORK, "proven_by": "addr"},
        "route": {"url": "https://api.example.org/summarize/v1", "source": "configured"},
    })
}

fn purchase(payment: &Value, reply: &Value) -> PurchasePaymentDocuments {
    PurchasePaymentDocuments {
        decision: None,
        payment: Some(PaymentPermission::from_header(&header(payment)).expect("a payment")),
        settlement: Some(header(reply)),
    }
}

fn with_decision(decision: &Value, payment: &Value) -> PurchasePaymentDocuments {
    let decision = StoredDecision::from_bytes(decision.to_string().as_bytes()).expect("a decision");
    PurchasePaymentDocuments { decision: Some(decision), ..purchase(payment, &reply()) }
}

fn due() -> DueTransfer {
    purchase(&by_authorization(), &reply()).due_transfer("a.eth").expect("all agrees")
}

fn log(address: Address, topics: [B256; 3], data: Vec<u8>) -> Log {
    Log { address, data: LogData::new_unchecked(topics.to_vec(), data.into()) }
}

fn transfer(asset: Address, from: Address, to: Address, value: u64) -> Log {
    let value = U256::from(value).to_be_bytes::<32>().to_vec();
    log(asset, [Transfer::SIGNATURE_HASH, from.into_word(), to.into_word()], value)
}

fn authorization(asset: Address, payer: Address, nonce: B256) -> Log {
    log(asset, [AuthorizationUsed::SIGNATURE_HASH, payer.into_word(), nonce], Vec::new())
}

fn honest_transfer() -> Log {
    transfer(ASSET, test_address(PAYER), test_address(PAYEE), AMOUNT)
}

fn honest_authorization() -> Log {
    authorization(ASSET, test_address(PAYER), NONCE)
}

fn execution(logs: Vec<Log>) -> ExecutedTransaction {
    let block = ChainBlock { number: 7, hash: B256::repeat_byte(1), timestamp: Timestamp::UNIX_EPOCH };
    let (to, input) = (Some(ASSET), Bytes::new());
    ExecutedTransaction { transaction: TRANSACTION, block, index: 0, has_succeeded: true, to, input, logs }
}

/// The code and place of the objection to a settlement.
fn objection(of: Result<impl Sized, Box<Reason>>) -> Option<(ReasonCode, String)> {
    of.err().map(|reason| (reason.code, reason.place.unwrap_or_default()))
}

fn is(code: ReasonCode, place: &str) -> Option<(ReasonCode, String)> {
    Some((code, place.to_owned()))
}

#[test]
fn what_is_due_stands_in_payment_reply_and_decision() {
    let due = due();
    assert_eq!((due.asset, due.payer, due.pay_to), (ASSET, test_address(PAYER), test_address(PAYEE)));
    assert_eq!(
        (due.transaction, due.amount, due.permit.clone()),
        (TRANSACTION, U256::from(AMOUNT), TransferPermit::Eip3009 { nonce: NONCE })
    );
    assert_eq!(with_decision(&decision(), &by_authorization()).due_transfer("a.eth"), Ok(due));
    assert_eq!(purchase(&by_permit(), &reply()).due_transfer("a.eth").expect("all agrees").asset, ASSET);
}

#[test]
fn what_is_due_is_kept_under_a_digest_of_its_own() {
    let other = DueTransfer { amount: U256::from(AMOUNT + 1), ..due() };
    let digests = [due(), due_of_permit(), other].map(|due| due.digest());
    assert_eq!(due().digest(), digests[0]);
    assert!(digests[0] != digests[1] && digests[0] != digests[2] && digests[1] != digests[2]);
}

#[test]
fn without_a_part_nothing_is_proven() {
    let whole = purchase(&by_authorization(), &reply());
    let missing = PurchasePaymentDocuments { payment: None, ..whole.clone() };
    assert_eq!(objection(missing.due_transfer("a.eth")), is(ReasonCode::SettlementUnproven, "payment"));
    let missing = PurchasePaymentDocuments { settlement: None, ..whole };
    assert_eq!(objection(missing.due_transfer("a.eth")), is(ReasonCode::SettlementUnproven, "settlement"));
}

#[test]
fn version_1_takes_the_asset_from_the_decision() {
    let payment = by_version_1();
    let mut answer = reply();
    answer["network"] = "base-sepolia".into();
    let alone = purchase(&payment, &answer);
    assert_eq!(objection(alone.due_transfer("a.eth")), is(ReasonCode::SettlementUnproven, "payment"));
    let decision = StoredDecision::from_bytes(decision().to_string().as_bytes()).ok();
    assert_eq!(PurchasePaymentDocuments { decision, ..alone }.due_transfer("a.eth"), Ok(due()));
}

#[test]
fn parts_that_differ_are_a_mismatch() {
    let thief = json!(test_address(THIEF));
    for (pointer, value, place) in [
        ("/name", json!("b.eth"), "/name"),
        ("/price/network", json!("eip155:8453"), "/price/network"),
        ("/price/amount", json!("9999"), "/price/amount"),
        ("/price/asset", thief.clone(), "/price/asset"),
        ("/payee/address", thief.clone(), "/payee/address"),
    ] {
        let mut changed = decision();
        *changed.pointer_mut(pointer).expect("it is there") = value;
        let found = objection(with_decision(&changed, &by_authorization()).due_transfer("a.eth"));
        assert_eq!(found, is(ReasonCode::SettlementMismatch, &format!("decision: {place}")));
    }
    for (member, value) in [
        ("success", json!(false)),
        ("success", json!("true")),
        ("network", json!("base-sepolia")),
        ("network", Value::Null),
        ("payer", thief.clone()),
        ("amount", json!("9999")),
    ] {
        let mut changed = reply();
        changed[member] = value;
        let found = objection(purchase(&by_authorization(), &changed).due_transfer("a.eth"));
        assert_eq!(found, is(ReasonCode::SettlementMismatch, &format!("settlement: /{member}")), "{changed}");
    }
    for (payment, member, value, place) in [
        (by_authorization(), "/accepted/payTo", thief.clone(), "payTo"),
        (by_authorization(), "/accepted/amount", json!("9999"), "amount"),
        (by_permit(), "/accepted/asset", thief, "asset"),
    ] {
        let mut changed = payment;
        *changed.pointer_mut(member).expect("it is there") = value;
        let found = objection(purchase(&changed, &reply()).due_transfer("a.eth"));
        assert_eq!(found, is(ReasonCode::SettlementMismatch, &format!("payment: /accepted/{place}")));
    }
}

#[test]
fn a_reply_that_cannot_be_read_names_no_transaction() {
    let whole = purchase(&by_authorization(), &reply());
    let mut unnamed = reply();
    unnamed["transaction"] = json!("0xabc");
    let twice = reply().to_string().replacen('{', "{\"success\":true,", 1);
    let long = header(&json!({"success": true, "more": "x".repeat(20_000)}));
    for text in [String::new(), "{}".to_owned(), header(&unnamed), STANDARD.encode(twice), long] {
        let changed = PurchasePaymentDocuments { settlement: Some(text), ..whole.clone() };
        assert_eq!(objection(changed.due_transfer("a.eth")), is(ReasonCode::SettlementUnproven, "settlement"));
    }
}

#[test]
fn what_is_no_payment_or_decision_is_refused() {
    for text in ["", "e30=", "e30", &header(&json!({"x402Version": 2})), &header(&json!({"x402Version": 3}))] {
        assert!(PaymentPermission::from_header(text).is_err(), "{text}");
    }
    let mut other = decision();
    other["schema"] = json!("clresolve.decision/2");
    for text in ["", "[]", "{}", &other.to_string(), &format!("{}{}", decision(), " ".repeat(MAX_DECISION_BYTES))] {
        assert!(StoredDecision::from_bytes(text.as_bytes()).is_err());
    }
}

#[test]
fn a_decision_that_allows_nothing_is_about_no_purchase() {
    assert!(StoredDecision::from_bytes(decision().to_string().as_bytes()).is_ok());
    for (member, value) in [
        ("abort", json!(true)),
        ("price", Value::Null),
        ("payee", Value::Null),
        ("route", Value::Null),
        ("route", json!({"url": "nowhere"})),
    ] {
        let mut changed = decision();
        changed[member] = value;
        assert!(StoredDecision::from_bytes(changed.to_string().as_bytes()).is_err(), "{changed}");
    }
}

#[test]
fn what_was_bought_is_what_was_decided_and_who_has_paid() {
    let whole = with_decision(&decision(), &by_authorization());
    let bought = whole.purchase_facts().expect("there is a decision");
    // The digest of the document itself, regardless of its `id`.
    assert_ne!(bought.decision, "sha256:00");
    assert!(bought.decision.parse::<Digest>().is_ok(), "{}", bought.decision);
    assert_eq!(bought.name.as_str(), "a.eth");
    assert_eq!(
        (bought.network.as_ref().map(Caip2Network::as_str), bought.url.path()),
        (Some(NETWORK), "/summarize/v1")
    );
    assert_eq!(bought.payer, Some(test_address(PAYER)));
    let unpaid = PurchasePaymentDocuments { payment: None, settlement: None, ..whole };
    assert_eq!(unpaid.purchase_facts().map(|bought| bought.payer), Some(None));
    assert!(!unpaid.requires_settlement_check(), "a decision alone asks for nothing of the chain");
    assert_eq!(purchase(&by_authorization(), &reply()).purchase_facts(), None);
}

/// An older receipt belongs to another purchase.
#[test]
fn nothing_was_bought_before_the_decision_was_made_and_the_payment_permitted() {
    let mut ends = decision();
    ends["valid_until"] = json!("2026-01-01T00:10:00Z");
    let decided = with_decision(&ends, &by_authorization());
    let settled = |second: i64| {
        let block =
            Some(ChainBlock { number: 1, hash: B256::ZERO, timestamp: Timestamp::from_second(second).unwrap() });
        SettlementCheckResult { shown_by: None, due: None, block, proof: None, decision: None, objection: None }
    };
    let made: Timestamp = "2026-01-01T00:04:30Z".parse().unwrap();
    let earliest = |purchase: &PurchasePaymentDocuments, second: Option<i64>| {
        purchase.earliest_purchase_time(second.map(settled).as_ref())
    };
    assert_eq!(earliest(&decided, None), Some(made));
    let [before, after] = [-1, 1].map(|shift| made.as_second() + OPEN_SECONDS.cast_signed() + shift);
    assert_eq!(earliest(&decided, Some(before)), Some(made));
    assert_eq!(earliest(&decided, Some(after)).map(Timestamp::as_second), Some(made.as_second() + 1));
    let undecided = purchase(&by_authorization(), &reply());
    assert_eq!(earliest(&undecided, None), None);
    assert_eq!(earliest(&undecided, Some(before)).map(Timestamp::as_second), Some(made.as_second() - 1));
}

#[test]
fn exactly_one_transfer_and_its_authorization_settle() {
    let honest = || vec![honest_authorization(), honest_transfer()];
    assert_eq!(due().check_execution(&execution(honest())), Ok(()));
    let beside = transfer(ASSET, test_address(THIEF), test_address(PAYEE), AMOUNT);
    let to_others = transfer(ASSET, test_address(PAYER), test_address(THIEF), AMOUNT);
    let of_others = transfer(test_address(THIEF), test_address(PAYER), test_address(PAYEE), AMOUNT);
    let with = |further: Log| due().check_execution(&execution([honest(), vec![further]].concat()));
    for further in [beside, to_others, of_others] {
        assert_eq!(with(further), Ok(()));
    }
    let found = objection(with(honest_transfer()));
    assert_eq!(found, is(ReasonCode::SettlementUnproven, "log: Transfer"));
}

#[test]
fn a_transaction_that_failed_settles_nothing() {
    let failed =
        ExecutedTransaction { has_succeeded: false, ..execution(vec![honest_authorization(), honest_transfer()]) };
    assert_eq!(objection(due().check_execution(&failed)), is(ReasonCode::SettlementMismatch, "transaction: status"));
    let other =
        ExecutedTransaction { transaction: B256::ZERO, ..execution(vec![honest_authorization(), honest_transfer()]) };
    assert_eq!(objection(due().check_execution(&other)), is(ReasonCode::SettlementMismatch, "transaction"));
}

#[test]
fn two_halves_are_no_whole() {
    let half = || transfer(ASSET, test_address(PAYER), test_address(PAYEE), AMOUNT / 2);
    let found = objection(due().check_execution(&execution(vec![honest_authorization(), half(), half()])));
    assert_eq!(found, is(ReasonCode::SettlementUnproven, "log: Transfer"));
    for value in [AMOUNT - 1, AMOUNT + 1, 0] {
        let other = transfer(ASSET, test_address(PAYER), test_address(PAYEE), value);
        let found = objection(due().check_execution(&execution(vec![honest_authorization(), other])));
        assert_eq!(found, is(ReasonCode::SettlementMismatch, "log: Transfer"), "{value}");
    }
}

#[test]
fn logs_of_other_contracts_never_count() {
    let thief = test_address(THIEF);
    let elsewhere = transfer(thief, test_address(PAYER), test_address(PAYEE), AMOUNT);
    let found = objection(due().check_execution(&execution(vec![honest_authorization(), elsewhere])));
    assert_eq!(found, is(ReasonCode::SettlementMismatch, "log: Transfer"));
    let authorized_elsewhere = authorization(thief, test_address(PAYER), NONCE);
    let found = objection(due().check_execution(&execution(vec![authorized_elsewhere, honest_transfer()])));
    assert_eq!(found, is(ReasonCode::SettlementMismatch, "log: AuthorizationUsed"));
}

#[test]
fn an_older_transfer_of_the_same_amount_settles_nothing() {
    let older = authorization(ASSET, test_address(PAYER), B256::repeat_byte(8));
    let of_another = authorization(ASSET, test_address(THIEF), NONCE);
    for further in [vec![], vec![older], vec![of_another]] {
        let found = objection(due().check_execution(&execution([further, vec![honest_transfer()]].concat())));
        assert_eq!(found, is(ReasonCode::SettlementMismatch, "log: AuthorizationUsed"));
    }
}

/// The payer has permitted two payments, and a single transfer of the amount was made. It pays for one call, not for
/// two.
#[test]
fn one_transfer_by_two_authorizations_settles_neither() {
    let other = B256::repeat_byte(8);
    let both = || vec![honest_authorization(), authorization(ASSET, test_address(PAYER), other), honest_transfer()];
    for nonce in [NONCE, other] {
        let due = DueTransfer { permit: TransferPermit::Eip3009 { nonce }, ..due() };
        let found = objection(due.check_execution(&execution(both())));
        assert_eq!(found, is(ReasonCode::SettlementUnproven, "log: AuthorizationUsed"), "{nonce}");
    }
    let twice = vec![honest_authorization(), honest_authorization(), honest_transfer()];
    assert_eq!(
        objection(due().check_execution(&execution(twice))),
        is(ReasonCode::SettlementUnproven, "log: AuthorizationUsed")
    );
    let of_others = vec![honest_authorization(), authorization(ASSET, test_address(THIEF), other), honest_transfer()];
    assert_eq!(due().check_execution(&execution(of_others)), Ok(()));
}

#[test]
fn logs_of_another_form_do_not_count() {
    let mut long = honest_transfer();
    long.data.data = [long.data.data.to_vec(), vec![0]].concat().into();
    let found = objection(due().check_execution(&execution(vec![honest_authorization(), long])));
    assert_eq!(found, is(ReasonCode::SettlementMismatch, "log: Transfer"));
    let mut further = honest_transfer();
    further.data = LogData::new_unchecked([further.topics(), &[B256::ZERO]].concat(), further.data.data);
    let found = objection(due().check_execution(&execution(vec![honest_authorization(), further])));
    assert_eq!(found, is(ReasonCode::SettlementMismatch, "log: Transfer"));
}

/// The call to the proxy that the published facilitator makes (`@x402/evm` 2.27.0) for [`by_permit`].
const SETTLE: &str = include_str!("settle.hex");

fn settle() -> Vec<u8> {
    alloy_primitives::hex::decode(SETTLE.trim()).expect("hex digits")
}

/// The call of a facilitator that uses the payer's signature to approve Permit2 as well.
fn settle_with_permit() -> Vec<u8> {
    let [value, deadline, r, s, v] = [AMOUNT, 1_800_000_000, 1, 2, 27].map(U256::from);
    let permit2612 = [value, deadline, r, s, v].map(|word| word.to_be_bytes::<32>()).concat();
    let mut arguments = settle()[4..].to_vec();
    // The offset of the signature: there are five more words of arguments.
    arguments[7 * 32 + 30..8 * 32].copy_from_slice(&[0x01, 0xa0]);
    [&[0xfa, 0x34, 0x03, 0x78][..], &permit2612, &arguments].concat()
}

fn due_of_permit() -> DueTransfer {
    purchase(&by_permit(), &reply()).due_transfer("a.eth").expect("all agrees")
}

fn settled_by(input: Vec<u8>) -> ExecutedTransaction {
    ExecutedTransaction { to: Some(PERMIT2_PROXY), input: input.into(), ..execution(vec![honest_transfer()]) }
}

#[test]
fn a_permit_is_settled_by_its_proxy_alone() {
    let due = due_of_permit();
    for input in [settle(), settle_with_permit(), [settle(), vec![7; 40]].concat()] {
        assert_eq!(due.check_execution(&settled_by(input)), Ok(()));
    }
    for to in [None, Some(ASSET), Some(test_address(THIEF))] {
        let found = objection(due.check_execution(&ExecutedTransaction { to, ..settled_by(settle()) }));
        assert_eq!(found, is(ReasonCode::SettlementUnproven, "transaction: to"));
    }
    let unread = [Vec::new(), SIGNATURE.to_vec(), settle()[..300].to_vec(), [&[0; 4], &settle()[4..]].concat()];
    for input in unread {
        let found = objection(due.check_execution(&settled_by(input)));
        assert_eq!(found, is(ReasonCode::SettlementUnproven, "transaction: input"));
    }
}

/// Another payment of the same payer, followed by this payment's signature. Only the arguments count.
#[test]
fn a_call_that_merely_carries_the_signature_settles_nothing() {
    let other = DueTransfer {
        permit: TransferPermit::Permit2 { nonce: U256::from(6), signature: SIGNATURE.into() },
        ..due_of_permit()
    };
    let found = objection(other.check_execution(&settled_by([settle(), SIGNATURE.to_vec()].concat())));
    assert_eq!(found, is(ReasonCode::SettlementMismatch, "transaction: nonce"));
    let (nonce, short) = (U256::from(5), Bytes::from(vec![0x11]));
    let by_short = DueTransfer { permit: TransferPermit::Permit2 { nonce, signature: short }, ..due_of_permit() };
    let found = objection(by_short.check_execution(&settled_by(settle())));
    assert_eq!(found, is(ReasonCode::SettlementUnproven, "transaction: signature"));
}

#[test]
fn a_call_for_another_permit_is_a_mismatch() {
    for (word, place) in [(0, "token"), (1, "amount"), (2, "nonce"), (4, "owner"), (5, "witness.to")] {
        let mut input = settle();
        input[4 + word * 32 + 31] ^= 1;
        let found = objection(due_of_permit().check_execution(&settled_by(input)));
        assert_eq!(found, is(ReasonCode::SettlementMismatch, &format!("transaction: {place}")));
    }
}

#[test]
fn the_signature_of_a_permit_is_bounded() {
    let mut payment = by_permit();
    for (bytes, is_read) in [(0, false), (1, true), (4096, true), (4097, false)] {
        payment["payload"]["signature"] = json!(Bytes::from(vec![1; bytes]));
        assert_eq!(PaymentPermission::from_header(&header(&payment)).is_ok(), is_read, "{bytes}");
    }
}

#[test]
fn what_is_written_says_how_it_is_shown() {
    let purchase = with_decision(&decision(), &by_authorization());
    let seen = |objection| TransactionCheckResult {
        objection,
        shown_by: SettlementAssuranceLevel::Reported,
        block: block_at("2026-01-01T00:00:00Z"),
        proof: ProofStrength { grade: ProofGrade::Quorum, asked: 3, agreed: 2, own: false },
    };
    let shown = SettlementCheckResult::from_transaction_check(&purchase, Some(due()), Ok(seen(None)));
    assert_eq!(shown.shown_by, Some(SettlementAssuranceLevel::Reported));
    let document = serde_json::to_value(&shown).expect("JSON");
    assert_eq!((&document["due"]["amount"], &document["due"]["transfer"]), (&json!("10000"), &json!("eip3009")));
    assert_eq!(document["decision"], "sha256:00");
    let objected = SettlementCheckResult::from_transaction_check(
        &purchase,
        Some(due()),
        Ok(seen(Some(settlement_mismatch_reason("log", 1, 2)))),
    );
    assert_eq!(
        (objected.shown_by, objected.objection.map(|reason| reason.code)),
        (None, Some(ReasonCode::SettlementMismatch))
    );
}

fn settlement_of(purchase: &PurchasePaymentDocuments, block: ChainBlock) -> SettlementCheckResult {
    let proof = ProofStrength { grade: ProofGrade::Quorum, asked: 2, agreed: 2, own: false };
    let sight = TransactionCheckResult { objection: None, shown_by: SettlementAssuranceLevel::Proven, block, proof };
    SettlementCheckResult::from_transaction_check(purchase, purchase.due_transfer("a.eth").ok(), Ok(sight))
}

fn block_at(time: &str) -> ChainBlock {
    ChainBlock { timestamp: time.parse().expect("a time"), ..execution(Vec::new()).block }
}

#[test]
fn a_receipt_is_about_the_payment_that_was_settled() {
    let settlement = settlement_of(&purchase(&by_authorization(), &reply()), block_at("2026-01-01T00:00:00Z"));
    let honest = json!({
        "version": 1, "network": NETWORK, "resourceUrl": "https://api.example.org/summarize/v1",
        "payer": test_address(PAYER).to_string(), "issuedAt": 1_767_225_600, "transaction": TRANSACTION,
    });
    let place = |member: &str, value: Value| {
        let mut receipt = honest.clone();
        receipt[member] = value;
        let receipt = serde_json::from_value(receipt).expect("a receipt");
        settlement.objection_to_receipt(&receipt).map(|reason| (reason.code, reason.place.unwrap_or_default()))
    };
    for (member, value) in [("issuedAt", json!(1_767_225_270)), ("transaction", json!("")), ("version", json!(1))] {
        assert_eq!(place(member, value.clone()), None, "{member}: {value}");
    }
    for (member, value) in [
        ("network", json!("eip155:8453")),
        ("payer", json!(test_address(THIEF).to_string())),
        ("transaction", json!(B256::ZERO)),
        ("issuedAt", json!(1_767_225_269)),
    ] {
        let expected = is(ReasonCode::SettlementMismatch, &format!("/payload/{member}"));
        assert_eq!(place(member, value.clone()), expected, "{member}: {value}");
    }
    let named = place("payer", json!("did:pkh:eip155:1:0x01"));
    assert_eq!(named, is(ReasonCode::SettlementUnproven, "/payload/payer"), "what is no address may stand for any");
}

#[test]
fn a_decision_holds_until_its_end() {
    let purchase = with_decision(&decision(), &by_authorization());
    let at = |time: &str| {
        let settlement = settlement_of(&purchase, block_at(time));
        (settlement.shown_by, settlement.objection.and_then(|reason| reason.place))
    };
    assert_eq!(at("2026-01-01T00:05:30Z"), (Some(SettlementAssuranceLevel::Proven), None));
    assert_eq!(at("2026-01-01T00:05:31Z"), (None, Some("decision: /valid_until".to_owned())));
}

/// Otherwise one payment could serve for every later purchase.
#[test]
fn what_was_settled_before_a_decision_was_not_bought_on_it() {
    let at = |decision: &Value, time: &str| {
        settlement_of(&with_decision(decision, &by_authorization()), block_at(time)).objection
    };
    let known = decision();
    assert_eq!(at(&known, "2025-12-31T23:54:30Z"), None, "a decision that holds as long as any was made then");
    for earlier in ["2025-12-31T23:54:29Z", "2025-01-01T00:00:00Z"] {
        let objection = at(&known, earlier).expect("it was settled before");
        assert_eq!(
            (objection.code, objection.place.as_deref()),
            (ReasonCode::SettlementMismatch, Some("decision: /valid_until"))
        );
    }
    let mut endless = decision();
    endless["valid_until"] = Value::Null;
    let objection = at(&endless, "2026-01-01T00:00:00Z").expect("nothing says when it was made");
    assert_eq!(objection.code, ReasonCode::SettlementUnproven);
}

/// The document does not state which entry was paid.
#[test]
fn a_decision_about_several_entries_tells_only_the_first() {
    let mut several = decision();
    several["entries"] = json!([{"index": 0}, {"index": 1}]);
    let due = |decision: &Value| objection(with_decision(decision, &by_authorization()).due_transfer("a.eth"));
    assert_eq!(due(&several), None, "the first was paid");
    several["price"]["network"] = "eip155:8453".into();
    assert_eq!(due(&several), is(ReasonCode::SettlementUnproven, "decision: /price/network"));
    let bought = with_decision(&several, &by_authorization()).purchase_facts().expect("what was decided");
    several["price"]["network"] = NETWORK.into();
    let assetless = with_decision(&several, &by_version_1()).due_transfer("a.eth");
    assert_eq!(objection(assetless), is(ReasonCode::SettlementUnproven, "payment"));
    several["entries"][1]["valid_until"] = "2026-01-01T01:00:00Z".into();
    let late = settlement_of(&with_decision(&several, &by_authorization()), block_at("2026-01-01T01:05:30Z"));
    assert_eq!(late.objection, None, "the last of them might be paid until then");
    assert_eq!(bought.network.as_ref().map(Caip2Network::as_str), Some(NETWORK), "what was permitted");
}
