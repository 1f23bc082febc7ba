//! The messages of a server that are addressed to no single request.

use bytes::Bytes;

use super::{ServerRequest, SessionOwner};
use crate::{
    protocol::{Message, list_page::ListKind},
    server_name::ServerName,
};

/// A message that a server sent besides the answer to a request.
#[derive(Debug)]
pub enum SideMessage {
    /// A notification.
    Notification(Message),
    /// A request of the server.
    Question(ServerRequest),
}

impl SideMessage {
    /// Returns the message.
    pub fn message(&self) -> &Message {
        match self {
            Self::Notification(message) => message,
            Self::Question(question) => question.message(),
        }
    }

    /// Replaces the bytes of the message by equal ones that `wrap` returns.
    ///
    /// # Errors
    ///
    /// Those of `wrap`. A question is refused then.
    pub(super) fn wrapped<E>(
        self,
        wrap: impl FnOnce(Bytes) -> Result<Bytes, E>,
    ) -> Result<Self, E> {
        Ok(match self {
            Self::Notification(message) => Self::Notification(message.wrapped(wrap)?),
            Self::Question(question) => Self::Question(question.wrapped(wrap)?),
        })
    }
}

/// A message that a server sent and that belongs to no request.
#[derive(Debug)]
pub struct Announcement {
    /// The server.
    pub server: ServerName,
    /// The generation of the connection that it came on.
    pub generation: u64,
    /// The owner of the connection, unless all clients share it.
    pub owner: Option<SessionOwner>,
    /// The message.
    pub aside: SideMessage,
}

/// The sender of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeSource {
    /// The server.
    Server,
    /// metamcp, after it connected the server.
    Metamcp,
}

/// The generation of notices that metamcp itself sends: no connection has it.
pub(super) const OURS: u64 = 0;

impl Announcement {
    /// Returns the sender.
    pub fn source(&self) -> NoticeSource {
        if self.generation == OURS { NoticeSource::Metamcp } else { NoticeSource::Server }
    }

    /// Returns the notice that `list` of `server` has changed, for all clients or for `owner`.
    pub fn of_change(server: ServerName, owner: Option<SessionOwner>, list: ListKind) -> Self {
        let aside = SideMessage::Notification(Message::notification(list.notice(), None));
        // The notice is about the server, not about one of its connections.
        Self { server, generation: OURS, owner, aside }
    }
}
