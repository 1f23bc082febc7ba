"""The detection of the SDK of an installed server."""

import json
import re

# The name for the table by package. The first match is the closest to the server.
_NPM = {
    "tmcp": "tmcp",
    "fastmcp": "FastMCP for TypeScript",
    "@mastra/mcp": "Mastra",
    "@modelcontextprotocol/server": "TypeScript",
    "@modelcontextprotocol/sdk": "TypeScript",
}
_PYPI = {"fastmcp": "FastMCP", "fastmcp_slim": "FastMCP", "mcp": "Python"}


def of(server, directory):
    """Returns the SDK and its version, as far as the installation shows them."""
    if server.sdk:
        return server.sdk
    if server.npm:
        modules = directory / "node_modules"
        own = modules / server.npm.rpartition("@")[0] / "package.json"
        needs = json.loads(own.read_text()).get("dependencies", {})
        # A direct dependency is a better indication than an installed package.
        for candidates in ([name for name in _NPM if name in needs], _NPM):
            for package in candidates:
                for place in (own.parent / "node_modules", modules):
                    if (found := place / package / "package.json").exists():
                        return f"{_NPM[package]} {json.loads(found.read_text())['version']}"
        return ""
    wanted = _PYPI if _needs_fastmcp(server, directory) else {"mcp": "Python"}
    for package, name in wanted.items():
        for found in directory.glob(f"lib/python3.*/site-packages/{package}-*.dist-info"):
            return f"{name} {found.name.removesuffix('.dist-info').partition('-')[2]}"
    return ""


def _needs_fastmcp(server, directory):
    name = re.sub(r"[-_.]+", "_", server.pypi.partition("==")[0]).lower()
    if name == "fastmcp":
        return True
    for metadata in directory.glob("lib/python3.*/site-packages/*.dist-info/METADATA"):
        if metadata.parent.name.lower().startswith(f"{name}-"):
            return bool(re.search(r"(?mi)^Requires-Dist: fastmcp", metadata.read_text(errors="replace")))
    return False
