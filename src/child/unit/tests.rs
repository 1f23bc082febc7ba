use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, net},
    path::Path,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixSocket},
    time,
};

use super::*;
use crate::{child::escalation, error_report::chain};

fn unit(socket: &Path) -> UnitServer {
    UnitServer { socket: socket.to_owned(), name: "metamcp-server-test".into() }
}

#[tokio::test]
async fn a_unit_socket_carries_both_directions_and_each_end_closes_one_direction() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("test.sock");
    let listener = UnixListener::bind(&socket).expect("listens");
    let LaunchedServer { mut running, mut pipes } = launch(&unit(&socket)).await.expect("connects");
    let (mut server, _) = listener.accept().await.expect("comes");

    pipes.stdin.write_all(b"hello").await.expect("written");
    drop(pipes.stdin);
    let mut input = String::new();
    server.read_to_string(&mut input).await.expect("its input ends");
    assert_eq!(input, "hello");

    server.write_all(b"good-bye").await.expect("its output is open");
    drop(server);
    let mut output = String::new();
    pipes.stdout.read_to_string(&mut output).await.expect("its output ends");
    assert_eq!(output, "good-bye");
    assert_eq!(running.wait().await, ChildExit::Unknown);
    assert_eq!(
        (running.pid(), running.kind().to_string()),
        (None, "unit `metamcp-server-test`".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_does_not_end_gets_as_much_time_as_a_child() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("test.sock");
    let _listener = UnixListener::bind(&socket).expect("listens");
    let LaunchedServer { running, pipes } = launch(&unit(&socket)).await.expect("connects");
    drop(pipes.stdin);

    let begin = time::Instant::now();
    assert_eq!(running.terminate(escalation::cancelled_token()).await, ChildExit::Pending);

    assert_eq!(begin.elapsed().as_millis(), 1550);
}

#[tokio::test]
async fn an_unusable_unit_socket_is_reported_with_a_remedy() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing.sock");
    let deserted = directory.path().join("deserted.sock");
    drop(net::UnixListener::bind(&deserted).expect("listens"));
    let too_long = directory.path().join("x".repeat(120));
    let file = directory.path().join("file");
    fs::write(&file, "").expect("written");
    let datagram = directory.path().join("datagram.sock");
    let _bound = net::UnixDatagram::bind(&datagram).expect("bound");
    let compare = "`ListenStream=` in `metamcp-server-test.socket`";

    for (socket, message, hint) in [
        (&missing, ": there is no such socket", "systemctl start metamcp-server-test.socket"),
        (
            &deserted,
            ": no process listens on this socket",
            "systemctl restart metamcp-server-test.socket",
        ),
        (&directory.path().into(), ": it is a directory, and not a stream socket", compare),
        (&file, ": it is a file, and not a stream socket", compare),
        (&datagram, ": it is a socket of another type, and not a stream socket", compare),
        (&too_long, "", "systemctl status metamcp-server-test.socket"),
    ] {
        let error = launch(&unit(socket)).await.map(|_| ()).expect_err("cannot be used");
        let (text, expected) =
            (chain(&error), format!("cannot connect to `{}`{message}", socket.display()));
        assert!(text.starts_with(&expected) && (message.is_empty() || text == expected), "{text}");
        assert!(error.hint().contains(hint), "{}", error.hint());
    }
}

#[tokio::test]
async fn a_unit_socket_without_permission_is_reported_with_a_remedy() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("test.sock");
    let _listener = UnixListener::bind(&socket).expect("listens");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o000)).expect("set");

    match launch(&unit(&socket)).await.map(|_| ()) {
        // Root may use any socket.
        Ok(()) => assert!(rustix::process::geteuid().is_root()),
        Err(error) => {
            assert!(chain(&error).ends_with(": metamcp may not use this socket"));
            assert!(error.hint().contains("SocketGroup="), "{}", error.hint());
        }
    }
    let error = UnitConnectError::new(&unit(&socket), io::ErrorKind::PermissionDenied.into());
    assert!(chain(&error).ends_with(": metamcp may not use this socket"));
    assert!(error.hint().contains("`SupplementaryGroups=` in `metamcp.service`"));
}

#[tokio::test]
async fn a_full_unit_socket_is_a_transient_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let unit = unit(&directory.path().join("test.sock"));
    let socket = UnixSocket::new_stream().expect("a socket");
    socket.bind(&unit.socket).expect("bound");
    let listener = socket.listen(0).expect("listens");

    let mut waiting = Vec::new();
    let error = loop {
        match launch(&unit).await {
            Ok(launched) => waiting.push(launched),
            Err(error) => break error,
        }
    };

    assert!(chain(&error).ends_with(": the queue of this socket is full"));
    assert!(error.hint().contains("`Backlog=`"), "{}", error.hint());
    assert!(error.is_transient() && error.is_outage());
    listener.accept().await.expect("one of them");
    launch(&unit).await.map(drop).expect("there is room");
}

#[test]
fn a_connect_error_that_the_operator_must_fix_is_not_transient() {
    use io::ErrorKind::{ConnectionRefused, NotFound, OutOfMemory, PermissionDenied, WouldBlock};
    let unit = unit(Path::new("/run/test.sock"));
    for (kind, is_transient) in [
        (NotFound, false),
        (ConnectionRefused, false),
        (PermissionDenied, false),
        (WouldBlock, true),
        (OutOfMemory, true),
    ] {
        assert_eq!(
            UnitConnectError::new(&unit, kind.into()).is_transient(),
            is_transient,
            "{kind:?}"
        );
    }
}
