//! The IPFS corpus behind a name: a gateway serves every case that was made to break readers as the content of an
//! agent's CID, while the card's host serves the card.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use futures_util::{StreamExt as _, stream};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::hostile::gateways::gateway;
use crate::hostile::{json, patient, resolved, spec};
use crate::support::corpus::corpus;
use crate::support::server::{Answer, Server, answer};

/// Cases at once.
const AT_ONCE: usize = 8;

/// The expected verdicts: for content that is proven, which is never the card; for content that is proven to be no
/// file; and for content that remains unproven.
fn allowed(expected: &Value) -> BTreeSet<&'static str> {
    let of = |verdict: &Value| -> &'static [&'static str] {
        match verdict["error"].as_str() {
            None => &["cid-mismatch"],
            Some("bad-unixfs" | "bad-dag-pb" | "unsupported-type" | "unsupported-codec") => &["cid-dag-invalid"],
            Some("is-a-directory") => &["cid-path-not-file"],
            Some("not-found" | "not-a-directory") => &["cid-path-missing"],
            Some("bad-path") => &["mirror-malformed"],
            Some("hash-not-allowed") => &["cid-hash-forbidden"],
            // Of what is too large: the content, the path, a digest, the way through the DAG, or a part of the CAR,
            // which then proves nothing.
            Some("limit") => &[
                "source-oversize",
                "mirror-malformed",
                "cid-hash-forbidden",
                "cid-dag-invalid",
                "cid-unproven",
                "cid-mismatch",
            ],
            Some("bad-car" | "incomplete" | "hash-mismatch") => &["cid-unproven"],
            Some(other) => panic!("a new kind of case: {other}"),
        }
    };
    match expected["any"].as_array() {
        Some(several) => several.iter().flat_map(of).copied().collect(),
        None => of(expected).iter().copied().collect(),
    }
}

#[tokio::test]
async fn no_case_of_the_corpus_is_believed() {
    let Some(folder) = corpus("ipfs/generated") else { return };
    let cases: Vec<Value> = serde_json::from_slice(&fs::read(folder.join("cases.json")).unwrap()).unwrap();
    assert_eq!(cases.len(), 103);
    let text = |case: &Value, member: &str| case[member].as_str().unwrap().to_owned();
    let mut agents = String::new();
    for (number, case) in cases.iter().enumerate() {
        let (root, path) = (text(case, "root"), text(case, "path"));
        let path: Vec<String> =
            path.split('/').map(|name| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()).collect();
        let mirror = format!("{root}/{}", path.join("/"));
        let _ = write!(
            agents,
            "[[agent]]\nname = \"case{number}.eth\"\nabout = \"A case.\"\n\
             records = {{ \"cl.cid.agentcard\" = {root:?}, \"cl.agentcard.mirror.ipfs\" = {:?} }}\n",
            format!("ipfs://{}", mirror.trim_end_matches('/'))
        );
    }
    let world = CustomSandbox::start(&spec(&agents)).await.unwrap();
    let cars: BTreeMap<String, Vec<u8>> =
        cases.iter().map(|case| (text(case, "car"), fs::read(folder.join(text(case, "car"))).unwrap())).collect();
    let wrong: Vec<String> = stream::iter(cases.iter().enumerate())
        .map(|(number, case)| {
            let car = cars[&text(case, "car")].clone();
            let world = &world;
            async move {
                let server = Server::plain(move |head| match head.contains("format=car") {
                    true => Answer::Whole(answer("200 OK", "Content-Type: application/vnd.ipld.car\r\n", &car)),
                    false => Answer::Whole(answer("404 Not Found", "", b"")),
                })
                .await;
                let mut config = patient(world);
                config.gateways = vec![gateway("of the corpus", &server)];
                let resolver = Resolver::new(&config).await.unwrap();
                let verdict = json(&resolved(&resolver, &format!("case{number}.eth")).await);
                let codes: BTreeSet<&str> =
                    verdict["reasons"].as_array().unwrap().iter().filter_map(|r| r["code"].as_str()).collect();
                let fits = verdict["state"] != "trusted" && !codes.is_disjoint(&allowed(&case["expect"]));
                (!fits).then(|| format!("{}: {} {codes:?} for {}", case["name"], verdict["state"], case["expect"]))
            }
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(|wrong| async { wrong })
        .collect()
        .await;
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
