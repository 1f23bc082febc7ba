"""Arguments for tools, and answers to the requests of servers."""

CAPABILITIES = {"elicitation": {}, "roots": {}, "sampling": {}}


def to_question(method, params):
    """Returns the answer to a request of a server: yes, with values that fit its schema."""
    match method:
        case "elicitation/create":
            schema = params.get("requestedSchema", {})
            return {"action": "accept", "content": sample(schema)}
        case "sampling/createMessage":
            content = {"type": "text", "text": "Paris"}
            return {"role": "assistant", "model": "driver", "content": content}
        case "roots/list":
            return {"roots": [{"uri": "file:///srv/driver"}]}
    raise ValueError(f"no answer for the request {method}")


def arguments_for(tool, tools):
    """Returns arguments for a tool: all that its schema names."""
    schema = tool["inputSchema"]
    if "schema" in schema.get("properties", {}):
        # This tool checks the schema of another tool, as the client received it.
        return {"schema": next(other["inputSchema"] for other in tools if other is not tool)}
    return sample(schema)


def sample(schema):
    """Returns a value for a schema: its default, if it has one."""
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    if kind == "object":
        return {name: sample(of) for name, of in schema.get("properties", {}).items()}
    values = {"array": [], "boolean": True, "integer": 5, "null": None, "number": 2.5}
    return values.get(kind, "us-west1")
