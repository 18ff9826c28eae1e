//! Was this payment settled? Derives the transfer that the chain must contain from the decision, the payment header and
//! the seller's reply, and checks it. The seller's reply proves nothing: it only identifies the transaction.

mod asked;
mod proxy;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use alloy_primitives::{Address, B256, Bytes, Log, U256};
use alloy_sol_types::{SolEvent as _, sol};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use clresolve_core::digest::Digest;
use clresolve_core::execution::ExecutedTransaction;
use clresolve_core::json::{JsonLimits, parse_strict_json};
use clresolve_core::mutant;
use clresolve_core::reading::{ChainBlock, ProofGrade, ProofStrength};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::verdict::canonical_digest;

use crate::decision::PriceDocument;
use crate::encoding::decode_header_json;
use crate::forms;
use crate::limits::MAX_TIMEOUT_SECONDS;
use crate::network::Caip2Network;
use crate::receipt::{PurchaseFacts, X402Receipt};
use crate::signed::{MAX_CLOCK_SKEW, PERMIT2_PROXY, PaymentPermission, TransferPermit};
use crate::terms::X402Version;

/// Maximum size of a decision document. One with the maximum number of entries takes half of it.
pub const MAX_DECISION_BYTES: usize = 64 * 1024;

/// How long a permitted payment may stay open, in seconds: as long as any terms may allow. A payment may be settled
/// this much later than its decision expires, and this much later than its seller signs a receipt.
const OPEN_SECONDS: u64 = MAX_TIMEOUT_SECONDS + MAX_CLOCK_SKEW;

/// Maximum validity of a decision, in seconds. It expires with the terms that it allows, if not sooner.
const DECISION_SECONDS: u64 = MAX_TIMEOUT_SECONDS;

const DECISION: JsonLimits =
    JsonLimits { bytes: MAX_DECISION_BYTES, levels: 16, values: 4096, name: 1024, paths: 256 * 1024 };

/// Parser limits for the header of a reply, which may repeat a signed receipt.
const REPLY: JsonLimits = JsonLimits { bytes: 16 * 1024, levels: 16, values: 1024, name: 1024, paths: 128 * 1024 };

sol! {
    // ERC-20.
    event Transfer(address indexed from, address indexed to, uint256 value);
    // EIP-3009.
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
}

/// The documents kept of a purchase, apart from request and receipt. Each may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PurchasePaymentDocuments {
    /// The decision on which the payment was made.
    pub decision: Option<StoredDecision>,
    /// The payment that a client permitted with its header (`PAYMENT-SIGNATURE`, in version 1 `X-PAYMENT`). The
    /// signature is not verified here: only what the chain did with it counts.
    payment: Option<PaymentPermission>,
    /// The header of the seller's reply (`PAYMENT-RESPONSE`, in version 1 `X-PAYMENT-RESPONSE`), unmodified.
    pub settlement: Option<String>,
}

/// The fields used of a stored decision that allowed a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDecision {
    id: String,
    digest: String,
    name: String,
    verb: String,
    price: PriceDocument,
    payee: Address,
    url: Url,
    terms_digest: Option<String>,
    /// Whether several entries were allowed. Price and payee belong to the first.
    is_of_several: bool,
    /// When permission to pay the last of the entries expired.
    valid_until: Option<Timestamp>,
}

/// The fields read from a decision document. Price, payee or route may be missing if the decision allows nothing.
#[derive(Deserialize)]
struct StoredDecisionDocument {
    schema: String,
    id: String,
    name: String,
    verb: String,
    abort: bool,
    entries: Vec<StoredOptionDocument>,
    valid_until: Option<Timestamp>,
    terms_digest: Option<String>,
    price: Option<PriceDocument>,
    payee: Option<StoredPayeeDocument>,
    route: Option<StoredRouteDocument>,
}

#[derive(Deserialize)]
struct StoredOptionDocument {
    valid_until: Option<Timestamp>,
}

