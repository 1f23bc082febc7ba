//! A server that an operator declares on the command line.
//!
//! Pure. The checks for secrets and the output are those of an import.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    credentials::ServerCredential,
    endpoint_conversion,
    plan::{ImportPlan, ImportState, ImportedServer},
    secret_detection::{is_secret, looks_secret},
    server_conversion::{ConvertedServer, ServerSetting},
    shell_arguments::{self, ArgumentPart, line_has_secret},
    to_toml,
    variable_syntax::ForeignText,
};
use crate::{
    config::{SecretValue, stateful_servers},
    server_name::ServerName,
};

/// The reason why a server cannot be declared like this. It never holds a value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NewServerError {
    /// The value of a variable or header looks like a secret.
    #[error("the value of `{key}` looks like a secret, and other users can see arguments")]
    SecretValue {
        /// The option that gave it.
        option: &'static str,
        /// The variable or header.
        key: String,
    },
    /// The program has a secret.
    #[error("the name of the program has a secret, and other users can see arguments")]
    SecretProgram,
    /// The working directory looks like a secret.
    #[error("the working directory looks like a secret, and other users can see arguments")]
    SecretDirectory,
    /// An argument of the program looks like a secret.
    #[error("argument {0} of the program looks like a secret, and other users can see arguments")]
    SecretArgument(usize),
    /// The URL has a secret.
    #[error("the URL has a secret, and other users can see arguments")]
    SecretUrl,
    /// The name of a credential is no file name.
    #[error("`{0}` is not the name of a credential")]
    CredentialName(String),
}

impl NewServerError {
    /// Returns the remedy.
    pub fn hint(&self) -> String {
        match self {
            Self::SecretValue { option, key } => format!(
                "Write `{option} {key}=credential:NAME`: metamcp reads the value from standard input."
            ),
            Self::SecretDirectory => {
                "Use a link with another name; `env:NAME` and `credential:NAME` work in variables and headers only.".to_owned()
            }
            Self::SecretProgram | Self::SecretArgument(_) => {
                "Give it to the program in a variable that it reads: `--env KEY=credential:NAME`. If it reads none, `-- sh -c 'exec PROGRAM \"$KEY\"'` inserts it, but then other users see it while the program runs.".to_owned()
            }
            Self::SecretUrl => {
                "Send it in a header: `--header Authorization=credential:NAME`.".to_owned()
            }
            Self::CredentialName(_) => {
                "Write the plain name of a file after `credential:`.".to_owned()
            }
        }
    }
}

/// A credential that a new server refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCredential {
    /// Its name.
    pub name: String,
    /// The variable or header with the reference.
    pub key: String,
}

/// A server that an operator declares on the command line.
#[derive(Clone, Debug)]
pub struct NewServer {
    name: ServerName,
    converted: ConvertedServer,
    /// The state that its clients share, in words.
    shared_state: Option<String>,
}

impl NewServer {
    /// Declares a program with its arguments.
    ///
    /// # Errors
    ///
    /// [`NewServerError`] if a text looks like a secret, or a reference is invalid.
    pub fn program(
        name: &ServerName,
        command: &str,
        args: &[String],
        env: BTreeMap<String, String>,
        cwd: Option<String>,
    ) -> Result<Self, NewServerError> {
        if is_secret_word(None, command, 0) {
            return Err(NewServerError::SecretProgram);
        }
        if cwd.as_deref().is_some_and(looks_secret) {
            return Err(NewServerError::SecretDirectory);
        }
        let mut flag: Option<&str> = None;
        for (index, argument) in args.iter().enumerate() {
            if is_secret_word(flag, argument, index + 1) {
                return Err(NewServerError::SecretArgument(index + 1));
            }
            flag = Some(argument);
        }
        let mut settings = vec![("command", ServerSetting::Text(command.to_owned()))];
        if !args.is_empty() {
            settings.push(("args", ServerSetting::List(args.to_vec())));
        }
        let cwd = cwd.map(|cwd| ("cwd", ServerSetting::Text(cwd)));
        let shared_state = stateful_servers::state_kept_by(command, args);
        let server = Self::of(name, settings, ("env", "--env", env))?;
        let mut server =
            Self { shared_state: shared_state.map(|state| state.to_string()), ..server };
        server.converted.settings.extend(cwd);
        Ok(server)
    }

    /// Declares an endpoint at `url`.
    ///
    /// # Errors
    ///
    /// [`NewServerError`] if a text looks like a secret, or a reference is invalid.
    pub fn endpoint(
        name: &ServerName,
        url: &str,
        headers: BTreeMap<String, String>,
    ) -> Result<Self, NewServerError> {
        if endpoint_conversion::shown_url(&ForeignText::plain(url)) != url {
            return Err(NewServerError::SecretUrl);
        }
        let settings = vec![("url", ServerSetting::Text(url.to_owned()))];
        Self::of(name, settings, ("headers", "--header", headers))
    }

