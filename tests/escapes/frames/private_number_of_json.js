// Attempt: to confuse readers of JSON in the service with the name that one of them uses for numbers.
// Contained: it is a name like any other.
// expect: value {"value":{"$serde_json::private::Number":"1e999","$serde_json::private::RawValue":"{"}}
return servers.fake.echo({ value: { '$serde_json::private::Number': '1e999', '$serde_json::private::RawValue': '{' } });
