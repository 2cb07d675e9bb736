"""A TCP proxy that can lose a connection in the middle of an answer."""

import contextlib
import select
import socket
import threading


class CuttingProxy:
    """Forwards to a local port. `cut_after(n)`: the next answer longer than that is cut there, both sides closed."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._left: int | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._spawn(self._accept)

    def cut_after(self, count: int) -> None:
        self._left = count

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _spawn(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]  # any callable
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._spawn(self._connect, client)

    def _connect(self, client: socket.socket) -> None:
        """A target that is away refuses, as it would without the proxy."""
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
        else:
            self._forward(client, server)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, contextlib.suppress(OSError):
            while True:
                readable, _, _ = select.select([client, server], [], [])
                for source in readable:
                    data = source.recv(65536)
                    if not data or not self._pass(data, source is server, client if source is server else server):
                        return

    def _pass(self, data: bytes, answer: bool, target: socket.socket) -> bool:
        if answer and self._left is not None:
            data, rest = data[: self._left], data[self._left :]
            self._left -= len(data)
            target.sendall(data)
            if rest or not self._left:
                self._left = None
                return False
            return True
        target.sendall(data)
        return True
