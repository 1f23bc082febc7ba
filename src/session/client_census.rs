//! The count of the clients that are present, by name.
//!
//! A client is present while it has a session with an open stream, an open pipe or a running
//! request, and for [`defaults::CLIENT_PRESENT_WINDOW`] after its last request. A client without
//! a session, such as one of the modern era over HTTP, is recognised by its account and by the name
//! that it gives itself: several of these count as one.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use serde::Serialize;
use tokio::time::Instant;

use super::{
    Session, SessionRegistry,
    client_record::{ClientRecord, ClientTransport},
};
use crate::{
    call_record::ClientName,
    capacity_holder::{Account, Holder},
    config::defaults,
    protocol::Era,
    server_name::ServerName,
};

/// The clients without a session that metamcp sees.
#[derive(Debug, Default)]
pub struct ClientRegister {
    /// The clients over HTTP that name no session.
    sessionless: Mutex<HashMap<(Account, ClientName), Arc<ClientRecord>>>,
    /// The clients on open pipes.
    attached: Mutex<Vec<Weak<ClientRecord>>>,
}

/// The clients that are present at one moment.
#[derive(Debug)]
pub struct ClientCensus {
    now: Instant,
    present: Vec<Arc<ClientRecord>>,
}

/// The present clients of one name, version, era and transport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientSummary {
    /// The name that the clients give themselves; empty without one.
    pub name: String,
    /// The version; empty without one.
    pub version: String,
    /// `legacy` or `modern`.
    pub era: &'static str,
    /// `http`, `sse` or `stdio`.
    pub transport: &'static str,
    /// The number of sessions.
    pub sessions: usize,
    /// The time since the last call or read, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_call_ago_ms: Option<u64>,
    /// The servers that the clients have called or read from.
    pub servers: BTreeSet<ServerName>,
}

impl ClientRegister {
    /// Returns the record of a client of `holder` that names no session, and notes its request.
    pub fn sessionless(&self, holder: Holder, name: ClientName, era: Era) -> Arc<ClientRecord> {
        let now = Instant::now();
        let mut known = self.sessionless_clients();
        let key = (holder.account, name);
        if let Some(record) = known.get(&key) {
            record.note_request(now);
            return Arc::clone(record);
        }
        if known.len() >= defaults::CLIENTS_SEEN_MAX {
            known.retain(|_, record| record.is_recent(now));
        }
        if known.len() >= defaults::CLIENTS_SEEN_MAX
            && let Some(oldest) =
                known.iter().max_by_key(|(_, record)| record.unseen_for(now)).map(|(key, _)| key)
        {
            let oldest = oldest.clone();
            known.remove(&oldest);
        }
        let record = Arc::new(ClientRecord::new(key.1.clone(), era, ClientTransport::Http));
        known.insert(key, Arc::clone(&record));
        record
    }

    /// Returns the record of a client on a pipe, present until the record is dropped.
    pub fn attached(&self, name: ClientName, era: Era) -> Arc<ClientRecord> {
        let record = Arc::new(ClientRecord::new(name, era, ClientTransport::Pipe));
        let mut attached = self.attached_clients();
        attached.retain(|known| known.strong_count() > 0);
        attached.push(Arc::downgrade(&record));
        record
    }

    fn present(&self, now: Instant) -> Vec<Arc<ClientRecord>> {
        let mut present: Vec<_> =
            self.attached_clients().iter().filter_map(Weak::upgrade).collect();
        let known = self.sessionless_clients();
        present.extend(known.values().filter(|record| record.is_recent(now)).cloned());
        present
    }

    fn n_present(&self, now: Instant) -> usize {
        let n_attached =
            self.attached_clients().iter().filter(|known| known.strong_count() > 0).count();
        n_attached + self.sessionless_clients().values().filter(|it| it.is_recent(now)).count()
    }

    fn sessionless_clients(
        &self,
    ) -> MutexGuard<'_, HashMap<(Account, ClientName), Arc<ClientRecord>>> {
        // Held only for statements on plain data, like `attached_clients`.
        self.sessionless.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attached_clients(&self) -> MutexGuard<'_, Vec<Weak<ClientRecord>>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionRegistry {
    /// Returns the register of clients without a session.
    pub fn clients(&self) -> &ClientRegister {
        &self.clients
    }

    /// Counts the clients that are present now.
    pub fn census(&self) -> ClientCensus {
        let now = Instant::now();
        let mut present = self.clients.present(now);
        let sessions = self.read();
        present.extend(sessions.values().filter_map(|it| present_record(it, now)).cloned());
        ClientCensus { now, present }
    }

    /// Returns the number of sessions of the clients that are present now, without a list of them.
    pub fn n_present(&self) -> usize {
        let now = Instant::now();
        let n_without_session = self.clients.n_present(now);
        let sessions = self.read();
        n_without_session + sessions.values().filter_map(|it| present_record(it, now)).count()
    }
}

