//! `metamcp status`: what the running service does.

use serde_json::json;
use tokio::time;

use super::{
    Failed, ctrl_c, output, overview, service_target, service_target::OutputArgs, terminal,
};
use crate::{config::defaults, control::client::ControlConnection};

/// Show the running service and its servers
///
/// The memory of a server is that of all its processes; what is saved is what as many sets of servers
/// would take as there are clients, less the one that there is. Exits with 69 when no service answers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Look again every 2 s, until ctrl-c
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    #[command(flatten)]
    reader: OutputArgs,
}

/// Draw on a page of its own, without a cursor.
const PAGE: &str = "\x1b[?1049h\x1b[?25l";
/// Back to the page of before, with the cursor.
const NO_PAGE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first line; what is written until [`SHOW`] is shown at once where the terminal can do that.
const TOP: &str = "\x1b[?2026h\x1b[H";
/// Nothing below, and all of it is shown.
const SHOW: &str = "\x1b[J\x1b[?2026l";

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    if args.watch {
        return watch(args);
    }
    let status = args.reader.target.call_service("daemon/status", &json!({ "memory": true }))?;
    args.reader.print(&status, |status| {
        let columns = terminal::size().map(|(columns, _)| (columns, usize::MAX));
        output::print(&overview::render(status, columns, terminal::is_coloured()));
        Ok(())
    })
}

/// A page of the terminal, which is the one of before again when this is dropped.
struct Page;

impl Page {
    fn open() -> Option<Self> {
        terminal::is_stdout_terminal().then(|| {
            output::print(PAGE);
            Self
        })
    }

    /// Draws `text` over what is there; each line is cleared only behind its end.
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
        let mut interrupted = ctrl_c::listen_for_ctrl_c()?;
        let mut ticks = time::interval(defaults::WATCH_INTERVAL);
        ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        // A service that is not there at the start is a mistake; one that goes away may come back.
        let mut service = Some(args.reader.target.connect_running().await?);
        let page = Page::open();
        let mut last = String::new();
        loop {
            let next = async {
                ticks.tick().await;
                look(args, &mut service).await
            };
            let looked = tokio::select! {
                looked = next => looked,
                _ = interrupted.recv() => break,
            };
            last = match looked {
                Ok(text) => text,
                Err(failed) => {
                    service = None;
                    format!("{}\n", failed.text)
                }
            };
            match page {
                Some(_) => Page::draw(&last),
                None => output::print(&format!("{last}\n")),
            }
        }
        // What was seen last stays.
        if page.is_some() {
            drop(page);
            output::print(&last);
        }
        Ok(())
    })
}

/// Asks once more, on a new connection where the old one has gone.
async fn look(args: &Args, service: &mut Option<ControlConnection>) -> Result<String, Failed> {
    let connection = match service.take() {
        Some(connection) => service.insert(connection),
        None => service.insert(args.reader.target.connect_running().await?),
    };
    let params = json!({ "memory": true }).to_string();
    let asked = connection.ask("daemon/status", &params, defaults::CONTROL_PATIENCE).await;
    let status = service_target::value(&asked.map_err(service_target::failed)?)?;
    Ok(overview::render(&status, terminal::size(), terminal::is_coloured()))
}
