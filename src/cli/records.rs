//! `records`: shows the raw `cl.*` text records and payment records of names, without judging them.

use std::fmt::Write as _;

use alloy_primitives::hex;
use clresolve_core::name::EnsName;
use clresolve_core::payment::{AddressRecord, EndpointRecord, PaymentRecords};
use clresolve_core::reading::{Answer, ChainError, Reading};
use clresolve_core::reason::Code;
use clresolve_core::records::{Key, Record, RecordSet};
use clresolve_core::text::Foreign;
use serde_json::{Map, Value, json};

use super::args::{Format, RecordsArgs};
use super::exit::Exit;
use super::names;
use super::output::{Output, Results};
use super::progress::Progress;
use super::verify::waiting_for;
use super::world::World;

const NOT_JUDGED: &str = "Raw records: nothing here is judged, and nothing proven about the agent.";

enum Failure {
    /// The input is not an ENS name. Contains the cause.
    Name(String),
    /// Reading the chain failed or timed out. Contains the cause.
    Chain(String),
}

pub(super) fn run(args: RecordsArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(show(args))
}

async fn show(args: RecordsArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let names = names::given(args.names)?;
    let mut results = Results::named(output, args.output.form(), names.len());
    let progress = Progress::start(waiting_for(&names));
    let world = World::open(&args.world).await?;
    let mut worst = Exit::Trusted;
    for input in &names {
        let answer = read(&world, input).await;
        worst = worst.max(exit(&answer));
        progress.aside(|| results.push(&value(input, &answer), |format| text(input, &answer, format)))?;
    }
    results.finish()?;
    Ok(worst)
}

async fn read(world: &World, input: &str) -> Result<Reading, Failure> {
    let name = EnsName::parse(input).map_err(|e| Failure::Name(e.to_string()))?;
    let failed = |e: ChainError| Failure::Chain(e.to_string());
    match tokio::time::timeout(world.config.timeout, world.resolver.records(&name)).await {
        Ok(reading) => reading.map_err(failed),
        Err(_) => Err(Failure::Chain("the time limit passed".to_owned())),
    }
}

const fn exit(answer: &Result<Reading, Failure>) -> Exit {
    match answer {
        Ok(Reading { answer: Answer::Records(_), .. }) => Exit::Trusted,
        Ok(_) | Err(Failure::Name(_)) => Exit::Untrusted,
        Err(Failure::Chain(_)) => Exit::Indeterminate,
    }
}

fn value(input: &str, answer: &Result<Reading, Failure>) -> Value {
    let mut value = json!({ "name": input, "judged": false });
    let more = match answer {
        Err(Failure::Name(error)) => json!({ "answer": "error", "code": Code::NameInvalid, "error": error }),
        Err(Failure::Chain(error)) => json!({ "answer": "error", "error": error }),
        Ok(reading) => of_reading(reading),
    };
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}

fn of_reading(reading: &Reading) -> Value {
    let block = &reading.block;
    let mut value = json!({
        "answer": word(&reading.answer),
        "block": { "number": block.number, "hash": block.hash, "timestamp": block.timestamp },
        "proof": reading.proof,
        "holder": reading.holder,
        "expiry": reading.expiry,
    });
    match &reading.answer {
        Answer::Unregistered => {}
        Answer::NoResolver(resolver) => value["resolver"] = json!(resolver),
        Answer::Records(found) => {
            value["resolver"] = json!(found.resolver);
            value["wildcard"] = json!(found.wildcard.as_ref().map(EnsName::as_str));
            value["offchain"] = json!(found.offchain);
            value["records"] = Value::Object(of_records(&found.records));
            value["addresses"] = Value::Object(of_addresses(&found.payment));
            value["endpoints"] = Value::Object(of_endpoints(&found.payment));
        }
    }
    value
}

fn of_records(records: &RecordSet) -> Map<String, Value> {
    Key::ALL.into_iter().map(|key| (key.to_string(), of_record(records.get(key)))).collect()
}

/// A string for a text, null for an unset record, and `{"hex": …}` for bytes that are not UTF-8.
fn of_record(record: &Record) -> Value {
    match record {
        Record::Absent => Value::Null,
        Record::Text(text) => json!(text),
        Record::NotUtf8(bytes) => json!({ "hex": hex::encode_prefixed(bytes) }),
    }
}

