# [search]: how tools are found.
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
      How tools are found: by the words of the query (`keyword`), also
      by how rare they are (`bm25`), also by what they mean
      (`hybrid`).
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
    description = "Groups of words or phrases that mean the same here.";
  };
  embedding = mkOption {
    type = types.nullOr (
      types.submodule {
        options = {
          url = mkOption {
            type = url;
            example = "http://127.0.0.1:8080/v1/embeddings";
            description = "Endpoint that makes vectors of texts, as the OpenAI API has it.";
          };
          model = mkOption {
            type = types.nonEmptyStr;
            example = "all-minilm-l6-v2";
            description = "Model to ask it for.";
          };
          api_key = mkOption {
            type = types.nullOr credentialOrEnv;
            default = null;
            example = "credential:embedding-key";
            description = "Entry of {option}`services.metamcp.credentials` with its key.";
          };
        };
      }
    );
    default = null;
    example = {
      url = "http://127.0.0.1:8080/v1/embeddings";
      model = "all-minilm-l6-v2";
    };
    description = "Who helps to find tools by what they mean; nobody if `null`.";
  };
}
