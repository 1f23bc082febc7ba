//! The two eras of the protocol: with a handshake, and with metadata in each request.

use clap::ValueEnum;

use crate::{
    fake::Fake,
    message::{Members, Message},
    session::PIPE,
};

/// The protocol version with metadata in each request.
pub(crate) const MODERN: &str = "2026-07-28";

/// The prefix of the metadata names.
const PREFIX: &str = "io.modelcontextprotocol/";

/// The eras that the fake speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Era {
    /// `initialize` and sessions.
    #[default]
    Legacy,
    /// Only revision 2026-07-28.
    Modern,
    /// Both: the first message decides for a pipe, and each POST names its era.
    Both,
    /// Both, as with the SDKs: on a pipe the first message except `server/discover` decides.
    Undecided,
}

/// The reaction to `server/discover` in both eras.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProbeMode {
    /// The server never answers it.
    Silent,
    /// The server refuses it with this code, over HTTP with status 400.
    Refuse(i64),
    /// The process exits without an answer.
    Exit,
    /// The server refuses it, and on a pipe also all later messages.
    Spoil,
}

impl std::str::FromStr for ProbeMode {
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

    /// Returns whether the metadata names a version, as only modern messages do.
    pub(crate) fn is_modern(&self) -> bool {
        self.meta().raw(&key("protocolVersion")).is_some()
    }
}

impl Fake {
    /// Returns the reaction to a message, if it is a probe.
    pub(crate) fn probe_mode(&self, message: &Message<'_>) -> Option<ProbeMode> {
        let is_probe = message.method.as_deref() == Some("server/discover");
        let is_broken = {
            let mut state = self.state();
            state.is_broken |= is_probe && matches!(self.options.probe, Some(ProbeMode::Spoil));
            state.is_broken
        };
        self.options.probe.filter(|_| is_probe || is_broken)
    }

    /// Returns whether a message on the pipe is modern; the first one decides.
    ///
    /// A modern pipe has no listener for messages without a request.
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

/// Returns the full name of a metadata member.
pub(crate) fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Returns the metadata that describes the server, as the text of an object.
pub(crate) fn server_info() -> String {
    format!(r#"{{"{PREFIX}serverInfo":{{"name":"fake_mcp","version":"1.0.0"}}}}"#)
}

/// Returns the metadata of a message in a subscription.
pub(crate) fn subscription(id: &str) -> String {
    format!(r#"{{"{PREFIX}subscriptionId":{id}}}"#)
}
