//! Postfix and Dovecot, as Debian has them, on ports and in a folder of their own.
//!
//! Mail to `NAME@example.net` and `NAME@example.org` lies in maildirs; the mailboxes of `example.net` are open by IMAP, plainly
//! and by TLS, and whoever has one may send. [`MailWire`] stands between them and us, and breaks.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

mod wire;

use std::fs;
use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::peers::{is_there, program, wait_until};
pub use wire::{MailWire, SmtpFault};

/// What the server calls itself where it says what it found out about senders.
pub const SERVER: &str = "mx.example.net";
/// Accounts there are, from the start.
const ACCOUNTS_COUNT: u32 = 200;
/// `nobody` owns the mail.
const OWNER: u32 = 65534;

pub struct MailServer {
    folder: tempfile::TempDir,
    dovecot: Child,
    pub imap_port: u16,
    pub imaps_port: u16,
    pub smtp_port: u16,
    pub smtps_port: u16,
    next: AtomicU32,
    passwords: Mutex<Vec<String>>,
}

/// A mailbox of ours, and somebody who writes to it.
#[derive(Debug, Clone)]
pub struct MailAccount {
    number: u32,
    pub address: String,
    pub person: String,
    pub password: String,
}

impl MailServer {
    /// Starts both. `None` where they are not installed, or where this process may not start them.
    pub fn start() -> Option<Self> {
        let are_there = ["postfix", "dovecot", "openssl"].map(is_there);
        if !are_there.iter().all(|is_there| *is_there) || !is_root() {
            return None;
        }
        let folder = tempfile::Builder::new()
            .prefix("mail")
            .tempdir_in("/tmp")
            .unwrap();
        let at = folder.path();
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
        for part in ["postfix/queue", "postfix/data", "dovecot/run", "mail"] {
            fs::create_dir_all(at.join(part)).unwrap();
        }
        chown(at.join("mail"), Some(OWNER), Some(OWNER)).unwrap();
        let data = program("chown")
            .arg("postfix")
            .arg(at.join("postfix/data"))
            .status();
        assert!(data.unwrap().success());
        make_certificate(at);
        let [imap_port, imaps_port, smtp_port, smtps_port] = free_ports();
        write_postfix(at, smtp_port, smtps_port);
        write_dovecot(at, imap_port, imaps_port);
        let passwords: Vec<String> = (0..ACCOUNTS_COUNT)
            .map(|number| format!("open-sesame-{number}"))
            .collect();
        let server = Self {
            dovecot: start_dovecot(at, &passwords),
            folder,
            imap_port,
            imaps_port,
            smtp_port,
            smtps_port,
            next: AtomicU32::new(0),
            passwords: Mutex::new(passwords),
        };
        start_postfix(server.folder.path());
        for port in [imap_port, smtp_port, imaps_port, smtps_port] {
            let is_listening = || TcpStream::connect(("127.0.0.1", port)).is_ok();
            wait_until("the mail servers listen", is_listening);
        }
        Some(server)
    }

    /// A file of certificates to trust.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// An account that nobody had before.
    pub fn account(&self) -> MailAccount {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        assert!(number < ACCOUNTS_COUNT, "there are no more accounts");
        MailAccount {
            number,
            address: format!("hermes{number}@example.net"),
            person: format!("alice{number}@example.org"),
            password: self.passwords.lock().unwrap()[number as usize].clone(),
        }
    }

    /// From now on the account has another password.
    pub fn change_password(&self, account: &MailAccount) {
        let mut passwords = self.passwords.lock().unwrap();
        passwords[account.number as usize] = "another".to_owned();
        write_passwords(self.folder.path(), &passwords);
        // Dovecot looks at the file once a second.
        std::thread::sleep(Duration::from_millis(1100));
    }

