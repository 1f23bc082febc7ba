"""The client that goes through metamcp to the servers of the conformance suite.

The suite starts it with the address of a server of its own, and watches what that one is sent. That
comes from metamcp, whose side towards servers is what is tested: the driver starts a metamcp with the
suite's server behind it, lists and uses everything that is there, and answers what it is asked.

    CONFORMANCE_METAMCP             the program
    CONFORMANCE_CLIENT_ERA          the era that the driver speaks, legacy or modern
    CONFORMANCE_LOG                 where metamcp's log goes
    MCP_CONFORMANCE_CONTEXT         from the suite: the calls to make, if it cares

    main         the way through a server
    legacy       a client of 2025-11-25; modern: one of 2026-07-28
    exchange     one POST, with what comes before its answer
    answers      arguments for tools, and answers to questions
"""
