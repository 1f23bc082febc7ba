//! Two test clients for the demo servers, and the tests that apply to all servers.

use rmcp::{
    ErrorData, RoleClient, ServiceError, ServiceExt,
    model::{CallToolRequestParams, CallToolResult, ErrorCode},
    service::RunningService,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines},
    task::JoinSet,
    time,
};

use super::{connection::CLOSE_GRACE, *};

/// The capacity of the pipe between a test and a server, in bytes.
const PIPE_BYTES: usize = 64 * 1024;

/// A demo server connected to rmcp's own client.
pub(super) struct ServedDemo {
    pub(super) client: RunningService<RoleClient, ()>,
    _server: JoinSet<Result<(), DemoError>>,
}

impl ServedDemo {
    pub(super) async fn new(demo: Demo) -> Self {
        let (ours, server) = start(demo);
        let client = ().serve(ours).await.unwrap();
        Self { client, _server: server }
    }

    pub(super) async fn call(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        let arguments = tool::object(arguments);
        self.client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await
    }

    /// Calls a tool that succeeds and returns its structured content.
    pub(super) async fn data(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await.unwrap();
        assert_eq!(result.is_error, Some(false), "{result:?}");
        result.structured_content.unwrap()
    }

    /// Calls a tool with arguments that are refused as invalid.
    pub(super) async fn refused(&self, tool: &'static str, arguments: Value) -> ErrorData {
        match self.call(tool, arguments).await {
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::INVALID_PARAMS => error,
            other => panic!("not refused: {other:?}"),
        }
    }
}

/// A demo server connected by raw lines, which keep the order in which they were written.
///
/// rmcp's client handles each notification in its own task and so loses that order.
pub(super) struct DemoWire {
    reader: Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    writer: tokio::io::WriteHalf<DuplexStream>,
    server: JoinSet<Result<(), DemoError>>,
}

impl DemoWire {
    /// Starts a server and completes the handshake.
    pub(super) async fn open(demo: Demo) -> Self {
        let mut wire = Self::connect(demo);
        wire.send(&json!({
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "wire", "version": "0" },
            },
        }))
        .await;
        assert_eq!(wire.receive().await["result"]["protocolVersion"], "2025-06-18");
        wire.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        wire
    }

    fn connect(demo: Demo) -> Self {
        let (ours, server) = start(demo);
        let (reader, writer) = tokio::io::split(ours);
        Self { reader: BufReader::new(reader).lines(), writer, server }
    }

    pub(super) async fn send(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(super) async fn receive(&mut self) -> Value {
        let line = self.reader.next_line().await.unwrap().expect("the server is running");
        serde_json::from_str(&line).unwrap()
    }

    /// Ends the server's input and returns the result of the server.
    pub(super) async fn close(mut self) -> Result<(), DemoError> {
        self.writer.shutdown().await.unwrap();
        self.server.join_next().await.unwrap().unwrap()
    }
}

fn start(demo: Demo) -> (DuplexStream, JoinSet<Result<(), DemoError>>) {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let (reader, writer) = tokio::io::split(theirs);
    let mut server = JoinSet::new();
    server.spawn(demo.serve_over(reader, writer));
    (ours, server)
}

#[test]
fn every_name_parses_back_to_its_server() {
    for demo in Demo::ALL {
        assert_eq!(demo.name().parse(), Ok(demo));
    }
}

#[test]
fn an_unknown_name_is_answered_with_all_names() {
    let error = "clokc".parse::<Demo>().unwrap_err();

    assert_eq!(
        error.to_string(),
        "no demo server is called `clokc`: use one of `clock`, `scratch`, `patience`"
    );
}

#[tokio::test]
async fn every_tool_is_titled_described_and_closed() {
    for demo in Demo::ALL {
        let served = ServedDemo::new(demo).await;

        for tool in served.client.list_all_tools().await.unwrap() {
            let input = &tool.input_schema;
            assert_eq!(input["additionalProperties"], false, "{}", tool.name);
            assert!(tool.title.is_some() && tool.description.is_some(), "{}", tool.name);
            assert!(tool.output_schema.is_some(), "{}", tool.name);
        }
    }
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_all_tools() {
    let served = ServedDemo::new(Demo::Clock).await;

    let error = served.refused("then", json!({})).await;

    assert_eq!(error.message, "no tool is called `then`: use one of `now`, `uptime`, `whoami`");
}

#[tokio::test]
async fn arguments_that_are_no_object_are_refused_with_the_remedy() {
    let mut wire = DemoWire::open(Demo::Clock).await;

    wire.send(&json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": "now", "arguments": [] },
    }))
    .await;
    let answer = wire.receive().await;

    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(
        answer["error"]["message"],
        "params of `tools/call` are malformed: pass `name` as a string and `arguments` as an object"
    );
}

#[tokio::test]
async fn every_demo_server_exits_when_its_input_ends() {
    for demo in Demo::ALL {
        DemoWire::open(demo).await.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_not_an_error() {
    DemoWire::connect(Demo::Clock).close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_cannot_delay_the_exit() {
    let (ours, mut server) = start(Demo::Scratch);
    let (_unread, mut writer) = tokio::io::split(ours);
    let initialize = json!({
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "deaf", "version": "0" },
        },
    });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    writer.write_all(format!("{initialize}\n{initialized}\n").as_bytes()).await.unwrap();
    for id in 1..=200 {
        let listing = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
        writer.write_all(format!("{listing}\n").as_bytes()).await.unwrap();
    }

    let left = time::Instant::now();

    writer.shutdown().await.unwrap();

    server.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(left.elapsed().as_secs(), CLOSE_GRACE.as_secs());
}
