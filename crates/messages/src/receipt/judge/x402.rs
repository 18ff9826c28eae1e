//! x402's own receipts (extension offer-receipt 0.6). They state that a seller was paid, for which URL, and by whom.
//! They contain no amount, asset or payee, and do not repeat the request.
//!
//! The signer is tied to the agent as for offers: by an address of the name (EIP-712, or a JWS with ES256K), or by the
//! key in `cl.sig.pub` of the signer that the agent's records name (a JWS with EdDSA). Keys inside a JWS are ignored.

use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_payment::artifact::{ArtifactSignerMatch, PublishedSigningKeys, SigningKeyKind};
use clresolve_payment::receipt::{SignedX402Receipt, X402Receipt};
use clresolve_payment::route::AgentRoute;
use jiff::Timestamp;

use super::{
    CalledAgent, MAX_CLOCK_SKEW, ReceiptCheckKind, ReceiptCheckResult, ReceiptJudgementBuilder, ReceiptKnowledge,
    StepStatus, check_decision_agent, clipped_text,
};
use crate::receipt::canonical::{JsonMemberOrder, canonical_bytes};
use crate::receipt::echo;
use crate::receipt::family::{ReceiptClaim, ReceiptFamily};
use crate::receipt::json::JsonNode;

/// The supported JWS algorithms.
const CHECKED: &str = "EdDSA, Ed25519 or ES256K";

impl ReceiptJudgementBuilder {
    /// The signed content, if the artifact can be parsed.
    pub(super) fn check_artifact(
        &mut self,
        family: ReceiptFamily,
        artifact: &JsonNode,
        known: &ReceiptKnowledge<'_>,
    ) -> Option<X402Receipt> {
        self.add_family_pass(family);
        self.is_by_address = family == ReceiptFamily::X1;
        let artifact = match parse_x402_receipt(artifact) {
            Ok(artifact) => artifact,
            Err(cause) => {
                let reason = Reason::new(ReasonCode::ReceiptSchemaInvalid)
                    .message("The receipt is not what x402's text demands.");
                self.add_objection(ReceiptCheckKind::Schema, reason.observed(cause), Some("ERR_SCHEMA_INVALID"));
                return None;
            }
        };
        let receipt = artifact.payload();
        self.rows.push(ReceiptCheckResult::new(ReceiptCheckKind::Schema, StepStatus::Pass));
        self.add_skip(ReceiptCheckKind::Hash);
        self.check_artifact_signature(&artifact, known);
        self.add_skip(ReceiptCheckKind::Key);
        self.add_skip(ReceiptCheckKind::Canonical);
        self.add_skip(ReceiptCheckKind::Signer);
        self.check_resource(receipt, known.agent);
        self.check_issue_time(receipt, known);
        match known.request {
            None => self.add_skip(ReceiptCheckKind::Request),
            Some(_) if clresolve_core::mutant!("x402-receipts-of-any-request") => {
                self.add_skip(ReceiptCheckKind::Request)
            }
            Some(_) => self.add_objection(ReceiptCheckKind::Request, *echo::untied_receipt_reason(), None),
        }
        self.check_purchase(receipt, known);
        Some(receipt.clone())
    }

