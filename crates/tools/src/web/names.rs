//! From a host's name to the addresses a connection may go to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hermes_core::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::destination::{PrivateUrls, Refusal};

/// Knows the addresses of hosts. The binary asks the system, tests say what they like.
pub trait Names: Send + Sync {
    fn addresses<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// What the system knows: its hosts file, its DNS.
pub struct SystemNames;

impl Names for SystemNames {
    fn addresses<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Resolves the names of an HTTP client, which connects to nothing else than what this returns. A name is looked up once
/// for each connection, so there is no second answer that nobody judged.
pub(super) struct JudgedNames {
    pub(super) names: Arc<dyn Names>,
    pub(super) private: PrivateUrls,
}

impl Resolve for JudgedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let (names, private) = (Arc::clone(&self.names), self.private);
        Box::pin(async move {
            let addresses = judged(&*names, private, name.as_str()).await?;
            let sockets = addresses.into_iter();
            // Port 0 stands for the one of the URL.
            let sockets = sockets.map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as Addrs)
        })
    }
}

/// One address that may not be asked refuses the host: a client would try them all.
async fn judged(
    names: &dyn Names,
    private: PrivateUrls,
    host: &str,
) -> Result<Vec<IpAddr>, Refusal> {
    let unresolved = |reason: String| Refusal::Unresolved {
        host: host.to_owned(),
        reason,
    };
    let addresses = names.addresses(host).await;
    let addresses = addresses.map_err(|error| unresolved(error.to_string()))?;
    if addresses.is_empty() {
        return Err(unresolved("it has none".to_owned()));
    }
    for address in &addresses {
        private.judge_address(host, *address)?;
    }
    Ok(addresses)
}
