//! `records`: shows the raw `cl.*` text records and payment records of names, without judging them.

use std::fmt::Write as _;

use alloy_primitives::hex;
use clresolve_core::name::EnsName;
use clresolve_core::payment::{AddressRecord, EndpointRecord, PaymentRecords};
use clresolve_core::reading::{ChainError, EnsAnswer, NameReading};
use clresolve_core::reason::ReasonCode;
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::text::UntrustedText;
use serde_json::{Map, Value, json};

use super::args::{OutputFormat, RecordsArguments};
use super::exit::ExitStatus;
use super::names;
use super::output::{OutputSink, ResultWriter};
use super::progress::ProgressLine;
use super::verify::verify_progress_message;
use super::world::CommandContext;

const NOT_JUDGED: &str = "Raw records: nothing here is judged, and nothing proven about the agent.";

enum RecordsReadError {
    /// The input is not an ENS name. Contains the cause.
    Name(String),
    /// Reading the chain failed or timed out. Contains the cause.
    Chain(String),
}

pub(super) fn run(args: RecordsArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(show_records(args))
}

async fn show_records(args: RecordsArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let names = names::expand_stdin_names(args.names)?;
    let mut results = ResultWriter::for_requested_results(output, args.output.output_format(), names.len());
    let progress = ProgressLine::start(verify_progress_message(&names));
    let world = CommandContext::open(&args.world).await?;
    let mut worst = ExitStatus::Trusted;
    for input in &names {
        let answer = read_name_records(&world, input).await;
        worst = worst.max(records_exit_status(&answer));
        progress.with_line_hidden(|| {
            results.push(&name_records_json(input, &answer), |format| format_name_records(input, &answer, format))
        })?;
    }
    results.finish()?;
    Ok(worst)
}

async fn read_name_records(world: &CommandContext, input: &str) -> Result<NameReading, RecordsReadError> {
    let name = EnsName::parse(input).map_err(|e| RecordsReadError::Name(e.to_string()))?;
    let failed = |e: ChainError| RecordsReadError::Chain(e.to_string());
    match tokio::time::timeout(world.config.timeout, world.resolver.read_records(&name)).await {
        Ok(reading) => reading.map_err(failed),
        Err(_) => Err(RecordsReadError::Chain("the time limit passed".to_owned())),
    }
}

const fn records_exit_status(answer: &Result<NameReading, RecordsReadError>) -> ExitStatus {
    match answer {
        Ok(NameReading { answer: EnsAnswer::Records(_), .. }) => ExitStatus::Trusted,
        Ok(_) | Err(RecordsReadError::Name(_)) => ExitStatus::Untrusted,
        Err(RecordsReadError::Chain(_)) => ExitStatus::Indeterminate,
    }
}

fn name_records_json(input: &str, answer: &Result<NameReading, RecordsReadError>) -> Value {
    let mut value = json!({ "name": input, "judged": false });
    let more = match answer {
        Err(RecordsReadError::Name(error)) => {
            json!({ "answer": "error", "code": ReasonCode::NameInvalid, "error": error })
        }
        Err(RecordsReadError::Chain(error)) => json!({ "answer": "error", "error": error }),
        Ok(reading) => name_reading_json(reading),
    };
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}

fn name_reading_json(reading: &NameReading) -> Value {
    let block = &reading.block;
    let mut value = json!({
        "answer": ens_answer_word(&reading.answer),
        "block": { "number": block.number, "hash": block.hash, "timestamp": block.timestamp },
        "proof": reading.proof,
        "holder": reading.holder,
        "expiry": reading.expiry,
    });
    match &reading.answer {
        EnsAnswer::Unregistered => {}
        EnsAnswer::NoResolver(resolver) => value["resolver"] = json!(resolver),
        EnsAnswer::Records(found) => {
            value["resolver"] = json!(found.resolver);
            value["wildcard"] = json!(found.wildcard.as_ref().map(EnsName::as_str));
            value["offchain"] = json!(found.offchain);
            value["records"] = Value::Object(records_json(&found.records));
            value["addresses"] = Value::Object(payment_addresses_json(&found.payment));
            value["endpoints"] = Value::Object(agent_endpoints_json(&found.payment));
        }
    }
    value
}

