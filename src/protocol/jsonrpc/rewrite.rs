//! Edits of a request's parameters; everything that is not edited keeps its text.

use super::Message;
use crate::protocol::ObjectMembers;

impl Message {
    /// Returns the whole message as JSON text.
    pub fn text(&self) -> &str {
        // A message with other bytes than UTF-8 is never created.
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }

    /// Returns the parameters as JSON text.
    pub fn params(&self) -> Option<&str> {
        ObjectMembers::one(self.text(), "params")
    }

    /// Returns the members of the parameters: none if the parameters are no object.
    pub fn param_members(&self) -> ObjectMembers<'_> {
        self.params().and_then(ObjectMembers::read).unwrap_or_default()
    }

    /// Returns the message with its parameters edited. An empty result is not added to a message
    /// without parameters.
    #[must_use]
    pub fn with_params(&self, edit: impl FnOnce(&mut ObjectMembers<'_>)) -> Self {
        let Some(mut whole) = ObjectMembers::read(self.text()) else { return self.clone() };
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
