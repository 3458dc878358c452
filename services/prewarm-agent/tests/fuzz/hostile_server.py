"""A server that answers every request with the same bytes, whatever they are, and hangs up."""

import socket
import threading
from types import TracebackType

_ENOUGH = b"\r\n\r\n"


class HostileServer:
    """Listens on loopback in a thread of its own; a context manager. `answer` may be changed at any time."""

    def __init__(self) -> None:
        self.answer = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, name="hostile-server")

    def __enter__(self) -> "HostileServer":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        self._listener.close()

    def says(self, body: bytes, *, kind: str = "application/json", status: str = "200 OK") -> None:
        """Answer with a whole response from now on."""
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        self.answer = head.encode() + b"Connection: close\r\n\r\n" + body

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # it was shut down
                return
            with connection:
                connection.settimeout(10)
                try:
                    asked = b""
                    while _ENOUGH not in asked and (got := connection.recv(65536)):
                        asked += got
                    connection.sendall(self.answer)
                except OSError:  # the client has seen enough
                    continue
