//! The two eras of the protocol: with a handshake, and with metadata in each request.

use clap::ValueEnum;

use crate::{
    fake::Fake,
    message::{Members, Message},
    session::PIPE,
};

/// The version of the protocol that has metadata in each request.
pub(crate) const MODERN: &str = "2026-07-28";

/// What the name of each member of the metadata starts with.
const PREFIX: &str = "io.modelcontextprotocol/";

/// What the fake speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Era {
    /// `initialize` and sessions.
    #[default]
    Legacy,
    /// Revision 2026-07-28 and nothing else.
    Modern,
    /// Both: a pipe is what its first message makes it, and each POST what it says itself.
    Both,
    /// Both: a pipe is what its first message but `server/discover` makes it, as with the SDKs.
    Undecided,
}

/// What becomes of `server/discover`, in whatever era.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe {
    /// It is never answered.
    Silent,
    /// It is refused with this code, over HTTP with 400.
    Refuse(i64),
    /// It ends the process, without a word.
    Exit,
    /// It is refused, and on a pipe everything after it.
    Spoil,
}

impl std::str::FromStr for Probe {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "silent" => Ok(Self::Silent),
            None if text == "exit" => Ok(Self::Exit),
            None if text == "spoil" => Ok(Self::Spoil),
            Some(("refuse", code)) => code.parse().map(Self::Refuse).map_err(|e| format!("{e}")),
            _ => Err("`silent`, `exit`, `spoil` or `refuse=CODE`".to_owned()),
        }
    }
}

impl Message<'_> {
    /// Returns the metadata of a message.
    pub(crate) fn meta(&self) -> Members {
        let params = Members::read(self.params.map(|params| params.get()));
        Members::read(params.raw("_meta"))
    }

    /// Tells whether the metadata names a version, as only modern messages do.
    pub(crate) fn is_modern(&self) -> bool {
        self.meta().raw(&key("protocolVersion")).is_some()
    }
}

impl Fake {
    /// Returns what is to become of a message if it is a probe.
    pub(crate) fn spoils(&self, message: &Message<'_>) -> Option<Probe> {
        let is_probe = message.method.as_deref() == Some("server/discover");
        let is_spoilt = {
            let mut state = self.state();
            state.is_spoilt |= is_probe && matches!(self.options.probe, Some(Probe::Spoil));
            state.is_spoilt
        };
        self.options.probe.filter(|_| is_probe || is_spoilt)
    }

    /// Tells whether a message on the pipe is a modern one, and has the first one decide.
    ///
    /// A pipe without sessions has nobody to whom what belongs to no request could be sent.
    pub(crate) fn is_modern_pipe(&self, message: &Message<'_>) -> bool {
        let mut state = self.state();
        let is_modern = match self.options.era {
            Era::Legacy => false,
            Era::Modern => true,
            Era::Both | Era::Undecided => {
                let method = message.method.as_deref();
                if self.options.era == Era::Undecided && method == Some("server/discover") {
                    return state.is_modern_pipe != Some(false);
                }
                if state.is_modern_pipe.is_none() && method == Some("initialize") {
                    state.is_modern_pipe = Some(false);
                } else if state.is_modern_pipe.is_none() && message.is_modern() {
                    state.is_modern_pipe = Some(true);
                }
                state.is_modern_pipe == Some(true)
            }
        };
        let session = state.sessions.get_mut(PIPE).filter(|_| is_modern);
        let listener = session.and_then(|session| session.listener.take());
        drop(state);
        drop(listener);
        is_modern
    }
}

/// Returns the whole name of a member of the metadata.
pub(crate) fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Returns what the server says of itself in metadata, as the text of an object.
pub(crate) fn server_info() -> String {
    format!(r#"{{"{PREFIX}serverInfo":{{"name":"fake_mcp","version":"1.0.0"}}}}"#)
}

/// Returns the metadata of what belongs to a subscription.
pub(crate) fn subscription(id: &str) -> String {
    format!(r#"{{"{PREFIX}subscriptionId":{id}}}"#)
}
