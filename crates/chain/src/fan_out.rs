//! Which endpoints are asked when: a few at first, one more for each that fails or stalls, none once the answers decide.
//!
//! [`Plan`] is the rule, without I/O and without a clock. [`FanOut`] carries it out. Headers, records, calls and proofs
//! are all fetched through it; what decides differs and is passed in as a [`Need`].

#[cfg(test)]
mod tests;

use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

/// What the answers so far leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: the answers decide.
    Nothing,
    /// More answers. `in_sight` of those received count towards the decision.
    Answers {
        /// Number of answers that count.
        in_sight: usize,
    },
    /// The same. A stall with no candidate left is an event too, since the caller then does without a late answer.
    AnswersOrStall {
        /// Number of answers that count.
        in_sight: usize,
    },
    /// One answer that confirms those received. Another endpoint is asked only where all stall or all have answered.
    Confirmation,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ask the candidate with this index.
    Ask(usize),
    /// Wait for the next answer.
    Wait,
    /// Wait for the next answer, and call [`Plan::stalled`] if none comes for a while.
    WaitForStall,
    /// Stop: the answers decide, or no request is under way and no candidate is left.
    Stop,
}

/// The rule. Candidates are asked in their order, each at most once.
#[derive(Debug)]
pub(crate) struct Plan {
    candidates: usize,
    /// Number of candidates that were asked.
    asked: usize,
    under_way: usize,
    /// Answers that count and requests under way shall be this many together.
    width: usize,
    /// Candidates to ask whatever else is under way.
    due: usize,
}

impl Plan {
    /// Asks `at_first` candidates at once and keeps `width` answers in sight or under way.
    pub(crate) const fn new(candidates: usize, at_first: usize, width: usize) -> Self {
        Self { candidates, asked: 0, under_way: 0, width, due: at_first }
    }

    /// What to do next.
    pub(crate) fn next(&mut self, need: Need) -> Action {
        if need == Need::Nothing {
            return Action::Stop;
        }
        if self.has_candidate() && (self.due > 0 || self.is_short(need)) {
            let index = self.asked;
            self.asked += 1;
            self.under_way += 1;
            self.due = self.due.saturating_sub(1);
            return Action::Ask(index);
        }
        if self.under_way == 0 {
            return Action::Stop;
        }
        match need {
            Need::AnswersOrStall { .. } => Action::WaitForStall,
            _ if self.has_candidate() => Action::WaitForStall,
            _ => Action::Wait,
        }
    }

    /// An endpoint that was asked before is asked again.
    pub(crate) const fn asked_again(&mut self) {
        self.under_way += 1;
    }

    /// A request ended.
    pub(crate) const fn ended(&mut self) {
        self.under_way -= 1;
    }

    /// No request ended for a while. Returns whether another candidate is asked. If so, one more request is kept under way
    /// from now on, since a stalled one may never end. That stays so when it ends after all: which requests still stall is
    /// not known then, and a query that has stalled once had better ask one endpoint too many than wait once more. The
    /// width is that of one query, so the next one begins anew.
    pub(crate) const fn stalled(&mut self) -> bool {
        if !self.has_candidate() {
            return false;
        }
        self.due += 1;
        self.width += 1;
        true
    }

    /// Number of candidates that were asked.
    pub(crate) const fn asked(&self) -> usize {
        self.asked
    }

    const fn has_candidate(&self) -> bool {
        self.asked < self.candidates
    }

    const fn is_short(&self, need: Need) -> bool {
        match need {
            Need::Nothing => false,
            Need::Answers { in_sight } | Need::AnswersOrStall { in_sight } => {
                self.under_way == 0 || in_sight.saturating_add(self.under_way) < self.width
            }
            Need::Confirmation => self.under_way == 0,
        }
    }
}

/// Requests under way, carried out as the [`Plan`] says.
pub(crate) struct FanOut<F> {
    plan: Plan,
    under_way: FuturesUnordered<F>,
    /// How long to wait for an answer until it counts as a stall. `None`: without limit.
    patience: Option<Duration>,
}

/// The result of waiting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<T> {
    /// An answer.
    Answer(T),
    /// A stall with no candidate left. Only under [`Need::AnswersOrStall`].
    Stall,
    /// The end: the answers decide, or no answer can come any more.
    Stop,
}

impl<F: Future> FanOut<F> {
    pub(crate) fn new(plan: Plan, patience: Option<Duration>) -> Self {
        Self { plan, under_way: FuturesUnordered::new(), patience }
    }

    /// Asks candidates as the plan says, until there is an event.
    pub(crate) async fn next(&mut self, need: Need, mut ask: impl FnMut(usize) -> F) -> Event<F::Output> {
        loop {
            let patience = match self.plan.next(need) {
                Action::Ask(index) => {
                    self.under_way.push(ask(index));
                    continue;
                }
                Action::Wait => None,
                Action::WaitForStall => self.patience,
                Action::Stop => return Event::Stop,
            };
            let answer = match patience {
                Some(patience) => timeout(patience, self.under_way.next()).await,
                None => Ok(self.under_way.next().await),
            };
            match answer {
                Ok(Some(answer)) => {
                    self.plan.ended();
                    return Event::Answer(answer);
                }
                Ok(None) => return Event::Stop,
                Err(_) if self.plan.stalled() => {}
                Err(_) => return Event::Stall,
            }
        }
    }

    /// Adds a request to an endpoint that was asked before.
    pub(crate) fn ask_again(&mut self, request: F) {
        self.plan.asked_again();
        self.under_way.push(request);
    }

    /// The next answer of a request under way, with nothing else asked.
    pub(crate) async fn drain(&mut self) -> Option<F::Output> {
        self.under_way.next().await
    }

    /// Number of candidates that were asked.
    pub(crate) const fn asked(&self) -> usize {
        self.plan.asked()
    }
}

/// The first success of several candidates, and the failures that came before it.
pub(crate) struct First<T, E> {
    /// The index of the candidate, and what it gave.
    pub(crate) success: Option<(usize, T)>,
    /// Indices of the candidates that failed, with the cause.
    pub(crate) failures: Vec<(usize, E)>,
}

/// Asks one candidate, and others where it stalls or fails, until one succeeds.
pub(crate) async fn first<T, E, F>(
    candidates: usize,
    patience: Option<Duration>,
    ask: impl Fn(usize) -> F,
) -> First<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut fan_out = FanOut::new(Plan::new(candidates, 1, 1), patience);
    let mut failures = Vec::new();
    let numbered = |index| {
        let answer = ask(index);
        async move { (index, answer.await) }
    };
    while let Event::Answer((index, answer)) = fan_out.next(Need::Answers { in_sight: 0 }, numbered).await {
        match answer {
            Ok(success) => return First { success: Some((index, success)), failures },
            Err(failure) => failures.push((index, failure)),
        }
    }
    First { success: None, failures }
}
