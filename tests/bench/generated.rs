//! Generated servers with many tools.

/// Returns servers with realistic definitions, the same every time.
pub(crate) fn servers(n_tools: usize, n_servers: usize) -> Vec<(String, Vec<String>)> {
    const VERBS: [&str; 16] = [
        "create", "list", "get", "update", "delete", "search", "export", "import", "send",
        "archive", "share", "validate", "convert", "schedule", "cancel", "compare",
    ];
    const THINGS: [&str; 40] = [
        "invoice",
        "customer",
        "ticket",
        "message",
        "event",
        "file",
        "folder",
        "branch",
        "commit",
        "deployment",
        "container",
        "table",
        "record",
        "report",
        "chart",
        "image",
        "video",
        "song",
        "recipe",
        "flight",
        "hotel",
        "route",
        "forecast",
        "stock",
        "currency",
        "course",
        "paper",
        "patient",
        "product",
        "order",
        "coupon",
        "document",
        "presentation",
        "spreadsheet",
        "contact",
        "task",
        "project",
        "certificate",
        "domain",
        "article",
    ];
    const DETAILS: [&str; 12] = [
        "Results come in pages and are sorted by the time of the last change.",
        "Requires write access to the workspace.",
        "Use it before you change anything, to see what there is.",
        "Dates are given in ISO 8601, amounts in the currency of the account.",
        "Fails if the name is taken already.",
        "Large results are cut; ask for the next page with the cursor.",
        "The owner is told by email.",
        "What was removed can be restored for thirty days.",
        "Supports filters by label, state and owner.",
        "Returns an identifier that other tools take.",
        "Works with files of up to ten megabytes.",
        "Only members of the team can see it.",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    let mut pick = |from: &[&'static str]| from[random.usize(..from.len())];
    let server = |number: usize| {
        // Every server has its own subject and vocabulary, as real ones do.
        let (subject, own) = (pick(&THINGS), format!("{}{number}", pick(&THINGS)));
        let tools = (0..n_tools / n_servers).map(|nth| {
            let (verb, thing, other) = (pick(&VERBS), pick(&THINGS), pick(&THINGS));
            let description = format!(
                "{verb} a {thing} of the {subject} {own}, by its {other}. {} {} {}",
                pick(&DETAILS),
                pick(&DETAILS),
                pick(&DETAILS)
            );
            serde_json::json!({
                "name": format!("{verb}_{thing}_{nth}"),
                "description": description,
                "inputSchema": {"type": "object", "properties": {
                    format!("{thing}_id"): {"type": "string", "description": format!("Which {thing}")},
                    other: {"type": "string", "description": pick(&DETAILS)},
                    "limit": {"type": "integer", "description": "At most how many results"},
                    "format": {"enum": ["json", "csv", "text"]},
                }},
            })
            .to_string()
        });
        let tools = tools.collect();
        (format!("{subject}-{own}"), tools)
    };
    (0..n_servers).map(server).collect()
}
