use tokio::{sync::mpsc, time};
use tokio_util::task::TaskTracker;

use super::*;
use crate::{
    capacity_holder::{Account, AccountMember},
    config::{Config, ListenConfig, SessionConfig},
    connection::Dialer,
    pool::Pool,
    protocol::LoggingLevel,
    reconfigure::{ConfigChange, Reconfigure as _},
    session::SessionSigner,
};

const SAMPLING: &str = r#"{"sampling":{}}"#;
/// The holder of the connection that all test requests use.
const HOLDER: Holder = Holder { account: Account::User(7), member: AccountMember::Connection(1) };
const MS: Duration = Duration::from_millis(1);

/// Returns the registry of a process with this key.
fn sessions(mode: SessionMode, key: u8) -> Arc<SessionRegistry> {
    let (announcements, _) = mpsc::channel(1);
    let dialer = Dialer::new(None, TaskTracker::new(), announcements);
    let pool = Arc::new(Pool::new(dialer, &Config::default()));
    let config = config(SessionConfig { mode, ..SessionConfig::default() });
    SessionRegistry::new(pool, SessionSigner::new(&[key; defaults::SESSION_KEY_BYTES]), &config)
}

fn config(session: SessionConfig) -> Config {
    let SessionConfig { mode, key, timeout } = session;
    let listen = ListenConfig {
        session: mode,
        session_key: key,
        session_timeout: timeout,
        ..ListenConfig::default()
    };
    Config { listen, ..Config::default() }
}

fn open(sessions: &SessionRegistry) -> Arc<Session> {
    sessions.open(ServerScope::Every, Some("2025-06-18"), SAMPLING, HOLDER, None)
}

fn find(sessions: &SessionRegistry, id: &str) -> Result<Arc<Session>, SessionLookupError> {
    sessions.find(Some(id), || ServerScope::Every, HOLDER)
}

fn id(session: &Session) -> &str {
    session.id().expect("it has one")
}

fn capabilities(session: &Session) -> &str {
    session.owner().map_or("", |owner| &owner.capabilities)
}

#[tokio::test]
async fn a_process_with_the_same_key_accepts_a_session_that_it_has_never_seen() {
    for mode in [SessionMode::Lenient, SessionMode::Strict] {
        let (before, after) = (sessions(mode, 1), sessions(mode, 1));
        let opened = open(&before);
        let found = find(&after, id(&opened)).expect("it is signed");
        assert_eq!((found.id(), found.version()), (opened.id(), Some("2025-06-18")));
        assert_eq!(capabilities(&found), SAMPLING);
        let again = find(&after, id(&opened)).expect("known by now");
        assert!(Arc::ptr_eq(&found, &again));
    }
}

#[tokio::test]
async fn a_session_id_of_another_key_restores_no_state_and_is_unknown_in_strict_mode() {
    for foreign in [id(&open(&sessions(SessionMode::Lenient, 2))), "x", "from-before"] {
        let found = find(&sessions(SessionMode::Lenient, 1), foreign).expect("any will do");
        assert_eq!((found.id(), found.version()), (Some(foreign), None));
        assert_eq!(capabilities(&found), "{}");
        let refused = find(&sessions(SessionMode::Strict, 1), foreign).map(drop);
        assert_eq!(refused, Err(SessionLookupError::Unknown));
    }
    let long = "x".repeat(defaults::SESSION_ID_BYTES_MAX + 1);
    for unusable in ["two words", "", &long] {
        let found = find(&sessions(SessionMode::Lenient, 1), unusable).expect("served");
        assert_eq!(found.id(), None, "{unusable}");
    }
}

#[tokio::test]
async fn a_client_without_a_session_id_is_anonymous_unless_sessions_are_strict() {
    let none = |mode| {
        sessions(mode, 1)
            .find(None, || ServerScope::Every, HOLDER)
            .map(|found| found.id().is_some())
    };
    assert_eq!(none(SessionMode::Lenient), Ok(false));
    assert_eq!(none(SessionMode::Off), Ok(false));
    assert_eq!(none(SessionMode::Strict), Err(SessionLookupError::Missing));
}

#[tokio::test]
async fn a_client_is_anonymous_if_sessions_are_off() {
    let sessions = sessions(SessionMode::Off, 1);
    assert_eq!(open(&sessions).id(), None);
    assert_eq!(find(&sessions, "x").expect("served").id(), None);
    assert!(sessions.read().is_empty());
}

#[tokio::test]
async fn a_deleted_session_is_unknown_in_strict_mode_and_usable_in_lenient_mode() {
    let strict = sessions(SessionMode::Strict, 1);
    let opened = open(&strict);
    let unseen = open(&sessions(SessionMode::Strict, 1));
    for session in [&opened, &unseen] {
        assert_eq!(strict.delete(session.id()), Ok(()));
        assert_eq!(find(&strict, id(session)).map(drop), Err(SessionLookupError::Unknown));
        assert_eq!(strict.delete(session.id()), Err(SessionLookupError::Unknown));
    }
    assert_eq!(strict.delete(Some("x")), Err(SessionLookupError::Unknown));
    assert_eq!(strict.delete(None), Err(SessionLookupError::Missing));

    let lenient = sessions(SessionMode::Lenient, 1);
    for id in [None, Some("x"), opened.id()] {
        assert_eq!(lenient.delete(id), Ok(()));
    }
    assert_eq!(capabilities(&find(&lenient, id(&opened)).expect("any will do")), SAMPLING);
}

