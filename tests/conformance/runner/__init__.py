"""Runs the official conformance suite through metamcp, and compares it with a run without metamcp.

    tests/conformance/run METAMCP SUITE [LEG...]     SUITE is what tests/conformance/install made

In its mode `server` the suite is a client. It runs against the fixture directly, and against
/servers/fixture of a metamcp with the fixture behind it, once for each leg (legs.py). Each check that
passes directly must pass through metamcp: to count failures would not do, as a check that is never
made fails nowhere. In its mode `client` the suite is the server behind metamcp, and the driver in
front of it (../driver) goes wherever the scenario wants a client to go.

What may be lost stands in ../allowed.txt, each with the reason. It prints a table, and what is lost;
the exit code is 1 if anything is that is not allowed, or if something is allowed that is not lost.
"""
