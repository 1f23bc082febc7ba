//! The merged view: items that several servers offer, completion, and capabilities.

use serde_json::{Value, json};

use crate::harness::{
    client::Client,
    daemon::{self, Daemon},
    fake::Fakes,
    scripted_upstream::ScriptedUpstream,
};

/// Returns an upstream called `name` with these prompts, resources and templates, and its table.
fn upstream(name: &'static str, uris: &[&str], templates: &[&str]) -> (ScriptedUpstream, String) {
    let resource = |uri: &&str| json!({ "uri": uri, "name": name });
    let template = |uri: &&str| json!({ "uriTemplate": uri, "name": name });
    let resources: Vec<Value> = uris.iter().map(resource).collect();
    let templates: Vec<Value> = templates.iter().map(template).collect();
    let upstream = ScriptedUpstream::start(move |request, response| {
        let params = &request.message["params"];
        let result = match request.method() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "prompts": {}, "resources": {}, "completions": {} },
                "serverInfo": { "name": name, "version": "1" },
            }),
            "prompts/list" => json!({ "prompts": [{ "name": "greet" }, { "name": "say.it" }] }),
            "resources/list" => json!({ "resources": resources }),
            "resources/templates/list" => json!({ "resourceTemplates": templates }),
            "resources/read" => {
                json!({ "contents": [{ "uri": params["uri"], "text": name }] })
            }
            "completion/complete" => json!({ "completion": { "values": [name] } }),
            _ => return false,
        };
        response.json(&request.result(&result));
        true
    });
    let table = upstream.server("").replace(".up]", &format!(".{name}]"));
    (upstream, table)
}

async fn list(client: &Client, method: &str, member: &str) -> Vec<Value> {
    let answer = client.request(json!(1), method, json!({})).await.answer();
    answer["result"][member].as_array().cloned().unwrap_or_else(|| panic!("{answer}"))
}

async fn read(client: &Client, uri: &str) -> Value {
    let answer = client.request(json!(1), "resources/read", json!({ "uri": uri })).await.answer();
    answer["result"]["contents"][0]["text"].clone()
}

/// Runs `metamcp check` on a file while a service runs.
fn check(daemon: &Daemon, config: &str, more: &[&str]) -> (i32, String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("checked.toml");
    std::fs::write(&file, config).expect("written");
    let (file, socket) = (file.display().to_string(), daemon.control().display().to_string());
    daemon::run(&[&["check", &file, "--socket", &socket], more].concat())
}

#[tokio::test]
async fn a_duplicate_item_is_listed_once_routes_to_the_first_server_and_fails_the_check() {
    let (_one, a) = upstream("a", &["r:1", "a:1"], &["t:{x}"]);
    let (_two, b) = upstream("b", &["r:1", "b:1"], &["t:{x}", "b:{x}"]);
    // Declared in the other order: the names decide which server is first.
    let config = b.clone() + &a;
    let daemon = Daemon::with(config.clone()).ready();
    let client = daemon.client("/");
    assert_eq!(check(&daemon, &config, &[]).0, 0, "no list is known yet");

    let uris = list(&client, "resources/list", "resources").await;
    let of = |server: &str, uri: &str| json!({ "uri": uri, "name": server });
    assert_eq!(uris, [of("a", "r:1"), of("a", "a:1"), of("b", "b:1")]);
    let templates = list(&client, "resources/templates/list", "resourceTemplates").await;
    let names: Vec<&str> = templates.iter().filter_map(|found| found["name"].as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    for (uri, server) in [("r:1", "a"), ("a:1", "a"), ("b:1", "b"), ("t:7", "a"), ("b:7", "b")] {
        assert_eq!(read(&client, uri).await, server, "{uri}");
    }
    assert_eq!(
        read(&daemon.client("/servers/b"), "r:1").await,
        "b",
        "the server's own path is unaffected"
    );

    let found = |list: &str, item: &str| json!({ "list": list, "item": item, "server": "a", "left_out": "b" });
    let status = daemon.client("/status").get().await.answer();
    let expected = json!([found("resourceTemplates", "t:{x}"), found("resources", "r:1")]);
    assert_eq!(status["collisions"], expected);
    list(&client, "resources/list", "resources").await;
    let log = daemon.log();
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("has an item of the same name")).collect();
    assert_eq!(lines.len(), 2, "each is logged once: {log}");
    assert!(
        lines.iter().any(|line| ["r:1", "=a", "`b`"].iter().all(|word| line.contains(word))),
        "{lines:?}"
    );

    let (code, _, stderr) = check(&daemon, &config, &[]);
    assert_eq!(code, 78, "{stderr}");
    let line = "resources `r:1`: from `a` shown, from `b` hidden";
    assert!(stderr.contains(line), "{stderr}");
    let socket = daemon.control().display().to_string();
    assert!(daemon::run(&["status", "--socket", &socket]).1.contains(line));
    for (config, more) in [(&config, &["--offline"][..]), (&config, &["--no-files"]), (&a, &[])] {
        assert_eq!(check(&daemon, config, more).0, 0, "{more:?}");
    }
}

