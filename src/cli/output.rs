//! Writes results to standard output or atomically to a file. A closed pipe is not an error.

use std::fs::File;
use std::io::{self, ErrorKind, Seek as _, Write};
use std::path::{Path, PathBuf};

use anstream::stream::RawStream;
use anyhow::bail;
use clap::builder::StyledStr;
use clresolve_core::text;
use serde::Serialize;

use super::args::{OutputFileArguments, OutputFormat};
use super::input::escaped_path;
use super::layout;
use super::new_file::{self, ReplacementFile, parent_folder};
use super::render::Palette;

pub(super) struct OutputSink {
    target: OutputDestination,
    gone: bool,
}

enum OutputDestination {
    Stdout,
    /// An unlinked file that replaces the one at `path` at the end, so that a command that fails, is killed or has no
    /// results leaves that file unchanged.
    File {
        path: PathBuf,
        written: Option<File>,
    },
    /// Not a regular file, for example a pipe.
    Device {
        path: PathBuf,
    },
}

impl OutputSink {
    /// Standard output, or the file of `--out`.
    ///
    /// # Errors
    /// If the file is unusable. This is detected before the work starts.
    pub(super) fn new(args: &OutputFileArguments) -> anyhow::Result<Self> {
        match &args.file {
            Some(path) => Self::open_file("--out", path),
            None => Ok(Self { target: OutputDestination::Stdout, gone: false }),
        }
    }

    /// The file of an option.
    ///
    /// # Errors
    /// If it is unusable, as for [`Self::new`].
    pub(super) fn open_file(flag: &str, path: &Path) -> anyhow::Result<Self> {
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
            _ => Ok(Self { target: OutputDestination::from_path(path), gone: false }),
        }
    }

    /// Like [`Self::new`], but refuses to overwrite any of these input files.
    ///
    /// # Errors
    /// If one of them is the same file.
    pub(super) fn new_unless_input_file<'a>(
        args: &OutputFileArguments,
        read: impl IntoIterator<Item = (&'a str, Option<&'a Path>)>,
    ) -> anyhow::Result<Self> {
        if let Some(out) = &args.file {
            reject_output_over_input(out, read)?;
        }
        Self::new(args)
    }

    /// The width of the terminal, if the results go to one.
    pub(super) fn terminal_width(&self) -> Option<usize> {
        match self.target {
            OutputDestination::Stdout => layout::width_of_stdout(),
            OutputDestination::File { .. } | OutputDestination::Device { .. } => None,
        }
    }

    /// The styles for the output: those of standard output, or none for a file.
    pub(super) fn palette(&self) -> Palette {
        match self.target {
            OutputDestination::Stdout if supports_colour(&io::stdout()) => Palette::with_colours(),
            OutputDestination::Stdout | OutputDestination::File { .. } | OutputDestination::Device { .. } => {
                Palette::plain()
            }
        }
    }

    /// Writes all bytes at once. If the reader has closed the pipe, this and all later writes do nothing.
    ///
    /// # Errors
    /// If writing fails.
    fn write_result(&mut self, bytes: &[u8]) -> Result<(), OutputWriteError> {
        if self.gone {
            return Ok(());
        }
        match self.try_write(bytes) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(())
            }
            Err(error) => Err(OutputWriteError { what: self.destination_name(), error }),
        }
    }

    /// Moves the finished file into place.
    ///
    /// # Errors
    /// If writing fails, for example because the disk is full.
    pub(super) fn finish(mut self) -> Result<(), OutputWriteError> {
        let OutputDestination::File { path, written: Some(written) } = &mut self.target else { return Ok(()) };
        let kept = written.rewind().and_then(|()| {
            let new = ReplacementFile::create_beside(path)?;
            io::copy(written, &mut new.file())?;
            new.replace_target()
        });
        kept.map_err(|error| OutputWriteError { what: self.destination_name(), error })
    }

    /// Writes all results.
    ///
    /// # Errors
    /// [`OutputWriteError`]
    pub(super) fn write_all_and_finish(mut self, bytes: &[u8]) -> Result<(), OutputWriteError> {
        self.write_result(bytes)?;
        self.finish()
    }

    /// Writes all results, but never replaces an existing file.
    ///
    /// # Errors
    /// If the file exists, or [`OutputWriteError`].
    pub(super) fn write_new_file(self, bytes: &[u8]) -> anyhow::Result<()> {
        let OutputDestination::File { path, .. } = &self.target else { return Ok(self.write_all_and_finish(bytes)?) };
        match new_file::create_file(path, bytes) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{}: the file exists, and is left as it is", escaped_path(path))
            }
            created => Ok(created.map_err(|error| OutputWriteError { what: self.destination_name(), error })?),
        }
    }

    /// Whether the reader has closed the pipe.
    pub(super) const fn is_pipe_closed(&self) -> bool {
        self.gone
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.target {
            OutputDestination::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes)?;
                stdout.flush()
            }
            OutputDestination::File { path, written } => {
                let written = match written {
                    Some(written) => written,
                    None => written.insert(tempfile::tempfile_in(parent_folder(path))?),
                };
                written.write_all(bytes)
            }
            OutputDestination::Device { path } => File::options().append(true).open(path)?.write_all(bytes),
        }
    }

    fn destination_name(&self) -> String {
        match &self.target {
            OutputDestination::Stdout => "standard output".to_owned(),
            OutputDestination::File { path, .. } | OutputDestination::Device { path } => path.display().to_string(),
        }
    }
}

