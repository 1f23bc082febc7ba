//! The channel that carries commands of operators to the main loop.

use tokio::sync::mpsc;

use super::Daemon;
use crate::{config::defaults, control::ControlCommand};

/// Both ends of the channel.
#[derive(Debug)]
pub(super) struct CommandChannel {
    sender: mpsc::Sender<ControlCommand>,
    receiver: mpsc::Receiver<ControlCommand>,
}

impl CommandChannel {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(defaults::CONTROL_COMMAND_QUEUE);
        Self { sender, receiver }
    }

    /// Returns the sending end.
    pub(super) fn sender(&self) -> mpsc::Sender<ControlCommand> {
        self.sender.clone()
    }

    /// Waits for the next command. Cancel safe.
    pub(super) async fn next(&mut self) -> ControlCommand {
        match self.receiver.recv().await {
            Some(command) => command,
            // The channel is closed: no command can come.
            None => std::future::pending().await,
        }
    }

    /// Accepts no more commands. The senders of queued commands learn that these are not executed.
    pub(super) fn close(&mut self) {
        self.receiver.close();
        while self.receiver.try_recv().is_ok() {}
    }
}

impl Daemon {
    /// Executes a command, and returns whether it is the last one. Its sender may have gone.
    pub(super) fn execute(&mut self, command: ControlCommand) -> bool {
        match command {
            ControlCommand::Reload { from, reply } => {
                let _gone = reply.send(self.reload(from));
                false
            }
            ControlCommand::Stop { reply } => {
                let _gone = reply.send(());
                true
            }
        }
    }
}
