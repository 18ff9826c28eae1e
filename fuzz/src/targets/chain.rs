//! What endpoints and CCIP-Read gateways answer, read by the client that asks them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use alloy_primitives::{B256, Bytes, U256, keccak256};
use alloy_rpc_types_eth::Header;
use alloy_sol_types::SolValue as _;
use async_trait::async_trait;
use clresolve_chain::ccip::{CcipReadGatewayClient, CcipReadGatewayError, CcipReadRequest};
use clresolve_chain::transport::{HttpRequestError, JsonRpcHttpClient};
use clresolve_chain::{ChainReaderConfig, EnsReader as _, RpcEndpointSettings, RpcEnsReader};
use clresolve_core::name::EnsName;
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_core::reading::{BlockSelector, ChainError, EnsAnswer, NameReading, ProofGradeDemand, ResolvedRecords};
use clresolve_core::records::TextRecord;
use clresolve_resolver::fetch::FetchError;
use clresolve_resolver::fetch::ccip::{URL_LIMIT, expand_url_template, parse_gateway_response};
use clresolve_state::EnsContractAddresses;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// Number of the only block.
pub(crate) const BLOCK: u64 = 1;

/// An endpoint's answer. The first byte selects what the rest is: what `eth_call` returned, the data of a revert, what
/// the resolver alone returned, or the whole body.
pub(crate) fn abi(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let call = match kind % 4 {
        0 => Call::Returns(rest.to_vec()),
        1 => Call::Reverts(rest.to_vec()),
        2 => Call::Returns(aggregate(true, rest)),
        _ => Call::Body(rest.to_vec()),
    };
    let wire = Wire { aggregate: call, look_ups: Vec::new(), looked_up: AtomicUsize::new(0), header: HEADER.clone() };
    check_reading(rest, read(wire, Gateway::default()).0);
}

/// A look-up: the pieces of the input are the revert that demands it, the gateway's answer, and what the callback
/// returns. The input as a whole is a gateway's body too, and the template of its URL.
pub(crate) fn ccip(input: &[u8]) {
    const CAP: usize = 256;
    match parse_gateway_response(input, CAP) {
        Ok(data) => assert!(data.len() <= CAP && data.len() * 2 <= input.len(), "more data than the body holds"),
        Err(error) => assert!(matches!(error, FetchError::Oversize { limit: CAP } | FetchError::Unavailable(_))),
    }
    if let Ok(template) = std::str::from_utf8(input)
        && let Ok(url) = expand_url_template(template, "0x01", "0x02")
    {
        // Percent-encoding writes three bytes for one.
        assert!(url.as_str().len() <= 3 * URL_LIMIT);
    }

    let parts = super::pieces(input);
    let [look_up, answer, callback, ..] = parts[..] else { return };
    let look_ups = vec![Call::Reverts(look_up.to_vec()), Call::Returns(callback.to_vec())];
    let aggregate = Call::Returns(aggregate(false, look_up));
    let wire = Wire { aggregate, look_ups, looked_up: AtomicUsize::new(0), header: HEADER.clone() };
    let (reading, asked) = read(wire, Gateway { answer: Bytes::copy_from_slice(answer), asked: Arc::default() });
    assert!(asked <= 200, "{asked} requests for a look-up here and one at the newest block");
    check_reading(input, reading);
}

/// A reading of a name without a resolver, in the block whose header an endpoint gives like this.
pub(crate) fn told_header(header: &Value) -> Result<NameReading, ChainError> {
    let not_found = [&keccak256("ResolverNotFound(bytes)")[..4], &Bytes::new().abi_encode()[..]].concat();
    let aggregate = Call::Returns(aggregate(false, &not_found));
    let wire = Wire { aggregate, look_ups: Vec::new(), looked_up: AtomicUsize::new(0), header: header.clone() };
    read(wire, Gateway::default()).0
}

/// No record is longer than what came in, nor are all of them together.
fn check_reading(input: &[u8], reading: Result<NameReading, ChainError>) {
    let Ok(NameReading { answer: EnsAnswer::Records(ResolvedRecords { records, .. }), .. }) = reading else {
        return;
    };
    let length = |record: &TextRecord| match record {
        TextRecord::Absent => 0,
        TextRecord::Text(text) => text.len(),
        TextRecord::NotUtf8(bytes) => bytes.len(),
    };
    let bytes: usize = records.iter().map(|(_, record)| length(record)).sum();
    assert!(bytes <= input.len(), "{bytes} bytes of records from {} bytes", input.len());
}

