//! The calls of Modal's protocol that we make, with the fields we use. What else an answer holds is passed over.
//!
//! Names and numbers are those of `modal.client.ModalClient`, the cloud, and `modal.task_command_router.TaskCommandRouter`,
//! the machine that runs a sandbox.

use prost::Message;

use super::grpc::Call;

macro_rules! calls {
    ($($service:literal $call:ident -> $answer:ident),+ $(,)?) => {
        $(impl Call for $call {
            const PATH: &'static str = concat!("/", $service, "/", stringify!($call));
            type Response = $answer;
        })+
    };
}

calls! {
    "modal.client.ModalClient" AppGetOrCreate -> App,
    "modal.client.ModalClient" ImageGetOrCreate -> ImageState,
    "modal.client.ModalClient" ImageJoinStreaming -> ImageProgress,
    "modal.client.ModalClient" SandboxCreate -> Created,
    "modal.client.ModalClient" SandboxGetTaskId -> Task,
    "modal.client.ModalClient" SandboxWait -> Waited,
    "modal.client.ModalClient" SandboxTerminate -> Nothing,
    "modal.client.ModalClient" TaskGetCommandRouterAccess -> Access,
    "modal.task_command_router.TaskCommandRouter" TaskExecStart -> Nothing,
    "modal.task_command_router.TaskCommandRouter" TaskExecStdinWrite -> Nothing,
    "modal.task_command_router.TaskCommandRouter" TaskExecStdioRead -> Chunk,
    "modal.task_command_router.TaskCommandRouter" TaskSnapshotFilesystem -> Snapshot,
}

/// `OBJECT_CREATION_TYPE_CREATE_IF_MISSING`
pub(super) const CREATE_IF_MISSING: i32 = 1;

/// `DEPLOYMENT_NAMESPACE_WORKSPACE`
pub(super) const WORKSPACE: i32 = 1;

/// `NetworkAccess.OPEN`
pub(super) const OPEN: i32 = 1;

/// `GenericResult.GENERIC_STATUS_UNSPECIFIED`: not over yet.
pub(super) const UNFINISHED: i32 = 0;

/// `GenericResult.GENERIC_STATUS_SUCCESS`
pub(super) const SUCCESS: i32 = 1;

/// `TASK_EXEC_STDOUT_CONFIG_PIPE`
pub(super) const STDOUT_TO_PIPE: i32 = 1;

/// `TASK_EXEC_STDERR_CONFIG_STDOUT`
pub(super) const STDERR_TO_STDOUT: i32 = 2;

/// An answer in which we need nothing.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AppGetOrCreate {
    #[prost(string, tag = "1")]
    pub(super) app_name: String,
    #[prost(string, tag = "2")]
    pub(super) environment_name: String,
    #[prost(int32, tag = "3")]
    pub(super) object_creation_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct App {
    #[prost(string, tag = "1")]
    pub(super) app_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ImageGetOrCreate {
    #[prost(message, optional, tag = "2")]
    pub(super) image: Option<Image>,
    #[prost(string, tag = "4")]
    pub(super) app_id: String,
    #[prost(int32, tag = "8")]
    pub(super) namespace: i32,
    #[prost(string, tag = "9")]
    pub(super) builder_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Image {
    #[prost(string, repeated, tag = "6")]
    pub(super) dockerfile_commands: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ImageState {
    #[prost(string, tag = "1")]
    pub(super) image_id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) result: Option<GenericResult>,
}

/// How something went.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GenericResult {
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
    #[prost(string, tag = "2")]
    pub(super) exception: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ImageJoinStreaming {
    #[prost(string, tag = "1")]
    pub(super) image_id: String,
    #[prost(float, tag = "2")]
    pub(super) timeout: f32,
    #[prost(string, tag = "3")]
    pub(super) last_entry_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ImageProgress {
    #[prost(message, optional, tag = "1")]
    pub(super) result: Option<GenericResult>,
    #[prost(message, repeated, tag = "2")]
    pub(super) task_logs: Vec<TaskLog>,
    #[prost(string, tag = "3")]
    pub(super) entry_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskLog {
    #[prost(string, tag = "1")]
    pub(super) data: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SandboxCreate {
    #[prost(string, tag = "1")]
    pub(super) app_id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) definition: Option<Definition>,
}

/// What a sandbox is to be; `Sandbox` in the protocol.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Definition {
    #[prost(string, repeated, tag = "1")]
    pub(super) entrypoint_args: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) image_id: String,
    #[prost(message, optional, tag = "5")]
    pub(super) resources: Option<Resources>,
    #[prost(uint32, tag = "7")]
    pub(super) timeout_secs: u32,
    #[prost(message, optional, tag = "22")]
    pub(super) network_access: Option<NetworkAccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Resources {
    #[prost(uint32, tag = "2")]
    pub(super) memory_mb: u32,
    #[prost(uint32, tag = "3")]
    pub(super) milli_cpu: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NetworkAccess {
    #[prost(int32, tag = "1")]
    pub(super) network_access_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Created {
    #[prost(string, tag = "1")]
    pub(super) sandbox_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SandboxGetTaskId {
    #[prost(string, tag = "1")]
    pub(super) sandbox_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Task {
    /// Empty until a machine was found.
    #[prost(string, optional, tag = "1")]
    pub(super) task_id: Option<String>,
    /// Set when it ended before it began.
    #[prost(message, optional, tag = "2")]
    pub(super) task_result: Option<GenericResult>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SandboxWait {
    #[prost(string, tag = "1")]
    pub(super) sandbox_id: String,
    #[prost(float, tag = "2")]
    pub(super) timeout: f32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Waited {
    #[prost(message, optional, tag = "1")]
    pub(super) result: Option<GenericResult>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SandboxTerminate {
    #[prost(string, tag = "1")]
    pub(super) sandbox_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskGetCommandRouterAccess {
    #[prost(string, tag = "1")]
    pub(super) task_id: String,
}

/// Where a sandbox's machine is, and what to show there.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Access {
    #[prost(string, tag = "1")]
    pub(super) jwt: String,
    #[prost(string, tag = "2")]
    pub(super) url: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskExecStart {
    #[prost(string, tag = "1")]
    pub(super) task_id: String,
    /// Chosen by us, so that asking twice starts one.
    #[prost(string, tag = "2")]
    pub(super) exec_id: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) command_args: Vec<String>,
    #[prost(int32, tag = "4")]
    pub(super) stdout_config: i32,
    #[prost(int32, tag = "5")]
    pub(super) stderr_config: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskExecStdinWrite {
    #[prost(string, tag = "1")]
    pub(super) task_id: String,
    #[prost(string, tag = "2")]
    pub(super) exec_id: String,
    #[prost(uint64, tag = "3")]
    pub(super) offset: u64,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) data: Vec<u8>,
    #[prost(bool, tag = "5")]
    pub(super) eof: bool,
}

/// Reads standard output; the other descriptor would be 1 in field 4.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskExecStdioRead {
    #[prost(string, tag = "1")]
    pub(super) task_id: String,
    #[prost(string, tag = "2")]
    pub(super) exec_id: String,
    #[prost(uint64, tag = "3")]
    pub(super) offset: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Chunk {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskSnapshotFilesystem {
    #[prost(string, tag = "1")]
    pub(super) task_id: String,
    #[prost(string, tag = "2")]
    pub(super) snapshot_id: String,
    #[prost(int64, optional, tag = "3")]
    pub(super) ttl_seconds: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Snapshot {
    #[prost(string, tag = "1")]
    pub(super) image_id: String,
}
