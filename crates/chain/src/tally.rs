//! Counting what endpoints say: which block, and which word about it, enough operators vouch for. No I/O.
//!
//! Honest endpoints straddle epochs, so what counts is the highest block that enough of them have finalized; those that
//! are further on are asked again about that block. A word counts once per operator.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::endpoint::Failure;
use clresolve_core::reading::Block;
use clresolve_state::HashedHeader;
use clresolve_state::contracts::Findings;

/// How far apart the finalized blocks of honest endpoints are, at most: three epochs. An agreement on an older block
/// waits for the endpoints that have not answered yet, so that one that is stuck does not drag the others back.
const STRADDLE: SignedDuration = SignedDuration::from_mins(20);

/// How often one endpoint is asked again about a block of others. Two are enough for honest ones; more only serve an
/// endpoint that makes blocks up.
const MAX_AGAIN: usize = 4;

/// What an endpoint says about a name in one block. Where the word is computed from a proven state and not told, only
/// the block is agreed on, and every word is the same.
pub(super) trait Word: PartialEq {
    /// Whether the name's resolver is the same and says the same, whatever the block.
    fn answers_alike(&self, other: &Self) -> bool;
}

impl Word for Findings {
    fn answers_alike(&self, other: &Self) -> bool {
        self.answer_alike(other)
    }
}

/// A header is the whole word where what stands in its block is computed here.
impl Word for HashedHeader {
    fn answers_alike(&self, other: &Self) -> bool {
        self == other
    }
}

/// What was said so far.
pub(super) struct Tally<W> {
    /// Operators that must say the same.
    agree: usize,
    voices: Vec<Voice<W>>,
}

/// What one endpoint said.
struct Voice<W> {
    /// The endpoint's number.
    seat: usize,
    operator: String,
    /// Its own newest block of the kind that was asked for.
    own: Block,
    words: Vec<(Block, W)>,
    /// Blocks that it has in place of those it was asked about.
    instead: Vec<Block>,
    /// Blocks of others that it was asked about.
    again: Vec<Block>,
    /// Those of them for which nothing came.
    silent: Vec<Block>,
    latest: Option<Result<W, Failure>>,
}

/// A block and a word that enough operators vouch for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agreement {
    pub(super) block: Block,
    /// The endpoints that say so.
    pub(super) seats: Vec<usize>,
    /// The endpoint whose word on the newest block counts: enough say the same, or somebody objects. `None` where the
    /// newest block was not asked for.
    pub(super) latest: Option<usize>,
}

/// Where the count stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing that comes can be better.
    Settled(Agreement),
    /// This will do if nothing better comes from those that are under way.
    Provisional(Agreement, Lacking),
    /// No agreement yet.
    Open {
        /// Most operators that say one thing.
        most: usize,
        /// Endpoints to ask again, about these blocks.
        again: Vec<(usize, Block)>,
    },
}

/// What a provisional agreement lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacking {
    /// Youth: an endpoint has finalized a much newer block.
    Youth,
    /// A clear word on the newest block.
    Latest,
}

impl<W: Word> Tally<W> {
    pub(super) const fn new(agree: usize) -> Self {
        Self { agree, voices: Vec::new() }
    }

    /// An endpoint's first answer.
    pub(super) fn hear(
        &mut self,
        seat: usize,
        operator: &str,
        own: Block,
        word: W,
        latest: Option<Result<W, Failure>>,
    ) {
        self.voices.push(Voice {
            seat,
            operator: operator.to_owned(),
            own,
            words: vec![(own, word)],
            instead: Vec::new(),
            again: Vec::new(),
            silent: Vec::new(),
            latest,
        });
    }

    /// Notes that an endpoint is being asked about a block of others.
    pub(super) fn ask_again(&mut self, seat: usize, block: Block) {
        self.with(seat, |voice| voice.again.push(block));
    }

    /// The endpoint has that block too, and says this about it.
    pub(super) fn attest(&mut self, seat: usize, block: Block, word: W) {
        self.with(seat, |voice| voice.words.push((block, word)));
    }

    /// The endpoint has another block at that height.
    pub(super) fn deny(&mut self, seat: usize, instead: Block) {
        self.with(seat, |voice| voice.instead.push(instead));
    }

    /// The endpoint says nothing about that block.
    pub(super) fn keep_silent(&mut self, seat: usize, block: Block) {
        self.with(seat, |voice| voice.silent.push(block));
    }

