//! `lint`: cards of any system judged before they are published, and mended where nothing has to be guessed.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};
use anyhow::{Context as _, bail};
use serde::Serialize;

use super::args::{Format, LintArgs, LintFormat};
use super::exit::Exit;
use super::output::{Output, Results};
use super::render::Palette;
use super::world::World;
use crate::card::Card;
use crate::clock::{Clock as _, SystemClock};
use crate::flavour::{Flavour, Rules};
use crate::lint::{self, Finding, MAX_BYTES, Report};
use crate::profile::Profiles;
use crate::reason::{Code, Effect};
use crate::text::{self, Foreign, is_unsafe};
use crate::verdict::State;

/// What `-o json` gives of a card.
#[derive(Debug, Serialize)]
struct Answer {
    /// The file, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(flatten)]
    report: Report,
    /// Other profiles under which the card is valid; none are named where it is valid, or of another system.
    near_misses: Vec<String>,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    name: String,
}

pub(super) fn run(args: LintArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.output.out.clone())?;
    super::run_async(async move {
        let world = World::open(&args.world).await?;
        let profiles = world.resolver.profiles();
        let profile = profiles.get(&world.config.rules.profile).context("the profile in force is not there")?;
        let previous = args.previous.as_deref().map(previous).transpose()?;
        let rules = Rules { previous: previous.as_ref(), ..Rules::of(&profile) };
        if args.fix {
            args.documents.iter().try_for_each(|document| mendable(document))?;
            for document in &args.documents {
                mend(document, args.flavour, &rules)?;
            }
        }
        let mut judged = Judged::new(output, args.output.format, args.documents.len() > 1);
        for document in &args.documents {
            match bytes(document, &world).await {
                Ok(bytes) => judged.push(answer(&bytes, document, args.flavour, &rules, profiles))?,
                Err(gap) => judged.missed(gap),
            }
        }
        judged.finish()
    })
}

/// The card of the version before.
fn previous(file: &Path) -> anyhow::Result<Card> {
    let name = file.display().to_string();
    Card::parse(&read(file)?).with_context(|| format!("--previous {}: not a card", Foreign::new(&name)))
}

/// How a command ends that found nothing to judge at one of its places, which is told; the other cards are judged.
type Gap = Exit;

/// What is to be judged.
async fn bytes(document: &Path, world: &World) -> Result<Vec<u8>, Gap> {
    let Some(url) = url(document) else {
        return read(document).map_err(|error| {
            anstream::eprintln!("clresolve: {error:#}");
            Exit::Usage
        });
    };
    world.resolver.document(url).await.map(|body| body.bytes.into()).map_err(|error| {
        let shown = shown(document);
        anstream::eprintln!("clresolve: {}: {}", Foreign::new(&shown), Foreign::new(&error.to_string()));
        Exit::Indeterminate
    })
}