#[derive(Deserialize)]
struct StoredPayeeDocument {
    #[serde(deserialize_with = "forms::deserialize_address")]
    address: Address,
}

#[derive(Deserialize)]
struct StoredRouteDocument {
    url: String,
}

impl StoredDecision {
    /// Parses the JSON document of a decision.
    ///
    /// # Errors
    /// Why it is not a decision that allows a payment, in words.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let document = parse_strict_json(bytes, DECISION).map_err(|error| excerpt_text(&error.to_string()))?;
        let form = StoredDecisionDocument::deserialize(&document).map_err(|error| excerpt_text(&error.to_string()))?;
        let StoredDecisionDocument {
            schema,
            id,
            name,
            verb,
            abort,
            entries,
            valid_until,
            terms_digest,
            price,
            payee,
            route,
        } = form;
        if schema != crate::decision::SCHEMA {
            return Err(format!("expected a document of {}", crate::decision::SCHEMA));
        }
        let url = route.and_then(|route| Url::parse(&route.url).ok());
        match (abort, price, payee, url) {
            (false, Some(price), Some(StoredPayeeDocument { address: payee }), Some(url)) => {
                let (digest, is_of_several) = (canonical_digest(&document), entries.len() > 1);
                let ends = entries.iter().filter_map(|entry| entry.valid_until.or(valid_until));
                let valid_until = ends.max().or(valid_until);
                Ok(Self { id, digest, name, verb, price, payee, url, terms_digest, is_of_several, valid_until })
            }
            _ => Err("it does not allow a payment, so nothing was bought on it".to_owned()),
        }
    }

    /// Compares the permitted payment with the decision. If the decision is about several entries, the document
    /// describes only the first.
    fn compare_with_decision<T: PartialEq + Display>(
        &self,
        place: &str,
        permitted: &T,
        decided: &T,
    ) -> Result<(), Box<Reason>> {
        let compared = require_equal(place, permitted, decided);
        if self.is_of_several && compared.is_err() {
            let cause =
                format!("{decided}, and the decision was about several entries, of which it records only the first");
            return Err(unproven_reason(place, cause).expected(permitted.to_string()).into());
        }
        compared
    }

    /// The earliest time at which the decision can have been made. The document states only its expiry.
    fn earliest_decision_time(&self) -> Option<Timestamp> {
        let longest = SignedDuration::from_secs((DECISION_SECONDS + MAX_CLOCK_SKEW).cast_signed());
        Some(self.valid_until?.checked_sub(longest).unwrap_or(Timestamp::MIN))
    }

    /// Why a payment settled in this block was not based on the decision: the decision had expired, or did not exist
    /// yet.
    fn block_time_objection(&self, block: &ChainBlock) -> Option<Box<Reason>> {
        const PLACE: &str = "decision: /valid_until";
        let Some((first, end)) = self.earliest_decision_time().zip(self.valid_until) else {
            return Some(unproven_reason(PLACE, "it has no expiry").into());
        };
        let last = end.checked_add(SignedDuration::from_secs(OPEN_SECONDS.cast_signed())).unwrap_or(Timestamp::MAX);
        let is_early = block.timestamp < first && !mutant!("decisions-about-what-was-settled");
        let is_late = block.timestamp > last && !mutant!("decisions-never-end");
        (is_early || is_late)
            .then(|| settlement_mismatch_reason(PLACE, format!("settled from {first} to {last}"), block.timestamp))
    }
}

/// The transfer that the chain must contain: one transfer, authorised by this payment, in this transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct DueTransfer {
    /// The network.
    pub network: Caip2Network,
    /// The transaction that the seller's reply refers to.
    pub transaction: B256,
    /// The asset's contract.
    pub asset: Address,
    /// The payer.
    pub payer: Address,
    /// The payee.
    pub pay_to: Address,
    /// Atomic units, in decimal.
    #[serde(serialize_with = "forms::serialize_decimal_amount")]
    pub amount: U256,
    /// The authorisation of the transfer.
    #[serde(flatten)]
    pub permit: TransferPermit,
}

