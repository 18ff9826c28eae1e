//! What the newest block says, where an endpoint lies about it: it can neither hide a change nor say what changed.

use clresolve_core::payment::EndpointRecord;

use super::*;

const GRADES: [ProofGradeDemand; 2] = [ProofGradeDemand::Quorum(2), ProofGradeDemand::StateProof(2)];
const BUYER: Address = Address::repeat_byte(0x7c);
/// A resolver that answers as the real one did.
const TWIN: Address = Address::repeat_byte(0x7d);

/// A name that was sold in a block that is not final, and the resolver that it keeps.
fn sold_chain() -> (Arc<SandboxChain>, Address) {
    let mut builder = SandboxChainBuilder::new().unwrap();
    let agent = agent();
    builder.register_name(&agent).unwrap();
    builder.seal_block(time(NOON)).unwrap();
    builder.finalize_newest_block().unwrap();
    builder.transfer_name(&agent.name, BUYER).unwrap();
    builder.seal_block(time(LATER)).unwrap();
    let resolver = builder.public_resolver();
    (Arc::new(builder.build().unwrap()), resolver)
}

/// A transport through which the first endpoint answers before the others are asked. It hides the buyer, and names
/// another resolver beside what the real one said before: its raw reply differs from every other, but once read, it
/// says that nothing has changed.
struct Mask {
    transport: FirstFirst,
    resolver: Address,
}

