"""What to call a tool with, and what to answer when it asks."""

CAPABILITIES = {"elicitation": {}, "roots": {}, "sampling": {}}


def to_question(method, params):
    """The answer to a question of a server: yes, with whatever fits."""
    match method:
        case "elicitation/create":
            schema = params.get("requestedSchema", {})
            return {"action": "accept", "content": sample(schema)}
        case "sampling/createMessage":
            content = {"type": "text", "text": "Paris"}
            return {"role": "assistant", "model": "driver", "content": content}
        case "roots/list":
            return {"roots": [{"uri": "file:///srv/driver"}]}
    raise ValueError(f"no server asks {method}")


def arguments_for(tool, tools):
    """Arguments for a tool, all that its schema names."""
    schema = tool["inputSchema"]
    if "schema" in schema.get("properties", {}):
        # It wants to see the schema of its neighbour as that came to us.
        return {"schema": next(other["inputSchema"] for other in tools if other is not tool)}
    return sample(schema)


def sample(schema):
    """A value for a schema: its default, where it has one."""
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    if kind == "object":
        return {name: sample(of) for name, of in schema.get("properties", {}).items()}
    values = {"array": [], "boolean": True, "integer": 5, "null": None, "number": 2.5}
    return values.get(kind, "us-west1")
