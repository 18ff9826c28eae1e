//! x402's own receipts by the crate `r402-extensions`, which has the extension offer-receipt in Rust.
//!
//! `make FOLDER` makes receipts for the sandbox's agent, with keys that everybody has. `say FOLDER` prints what its
//! helpers say of the receipts there, beside what clresolve has said: rows of a table.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use alloy_primitives::{B256, Signature, hex};
use k256::ecdsa::SigningKey;
use r402_extensions::offer_receipt::{
    DecodedOffer, EddsaJwsSigner, Eip712DigestSigner, JwsPublicKey, JwsSigner, OfferPayload, OfferReceiptError,
    ReceiptInput, SignedOffer, SignedReceipt, create_receipt_eip712, create_receipt_jws, verify_receipt_matches_offer,
    verify_receipt_signature_eip712, verify_receipt_signature_jws,
};
use serde_json::Value;

const CRATE: &str = "crate r402-extensions 0.21.0";
const EIP712: &str = "verify_receipt_signature_eip712";
const JWS: &str = "verify_receipt_signature_jws";
const URL: &str = "https://api.sandbox.example/summarize/v1";
const PAYER: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const NETWORK: &str = "eip155:31337";

/// The key of the address that honest names publish (`crates/sandbox/src/keys.rs`).
const PAYEE: [u8; 32] = hex!("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");

/// The seed of the key that the agent's signer publishes (`crates/sandbox/src/receipts.rs`).
const SEED: [u8; 32] = [7; 32];

/// How old a receipt may be, in seconds, for the helper that asks.
const MAX_AGE: u64 = 3600;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (verb, folder) = (arguments.next(), arguments.next());
    let folder = Folder(folder.ok_or("no folder is named")?.into());
    match verb.as_deref() {
        Some("make") => make(&folder),
        Some("say") => say(&folder),
        _ => Err("neither make nor say".into()),
    }
}

/// Where receipts stand.
struct Folder(PathBuf);

impl Folder {
    fn write(&self, file: &str, receipt: &SignedReceipt) -> Result<(), Box<dyn Error>> {
        Ok(fs::write(self.0.join(file), serde_json::to_vec(receipt)?)?)
    }

    fn read(&self, file: &str) -> Result<SignedReceipt, Box<dyn Error>> {
        Ok(serde_json::from_slice(&fs::read(self.0.join(file))?)?)
    }

    /// What clresolve has said of a receipt.
    fn own(&self, file: &str) -> Result<String, Box<dyn Error>> {
        let document: Value = serde_json::from_slice(&fs::read(self.0.join(format!("{file}.clresolve")))?)?;
        let codes = document["codes"].as_array().ok_or("no codes")?;
        let words = [&document["state"]].into_iter().chain(codes).filter_map(Value::as_str);
        Ok(words.collect::<Vec<_>>().join(" "))
    }
}

fn make(folder: &Folder) -> Result<(), Box<dyn Error>> {
    let input = ReceiptInput {
        resource_url: URL.to_owned(),
        payer: PAYER.to_owned(),
        network: NETWORK.to_owned(),
        transaction: None,
    };
    let payee = Payee(SigningKey::from_slice(&PAYEE)?);
    folder.write("r402-eip712.json", &create_receipt_eip712(&input, &payee)?)?;
    folder.write("r402-jws.json", &create_receipt_jws(&input, &signer()?)?)?;
    folder.write("r402-alg-none.json", &create_receipt_jws(&input, &OfNoAlgorithm(signer()?))?)
}

fn say(folder: &Folder) -> Result<(), Box<dyn Error>> {
    for (file, vector) in [
        ("x402-eip712.json", "`x402-eip712.json`"),
        ("other-payer.json", "the same, another payer"),
        ("made-by-stranger.json", "`made-by-stranger.json`, which createReceiptEIP712 made"),
        ("r402-eip712.json", "`r402-eip712.json`, which create_receipt_eip712 made"),
    ] {
        let said = match verify_receipt_signature_eip712(&folder.read(file)?) {
            Ok(verified) => format!("signer {}", verified.signer),
            Err(error) => format!("refused: {error}"),
        };
        row("X1", EIP712, vector, &said, &folder.own(file)?);
    }
    let said = matches_offer(&folder.read("year-2100.json")?)?.to_string();
    let vector = "the same of the year 2100, signature `0x00`";
    row("X1", "verify_receipt_matches_offer", vector, &said, &folder.own("year-2100.json")?);
    let key = signer()?.verifying_key();
    for (file, key, vector) in [
        ("x402-jws.json", Some(&key), "`x402-jws.json`, the key named by the caller"),
        ("x402-jws-altered.json", Some(&key), "`x402-jws-altered.json`, the key named by the caller"),
        ("x402-jws-forged.json", Some(&key), "`x402-jws-forged.json`, the key named by the caller"),
        ("made-by-did-key.json", None, "`made-by-did-key.json`, a stranger's, the key named by the receipt"),
        ("r402-jws.json", Some(&key), "`r402-jws.json`, which create_receipt_jws made"),
        ("r402-alg-none.json", Some(&key), "`r402-alg-none.json`, the same, whose header says `none`"),
    ] {
        row("X2", JWS, vector, &of_jws(&folder.read(file)?, key), &folder.own(file)?);
    }
    Ok(())
}

fn row(family: &str, helper: &str, vector: &str, said: &str, own: &str) {
    println!("| {family} | {CRATE}, `{helper}` | {vector} | {said} | {own} |");
}

fn of_jws(receipt: &SignedReceipt, key: Option<&JwsPublicKey>) -> String {
    match verify_receipt_signature_jws(receipt, key) {
        Ok(_) => "the payload".to_owned(),
        Err(error) => format!("refused: {error}"),
    }
}

/// What the helper without a look at the signature says, of an offer for the same resource.
fn matches_offer(receipt: &SignedReceipt) -> Result<bool, Box<dyn Error>> {
    let payload = OfferPayload {
        version: 1,
        resource_url: URL.to_owned(),
        scheme: "exact".to_owned(),
        network: NETWORK.to_owned(),
        asset: String::new(),
        pay_to: String::new(),
        amount: String::new(),
        valid_until: 0,
    };
    let signed_offer = SignedOffer::Jws { accept_index: None, signature: String::new() };
    let offer = DecodedOffer { payload, signed_offer, accept_index: None };
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    Ok(verify_receipt_matches_offer(receipt, &offer, &[PAYER], MAX_AGE, now))
}

fn signer() -> Result<EddsaJwsSigner, OfferReceiptError> {
    EddsaJwsSigner::from_bytes("did:web:api.sandbox.example#key-1", &SEED)
}

/// Signs as the agent's address.
struct Payee(SigningKey);

impl Eip712DigestSigner for Payee {
    fn sign_digest(&self, digest: B256) -> Result<Signature, OfferReceiptError> {
        let signed = self.0.sign_prehash_recoverable(digest.as_slice());
        signed.map(Signature::from).map_err(|error| OfferReceiptError::Sign(error.to_string()))
    }
}

/// The agent's signer, who says that nothing was signed.
struct OfNoAlgorithm(EddsaJwsSigner);

impl JwsSigner for OfNoAlgorithm {
    fn kid(&self) -> &str {
        self.0.kid()
    }

    fn algorithm(&self) -> &'static str {
        "none"
    }

    fn sign(&self, signing_input: &[u8]) -> Result<String, OfferReceiptError> {
        self.0.sign(signing_input)
    }
}