    fn check_artifact_signature(&mut self, artifact: &SignedX402Receipt, known: &ReceiptKnowledge<'_>) {
        let kind = artifact.key_kind();
        self.is_by_address = kind == SigningKeyKind::Address;
        let (keys, expected) = match kind {
            SigningKeyKind::Address => match self.require_signing_addresses(known.agent) {
                Some(keys) => (keys, "a signature by an address of the agent"),
                None => return,
            },
            SigningKeyKind::Ed25519 => {
                match known.signer.and_then(|signer| signer.key.as_ref().map_err(|reason| &**reason)) {
                    Ok(key) => {
                        let ed25519 = vec![key.clone()];
                        (
                            PublishedSigningKeys { ed25519, ..PublishedSigningKeys::default() },
                            "a signature by the key of cl.sig.pub",
                        )
                    }
                    Err(reason) => {
                        return self.add_objection(
                            ReceiptCheckKind::Signature,
                            reason.clone(),
                            Some("ERR_ENS_KEY_NOT_FOUND"),
                        );
                    }
                }
            }
            SigningKeyKind::Unpublishable => (PublishedSigningKeys::default(), CHECKED),
        };
        let invalid = || Reason::new(ReasonCode::ReceiptSignatureInvalid).expected(expected).at_place("/signature");
        let open = known.agent.and_then(|agent| agent.addresses.open.as_deref());
        let (reason, clas) = match (artifact.find_signer(&keys), open.filter(|_| kind == SigningKeyKind::Address)) {
            (ArtifactSignerMatch::Published, _) => {
                let row = ReceiptCheckResult::new(ReceiptCheckKind::Signature, StepStatus::Pass);
                let (expected, place) = (Some(expected.to_owned()), Some("/signature".to_owned()));
                return self.rows.push(ReceiptCheckResult { observed: expected.clone(), expected, place, ..row });
            }
            (ArtifactSignerMatch::Nobody, _) | (ArtifactSignerMatch::Stranger, None) => {
                (invalid(), "ERR_INVALID_SIGNATURE")
            }
            (ArtifactSignerMatch::Stranger, Some(open)) => (open.clone(), "ERR_ENS_KEY_NOT_FOUND"),
            (ArtifactSignerMatch::Undecided, _) if kind == SigningKeyKind::Unpublishable => {
                let reason = Reason::new(ReasonCode::ReceiptFamilyUnknown).message(super::UNCHECKED_ALGORITHM);
                let algorithm = artifact.algorithm().unwrap_or_default();
                (reason.expected(expected).observed(algorithm).at_place("/signature"), "ERR_UNSUPPORTED_ALGORITHM")
            }
            (ArtifactSignerMatch::Undecided, _) => {
                let reason = Reason::new(ReasonCode::ReceiptKeyUnpublished).at_place("/signature");
                let cause = "a contract wallet's, which only the chain can check, or this build checks none";
                (reason.expected(expected).observed(cause), "ERR_UNSUPPORTED_ALGORITHM")
            }
        };
        self.add_objection(ReceiptCheckKind::Signature, reason, Some(clas));
    }

    /// The keys that sign with EIP-712 or ES256K; `None` if the agent has no address.
    fn require_signing_addresses(&mut self, agent: Option<&CalledAgent>) -> Option<PublishedSigningKeys> {
        let settled = agent.map(|agent| agent.addresses.settled.clone()).unwrap_or_default();
        if !settled.is_empty() {
            return Some(PublishedSigningKeys { addresses: settled, ..PublishedSigningKeys::default() });
        }
        let none =
            || Reason::new(ReasonCode::ReceiptKeyUnpublished).at_place("addr").observed("the agent has no address");
        let open = agent.and_then(|agent| agent.addresses.open.as_deref().cloned());
        self.add_objection(ReceiptCheckKind::Signature, open.unwrap_or_else(none), Some("ERR_ENS_KEY_NOT_FOUND"));
        None
    }

    /// Checks that the paid URL belongs to the agent. One address often signs for many agents that also share a host.
    /// If no URL of the agent is known, nothing ties the receipt to this agent.
    fn check_resource(&mut self, receipt: &X402Receipt, agent: Option<&CalledAgent>) {
        let Some(CalledAgent { routes, .. }) = agent else { return self.add_undecided(ReceiptCheckKind::Agent) };
        let claim = receipt_text_claim("/payload/resourceUrl", &receipt.resource_url);
        let is_own = |route: &&AgentRoute| {
            route.is_url_of_resource(&receipt.resource_url) || clresolve_core::mutant!("receipts-of-any-seller")
        };
        if let Some(own) = routes.settled.iter().find(is_own) {
            self.is_agent_compared = true;
            return self.add_pass(ReceiptCheckKind::Agent, own.url().as_str(), &claim);
        }
        if let Some(open) = &routes.open {
            return self.add_objection(ReceiptCheckKind::Agent, Reason::clone(open), None);
        }
        let urls: Vec<_> = routes.settled.iter().map(|route| route.url().as_str()).collect();
        let differs = |expected: &str| super::claim_mismatch(ReasonCode::ReceiptRequestMismatch, expected, &claim);
        let reason = match (urls.is_empty(), receipt.paid_url()) {
            (false, Some(_)) => differs(&urls.join(", ")),
            (false, None) => Reason { effect: ReasonEffect::Unknown, ..differs(&urls.join(", ")) },
            (true, _) => {
                Reason { effect: ReasonEffect::Unknown, ..differs("a URL behind the agent's entry, which has none") }
                    .message("Nothing ties the receipt to this agent rather than to another one with the same key.")
            }
        };
        self.add_objection(ReceiptCheckKind::Agent, reason, None);
    }