/// How the contents of the chain are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettlementAssuranceLevel {
    /// Endpoints report them.
    Reported,
    /// The logs are proven to be in the receipts trie of a block that endpoints agree on.
    Proven,
}

/// The result of checking a transaction on its chain.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionCheckResult {
    /// Why the transaction does not show the settlement. `None` if it does.
    pub objection: Option<Box<Reason>>,
    /// How this is known.
    pub shown_by: SettlementAssuranceLevel,
    /// The block that contains the transaction.
    pub block: ChainBlock,
    /// How far endpoints vouch for the block, and for what they report.
    pub proof: ProofStrength,
}

impl TransactionCheckResult {
    /// How far it is vouched for, on the same scale as names. Logs that are proven against a header count as a state
    /// proof.
    pub const fn effective_proof(&self) -> ProofStrength {
        match self.shown_by {
            SettlementAssuranceLevel::Proven => ProofStrength { grade: ProofGrade::StateProof, ..self.proof },
            SettlementAssuranceLevel::Reported => self.proof,
        }
    }
}

/// Whether a payment was settled. This is the serialized form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettlementCheckResult {
    /// How the settlement is shown. `None` if it is not shown.
    pub shown_by: Option<SettlementAssuranceLevel>,
    /// The transfer that had to be shown, if known.
    pub due: Option<DueTransfer>,
    /// The block that contains the transaction, if one was found.
    pub block: Option<ChainBlock>,
    /// How far endpoints vouch for the block.
    pub proof: Option<ProofStrength>,
    /// The `id` of the decision, if there is one.
    pub decision: Option<String>,
    /// The objection, if there is one.
    #[serde(skip)]
    pub objection: Option<Box<Reason>>,
}

impl SettlementCheckResult {
    /// Combines the results for a purchase.
    pub fn from_transaction_check(
        purchase: &PurchasePaymentDocuments,
        due: Option<DueTransfer>,
        seen: Result<TransactionCheckResult, Box<Reason>>,
    ) -> Self {
        let decision = purchase.decision.as_ref().map(|decision| decision.id.clone());
        match seen {
            Ok(TransactionCheckResult { objection, shown_by, block, proof }) => {
                let decided = purchase.decision.as_ref();
                let objection = objection.or_else(|| decided.and_then(|decided| decided.block_time_objection(&block)));
                Self {
                    shown_by: objection.is_none().then_some(shown_by),
                    due,
                    block: Some(block),
                    proof: Some(proof),
                    decision,
                    objection,
                }
            }
            Err(objection) => {
                Self { shown_by: None, due, block: None, proof: None, decision, objection: Some(objection) }
            }
        }
    }

    /// Describes in words how the settlement is shown.
    pub fn evidence_phrase(&self) -> Option<String> {
        let (by, proof) = (self.shown_by?, self.proof?);
        let word = match by {
            SettlementAssuranceLevel::Reported => "reported",
            SettlementAssuranceLevel::Proven => "proven in a block reported",
        };
        let (network, block) = (&self.due.as_ref()?.network, self.block?.number);
        Some(format!("{word} by {} of {} endpoints, block {block} of {network}", proof.agreed, proof.asked))
    }

    /// The earliest time at which the settled payment can have been permitted. `None` if no block was found.
    fn earliest_permission_time(&self) -> Option<Timestamp> {
        let open = SignedDuration::from_secs(OPEN_SECONDS.cast_signed());
        Some(self.block?.timestamp.checked_sub(open).unwrap_or(Timestamp::MIN))
    }

