//! What the newest block says, where an endpoint lies about it: it can neither hide a change nor say what changed.

use super::*;

const GRADES: [GradeDemand; 2] = [GradeDemand::Quorum(2), GradeDemand::StateProof(2)];
const BUYER: Address = Address::repeat_byte(0x7c);
/// A resolver that answers as the real one did.
const TWIN: Address = Address::repeat_byte(0x7d);

/// A name that was sold in a block that is not final, and the resolver that it keeps.
fn sold_chain() -> (Arc<SandboxChain>, Address) {
    let mut builder = ChainBuilder::new().unwrap();
    let agent = agent();
    builder.register(&agent).unwrap();
    builder.seal(time(NOON)).unwrap();
    builder.finalize().unwrap();
    builder.transfer(&agent.name, BUYER).unwrap();
    builder.seal(time(LATER)).unwrap();
    let resolver = builder.public_resolver();
    (Arc::new(builder.build().unwrap()), resolver)
}

/// A door through which the first endpoint answers before the others are asked. It hides the buyer, and names another
/// resolver beside what the real one said before: raw, its word differs from every other; read, it says that all is as it
/// was.
struct Mask {
    door: FirstFirst,
    resolver: Address,
}

#[async_trait]
impl HttpPost for Mask {
    async fn post(&self, url: &Url, body: Bytes, cap: usize, timeout: Duration) -> Result<Bytes, PostError> {
        let reply = self.door.post(url, body, cap, timeout).await?;
        if *url != self.door.first {
            return Ok(reply);
        }
        let [buyer, seller, resolver, twin] = [BUYER, ALICE, self.resolver, TWIN].map(alloy_primitives::hex::encode);
        let text = String::from_utf8_lossy(&reply);
        let results = text.split_inclusive("\"result\"");
        let masked = results.map(|result| match result.contains(&buyer) {
            true => result.replace(&buyer, &seller).replace(&resolver, &twin),
            false => result.to_owned(),
        });
        Ok(masked.collect::<String>().into())
    }
}

/// Reads the name through a liar, which answers first, and this number of honest endpoints.
async fn read_behind_a_mask(demand: GradeDemand, honest: usize) -> Reading {
    let (chain, resolver) = sold_chain();
    let (_servers, endpoints): (Vec<RpcServer>, _) = endpoints_of(&vec![&chain; honest + 1]).await;
    let first = endpoints[0].url.clone();
    let door = FirstFirst { door: http(), first, answered: tokio::sync::Semaphore::new(0) };
    let config = ChainConfig { demand, ..config(endpoints) };
    let reader = graded(config, &(Arc::new(Mask { door, resolver }) as _), Gateway::refusing());
    reader.read(&name("summarizeagent.eth"), FIRST).await.unwrap()
}

#[tokio::test]
async fn one_endpoint_alone_hides_no_change() {
    for demand in GRADES {
        let reading = read_behind_a_mask(demand, 2).await;
        let latest = reading.latest.unwrap().unwrap();
        assert_eq!((reading.holder, latest.holder), (Some(ALICE), Some(BUYER)), "{demand:?}");
    }
}

/// Beside one honest endpoint nobody can say who lies. The twin is a change of its own.
#[tokio::test]
async fn one_endpoint_beside_one_hides_no_change_either() {
    for demand in GRADES {
        let reading = read_behind_a_mask(demand, 1).await;
        let latest = reading.latest.clone().unwrap().unwrap();
        assert_eq!(latest.holder, reading.holder, "{demand:?}");
        assert!(!latest.agrees_with(&reading), "{demand:?}");
    }
}

/// A record that its publisher has just removed vouches for nothing, whatever one endpoint makes of it.
#[tokio::test]
async fn one_endpoint_alone_hides_no_removed_text() {
    let key = "agent-registration[0x01][1]";
    let mut builder = ChainBuilder::new().unwrap();
    let agent = agent();
    builder.register(&agent).unwrap();
    builder.set_text(&agent.name, key, "1").unwrap();
    builder.seal(time(NOON)).unwrap();
    builder.finalize().unwrap();
    let newest = |value: &str| {
        let mut builder = builder.clone();
        builder.set_text(&agent.name, key, value).unwrap();
        builder.seal(time(LATER)).unwrap();
        Arc::new(builder.build().unwrap())
    };
    let (removed, other) = (newest(""), newest("x"));
    let (_servers, endpoints) = endpoints_of(&[&other, &removed]).await;
    let door = FirstFirst { door: http(), first: endpoints[0].url.clone(), answered: tokio::sync::Semaphore::new(0) };
    let config = ChainConfig { demand: GradeDemand::Quorum(2), ..config(endpoints) };
    let reader = graded(config, &(Arc::new(door) as _), Gateway::refusing());

    let reading = reader.read_texts(&agent.name, FIRST, &[key.to_owned()]).await.unwrap();

    assert_eq!(reading.records, [Record::Text("1".to_owned())]);
    assert!(matches!(reading.latest, Some(Err(ChainError::Disagree(_)))), "{:?}", reading.latest);
}
