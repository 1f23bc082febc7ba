use std::{fs, os::unix::fs::PermissionsExt as _};

use super::*;

/// Returns the files of a state directory that begin with `kind`.
fn files(state: &Path, kind: &str) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(state.join("oauth")).expect("a directory");
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths
        .filter(|path| {
            path.file_name().and_then(|name| name.to_str()).expect("a name").starts_with(kind)
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn tokens_survive_the_end_of_the_process_with_all_that_a_refresh_needs() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let first = service(PLAIN, &fake, Some(state.path()));
    log_in(&first, &fake).await.expect("logged in");
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    authorizer(&first).before_request().await.expect("a token");
    // Killed: it says goodbye to no one.
    std::mem::forget(first);
    let n_requests = fake.seen("").len();
    let second = service(PLAIN, &fake, Some(state.path()));
    let authorizer = authorizer(&second);
    assert_eq!(token(&authorizer.bearer().expect("a token")), "access-2");
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    assert_eq!(token(&authorizer.before_request().await.expect("a token")), "access-3");
    assert_eq!(fake.seen("").len(), n_requests + 1, "no discovery, no registration");
    assert_eq!(fake.seen("/token")[2].form["refresh_token"], "canary-refresh-2");
    assert_eq!(files(state.path(), "login-").len(), 1);
}

#[tokio::test]
async fn a_stored_login_has_the_keys_that_earlier_versions_wrote() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    log_in(&service(PLAIN, &fake, Some(state.path())), &fake).await.expect("logged in");
    let file = fs::read(&files(state.path(), "login-")[0]).expect("readable");
    let stored: std::collections::BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(&file).expect("an object");
    assert_eq!(
        stored.keys().collect::<Vec<_>>(),
        [
            "access_token",
            "client",
            "expires_in",
            "granted",
            "is_client_credentials",
            "issued",
            "issuer",
            "principal",
            "redirect_url",
            "refresh_token",
            "requested",
            "resource",
            "revocation_endpoint",
            "sends_resource",
            "server",
            "token_endpoint",
            "url",
            "version",
        ]
    );
    assert_eq!(stored["server"], "git");
}

#[tokio::test]
async fn only_the_user_of_the_service_can_read_the_files() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let directory = state.path().join("oauth");
    fs::create_dir(&directory).expect("made");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("changed");
    log_in(&service(PLAIN, &fake, Some(state.path())), &fake).await.expect("logged in");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let files = files(state.path(), "");
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|path| mode(path) == 0o600));
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_and_blocks_nothing() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    log_in(&service(PLAIN, &fake, Some(state.path())), &fake).await.expect("logged in");
    for path in files(state.path(), "") {
        fs::write(path, "{\"version\":").expect("written");
    }
    let second = service(PLAIN, &fake, Some(state.path()));
    assert!(authorizer(&second).bearer().is_none());
    log_in(&second, &fake).await.expect("logged in");
    assert_eq!(
        files(state.path(), "")
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "damaged"))
            .count(),
        2
    );
    let third = service(PLAIN, &fake, Some(state.path()));
    assert!(authorizer(&third).bearer().is_some());
}

#[tokio::test]
async fn a_login_that_cannot_be_stored_is_used_and_reported() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let service = service(PLAIN, &fake, Some(state.path()));
    let login = service.begin(&git()).await.expect("begun");
    fs::remove_dir_all(state.path().join("oauth")).expect("removed");
    fs::write(state.path().join("oauth"), "a file in its place").expect("written");
    let answer = CallbackAnswer::parse(&fake.agree(&login.url)).expect("an answer");
    service.finish(&answer).await.expect("logged in");
    assert!(authorizer(&service).bearer().is_some());
    let error = service.statuses()[0].error.clone().expect("reported");
    assert!(error.contains("cannot store the login at server `git`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_by_another_process_is_taken_over() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let [first, second] = {
        let first = service(PLAIN, &fake, Some(state.path()));
        log_in(&first, &fake).await.expect("logged in");
        [first, service(PLAIN, &fake, Some(state.path()))].map(|service| authorizer(&service))
    };
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    assert_eq!(token(&first.before_request().await.expect("a token")), "access-2");
    assert_eq!(token(&second.before_request().await.expect("a token")), "access-2");
    assert!(second.login_required().is_none());
}

#[tokio::test]
async fn a_configured_secret_is_not_copied_into_the_files() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let auth = "{ client_id = \"own\", client_secret = \"env:PATH\" }";
    log_in(&with_auth(auth, &fake, Some(state.path())), &fake).await.expect("logged in");
    let secret = std::env::var("PATH").expect("set");
    for path in files(state.path(), "") {
        assert!(!fs::read_to_string(path).expect("text").contains(&secret));
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_for_a_while_is_kept() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    log_in(&service(PLAIN, &fake, Some(state.path())), &fake).await.expect("logged in");
    let file = files(state.path(), "login-").remove(0);
    let content = fs::read(&file).expect("readable");
    // The system cannot open a socket as a file, even for root.
    fs::remove_file(&file).expect("removed");
    let socket = std::os::unix::net::UnixListener::bind(&file).expect("a socket");
    let second = service(PLAIN, &fake, Some(state.path()));
    assert!(authorizer(&second).bearer().is_none());
    drop(socket);
    fs::remove_file(&file).expect("it is still there");
    fs::write(&file, content).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("changed");
    assert!(authorizer(&service(PLAIN, &fake, Some(state.path()))).bearer().is_some());
}
