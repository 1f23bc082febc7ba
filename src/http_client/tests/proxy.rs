//! Tests of connections through a proxy.

use std::sync::{Arc, Mutex};

use hyper::rt::Executor as _;
use tokio::{io, net::TcpStream};

use super::{certificates::TestAuthority, test_site::TaskSpawner, *};

/// A proxy that opens tunnels, or answers with another status.
struct TestProxy {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    _tasks: Arc<OwnedTasks>,
}

impl TestProxy {
    async fn open(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (heads, tasks) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<OwnedTasks>::default());
        let (recorded, spawner) = (Arc::clone(&heads), TaskSpawner::of(&tasks));
        tasks.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let recorded = Arc::clone(&recorded);
                let tunnel = async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(client.read_u8().await.expect("a whole head"));
                    }
                    let head = String::from_utf8(head).expect("text");
                    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    recorded.lock().expect("no test panics with it").push(head);
                    let answer = format!("HTTP/1.1 {status} Whatever\r\n\r\n");
                    client.write_all(answer.as_bytes()).await.expect("written");
                    if status == 200 {
                        let mut site = TcpStream::connect(target).await.expect("a site");
                        let _hung_up = io::copy_bidirectional(&mut client, &mut site).await;
                    }
                };
                spawner.execute(tunnel);
            }
        });
        Self { port, heads, _tasks: tasks }
    }

    fn client(&self, authority: &TestAuthority) -> WebClient {
        let url = format!("http://ada:hunter2@127.0.0.1:{}", self.port);
        let proxy = ProxyConfig::Http(url.parse().expect("a URL"));
        let tls = authority.trust();
        let settings = ConnectorSettings { tls, proxy, ..ConnectorSettings::default() };
        WebClient::new(Connector::new(settings).expect("a connector"), limits())
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no test panics with it").clone()
    }
}

#[tokio::test]
async fn a_proxy_opens_a_tunnel_for_every_scheme() {
    let (authority, proxy) = (TestAuthority::new(), TestProxy::open(200).await);
    let web = proxy.client(&authority);
    let plain = TestSite::open(|_| async { page(200, "1") }).await;
    let tls = authority.site("localhost", true, |_| {});
    let secure = TestSite::open_with(Some(tls), |_| async { page(200, "2") }).await;
    for (site, expected) in [(&plain, "1"), (&secure, "2")] {
        let answer = web.fetch(get(site.url("/"))).await.expect("an answer");
        assert_eq!(answer.body(), expected);
        let recorded = site.recorded();
        assert!(!recorded[0].headers.contains_key("proxy-authorization"));
        let authority = site.url("/").authority().expect("one").to_string();
        let head = proxy.heads().pop().expect("a tunnel").to_ascii_lowercase();
        assert!(head.starts_with(&format!("connect {authority} http/1.1\r\n")), "{head}");
        assert!(head.contains("proxy-authorization: basic ywrhomh1bnrlcji="), "{head}");
    }
}

#[tokio::test]
async fn a_proxy_that_opens_no_tunnel_is_reported_with_reason_and_remedy() {
    for (status, reason, remedy) in [
        (407, "requires a login (HTTP 407)", "Write user and password"),
        (403, "refuses to connect to it (HTTP 403)", "Let the proxy allow `CONNECT`"),
        (502, "cannot reach it (HTTP 502 Bad Gateway)", "Check the URL of the server"),
        (405, "opens no tunnel to it (HTTP 405 Method Not Allowed)", "Let the proxy"),
    ] {
        let (authority, proxy) = (TestAuthority::new(), TestProxy::open(status).await);
        let error = proxy.client(&authority).fetch(get("https://mcp.example/")).await;
        let error = error.expect_err("no tunnel");
        let port = proxy.port;
        assert_eq!(
            error.to_string(),
            format!(
                "the proxy `http://127.0.0.1:{port}` between metamcp and `https://mcp.example` {reason}"
            )
        );
        assert!(error.hint().starts_with(remedy), "{}", error.hint());
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}

#[tokio::test]
async fn an_absent_proxy_is_not_reported_as_an_absent_site() {
    let authority = TestAuthority::new();
    let proxy = TestProxy::open(200).await;
    let web = proxy.client(&authority);
    drop(proxy);
    let error = web.fetch(get("https://mcp.example/")).await.expect_err("no proxy");
    assert_eq!(error.code(), "PROXY_FAILED");
    assert!(error.to_string().starts_with("the proxy between metamcp and `https://mcp.example`"));
}
