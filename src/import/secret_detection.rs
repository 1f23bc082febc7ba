//! What is taken for a secret: rather too much than too little.
//!
//! Pure.

/// Parts of a name that say so. The first five are those that the NixOS module looks for.
const IN_NAMES: [&str; 12] = [
    "AUTHORIZATION",
    "KEY",
    "PASSWORD",
    "SECRET",
    "TOKEN",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "COOKIE",
    "PRIVATE",
    "BEARER",
    "SIGNATURE",
];

/// Whole words of a name that say so.
const WORDS: [&str; 9] = ["AUTH", "PAT", "PASS", "PW", "PWD", "PIN", "DSN", "JWT", "OTP"];

/// Whole words that say that a number is meant, as in `MAX_TOKENS`.
const OF_NUMBERS: [&str; 9] =
    ["TOKENS", "MAX", "MIN", "LIMIT", "COUNT", "SIZE", "LENGTH", "TTL", "TIMEOUT"];

/// Whole words that say that a path is meant, as in `KEY_FILE`.
const OF_PATHS: [&str; 5] = ["FILE", "PATH", "DIR", "DIRECTORY", "CREDENTIALS"];

/// How tokens begin that are given out by whom they are for.
/// Ours: beginnings that those who give tokens out are known by.
const BEGINNINGS: [&str; 48] = [
    "sk-",
    "sk_",
    "rk_",
    "pk_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "dop_v1_",
    "shpat_",
    "shpss_",
    "SG.",
    "lin_api_",
    "ntn_",
    "secret_",
    "figd_",
    "tvly-",
    "pplx-",
    "gsk_",
    "r8_",
    "ATATT",
    "PMAK-",
    "nvapi-",
    "sbp_",
    "vercel_",
    "xai-",
    "-----BEGIN",
];

/// How the value of an `Authorization` header begins.
pub(super) const SCHEMES: [&str; 6] =
    ["Bearer ", "bearer ", "Basic ", "Token ", "token ", "ApiKey "];

/// What stands for a secret in a URL that is shown. No URL has such a character.
pub(super) const HIDDEN: &str = "…";

/// The shortest run of characters that can be random enough, in characters. Ours: 20 letters and
/// digits hold more than 100 bits.
const RUN_MIN: usize = 20;

/// The shortest hexadecimal number that is taken for a secret, in digits. Ours: 128 bits.
const HEX_MIN: usize = 32;

/// How many bits a character of a random text has at least, as far as such a short text tells.
const BITS_MIN: f64 = 3.5;

/// Splits a name into its words, upper case: at what is no letter or digit, and before a capital.
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

/// Tells whether what is called `name` is a secret by its name.
pub(super) fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    IN_NAMES.iter().any(|part| upper.contains(part))
        || words(name).iter().any(|word| WORDS.contains(&word.as_str()))
}

/// Tells whether `value`, which is called `name`, is to be kept out of a file.
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
    !(is_switch || is_number && is_of(&OF_NUMBERS) || is_path && is_of(&OF_PATHS))
}

/// Tells whether a value is a secret by what it looks like, whatever it is called.
pub(super) fn looks_secret(value: &str) -> bool {
    if SCHEMES.iter().any(|scheme| value.starts_with(scheme)) {
        return true;
    }
    let has_beginning = |part: &str| {
        // Of one that is no longer, nothing is left to be guessed.
        BEGINNINGS
            .iter()
            .any(|beginning| part.strip_prefix(beginning).is_some_and(|rest| rest.len() >= 8))
    };
    let parts = value.split(|found: char| {
        found.is_whitespace()
            || matches!(found, '=' | ':' | ',' | ';' | '"' | '\'' | '/' | '&' | '?' | '@' | '|')
    });
    parts.into_iter().any(has_beginning)
        || value.starts_with("-----BEGIN")
        || has_password(value)
        || query_is_secret(value)
        || is_random(value)
}

/// Tells whether a text has a URL in it that names a user with a password.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let end = rest.find(['/', '?', '#', ' ']).unwrap_or(rest.len());
        // A password may have a slash, which a URL then must not have; people write it all the same.
        let user = rest[..end].rsplit_once('@').or_else(|| rest.rsplit_once('@'));
        user.is_some_and(|(user, _)| user.split_once(':').is_some_and(|(_, word)| !word.is_empty()))
    })
}

/// Tells whether a text has a URL in it whose query names a secret.
fn query_is_secret(value: &str) -> bool {
    let query = value.split_once("://").and_then(|(_, rest)| rest.split_once('?'));
    query.is_some_and(|(_, query)| {
        query.split(['&', '#', ' ']).any(|pair| {
            pair.split_once('=')
                .is_some_and(|(name, value)| !matches!(value, "" | HIDDEN) && is_secret_name(name))
        })
    })
}

/// Tells whether a text has a part that looks as if a machine had thrown dice for it.
fn is_random(value: &str) -> bool {
    let is_part = |found: char| found.is_ascii_alphanumeric() || matches!(found, '_' | '-' | '+');
    let mut at = 0;
    value.split(|found: char| !is_part(found)).any(|part| {
        let before = &value[..at];
        at += part.len() + value[at + part.len()..].chars().next().map_or(0, char::len_utf8);
        // Digests and commits, which pin what is run, are no secrets.
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

/// Returns Shannon's entropy of the characters of `part`.
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
    fn a_secret_is_known_by_its_name() {
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
    fn a_secret_is_known_by_what_it_looks_like() {
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
