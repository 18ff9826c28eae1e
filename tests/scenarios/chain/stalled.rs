//! Endpoints that have stopped, beside one that lies: neither alone nor together do they hide a change.

use super::*;

const GRADES: [ProofGradeDemand; 2] = [ProofGradeDemand::Quorum(2), ProofGradeDemand::StateProof(2)];
const OLD: &str = "x402://summarizeagent.eth/summarize/v1";
const NEW: &str = "x402://summarizeagent.eth/summarize/v2";
/// When the names are read: shortly after the newest block.
const NOW: &str = "2026-11-20T13:00:00Z";

/// How an endpoint sees the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Honest,
    /// It has stopped before the record was replaced, and the change is final by now.
    Stalled,
    /// It has every block, and states the old record.
    Lying,
}

/// The chain as it is, and as an endpoint has it that stopped three quarters of an hour ago.
fn chains() -> (Arc<SandboxChain>, Arc<SandboxChain>) {
    let mut builder = SandboxChainBuilder::new().unwrap();
    let agent = agent();
    builder.register_name(&agent).unwrap();
    builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
    builder.finalize_newest_block().unwrap();
    builder.seal_block(time("2026-11-20T12:15:00Z")).unwrap();
    let stalled = Arc::new(builder.build().unwrap());
    builder.set_text(&agent.name, "cl.entry", NEW).unwrap();
    builder.seal_block(time("2026-11-20T12:45:00Z")).unwrap();
    builder.finalize_newest_block().unwrap();
    builder.seal_block(time("2026-11-20T12:59:48Z")).unwrap();
    (Arc::new(builder.build().unwrap()), stalled)
}

/// A transport behind which some endpoints state the old record in place of the new one.
struct Liars {
    transport: Arc<dyn JsonRpcHttpClient>,
    urls: Vec<Url>,
}

#[async_trait]
impl JsonRpcHttpClient for Liars {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        let reply = self.transport.post_json(url, body, cap, timeout).await?;
        if !self.urls.contains(url) {
            return Ok(reply);
        }
        let [old, new] = [OLD, NEW].map(alloy_primitives::hex::encode);
        Ok(String::from_utf8_lossy(&reply).replace(&new, &old).into())
    }
}

/// What is read of the name through these endpoints, in this order.
async fn read(
    demand: ProofGradeDemand,
    views: &[View],
    max_head_age: Option<Duration>,
) -> Result<NameReading, ChainError> {
    let (current, stalled) = chains();
    let of = |view: &View| if *view == View::Stalled { &stalled } else { &current };
    let (_servers, endpoints) = endpoints_of(&views.iter().map(of).collect::<Vec<_>>()).await;
    let liars = endpoints.iter().zip(views).filter(|(_, view)| **view == View::Lying);
    let urls = liars.map(|(endpoint, _)| endpoint.url.clone()).collect();
    let transport: Arc<dyn JsonRpcHttpClient> = Arc::new(Liars { transport: http(), urls });
    let config = ChainReaderConfig { demand, max_head_age, ..config(endpoints) };
    let clock = Arc::new(|| time(NOW));
    let chain: Box<dyn EnsReader> = match demand {
        ProofGradeDemand::StateProof(_) => {
            Box::new(ProvenEnsReader::new(config, &transport, Gateway::refusing()).with_clock(clock))
        }
        _ => Box::new(RpcEnsReader::new(config, &transport, Gateway::refusing()).with_clock(clock)),
    };
    chain.read_name(&name("summarizeagent.eth"), FIRST).await
}

/// The entry that a verdict could rest on: it was read, and the newest block holds it too.
fn settled(reading: Result<NameReading, ChainError>) -> Option<String> {
    let reading = reading.ok()?;
    let latest = reading.latest.clone()?.ok()?;
    let is_settled = latest.agrees_with_reading(&reading);
    is_settled.then(|| found(reading.answer).records.text(TextRecordKey::Entry).unwrap_or_default().to_owned())
}

const BOUND: Option<Duration> = Some(Duration::from_secs(60));

/// All orders of three endpoints.
fn orders([a, b, c]: [View; 3]) -> [[View; 3]; 6] {
    [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]]
}

