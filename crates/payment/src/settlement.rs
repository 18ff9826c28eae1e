//! Was this payment settled? What the chain must hold for that, by what was decided, permitted and answered, and whether
//! it does. The seller's reply proves nothing: it names the transaction to look at.

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
use clresolve_core::execution::Execution;
use clresolve_core::json::{Limits, parse};
use clresolve_core::mutant;
use clresolve_core::reading::{Block, Grade, Proof};
use clresolve_core::reason::{Code, Reason};
use clresolve_core::text::excerpt;
use clresolve_verdict::verdict::canonical_digest;

use crate::encoding::decode;
use crate::forms;
use crate::limits::MAX_TIMEOUT_SECONDS;
use crate::network::Network;
use crate::receipt::{Bought, Receipt};
use crate::signed::{MAX_CLOCK_SKEW, PERMIT2_PROXY, Permission, Permit};
use crate::terms::Version;

/// Longest decision that is read, in bytes: one about as many entries as terms may have takes half of it.
pub const MAX_DECISION_BYTES: usize = 64 * 1024;

/// For how long a payment that was permitted may stay open, in seconds: as long as any terms may allow. It may be settled so
/// much later than its decision ends, and than a receipt that its seller signed before it was settled.
const OPEN_SECONDS: u64 = MAX_TIMEOUT_SECONDS + MAX_CLOCK_SKEW;

/// Longest time that a decision holds for, in seconds: it ends with the terms that it allows, if not sooner.
const DECISION_SECONDS: u64 = MAX_TIMEOUT_SECONDS;

/// What the JSON text of a decision may use up.
const DECISION: Limits = Limits { bytes: MAX_DECISION_BYTES, levels: 16, values: 4096, name: 1024, paths: 256 * 1024 };

/// What that of a reply's header may use up. It may repeat a signed receipt.
const REPLY: Limits = Limits { bytes: 16 * 1024, levels: 16, values: 1024, name: 1024, paths: 128 * 1024 };

sol! {
    // ERC-20.
    event Transfer(address indexed from, address indexed to, uint256 value);
    // EIP-3009.
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
}

/// What is kept of a purchase beside request and receipt. Each part may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Purchase {
    /// The decision that the payment was made on.
    pub decision: Option<Decided>,
    /// The payment.
    pub payment: Option<Payment>,
    /// The header of the seller's reply (`PAYMENT-RESPONSE`, in version 1 `X-PAYMENT-RESPONSE`), as it came.
    pub settlement: Option<String>,
}

/// What is used of a decision that was kept, and allowed a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    id: String,
    digest: String,
    name: String,
    verb: String,
    price: DecidedPrice,
    payee: Address,
    url: Url,
    terms_digest: Option<String>,
    /// Whether several entries were allowed. Price and payee are those of the first.
    is_of_several: bool,
    /// Until when the last of the entries might be paid.
    valid_until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct DecidedPrice {
    network: Network,
    #[serde(deserialize_with = "forms::read_address")]
    asset: Address,
    #[serde(deserialize_with = "forms::read_amount")]
    amount: U256,
}

/// What is read of a decision's document. One that allows nothing may lack price, payee or route.
#[derive(Deserialize)]
struct DecisionForm {
    schema: String,
    id: String,
    name: String,
    verb: String,
    abort: bool,
    entries: Vec<EntryForm>,
    valid_until: Option<Timestamp>,
    terms_digest: Option<String>,
    price: Option<DecidedPrice>,
    payee: Option<PayeeForm>,
    route: Option<RouteForm>,
}

#[derive(Deserialize)]
struct EntryForm {
    valid_until: Option<Timestamp>,
}

#[derive(Deserialize)]
struct PayeeForm {
    #[serde(deserialize_with = "forms::read_address")]
    address: Address,
}

#[derive(Deserialize)]
struct RouteForm {
    url: String,
}

