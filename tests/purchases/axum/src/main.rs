//! A seller of the published crates: `x402-axum` before the answer, `x402-facilitator-local` in the same process. It
//! reads what it sells as a line of JSON, answers with its URL, and ends with its standard input.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use alloy_primitives::{Address, U256};
use axum::routing::any;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpListener;
use url::Url;
use x402_axum::X402Middleware;
use x402_chain_eip155::V2Eip155Exact;
use x402_chain_eip155::chain::config::Eip155ChainConfig;
use x402_chain_eip155::chain::{AssetTransferMethod, Eip155ChainProvider, Eip155ChainReference, Eip155TokenDeployment};
use x402_facilitator_local::FacilitatorLocal;
use x402_types::chain::{ChainRegistry, DeployedTokenAmount, FromConfig as _};
use x402_types::scheme::{
    SchemeBlueprints, SchemeRegistry, X402SchemeFacilitator, X402SchemeFacilitatorBuilder, X402SchemeId,
};

/// The scheme `exact` of version 2 over chains that are shared.
struct Exact;

impl X402SchemeId for Exact {
    fn namespace(&self) -> &str {
        V2Eip155Exact.namespace()
    }

    fn scheme(&self) -> &str {
        V2Eip155Exact.scheme()
    }
}

impl X402SchemeFacilitatorBuilder<&Arc<Eip155ChainProvider>> for Exact {
    fn build(
        &self,
        chain: &Arc<Eip155ChainProvider>,
        config: Option<Value>,
    ) -> Result<Box<dyn X402SchemeFacilitator>, Box<dyn Error>> {
        V2Eip155Exact.build(Arc::clone(chain), config)
    }
}

/// What is sold for what.
struct Sale {
    rpc: String,
    chain: Eip155ChainReference,
    token: Eip155TokenDeployment,
    amount: U256,
    pay_to: Address,
    /// The key that sends the facilitator's transactions.
    key: String,
    /// The URL that buyers ask: this program stands behind it.
    url: Url,
}

impl Sale {
    fn read(line: &str) -> Result<Self, Box<dyn Error>> {
        let sale: Value = serde_json::from_str(line)?;
        let text = |member: &str| sale[member].as_str().ok_or(format!("{member} is missing"));
        let chain = Eip155ChainReference::new(sale["chain"].as_u64().ok_or("chain is missing")?);
        let token = Eip155TokenDeployment {
            chain_reference: chain,
            address: text("asset")?.parse()?,
            decimals: 6,
            transfer_method: AssetTransferMethod::Eip3009 {
                name: text("name")?.to_owned(),
                version: text("version")?.to_owned(),
            },
        };
        Ok(Self {
            rpc: text("rpc")?.to_owned(),
            chain,
            token,
            amount: text("amount")?.parse()?,
            pay_to: text("payTo")?.parse()?,
            key: text("key")?.to_owned(),
            url: text("url")?.parse()?,
        })
    }

    async fn facilitator(&self) -> Result<FacilitatorLocal<SchemeRegistry>, Box<dyn Error>> {
        let inner = json!({"eip1559": true, "signers": [self.key], "rpc": [{"http": self.rpc}]});
        let config = Eip155ChainConfig { chain_reference: self.chain, inner: serde_json::from_value(inner)? };
        let provider = Arc::new(Eip155ChainProvider::from_config(&config).await?);
        let chains = ChainRegistry::new(HashMap::from([(config.chain_id(), provider)]));
        let schemes = SchemeBlueprints::new().and_register(Exact);
        let enabled = json!([{"id": "v2-eip155-exact", "chains": "eip155:*"}]);
        Ok(FacilitatorLocal::new(SchemeRegistry::build(chains, schemes, &serde_json::from_value(enabled)?)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).await?;
    let sale = Sale::read(&line)?;
    let gate = X402Middleware::from_facilitator(Arc::new(sale.facilitator().await?));
    let price = DeployedTokenAmount { amount: sale.amount, token: sale.token.clone() };
    let gate = gate.with_price_tag(V2Eip155Exact::price_tag(sale.pay_to, price)).with_resource(sale.url.clone());
    let shop = Router::new().route(sale.url.path(), any(|| async { Json(json!({"summary": "short"})) }).layer(gate));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", json!({"url": format!("http://{}", listener.local_addr()?)}));
    tokio::select! {
        served = axum::serve(listener, shop) => served?,
        ended = async { input.read_to_string(&mut String::new()).await } => { ended?; }
    }
    Ok(())
}
