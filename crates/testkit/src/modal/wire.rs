//! The messages of Modal's protocol as its servers see them, and the frames they come in.

use bytes::{BufMut, Bytes, BytesMut};
use h2::SendStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Response};
use prost::Message;
use std::future::poll_fn;

const FRAME_HEADER_BYTES: usize = 5;

/// An answer that is no.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) code: u32,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: u32, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", self.code.into());
        if let Ok(message) = HeaderValue::from_str(&self.message) {
            headers.insert("grpc-message", message);
        }
        headers
    }
}

/// One unanswered call.
pub(super) struct Responder {
    respond: SendResponse<Bytes>,
    stream: Option<SendStream<Bytes>>,
}

impl Responder {
    pub(super) fn new(respond: SendResponse<Bytes>) -> Self {
        Self {
            respond,
            stream: None,
        }
    }

    /// Sends a message. An error means that nobody waits for it.
    pub(super) async fn send(&mut self, message: &impl Message) -> Result<(), h2::Error> {
        if self.stream.is_none() {
            self.stream = Some(self.respond.send_response(head(), false)?);
        }
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let mut frame = BytesMut::with_capacity(FRAME_HEADER_BYTES + message.encoded_len());
        frame.put_u8(0);
        frame.put_u32(message.encoded_len() as u32);
        frame.put_slice(&message.encode_to_vec());
        stream.reserve_capacity(frame.len());
        while stream.capacity() < frame.len() {
            match poll_fn(|cx| stream.poll_capacity(cx)).await {
                Some(more) => drop(more?),
                None => break,
            }
        }
        stream.send_data(frame.freeze(), false)
    }

    /// Ends the call. A refusal without a message before it comes as headers only, as gRPC has it.
    pub(super) fn end(mut self, outcome: Result<(), Refusal>) -> Result<(), h2::Error> {
        let outcome = outcome.err().unwrap_or_else(|| Refusal::new(0, ""));
        match self.stream {
            Some(mut stream) => stream.send_trailers(outcome.headers()),
            None => {
                let mut response = head();
                response.headers_mut().extend(outcome.headers());
                self.respond.send_response(response, true).map(drop)
            }
        }
    }
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(
        "content-type",
        HeaderValue::from_static("application/grpc+proto"),
    );
    response
}

/// Reads the one message of a request.
pub(super) async fn request(mut body: h2::RecvStream) -> Option<Bytes> {
    let mut bytes = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data.ok()?;
        body.flow_control().release_capacity(data.len()).ok()?;
        bytes.extend_from_slice(&data);
    }
    let [is_compressed, length @ ..]: [u8; FRAME_HEADER_BYTES] = *bytes.first_chunk()?;
    let message = bytes.freeze().slice(FRAME_HEADER_BYTES..);
    (is_compressed == 0 && u32::from_be_bytes(length) as usize == message.len()).then_some(message)
}

/// A message with one text in field 1, of which there are many.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Id {
    #[prost(string, tag = "1")]
    pub(super) id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Outcome {
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
    #[prost(string, tag = "2")]
    pub(super) exception: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EnvironmentAnswer {
    #[prost(string, tag = "1")]
    pub(super) environment_id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) metadata: Option<EnvironmentMetadata>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EnvironmentMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) settings: Option<Id>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ImageRequest {
    #[prost(message, optional, tag = "2")]
    pub(super) image: Option<ImageDefinition>,
    #[prost(string, tag = "4")]
    pub(super) app_id: String,
    #[prost(string, tag = "9")]
    pub(super) builder_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ImageDefinition {
    #[prost(string, repeated, tag = "6")]
    pub(super) dockerfile_commands: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ImageAnswer {
    #[prost(string, tag = "1")]
    pub(super) image_id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) result: Option<Outcome>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct JoinAnswer {
    #[prost(message, optional, tag = "1")]
    pub(super) result: Option<Outcome>,
    #[prost(message, repeated, tag = "2")]
    pub(super) task_logs: Vec<Id>,
    #[prost(string, tag = "3")]
    pub(super) entry_id: String,
    #[prost(bool, tag = "4")]
    pub(super) eof: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CreateRequest {
    #[prost(string, tag = "1")]
    pub(super) app_id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) definition: Option<Definition>,
}

/// What a sandbox was asked to be.
#[derive(Clone, PartialEq, Message)]
pub struct Definition {
    #[prost(string, repeated, tag = "1")]
    pub entrypoint_args: Vec<String>,
    #[prost(string, tag = "3")]
    pub image_id: String,
    #[prost(string, repeated, tag = "4")]
    pub secret_ids: Vec<String>,
    #[prost(message, optional, tag = "5")]
    pub resources: Option<Resources>,
    #[prost(uint32, tag = "7")]
    pub timeout_secs: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resources {
    #[prost(uint32, tag = "2")]
    pub memory_mb: u32,
    #[prost(uint32, tag = "3")]
    pub milli_cpu: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskAnswer {
    #[prost(string, optional, tag = "1")]
    pub(super) task_id: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(super) task_result: Option<Outcome>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WaitAnswer {
    #[prost(message, optional, tag = "1")]
    pub(super) result: Option<Outcome>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AccessAnswer {
    #[prost(string, tag = "1")]
    pub(super) jwt: String,
    #[prost(string, tag = "2")]
    pub(super) url: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StartRequest {
    #[prost(string, tag = "1")]
    pub(super) task_id: String,
    #[prost(string, tag = "2")]
    pub(super) exec_id: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) command_args: Vec<String>,
    #[prost(int32, tag = "4")]
    pub(super) stdout_config: i32,
    #[prost(int32, tag = "5")]
    pub(super) stderr_config: i32,
}

/// Asks for input to be taken, for output or for the exit code: they begin alike.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecRequest {
    #[prost(string, tag = "1")]
    pub(super) task_id: String,
    #[prost(string, tag = "2")]
    pub(super) exec_id: String,
    #[prost(uint64, tag = "3")]
    pub(super) offset: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WriteRequest {
    #[prost(uint64, tag = "3")]
    pub(super) offset: u64,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) data: Vec<u8>,
    #[prost(bool, tag = "5")]
    pub(super) eof: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadRequest {
    #[prost(uint64, tag = "3")]
    pub(super) offset: u64,
    /// 0 for standard output, 1 for standard error.
    #[prost(int32, tag = "4")]
    pub(super) file_descriptor: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Chunk {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExitAnswer {
    #[prost(int32, optional, tag = "1")]
    pub(super) code: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) signal: Option<i32>,
}
