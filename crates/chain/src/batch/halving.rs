//! Sends several queries at once, and in halves if the request fails. Performs no I/O itself.

use std::future::Future;

use futures_util::future::{BoxFuture, FutureExt as _, join};

use crate::failure::EndpointFailure;

/// The answer to each of `questions`, in order. `ask` answers all the queries that it gets or fails for all of them. If
/// one query may have caused the failure, both halves are asked concurrently, until that query fails alone. n queries
/// cause at most 2n - 1 requests.
pub(super) fn ask_bisecting_failures<'a, Q, A, F>(
    questions: &'a [Q],
    ask: &'a (impl Fn(&'a [Q]) -> F + Sync),
) -> BoxFuture<'a, Vec<Result<A, EndpointFailure>>>
where
    Q: Sync,
    A: Send + 'a,
    F: Future<Output = Result<Vec<Result<A, EndpointFailure>>, EndpointFailure>> + Send + 'a,
{
    let answered = async move {
        let failure = match ask(questions).await {
            Ok(answers) => return answers,
            Err(failure) => failure,
        };
        let is_split = questions.len() > 1 && failure.may_be_caused_by_one_query();
        if !is_split || clresolve_core::mutant!("batches-fail-whole") {
            return questions.iter().map(|_| Err(failure.clone())).collect();
        }
        let (first, second) = questions.split_at(questions.len() / 2);
        let (mut answers, others) = join(ask_bisecting_failures(first, ask), ask_bisecting_failures(second, ask)).await;
        answers.extend(others);
        answers
    };
    answered.boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    fn failure(why: &str) -> EndpointFailure {
        EndpointFailure::Unusable(why.to_owned())
    }

    /// Asks `count` queries through requests that fail if they include one of `culprits`. Returns the results and the
    /// size of each request.
    fn asked(count: usize, culprits: &[usize]) -> (Vec<Result<usize, EndpointFailure>>, Vec<usize>) {
        let questions: Vec<usize> = (0..count).collect();
        let requests = Mutex::new(Vec::new());
        let ask = |part: &[usize]| {
            requests.lock().unwrap().push(part.len());
            let fails = part.iter().any(|question| culprits.contains(question));
            let answer = if fails { Err(failure("culprit")) } else { Ok(part.iter().map(|q| Ok(q * 2)).collect()) };
            std::future::ready(answer)
        };
        let answers = ask_bisecting_failures(&questions, &ask).now_or_never().unwrap();
        (answers, requests.into_inner().unwrap())
    }

    #[test]
    fn one_request_answers_all_where_none_fails() {
        let (answers, requests) = asked(20, &[]);
        assert_eq!(answers, (0..20).map(|question| Ok(question * 2)).collect::<Vec<_>>());
        assert_eq!(requests, [20]);
    }

    #[test]
    fn one_culprit_is_found_in_a_request_or_two_for_each_halving() {
        let (answers, requests) = asked(20, &[13]);
        assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 1);
        assert_eq!(answers[13], Err(failure("culprit")));
        assert!(requests.len() <= 1 + 2 * 5, "{requests:?}");
    }

    /// Otherwise an endpoint that lacks a block would get one request for each query.
    #[test]
    fn a_failure_that_no_query_causes_is_one_of_all() {
        let requests = Mutex::new(0);
        let ask = |_: &[usize]| {
            *requests.lock().unwrap() += 1;
            std::future::ready(Err(EndpointFailure::NoBlock("unknown block".to_owned())))
        };
        let answers: Vec<Result<usize, EndpointFailure>> =
            ask_bisecting_failures(&[1, 2, 3], &ask).now_or_never().unwrap();
        assert_eq!(answers, vec![Err(EndpointFailure::NoBlock("unknown block".to_owned())); 3]);
        assert_eq!(requests.into_inner().unwrap(), 1);
    }

    #[test]
    fn single_failed_query_is_not_repeated() {
        assert_eq!(asked(1, &[0]), (vec![Err(failure("culprit"))], vec![1]));
        assert_eq!(asked(0, &[]).0, []);
    }

    proptest! {
        #[test]
        fn only_culprits_fail_and_the_requests_are_bounded(count in 1..40_usize, culprits in prop::collection::vec(0..40_usize, 0..40)) {
            let (answers, requests) = asked(count, &culprits);
            for (question, answer) in answers.iter().enumerate() {
                prop_assert_eq!(answer.is_err(), culprits.contains(&question));
            }
            prop_assert_eq!(answers.len(), count);
            prop_assert!(requests.len() < 2 * count);
        }
    }
}
