//! Lookups with contracts and gateways that follow the rules, and with some that do not.

use std::collections::VecDeque;
use std::sync::Mutex;

use alloy_json_rpc::ErrorPayload;
use alloy_primitives::{B256, FixedBytes, address, hex};
use alloy_sol_types::{Revert, SolCall as _, SolError as _, SolValue as _, sol};
use alloy_transport::TransportErrorKind;
use clresolve_core::cause::{LocalLimitError, ResolverContractError};
use serde_json::{Value, json};
use url::Url;

use super::*;
use crate::transport::{EndpointTransport, EndpointTransportError, HttpRequestError, JsonRpcHttpClient};

const RESOLVER: Address = address!("00000000000000000000000000000000000000aa");
const BATCH: &str = "x-batch-gateway:true";
const CALL: [u8; 2] = [0xca, 0x11];

sol! {
    error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData);
    error HttpError(uint16 status, string message);
    error ResolverNotFound(bytes name);

    struct GatewayRequest {
        address sender;
        string[] urls;
        bytes data;
    }

    function query(GatewayRequest[] requests) returns (bool[] failures, bytes[] responses);
}

/// An endpoint with scripted call results. The last result is repeated.
struct Endpoint {
    script: Mutex<VecDeque<Value>>,
    calls: Mutex<Vec<Value>>,
}

#[async_trait]
impl JsonRpcHttpClient for Endpoint {
    async fn post_json(
        &self,
        _: &Url,
        body: bytes::Bytes,
        _: usize,
        _: Duration,
    ) -> Result<bytes::Bytes, HttpRequestError> {
        let request: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(request["method"], "eth_call");
        self.calls.lock().unwrap().push(request["params"].clone());
        let mut script = self.script.lock().unwrap();
        let mut reply = if script.len() > 1 { script.pop_front() } else { script.front().cloned() }.unwrap();
        (reply["id"], reply["jsonrpc"]) = (request["id"].clone(), "2.0".into());
        Ok(reply.to_string().into())
    }
}

fn returned(data: &[u8]) -> Value {
    json!({ "result": hex::encode_prefixed(data) })
}

fn reverted(data: &[u8]) -> Value {
    json!({ "error": { "code": 3, "message": "execution reverted", "data": hex::encode_prefixed(data) } })
}

fn look_up(sender: Address, urls: &[&str], data: &[u8]) -> Vec<u8> {
    let urls = urls.iter().map(|url| (*url).to_owned()).collect();
    let data = Bytes::copy_from_slice(data);
    let callback = FixedBytes::from([1, 2, 3, 4]);
    OffchainLookup { sender, urls, callData: data, callbackFunction: callback, extraData: vec![9].into() }.abi_encode()
}

fn callback(response: &[u8]) -> String {
    let arguments = (Bytes::copy_from_slice(response), Bytes::from(vec![9])).abi_encode_params();
    hex::encode_prefixed([&[1, 2, 3, 4], &arguments[..]].concat())
}

type CcipReadResult = Result<Bytes, CcipReadGatewayError>;

/// A gateway that chooses its answer by the data of the request.
struct Gateway {
    reply: fn(&[u8]) -> CcipReadResult,
    requests: Mutex<Vec<CcipReadRequest>>,
    caps: Mutex<Vec<usize>>,
}

#[async_trait]
impl CcipReadGatewayClient for Gateway {
    async fn request_first_response(&self, request: &CcipReadRequest, cap: usize) -> CcipReadResult {
        self.caps.lock().unwrap().push(cap);
        self.requests.lock().unwrap().push(request.clone());
        (self.reply)(&request.data)
    }
}

struct Followed {
    result: Result<Bytes, ChainError>,
    calls: Vec<Value>,
    requests: Vec<CcipReadRequest>,
    /// The byte limit of each request.
    caps: Vec<usize>,
}

const MINUTE: Duration = Duration::from_secs(60);

fn scripted<const N: usize>(script: [Value; N]) -> (Arc<Endpoint>, RpcClient) {
    let endpoint = Arc::new(Endpoint { script: Mutex::new(script.into()), calls: Mutex::default() });
    let url = Url::parse("http://endpoint/").unwrap();
    let http: Arc<dyn JsonRpcHttpClient> = Arc::clone(&endpoint) as _;
    (endpoint, RpcClient::new(EndpointTransport::new(http, url, "endpoint".to_owned(), MINUTE), true))
}

