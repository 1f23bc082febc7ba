//! `metamcp login` and `metamcp logout`: the login of this host at a server.

use std::{
    io::{self, BufRead as _, Read as _},
    process::{Command, Stdio},
};

use serde_json::{Value, json, value::RawValue};
use tokio::task;

use super::{
    FAILED, Failed, output,
    service_target::{self, OutputArgs},
};
use crate::{config::defaults, time_format::in_two_units};

/// Log in at a server that requires it, for the whole host
///
/// Prints the address to open in a browser, and waits until the login has ended. The browser returns
/// to the service, so it must run on this host or reach the port of the service. For a browser
/// elsewhere, use `--paste`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The server
    server: String,
    /// Also open the address in a browser of this host: `$BROWSER`, or else `xdg-open`
    #[arg(long)]
    browser: bool,
    /// Read the address that the browser ends at from standard input
    #[arg(long)]
    paste: bool,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let result = service_target::run(async {
        let mut service = args.common.target.connect_running().await?;
        let params = json!({ "server": args.server });
        let begun = service_target::request(&mut service, "auth/login", &params).await?;
        let begun = service_target::value(&begun)?;
        announce(args, &begun);
        if args.browser {
            open_browser(begun["url"].as_str().unwrap_or_default());
        }
        let (method, params) = match args.paste {
            true => ("auth/finish", json!({ "answer": pasted().await? })),
            false => ("auth/wait", json!({ "loginId": begun["loginId"] })),
        };
        service_target::request(&mut service, method, &params).await
    })?;
    args.common.print(&result, |result| {
        // A pasted address may be the end of a login at another server.
        let server = result["server"].as_str().unwrap_or(&args.server);
        output::print(&format!("Logged in at server `{}`.\n", output::text(server)));
    })
}

/// Prints the address and the next step. With `--json`, standard output is left to the result.
fn announce(args: &Args, begun: &Value) {
    let next = match args.paste {
        true => "Then paste the address that the browser ends at, and press enter. The page itself may fail to load.".to_owned(),
        false => format!(
            "metamcp waits for {}. If the browser is on another host, press ctrl-c and use `--paste`.",
            in_two_units(begun["endsInMs"].as_u64().unwrap_or_default())
        ),
    };
    let text = format!(
        "Open this address in a browser to log in at server `{}`:\n\n  {}\n\n{next}\n",
        output::word(&begun["server"]),
        output::word(&begun["url"]),
    );
    match args.common.json {
        true => output::eprint(&text),
        false => output::print(&text),
    }
}

/// Opens an address in a browser. Without one, the printed address remains.
fn open_browser(url: &str) {
    let browser = std::env::var_os("BROWSER").unwrap_or_else(|| "xdg-open".into());
    #[expect(
        clippy::disallowed_methods,
        reason = "the browser is the operator's and outlives this command"
    )]
    let mut command = Command::new(&browser);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        let browser = browser.to_string_lossy();
        output::eprint(&format!("warning: cannot start the browser `{browser}`: {error}\n"));
    }
}

/// Reads the pasted address.
async fn pasted() -> Result<String, Failed> {
    let reading = task::spawn_blocking(|| {
        let mut line = String::new();
        let length_max = defaults::CONTROL_LINE_BYTES_MAX as u64;
        io::stdin().lock().take(length_max).read_line(&mut line).map(|_| line)
    });
    let line = match reading.await {
        Ok(Ok(line)) => line,
        Ok(Err(error)) => {
            return Err(Failed::new(FAILED, format!("cannot read the pasted address: {error}")));
        }
        Err(error) => return Err(Failed::new(FAILED, format!("cannot read the address: {error}"))),
    };
    match line.trim() {
        "" => Err(Failed::new(FAILED, "no address was pasted").hint("Run `metamcp login` again.")),
        address => Ok(address.to_owned()),
    }
}

/// Log out from a server, for the whole host
///
/// metamcp deletes the tokens, and revokes them where the authorization server can.
#[derive(Debug, clap::Args)]
pub(super) struct LogoutArgs {
    /// The server
    server: String,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn logout(args: &LogoutArgs) -> Result<(), Failed> {
    let params = json!({ "server": args.server });
    let result: Box<RawValue> = args.common.target.call_service("auth/logout", &params)?;
    args.common.print(&result, |result| {
        let server = output::word(&result["server"]);
        output::print(&match result["outcome"].as_str() {
            Some("none") => format!("There was no login at server `{server}`.\n"),
            Some("revoked") => format!("Logged out from server `{server}`: its tokens are revoked.\n"),
            _ => format!(
                "Logged out from server `{server}`: metamcp has deleted its tokens. The authorization server did not revoke them.\n"
            ),
        });
    })
}
