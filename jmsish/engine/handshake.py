"""What comes before the first AMQP frame: protocol headers and the SASL exchange (Part 2, 2.2; Part 5, 5.3).

Theory of operation.  A handshake eats octets until both ends have shown the AMQP header; then ``done`` is true and
the engine reads frames. What it has to say gathers in ``output``, which leaves before anything else. ``ready`` says
that our AMQP header is written, so that frames may follow: for a client without SASL that is so from the start.

    client without SASL    AMQP_HEADER ─► DONE
    client with SASL       SASL_HEADER ─► MECHANISMS ─► OUTCOME ─► AMQP_HEADER ─► DONE
    server                 FIRST_HEADER ─► DONE                       (no SASL layer)
                           FIRST_HEADER ─► INIT ─► RESPONSE … ─► AMQP_HEADER ─► DONE
                                              └─► WAITING ◄─┘

A server waits where an answer takes its time or is not its own to give: it reports ``ASKED`` or ``JUDGED``, eats no
more, and goes on with :meth:`Handshake.decide`.
"""

from __future__ import annotations

from typing import Any

from jmsish.types import Symbol

from .conditions import CONNECTION_FORCED, DECODE_ERROR, FRAMING_ERROR, UNAUTHORIZED_ACCESS, Fault
from .events import ASKED, AUTHENTICATED, JUDGED
from .frames import (
    AMQP_HEADER,
    HEADER,
    SASL_FRAME,
    SASL_HEADER,
    frame,
    name_foreign_protocol,
    read_descriptor,
)
from .mechanisms import SYSTEM_ERROR
from .performatives import decode_list
from .sasl import Answer, ClientMechanism, SaslClient, SaslServer, ServerMechanism, Verdict
from .states import composite, typed_field
from .termini import encode_names, names_of
from .values import NULL, DecodeError, encode_binary, encode_string, encode_symbol, encode_ubyte

__all__ = ["SASL_FRAME_LIMIT", "Handshake", "trouble"]

SASL_FRAME_LIMIT = 16 * 1024
"""Tokens are longer than the 512 octets of Part 5, 5.3.1, so more is let through (W13)."""

USUAL_SASL_FRAME = 512
"""What every peer has to take (Part 5, 5.3.1)."""

WAITING_LIMIT = 64 * 1024
"""What a peer may send behind an answer that is being thought about: its open, and what it does first."""

LONGEST_MECHANISM = 20
"""Characters in the name of a mechanism (RFC 4422, 3.1)."""

MOST_ROUNDS = 8
"""Challenges of one exchange. The longest known here has three."""

FIRST_HEADER, SASL_HEADER_AWAITED, MECHANISMS, OUTCOME, INIT, RESPONSE, WAITING, AMQP_HEADER_AWAITED, DONE = range(9)

_MECHANISMS, _INIT, _CHALLENGE, _RESPONSE, _OUTCOME = range(0x40, 0x45)

_NAMES = {_MECHANISMS: "mechanisms", _INIT: "init", _CHALLENGE: "challenge", _RESPONSE: "response", _OUTCOME: "outcome"}
_SYMBOLS = {f"amqp:sasl-{name}:list": code for code, name in _NAMES.items()}

_CODES = {
    1: "the credentials were refused",
    2: "a system error at the server",
    3: "a permanent system error at the server",
    4: "a passing system error at the server",
}
_OK, _AUTH = 0, 1


