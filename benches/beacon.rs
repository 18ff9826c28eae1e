//! Measures the verification of a light-client update of mainnet's size (512 keys), and compares it with the bare
//! verification of its aggregate signature by `blst`, measured in the same run. The committee is known, as it is for
//! all updates of a day but the first.

mod support;

use std::hint::black_box;

use blst::BLST_ERROR;
use blst::min_pk::{AggregateSignature, PublicKey, SecretKey, Signature};
use clresolve_beacon::testing::SampleBeaconChain;
use clresolve_beacon::{ChainSpec, ConsensusFork, LightClientCodec as _, LightClientUpdate};

use support::{Good, ROUNDS, Row, in_turn, micros, timed, undisturbed};

/// Maximum ratio to the bare verification.
const BUDGET: f64 = 1.3;

/// The ciphersuite of Ethereum's signatures.
const CIPHERSUITE: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

const MEMBERS: usize = 512;

/// The fewest that count. Their key takes the most additions.
const TWO_THIRDS: usize = 342;

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let chain = SampleBeaconChain::new(ChainSpec::mainnet(), 14_000_000).expect("a supported fork");
    for participants in [TWO_THIRDS, MEMBERS] {
        let row = measured(&chain, participants);
        let what = format!("a light-client update with {participants} of {MEMBERS} signatures verified");
        let row = Row { what: &what, ..row };
        if participants == MEMBERS { row.end("bench-beacon") } else { row.print("bench-beacon") }
    }
}

fn measured(chain: &SampleBeaconChain, participants: usize) -> Row<'static> {
    let update = chain.signed_update(participants).expect("a supported fork");
    let slot = chain.signature_slot();
    let fresh = chain.store_at_checkpoint().expect("a valid bootstrap");
    let mut known = fresh.clone();
    known.process_update(&update, slot).expect("it is genuine");
    let (json, ssz) = (update.to_json(ConsensusFork::Fulu).to_string(), update.to_ssz(ConsensusFork::Fulu));
    let bare = Bare::new(participants);
    let [whole, bare, first, from_json, from_ssz] = in_turn(
        ROUNDS / 5,
        [
            &mut timed(|| known.process_update(black_box(&update), slot).expect("it is genuine")),
            &mut timed(|| bare.verify()),
            &mut timed(|| fresh.clone().process_update(black_box(&update), slot).expect("it is genuine")),
            &mut timed(|| LightClientUpdate::from_json(black_box(json.as_bytes()), &chain.spec).expect("JSON")),
            &mut timed(|| LightClientUpdate::from_ssz(black_box(&ssz), ConsensusFork::Fulu, &chain.spec).expect("SSZ")),
        ],
    )
    .map(|times| undisturbed(&times));
    let [first, from_json, from_ssz] = [first, from_json, from_ssz].map(micros);
    println!("the first of a committee: {first}; decoding its JSON {from_json}, its SSZ {from_ssz}");
    Row {
        what: "",
        measured: micros(whole),
        beside: format!("`blst` alone: {}", micros(bare)),
        ratio: whole / bare,
        budget: BUDGET,
        good: Good::AtMost,
    }
}

/// A signature of as many members, and their keys.
struct Bare {
    keys: Vec<PublicKey>,
    signature: [u8; 96],
}

impl Bare {
    const MESSAGE: [u8; 32] = [7; 32];

    fn new(members: usize) -> Self {
        let secret = |member: usize| SecretKey::key_gen(&[member.to_le_bytes(); 4].concat(), &[]).expect("32 bytes");
        let secrets: Vec<SecretKey> = (0..members).map(secret).collect();
        let signatures: Vec<Signature> =
            secrets.iter().map(|secret| secret.sign(&Self::MESSAGE, CIPHERSUITE, &[])).collect();
        let signatures: Vec<&Signature> = signatures.iter().collect();
        let signature = AggregateSignature::aggregate(&signatures, false).expect("a member signs").to_signature();
        Self { keys: secrets.iter().map(SecretKey::sk_to_pk).collect(), signature: signature.compress() }
    }

    fn verify(&self) {
        let signature = Signature::uncompress(black_box(&self.signature)).expect("a signature");
        let keys: Vec<&PublicKey> = self.keys.iter().collect();
        let verified = signature.fast_aggregate_verify(true, &Self::MESSAGE, CIPHERSUITE, &keys);
        assert_eq!(verified, BLST_ERROR::BLST_SUCCESS);
    }
}
