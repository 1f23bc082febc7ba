"""A FastMCP server with features that few servers have.

It has resource templates, prompts with arguments, structured output, annotations, binary content, and
an error whose text has characters that programs often handle wrongly.
"""

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

app = FastMCP("fast", instructions="A server of FastMCP.\n\nWith two paragraphs, ünïcode and 1e400.", version="1.2.3")


@app.tool(
    title="Add",
    tags={"math"},
    annotations={"readOnlyHint": True},
    meta={"example.com/x": {"y": [1, 2.50, None]}},
)
def add(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    return a + b


@app.tool
def table(rows: int = 2) -> list[dict]:
    """Returns a table with some rows of numbers."""
    return [{"n": row, "f": row / 2} for row in range(rows)]


@app.tool(annotations={"readOnlyHint": True})
def fail() -> str:
    """Fails with an error that the client sees."""
    raise ToolError('as it should: \u2028 "quoted"')


@app.tool
async def slow(ctx: Context, steps: int = 3) -> str:
    """Counts, and reports its progress."""
    for step in range(steps):
        await ctx.report_progress(step, steps)
        await ctx.info(f"step {step}")
    return "done"


@app.resource("fast://plain", mime_type="text/plain")
def plain() -> str:
    return "plain text"


@app.resource("fast://blob", mime_type="application/octet-stream")
def blob() -> bytes:
    return bytes(range(256))


@app.resource("fast://item/{name}{?lang}")
def item(name: str, lang: str = "en") -> dict:
    return {"name": name, "lang": lang}


@app.prompt
def review(code: str, style: str = "short") -> str:
    """Reviews code."""
    return f"Review ({style}): {code}"


@app.prompt
def hello() -> str:
    """Says hello."""
    return "hello"


app.run(show_banner=False)
