//! The way to a mail server: whichever of its addresses answers first. In many networks those of one kind lead nowhere.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// An address answers within a second, also from the other side of the world, or not at all.
pub(super) const ADDRESS_MAX: Duration = Duration::from_secs(4);
/// So long after an address the next is tried beside it, as RFC 8305 has it.
const NEXT_AFTER: Duration = Duration::from_millis(250);
/// Large providers have a handful of each kind.
const ADDRESSES_COUNT_MAX: usize = 12;

pub(super) async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let found = tokio::net::lookup_host((host, port)).await?;
    first_of(alternating(found), TcpStream::connect).await
}

/// IPv6 and IPv4 by turns, beginning with what the system puts first.
fn alternating(addresses: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses = addresses.peekable();
    let is_v6 = addresses.peek().is_some_and(SocketAddr::is_ipv6);
    let (mut these, mut others): (Vec<_>, Vec<_>) =
        addresses.partition(|address| address.is_ipv6() == is_v6);
    these.reverse();
    others.reverse();
    let mut turns = Vec::new();
    while turns.len() < ADDRESSES_COUNT_MAX && !(these.is_empty() && others.is_empty()) {
        turns.extend(these.pop());
        turns.extend(others.pop());
    }
    turns
}

async fn first_of<T, F>(
    addresses: Vec<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let attempts = addresses.into_iter().zip(0..).map(|(address, place)| {
        let connecting = connect(address);
        async move {
            sleep(NEXT_AFTER * place).await;
            let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer");
            timeout(ADDRESS_MAX, connecting).await.map_err(silent)?
        }
    });
    let mut attempts: FuturesUnordered<_> = attempts.collect();
    let mut why = None;
    while let Some(attempt) = attempts.next().await {
        match attempt {
            Ok(connected) => return Ok(connected),
            Err(error) => why = why.or(Some(error)),
        }
    }
    Err(why.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no address")))
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        let read = |text: &&str| text.parse().expect("an address");
        texts.iter().map(read).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_never_answers_holds_up_no_other() {
        let dead = [
            "[2001:db8::1]:993",
            "[2001:db8::2]:993",
            "[2001:db8::3]:993",
        ];
        let all = [&dead[..], &["192.0.2.1:993"]].concat();
        let began = Instant::now();
        let connect = async |address: SocketAddr| {
            if address.is_ipv6() {
                std::future::pending::<()>().await;
            }
            Ok(address)
        };
        let all = alternating(addresses(&all).into_iter());
        let found = first_of(all, connect).await.expect("it is there");
        assert_eq!(found, addresses(&["192.0.2.1:993"])[0]);
        assert!(began.elapsed() < Duration::from_secs(1));
        let none = first_of(addresses(&dead), connect).await;
        assert_eq!(none.expect_err("nobody").kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn kinds_of_addresses_take_turns() {
        let found = ["192.0.2.1:1", "192.0.2.2:1", "[::1]:1", "192.0.2.3:1"];
        let turns = ["192.0.2.1:1", "[::1]:1", "192.0.2.2:1", "192.0.2.3:1"];
        assert_eq!(
            alternating(addresses(&found).into_iter()),
            addresses(&turns)
        );
        assert_eq!(alternating(std::iter::empty()), []);
    }
}
