"""Compares real MCP servers as a client sees them: directly, and through metamcp.

The servers are in servers.toml, by package name and version. Each is installed below
${XDG_CACHE_HOME:-~/.cache}/metamcp-tests/sweep and asked the same questions by clients that know
nothing of each other:

    directly           on standard input and output: twice in the era up to 2025-11-25, and once in
                       that of 2026-07-28 if the server speaks it
    /servers/NAME      in both eras, through a metamcp with this server alone
    /direct            the merged list, through one metamcp with all servers

After each stop, no process that a server has started may be left. A difference through metamcp is
explained if two processes of the server differ there too, if the server says the same in its other
era, if docs/servers-tried.md describes it, or if servers.toml gives a reason. Any other difference
that is there a second time is a failure: the exit code is 1.

The result is a table in Markdown on standard output. Most servers have no credentials, so the
sweep sees their definitions and errors, and a call of a harmless tool where servers.toml names one.
"""
