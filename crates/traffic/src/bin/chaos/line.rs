//! A line to an upstream that can be cut, held, or laid to somebody else.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What a line does with connections. A change of it cuts those that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// They reach this address.
    To(SocketAddr),
    /// They are accepted, and nothing ever comes.
    Silent,
    /// They are closed as they come.
    Cut,
}

/// A line in use. It ends with the program.
pub(crate) struct Laid {
    pub(crate) address: SocketAddr,
    line: watch::Sender<Line>,
}

impl Laid {
    pub(crate) async fn new(line: Line) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (line, watched) = watch::channel(line);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(carry(stream, watched.clone()));
            }
        });
        Ok(Self { address, line })
    }

    pub(crate) fn set(&self, line: Line) {
        self.line.send_replace(line);
    }
}

/// Carries one connection until its line changes.
async fn carry(mut stream: TcpStream, mut watched: watch::Receiver<Line>) {
    let line = *watched.borrow_and_update();
    let carried = async {
        match line {
            Line::To(upstream) => {
                if let Ok(mut upstream) = TcpStream::connect(upstream).await {
                    // Either end may hang up at any time: that is what a line is for.
                    let _ = copy_bidirectional(&mut stream, &mut upstream).await;
                }
            }
            Line::Silent => std::future::pending().await,
            Line::Cut => {}
        }
    };
    tokio::select! {
        () = carried => {}
        _ = watched.changed() => {}
    }
}