#[tokio::test]
async fn liar_beside_a_stalled_endpoint_settles_nothing() {
    for demand in GRADES {
        for views in orders([View::Honest, View::Stalled, View::Lying]) {
            let entry = settled(read(demand, &views, BOUND).await);
            assert_eq!(entry, None, "{demand:?} {views:?}");
        }
    }
}

#[tokio::test]
async fn stalled_endpoints_settle_nothing() {
    for demand in GRADES {
        for views in orders([View::Honest, View::Stalled, View::Stalled]) {
            assert_eq!(settled(read(demand, &views, BOUND).await), None, "{demand:?} {views:?}");
        }
        assert_eq!(settled(read(demand, &[View::Stalled, View::Stalled], BOUND).await), None, "{demand:?}");
    }
    let one = read(ProofGradeDemand::SingleRpc, &[View::Stalled], BOUND).await;
    assert!(matches!(one.unwrap().latest, Some(Err(ChainError::Unreachable(_)))));
}

#[tokio::test]
async fn endpoints_that_keep_up_settle_in_any_order() {
    for demand in GRADES {
        for third in [View::Stalled, View::Lying] {
            for views in orders([View::Honest, View::Honest, third]) {
                let entry = settled(read(demand, &views, BOUND).await);
                assert_eq!(entry.as_deref(), Some(NEW), "{demand:?} {views:?}");
            }
        }
    }
}

/// A transport that redirects requests to the endpoints in `moved`, which keep up with the chain. All others have
/// stopped.
struct Moving {
    transport: Arc<dyn JsonRpcHttpClient>,
    moved: Mutex<BTreeMap<Url, Url>>,
}

#[async_trait]
impl JsonRpcHttpClient for Moving {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        let to = self.moved.lock().unwrap().get(url).cloned();
        self.transport.post_json(&to.unwrap_or_else(|| url.clone()), body, cap, timeout).await
    }
}

/// The daemon reads a name again through the reader that read it before.
#[tokio::test]
async fn refresh_beside_a_stalled_endpoint_settles_nothing() {
    for demand in GRADES {
        let (current, stalled) = chains();
        let (_before, endpoints) = endpoints_of(&[&stalled, &stalled, &stalled]).await;
        let (_after, moved) = endpoints_of(&[&current, &current]).await;
        let urls = |endpoints: &[RpcEndpointSettings]| {
            endpoints.iter().map(|endpoint| endpoint.url.clone()).collect::<Vec<_>>()
        };
        let (honest, liar) = (urls(&endpoints[1..]), urls(&moved[1..]));
        let liars: Arc<dyn JsonRpcHttpClient> = Arc::new(Liars { transport: http(), urls: liar });
        let transport = Arc::new(Moving { transport: liars, moved: Mutex::default() });
        let config = ChainReaderConfig { demand, max_head_age: BOUND, ..config(endpoints) };
        let seconds = Arc::new(AtomicI64::new(time("2026-11-20T12:15:10Z").as_second()));
        let now = Arc::clone(&seconds);
        let clock = Arc::new(move || Timestamp::from_second(now.load(Ordering::Relaxed)).unwrap());
        let post: Arc<dyn JsonRpcHttpClient> = Arc::clone(&transport) as _;
        let chain: Box<dyn EnsReader> = match demand {
            ProofGradeDemand::StateProof(_) => {
                Box::new(ProvenEnsReader::new(config, &post, Gateway::refusing()).with_clock(clock))
            }
            _ => Box::new(RpcEnsReader::new(config, &post, Gateway::refusing()).with_clock(clock)),
        };
        let agent = name("summarizeagent.eth");
        let read = || chain.read_name(&agent, FIRST);
        assert_eq!(settled(read().await).as_deref(), Some(OLD), "{demand:?}");

        transport.moved.lock().unwrap().extend(honest.into_iter().zip(urls(&moved)));
        seconds.store(time(NOW).as_second(), Ordering::Relaxed);
        assert_eq!(settled(read().await), None, "{demand:?}");
    }
}

/// Without a bound on its age, a newest block below a finalized one is refused all the same.
#[tokio::test]
async fn newest_block_below_a_finalized_one_settles_nothing() {
    for views in orders([View::Honest, View::Stalled, View::Lying]) {
        assert_eq!(settled(read(ProofGradeDemand::Quorum(2), &views, None).await), None, "{views:?}");
    }
}