    /// Whether an endpoint has not said anything yet about a block of others.
    pub(super) fn awaits(&self) -> bool {
        self.voices.iter().any(|voice| voice.awaited().next().is_some())
    }

    /// Counts on none of those that are still to say something about a block of others: a lower block may do. What comes
    /// from them after all is heard.
    pub(super) fn stop_awaiting(&mut self) {
        for voice in &mut self.voices {
            let awaited: Vec<Block> = voice.awaited().copied().collect();
            voice.silent.extend(awaited);
        }
    }

    fn with(&mut self, seat: usize, change: impl FnOnce(&mut Voice<W>)) {
        if let Some(voice) = self.voices.iter_mut().find(|voice| voice.seat == seat) {
            change(voice);
        }
    }

    /// Where the count stands.
    pub(super) fn standing(&self) -> Standing {
        let camps = self.camps();
        let Some(camp) = self.winner(&camps) else {
            let most = camps.iter().map(|camp| self.operators(&camp.seats)).max().unwrap_or(0);
            return Standing::Open { most, again: self.to_ask_again(&camps) };
        };
        let (latest, clear) = self.latest(camp);
        let agreement = Agreement { block: camp.block, seats: camp.seats.clone(), latest };
        if self.is_old(&camp.block) {
            return Standing::Provisional(agreement, Lacking::Youth);
        }
        if clear { Standing::Settled(agreement) } else { Standing::Provisional(agreement, Lacking::Latest) }
    }

    /// What the endpoint says about the block.
    pub(super) fn word(&self, seat: usize, block: &Block) -> Option<&W> {
        self.voice(seat)?.word(block)
    }

    /// What the endpoint says about the newest block.
    pub(super) fn latest_word(&self, seat: usize) -> Option<&Result<W, Failure>> {
        self.voice(seat)?.latest.as_ref()
    }

    /// The endpoint whose word on the newest block is not `word`, or is missing, where too few endpoints say anything.
    pub(super) fn objection(&self, word: &W) -> Option<usize> {
        let of = |objects: fn(&Result<W, Failure>, &W) -> bool| {
            let voice = self.voices.iter().find(|voice| voice.latest.as_ref().is_some_and(|l| objects(l, word)));
            voice.map(|voice| voice.seat)
        };
        of(|latest, word| latest.as_ref().is_ok_and(|latest| !latest.answers_alike(word)))
            .or_else(|| of(|l, _| l.is_err()))
    }

    /// The endpoints that have answered.
    pub(super) fn seats(&self) -> impl Iterator<Item = usize> {
        self.voices.iter().map(|voice| voice.seat)
    }

    /// Everything that was said, by endpoint, block and word.
    pub(super) fn statements(&self) -> impl Iterator<Item = (usize, Block, &W)> {
        self.voices.iter().flat_map(|voice| voice.words.iter().map(|(block, word)| (voice.seat, *block, word)))
    }

    /// Whether any two endpoints contradict each other.
    pub(super) fn is_divided(&self) -> bool {
        let camps = self.camps();
        let two_words =
            camps.iter().enumerate().any(|(i, a)| camps[..i].iter().any(|b| a.block.number == b.block.number));
        two_words || self.voices.iter().any(|voice| !voice.instead.is_empty())
    }

    /// The endpoints that say something else about the height that is agreed on, and the block that they have there.
    /// One that says the same, but later than it took to agree, is none of them.
    pub(super) fn against(&self, agreement: &Agreement) -> Vec<(usize, Block)> {
        let agreed = agreement.seats.first().and_then(|seat| self.word(*seat, &agreement.block));
        let says_otherwise = |voice: &Voice<W>| {
            let told = voice.words.iter().filter(|(block, word)| *block != agreement.block || Some(word) != agreed);
            let instead = voice.instead.iter().filter(|block| **block != agreement.block);
            let mut others = told.map(|(block, _)| block).chain(instead);
            let other = others.find(|block| block.number == agreement.block.number)?;
            Some((voice.seat, *other))
        };
        self.voices.iter().filter_map(says_otherwise).collect()
    }

