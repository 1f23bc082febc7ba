//! The search for tools: `[search]`.

use hyper::Uri;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{
    SecretValue, defaults, diagnostic::ConfigProblem, keyword::NamedValue, schema,
    secret::REFERENCE_HELP, url,
};
use crate::search::RankingStrategy;

/// The settings of the search for tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchConfig {
    /// The ranking of tools.
    pub strategy: RankingStrategy,
    /// Groups of words and phrases that mean the same, in addition to the built-in groups.
    pub synonyms: Vec<Vec<String>>,
    /// The endpoint that makes vectors of texts; `None` is no endpoint.
    pub embedding: Option<EmbeddingConfig>,
}

/// An endpoint that makes vectors of texts, as in the OpenAI API.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingConfig {
    /// The URL of the endpoint.
    pub url: Uri,
    /// The model to request.
    pub model: String,
    /// The bearer token to send: always a reference.
    pub api_key: Option<SecretValue>,
}

/// [`SearchConfig`] as written in the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(super) struct SearchTable {
    /// The ranking of tools.
    #[schemars(with = "RankingStrategy", extend("default" = "hybrid"))]
    strategy: Option<NamedValue<RankingStrategy>>,
    /// Groups of words or phrases that mean the same on this host: `[["deploy", "roll out"]]`.
    #[schemars(with = "Vec<schema::Synonyms>", length(max = defaults::SYNONYM_GROUPS_MAX), extend("default" = []))]
    synonyms: Option<Spanned<Vec<Group>>>,
    /// An endpoint, as in the OpenAI API, that makes vectors of texts; without it, there are none.
    #[schemars(with = "EmbeddingTable")]
    embedding: Option<Spanned<EmbeddingTable>>,
}

/// One group of synonyms, and the place of each synonym.
type Group = Spanned<Vec<Spanned<String>>>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, extend("required" = ["url", "model"]))]
struct EmbeddingTable {
    /// The URL of the endpoint, as in `http://HOST:PORT/v1/embeddings`.
    #[schemars(with = "Option<String>", regex(pattern = schema::URL))]
    url: Option<Spanned<String>>,
    /// The model to request.
    #[schemars(with = "Option<String>", length(min = 1))]
    model: Option<Spanned<String>>,
    /// `credential:NAME` or `env:NAME` with the key to send.
    #[schemars(with = "Option<String>", regex(pattern = "^(credential:[^./][^/]*|env:.*)$"))]
    api_key: Option<Spanned<String>>,
}

/// The help that shows how to write the URL of an embedding endpoint.
const EXAMPLE: &str = "write it as `http://HOST:PORT/v1/embeddings`";

impl SearchTable {
    pub(super) fn checked(self) -> Result<SearchConfig, ConfigProblem> {
        Ok(SearchConfig {
            strategy: self.strategy.map(|found| found.0).unwrap_or_default(),
            synonyms: self.synonyms.map(synonyms).transpose()?.unwrap_or_default(),
            embedding: self.embedding.map(embedding).transpose()?,
        })
    }
}

fn synonyms(found: Spanned<Vec<Group>>) -> Result<Vec<Vec<String>>, ConfigProblem> {
    let groups_max = defaults::SYNONYM_GROUPS_MAX;
    if found.get_ref().len() > groups_max {
        let message = format!("{} groups of synonyms", found.get_ref().len());
        return Err(ConfigProblem::at(found.span(), message)
            .help(format!("use {groups_max} groups or less")));
    }
    found.into_inner().into_iter().map(group).collect()
}

fn group(found: Group) -> Result<Vec<String>, ConfigProblem> {
    let words_max = defaults::SYNONYMS_IN_GROUP_MAX;
    if !(2..=words_max).contains(&found.get_ref().len()) {
        let message = format!("`synonyms` has a group of {}", found.get_ref().len());
        return Err(ConfigProblem::at(found.span(), message)
            .help(format!("write 2 to {words_max} words or phrases that mean the same")));
    }
    let word = |word: Spanned<String>| {
        let text = word.get_ref();
        let is_word = text.chars().any(char::is_alphanumeric);
        if is_word && text.len() <= defaults::SYNONYM_BYTES_MAX {
            return Ok(word.into_inner());
        }
        let message = if is_word {
            format!("a synonym of {} bytes", text.len())
        } else {
            format!("`{}` has no letter and no digit", text.escape_debug())
        };
        Err(ConfigProblem::at(word.span(), message).help(format!(
            "write a word or a phrase of at most {} bytes",
            defaults::SYNONYM_BYTES_MAX
        )))
    };
    found.into_inner().into_iter().map(word).collect()
}

fn embedding(table: Spanned<EmbeddingTable>) -> Result<EmbeddingConfig, ConfigProblem> {
    let place = table.span();
    let EmbeddingTable { url, model, api_key } = table.into_inner();
    let missing = |key: &str, help: &str| {
        ConfigProblem::at(place.clone(), format!("`search.embedding` has no `{key}`")).help(help)
    };
    let url = url::parse_http(&url.ok_or_else(|| missing("url", EXAMPLE))?, EXAMPLE)?;
    let help = "add `model = \"NAME\"`, as the endpoint calls it";
    let model = model.ok_or_else(|| missing("model", help))?;
    if model.get_ref().trim().is_empty() {
        return Err(ConfigProblem::at(model.span(), "`model` is empty").help(help));
    }
    let api_key = api_key.map(api_key_of).transpose()?;
    Ok(EmbeddingConfig { url, model: model.into_inner(), api_key })
}

fn api_key_of(found: Spanned<String>) -> Result<SecretValue, ConfigProblem> {
    let place = found.span();
    match SecretValue::checked(found)? {
        // Not shown: it may be the key.
        SecretValue::Literal(_) => {
            Err(ConfigProblem::at(place, "`api_key` is not a reference").help(REFERENCE_HELP))
        }
        reference => Ok(reference),
    }
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
        assert_eq!(embedding.api_key, Some(SecretValue::Credential("embedding-key".into())));
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
