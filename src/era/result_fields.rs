//! The members that every result of the modern era has in addition to its content.

use crate::protocol::{ObjectMembers, client_meta::SERVER_INFO, payloads::method};

/// The default time, in milliseconds, for which clients may cache a list or resource. Source: MCP
/// 2026-07-28, "Caching". Repeated requests are cheap, and a stale list makes calls fail.
const TTL_MS: u64 = 0;

/// The methods whose results state a cache lifetime. Source: MCP 2026-07-28, "Caching".
const CACHEABLE: [&str; 6] = [
    method::DISCOVER,
    method::TOOLS_LIST,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCE_TEMPLATES_LIST,
    method::RESOURCES_READ,
];

/// Returns the result of a request of `method`, JSON text, as modern clients expect it. Adds the
/// type of the result, its cache lifetime and the server's `server_info`, JSON text, unless
/// present.
///
/// A result that is not an object is unchanged.
pub fn decorate(result: &str, method: &str, server_info: Option<&str>) -> String {
    let Some(mut members) = ObjectMembers::read(result) else { return result.to_owned() };
    let set_absent = |members: &mut ObjectMembers<'_>, name: &str, value: String| {
        if members.get(name).is_none() {
            members.set(name, value);
        }
    };
    set_absent(&mut members, "resultType", r#""complete""#.to_owned());
    let is_complete = members.get("resultType") == Some(r#""complete""#);
    if is_complete && CACHEABLE.contains(&method) {
        set_absent(&mut members, "ttlMs", TTL_MS.to_string());
        // The server has not said whether its result is specific to this client.
        set_absent(&mut members, "cacheScope", r#""private""#.to_owned());
    }
    if let Some(server_info) = server_info {
        let meta = members.get("_meta").unwrap_or("{}").to_owned();
        if let Some(mut meta) = ObjectMembers::read(&meta) {
            set_absent(&mut meta, SERVER_INFO, server_info.to_owned());
            members.set("_meta", meta.to_string());
        }
    }
    members.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modern_result_states_its_type_and_its_cache_lifetime() {
        assert_eq!(
            decorate(r#"{"tools":[{"x":1e400}]}"#, "tools/list", Some(r#"{"name":"a"}"#)),
            r#"{"tools":[{"x":1e400}],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"a"}}}"#
        );
        assert_eq!(
            decorate(r#"{"content":[]}"#, "tools/call", None),
            r#"{"content":[],"resultType":"complete"}"#,
            "only what may be kept says for how long"
        );
    }

    #[test]
    fn fields_that_a_result_already_has_are_kept() {
        let whole = r#"{"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{}},"ttlMs":7,"resultType":"complete","cacheScope":"public"}"#;
        assert_eq!(decorate(whole, "resources/read", Some(r#"{"name":"a"}"#)), whole);
        let asks = r#"{"resultType":"input_required","inputRequests":{}}"#;
        assert_eq!(decorate(asks, "resources/read", None), asks, "it cannot be kept");
        assert_eq!(decorate("[1]", "tools/list", None), "[1]");
    }
}