    /// The objection to an x402 receipt: it states another network, payer or transaction, or is too old for the block
    /// of the settlement. `None` if there is no objection, or if it is unknown what had to be shown.
    pub fn objection_to_receipt(&self, receipt: &X402Receipt) -> Option<Box<Reason>> {
        let due = self.due.as_ref().filter(|_| !mutant!("receipts-of-any-transaction"))?;
        let X402Receipt { network, payer, transaction, issued_at, .. } = receipt;
        if network != due.network.as_str() {
            return Some(settlement_mismatch_reason("/payload/network", &due.network, network));
        }
        match forms::parse_address(payer) {
            Some(payer) if payer == due.payer => {}
            Some(_) => return Some(settlement_mismatch_reason("/payload/payer", due.payer, payer)),
            None => {
                let cause = format!("{}, which is not an address", excerpt_text(payer));
                return Some(unproven_reason("/payload/payer", cause).expected(due.payer.to_string()).into());
            }
        }
        if !transaction.is_empty() && forms::parse_bytes32(transaction) != Some(due.transaction) {
            return Some(settlement_mismatch_reason("/payload/transaction", due.transaction, transaction));
        }
        let earliest = u64::try_from(self.earliest_permission_time()?.as_second()).unwrap_or_default();
        let is_older = *issued_at < earliest && !mutant!("receipts-before-their-payment");
        is_older
            .then(|| settlement_mismatch_reason("/payload/issuedAt", format!("no earlier than {earliest}"), issued_at))
    }
}

impl PurchasePaymentDocuments {
    /// Parses the stored documents: a decision document, the payment header as sent, and the reply header as received.
    ///
    /// # Errors
    /// Whether the decision or the payment header cannot be read, and why, in words. The seller's header never causes
    /// an error, however malformed it is.
    pub fn from_documents(
        decision: Option<&[u8]>,
        payment: Option<&str>,
        settlement: Option<String>,
    ) -> Result<Self, String> {
        let decision =
            decision.map(StoredDecision::from_bytes).transpose().map_err(|why| format!("decision: {why}"))?;
        let payment =
            payment.map(PaymentPermission::from_header).transpose().map_err(|reason| match reason.observed {
                Some(observed) => format!("payment: {} {observed}", reason.message),
                None => format!("payment: {}", reason.message),
            })?;
        Ok(Self { decision, payment, settlement })
    }

    /// Whether the documents require a settlement check. A decision alone requires none.
    pub const fn requires_settlement_check(&self) -> bool {
        self.payment.is_some() || self.settlement.is_some()
    }

    /// The facts with which an x402 receipt is compared, if there is a decision.
    pub fn purchase_facts(&self) -> Option<PurchaseFacts> {
        let StoredDecision { id, digest, name, verb, price, url, is_of_several, .. } = self.decision.clone()?;
        let decision = if mutant!("decisions-state-their-digest") { id } else { digest };
        let permitted = self.payment.as_ref();
        let network = if is_of_several { permitted.map(|it| it.network.clone()) } else { Some(price.network) };
        Some(PurchaseFacts { decision, name, verb, network, url, payer: permitted.map(|it| it.payer) })
    }

    /// The earliest time of the purchase: neither the decision nor the permission of the settled payment can be older.
    /// `None` if both are unknown.
    pub fn earliest_purchase_time(&self, settlement: Option<&SettlementCheckResult>) -> Option<Timestamp> {
        let decided = self.decision.as_ref().and_then(StoredDecision::earliest_decision_time);
        decided.into_iter().chain(settlement.and_then(SettlementCheckResult::earliest_permission_time)).max()
    }

