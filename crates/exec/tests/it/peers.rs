//! Real servers on this machine for commands to run on.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::wait_until;

/// Set where every peer must be there, as in CI.
const REQUIRED: &str = "HERMES_TEST_PEERS_REQUIRED";

/// Returns whether a program is installed. Without it the test is skipped, loudly, or fails where peers are required.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test reads its own settings, and a skipped one must be heard"
)]
pub(crate) fn is_there(program: &str) -> bool {
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

#[expect(clippy::disallowed_methods, reason = "starts a server for a test")]
pub(crate) fn program(name: &str) -> Command {
    Command::new(name)
}

/// Debian's `sshd` on a loopback port, with keys of its own.
pub(crate) struct Sshd {
    process: Child,
    pub(crate) port: u16,
    pub(crate) folder: tempfile::TempDir,
}

impl Sshd {
    pub(crate) fn start() -> Self {
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
             PasswordAuthentication no\nUsePAM no\nStrictModes no\nMaxSessions 100\n"
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

    pub(crate) fn path(&self, name: &str) -> PathBuf {
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
pub(crate) struct Podman {
    process: Child,
    folder: tempfile::TempDir,
}

impl Podman {
    /// An image of busybox and bash, and `script` with the libraries it needs.
    pub(crate) const IMAGE: &'static str = "localhost/hermes:test";

    pub(crate) fn start() -> Self {
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

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn remove_all(&self) {
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
        for file in /usr/bin/script $(ldd /usr/bin/script | grep -o '/[^ ]*'); do
            mkdir -p "$0/$(dirname "$file")"
            cp -L "$file" "$0/$file"
        done
        tar -C "$0" -c .
    "#;
    let mut pack = program("sh");
    pack.args(["-c", script]).arg(at).stdout(Stdio::piped());
    pack.spawn().unwrap()
}
