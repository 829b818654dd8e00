//! Real servers on this machine for commands to run on.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set where every peer must be there, as in CI.
const REQUIRED: &str = "HERMES_TEST_PEERS_REQUIRED";

/// Returns whether a program is installed. Without it the test is skipped, loudly, or fails where peers are required.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test reads its own settings, and a skipped one must be heard"
)]
pub fn is_there(program: &str) -> bool {
    let is_there = ["/usr/sbin", "/usr/bin", "/bin", "/usr/local/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists());
    if !is_there {
        let words = format!("SKIPPED: `{program}` is not installed; scripts/test installs it");
        assert!(std::env::var_os(REQUIRED).is_none(), "{words}");
        eprintln!("{words}");
    }
    is_there
}

/// The folder that `scripts/peers` put a package of others into. Without it the test is skipped, loudly, or fails where peers
/// are required.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test finds its peers, and a skipped one must be heard"
)]
pub fn peer(name: &str) -> Option<PathBuf> {
    let chosen = std::env::var_os("HERMES_TEST_PEERS").map(PathBuf::from);
    let cache = chosen.or_else(|| {
        let home = PathBuf::from(std::env::var_os("HOME")?);
        let cache = std::env::var_os("XDG_CACHE_HOME").map_or(home.join(".cache"), PathBuf::from);
        Some(cache.join("hermes-test-peers"))
    });
    let folder = cache
        .map(|cache| cache.join(name))
        .filter(|folder| folder.join("installed").exists());
    if folder.is_none() {
        let words = format!(
            "SKIPPED: the peer `{name}` is not installed; `scripts/peers {name}` installs it"
        );
        assert!(std::env::var_os(REQUIRED).is_none(), "{words}");
        eprintln!("{words}");
    }
    folder
}

/// Waits for something that happens soon, on a machine that may be busy.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "starts a server for a test")]
pub fn program(name: &str) -> Command {
    Command::new(name)
}

/// Debian's `sshd` on a loopback port, with keys of its own, and a home without the start files of whoever runs the test.
pub struct Sshd {
    process: Child,
    pub port: u16,
    pub folder: tempfile::TempDir,
}

impl Sshd {
    pub fn start() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("sshd")
            .tempdir_in("/tmp")
            .unwrap();
        let path = |name: &str| folder.path().join(name);
        for key in ["host_key", "key"] {
            let mut keygen = program("ssh-keygen");
            keygen
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(path(key));
            assert!(keygen.status().unwrap().success());
        }
        fs::copy(path("key.pub"), path("authorized_keys")).unwrap();
        fs::create_dir_all("/run/sshd").unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let at = folder.path().display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host_key\nPidFile {at}/pid\n\
             AuthorizedKeysFile {at}/authorized_keys\nPermitRootLogin prohibit-password\n\
             PasswordAuthentication no\nUsePAM no\nStrictModes no\nMaxSessions 100\n\
             SetEnv HOME={at}\n"
        );
        fs::write(path("config"), config).unwrap();
        let process = program("/usr/sbin/sshd")
            .arg("-D")
            .args(["-f".as_ref(), path("config").as_os_str()])
            .args(["-E".as_ref(), path("log").as_os_str()])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let log = path("log");
        let is_listening = || fs::read_to_string(&log).is_ok_and(|log| log.contains("listening"));
        wait_until("sshd listens", is_listening);
        Self {
            process,
            port,
            folder,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Debian's `podman`, which speaks Docker's API, with one small image of its own.
pub struct Podman {
    process: Child,
    folder: tempfile::TempDir,
}

impl Podman {
    /// An image of busybox and bash, and `script` and Python with what they need.
    pub const IMAGE: &'static str = "localhost/hermes:test";

    pub fn start() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("podman")
            .tempdir_in("/var/tmp")
            .unwrap();
        let at = folder.path();
        let config = "[containers]\ndefault_ulimits = [\"nofile=1024:1024\",\"nproc=1000:1000\"]\n[engine]\n\
                      runtime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n";
        fs::write(at.join("containers.conf"), config).unwrap();
        let image = Self::command(at)
            .args(["import", "-", Self::IMAGE])
            .stdin(image(&at.join("image")).stdout.take().unwrap())
            .output()
            .unwrap();
        assert!(image.status.success(), "{image:?}");
        let process = Self::command(at)
            .args(["system", "service", "--time=0"])
            .arg(format!("unix://{}", at.join("socket").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let socket = at.join("socket");
        wait_until("podman listens", || UnixStream::connect(&socket).is_ok());
        Self { process, folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn remove_all(&self) {
        let removed = Self::command(self.folder.path())
            .args(["rm", "-fat", "0"])
            .output();
        assert!(removed.unwrap().status.success());
    }

    fn command(at: &Path) -> Command {
        let mut podman = program("podman");
        podman
            .env("CONTAINERS_CONF", at.join("containers.conf"))
            .arg("--root")
            .arg(at.join("root"))
            .arg("--runroot")
            .arg(at.join("runroot"));
        podman
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = Self::command(self.folder.path())
            .args(["rm", "-fat", "0"])
            .output();
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Layers may still be mounted.
        let _ = Self::command(self.folder.path())
            .args(["umount", "-af"])
            .output();
    }
}

/// Packs the files of a small system.
fn image(at: &Path) -> Child {
    let script = r#"
        set -e
        mkdir -p "$0"/bin "$0"/usr/bin "$0"/tmp "$0"/root "$0"/run "$0"/var/tmp "$0"/proc "$0"/dev
        cp /bin/busybox "$0/bin/busybox"
        cp /bin/bash-static "$0/bin/bash"
        for applet in $(busybox --list); do
            case $applet in bash | busybox | script) ;; *) ln -sf busybox "$0/bin/$applet" ;; esac
        done
        for program in /usr/bin/script $(readlink -f /usr/bin/python3); do
            for file in "$program" $(ldd "$program" | grep -o '/[^ ]*'); do
                mkdir -p "$0/$(dirname "$file")"
                cp -L "$file" "$0/$file"
            done
        done
        python=$(basename "$(readlink -f /usr/bin/python3)")
        ln -sf "$python" "$0/usr/bin/python3"
        mkdir -p "$0/usr/lib/$python"
        cp /usr/lib/"$python"/*.py "$0/usr/lib/$python"
        for part in collections concurrent encodings importlib json lib-dynload logging re; do
            [ ! -e "/usr/lib/$python/$part" ] || cp -r "/usr/lib/$python/$part" "$0/usr/lib/$python"
        done
        tar -C "$0" -c .
    "#;
    let mut pack = program("sh");
    pack.args(["-c", script]).arg(at).stdout(Stdio::piped());
    pack.spawn().unwrap()
}

/// Where `scripts/peers` installed a real program; `None` if it did not. The test is then skipped, loudly, or fails where
/// peers are required.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test reads its own settings, and a skipped one must be heard"
)]
pub fn installed(name: &str) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let in_cache = |cache: PathBuf| cache.join("hermes-test-peers");
    let folder = variable("HERMES_TEST_PEERS")
        .map(PathBuf::from)
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| in_cache(cache.into())))
        .or_else(|| variable("HOME").map(|home| in_cache(PathBuf::from(home).join(".cache"))));
    let folder = folder.map(|folder| folder.join(name));
    let found = folder.filter(|folder| folder.join("installed").exists());
    if found.is_none() {
        let words =
            format!("SKIPPED: `{name}` is not installed; `scripts/peers {name}` installs it");
        assert!(variable(REQUIRED).is_none(), "{words}");
        eprintln!("{words}");
    }
    found
}
