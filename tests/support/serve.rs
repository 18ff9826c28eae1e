//! `clresolve serve` in a process of its own, up to the line that says where it listens.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A daemon that listens, and what is left of its log.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) log: BufReader<ChildStderr>,
}

/// Starts the program of this package as `arguments` say, with nothing in its environment but `variables`.
pub(crate) fn serve<const N: usize>(arguments: &[&str], variables: [(&str, String); N]) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.arg("serve").args(arguments).env_clear().envs(variables).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    // Warnings may come first, and nothing comes after the end of the process.
    while log.read_line(&mut said).expect("UTF-8") > 0 {
        if let Some((_, address)) = said.trim().rsplit_once("listening on http://") {
            let address = address.parse().unwrap_or_else(|_| panic!("{said}"));
            return Served { child, address, log };
        }
    }
    let status = child.wait().expect("a process of ours");
    panic!("it ended before it listened ({status}): {said}")
}

impl Served {
    /// The process and its address. Nobody reads the log, which must not fill the pipe.
    pub(crate) fn unheard(self) -> (Child, SocketAddr) {
        let Self { child, address, mut log } = self;
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        (child, address)
    }
}
