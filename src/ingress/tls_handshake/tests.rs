//! Tests of clients that fail during the handshake.

use tokio::{net::TcpListener, time::Instant};

use super::*;
use crate::config::{TlsConfig, tls::PemSource};

fn identity() -> TlsIdentity {
    let fixture = |name: &str| {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tls/fixtures");
        PemSource::File(format!("{directory}/{name}").into())
    };
    let tls =
        TlsConfig { certificate: fixture("ec-certificate.pem"), key: fixture("ec-pkcs8.pem") };
    TlsIdentity::load(&tls, None).expect("both are good")
}

/// Returns both ends of a connection.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.expect("connected"), server.expect("accepted").0)
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_finish_the_handshake_in_time_is_disconnected() {
    let identity = identity();
    for sent in [&b""[..], b"\x16\x03\x01", b"POST"] {
        let (mut client, server) = connection().await;
        client.write_all(sent).await.expect("written");
        let began = Instant::now();

        let outcome = shake_hands(server, &identity, Duration::from_secs(30)).await;

        assert!(matches!(outcome, Err(AcceptError::Timeout)), "{sent:?}: {outcome:?}");
        assert!(began.elapsed() >= defaults::HANDSHAKE_TIMEOUT);
    }
}

#[tokio::test]
async fn a_connection_that_is_neither_tls_nor_http_is_refused() {
    let (mut client, server) = connection().await;
    client.write_all(b"\x00\x01\x02\x03\x04\x05").await.expect("written");
    let outcome = shake_hands(server, &identity(), Duration::from_secs(30)).await;
    assert!(matches!(outcome, Err(AcceptError::Failed(_))), "{outcome:?}");
}

#[tokio::test]
async fn plain_http_is_answered_before_its_body_is_complete() {
    let (mut client, server) = connection().await;
    client.write_all(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n").await.expect("written");
    let identity = identity();
    let asking = async move {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.expect("an end");
        answer
    };
    let (outcome, answer) =
        tokio::join!(shake_hands(server, &identity, Duration::from_secs(30)), asking);
    assert!(matches!(outcome, Err(AcceptError::PlainHttp)), "{outcome:?}");
    assert_eq!(answer, PLAIN_HTTP);
}
