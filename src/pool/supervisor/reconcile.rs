//! Reconciliation of a session's single-valued state with the demand of its clients.

use std::{
    collections::BTreeSet,
    sync::{Arc, MutexGuard, PoisonError},
};

use serde_json::json;

use super::{
    super::desired_state::{ClientDemand, DesiredState, ReconcileStep},
    Supervisor,
};
use crate::{
    config::defaults,
    connection::{Connection, ConnectionLimits, RequestFailure},
    protocol::{Message, jsonrpc::MessagePart, rpc_error::INTERNAL_ERROR},
};

impl Supervisor {
    /// Sets the demand of this connection's clients. [`Supervisor::reconcile`] applies it. `demand`
    /// is called under the lock, so that the last answer counts.
    pub(in super::super) fn set_demand(&self, demand: impl FnOnce() -> ClientDemand) {
        let is_left = {
            let mut desired = self.desired();
            let was_watched = desired.is_watched();
            desired.set_demand(demand());
            was_watched && !desired.is_watched()
        };
        // The watching clients used the connection until now.
        if is_left {
            self.note_unwatched();
        }
    }

    /// Returns whether clients watch a resource with the connection.
    pub(super) fn is_watched(&self) -> bool {
        self.desired().is_watched()
    }

    /// Returns the error object with which the server refused a subscription, as JSON text.
    pub(in super::super) fn refusal(&self, uri: &str) -> Option<String> {
        self.desired().refusal(uri)
    }

    /// Brings the server's state in line with the demand. Without a connection, the next connection
    /// applies it. Cancel safe: a started step completes.
    pub(in super::super) async fn reconcile(self: &Arc<Self>) {
        // A caller that joins a run just before its end checks again.
        for _ in 0..defaults::RECONCILE_ROUNDS_MAX {
            if self.next_step().is_none() {
                return;
            }
            let supervisor = Arc::clone(self);
            let run = || async move { while supervisor.step().await {} };
            self.reconciliation.join(self.context.dialer.tasks(), || None, run).outcome().await;
        }
    }

    fn next_step(&self) -> Option<(Arc<Connection>, ReconcileStep)> {
        let connection = self.live()?;
        let step = self.desired().next(connection.era(), |capability| {
            connection.profile().is_some_and(|profile| profile.has(capability))
        })?;
        Some((connection, step))
    }

    /// Takes one step. Returns `false` if there is none, or if the connection has gone: the next
    /// connection starts over.
    async fn step(&self) -> bool {
        let Some((connection, step)) = self.next_step() else { return false };
        let taken = match (&step, step.request()) {
            (ReconcileStep::Watch(uris), _) => self.watch_resources(&connection, uris).await,
            (_, Some(request)) => self.send(&connection, &step, &request).await,
            (_, None) => return false,
        };
        match taken {
            Ok(()) => true,
            Err(failure) if connection.is_live() => {
                // Record the failure, so that this connection does not try the step forever.
                let name = self.name();
                tracing::warn!(
                    mcp_server = %name, %failure, ?step,
                    "log level or subscriptions of server `{name}` not set: {failure}"
                );
                let error = json!({
                    "code": INTERNAL_ERROR,
                    "message": failure.to_string(),
                    "data": { "code": failure.code() },
                });
                self.desired().done(connection.generation(), &step, Some(&error.to_string()));
                true
            }
            Err(_) => false,
        }
    }

    /// Takes a step that needs a request.
    async fn send(
        &self,
        connection: &Arc<Connection>,
        step: &ReconcileStep,
        request: &Message,
    ) -> Result<(), RequestFailure> {
        let limits = ConnectionLimits::of_total(defaults::RECONCILE_TIMEOUT);
        // A client named the subject of this request.
        connection.note_client_use();
        let answer = connection.ask(request, limits).await?;
        let refusal = answer.part(MessagePart::Error).map(|error| connection.quote(error));
        if let Some(error) = &refusal {
            let name = self.name();
            tracing::debug!(mcp_server = %name, error, ?step, "server `{name}` refused a setting: {error}");
        }
        self.desired().done(connection.generation(), step, answer.part(MessagePart::Error));
        Ok(())
    }

    /// Subscribes to resources with the one subscription of the modern era.
    async fn watch_resources(
        &self,
        connection: &Connection,
        uris: &BTreeSet<String>,
    ) -> Result<(), RequestFailure> {
        connection.note_client_use();
        let refused = connection.watch(uris).await?;
        for (uri, error) in &refused {
            let (name, error) = (self.name(), connection.quote(error));
            tracing::debug!(mcp_server = %name, uri, error, "server `{name}` refused to watch a resource: {error}");
        }
        self.desired().watched(connection.generation(), uris, refused);
        Ok(())
    }

    pub(super) fn desired(&self) -> MutexGuard<'_, DesiredState> {
        // Held only for single statements on plain data. Session locks are taken while it is held,
        // so a holder of a session lock must never take it.
        self.desired.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