/// Returns the record of the client of a session, if it is present; the register has those on pipes.
fn present_record(session: &Session, now: Instant) -> Option<&Arc<ClientRecord>> {
    let record = session.client_record()?;
    let is_present = record.transport() != ClientTransport::Pipe
        && (session.is_in_use() || record.is_recent(now));
    is_present.then_some(record)
}

impl ClientCensus {
    /// Returns the number of sessions of all clients.
    pub fn n_sessions(&self) -> usize {
        self.present.len()
    }

    /// Returns the number of sessions that have called `server` or read from it.
    pub fn n_users(&self, server: &ServerName) -> usize {
        self.present.iter().filter(|record| record.has_used(server)).count()
    }

    /// Returns the clients by name, those with the latest call first: at most
    /// [`defaults::CLIENTS_SHOWN_MAX`].
    pub fn summaries(&self) -> Vec<ClientSummary> {
        let mut groups: BTreeMap<(&ClientName, &str, ClientTransport), Vec<&ClientRecord>> =
            BTreeMap::new();
        for record in &self.present {
            let key = (&**record.name(), record.era().name(), record.transport());
            groups.entry(key).or_default().push(record);
        }
        let mut summaries: Vec<_> = groups
            .into_iter()
            .map(|((name, era, transport), records)| ClientSummary {
                name: name.name.clone(),
                version: name.version.clone(),
                era,
                transport: transport.name(),
                sessions: records.len(),
                last_call_ago_ms: self.last_call_ago_ms(&records),
                servers: records.iter().flat_map(|record| record.servers()).collect(),
            })
            .collect();
        summaries.sort_by_key(|found| found.last_call_ago_ms.unwrap_or(u64::MAX));
        summaries.truncate(defaults::CLIENTS_SHOWN_MAX);
        summaries
    }

    fn last_call_ago_ms(&self, records: &[&ClientRecord]) -> Option<u64> {
        let last = records.iter().filter_map(|record| record.last_call()).max()?;
        let ago = self.now.saturating_duration_since(last).as_millis();
        Some(u64::try_from(ago).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;

    use super::*;

    fn name(name: &str) -> ClientName {
        ClientName { name: name.to_owned(), version: "1".to_owned() }
    }

    fn census(register: &ClientRegister) -> ClientCensus {
        let now = Instant::now();
        ClientCensus { now, present: register.present(now) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_without_a_session_is_present_for_a_while_after_its_last_request() {
        let register = ClientRegister::default();
        let server = ServerName::new("git").unwrap();
        let seen = || register.sessionless(Holder::unknown(), name("a"), Era::Modern);
        seen().note_use(&server);
        time::advance(defaults::CLIENT_PRESENT_WINDOW / 2).await;
        seen();
        time::advance(defaults::CLIENT_PRESENT_WINDOW / 2).await;
        let found = census(&register);
        assert_eq!((found.n_sessions(), found.n_users(&server)), (1, 1));
        assert_eq!(register.n_present(Instant::now()), 1);
        let ago = defaults::CLIENT_PRESENT_WINDOW.as_millis();
        assert_eq!(found.summaries()[0].last_call_ago_ms.map(u128::from), Some(ago));

        time::advance(defaults::CLIENT_PRESENT_WINDOW).await;
        assert_eq!(census(&register).n_sessions(), 0);
        assert_eq!(register.n_present(Instant::now()), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_on_a_pipe_is_present_until_the_pipe_closes() {
        let register = ClientRegister::default();
        let record = register.attached(name("a"), Era::Legacy);
        let other = register.attached(name("a"), Era::Legacy);
        time::advance(10 * defaults::CLIENT_PRESENT_WINDOW).await;
        let found = census(&register).summaries();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].sessions, found[0].transport), (2, "stdio"));
        assert_eq!(register.n_present(Instant::now()), 2);
        drop((record, other));
        assert_eq!(register.n_present(Instant::now()), 0);
        assert_eq!(census(&register).n_sessions(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_remembered_clients_is_bounded_and_the_oldest_goes_first() {
        let register = ClientRegister::default();
        for number in 0..=defaults::CLIENTS_SEEN_MAX {
            register.sessionless(Holder::unknown(), name(&number.to_string()), Era::Modern);
            time::advance(Duration::from_millis(1)).await;
        }
        let known = register.sessionless_clients();
        assert_eq!(known.len(), defaults::CLIENTS_SEEN_MAX);
        assert!(!known.contains_key(&(Account::Unknown, name("0"))));
        drop(known);
        assert_eq!(census(&register).summaries().len(), defaults::CLIENTS_SHOWN_MAX);
    }
}