/// The document's URL, where it is none of a file.
fn url(document: &Path) -> Option<&str> {
    document.to_str().filter(|text| text.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")))
}

/// The file, or the URL without what may be a secret.
fn shown(document: &Path) -> String {
    text::without_secrets(&document.display().to_string())
}

fn answer(bytes: &[u8], document: &Path, named: Option<Flavour>, rules: &Rules<'_>, profiles: &Profiles) -> Answer {
    let report = lint::lint(bytes, named, rules);
    let near_misses = lint::near_misses(bytes, &report, rules.profile, profiles);
    let text = without_secrets(String::from_utf8_lossy(bytes).into_owned(), &report);
    Answer { file: None, report, near_misses, text, name: shown(document) }
}

/// The text with stars for credentials, byte by byte, so that places stay: reports are kept.
fn without_secrets(mut text: String, report: &Report) -> String {
    let secrets = report.findings.iter().filter(|finding| finding.code == Code::SecretInCard);
    for span in secrets.filter_map(|finding| finding.span.clone()) {
        if text.get(span.clone()).is_some() {
            text.replace_range(span.clone(), &"*".repeat(span.len()));
        }
    }
    text
}

/// Whether the document is one that can be written anew; asked of all before the first is.
fn mendable(document: &Path) -> anyhow::Result<()> {
    if document == Path::new("-") || url(document).is_some() {
        bail!("--fix: expected a file, which it writes anew; standard input and URLs cannot be mended");
    }
    Ok(())
}

/// Writes the card anew where something could be mended, and says what. A file that cannot be read is told when it is
/// to be judged.
fn mend(file: &Path, named: Option<Flavour>, rules: &Rules<'_>) -> anyhow::Result<()> {
    let Ok(bytes) = read(file) else { return Ok(()) };
    let Some(flavour) = lint::lint(&bytes, named, rules).flavour else { return Ok(()) };
    let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(()) };
    let Ok(fixed) = lint::fix(text, flavour, rules, SystemClock.now()) else { return Ok(()) };
    if fixed.changes.is_empty() {
        return Ok(());
    }
    let name = file.display().to_string();
    replace(file, fixed.text.as_bytes()).with_context(|| format!("cannot write {}", Foreign::new(&name)))?;
    for change in &fixed.changes {
        anstream::eprintln!("clresolve: {}: {}", Foreign::new(&name), Foreign::new(change));
    }
    Ok(())
}

/// Puts a whole file in the place of another, with its permissions, so that nobody reads half of it. A link stays one.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = &file.canonicalize()?;
    let folder = file.parent().unwrap_or(file);
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().set_permissions(std::fs::metadata(file)?.permissions())?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    Ok(())
}

/// The bytes of the file or of standard input, as far as the rules look.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = MAX_BYTES as u64;
    if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(bytes);
    }
    let cannot = || format!("cannot read {}", Foreign::new(&file.display().to_string()));
    let opened = File::open(file).with_context(cannot)?;
    opened.take(most).read_to_end(&mut bytes).with_context(cannot)?;
    Ok(bytes)
}

/// The answers: written as they come, or as one SARIF log at the end.
struct Judged {
    results: Results,
    palette: Palette,
    /// Kept for the log.
    sarif: Option<Vec<Answer>>,
    are_several: bool,
    are_valid: bool,
    /// The gravest of the places that gave nothing.
    gap: Option<Gap>,
}

impl Judged {
    fn new(output: Output, format: LintFormat, are_several: bool) -> Self {
        let palette = output.palette();
        let (sarif, format) = match format.plain() {
            Some(format) => (None, format),
            None => (Some(Vec::new()), Format::Json),
        };
        let results = Results::new(output, format, are_several && sarif.is_none());
        Self { results, palette, sarif, are_several, are_valid: true, gap: None }
    }

    fn push(&mut self, mut answer: Answer) -> anyhow::Result<()> {
        self.are_valid &= answer.report.valid;
        if let Some(answers) = &mut self.sarif {
            answers.push(answer);
            return Ok(());
        }
        answer.file = self.are_several.then(|| answer.name.clone());
        self.results.push(&answer, |format| match format {
            Format::Short => short(&answer, &self.palette),
            _ => people(&answer, &self.palette),
        })
    }

    fn missed(&mut self, gap: Gap) {
        self.gap = self.gap.max(Some(gap));
    }

    fn finish(mut self) -> anyhow::Result<Exit> {
        if let Some(answers) = &self.sarif {
            let uris: Vec<String> = answers.iter().map(|answer| uri(&answer.name)).collect();
            let reports = answers.iter().zip(&uris).map(|(a, uri)| (uri.as_str(), a.text.as_str(), &a.report));
            self.results.push(&lint::sarif(reports), |_| String::new())?;
        }
        self.results.finish()?;
        let judged = if self.are_valid { Exit::Trusted } else { Exit::Untrusted };
        Ok(self.gap.map_or(judged, |gap| gap.max(judged)))
    }
}

