use serde_json::json;

use super::{
    fake_authorization::{ISSUER, metadata, query},
    *,
};

const DOCUMENT: &str = "https://client.example.com/metamcp.json";

/// auth/basic-cimd.
#[tokio::test]
async fn a_document_is_the_id_where_the_authorization_server_supports_it() {
    let fake = FakeAuthorization::new();
    let auth = format!("{{ client_metadata_url = \"{DOCUMENT}\" }}");
    let service = with_auth(&auth, &fake, None);
    let login = log_in(&service, &fake).await.expect("logged in");
    assert_eq!(query(&login.url)["client_id"], "client-1", "it is not supported");
    fake.change_metadata(json!({ "client_id_metadata_document_supported": true }));
    let login = log_in(&service, &fake).await.expect("logged in");
    assert_eq!(query(&login.url)["client_id"], DOCUMENT);
    assert_eq!(fake.seen("/token")[1].form["client_id"], DOCUMENT);
    assert_eq!(fake.seen("/register").len(), 1);
}

/// auth/pre-registration.
#[tokio::test]
async fn a_configured_client_is_used_and_belongs_to_one_authorization_server() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    fake.change_metadata(json!({ "registration_endpoint": null, "token_endpoint_auth_methods_supported": ["client_secret_basic"] }));
    let auth = "{ client_id = \"own\", client_secret = \"env:PATH\" }";
    let service = with_auth(auth, &fake, Some(state.path()));
    log_in(&service, &fake).await.expect("logged in");
    let sent = fake.seen("/token")[0].clone();
    assert!(sent.authorization.expect("a header").starts_with("Basic "));
    assert!(!sent.form.contains_key("client_secret"));

    let other = "https://other.example.com";
    fake.change_resource(json!({ "authorization_servers": [other] }));
    let url = format!("{other}/.well-known/oauth-authorization-server");
    fake.set().documents.insert(url, metadata(other, json!({})));
    let error = service.begin(&git()).await.expect_err("another authorization server");
    assert_eq!(error.code(), "ISSUER_CHANGED");
    service.logout(&git()).await.expect("logged out");
    service.begin(&git()).await.expect("the operator has confirmed it");
}

/// auth/authorization-server-migration.
#[tokio::test]
async fn another_authorization_server_gets_a_registration_of_its_own() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let service = service(PLAIN, &fake, Some(state.path()));
    log_in(&service, &fake).await.expect("logged in");
    log_in(&service, &fake).await.expect("logged in");
    assert_eq!(fake.seen("/register").len(), 1, "the registration is kept");

    let other = "https://other.example.com";
    fake.change_resource(json!({ "authorization_servers": [other] }));
    let url = format!("{other}/.well-known/oauth-authorization-server");
    fake.set().documents.insert(url, metadata(other, json!({})));
    refuse(&authorizer(&service)).await.expect("refreshed");
    refuse(&authorizer(&service)).await.expect_err("the new token is refused");
    let login = log_in(&service, &fake).await.expect("logged in");
    assert_eq!(fake.seen(&format!("{other}/register")).len(), 1);
    assert_eq!(query(&login.url)["client_id"], "client-2");
    assert_eq!(fake.seen(&format!("{other}/token"))[0].form["client_id"], "client-2");
}

#[tokio::test]
async fn another_redirect_address_gets_a_registration_of_its_own() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    log_in(&service(PLAIN, &fake, Some(state.path())), &fake).await.expect("logged in");
    let config =
        format!("[auth]\nredirect_url = \"https://mcp.example.org/oauth/callback\"\n{PLAIN}");
    let login =
        log_in(&service(&config, &fake, Some(state.path())), &fake).await.expect("logged in");
    assert_eq!(query(&login.url)["redirect_uri"], "https://mcp.example.org/oauth/callback");
    let types: Vec<_> =
        fake.seen("/register").iter().map(|seen| seen.json["application_type"].clone()).collect();
    assert_eq!(types, ["native", "web"]);
}

