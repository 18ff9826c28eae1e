//! `lint`: judges cards of any system before they are published, and fixes what has only one correction.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clresolve_cards::ledger::Projection;
use clresolve_cards::lint::{self, CardJudgement, MAX_BYTES, Report};
use clresolve_cards::system::{CardSystem, Rules};
use clresolve_core::reason::{Code, Effect};
use clresolve_core::state::State;
use clresolve_core::text::{self, Foreign};
use clresolve_resolver::clock::{Clock as _, SystemClock};
use clresolve_verdict::card::Card;
use clresolve_verdict::profile::Profiles;
use serde::Serialize;

use super::args::{Format, LintArgs, LintFormat, WeightArgs};
use super::exit::Exit;
use super::findings;
use super::input::read;
use super::ledger;
use super::new_file;
use super::output::{Output, Results, Unwritable};
use super::render::Palette;
use super::uri;
use super::world::World;

/// Maximum number of cards from folders.
const MAX_FILES: usize = 10_000;

/// Maximum depth of subfolders.
const MAX_DEPTH: usize = 16;

#[derive(Debug, Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(flatten)]
    judgement: CardJudgement,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    name: String,
}

pub(super) fn run(args: LintArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    super::runtime::run_async(async move {
        let world = World::open(&args.world).await?;
        let profiles = world.resolver.profiles();
        let profile = profiles.get(&world.config.rules.profile).context("the configured profile does not exist")?;
        let previous = args.previous.as_deref().map(previous).transpose()?;
        let ledger = args.ledger.as_deref().map(|file| figures(file, args.weights)).transpose()?;
        let rules = Rules {
            previous: previous.as_ref().map(|(card, _)| card),
            previous_bytes: previous.as_ref().map(|(_, bytes)| bytes.as_slice()),
            ledger: ledger.as_ref(),
            ..Rules::of(&profile)
        };
        let documents = files(args.documents)?;
        if args.fix {
            if let Some(other) = documents.iter().find(|document| !is_file(document)) {
                bail!("--fix: expected files, which it writes anew; {} cannot be fixed", Foreign::new(&shown(other)));
            }
            for document in &documents {
                fix(document, args.card_system, &rules)?;
            }
        }
        let mut judged = Judged::new(output, args.output.form(), documents.len() > 1);
        for document in &documents {
            match bytes(document, &world).await {
                Ok(bytes) => judged.push(answer(&bytes, document, args.card_system, &rules, profiles))?,
                Err(missing) => judged.missing = judged.missing.max(missing),
            }
        }
        judged.finish()
    })
}

/// The documents, with each folder replaced by its `.json` files, including those in subfolders.
fn files(documents: Vec<PathBuf>) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for document in documents {
        if !document.is_dir() {
            files.push(document);
            continue;
        }
        let before = files.len();
        let mut folders = vec![(document.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let unreadable = || format!("cannot read {}", Foreign::new(&folder.display().to_string()));
            for entry in fs::read_dir(&folder).with_context(unreadable)? {
                let entry = entry.with_context(unreadable)?;
                let (path, kind) = (entry.path(), entry.file_type().with_context(unreadable)?);
                // Symlinks are skipped: they may form a cycle, or leave the folder.
                if kind.is_dir() && depth < MAX_DEPTH {
                    folders.push((path, depth + 1));
                } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "json") {
                    files.push(path);
                }
            }
            if files.len() > MAX_FILES {
                bail!("more than {MAX_FILES} cards");
            }
        }
        files[before..].sort();
        if files.len() == before {
            bail!("{}: no file in it ends in .json", Foreign::new(&document.display().to_string()));
        }
    }
    Ok(files)
}

/// The previous version of the card, and its bytes.
fn previous(file: &Path) -> anyhow::Result<(Card, Vec<u8>)> {
    let name = file.display().to_string();
    let bytes = read(file, MAX_BYTES)?;
    let card = Card::parse(&bytes).with_context(|| format!("--previous {}: not a card", Foreign::new(&name)))?;
    Ok((card, bytes))
}

fn figures(file: &Path, weights: WeightArgs) -> anyhow::Result<Projection> {
    let name = file.display().to_string();
    ledger::projection(file, weights)?.with_context(|| format!("--ledger {}", Foreign::new(&name)))
}