#[tokio::test]
async fn a_collision_ends_when_a_reload_removes_one_of_the_servers() {
    let (_one, a) = upstream("a", &["r:1"], &[]);
    let (_two, b) = upstream("b", &["r:1"], &[]);
    let mut daemon = Daemon::with(a.clone() + &b).ready();
    let client = daemon.client("/");
    list(&client, "resources/list", "resources").await;
    assert_eq!(read(&client, "r:1").await, "a");

    daemon.rewrite(&b);
    daemon.reload();

    assert_eq!(read(&client, "r:1").await, "b");
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["collisions"], json!([]));
}

#[tokio::test]
async fn a_tool_named_like_the_alias_of_another_tool_is_listed_once() {
    let fakes = Fakes::new();
    let alias = "page_click_8cbc2ae1";
    let probe = Daemon::with(fakes.server("fake", &["--named", "page.click"])).ready();
    let tools = list(&probe.client("/"), "tools/list", "tools").await;
    let mut names = tools.iter().filter_map(|tool| tool["name"].as_str());
    let alias = names
        .find_map(|name| name.strip_prefix("fake__page_click"))
        .map_or(alias.to_owned(), |mark| format!("page_click{mark}"));

    let options = ["--named", "page.click", "--named", &alias];
    let daemon = Daemon::with(fakes.server("fake", &options)).ready();
    let client = daemon.client("/");
    let tools = list(&client, "tools/list", "tools").await;
    let qualified = format!("fake__{alias}");
    assert_eq!(tools.iter().filter(|tool| tool["name"] == *qualified).count(), 1);
    assert_eq!(client.call(&qualified, json!({})).await, json!({ "tool": alias }));
    let status = daemon.client("/status").get().await.answer();
    assert_eq!(
        status["collisions"],
        json!([{ "list": "tools", "item": qualified, "server": "fake", "left_out": "fake" }])
    );
}

#[tokio::test]
async fn a_completion_request_goes_to_the_server_of_its_prompt_or_resource() {
    let (one, a) = upstream("a", &["r:1"], &["t:{x}", "t:{y}/z"]);
    let (two, b) = upstream("b", &["r:2"], &["t:{x}/z", "u:{x}"]);
    let daemon = Daemon::with(a + &b).ready();
    let client = daemon.client("/").initialized().await;
    let complete = async |reference: Value| {
        let argument = json!({ "name": "x", "value": "v" });
        let context = json!({ "arguments": { "y": "w" } });
        let params = json!({ "ref": reference, "argument": argument, "context": context });
        client.request(json!(1), "completion/complete", params).await.answer()
    };
    let prompts = list(&client, "prompts/list", "prompts").await;
    let alias = prompts.iter().filter_map(|prompt| prompt["name"].as_str());
    let alias = alias.into_iter().find(|name| name.starts_with("b__say_it_")).expect("an alias");

    for (kind, name, server, own) in [
        ("ref/prompt", "a__greet", "a", "greet"),
        ("ref/prompt", "b__greet", "b", "greet"),
        ("ref/prompt", alias, "b", "say.it"),
    ] {
        let reference = json!({ "type": kind, "name": name, "title": "T" });
        let answer = complete(reference).await;
        assert_eq!(answer["result"]["completion"]["values"], json!([server]), "{answer}");
        let request = if server == "a" { &one } else { &two }.last("completion/complete");
        let params = &request.message["params"];
        assert_eq!(params["ref"], json!({ "type": kind, "name": own, "title": "T" }));
        assert_eq!(params["context"]["arguments"]["y"], "w");
    }
    for (uri, server) in
        [("t:{x}", "a"), ("t:{x}/z", "b"), ("u:{x}", "b"), ("r:2", "b"), ("u:7", "b")]
    {
        let answer = complete(json!({ "type": "ref/resource", "uri": uri })).await;
        assert_eq!(answer["result"]["completion"]["values"], json!([server]), "{uri}: {answer}");
        let request = if server == "a" { &one } else { &two }.last("completion/complete");
        assert_eq!(request.message["params"]["ref"]["uri"], uri, "the URI is unchanged");
    }

    for (reference, code, hint) in [
        (
            json!({ "type": "ref/prompt", "name": "greet" }),
            "TOOL_NOT_FOUND",
            "Did you mean `a__greet`?",
        ),
        (
            json!({ "type": "ref/prompt", "name": "c__greet" }),
            "SERVER_NOT_FOUND",
            "Use a name from `tools/list`, in the form `SERVER__TOOL`.",
        ),
        (
            json!({ "type": "ref/resource", "uri": "no:where" }),
            "RESOURCE_NOT_FOUND",
            "See `resources/list`.",
        ),
        (json!({ "type": "ref/prompt" }), "MISSING_PARAMETER", "Add `params.ref.name`."),
        (json!({ "type": "ref/tool", "name": "x" }), "MISSING_PARAMETER", "Add `params.ref.type`."),
        (json!(7), "MISSING_PARAMETER", "Add `params.ref`."),
    ] {
        let answer = complete(reference).await;
        let data = &answer["error"]["data"];
        assert_eq!((&data["code"], &data["suggestion"]), (&json!(code), &json!(hint)), "{answer}");
    }
}

#[tokio::test]
async fn the_merged_view_declares_the_capabilities_that_it_supports() {
    let daemon = Daemon::with("").ready();
    let client = daemon.client("/");
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let answer = client.request(json!(1), "initialize", params).await.answer();
    let capabilities = answer["result"]["capabilities"].as_object().expect("an object").clone();
    let names: Vec<&String> = capabilities.keys().collect();
    assert_eq!(names, ["completions", "logging", "prompts", "resources", "tools"]);
}
