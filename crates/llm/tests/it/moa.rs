//! A mixture of agents: advised by several, answered by one, and a model like any other.

use std::sync::Arc;

use futures_util::StreamExt as _;
use hermes_core::{
    Message, Model, ModelErrorKind, ModelNotice, ModelRequest, ResultStatus, SessionId, ToolCall,
    ToolResult, TurnId,
};
use hermes_llm::{Fanout, Mixture, Protocol};
use hermes_testkit::contract::model::{Carries, model_contract, tell, tools};
use hermes_testkit::server::{Answer, Script, ScriptedServer, Usage};
use hermes_testkit::{ScriptedModel, Step};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::world::{KEY, choice, client, settings};

/// Longer than any request of a test takes on a busy machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

async fn serve(answer: Answer) -> ScriptedServer {
    ScriptedServer::start(Script::always(answer)).await
}

fn model(server: &ScriptedServer, name: &str) -> Arc<dyn Model> {
    let choice = choice(server, Protocol::OpenAiChat, name);
    Arc::new(client(&settings(choice)))
}

fn used(answer: Answer, prompt: u64, completion: u64) -> Answer {
    answer.usage(Usage {
        prompt,
        completion,
        ..Usage::default()
    })
}

fn refused() -> Answer {
    Answer::status(401, json!({"error": {"message": "no such key"}}))
}

/// The messages of a request, their text only.
fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(text).collect()
}

#[tokio::test]
async fn a_mixture_keeps_the_contract_of_models() {
    model_contract(Carries::Everything, async |answer: Answer| {
        let adviser = serve(used(Answer::text("be kind"), 0, 0)).await;
        let server = serve(answer).await;
        let references = vec![model(&adviser, "adviser")];
        let aggregator = model(&server, "scripted");
        let mixture = Mixture::new("wise", references, aggregator, Fanout::PerStep);
        (mixture, (adviser, server))
    })
    .await;
}

#[tokio::test]
async fn references_advise_without_tools_and_the_aggregator_answers_with_them() {
    let adviser = serve(Answer::text("look left")).await;
    let broken = serve(refused()).await;
    let acting = serve(Answer::text("done").pieces(2)).await;
    let references = vec![model(&adviser, "adviser"), model(&broken, "broken")];
    let mixture = Mixture::new(
        "wise",
        references,
        model(&acting, "acting"),
        Fanout::PerStep,
    );
    let told = tell(&mixture, &[Message::user("where is it?")]).await;

    assert_eq!(told.message.text(), "done");
    assert_eq!(told.end.unwrap().model.model, "acting");
    let [ModelNotice::NoAdvice { model, reason }] = told.notices.as_slice() else {
        panic!("{:?}", told.notices);
    };
    assert_eq!(model.model, "broken");
    assert!(reason.contains("no such key"), "{reason}");

    let asked = &adviser.requests()[0].json;
    assert!(asked.get("tools").is_none(), "{asked}");
    let shown = texts(asked);
    assert!(!shown[0].contains("be brief"), "{shown:?}");
    assert!(shown[1].contains("[user]\nwhere is it?"), "{shown:?}");

    let asked = &acting.requests()[0].json;
    assert_eq!(asked["tools"].as_array().unwrap().len(), tools().len());
    let advised = texts(asked);
    assert_eq!(advised[0], "be brief");
    assert!(advised[1].starts_with("where is it?"), "{advised:?}");
    assert!(advised[1].contains("look left"), "{advised:?}");
    assert!(advised[1].contains("[failed: "), "{advised:?}");
    assert!(!advised[1].contains(KEY), "{advised:?}");
}

#[tokio::test]
async fn without_any_advice_the_error_names_every_reference() {
    let (first, second) = (serve(refused()).await, serve(Answer::default()).await);
    let acting = serve(Answer::text("never asked")).await;
    let references = vec![model(&first, "one"), model(&second, "two")];
    let mixture = Mixture::new(
        "wise",
        references,
        model(&acting, "acting"),
        Fanout::PerStep,
    );
    let error = tell(&mixture, &[Message::user("hello")])
        .await
        .end
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(error.model.to_string(), "moa:wise");
    for words in ["custom:one", "no such key", "custom:two", "it said nothing"] {
        assert!(error.message.contains(words), "{error}");
    }
    assert!(acting.requests().is_empty());
}

#[tokio::test]
async fn what_all_of_them_used_is_counted_once() {
    let first = serve(used(Answer::text("left"), 100, 10)).await;
    let second = serve(used(Answer::text("right"), 200, 20)).await;
    let acting = ScriptedServer::start(Script::new([
        refused(),
        used(Answer::text("ahead"), 1_000, 1),
        used(Answer::text("ahead"), 1_000, 1),
    ]))
    .await;
    let references = vec![model(&first, "one"), model(&second, "two")];
    let mixture = Mixture::new(
        "wise",
        references,
        model(&acting, "acting"),
        Fanout::PerStep,
    );
    let messages = [Message::user("where?")];

    tell(&mixture, &messages).await.end.unwrap_err();
    let usage = tell(&mixture, &messages).await.end.unwrap().usage;
    assert_eq!((usage.input, usage.output), (1_300, 31));
    let usage = tell(&mixture, &messages).await.end.unwrap().usage;
    assert_eq!((usage.input, usage.output), (1_000, 1));
    assert_eq!(first.requests().len(), 1, "the same was asked twice");
}