    /// The network and payee: from `due`, or, if there is no payment, from a decision about a single entry.
    pub fn network_and_payee<'a>(&'a self, due: Option<&'a DueTransfer>) -> Option<(&'a Caip2Network, Address)> {
        let decided = self.decision.as_ref().filter(|decided| self.payment.is_none() && !decided.is_of_several);
        due.map(|due| (&due.network, due.pay_to))
            .or_else(|| decided.map(|decided| (&decided.price.network, decided.payee)))
    }

    /// The transfer that the chain must contain for this purchase from the agent `name`, if all documents agree.
    ///
    /// # Errors
    /// `settlement-mismatch` if two documents differ, `settlement-unproven` if one is missing.
    pub fn due_transfer(&self, name: &str) -> Result<DueTransfer, Box<Reason>> {
        if let Some(decision) = &self.decision {
            require_equal("decision: /name", name, &decision.name)?;
        }
        let Some(payment) = &self.payment else {
            return Err(unproven_reason("payment", "missing, so any transaction could be presented").into());
        };
        payment.check_accepted()?;
        if let Some(decided @ StoredDecision { price, payee, .. }) = &self.decision {
            decided.compare_with_decision("decision: /price/network", &payment.network, &price.network)?;
            decided.compare_with_decision("decision: /price/amount", &payment.amount, &price.amount)?;
            decided.compare_with_decision("decision: /payee/address", &payment.pay_to, payee)?;
        }
        let asset = match (payment.asset, &self.decision) {
            (Some(own), Some(decided)) => {
                decided.compare_with_decision("decision: /price/asset", &own, &decided.price.asset)?;
                own
            }
            (Some(asset), None) => asset,
            (None, Some(decided)) if !decided.is_of_several => decided.price.asset,
            (None, Some(_)) => {
                let cause = "the decision was about several entries, and the payment does not name its asset";
                return Err(unproven_reason("payment", cause).into());
            }
            (None, None) => {
                return Err(unproven_reason("payment", "neither it nor a decision names the asset").into());
            }
        };
        let Some(header) = &self.settlement else {
            return Err(unproven_reason("settlement", "missing, so the transaction is unknown").into());
        };
        Ok(DueTransfer {
            network: payment.network.clone(),
            transaction: payment.settlement_transaction(header)?,
            asset,
            payer: payment.payer,
            pay_to: payment.pay_to,
            amount: payment.amount,
            permit: payment.permit.clone(),
        })
    }
}

impl PaymentPermission {
    /// Checks that the payload permits what the header claims to accept.
    fn check_accepted(&self) -> Result<(), Box<Reason>> {
        let Some(accepted) = self.accepted.as_ref().filter(|_| !mutant!("accepted-is-not-permitted")) else {
            return Ok(());
        };
        require_equal("payment: /accepted/payTo", &self.pay_to, &accepted.pay_to)?;
        require_equal("payment: /accepted/amount", &self.amount, &accepted.amount)?;
        match &self.asset {
            Some(asset) => require_equal("payment: /accepted/asset", asset, &accepted.asset),
            None => Ok(()),
        }
    }

    /// The transaction that settled this payment according to the header of the seller's reply.
    ///
    /// # Errors
    /// `settlement-mismatch` if the reply is about another payment, `settlement-unproven` if it names no transaction.
    fn settlement_transaction(&self, header: &str) -> Result<B256, Box<Reason>> {
        let unreadable = |cause: String| unproven_reason("settlement", format!("cannot be read: {cause}"));
        let answer = decode_header_json(header, REPLY).map_err(|error| unreadable(excerpt_text(&error.to_string())))?;
        let text = |member: &str| answer.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
        let shown = |member: &str| answer.get(member).map_or_else(|| "nothing".to_owned(), Value::to_string);
        if answer.get("success") != Some(&Value::Bool(true)) {
            return Err(settlement_mismatch_reason("settlement: /success", true, shown("success")));
        }
        let network = text("network").and_then(|network| match self.version {
            X402Version::V1 => Caip2Network::from_v1_name(network),
            X402Version::V2 => network.parse().ok(),
        });
        if network.as_ref() != Some(&self.network) {
            return Err(settlement_mismatch_reason("settlement: /network", &self.network, shown("network")));
        }
        if let Some(payer) = text("payer")
            && forms::parse_address(payer) != Some(self.payer)
        {
            return Err(settlement_mismatch_reason("settlement: /payer", self.payer, payer));
        }
        if let Some(amount) = text("amount")
            && forms::parse_amount(amount) != Some(self.amount)
        {
            return Err(settlement_mismatch_reason("settlement: /amount", self.amount, amount));
        }
        let transaction = text("transaction").and_then(forms::parse_bytes32);
        Ok(transaction.ok_or_else(|| unreadable("it names no transaction".to_owned()))?)
    }
}

