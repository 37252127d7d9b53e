"""``[encryption]``: where the private keys for encrypted messages are."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from reader.config.section import Section

__all__ = ["EncryptionConfig"]


class EncryptionConfig(Section):
    """How encrypted messages are decrypted; without keys they are rescued rows.

    ``keys``: files of private keys (RSA or EC, PEM) by the names that producers gave. ``command``
    is run for a name that is not among them, which it reads as a line from standard input: it
    prints the key, or nothing where there is none (``reader.key_command``). Both have to be there
    wherever Spark runs tasks. ``store_plaintext``:
    whether the offloader decrypts as well; without, tables hold ciphertext, and queries decrypt.
    ``public_keys``: files of public keys (RSA or EC, PEM) by the names that consumers know, for
    writes that seal what they send.
    """

    keys: dict[str, Path] = Field(default_factory=dict)
    public_keys: dict[str, Path] = Field(default_factory=dict)
    command: list[str] = Field(default_factory=list, repr=False)
    store_plaintext: bool = False

    @property
    def configured(self) -> bool:
        """Whether there are keys at all."""
        return bool(self.keys or self.command)
