"""Certificates for tests: an authority that exists as long as the process, and certificates that it signs.

The package `cryptography` makes them if it is installed; otherwise the program `openssl` does. The files are in a
temporary directory that only the user can read. The directory is removed at the end of the process.
"""

from __future__ import annotations

import datetime
import functools
import ipaddress
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

AUTHORITY: Final = "authority.pem"
_DAYS: Final = 30
_NAME: Final = re.compile(r"[\w.-]+")


class CertificatesUnavailable(RuntimeError):
    """Neither `cryptography` nor `openssl` is installed."""


class Authority:
    """A certificate authority. `certificate_file` is what clients and brokers trust."""

    def __init__(self, directory: Path, *, uses_openssl: bool | None = None) -> None:
        self._directory = directory
        self._maker = _maker(uses_openssl)
        self._maker.make_authority(directory)

    @property
    def certificate_file(self) -> Path:
        return self._directory / AUTHORITY

    def certificate(self, name: str, hosts: tuple[str, ...] = ()) -> Path:
        """Return a PEM file with a private key and a certificate for a common name; `hosts` are names and addresses."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name in a certificate: use letters, digits, dots and dashes")
        path = self._directory / f"{'-'.join((name, *hosts)).replace(':', '_')}.pem"
        if not path.exists():
            self._maker.make_certificate(self._directory, path, name, hosts)
        return path


@functools.cache
def process_authority() -> Authority:
    """Return the authority of this process."""
    # The object that removes the directory at the end of the process lives as long as the cached authority.
    return _OwningAuthority(tempfile.TemporaryDirectory(prefix="tailrace-certificates-"))


class _OwningAuthority(Authority):
    def __init__(self, directory: tempfile.TemporaryDirectory[str]) -> None:
        self._owned = directory
        super().__init__(Path(directory.name))


def _maker(uses_openssl: bool | None) -> _Cryptography | _OpenSsl:
    if not uses_openssl:
        try:
            return _Cryptography()
        except ImportError:
            pass
    program = shutil.which("openssl")
    if program is None:
        raise CertificatesUnavailable("TLS needs a certificate: pip install cryptography, or install openssl")
    return _OpenSsl(program)


class _Cryptography:
    def __init__(self) -> None:
        import cryptography.x509  # noqa: F401  # without the package the caller uses openssl

        self._authority: Any = None

    def make_authority(self, directory: Path) -> None:
        from cryptography import x509

        key = _new_key()
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Tailrace test authority")])
        certificate = (
            _builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, _sha256())
        )
        self._authority = key, name
        (directory / AUTHORITY).write_bytes(_pem(certificate))

    def make_certificate(self, directory: Path, path: Path, name: str, hosts: tuple[str, ...]) -> None:
        from cryptography import x509

        key = _new_key()
        authority_key, issuer = self._authority
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = _builder(subject, issuer, key.public_key())
        if hosts:
            names = [_general_name(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        _write_private(path, _key_pem(key) + _pem(builder.sign(authority_key, _sha256())))


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _sha256() -> Any:
    from cryptography.hazmat.primitives import hashes

    return hashes.SHA256()


def _builder(subject: Any, issuer: Any, public_key: Any) -> Any:
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _general_name(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    pem: bytes = certificate.public_bytes(Encoding.PEM)
    return pem


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


class _OpenSsl:
    def __init__(self, program: str) -> None:
        self._program = program

    def make_authority(self, directory: Path) -> None:
        files = ("-keyout", "authority.key", "-out", AUTHORITY)
        subject = ("-subj", "/CN=Tailrace test authority")
        self._run(directory, "req", "-x509", *_NEW_KEY, *files, *subject, "-days", str(_DAYS))

    def make_certificate(self, directory: Path, path: Path, name: str, hosts: tuple[str, ...]) -> None:
        self._run(directory, "req", *_NEW_KEY, "-keyout", "new.key", "-out", "new.csr", "-subj", f"/CN={name}")
        extensions = "basicConstraints=CA:FALSE\n"
        if hosts:
            extensions += f"subjectAltName={','.join(map(_alternative_name, hosts))}\n"
        (directory / "new.ext").write_text(extensions)
        signer = ("-CA", AUTHORITY, "-CAkey", "authority.key", "-CAcreateserial", "-days", str(_DAYS))
        self._run(directory, "x509", "-req", "-in", "new.csr", *signer, "-extfile", "new.ext", "-out", "new.crt")
        _write_private(path, (directory / "new.key").read_bytes() + (directory / "new.crt").read_bytes())

    def _run(self, directory: Path, *arguments: str) -> None:
        done = subprocess.run([self._program, *arguments], cwd=directory, capture_output=True, text=True)
        if done.returncode:
            raise CertificatesUnavailable(f"openssl {arguments[0]} failed: {done.stderr.strip()}")


_NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _alternative_name(host: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


def _write_private(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)