impl Decided {
    /// Reads the JSON document of a decision.
    ///
    /// # Errors
    /// Why it is no decision that allows a payment, in words.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let document = parse(bytes, DECISION).map_err(|error| excerpt(&error.to_string()))?;
        let form = DecisionForm::deserialize(&document).map_err(|error| excerpt(&error.to_string()))?;
        let DecisionForm { schema, id, name, verb, abort, entries, valid_until, terms_digest, price, payee, route } =
            form;
        if schema != crate::decision::SCHEMA {
            return Err(format!("expected a document of {}", crate::decision::SCHEMA));
        }
        let url = route.and_then(|route| Url::parse(&route.url).ok());
        match (abort, price, payee, url) {
            (false, Some(price), Some(PayeeForm { address: payee }), Some(url)) => {
                let (digest, is_of_several) = (canonical_digest(&document), entries.len() > 1);
                let ends = entries.iter().filter_map(|entry| entry.valid_until.or(valid_until));
                let valid_until = ends.max().or(valid_until);
                Ok(Self { id, digest, name, verb, price, payee, url, terms_digest, is_of_several, valid_until })
            }
            _ => Err("it does not allow a payment, so nothing was bought on it".to_owned()),
        }
    }

    /// Compares what was permitted with what was decided. Of several entries the document tells only the first.
    fn compare<T: PartialEq + Display>(&self, place: &str, permitted: &T, decided: &T) -> Result<(), Box<Reason>> {
        let compared = compare(place, permitted, decided);
        if self.is_of_several && compared.is_err() {
            let cause = format!("{decided}, and the decision was about several entries, of which it tells the first");
            return Err(unproven(place, cause).expected(permitted.to_string()).into());
        }
        compared
    }

    /// When it was made at the earliest: a decision tells when it ends alone.
    fn earliest(&self) -> Option<Timestamp> {
        let longest = SignedDuration::from_secs((DECISION_SECONDS + MAX_CLOCK_SKEW).cast_signed());
        Some(self.valid_until?.checked_sub(longest).unwrap_or(Timestamp::MIN))
    }

    /// Why a payment that this block has settled was not made on the decision: it had ended by then, or was not made
    /// yet.
    fn objection_at(&self, block: &Block) -> Option<Box<Reason>> {
        const PLACE: &str = "decision: /valid_until";
        let Some((first, end)) = self.earliest().zip(self.valid_until) else {
            return Some(unproven(PLACE, "it does not say until when it holds").into());
        };
        let last = end.checked_add(SignedDuration::from_secs(OPEN_SECONDS.cast_signed())).unwrap_or(Timestamp::MAX);
        let is_early = block.timestamp < first && !mutant!("decisions-about-what-was-settled");
        let is_late = block.timestamp > last && !mutant!("decisions-never-end");
        (is_early || is_late).then(|| mismatch(PLACE, format!("settled from {first} to {last}"), block.timestamp))
    }
}

/// A payment that a client permitted, by its header (`PAYMENT-SIGNATURE`, in version 1 `X-PAYMENT`). Whether the payer has
/// signed it is the asset's own question: only what the chain did with it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Payment(Permission);

impl Payment {
    /// Reads the header.
    ///
    /// # Errors
    /// Why it permits no payment that could be looked for, in words.
    pub fn of_header(header: &str) -> Result<Self, String> {
        let permission = Permission::of_header(header);
        permission.map(Self).map_err(|reason| match reason.observed {
            Some(observed) => format!("{} {observed}", reason.message),
            None => reason.message,
        })
    }
}

/// What a seller's reply says of a settlement.
struct Answer {
    transaction: B256,
}

/// What the chain must hold: one transfer, by the permission of this payment, in this transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Due {
    /// The network.
    pub network: Network,
    /// The transaction that the seller's reply names.
    pub transaction: B256,
    /// The asset's contract.
    pub asset: Address,
    /// Who pays.
    pub payer: Address,
    /// Who is paid.
    pub pay_to: Address,
    /// Atomic units, in decimal.
    #[serde(serialize_with = "forms::in_decimal")]
    pub amount: U256,
    /// By what.
    #[serde(flatten)]
    pub permit: Permit,
}

/// How it is known what the chain holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ShownBy {
    /// Endpoints say so.
    Reported,
    /// The logs stand in the receipts trie of a block that endpoints have.
    Proven,
}

/// What was seen of a transaction on its chain, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Sight {
    /// Why it does not show the settlement; `None` where it does.
    pub objection: Option<Box<Reason>>,
    /// How it is known.
    pub shown_by: ShownBy,
    /// The block that holds the transaction.
    pub block: Block,
    /// How far endpoints vouch for the block, and for what they report.
    pub proof: Proof,
}

