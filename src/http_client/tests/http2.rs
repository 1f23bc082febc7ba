//! Tests of HTTP/2: shared connections, and the limits of the site.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::future::join_all;
use h2::{Reason, RecvStream, server::SendResponse};
use hyper::{Response, Version};
use tokio::{sync::Semaphore, time};

use super::{
    certificates::{TestAuthority, connector},
    test_site::SiteTls,
    *,
};
use crate::config::defaults;

/// Opens a site that keeps requests for `/long` until `release` has a permit for each.
async fn slow_site(authority: &TestAuthority, streams_max: u32) -> (TestSite, Arc<Semaphore>) {
    let release = Arc::new(Semaphore::new(0));
    let tls = SiteTls { streams_max, ..authority.site("localhost", true, |_| {}) };
    let held = Arc::clone(&release);
    let site = TestSite::open_with(Some(tls), move |recorded| {
        let held = Arc::clone(&held);
        async move {
            if recorded.line.ends_with("/long") {
                held.acquire().await.expect("it is open").forget();
            }
            page(200, "[7]")
        }
    })
    .await;
    (site, release)
}

#[tokio::test]
async fn eight_long_streams_do_not_starve_a_call() {
    let authority = TestAuthority::new();
    let (site, release) = slow_site(&authority, 4).await;
    let web = WebClient::new(connector(authority.trust()), limits());
    let long = async {
        let answers = (0..8).map(|_| web.fetch(get(site.url("/long"))));
        join_all(answers).await.into_iter().filter(Result::is_ok).count()
    };
    let calls = async {
        // All long requests are under way, on connections with four streams each.
        while site.recorded().len() < 8 {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            web.fetch(get(site.url("/short"))).await.expect("an answer");
        }
        release.add_permits(8);
    };
    let (n_answered, ()) = tokio::join!(long, calls);
    assert_eq!(n_answered, 8);
    assert!((3..=8).contains(&site.n_connections()), "{}", site.n_connections());
    assert!(site.recorded().iter().all(|recorded| recorded.version == Version::HTTP_2));
}

#[tokio::test]
async fn many_requests_share_one_connection_from_the_start() {
    let authority = TestAuthority::new();
    let (site, _) = slow_site(&authority, 100).await;
    let web = WebClient::new(connector(authority.trust()), limits());
    let answers = join_all((0..4).map(|_| web.fetch(get(site.url("/short"))))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(site.n_connections(), 1, "one request connects for all");
}

#[tokio::test]
async fn requests_that_wait_for_a_failing_connection_fail_with_it() {
    let authority = TestAuthority::new();
    let tls = authority.site("other.example", true, |_| {});
    let site = TestSite::open_with(Some(tls), |_| async { page(200, "") }).await;
    let web = WebClient::new(connector(authority.trust()), limits());
    let answers = join_all((0..10).map(|_| web.fetch(get(site.url("/"))))).await;
    assert!(answers.iter().all(Result::is_err));
    assert_eq!(site.n_connections(), 1);
}

#[tokio::test]
async fn a_site_that_restarts_gets_a_request_on_a_new_connection() {
    let authority = TestAuthority::new();
    let (site, _) = slow_site(&authority, 100).await;
    let web = WebClient::new(connector(authority.trust()), limits());
    web.fetch(get(site.url("/short"))).await.expect("an answer");
    site.close_connections();
    for _ in 0..3 {
        web.fetch(get(site.url("/short"))).await.expect("an answer");
    }
    assert_eq!(site.n_connections(), 2);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let authority = TestAuthority::new();
    let (site, release) = slow_site(&authority, 100).await;
    let web = WebClient::new(connector(authority.trust()), limits());
    let skip = async || {
        time::pause();
        time::advance(2 * defaults::HTTP2_IDLE_TIMEOUT).await;
        time::resume();
        // The task of the connection gets its turn.
        tokio::task::yield_now().await;
    };
    web.fetch(get(site.url("/short"))).await.expect("an answer");
    skip().await;
    web.fetch(get(site.url("/short"))).await.expect("an answer");
    assert_eq!(site.n_connections(), 2);

    let long = WebClient::new(
        connector(authority.trust()),
        WebLimits { timeout: 10 * defaults::HTTP2_IDLE_TIMEOUT, ..limits() },
    );
    let held = long.fetch(get(site.url("/long")));
    let waited = async {
        while site.recorded().len() < 3 {
            tokio::task::yield_now().await;
        }
        skip().await;
        release.add_permits(1);
    };
    let (answer, ()) = tokio::join!(held, waited);
    assert_eq!(answer.expect("it was in use").status(), 200);
}

#[tokio::test]
async fn a_dropped_request_returns_its_stream() {
    let authority = TestAuthority::new();
    let (site, _release) = slow_site(&authority, 2).await;
    let web = WebClient::new(connector(authority.trust()), limits());
    web.fetch(get(site.url("/short"))).await.expect("an answer");
    for n_before in 1..6 {
        let long = web.fetch(get(site.url("/long")));
        let arrived = async {
            while site.recorded().len() <= n_before {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = long => unreachable!("it is held"),
            () = arrived => {}
        }
    }
    assert_eq!(site.n_connections(), 1);
}

/// Opens a port for one HTTP/2 connection with room for two streams. `serve` gets each request, until
/// it returns `false`; the site then keeps the connection open, and does nothing.
async fn raw_site(
    authority: &TestAuthority,
    mut serve: impl FnMut(Request<RecvStream>, SendResponse<Bytes>) -> bool + Send + 'static,
) -> (Uri, OwnedTasks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let tls = authority.site("localhost", true, |_| {});
    let tasks = OwnedTasks::default();
    tasks.spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let stream = tls.acceptor.accept(stream).await.expect("TLS");
        let mut connection = h2::server::Builder::new()
            .max_concurrent_streams(2)
            .initial_connection_window_size(1 << 24)
            .handshake(stream)
            .await
            .expect("HTTP/2");
        while let Some(request) = connection.accept().await {
            let (request, respond) = request.expect("a whole one");
            if !serve(request, respond) {
                break;
            }
        }
        pending::<()>().await;
    });
    (format!("https://localhost:{port}/").parse().expect("a URL"), tasks)
}