#[tokio::test]
async fn a_registration_says_all_that_an_authorization_server_needs() {
    let fake = FakeAuthorization::new();
    service(PLAIN, &fake, None).begin(&git()).await.expect("begun");
    let sent = fake.seen("/register")[0].json.clone();
    assert_eq!(sent["grant_types"], json!(["authorization_code", "refresh_token"]));
    assert_eq!(sent["redirect_uris"], json!(["http://127.0.0.1:12011/oauth/callback"]));
    assert_eq!(sent["application_type"], "native");
    assert_eq!(sent["token_endpoint_auth_method"], "none");
}

#[tokio::test]
async fn a_refused_redirect_address_is_tried_once_as_the_other_type() {
    let fake = FakeAuthorization::new();
    let refused = json!({ "error": "invalid_redirect_uri", "error_description": "not for native" });
    fake.set().registration_refusals = vec![refused.clone()];
    service(PLAIN, &fake, None).begin(&git()).await.expect("begun");
    let types: Vec<_> =
        fake.seen("/register").iter().map(|seen| seen.json["application_type"].clone()).collect();
    assert_eq!(types, ["native", "web"]);
    fake.set().registration_refusals = vec![refused.clone(), refused];
    let error = service(PLAIN, &fake, None).begin(&git()).await.expect_err("refused");
    assert_eq!(error.code(), "REGISTRATION_REFUSED");
    assert!(error.to_string().ends_with("invalid_redirect_uri not for native"), "{error}");
    fake.set().registration_refusals = vec![json!({ "error": "access_denied" })];
    service(PLAIN, &fake, None).begin(&git()).await.expect_err("refused");
    assert_eq!(fake.seen("/register").len(), 5, "no second try");
}

/// auth/token-endpoint-auth-basic, -post and -none.
#[tokio::test]
async fn a_client_authenticates_as_its_registration_says() {
    for (method, secret) in
        [("client_secret_basic", true), ("client_secret_post", true), ("none", false)]
    {
        let fake = FakeAuthorization::new();
        fake.change_metadata(json!({ "token_endpoint_auth_methods_supported": [method] }));
        let secret = secret.then_some("canary-secret");
        fake.set().registration =
            json!({ "client_secret": secret, "token_endpoint_auth_method": method });
        log_in(&service(PLAIN, &fake, None), &fake).await.expect("logged in");
        assert_eq!(fake.seen("/register")[0].json["token_endpoint_auth_method"], method);
        let sent = fake.seen("/token")[0].clone();
        assert_eq!(sent.authorization.is_some(), method == "client_secret_basic");
        assert_eq!(sent.form.contains_key("client_secret"), method == "client_secret_post");
    }
}

#[tokio::test]
async fn a_secret_that_has_expired_is_not_used_again() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let service = service(PLAIN, &fake, Some(state.path()));
    fake.set().registration =
        json!({ "client_secret": "canary-secret", "client_secret_expires_at": 1 });
    log_in(&service, &fake).await.expect("logged in");
    fake.set().registration =
        json!({ "client_secret": "canary-secret", "client_secret_expires_at": 0 });
    log_in(&service, &fake).await.expect("logged in");
    log_in(&service, &fake).await.expect("logged in");
    assert_eq!(fake.seen("/register").len(), 2);
}

#[tokio::test]
async fn a_client_that_the_authorization_server_forgot_is_registered_again() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let service = service(PLAIN, &fake, Some(state.path()));
    fake.set().token_error = Some((401, json!({ "error": "invalid_client" })));
    assert_eq!(log_in(&service, &fake).await.expect_err("forgotten").code(), "TOKEN_REFUSED");
    fake.set().token_error = None;
    log_in(&service, &fake).await.expect("logged in");
    assert_eq!(fake.seen(&format!("{ISSUER}/register")).len(), 2);
}
