//! A request that takes long: its progress on the terminal, and ctrl-c.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::{CANCELLED, Failed, listen_for_ctrl_c, progress_line::ProgressLine, service_target};
use crate::{
    config::defaults,
    control::socket_client::{ControlConnection, ServiceError, ServiceMessage},
};

/// The answer to a request: the JSON text of its result, or the error of the service.
type ServiceAnswer = Result<Box<RawValue>, Box<ServiceError>>;

/// Sends a request with `params`, JSON text, draws its progress, and waits for the answer. Ctrl-c
/// cancels the request; an answer that still arrives is returned.
///
/// The service ends the request after `timeout`. If it does not, a ping shows whether it is alive.
///
/// # Errors
///
/// [`Failed`] if ctrl-c ended the request, no answer arrives, or the service hangs.
pub(super) async fn send(
    service: &mut ControlConnection,
    method: &str,
    params: &str,
    timeout: Option<Duration>,
) -> Result<ServiceAnswer, Failed> {
    let mut interrupted = listen_for_ctrl_c()?;
    let request = service.send(method, params).await.map_err(service_target::failed)?;
    let cancelled = || Failed::new(CANCELLED, "cancelled");
    let mut line = ProgressLine::new();
    let mut is_cancelled = false;
    let timeout = timeout.unwrap_or(defaults::CONTROL_CALL_TIMEOUT);
    let mut deadline = Instant::now() + timeout;
    let mut is_pinged = false;
    loop {
        let message = tokio::select! {
            message = service.next() => message,
            _ = interrupted.recv(), if !is_cancelled => {
                is_cancelled = true;
                line.clear();
                service.cancel(request).await.map_err(service_target::failed)?;
                service.finish().await.map_err(service_target::failed)?;
                deadline = Instant::now() + defaults::CANCEL_TIMEOUT;
                continue;
            }
            () = sleep_until(deadline), if is_cancelled => return Err(cancelled()),
            // The first message of the service has a deadline of its own.
            () = sleep_until(deadline), if service.is_heard() => {
                if is_pinged {
                    return Err(service_target::failed(service.stalled()));
                }
                is_pinged = true;
                deadline = Instant::now() + defaults::CALL_PING_TIMEOUT;
                service.ping().await.map_err(service_target::failed)?;
                continue;
            }
        };
        if std::mem::take(&mut is_pinged) && !is_cancelled {
            deadline = Instant::now() + timeout.max(defaults::CALL_PING_TIMEOUT);
        }
        match message {
            // A cancelled request has no answer: the service closes the connection.
            Err(_) if is_cancelled => return Err(cancelled()),
            Err(error) => return Err(service_target::failed(error)),
            Ok(ServiceMessage::Answer(number, answer)) if number == request => {
                return match answer {
                    Err(_) if is_cancelled => Err(cancelled()),
                    answer => Ok(answer),
                };
            }
            Ok(ServiceMessage::Notification(method, params))
                if method == "notifications/progress" =>
            {
                line.draw(&params);
            }
            Ok(ServiceMessage::Answer(..) | ServiceMessage::Notification(..)) => {}
        }
    }
}