fn records_json(records: &TextRecordSet) -> Map<String, Value> {
    TextRecordKey::ALL.into_iter().map(|key| (key.to_string(), text_record_json(records.get(key)))).collect()
}

/// A string for a text, null for an unset record, and `{"hex": …}` for bytes that are not UTF-8.
fn text_record_json(record: &TextRecord) -> Value {
    match record {
        TextRecord::Absent => Value::Null,
        TextRecord::Text(text) => json!(text),
        TextRecord::NotUtf8(bytes) => json!({ "hex": hex::encode_prefixed(bytes) }),
    }
}

/// By coin type: a string for an address, null if unset, `{"hex": …}` if malformed, and `{"error": …}` if it could not
/// be read.
fn payment_addresses_json(payment: &PaymentRecords) -> Map<String, Value> {
    let one = |record: &AddressRecord| match record {
        AddressRecord::Absent => Value::Null,
        AddressRecord::Address(address) => json!(address.to_string()),
        AddressRecord::Malformed(bytes) => json!({ "hex": bytes }),
        AddressRecord::Failed(cause) => json!({ "error": cause.to_string() }),
    };
    payment.addresses.iter().map(|(coin, record)| (coin.to_string(), one(record))).collect()
}

/// Like the records, and `{"error": …}` if it could not be read.
fn agent_endpoints_json(payment: &PaymentRecords) -> Map<String, Value> {
    let one = |record: &EndpointRecord| match record {
        EndpointRecord::Read(record) => text_record_json(record),
        EndpointRecord::Failed(cause) => json!({ "error": cause.to_string() }),
    };
    payment.endpoints.iter().map(|(key, record)| (key.to_string(), one(record))).collect()
}

const fn ens_answer_word(answer: &EnsAnswer) -> &'static str {
    match answer {
        EnsAnswer::Unregistered => "unregistered",
        EnsAnswer::NoResolver(_) => "no-resolver",
        EnsAnswer::Records(_) => "records",
    }
}

fn format_name_records(input: &str, answer: &Result<NameReading, RecordsReadError>, format: OutputFormat) -> String {
    let name = UntrustedText::new(input);
    let reading = match answer {
        Ok(reading) => reading,
        Err(RecordsReadError::Name(error)) => {
            return format!("{name}  {}: {}\n", ReasonCode::NameInvalid, UntrustedText::new(error));
        }
        Err(RecordsReadError::Chain(error)) => {
            return format!("{name}  could not be read: {}\n", UntrustedText::new(error));
        }
    };
    let set = match &reading.answer {
        EnsAnswer::Records(found) => found.records.iter().filter(|(_, r)| **r != TextRecord::Absent).count(),
        EnsAnswer::Unregistered | EnsAnswer::NoResolver(_) => 0,
    };
    if format == OutputFormat::Short {
        return format!("{}  {name}  {set} set, block {}\n", ens_answer_word(&reading.answer), reading.block.number);
    }
    let mut text = format!("{name}  block {}, {}\n", reading.block.number, reading.block.timestamp);
    match &reading.answer {
        EnsAnswer::Unregistered => text.push_str("  the name is not registered\n"),
        EnsAnswer::NoResolver(_) => text.push_str("  the name has no resolver\n"),
        EnsAnswer::Records(found) => {
            let of =
                found.wildcard.as_ref().map_or_else(String::new, |w| format!(" of {}", UntrustedText::new(w.as_str())));
            let off = if found.offchain { ", off chain" } else { "" };
            let _ = writeln!(text, "  resolver {}{of}{off}", found.resolver);
            write_record_set(&mut text, &found.records);
            write_payment_records(&mut text, &found.payment);
        }
    }
    let _ = writeln!(text, "{NOT_JUDGED}");
    text
}

fn write_record_set(text: &mut String, records: &TextRecordSet) {
    for key in TextRecordKey::ALL {
        write_text_record(text, key.as_str(), records.get(key));
    }
}

fn write_text_record(text: &mut String, key: &str, record: &TextRecord) {
    let _ = match record {
        TextRecord::Absent => writeln!(text, "  {key:<28} (not set)"),
        TextRecord::Text(value) => writeln!(text, "  {key:<28} {}", UntrustedText::new(value)),
        TextRecord::NotUtf8(bytes) => {
            let hex = hex::encode_prefixed(bytes);
            writeln!(text, "  {key:<28} (not UTF-8) {}", UntrustedText::new(&hex))
        }
    };
}

