//! The messages of a server that are addressed to no single request.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::{Connection, ConnectionOwner, ServerRequest, SessionOwner};
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
    pub message: SideMessage,
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
const METAMCP_GENERATION: u64 = 0;

impl Announcement {
    /// Returns the sender.
    pub fn source(&self) -> NoticeSource {
        if self.generation == METAMCP_GENERATION {
            NoticeSource::Metamcp
        } else {
            NoticeSource::Server
        }
    }

    /// Returns the notice that `list` of `server` has changed, for all clients or for `owner`.
    pub fn of_change(server: ServerName, owner: Option<SessionOwner>, list: ListKind) -> Self {
        let message = SideMessage::Notification(Message::notification(list.notice(), None));
        // The notice is about the server, not about one of its connections.
        Self { server, generation: METAMCP_GENERATION, owner, message }
    }
}

impl Connection {
    /// Announces that the lists of this server may differ from those that clients know.
    pub fn announce_lists_changed(&self) {
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            if self.profile().is_some_and(|profile| profile.has(list.capability())) {
                self.send_announcement(|owner| {
                    Announcement::of_change(self.server.clone(), owner, list)
                });
            }
        }
    }

    /// Announces a message that belongs to no request.
    pub(super) fn announce(&self, message: SideMessage) {
        self.send_announcement(|owner| Announcement {
            server: self.server.clone(),
            generation: self.generation,
            owner,
            message,
        });
    }

    fn send_announcement(&self, of_owner: impl FnOnce(Option<SessionOwner>) -> Announcement) {
        let owner = match &self.owner {
            ConnectionOwner::Owned(owner) => Some(owner.clone()),
            // While no client has the connection, there is no receiver.
            ConnectionOwner::Exclusive => return,
            ConnectionOwner::Shared => None,
        };
        if self.announcements.try_send(of_owner(owner)).is_err() {
            self.counters.overflow.fetch_add(1, Ordering::Relaxed);
        }
    }
}
