//! Decides when each endpoint is asked: a few at first, one more whenever one fails or stalls, and none once the
//! answers are conclusive.
//!
//! [`FanOutScheduler`] holds the rule and uses neither I/O nor a clock. [`RequestFanOut`] executes it. Headers,
//! records, calls and proofs are all fetched this way; each caller expresses its own stopping condition as a
//! [`FanOutNeed`].

#[cfg(test)]
mod tests;

use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

/// What is still missing, given the answers so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FanOutNeed {
    /// Nothing: the answers are conclusive.
    Nothing,
    Answers {
        /// How many of the received answers count towards the decision.
        in_sight: usize,
    },
    /// Like [`FanOutNeed::Answers`], but a stall with no candidate left is also an event, because the caller can then
    /// decide without the late answer.
    AnswersOrStall {
        /// How many of the received answers count towards the decision.
        in_sight: usize,
    },
    /// One answer that confirms those received. Another endpoint is asked only if all pending ones stall or all have
    /// answered.
    Confirmation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FanOutAction {
    Ask(usize),
    Wait,
    /// Wait for the next answer, and call [`FanOutScheduler::note_stall`] if none comes for a while.
    WaitForStall,
    /// Stop: the answers are conclusive, or no request is pending and no candidate is left.
    Stop,
}

/// The rule for asking. Each candidate is asked at most once, in order.
#[derive(Debug)]
pub(crate) struct FanOutScheduler {
    candidates: usize,
    asked: usize,
    under_way: usize,
    /// Target for the sum of counted answers and pending requests.
    width: usize,
    /// Number of candidates to ask regardless of pending requests.
    due: usize,
}

impl FanOutScheduler {
    /// Starts with `at_first` candidates and keeps `width` answers counted or pending.
    pub(crate) const fn new(candidates: usize, at_first: usize, width: usize) -> Self {
        Self { candidates, asked: 0, under_way: 0, width, due: at_first }
    }

    pub(crate) fn next_action(&mut self, need: FanOutNeed) -> FanOutAction {
        if need == FanOutNeed::Nothing {
            return FanOutAction::Stop;
        }
        if self.has_unasked_candidate() && (self.due > 0 || self.has_too_few_requests(need)) {
            let index = self.asked;
            self.asked += 1;
            self.under_way += 1;
            self.due = self.due.saturating_sub(1);
            return FanOutAction::Ask(index);
        }
        if self.under_way == 0 {
            return FanOutAction::Stop;
        }
        match need {
            FanOutNeed::AnswersOrStall { .. } => FanOutAction::WaitForStall,
            _ if self.has_unasked_candidate() => FanOutAction::WaitForStall,
            _ => FanOutAction::Wait,
        }
    }

    /// Registers a repeated request to an endpoint that was asked before.
    pub(crate) const fn note_repeated_request(&mut self) {
        self.under_way += 1;
    }

    pub(crate) const fn note_request_ended(&mut self) {
        self.under_way -= 1;
    }

    /// Registers that no request ended for a while. Returns whether another candidate is asked. If so, one more request
    /// stays pending for the rest of this query, even if the stalled one ends: it is unknown which requests still
    /// stall, and after one stall an extra request costs less than another wait.
    pub(crate) const fn note_stall(&mut self) -> bool {
        if !self.has_unasked_candidate() {
            return false;
        }
        self.due += 1;
        self.width += 1;
        true
    }

    pub(crate) const fn asked_count(&self) -> usize {
        self.asked
    }

    const fn has_unasked_candidate(&self) -> bool {
        self.asked < self.candidates
    }

    const fn has_too_few_requests(&self, need: FanOutNeed) -> bool {
        match need {
            FanOutNeed::Nothing => false,
            FanOutNeed::Answers { in_sight } | FanOutNeed::AnswersOrStall { in_sight } => {
                self.under_way == 0 || in_sight.saturating_add(self.under_way) < self.width
            }
            FanOutNeed::Confirmation => self.under_way == 0,
        }
    }
}

/// Pending requests, sent according to a [`FanOutScheduler`].
pub(crate) struct RequestFanOut<F> {
    plan: FanOutScheduler,
    under_way: FuturesUnordered<F>,
    /// How long to wait for an answer before that counts as a stall. `None`: forever.
    patience: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FanOutEvent<T> {
    Answer(T),
    /// A stall with no candidate left. Only with [`FanOutNeed::AnswersOrStall`].
    Stall,
    /// The end: the answers are conclusive, or no further answer can arrive.
    Stop,
}

impl<F: Future> RequestFanOut<F> {
    pub(crate) fn new(plan: FanOutScheduler, patience: Option<Duration>) -> Self {
        Self { plan, under_way: FuturesUnordered::new(), patience }
    }

    /// Asks candidates according to the plan until there is an event.
    pub(crate) async fn next_event(
        &mut self,
        need: FanOutNeed,
        mut ask: impl FnMut(usize) -> F,
    ) -> FanOutEvent<F::Output> {
        loop {
            let patience = match self.plan.next_action(need) {
                FanOutAction::Ask(index) => {
                    self.under_way.push(ask(index));
                    continue;
                }
                FanOutAction::Wait => None,
                FanOutAction::WaitForStall => self.patience,
                FanOutAction::Stop => return FanOutEvent::Stop,
            };
            let answer = match patience {
                Some(patience) => timeout(patience, self.under_way.next()).await,
                None => Ok(self.under_way.next().await),
            };
            match answer {
                Ok(Some(answer)) => {
                    self.plan.note_request_ended();
                    return FanOutEvent::Answer(answer);
                }
                Ok(None) => return FanOutEvent::Stop,
                Err(_) if self.plan.note_stall() => {}
                Err(_) => return FanOutEvent::Stall,
            }
        }
    }

    /// Adds a repeated request to an endpoint that was asked before.
    pub(crate) fn add_repeated_request(&mut self, request: F) {
        self.plan.note_repeated_request();
        self.under_way.push(request);
    }

    /// The next answer to a pending request. Asks no further candidate.
    pub(crate) async fn next_pending_answer(&mut self) -> Option<F::Output> {
        self.under_way.next().await
    }

    pub(crate) const fn asked_count(&self) -> usize {
        self.plan.asked_count()
    }
}

/// The first success among several candidates, and the failures before it.
pub(crate) struct FirstSuccessResult<T, E> {
    /// The index of the successful candidate and its result.
    pub(crate) success: Option<(usize, T)>,
    /// The indices of the candidates that failed, each with its error.
    pub(crate) failures: Vec<(usize, E)>,
}

/// Asks one candidate, and further ones if it stalls or fails, until one succeeds.
pub(crate) async fn ask_until_success<T, E, F>(
    candidates: usize,
    patience: Option<Duration>,
    ask: impl Fn(usize) -> F,
) -> FirstSuccessResult<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut fan_out = RequestFanOut::new(FanOutScheduler::new(candidates, 1, 1), patience);
    let mut failures = Vec::new();
    let numbered = |index| {
        let answer = ask(index);
        async move { (index, answer.await) }
    };
    while let FanOutEvent::Answer((index, answer)) =
        fan_out.next_event(FanOutNeed::Answers { in_sight: 0 }, numbered).await
    {
        match answer {
            Ok(success) => return FirstSuccessResult { success: Some((index, success)), failures },
            Err(failure) => failures.push((index, failure)),
        }
    }
    FirstSuccessResult { success: None, failures }
}
