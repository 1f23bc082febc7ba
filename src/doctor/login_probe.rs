//! The login at a server over HTTP: the metadata of the server, and the tokens of the service.
//!
//! The doctor requests no token, because a refresh token is valid once: the service owns it.

use std::path::Path;

use hyper::StatusCode;
use serde::Serialize;
use tokio::time::Instant;

use super::{
    finding::{Finding, FindingArea::Servers},
    probe_phase::ProbePhase,
    service_login::ServiceLogin,
    sockets::ServiceReport,
};
use crate::{
    config::{HttpServerConfig, OAuthGrant, ServerAuth},
    connection::{ConnectError, RequestFailure},
    error_report::chain,
    oauth::{LoginError, LoginMetadata, web_clients},
    redact::Redactor,
    server_name::ServerName,
    time_format::in_two_units,
};

/// The login at a server, as far as it is known.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbedLogin {
    /// The metadata, if it is usable.
    #[serde(flatten)]
    pub metadata: Option<LoginMetadata>,
    /// The login of the running service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceLogin>,
}

/// The result of the examination of one login.
pub(super) struct LoginProbe {
    pub(super) phases: Vec<ProbePhase>,
    pub(super) login: ProbedLogin,
    /// The finding if the server refuses a request without a token.
    pub(super) refusal: Finding,
    /// The finding if the server is connected without a token, but its declared login has a problem.
    pub(super) problem: Option<Finding>,
}

/// The obstacle to a login, and its remedy.
struct LoginObstacle {
    why: String,
    fix: &'static str,
}

/// Returns whether a server requires a login, by its answer to the handshake.
pub(super) fn is_refused(http: &HttpServerConfig, error: &ConnectError) -> bool {
    let is_unauthorized = matches!(
        error,
        ConnectError::Handshake { source: RequestFailure::Status(StatusCode::UNAUTHORIZED, _), .. }
    );
    is_unauthorized && http.oauth().is_some()
}

/// Returns whether the configuration declares a login.
pub(super) fn is_declared(http: &HttpServerConfig) -> bool {
    matches!(http.auth, ServerAuth::OAuth(_)) && !http.has_static_authorization()
}

/// Fetches the metadata of a server, and adds what the service knows. Cancel safe.
pub(super) async fn probe(
    name: &ServerName,
    http: &HttpServerConfig,
    credentials: Option<&Path>,
    service: Option<&ServiceReport>,
) -> LoginProbe {
    let begin = Instant::now();
    let clients = web_clients(credentials.map(Path::to_owned));
    let found = Box::pin(LoginMetadata::discover(name, http, &clients)).await;
    let discovery = ProbePhase::new("discovery", begin.elapsed()).failed_if(found.is_err());
    let obstacle = |error: LoginError| LoginObstacle { why: chain(&error), fix: error.hint() };
    let (metadata, obstacle) = match found {
        Ok((metadata, error)) => (Some(metadata), error.map(obstacle)),
        Err(error) => (None, Some(obstacle(error))),
    };
    let known = service.map(|service| service.logins.get(name));
    let token = service.map(|service| {
        let is_logged_in = known.flatten().is_some_and(ServiceLogin::is_logged_in);
        ProbePhase::new("token", service.took).failed_if(!is_logged_in)
    });
    let is_machine = matches!(&http.auth, ServerAuth::OAuth(oauth) if oauth.grant == OAuthGrant::ClientCredentials);
    let problem = obstacle.as_ref().map(|obstacle| {
        Finding::warning(Servers, "has a login that metamcp cannot start")
            .because(obstacle.why.as_str())
            .fix(obstacle.fix)
            .of(name)
    });
    LoginProbe {
        phases: [discovery].into_iter().chain(token).collect(),
        refusal: refusal(name, is_machine, metadata.as_ref(), obstacle, known).of(name),
        problem,
        login: ProbedLogin { metadata, service: known.flatten().cloned() },
    }
}

/// Returns the finding about a server that refuses a request without a token. `service` is `None` if
/// no service answers, and `Some(None)` if it knows of no login.
fn refusal(
    name: &ServerName,
    is_machine: bool,
    metadata: Option<&LoginMetadata>,
    obstacle: Option<LoginObstacle>,
    service: Option<Option<&ServiceLogin>>,
) -> Finding {
    let login = service.flatten();
    if let Some(login) = login.filter(|login| login.is_logged_in()) {
        let expiry = login.expires_in_ms.map_or_else(String::new, |ms| match ms {
            0 => "; the token has expired".to_owned(),
            ms => format!("; the token expires in {}", in_two_units(ms)),
        });
        let what = format!("requires a login, and the service is logged in{expiry}");
        return match (obstacle, &login.error) {
            (Some(obstacle), _) => Finding::warning(Servers, what)
                .because(format!("Another login would fail: {}", obstacle.why))
                .fix(obstacle.fix),
            (None, Some(error)) => Finding::warning(Servers, what)
                .because(format!("The last error: {}", Redactor::default().quote(error)))
                .fix("metamcp tries again by itself; see `metamcp auth`."),
            (None, None) => Finding::note(Servers, what).because(described(metadata)),
        };
    }
    if let Some(obstacle) = obstacle {
        return Finding::error(Servers, "requires a login that metamcp cannot start")
            .because(obstacle.why)
            .fix(obstacle.fix);
    }
    let why = match login.and_then(|login| login.error.as_deref()) {
        Some(error) => {
            format!(
                "The service says: {}. {}",
                Redactor::default().quote(error),
                described(metadata)
            )
        }
        None => described(metadata),
    };
    let command = format!("`metamcp login {name}`");
    let (finding, fix) = match (service, login, is_machine) {
        (None, _, false) => (
            Finding::note(Servers, "requires a login"),
            format!(
                "Without a service, its login is unknown. Start the service, then run {command}."
            ),
        ),
        (None | Some(None), _, true) => {
            let what = "requires a login, which the service makes when a request needs it";
            return Finding::note(Servers, what).because(why);
        }
        (Some(_), Some(login), false) if login.state == "pending" => (
            Finding::warning(Servers, "requires a login, which has started"),
            format!("Finish it in the browser, or run {command} again."),
        ),
        (Some(_), _, false) => (
            Finding::error(Servers, "requires a login, and the service has none"),
            format!("Run {command}."),
        ),
        (Some(Some(_)), _, true) => (
            Finding::error(Servers, "requires a login, and the service gets no token"),
            "Check `client_id`, `client_secret` and `scopes`.".to_owned(),
        ),
    };
    finding.because(why).fix(fix)
}

