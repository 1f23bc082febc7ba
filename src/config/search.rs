//! The search for tools: `[search]`.

use hyper::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{
    SecretReference, defaults, diagnostic::ConfigProblem, key_places::KeyPlaces,
    keyword::NamedValue, refusal::Refusal, secret, secret_reference, url,
};
use crate::search::RankingStrategy;

/// The settings of the search for tools.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SearchConfig {
    /// The ranking of tools.
    #[serde(deserialize_with = "NamedValue::deserialize")]
    pub strategy: RankingStrategy,
    /// Groups of words or phrases that mean the same on this host: `[["deploy", "roll out"]]`.
    #[schemars(
        length(max = defaults::SYNONYM_GROUPS_MAX),
        inner(
            length(min = 2, max = defaults::SYNONYMS_IN_GROUP_MAX),
            inner(length(min = 1, max = defaults::SYNONYM_BYTES_MAX))
        )
    )]
    pub synonyms: Vec<Vec<String>>,
    /// An endpoint, as in the OpenAI API, that makes vectors of texts. Without it,
    /// metamcp asks no endpoint.
    #[schemars(with = "EmbeddingTable")]
    pub embedding: Option<EmbeddingConfig>,
}

/// An endpoint that makes vectors of texts, as in the OpenAI API.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "EmbeddingTable")]
pub struct EmbeddingConfig {
    /// The URL of the endpoint.
    pub url: Uri,
    /// The model to request.
    pub model: String,
    /// The bearer token to send: always a reference.
    pub api_key: Option<SecretReference>,
}

/// [`EmbeddingConfig`] as written in the file, because a missing key has its own remedy.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["url", "model"]))]
struct EmbeddingTable {
    /// The URL of the endpoint, as in `http://HOST:PORT/v1/embeddings`.
    #[serde(deserialize_with = "endpoint")]
    #[schemars(with = "String", title = url::TITLE, regex(pattern = url::PATTERN))]
    url: Option<Uri>,
    /// The model to request.
    #[serde(deserialize_with = "model")]
    #[schemars(with = "String", length(min = 1))]
    model: Option<String>,
    /// `credential:NAME` or `env:NAME` with the key to send.
    #[schemars(with = "String", title = secret::REFERENCE, regex(pattern = secret_reference::PATTERN))]
    api_key: Option<SecretReference>,
}

/// The help that shows how to write the URL of an embedding endpoint.
const EXAMPLE: &str = "write it as `http://HOST:PORT/v1/embeddings`";

/// The help that shows how to write the model.
const MODEL: &str = "add `model = \"NAME\"`, as the endpoint calls it";

fn endpoint<'de, D: Deserializer<'de>>(found: D) -> Result<Option<Uri>, D::Error> {
    url::parse_http(&String::deserialize(found)?, EXAMPLE).map(Some).map_err(D::Error::custom)
}

fn model<'de, D: Deserializer<'de>>(found: D) -> Result<Option<String>, D::Error> {
    let model = String::deserialize(found)?;
    if model.trim().is_empty() {
        return Err(D::Error::custom(Refusal::new("`model` is empty", MODEL)));
    }
    Ok(Some(model))
}

impl TryFrom<EmbeddingTable> for EmbeddingConfig {
    type Error = Refusal;

    fn try_from(table: EmbeddingTable) -> Result<Self, Refusal> {
        let missing = |key: &'static str, help: &'static str| {
            move || Refusal::new(format!("`search.embedding` has no `{key}`"), help)
        };
        let EmbeddingTable { url, model, api_key } = table;
        let url = url.ok_or_else(missing("url", EXAMPLE))?;
        Ok(Self { url, model: model.ok_or_else(missing("model", MODEL))?, api_key })
    }
}

impl SearchConfig {
    /// Checks the groups of synonyms.
    pub(super) fn check(&self, places: &KeyPlaces<'_>) -> Result<(), ConfigProblem> {
        let refused =
            |indices: &[usize], refusal| places.refused("search.synonyms", indices, refusal);
        let groups_max = defaults::SYNONYM_GROUPS_MAX;
        if self.synonyms.len() > groups_max {
            let message = format!("{} groups of synonyms", self.synonyms.len());
            let help = format!("use {groups_max} groups or less");
            return Err(refused(&[], Refusal::new(message, help)));
        }
        for (index, group) in self.synonyms.iter().enumerate() {
            check_group(group).map_err(|refusal| refused(&[index], refusal))?;
            for (place, word) in group.iter().enumerate() {
                check_synonym(word).map_err(|refusal| refused(&[index, place], refusal))?;
            }
        }
        Ok(())
    }
}

fn check_group(group: &[String]) -> Result<(), Refusal> {
    let words_max = defaults::SYNONYMS_IN_GROUP_MAX;
    if (2..=words_max).contains(&group.len()) {
        return Ok(());
    }
    let message = format!("`synonyms` has a group of {}", group.len());
    Err(Refusal::new(
        message,
        format!("write 2 to {words_max} words or phrases that mean the same"),
    ))
}

