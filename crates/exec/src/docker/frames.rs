//! Takes the frames off an engine's stream: each is a header of eight bytes, the last four its length, and then output.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

const HEADER_BYTES: usize = 8;

/// Taken at once: what the engine puts into one frame at most.
const CHUNK_BYTES: usize = 32 * 1024;

pub(super) struct Frames<R> {
    source: R,
    header: [u8; HEADER_BYTES],
    header_len: usize,
    /// Bytes of this frame that have not come yet.
    left: usize,
}

impl<R> Frames<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            header: [0; HEADER_BYTES],
            header_len: 0,
            left: 0,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Frames<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.left == 0 {
            let mut rest = ReadBuf::new(&mut this.header[this.header_len..]);
            ready!(Pin::new(&mut this.source).poll_read(cx, &mut rest))?;
            match rest.filled().len() {
                0 => return Poll::Ready(Ok(())),
                len => this.header_len += len,
            }
            if this.header_len == HEADER_BYTES {
                let [.., a, b, c, d] = this.header;
                this.left = u32::from_be_bytes([a, b, c, d]) as usize;
                this.header_len = 0;
            }
        }
        let mut chunk = [0; CHUNK_BYTES];
        let len = this.left.min(buffer.remaining()).min(CHUNK_BYTES);
        let mut part = ReadBuf::new(&mut chunk[..len]);
        ready!(Pin::new(&mut this.source).poll_read(cx, &mut part))?;
        this.left -= part.filled().len();
        buffer.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn frames_become_one_stream() {
        let bytes = b"\x01\0\0\0\0\0\0\x03one\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x02\xff\0";
        let mut output = Vec::new();
        Frames::new(&bytes[..])
            .read_to_end(&mut output)
            .await
            .unwrap();
        assert_eq!(output, b"one\xff\0");
    }
}