    /// Every block and word that was said, with those who say it.
    fn camps(&self) -> Vec<Camp<'_, W>> {
        let mut camps: Vec<Camp<'_, W>> = Vec::new();
        for voice in &self.voices {
            for (block, word) in &voice.words {
                match camps.iter_mut().find(|camp| camp.block == *block && camp.word == word) {
                    Some(camp) => camp.seats.push(voice.seat),
                    None => camps.push(Camp { block: *block, word, seats: vec![voice.seat] }),
                }
            }
        }
        camps
    }

    /// The camp with the highest block among those that are large enough; none where two of them contradict each
    /// other.
    fn winner<'c>(&self, camps: &'c [Camp<'_, W>]) -> Option<&'c Camp<'c, W>> {
        let mut large = camps.iter().filter(|camp| self.operators(&camp.seats) >= self.agree);
        let first = large.next()?;
        let winner =
            large.clone().fold(first, |best, camp| if camp.block.number > best.block.number { camp } else { best });
        let rivals =
            std::iter::once(first).chain(large).filter(|camp| camp.block.number == winner.block.number).count();
        (rivals == 1).then_some(winner)
    }

    /// Where endpoints that are further on may lift a camp to a sufficient size, those that were not asked yet: about
    /// the highest such block.
    fn to_ask_again(&self, camps: &[Camp<'_, W>]) -> Vec<(usize, Block)> {
        let mut by_height: Vec<&Camp<'_, W>> = camps.iter().collect();
        by_height.sort_by_key(|camp| std::cmp::Reverse(camp.block.number));
        let target = by_height.into_iter().find(|camp| {
            let may_join = self.voices.iter().filter(|voice| voice.may_join(&camp.block)).map(|voice| voice.seat);
            self.operators(&camp.seats.iter().copied().chain(may_join).collect::<Vec<_>>()) >= self.agree
        });
        let Some(Camp { block, .. }) = target else { return Vec::new() };
        let unasked = |voice: &&Voice<W>| voice.may_join(block) && !voice.again.contains(block);
        self.voices.iter().filter(unasked).map(|voice| (voice.seat, *block)).collect()
    }

    /// Whose word on the newest block counts, and whether it is clear. A change counts unless enough operators say that
    /// there is none: the newest block may only downgrade, but one endpoint alone cannot withhold a name by it.
    fn latest(&self, camp: &Camp<'_, W>) -> (Option<usize>, bool) {
        let said = |wanted: fn(&Result<W, Failure>, &W) -> bool| -> Vec<usize> {
            let of = |voice: &&Voice<W>| voice.latest.as_ref().is_some_and(|latest| wanted(latest, camp.word));
            self.voices.iter().filter(of).map(|voice| voice.seat).collect()
        };
        let same = said(|latest, word| latest.as_ref().is_ok_and(|latest| latest.answers_alike(word)));
        let changed = said(|latest, word| latest.as_ref().is_ok_and(|latest| !latest.answers_alike(word)));
        let failed = said(|latest, _| latest.is_err());
        if self.operators(&same) >= self.agree {
            return (same.first().copied(), true);
        }
        let clear = self.operators(&changed) >= self.agree || same.len() + changed.len() + failed.len() == 0;
        (changed.first().or_else(|| failed.first()).or_else(|| same.first()).copied(), clear)
    }

    fn is_old(&self, block: &Block) -> bool {
        self.voices.iter().any(|voice| voice.own.timestamp.duration_since(block.timestamp) > STRADDLE)
    }

    fn operators(&self, seats: &[usize]) -> usize {
        let operator = |seat: &usize| self.voice(*seat).map(|voice| voice.operator.as_str());
        seats.iter().filter_map(operator).collect::<BTreeSet<_>>().len()
    }

    fn voice(&self, seat: usize) -> Option<&Voice<W>> {
        self.voices.iter().find(|voice| voice.seat == seat)
    }
}

/// Those who say the same about the same block.
struct Camp<'t, W> {
    block: Block,
    word: &'t W,
    seats: Vec<usize>,
}

impl<W> Voice<W> {
    fn word(&self, block: &Block) -> Option<&W> {
        self.words.iter().find(|(of, _)| of == block).map(|(_, word)| word)
    }

    /// Blocks of others that it was asked about, and has said nothing about.
    fn awaited(&self) -> impl Iterator<Item = &Block> {
        self.again.iter().filter(|block| {
            let is_denied = self.instead.iter().any(|other| other.number == block.number);
            self.word(block).is_none() && !is_denied && !self.silent.contains(block)
        })
    }

    /// Whether it is further on, and may yet vouch for `block`.
    fn may_join(&self, block: &Block) -> bool {
        let is_asked = self.again.contains(block);
        self.own.number > block.number
            && self.word(block).is_none()
            && !self.silent.contains(block)
            && !self.instead.iter().any(|other| other.number == block.number)
            && (is_asked || self.again.len() < MAX_AGAIN)
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use jiff::Timestamp;

    use super::*;

    impl Word for &'static str {
        fn answers_alike(&self, other: &Self) -> bool {
            self == other
        }
    }