async fn follow<const N: usize>(script: [Value; N], reply: fn(&[u8]) -> CcipReadResult) -> Followed {
    let (endpoint, rpc) = scripted(script);
    let gateway = Arc::new(Gateway { reply, requests: Mutex::default(), caps: Mutex::default() });
    let lookups = CcipReadLookupClient::new(Arc::clone(&gateway) as _, MINUTE);
    let result = lookups.follow_lookups(&rpc, RESOLVER, CALL.into(), BlockId::hash(B256::ZERO)).await;
    let (calls, requests) = (endpoint.calls.lock().unwrap().clone(), gateway.requests.lock().unwrap().clone());
    let caps = gateway.caps.lock().unwrap().clone();
    Followed { result, calls, requests, caps }
}

fn refused(followed: &Followed) -> &CcipLookupError {
    match &followed.result {
        Err(ChainError::Ccip(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

fn client_fault(cause: &str) -> CcipLookupError {
    CcipLookupError::Client(cause.to_owned())
}

#[tokio::test]
async fn a_look_up_is_answered_in_the_same_block() {
    let urls = ["https://a.example/{sender}/{data}", "https://b.example/"];
    let script = [reverted(&look_up(RESOLVER, &urls, &[7, 7])), returned(&[5])];
    let followed = follow(script, |data| Ok(Bytes::copy_from_slice(&[data, &[8]].concat()))).await;
    assert_eq!(followed.result, Ok(vec![5].into()));
    let request = CcipReadRequest { sender: RESOLVER, urls: urls.map(str::to_owned).to_vec(), data: vec![7, 7].into() };
    assert_eq!((followed.requests, followed.caps), (vec![request], vec![MAX_LOOK_UP_BYTES]));
    let data: Vec<_> = followed.calls.iter().map(|call| call[0]["data"].as_str().unwrap()).collect();
    assert_eq!(data, ["0xca11".to_owned(), callback(&[7, 7, 8])]);
    let block = json!(BlockId::hash(B256::ZERO));
    for call in &followed.calls {
        assert_eq!((&call[0]["to"], &call[1]), (&json!(RESOLVER), &block));
    }
}

#[tokio::test]
async fn without_a_look_up_no_gateway_is_asked() {
    let followed = follow([returned(&[5])], |_| panic!("a gateway is asked")).await;
    assert_eq!(followed.result, Ok(vec![5].into()));
    let followed = follow([reverted(&Revert::from("no").abi_encode())], |_| panic!("a gateway is asked")).await;
    assert_eq!(refused(&followed), &CcipLookupError::Callback(ResolverContractError::Reverted("no".to_owned())));
}

/// An error of the Universal Resolver itself does not concern the gateway's response.
#[tokio::test]
async fn unrelated_callback_error_does_not_reject_the_response() {
    let absent = ResolverNotFound { name: Bytes::new() }.abi_encode();
    let script = [reverted(&look_up(RESOLVER, &["https://a.example/"], &[])), reverted(&absent)];
    let followed = follow(script, |_| Ok(Bytes::new())).await;
    assert_eq!((refused(&followed), followed.requests.len()), (&CcipLookupError::NotTaken, 1));
}

#[tokio::test]
async fn a_look_up_of_another_contract_is_refused() {
    let script = [reverted(&look_up(Address::ZERO, &["https://a.example/"], &[]))];
    let followed = follow(script, |_| Ok(Bytes::new())).await;
    assert_eq!((refused(&followed), followed.requests.len()), (&CcipLookupError::Sender, 0));
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_stays_silent_is_given_up() {
    struct Silent;

    #[async_trait]
    impl CcipReadGatewayClient for Silent {
        async fn request_first_response(&self, _: &CcipReadRequest, _: usize) -> CcipReadResult {
            std::future::pending().await
        }
    }

    let (endpoint, rpc) = scripted([reverted(&look_up(RESOLVER, &["https://a.example/"], &[]))]);
    let lookups = CcipReadLookupClient::new(Arc::new(Silent), MINUTE);
    let result = lookups.follow_lookups(&rpc, RESOLVER, CALL.into(), BlockId::hash(B256::ZERO)).await;
    assert_eq!(result, Err(ChainError::Ccip(CcipLookupError::Late(MINUTE))));
    assert_eq!(endpoint.calls.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn look_ups_without_end_are_stopped() {
    let script = [reverted(&look_up(RESOLVER, &["https://a.example/"], &[]))];
    let followed = follow(script, |_| Ok(vec![1].into())).await;
    assert_eq!(refused(&followed), &client_fault("more than 4 lookups in a row"));
    assert_eq!((followed.calls.len(), followed.requests.len()), (5, 4));
    // The fourth lookup may be the last.
    let demand = reverted(&look_up(RESOLVER, &["https://a.example/"], &[]));
    let script = [demand.clone(), demand.clone(), demand.clone(), demand, returned(&[5])];
    let followed = follow(script, |_| Ok(vec![1].into())).await;
    assert_eq!((followed.result, followed.requests.len()), (Ok(vec![5].into()), 4));
}

#[tokio::test]
async fn malformed_look_ups_ask_no_gateway() {
    let good = look_up(RESOLVER, &["https://a.example/"], &[]);
    for (revert, cause) in [
        (good[..4].to_vec(), "the lookup is malformed: parts of the ABI data overlap"),
        (good[..good.len() - 33].to_vec(), "the lookup is malformed: the ABI data ends too early"),
        (look_up(RESOLVER, &[], &[0; MAX_LOOK_UP_BYTES]), "the lookup has more than 262144 bytes"),
        (
            look_up(RESOLVER, &["https://a.example/"; 9], &[]),
            "the request to the gateway failed: more than 8 gateway URLs",
        ),
        (
            look_up(RESOLVER, &[BATCH], &[0; 64]),
            "the request to the gateway failed: the lookup is malformed: the ABI data contains a value that its type does \
             not allow",
        ),
    ] {
        let followed = follow([reverted(&revert)], |_| Ok(Bytes::new())).await;
        assert_eq!((refused(&followed), followed.requests.len()), (&client_fault(cause), 0));
    }
}

#[tokio::test]
async fn a_gateway_that_fails_or_floods_ends_the_look_up() {
    let demand = || [reverted(&look_up(RESOLVER, &["https://a.example/"], &[]))];
    let followed = follow(demand(), |_| Err(CcipReadGatewayError::with_http_status(404, "HTTP status 404"))).await;
    assert_eq!(refused(&followed), &client_fault("the request to the gateway failed: HTTP status 404"));
    let followed = follow(demand(), |_| Ok(vec![0; MAX_LOOK_UP_BYTES + 1].into())).await;
    let flood = "the request to the gateway failed: the gateway's response has more than 262144 bytes";
    assert_eq!((refused(&followed), followed.calls.len()), (&client_fault(flood), 1));
}

#[tokio::test]
async fn a_demand_is_found_wherever_a_node_puts_it() {
    let data = hex::encode_prefixed(look_up(RESOLVER, &["https://a.example/"], &[]));
    for error in [
        json!({ "code": -32015, "message": "VM execution error.", "data": data }),
        json!({ "code": -32000, "message": "VM Exception", "data": { "0xab": { "return": data }, "name": "Error" } }),
        json!({ "code": 3, "message": "execution reverted", "data": [{ "data": data }] }),
    ] {
        let followed = follow([json!({ "error": error }), returned(&[5])], |_| Ok(Bytes::new())).await;
        assert_eq!(followed.result, Ok(vec![5].into()), "{error}");
    }
}

fn batch(requests: Vec<(&[&str], Vec<u8>)>) -> Vec<u8> {
    let request = |(urls, data): (&[&str], Vec<u8>)| GatewayRequest {
        sender: RESOLVER,
        urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        data: data.into(),
    };
    queryCall { requests: requests.into_iter().map(request).collect() }.abi_encode()
}

/// The response to a batch, as passed to the contract.
fn batch_of(followed: &Followed) -> queryReturn {
    let callback = hex::decode(followed.calls[1][0]["data"].as_str().unwrap()).unwrap();
    let response = clresolve_state::response_in_callback(&callback).unwrap();
    queryCall::abi_decode_returns_validate(&response).unwrap()
}

#[tokio::test]
async fn a_batch_gets_a_response_or_a_failure_for_each_request() {
    let url: &[&str] = &["https://a.example/"];
    let inner = batch(vec![(url, vec![1])]);
    let requests = vec![(url, vec![1]), (url, vec![2]), (url, vec![3]), (&[BATCH][..], inner), (&["u"; 9][..], vec![])];
    let script = [reverted(&look_up(RESOLVER, &["https://b.example/", BATCH], &batch(requests))), returned(&[5])];
    let followed = follow(script, |data| match data {
        [1] => Ok(vec![0xaa].into()),
        [2] => Err(CcipReadGatewayError::with_http_status(503, "HTTP status 503")),
        _ => Err(CcipReadGatewayError::new("refused")),
    })
    .await;
    assert_eq!(followed.result, Ok(vec![5].into()));
    assert_eq!(followed.requests.len(), 4, "the URL beside the batch is not asked");
    let queryReturn { failures, responses } = batch_of(&followed);
    assert_eq!(failures, [false, true, true, false, true]);
    assert_eq!(responses[0], Bytes::from(vec![0xaa]));
    assert_eq!(HttpError::abi_decode(&responses[1]).unwrap().status, 503);
    assert_eq!(Revert::abi_decode(&responses[2]).unwrap().reason, "refused");
    let inner = queryCall::abi_decode_returns_validate(&responses[3]).unwrap();
    assert_eq!((inner.failures, inner.responses), (vec![false], vec![vec![0xaa].into()]));
    assert_eq!(Revert::abi_decode(&responses[4]).unwrap().reason, "more than 8 gateway URLs");
}

#[tokio::test]
async fn the_requests_of_a_look_up_are_counted_over_all_batches() {
    let two: &[&str] = &["https://a.example/", "https://b.example/"];
    let script = [reverted(&look_up(RESOLVER, &[BATCH], &batch(vec![(two, vec![1]); 64]))), returned(&[5])];
    let followed = follow(script, |_| Ok(Bytes::new())).await;
    // The batch itself takes one of the hundred requests, and each request takes one per URL.
    assert_eq!(followed.requests.len(), 49);
    let failures = batch_of(&followed).failures;
    assert_eq!(failures.iter().position(|failed| *failed), Some(49));
    assert!(failures[49..].iter().all(|failed| *failed));
}

/// A lookup with `levels` nested batches around one request for `data`.
async fn nested(levels: usize, data: Vec<u8>) -> Followed {
    let innermost = batch(vec![(&["https://a.example/"], data)]);
    let outermost = (1..levels).fold(innermost, |data, _| batch(vec![(&[BATCH], data)]));
    let script = [reverted(&look_up(RESOLVER, &[BATCH], &outermost)), returned(&[5])];
    follow(script, |_| Ok(vec![0xaa].into())).await
}

/// The response to the innermost request, or the failure of a request around it.
fn innermost(followed: &Followed) -> Result<Bytes, String> {
    let mut answer = batch_of(followed);
    loop {
        let (failed, response) = (answer.failures[0], answer.responses[0].clone());
        if failed {
            return Err(Revert::abi_decode(&response).unwrap().reason);
        }
        match queryCall::abi_decode_returns_validate(&response) {
            Ok(inner) => answer = inner,
            Err(_) => return Ok(response),
        }
    }
}

#[tokio::test]
async fn batches_in_batches_are_bounded() {
    let followed = nested(3, vec![1]).await;
    assert_eq!((innermost(&followed), followed.requests.len()), (Ok(vec![0xaa].into()), 1));
    for levels in [4, 150] {
        let followed = nested(levels, vec![1]).await;
        let refusal = Err("batch nesting exceeds 3 levels".to_owned());
        assert_eq!((innermost(&followed), followed.requests.len()), (refusal, 0), "{levels}");
    }
}

const TOO_MANY_BYTES: &str = "batches and responses exceed 524288 bytes in total";

/// Each level of batches holds a copy of its contents.
#[tokio::test]
async fn nested_batches_around_long_data_are_refused() {
    let followed = nested(3, vec![1; 250 << 10]).await;
    assert_eq!((innermost(&followed), followed.requests.len()), (Err(TOO_MANY_BYTES.to_owned()), 0));
    // Two levels fit. The gateway may use what they leave of the limit.
    let followed = nested(2, vec![1; 250 << 10]).await;
    assert_eq!((innermost(&followed), followed.caps.len()), (Ok(vec![0xaa].into()), 1));
    assert!(followed.caps[0] < 12 << 10, "{:?}", followed.caps);
}

/// A batch of batches, with 96 requests in total.
fn many() -> Vec<u8> {
    let inner = || batch(vec![(&["https://a.example/"], vec![1]); 32]);
    let batches = batch((0..3).map(|_| (&[BATCH][..], inner())).collect());
    look_up(RESOLVER, &[BATCH], &batches)
}

#[tokio::test]
async fn the_bytes_of_all_responses_are_counted_together() {
    let followed = follow([reverted(&many()), returned(&[5])], |_| Ok(vec![7; 100 << 10].into())).await;
    assert_eq!(followed.caps.len(), 96);
    // Four responses fit. After that, this gateway ignores its limit.
    assert!(followed.caps[4..].iter().all(|cap| *cap < 100 << 10), "{:?}", followed.caps);
    let batch = batch_of(&followed);
    assert_eq!(batch.failures, [true, false, false], "the first batch has more than one response may have");
    for responses in &batch.responses[1..] {
        let inner = queryCall::abi_decode_returns_validate(responses).unwrap();
        for refusal in &inner.responses {
            assert_eq!(Revert::abi_decode(refusal).unwrap().reason, TOO_MANY_BYTES);
        }
    }
}

#[tokio::test]
async fn no_gateway_is_asked_once_no_byte_is_left() {
    let gateway =
        Gateway { reply: |_| Ok(vec![7; 1 << 10].into()), requests: Mutex::default(), caps: Mutex::default() };
    let requests = CcipReadLookupSession::new(&gateway);
    requests.bytes_left.store(1 << 10, Ordering::Relaxed);
    let request = CcipReadRequest { sender: RESOLVER, urls: vec!["https://a.example/".to_owned()], data: Bytes::new() };
    assert_eq!(requests.fetch_response(&request, 0).await, Ok(vec![7; 1 << 10].into()));
    assert_eq!(requests.fetch_response(&request, 0).await, Err(CcipReadGatewayError::new(TOO_MANY_BYTES)));
    assert_eq!(*gateway.caps.lock().unwrap(), [1 << 10]);
}

#[tokio::test]
async fn a_batch_of_the_records_of_a_name_passes() {
    let requests = batch(vec![(&["https://a.example/"], vec![1; 2 << 10]); 16]);
    let script = [reverted(&look_up(RESOLVER, &[BATCH], &requests)), returned(&[5])];
    let followed = follow(script, |_| Ok(vec![7; 12 << 10].into())).await;
    let queryReturn { failures, responses } = batch_of(&followed);
    assert_eq!(failures, [false; 16]);
    assert!(responses.iter().all(|response| *response == vec![7; 12 << 10]));
}

#[test]
fn what_endpoints_do_is_no_fault_of_the_gateway() {
    let limit = LocalLimitError::Reply { endpoint: "a".to_owned(), bytes: 1 };
    let block = BlockId::Number(7.into());
    let of = |fault: EndpointTransportError| failed_call_error(&TransportErrorKind::custom(fault), block);
    assert_eq!(of(EndpointTransportError::LocalLimit(limit.clone())), ChainError::LocalLimit(limit));
    assert_eq!(of(EndpointTransportError::Divided(Vec::new())), ChainError::Disagree(Vec::new()));
    assert_eq!(of(EndpointTransportError::Unproven(Vec::new())), ChainError::Unproven(Vec::new()));
    assert!(matches!(of(EndpointTransportError::Html), ChainError::Unreachable(_)));
    assert!(matches!(of(EndpointTransportError::Missing(1)), ChainError::Unreachable(_)));
    let error = |code, message: &str| {
        let payload = ErrorPayload { code, message: message.to_owned().into(), data: None };
        failed_call_error(&TransportError::ErrorResp(payload), block)
    };
    assert!(matches!(error(-32005, "too many requests"), ChainError::Unreachable(_)));
    assert!(matches!(error(-32000, "header not found"), ChainError::BlockUnavailable { .. }));
    assert!(
        matches!(error(-32000, "out of gas"), ChainError::Ccip(CcipLookupError::Client(_))),
        "the callback's own end"
    );
}
