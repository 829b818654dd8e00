//! `hermes gateway run` as people meet it by mail: Postfix and Dovecot, a real process, a scripted model.

use std::time::{Duration, Instant};

use hermes_testkit::mail::{MailAccount, MailServer, SERVER};
use hermes_testkit::process::Running;
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

const PATIENCE: Duration = Duration::from_secs(30);

struct Post {
    setting: Setting,
    server: MailServer,
    account: MailAccount,
    running: Option<Running>,
}

impl Post {
    /// `None` where there are no mail servers.
    async fn new(script: Script) -> Option<Self> {
        let server = MailServer::start()?;
        let setting = Setting::with(script, "approvals:\n  mode: manual\n").await;
        let account = server.account();
        let env = format!(
            "EMAIL_ADDRESS={}\nEMAIL_PASSWORD={}\nEMAIL_ALLOWED_USERS={}\nEMAIL_IMAP_HOST=127.0.0.1\nEMAIL_SMTP_HOST=127.0.0.1\n\
             EMAIL_IMAP_PORT={}\nEMAIL_SMTP_PORT={}\nEMAIL_AUTHSERV_ID={SERVER}\n",
            account.address, account.password, account.person, server.imap_port, server.smtp_port,
        );
        let home = setting.hermes.home();
        std::fs::write(home.join(".env"), env).unwrap();
        let mut config = std::fs::read_to_string(home.join("config.yaml")).unwrap();
        config.push_str("platforms:\n  email:\n    imap_security: none\n    smtp_security: none\n");
        std::fs::write(home.join("config.yaml"), config).unwrap();
        let mut post = Self {
            setting,
            server,
            account,
            running: None,
        };
        post.start();
        Some(post)
    }

    fn start(&mut self) {
        let mut running = self.setting.hermes.clone().args(["gateway", "run"]).spawn();
        running.expect_stdout("gateway: ready", PATIENCE);
        self.running = Some(running);
        // Mail that lies there when an account is first connected is not answered.
        self.until("connected", |post| {
            post.server.was_opened(&post.account.address)
        });
    }

    fn told(&self) -> String {
        let running = self.running.as_ref();
        running
            .map(|one| one.stdout() + &one.stderr())
            .unwrap_or_default()
    }

    fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill_9();
        }
    }

    fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "{what}: {}", self.told());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn write_as(&self, from: &str, id: &str, headers: &str, text: &str) {
        let mail = format!(
            "Authentication-Results: {SERVER}; dmarc=pass header.from=example.org\r\nFrom: Alice <{from}>\r\nTo: {}\r\n\
             Message-ID: <{id}@example.org>\r\n{headers}\r\n{text}\r\n",
            self.account.address,
        );
        self.server
            .deliver(from, &self.account.address, mail.as_bytes());
    }

    fn write(&self, id: &str, headers: &str, text: &str) {
        self.write_as(&self.account.person, id, headers, text);
    }

    fn answers(&self) -> Vec<String> {
        let mails = self.server.mails(&self.account.person);
        mails
            .iter()
            .map(|mail| String::from_utf8_lossy(mail).replace("\r\n", "\n"))
            .collect()
    }

    /// Waits for so many answers, and returns them.
    fn expect(&self, count: usize) -> Vec<String> {
        self.until(&format!("{count} answers"), |post| {
            post.answers().len() >= count
        });
        let answers = self.answers();
        assert_eq!(answers.len(), count, "{answers:#?}");
        answers
    }

    /// What the model was asked.
    fn requests(&self) -> Vec<hermes_testkit::server::Request> {
        let mut requests = self.setting.server.requests();
        requests.retain(|request| request.path.ends_with("/chat/completions"));
        requests
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_answered_in_its_thread_and_strangers_are_not() {
    let script = Script::new([Answer::text("It **rains**."), Answer::text("Still.")]);
    let Some(post) = Post::new(script).await else {
        return;
    };
    post.write_as(
        "mallory@example.org",
        "m1",
        "Subject: let me in\r\n",
        "hello",
    );
    post.write("a1", "Subject: the weather\r\n", "How is it?");
    let answers = post.expect(1);
    let has = |answer: &str, line: &str| assert!(answer.contains(line), "{line}: {answer}");
    has(&answers[0], "Subject: Re: the weather\n");
    has(&answers[0], "In-Reply-To: <a1@example.org>\n");
    has(&answers[0], "References: <a1@example.org>\n");
    has(&answers[0], "Auto-Submitted: auto-replied\n");
    has(&answers[0], "It rains.");
    has(&answers[0], "<strong>rains</strong>");
    let asked = post.requests()[0].json.to_string();
    assert!(asked.contains("[Subject: the weather]"), "{asked}");
    post.write(
        "a2",
        "Subject: Re: the weather\r\nIn-Reply-To: <x@example.net>\r\n",
        "And now?\r\n\r\nOn Monday, Hermes wrote:\r\n> It rains.",
    );
    post.expect(2);
    let requests = post.requests();
    assert_eq!(requests.len(), 2, "the stranger reached no model");
    let asked = requests[1].json["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(
        asked.contains("And now?") && !asked.contains("Hermes wrote"),
        "{asked}"
    );
    assert!(post.server.mails("mallory@example.org").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_a_crash_cut_short_is_answered_once() {
    let slow = Answer::text("the answer").headers_delay(Duration::from_millis(600));
    let Some(mut post) = Post::new(Script::always(slow)).await else {
        return;
    };
    post.write("a1", "Subject: think\r\n", "please");
    post.until("the model is asked", |post| !post.requests().is_empty());
    post.kill();
    post.start();
    post.expect(1);
    // Once there is a copy of an answer, a crash leaves no doubt about it. The next mail comes while nobody is there.
    post.until("a copy", |post| {
        post.server.sent_count(&post.account.address) == 1
    });
    post.kill();
    post.write("a2", "Subject: Re: think\r\n", "and again");
    post.start();
    let answers = post.expect(2);
    assert!(
        answers[0].contains("In-Reply-To: <a1@example.org>"),
        "{}",
        answers[0]
    );
    assert!(
        answers[0].contains("Subject: Re: think\n"),
        "{}",
        answers[0]
    );
    assert!(
        answers[1].contains("In-Reply-To: <a2@example.org>"),
        "{}",
        answers[1]
    );
    std::thread::sleep(Duration::from_millis(700));
    post.expect(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_for_consent_is_answered_by_mail() {
    let call = Answer::call("c1", "terminal", json!({"command": "git reset --hard"}));
    let script = Script::new([call, Answer::text("all done")]);
    let Some(post) = Post::new(script).await else {
        return;
    };
    post.write("a1", "Subject: clean up\r\n", "please");
    let question = post.expect(1).remove(0);
    assert!(question.contains("May I run this?"), "{question}");
    assert!(!question.contains("with a button"), "{question}");
    assert!(question.contains("Subject: Re: clean up\n"), "{question}");
    post.write(
        "a2",
        "Subject: Re: clean up\r\n",
        "no\r\n\r\nOn Monday, Hermes wrote:\r\n> May I run this?",
    );
    let answers = post.expect(2);
    assert!(answers[1].contains("all done"), "{}", answers[1]);
    let asked = post.requests()[1].json.to_string();
    assert!(asked.contains("did not allow this"), "{asked}");
}