    /// Hands a mail over as another server does, and waits until it lies in its mailbox.
    pub fn deliver(&self, from: &str, to: &str, mail: &[u8]) {
        let stream = TcpStream::connect(("127.0.0.1", self.smtp_port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        expect_answer(&mut lines, "2");
        for (command, expected) in [
            ("EHLO elsewhere.example".to_owned(), "2"),
            (format!("MAIL FROM:<{from}> BODY=8BITMIME"), "2"),
            (format!("RCPT TO:<{to}>"), "2"),
            ("DATA".to_owned(), "3"),
        ] {
            stream
                .write_all(format!("{command}\r\n").as_bytes())
                .unwrap();
            expect_answer(&mut lines, expected);
        }
        for line in mail.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let stuffing: &[u8] = if line.starts_with(b".") { b"." } else { b"" };
            stream
                .write_all(&[stuffing, line, b"\r\n"].concat())
                .unwrap();
        }
        stream.write_all(b".\r\nQUIT\r\n").unwrap();
        expect_answer(&mut lines, "2");
        self.settle();
    }

    /// Waits until no mail is on its way.
    pub fn settle(&self) {
        let queue = self.folder.path().join("postfix/queue");
        let is_empty = |name: &str| files_below(&queue.join(name)).is_empty();
        wait_until("mail has arrived", || {
            ["maildrop", "incoming", "active", "deferred"]
                .iter()
                .all(|name| is_empty(name))
        });
    }

    /// The mails in somebody's mailbox, in the order they came.
    pub fn mails(&self, address: &str) -> Vec<Vec<u8>> {
        self.settle();
        let mut files = self.mail_files(address);
        files.sort_by_key(|path| arrival(path));
        files
            .iter()
            .filter_map(|path| fs::read(path).ok())
            .collect()
    }

    /// How many mails nobody has read.
    pub fn unread_count(&self, address: &str) -> usize {
        let is_unread = |path: &&PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            !name
                .rsplit(":2,")
                .next()
                .is_some_and(|flags| name.contains(":2,") && flags.contains('S'))
        };
        self.mail_files(address).iter().filter(is_unread).count()
    }

    /// Whether somebody opened the mailbox, ever: what comes from then on has a number above what was there.
    pub fn was_opened(&self, address: &str) -> bool {
        self.mailbox(address).join("dovecot-uidlist").exists()
    }

    /// How many copies of sent mail there are.
    pub fn sent_count(&self, address: &str) -> usize {
        let sent = self.mailbox(address).join(".Sent");
        files_below(&sent.join("cur")).len() + files_below(&sent.join("new")).len()
    }

    /// Lets the mailbox number its mails anew, as a server does that was restored from a copy.
    pub fn renumber(&self, address: &str) {
        let mailbox = self.mailbox(address);
        for file in fs::read_dir(mailbox).unwrap().flatten() {
            if file.file_name().to_string_lossy().starts_with("dovecot") {
                fs::remove_file(file.path()).unwrap();
            }
        }
    }

    fn mailbox(&self, address: &str) -> PathBuf {
        let (name, domain) = address.split_once('@').unwrap();
        self.folder.path().join("mail").join(domain).join(name)
    }

    fn mail_files(&self, address: &str) -> Vec<PathBuf> {
        let mailbox = self.mailbox(address);
        let mut files = files_below(&mailbox.join("new"));
        files.extend(files_below(&mailbox.join("cur")));
        files
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let folder = self.folder.path().join("postfix");
        let _ = program("/usr/sbin/postfix")
            .arg("-c")
            .arg(folder)
            .arg("stop")
            .stderr(Stdio::null())
            .status();
        let _ = program("kill").arg(self.dovecot.id().to_string()).status();
        let _ = self.dovecot.wait();
    }
}

/// When a mail came, by the name of its file: seconds, and microseconds behind an `M`.
fn arrival(path: &Path) -> (u64, u64) {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let secs = name.split('.').next().and_then(|secs| secs.parse().ok());
    let micros = name
        .split('.')
        .nth(1)
        .and_then(|part| part.rsplit('M').next());
    let micros = micros.and_then(|micros| micros.parse().ok());
    (secs.unwrap_or_default(), micros.unwrap_or_default())
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files.extend(files_below(&path)),
            path => files.push(path),
        }
    }
    files
}

fn expect_answer(lines: &mut impl std::io::BufRead, start: &str) {
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with(start), "the mail server said {line:?}");
        if line.as_bytes().get(3) != Some(&b'-') {
            return;
        }
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test must be heard")]
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: only root can start Postfix");
    }
    is_root
}

fn free_ports() -> [u16; 4] {
    let held = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}

