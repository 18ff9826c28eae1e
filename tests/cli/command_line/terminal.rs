//! A real terminal, which `script` (util-linux) makes: what stands on its screen when the program has ended.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// A busy machine is no defect.
const PATIENCE: Duration = Duration::from_secs(60);

/// What Ctrl-C sends.
const END_OF_TEXT: &[u8] = b"\x03";

/// How a terminal shows it.
const ECHO: &str = "^C";

/// A command line in a shell on a terminal of its own, 80 columns wide.
struct Terminal {
    script: Child,
    output: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Terminal {
    /// `None`, with a word on it, where there is no `script`. `clresolve` in `line` is the program.
    fn run(line: &str) -> Option<Self> {
        let line = line.replace("clresolve", env!("CARGO_BIN_EXE_clresolve"));
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-c", &format!("stty cols 80 rows 24; {line}"), "/dev/null"]);
        command.env("TERM", "xterm").env("SHELL", "/bin/sh").env("XDG_CONFIG_HOME", "/nonexistent");
        let Ok(mut script) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
            println!("skipped: there is no `script`");
            return None;
        };
        let output = script.stdout.take().expect("stdout is piped");
        let (send, received) = channel();
        thread::spawn(move || {
            let read = |mut output: ChildStdout| loop {
                let mut bytes = [0; 4096];
                match output.read(&mut bytes) {
                    Ok(length) if length > 0 && send.send(bytes[..length].to_vec()).is_ok() => {}
                    _ => break,
                }
            };
            read(output);
        });
        Some(Self { script, output: received, seen: Vec::new() })
    }

    /// Waits until the program has written `text`.
    fn wait_for(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            let more = self.output.recv_timeout(PATIENCE);
            let seen = String::from_utf8_lossy(&self.seen);
            self.seen.extend(more.unwrap_or_else(|_| panic!("`{text}` was not written: {seen:?}")));
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.script.stdin.as_mut().expect("stdin is piped").write_all(keys).expect("the terminal is there");
    }

    /// The exit code, and what stands on the screen then.
    fn end(mut self) -> (Option<i32>, String) {
        while let Ok(more) = self.output.recv_timeout(PATIENCE) {
            self.seen.extend(more);
        }
        let status = self.script.wait().expect("the program ends");
        (status.code(), screen(&String::from_utf8_lossy(&self.seen)))
    }
}

/// The lines of a screen after `output`, without spaces at their ends and empty lines at the end.
fn screen(output: &str) -> String {
    let mut lines = vec![Vec::new()];
    let (mut row, mut column) = (0, 0);
    let mut characters = output.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => row += 1,
            '\r' => column = 0,
            '\u{1b}' if characters.next_if_eq(&'[').is_some() => {
                let mut argument = String::new();
                while let Some(digit) = characters.next_if(|next| next.is_ascii_digit() || matches!(next, ';' | '?')) {
                    argument.push(digit);
                }
                let number = argument.parse().unwrap_or(1);
                match characters.next() {
                    Some('A') => row = usize::saturating_sub(row, number),
                    Some('B') => row += number,
                    Some('K') => lines[row].truncate(if argument == "2" { 0 } else { column }),
                    // Colours, and whether the cursor is shown.
                    Some('m' | 'h' | 'l') => {}
                    other => panic!("the screen does not know {argument:?} {other:?}: {output:?}"),
                }
            }
            character => {
                let line: &mut Vec<char> = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = character;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    let lines: Vec<String> = lines.into_iter().map(|line| String::from_iter(line).trim_end().to_owned()).collect();
    lines.join("\n").trim_end().to_owned()
}

/// An endpoint that takes every request and answers none, and its URL.
fn silent_endpoint() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    (listener, url)
}

#[test]
fn the_screen_is_that_of_a_terminal() {
    assert_eq!(screen("one\r\ntwo\rT\r\n"), "one\nTwo");
    assert_eq!(screen("\u{1b}[32m⠋\u{1b}[0m waiting\r\u{1b}[2Kdone\r\n"), "done");
    assert_eq!(screen("a\r\nb\u{1b}[1A\r\u{1b}[Kc"), "c\nb");
}

#[test]
fn nothing_of_a_progress_line_remains_after_ctrl_c() {
    let (_listener, silent) = silent_endpoint();
    let folder = tempfile::tempdir().expect("a folder");
    let names = folder.path().join("names");
    std::fs::write(&names, "a.eth\nb.eth\n").expect("a list");
    let names = names.display();
    for (line, shown) in [
        (format!("clresolve a.eth --rpc {silent} --timeout 60s"), "asking about a.eth"),
        (format!("clresolve a.eth b.eth -o jsonl --rpc {silent} --timeout 60s"), "asking about"),
        (format!("clresolve doctor --rpc {silent} --timeout 60s"), "asking endpoints"),
        (format!("clresolve audit --names {names} --rpc {silent} --block 1 --timeout 60s --out /dev/null"), "2 left"),
    ] {
        let Some(mut terminal) = Terminal::run(&line) else { return };
        terminal.wait_for(shown);
        terminal.press(END_OF_TEXT);
        let (code, screen) = terminal.end();
        let left = screen.replace(ECHO, "");
        let warns_of_what_is_missing =
            line.contains("audit") && left.starts_with("clresolve: The audit was interrupted");
        assert!(left.is_empty() || warns_of_what_is_missing, "{line}: {screen:?}");
        assert_eq!(code, Some(130), "{line}");
    }
}

#[test]
fn an_audit_shows_its_rate_the_time_left_and_the_states() {
    let (_listener, silent) = silent_endpoint();
    let folder = tempfile::tempdir().expect("a folder");
    let names = folder.path().join("names");
    std::fs::write(&names, "no name.eth\na.eth\n").expect("a list");
    let line = format!("clresolve audit --names {} --rpc {silent} --block 1 --timeout 60s", names.display());
    let Some(mut terminal) = Terminal::run(&format!("{line} --out /dev/null")) else { return };
    terminal.wait_for(" 0 trusted, 1 untrusted, 0 indeterminate");
    terminal.press(END_OF_TEXT);
    let shown = String::from_utf8_lossy(&terminal.seen).into_owned();
    let line = shown.rsplit(['\r', '\n']).find(|line| line.contains("1 untrusted")).expect("it was waited for");
    let (_, pace) = line.split_once("1/2 1 left in ").unwrap_or_else(|| panic!("no time left: {shown:?}"));
    let (time, rest) = pace.split_once(" (").expect("a rate");
    assert!(time.trim_end_matches(['s', 'm', 'h']).parse::<u64>().is_ok(), "{line:?}");
    let (rate, _) = rest.split_once("/s) ").or_else(|| rest.split_once("/min) ")).expect("a unit");
    assert!(rate.parse::<f64>().is_ok_and(|rate| rate > 0.0), "{line:?}");
    assert_eq!(terminal.end().0, Some(130));
}

#[test]
fn nothing_of_a_progress_line_remains_after_a_pipe_was_closed() {
    for line in [
        "clresolve --sandbox summarizeagent.eth | head -0",
        "clresolve --sandbox summarizeagent.eth checkoutagent.eth entry-version.eth -o jsonl | head -0",
        "clresolve --sandbox summarizeagent.eth checkoutagent.eth entry-version.eth -o jsonl | head -1 >/dev/null",
        "clresolve card --sandbox summarizeagent.eth | head -0",
    ] {
        let Some(terminal) = Terminal::run(line) else { return };
        let (code, screen) = terminal.end();
        assert_eq!((code, screen.as_str()), (Some(0), ""), "{line}");
    }
}