    fn check_issue_time(&mut self, receipt: &X402Receipt, known: &ReceiptKnowledge<'_>) {
        let claim = receipt_text_claim("/payload/issuedAt", &receipt.issued_at.to_string());
        let latest = known.now.checked_add(MAX_CLOCK_SKEW).unwrap_or(Timestamp::MAX);
        let expected = format!("no later than {latest}");
        let issued = i64::try_from(receipt.issued_at).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
        if let Some(first) = known.earliest_receipt_time().filter(|first| issued.is_some_and(|issued| issued < *first))
        {
            return self.add_predates_purchase(first, &claim);
        }
        if issued.is_some_and(|issued| issued <= latest) || clresolve_core::mutant!("receipts-of-tomorrow") {
            return self.add_pass(ReceiptCheckKind::Time, &expected, &claim);
        }
        let reason = super::claim_mismatch(ReasonCode::ReceiptTimeImplausible, &expected, &claim);
        self.add_objection(ReceiptCheckKind::Time, reason, None);
    }

    /// Checks that the receipt is about the decision and the payment.
    fn check_purchase(&mut self, receipt: &X402Receipt, known: &ReceiptKnowledge<'_>) {
        let Some(bought) = known.bought else { return self.add_skip(ReceiptCheckKind::Decision) };
        let Some(agent) = known.agent else { return self.add_undecided(ReceiptCheckKind::Decision) };
        let row = check_decision_agent(agent, bought).and_then(|row| match receipt.purchase_objection(bought) {
            Some(reason) => Err(reason),
            None => Ok(row),
        });
        match row {
            Ok(row) => self.rows.push(row),
            Err(reason) => self.add_objection(ReceiptCheckKind::Decision, *reason, None),
        }
    }
}

/// Parses the artifact's canonical form. Rejects a text or number that the library would read differently.
fn parse_x402_receipt(artifact: &JsonNode) -> Result<SignedX402Receipt, String> {
    let text = canonical_bytes(artifact, JsonMemberOrder::Sorted).map_err(|error| error.to_string())?;
    let value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    SignedX402Receipt::from_value(&value).map_err(|error| error.to_string())
}

fn receipt_text_claim(place: &str, text: &str) -> ReceiptClaim {
    ReceiptClaim { place: place.to_owned(), value: Some(clipped_text(text)) }
}

#[cfg(test)]
mod tests {
    use clresolve_core::name::EnsName;
    use clresolve_core::state::TrustState;
    use clresolve_payment::receipt::PurchaseFacts;

    use super::super::{AgentEntryRoutes, ReceiptJudgement, SignerAddresses, judge_receipt};
    use super::*;
    use crate::receipt::question::AgentRequest;

    const RECEIPT: &str = include_str!("../../../../sandbox/src/receipts/x402-eip712.json");
    const PAYEE: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    const HOME: &str = "https://api.sandbox.example/summarize/v1";

    fn agent(addresses: &[&str], route: &str) -> CalledAgent {
        let settled = addresses.iter().map(|address| address.parse().expect("an address")).collect();
        CalledAgent {
            name: EnsName::parse("summarizeagent.eth").expect("a name"),
            entry: None,
            verbs: Vec::new(),
            addresses: SignerAddresses { settled, open: None },
            routes: AgentEntryRoutes {
                settled: vec![AgentRoute::from_configuration(route).expect("a route")],
                open: None,
            },
        }
    }

    fn judged(receipt: &str, agent: &CalledAgent, bought: Option<&PurchaseFacts>) -> ReceiptJudgement {
        let signer = Reason::new(ReasonCode::ReceiptKeyUnpublished);
        let now = "2026-02-11T09:00:00Z".parse().expect("a time");
        judge_receipt(
            receipt.as_bytes(),
            &ReceiptKnowledge {
                agent: Some(agent),
                signer: Err(&signer),
                request: None,
                bought,
                earliest: None,
                schema: None,
                now,
            },
        )
    }

