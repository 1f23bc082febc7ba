//! The behaviour of the real program, as a client, an operator or a service manager sees it.
//!
//! One target, so that it is linked once; one file per subject. The servers behind it are the
//! scriptable fake (`tests/harness/fake_mcp`), which misbehaves on command.

#[path = "../harness/mod.rs"]
mod harness;

mod at_a_glance;
mod attacks;
mod background_calls;
mod background_scripts;
mod batches;
mod bearer_token;
mod breaker;
mod byte_fidelity;
mod calls;
mod canaries;
mod catalog_cache;
mod child_processes;
mod claude_code;
mod cli;
mod command_line;
mod concurrent_clients;
mod configuration;
mod confine;
mod connect;
mod connection_churn;
mod content_types;
mod control;
mod disabled_servers;
mod doctor;
mod doctor_remote;
mod era_matrix;
mod escapes;
mod exclusive_sharing;
mod fake_server;
mod fake_server_modern;
mod fake_server_tasks;
mod faulty_upstreams;
mod features;
mod forwarded_headers;
mod hanging_service;
mod held_calls;
mod http_endpoints;
mod https_upstream;
mod import;
mod json_response;
mod legacy_sse;
mod lists;
mod log_levels;
mod logins;
mod mcp_apps;
mod merged_view;
mod meta;
mod metrics;
mod modern_http;
mod modern_subscriptions;
mod notification_stream;
mod per_session;
mod pinned_session;
mod priming;
mod protocol_versions;
mod random_requests;
mod resource_subscriptions;
mod resumption;
mod retry;
mod retry_after;
mod sandbox_pipe;
mod server_eras;
mod server_restarts;
mod servers_by_hand;
mod service;
mod service_lifecycle;
mod session_renewal;
mod sessions;
mod sharing;
mod shutdown;
mod sigkill;
mod slow_clients;
mod status_page;
mod stdio;
mod tasks;
mod tls;
mod tool_aliases;
mod traces;
mod typegen;
mod unhealthy_neighbours;
mod units;
mod upstream;

/// Runs all `futures` concurrently and returns their results.
async fn all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    tokio::time::timeout(harness::DEADLINE, futures_util::future::join_all(futures))
        .await
        .expect("all end in time")
}

/// Waits until `is_met` returns `true`.
async fn until(mut is_met: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !is_met().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(harness::DEADLINE, polling).await.expect("the condition is met in time");
}

/// Returns the entry of a server in `/status`.
async fn server_status(daemon: &harness::daemon::Daemon, name: &str) -> serde_json::Value {
    let status = daemon.client("/status").get().await.answer();
    let servers = status["servers"].as_array().expect("a list").iter();
    servers.into_iter().find(|server| server["name"] == name).expect("it is declared").clone()
}
