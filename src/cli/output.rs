//! Results: to standard output or a file, each written whole, and quiet about a reader that has gone.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;

use anstream::stream::RawStream;
use anyhow::{Context as _, bail};
use serde::Serialize;

use super::args::{Format, OutArgs};
use super::render::Palette;
use crate::text;

/// Where results go.
pub(super) struct Output {
    target: Target,
    gone: bool,
}

enum Target {
    Stdout,
    /// Opened by the first write, so that a command that gives nothing leaves the file as it is.
    File {
        path: PathBuf,
        file: Option<File>,
    },
}

impl Output {
    /// Standard output, or the file of `--out`.
    pub(super) fn new(args: OutArgs) -> anyhow::Result<Self> {
        let Some(path) = args.file else { return Ok(Self { target: Target::Stdout, gone: false }) };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        if path.is_dir() || folder.is_some_and(|f| !f.is_dir()) {
            bail!("--out {}: expected a file in a folder that exists", path.display());
        }
        Ok(Self { target: Target::File { path, file: None }, gone: false })
    }

    /// Colours for a terminal; none for anything else, and none under `NO_COLOR`.
    pub(super) fn palette(&self) -> Palette {
        match self.target {
            Target::Stdout if colour(&io::stdout()) => Palette::colours(),
            Target::Stdout | Target::File { .. } => Palette::plain(),
        }
    }

    /// Writes all of `bytes` at once. When the reader has gone this and all later writes do nothing.
    pub(super) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if self.gone {
            return Ok(());
        }
        match self.try_write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.gone = true,
            result => result.with_context(|| format!("cannot write {}", self.name()))?,
        }
        Ok(())
    }

    /// Whether the reader has gone.
    pub(super) const fn is_gone(&self) -> bool {
        self.gone
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.target {
            Target::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes)?;
                stdout.flush()
            }
            Target::File { path, file } => {
                let file = match file {
                    Some(file) => file,
                    None => file.insert(File::create(path)?),
                };
                file.write_all(bytes)
            }
        }
    }

    fn name(&self) -> String {
        match &self.target {
            Target::Stdout => "standard output".to_owned(),
            Target::File { path, .. } => path.display().to_string(),
        }
    }
}

/// Whether a stream takes colours: a terminal, and no `NO_COLOR`.
pub(super) fn colour<S: RawStream>(stream: &S) -> bool {
    stream.is_terminal() && anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Results one after the other, in the form that was chosen.
pub(super) struct Results {
    output: Output,
    format: Format,
    /// Whether `json` gives an array.
    several: bool,
    written: usize,
}

impl Results {
    /// `several` makes `-o json` an array.
    pub(super) const fn new(output: Output, format: Format, several: bool) -> Self {
        Self { output, format, several, written: 0 }
    }

    /// Writes one result: `people` makes its text, which ends with a line end.
    pub(super) fn push(&mut self, value: &impl Serialize, people: impl FnOnce(Format) -> String) -> anyhow::Result<()> {
        let text = match self.format {
            Format::Text | Format::Short => people(self.format),
            Format::Jsonl => json_line(value)? + "\n",
            Format::Json if self.several => {
                let separator = if self.written == 0 { "[\n" } else { ",\n" };
                format!("{separator}{}", json(value)?)
            }
            Format::Json => json(value)? + "\n",
        };
        self.written += 1;
        self.output.write(text.as_bytes())
    }

    /// Ends the array, if there is one.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        if self.format == Format::Json && self.several {
            let end: &[u8] = if self.written == 0 { b"[]\n" } else { b"\n]\n" };
            self.output.write(end)?;
        }
        Ok(())
    }

    /// Whether the reader has gone.
    pub(super) const fn is_gone(&self) -> bool {
        self.output.is_gone()
    }
}

/// `value` as indented JSON without a character that acts on a terminal.
pub(super) fn json(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(text::inert_json(&serde_json::to_string_pretty(value)?))
}

/// `value` as one line of such JSON.
pub(super) fn json_line(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(text::inert_json(&serde_json::to_string(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_value_and_loses_its_bite() {
        let value = serde_json::json!({"k": "a\u{202e}b\u{e0041}\u{9b}\u{7f}\n名"});
        let text = json_line(&value).unwrap();
        assert_eq!(text, r#"{"k":"a\u202eb\udb40\udc41\u009b\u007f\n名"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