impl Sight {
    /// How far it is vouched for, as names are: logs that are proven against a header count as state that is.
    pub const fn vouched(&self) -> Proof {
        match self.shown_by {
            ShownBy::Proven => Proof { grade: Grade::StateProof, ..self.proof },
            ShownBy::Reported => self.proof,
        }
    }
}

/// Whether a payment was settled, in its written form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settlement {
    /// How the settlement is shown; `None` where it is not.
    pub shown_by: Option<ShownBy>,
    /// What had to be shown, where that is known.
    pub due: Option<Due>,
    /// The block that holds the transaction, where one was seen.
    pub block: Option<Block>,
    /// How far endpoints vouch for it.
    pub proof: Option<Proof>,
    /// `id` of the decision, where one was given.
    pub decision: Option<String>,
    /// What stands against it.
    #[serde(skip)]
    pub objection: Option<Box<Reason>>,
}

impl Settlement {
    /// Writes down what was found out about a purchase.
    pub fn of(purchase: &Purchase, due: Option<Due>, seen: Result<Sight, Box<Reason>>) -> Self {
        let decision = purchase.decision.as_ref().map(|decision| decision.id.clone());
        match seen {
            Ok(Sight { objection, shown_by, block, proof }) => {
                let decided = purchase.decision.as_ref();
                let objection = objection.or_else(|| decided.and_then(|decided| decided.objection_at(&block)));
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

    /// How it is shown, in words.
    pub fn shown(&self) -> Option<String> {
        let (by, proof) = (self.shown_by?, self.proof?);
        let word = match by {
            ShownBy::Reported => "reported",
            ShownBy::Proven => "proven in a block reported",
        };
        let (network, block) = (&self.due.as_ref()?.network, self.block?.number);
        Some(format!("{word} by {} of {} endpoints, block {block} of {network}", proof.agreed, proof.asked))
    }

    /// When a payment that was settled then was permitted at the earliest. `None` where no block was seen.
    fn earliest(&self) -> Option<Timestamp> {
        let open = SignedDuration::from_secs(OPEN_SECONDS.cast_signed());
        Some(self.block?.timestamp.checked_sub(open).unwrap_or(Timestamp::MIN))
    }

    /// What stands against one of x402's own receipts: that it names another network, payer or transaction, or is older
    /// than the block of the settlement. `None` where nothing does, or it is not known what had to be shown.
    pub fn against_receipt(&self, receipt: &Receipt) -> Option<Box<Reason>> {
        let due = self.due.as_ref().filter(|_| !mutant!("receipts-of-any-transaction"))?;
        let Receipt { network, payer, transaction, issued_at, .. } = receipt;
        if network != due.network.as_str() {
            return Some(mismatch("/payload/network", &due.network, network));
        }
        match forms::address(payer) {
            Some(payer) if payer == due.payer => {}
            Some(_) => return Some(mismatch("/payload/payer", due.payer, payer)),
            None => {
                let cause = format!("{}, which is no address to compare", excerpt(payer));
                return Some(unproven("/payload/payer", cause).expected(due.payer.to_string()).into());
            }
        }
        if !transaction.is_empty() && forms::word(transaction) != Some(due.transaction) {
            return Some(mismatch("/payload/transaction", due.transaction, transaction));
        }
        let earliest = u64::try_from(self.earliest()?.as_second()).unwrap_or_default();
        let is_older = *issued_at < earliest && !mutant!("receipts-before-their-payment");
        is_older.then(|| mismatch("/payload/issuedAt", format!("no earlier than {earliest}"), issued_at))
    }
}

impl Purchase {
    /// Reads what was kept: a decision's document, and two headers as they were sent and came.
    ///
    /// # Errors
    /// In words: whether the decision or the payment header cannot be read, and why. The seller's header is never an
    /// error, however broken.
    pub fn read(decision: Option<&[u8]>, payment: Option<&str>, settlement: Option<String>) -> Result<Self, String> {
        let decision = decision.map(Decided::from_bytes).transpose().map_err(|why| format!("decision: {why}"))?;
        let payment = payment.map(Payment::of_header).transpose().map_err(|why| format!("payment: {why}"))?;
        Ok(Self { decision, payment, settlement })
    }

    /// Whether it is asked that the payment was settled. A decision alone asks for nothing of the chain.
    pub const fn asks_for_settlement(&self) -> bool {
        self.payment.is_some() || self.settlement.is_some()
    }

    /// What one of x402's own receipts is held against, where there is a decision.
    pub fn bought(&self) -> Option<Bought> {
        let Decided { id, digest, name, verb, price, url, is_of_several, .. } = self.decision.clone()?;
        let decision = if mutant!("decisions-state-their-digest") { id } else { digest };
        let permitted = self.payment.as_ref().map(|Payment(payment)| payment);
        let network = if is_of_several { permitted.map(|it| it.network.clone()) } else { Some(price.network) };
        Some(Bought { decision, name, verb, network, url, payer: permitted.map(|it| it.payer) })
    }

    /// Before this nothing was bought: the decision was made, and the payment permitted that was settled, later. `None`
    /// where neither says so.
    pub fn earliest(&self, settlement: Option<&Settlement>) -> Option<Timestamp> {
        let decided = self.decision.as_ref().and_then(Decided::earliest);
        decided.into_iter().chain(settlement.and_then(Settlement::earliest)).max()
    }

    /// Who is paid on which network: by what is due, else, where there is no payment, by a decision about one entry.
    pub fn paid_to<'a>(&'a self, due: Option<&'a Due>) -> Option<(&'a Network, Address)> {
        let decided = self.decision.as_ref().filter(|decided| self.payment.is_none() && !decided.is_of_several);
        due.map(|due| (&due.network, due.pay_to))
            .or_else(|| decided.map(|decided| (&decided.price.network, decided.payee)))
    }

    /// What the chain must hold for this purchase from the agent `name`, where all that is known of it agrees.
    ///
    /// # Errors
    /// `settlement-mismatch` where two parts differ, `settlement-unproven` where one is missing.
    pub fn due(&self, name: &str) -> Result<Due, Box<Reason>> {
        if let Some(decision) = &self.decision {
            compare("decision: /name", name, &decision.name)?;
        }
        let Some(Payment(payment)) = &self.payment else {
            return Err(unproven("payment", "not given, so that any transaction could be shown").into());
        };
        payment.check_accepted()?;
        if let Some(decided @ Decided { price, payee, .. }) = &self.decision {
            decided.compare("decision: /price/network", &payment.network, &price.network)?;
            decided.compare("decision: /price/amount", &payment.amount, &price.amount)?;
            decided.compare("decision: /payee/address", &payment.pay_to, payee)?;
        }
        let asset = match (payment.asset, &self.decision) {
            (Some(own), Some(decided)) => {
                decided.compare("decision: /price/asset", &own, &decided.price.asset)?;
                own
            }
            (Some(asset), None) => asset,
            (None, Some(decided)) if !decided.is_of_several => decided.price.asset,
            (None, Some(_)) => {
                let cause = "the decision was about several entries, and the payment does not say which asset it pays";
                return Err(unproven("payment", cause).into());
            }
            (None, None) => {
                return Err(unproven("payment", "neither it nor a decision says which asset was paid").into());
            }
        };
        let Some(header) = &self.settlement else {
            return Err(unproven("settlement", "not given, so that no transaction is known").into());
        };
        let answer = Answer::of_header(header, payment)?;
        Ok(Due {
            network: payment.network.clone(),
            transaction: answer.transaction,
            asset,
            payer: payment.payer,
            pay_to: payment.pay_to,
            amount: payment.amount,
            permit: payment.permit.clone(),
        })
    }
}

impl Permission {
    /// Whether what is permitted is what the header says that it accepts.
    fn check_accepted(&self) -> Result<(), Box<Reason>> {
        let Some(accepted) = self.accepted.as_ref().filter(|_| !mutant!("accepted-is-not-permitted")) else {
            return Ok(());
        };
        compare("payment: /accepted/payTo", &self.pay_to, &accepted.pay_to)?;
        compare("payment: /accepted/amount", &self.amount, &accepted.amount)?;
        match &self.asset {
            Some(asset) => compare("payment: /accepted/asset", asset, &accepted.asset),
            None => Ok(()),
        }
    }
}

impl Answer {
    /// The reply's header, where it is about this payment.
    fn of_header(header: &str, payment: &Permission) -> Result<Self, Box<Reason>> {
        let unreadable = |cause: String| unproven("settlement", format!("cannot be read: {cause}"));
        let answer = decode(header, REPLY).map_err(|error| unreadable(excerpt(&error.to_string())))?;
        let text = |member: &str| answer.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
        let shown = |member: &str| answer.get(member).map_or_else(|| "nothing".to_owned(), Value::to_string);
        if answer.get("success") != Some(&Value::Bool(true)) {
            return Err(mismatch("settlement: /success", true, shown("success")));
        }
        let network = text("network").and_then(|network| match payment.version {
            Version::V1 => Network::of_v1(network),
            Version::V2 => network.parse().ok(),
        });
        if network.as_ref() != Some(&payment.network) {
            return Err(mismatch("settlement: /network", &payment.network, shown("network")));
        }
        if let Some(payer) = text("payer")
            && forms::address(payer) != Some(payment.payer)
        {
            return Err(mismatch("settlement: /payer", payment.payer, payer));
        }
        if let Some(amount) = text("amount")
            && forms::amount(amount) != Some(payment.amount)
        {
            return Err(mismatch("settlement: /amount", payment.amount, amount));
        }
        let transaction = text("transaction").and_then(forms::word);
        let transaction = transaction.ok_or_else(|| unreadable("it names no transaction".to_owned()))?;
        Ok(Self { transaction })
    }
}

impl Due {
    /// SHA-256 of its JSON form: of two that differ anywhere it is another.
    pub fn digest(&self) -> Digest {
        Digest::of(&serde_json::to_vec(self).expect("it has a JSON form: its keys are strings"))
    }

    /// Whether the logs of the transaction show it. A call of Permit2's proxy is known by the transaction, of which no
    /// receipt says anything.
    pub const fn is_shown_by_logs(&self) -> bool {
        matches!(self.permit, Permit::Eip3009 { .. })
    }

    /// What is seen of the transaction in the chain up to its finalized block `head`. `is_receipt_proven` says that its logs
    /// stand in the receipts trie of its block.
    ///
    /// # Errors
    /// `settlement-unproven`, where no block holds it.
    pub fn seen(
        &self,
        head: &Block,
        execution: Option<&Execution>,
        proof: &Proof,
        is_receipt_proven: bool,
    ) -> Result<Sight, Box<Reason>> {
        let Some(execution) = execution else {
            let (network, number) = (&self.network, head.number);
            let observed =
                format!("the endpoints of {network} know no such transaction up to finalized block {number}");
            return Err(unproven("transaction", observed).expected(self.transaction.to_string()).into());
        };
        let shown_by = if is_receipt_proven && self.is_shown_by_logs() { ShownBy::Proven } else { ShownBy::Reported };
        let objection = self.check(execution).err();
        Ok(Sight { objection, shown_by, block: execution.block, proof: *proof })
    }

    /// Whether the transaction holds what is due: exactly one transfer of the asset from payer to payee, of the amount, by
    /// the permission of this payment and no other. What other contracts log never counts.
    ///
    /// # Errors
    /// `settlement-mismatch`, or `settlement-unproven` where it holds more than one such transfer or permission.
    pub fn check(&self, execution: &Execution) -> Result<(), Box<Reason>> {
        compare("transaction", &self.transaction, &execution.transaction)?;
        if !execution.has_succeeded && !mutant!("failed-transactions-settle") {
            return Err(mismatch("transaction: status", "success", "it was reverted"));
        }
        self.check_transfer(execution)?;
        match &self.permit {
            Permit::Eip3009 { nonce } => self.check_authorization(execution, *nonce),
            Permit::Permit2 { nonce, signature } => self.check_proxy(execution, nonce, signature),
        }
    }

    fn check_transfer(&self, execution: &Execution) -> Result<(), Box<Reason>> {
        const PLACE: &str = "log: Transfer";
        let topics = [Transfer::SIGNATURE_HASH, self.payer.into_word(), self.pay_to.into_word()];
        let transfers: Vec<&Log> = self.logs(execution, &topics).collect();
        let expected = || format!("{} from {} to {}", self.amount, self.payer, self.pay_to);
        match transfers[..] {
            [] => Err(mismatch(PLACE, expected(), "none by the asset's contract")),
            [transfer] | [transfer, ..] if transfers.len() == 1 || mutant!("one-transfer-of-many") => {
                let value = <[u8; 32]>::try_from(&transfer.data.data[..]).ok().map(U256::from_be_bytes);
                if value == Some(self.amount) || mutant!("any-amount-settles") {
                    return Ok(());
                }
                let observed = value.map_or_else(|| "a malformed log".to_owned(), |value| value.to_string());
                Err(mismatch(PLACE, expected(), observed))
            }
            _ => {
                let reason =
                    unproven(PLACE, format!("{} between the two, of which one is this payment's", transfers.len()));
                Err(reason.expected(expected()).into())
            }
        }
    }

    fn check_authorization(&self, execution: &Execution, nonce: B256) -> Result<(), Box<Reason>> {
        const PLACE: &str = "log: AuthorizationUsed";
        let event = [AuthorizationUsed::SIGNATURE_HASH, self.payer.into_word()];
        let used: Vec<&Log> = self.logs(execution, &event).collect();
        let is_this = |log: &Log| log.topics()[2] == nonce || mutant!("any-authorization-settles");
        let expected = || format!("nonce {nonce} of {}", self.payer);
        match used[..] {
            [one] if is_this(one) => Ok(()),
            [..] if !used.iter().any(|log| is_this(log)) => {
                Err(mismatch(PLACE, expected(), "none by the asset's contract"))
            }
            [..] if mutant!("further-authorizations-settle") => Ok(()),
            _ => {
                let reason = unproven(PLACE, format!("{} of the payer, of which one is this payment's", used.len()));
                Err(reason.expected(expected()).into())
            }
        }
    }

    /// The proxy of Permit2 was called with this permit. It pays the witness's `to` alone, and leaves no log that names the
    /// permit. What another contract did with the permit is not known.
    fn check_proxy(&self, execution: &Execution, nonce: &U256, signature: &Bytes) -> Result<(), Box<Reason>> {
        if execution.to != Some(PERMIT2_PROXY) && !mutant!("any-proxy-settles") {
            let observed = execution.to.map_or_else(|| "a new contract".to_owned(), |to| to.to_string());
            return Err(unproven("transaction: to", observed).expected(PERMIT2_PROXY.to_string()).into());
        }
        if mutant!("any-permit-settles") {
            return Ok(());
        }
        let call = proxy::settled(&execution.input)
            .ok_or_else(|| unproven("transaction: input", "it is no call of the proxy that settles a payment"))?;
        compare("transaction: owner", &self.payer, &call.owner)?;
        compare("transaction: token", &self.asset, &call.permit.permitted.token)?;
        compare("transaction: amount", &self.amount, &call.permit.permitted.amount)?;
        compare("transaction: nonce", nonce, &call.permit.nonce)?;
        compare("transaction: witness.to", &self.pay_to, &call.witness.to)?;
        if call.signature == *signature {
            return Ok(());
        }
        Err(unproven("transaction: signature", "another one than that of this payment").into())
    }

    /// The logs of the asset's contract with three topics, of which these are the first.
    fn logs<'e>(&self, execution: &'e Execution, first: &[B256]) -> impl Iterator<Item = &'e Log> {
        let is_own = |log: &&Log| log.address == self.asset || mutant!("any-contract-logs");
        let is_such = move |log: &&Log| log.topics().len() == 3 && log.topics().starts_with(first);
        execution.logs.iter().filter(is_own).filter(is_such)
    }
}

fn compare<T: PartialEq + Display + ?Sized>(place: &str, expected: &T, observed: &T) -> Result<(), Box<Reason>> {
    if expected == observed || mutant!("purchases-contradict-themselves") {
        return Ok(());
    }
    Err(mismatch(place, expected, observed))
}

/// What is contradicted, with its place.
fn mismatch(place: &str, expected: impl Display, observed: impl Display) -> Box<Reason> {
    let reason = Reason::new(Code::SettlementMismatch).at(place).expected(expected.to_string());
    Box::new(reason.observed(excerpt(&observed.to_string())))
}

/// What is not known, and why.
pub fn unproven(place: &str, why: impl Into<String>) -> Reason {
    Reason::new(Code::SettlementUnproven).at(place).observed(why)
}
