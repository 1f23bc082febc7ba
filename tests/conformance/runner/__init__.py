"""Runs the official conformance suite through metamcp, and compares it with a run without metamcp.

    tests/conformance/run METAMCP SUITE [LEG...]     SUITE is the directory of tests/conformance/install

In its mode `server` the suite is a client. It runs against the fixture directly, and against
/servers/fixture of a metamcp with the fixture behind it, once for each leg (legs.py). Each check that
passes directly must pass through metamcp. Counting failures would not suffice, because a check that
does not run does not fail. In its mode `client` the suite is the server behind metamcp, and the driver
(../driver) is the client in front of it, which follows the scenario.

../allowed.txt lists the checks that may be lost, and ../omitted.txt the scenarios that do not run, each with
the reason. The runner prints tables and the lost checks. The exit code is 1 if a check is lost that is not
allowed, if an allowed check is not lost, or if the suite does not have an omitted scenario.
"""