fn write_payment_records(text: &mut String, payment: &PaymentRecords) {
    for (coin, record) in &payment.addresses {
        let key = format!("addr({coin})");
        let _ = match record {
            AddressRecord::Absent => writeln!(text, "  {key:<28} (not set)"),
            AddressRecord::Address(address) => writeln!(text, "  {key:<28} {address}"),
            AddressRecord::Malformed(bytes) => writeln!(text, "  {key:<28} (not an address) {bytes}"),
            AddressRecord::Failed(cause) => write_read_failure(text, &key, cause),
        };
    }
    for (key, record) in &payment.endpoints {
        match record {
            EndpointRecord::Read(record) => write_text_record(text, key.as_str(), record),
            EndpointRecord::Failed(cause) => drop(write_read_failure(text, key.as_str(), cause)),
        }
    }
}

fn write_read_failure(text: &mut String, key: &str, cause: &ChainError) -> std::fmt::Result {
    writeln!(text, "  {key:<28} (not read) {}", UntrustedText::new(&cause.to_string()))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256};
    use clresolve_core::payment::{CoinType, EndpointRecordKey};
    use clresolve_core::reading::{
        ChainBlock, NameHolder, ProofGrade, ProofStrength, ResolvedRecords, ResolverContractError,
    };
    use jiff::Timestamp;

    use super::*;

    fn reading(answer: EnsAnswer) -> NameReading {
        NameReading {
            block: ChainBlock { number: 7, hash: B256::ZERO, timestamp: Timestamp::UNIX_EPOCH },
            answer,
            latest: None,
            newest: None,
            holder: NameHolder::Nobody,
            expiry: None,
            proof: ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: false },
            endpoints: vec!["rpc".to_owned()],
            contradicted_by: Vec::new(),
            failed_endpoints: Vec::new(),
        }
    }

    fn payment() -> PaymentRecords {
        let cause = ChainError::Resolver(ResolverContractError::Reverted("a\nb".to_owned()));
        let chain = |id| CoinType::from_chain_id(id).expect("an EVM chain");
        PaymentRecords {
            addresses: [
                (CoinType::ETHER, AddressRecord::Address(Address::ZERO)),
                (chain(10), AddressRecord::Malformed(vec![7].into())),
                (chain(11), AddressRecord::Failed(cause.clone())),
                (chain(12), AddressRecord::Absent),
            ]
            .into(),
            endpoints: [
                (EndpointRecordKey::Runtime, EndpointRecord::Read(TextRecord::Text("https://a\u{202e}".to_owned()))),
                (EndpointRecordKey::Web, EndpointRecord::Failed(cause)),
                (EndpointRecordKey::Mcp, EndpointRecord::Read(TextRecord::Absent)),
            ]
            .into(),
            offchain: false,
        }
    }

    fn records() -> EnsAnswer {
        let records = [
            (TextRecordKey::Entry, TextRecord::Text("x402://a\nb".to_owned())),
            (TextRecordKey::Owner, TextRecord::NotUtf8(vec![0xff])),
        ];
        EnsAnswer::Records(ResolvedRecords {
            resolver: Address::ZERO,
            wildcard: EnsName::parse("b.eth").ok(),
            offchain: false,
            records: records.into_iter().collect(),
            payment: payment(),
        })
    }

    #[test]
    fn records_are_shown_escaped_and_not_judged() {
        let text = format_name_records("a.b.eth", &Ok(reading(records())), OutputFormat::Text);
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
        let unregistered = Ok(reading(EnsAnswer::Unregistered));
        let failed = Err(RecordsReadError::Chain("down".to_owned()));
        let invalid = Err(RecordsReadError::Name("bad".to_owned()));
        assert_eq!(
            [&unregistered, &failed, &invalid].map(records_exit_status),
            [ExitStatus::Untrusted, ExitStatus::Indeterminate, ExitStatus::Untrusted]
        );
        assert_eq!(name_records_json("a.eth", &unregistered)["answer"], "unregistered");
        assert_eq!(name_records_json("a.eth", &failed)["answer"], "error");
        assert_eq!(name_records_json("a b", &invalid)["code"], "name-invalid");
        let found = name_records_json("a.eth", &Ok(reading(records())));
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
