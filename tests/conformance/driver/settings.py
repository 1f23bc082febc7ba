"""The configuration of the server that an operator writes for a scenario."""

from runner import legs

from . import modern

# The document that the suite knows as its client.
CLIENT_METADATA_URL = "https://conformance-test.local/client-metadata.json"
# The name of the credential with the secret of a registered client.
SECRET = "client-secret"
# The scenario whose server has room for one call of all its sessions. It answers the call on the stream that
# any session opens meanwhile, so that metamcp must have one session with it.
ONE_SESSION = "sse-retry"


def server(url, era, version, scenario, context):
    """Returns the table of the server."""
    table = {"url": url, **sharing(era, version, scenario)}
    if scenario == "auth/basic-cimd":
        table["auth"] = {"client_metadata_url": CLIENT_METADATA_URL}
    elif "client_secret" in context:
        table["auth"] = {"client_id": context["client_id"], "client_secret": f"credential:{SECRET}"}
        if scenario.startswith("auth/client-credentials"):
            table["auth"]["grant"] = "client_credentials"
    return table


def credentials(context):
    """Returns the secrets of a scenario, by the names of their files."""
    return {SECRET: context["client_secret"]} if "client_secret" in context else {}


def sharing(era, version, scenario):
    """Returns the declared sharing of the server, so that it can send requests to its client."""
    if version == modern.VERSION or scenario == ONE_SESSION:
        return legs.SHARED
    # A legacy server sends requests outside of answers. Without a session, a client only has its request.
    return legs.SESSION if era == "legacy" else legs.EXCLUSIVE