    fn outcome(found: &ReceiptJudgement) -> (TrustState, Vec<ReasonCode>) {
        (found.trust_state(), found.reasons.iter().map(|reason| reason.code).collect())
    }

    #[test]
    fn a_receipt_is_of_the_agent_whose_address_signed_at_its_own_place() {
        let found = judged(RECEIPT, &agent(&[PAYEE], HOME), None);
        assert_eq!(outcome(&found), (TrustState::Trusted, vec![]), "{found:#?}");
        let elsewhere = judged(RECEIPT, &agent(&[PAYEE], "https://other.example/summarize/v1"), None);
        assert_eq!(outcome(&elsewhere), (TrustState::Untrusted, vec![ReasonCode::ReceiptRequestMismatch]));
        let stranger = judged(RECEIPT, &agent(&["0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"], HOME), None);
        assert_eq!(outcome(&stranger), (TrustState::Untrusted, vec![ReasonCode::ReceiptSignatureInvalid]));
    }

    /// Agents of one runtime share host and key; only the path distinguishes them.
    #[test]
    fn a_receipt_of_another_agent_of_the_same_host_is_refused() {
        let neighbour = judged(RECEIPT, &agent(&[PAYEE], "https://api.sandbox.example/analyze/v1"), None);
        assert_eq!(outcome(&neighbour), (TrustState::Untrusted, vec![ReasonCode::ReceiptRequestMismatch]));
        let mut of_two_verbs = agent(&[PAYEE], "https://api.sandbox.example/analyze/v1");
        of_two_verbs.routes.settled.extend(AgentRoute::from_configuration(HOME));
        assert_eq!(outcome(&judged(RECEIPT, &of_two_verbs, None)), (TrustState::Trusted, vec![]));
    }

    /// The seller writes the requested URL, which has the scheme `http:` behind a proxy that terminates TLS.
    #[test]
    fn a_seller_behind_a_proxy_names_its_place() {
        let named = |resource: &str| {
            let mut value: serde_json::Value = serde_json::from_str(RECEIPT).expect("JSON");
            value["payload"]["resourceUrl"] = resource.into();
            let receipt: X402Receipt = serde_json::from_value(value["payload"].take()).expect("a payload");
            let mut checks = ReceiptJudgementBuilder::default();
            checks.check_resource(&receipt, Some(&agent(&[PAYEE], HOME)));
            checks.reasons.is_empty()
        };
        assert!(named(HOME) && named("http://api.sandbox.example/summarize/v1"));
        for other in [
            "http://api.sandbox.example/analyze/v1",
            "http://other.example/summarize/v1",
            "ftp://api.sandbox.example/summarize/v1",
        ] {
            assert!(!named(other), "{other}");
        }
    }

    #[test]
    fn where_the_agent_s_place_is_not_known_nothing_is_decided() {
        let mut homeless = agent(&[PAYEE], HOME);
        let of = |routes, agent: &mut CalledAgent| {
            agent.routes = routes;
            outcome(&judged(RECEIPT, agent, None))
        };
        let none = AgentEntryRoutes::from_lookup_results([Err(Box::new(Reason::new(ReasonCode::InvokeNoRoute)))]);
        assert!(none.open.is_none());
        assert_eq!(of(none, &mut homeless), (TrustState::Indeterminate, vec![ReasonCode::ReceiptRequestMismatch]));
        for code in [ReasonCode::RecordPending, ReasonCode::InvokeNoRoute] {
            let elsewhere = AgentRoute::from_configuration("https://other.example/").expect("a route");
            let open = AgentEntryRoutes::from_lookup_results([
                Ok(elsewhere),
                Err(Box::new(Reason::new(code).at_place("agent-endpoint[web]"))),
            ]);
            assert_eq!(of(open, &mut homeless), (TrustState::Indeterminate, vec![code]));
        }
    }

