//! Tells the service manager how we are, by the protocol of systemd: one datagram for each change.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager, if it wants to be told.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// From `NOTIFY_SOCKET` and `WATCHDOG_USEC`: a path, or an abstract name behind an `@`.
    pub fn of(address: &str, watchdog_usec: Option<&str>) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        // A manager that does not read must not hold us up.
        socket.set_nonblocking(true)?;
        let watchdog = watchdog_usec
            .and_then(|micros| micros.trim().parse().ok())
            .filter(|micros| *micros > 0)
            .map(Duration::from_micros);
        Ok(Self {
            socket,
            address: socket_address(address)?,
            watchdog,
        })
    }

    /// How often it wants to hear from us, half of what it waits for.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|time| time / 2)
    }

    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Reloading ends with [`Self::ready`]. The time is that of the monotonic clock, which the manager compares.
    pub fn reloading(&self, monotonic: Duration) {
        let micros = monotonic.as_micros();
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    fn tell(&self, state: &str) {
        let sent = self.socket.send_to_addr(state.as_bytes(), &self.address);
        if let Err(error) = sent {
            tracing::debug!(%error, "the service manager was not told");
        }
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

#[cfg(target_os = "linux")]
fn socket_address(address: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    match address.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name.as_bytes()),
        None => SocketAddr::from_pathname(address),
    }
}

#[cfg(not(target_os = "linux"))]
fn socket_address(address: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 512];
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    fn check(manager: &ServiceManager, socket: &UnixDatagram) {
        manager.ready("2 platforms\nand more");
        assert_eq!(heard(socket), "READY=1\nSTATUS=2 platforms and more");
        manager.reloading(Duration::from_micros(7));
        assert_eq!(heard(socket), "RELOADING=1\nMONOTONIC_USEC=7");
        manager.alive();
        assert_eq!(heard(socket), "WATCHDOG=1");
        manager.stopping();
        assert_eq!(heard(socket), "STOPPING=1");
    }

    #[test]
    fn a_manager_at_a_path_hears_every_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager::of(path.to_str().unwrap(), Some("3000000")).unwrap();
        assert_eq!(
            manager.watchdog_interval(),
            Some(Duration::from_millis(1500))
        );
        check(&manager, &socket);
        // One that is gone is no trouble.
        drop(socket);
        std::fs::remove_file(path).unwrap();
        manager.alive();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_manager_behind_an_abstract_name_hears_too() {
        use std::os::linux::net::SocketAddrExt as _;
        let name = format!("hermes-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let manager = ServiceManager::of(&format!("@{name}"), None).unwrap();
        assert_eq!(manager.watchdog_interval(), None);
        check(&manager, &socket);
    }
}
