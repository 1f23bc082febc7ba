//! What a server says to nobody in particular.

use super::{Owner, Question};
use crate::{name::ServerName, protocol::Message};

/// Something that a server sent besides the answer to a request.
#[derive(Debug)]
pub enum Aside {
    /// A notification.
    Notification(Message),
    /// A request of its own.
    Question(Question),
}

impl Aside {
    /// Returns the message.
    pub fn message(&self) -> &Message {
        match self {
            Self::Notification(message) => message,
            Self::Question(question) => question.message(),
        }
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
    pub owner: Option<Owner>,
    /// What was sent.
    pub aside: Aside,
}