#[tokio::test(start_paused = true)]
async fn an_unused_session_ends_at_its_timeout_and_not_before() {
    for mode in [SessionMode::Lenient, SessionMode::Strict] {
        let sessions = sessions(mode, 1);
        let opened = open(&sessions);
        sessions.set_level(&opened, LoggingLevel::Debug).await;
        for _ in 0..3 {
            time::advance(defaults::SESSION_TIMEOUT - MS).await;
            let found = find(&sessions, id(&opened)).expect("not over yet");
            assert!(Arc::ptr_eq(&found, &opened));
        }
        let running = opened.begin("1");
        time::advance(2 * defaults::SESSION_TIMEOUT).await;
        assert!(find(&sessions, id(&opened)).is_ok_and(|found| Arc::ptr_eq(&found, &opened)));
        drop(running);
        time::advance(defaults::SESSION_TIMEOUT).await;
        for _ in 0..2 {
            match find(&sessions, id(&opened)) {
                Ok(found) => {
                    assert_eq!(mode, SessionMode::Lenient);
                    assert!(!Arc::ptr_eq(&found, &opened) && !sessions.has_levels());
                    assert_eq!(
                        capabilities(&found),
                        SAMPLING,
                        "the capabilities in the id are unchanged"
                    );
                }
                Err(error) => {
                    assert_eq!((mode, error), (SessionMode::Strict, SessionLookupError::Unknown));
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_swept_session_has_ended() {
    let sessions = sessions(SessionMode::Strict, 1);
    let (mode, timeout) = (SessionMode::Strict, Duration::from_secs(20));
    let new = Arc::new(config(SessionConfig { mode, key: None, timeout }));
    sessions.reconfigure(&ConfigChange { new, ..ConfigChange::default() });
    let (idle, used) = (open(&sessions), open(&sessions));
    let _stream = used.read(None);
    let (_announcements, announced) = mpsc::channel(1);
    let stop = tokio_util::sync::CancellationToken::new();
    let sweeping = Arc::clone(&sessions).run(announced, stop);
    assert!(time::timeout(Duration::from_secs(26), sweeping).await.is_err(), "it goes on");
    assert_eq!(sessions.read().len(), 1);
    assert_eq!(find(&sessions, id(&idle)).map(drop), Err(SessionLookupError::Unknown));
    assert!(find(&sessions, id(&used)).is_ok());
}

#[tokio::test]
async fn a_session_id_expires_at_its_maximum_age() {
    let strict = sessions(SessionMode::Strict, 1);
    let aged = |age: Duration| {
        let issued = unix_now() - age.as_secs();
        strict.signer.issue(&SessionTicket::new(issued, version::LEGACY_LATEST, "{}"))
    };
    let day = Duration::from_secs(24 * 60 * 60);
    assert!(find(&strict, &aged(defaults::SESSION_ID_AGE_MAX - day)).is_ok());
    let old = find(&strict, &aged(defaults::SESSION_ID_AGE_MAX + day)).map(drop);
    assert_eq!(old, Err(SessionLookupError::Unknown));
    // The clock of a replica may be ahead.
    let ticket = SessionTicket::new(unix_now() + 60, version::LEGACY_LATEST, "{}");
    assert!(find(&strict, &strict.signer.issue(&ticket)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_session_dropped_to_make_room_can_be_restored() {
    let strict = sessions(SessionMode::Strict, 1);
    let first = open(&strict);
    time::advance(MS).await;
    for _ in 0..defaults::SESSIONS_MAX {
        open(&strict);
    }
    assert_eq!(strict.read().len(), defaults::SESSIONS_MAX);
    assert!(!strict.read().contains_key(id(&first)));
    assert_eq!(capabilities(&find(&strict, id(&first)).expect("signed")), SAMPLING);
}

#[tokio::test]
async fn malformed_client_capabilities_count_as_none() {
    let lenient = sessions(SessionMode::Lenient, 1);
    for odd in ["5", "null", "[1]", "\"x\""] {
        let opened = lenient.open(ServerScope::Every, None, odd, HOLDER, None);
        assert_eq!((capabilities(&opened), opened.version()), ("{}", Some(version::LEGACY_LATEST)));
    }
}

#[tokio::test]
async fn a_session_belongs_to_the_account_that_opened_it() {
    let sessions = sessions(SessionMode::Lenient, 1);
    let (one, other) = (open(&sessions), open(&sessions));
    assert_eq!([&one, &other].map(|session| session.holder().account), [HOLDER.account; 2]);
    assert_ne!(one.holder().member, other.holder().member, "each is a member of its own");
    let elsewhere = Holder { account: Account::User(8), member: AccountMember::Connection(2) };
    let found =
        sessions.find(Some(id(&one)), || ServerScope::Every, elsewhere).expect("it is known");
    assert_eq!(found.holder(), one.holder(), "another connection changes nothing");
    let nameless = sessions.find(None, || ServerScope::Every, elsewhere).expect("any will do");
    assert_eq!(nameless.holder(), elsewhere, "without a session, the connection is the member");
}
