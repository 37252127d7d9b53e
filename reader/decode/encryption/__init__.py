"""Encryption.

context              What a consumer needs to decrypt an entry: the encryption context in i
decryption           Encrypted entries in the clear: what a consumer with the private key d
headers              The headers of a block's entries, those that are encrypted opened wher
"""

__all__: list[str] = []
