//! How RPC endpoints answer, as data.

use serde_json::{Value, json};

use super::exhibit::{Exhibit, silent};
use crate::support::server::gzip;

/// The beginning of the page.
pub(super) const HEADING: &str = "\
# RPC endpoints and their limits

Behaviour that has been reported for real RPC endpoints, by the verdict on an otherwise trusted agent if that endpoint
is the only one. With two honest endpoints beside it, every verdict is *trusted*. `clresolve doctor` also prints the
cause and what to do. `HTTP status` causes are not repeated. See also [CCIP-Read gateways](ccip-gateways.md), [IPFS
gateways](ipfs-gateways.md) and [card hosts](card-hosts.md).
";

pub(super) const COLUMNS: [&str; 4] = ["answer", "observed at", "cause", "`clresolve doctor`"];

pub(super) const ON_CHAIN: &str = "on-chain.eth";

/// Its records come from a CCIP-Read gateway, which a contract demands by a revert.
pub(super) const OFF_CHAIN: &str = "off-chain.eth";

/// A request, and the honest answer to it.
pub(super) struct Visit {
    pub(super) request: Value,
    pub(super) honest: Value,
}

pub(super) enum Reply {
    Whole {
        status: u16,
        headers: Vec<(&'static str, &'static str)>,
        body: Vec<u8>,
    },
    /// Nothing ever comes.
    Silence,
}

type Answers = fn(&Visit) -> Reply;

const fn exhibit(name: &'static str, what: &'static str, seen: &'static str, answer: Answers) -> Exhibit<Answers> {
    Exhibit { name, what, seen, asked: ON_CHAIN, is_silent: false, answer }
}

const fn off_chain(exhibit: Exhibit<Answers>) -> Exhibit<Answers> {
    Exhibit { asked: OFF_CHAIN, ..exhibit }
}

pub(super) fn honest(visit: &Visit) -> Reply {
    said(200, &visit.honest)
}

pub(super) fn dead(_: &Visit) -> Reply {
    text(530, "error code: 1016")
}

/// What the operators of the default endpoints document, in their order.
pub(super) const DEFAULTS: [Answers; 6] = [no_old_blocks, batches_of_three, honest, honest, batches_of_three, honest];

fn said(status: u16, body: &Value) -> Reply {
    Reply::Whole { status, headers: vec![("content-type", "application/json")], body: body.to_string().into() }
}

fn text(status: u16, body: &'static str) -> Reply {
    Reply::Whole { status, headers: vec![("content-type", "text/plain")], body: body.into() }
}

fn with(header: (&'static str, &'static str), body: Vec<u8>) -> Reply {
    Reply::Whole { status: 200, headers: vec![("content-type", "application/json"), header], body }
}

fn error(code: i64, message: &str) -> Value {
    json!({"code": code, "message": message})
}

impl Visit {
    fn requests(&self) -> &[Value] {
        self.request.as_array().map_or_else(|| std::slice::from_ref(&self.request), Vec::as_slice)
    }

    fn is_batch(&self) -> bool {
        self.request.is_array()
    }

    /// The answer to a batch, and the honest answer to a single request.
    fn batch(&self, reply: impl FnOnce() -> Reply) -> Reply {
        if self.is_batch() { reply() } else { honest(self) }
    }

    /// The honest answer with each response changed.
    fn each(&self, change: impl Fn(&Value, &mut Value)) -> Value {
        let mut honest = self.honest.clone();
        let responses = match &mut honest {
            Value::Array(responses) => responses.as_mut_slice(),
            single => std::slice::from_mut(single),
        };
        for response in responses {
            let request = self.requests().iter().find(|request| request["id"] == response["id"]).unwrap();
            change(request, response);
        }
        honest
    }

    /// An error in the place of the answers to these requests.
    fn refusing(&self, is: impl Fn(&Value) -> bool, error: &Value) -> Reply {
        said(
            200,
            &self.each(|request, response| {
                if is(request) {
                    *response = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
                }
            }),
        )
    }

    /// An error in the place of every answer.
    fn refusing_all(&self, error: &Value) -> Reply {
        self.refusing(|_| true, error)
    }

