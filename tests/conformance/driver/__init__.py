"""The client that goes through metamcp to the servers of the conformance suite.

The suite starts the driver with the address of a server, and checks the messages that this server
receives. They come from metamcp as a client, which is the subject of the test. The driver starts a
metamcp with the suite's server behind it, lists and uses everything that the server offers, and
answers the requests of the server. It logs in whenever metamcp asks for it, and knows no more of a
scenario than an operator does.

    CONFORMANCE_METAMCP             the program
    CONFORMANCE_CLIENT_ERA          the era that the driver speaks, legacy or modern
    CONFORMANCE_LOG                 the file for metamcp's log
    MCP_CONFORMANCE_SCENARIO        from the suite: the name of the scenario
    MCP_CONFORMANCE_CONTEXT         from the suite: the calls to make and the registered client, if any

    main         the steps with a server
    settings     the configuration of the server
    login        `metamcp login`, and a browser
    legacy       a client of 2025-11-25; modern: one of 2026-07-28
    exchange     one POST, with the messages before its answer
    answers      arguments for tools, and answers to requests of servers
"""