/// By coin type: a string for an address, null if unset, `{"hex": …}` if malformed, and `{"error": …}` if it could not
/// be read.
fn of_addresses(payment: &PaymentRecords) -> Map<String, Value> {
    let one = |record: &AddressRecord| match record {
        AddressRecord::Absent => Value::Null,
        AddressRecord::Address(address) => json!(address.to_string()),
        AddressRecord::Malformed(bytes) => json!({ "hex": bytes }),
        AddressRecord::Failed(cause) => json!({ "error": cause.to_string() }),
    };
    payment.addresses.iter().map(|(coin, record)| (coin.to_string(), one(record))).collect()
}

/// Like the records, and `{"error": …}` if it could not be read.
fn of_endpoints(payment: &PaymentRecords) -> Map<String, Value> {
    let one = |record: &EndpointRecord| match record {
        EndpointRecord::Read(record) => of_record(record),
        EndpointRecord::Failed(cause) => json!({ "error": cause.to_string() }),
    };
    payment.endpoints.iter().map(|(key, record)| (key.to_string(), one(record))).collect()
}

const fn word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Unregistered => "unregistered",
        Answer::NoResolver(_) => "no-resolver",
        Answer::Records(_) => "records",
    }
}

fn text(input: &str, answer: &Result<Reading, Failure>, format: Format) -> String {
    let name = Foreign::new(input);
    let reading = match answer {
        Ok(reading) => reading,
        Err(Failure::Name(error)) => return format!("{name}  {}: {}\n", Code::NameInvalid, Foreign::new(error)),
        Err(Failure::Chain(error)) => return format!("{name}  could not be read: {}\n", Foreign::new(error)),
    };
    let set = match &reading.answer {
        Answer::Records(found) => found.records.iter().filter(|(_, r)| **r != Record::Absent).count(),
        Answer::Unregistered | Answer::NoResolver(_) => 0,
    };
    if format == Format::Short {
        return format!("{}  {name}  {set} set, block {}\n", word(&reading.answer), reading.block.number);
    }
    let mut text = format!("{name}  block {}, {}\n", reading.block.number, reading.block.timestamp);
    match &reading.answer {
        Answer::Unregistered => text.push_str("  the name is not registered\n"),
        Answer::NoResolver(_) => text.push_str("  the name has no resolver\n"),
        Answer::Records(found) => {
            let of = found.wildcard.as_ref().map_or_else(String::new, |w| format!(" of {}", Foreign::new(w.as_str())));
            let off = if found.offchain { ", off chain" } else { "" };
            let _ = writeln!(text, "  resolver {}{of}{off}", found.resolver);
            write_records(&mut text, &found.records);
            write_payment(&mut text, &found.payment);
        }
    }
    let _ = writeln!(text, "{NOT_JUDGED}");
    text
}

fn write_records(text: &mut String, records: &RecordSet) {
    for key in Key::ALL {
        write_record(text, key.as_str(), records.get(key));
    }
}

fn write_record(text: &mut String, key: &str, record: &Record) {
    let _ = match record {
        Record::Absent => writeln!(text, "  {key:<28} (not set)"),
        Record::Text(value) => writeln!(text, "  {key:<28} {}", Foreign::new(value)),
        Record::NotUtf8(bytes) => {
            let hex = hex::encode_prefixed(bytes);
            writeln!(text, "  {key:<28} (not UTF-8) {}", Foreign::new(&hex))
        }
    };
}

fn write_payment(text: &mut String, payment: &PaymentRecords) {
    for (coin, record) in &payment.addresses {
        let key = format!("addr({coin})");
        let _ = match record {
            AddressRecord::Absent => writeln!(text, "  {key:<28} (not set)"),
            AddressRecord::Address(address) => writeln!(text, "  {key:<28} {address}"),
            AddressRecord::Malformed(bytes) => writeln!(text, "  {key:<28} (not an address) {bytes}"),
            AddressRecord::Failed(cause) => write_failure(text, &key, cause),
        };
    }
    for (key, record) in &payment.endpoints {
        match record {
            EndpointRecord::Read(record) => write_record(text, key.as_str(), record),
            EndpointRecord::Failed(cause) => drop(write_failure(text, key.as_str(), cause)),
        }
    }
}