/// A path as a URI reference, in which no colon makes a scheme of its first segment; a URL as it is.
fn uri(path: &str) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
    const RESERVED: &AsciiSet = &CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'#')
        .add(b'%')
        .add(b'<')
        .add(b'>')
        .add(b'?')
        .add(b'[')
        .add(b'\\')
        .add(b']')
        .add(b'^')
        .add(b'`')
        .add(b'{')
        .add(b'|')
        .add(b'}');
    let encoded = utf8_percent_encode(path, RESERVED).to_string();
    let has_colon = path.split('/').next().is_some_and(|segment| segment.contains(':'));
    if has_colon && url(Path::new(path)).is_none() { format!("./{encoded}") } else { encoded }
}

impl LintFormat {
    /// The form of results that go one after the other; SARIF is one document.
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

/// A line for each finding, as compilers write them.
fn short(answer: &Answer, palette: &Palette) -> String {
    let mut text = String::new();
    for finding in &answer.report.findings {
        let style = palette.effect(finding.effect);
        let (place, effect) = (place(finding, &answer.name), word(finding.effect));
        let _ =
            writeln!(text, "{place}: {style}{effect}{style:#} {}: {}", finding.code, Foreign::new(&finding.message));
    }
    text
}

/// Each finding with its line of the card, and what to do.
fn people(answer: &Answer, palette: &Palette) -> String {
    let renderer = if palette.is_plain() { Renderer::plain() } else { Renderer::styled() };
    let mut text = String::new();
    for finding in &answer.report.findings {
        text.push_str(&drawn(finding, answer, &renderer));
        text.push_str("\n\n");
    }
    let style = palette.state(if answer.report.valid { State::Trusted } else { State::Untrusted });
    let _ = writeln!(text, "{style}{}{style:#}", advice(answer));
    text
}

/// One finding as compilers draw them: what, where, the line with a caret, expected and observed.
fn drawn(finding: &Finding, answer: &Answer, renderer: &Renderer) -> String {
    let level = if finding.effect == Effect::Fail { Level::ERROR } else { Level::WARNING };
    let requirement = finding.requirement.as_deref().map_or_else(String::new, |r| format!(" ({})", Foreign::new(r)));
    let title = level.primary_title(format!("{}{requirement}", Foreign::new(&finding.message))).id(finding.code.slug());
    let path = Foreign::new(&answer.name).to_string();
    let mut elements: Vec<Element<'_>> = vec![match excerpt(finding, &answer.text) {
        Some(line) => Snippet::source(line.text)
            .line_start(line.number)
            .path(path)
            .annotation(
                AnnotationKind::Primary
                    .span(line.meant)
                    .label(finding.pointer.as_deref().map(|pointer| Foreign::new(pointer).to_string())),
            )
            .into(),
        None => origin(finding, path).into(),
    }];
    for (label, value) in [("expected", &finding.expected), ("observed", &finding.observed)] {
        if let Some(value) = value {
            elements.push(Level::NOTE.message(format!("{label} {}", Foreign::new(value))).into());
        }
    }
    renderer.render(&[title.elements(elements)])
}

fn origin(finding: &Finding, path: String) -> Origin<'static> {
    let origin = Origin::path(path);
    match (finding.line, finding.column) {
        (Some(line), Some(column)) => origin.line(line).char_column(column),
        _ => origin,
    }
}

/// A line of the card, harmless, and what of it is meant.
struct Excerpt {
    number: usize,
    text: String,
    meant: Range<usize>,
}

