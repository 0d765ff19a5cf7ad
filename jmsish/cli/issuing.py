"""Certificates for development, by the library cryptography (extra `cert`), imported where one is made."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jmsish.cli.parsing import CommandError
from jmsish.drivers.files import replace_file

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey as Key

CA_DAYS: Final = 3650
ORGANIZATION: Final = "jmsish development"
COMMON_NAME_LENGTH: Final = 64
"""RFC 5280, A.1: ub-common-name."""

_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
_HOST: Final = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
"""A port, a mask of a network or a blank is in no name that a client compares."""

SKEW: Final = datetime.timedelta(hours=1)
"""Clocks that are behind ours take it too."""


def make(directory: str, hosts: Sequence[str], clients: Sequence[str], days: int) -> Iterator[str]:
    """Make what is asked for, a line for each file that was written."""
    from cryptography.x509.oid import ExtendedKeyUsageOID

    place = Path(directory)
    if (place / "ca.pem").exists() or (place / "ca.key").exists():
        authority, key = _read_authority(place)
    else:
        authority, key = _new_authority()
        yield from _write(place, "ca", authority, key, "trust this")
    server, server_key = _issue(authority, key, hosts[0], days, _names(hosts), ExtendedKeyUsageOID.SERVER_AUTH)
    yield from _write(place, "server", server, server_key, f"for {', '.join(hosts)}")
    for user in clients:
        client, client_key = _issue(authority, key, user, days, None, ExtendedKeyUsageOID.CLIENT_AUTH)
        yield from _write(place, f"client-{user}", client, client_key, f"for the user {user}")


def _read_authority(place: Path) -> tuple[x509.Certificate, Key]:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        authority = x509.load_pem_x509_certificate((place / "ca.pem").read_bytes())
        key = serialization.load_pem_private_key((place / "ca.key").read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise CommandError(f"{place / 'ca.pem'} and ca.key are no certificate authority made here") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != authority.public_key():
        raise CommandError(f"{place / 'ca.key'} is not the key of ca.pem, or was not made here")
    return authority, key


def _new_authority() -> tuple[x509.Certificate, Key]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    # Its own serial number in its name, so that two of them in one store are told apart.
    name = _subject(f"jmsish development CA {x509.random_serial_number() & 0xFFFFFF:06x}")
    made = (
        _begun(name, name, key, _now() + datetime.timedelta(days=CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return made.sign(key, hashes.SHA256()), key


def _issue(
    authority: x509.Certificate,
    authority_key: Key,
    name: str,
    days: int,
    names: x509.SubjectAlternativeName | None,
    purpose: x509.ObjectIdentifier,
) -> tuple[x509.Certificate, Key]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    # The name of a host may be longer than a common name, and then stands in its own place only.
    subject = _subject(name if names is None or len(name) <= COMMON_NAME_LENGTH else None)
    begun = _begun(subject, authority.subject, key, _good_until(days, authority))
    made = (
        begun
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
    )
    if names is not None:
        made = made.add_extension(names, critical=False)
    return made.sign(authority_key, hashes.SHA256()), key


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def _good_until(days: int, authority: x509.Certificate) -> datetime.datetime:
    """A certificate that outlives its authority would end with it, whatever stands in it."""
    last = authority.not_valid_after_utc
    left = (last - _now()).days
    if days > left:
        raise CommandError(
            f"a certificate of {days} days would outlive its authority, ca.pem, which is good until {last:%Y-%m-%d}: "
            + (f"--days {left} is the most, or " if left > 0 else "")
            + "move ca.pem and ca.key away, and a new one is made"
        )
    return _now() + datetime.timedelta(days=days)


def _begun(subject: x509.Name, issuer: x509.Name, key: Key, until: datetime.datetime) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - SKEW)
        .not_valid_after(until)
    )


def _subject(name: str | None) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION)]
        if name is not None:
            parts.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        return x509.Name(parts)
    except ValueError as error:  # at most 64 characters
        raise CommandError(f"a certificate for {name!r}: {error}") from error


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _names(hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    from cryptography import x509

    names: list[x509.GeneralName] = []
    for host in hosts:
        with contextlib.suppress(ValueError):
            names.append(x509.IPAddress(ipaddress.ip_address(host.strip("[]"))))
            continue
        try:
            name = host.encode("idna").decode()
        except UnicodeError as error:
            raise CommandError(f"{host!r} is no name of a host") from error
        if not _HOST.fullmatch(name):
            raise CommandError(f"{host!r} is no name of a host, nor an address")
        names.append(x509.DNSName(name))
    return x509.SubjectAlternativeName(names)


def _write(place: Path, name: str, certificate: x509.Certificate, key: Key, what: str) -> Iterator[str]:
    """The key first: who finds a new certificate finds its key too."""
    from cryptography.hazmat.primitives import serialization

    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    replace_file(os.fspath(place / f"{name}.key"), secret.decode())
    shown = certificate.public_bytes(serialization.Encoding.PEM).decode()
    replace_file(os.fspath(place / f"{name}.pem"), shown, mode=0o644)
    yield f"{place / name}.pem and .key: {what}"