fn write_failure(text: &mut String, key: &str, cause: &ChainError) -> std::fmt::Result {
    writeln!(text, "  {key:<28} (not read) {}", Foreign::new(&cause.to_string()))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256};
    use clresolve_core::payment::{CoinType, EndpointRecordKey};
    use clresolve_core::reading::{Block, Found, Grade, Holder, Proof, ResolverFault};
    use jiff::Timestamp;

    use super::*;

    fn reading(answer: Answer) -> Reading {
        Reading {
            block: Block { number: 7, hash: B256::ZERO, timestamp: Timestamp::UNIX_EPOCH },
            answer,
            latest: None,
            newest: None,
            holder: Holder::Nobody,
            expiry: None,
            proof: Proof { grade: Grade::SingleRpc, asked: 1, agreed: 1, own: false },
            endpoints: vec!["rpc".to_owned()],
            contradicted_by: Vec::new(),
            failed_endpoints: Vec::new(),
        }
    }

    fn payment() -> PaymentRecords {
        let cause = ChainError::Resolver(ResolverFault::Reverted("a\nb".to_owned()));
        let chain = |id| CoinType::of_chain(id).expect("an EVM chain");
        PaymentRecords {
            addresses: [
                (CoinType::ETHER, AddressRecord::Address(Address::ZERO)),
                (chain(10), AddressRecord::Malformed(vec![7].into())),
                (chain(11), AddressRecord::Failed(cause.clone())),
                (chain(12), AddressRecord::Absent),
            ]
            .into(),
            endpoints: [
                (EndpointRecordKey::Runtime, EndpointRecord::Read(Record::Text("https://a\u{202e}".to_owned()))),
                (EndpointRecordKey::Web, EndpointRecord::Failed(cause)),
                (EndpointRecordKey::Mcp, EndpointRecord::Read(Record::Absent)),
            ]
            .into(),
            offchain: false,
        }
    }

    fn records() -> Answer {
        let records = [(Key::Entry, Record::Text("x402://a\nb".to_owned())), (Key::Owner, Record::NotUtf8(vec![0xff]))];
        Answer::Records(Found {
            resolver: Address::ZERO,
            wildcard: EnsName::parse("b.eth").ok(),
            offchain: false,
            records: records.into_iter().collect(),
            payment: payment(),
        })
    }

    #[test]
    fn records_are_shown_escaped_and_not_judged() {
        let text = text("a.b.eth", &Ok(reading(records())), Format::Text);
        assert!(text.contains("  cl.entry                     x402://a\\u{a}b\n"), "{text}");
        assert!(text.contains("  cl.owner                     (not UTF-8) 0xff\n"), "{text}");
        assert!(text.contains("  cl.agentcard                 (not set)\n"), "{text}");
        assert!(text.contains(" of b.eth\n"), "{text}");
        assert!(text.contains("  addr(60)                     0x0000000000000000000000000000000000000000\n"), "{text}");
        assert!(text.contains("  addr(2147483658)             (not an address) 0x07\n"), "{text}");
        assert!(
            text.contains("  addr(2147483659)             (not read) the resolver failed: it reverted: a\\u{a}b\n")
        );
        assert!(text.contains("  addr(2147483660)             (not set)\n"), "{text}");
        assert!(text.contains("  cl.endpoint.runtime          https://a\\u{202e}\n"), "{text}");
        assert!(
            text.contains("  agent-endpoint[web]          (not read) the resolver failed: it reverted: a\\u{a}b\n")
        );
        assert!(text.contains("  agent-endpoint[mcp]          (not set)\n"), "{text}");
        assert!(text.ends_with("nothing here is judged, and nothing proven about the agent.\n"));
    }

    #[test]
    fn absence_failure_and_error_differ() {
        let unregistered = Ok(reading(Answer::Unregistered));
        let failed = Err(Failure::Chain("down".to_owned()));
        let invalid = Err(Failure::Name("bad".to_owned()));
        assert_eq!(
            [&unregistered, &failed, &invalid].map(exit),
            [Exit::Untrusted, Exit::Indeterminate, Exit::Untrusted]
        );
        assert_eq!(value("a.eth", &unregistered)["answer"], "unregistered");
        assert_eq!(value("a.eth", &failed)["answer"], "error");
        assert_eq!(value("a b", &invalid)["code"], "name-invalid");
        let found = value("a.eth", &Ok(reading(records())));
        assert_eq!(found["judged"], false);
        assert_eq!(found["records"]["cl.owner"]["hex"], "0xff");
        assert!(found["records"]["cl.agentcard"].is_null());
        assert_eq!(found["addresses"]["60"], "0x0000000000000000000000000000000000000000");
        assert_eq!(found["addresses"]["2147483658"]["hex"], "0x07");
        assert_eq!(found["addresses"]["2147483659"]["error"], "the resolver failed: it reverted: a\nb");
        assert!(found["addresses"]["2147483660"].is_null() && found["endpoints"]["agent-endpoint[mcp]"].is_null());
        assert_eq!(found["endpoints"]["agent-endpoint[web]"]["error"], "the resolver failed: it reverted: a\nb");
        assert!(found["addresses"].as_object().is_some_and(|addresses| addresses.len() == 4));
    }
}