class Handshake:
    """Headers and SASL of one connection, in either role."""

    def __init__(self, server: bool, sasl: SaslClient | SaslServer | None, hostname: str | None) -> None:
        self.client = sasl if isinstance(sasl, SaslClient) else None
        self.server = sasl if isinstance(sasl, SaslServer) else None
        self.hostname = hostname
        self.output: list[bytes] = []
        self.ready = False
        self._events: list[tuple[Any, ...]] = []
        self._rounds = 0
        self._refused: Verdict | None = None
        """What follows the answer to the last words before it."""
        self._is_server = server
        self._exchange: ServerMechanism | None = None
        self._chosen: ClientMechanism | None = None
        self._mechanism = ""
        self._init_size = 0
        if server:
            self.phase = FIRST_HEADER
        elif self.client is not None:
            self.phase = SASL_HEADER_AWAITED
            self.output.append(SASL_HEADER)
        else:
            self.phase = AMQP_HEADER_AWAITED
            self._write_amqp_header()

    @property
    def done(self) -> bool:
        """Whether frames of AMQP follow."""
        return self.phase == DONE

    def advance(self, data: bytes, pos: int) -> int:
        """Eat what is whole of ``data`` from ``pos`` on, and say how far that was. Raises Fault."""
        while self.phase != DONE:
            if self.phase in (MECHANISMS, OUTCOME, INIT, RESPONSE):
                end = self._sasl_frame(data, pos)
            elif self.phase == WAITING:
                if len(data) - pos > WAITING_LIMIT:
                    raise Fault(FRAMING_ERROR, "the peer sends on and on while it is being authenticated")
                return pos
            else:
                end = self._header(data, pos)
            if end == pos:
                return pos
            pos = end
        return pos

    def take_events(self) -> list[tuple[Any, ...]]:
        """What a server's owner has to hear of it."""
        events, self._events = self._events, []
        return events

    def cut_off(self, rest: bytes) -> tuple[str, str]:
        """Condition and sentence where the peer closes the socket now; ``rest`` is what came and was not eaten."""
        if self.phase == WAITING:
            return CONNECTION_FORCED, "the peer closed the socket while it was being authenticated"
        if self.phase in (MECHANISMS, OUTCOME, INIT, RESPONSE):
            return CONNECTION_FORCED, f"the peer closed the socket in the middle of the SASL exchange{self._what_for()}"
        if rest and not rest.startswith(b"AMQP"[: len(rest)]):
            return FRAMING_ERROR, f"protocol mismatch: the peer speaks {name_foreign_protocol(rest)}, not AMQP 1.0"
        text = "the peer closed the socket in the middle of the protocol handshake"
        is_bare = self.client is None or (self.phase == SASL_HEADER_AWAITED and not self.client.layered)
        if is_bare and not self._is_server:
            text += ", as a port that expects TLS does"
        return CONNECTION_FORCED, text

    def _what_for(self) -> str:
        """What the peer has closed upon, where it is our first response."""
        if self._chosen is None:
            return ""
        many = f", which has {self._init_size} octets: not every broker takes more than {USUAL_SASL_FRAME}"
        return f", upon our {self._chosen.name}{many if self._init_size > USUAL_SASL_FRAME else ''}"

    # -- headers -------------------------------------------------------------------------------------------------------

    def _write_amqp_header(self) -> None:
        self.output.append(AMQP_HEADER)
        self.ready = True

    def _header(self, data: bytes, pos: int) -> int:
        header = data[pos : pos + 8]
        if len(header) < 8:
            # Wrong from the first octets on: said at once, for the rest may never come. Two octets name TLS.
            if not b"AMQP".startswith(header[:4]) and (len(header) >= 4 or name_foreign_protocol(header) == "TLS"):
                self._refuse(header)
            return pos
        if self.phase == FIRST_HEADER:
            self._first_header(header)
        elif self.phase == SASL_HEADER_AWAITED:
            if header == AMQP_HEADER:
                raise Fault(
                    CONNECTION_FORCED, "the peer answered the SASL header with a plain AMQP one: it has no SASL"
                )
            if header != SASL_HEADER:
                self._refuse(header)
            self.phase = MECHANISMS
        else:
            if header == SASL_HEADER and not self._is_server:
                raise Fault(UNAUTHORIZED_ACCESS, "the peer demands SASL, and this connection was made without")
            if header != AMQP_HEADER:
                self._refuse(header)
            if self._is_server:
                self._write_amqp_header()
            self.phase = DONE
        return pos + 8

    def _first_header(self, header: bytes) -> None:
        """A server's choice: what the client asks for, where we have it."""
        if header == SASL_HEADER and self.server is not None:
            self.output.append(SASL_HEADER)
            self._send(_MECHANISMS, encode_names(self.server.mechanisms))
            self.phase = INIT
        elif header == AMQP_HEADER and (self.server is None or self.server.allow_no_sasl):
            self._write_amqp_header()
            self.phase = DONE
        else:
            self._refuse(header)

    def _refuse(self, header: bytes) -> None:
        """Part 2, 2.2: answer with a header that would have been right, then close."""
        demanded = "AMQP 1.0"
        if self._is_server:
            wants_sasl = self.server is not None and self.phase == FIRST_HEADER
            self.output.append(SASL_HEADER if wants_sasl else AMQP_HEADER)
            if header in (SASL_HEADER, AMQP_HEADER):
                met = "AMQP 1.0 with SASL" if header == SASL_HEADER else "AMQP 1.0 without SASL"
                demanded = "AMQP 1.0 with SASL" if wants_sasl else "AMQP 1.0 without SASL"
                raise Fault(FRAMING_ERROR, f"protocol mismatch: the peer asks for {met}, here is {demanded}")
        raise Fault(
            FRAMING_ERROR, f"protocol mismatch: the peer speaks {name_foreign_protocol(header)}, not {demanded}"
        )

    # -- SASL frames ---------------------------------------------------------------------------------------------------

    def _send(self, code: int, *fields: bytes) -> None:
        self.output.append(frame(0, composite(code, *fields), SASL_FRAME))

    def _sasl_frame(self, data: bytes, pos: int) -> int:
        if len(data) - pos < 8:
            return pos
        size: int
        size, offset, kind, _ = HEADER.unpack_from(data, pos)
        if size > SASL_FRAME_LIMIT:
            raise Fault(FRAMING_ERROR, f"a SASL frame of {size} octets, where {SASL_FRAME_LIMIT} are the most")
        if size < 8 or offset < 2 or offset * 4 > size:
            raise Fault(FRAMING_ERROR, f"a SASL frame of {size} octets with a data offset of {offset} words")
        if kind != SASL_FRAME:
            raise Fault(FRAMING_ERROR, f"a frame of type {kind} in the middle of the SASL exchange")
        end = pos + size
        if end > len(data):
            return pos
        try:
            self._take(data, pos + offset * 4, end)
        except (DecodeError, IndexError) as fault:
            raise Fault(DECODE_ERROR, f"a SASL frame that cannot be decoded: {fault}") from None
        return end

    def _take(self, data: bytes, pos: int, end: int) -> None:
        if pos == end:
            raise Fault(FRAMING_ERROR, "an empty SASL frame")
        descriptor, pos = read_descriptor(data, pos)
        if isinstance(descriptor, str):
            code = _SYMBOLS.get(descriptor, -1)
        else:
            code = descriptor if isinstance(descriptor, int) else -1
        name = _NAMES.get(code)
        expected = {MECHANISMS: (_MECHANISMS,), OUTCOME: (_CHALLENGE, _OUTCOME), INIT: (_INIT,), RESPONSE: (_RESPONSE,)}
        if name is None or code not in expected[self.phase]:
            wanted = " or ".join(_NAMES[one] for one in expected[self.phase])
            raise Fault(FRAMING_ERROR, f"a SASL frame {name or repr(descriptor)} where {wanted} was due")
        fields = decode_list(data, pos, end, f"sasl-{name}")
        if self._is_server:
            self._serve(fields)
        elif code == _MECHANISMS:
            self._choose(fields)
        elif code == _CHALLENGE:
            assert self._chosen is not None
            self._count_round()
            challenge = typed_field(fields, 0, bytes, "sasl-challenge.challenge", True)
            self._send(_RESPONSE, encode_binary(self._chosen.respond(challenge)))
        else:
            self._conclude(fields)

    # -- client --------------------------------------------------------------------------------------------------------

    def _choose(self, fields: list[Any]) -> None:
        assert self.client is not None
        offered = names_of(fields[0] if fields else None, "sasl-mechanisms.sasl-server-mechanisms")
        self._chosen = self.client.choose(offered)
        initial = self._chosen.start()
        self._send(
            _INIT,
            encode_symbol(self._chosen.name),
            NULL if initial is None else encode_binary(initial),
            NULL if self.hostname is None else encode_string(self.hostname),
        )
        self._init_size = len(self.output[-1])
        self.phase = OUTCOME

    def _conclude(self, fields: list[Any]) -> None:
        assert self.client is not None and self._chosen is not None
        code = int(typed_field(fields, 0, int, "sasl-outcome.code", True))
        if code != _OK:
            user = self.client.credentials.username
            who = f"user {user!r}" if user is not None else "the connection"
            reason = _CODES.get(code, f"code {code}")
            if self._chosen.complaint:
                reason += f" ({self._chosen.complaint})"
            raise Fault(
                UNAUTHORIZED_ACCESS if code == _AUTH else CONNECTION_FORCED,
                f"SASL {self._chosen.name} failed for {who}: {reason}",
            )
        self._chosen.finish(typed_field(fields, 1, bytes, "sasl-outcome.additional-data"))
        self._write_amqp_header()
        self.phase = AMQP_HEADER_AWAITED

    # -- server --------------------------------------------------------------------------------------------------------

    def _serve(self, fields: list[Any]) -> None:
        assert self.server is not None
        if self.phase == INIT:
            self._mechanism = str(typed_field(fields, 0, Symbol, "sasl-init.mechanism", True))
            self._exchange = self.server.begin(self._mechanism)
            if self._exchange is None:
                name = self._mechanism if len(self._mechanism) <= LONGEST_MECHANISM else "of a long name"
                self._weigh(Verdict(None, reason=f"the mechanism {name!r} was not offered"))
                return
            response = typed_field(fields, 1, bytes, "sasl-init.initial-response")
        else:
            self._count_round()
            response = typed_field(fields, 0, bytes, "sasl-response.response", True)
            if self._refused is not None:
                self._deny(self._refused)
        assert self._exchange is not None
        try:
            answer = self._exchange.step(response)
        except Fault:
            raise
        except Exception as error:  # What decides is the caller's code; the peer hears that it failed, not how.
            answer = trouble(error)
        self._weigh(answer)

    def _weigh(self, answer: Answer) -> None:
        """Say it, or have the owner say when."""
        assert self.server is not None
        if isinstance(answer, Verdict) and self.server.judged:
            self.phase = WAITING
            self._events.append((JUDGED, answer))
        elif isinstance(answer, (bytes, Verdict)):
            self._say(answer)
        else:
            self.phase = WAITING
            self._events.append((ASKED, answer))

    def decide(self, answer: bytes | Verdict) -> None:
        """The answer that was waited for. Raises Fault, as :meth:`advance` does."""
        if self.phase == WAITING:
            self._say(answer)

    def _say(self, answer: bytes | Verdict) -> None:
        if not isinstance(answer, Verdict):
            self._send(_CHALLENGE, encode_binary(answer))
            self.phase = RESPONSE
        elif answer.identity is not None:
            additional = answer.additional
            self._send(_OUTCOME, encode_ubyte(_OK), NULL if additional is None else encode_binary(additional))
            self._events.append((AUTHENTICATED, answer.identity, self._mechanism))
            self.phase = AMQP_HEADER_AWAITED
        elif answer.parting is not None:
            self._refused = answer
            self._send(_CHALLENGE, encode_binary(answer.parting))
            self.phase = RESPONSE
        else:
            self._deny(answer)

    def _count_round(self) -> None:
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            raise Fault(UNAUTHORIZED_ACCESS, f"the SASL exchange does not end: more than {MOST_ROUNDS} challenges")

    def _deny(self, verdict: Verdict) -> Any:
        """W15: the outcome, then the socket closes; nothing else is answered."""
        self._send(_OUTCOME, encode_ubyte(verdict.code))
        raise Fault(UNAUTHORIZED_ACCESS, f"SASL {self._mechanism}: {verdict.reason}")


def trouble(error: BaseException) -> Verdict:
    """The verdict where what decides raised. Of the error only its kind is told: its text may hold what was asked."""
    return Verdict(None, code=SYSTEM_ERROR, reason=f"deciding raised {type(error).__name__}")