impl DueTransfer {
    /// SHA-256 of its JSON form. It changes if any member changes.
    pub fn digest(&self) -> Digest {
        Digest::compute(&serde_json::to_vec(self).expect("it has a JSON form: its keys are strings"))
    }

    /// Whether the transaction's logs show the transfer. A call to the Permit2 proxy is identified by the transaction
    /// itself, which no receipt contains.
    pub const fn is_provable_by_logs(&self) -> bool {
        matches!(self.permit, TransferPermit::Eip3009 { .. })
    }

    /// Checks the transaction in the chain up to its finalized block `head`. `is_receipt_proven` means that its logs
    /// are proven to be in the receipts trie of its block.
    ///
    /// # Errors
    /// `settlement-unproven` if no block contains it.
    pub fn check_transaction(
        &self,
        head: &ChainBlock,
        execution: Option<&ExecutedTransaction>,
        proof: &ProofStrength,
        is_receipt_proven: bool,
    ) -> Result<TransactionCheckResult, Box<Reason>> {
        let Some(execution) = execution else {
            let (network, number) = (&self.network, head.number);
            let observed =
                format!("the endpoints of {network} know no such transaction up to finalized block {number}");
            return Err(unproven_reason("transaction", observed).expected(self.transaction.to_string()).into());
        };
        let shown_by = if is_receipt_proven && self.is_provable_by_logs() {
            SettlementAssuranceLevel::Proven
        } else {
            SettlementAssuranceLevel::Reported
        };
        let objection = self.check_execution(execution).err();
        Ok(TransactionCheckResult { objection, shown_by, block: execution.block, proof: *proof })
    }

    /// Checks that the transaction contains exactly one transfer of the asset, from payer to payee, with the right
    /// amount, and authorised by this payment only. Logs of other contracts are ignored.
    ///
    /// # Errors
    /// `settlement-mismatch`, or `settlement-unproven` if it contains several such transfers or authorisations.
    pub fn check_execution(&self, execution: &ExecutedTransaction) -> Result<(), Box<Reason>> {
        require_equal("transaction", &self.transaction, &execution.transaction)?;
        if !execution.has_succeeded && !mutant!("failed-transactions-settle") {
            return Err(settlement_mismatch_reason("transaction: status", "success", "it was reverted"));
        }
        self.check_transfer_log(execution)?;
        match &self.permit {
            TransferPermit::Eip3009 { nonce } => self.check_authorization_log(execution, *nonce),
            TransferPermit::Permit2 { nonce, signature } => self.check_permit2_proxy_call(execution, nonce, signature),
        }
    }

    fn check_transfer_log(&self, execution: &ExecutedTransaction) -> Result<(), Box<Reason>> {
        const PLACE: &str = "log: Transfer";
        let topics = [Transfer::SIGNATURE_HASH, self.payer.into_word(), self.pay_to.into_word()];
        let transfers: Vec<&Log> = self.asset_logs(execution, &topics).collect();
        let expected = || format!("{} from {} to {}", self.amount, self.payer, self.pay_to);
        match transfers[..] {
            [] => Err(settlement_mismatch_reason(PLACE, expected(), "none by the asset's contract")),
            [transfer] | [transfer, ..] if transfers.len() == 1 || mutant!("one-transfer-of-many") => {
                let value = <[u8; 32]>::try_from(&transfer.data.data[..]).ok().map(U256::from_be_bytes);
                if value == Some(self.amount) || mutant!("any-amount-settles") {
                    return Ok(());
                }
                let observed = value.map_or_else(|| "a malformed log".to_owned(), |value| value.to_string());
                Err(settlement_mismatch_reason(PLACE, expected(), observed))
            }
            _ => {
                let reason = unproven_reason(
                    PLACE,
                    format!("{} between the two, of which one is this payment's", transfers.len()),
                );
                Err(reason.expected(expected()).into())
            }
        }
    }

