# Compares the options of services.metamcp.settings with `metamcp schema`. Both have the
# same keys, with the same defaults and the same accepted values.
#
#   metamcp schema | jq --arg part probes --argjson options null -f schema.jq
#     prints the values to try: those at the limits of the schema, and others
#   metamcp schema | jq -r --arg part differences --slurpfile options FILE -f schema.jq
#     prints one line per difference; FILE is the output of option-tree.nix for these values

# Options that are null by default, because the program's default depends on other keys.
def without_default: [
  "health.interval",                  # 20s for a server with `url`
  "servers.*.health.failures",        # these six have the values of [health]
  "servers.*.health.interval",
  "servers.*.health.timeout",
  "provision.servers.*.health.failures",
  "provision.servers.*.health.interval",
  "provision.servers.*.health.timeout"
];

# Options with a different default in the module.
def own_default: [
  "listen.control",                   # metamcp-control.socket listens there
  "listen.control_group",             # the module declares this group
  "provision.enabled"                 # depends on `servers` and `registry`
];

# Options with a single value, which need no example.
def single_value: ["provision.servers.*.start"];

# Every key below a table, with its path, and whether it is required.
def keys_below($path):
  (
    [., .anyOf[]?][] | select(.properties) | .required as $required
    | .properties | to_entries[] | .key as $key | ($path + [$key]) as $there
    | {
        path: ($there | join(".")),
        schema: .value,
        required: any($required[]?; . == $key),
        # A table of fixed keys may be more than one option.
        is_table: (.value | has("properties"))
      },
      (.value | keys_below($there))
  ),
  (.additionalProperties | objects | keys_below($path + ["*"]));

