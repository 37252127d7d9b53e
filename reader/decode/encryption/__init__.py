"""Encrypted entries: decrypted where a key opens them, described where none does.

    decryption          Decryption: data keys, AES-GCM, RSA and EC private keys
    headers             the headers of a block, after decryption where that is possible
    encryption_context  ``__encryptionContext``: what a consumer needs to decrypt an entry

Private keys are given by the caller (``reader.private_keys``); no I/O here. Imports
``reader.model``, ``reader.errors``, ``reader.wire`` and, of this package, ``tables``, ``arrays``
and ``passes``.
"""