    fn check_authorization_log(&self, execution: &ExecutedTransaction, nonce: B256) -> Result<(), Box<Reason>> {
        const PLACE: &str = "log: AuthorizationUsed";
        let event = [AuthorizationUsed::SIGNATURE_HASH, self.payer.into_word()];
        let used: Vec<&Log> = self.asset_logs(execution, &event).collect();
        let is_this = |log: &Log| log.topics()[2] == nonce || mutant!("any-authorization-settles");
        let expected = || format!("nonce {nonce} of {}", self.payer);
        match used[..] {
            [one] if is_this(one) => Ok(()),
            [..] if !used.iter().any(|log| is_this(log)) => {
                Err(settlement_mismatch_reason(PLACE, expected(), "none by the asset's contract"))
            }
            [..] if mutant!("further-authorizations-settle") => Ok(()),
            _ => {
                let reason =
                    unproven_reason(PLACE, format!("{} of the payer, of which one is this payment's", used.len()));
                Err(reason.expected(expected()).into())
            }
        }
    }

    /// Checks that the Permit2 proxy was called with this permit. The proxy pays only the witness's `to`, and its logs
    /// do not identify the permit. If another contract used the permit, the result is unknown.
    fn check_permit2_proxy_call(
        &self,
        execution: &ExecutedTransaction,
        nonce: &U256,
        signature: &Bytes,
    ) -> Result<(), Box<Reason>> {
        if execution.to != Some(PERMIT2_PROXY) && !mutant!("any-proxy-settles") {
            let observed = execution.to.map_or_else(|| "a new contract".to_owned(), |to| to.to_string());
            return Err(unproven_reason("transaction: to", observed).expected(PERMIT2_PROXY.to_string()).into());
        }
        if mutant!("any-permit-settles") {
            return Ok(());
        }
        let call = proxy::decode_settle_call(&execution.input)
            .ok_or_else(|| unproven_reason("transaction: input", "not a call of the proxy that settles a payment"))?;
        require_equal("transaction: owner", &self.payer, &call.owner)?;
        require_equal("transaction: token", &self.asset, &call.permit.permitted.token)?;
        require_equal("transaction: amount", &self.amount, &call.permit.permitted.amount)?;
        require_equal("transaction: nonce", nonce, &call.permit.nonce)?;
        require_equal("transaction: witness.to", &self.pay_to, &call.witness.to)?;
        if call.signature == *signature {
            return Ok(());
        }
        Err(unproven_reason("transaction: signature", "another one than that of this payment").into())
    }

    /// The logs of the asset's contract that have three topics and start with `first`.
    fn asset_logs<'e>(&self, execution: &'e ExecutedTransaction, first: &[B256]) -> impl Iterator<Item = &'e Log> {
        let is_own = |log: &&Log| log.address == self.asset || mutant!("any-contract-logs");
        let is_such = move |log: &&Log| log.topics().len() == 3 && log.topics().starts_with(first);
        execution.logs.iter().filter(is_own).filter(is_such)
    }
}

fn require_equal<T: PartialEq + Display + ?Sized>(place: &str, expected: &T, observed: &T) -> Result<(), Box<Reason>> {
    if expected == observed || mutant!("purchases-contradict-themselves") {
        return Ok(());
    }
    Err(settlement_mismatch_reason(place, expected, observed))
}

fn settlement_mismatch_reason(place: &str, expected: impl Display, observed: impl Display) -> Box<Reason> {
    let reason = Reason::new(ReasonCode::SettlementMismatch).at_place(place).expected(expected.to_string());
    Box::new(reason.observed(excerpt_text(&observed.to_string())))
}

/// A fact at `place` that is unknown, with the cause.
pub fn unproven_reason(place: &str, why: impl Into<String>) -> Reason {
    Reason::new(ReasonCode::SettlementUnproven).at_place(place).observed(why)
}
