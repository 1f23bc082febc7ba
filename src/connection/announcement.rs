//! What a server says to nobody in particular.

use bytes::Bytes;

use super::{ServerRequest, SessionOwner};
use crate::{
    name::ServerName,
    protocol::{Message, payloads::ListKind},
};

/// Something that a server sent besides the answer to a request.
#[derive(Debug)]
pub enum SideMessage {
    /// A notification.
    Notification(Message),
    /// A request of its own.
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

    /// Has `wrap` take the bytes of the message for others that are equal to them.
    ///
    /// # Errors
    ///
    /// As `wrap`. A question is refused then.
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

/// Something that a server sent and that belongs to no request.
#[derive(Debug)]
pub struct Announcement {
    /// The server.
    pub server: ServerName,
    /// The generation of the connection that it came on.
    pub generation: u64,
    /// Whose connection it is, when it is not everybody's.
    pub owner: Option<SessionOwner>,
    /// What was sent.
    pub aside: SideMessage,
}

/// The sender of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeSource {
    /// The server.
    Server,
    /// metamcp, which has connected the server.
    Metamcp,
}

/// The generation of notices that metamcp sends itself: no connection has it.
pub(super) const OURS: u64 = 0;

impl Announcement {
    /// Returns the sender.
    pub fn source(&self) -> NoticeSource {
        if self.generation == OURS { NoticeSource::Metamcp } else { NoticeSource::Server }
    }

    /// Returns the notice that `list` of `server` has changed, for everybody or for `owner`.
    pub fn of_change(server: ServerName, owner: Option<SessionOwner>, list: ListKind) -> Self {
        let aside = SideMessage::Notification(Message::notification(list.notice(), None));
        // No matter on which connection: it is told of the server.
        Self { server, generation: OURS, owner, aside }
    }
}
