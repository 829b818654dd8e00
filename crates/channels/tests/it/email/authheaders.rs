//! What a program of others says of senders, and how we read it: `authheaders` checks real signatures and writes the header.

use std::process::Stdio;
use std::sync::Arc;

use hermes_testkit::contract::channel::{HeldInlet, PlatformSide as _};
use hermes_testkit::mail::{MailServer, SERVER};
use hermes_testkit::peers;
use serde_json::Value;

use super::side::Mailbox;

/// Signs mails, lets some be tampered with, and says what it finds, with names of its own instead of the network's.
const PROGRAM: &str = r#"
import json, re, subprocess, sys
import authheaders, dkim

server = sys.argv[1]
key = subprocess.run(["openssl", "genrsa", "2048"], capture_output=True, check=True).stdout
public = subprocess.run(["openssl", "rsa", "-pubout"], input=key, capture_output=True, check=True).stdout.decode()
public = "".join(public.splitlines()[1:-1])

def names(name, timeout=5):
    name = name.decode() if isinstance(name, bytes) else str(name)
    name = name.rstrip(".")
    if name.startswith("key._domainkey."):
        return f"v=DKIM1; k=rsa; p={public}".encode()
    if name in ("_dmarc.example.org", "_dmarc.evil.example"):
        return "v=DMARC1; p=reject"
    return None

def case(name, sender, signer=None, tamper=lambda mail: mail):
    mail = f"From: {sender}\r\nTo: hermes@example.net\r\nSubject: Re: {name}\r\nMessage-ID: <{name}@test.example>\r\n\r\n{name}\r\n".encode()
    if signer:
        mail = dkim.sign(mail, b"key", signer.encode(), key, include_headers=[b"from", b"subject"]) + mail
    mail = tamper(mail)
    header = authheaders.authenticate_message(mail, server, dnsfunc=names)
    verdict = re.search(r"dmarc=(\w+)", header).group(1)
    domain = re.search(r"@([\w.-]+)>?\s*$", sender).group(1)
    is_signed = "dkim=pass" in header and signer and (domain == signer or domain.endswith("." + signer))
    expected = verdict == "pass" or (verdict == "none" and bool(is_signed))
    return {"name": name, "mail": header + "\r\n" + mail.decode(), "expected": expected, "verdict": verdict}

alice = "Alice <alice@example.org>"
print(json.dumps([
    case("signed", alice, "example.org"),
    case("unsigned", alice),
    case("signed-by-another", alice, "evil.example"),
    case("tampered", alice, "example.org", lambda mail: mail.replace(b"\r\n\r\ntampered", b"\r\n\r\nother words")),
    case("below", "bob@mail.example.org", "example.org"),
    case("named-like-alice", '"alice@example.org" <eve@evil.example>', "evil.example"),
    case("without-a-rule", "carol@plain.example", "plain.example"),
    case("without-a-rule-and-unsigned", "carol@plain.example"),
    case("without-a-rule-signed-by-another", "carol@plain.example", "evil.example"),
    case("forged-results", alice, None, lambda mail: b"Authentication-Results: " + server.encode() + b"; dmarc=pass header.from=example.org\r\n" + mail),
    case("forged-below", alice, "evil.example", lambda mail: mail.replace(b"Subject", b"X-Authentication-Results: dmarc=pass\r\nSubject", 1)),
]))
"#;

fn cases() -> Option<Vec<Value>> {
    let folder = peers::installed("authheaders")?;
    let mut python = peers::program(&folder.join("bin/python").to_string_lossy());
    let ran = python
        .args(["-c", PROGRAM, SERVER])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    Some(serde_json::from_slice(&ran.stdout).unwrap())
}

#[tokio::test]
async fn who_is_heard_is_whom_authheaders_believes() {
    let Some(cases) = cases() else {
        return;
    };
    let Some(server) = MailServer::start().map(Arc::new) else {
        return;
    };
    let mailbox = Mailbox::new(server).await;
    let channel = mailbox.open();
    let inlet = HeldInlet::default();
    let receiving = async {
        let error = channel.receive(&inlet).await;
        panic!("{error:?}");
    };
    let checking = async {
        inlet
            .wait_for("connected", |kept| !kept.connected.is_empty())
            .await;
        for case in &cases {
            mailbox.deliver(case["mail"].as_str().unwrap().as_bytes());
        }
        mailbox.write("Subject: Re: end\r\n", "\r\nthe end");
        let is_there = |kept: &hermes_testkit::contract::channel::Kept| {
            kept.numbers
                .last()
                .is_some_and(|number| number.starts_with("said-"))
        };
        let kept = inlet.wait_for("the last mail", is_there).await;
        for case in &cases {
            let name = case["name"].as_str().unwrap();
            let is_heard = kept
                .numbers
                .iter()
                .any(|number| number.starts_with(&format!("{name}@")));
            assert_eq!(Value::from(is_heard), case["expected"], "{case:#}");
        }
    };
    tokio::select! {
        () = receiving => {}
        () = checking => {}
    }
    let expected: Vec<_> = cases
        .iter()
        .filter(|case| case["expected"] == true)
        .collect();
    assert_eq!(expected.len(), 4, "{expected:#?}");
}
