//! What a streamed chunk costs us: CPU time of the asking thread alone, from the socket to our deltas. The scripted
//! server works on a thread of its own and is not counted. Budget: 10 µs per chunk.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::StreamExt as _;
use hermes_core::{Message, Model as _, ModelRequest, SessionId, TurnId};
use hermes_llm::{Client, ModelChoice, ModelSettings, Protocol, resolve};
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use rustix::time::{ClockId, clock_gettime};

const CHUNKS: usize = 20_000;

fn stream(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let script = Script::always(Answer::text_chunks(CHUNKS));
    let server = runtime.block_on(ScriptedServer::start(script));
    let mut group = criterion.benchmark_group("stream");
    group.sample_size(10);
    group.throughput(Throughput::Elements(CHUNKS as u64));
    for (protocol, api_mode, base_url) in [
        (Protocol::OpenAiChat, "chat_completions", server.url()),
        (Protocol::OpenAiResponses, "responses", server.url()),
        (Protocol::Anthropic, "anthropic_messages", server.root_url()),
        (
            Protocol::Gemini,
            "gemini",
            format!("{}/v1beta", server.root_url()),
        ),
    ] {
        let client = client(api_mode, base_url);
        group.bench_function(format!("{protocol:?}"), |bencher| {
            bencher.iter_custom(|rounds| {
                let started = cpu_time();
                for _ in 0..rounds {
                    assert!(runtime.block_on(deltas(&client)) >= CHUNKS);
                }
                cpu_time() - started
            });
        });
    }
    group.finish();
}

fn client(api_mode: &str, base_url: String) -> Client {
    let settings = ModelSettings {
        choice: ModelChoice {
            provider: Some("custom".into()),
            model: Some("m".into()),
            base_url: Some(base_url),
            api_mode: Some(api_mode.into()),
            api_key: None,
        },
        ..ModelSettings::default()
    };
    Client::new(resolve(&settings, &|_| None).expect("a route"))
}

async fn deltas(client: &Client) -> usize {
    let (session, turn) = (SessionId::from("s"), TurnId::from("t"));
    let messages = [Message::user("go")];
    let stream = client.stream(ModelRequest {
        session: &session,
        turn: &turn,
        system: "",
        tools: &[],
        messages: &messages,
        output_tokens_max: None,
    });
    stream.map(black_box).count().await
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.cast_unsigned(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

criterion_group!(benches, stream);
criterion_main!(benches);
