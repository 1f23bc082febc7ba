//! `remote`: a call to an https upstream, through nginx and through metamcp.
//!
//! Both take plain http and send the call over TLS, with connections that stay open, to the same nginx in
//! front of the upstream. Repetitions are interleaved.

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::{
    client::Target,
    load::{Load, Sample},
    nginx::Nginx,
    process::{self, Process},
    report::{cell, ratio},
    rig,
};

/// Compare a call to an https upstream through metamcp and through nginx
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of repetitions
    #[arg(long, value_name = "N", default_value_t = 5)]
    repetitions: usize,
    /// Offer HTTP/2 to metamcp; nginx has only HTTP/1.1 towards upstreams
    #[arg(long)]
    http2: bool,
}

const N_CLIENTS: usize = 32;
/// The length of a typical text, in bytes.
const USUAL: usize = 100;

/// One kind of number, for nginx and for metamcp.
#[derive(Default)]
struct Numbers {
    nginx: Vec<f64>,
    metamcp: Vec<f64>,
}

impl Numbers {
    fn add(&mut self, nginx: f64, metamcp: f64) {
        self.nginx.push(nginx);
        self.metamcp.push(metamcp);
    }

    /// Returns the row of the table.
    fn row(&self, label: &str, target: &str) -> String {
        let ratios: Vec<f64> =
            self.metamcp.iter().zip(&self.nginx).map(|(ours, theirs)| ours / theirs).collect();
        let (nginx, metamcp) = (cell(&self.nginx), cell(&self.metamcp));
        format!("| {label} | {nginx} | {metamcp} | {} | {target} |\n", ratio(&ratios))
    }
}

pub(crate) async fn run(args: Args) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut upstream = Process::ourselves("upstream", &["upstream"]);
    let secure = secure(directory.path(), upstream.address(), args.http2);
    let hop = hop(directory.path(), secure.address());
    let mut gateway = rig::service(&directory, &config(directory.path(), secure.address()));
    rig::wait_ready(&mut gateway).await;
    let contestants = [(hop.address(), hop.pids()), (gateway.address(), vec![gateway.pid()])]
        .map(|(address, pids)| (Target { address, path: "/mcp", tool: "echo" }, pids));

    let [mut alone, mut many, mut throughput, mut cpu] = <[Numbers; 4]>::default();
    for number in 1..=args.repetitions {
        process::progress(&format!("repetition {number} of {}", args.repetitions));
        let [nginx, metamcp] = both(&contestants, 1, 1.5).await;
        alone.add(nginx.percentile_us(50), metamcp.percentile_us(50));
        let [nginx, metamcp] = both(&contestants, N_CLIENTS, 3.0).await;
        many.add(nginx.percentile_us(50), metamcp.percentile_us(50));
        throughput.add(nginx.throughput(), metamcp.throughput());
        let [nginx, metamcp] = [nginx, metamcp].map(|sample| sample.cpu_us().unwrap_or_default());
        cpu.add(nginx, metamcp);
    }

    let mut text = format!(
        "Medians of {} interleaved repetitions (lowest–highest).\n\n\
         | an upstream over https | nginx | metamcp | metamcp ÷ nginx | target |\n\
         |---|---:|---:|---:|---:|\n",
        args.repetitions
    );
    text += &alone.row("1 client, p50, µs", "≤ 1.25×");
    text += &many.row("32 clients, p50, µs", "≤ 1.25×");
    text += &throughput.row("32 clients, calls/s", "≥ 0.8×");
    text += &cpu.row("32 clients, processor time of the hop per call, µs", "");
    process::print(&text);
}

/// Loads nginx and then metamcp.
async fn both(
    contestants: &[(Target, Vec<u32>); 2],
    n_clients: usize,
    seconds: f64,
) -> [Sample; 2] {
    let (warm_up, measured) =
        (Duration::from_secs_f64(seconds / 5.0), Duration::from_secs_f64(seconds));
    let load = Load { n_clients, bytes: USUAL, warm_up, measured };
    let [(nginx, nginx_pids), (metamcp, metamcp_pids)] = contestants;
    [load.run(nginx, nginx_pids).await, load.run(metamcp, metamcp_pids).await]
}

/// Starts nginx with TLS in front of the upstream.
fn secure(directory: &Path, upstream: SocketAddr, has_http2: bool) -> Nginx {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(directory.join("certificate.pem"), pem("CERTIFICATE", cert.der())).expect("written");
    let key = pem("PRIVATE KEY", &signing_key.serialize_der());
    fs::write(directory.join("key.pem"), key).expect("written");
    let at = directory.display();
    let server = format!(
        "ssl_certificate {at}/certificate.pem; ssl_certificate_key {at}/key.pem;
        location / {{ proxy_pass http://plain; }}"
    );
    let http = format!("upstream plain {{ server {upstream}; keepalive 128; }}");
    let options = if has_http2 { "ssl http2" } else { "ssl" };
    Nginx::start(&directory.join("secure"), options, &server, &http)
}

/// Returns bytes as a PEM file.
fn pem(label: &str, bytes: &[u8]) -> String {
    // The longest line of a PEM file that encodes whole bytes has 64 characters.
    let lines = bytes.chunks(48).map(|line| BASE64_STANDARD.encode(line) + "\n");
    format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", lines.collect::<String>())
}

/// Starts nginx with plain http in front of the TLS port, as metamcp is.
fn hop(directory: &Path, secure: SocketAddr) -> Nginx {
    let certificate = directory.join("certificate.pem");
    let server = format!(
        "location / {{ proxy_pass https://secure; proxy_ssl_name localhost; proxy_ssl_verify on;
        proxy_ssl_trusted_certificate {}; }}",
        certificate.display()
    );
    let http = format!("upstream secure {{ server {secure}; keepalive 128; }}");
    Nginx::start(&directory.join("hop"), "", &server, &http)
}

/// Returns the configuration of metamcp with the TLS port as its only server.
fn config(directory: &Path, secure: SocketAddr) -> String {
    let ca = directory.join("certificate.pem");
    format!(
        "root = \"passthrough:up\"\n\n\
         [servers.up]\nurl = \"https://localhost:{}/mcp\"\nstart = \"prewarm\"\n\
         auth = \"none\"\ntls.ca = {ca:?}\n",
        secure.port()
    )
}
