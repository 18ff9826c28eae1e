//! `watch`: audits of a list, one after the other, each compared with the last one whose changes were told.

mod state;

use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use tokio::time::{MissedTickBehavior, interval};
use tracing::Level;

use self::state::{StateFile, Successor};
use super::args::WatchArgs;
use super::audit::{self, BlockPin, ListAudit, Pace, RowWriter, Sources};
use super::exit::Exit;
use super::names;
use super::new_file::NewFile;
use super::output::{self, Output, Unwritable};
use super::stop::StopAsks;
use super::world::{Reader, World, WorldFiles};
use super::{input, log_queue, notice};
use crate::report::difference::{Comparison, check_worlds};
use crate::report::payload::Payload;
use crate::report::{AuditCounts, Difference, Ending, ListOfNames, Past, Report, Rows, Scope};
use crate::resolve::UpstreamSurvey;
use crate::verdict::Depth;
use crate::webhook::{Message, Webhook, WebhookKey};

pub(super) fn run(args: WatchArgs) -> anyhow::Result<Exit> {
    super::runtime::run_to_end(watch(args))
}

async fn watch(args: WatchArgs) -> anyhow::Result<Exit> {
    if args.names == Path::new(input::STDIN) {
        bail!("--names: each round reads the list anew, which standard input cannot; name a file");
    }
    let mut asks = StopAsks::listen();
    // What is wrong with the command line shows before anything is asked.
    names::open(&args.names)?;
    if let Some(out) = &args.out {
        Output::file("--out", out)?;
        let [lock, untold] = state::files_beside(&args.state);
        let read = [
            ("--names", Some(&*args.names)),
            ("--state", Some(&*args.state)),
            ("--state", Some(&*lock)),
            ("--state", Some(&*untold)),
            ("--webhook-key", args.webhook_key.as_deref()),
        ];
        let world = WorldFiles::of(&args.world, Reader::Programs);
        output::check_apart(out, read.into_iter().chain(world.iter()))?;
    }
    let key = args.webhook_key.as_deref().map(WebhookKey::read).transpose().context("--webhook-key")?;
    let state = StateFile::open(&args.state)?;
    let world = tokio::select! {
        world = World::open_for_list(&args.world, Reader::Programs, Depth::Schemas, args.concurrency) => world?,
        () = asks.next() => return Ok(Exit::Interrupted),
    };
    let webhook = args.webhook.clone().zip(key).map(|(url, key)| Webhook::new(&world.config, url, key));
    let webhook = webhook.transpose().context("--webhook")?;
    let survey = if args.agreement { world.resolver.upstream_survey()? } else { None };
    let scope = Scope { agreement: survey.is_some(), ..audit::scope(&world)? };
    let once = args.once;
    let watch = Watch { args, state, world, survey, webhook, scope };
    if once {
        return tokio::select! {
            exit = watch.round_alone() => exit,
            () = asks.next() => Ok(Exit::Interrupted),
        };
    }
    tokio::select! {
        ended = watch.rounds() => ended,
        () = asks.next() => Ok(Exit::Trusted),
    }
}

/// A list that is watched.
struct Watch {
    args: WatchArgs,
    state: StateFile,
    world: World,
    /// Who is asked about each name besides, where anybody is.
    survey: Option<UpstreamSurvey>,
    webhook: Option<Webhook>,
    scope: Scope,
}

/// What came of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// There was no report to compare with.
    First,
    /// There was none, and no name could be decided.
    Undecided,
    /// No change is to be told.
    Same,
    /// So many changes were told.
    Told(usize),
}

impl Watch {
    /// One round for a timer; its exit code.
    async fn round_alone(&self) -> anyhow::Result<Exit> {
        let earlier = self.earlier()?;
        let comparison = match self.round(earlier.as_ref()).await? {
            Round::First | Round::Same => Comparison::Same,
            Round::Undecided => Comparison::Undecided,
            Round::Told(_) => Comparison::Differs,
        };
        Ok(comparison.into())
    }