fn head(status: u16) -> Response<()> {
    Response::builder().status(status).body(()).expect("a head")
}

#[tokio::test]
async fn an_answer_that_is_reset_before_its_end_is_broken_off() {
    let words = [
        (Reason::NO_ERROR, "the host ended it (NO_ERROR)"),
        (Reason::INTERNAL_ERROR, "the host ended it (INTERNAL_ERROR)"),
    ];
    for (reason, words) in words {
        let authority = TestAuthority::new();
        let (url, _site) = raw_site(&authority, move |_, mut respond| {
            let mut body = respond.send_response(head(200), false).expect("sent");
            body.send_data("[1,".into(), false).expect("sent");
            body.send_reset(reason);
            true
        })
        .await;
        let web = WebClient::new(connector(authority.trust()), limits());
        let error = web.fetch(get(url)).await.expect_err("half an answer");
        assert_eq!(error.code(), "BROKEN_OFF", "{reason:?}");
        assert!(chain(&error).ends_with(words), "{}", chain(&error));
    }
}

#[tokio::test]
async fn an_answer_before_the_end_of_its_request_frees_the_stream() {
    let authority = TestAuthority::new();
    let mut unread = Vec::new();
    let (url, _site) = raw_site(&authority, move |request, mut respond| {
        respond.send_response(head(413), true).expect("sent");
        // It neither reads nor resets the request.
        unread.push((request, respond));
        true
    })
    .await;
    let web = WebClient::new(connector(authority.trust()), limits());
    for _ in 0..6 {
        let body = Bytes::from(vec![b'x'; 300_000]);
        let request = Request::post(url.to_string()).body(body).expect("a request");
        assert_eq!(web.fetch(request).await.expect("an answer").status(), 413);
    }
}

#[tokio::test]
async fn a_site_that_refuses_streams_is_busy_after_a_few_tries() {
    let authority = TestAuthority::new();
    let n_refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_refused);
    let (url, _site) = raw_site(&authority, move |_, mut respond| {
        counted.fetch_add(1, Ordering::Relaxed);
        respond.send_reset(Reason::REFUSED_STREAM);
        true
    })
    .await;
    let web = WebClient::new(connector(authority.trust()), limits());
    let error = web.fetch(get(url)).await.expect_err("it has no room");
    assert!(chain(&error).ends_with("refuses further requests at present"), "{}", chain(&error));
    assert_eq!(n_refused.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_connection_whose_peer_answers_no_probe_is_closed() {
    let authority = TestAuthority::new();
    let (asked, is_asked) = tokio::sync::oneshot::channel();
    let mut asked = Some(asked);
    let (url, _site) = raw_site(&authority, move |request, respond| {
        let asked = asked.take().expect("it serves one request");
        asked.send((request, respond)).expect("the test waits");
        false
    })
    .await;
    let limits = WebLimits { timeout: Duration::from_secs(3600), ..limits() };
    let web = WebClient::new(connector(authority.trust()), limits);
    let silence = async {
        let _unanswered = is_asked.await.expect("a request");
        time::pause();
        pending::<()>().await;
    };
    let error = tokio::select! {
        answer = web.fetch(get(url)) => answer.expect_err("no answer"),
        () = silence => unreachable!("it has no end"),
    };
    assert_eq!(error.code(), "BROKEN_OFF");
}

#[tokio::test]
async fn a_request_over_http2_has_no_header_of_one_hop() {
    let authority = TestAuthority::new();
    let (site, _) = slow_site(&authority, 100).await;
    let web = WebClient::new(connector(authority.trust()), limits());
    let mut request = Request::post(site.url("/short").to_string());
    for (name, value) in [("te", "gzip"), ("keep-alive", "5"), ("upgrade", "h2c"), ("x-a", "b")] {
        request = request.header(name, value);
    }
    let body = Bytes::from(vec![b'x'; 300_000]);
    web.fetch(request.body(body.clone()).expect("a request")).await.expect("an answer");
    let recorded = site.recorded().remove(0);
    assert_eq!(recorded.body, body, "it is larger than the windows");
    assert_eq!((recorded.header("x-a"), recorded.header("content-length")), ("b", "300000"));
    for name in ["te", "keep-alive", "upgrade", "host"] {
        assert_eq!(recorded.header(name), "", "{name}");
    }
}