    fn of(
        name: &ServerName,
        mut settings: Vec<(&'static str, ServerSetting)>,
        (table, option, values): (&'static str, &'static str, BTreeMap<String, String>),
    ) -> Result<Self, NewServerError> {
        let (mut credentials, mut variables) = (Vec::new(), BTreeSet::new());
        for (key, value) in &values {
            match SecretValue::from(value.clone()) {
                SecretValue::Credential(name) if !SecretValue::is_credential_name(&name) => {
                    return Err(NewServerError::CredentialName(name));
                }
                SecretValue::Credential(name) => {
                    let holds = format!("the value of `{key}`");
                    credentials.push(ServerCredential { name, holds, file: None });
                }
                SecretValue::Env(name) => {
                    variables.insert(name);
                }
                SecretValue::Literal(text) if is_secret(key, &text) || line_has_secret(&text) => {
                    return Err(NewServerError::SecretValue { option, key: key.clone() });
                }
                SecretValue::Literal(_) => {}
            }
        }
        if !values.is_empty() {
            settings.push((table, ServerSetting::Table(values)));
        }
        let converted =
            ConvertedServer { settings, credentials, variables, ..ConvertedServer::default() };
        Ok(Self { name: name.clone(), converted, shared_state: None })
    }

    /// Returns the credentials that it refers to, each once.
    pub fn credentials(&self) -> Vec<NewCredential> {
        let tables = self.converted.settings.iter().filter_map(|(_, setting)| match setting {
            ServerSetting::Table(members) => Some(members),
            _ => None,
        });
        let mut found: Vec<NewCredential> = Vec::new();
        for (key, value) in tables.flatten() {
            if let Some(name) = value.strip_prefix("credential:")
                && !found.iter().any(|known| known.name == name)
            {
                found.push(NewCredential { name: name.to_owned(), key: key.clone() });
            }
        }
        found
    }

    /// Returns the state that all clients share, in words, if the server is known for it.
    pub fn shared_state(&self) -> Option<&str> {
        self.shared_state.as_deref()
    }

    /// Returns its table for a configuration file.
    pub fn to_toml(&self) -> String {
        to_toml::table(&self.name, &self.converted.settings)
    }

    /// Returns a module for NixOS that declares it.
    pub fn to_nix(&self) -> String {
        let (name, converted) = (self.name.clone(), self.converted.clone());
        let state = ImportState::Active;
        let servers = vec![ImportedServer { name, origins: Vec::new(), state, converted }];
        ImportPlan { servers, notes: Vec::new() }.to_nix()
    }
}

/// Returns whether a word of a command line has a secret; `flag` is the word before it.
fn is_secret_word(flag: Option<&str>, word: &str, index: usize) -> bool {
    let parts = shell_arguments::parts(flag, &ForeignText::plain(word), index);
    parts.iter().any(|part| matches!(part, ArgumentPart::Value { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    fn name() -> ServerName {
        ServerName::new("git").expect("a name")
    }

    fn table(values: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        values.iter().map(owned).collect()
    }

    #[test]
    fn a_new_server_is_written_as_the_configuration_reads_it() {
        let env = table(&[("LEVEL", "debug"), ("TOKEN", "credential:git"), ("URL", "env:GIT_URL")]);
        let args = ["-y".to_owned(), "say \"hi\"".to_owned()];
        let server =
            NewServer::program(&name(), "npx", &args, env, Some("/srv".to_owned())).expect("good");
        let credential = NewCredential { name: "git".to_owned(), key: "TOKEN".to_owned() };
        assert_eq!(server.credentials(), [credential]);
        let config = load::parsed(&server.to_toml());
        insta::assert_snapshot!(server.to_toml(), @r#"
        [servers.git]
        command = "npx"
        args = ["-y", 'say "hi"']
        env = { LEVEL = "debug", TOKEN = "credential:git", URL = "env:GIT_URL" }
        cwd = "/srv"
        "#);
        assert_eq!(config.servers.len(), 1);
        assert!(server.to_nix().contains("services.metamcp"), "{}", server.to_nix());
        let headers = table(&[("Authorization", "credential:linear")]);
        let server = NewServer::endpoint(&name(), "https://h/mcp", headers).expect("good");
        assert_eq!(load::parsed(&server.to_toml()).servers.len(), 1);
    }

    #[test]
    fn a_secret_is_refused_wherever_it_is_given_and_never_quoted() {
        let secret = "ghp_abcdefgh12345678";
        let none = BTreeMap::new;
        let refused = [
            NewServer::program(&name(), "x", &[], table(&[("TOKEN", "hunter2")]), None),
            NewServer::program(&name(), "x", &[], table(&[("A", secret)]), None),
            NewServer::program(&name(), "x", &["--token".into(), "hunter2".into()], none(), None),
            NewServer::program(&name(), "x", &[secret.to_owned()], none(), None),
            NewServer::program(&name(), "npx pg postgres://a:hunter2@h/db", &[], none(), None),
            NewServer::program(&name(), "TOKEN=hunter2", &["x".into()], none(), None),
            NewServer::program(&name(), "x", &[], none(), Some(format!("/srv/{secret}"))),
            NewServer::endpoint(&name(), "https://h/mcp?token=hunter2", none()),
            NewServer::endpoint(&name(), "https://h/", table(&[("Authorization", "Bearer x")])),
            NewServer::program(&name(), "x", &[], table(&[("A", "credential:../b")]), None),
        ];
        for refused in refused {
            let error = refused.expect_err("refused");
            let shown = format!("{error} {}", error.hint());
            assert!(!shown.contains("hunter2") && !shown.contains(secret), "{shown}");
            assert!(shown.contains("credential:") || shown.contains("name"), "{shown}");
        }
    }
}
