//! Direct requests to the servers of a sandbox.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Certificate, Client, Response};

use super::spec::SandboxSpec;
use super::world::RunningSandbox;
use super::{IpfsGatewayBehaviour, agents};
use clresolve_ipfs::{ContentId, DagWalkBudget, UnixFsPath, read_file_from_car};

const CARDS: &str = "https://cards.sandbox.example/agents/v1.0.0/commons";

/// A client that trusts the sandbox's certificates and connects to its host names.
fn client(world: &RunningSandbox) -> Client {
    let root = Certificate::from_pem(world.ca_pem().as_bytes()).unwrap();
    let mut builder = Client::builder()
        .tls_certs_only([root])
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(10));
    for rule in world.connect_to_rules() {
        let [host, _port, target] = *rule.splitn(3, ':').collect::<Vec<_>>() else { panic!("{rule}") };
        builder = builder.resolve(host, target.parse().unwrap());
    }
    builder.build().unwrap()
}

async fn world(agents: &str) -> RunningSandbox {
    RunningSandbox::start(&SandboxSpec::parse(agents).unwrap()).await.unwrap()
}

/// The TOML of an agent with an additional line.
fn agent(name: &str, more: &str) -> String {
    format!("[[agent]]\nname = \"{name}\"\nabout = \"An agent.\"\n{more}\n")
}

async fn get(client: &Client, url: &str) -> Response {
    client.get(url).send().await.unwrap()
}

async fn bytes(response: Response) -> Bytes {
    response.bytes().await.unwrap()
}

#[tokio::test]
async fn cards_are_served_well_and_badly() {
    let agents = [
        agent("good.eth", ""),
        agent("other.eth", "web = \"other\""),
        agent("gone.eth", "web = { status = 404 }"),
        agent("gzip.eth", "web = \"gzip\""),
        agent("bomb.eth", "web = \"gzip-bomb\""),
        agent("cut.eth", "web = \"truncated\""),
        agent("drop.eth", "web = \"drop\""),
        agent("away.eth", "web = { redirect = \"https://127.0.0.1/{name}\" }"),
        agent("hops.eth", "web = { hops = 2 }"),
        agent("endless.eth", "web = \"endless\""),
    ];
    let world = world(&agents.concat()).await;
    let client = client(&world);

    let good = get(&client, &format!("{CARDS}/good.eth.json")).await;
    assert_eq!(good.status(), 200);
    let card: serde_json::Value = serde_json::from_slice(&bytes(good).await).unwrap();
    assert_eq!(card["entry"], "x402://good.eth/summarize/v1");

    let other = bytes(get(&client, &format!("{CARDS}/other.eth.json")).await).await;
    assert!(String::from_utf8_lossy(&other).contains("Another version"));
    assert_eq!(get(&client, &format!("{CARDS}/gone.eth.json")).await.status(), 404);
    assert_eq!(get(&client, &format!("{CARDS}/nobody.eth.json")).await.status(), 404);
    for packed in ["gzip", "bomb"] {
        let packed = get(&client, &format!("{CARDS}/{packed}.eth.json")).await;
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        assert!(bytes(packed).await.len() < 32 * 1024);
    }
    assert!(get(&client, &format!("{CARDS}/cut.eth.json")).await.bytes().await.is_err());
    assert!(client.get(format!("{CARDS}/drop.eth.json")).send().await.is_err());
    let away = get(&client, &format!("{CARDS}/away.eth.json")).await;
    assert_eq!(away.headers()["location"], "https://127.0.0.1/away.eth");
    let hop = get(&client, &format!("{CARDS}/hops.eth.json?hop=1")).await;
    assert_eq!(hop.headers()["location"], "/agents/v1.0.0/commons/hops.eth.json?hop=2");
    assert_eq!(get(&client, &format!("{CARDS}/hops.eth.json?hop=2")).await.status(), 200);
    let mut endless = get(&client, &format!("{CARDS}/endless.eth.json")).await;
    let mut seen = 0;
    while seen < 1 << 20 {
        seen += endless.chunk().await.unwrap().unwrap().len();
    }
    let untrusted = client.get("https://untrusted.sandbox.example/").send().await;
    assert!(untrusted.is_err(), "the certificate does not cover this host");
    assert!(world.request_counts().https >= 12);
}

