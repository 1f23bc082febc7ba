//! A report about the running service that is drawn again and again, until ctrl-c.

use std::time::Duration;

use serde_json::Value;
use tokio::time;

use super::{
    Failed, listen_for_ctrl_c, output,
    service_target::{self, ServiceTarget},
    terminal,
};
use crate::control::socket_client::ControlConnection;

/// Switches to the alternate screen and hides the cursor.
const PAGE: &str = "\x1b[?1049h\x1b[?25l";
/// Shows the cursor and returns to the main screen.
const NO_PAGE: &str = "\x1b[?25h\x1b[?1049l";
/// Moves to the first line; the terminal, if able to, delays its update until [`SHOW`].
const TOP: &str = "\x1b[?2026h\x1b[H";
/// Clears the screen below the cursor, and ends the delayed update.
const SHOW: &str = "\x1b[J\x1b[?2026l";

/// A report that is drawn again and again.
pub(super) struct WatchedReport<'a, R> {
    pub(super) target: &'a ServiceTarget,
    /// The method of the control interface, and its parameters.
    pub(super) method: &'static str,
    pub(super) params: Value,
    pub(super) interval: Duration,
    /// Returns the text of an answer.
    pub(super) render: R,
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

impl<R: Fn(&Value) -> String> WatchedReport<'_, R> {
    /// Draws the report until ctrl-c.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the first report fails. After that, the service may disappear and return.
    pub(super) fn run(&self) -> Result<(), Failed> {
        service_target::run(async {
            let mut ticks = time::interval(self.interval);
            ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
            let mut service = None;
            ticks.tick().await;
            let mut last = self.report(&mut service).await?;
            let mut interrupted = listen_for_ctrl_c()?;
            let page = Page::open();
            loop {
                match page {
                    Some(_) => Page::draw(&last),
                    None => output::print(&format!("{last}\n")),
                }
                let next = async {
                    ticks.tick().await;
                    self.report(&mut service).await
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

    /// Asks for the report, on a new connection if the last request failed.
    async fn report(&self, service: &mut Option<ControlConnection>) -> Result<String, Failed> {
        let connection = match service.take() {
            Some(connection) => service.insert(connection),
            None => service.insert(self.target.connect_running().await?),
        };
        let answer = service_target::request(connection, self.method, &self.params).await?;
        Ok((self.render)(&service_target::value(&answer)?))
    }
}