# True if a schema accepts a value.
def accepts($value):
  ($value | type) as $type
  | . as $schema
  | if has("const") then .const == $value
    elif has("oneOf") and (has("properties") | not) then any(.oneOf[]; accepts($value))
    elif has("anyOf") then any(.anyOf[]; accepts($value))
    elif .type == "string" then
      $type == "string"
      and (.pattern as $pattern | $pattern == null or ($value | test($pattern)))
      and ($value | length) >= (.minLength // 0)
      and ($value | length) <= (.maxLength // infinite)
    elif .type == "integer" or .type == "number" then
      $type == "number" and $value >= (.minimum // -infinite) and $value <= (.maximum // infinite)
      and (.type == "number" or ($value | floor) == $value)
    elif .type == "array" then
      $type == "array" and ($value | length) >= (.minItems // 0)
      and ($value | length) <= (.maxItems // infinite)
      and all($value[]; . as $item | $schema.items | accepts($item))
    elif .type == "object" then
      $type == "object"
      and all(.required[]?; . as $key | $value | has($key))
      and all(
        $value | to_entries[];
        . as $entry
        | ($schema.properties // {})[.key] // $schema.additionalProperties
        | type == "object" and accepts($entry.value)
      )
    else .type == $type
    end;

def milliseconds:
  {ms: 1, s: 1000, m: 60000, h: 3600000} as $units
  | capture("^(?<count>[0-9]+)(?<unit>ms|s|m|h)$") | (.count | tonumber) * $units[.unit];
# A default for the comparison: a duration in milliseconds.
def plain: if type == "string" then (milliseconds // .) else . end;

def repeated($text; $count): reduce range($count) as $_ (""; . + $text);

def probes:
  (
    [.. | objects | .minimum, .maximum | numbers | ., . - 1, . + 1]
    + [.. | objects | .minLength, .maxLength | numbers | ., . + 1 | repeated("a"; .)]
    # Not `/` and `//`, which are the root of the file system.
    + [.. | objects | select(.type == "string") | .maxLength | numbers | . - 1, . | "/" + repeated("a"; .)]
    + [.. | objects | .const, .default | select(. != null)]
    + [.. | objects | .minItems, .maxItems | numbers | ., . + 1 | [range(.) | "a"], [range(.) | ["a", "b"]], [[range(.) | "a"]]]
    + ["0ms", "00s", "0h", "1ms", "01s", "59s", "60s", "61s", "59999ms", "60000ms", "60001ms", "1m", "2m", "61m"]
    + ["24h", "25h", "1440m", "1441m", "86400s", "86401s", "86400000ms", "86400001ms", "99999999999h"]
    + ["1", "1d", "-1s", "1.5s", " 1s", "1s ", "1 s", "1S"]
    + ["", "a", "A-_.9", "-a", ".a", "a b", "a/b", "a:b", "a@b", "a//b", "@a/b", "a/", "@a/*", "*", "a/*"]
    + ["/a", "a/../b", "off", "Off", "credential:a", "credential:", "credential:.a", "credential:a/b"]
    + ["env:A", "env:", "http://a", "http://", "https://a", "HTTP://a", "ftp://a", "a://b:1", "a://b/", "::1"]
    + ["127.0.0.1:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:123456", "localhost:1", "[::1]:12011", "[::ffff:1.2.3.4]:1", "::1:1"]
    + ["direct", "meta", "passthrough:a", "passthrough:", "passthrough", "Direct"]
    + [true, false, 0.5, 1.5, 1e3]
    + [[], [""], ["a b"], ["a:1"], ["::1"], ["http://a"], ["http://a/"], ["a://b:1"], ["@a/*"], ["a/b"], ["a//b"], ["*"], [1], [[]], [["a"]], [["a", ""]]]
    + [{}, {a: "b"}, {a: 1}, {a: {}}, {mode: "keep-alive"}, {mode: "ephemeral", idle_timeout: "1h"}]
    + [{mode: "keep-alive", idle_timeout: "0s"}, {mode: "for ever"}, {certificate: "credential:a", key: "credential:b"}, {url: "http://a"}, {url: "http://a", model: "b"}]
  ) | unique;

def differences:
  [keys_below([])] as $keys
  | ($options[0] | map(.path |= join("."))) as $options
  | ($keys | map(.path)) as $known
  | ($options | map({key: .path, value: .}) | from_entries) as $option
  | (
      $options[] | select(.path as $path | any($known[]; . == $path) | not)
      | "\(.path) is an option but not a key of the program: remove it from nix/settings.nix or nix/server-details.nix"
    ),
    (
      $keys[] | . as $key | $option[.path] as $option
      | if $option == null then
          if .is_table then empty
          else "\(.path) is a key of the program but not an option: write nix/schema.json again"
          end
        else
          (
            if .required and $option.hasDefault then
              "\(.path) is required, but the option has the default \($option.default)"
            elif (.required | not) and ($option.hasDefault | not) then
              "\(.path) is not required, but the option has no default"
            elif any(own_default[]; . == $key.path) then
              empty
            elif $option.default == null then
              if .schema.default != null and (any(without_default[]; . == $key.path) | not) then
                "\(.path) is \(.schema.default) by default, but the option is null"
              else empty
              end
            elif (.schema.default // ($option.default | arrays, objects | select(length == 0)) | plain)
              != ($option.default | plain) then
              "\(.path) is \(.schema.default) by default, but the option is \($option.default)"
            else empty
            end
          ),
          (
            if $option.hasDescription | not then "\(.path) has no description"
            elif $option.isExampleRight | not then "\(.path) does not accept its own example"
            elif $option.hasExample or any(single_value[]; . == $key.path) then empty
            else "\(.path) has no example"
            end
          ),
          (
            $option.accepted[] | select(. != null) | . as $value
            | select($key.schema | accepts($value) | not)
            | "\($key.path) does not accept \($value | tojson), but the option does"
          ),
          (
            $option.refused[] | select(. != null) | . as $value
            | select($key.schema | accepts($value))
            | "\($key.path) accepts \($value | tojson), but the option does not"
          )
        end
    );

if $part == "probes" then probes else differences end
