//! `metamcp status`: the state of the running service.

use serde_json::json;
use tokio::time;

use super::{
    Failed, listen_for_ctrl_c, output, server_report, service_target, service_target::OutputArgs,
    status_report, terminal,
};
use crate::{config::defaults, control::socket_client::ControlConnection};

/// Show the running service and its servers
///
/// The memory of a server includes all its processes. The saved memory is that of each shared server,
/// times the number of client sessions that have called it or read from it, but one. Exits with 69
/// when no service answers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show this server in full, with its last events
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// Refresh every 2 s, until ctrl-c
    #[arg(long, conflicts_with_all = ["json", "server"])]
    watch: bool,
    #[command(flatten)]
    common: OutputArgs,
}

/// Switches to the alternate screen and hides the cursor.
const PAGE: &str = "\x1b[?1049h\x1b[?25l";
/// Shows the cursor and returns to the main screen.
const NO_PAGE: &str = "\x1b[?25h\x1b[?1049l";
/// Moves to the first line; the terminal, if able to, delays its update until [`SHOW`].
const TOP: &str = "\x1b[?2026h\x1b[H";
/// Clears the screen below the cursor, and ends the delayed update.
const SHOW: &str = "\x1b[J\x1b[?2026l";

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    if args.watch {
        return watch(args);
    }
    if let Some(server) = &args.server {
        return server_report::run(&args.common, server);
    }
    let status = args.common.target.call_service("daemon/status", &json!({ "memory": true }))?;
    args.common.print(&status, |status| {
        let columns = terminal::size().map(|(columns, _)| (columns, usize::MAX));
        output::print(&status_report::render(status, columns, terminal::is_coloured()));
    })
}

/// The alternate screen; dropping it restores the main screen.
struct Page;

impl Page {
    fn open() -> Option<Self> {
        terminal::is_stdout_terminal().then(|| {
            output::print(PAGE);
            Self
        })
    }

    /// Draws `text` over the previous content; each line is cleared from its end.
    fn draw(text: &str) {
        let lines = text.replace('\n', "\x1b[K\r\n");
        output::print(&format!("{TOP}{}{SHOW}", lines.trim_end_matches("\r\n")));
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        output::print(NO_PAGE);
    }
}

fn watch(args: &Args) -> Result<(), Failed> {
    service_target::run(async {
        let mut ticks = time::interval(defaults::WATCH_INTERVAL);
        ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        // The first report must succeed; after that, the service may disappear and return.
        let mut service = None;
        ticks.tick().await;
        let mut last = report(args, &mut service).await?;
        let mut interrupted = listen_for_ctrl_c()?;
        let page = Page::open();
        loop {
            match page {
                Some(_) => Page::draw(&last),
                None => output::print(&format!("{last}\n")),
            }
            let next = async {
                ticks.tick().await;
                report(args, &mut service).await
            };
            let reported = tokio::select! {
                reported = next => reported,
                _ = interrupted.recv() => break,
            };
            last = reported.unwrap_or_else(|failed| {
                service = None;
                format!("{}\n", failed.text)
            });
        }
        // The last state stays visible.
        if page.is_some() {
            drop(page);
            output::print(&last);
        }
        Ok(())
    })
}

/// Asks for the status, on a new connection if the last request failed.
async fn report(args: &Args, service: &mut Option<ControlConnection>) -> Result<String, Failed> {
    let connection = match service.take() {
        Some(connection) => service.insert(connection),
        None => service.insert(args.common.target.connect_running().await?),
    };
    let params = json!({ "memory": true });
    let status = service_target::request(connection, "daemon/status", &params).await?;
    let status = service_target::value(&status)?;
    Ok(status_report::render(&status, terminal::size(), terminal::is_coloured()))
}
