//! Reads the responses of a measured server.

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// Maximum length of a response, head and body, in bytes. A verdict has a few thousand.
pub(crate) const MAX_ANSWER: usize = 64 * 1024;

/// Reads one response and returns its length.
pub(crate) async fn answer(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    let mut filled = 0;
    let mut whole = usize::MAX;
    while filled < whole {
        let read = stream.read(&mut buffer[filled..]).await.expect("the server answers");
        assert!(read > 0, "the server closed the connection, or its answer is too long");
        filled += read;
        if whole == usize::MAX
            && let Some(head) = buffer[..filled].windows(4).position(|end| end == b"\r\n\r\n")
        {
            whole = head + 4 + content_length(&buffer[..head]);
        }
    }
    whole
}

fn content_length(head: &[u8]) -> usize {
    let head = std::str::from_utf8(head).expect("a head is ASCII");
    let value = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    value.and_then(|length| length.parse().ok()).expect("an answer has a length")
}