impl Write for OutputSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_result(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OutputDestination {
    fn from_path(path: &Path) -> Self {
        let path = path.to_owned();
        match path.metadata() {
            Ok(found) if !found.is_file() => Self::Device { path },
            _ => Self::File { path, written: None },
        }
    }
}

/// Rejects the file of `--out` if it is one of the input files.
///
/// # Errors
/// If one of them is the same file.
pub(super) fn reject_output_over_input<'a>(
    out: &Path,
    read: impl IntoIterator<Item = (&'a str, Option<&'a Path>)>,
) -> anyhow::Result<()> {
    for (flag, file) in read {
        if file.is_some_and(|file| is_same_file(file, out)) {
            bail!("--out {}: this is the file of {flag} too; name another", out.display());
        }
    }
    Ok(())
}

/// Whether two paths refer to one file, or would if it existed.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((canonical_path(one), canonical_path(other)), (Some(one), Some(other)) if one == other)
}

/// The canonical path of a file that may not exist. `None` if its folder does not exist.
fn canonical_path(path: &Path) -> Option<PathBuf> {
    let new = || Some(parent_folder(path).canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(new)
}

/// Results that cannot be written, for example to a full disk.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {what}")]
pub(super) struct OutputWriteError {
    what: String,
    #[source]
    error: io::Error,
}

impl OutputWriteError {
    pub(super) fn new(what: impl Into<String>, error: io::Error) -> Self {
        Self { what: what.into(), error }
    }
}

/// Prints help and the like to standard output, with styles if the stream supports them.
///
/// # Errors
/// If writing fails. A closed pipe is not an error.
pub(super) fn print_styled_text(text: &StyledStr) -> Result<(), OutputWriteError> {
    let mut stdout = anstream::stdout().lock();
    match write!(stdout, "{}", text.ansi()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(OutputWriteError::new("standard output", error)),
        _ => Ok(()),
    }
}

pub(super) fn supports_colour<S: RawStream>(stream: &S) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Writes results one by one in the chosen format.
pub(super) struct ResultWriter {
    output: OutputSink,
    format: OutputFormat,
    is_list: bool,
    /// Whether digests are shortened for a terminal.
    has_short_digests: bool,
    written: usize,
}

impl ResultWriter {
    /// For one result: `-o json` writes an object.
    pub(super) const fn for_single_result(output: OutputSink, format: OutputFormat) -> Self {
        Self { output, format, is_list: false, has_short_digests: false, written: 0 }
    }

    /// For any number of results: `-o json` writes an array.
    pub(super) const fn for_result_list(output: OutputSink, format: OutputFormat) -> Self {
        Self { output, format, is_list: true, has_short_digests: false, written: 0 }
    }

    /// For `count` requested results: a single one is not an array.
    pub(super) const fn for_requested_results(output: OutputSink, format: OutputFormat, count: usize) -> Self {
        if count > 1 { Self::for_result_list(output, format) } else { Self::for_single_result(output, format) }
    }

    /// Shortens digests if the results go to a terminal.
    pub(super) fn with_short_digests(mut self) -> Self {
        self.has_short_digests = true;
        self
    }

    /// Writes one result. `people` formats it as text, which must end with a line end.
    pub(super) fn push(
        &mut self,
        value: &impl Serialize,
        people: impl FnOnce(OutputFormat) -> String,
    ) -> anyhow::Result<()> {
        let text = match self.format {
            OutputFormat::Text | OutputFormat::Short => self.fit_to_terminal(people(self.format)),
            OutputFormat::Jsonl => json_line(value)? + "\n",
            OutputFormat::Json if self.is_list => {
                let separator = if self.written == 0 { "[\n" } else { ",\n" };
                format!("{separator}{}", pretty_json(value)?)
            }
            OutputFormat::Json => pretty_json(value)? + "\n",
        };
        self.written += 1;
        Ok(self.output.write_result(text.as_bytes())?)
    }

    fn fit_to_terminal(&self, text: String) -> String {
        let Some(width) = self.output.terminal_width().filter(|_| self.format == OutputFormat::Text) else {
            return text;
        };
        let text = if self.has_short_digests { layout::shorten_digests(&text) } else { text };
        layout::wrap_long_lines(&text, width)
    }

    /// Closes the array, if there is one, and finishes the output.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        if self.format == OutputFormat::Json && self.is_list {
            let end: &[u8] = if self.written == 0 { b"[]\n" } else { b"\n]\n" };
            self.output.write_result(end)?;
        }
        Ok(self.output.finish()?)
    }

    /// Whether the reader has closed the pipe.
    pub(super) const fn is_pipe_closed(&self) -> bool {
        self.output.is_pipe_closed()
    }
}

/// `value` as indented JSON, with terminal control characters escaped.
pub(super) fn pretty_json(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(text::escape_unsafe_json(&serde_json::to_string_pretty(value)?))
}

/// `value` as JSON on one line, escaped likewise.
pub(super) fn json_line(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(text::escape_unsafe_json(&serde_json::to_string(value)?))
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
