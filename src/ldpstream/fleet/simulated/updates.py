"""What notices ask of simulated devices: to fetch new terms, and to renew their keys."""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np
from numpy.typing import NDArray

from ldpstream.device.answers import read_object, refusal_in
from ldpstream.device.exchange import LARGEST_ANSWER, AsyncTransport, Request, Unreachable
from ldpstream.fleet.simulated.devices import Devices
from ldpstream.fleet.simulated.enrolment import shown_by, take_keys
from ldpstream.protocol.answers import Refused
from ldpstream.protocol.authentication import proof_of, renew_message, terms_message
from ldpstream.protocol.messages import FetchTerms, RenewKey
from ldpstream.protocol.succession import objection
from ldpstream.protocol.terms import Terms, TermsRefused

AT_ONCE = 16


async def fetch_successor(
    transport: AsyncTransport, url: str, devices: Devices, pin: str
) -> Terms | None:
    """Return the terms with this pin, if they follow those in force; None, to try again later."""
    terms = devices.terms
    assert terms is not None
    number, key = devices.numbers[0].tobytes(), devices.keys[0].tobytes()
    proof = proof_of(number, key, terms_message(terms.stream, pin))
    request = Request.of(FetchTerms(terms.stream, pin, proof))
    try:
        response = await transport.send(url, request)
        if response.status != 200:
            raise refusal_in(response, "the successor of its terms")
        sent = read_object(response, "terms", LARGEST_ANSWER)
        offered = Terms.read(sent.get("terms", sent))
    except (Unreachable, Refused, TermsRefused):
        return None
    looser = [objection(one, offered) for one in terms.strata]
    return offered if offered.pin == pin and not any(looser) else None


async def renew_keys(
    transport: AsyncTransport, url: str, devices: Devices, rows: NDArray[np.int64]
) -> None:
    """Renew the keys of these devices; one that fails is asked again after its next report."""
    gate = asyncio.Semaphore(AT_ONCE)
    terms = devices.terms
    assert terms is not None

    async def renew(row: int) -> None:
        key, number = devices.keys[row].tobytes(), devices.numbers[row].tobytes()
        level = terms.strata[devices.levels[row]].level
        proof = proof_of(number, key, renew_message(terms.stream))
        message = RenewKey(terms.stream, shown_by(devices, row, terms.stream), level, proof)
        async with gate:
            with contextlib.suppress(Unreachable, Refused):
                response = await transport.send(url, Request.of(message))
                if response.status in (200, 201):
                    take_keys(devices, row, read_object(response, "key", LARGEST_ANSWER))

    await asyncio.gather(*(renew(int(row)) for row in rows))