    /// MCP resources are not URLs on the web.
    #[test]
    fn what_was_paid_for_nowhere_on_the_web_is_undecided() {
        let known = agent(&[PAYEE], HOME);
        let mut value: serde_json::Value = serde_json::from_str(RECEIPT).expect("JSON");
        value["payload"]["resourceUrl"] = "mcp://tool/summarize".into();
        let receipt: X402Receipt = serde_json::from_value(value["payload"].take()).expect("a payload");
        let mut checks = ReceiptJudgementBuilder::default();
        checks.check_resource(&receipt, Some(&known));
        let [reason] = &checks.reasons[..] else { panic!("{:?}", checks.reasons) };
        assert_eq!((reason.code, reason.effect), (ReasonCode::ReceiptRequestMismatch, ReasonEffect::Unknown));
    }

    /// These receipts do not repeat the request, so it cannot be compared.
    #[test]
    fn with_a_request_nothing_is_decided() {
        let request = AgentRequest::from_bytes(br#"{"x402": {"request_id": "somebody else's"}}"#).expect("a request");
        let (agent, signer) = (agent(&[PAYEE], HOME), Reason::new(ReasonCode::ReceiptKeyUnpublished));
        let now = "2026-02-11T09:00:00Z".parse().expect("a time");
        let known = ReceiptKnowledge {
            agent: Some(&agent),
            signer: Err(&signer),
            request: Some(&request),
            bought: None,
            earliest: None,
            schema: None,
            now,
        };
        let found = judge_receipt(RECEIPT.as_bytes(), &known);
        assert_eq!(outcome(&found), (TrustState::Indeterminate, vec![ReasonCode::ReceiptTraceNotEchoed]), "{found:#?}");
        assert_eq!(found.check_result(ReceiptCheckKind::Request).map(|row| row.status), Some(StepStatus::Unknown));
    }

    #[test]
    fn where_keys_are_not_known_nothing_is_decided() {
        let none = judged(RECEIPT, &agent(&[], HOME), None);
        assert_eq!(outcome(&none), (TrustState::Indeterminate, vec![ReasonCode::ReceiptKeyUnpublished]));
        let open = Some(Box::new(Reason::new(ReasonCode::ReceiptKeyUnpublished)));
        let mut other = agent(&["0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"], HOME);
        other.addresses.open = open;
        assert_eq!(
            outcome(&judged(RECEIPT, &other, None)),
            (TrustState::Indeterminate, vec![ReasonCode::ReceiptKeyUnpublished])
        );
        let mut wallet: serde_json::Value = serde_json::from_str(RECEIPT).expect("JSON");
        wallet["signature"] = format!("0x{}", "ab".repeat(96)).into();
        let found = judged(&wallet.to_string(), &agent(&[PAYEE], HOME), None);
        assert_eq!(outcome(&found), (TrustState::Indeterminate, vec![ReasonCode::ReceiptKeyUnpublished]));
    }

    #[test]
    fn an_offer_and_other_algorithms_are_no_receipts() {
        let home = agent(&[PAYEE], "https://api.sandbox.example/");
        let of = |json: serde_json::Value| outcome(&judged(&json.to_string(), &home, None));
        let offer =
            serde_json::json!({"format": "eip712", "payload": {"version": 1, "payTo": PAYEE}, "signature": "0x"});
        assert_eq!(of(offer), (TrustState::Untrusted, vec![ReasonCode::ReceiptSchemaInvalid]));
        let payload = "eyJpc3N1ZWRBdCI6MTc3MDgwMDQwMCwibmV0d29yayI6ImVpcDE1NTozMTMzNyIsInBheWVyIjoiMHgiLCJyZXNvdXJjZVVybCI6\
            Imh0dHBzOi8vYXBpLnNhbmRib3guZXhhbXBsZS8iLCJ2ZXJzaW9uIjoxfQ";
        for header in ["eyJhbGciOiJub25lIiwia2lkIjoiayJ9", "eyJhbGciOiJFUzI1NksiLCJraWQiOiJrIn0"] {
            let jws = serde_json::json!({"format": "jws", "signature": format!("{header}.{payload}.AAAA")});
            assert_eq!(of(jws), (TrustState::Untrusted, vec![ReasonCode::ReceiptSignatureInvalid]), "{header}");
        }
        // RS256 is not supported.
        let jws = serde_json::json!({"format": "jws", "signature": format!("eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.{payload}.AAAA")});
        assert_eq!(of(jws), (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown]));
    }