fn make_certificate(at: &Path) {
    let made = program("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args(["-days", "30", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(at.join("key.pem"))
        .arg("-out")
        .arg(at.join("cert.pem"))
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
}

fn write_postfix(at: &Path, smtp_port: u16, smtps_port: u16) {
    let users: String = (0..ACCOUNTS_COUNT)
        .map(|number| {
            format!("hermes{number}@example.net example.net/hermes{number}/\nalice{number}@example.org example.org/alice{number}/\n")
        })
        .collect();
    fs::write(at.join("postfix/users"), users).unwrap();
    let at_text = at.display();
    let main = format!(
        "compatibility_level = 3.6\nqueue_directory = {at_text}/postfix/queue\ndata_directory = {at_text}/postfix/data\n\
         maillog_file = {at_text}/postfix/log\nmaillog_file_prefixes = {at_text}\nmyhostname = {SERVER}\nmydestination =\n\
         mynetworks =\ninet_interfaces = 127.0.0.1\ninet_protocols = ipv4\nalias_maps =\nalias_database =\n\
         virtual_mailbox_domains = example.net, example.org\nvirtual_mailbox_base = {at_text}/mail\n\
         virtual_mailbox_maps = texthash:{at_text}/postfix/users\nvirtual_uid_maps = static:{OWNER}\n\
         virtual_gid_maps = static:{OWNER}\nvirtual_minimum_uid = 100\nvirtual_mailbox_limit = 0\n\
         message_size_limit = 60000000\nsmtpd_sasl_auth_enable = yes\nsmtpd_sasl_type = dovecot\n\
         smtpd_sasl_path = {at_text}/dovecot/auth\n\
         smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination\n\
         smtpd_tls_cert_file = {at_text}/cert.pem\nsmtpd_tls_key_file = {at_text}/key.pem\n\
         smtpd_tls_security_level = may\ndefault_destination_concurrency_limit = 1\n\
         smtpd_forbid_bare_newline = no\nsmtpd_client_connection_count_limit = 0\n"
    );
    fs::write(at.join("postfix/main.cf"), main).unwrap();
    let master = format!(
        "127.0.0.1:{smtp_port} inet n - n - - smtpd\n\
         127.0.0.1:{smtps_port} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes\n\
         cleanup unix n - n - 0 cleanup\nqmgr unix n - n 300 1 qmgr\ntlsmgr unix - - n 1000? 1 tlsmgr\n\
         rewrite unix - - n - - trivial-rewrite\nbounce unix - - n - 0 bounce\ndefer unix - - n - 0 bounce\n\
         trace unix - - n - 0 bounce\nverify unix - - n - 1 verify\nproxymap unix - - n - - proxymap\n\
         smtp unix - - n - - smtp\nerror unix - - n - - error\nretry unix - - n - - error\n\
         virtual unix - n n - - virtual\nanvil unix - - n - 1 anvil\npostlog unix-dgram n - n - 1 postlogd\n"
    );
    fs::write(at.join("postfix/master.cf"), master).unwrap();
}

fn start_postfix(at: &Path) {
    let started = program("/usr/sbin/postfix")
        .arg("-c")
        .arg(at.join("postfix"))
        .arg("start")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let log = fs::read_to_string(at.join("postfix/log")).unwrap_or_default();
    assert!(started.unwrap().success(), "Postfix does not start: {log}");
}

fn write_dovecot(at: &Path, imap_port: u16, imaps_port: u16) {
    let at_text = at.display();
    let config = format!(
        "base_dir = {at_text}/dovecot/run\nlog_path = {at_text}/dovecot/log\nprotocols = imap\nlisten = 127.0.0.1\n\
         ssl = yes\nssl_cert = <{at_text}/cert.pem\nssl_key = <{at_text}/key.pem\ndisable_plaintext_auth = no\n\
         auth_failure_delay = 0\nmail_location = maildir:{at_text}/mail/%d/%n\nfirst_valid_uid = 1\n\
         mail_max_userip_connections = 100\n\
         passdb {{\n  driver = passwd-file\n  args = scheme=PLAIN username_format=%u {at_text}/dovecot/users\n}}\n\
         userdb {{\n  driver = static\n  args = uid={OWNER} gid={OWNER} home={at_text}/mail/%d/%n\n}}\n\
         service imap-login {{\n  inet_listener imap {{\n    port = {imap_port}\n  }}\n  inet_listener imaps {{\n    port = {imaps_port}\n    ssl = yes\n  }}\n}}\n\
         service auth {{\n  unix_listener {at_text}/dovecot/auth {{\n    mode = 0666\n  }}\n}}\n\
         namespace inbox {{\n  inbox = yes\n  mailbox Sent {{\n    auto = create\n    special_use = \\Sent\n  }}\n}}\n"
    );
    fs::write(at.join("dovecot/dovecot.conf"), config).unwrap();
}

fn write_passwords(at: &Path, passwords: &[String]) {
    let line = |(number, password): (usize, &String)| {
        format!("hermes{number}@example.net:{{PLAIN}}{password}\n")
    };
    let users: String = passwords.iter().enumerate().map(line).collect();
    let path = at.join("dovecot/users");
    fs::write(path.with_extension("new"), users).unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
}

fn start_dovecot(at: &Path, passwords: &[String]) -> Child {
    write_passwords(at, passwords);
    program("/usr/sbin/dovecot")
        .args(["-F", "-c"])
        .arg(at.join("dovecot/dovecot.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
