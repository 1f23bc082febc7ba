//! The detection of secrets; it prefers false positives to false negatives.
//!
//! Pure.

use crate::config::secret::SECRET_WORDS;

/// The words that indicate a number, as in `MAX_TOKENS`.
const NUMBER_WORDS: [&str; 9] =
    ["TOKENS", "MAX", "MIN", "LIMIT", "COUNT", "SIZE", "LENGTH", "TTL", "TIMEOUT"];

/// The words that indicate a path, as in `KEY_FILE`.
const PATH_WORDS: [&str; 5] = ["FILE", "PATH", "DIR", "DIRECTORY", "CREDENTIALS"];

/// The prefixes of an `Authorization` header's value.
pub(super) const SCHEMES: [&str; 6] =
    ["Bearer ", "bearer ", "Basic ", "Token ", "token ", "ApiKey "];

/// The placeholder for a secret in a displayed URL. No URL contains this character.
pub(super) const HIDDEN: &str = "…";

/// The shortest part that can be random, in characters. 20 random letters and digits have more than
/// 100 bits.
const RUN_MIN: usize = 20;

/// The shortest hexadecimal number that counts as a secret, in digits: 128 bits.
const HEX_MIN: usize = 32;

/// The smallest entropy of a random text, in bits per character, estimated from a short text.
const BITS_MIN: f64 = 3.5;

/// Splits a name into upper-case words, at each separator and before each capital letter.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for found in name.chars() {
        let is_border = !found.is_ascii_alphanumeric() || found.is_ascii_uppercase() && was_lower;
        if is_border && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if found.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(found.to_ascii_uppercase());
        }
        was_lower = found.is_ascii_lowercase();
    }
    words
}

/// Returns `true` if `name` is the name of a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET_WORDS.name_parts.iter().any(|part| upper.contains(part))
        || words(name).iter().any(|word| SECRET_WORDS.name_words.contains(word))
}

/// Returns `true` if `value`, called `name`, must not be written to a file.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    if value.trim().is_empty() {
        return false;
    }
    if looks_secret(value) {
        return true;
    }
    if !is_secret_name(name) {
        return false;
    }
    let words = words(name);
    let is_of = |kind: &[&str]| words.iter().any(|word| kind.contains(&word.as_str()));
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let is_path = value.starts_with(['/', '~', '.']) && value.contains('/');
    let is_switch = matches!(value, "true" | "false");
    !(is_switch || is_number && is_of(&NUMBER_WORDS) || is_path && is_of(&PATH_WORDS))
}

/// Returns `true` if a value looks like a secret, independent of its name.
pub(super) fn looks_secret(value: &str) -> bool {
    if SCHEMES.iter().any(|scheme| value.starts_with(scheme)) {
        return true;
    }
    let has_prefix = |part: &str| {
        // A prefix without at least eight more characters is not a token.
        SECRET_WORDS
            .token_prefixes
            .iter()
            .any(|prefix| part.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.len() >= 8))
    };
    let parts = value.split(|found: char| {
        found.is_whitespace()
            || matches!(found, '=' | ':' | ',' | ';' | '"' | '\'' | '/' | '&' | '?' | '@' | '|')
    });
    parts.into_iter().any(has_prefix)
        || value.starts_with("-----BEGIN")
        || has_password(value)
        || query_is_secret(value)
        || is_random(value)
}

/// Returns `true` if a text contains a URL with a user and a password.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let end = rest.find(['/', '?', '#', ' ']).unwrap_or(rest.len());
        // Passwords may contain an unescaped slash, although a URL does not permit it.
        let user = rest[..end].rsplit_once('@').or_else(|| rest.rsplit_once('@'));
        user.is_some_and(|(user, _)| user.split_once(':').is_some_and(|(_, word)| !word.is_empty()))
    })
}

/// Returns `true` if a text contains a URL whose query has a secret parameter.
fn query_is_secret(value: &str) -> bool {
    let query = value.split_once("://").and_then(|(_, rest)| rest.split_once('?'));
    query.is_some_and(|(_, query)| {
        query.split(['&', '#', ' ']).any(|pair| {
            pair.split_once('=')
                .is_some_and(|(name, value)| !matches!(value, "" | HIDDEN) && is_secret_name(name))
        })
    })
}

/// Returns `true` if a text has a part that looks randomly generated.
fn is_random(value: &str) -> bool {
    let is_part = |found: char| found.is_ascii_alphanumeric() || matches!(found, '_' | '-' | '+');
    let mut at = 0;
    value.split(|found: char| !is_part(found)).any(|part| {
        let before = &value[..at];
        at += part.len() + value[at + part.len()..].chars().next().map_or(0, char::len_utf8);
        // Digests and commit hashes, which pin a version, are not secrets.
        let is_pin =
            before.ends_with("sha256:") || before.ends_with("sha512:") || before.ends_with('@');
        !is_pin && part_is_random(part)
    })
}

fn part_is_random(part: &str) -> bool {
    let n_digits = part.bytes().filter(u8::is_ascii_digit).count();
    let solid = part.replace('-', "");
    let is_hex = solid.len() >= HEX_MIN
        && n_digits >= 6
        && solid.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex {
        return true;
    }
    let has = |is_kind: fn(&u8) -> bool| part.bytes().any(|byte| is_kind(&byte));
    part.len() >= RUN_MIN
        && n_digits >= 2
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && bits_per_character(part) >= BITS_MIN
}

/// Returns the Shannon entropy of the characters of `part`.
fn bits_per_character(part: &str) -> f64 {
    let mut counts = [0_u32; 256];
    part.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let n_bytes = part.len() as f64;
    let bits = |count: &u32| {
        let share = f64::from(*count) / n_bytes;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_detected_by_its_name() {
        for name in [
            "GITHUB_TOKEN",
            "apiKey",
            "X-API-Key",
            "Authorization",
            "DB_PASS",
            "githubPat",
            "clientSecret",
            "Cookie",
            "--api-key",
            "SENTRY_AUTH",
        ] {
            assert!(is_secret(name, "x"), "{name}");
        }
        for (name, value) in [
            ("LOG_LEVEL", "debug"),
            ("PATH", "/usr/bin"),
            ("PATTERN", "x"),
            ("MAX_TOKENS", "4000"),
            ("TOKEN", ""),
            ("KEY_FILE", "/run/secrets/key"),
            ("USE_TOKEN", "true"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/ada/key.json"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }

    #[test]
    fn a_secret_is_detected_by_its_form() {
        for value in [
            "ghp_abcdefgh12345678",
            "Bearer x",
            "postgres://ada:hunter2@db/shop",
            "postgres://ada:hun/ter2@db/shop",
            "https://host/mcp?api_key=1",
            "--key=sk-abcdefghij",
            "0123456789abcdef0123456789abcdef",
            "123e4567-e89b-12d3-a456-426614174000",
            "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY0",
            "-----BEGIN PRIVATE KEY-----\nx",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
        ] {
            assert!(looks_secret(value), "{value}");
        }
        for value in [
            "",
            "@modelcontextprotocol/server-filesystem@2025.1.14",
            "/srv/repositories/shop",
            "https://host/mcp?mode=fast",
            "postgres://db/shop",
            "http://localhost:8080/x",
            "/nix/store/3n58xw4373jp0ljirf06d8077j15pc4j-curl-8.5.0/bin/curl",
            "mcp/git@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "git+https://github.com/x/y@0123456789abcdef0123456789abcdef01234567",
            "sk-short",
            "--experimental-vm-modules",
        ] {
            assert!(!looks_secret(value), "{value}");
        }
    }
}