/// What Multicall3 returns where all but the resolver's parts are in order: it says the same about the records and
/// about payments.
pub(crate) fn aggregate(success: bool, resolved: &[u8]) -> Vec<u8> {
    let word = |value: u8| Bytes::from(U256::from(value).to_be_bytes_vec());
    let three = |values: [u8; 3]| Bytes::from(values.map(|value| U256::from(value).to_be_bytes_vec()).concat());
    let results = vec![
        (true, word(1)),
        (true, word(7)),
        (true, word(0)),
        (true, three([0; 3])),
        (true, word(9)),
        (true, three([RESOLVER, 0, 0])),
        (true, word(RESOLVER)),
        (true, word(0)),
        (success, Bytes::copy_from_slice(resolved)),
        (success, Bytes::copy_from_slice(resolved)),
    ];
    (U256::from(BLOCK), B256::ZERO, results).abi_encode_params()
}

/// Last byte of the resolver's address.
pub(crate) const RESOLVER: u8 = 5;

/// How a call ends.
enum Call {
    Returns(Vec<u8>),
    Reverts(Vec<u8>),
    /// The body of the whole exchange.
    Body(Vec<u8>),
}

impl Call {
    fn outcome(&self) -> Value {
        match self {
            Self::Returns(data) => json!({"result": alloy_primitives::hex::encode_prefixed(data)}),
            Self::Reverts(data) => {
                let data = alloy_primitives::hex::encode_prefixed(data);
                json!({"error": {"code": 3, "message": "execution reverted", "data": data}})
            }
            Self::Body(_) => json!({"result": null}),
        }
    }
}

/// An endpoint that knows one block and answers every call in one way.
struct Wire {
    aggregate: Call,
    /// The block's header.
    header: Value,
    /// How the calls of the look-up end, one after another; the last one again and again.
    look_ups: Vec<Call>,
    looked_up: AtomicUsize,
}

impl Wire {
    fn answer(&self, request: &Value) -> Value {
        let mut answer = match request["method"].as_str() {
            Some("eth_chainId") => json!({"result": "0x1"}),
            Some("eth_getBlockByNumber") => json!({"result": self.header}),
            Some("eth_call") => self.call(&request["params"][0]).outcome(),
            other => panic!("the client asks for {other:?}"),
        };
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        answer
    }

    fn call(&self, transaction: &Value) -> &Call {
        let is_aggregate = transaction["to"] == json!(clresolve_state::MULTICALL3);
        if is_aggregate || self.look_ups.is_empty() {
            return &self.aggregate;
        }
        let turn = self.looked_up.fetch_add(1, Ordering::Relaxed);
        &self.look_ups[turn.min(self.look_ups.len() - 1)]
    }
}

#[async_trait]
impl JsonRpcHttpClient for Wire {
    async fn post_json(
        &self,
        _: &Url,
        body: bytes::Bytes,
        _: usize,
        _: Duration,
    ) -> Result<bytes::Bytes, HttpRequestError> {
        if let Call::Body(body) = &self.aggregate {
            return Ok(body.clone().into());
        }
        let request: Value = serde_json::from_slice(&body).expect("the client sends JSON");
        let answer = match &request {
            Value::Array(batch) => batch.iter().map(|request| self.answer(request)).collect(),
            one => self.answer(one),
        };
        Ok(answer.to_string().into())
    }
}

/// A gateway that gives one answer.
#[derive(Default)]
struct Gateway {
    answer: Bytes,
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl CcipReadGatewayClient for Gateway {
    async fn request_first_response(&self, _: &CcipReadRequest, cap: usize) -> Result<Bytes, CcipReadGatewayError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.answer.len() > cap {
            return Err(CcipReadGatewayError::new("too much"));
        }
        Ok(self.answer.clone())
    }
}

pub(crate) static HEADER: LazyLock<Value> = LazyLock::new(|| {
    let header = Header::new(alloy_consensus::Header { number: BLOCK, ..Default::default() });
    serde_json::to_value(header).expect("a header has a JSON form")
});

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().expect("a runtime needs nothing"));

/// What the client makes of the endpoint, and how often it asked the gateway.
fn read(wire: Wire, gateway: Gateway) -> (Result<NameReading, ChainError>, usize) {
    let asked = Arc::clone(&gateway.asked);
    let url = Url::parse("http://127.0.0.1/").expect("a good URL");
    let config = ChainReaderConfig {
        chain_id: 1,
        genesis: None,
        demand: ProofGradeDemand::SingleRpc,
        contracts: EnsContractAddresses::default(),
        endpoints: vec![RpcEndpointSettings { label: "fuzz".to_owned(), url, own: true, operator: "fuzz".to_owned() }],
        timeout: Duration::from_secs(10),
        hedge_after: Duration::from_secs(10),
        lookup_timeout: Some(Duration::from_secs(40)),
        coins: RequestedCoinTypes::default(),
        max_head_age: None,
    };
    let http: Arc<dyn JsonRpcHttpClient> = Arc::new(wire);
    let chain = RpcEnsReader::new(config, &http, Arc::new(gateway));
    let name = EnsName::parse("summarizeagent.eth").expect("a good name");
    let reading = RUNTIME.block_on(chain.read_name(&name, BlockSelector::Finalized));
    (reading, asked.load(Ordering::Relaxed))
}
