"""HTTP for a device that may block: the standard library's client, one connection kept alive."""

from __future__ import annotations

import http.client
import ssl

from ldpstream.device.exchange import LARGEST_ANSWER, Address, Request, Response, unreachable


class HttpTransport:
    """One connection to one collector at a time."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._to: str | None = None
        self._connection: http.client.HTTPConnection | None = None

    def send(self, url: str, request: Request) -> Response:
        address = Address.of(url)
        kept_alive = self._connection is not None and self._to == url
        try:
            try:
                return self._send(url, address, request)
            except ConnectionError:
                # The other side may have closed it for idleness. All that a device sends may
                # arrive twice, so it need not be known whether this did.
                if not kept_alive:
                    raise
                self.close()
                return self._send(url, address, request)
        except (OSError, ValueError, http.client.HTTPException) as fault:
            # ValueError: a host or path that no request can be made of.
            self.close()
            raise unreachable(url, fault) from fault

    def _send(self, url: str, address: Address, request: Request) -> Response:
        connection = self._connect(url, address, request.patience)
        connection.request(
            request.method, address.prefix + request.path, request.body, dict(request.headers)
        )
        answer = connection.getresponse()
        body = answer.read(LARGEST_ANSWER + 1)
        if len(body) > LARGEST_ANSWER:
            raise OSError("its answer has no end")
        if answer.length:  # a read of limited size takes the end of the connection for the end
            raise http.client.IncompleteRead(body, answer.length)
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Response(answer.status, headers, body)

    def _connect(self, url: str, address: Address, patience: float) -> http.client.HTTPConnection:
        if self._connection is None or self._to != url:
            self.close()
            if address.secure:
                tls = self._tls or ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(
                    address.host, address.port, context=tls
                )
            else:
                self._connection = http.client.HTTPConnection(address.host, address.port)
            self._to = url
        connection = self._connection
        connection.timeout = patience
        if connection.sock is not None:
            connection.sock.settimeout(patience)
        return connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
