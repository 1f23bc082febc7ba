//! What operators want the service as a whole to do, as it reaches the main loop.

use tokio::sync::mpsc;

use super::Daemon;
use crate::{config::defaults, control::ControlCommand};

/// Both ends of the way that orders take.
#[derive(Debug)]
pub(super) struct CommandChannel {
    sender: mpsc::Sender<ControlCommand>,
    receiver: mpsc::Receiver<ControlCommand>,
}

impl CommandChannel {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(defaults::CONTROL_ORDERS_QUEUE);
        Self { sender, receiver }
    }

    /// Returns the end that orders are given at.
    pub(super) fn sender(&self) -> mpsc::Sender<ControlCommand> {
        self.sender.clone()
    }

    /// Waits for the next order.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn next(&mut self) -> ControlCommand {
        match self.receiver.recv().await {
            Some(order) => order,
            // Nobody can give any: they were closed.
            None => std::future::pending().await,
        }
    }

    /// Takes no more. Who waits for one learns that it is not carried out.
    pub(super) fn close(&mut self) {
        self.receiver.close();
        while self.receiver.try_recv().is_ok() {}
    }
}

impl Daemon {
    /// Carries out an order, and returns whether it was the last one. Who gave it may have gone.
    pub(super) fn execute(&mut self, order: ControlCommand) -> bool {
        match order {
            ControlCommand::Reload { from, told } => {
                let _gone = told.send(self.reload(from));
                false
            }
            ControlCommand::Stop { told } => {
                let _gone = told.send(());
                true
            }
        }
    }
}
