//! A TCP proxy to an upstream that can be cut, stalled, or redirected to another server.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the proxy does with connections. A change closes those that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpProxyMode {
    /// Forwards them to this address.
    To(SocketAddr),
    /// Accepts them, and sends nothing.
    Silent,
    /// Closes them at once.
    Cut,
}

/// A running proxy. It ends with the program.
pub(crate) struct SwitchableTcpProxy {
    pub(crate) address: SocketAddr,
    line: watch::Sender<TcpProxyMode>,
}

impl SwitchableTcpProxy {
    pub(crate) async fn new(line: TcpProxyMode) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (line, watched) = watch::channel(line);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward_connection(stream, watched.clone()));
            }
        });
        Ok(Self { address, line })
    }

    pub(crate) fn set_mode(&self, line: TcpProxyMode) {
        self.line.send_replace(line);
    }
}

/// Forwards one connection until the proxy's state changes.
async fn forward_connection(mut stream: TcpStream, mut watched: watch::Receiver<TcpProxyMode>) {
    let line = *watched.borrow_and_update();
    let carried = async {
        match line {
            TcpProxyMode::To(upstream) => {
                if let Ok(mut upstream) = TcpStream::connect(upstream).await {
                    // Either end may disconnect at any time.
                    let _ = copy_bidirectional(&mut stream, &mut upstream).await;
                }
            }
            TcpProxyMode::Silent => std::future::pending().await,
            TcpProxyMode::Cut => {}
        }
    };
    tokio::select! {
        () = carried => {}
        _ = watched.changed() => {}
    }
}
