"""Start llama.cpp's native server on one model and stop it on SIGTERM.

Loading happens in one call of the engine that holds the interpreter lock, so no Python signal handler can
run meanwhile. Until the model is loaded SIGTERM therefore keeps its default action (the process ends at
once, nothing is in flight yet); as process 1 of a container the default action would be to ignore it, so
there a handler is installed from the start and takes effect when the load is over.
"""

import os
import signal
import sys
import threading
from types import FrameType

from noctaya_llamacpp.options import OptionError, Options, parse_options

BAD_OPTION = 2
QUIET = 2  # the engine's verbosity: warnings and errors


def main() -> None:
    """Console script `noctaya-llamacpp`."""
    try:
        options = parse_options(sys.argv[1:])
        serve(options)
    except OptionError as error:
        print(f"noctaya-llamacpp: {error}", file=sys.stderr)
        sys.exit(BAD_OPTION)


def serve(options: Options) -> None:
    """Load the model and serve until SIGTERM or SIGINT.

    Raises OptionError when the engine refuses the model.
    """
    stopped = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()

    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, stop)
    import xllamacpp  # noqa: PLC0415 - 35 ms that a wrong option need not wait for

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(options.model)
    parameters.model_alias = {options.alias}
    parameters.hostnames = [options.host]
    parameters.port = options.port
    parameters.n_parallel = options.parallel
    parameters.n_ctx = options.context * options.parallel
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.threads
    parameters.endpoint_metrics = True
    parameters.ui = False
    parameters.verbosity = QUIET
    print(f"noctaya-llamacpp: loading {options.model.name}", file=sys.stderr, flush=True)
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise OptionError(f"the engine can't load {options.model}: {error}") from error
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print(
        f"noctaya-llamacpp: serving {options.alias} on {server.listening_address}",
        file=sys.stderr,
        flush=True,
    )
    stopped.wait()
    print("noctaya-llamacpp: stopping", file=sys.stderr, flush=True)
    del server


if __name__ == "__main__":
    main()
