use serde_json::json;

use super::{
    fake_authorization::{ISSUER, RESOURCE_METADATA, SERVER, metadata, query},
    *,
};
use crate::{
    config::TransportConfig,
    oauth::{LoginMetadata, OAuthHttpFactory},
};

const ROOT_METADATA: &str = "https://mcp.example.com/.well-known/oauth-protected-resource";

/// Returns the URLs of the GET requests, without their origins.
fn documents(fake: &FakeAuthorization) -> Vec<String> {
    let requests = fake.seen("");
    let gets = requests.iter().filter(|seen| seen.method == hyper::Method::GET);
    gets.map(|seen| seen.url.splitn(4, '/').nth(3).expect("a path").to_owned()).collect()
}

/// auth/metadata-default: the first place is the right one, and no other is asked.
#[tokio::test]
async fn a_login_follows_the_challenge_of_the_server() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let login = log_in(&service, &fake).await.expect("logged in");
    assert_eq!(
        documents(&fake),
        [".well-known/oauth-protected-resource/mcp", ".well-known/oauth-authorization-server"]
    );
    let (asked, tokens) = (query(&login.url), &fake.seen("/token")[0].form);
    assert_eq!((&asked["resource"], &tokens["resource"]), (&SERVER.to_owned(), &SERVER.to_owned()));
    assert_eq!(
        (asked["response_type"].as_str(), asked["code_challenge_method"].as_str()),
        ("code", "S256")
    );
    let verifier = super::super::pkce::PkceVerifier::of(&tokens["code_verifier"]);
    assert_eq!(asked["code_challenge"], verifier.challenge());
    assert_eq!(asked["redirect_uri"], "http://127.0.0.1:12011/oauth/callback");
    assert_eq!(tokens["redirect_uri"], asked["redirect_uri"]);
    assert_eq!(token(&authorizer(&service).bearer().expect("a token")), "access-1");
}

/// auth/metadata-var1: OpenID metadata, and no URL in the challenge.
#[tokio::test]
async fn a_login_finds_openid_metadata_without_a_hint() {
    let fake = FakeAuthorization::new();
    {
        let mut set = fake.set();
        set.challenge = Some("Bearer".into());
        set.documents.remove(&format!("{ISSUER}/.well-known/oauth-authorization-server"));
        let url = format!("{ISSUER}/.well-known/openid-configuration");
        set.documents.insert(url, metadata(ISSUER, json!({})));
    }
    log_in(&service(PLAIN, &fake, None), &fake).await.expect("logged in");
    assert_eq!(
        documents(&fake),
        [
            ".well-known/oauth-protected-resource/mcp",
            ".well-known/oauth-authorization-server",
            ".well-known/openid-configuration",
        ]
    );
}

/// auth/metadata-var2 and auth/metadata-var3: a tenant, and metadata at the root or at any place.
#[tokio::test]
async fn a_login_finds_the_metadata_of_a_tenant() {
    let issuer = format!("{ISSUER}/tenant1");
    let custom = "https://mcp.example.com/custom/metadata/location.json";
    for (place, challenge, url) in [
        (
            ROOT_METADATA,
            "Bearer".to_owned(),
            format!("{ISSUER}/.well-known/oauth-authorization-server/tenant1"),
        ),
        (
            custom,
            format!("Bearer resource_metadata=\"{custom}\""),
            format!("{issuer}/.well-known/openid-configuration"),
        ),
    ] {
        let fake = FakeAuthorization::new();
        {
            let mut set = fake.set();
            set.challenge = Some(challenge);
            set.documents.clear();
            set.documents.insert(
                place.into(),
                json!({ "resource": SERVER, "authorization_servers": [issuer] }),
            );
            set.documents.insert(url, metadata(&issuer, json!({})));
        }
        log_in(&service(PLAIN, &fake, None), &fake).await.expect("logged in");
        let root = ".well-known/oauth-authorization-server".to_owned();
        assert!(!documents(&fake).contains(&root), "the root of another tenant is not asked");
    }
}

/// auth/metadata-issuer-mismatch.
#[tokio::test]
async fn metadata_of_another_issuer_is_refused() {
    for issuer in [json!("https://attacker.example.com"), json!(null)] {
        let fake = FakeAuthorization::new();
        fake.change_metadata(json!({ "issuer": issuer }));
        let error = service(PLAIN, &fake, None).begin(&git()).await.expect_err("refused");
        assert_eq!(error.code(), "ISSUER_MISMATCH");
        assert!(fake.seen("/register").is_empty());
    }
}

/// auth/resource-mismatch.
#[tokio::test]
async fn metadata_of_another_resource_is_refused() {
    let fake = FakeAuthorization::new();
    fake.change_resource(json!({ "resource": "https://evil.example.com/mcp" }));
    let error = service(PLAIN, &fake, None).begin(&git()).await.expect_err("refused");
    assert_eq!(error.code(), "RESOURCE_MISMATCH");
    assert!(fake.seen("/register").is_empty());
}

