//! A request whose client is of another era than its server: the answer is translated, and what the
//! server wants to know is asked of the client before the request is sent again.

use std::time::Duration;

use serde_json::Value;

use super::{CallError, Connected, Exchange, Inquiry, Stage, Unanswered};
use crate::{
    config::defaults,
    era::{self, Answer, InputRequired},
    pool::Lease,
    protocol::{
        Era, Message,
        jsonrpc::Part,
        mcp::{Profile, method},
    },
};

impl Exchange {
    /// Returns the answer as the client's era has it; nothing if the client is asked first.
    pub(super) fn translated(&mut self, answer: Message) -> Result<Option<Message>, CallError> {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Stage::Connected(Connected { call, lease }) = stage else { return Ok(Some(answer)) };
        // It has its answer: nothing is left of it to be cancelled.
        drop(call);
        let connection = &lease.connection;
        let method = self.request.method().unwrap_or_default();
        if let Some(capability) = self.undeclared
            && answer.part(Part::Error).is_some()
        {
            return Err(self.unanswered(Unanswered::Undeclared { capability }));
        }
        let translated = match (self.client.era(), connection.era()) {
            (Some(Era::Legacy), Era::Modern) => era::for_legacy(&answer, method),
            (Some(Era::Modern), Era::Legacy) => {
                let info = connection.profile().and_then(Profile::server_info);
                let info = info.map(Value::to_string);
                era::for_modern(&answer, method, info.as_deref())
            }
            _ => Answer::Final(answer),
        };
        match (translated, self.client.era()) {
            (Answer::Final(answer), _) => Ok(Some(answer)),
            (Answer::Input(input), Some(Era::Modern)) => {
                // Nobody is asked for what they have not declared.
                if !self.client.can_be_asked(&input) {
                    return Err(self.unanswered(Unanswered::NoVisits));
                }
                let answer = Message::response(self.client_id(), &input.to_result());
                Ok(Message::parse(answer).ok())
            }
            (Answer::Input(_), _) if !method::ASKING.contains(&method) => {
                Err(self.unanswered(Unanswered::OutOfPlace { method: method.to_owned() }))
            }
            (Answer::Input(input), _) => self.inquire(input, lease).map(|()| None),
        }
    }

    fn unanswered(&self, source: Unanswered) -> CallError {
        CallError::Unanswered { server: self.slot.name().clone(), source }
    }

    /// Notes that the server has asked what a client of the modern era cannot be asked. If it fails for
    /// that, its client is told what it takes; it may do without. Source: MCP 2026-07-28, "Base
    /// Protocol", `_meta`.
    pub fn lacks(&mut self, capability: Option<&'static str>) {
        self.undeclared = self.undeclared.or(capability);
    }

    /// Has the client asked what the server wants to know.
    fn inquire(&mut self, input: InputRequired, lease: Lease) -> Result<(), CallError> {
        self.n_rounds += 1;
        if self.n_rounds > defaults::INPUT_ROUNDS_MAX {
            return Err(self.unanswered(Unanswered::TooMany { rounds: defaults::INPUT_ROUNDS_MAX }));
        }
        let pause = self.poll.pause(fastrand::f64());
        let inquiry = Inquiry::new(input, &lease.connection, pause);
        self.stage = Stage::Asking(Box::new(inquiry), lease);
        Ok(())
    }

    /// Sends the request again with what the client has answered.
    pub(super) fn ask_again(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Stage::Asking(inquiry, lease) = stage else { return };
        let (responses, state) = inquiry.answers();
        self.retry = Some(era::retry(&self.request, responses, state));
        // The client's time is none of the server's; without a question, all of it is the server's.
        if !responses.is_empty() {
            self.ends += inquiry.elapsed();
        }
        // What the client has seen so far stays true if this is sent twice.
        self.has_begun = false;
        self.stage = Stage::Connected(Connected { call: None, lease });
    }

    /// Puts it aside until [`Exchange::resume`]: its client is asked something.
    pub fn hold(&self) {
        if let Stage::Connected(Connected { call: Some(call), .. }) = &self.stage {
            call.hold();
        }
    }

    /// Goes on after a `pause` as the request `retry` of the client, which has meanwhile learned what
    /// the server wants to know.
    pub fn resume(&mut self, retry: Message, pause: Duration) {
        self.request = retry;
        self.ends += pause;
        if let Stage::Connected(Connected { call: Some(call), .. }) = &mut self.stage {
            call.resume(pause);
        }
    }

    /// Returns what tells whether another request is this one sent again.
    pub fn digest(&self) -> [u8; 32] {
        era::digest(&self.request)
    }
}
