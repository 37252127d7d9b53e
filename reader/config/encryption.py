"""``[encryption]``: where the private keys for encrypted messages are."""

from pathlib import Path

from pydantic import Field

from reader.config.section import Section


class EncryptionConfig(Section):
    """How encrypted messages are decrypted. Without keys they are rescued rows.

    ``keys``: files of private keys (RSA or EC, PEM) by the names that producers gave.
    ``key_provider``: the path ``package.module:function`` of a function that returns the private
    key (PEM, as bytes) of any other name, or None if the name has no key. Files and module are
    needed wherever Spark runs tasks. ``store_plaintext``: whether the offloader decrypts as well.
    Otherwise tables hold ciphertext, and queries decrypt it. ``public_keys``: files of public keys
    (RSA or EC, PEM) by the names that consumers know, with which writes encrypt.
    """

    keys: dict[str, Path] = Field(default_factory=dict)
    public_keys: dict[str, Path] = Field(default_factory=dict)
    key_provider: str = ""
    store_plaintext: bool = False

    @property
    def configured(self) -> bool:
        """Whether any private key is configured."""
        return bool(self.keys or self.key_provider)