    /// A JWS by the key of the payee's address, with one signature for each of two algorithms.
    #[test]
    fn a_receipt_by_es256k_is_of_the_address_whose_key_signed() {
        const SIGNED: &str = "eyJhbGciOiJFUzI1NksiLCJraWQiOiJkaWQ6cGtoOmVpcDE1NToxOjB4NzA5OTc5NzBDNTE4MTJkYzNBMDEwQzdkMDFiNTBlMGQxN2RjNzlDOCJ9.eyJ2ZXJzaW9uIjoxLCJuZXR3b3JrIjoiZWlwMTU1OjMxMzM3IiwicmVzb3VyY2VVcmwiOiJodHRwczovL2FwaS5zYW5kYm94LmV4YW1wbGUvc3VtbWFyaXplL3YxIiwicGF5ZXIiOiIweGYzOUZkNmU1MWFhZDg4RjZGNGNlNmFCODgyNzI3OWNmZkZiOTIyNjYiLCJpc3N1ZWRBdCI6MTc3MDc5NjgwMCwidHJhbnNhY3Rpb24iOiIifQ.";
        const SIGNATURE: &str =
            "f0gX-zlwLi8AieNbuXOapgVuofwTFEbRR70AGBJpDUTEbJ32Bvblsja0CcvdoskPvMh2--xg2-nmCrfS2ynhkg";
        let of = |jws: &str, agent: &CalledAgent| {
            outcome(&judged(&serde_json::json!({"format": "jws", "signature": jws}).to_string(), agent, None))
        };
        let (own, signed) = (agent(&[PAYEE], HOME), format!("{SIGNED}{SIGNATURE}"));
        assert_eq!(of(&signed, &own), (TrustState::Trusted, vec![]));
        let document = serde_json::json!({"format": "jws", "signature": signed}).to_string();
        assert!(judged(&document, &own, None).is_by_address, "it is remembered without a signer's key");
        let invalid = (TrustState::Untrusted, vec![ReasonCode::ReceiptSignatureInvalid]);
        assert_eq!(of(&signed, &agent(&["0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"], HOME)), invalid);
        let altered = signed.replace("MTc3MDc5NjgwMC", "MTc3MDc5NjgwMS");
        assert_ne!(altered, signed);
        assert_eq!(of(&altered, &own), invalid);
        for broken in ["AAAA", &SIGNATURE[2..], &"A".repeat(86), ""] {
            assert_eq!(of(&format!("{SIGNED}{broken}"), &own), invalid, "{broken}");
        }
        let none = agent(&[], HOME);
        assert_eq!(of(&signed, &none), (TrustState::Indeterminate, vec![ReasonCode::ReceiptKeyUnpublished]));
    }

    #[test]
    fn a_receipt_that_was_issued_before_the_purchase_is_implausible() {
        let (agent, signer) = (agent(&[PAYEE], HOME), Reason::new(ReasonCode::ReceiptKeyUnpublished));
        let bought = |earliest: &str| {
            let known = ReceiptKnowledge {
                agent: Some(&agent),
                signer: Err(&signer),
                request: None,
                bought: None,
                earliest: Some(earliest.parse().expect("a time")),
                schema: None,
                now: "2026-02-11T10:00:00Z".parse().expect("a time"),
            };
            outcome(&judge_receipt(RECEIPT.as_bytes(), &known)).1
        };
        assert_eq!(bought("2026-02-11T09:05:00Z"), []);
        assert_eq!(bought("2026-02-11T09:05:01Z"), [ReasonCode::ReceiptTimeImplausible]);
    }

    /// The receipt states that the payment was made next year.
    #[test]
    fn a_receipt_of_tomorrow_is_implausible() {
        let signer = Reason::new(ReasonCode::ReceiptKeyUnpublished);
        let now = "2026-02-11T08:54:59Z".parse().expect("a time");
        let agent = agent(&[PAYEE], HOME);
        let known = ReceiptKnowledge {
            agent: Some(&agent),
            signer: Err(&signer),
            request: None,
            bought: None,
            earliest: None,
            schema: None,
            now,
        };
        assert_eq!(outcome(&judge_receipt(RECEIPT.as_bytes(), &known)).1, [ReasonCode::ReceiptTimeImplausible]);
    }
}