#[tokio::test]
async fn the_resource_is_sent_as_its_metadata_names_it() {
    let fake = FakeAuthorization::new();
    fake.change_resource(json!({ "resource": "https://mcp.example.com" }));
    let login = log_in(&service(PLAIN, &fake, None), &fake).await.expect("logged in");
    assert_eq!(query(&login.url)["resource"], "https://mcp.example.com");
    let service = with_auth("{ resource = false }", &fake, None);
    let login = log_in(&service, &fake).await.expect("logged in");
    assert!(!query(&login.url).contains_key("resource"));
    assert!(!fake.seen("/token")[1].form.contains_key("resource"));
}

/// auth/2025-03-26-oauth-metadata-backcompat and -oauth-endpoint-fallback.
#[tokio::test]
async fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    let origin = "https://mcp.example.com";
    let fake = FakeAuthorization::new();
    fake.set().challenge = None;
    fake.set().documents.clear();
    let login = log_in(&service(PLAIN, &fake, None), &fake).await.expect("logged in");
    assert!(login.url.starts_with("https://mcp.example.com/authorize?"), "{}", login.url);
    assert_eq!(fake.seen("https://mcp.example.com/token").len(), 1);
    let more = json!({ "authorization_endpoint": format!("{origin}/oauth/authorize") });
    let url = format!("{origin}/.well-known/oauth-authorization-server");
    fake.set().documents.insert(url, metadata(origin, more));
    let login = log_in(&service(PLAIN, &fake, None), &fake).await.expect("logged in");
    assert!(login.url.starts_with("https://mcp.example.com/oauth/authorize?"), "{}", login.url);
    assert_eq!(query(&login.url)["resource"], SERVER);
}

#[tokio::test]
async fn an_authorization_server_that_lacks_something_is_refused_with_the_reason() {
    for (more, code) in [
        (json!({ "code_challenge_methods_supported": null }), "NO_PKCE"),
        (json!({ "code_challenge_methods_supported": ["plain"] }), "NO_PKCE"),
        (json!({ "authorization_endpoint": null }), "NO_ENDPOINT"),
        (json!({ "token_endpoint": null }), "NO_ENDPOINT"),
        (json!({ "registration_endpoint": null }), "NO_CLIENT_ID"),
        (json!({ "token_endpoint": "http://auth.example.com/token" }), "URL_INSECURE"),
        (json!({ "authorization_endpoint": "javascript:alert(1)" }), "URL_INSECURE"),
        (json!({ "token_endpoint": 7 }), "ANSWER_INVALID"),
    ] {
        let fake = FakeAuthorization::new();
        fake.change_metadata(more.clone());
        let error = service(PLAIN, &fake, None).begin(&git()).await.expect_err("refused");
        assert_eq!(error.code(), code, "{more}");
        assert!(!error.hint().is_empty());
    }
    let fake = FakeAuthorization::new();
    fake.change_resource(json!({ "authorization_servers": ["http://auth.example.com"] }));
    let error = service(PLAIN, &fake, None).begin(&git()).await.expect_err("refused");
    assert_eq!(error.code(), "URL_INSECURE");
    fake.set().documents.insert(
        RESOURCE_METADATA.into(),
        json!({ "resource": SERVER, "authorization_servers": ["https://none.example.com"] }),
    );
    let error = service(PLAIN, &fake, None).begin(&git()).await.expect_err("refused");
    assert_eq!(error.code(), "NO_METADATA");
    fake.set().is_down = true;
    let error = service(PLAIN, &fake, None).begin(&git()).await.expect_err("down");
    assert_eq!(error.code(), "TIMEOUT");
}

#[tokio::test]
async fn the_metadata_for_a_diagnosis_is_fetched_without_registration_and_token() {
    let fake = FakeAuthorization::new();
    let discover = async |auth: &str| {
        let config = parsed(&format!("{PLAIN}auth = {auth}\n"));
        let TransportConfig::Http(http) = &config.servers[&git()].transport else {
            unreachable!("it has a URL")
        };
        let peer = Arc::clone(&fake);
        let clients: OAuthHttpFactory =
            Arc::new(move |_| Ok(Arc::clone(&peer) as Arc<dyn OAuthHttp>));
        LoginMetadata::discover(&git(), http, &clients).await
    };
    let (found, obstacle) = discover("\"auto\"").await.expect("metadata");
    assert_eq!(found.issuer, ISSUER);
    assert!(found.pkce && found.dynamic_registration && !found.is_assumed);
    assert!(obstacle.is_none(), "{obstacle:?}");

    fake.change_metadata(json!({ "registration_endpoint": null }));
    let code = async |auth: &str| {
        discover(auth).await.expect("metadata").1.map(|obstacle| obstacle.code())
    };
    assert_eq!(code("\"auto\"").await, Some("NO_CLIENT_ID"));
    assert_eq!(code("{ client_id = \"known\" }").await, None);
    fake.change_metadata(json!({ "code_challenge_methods_supported": ["plain"] }));
    assert_eq!(code("{ client_id = \"known\" }").await, Some("NO_PKCE"));
    assert_eq!(fake.seen("/register").len() + fake.seen("/token").len(), 0);
}