#[tokio::test]
async fn advice_stands_behind_what_it_is_about_and_changes_nothing_before() {
    let call = ToolCall {
        id: "c1".into(),
        name: "read_file".into(),
        arguments: hermes_core::Arguments::Json(json!({"path": "a"})),
        signatures: Vec::new(),
    };
    let mut calling = Message::assistant("I look");
    calling
        .parts
        .push(hermes_core::Part::ToolCall(call.clone()));
    let first = vec![Message::user("go")];
    let mut second = first.clone();
    second.push(calling);
    second.push(Message::result(ToolResult::new(
        &call,
        ResultStatus::Ok,
        "b",
    )));

    for (fanout, asked) in [(Fanout::PerStep, 2), (Fanout::PerTurn, 1)] {
        let reference = Arc::new(ScriptedModel::new([
            Step::text("left"),
            Step::text("right"),
        ]));
        let acting = Arc::new(ScriptedModel::new([Step::text("one"), Step::text("two")]));
        let references: Vec<Arc<dyn Model>> = vec![reference.clone()];
        let mixture = Mixture::new("wise", references, acting.clone(), fanout);
        tell(&mixture, &first).await;
        tell(&mixture, &second).await;
        assert_eq!(reference.requests().len(), asked, "{fanout:?}");
        let requests = acting.requests();
        assert_eq!(requests[0].prefix, requests[1].prefix);
        let sent = &requests[1].messages;
        match fanout {
            Fanout::PerStep => {
                assert_eq!(sent[..3], second[..]);
                assert!(sent[3].text().contains("right"), "{sent:?}");
            }
            Fanout::PerTurn => {
                assert_eq!(sent[..1], requests[0].messages[..]);
                assert_eq!(sent[1..], second[1..]);
                assert!(sent[0].text().contains("left"), "{sent:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_never_ends_is_left_out() {
    let references: Vec<Arc<dyn Model>> = vec![
        Arc::new(ScriptedModel::new([Step::silence()])),
        Arc::new(ScriptedModel::new([Step::text("left")])),
    ];
    let acting = Arc::new(ScriptedModel::new([Step::text("done")]));
    let mixture = Mixture::new("wise", references, acting.clone(), Fanout::PerStep);
    let session = SessionId::from("s");
    let turn = TurnId::from("t");
    let messages = [Message::user("go")];
    let deltas: Vec<_> = mixture
        .stream(request(&session, &turn, &messages))
        .collect()
        .await;
    assert!(deltas.iter().all(Result::is_ok), "{deltas:?}");
    let advised = acting.requests()[0].messages[0].text();
    assert!(
        advised.contains("[failed: no advice within 900 s]"),
        "{advised}"
    );
}

#[tokio::test]
async fn dropping_the_stream_reaches_every_reference() {
    let listeners = [
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    ];
    let references = listeners.iter().map(|listener| {
        let mut settings = settings(hermes_llm::ModelChoice {
            provider: Some("custom".into()),
            model: Some("silent".into()),
            base_url: Some(format!("http://{}/v1", listener.local_addr().unwrap())),
            ..hermes_llm::ModelChoice::default()
        });
        settings.deadlines.first_byte = Some(PATIENCE * 4);
        Arc::new(client(&settings)) as Arc<dyn Model>
    });
    let acting = Arc::new(ScriptedModel::default());
    let mixture = Mixture::new(
        "wise",
        references.collect(),
        acting.clone(),
        Fanout::PerStep,
    );
    let (session, turn) = (SessionId::from("s"), TurnId::from("t"));
    let messages = [Message::user("go")];

    let mut stream = mixture.stream(request(&session, &turn, &messages));
    let accepting = async {
        let mut connections = Vec::new();
        for listener in &listeners {
            let (mut connection, _) = listener.accept().await.unwrap();
            connection.read_u8().await.unwrap();
            connections.push(connection);
        }
        connections
    };
    let connections = tokio::select! {
        _ = stream.next() => panic!("nobody answered, yet something was told"),
        connections = tokio::time::timeout(PATIENCE, accepting) => connections.unwrap(),
    };
    drop(stream);
    for mut connection in connections {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(PATIENCE, connection.read_to_end(&mut rest)).await;
        closed.expect("the connection stays open").ok();
    }
    assert!(acting.requests().is_empty());
}

fn request<'a>(
    session: &'a SessionId,
    turn: &'a TurnId,
    messages: &'a [Message],
) -> ModelRequest<'a> {
    ModelRequest {
        session,
        turn,
        system: "be brief",
        tools: &[],
        messages,
        output_tokens_max: None,
    }
}
