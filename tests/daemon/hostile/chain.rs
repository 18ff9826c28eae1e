//! Endpoints behind proxies that alter one thing, and the verdict of each proof grade.

use clresolve_resolver::config::{BlockSelector, ChainProofMode, Config, RpcEndpointConfig};
use clresolve_resolver::sandbox::CustomSandbox;
use serde_json::Value;

use crate::hostile::{expect, patient, spec};
use crate::support::proxy::{Altered, Proxy};

const NAME: &str = "agent.eth";

/// The expected verdict.
enum Ends {
    /// The same conclusion as in an honest world.
    True,
    /// The same, and the verdict names the liar with these words.
    TrueAndNamed(&'static str),
    /// Nothing is believed, for this reason.
    Refused(&'static str),
    /// The lie is believed: another conclusion, with this state and these codes.
    Fooled(&'static str, &'static [&'static str]),
}

/// A lie, and the expected verdicts.
struct Lie {
    altered: Altered,
    /// One liar and an honest endpoint; both must agree.
    quorum_of_two: Ends,
    /// One liar of three; two must agree.
    quorum_of_three: Ends,
    /// As many liars as must agree tell the same lie, beside an honest endpoint.
    quorum_outnumbered: Ends,
    /// One liar, asked first, and an honest endpoint; both must have the header.
    proof_of_two: Ends,
    /// One liar of three; two must have the header.
    proof_of_three: Ends,
    /// Only liars.
    proof_by_liars: Ends,
}

const LIES: [Lie; 5] = [
    Lie {
        altered: Altered::Record,
        quorum_of_two: Ends::Refused("rpc-disagree"),
        quorum_of_three: Ends::True,
        // The false records contradict the card that they bind.
        quorum_outnumbered: Ends::Fooled("untrusted", &["txt-entry-mismatch"]),
        // The records are computed. Those of the newest block are not, and can only downgrade the verdict.
        proof_of_two: Ends::Refused("record-pending"),
        proof_of_three: Ends::True,
        proof_by_liars: Ends::Refused("record-pending"),
    },
    Lie {
        altered: Altered::Slot,
        // A quorum reads no slots.
        quorum_of_two: Ends::True,
        quorum_of_three: Ends::True,
        quorum_outnumbered: Ends::True,
        proof_of_two: Ends::TrueAndNamed("the proof of slot "),
        proof_of_three: Ends::True,
        proof_by_liars: Ends::Refused("proof-refused"),
    },
    Lie {
        altered: Altered::CodeByte,
        // Nor code.
        quorum_of_two: Ends::True,
        quorum_of_three: Ends::True,
        quorum_outnumbered: Ends::True,
        proof_of_two: Ends::TrueAndNamed("the code of "),
        proof_of_three: Ends::True,
        proof_by_liars: Ends::Refused("proof-refused"),
    },
    Lie {
        altered: Altered::HeaderHashKept,
        // A header that does not hash to its hash is no answer.
        quorum_of_two: Ends::Refused("rpc-unreachable"),
        quorum_of_three: Ends::True,
        quorum_outnumbered: Ends::Refused("rpc-unreachable"),
        proof_of_two: Ends::Refused("rpc-unreachable"),
        proof_of_three: Ends::True,
        proof_by_liars: Ends::Refused("rpc-unreachable"),
    },
    Lie {
        altered: Altered::HeaderHashRemade,
        quorum_of_two: Ends::Refused("rpc-disagree"),
        quorum_of_three: Ends::True,
        // The block is made up, its records are true: a quorum believes both.
        quorum_outnumbered: Ends::Fooled("trusted", &[]),
        proof_of_two: Ends::Refused("rpc-disagree"),
        proof_of_three: Ends::True,
        proof_by_liars: Ends::Refused("proof-refused"),
    },
];

struct Stage {
    world: CustomSandbox,
    honest: Value,
}

impl Stage {
    async fn new() -> Self {
        let agent = format!("[[agent]]\nname = \"{NAME}\"\nabout = \"Good.\"\nstate = \"trusted\"\n");
        let world = CustomSandbox::start(&spec(&agent)).await.unwrap();
        let honest = crate::hostile::judged(&patient(&world), NAME).await;
        expect("the honest world", &honest, "trusted", &[]);
        Self { world, honest }
    }

    /// The verdict where these endpoints are asked, and `2` of them must agree.
    async fn ask(&self, proof: ChainProofMode, endpoints: &[Altered], block: Option<BlockSelector>) -> Value {
        let mut config: Config = patient(&self.world);
        let upstream = config.chain.endpoints[0].url.clone();
        config.chain.endpoints.clear();
        let mut proxies = Vec::new();
        for (place, altered) in endpoints.iter().enumerate() {
            let proxy = Proxy::before(upstream.clone(), *altered).await;
            let label = format!("endpoint-{place}");
            config.chain.endpoints.push(RpcEndpointConfig {
                operator: label.clone(),
                label,
                url: proxy.url(),
                own: false,
            });
            proxies.push(proxy);
        }
        config.chain.proof = Some(proof);
        config.chain.quorum = Some(2);
        config.chain.block = block.unwrap_or(config.chain.block);
        crate::hostile::judged(&config, NAME).await
    }

    fn check(&self, what: &str, ends: &Ends, verdict: &Value) {
        match ends {
            Ends::True => self.is_true(what, verdict),
            Ends::TrueAndNamed(words) => {
                self.is_true(what, verdict);
                let named = verdict.to_string();
                assert!(named.contains("contradicted_by") && named.contains(words), "{what}: {words}: {verdict:#}");
                assert!(named.contains("is refused"), "{what}: {verdict:#}");
            }
            Ends::Refused(code) => expect(what, verdict, "indeterminate", &[code]),
            Ends::Fooled(state, codes) => {
                expect(what, verdict, state, codes);
                assert_ne!(verdict["conclusion"], self.honest["conclusion"], "{what}");
            }
        }
    }

    fn is_true(&self, what: &str, verdict: &Value) {
        expect(what, verdict, "trusted", &[]);
        assert_eq!(verdict["conclusion"], self.honest["conclusion"], "{what}");
        assert_eq!(verdict["identity"]["owner"], self.honest["identity"]["owner"], "{what}");
    }
}

#[tokio::test]
async fn every_lie_is_caught_by_the_grades_that_can() {
    use Altered::Nothing;
    use ChainProofMode::{Quorum, StateProof};
    let stage = Stage::new().await;
    for lie in LIES {
        let bad = lie.altered;
        for (asked, proof, endpoints, ends) in [
            ("quorum, one of two", Quorum, vec![bad, Nothing], &lie.quorum_of_two),
            ("quorum, one of three", Quorum, vec![bad, Nothing, Nothing], &lie.quorum_of_three),
            ("quorum, two of three", Quorum, vec![bad, bad, Nothing], &lie.quorum_outnumbered),
            ("proof, one of two", StateProof, vec![bad, Nothing], &lie.proof_of_two),
            ("proof, one of three", StateProof, vec![bad, Nothing, Nothing], &lie.proof_of_three),
            ("proof, all", StateProof, vec![bad, bad, bad], &lie.proof_by_liars),
        ] {
            let verdict = stage.ask(proof, &endpoints, None).await;
            let codes: Vec<_> = verdict["reasons"].as_array().unwrap().iter().map(|r| r["code"].clone()).collect();
            println!("{bad:?}, {asked}: {} {codes:?}", verdict["state"]);
            stage.check(&format!("{bad:?}, {asked}"), ends, &verdict);
        }
    }
}

#[tokio::test]
async fn as_many_liars_as_must_agree_fool_a_quorum_and_not_a_state_proof() {
    let stage = Stage::new().await;
    let liars = [Altered::Record, Altered::Record, Altered::Nothing];
    let fooled = stage.ask(ChainProofMode::Quorum, &liars[..2], None).await;
    expect("a quorum of liars", &fooled, "untrusted", &["txt-entry-mismatch"]);
    assert_eq!(fooled["anchor"]["proof"]["grade"], "quorum");
    let seen = stage.ask(ChainProofMode::StateProof, &liars, Some(BlockSelector::Number(1))).await;
    assert_eq!((&seen["state"], &seen["anchor"]["proof"]["grade"]), (&"trusted".into(), &"state-proof".into()));
    assert_eq!(seen["identity"], stage.honest["identity"]);
}
