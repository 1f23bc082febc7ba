//! The behaviour of the real program, as a client, an operator or a service manager sees it.
//!
//! One target, so that it is linked once; one file per subject. The servers behind it are the
//! scriptable fake (`tests/harness/fake_mcp`), which does on command what a real one cannot.

#[path = "../harness/mod.rs"]
mod harness;

mod aliases;
mod apps;
mod attacks;
mod background;
mod bad_upstreams;
mod batches;
mod breaker;
mod cache;
mod children;
mod claude_code;
mod cli;
mod command_line;
mod configuration;
mod content;
mod control;
mod cycles;
mod doctor;
mod edge;
mod envelopes;
mod eras;
mod exclusive;
mod fake;
mod fake_modern;
mod fake_tasks;
mod features;
mod fidelity;
mod generations;
mod held;
mod import;
mod kills;
mod levels;
mod lists;
mod merged;
mod meta;
mod modern_edge;
mod modern_listens;
mod neighbours;
mod owned;
mod pairs;
mod pinned;
mod plain_answers;
mod prime;
mod restarts;
mod resumption;
mod retry;
mod server_eras;
mod service;
mod sessions;
mod sharing;
mod slow_clients;
mod stand_alone;
mod stdio;
mod stops;
mod streams;
mod subscriptions;
mod tasks;
mod tls;
mod token;
mod typegen;
mod units;
mod upstream;
mod versions;
mod waves;

/// Returns what each of `futures` came to, all of them running at once.
async fn all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    tokio::time::timeout(harness::DEADLINE, futures_util::future::join_all(futures))
        .await
        .expect("all end in time")
}

/// Asks again and again until the answer is yes.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(harness::DEADLINE, asking).await.expect("it comes true in time");
}

/// Returns what `/status` says about a server.
async fn server_status(daemon: &harness::daemon::Daemon, name: &str) -> serde_json::Value {
    let status = daemon.client("/status").get().await.answer();
    let servers = status["servers"].as_array().expect("a list").iter();
    servers.into_iter().find(|server| server["name"] == name).expect("it is declared").clone()
}