/// Describes an authorization server.
fn described(metadata: Option<&LoginMetadata>) -> String {
    let Some(metadata) = metadata else { return "Its authorization server is unknown.".to_owned() };
    if metadata.is_assumed {
        return format!(
            "It has no metadata: metamcp uses the endpoints of version 2025-03-26 at `{}`.",
            metadata.issuer
        );
    }
    let features = [
        (metadata.pkce, "PKCE with S256"),
        (metadata.dynamic_registration, "dynamic registration"),
        (metadata.client_metadata_documents, "client metadata documents"),
    ];
    let joined = |wanted: bool| {
        let names: Vec<&str> =
            features.iter().filter(|(has, _)| *has == wanted).map(|(_, name)| *name).collect();
        names.join(", ")
    };
    let lacking = match joined(false) {
        lacking if lacking.is_empty() => String::new(),
        lacking => format!("; not supported: {lacking}"),
    };
    let supported = match joined(true) {
        supported if supported.is_empty() => "nothing that a login needs".to_owned(),
        supported => supported,
    };
    format!("Its authorization server is `{}`. Supported: {supported}{lacking}.", metadata.issuer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> LoginMetadata {
        LoginMetadata {
            issuer: "https://login.example".to_owned(),
            is_assumed: false,
            client_metadata_documents: false,
            dynamic_registration: true,
            pkce: true,
        }
    }

    fn login(state: &str, error: Option<&str>) -> ServiceLogin {
        let expires_in_ms = (state == "logged_in").then_some(3_600_000);
        ServiceLogin { state: state.to_owned(), expires_in_ms, error: error.map(str::to_owned) }
    }

    /// Returns the finding as lines of text.
    fn found(
        is_machine: bool,
        obstacle: Option<LoginObstacle>,
        service: Option<Option<&ServiceLogin>>,
    ) -> String {
        let name = ServerName::new("up").expect("a name");
        let finding = refusal(&name, is_machine, Some(&metadata()), obstacle, service);
        let parts = [Some(finding.what), finding.why, finding.fix];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{}: {}", finding.level.name(), parts.join("\n"))
    }

    #[test]
    fn a_server_that_requires_a_login_is_judged_by_the_login_of_the_service() {
        const SERVER: &str = "Its authorization server is `https://login.example`. Supported: PKCE with S256, dynamic registration; not supported: client metadata documents.";
        let (valid, failing) = (login("logged_in", None), login("logged_in", Some("it is down")));
        let (needed, pending) = (login("needs_login", Some("revoked")), login("pending", None));
        for (service, level, end) in [
            (None, "note: requires a login\n", "Start the service, then run `metamcp login up`."),
            (
                Some(None),
                "error: requires a login, and the service has none\n",
                "Run `metamcp login up`.",
            ),
            (
                Some(Some(&needed)),
                "error: requires a login, and the service has none\nThe service says: revoked. Its",
                "Run `metamcp login up`.",
            ),
            (
                Some(Some(&pending)),
                "warning: requires a login, which has started\n",
                "run `metamcp login up` again.",
            ),
            (
                Some(Some(&valid)),
                "note: requires a login, and the service is logged in; the token expires in 1 h",
                SERVER,
            ),
            (
                Some(Some(&failing)),
                "warning: requires a login, and the service is logged in; ",
                "see `metamcp auth`.",
            ),
        ] {
            let text = found(false, None, service);
            assert!(text.starts_with(level) && text.ends_with(end), "{text}");
        }
        assert!(found(true, None, Some(None)).starts_with("note: "), "a machine logs in by itself");
        assert!(found(true, None, Some(Some(&needed))).contains("Check `client_id`"));
    }

    #[test]
    fn an_obstacle_to_a_login_is_an_error_unless_the_service_is_logged_in() {
        let obstacle = || Some(LoginObstacle { why: "no PKCE".to_owned(), fix: "Ask for it." });
        let valid = login("logged_in", None);
        let cannot = "error: requires a login that metamcp cannot start\nno PKCE\nAsk for it.";
        assert_eq!(found(false, obstacle(), None), cannot);
        assert_eq!(found(false, obstacle(), Some(None)), cannot);
        assert!(found(false, obstacle(), Some(Some(&valid))).starts_with("warning: "));
    }
}
