"""A certificate authority for tests and bench, with certificates for servers on this machine."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """A certificate authority for the test, with a folder for its certificates."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, folder: Path) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _certificate("test authority", "test authority", key)
        usage = x509.KeyUsage(*[False] * 5, *[True] * 2, *[False] * 2)  # certificates, lists
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)  # noqa: FBT003
        builder = builder.add_extension(usage, critical=True)
        return cls(folder, key, builder.sign(key, hashes.SHA256()))

    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.file())

    def file(self) -> Path:
        """Write the certificate to a file, for `SSL_CERT_FILE`."""
        path = self.folder / "authority.pem"
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def server(self, *names: x509.GeneralName) -> ssl.SSLContext:
        """Issue a certificate for server names."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = (
            _certificate("server", "test authority", key)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(issuer, critical=False)
        )
        path = self.folder / "server.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def _certificate(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    day = timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - day)
        .not_valid_after(datetime.now(UTC) + day)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