    /// The result of a method, changed.
    fn changing(&self, method: &str, change: impl Fn(&Value, &mut Value)) -> Reply {
        said(
            200,
            &self.each(|request, response| {
                if request["method"] == method && response.get("result").is_some() {
                    change(request, &mut response["result"]);
                }
            }),
        )
    }

    /// The answer to a call that demands a CCIP-Read lookup, from its revert data.
    fn reverting(&self, status: u16, make: impl Fn(&str) -> Value) -> Reply {
        let data = self.honest["error"]["data"].as_str();
        match data {
            Some(data) => said(status, &json!({"jsonrpc": "2.0", "id": self.request["id"], "error": make(data)})),
            None => honest(self),
        }
    }
}

fn is_first_block(request: &Value) -> bool {
    request["method"] == "eth_getBlockByNumber" && request["params"][0] == "0x0"
}

fn is_finalized_header(request: &Value) -> bool {
    request["method"] == "eth_getBlockByNumber" && request["params"][0] == "finalized"
}

fn is_call(request: &Value) -> bool {
    request["method"] == "eth_call"
}

fn is_latest_call(request: &Value) -> bool {
    is_call(request) && request["params"][1] == "latest"
}

fn batches_of_three(visit: &Visit) -> Reply {
    match visit.requests().len() {
        0..=3 => honest(visit),
        _ => said(
            500,
            &json!({"id": 1, "jsonrpc": "2.0", "error": error(31, "Batch of more than 3 requests are not allowed on free plan")}),
        ),
    }
}

fn no_old_blocks(visit: &Visit) -> Reply {
    match visit.requests().iter().any(is_first_block) {
        true => text(403, "Archive requests require a personal token"),
        false => honest(visit),
    }
}

const REFUSED: &str = "<html><head><title>403 Forbidden</title></head></html>";