    fn block(number: u64, fork: u8) -> Block {
        let timestamp = Timestamp::from_second(i64::try_from(number).unwrap() * 12).unwrap();
        Block { number, hash: B256::left_padding_from(&[u8::try_from(number).unwrap(), fork]), timestamp }
    }

    /// A tally of 2 in which endpoint `i` belongs to operator `i` and says that the newest block is the same.
    fn two(said: &[(u64, u8, &'static str)]) -> Tally<&'static str> {
        let mut tally = Tally::new(2);
        for (seat, (number, fork, word)) in said.iter().enumerate() {
            tally.hear(seat, &seat.to_string(), block(*number, *fork), *word, Some(Ok(*word)));
        }
        tally
    }

    fn settled(tally: &Tally<&'static str>) -> (Block, Vec<usize>) {
        match tally.standing() {
            Standing::Settled(agreement) => (agreement.block, agreement.seats),
            other => panic!("{other:?}"),
        }
    }

    fn again(tally: &Tally<&'static str>) -> Vec<(usize, Block)> {
        match tally.standing() {
            Standing::Open { again, .. } => again,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_says_the_same_later_contradicts_nobody() {
        let mut tally = two(&[(5, 0, "a"), (5, 0, "a")]);
        let Standing::Settled(agreement) = tally.standing() else { panic!("two agree") };
        tally.hear(2, "2", block(5, 0), "a", None);
        assert_eq!(tally.against(&agreement), []);
        tally.deny(2, block(5, 0));
        assert_eq!(tally.against(&agreement), []);
        tally.hear(3, "3", block(5, 0), "b", None);
        tally.hear(4, "4", block(5, 1), "a", None);
        tally.hear(5, "5", block(6, 0), "a", None);
        tally.deny(5, block(5, 2));
        assert_eq!(tally.against(&agreement), [(3, block(5, 0)), (4, block(5, 1)), (5, block(5, 2))]);
    }

    #[test]
    fn two_that_say_the_same_are_enough() {
        let tally = two(&[(5, 0, "a"), (5, 0, "a")]);
        assert_eq!(settled(&tally), (block(5, 0), vec![0, 1]));
        assert!(!tally.is_divided());
    }

    #[test]
    fn one_is_not_enough_and_neither_are_two_of_one_operator() {
        assert_eq!(two(&[(5, 0, "a")]).standing(), Standing::Open { most: 1, again: vec![] });
        let mut tally = Tally::new(2);
        for seat in 0..2 {
            tally.hear(seat, "one", block(5, 0), "a", None);
        }
        assert_eq!(tally.standing(), Standing::Open { most: 1, again: vec![] });
    }

    #[test]
    fn a_liar_is_outvoted_and_named() {
        for liar in [(5, 1, "a"), (5, 0, "b")] {
            let tally = two(&[liar, (5, 0, "a"), (5, 0, "a")]);
            assert_eq!(settled(&tally), (block(5, 0), vec![1, 2]));
            let Standing::Settled(agreement) = tally.standing() else { unreachable!() };
            assert_eq!(tally.against(&agreement), [(0, block(liar.0, liar.1))]);
        }
    }

    #[test]
    fn no_two_alike_is_no_agreement() {
        for said in [[(5, 0, "a"), (5, 0, "b"), (5, 0, "c")], [(5, 0, "a"), (5, 1, "a"), (5, 2, "a")]] {
            let tally = two(&said);
            assert_eq!(tally.standing(), Standing::Open { most: 1, again: vec![] });
            assert!(tally.is_divided());
        }
    }

    #[test]
    fn two_camps_of_two_are_no_agreement() {
        let tally = two(&[(5, 0, "a"), (5, 0, "b"), (5, 0, "a"), (5, 0, "b")]);
        assert!(matches!(tally.standing(), Standing::Open { .. }));
    }

    #[test]
    fn one_that_is_ahead_is_asked_about_the_common_block() {
        let mut tally = two(&[(6, 0, "a"), (5, 0, "a")]);
        assert_eq!(again(&tally), [(0, block(5, 0))]);
        tally.ask_again(0, block(5, 0));
        assert_eq!(again(&tally), [], "it is asked once");
        tally.attest(0, block(5, 0), "a");
        assert_eq!(settled(&tally), (block(5, 0), vec![0, 1]));
    }

    #[test]
    fn one_that_is_ahead_on_another_branch_does_not_join() {
        let mut tally = two(&[(6, 1, "a"), (5, 0, "a")]);
        tally.ask_again(0, block(5, 0));
        tally.deny(0, block(5, 1));
        assert_eq!(tally.standing(), Standing::Open { most: 1, again: vec![] });
        assert!(tally.is_divided());
        tally.hear(2, "2", block(5, 0), "a", Some(Ok("a")));
        let Standing::Settled(agreement) = tally.standing() else { panic!("two agree") };
        assert_eq!(tally.against(&agreement), [(0, block(5, 1))]);
    }

    #[test]
    fn the_highest_common_block_wins() {
        let mut tally = two(&[(6, 0, "a"), (5, 0, "a")]);
        tally.ask_again(0, block(5, 0));
        tally.hear(2, "2", block(6, 0), "a", Some(Ok("a")));
        assert_eq!(settled(&tally), (block(6, 0), vec![0, 2]));
        tally.attest(0, block(5, 0), "a");
        assert_eq!(settled(&tally).0, block(6, 0));
    }

    #[test]
    fn a_made_up_block_ahead_of_all_sends_the_count_down_to_the_true_one() {
        // 0 makes block 7 up, 1 is at the true 7, 2 at 6: the two honest ones meet at 6.
        let mut tally = two(&[(7, 1, "x"), (7, 0, "a"), (6, 0, "a")]);
        assert_eq!(again(&tally), [(0, block(6, 0)), (1, block(6, 0))]);
        tally.ask_again(1, block(6, 0));
        tally.attest(1, block(6, 0), "a");
        assert_eq!(settled(&tally), (block(6, 0), vec![1, 2]));
    }

    #[test]
    fn an_endpoint_that_makes_blocks_up_is_not_asked_for_ever() {
        let mut tally = Tally::new(2);
        tally.hear(0, "0", block(200, 0), "a", None);
        for seat in 1..20 {
            tally.hear(seat, &seat.to_string(), block(100 - u64::try_from(seat).unwrap(), 0), "a", None);
        }
        let mut asked = 0;
        loop {
            let next = again(&tally);
            if next.is_empty() {
                break;
            }
            for (seat, block) in next {
                tally.ask_again(seat, block);
                tally.keep_silent(seat, block);
                asked += usize::from(seat == 0);
            }
        }
        assert_eq!(asked, MAX_AGAIN);
    }

    #[test]
    fn an_old_agreement_waits_for_a_newer_one() {
        let mut tally = two(&[(5, 0, "a"), (5, 0, "a"), (106, 0, "a")]);
        assert!(
            matches!(tally.standing(), Standing::Provisional(_, Lacking::Youth)),
            "101 blocks take more than 20 minutes"
        );
        tally.hear(3, "3", block(106, 0), "a", Some(Ok("a")));
        assert_eq!(settled(&tally).0, block(106, 0));
    }

    /// Three endpoints, of which two agree on everything but the newest block, as they say it in turn.
    fn newest(words: &[Result<&'static str, Failure>]) -> Standing {
        let mut tally = Tally::new(2);
        for (seat, word) in words.iter().enumerate() {
            tally.hear(seat, &seat.to_string(), block(5, 0), "a", Some(word.clone()));
        }
        tally.standing()
    }

    #[test]
    fn a_change_at_latest_counts_unless_enough_say_that_there_is_none() {
        let latest = |standing| match standing {
            Standing::Settled(agreement) => (agreement.latest, true),
            Standing::Provisional(agreement, Lacking::Latest) => (agreement.latest, false),
            other => panic!("{other:?}"),
        };
        let failed = || Err(Failure::Unusable("busy".to_owned()));
        assert_eq!(latest(newest(&[Ok("a"), Ok("a")])), (Some(0), true));
        assert_eq!(latest(newest(&[Ok("a"), Ok("b")])), (Some(1), false));
        assert_eq!(latest(newest(&[Ok("b"), Ok("b")])), (Some(0), true));
        assert_eq!(latest(newest(&[Ok("b"), Ok("a"), Ok("a")])), (Some(1), true), "one alone withholds nothing");
        assert_eq!(latest(newest(&[Ok("a"), failed()])), (Some(1), false));
        assert_eq!(latest(newest(&[Ok("a"), failed(), Ok("a")])), (Some(0), true));
    }

    #[test]
    fn one_word_is_enough_where_one_is_asked_for() {
        let mut tally = Tally::new(1);
        tally.hear(0, "0", block(5, 0), "a", None);
        assert_eq!(settled(&tally), (block(5, 0), vec![0]));
    }
}
