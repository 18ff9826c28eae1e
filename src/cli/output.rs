//! Results: to standard output or a file, each written whole, and quiet about a reader that has gone.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anstream::stream::RawStream;
use anyhow::bail;
use clap::builder::StyledStr;
use serde::Serialize;

use super::args::{Format, OutArgs};
use super::layout;
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
    ///
    /// # Errors
    /// When the file cannot be one, so that this is known before the work.
    pub(super) fn new(args: &OutArgs) -> anyhow::Result<Self> {
        match &args.file {
            Some(path) => Self::file("--out", path),
            None => Ok(Self { target: Target::Stdout, gone: false }),
        }
    }

    /// The file that a flag names.
    ///
    /// # Errors
    /// When it cannot be one, as [`Self::new`] says.
    pub(super) fn file(flag: &str, path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() {
            bail!("{flag} {}: this is a folder; name a file in it", path.display());
        }
        match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) if !folder.exists() => {
                bail!("{flag} {}: the folder {} does not exist", path.display(), folder.display())
            }
            Some(folder) if !folder.is_dir() => {
                bail!("{flag} {}: {} is not a folder", path.display(), folder.display())
            }
            _ => Ok(Self { target: Target::File { path: path.to_owned(), file: None }, gone: false }),
        }
    }

    /// How wide the terminal is that the results go to, if they go to one.
    pub(super) fn width(&self) -> Option<usize> {
        match self.target {
            Target::Stdout => layout::width_of_stdout(),
            Target::File { .. } => None,
        }
    }

    /// Colours where standard output takes them; none in a file.
    pub(super) fn palette(&self) -> Palette {
        match self.target {
            Target::Stdout if colour(&io::stdout()) => Palette::colours(),
            Target::Stdout | Target::File { .. } => Palette::plain(),
        }
    }

    /// Writes all of `bytes` at once. When the reader has gone this and all later writes do nothing.
    ///
    /// # Errors
    /// When the file or stream takes no more.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Unwritable> {
        if self.gone {
            return Ok(());
        }
        match self.try_write(bytes) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(())
            }
            Err(error) => Err(Unwritable { what: self.name(), error }),
        }
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

/// Results that cannot be written, for example to a full disk.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {what}")]
pub(super) struct Unwritable {
    what: String,
    #[source]
    error: io::Error,
}

impl Unwritable {
    /// What cannot be written, and why.
    pub(super) fn new(what: impl Into<String>, error: io::Error) -> Self {
        Self { what: what.into(), error }
    }
}

/// Writes help and the like to standard output, with its styles where the stream takes them.
///
/// # Errors
/// When standard output takes no more. A reader that has gone is not an error.
pub(super) fn print(text: &StyledStr) -> Result<(), Unwritable> {
    let mut stdout = anstream::stdout().lock();
    match write!(stdout, "{}", text.ansi()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Unwritable::new("standard output", error)),
        _ => Ok(()),
    }
}

/// Whether a stream takes colours.
pub(super) fn colour<S: RawStream>(stream: &S) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Results one after the other, in the form that was chosen.
pub(super) struct Results {
    output: Output,
    format: Format,
    /// Whether `json` gives an array.
    several: bool,
    /// Whether digests are shortened for a terminal.
    has_short_digests: bool,
    written: usize,
}

impl Results {
    /// `several` makes `-o json` an array.
    pub(super) const fn new(output: Output, format: Format, several: bool) -> Self {
        Self { output, format, several, has_short_digests: false, written: 0 }
    }

    /// Shortens digests where the results go to a terminal.
    pub(super) fn with_short_digests(mut self) -> Self {
        self.has_short_digests = true;
        self
    }

    /// Writes one result: `people` makes its text, which ends with a line end.
    pub(super) fn push(&mut self, value: &impl Serialize, people: impl FnOnce(Format) -> String) -> anyhow::Result<()> {
        let text = match self.format {
            Format::Text | Format::Short => self.fitted(people(self.format)),
            Format::Jsonl => json_line(value)? + "\n",
            Format::Json if self.several => {
                let separator = if self.written == 0 { "[\n" } else { ",\n" };
                format!("{separator}{}", json(value)?)
            }
            Format::Json => json(value)? + "\n",
        };
        self.written += 1;
        Ok(self.output.write(text.as_bytes())?)
    }

    /// Text for people, wrapped where it goes to a terminal.
    fn fitted(&self, text: String) -> String {
        let Some(width) = self.output.width().filter(|_| self.format == Format::Text) else { return text };
        let text = if self.has_short_digests { layout::shortened(&text) } else { text };
        layout::fit(&text, width)
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