/// The line that a finding is about.
fn excerpt(finding: &Finding, card: &str) -> Option<Excerpt> {
    let (number, span) = (finding.line?, finding.span.as_ref()?);
    let before = card.get(..span.start)?.rsplit('\n').next()?;
    let rest = card.get(span.start..)?.lines().next().unwrap_or_default();
    let meant = rest.get(..span.len().min(rest.len())).unwrap_or(rest);
    let (head, middle, tail) = (harmless(before), harmless(meant), harmless(&rest[meant.len()..]));
    let end = head.len() + middle.len();
    Some(Excerpt { number, meant: head.len()..end, text: head + &middle + &tail })
}

/// The same characters, without those that act on a terminal or show nothing.
fn harmless(text: &str) -> String {
    let replaced = |c| match c {
        '\t' => ' ',
        c if is_unsafe(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(replaced).collect()
}

fn place(finding: &Finding, name: &str) -> String {
    let name = Foreign::new(name);
    match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("{name}:{line}:{column}"),
        _ => name.to_string(),
    }
}

/// One sentence that says what to do.
fn advice(answer: &Answer) -> String {
    let (name, report) = (Foreign::new(&answer.name), &answer.report);
    let rules = match (&report.profile, report.flavour) {
        (Some(profile), _) => format!("card under {}", Foreign::new(profile)),
        (None, Some(flavour)) => flavour.title().to_owned(),
        (None, None) => "card".to_owned(),
    };
    let count = |effect| report.findings.iter().filter(|finding| finding.effect == effect).count();
    let warnings = match count(Effect::Warn) {
        0 => String::new(),
        1 => " (1 warning)".to_owned(),
        n => format!(" ({n} warnings)"),
    };
    if report.valid {
        let next = match report.flavour {
            Some(Flavour::CommandLayer) => "; `clresolve plan` says which records to set for it.",
            _ => "; what it says of itself is proven by nothing.",
        };
        return format!("{name} is a valid {rules}{warnings}{next}");
    }
    let defects = match count(Effect::Fail) {
        1 => "1 defect".to_owned(),
        n => format!("{n} defects"),
    };
    let near = match answer.near_misses.first() {
        Some(near) => format!(", or judge by --profile {}, under which it is valid", Foreign::new(near)),
        None => String::new(),
    };
    format!("{name} is not a valid {rules}: mend {defects}{warnings} before you publish it{near}.")
}

const fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Fail => "fail",
        Effect::Unknown => "unknown",
        Effect::Warn => "warn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::DEFAULT;

    fn shown(card: &str) -> String {
        let profile = Profiles::builtin().get(DEFAULT).expect("built in");
        let report = lint::lint(card.as_bytes(), Some(Flavour::CommandLayer), &Rules::of(&profile));
        let (text, name) = (without_secrets(card.to_owned(), &report), "card.json".to_owned());
        people(&Answer { file: None, report, near_misses: Vec::new(), text, name }, &Palette::plain())
    }

    #[test]
    fn a_finding_shows_its_line_with_a_caret() {
        let text = shown("{\n  \"id\": \"a\",,\n}\n");
        assert!(text.contains(" --> card.json:2:13\n"), "{text}");
        assert!(text.contains("2 |   \"id\": \"a\",,\n  |             ^\n"), "{text}");
        assert!(
            text.ends_with(
                "card.json is not a valid card under agent-cards/1.0.0: mend 1 defect before you publish it.\n"
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
    fn paths_become_uri_references() {
        for (path, reference) in [
            ("cards/a.json", "cards/a.json"),
            ("x{1}|[2].json", "x%7B1%7D%7C%5B2%5D.json"),
            ("a:b.json", "./a:b.json"),
            ("b/a:b.json", "b/a:b.json"),
            ("https://a.example/b.json", "https://a.example/b.json"),
        ] {
            assert_eq!(uri(path), reference);
        }
    }

    #[test]
    fn a_credential_is_not_shown() {
        let text = shown("{\"meta\": {\"api_key\": \"sk_live_4eC39HqLyjWDarjtT1zdp7dc\"}}");
        assert!(text.contains("secret-in-card") && !text.contains("4eC39"), "{text}");
    }
}
