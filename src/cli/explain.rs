//! `explain`: what reason codes mean.

use std::fmt::Write as _;

use anyhow::bail;

use super::args::{ExplainArgs, Format};
use super::exit::Exit;
use super::output::{Output, Results};
use super::render::{self, Palette};
use crate::reason::{Code, Effect, Entry, Fixer, Refusal};
use crate::text::Foreign;

pub(super) fn run(args: ExplainArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.output.out)?;
    let palette = output.palette();
    let all = args.codes.is_empty();
    let codes = if all { Code::ALL.to_vec() } else { find(&args.codes)? };
    let mut results = Results::new(output, args.output.format, codes.len() > 1);
    for (i, code) in codes.iter().enumerate() {
        let entry = code.entry();
        results.push(entry, |format| match format {
            Format::Text if all => line(entry, &palette),
            Format::Text if i > 0 => format!("\n{}", paragraph(entry, &palette)),
            Format::Text => paragraph(entry, &palette),
            _ => line(entry, &palette),
        })?;
    }
    results.finish()?;
    Ok(Exit::Trusted)
}

fn find(slugs: &[String]) -> anyhow::Result<Vec<Code>> {
    let mut codes = Vec::new();
    for slug in slugs {
        let slug = slug.to_ascii_lowercase();
        if let Some(refusal) = Refusal::ALL.iter().find(|refusal| refusal.slug() == slug) {
            bail!("{refusal} is what the daemon says of a request, not of a name. {}", refusal.title());
        }
        let Some(code) = Code::from_slug(&slug) else {
            bail!("no reason code is called {}{}", Foreign::new(&slug), hint(&slug));
        };
        codes.push(code);
    }
    Ok(codes)
}

/// Codes that share a word with what was typed.
fn hint(slug: &str) -> String {
    let words: Vec<&str> = slug.split('-').filter(|w| w.len() > 2).collect();
    let near: Vec<&str> =
        Code::ALL.iter().map(|c| c.slug()).filter(|s| s.split('-').any(|w| words.contains(&w))).take(5).collect();
    if near.is_empty() {
        "; `clresolve explain` lists all".to_owned()
    } else {
        format!("; perhaps {}?", near.join(", "))
    }
}

fn line(entry: &Entry, palette: &Palette) -> String {
    let (effect, step) = (effect(entry.effect), entry.step.slug());
    let style = palette.effect(entry.effect);
    format!(
        "{:<28} {style}{effect:<8}{style:#} {step:<12} {:<6} {}\n",
        entry.code.slug(),
        entry.requirement,
        entry.title
    )
}

fn paragraph(entry: &Entry, palette: &Palette) -> String {
    let style = palette.effect(entry.effect);
    let mut text = format!("{style}{}{style:#}: {}\n\n", entry.code.slug(), entry.title);
    for line in render::wrapped(entry.explanation) {
        let _ = writeln!(text, "  {line}");
    }
    let requirement = if entry.requirement.is_empty() { "none; operational" } else { entry.requirement };
    let again = if entry.retryable { "may help" } else { "does not help" };
    let _ = write!(
        text,
        "\n  effect       {}\n  found in     {}\n  requirement  {requirement}\n  who fixes it {}\n  asking again {again}\n",
        meaning(entry.effect),
        entry.step,
        fixer(entry.fixer),
    );
    text
}

const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Fail => "fail",
        Effect::Unknown => "unknown",
        Effect::Warn => "warn",
    }
}

const fn meaning(effect: Effect) -> &'static str {
    match effect {
        Effect::Fail => "fail: the verdict is untrusted",
        Effect::Unknown => "unknown: the verdict is indeterminate, unless something fails",
        Effect::Warn => "warn: reported, and the verdict stays as it is",
    }
}

const fn fixer(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "whoever asks",
        Fixer::Publisher => "whoever publishes the card and its records",
        Fixer::Operator => "whoever runs this resolver",
    }
}