fn check_synonym(text: &str) -> Result<(), Refusal> {
    let bytes_max = defaults::SYNONYM_BYTES_MAX;
    let message = match text.chars().any(char::is_alphanumeric) {
        true if text.len() <= bytes_max => return Ok(()),
        true => format!("a synonym of {} bytes", text.len()),
        false => format!("`{}` has no letter and no digit", text.escape_debug()),
    };
    Err(Refusal::new(message, format!("write a word or a phrase of at most {bytes_max} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::{bad, good};

    #[test]
    fn every_key_of_the_search_is_read() {
        assert_eq!(good("").search, SearchConfig::default());
        assert_eq!(good("[search]\n").search.strategy, RankingStrategy::Hybrid);
        for (word, strategy) in [
            ("keyword", RankingStrategy::Keyword),
            ("bm25", RankingStrategy::Bm25),
            ("hybrid", RankingStrategy::Hybrid),
        ] {
            let text = format!("[search]\nstrategy = {word:?}\n");
            assert_eq!(good(&text).search.strategy, strategy);
        }
        let text = r#"
            [search]
            synonyms = [["deploy", "roll out"], ["ticket", "issue", "case"]]
            [search.embedding]
            url = "http://127.0.0.1:8080/v1/embeddings"
            model = "all-minilm-l6-v2"
            api_key = "credential:embedding-key"
        "#;
        let search = good(text).search;
        assert_eq!(search.synonyms[0], ["deploy", "roll out"]);
        assert_eq!(search.synonyms[1].len(), 3);
        let embedding = search.embedding.expect("declared");
        assert_eq!(embedding.url, "http://127.0.0.1:8080/v1/embeddings");
        assert_eq!(embedding.model, "all-minilm-l6-v2");
        let key = embedding.api_key.as_ref().map(ToString::to_string);
        assert_eq!(key.as_deref(), Some("credential:embedding-key"));
        let text = "[search.embedding]\nurl = \"https://h/v1/embeddings\"\nmodel = \"m\"\n";
        assert_eq!(good(text).search.embedding.expect("declared").api_key, None);
    }

    #[test]
    // One snapshot for each mistake: a table, however long.
    fn a_meaningless_search_setting_is_refused_with_the_remedy() {
        insta::assert_snapshot!(bad("[search]\nstrategy = \"bm52\"\n"), @r#"
        unknown value `bm52`
         --> c.toml:2:12
          |
        2 | strategy = "bm52"
          |            ^^^^^^
          = help: did you mean `bm25`?
        "#);
        insta::assert_snapshot!(bad("[search]\nsynonyms = [[\"deploy\"]]\n"), @r#"
        `synonyms` has a group of 1
         --> c.toml:2:13
          |
        2 | synonyms = [["deploy"]]
          |             ^^^^^^^^^^
          = help: write 2 to 16 words or phrases that mean the same
        "#);
        insta::assert_snapshot!(bad("[search]\nsynonyms = [[\"deploy\", \"-\"]]\n"), @r#"
        `-` has no letter and no digit
         --> c.toml:2:24
          |
        2 | synonyms = [["deploy", "-"]]
          |                        ^^^
          = help: write a word or a phrase of at most 64 bytes
        "#);
        insta::assert_snapshot!(bad("[search]\nsynonyms = [\"deploy\", \"ship\"]\n"), @r#"
        invalid type: string "deploy", expected a list
         --> c.toml:2:13
          |
        2 | synonyms = ["deploy", "ship"]
          |             ^^^^^^^^
          = help: write a list, as in ["one", "two"]
        "#);
        insta::assert_snapshot!(bad("[search.embedding]\nmodel = \"m\"\n"), @"
        `search.embedding` has no `url`
         --> c.toml:1:1
          |
        1 | [search.embedding]
          | ^^^^^^^^^^^^^^^^^^
          = help: write it as `http://HOST:PORT/v1/embeddings`
        ");
        insta::assert_snapshot!(bad("[search.embedding]\nurl = \"http://h/\"\n"), @r#"
        `search.embedding` has no `model`
         --> c.toml:1:1
          |
        1 | [search.embedding]
          | ^^^^^^^^^^^^^^^^^^
          = help: add `model = "NAME"`, as the endpoint calls it
        "#);
        insta::assert_snapshot!(bad("[search.embedding]\nurl = \"ftp://h/\"\nmodel = \"m\"\n"), @r#"
        `ftp://h/` is not an http URL
         --> c.toml:2:7
          |
        2 | url = "ftp://h/"
          |       ^^^^^^^^^^
          = help: write it as `http://HOST:PORT/v1/embeddings`
        "#);
        let long = "x".repeat(65);
        assert!(bad(&format!("[search]\nsynonyms = [[\"a\", {long:?}]]\n")).contains("65 bytes"));
        let many = "[\"a\", \"b\"],".repeat(257);
        assert!(bad(&format!("[search]\nsynonyms = [{many}]\n")).contains("257 groups"));
        let large = "\"a\",".repeat(17);
        assert!(bad(&format!("[search]\nsynonyms = [[{large}]]\n")).contains("a group of 17"));
        let empty = "[search.embedding]\nurl = \"http://h/\"\nmodel = \" \"\n";
        assert!(bad(empty).contains("`model` is empty"));
    }

    #[test]
    fn a_key_in_the_file_is_refused_and_not_shown() {
        let text =
            "[search.embedding]\nurl = \"http://h/\"\nmodel = \"m\"\napi_key = \"sk-0123456789\"\n";
        let shown = bad(text);
        assert!(shown.contains("`api_key` is not a reference"), "{shown}");
        assert!(!shown.contains("0123456789"), "{shown}");
        let leaving = text.replace("sk-0123456789", "credential:../k");
        assert!(bad(&leaving).contains("is not a credential name"));
    }
}