/// Reads a document. An unreadable one is reported with its exit status, and the other cards are still judged.
async fn bytes(document: &Path, world: &World) -> Result<Vec<u8>, Exit> {
    let Some(url) = url(document) else {
        return read(document, MAX_BYTES).map_err(|error| {
            anstream::eprintln!("clresolve: {error:#}");
            Exit::Usage
        });
    };
    let document = world.resolver.document(url).await;
    document.map(|body| body.bytes.into()).map_err(|error| {
        let shown = text::without_secrets(url);
        anstream::eprintln!("clresolve: {}: {}", Foreign::new(&shown), Foreign::new(&error.to_string()));
        Exit::Indeterminate
    })
}

fn url(document: &Path) -> Option<&str> {
    document.to_str().filter(|text| clresolve_core::uri::strip_scheme(text, "https").is_some())
}

/// Whether it is neither standard input nor a URL.
fn is_file(document: &Path) -> bool {
    document != Path::new("-") && url(document).is_none()
}

/// The file, or the URL without possible secrets.
fn shown(document: &Path) -> String {
    text::without_secrets(&document.display().to_string())
}

fn answer(bytes: &[u8], document: &Path, named: Option<CardSystem>, rules: &Rules<'_>, profiles: &Profiles) -> Answer {
    let judgement = lint::judge(bytes, named, rules, profiles);
    let text = without_secrets(String::from_utf8_lossy(bytes).into_owned(), &judgement.report);
    Answer { file: None, judgement, text, name: shown(document) }
}

/// Replaces each byte of a credential by a star, so that positions stay the same, because reports are stored.
fn without_secrets(mut text: String, report: &Report) -> String {
    let secrets = report.findings.iter().filter(|finding| finding.code == Code::SecretInCard);
    for span in secrets.filter_map(|finding| finding.span.clone()) {
        if text.get(span.clone()).is_some() {
            text.replace_range(span.clone(), &"*".repeat(span.len()));
        }
    }
    text
}

/// Rewrites the card if something could be fixed, and reports the fixes.
fn fix(file: &Path, named: Option<CardSystem>, rules: &Rules<'_>) -> anyhow::Result<()> {
    // Unreadable files are reported when they are judged.
    let Ok(bytes) = read(file, MAX_BYTES) else { return Ok(()) };
    let Some(system) = lint::lint(&bytes, named, rules).system else { return Ok(()) };
    let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(()) };
    let Ok(fixed) = lint::fix(text, system, rules, SystemClock.now()) else { return Ok(()) };
    if fixed.changes.is_empty() {
        return Ok(());
    }
    let name = file.display().to_string();
    new_file::replace(file, fixed.text.as_bytes())
        .map_err(|error| Unwritable::new(Foreign::new(&name).to_string(), error))?;
    for change in &fixed.changes {
        anstream::eprintln!("clresolve: {}: {}", Foreign::new(&name), Foreign::new(change));
    }
    Ok(())
}

/// Writes results as they complete, or one SARIF log at the end.
struct Judged {
    results: Results,
    palette: Palette,
    /// The width of the terminal, if the output is one.
    width: Option<usize>,
    sarif: Option<Vec<Answer>>,
    are_several: bool,
    are_valid: bool,
    /// The worst exit status of unreadable documents.
    missing: Exit,
}

impl Judged {
    fn new(output: Output, format: LintFormat, are_several: bool) -> Self {
        let (palette, width) = (output.palette(), output.width());
        let (sarif, format) = match format.plain() {
            Some(format) => (None, format),
            None => (Some(Vec::new()), Format::Json),
        };
        let results =
            if are_several && sarif.is_none() { Results::list(output, format) } else { Results::one(output, format) };
        Self { results, palette, width, sarif, are_several, are_valid: true, missing: Exit::Trusted }
    }

    fn push(&mut self, mut answer: Answer) -> anyhow::Result<()> {
        self.are_valid &= answer.judgement.report.valid;
        if let Some(answers) = &mut self.sarif {
            answers.push(answer);
            return Ok(());
        }
        answer.file = self.are_several.then(|| answer.name.clone());
        self.results.push(&answer, |format| match format {
            Format::Short => short(&answer, &self.palette),
            _ => people(&answer, &self.palette, self.width),
        })
    }

    fn finish(mut self) -> anyhow::Result<Exit> {
        if let Some(answers) = &self.sarif {
            let uris: Vec<String> = answers.iter().map(|answer| uri::reference(&answer.name)).collect();
            let reports =
                answers.iter().zip(&uris).map(|(a, uri)| (uri.as_str(), a.text.as_str(), &a.judgement.report));
            self.results.push(&lint::sarif(reports), |_| String::new())?;
        }
        self.results.finish()?;
        Ok(if self.are_valid { self.missing } else { self.missing.max(Exit::Untrusted) })
    }
}

