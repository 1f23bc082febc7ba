"""Compares real MCP servers as a client sees them: directly, and through metamcp.

The servers are in servers.toml, by package name and version. The sweep installs each one below
${XDG_CACHE_HOME:-~/.cache}/metamcp-tests/sweep. Independent clients send the same requests to it:

    directly           over standard input and output: twice in the era up to 2025-11-25, and once in
                       the era of 2026-07-28 if the server speaks it
    /servers/NAME      in both eras, through a metamcp with only this server
    /direct            the merged list, through one metamcp with all servers

After each stop, no process that a server has started may be left. A difference through metamcp is
explained in four cases: two processes of the server differ there too, the server answers the same in
its other era, docs/servers-tried.md describes it, or servers.toml gives a reason. Any other difference
that occurs twice is a failure, and the exit code is 1.

The result is a table in Markdown on standard output. Most servers have no credentials, so that the
sweep compares their definitions and errors. It calls a harmless tool if servers.toml names one.
"""