#[async_trait]
impl JsonRpcHttpClient for Mask {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        let reply = self.transport.post_json(url, body, cap, timeout).await?;
        if *url != self.transport.first {
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
async fn read_behind_a_mask(demand: ProofGradeDemand, honest: usize) -> NameReading {
    let (chain, resolver) = sold_chain();
    let (_servers, endpoints): (Vec<SandboxRpcServer>, _) = endpoints_of(&vec![&chain; honest + 1]).await;
    let first = endpoints[0].url.clone();
    let transport = FirstFirst::new(first);
    let config = ChainReaderConfig { demand, ..config(endpoints) };
    let reader = graded(config, &(Arc::new(Mask { transport, resolver }) as _), Gateway::refusing());
    reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap()
}

#[tokio::test]
async fn one_endpoint_alone_hides_no_change() {
    for demand in GRADES {
        let reading = read_behind_a_mask(demand, 2).await;
        let latest = reading.latest.unwrap().unwrap();
        assert_eq!(
            (reading.holder, latest.holder),
            (NameHolder::Address(ALICE), NameHolder::Address(BUYER)),
            "{demand:?}"
        );
    }
}

/// Beside one honest endpoint nobody can say who lies. The twin is a change of its own. Whose word on the newest block
/// is shown depends on who answers the last question first.
#[tokio::test]
async fn one_endpoint_beside_one_hides_no_change_either() {
    for demand in GRADES {
        let reading = read_behind_a_mask(demand, 1).await;
        let latest = reading.latest.clone().unwrap().unwrap();
        assert_eq!(reading.holder, NameHolder::Address(ALICE), "{demand:?}");
        assert!([ALICE, BUYER].map(NameHolder::Address).contains(&latest.holder), "{demand:?}");
        assert!(!latest.agrees_with_reading(&reading), "{demand:?}");
    }
}

/// A record that its publisher has just removed vouches for nothing, whatever one endpoint makes of it.
#[tokio::test]
async fn one_endpoint_alone_hides_no_removed_text() {
    let key = "agent-registration[0x01][1]";
    let mut builder = SandboxChainBuilder::new().unwrap();
    let agent = agent();
    builder.register_name(&agent).unwrap();
    builder.set_text(&agent.name, key, "1").unwrap();
    builder.seal_block(time(NOON)).unwrap();
    builder.finalize_newest_block().unwrap();
    let newest = |value: &str| {
        let mut builder = builder.clone();
        builder.set_text(&agent.name, key, value).unwrap();
        builder.seal_block(time(LATER)).unwrap();
        Arc::new(builder.build().unwrap())
    };
    let (removed, other) = (newest(""), newest("x"));
    let (_servers, endpoints) = endpoints_of(&[&other, &removed]).await;
    let transport = FirstFirst::new(endpoints[0].url.clone());
    let config = ChainReaderConfig { demand: ProofGradeDemand::Quorum(2), ..config(endpoints) };
    let reader = graded(config, &(Arc::new(transport) as _), Gateway::refusing());

    let reading = reader.read_extra_texts(&agent.name, FIRST, &[key.to_owned()]).await.unwrap();

    assert_eq!(reading.records, [TextRecord::Text("1".to_owned())]);
    assert!(matches!(reading.latest, Some(Err(ChainError::Disagree(_)))), "{:?}", reading.latest);
}

/// A transport behind which each look-up at the newest block names that block: in the host of its gateway.
struct Dated {
    transport: Arc<dyn JsonRpcHttpClient>,
    /// What stands for the newest block of each endpoint.
    blocks: BTreeMap<Url, &'static str>,
}

#[async_trait]
impl JsonRpcHttpClient for Dated {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        let asked: Value = serde_json::from_slice(&body).unwrap();
        let reply = self.transport.post_json(url, body, cap, timeout).await?;
        let host = |first: &str| alloy_primitives::hex::encode(format!("{first}.sandbox"));
        let (from, to) = (host("ccip"), host(self.blocks[url]));
        let is_at_latest = |reply: &Value| {
            each(&asked).iter().any(|request| request["id"] == reply["id"] && request["params"][1] == "latest")
        };
        let dated = |reply: &Value| match is_at_latest(reply) {
            true => reply.to_string().replace(&from, &to),
            false => reply.to_string(),
        };
        let said: Value = serde_json::from_slice(&reply).unwrap();
        let replies: Vec<String> = each(&said).iter().map(dated).collect();
        let text = if said.is_array() { format!("[{}]", replies.join(",")) } else { replies.concat() };
        Ok(text.into())
    }
}

/// The requests or replies in a body: one, or a batch.
fn each(body: &Value) -> &[Value] {
    match body {
        Value::Array(all) => all,
        one => std::slice::from_ref(one),
    }
}

/// The newest block of the endpoint that is ahead, as its look-ups name it.
const AHEAD: &str = "b003";
/// That of the one that is a block behind.
const BEHIND: &str = "b002";

/// Reads a name off the chain through two endpoints a block apart, whose look-ups name their newest blocks. `change` is
/// made in the block that one of them alone has, and `other` in what the gateway says to look-ups of that block.
async fn read_a_block_apart(
    demand: ProofGradeDemand,
    change: impl FnOnce(&mut SandboxChainBuilder),
    other: impl FnOnce(&mut SandboxChainBuilder),
) -> NameReading {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(&registration("off.eth", offchain())).unwrap();
    builder.seal_block(time(NOON)).unwrap();
    builder.finalize_newest_block().unwrap();
    builder.seal_block(time("2026-11-20T12:00:12Z")).unwrap();
    let behind = Arc::new(builder.build().unwrap());
    change(&mut builder);
    builder.seal_block(time("2026-11-20T12:00:24Z")).unwrap();
    let ahead = Arc::new(builder.build().unwrap());
    other(&mut builder);
    let others = builder.build().unwrap();
    let (_servers, endpoints) = endpoints_of(&[&ahead, &behind]).await;
    let blocks = endpoints.iter().map(|endpoint| endpoint.url.clone()).zip([AHEAD, BEHIND]).collect();
    let gateway = Gateway::new(move |request| {
        let chain = if request.urls[0].contains(AHEAD) { &others } else { &*ahead };
        chain
            .answer_ccip_read(request.sender, &request.data)
            .map_err(|error| CcipReadGatewayError::new(error.to_string()))
    });
    let transport = Dated { transport: http(), blocks };
    let reader = graded(ChainReaderConfig { demand, ..config(endpoints) }, &(Arc::new(transport) as _), gateway);
    reader.read_name(&name("off.eth"), FIRST).await.unwrap()
}

/// The endpoints share no look-up and can follow none together. Nothing has changed all the same.
#[tokio::test]
async fn look_ups_that_name_their_block_are_compared_by_what_they_read() {
    for demand in GRADES {
        let reading = read_a_block_apart(demand, |_| (), |_| ()).await;

        assert_eq!(reading.latest, Some(Ok(latest_of(&reading))), "{demand:?}");
        let found = found(reading.answer);
        assert_eq!((found.records.text(TextRecordKey::Entry), found.offchain), (Some(ENTRY), true), "{demand:?}");
        assert_eq!(reading.newest, Some(2), "{demand:?}: both have it");
    }
}

/// Where one endpoint reads other records, nobody can say who lies.
#[tokio::test]
async fn look_ups_that_name_their_block_hide_no_other_records() {
    for demand in GRADES {
        let other = |builder: &mut SandboxChainBuilder| {
            builder.set_text(&name("off.eth"), "cl.entry", "x402://off.eth/other/v1").unwrap();
        };
        let reading = read_a_block_apart(demand, |_| (), other).await;

        assert_eq!(found(reading.answer.clone()).records.text(TextRecordKey::Entry), Some(ENTRY), "{demand:?}");
        assert!(matches!(reading.latest, Some(Err(ChainError::Disagree(_)))), "{demand:?}: {:?}", reading.latest);
    }
}

#[tokio::test]
async fn look_ups_that_name_their_block_hide_no_new_holder() {
    for demand in GRADES {
        let sale = |builder: &mut SandboxChainBuilder| builder.transfer_name(&name("off.eth"), BUYER).unwrap();
        let reading = read_a_block_apart(demand, sale, |_| ()).await;

        assert_eq!(reading.holder, NameHolder::Address(ALICE), "{demand:?}");
        assert!(matches!(reading.latest, Some(Err(ChainError::Disagree(_)))), "{demand:?}: {:?}", reading.latest);
    }
}

/// An endpoint that one of them alone reads leaves the records as they are.
#[tokio::test]
async fn look_ups_about_payments_that_name_their_block_are_compared_for_themselves() {
    for demand in GRADES {
        let other = |builder: &mut SandboxChainBuilder| {
            builder.set_text(&name("off.eth"), EndpointRecordKey::Runtime.as_str(), "https://other.example").unwrap();
        };
        let reading = read_a_block_apart(demand, |_| (), other).await;

        let latest = reading.latest.clone().unwrap().unwrap();
        assert!(latest.agrees_with_reading(&reading), "{demand:?}");
        let payment = found(latest.answer).payment;
        let runtime = &payment.endpoints[&EndpointRecordKey::Runtime];
        assert!(matches!(runtime, EndpointRecord::Failed(ChainError::Disagree(_))), "{demand:?}: {runtime:?}");
    }
}