/// CID and path of the only card with that layout in the sandbox.
fn location(world: &str, layout: &str) -> (ContentId, String) {
    let spec = SandboxSpec::parse(&agent(world, &format!("layout = \"{layout}\""))).unwrap();
    let schemas = super::schemas::SandboxSchemaLayers::with_schema_defects(&[]);
    let published = spec.agents[0].publish(&schemas).unwrap();
    let mirror = &published.records["cl.agentcard.mirror.ipfs"];
    let rest = mirror.strip_prefix("ipfs://").unwrap();
    let (cid, path) = rest.split_once('/').unwrap_or((rest, ""));
    (cid.parse().unwrap(), path.to_owned())
}

#[tokio::test]
async fn every_layout_comes_as_a_car() {
    for layout in ["raw", "file", "directory", "directory-of-blocks", "hamt"] {
        let world = world(&agent("x.eth", &format!("layout = \"{layout}\""))).await;
        let client = client(&world);
        let card = bytes(get(&client, &format!("{CARDS}/x.eth.json")).await).await;
        let (cid, path) = location("x.eth", layout);
        let url = format!("https://gateway.sandbox.example/ipfs/{cid}/{path}?format=car&dag-scope=entity");
        let car = bytes(get(&client, &url).await).await;
        let path = UnixFsPath::parse(&path).unwrap();
        assert_eq!(
            read_file_from_car(cid, &path, DagWalkBudget::for_agent_card(), car).unwrap().bytes,
            card,
            "{layout}"
        );
        let raw = bytes(get(&client, &format!("https://gateway.sandbox.example/ipfs/{cid}?format=raw")).await).await;
        assert!(cid.is_cid_of_block(&raw), "{layout}");
    }
}

#[tokio::test]
async fn bad_gateways_are_bad() {
    let world = world(&agent("x.eth", "layout = \"file\"")).await;
    let client = client(&world);
    let (cid, _) = location("x.eth", "file");
    for behaviour in IpfsGatewayBehaviour::ALL {
        if matches!(behaviour, IpfsGatewayBehaviour::Stall | IpfsGatewayBehaviour::Endless) {
            continue;
        }
        let gateway = world.gateway_upstream(behaviour).url;
        let raw = match client.get(format!("{gateway}ipfs/{cid}?format=raw")).send().await {
            Ok(response) if response.status() == 200 => response.bytes().await.ok(),
            _ => None,
        };
        // The root of a file in several blocks is not a leaf.
        let honest = matches!(
            behaviour,
            IpfsGatewayBehaviour::Ok | IpfsGatewayBehaviour::RawOnly | IpfsGatewayBehaviour::WithoutLeaves
        );
        assert_eq!(raw.is_some_and(|raw| cid.is_cid_of_block(&raw)), honest, "{behaviour}");
    }
}

#[tokio::test]
async fn bad_data_is_refused_with_the_name_of_the_agent() {
    let spec = |text: &str| SandboxSpec::parse(text).unwrap();
    let missing = agent("x.eth", "card.replace = [{ from = \"nowhere\", to = \"\" }]");
    let error = RunningSandbox::start(&spec(&missing)).await.err().unwrap().to_string();
    assert!(error.starts_with("x.eth: the card has no \"nowhere\""), "{error}");
    let error = RunningSandbox::start(&spec(&agent("X.eth", ""))).await.err().unwrap().to_string();
    assert!(error.starts_with("X.eth: write it as x.eth"), "{error}");
    assert!(SandboxSpec::parse(&agent("x.eth", "typo = 1")).unwrap_err().contains("unknown field `typo`"));
}

#[tokio::test]
async fn the_sandbox_starts() {
    let world = RunningSandbox::start(&agents::sandbox_spec()).await.unwrap();
    assert!(world.rpc_upstream().url.starts_with("http://127.0.0.1:"));
    assert!(world.connect_to_rules().iter().all(|rule| rule.contains(":443:127.0.0.1:")));
    assert!(world.connect_to_rules().iter().all(|rule| rule.contains(".sandbox.example:443:")));
}

#[test]
fn the_list_is_sorted_and_complete() {
    let expected = agents::expected_agents();
    assert!(!expected.is_empty());
    for agent in &expected {
        assert!(agent.about.ends_with('.'), "{}: a sentence ends with a full stop", agent.name);
        assert!(agent.codes.windows(2).all(|pair| pair[0].slug() < pair[1].slug()), "{}", agent.name);
    }
}
