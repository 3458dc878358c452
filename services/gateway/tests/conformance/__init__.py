"""Black-box conformance suite: the installed gateway as a process, judged from its sockets only."""
