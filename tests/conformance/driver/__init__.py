"""The client that goes through metamcp to the servers of the conformance suite.

The suite starts the driver with the address of a server, and checks the messages that this server
receives. They come from metamcp as a client, which is the subject of the test. The driver starts a
metamcp with the suite's server behind it, lists and uses everything that the server offers, and
answers the requests of the server.

    CONFORMANCE_METAMCP             the program
    CONFORMANCE_CLIENT_ERA          the era that the driver speaks, legacy or modern
    CONFORMANCE_LOG                 the file for metamcp's log
    MCP_CONFORMANCE_CONTEXT         from the suite: the calls to make, if the scenario has any

    main         the steps with a server
    legacy       a client of 2025-11-25; modern: one of 2026-07-28
    exchange     one POST, with the messages before its answer
    answers      arguments for tools, and answers to requests of servers
"""
