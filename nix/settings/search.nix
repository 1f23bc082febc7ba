# [search]: the search for tools.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; })
    credentialOrEnv
    listBetween
    textUpTo
    url
    ;
in
{
  strategy = mkOption {
    type = types.enum [
      "keyword"
      "bm25"
      "hybrid"
    ];
    default = "hybrid";
    example = "bm25";
    description = ''
      The ranking of tools: by the words of the query (`keyword`), also
      by their rarity (`bm25`), also by their meaning (`hybrid`).
    '';
  };
  synonyms = mkOption {
    type = listBetween 0 256 (listBetween 2 16 (textUpTo 64));
    default = [ ];
    example = [
      [
        "deploy"
        "roll out"
      ]
    ];
    description = "Groups of words or phrases that mean the same on this host.";
  };
  embedding = mkOption {
    type = types.nullOr (
      types.submodule {
        options = {
          url = mkOption {
            type = url;
            example = "http://127.0.0.1:8080/v1/embeddings";
            description = "The URL of the endpoint, as in `http://HOST:PORT/v1/embeddings`.";
          };
          model = mkOption {
            type = types.nonEmptyStr;
            example = "all-minilm-l6-v2";
            description = "The model to request.";
          };
          api_key = mkOption {
            type = types.nullOr credentialOrEnv;
            default = null;
            example = "credential:embedding-key";
            description = "The key to send: `credential:NAME` for an entry of {option}`services.metamcp.credentials`, or `env:NAME` for a variable of the service.";
          };
        };
      }
    );
    default = null;
    example = {
      url = "http://127.0.0.1:8080/v1/embeddings";
      model = "all-minilm-l6-v2";
    };
    description = "An endpoint, as in the OpenAI API, that makes vectors of texts. metamcp uses it to find tools by their meaning. If `null`, metamcp asks no endpoint.";
  };
}