impl LintFormat {
    /// The format of streamed results. SARIF is a single document.
    const fn plain(self) -> Option<Format> {
        match self {
            Self::Text => Some(Format::Text),
            Self::Short => Some(Format::Short),
            Self::Json => Some(Format::Json),
            Self::Jsonl => Some(Format::Jsonl),
            Self::Sarif => None,
        }
    }
}

/// One line per finding, in the style of compilers.
fn short(answer: &Answer, palette: &Palette) -> String {
    let findings = &answer.judgement.report.findings;
    findings.iter().map(|finding| findings::line(finding, &answer.name, palette)).collect()
}

/// Each finding with its line of the card, and what to do.
fn people(answer: &Answer, palette: &Palette, width: Option<usize>) -> String {
    let found = &answer.judgement.report.findings;
    let mut text = findings::drawn(found, &answer.name, &answer.text, palette, width);
    let style = palette.state(if answer.judgement.report.valid { State::Trusted } else { State::Untrusted });
    let _ = writeln!(text, "{style}{}{style:#}", advice(answer));
    text
}

/// One sentence that states what to do.
fn advice(answer: &Answer) -> String {
    let (name, report) = (Foreign::new(&answer.name), &answer.judgement.report);
    let rules = match (&report.profile, report.system) {
        (Some(profile), _) => format!("card under {}", Foreign::new(profile)),
        (None, Some(system)) => system.title().to_owned(),
        (None, None) => "card".to_owned(),
    };
    let count = |effect| report.findings.iter().filter(|finding| finding.effect == effect).count();
    let warnings = match count(Effect::Warn) {
        0 => String::new(),
        1 => " (1 warning)".to_owned(),
        n => format!(" ({n} warnings)"),
    };
    if report.valid {
        let next = match report.system {
            Some(CardSystem::CommandLayer) => "; `clresolve plan` lists the records to set for it.",
            _ => "; nothing proves its claims.",
        };
        return format!("{name} is a valid {rules}{warnings}{next}");
    }
    let defects = match count(Effect::Fail) {
        1 => "1 defect".to_owned(),
        n => format!("{n} defects"),
    };
    let near = match answer.judgement.near_misses.first() {
        Some(near) => format!(", or judge by --profile {}, under which it is valid", Foreign::new(near)),
        None => String::new(),
    };
    let is_unrecognised =
        report.findings.iter().any(|finding| matches!(finding.code, Code::FlavourUnknown | Code::FlavourAmbiguous));
    if is_unrecognised {
        return format!("{name} is not a valid {rules}: name its system with --as, and its rules say what is missing.");
    }
    format!("{name} is not a valid {rules}: fix {defects}{warnings} before you publish it{near}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clresolve_verdict::profile::DEFAULT;

    fn shown(card: &str) -> String {
        let profile = Profiles::builtin().get(DEFAULT).expect("built in");
        let report = lint::lint(card.as_bytes(), Some(CardSystem::CommandLayer), &Rules::of(&profile));
        let (text, name) = (without_secrets(card.to_owned(), &report), "card.json".to_owned());
        people(
            &Answer { file: None, judgement: CardJudgement { report, near_misses: Vec::new() }, text, name },
            &Palette::plain(),
            None,
        )
    }

    #[test]
    fn a_finding_shows_its_line_with_a_caret() {
        let text = shown("{\n  \"id\": \"a\",,\n}\n");
        assert!(text.contains(" --> card.json:2:13\n"), "{text}");
        assert!(text.contains("2 |   \"id\": \"a\",,\n  |             ^\n"), "{text}");
        assert!(
            text.ends_with(
                "card.json is not a valid card under agent-cards/1.0.0: fix 1 defect before you publish it.\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn long_lines_are_cut_and_nothing_is_raw() {
        let card = format!("{{\"a\": \"{}\u{202e}\", \"status\": \"{}\"}}", "x".repeat(500), "y\u{7f}".repeat(100));
        let text = shown(&card);
        assert!(text.lines().all(|line| line.chars().count() < 900), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{7f}']) && text.contains("..."), "{text}");
    }

    #[test]
    fn a_credential_is_not_shown() {
        let text = shown("{\"meta\": {\"api_key\": \"sk_live_4eC39HqLyjWDarjtT1zdp7dc\"}}");
        assert!(text.contains("secret-in-card") && !text.contains("4eC39"), "{text}");
    }
}
