//! The wallet of an agent at the newest block: only endpoints that keep up say what it is, and enough of them.

use clresolve_chain::AgentRegistryReader;

use super::*;

/// How an endpoint sees the chain, in whose newest block the wallet was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Honest,
    /// It stopped before that, and knows of the finalized block.
    Stalled,
    /// It stopped before the finalized block.
    Behind,
    /// It has every block, and states the wallet of before.
    Lying,
}

/// When the registry is read: shortly after the newest block.
const NOW: &str = "2026-11-20T13:00:00Z";

/// A transport that redirects requests to liars about the newest block to an endpoint that has stopped, and delays the
/// newest header of one endpoint.
struct RedirectingTransport {
    plain: Arc<dyn JsonRpcHttpClient>,
    stalled: Url,
    liars: Vec<Url>,
    late: Option<Url>,
}

#[async_trait]
impl JsonRpcHttpClient for RedirectingTransport {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        let request = String::from_utf8_lossy(&body);
        let is_newest = request.contains("\"latest\"");
        let is_call = request.contains("eth_call");
        if is_newest && !is_call && self.late.as_ref() == Some(url) {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let is_lie = is_newest && is_call && self.liars.contains(url);
        self.plain.post_json(if is_lie { &self.stalled } else { url }, body, cap, timeout).await
    }
}

/// The chain as it is, as an endpoint has it that stopped after the finalized block, and one that stopped before it.
fn chains() -> [Arc<SandboxChain>; 3] {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_agent(ALICE, "data:,").unwrap();
    builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
    builder.finalize_newest_block().unwrap();
    let behind = Arc::new(builder.build().unwrap());
    builder.seal_block(time("2026-11-20T12:45:00Z")).unwrap();
    builder.finalize_newest_block().unwrap();
    builder.seal_block(time("2026-11-20T12:50:00Z")).unwrap();
    let stalled = Arc::new(builder.build().unwrap());
    builder.unset_agent_wallet(ALICE, 1).unwrap();
    builder.seal_block(time("2026-11-20T12:59:48Z")).unwrap();
    [Arc::new(builder.build().unwrap()), stalled, behind]
}

/// The wallet at the finalized block and at the newest one, by two of these endpoints. Of one the newest header comes
/// late.
async fn wallets(
    views: [View; 3],
    late: Option<usize>,
    max_head_age: Option<Duration>,
) -> Option<(Option<Address>, Option<Address>)> {
    let [current, stalled, behind] = &chains();
    let of = |view: &View| match view {
        View::Honest | View::Lying => current,
        View::Stalled => stalled,
        View::Behind => behind,
    };
    let chains: Vec<_> = views.iter().map(of).chain([stalled]).collect();
    let (_servers, mut endpoints) = endpoints_of(&chains).await;
    let stalled = endpoints.pop().unwrap().url;
    let urls: Vec<Url> = endpoints.iter().map(|endpoint| endpoint.url.clone()).collect();
    let liars = urls.iter().zip(views).filter(|(_, view)| *view == View::Lying).map(|(url, _)| url.clone()).collect();
    let late = late.map(|late| urls[late].clone());
    let transport: Arc<dyn JsonRpcHttpClient> = Arc::new(RedirectingTransport { plain: http(), stalled, liars, late });
    let config = ChainReaderConfig { demand: ProofGradeDemand::Quorum(2), max_head_age, ..config(endpoints) };
    let clock = Arc::new(|| time(NOW));
    let registry = AgentRegistryReader::new(clresolve_sandbox::chain::IDENTITY_REGISTRY, config, &transport, clock);
    let reading = registry.read_agent(alloy_primitives::U256::from(1)).await.ok()?;
    Some((reading.wallet, reading.latest_wallet))
}

const BOUND: Option<Duration> = Some(Duration::from_secs(60));

/// Every order of these, each with every endpoint late, and with none.
fn arrangements([a, b, c]: [View; 3]) -> Vec<([View; 3], Option<usize>)> {
    let orders = [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]];
    orders.into_iter().flat_map(|order| [None, Some(0), Some(1), Some(2)].map(|late| (order, late))).collect()
}

#[tokio::test]
async fn liar_beside_a_stalled_endpoint_hides_no_change_of_a_wallet() {
    for (views, late) in arrangements([View::Honest, View::Stalled, View::Lying]) {
        let wallets = wallets(views, late, BOUND).await;
        assert!(wallets.is_none_or(|(_, latest)| latest.is_none()), "{views:?} {late:?}: {wallets:?}");
    }
}

/// Without a bound on the age of a newest block.
#[tokio::test]
async fn liar_beside_an_endpoint_that_is_behind_hides_no_change_of_a_wallet() {
    for (views, late) in arrangements([View::Honest, View::Behind, View::Lying]) {
        let wallets = wallets(views, late, None).await;
        assert!(wallets.is_none_or(|(_, latest)| latest.is_none()), "{views:?} {late:?}: {wallets:?}");
    }
}

#[tokio::test]
async fn enough_endpoints_that_keep_up_tell_the_wallet() {
    for third in [View::Honest, View::Stalled, View::Lying] {
        for (views, late) in arrangements([View::Honest, View::Honest, third]) {
            assert_eq!(wallets(views, late, BOUND).await, Some((Some(ALICE), None)), "{views:?} {late:?}");
        }
    }
}
