//! Edits of a request's parameters; everything that is not edited keeps its text.

use super::Message;
use crate::protocol::ObjectMembers;

impl Message {
    /// Returns the parameters as JSON text.
    pub fn params(&self) -> Option<&str> {
        ObjectMembers::one(std::str::from_utf8(self.bytes()).ok()?, "params")
    }

    /// Returns the message with its parameters edited. An empty result is not added to a message
    /// without parameters.
    #[must_use]
    pub fn with_params(&self, edit: impl FnOnce(&mut ObjectMembers<'_>)) -> Self {
        let text = std::str::from_utf8(self.bytes()).unwrap_or_default();
        let Some(mut whole) = ObjectMembers::read(text) else { return self.clone() };
        let params = whole.get("params").unwrap_or("{}").to_owned();
        let Some(mut params) = ObjectMembers::read(&params) else { return self.clone() };
        edit(&mut params);
        if params.is_empty() && whole.get("params").is_none() {
            return self.clone();
        }
        whole.set("params", params.to_string());
        Self::parse_own(whole.to_string().into()).unwrap_or_else(|_| self.clone())
    }
}