    /// Rounds without an end. One that takes too long puts off the next; none is made up for.
    ///
    /// # Errors
    /// Where the state cannot be used, which no later round changes.
    async fn rounds(&self) -> anyhow::Result<Exit> {
        let mut due = interval(self.args.every);
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            due.tick().await;
            let earlier = self.earlier()?;
            if let Err(error) = self.round(earlier.as_ref()).await {
                log_queue::say(Level::ERROR, &format!("{error:#}; the next round tries again"));
            }
        }
    }

    /// The report of the last round whose changes were told.
    fn earlier(&self) -> anyhow::Result<Option<Past>> {
        let earlier = self.state.read()?;
        if let Some(earlier) = &earlier {
            check_worlds(&earlier.scope, &self.scope).context("--state")?;
        }
        Ok(earlier)
    }

    async fn round(&self, earlier: Option<&Past>) -> anyhow::Result<Round> {
        let (mut report, rows) = self.audited(earlier).await?;
        if earlier.is_none() && report.counts.indeterminate == report.counts.names {
            notice::note(
                "clresolve: no name could be decided, so changes cannot be counted from this report; try again",
            );
            return Ok(Round::Undecided);
        }
        // Before anybody is told: a disk that is full would have the same told in each round.
        let successor = self.state.successor(&report, &*rows)?;
        let Some(earlier) = earlier else {
            successor.keep()?;
            notice::note("clresolve: this report is the first; changes are reported from the next round on");
            return Ok(Round::First);
        };
        let changes = Difference::between(earlier, &successor.report)?.of_kinds(&self.args.on);
        let told = changes.changes.len();
        if told > 0 {
            let message = self.message(&changes, earlier, &successor, &report.counts)?;
            report.since = Some(changes);
            if let Some(file) = &self.args.out {
                self.write(file, &report, &*rows)?;
            }
            if let Some((webhook, message)) = self.webhook.as_ref().zip(message) {
                self.tell(webhook, &message).await?;
            }
        }
        successor.keep()?;
        self.state.forget_message();
        let changes = if told == 1 { "change" } else { "changes" };
        notice::note(format_args!("clresolve: {told} {changes}; {} names were audited", report.counts.names));
        Ok(if told > 0 { Round::Told(told) } else { Round::Same })
    }

    /// The audit of the whole list. Nothing of an earlier round is taken for an answer.
    async fn audited(&self, earlier: Option<&Past>) -> anyhow::Result<(Report, Box<dyn Rows>)> {
        let resolver = self.world.resolver.with_empty_cache();
        let sources = Sources::of_list(names::open(&self.args.names)?);
        let mut writer = RowWriter::scratch()?;
        let pace = Pace::of(&self.world.config, self.args.concurrency);
        let pin = BlockPin::of_its_own(None, &resolver, &self.world.config.chain).await?;
        let (pin, survey) = (pin.as_ref(), self.survey.as_ref());
        let listed = ListAudit { resolver: &resolver, pin, survey, earlier, shard: None, pace };
        let (ending, digest) = listed.run(sources, &mut writer, std::future::pending()).await?;
        match ending {
            Ending::Complete => {}
            Ending::ListFailed(why) => bail!("--names: {why}"),
            Ending::DiskFull(why) => return Err(RowWriter::full(why)),
            cut @ (Ending::Interrupted | Ending::RegistryUnread(_) | Ending::ShardsCut(_) | Ending::ShardsLack(_)) => {
                bail!(cut.warning().unwrap_or_default())
            }
        }
        if writer.counts.names == 0 {
            bail!("--names: the list holds no name");
        }
        let (counts, rows) = writer.finish()?;
        let mut scope = self.scope.clone();
        if let Some(pin) = pin {
            scope.block = pin.blocks().await;
        }
        let report = Report {
            scope,
            counts,
            ending: Ending::Complete,
            since: None,
            before: None,
            earlier: Vec::new(),
            shard: None,
            list: ListOfNames { file: audit::list_file(Some(&self.args.names)), digest },
            schema_layers: None,
            flags: self.args.world.flags(),
        };
        Ok((report, Box::new(rows)))
    }

    /// What the webhook is told, where there is one. The same changes since the same report are told under the same id, in a later round too.
    fn message(
        &self,
        changes: &Difference,
        earlier: &Past,
        successor: &Successor,
        counts: &AuditCounts,
    ) -> anyhow::Result<Option<Message>> {
        if self.webhook.is_none() {
            return Ok(None);
        }
        let payload = Payload::of(changes, earlier, &successor.report, counts, self.world.resolver.now());
        let body = Bytes::from(output::json_line(&payload)?);
        Ok(Some(Message { id: self.state.message_id(earlier, changes)?, body }))
    }

    fn write(&self, file: &Path, report: &Report, rows: &dyn Rows) -> anyhow::Result<()> {
        let written = || {
            let new = NewFile::beside(file)?;
            let mut out = BufWriter::new(new.file());
            report.write(self.args.format.into(), rows, &mut out)?;
            out.flush()?;
            drop(out);
            new.keep()
        };
        written().map_err(|error| Unwritable::new(file.display().to_string(), error).into())
    }

    async fn tell(&self, webhook: &Webhook, message: &Message) -> anyhow::Result<()> {
        let told = webhook.deliver(message, || self.world.resolver.now()).await;
        if clresolve_core::mutant!("untold-changes-are-forgotten") {
            return Ok(());
        }
        told.map_err(|why| {
            let error = Unwritable::new("to the webhook", io::Error::other(why));
            anyhow::Error::new(error).context("the next round delivers the changes again")
        })
    }
}