pub(super) static ALL: [Exhibit<Answers>; 77] = [
    exhibit(
        "batches of three",
        "HTTP 500, code 31 to more than three requests",
        "drpc.org, 1rpc.io (hemilabs/ui-monorepo #887)",
        batches_of_three,
    ),
    exhibit("batches of two", "HTTP 500 to more than two requests", "free plans", |v| match v.requests().len() {
        0..=2 => honest(v),
        _ => said(500, &json!({"error": error(-32000, "batch too large")})),
    }),
    exhibit("batch: 400", "HTTP 400 to a batch", "servers without batches", |v| {
        v.batch(|| text(400, "invalid request"))
    }),
    exhibit("batch: 402", "HTTP 402 to a batch", "tatum", |v| v.batch(|| text(402, "Batch requests need a paid plan"))),
    exhibit("batch: 403", "HTTP 403 and HTML to a batch", "web application firewalls", |v| {
        v.batch(|| text(403, REFUSED))
    }),
    exhibit("batch: 405", "HTTP 405 to a batch", "servers without batches", |v| v.batch(|| text(405, ""))),
    exhibit("batch: 413", "HTTP 413 to a batch", "ethers.js #2749", |v| {
        v.batch(|| text(413, "Request Entity Too Large"))
    }),
    exhibit("batch: 415", "HTTP 415 to a batch", "servers without batches", |v| v.batch(|| text(415, ""))),
    exhibit("batch: 422", "HTTP 422 to a batch", "servers without batches", |v| {
        v.batch(|| text(422, "expected an object"))
    }),
    exhibit("batch: 429", "HTTP 429 to a batch; each request counts", "ethers.js #3155", |v| {
        v.batch(|| text(429, "rate limit"))
    }),
    exhibit("batch: 500", "HTTP 500 without a body to a batch", "gateways", |v| v.batch(|| text(500, ""))),
    exhibit("batch: 501", "HTTP 501 to a batch", "servers without batches", |v| v.batch(|| text(501, ""))),
    exhibit("batch: 503", "HTTP 503 to a batch", "gateways", |v| v.batch(|| text(503, "upstream overloaded"))),
    exhibit("batch: one error without id", "one error with id null to a batch", "besu #5449", |v| {
        v.batch(|| said(200, &json!({"jsonrpc": "2.0", "id": null, "error": error(-32600, "Invalid Request")})))
    }),
    exhibit("batch: one error of a request", "one error with the first id to a batch", "gateways", |v| {
        v.batch(|| {
            said(
                200,
                &json!({"jsonrpc": "2.0", "id": v.request[0]["id"], "error": error(-32005, "batch limit exceeded")}),
            )
        })
    }),
    exhibit("batch: an array of one error", "an array of one error to a batch", "besu #5449", |v| {
        v.batch(|| said(200, &json!([{"jsonrpc": "2.0", "id": null, "error": error(-32600, "batches are disabled")}])))
    }),
    exhibit("batch: each refused", "an error to each request of a batch", "gateways", |v| {
        v.batch(|| v.refusing_all(&error(-32000, "Batch requests are not supported")))
    }),
    exhibit("batch: the first answer alone", "only the first answer to a batch", "servers without batches", |v| {
        v.batch(|| said(200, &v.honest[0]))
    }),
    exhibit("batch: HTML", "HTTP 200 and HTML to a batch", "captive portals", |v| v.batch(|| text(200, REFUSED))),
    exhibit("batch: nothing", "HTTP 200 without a body to a batch", "load balancers", |v| v.batch(|| text(200, ""))),
    exhibit("batch: in another order", "the answers to a batch in reverse order", "JSON-RPC 2.0, section 6", |v| {
        v.batch(|| said(200, &v.honest.as_array().unwrap().iter().rev().cloned().collect()))
    }),
    exhibit("no old blocks", "HTTP 403 for block 0", "publicnode", no_old_blocks),
    exhibit("pruned: null", "null for block 0", "pruned nodes", |v| {
        v.changing("eth_getBlockByNumber", |request, result| {
            if is_first_block(request) {
                *result = Value::Null;
            }
        })
    }),
    exhibit("pruned: error", "an error for block 0", "history expiry (EIP-4444)", |v| {
        v.refusing(is_first_block, &error(4444, "pruned history unavailable"))
    }),
    silent(exhibit("block 0 never comes", "no answer for block 0", "archive nodes", |v| {
        match v.requests().iter().any(is_first_block) {
            true => Reply::Silence,
            false => honest(v),
        }
    })),
    exhibit("limit: 429", "HTTP 429", "most free plans", |_| text(429, "Too Many Requests")),
    exhibit("limit: 429 with a pause", "HTTP 429 and `Retry-After`", "most free plans", |_| Reply::Whole {
        status: 429,
        headers: vec![("retry-after", "60")],
        body: Vec::new(),
    }),
    exhibit("limit: 429 with an error", "HTTP 429 and an error in JSON", "infura, alchemy", |v| {
        said(
            429,
            &json!({"jsonrpc": "2.0", "id": v.request["id"], "error": error(-32005, "project ID request rate exceeded")}),
        )
    }),
    exhibit("limit: -32005", "code -32005", "infura", |v| {
        v.refusing_all(&error(-32005, "daily request count exceeded, request rate limited"))
    }),
    exhibit("limit: -32016", "code -32016", "alchemy", |v| v.refusing_all(&error(-32016, "over rate limit"))),
    exhibit("key: 401", "HTTP 401", "providers", |_| text(401, "Must be authenticated!")),
    exhibit("key: 403", "HTTP 403 and an error in JSON", "ankr", |v| {
        said(
            403,
            &json!({"jsonrpc": "2.0", "id": v.request["id"], "error": error(-32052, "API key is not allowed to access blockchain")}),
        )
    }),
    exhibit("key: -32000", "code -32000: a key is missing", "ankr", |v| {
        v.refusing_all(&error(-32000, "Unauthorized: You must authenticate your request with an API key"))
    }),
    exhibit("down: 404", "HTTP 404", "retired endpoints", |_| text(404, "404 page not found")),
    exhibit("down: 301", "HTTP 301", "retired endpoints", |_| Reply::Whole {
        status: 301,
        headers: vec![("location", "https://elsewhere.example/")],
        body: Vec::new(),
    }),
    exhibit("down: 500", "HTTP 500 and an error in JSON", "gateways", |v| {
        said(500, &json!({"jsonrpc": "2.0", "id": v.request["id"], "error": error(-32603, "no upstream available")}))
    }),
    exhibit("down: 502", "HTTP 502 and HTML", "load balancers", |_| {
        text(502, "<html><center>502 Bad Gateway</center></html>")
    }),
    exhibit("down: 503", "HTTP 503", "load balancers", |_| text(503, "no healthy upstream")),
    exhibit("down: 530", "HTTP 530 from a CDN", "eth.llamarpc.com (2026)", dead),
    silent(exhibit("silent", "no answer", "overloaded nodes", |_| Reply::Silence)),
    exhibit("finalized: null", "null for the finalized block", "rskj #3309", |v| {
        v.changing("eth_getBlockByNumber", |request, result| {
            if is_finalized_header(request) {
                *result = Value::Null;
            }
        })
    }),
    exhibit("finalized: -32000", "code -32000 for the finalized block", "synchronising nodes", |v| {
        v.refusing(is_finalized_header, &error(-32000, "finalized block not found"))
    }),
    exhibit("finalized: -39001", "code -39001 for the finalized block", "execution-apis #879", |v| {
        v.refusing(is_finalized_header, &error(-39001, "Unknown block"))
    }),
    exhibit("finalized: -32602", "code -32602 for the finalized block", "older nodes", |v| {
        v.refusing(is_finalized_header, &error(-32602, "invalid argument 0: hex string without 0x prefix"))
    }),
    exhibit("latest: not found", "an error for calls at the newest block", "load balancers", |v| {
        v.refusing(is_latest_call, &error(-32000, "header not found"))
    }),
    exhibit("state: missing", "an error for every call", "pruned nodes", |v| {
        v.refusing(is_call, &error(-32000, "missing trie node 1a2b (path ) state 0x1a2b is not available"))
    }),
    exhibit("call: no gas", "out of gas for every call", "nodes with a gas cap", |v| {
        v.refusing(is_call, &error(-32000, "out of gas"))
    }),
    exhibit("call: cap", "an error for the gas limit of a call", "providers with a gas cap", |v| {
        v.refusing(is_call, &error(-32000, "gas limit 50000000 exceeds the cap of 10000000"))
    }),
    exhibit("call: less gas than asked for", "calls capped at 10,000,000 gas", "geth (`--rpc.gascap`)", |v| {
        let capped = format!("0x{:064x}", 10_000_000);
        said(
            200,
            &v.each(|request, response| {
                if is_call(request) && request["params"][0].get("to").is_none() {
                    *response = json!({"jsonrpc": "2.0", "id": request["id"], "result": capped});
                }
            }),
        )
    }),
    exhibit("call: too long", "a time-out for every call", "geth (`--rpc.evmtimeout`)", |v| {
        v.refusing(is_call, &error(-32000, "execution aborted (timeout = 5s)"))
    }),
    exhibit("call: nothing", "`0x` for every call", "nodes without the contract", |v| {
        v.changing("eth_call", |_, result| *result = json!("0x"))
    }),
    exhibit("call: method unknown", "code -32601 for every call", "gateways", |v| {
        v.refusing(is_call, &error(-32601, "the method eth_call does not exist/is not available"))
    }),
    exhibit("proofs: unknown", "code -32601 for `eth_getProof`", "erigon, providers", |v| {
        v.refusing(
            |request| request["method"] == "eth_getProof",
            &error(-32601, "the method eth_getProof does not exist/is not available"),
        )
    }),
    exhibit("chain: another", "another chain id", "a wrong URL", |v| {
        v.changing("eth_chainId", |_, result| *result = json!("0x5"))
    }),
    exhibit("chain: unknown", "code -32601 for `eth_chainId`", "gateways", |v| {
        v.refusing(|request| request["method"] == "eth_chainId", &error(-32601, "method not found"))
    }),
    exhibit("chain: a number", "the chain id as a JSON number", "private nodes", |v| {
        v.changing("eth_chainId", |_, result| {
            *result = json!(u64::from_str_radix(result.as_str().unwrap().trim_start_matches("0x"), 16).unwrap())
        })
    }),
    exhibit("header: a later fork", "a header whose hash covers an unknown field", "frontier #1247", |v| {
        v.changing("eth_getBlockByNumber", |_, result| {
            if result["gasUsed"].is_string() {
                result["gasUsed"] = json!("0x7b");
            }
        })
    }),
    exhibit("header: further members", "header members that no standard defines", "layer 2, besu", |v| {
        v.changing("eth_getBlockByNumber", |_, result| {
            if let Some(block) = result.as_object_mut() {
                block.insert("l1BlockNumber".to_owned(), json!("0x1"));
            }
        })
    }),
    exhibit("header: no total difficulty", "a header without `totalDifficulty` and `size`", "geth 1.14", |v| {
        v.changing("eth_getBlockByNumber", |_, result| {
            if let Some(block) = result.as_object_mut() {
                block.remove("totalDifficulty");
                block.remove("size");
            }
        })
    }),
    exhibit("header: half", "a header without its state root", "light gateways", |v| {
        v.changing("eth_getBlockByNumber", |_, result| {
            if let Some(block) = result.as_object_mut() {
                block.remove("stateRoot");
            }
        })
    }),
    exhibit("form: gzip", "gzip", "CDNs", |v| {
        with(("content-encoding", "gzip"), gzip(v.honest.to_string().as_bytes()))
    }),
    exhibit("form: brotli", "brotli, not requested", "CDNs", |v| {
        with(("content-encoding", "br"), v.honest.to_string().into())
    }),
    exhibit("form: BOM", "a byte order mark before the JSON", ".NET gateways", |v| {
        with(("x-powered-by", "ASP.NET"), format!("\u{feff}{}", v.honest).into())
    }),
    exhibit("form: further members", "members beside the result", "metering gateways", |v| {
        said(200, &v.each(|_, response| response["usage"] = json!({"credits": 1})))
    }),
    exhibit("form: error null", "`\"error\": null` beside the result", "older nodes", |v| {
        said(200, &v.each(|_, response| response["error"] = Value::Null))
    }),
    exhibit("form: no version", "no `jsonrpc` member", "older nodes", |v| {
        said(
            200,
            &v.each(|_, response| {
                response.as_object_mut().unwrap().remove("jsonrpc");
            }),
        )
    }),
    exhibit("form: ids as text", "ids as strings", "gateways", |v| {
        said(200, &v.each(|_, response| response["id"] = json!(response["id"].to_string())))
    }),
    exhibit("form: lines", "the answers to a batch as NDJSON", "streaming gateways", |v| {
        v.batch(|| {
            let lines: Vec<String> = v.honest.as_array().unwrap().iter().map(Value::to_string).collect();
            with(("x-stream", "1"), lines.join("\n").into())
        })
    }),
    exhibit("form: as text", "JSON as `text/html`", "PHP gateways", |v| Reply::Whole {
        status: 200,
        headers: vec![("content-type", "text/html")],
        body: v.honest.to_string().into(),
    }),
    exhibit("form: white space", "white space around the JSON", "gateways", |v| {
        with(("x-padded", "1"), format!("\r\n {} \r\n\r\n", v.honest).into())
    }),
    exhibit("form: 201", "HTTP 201 and the right body", "gateways", |v| said(201, &v.honest)),
    exhibit("form: too long", "2 MiB of white space", "flooding", |_| with(("x-flood", "1"), vec![b' '; 2 << 20])),
    off_chain(exhibit("revert: data", "revert data in `error.data`", "geth", honest)),
    off_chain(exhibit("revert: data.data", "revert data in `error.data.data`", "hardhat", |v| {
        v.reverting(200, |data| json!({"code": -32603, "message": "execution reverted", "data": {"message": "reverted", "data": data}}))
    })),
    off_chain(exhibit(
        "revert: original error",
        "revert data in `error.data.originalError.data`",
        "hardhat, MetaMask (viem #4092)",
        |v| {
            v.reverting(200, |data| json!({"code": -32603, "message": "Internal JSON-RPC error.", "data": {"originalError": {"code": 3, "data": data, "message": "execution reverted"}}}))
        },
    )),
    off_chain(exhibit("revert: in a sentence", "revert data within the message", "l2beat #12218", |v| {
        v.reverting(200, |data| json!({"code": -32000, "message": format!("err: {data} (supplied gas 550000000)")}))
    })),
    off_chain(exhibit(
        "revert: in HTTP 400, in upper case",
        "revert data as `Reverted 0X…` with HTTP 400",
        "nethermind #8813, #5740, #6024",
        |v| {
            v.reverting(400, |data| json!({"code": -32015, "message": "VM execution error.", "data": format!("Reverted 0X{}", data.trim_start_matches("0x").to_ascii_uppercase())}))
        },
    )),
];
